//! RL.POLICY at a server with a store: what is written comes back by the watch.

use std::fs;
use std::path::Path;

use crate::policies::{APPLIED, IN_FORCE, is, tenant, wait_until};
use crate::resp::Connection;
use crate::server::Tollgate;

fn start(path: &Path) -> Tollgate {
    Tollgate::start(&["--policies", path.to_str().expect("its name is text")])
}

fn policy(connection: &mut Connection, words: &[&str]) -> String {
    let words = [&["RL.POLICY"], words].concat();
    let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
    connection.ask(&words).join(" ")
}

#[test]
fn written_policy_comes_back_by_the_watch_and_is_removed_likewise() {
    let folder = tempfile::tempdir().expect("a folder");
    let tollgate = start(folder.path());
    let mut connection = tollgate.connect();
    let text = tenant("acme", 3);
    assert_eq!(policy(&mut connection, &["SET", "acme", &text]), "+OK");
    let file = folder.path().join("acme.yaml");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
    wait_until(&tollgate, |page| is(page, IN_FORCE, 1));
    assert_eq!(policy(&mut connection, &["LIST"]), "*1 \"acme\"");
    assert_eq!(policy(&mut connection, &["GET", "acme"]), format!("{text:?}"));
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :3 :2 :-1 :1000");
    assert!(policy(&mut connection, &["STATUS"]).contains("\"error\" $-1 \"line\" :0"));
    assert_eq!(policy(&mut connection, &["DEL", "acme"]), "+OK");
    assert!(!file.exists());
    wait_until(&tollgate, |page| is(page, IN_FORCE, 0));
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :-1 :-1 :-1 :0");
}

/// Writes and removes a policy at a server with an operators' password. `stored` tells what the
/// store holds of it.
fn written_and_removed_by_an_operator(tollgate: &Tollgate, stored: impl Fn() -> Option<String>) {
    let mut connection = tollgate.connect();
    let (first, second) = (tenant("acme", 3), tenant("acme", 5));
    let refused = "-NOPERM User default has no permissions to run the 'rl.policy|set' command";
    assert_eq!(policy(&mut connection, &["SET", "acme", &first]), refused);
    assert_eq!(stored(), None);
    let mut operator = tollgate.connect();
    assert_eq!(operator.line("AUTH operator lift"), "+OK");
    assert_eq!(policy(&mut operator, &["SET", "acme", &first]), "+OK");
    assert_eq!(stored(), Some(first.clone()));
    wait_until(tollgate, |page| is(page, APPLIED, 1));
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :3 :2 :-1 :1000");
    let changed = "-CHANGED the store holds another document by now";
    assert_eq!(policy(&mut operator, &["SET", "acme", &second, "IFEQ", &second[1..]]), changed);
    assert_eq!(policy(&mut operator, &["SET", "acme", &second, "IFEQ", &first]), "+OK");
    assert_eq!(policy(&mut operator, &["SET", "acme", &first, "IFEQ", &first]), changed);
    wait_until(tollgate, |page| is(page, APPLIED, 2));
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :5 :3 :-1 :1000", "one was spent");
    let refused = "-NOPERM User default has no permissions to run the 'rl.policy|del' command";
    assert_eq!(policy(&mut connection, &["DEL", "acme"]), refused);
    assert_eq!(stored(), Some(second));
    assert_eq!(policy(&mut operator, &["DEL", "acme"]), "+OK");
    assert_eq!(stored(), None);
    wait_until(tollgate, |page| is(page, IN_FORCE, 0));
    assert_eq!(connection.line("RL.CHECK acme /a"), "*5 :0 :-1 :-1 :-1 :0");
}

const OPERATED: [&str; 2] = ["--set", "server.operator_password=lift"];

#[test]
fn operator_alone_writes_policies_to_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_str().expect("its name is text");
    let tollgate = Tollgate::start(&[&OPERATED[..], &["--policies", path]].concat());
    written_and_removed_by_an_operator(&tollgate, || {
        fs::read_to_string(folder.path().join("acme.yaml")).ok()
    });
}

#[cfg(feature = "etcd")]
#[test]
fn operator_alone_writes_policies_to_etcd() {
    let etcd = crate::etcd::Etcd::start();
    let tollgate = Tollgate::start(&[&OPERATED[..], &["--etcd", &etcd.url()]].concat());
    written_and_removed_by_an_operator(&tollgate, || etcd.get("/policies/acme"));
}

#[test]
fn refused_document_is_not_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let tollgate = start(folder.path());
    let told = policy(&mut tollgate.connect(), &["SET", "acme", "rules: {}"]);
    assert!(told.starts_with("-ERR 1:8: "), "{told}");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn document_of_several_tenants_is_written_as_a_whole_or_not_at_all() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = |limit| {
        let rules = format!("rules: [{{endpoint: /a, limit: {limit}, window: 1s}}]");
        format!("tenants:\n  - {{name: a, {rules}}}\n  - {{name: b, {rules}}}\n")
    };
    let file = folder.path().join("both.yaml");
    fs::write(&file, list(1)).expect("it is written");
    let tollgate = start(folder.path());
    let mut connection = tollgate.connect();
    for words in [&["SET", "a", &tenant("a", 2)][..], &["DEL", "a"]] {
        let told = policy(&mut connection, words);
        assert!(told.ends_with("both.yaml` holds the tenant `b`, too: write it as a whole"));
    }
    let told = policy(&mut connection, &["SET", "c", &list(2).replace("name: a", "name: c")]);
    assert!(told.starts_with("-ERR the tenant `b` is in `"), "{told}");
    assert_eq!(policy(&mut connection, &["SET", "a", &list(2)]), "+OK");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), list(2));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);
    fs::write(folder.path().join("c.yaml"), tenant("c", 1)).expect("it is written");
    wait_until(&tollgate, |page| is(page, IN_FORCE, 2));
    let told = policy(&mut connection, &["DEL", "a", "b", "c"]);
    assert!(told.starts_with("-ERR they are of two documents: `"), "{told}");
    assert_eq!(policy(&mut connection, &["DEL", "a", "d"]), "-ERR there is no tenant `d`");
    assert_eq!(policy(&mut connection, &["DEL", "b", "a"]), "+OK");
    assert!(!file.exists());
}
