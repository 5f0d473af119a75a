//! Remembered denials: the round trips they save, and that no verdict differs from asking.

use tollgate::client::{Answer, Client, Limit, MemoryOptions, Options, Source};
use tollgate::limit::{Algorithm, Cost, Verdict};

use super::{
    Dice, block_on, calls, client, client_with, one_a_minute, options, patient, quota, wire,
};
use crate::resp::Connection;
use crate::server::Tollgate;

async fn ask(client: &Client, limit: &Limit<'_>) -> Answer {
    client.limit(limit).await.expect("the server answers")
}

#[test]
fn client_remembers_a_hot_denied_key_and_asks_no_more() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client(&tollgate);
        let limit = one_a_minute("hot");
        assert!(ask(&client, &limit).await.is_allowed());
        let denied = ask(&client, &limit).await;
        assert_eq!(denied.source, Source::Server);
        for _ in 0..10_000 {
            let again = ask(&client, &limit).await;
            assert_eq!(again.source, Source::Memory);
            assert_eq!((again.verdict, again.quota), (denied.verdict, denied.quota));
        }
        assert_eq!(calls(&tollgate, "rl.limit"), 2);
        let stats = client.stats();
        assert_eq!((stats.asked, stats.recalled), (2, 10_000));
        assert!(stats.recalled_ratio() > 0.999);
    });
}

#[test]
fn client_without_a_memory_asks_each_time() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client_with(&tollgate, Options { memory: None, ..options(tollgate.port()) });
        for _ in 0..5 {
            assert_eq!(ask(&client, &one_a_minute("key")).await.source, Source::Server);
        }
        assert_eq!(calls(&tollgate, "rl.limit"), 5);
    });
}

#[test]
fn client_refreshes_a_denial_in_the_background_and_sees_what_others_reset() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let memory =
            MemoryOptions { refresh_after: "900ms".parse().expect("a span"), ..Default::default() };
        let options = Options { memory: Some(memory), ..options(tollgate.port()) };
        let client = client_with(&tollgate, options);
        let limit = one_a_minute("key");
        assert!(ask(&client, &limit).await.is_allowed());
        assert!(!ask(&client, &limit).await.is_allowed());
        tollgate.advance("900ms");
        // Both are answered at once, and one of them has the server asked.
        for _ in 0..2 {
            assert_eq!(ask(&client, &limit).await.source, Source::Memory);
        }
        // It comes after the refresh.
        assert_eq!(client.peek_limit(&limit).await.map(|told| told.is_allowed()), Ok(false));
        assert_eq!(client.stats().refreshed, 1);
        tollgate.advance("899ms");
        assert_eq!(ask(&client, &limit).await.source, Source::Memory, "it was refreshed");
        assert_eq!(tollgate.connect().line("RL.RESET key"), ":1");
        tollgate.advance("1ms");
        assert_eq!(ask(&client, &limit).await.source, Source::Memory, "nobody has told it yet");
        assert_eq!(client.peek_limit(&limit).await.map(|told| told.is_allowed()), Ok(true));
        assert_eq!(client.stats().refreshed, 2);
        assert!(ask(&client, &limit).await.is_allowed(), "the refresh has told it");
    });
}

#[test]
fn client_believes_no_denial_for_longer_than_a_second() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client(&tollgate);
        let limit = one_a_minute("key");
        ask(&client, &limit).await;
        ask(&client, &limit).await;
        assert_eq!(tollgate.connect().line("RL.RESET key"), ":1");
        tollgate.advance("1s");
        assert!(ask(&client, &limit).await.is_allowed());
    });
}

#[test]
fn client_forgets_what_it_gives_back_itself() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client_with(&tollgate, patient(tollgate.port()));
        let limit = one_a_minute("key");
        for round in 0..2 {
            assert!(ask(&client, &limit).await.is_allowed(), "{round}");
            assert!(!ask(&client, &limit).await.is_allowed(), "{round}");
            assert_eq!(ask(&client, &limit).await.source, Source::Memory, "{round}");
            if round == 0 {
                assert_eq!(client.refund_key("key", Cost(5)).await, Ok(1));
            }
        }
        assert_eq!(client.reset_keys(&["key", "other"]).await, Ok(1));
        assert!(ask(&client, &limit).await.is_allowed());
        assert_eq!(client.reset_keys::<&str>(&[]).await, Ok(0));
    });
}

#[test]
fn client_asks_about_another_cost_or_quota_itself() {
    block_on(async {
        let tollgate = Tollgate::start(&[]);
        let client = client_with(&tollgate, patient(tollgate.port()));
        let limit = one_a_minute("key");
        ask(&client, &limit).await;
        ask(&client, &limit).await;
        let raised = Limit::new("key", quota(Algorithm::SlidingLog, 2, "1m"));
        assert!(ask(&client, &raised).await.is_allowed());
        let dear = ask(&client, &limit.cost(Cost(2))).await;
        assert_eq!(
            (dear.source, dear.verdict),
            (Source::Server, Verdict::Deny { retry_after: None })
        );
    });
}

/// Plays random calls at a server through a client that remembers, and at another server under
/// the same clock that is asked each time; how many answers came from memory.
async fn paired_run(algorithm: Algorithm, costs: &[u64]) -> u64 {
    const CALLS: u64 = 1_000;
    let remembered = Tollgate::start(&[]);
    let asked = Tollgate::start_under(&[], remembered.clock());
    let client = client_with(&remembered, patient(remembered.port()));
    let mut reference: Connection = asked.connect();
    let mut dice = Dice(1);
    for call in 0..CALLS {
        remembered.advance(&format!("{}ms", dice.below(40)));
        let key = format!("key:{}", dice.below(4));
        match dice.below(100) {
            0 => {
                let reset = client.reset_keys(&[&key]).await.expect("the server answers");
                assert_eq!(reference.line(&format!("RL.RESET {key}")), format!(":{reset}"));
            }
            1 => {
                let given = client.refund_key(&key, Cost(2)).await.expect("the server answers");
                assert_eq!(reference.line(&format!("RL.REFUND KEY {key} 2")), format!(":{given}"));
            }
            _ => {
                let cost = costs[dice.below(costs.len() as u64) as usize];
                let limit = Limit::new(&key, quota(algorithm, 5, "1s")).cost(Cost(cost));
                let answer = ask(&client, &limit).await;
                let name = algorithm.name();
                let words = format!("RL.LIMIT {key} 5 1s ALGORITHM {name} COST {cost}");
                let expected = reference.line(&words);
                let verdict = format!("*5 :{}", i32::from(!answer.is_allowed()));
                assert!(expected.starts_with(&verdict), "{call}: {answer:?}, not {expected}");
                // For a greater cost, only the verdict of a remembered denial is exact.
                if cost == 1 {
                    assert_eq!(wire(&answer), expected, "{call}: {algorithm:?} {answer:?}");
                }
            }
        }
    }
    client.stats().recalled
}

#[test]
fn client_that_remembers_answers_as_one_that_asks_each_time() {
    block_on(async {
        for algorithm in Algorithm::ALL {
            let recalled = paired_run(algorithm, &[1]).await;
            assert!(recalled > 250, "{algorithm:?}: only {recalled} came from memory");
            let recalled = paired_run(algorithm, &[1, 1, 2, 3]).await;
            assert!(recalled > 125, "{algorithm:?}: only {recalled} came from memory");
        }
    });
}
