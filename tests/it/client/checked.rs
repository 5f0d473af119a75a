//! Checks by policy through a client that remembers, at real servers: the round trips that are
//! saved, and that no verdict differs from asking each time.

use std::fs;

use tempfile::TempDir;
use tollgate::client::{Answer, Check, Client, Source};
use tollgate::limit::Cost;

use super::{Dice, block_on, calls, client, client_with, patient, wire};
use crate::policies::{APPLIED, is, wait_until};
use crate::resp::Connection;
use crate::server::Tollgate;

fn one_a_minute(limit: u64) -> String {
    format!("name: acme\nrules: [{{name: byip, per: [ip], limit: {limit}, window: 1m}}]\n")
}

fn folder(document: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    write(&folder, document);
    folder
}

fn write(folder: &TempDir, document: &str) {
    fs::write(folder.path().join("acme.yaml"), document).expect("it is written");
}

fn flags(folder: &TempDir) -> [&str; 2] {
    ["--policies", folder.path().to_str().expect("its name is text")]
}

async fn ask(client: &Client, check: &Check<'_>) -> Answer {
    client.check(check).await.expect("the server answers")
}

#[test]
fn client_remembers_a_hot_denied_check_and_asks_no_more() {
    block_on(async {
        let folder = folder(&one_a_minute(1));
        let tollgate = Tollgate::start(&flags(&folder));
        let client = client(&tollgate);
        let check = Check::new("acme").attribute("ip", "1");
        assert!(ask(&client, &check).await.is_allowed());
        let denied = ask(&client, &check).await;
        assert_eq!(denied.source, Source::Server);
        for _ in 0..10_000 {
            let again = ask(&client, &check).await;
            assert_eq!((again.source, again.verdict), (Source::Memory, denied.verdict));
            assert_eq!(again.quota, denied.quota);
        }
        assert_eq!(calls(&tollgate, "rl.check"), 2);
        assert!(client.stats().recalled_ratio() > 0.999);
        let other = Check::new("acme").attribute("ip", "2");
        assert!(ask(&client, &other).await.is_allowed(), "another caller has its own");
    });
}

#[test]
fn client_that_hears_of_another_policy_believes_no_denial_of_the_one_before() {
    block_on(async {
        let folder = folder(&one_a_minute(1));
        let tollgate = Tollgate::start(&flags(&folder));
        let client = client_with(&tollgate, patient(tollgate.port()));
        let [check, other] = ["1", "2"].map(|ip| Check::new("acme").attribute("ip", ip));
        for expected in [Source::Server, Source::Server, Source::Memory] {
            assert_eq!(ask(&client, &check).await.source, expected);
        }
        write(&folder, &one_a_minute(9));
        wait_until(&tollgate, |page| is(page, APPLIED, 2));
        assert_eq!(ask(&client, &check).await.source, Source::Memory, "nobody has told it yet");
        assert!(ask(&client, &other).await.is_allowed());
        let told = ask(&client, &check).await;
        assert_eq!((told.source.clone(), told.is_allowed()), (Source::Server, true), "{told:?}");
    });
}

/// Several quotas, one, and one whose denials count.
const POLICIES: &str = "\
name: acme
limits: [{limit: 30, window: 2s}]
rules:
  - {name: byip, per: [ip], limit: 4, window: 1s}
  - {name: burst, endpoint: /a, limit: 9, window: 700ms, algorithm: fixed-window}
  - {name: strict, caller: c0, limit: 3, window: 500ms, count_denied: true}
";

/// Plays random checks at a server through a client that remembers, and at another server under
/// the same clock that is asked each time. Returns how many answers came from memory.
async fn paired_run(document: &str, is_exact: bool) -> u64 {
    const CALLS: u64 = 3_000;
    let folder = folder(document);
    let remembered = Tollgate::start(&flags(&folder));
    let asked = Tollgate::start_under(&flags(&folder), remembered.clock());
    let client = client_with(&remembered, patient(remembered.port()));
    let mut reference: Connection = asked.connect();
    let mut dice = Dice(7);
    for call in 0..CALLS {
        remembered.advance(&format!("{}ms", dice.below(40)));
        let (ip, caller) = (dice.below(4).to_string(), format!("c{}", dice.below(2)));
        let endpoint = ["/a", "/b"][dice.below(2) as usize];
        let check = Check::new("acme").endpoint(endpoint).caller(&caller).attribute("ip", &ip);
        let of = format!("acme {endpoint} CALLER {caller} ATTR ip {ip}");
        match dice.below(200) {
            0 => {
                let reset = client.reset_tenant::<&str>("acme", &[]).await.expect("it answers");
                assert_eq!(reference.line("RL.RESET TENANT acme"), format!(":{reset}"));
            }
            1 => {
                let given = client.refund(&check.cost(Cost(2))).await.expect("it answers");
                let expected = reference.line(&format!("RL.REFUND TENANT {of} COST 2"));
                assert_eq!(expected, format!(":{given}"));
            }
            _ => {
                let answer = ask(&client, &check).await;
                let expected = reference.line(&format!("RL.CHECK {of}"));
                let verdict = format!("*5 :{}", i32::from(!answer.is_allowed()));
                assert!(expected.starts_with(&verdict), "{call} {of}: {answer:?}, not {expected}");
                if is_exact {
                    assert_eq!(wire(&answer), expected, "{call} {of}: {answer:?}");
                }
            }
        }
    }
    client.stats().recalled
}

#[test]
fn client_that_remembers_checks_as_one_that_asks_each_time() {
    block_on(async {
        let one = one_a_minute(5).replace("1m", "1s");
        let recalled = paired_run(&one, true).await;
        assert!(recalled > 500, "only {recalled} came from memory");
        let recalled = paired_run(POLICIES, false).await;
        assert!(recalled > 150, "only {recalled} came from memory");
    });
}
