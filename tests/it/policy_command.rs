//! RL.POLICY at a server with a store: what is written comes back by the watch.

use std::fs;
use std::path::Path;

use crate::policies::{IN_FORCE, is, tenant, wait_until};
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
}
