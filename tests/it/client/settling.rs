//! Checks, leases and reservations, in the words of a server that is scripted.

use std::sync::mpsc;

use tollgate::client::{Check, Client, Error, Options, Source};
use tollgate::limit::Cost;
use tollgate::time::Duration;

use super::scripted::{Act, Scripted};
use super::{block_on, options};

const TTL: Duration = Duration::from_secs(30);
const DENIED: &str = "*6\n:1\n:5\n:0\n:60000\n:60000\n";

fn start(server: &Scripted) -> Client {
    Client::start(options(server.port)).expect("there is a runtime")
}

/// A denial with these details.
fn denied(details: &str) -> Act {
    Act::Answer(Box::leak(format!("{DENIED}{details}").into_boxed_str()))
}

#[test]
fn client_remembers_a_check_only_for_as_long_as_the_server_says() {
    block_on(async {
        let frozen = "*4\n+revision\n:7\n+frozen_ms\n:50000\n";
        let server = Scripted::start(vec![
            // Something is held, so it may end early.
            denied("*2\n+revision\n:7\n"),
            denied(frozen),
            // Of another caller: the policy has changed.
            denied("*2\n+revision\n:8\n"),
            denied(frozen),
            // The settlement before the end.
            Act::Answer("+PONG\n"),
        ]);
        let client = start(&server);
        let check = Check::new("acme").endpoint("/login");
        for expected in [Source::Server, Source::Server, Source::Memory, Source::Memory] {
            assert_eq!(client.check(&check).await.map(|told| told.source), Ok(expected));
        }
        let other = check.clone().caller("u42");
        for check in [&other, &check] {
            assert_eq!(client.check(check).await.map(|told| told.source), Ok(Source::Server));
        }
        client.close().await;
        assert_eq!(
            server.asked(),
            [
                "RL.CHECK acme /login DETAIL",
                "RL.CHECK acme /login DETAIL",
                "RL.CHECK acme /login CALLER u42 DETAIL",
                "RL.CHECK acme /login DETAIL",
                "PING",
            ]
        );
    });
}

#[test]
fn client_without_a_memory_asks_for_no_details() {
    block_on(async {
        let server = Scripted::start(vec![
            Act::Answer("*5\n:0\n:-1\n:-1\n:-1\n:0\n"),
            Act::Answer("*5\n:0\n:5\n:4\n:-1\n:1000\n"),
            Act::Answer("+PONG\n"),
        ]);
        let options = Options { memory: None, ..options(server.port) };
        let client = Client::start(options).expect("there is a runtime");
        let check = Check::new("acme");
        let unlimited = client.check(&check).await.expect("the server answers");
        assert_eq!((unlimited.is_allowed(), unlimited.quota), (true, None));
        assert_eq!(client.peek_check(&check).await.map(|told| told.is_allowed()), Ok(true));
        client.close().await;
        assert_eq!(server.asked(), ["RL.CHECK acme -", "RL.CHECK acme - PEEK", "PING"]);
    });
}

#[test]
fn client_releases_a_lease_that_is_dropped() {
    block_on(async {
        let held = "*6\n:0\n:2\n:1\n:-1\n:0\n";
        let first = Box::leak(format!("{held}$2\na1\n").into_boxed_str());
        let second = Box::leak(format!("{held}$2\na2\n").into_boxed_str());
        let server = Scripted::start(vec![
            Act::Answer(first),
            Act::Answer(second),
            denied("_\n"),
            Act::Answer(":1\n"),
            Act::Answer(":0\n"),
            Act::Answer("+PONG\n"),
        ]);
        let client = start(&server);
        let check = Check::new("acme").endpoint("/slow");
        let acquire = async || client.acquire(&check, TTL).await.expect("the server answers");
        let dropped = acquire().await.lease.expect("it is allowed");
        let released = acquire().await.lease.expect("it is allowed");
        let denied = acquire().await;
        assert!(!denied.answer.is_allowed() && denied.lease.is_none());
        drop(dropped);
        assert_eq!(released.release().await, Ok(false), "the server has forgotten it");
        client.close().await;
        assert_eq!(
            server.asked()[2..],
            ["RL.ACQUIRE acme /slow TTL 30s", "RL.RELEASE a1", "RL.RELEASE a2", "PING"]
        );
    });
}

#[test]
fn client_releases_a_lease_that_comes_when_nobody_waits() {
    block_on(async {
        let (tell, told) = mpsc::channel();
        let server = Scripted::start(vec![
            Act::AnswerWhenTold("*6\n:0\n:2\n:1\n:-1\n:0\n$4\nlate\n", told),
            Act::Answer(":1\n"),
            Act::Answer("+PONG\n"),
        ]);
        let deadline = Duration::from_millis(50);
        let client = Client::start(Options { deadline, ..options(server.port) });
        let client = client.expect("there is a runtime");
        let acquired = client.acquire(&Check::new("acme"), TTL).await.expect("it fails open");
        assert_eq!(acquired.answer.source, Source::WithoutServer(Error::Late));
        assert!(acquired.answer.is_allowed() && acquired.lease.is_none());
        tell.send(()).expect("the server waits");
        while client.stats().asked < 2 {
            tokio::task::yield_now().await;
        }
        client.close().await;
        assert_eq!(server.asked(), ["RL.ACQUIRE acme - TTL 30s", "RL.RELEASE late", "PING"]);
    });
}

#[test]
fn reservation_is_committed_cancelled_or_dropped() {
    block_on(async {
        let held = |id| -> &'static str {
            Box::leak(format!("*6\n:0\n:9\n:4\n:-1\n:1000\n:{id}\n").into_boxed_str())
        };
        let server = Scripted::start(vec![
            Act::Answer(held(1)),
            Act::Answer(":1\n"),
            Act::Answer(held(2)),
            Act::Answer(":1\n"),
            Act::Answer(held(3)),
            Act::Answer(":1\n"),
            Act::Answer("+PONG\n"),
        ]);
        let client = start(&server);
        let check = Check::new("acme").cost(Cost(5));
        let reserve = async || {
            let reserved = client.reserve(&check, TTL).await.expect("the server answers");
            reserved.reservation.expect("it is allowed")
        };
        assert_eq!(reserve().await.commit(Cost(3)).await, Ok(true));
        assert_eq!(reserve().await.cancel().await, Ok(true));
        drop(reserve().await);
        client.close().await;
        let asked = server.asked();
        assert_eq!(asked[0], "RL.RESERVE acme - COST 5 TTL 30s");
        assert_eq!(
            [&asked[1], &asked[3], &asked[5]],
            ["RL.COMMIT 1 3", "RL.CANCEL 2", "RL.CANCEL 3"]
        );
        assert_eq!(asked.len(), 7);
    });
}

#[test]
fn refund_and_reset_of_a_tenant_say_what_is_given_back() {
    block_on(async {
        let server = Scripted::start(vec![
            Act::Answer(":2\n"),
            Act::Answer(":4\n"),
            Act::Answer(":7\n"),
            Act::Answer("-ERR RL.RESET: no tenant 'acme'\n"),
            Act::Answer("+PONG\n"),
        ]);
        let client = start(&server);
        let check = Check::new("acme").endpoint("/login").caller("u42").cost(Cost(2));
        assert_eq!(client.refund(&check).await, Ok(2));
        assert_eq!(client.reset_tenant("acme", &["/login", "/logout"]).await, Ok(4));
        assert_eq!(client.reset_tenant::<&str>("acme", &[]).await, Ok(7));
        let refused = client.reset_tenant::<&str>("acme", &[]).await;
        assert_eq!(refused, Err(Error::Refused("ERR RL.RESET: no tenant 'acme'".into())));
        client.close().await;
        assert_eq!(
            server.asked()[..3],
            [
                "RL.REFUND TENANT acme /login CALLER u42 COST 2",
                "RL.RESET TENANT acme /login /logout",
                "RL.RESET TENANT acme",
            ]
        );
    });
}
