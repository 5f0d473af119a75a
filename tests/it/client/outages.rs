//! Servers that are away, silent, unwilling or overrun: every call ends, and as was chosen.

use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;

use tollgate::client::{Answer, Client, Error, Limit, Login, Options, Source, WithoutServer};
use tollgate::limit::{Algorithm, Cost};
use tollgate::time::Duration;

use super::scripted::{Act, Scripted};
use super::{PATIENCE, block_on, calls, client, client_with, one_a_minute, options, quota};
use crate::server::{Program, Tollgate};

const SOON: Duration = Duration::from_millis(50);

fn start(options: Options) -> Client {
    Client::start(options).expect("there is a runtime")
}

async fn ask(client: &Client) -> Answer {
    client.limit(&one_a_minute("key")).await.expect("an outage is no error of a decision")
}

/// Why the client decided without its server.
fn why(answer: Answer) -> Error {
    match answer.source {
        Source::WithoutServer(why) => why,
        told @ (Source::Server | Source::Memory) => panic!("{told:?} answered"),
    }
}

#[test]
fn client_starts_only_in_a_runtime() {
    let failed = Client::start(Options::at("127.0.0.1:1")).map(drop);
    assert_eq!(failed, Err(Error::NotConnected("there is no tokio runtime".into())));
}

#[test]
fn client_without_a_server_fails_as_it_was_chosen() {
    block_on(async {
        let port = TcpListener::bind(("127.0.0.1", 0)).and_then(|free| free.local_addr());
        let options = options(port.expect("a free port").port());
        let open = ask(&start(options.clone())).await;
        assert!(open.is_allowed());
        assert!(matches!(why(open), Error::NotConnected(_)));
        let retry_after = Duration::from_secs(2);
        let closed = start(Options {
            without_server: WithoutServer::Closed { retry_after },
            ..options.clone()
        });
        for _ in 0..20 {
            let answer = ask(&closed).await;
            let retry = answer.retry_after().expect("it is denied");
            assert!((retry_after..=Duration::from_secs(4)).contains(&retry), "{retry}");
        }
        assert_eq!(closed.stats().without_server, 20);
        let hasty = start(Options { deadline: SOON, ..options });
        assert_eq!(hasty.refund_key("key", Cost(1)).await, Err(Error::Late));
    });
}

#[test]
fn client_comes_back_to_a_server_that_was_killed() {
    block_on(async {
        let program = Program::start(&[]);
        let port = program.port;
        let client = start(options(port));
        let once_a_day = quota(Algorithm::SlidingLog, 1, "1d");
        let ask = async || client.limit(&Limit::new("key", once_a_day)).await.expect("no refusal");
        assert_eq!(ask().await.source, Source::Server);
        assert_eq!((ask().await.source, ask().await.source), (Source::Server, Source::Memory));
        drop(program);
        // Nothing is believed of a server that has gone.
        while !matches!(ask().await.source, Source::WithoutServer(_)) {
            tokio::task::yield_now().await;
        }
        let _back = Program::start(&["--set", &format!("server.port={port}")]);
        client.ready(PATIENCE).await.expect("it is back");
        let answer = ask().await;
        assert_eq!((answer.is_allowed(), answer.source), (true, Source::Server));
        assert_eq!(client.stats().connections, 2);
    });
}

#[test]
fn client_gives_up_on_a_server_that_accepts_and_never_answers() {
    block_on(async {
        // Nobody accepts: the kernel does.
        let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = mute.local_addr().expect("it is bound").port();
        let client = start(Options { deadline: SOON, connect_timeout: SOON, ..options(port) });
        for _ in 0..3 {
            assert!(matches!(why(ask(&client).await), Error::Late | Error::NotConnected(_)));
        }
        assert_eq!(client.stats().connections, 0);
    });
}

#[test]
fn client_gives_up_a_connection_that_has_gone_silent() {
    block_on(async {
        let server =
            Scripted::start(vec![Act::Answer("*5\n:0\n:1\n:0\n:-1\n:60000\n"), Act::Silence]);
        let client = start(Options { silence_max: SOON, ..options(server.port) });
        assert_eq!(ask(&client).await.source, Source::Server);
        assert_eq!(why(ask(&client).await), Error::Lost("the server is silent".into()));
        drop(client);
        assert_eq!(server.asked().len(), 2);
    });
}

#[test]
fn client_that_asks_something_else_than_resp_says_so() {
    block_on(async {
        let server = Scripted::start(vec![Act::Answer("HTTP/1.1 400 Bad Request\n")]);
        let client = start(options(server.port));
        assert_eq!(why(ask(&client).await), Error::Lost("the answer is not RESP".into()));
    });
}

#[test]
fn client_with_a_wrong_password_is_told_so_and_keeps_trying() {
    block_on(async {
        let tollgate = Tollgate::start(&["--set", "server.password=right"]);
        let with = |login| Options { login, ..options(tollgate.port()) };
        let wrong = start(with(Some(Login::password("wrong"))));
        let Error::NotConnected(told) = why(ask(&wrong).await) else { panic!("it got in") };
        assert!(told.starts_with("WRONGPASS"), "{told}");
        let Error::NotConnected(told) = why(ask(&start(with(None))).await) else {
            panic!("it got in")
        };
        assert!(told.starts_with("NOAUTH"), "{told}");
        let right = start(with(Some(Login::password("right"))));
        assert_eq!(right.ready(PATIENCE).await, Ok(()));
        assert_eq!(ask(&right).await.source, Source::Server);
    });
}

#[test]
fn client_takes_no_more_calls_than_its_queue_holds() {
    const CALLS: usize = 100;
    const QUEUE: usize = 4;
    block_on(async {
        let mute = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let port = mute.local_addr().expect("it is bound").port();
        let queue_max = NonZeroUsize::new(QUEUE).expect("it is above zero");
        let client = start(Options { deadline: SOON, queue_max, ..options(port) });
        let tasks: Vec<_> = (0..CALLS)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { why(ask(&client).await) })
            })
            .collect();
        let mut full = 0;
        for task in tasks {
            full += usize::from(task.await.expect("no call panics") == Error::QueueFull);
        }
        assert_eq!(full, CALLS - QUEUE);
        let stats = client.stats();
        assert_eq!((stats.queue_full, stats.late), (full as u64, QUEUE as u64));
    });
}

#[test]
fn client_tells_a_wrong_request_from_an_unable_server() {
    block_on(async {
        let tollgate = Tollgate::start(&["--set", "engine.memory_max=64kb"]);
        let client = client(&tollgate);
        assert_eq!(tollgate.connect().line("SET key value"), "+OK");
        let refused = client.limit(&one_a_minute("key")).await;
        assert!(matches!(refused, Err(Error::Refused(text)) if text.starts_with("WRONGTYPE")));
        for number in 0.. {
            let key = format!("new:{number}");
            let answer = client.limit(&one_a_minute(&key)).await.expect("an outage is no error");
            if let Source::WithoutServer(Error::Unable(told)) = answer.source {
                assert!(told.starts_with("OOM") && number < 2_000, "{told}");
                break;
            }
        }
    });
}

#[test]
fn calls_of_many_tasks_travel_in_few_writes_and_get_their_own_answers() {
    const TASKS: u64 = 2_000;
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client_with(&tollgate, options(tollgate.port()));
        client.ready(PATIENCE).await.expect("the server listens");
        let tasks: Vec<_> = (1..=TASKS)
            .map(|number| {
                let client = client.clone();
                tokio::spawn(async move {
                    let key = format!("key:{number}");
                    let quota = quota(Algorithm::FixedWindow, number, "1m");
                    let answer = client.limit(&Limit::new(&key, quota)).await;
                    (number, answer.expect("the server answers").quota)
                })
            })
            .collect();
        for task in tasks {
            let (number, quota) = task.await.expect("no call panics");
            let quota = quota.expect("there is a quota");
            assert_eq!((quota.limit, quota.remaining), (number, number - 1));
        }
        let stats = client.stats();
        assert_eq!((stats.asked, calls(&tollgate, "rl.limit")), (TASKS, TASKS));
        assert!(stats.writes <= TASKS / 20, "{stats:?}");
    });
}

#[test]
fn call_that_nobody_waits_for_is_not_sent() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client(&tollgate);
        let limit = one_a_minute("key");
        {
            let mut call = std::pin::pin!(client.limit(&limit));
            // Polled once, it waits in the queue; the client's task has had no turn yet.
            let first = std::future::poll_fn(|context| {
                std::task::Poll::Ready(call.as_mut().poll(context).is_pending())
            });
            assert!(first.await);
        }
        assert!(client.limit(&limit).await.expect("the server answers").is_allowed());
        assert_eq!((client.stats().asked, calls(&tollgate, "rl.limit")), (1, 1));
    });
}

#[test]
fn closed_client_answers_without_a_server() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client(&tollgate);
        let other = client.clone();
        assert_eq!(ask(&client).await.source, Source::Server);
        client.close().await;
        assert_eq!(
            why(other.limit(&one_a_minute("new")).await.expect("no refusal")),
            Error::Closed
        );
        assert!(TcpStream::connect(("127.0.0.1", tollgate.port())).is_ok());
    });
}
