//! A toy of a service that asks a Tollgate before each piece of work, from many tasks at once.
//!
//! Start a server, then this:
//!
//! ```sh
//! cargo run --release
//! cargo run --example client --features client-central -- 127.0.0.1:6379
//! ```
//!
//! Ten workers want to do a thousand pieces of work within two seconds; a hundred a second may
//! pass. It prints how many passed, and what the client did for it: most denials cost no request
//! at all, since one that the server made is remembered until it may end, and what the tasks ask
//! at the same moment travels in one write. Stop the server meanwhile, or start none, and
//! everything passes: this client fails open.

#![expect(clippy::print_stdout, reason = "it shows what happened")]

use std::error::Error;
use std::time::Duration as Pause;

use tollgate::client::{Client, Limit, Options, Source, WithoutServer};
use tollgate::limit::{Algorithm, Quota};
use tollgate::time::Duration;

const WORKERS: usize = 10;
const PIECES: usize = 100;

/// What became of the work of one worker.
#[derive(Default)]
struct Tally {
    passed: usize,
    denied: usize,
    without_server: usize,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:6379".to_owned());
    let options = Options { without_server: WithoutServer::Open, ..Options::at(address) };
    let client = Client::start(options)?;
    if let Err(why) = client.ready(Duration::from_secs(1)).await {
        println!("going on without a server: {why}");
    }
    let quota = Quota::new(Algorithm::SlidingLog, 100, Duration::from_secs(1))?;
    let workers: Vec<_> = (0..WORKERS).map(|_| tokio::spawn(work(client.clone(), quota))).collect();
    let mut all = Tally::default();
    for worker in workers {
        let tally = worker.await??;
        all.passed += tally.passed;
        all.denied += tally.denied;
        all.without_server += tally.without_server;
    }
    let stats = client.stats();
    println!("{} passed, {} were denied", all.passed, all.denied);
    println!("{} were let through without the server", all.without_server);
    println!("{} requests in {} writes", stats.asked, stats.writes);
    println!(
        "{} denials came from memory, {:.0} % of all decisions; {} were looked up again",
        stats.recalled,
        stats.recalled_ratio() * 100.0,
        stats.refreshed
    );
    client.close().await;
    Ok(())
}

async fn work(client: Client, quota: Quota) -> Result<Tally, tollgate::client::Error> {
    let mut tally = Tally::default();
    let mut pace = tokio::time::interval(Pause::from_millis(20));
    for _ in 0..PIECES {
        pace.tick().await;
        let answer = client.limit(&Limit::new("example:work", quota)).await?;
        match (answer.is_allowed(), answer.source) {
            (true, Source::Server | Source::Memory) => tally.passed += 1,
            (false, _) => tally.denied += 1,
            (true, Source::WithoutServer(_)) => tally.without_server += 1,
        }
    }
    Ok(tally)
}
