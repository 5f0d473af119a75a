//! Policies in a real etcd: what is put there is in force soon after, whatever becomes of etcd and
//! of the way to it.

use std::path::Path;
use std::process::Command;

use etcd_client::{
    Certificate, Client, ConnectOptions, Identity, Permission, PermissionType, TlsOptions, Txn,
    TxnOp,
};

use crate::etcd::Etcd;
use crate::exposition::Page;
use crate::http::{metrics, metrics_at};
use crate::policies::{
    APPLIED, BROKEN, IN_FORCE, OUTDATED, REFUSED, REMOVED, SKIPPED, SOURCE_UP, is, tenant,
    wait_for, wait_until,
};
use crate::relay::Relay;
use crate::server::{Program, Tollgate};

const SOURCE_REVISION: &str = "tollgate_policy_source_revision";

fn failures(reason: &str) -> String {
    format!("tollgate_policy_reload_failures_total{{reason=\"{reason}\"}}")
}

fn start(etcd: &Etcd, flags: &[&str]) -> Tollgate {
    Tollgate::start(&[&["--etcd", &etcd.url()], flags].concat())
}

fn knows(page: &Page, revision: i64) -> bool {
    page.value(SOURCE_REVISION) >= revision as f64
}

/// How long that takes depends on the machine alone: what the server waits by itself, `watch` holds
/// to less than a second where it is compiled. Nothing here asks again, or waits for a next round.
#[test]
fn change_in_etcd_is_in_force_as_soon_as_its_watch_tells_it() {
    let etcd = Etcd::start();
    etcd.put("/policies/acme", &tenant("acme", 1));
    etcd.put("/elsewhere/b", &tenant("b", 1));
    let tollgate = start(&etcd, &[]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 1), "in force before clients come");
    for limit in 2..7 {
        let revision = etcd.put("/policies/acme", &tenant("acme", limit));
        let page = wait_until(&tollgate, |page| knows(page, revision));
        assert!(is(&page, APPLIED, limit), "what is known is in force: {page:?}");
    }
    etcd.put("/policies/other", &tenant("other", 1));
    wait_until(&tollgate, |page| is(page, IN_FORCE, 2));
    etcd.delete("/policies/acme");
    let page = wait_until(&tollgate, |page| is(page, IN_FORCE, 1) && is(page, REMOVED, 1));
    for reason in ["lost", "unreachable", "compacted"] {
        assert!(is(&page, &failures(reason), 0), "it came by the first watch: {page:?}");
    }
}

/// What the README shows.
#[test]
fn limit_put_into_etcd_is_asked_for_by_check_and_keeps_what_was_spent() {
    let document = include_str!("../../config/policies/payment.yaml");
    let etcd = Etcd::start();
    let tollgate = start(&etcd, &[]);
    let mut connection = tollgate.connect();
    let ask = "RL.CHECK payment /api/v1/transfer";
    assert_eq!(connection.line(ask), "*5 :0 :-1 :-1 :-1 :0", "nobody knows it yet");
    etcd.put("/policies/payment", document);
    wait_until(&tollgate, |page| is(page, IN_FORCE, 1));
    assert_eq!(connection.line(ask), "*5 :0 :1050 :1049 :-1 :1000");
    etcd.put("/policies/payment", &document.replace("limit: 1000\n", "limit: 1\n"));
    wait_until(&tollgate, |page| is(page, APPLIED, 2));
    tollgate.advance("500ms");
    let reply = connection.line(ask);
    assert!(reply.starts_with("*5 :0 :51 :49 :-1 "), "what was spent counts on: {reply}");
}

#[test]
fn bad_document_between_good_ones_stops_neither() {
    let etcd = Etcd::start();
    let tollgate = start(&etcd, &[]);
    let document = |name: &str, text: &str| TxnOp::put(format!("/policies/{name}"), text, None);
    let puts =
        [document("a", &tenant("a", 3)), document("b", BROKEN), document("c", &tenant("c", 4))];
    let txn = async |mut client: Client| client.txn(Txn::new().and_then(puts)).await;
    etcd.ask(txn).expect("it answers");
    wait_until(&tollgate, |page| is(page, IN_FORCE, 2) && is(page, REFUSED, 1));
    etcd.put("/policies/b", &tenant("b", 5));
    wait_until(&tollgate, |page| is(page, IN_FORCE, 3));
    etcd.put("/policies/b", BROKEN);
    let page = wait_until(&tollgate, |page| is(page, OUTDATED, 1));
    assert!(is(&page, IN_FORCE, 2) && is(&page, &failures("document"), 2), "{page:?}");
}

#[test]
fn etcd_that_is_killed_and_comes_back_is_read_again() {
    let mut etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    etcd.put("/policies/b", &tenant("b", 1));
    let tollgate = start(&etcd, &[]);
    etcd.kill();
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 0));
    assert!(is(&page, IN_FORCE, 2), "the last good ones hold: {page:?}");
    etcd.restart();
    etcd.put("/policies/a", &tenant("a", 2));
    etcd.delete("/policies/b");
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 1) && is(page, IN_FORCE, 1));
    wait_until(&tollgate, |page| is(page, APPLIED, 3));
    assert!(is(&page, REMOVED, 1), "{page:?}");
}

#[test]
fn start_without_etcd_begins_with_the_last_good_documents() {
    let mut etcd = Etcd::start();
    let last_good = format!("policies.last_good={}", etcd.folder().join("last").display());
    let flags = ["--set", &last_good];
    etcd.put("/policies/a", &tenant("a", 1));
    etcd.put("/policies/b", &tenant("b", 1));
    let tollgate = start(&etcd, &flags);
    etcd.put("/policies/b", BROKEN);
    wait_until(&tollgate, |page| is(page, OUTDATED, 1));
    tollgate.stop();
    etcd.kill();
    let tollgate = start(&etcd, &flags);
    let page = metrics(&tollgate);
    assert!(is(&page, IN_FORCE, 2) && is(&page, SOURCE_UP, 0), "{page:?}");
    etcd.restart();
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 1) && is(page, OUTDATED, 1));
    assert!(is(&page, IN_FORCE, 1), "its last good version outlives a restart: {page:?}");
}

#[test]
fn start_without_anything_is_a_start_all_the_same() {
    let mut etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    etcd.kill();
    let tollgate = start(&etcd, &[]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 0));
    etcd.restart();
    wait_until(&tollgate, |page| is(page, IN_FORCE, 1));
}

#[test]
fn ten_thousand_tenants_are_there_before_clients_come() {
    let etcd = Etcd::start();
    let document = |number: u32| {
        let name = format!("tenant-{number}");
        (format!("/policies/{name}"), tenant(&name, number % 1_000))
    };
    etcd.put_all(&(0..10_000).map(document).collect::<Vec<_>>());
    // A machine that is busy with other tests takes its time.
    let tollgate = start(&etcd, &["--set", "policies.etcd.start_wait=60s"]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 10_000));
    etcd.put("/policies/tenant-5000", &tenant("tenant-5000", 7));
    let page = wait_until(&tollgate, |page| page.value(APPLIED) > 10_000.0);
    assert!(is(&page, APPLIED, 10_001), "one change compiles one tenant: {page:?}");
}

#[test]
fn thousand_changes_of_one_tenant_are_taken_over_as_few() {
    const CHANGES: u32 = 1_000;
    let etcd = Etcd::start();
    let tollgate = start(&etcd, &[]);
    let storm = async |mut client: Client| {
        for limit in 0..CHANGES {
            client.put("/policies/a", tenant("a", limit), None).await?;
        }
        client.put("/policies/end", tenant("end", 1), None).await
    };
    etcd.ask(storm).expect("it answers");
    let page = wait_until(&tollgate, |page| is(page, IN_FORCE, 2));
    let (applied, skipped) = (page.value(APPLIED), page.value(SKIPPED));
    let all = f64::from(CHANGES) + 1.0;
    assert!((applied + skipped - all).abs() < f64::EPSILON, "{applied} and {skipped}");
    assert!(applied < all / 4.0, "{applied} of {all} versions were compiled");
}

#[test]
fn way_to_etcd_that_comes_and_goes_loses_no_change() {
    let etcd = Etcd::start();
    let relay = Relay::start(etcd.address());
    etcd.put("/policies/a", &tenant("a", 0));
    let tollgate = Tollgate::start(&["--etcd", &relay.url()]);
    for limit in 1..=10 {
        relay.cut();
        wait_until(&tollgate, |page| is(page, SOURCE_UP, 0));
        etcd.put("/policies/a", &tenant("a", limit));
        relay.mend();
        wait_until(&tollgate, |page| is(page, SOURCE_UP, 1));
        let revision = etcd.put("/policies/b", &tenant("b", limit));
        wait_until(&tollgate, |page| knows(page, revision));
        assert_eq!(relay.connections(), 1);
    }
    let page = wait_until(&tollgate, |page| is(page, APPLIED, 21));
    assert!(is(&page, IN_FORCE, 2), "{page:?}");
}

#[test]
fn long_silence_of_etcd_is_noticed_and_nothing_is_missed() {
    let etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    let tollgate = start(&etcd, &[]);
    etcd.signal("STOP");
    // Keep-alives find it out: ten seconds of silence, and three without an answer.
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 0));
    assert!(is(&page, IN_FORCE, 1), "{page:?}");
    etcd.signal("CONT");
    etcd.put("/policies/b", &tenant("b", 1));
    wait_until(&tollgate, |page| is(page, SOURCE_UP, 1) && is(page, IN_FORCE, 2));
}

#[test]
fn changes_that_were_compacted_before_they_were_seen_are_in_force() {
    let etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    let program = Program::start(&["--etcd", &etcd.url()]);
    let port = program.http_port();
    let look = || metrics_at(port);
    // More than the buffers between the two hold, so that the rest waits in etcd.
    program.send("STOP");
    let padding = "#".repeat(500_000);
    for limit in 1..100 {
        etcd.put("/policies/large", &(tenant("large", limit) + &padding));
    }
    etcd.delete("/policies/a");
    let revision = etcd.put("/policies/b", &tenant("b", 1));
    etcd.compact(revision);
    program.send("CONT");
    let page = wait_for(look, |page| knows(page, revision) && is(page, IN_FORCE, 2));
    assert!(is(&page, REMOVED, 1), "{page:?}");
    let revision = etcd.put("/policies/b", &tenant("b", 2));
    wait_for(look, |page| knows(page, revision));
}

#[test]
fn member_that_is_away_is_passed_over_for_the_next() {
    let etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    let endpoints = format!("http://127.0.0.1:1,{}", etcd.url());
    let tollgate = Tollgate::start(&["--etcd", &endpoints]);
    let page = metrics(&tollgate);
    assert!(is(&page, IN_FORCE, 1) && is(&page, SOURCE_UP, 1), "{page:?}");
    assert!(is(&page, &failures("unreachable"), 0), "{page:?}");
}

#[test]
fn etcd_with_passwords_lets_in_who_has_one() {
    let etcd = Etcd::start();
    etcd.put("/policies/a", &tenant("a", 1));
    let enable = async |mut client: Client| {
        client.user_add("root", "root", None).await?;
        client.user_grant_role("root", "root").await?;
        let policies = Permission::new(PermissionType::Read, "/policies/").with_prefix();
        client.role_add("reader").await?;
        client.role_grant_permission("reader", policies).await?;
        client.user_add("tollgate", "secret", None).await?;
        client.user_grant_role("tollgate", "reader").await?;
        client.auth_enable().await
    };
    etcd.ask(enable).expect("it answers");
    let with = |password: &str| {
        let password = format!("policies.etcd.password={password}");
        start(&etcd, &["--set", "policies.etcd.user=tollgate", "--set", &password])
    };
    assert!(is(&metrics(&with("secret")), IN_FORCE, 1));
    for tollgate in [with("wrong"), start(&etcd, &[])] {
        let page = metrics(&tollgate);
        assert!(is(&page, IN_FORCE, 0) && is(&page, SOURCE_UP, 0), "{page:?}");
        assert!(page.value(&failures("denied")) >= 1.0, "{page:?}");
    }
}

/// Makes an authority, and of it a certificate of this machine for both ends.
fn certify(folder: &Path) {
    let extensions = "subjectAltName=IP:127.0.0.1,DNS:etcd.test\n\
                      extendedKeyUsage=serverAuth,clientAuth\n";
    std::fs::write(folder.join("extensions"), extensions).expect("it is written");
    let steps = [
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
         -subj /CN=authority -keyout ca-key.pem -out ca.pem",
        "req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
         -subj /CN=test -keyout key.pem -out request.pem",
        "x509 -req -in request.pem -CA ca.pem -CAkey ca-key.pem -CAcreateserial -days 2 \
         -extfile extensions -out cert.pem",
    ];
    for step in steps {
        let made = Command::new("openssl")
            .args(step.split_whitespace())
            .current_dir(folder)
            .output()
            .expect("openssl is installed: scripts/needs.sh");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
}

#[test]
fn encrypted_etcd_is_read_by_who_is_certified() {
    let etcd = Etcd::start_with(|folder| {
        certify(folder);
        let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| folder.join(name));
        let read = |path| std::fs::read(path).expect("it was made");
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(read(&ca)))
            .identity(Identity::from_pem(read(&cert), read(&key)));
        let [ca, cert, key] = [ca, cert, key].map(|path| path.display().to_string());
        let flags = ["--cert-file", &cert, "--key-file", &key, "--trusted-ca-file", &ca];
        let flags = flags.map(str::to_owned).into_iter().chain(["--client-cert-auth".to_owned()]);
        (flags.collect(), ConnectOptions::new().with_tls(tls))
    });
    etcd.put("/policies/a", &tenant("a", 1));
    let [ca, cert, key] = ["ca.pem", "cert.pem", "key.pem"].map(|name| etcd.folder().join(name));
    let ca = format!("policies.etcd.tls.ca={}", ca.display());
    let certificate = format!("policies.etcd.tls.certificate={}", cert.display());
    let key = format!("policies.etcd.tls.key={}", key.display());
    let name = "policies.etcd.tls.server_name=etcd.test";
    let tollgate = start(&etcd, &["--set", &ca, "--set", &certificate, "--set", &key]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 1));
    let all = ["--set", &ca, "--set", &certificate, "--set", &key, "--set", name];
    assert!(is(&metrics(&start(&etcd, &all)), IN_FORCE, 1));
    let stranger = start(&etcd, &["--set", &ca]);
    assert!(is(&metrics(&stranger), SOURCE_UP, 0));
    let nowhere = ["--set", "policies.etcd.tls.ca=/nowhere/ca.pem"];
    assert!(is(&metrics(&start(&etcd, &nowhere)), SOURCE_UP, 0));
}
