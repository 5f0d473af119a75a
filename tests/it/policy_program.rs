//! `tollgate policy` as a person uses it: on files, and against a running server.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use tempfile::TempDir;

use tollgate::time::{Clock, Duration};

use crate::policies::{APPLIED, IN_FORCE, OUTDATED, is, tenant, wait_until};
use crate::server::{Program, START, Tollgate, command};

const GOOD: &str =
    "# who pays\nname: acme\nrules:\n  - endpoint: /a\n    limit: 3\n    window: 1s\n";
const MISSPELT: &str = "name: acme\nrules:\n  - endpoint: /a\n    limti: 3\n";

/// The exit code, and what was printed and complained of.
fn run(words: &[&str]) -> (Option<i32>, String, String) {
    let output = command(&[&["policy"], words].concat()).output().expect("the program is built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path = folder.path().join(name);
    fs::write(&path, text).expect("it is written");
    path.display().to_string()
}

fn serve(path: &Path) -> (Tollgate, String) {
    let tollgate = Tollgate::start(&["--policies", path.to_str().expect("its name is text")]);
    let port = tollgate.port().to_string();
    (tollgate, port)
}

#[test]
fn lint_tells_the_place_and_the_nearest_word_by_exit_code_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = file(&folder, "good.yaml", GOOD);
    let (code, told, _) = run(&["lint", &good]);
    assert_eq!((code, told.trim_end()), (Some(0), "1 documents, 1 tenants, 0 warnings"));
    let bad = file(&folder, "bad.yaml", MISSPELT);
    let (code, _, complaint) = run(&["lint", &bad]);
    let expected =
        format!("error: {bad}:4:5: rules[0]: unknown field `limti`, the nearest is `limit`\n");
    assert_eq!((code, complaint), (Some(2), expected));
    assert_eq!(run(&["lint", "/nowhere"]).0, Some(1));
    assert_eq!(run(&["lint"]).0, Some(2));
}

#[test]
fn lint_warns_of_what_is_doubtful_and_fails_only_where_that_is_wished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "acme.yaml", &format!("{GOOD}    cost: 9\n"));
    let (code, _, warning) = run(&["lint", &path]);
    assert_eq!(code, Some(0), "{warning}");
    assert!(warning.starts_with(&format!("warning: {path}:4:5: acme: endpoint=/a: ")), "{warning}");
    assert_eq!(run(&["lint", "--strict", &path]).0, Some(1));
}

#[test]
fn lint_tells_a_program_what_it_tells_a_person() {
    let folder = tempfile::tempdir().expect("a folder");
    let doubtful = file(&folder, "acme.yaml", &format!("{GOOD}    cost: 9\n"));
    let (code, told, complaint) = run(&["lint", "--json", &doubtful]);
    let json: serde_json::Value = serde_json::from_str(&told).expect("it prints JSON alone");
    assert_eq!((code, complaint.as_str()), (Some(0), ""));
    assert_eq!((&json["documents"], &json["tenants"]), (&1.into(), &1.into()));
    let warning = &json["warnings"][0];
    assert_eq!((&warning["line"], &warning["tenant"]), (&4.into(), &"acme".into()), "{json}");
    assert_eq!(run(&["lint", "--json", "--strict", &doubtful]).0, Some(1));
    let bad = file(&folder, "bad.yaml", MISSPELT);
    let (code, told, _) = run(&["lint", "--json", &bad]);
    let json: serde_json::Value = serde_json::from_str(&told).expect("it prints JSON alone");
    let expected = serde_json::json!([{
        "source": bad, "line": 4, "column": 5,
        "text": "rules[0]: unknown field `limti`, the nearest is `limit`",
    }]);
    assert_eq!((code, &json["errors"]), (Some(2), &expected));
}

#[test]
fn tenant_in_two_files_is_refused_by_lint() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a.yaml", "b.yaml"] {
        file(&folder, name, GOOD);
    }
    let (code, _, complaint) = run(&["lint", folder.path().to_str().expect("text")]);
    assert_eq!(code, Some(2));
    assert!(complaint.contains("tenant `acme` is in "), "{complaint}");
}

#[test]
fn diff_of_files_tells_what_changed_without_colour_in_a_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let before = file(&folder, "before.yaml", GOOD);
    let after = file(&folder, "after.yaml", &GOOD.replace("limit: 3", "limit: 7"));
    let (code, told, _) = run(&["diff", &before, &after]);
    let expected = "~ acme: endpoint=/a: limits: 3 per 1s -> 7 per 1s\n";
    assert_eq!((code, told.as_str()), (Some(0), expected));
    let (code, told, _) = run(&["diff", "--json", &before, &after]);
    let json: serde_json::Value = serde_json::from_str(&told).expect("it prints JSON alone");
    let expected = serde_json::json!([{
        "tenant": "acme", "rule": "endpoint=/a", "what": "changed",
        "field": "limits", "before": "3 per 1s", "after": "7 per 1s",
    }]);
    assert_eq!((code, json), (Some(0), expected));
}

#[test]
fn applied_documents_are_in_force_and_can_be_got_and_explained() {
    let (store, mine) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    let (tollgate, port) = serve(store.path());
    let path = file(&mine, "acme.yaml", GOOD);
    let (code, told, _) = run(&["apply", &path, "--dry-run", "--port", &port]);
    assert_eq!((code, told.as_str()), (Some(0), "+ acme: added\n"));
    assert_eq!(fs::read_dir(store.path()).expect("a folder").count(), 0);
    let (code, told, complaint) = run(&["apply", &path, "--port", &port]);
    let expected = "+ acme: added\n1 documents written, 0 as they were\n";
    assert_eq!((code, told.as_str()), (Some(0), expected), "{complaint}");
    wait_until(&tollgate, |page| is(page, APPLIED, 1));
    let again = run(&["apply", &path, "--port", &port]).1;
    assert_eq!(again, "0 documents written, 1 as they were\n");
    assert_eq!(run(&["get", "acme", "--port", &port]).1, GOOD);
    assert_eq!(run(&["diff", &path, "--port", &port]).1, "");
    let (code, told, complaint) = run(&["explain", "acme", "/a", "--port", &port]);
    assert_eq!(code, Some(0), "{complaint}");
    assert!(told.contains("endpoint=/a") && told.contains("3 per 1s"), "{told}");
    let json = run(&["explain", "acme", "/a", "--json", "--port", &port]).1;
    let json: serde_json::Value = serde_json::from_str(&json).expect("it prints JSON alone");
    assert_eq!(json[0]["used"], 0);
    let (code, _, complaint) = run(&["get", "amce", "--port", &port]);
    assert_eq!(code, Some(1));
    assert!(complaint.contains("no tenant `amce`, the nearest is `acme`"), "{complaint}");
}

#[test]
fn bad_document_is_not_applied() {
    let (store, mine) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    let (_tollgate, port) = serve(store.path());
    file(&mine, "acme.yaml", MISSPELT);
    file(&mine, "good.yaml", &tenant("good", 1));
    let path = mine.path().to_str().expect("text");
    assert_eq!(run(&["apply", path, "--port", &port]).0, Some(2));
    assert_eq!(fs::read_dir(store.path()).expect("a folder").count(), 0);
}

#[test]
fn pruning_removes_what_the_documents_do_not_name_once_it_is_wished_twice() {
    let (store, mine) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    for name in ["acme", "old"] {
        file(&store, &format!("{name}.yaml"), &tenant(name, 1));
    }
    let list = format!("tenants:\n{}{}", row("x"), row("y"));
    file(&store, "both.yaml", &list);
    let (tollgate, port) = serve(store.path());
    file(&mine, "acme.yaml", &tenant("acme", 2));
    let path = mine.path().to_str().expect("text");
    let apply = |words: &[&str]| run(&[&["apply", path, "--port", &port], words].concat());
    let shown = "~ acme: endpoint=/a: limits: 1 per 1s -> 2 per 1s\n\
                 - old: removed\n- x: removed\n- y: removed\n";
    assert_eq!(apply(&["--prune", "--dry-run"]), (Some(0), shown.into(), String::new()));
    let (code, told, complaint) = apply(&["--prune"]);
    assert_eq!((code, told.as_str()), (Some(2), shown), "nobody is there to say yes");
    assert!(complaint.contains("3 tenants would be removed"), "{complaint}");
    assert_eq!(fs::read_dir(store.path()).expect("a folder").count(), 3, "nothing has changed");
    let (code, told, complaint) = apply(&["--prune", "--yes"]);
    let done = format!("{shown}1 documents written, 0 as they were, 2 removed\n");
    assert_eq!((code, told), (Some(0), done), "{complaint}");
    assert_eq!(fs::read_dir(store.path()).expect("a folder").count(), 1);
    wait_until(&tollgate, |page| is(page, IN_FORCE, 1));
    assert_eq!(apply(&["--yes"]).0, Some(2), "yes to what?");
}

fn row(name: &str) -> String {
    format!("  - {{name: {name}, rules: [{{endpoint: /a, limit: 1, window: 1s}}]}}\n")
}

#[test]
fn document_of_which_a_tenant_stays_is_not_pruned_in_part() {
    let (store, mine) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("one"));
    file(&store, "both.yaml", &format!("tenants:\n{}{}", row("stays"), row("goes")));
    let (_tollgate, port) = serve(store.path());
    let path = file(&mine, "stays.yaml", &tenant("stays", 1));
    let (code, _, complaint) = run(&["apply", &path, "--prune", "--yes", "--port", &port]);
    assert_eq!(code, Some(1));
    let told = "the server has `goes` in one document with `stays`, which would stay: edit";
    assert!(complaint.contains(told), "{complaint}");
}

/// How far the clock of the program is ahead of that of a server in a test.
fn ahead(span: Duration) -> String {
    (Clock::system().now() + span).since(START).to_string()
}

#[test]
fn override_keeps_what_was_spent_and_ends_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    file(&folder, "acme.yaml", &GOOD.replace("1s", "9000d"));
    let (tollgate, port) = serve(folder.path());
    let mut connection = tollgate.connect();
    let mut ask = || {
        let reply = connection.line("RL.CHECK acme /a");
        reply.split(' ').skip(1).take(3).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([ask(), ask()], [":0 :3 :2", ":0 :3 :1"]);
    let words = ["override", "acme", "/a", "9", "9000d", "--for", "30m", "--port", &port];
    let (code, _, complaint) = run(&words);
    assert_eq!(code, Some(0), "{complaint}");
    wait_until(&tollgate, |page| is(page, APPLIED, 2));
    assert_eq!([ask(), ask()], [":0 :9 :6", ":0 :9 :5"], "two were spent before");
    // The program says when it ends by its own clock, which is the system's.
    tollgate.advance(&ahead(Duration::from_secs(29 * 60)));
    assert_eq!(ask(), ":0 :9 :4");
    tollgate.advance("2m");
    assert_eq!(ask(), ":1 :3 :0", "the rule has ended, and five of three are spent");
}

#[test]
fn overrides_at_one_time_lose_nothing_of_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "acme.yaml", GOOD);
    let (_tollgate, port) = serve(folder.path());
    let endpoints = ["/b", "/c", "/d", "/e"];
    let running = endpoints.map(|endpoint| {
        let words = ["policy", "override", "acme", endpoint, "9", "1s", "--for", "30m"];
        let mut command = command(&[&words[..], &["--port", &port]].concat());
        command.stdout(Stdio::null()).spawn().expect("the program is built")
    });
    for mut child in running {
        assert!(child.wait().expect("it ends").success());
    }
    let text = fs::read_to_string(&path).expect("it is there");
    for endpoint in endpoints {
        assert!(text.contains(&format!("\"endpoint\":\"{endpoint}\"")), "{endpoint}: {text}");
    }
}

#[test]
fn override_of_a_document_that_is_refused_says_so_and_writes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "acme.yaml", GOOD);
    let (tollgate, port) = serve(folder.path());
    fs::write(&path, MISSPELT).expect("it is written");
    wait_until(&tollgate, |page| is(page, OUTDATED, 1));
    let words = ["override", "acme", "/a", "9", "1s", "--for", "30m", "--port", &port];
    let (code, _, complaint) = run(&words);
    assert_eq!(code, Some(1));
    assert!(complaint.contains("is not the one in force, 10 times over"), "{complaint}");
    assert_eq!(fs::read_to_string(&path).expect("it is there"), MISSPELT);
}

#[test]
fn override_holds_until_its_end_and_keeps_the_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file(&folder, "acme.yaml", GOOD);
    // Its clock is the system's, as that of who writes the end of the rule.
    let program = Program::start(&["--policies", &path]);
    let port = program.port.to_string();
    let mut connection = program.connect();
    assert_eq!(connection.line("RL.CHECK acme /a PEEK"), "*5 :0 :3 :2 :-1 :1000");
    let words = ["override", "acme", "/a", "9", "1s", "--for", "30m"];
    let one_file = run(&[&words[..], &["--port", &port]].concat());
    assert_eq!(one_file.0, Some(1), "{one_file:?}");
    assert!(one_file.2.contains("policies come from one file, edit that"), "{one_file:?}");
    let (code, told, complaint) = run(&[&words[..], &["--file", &path]].concat());
    assert_eq!((code, told.as_str()), (Some(0), "acme /a: 9 per 1s for 30m\n"), "{complaint}");
    let text = fs::read_to_string(&path).expect("it is there");
    assert!(
        text.starts_with("# who pays\nname: acme\nrules:\n  - {\"endpoint\":\"/a\","),
        "{text}"
    );
    let mut holds = |_| connection.line("RL.CHECK acme /a PEEK") == "*5 :0 :9 :8 :-1 :1000";
    assert!((0..1_000_000).any(&mut holds));
    let wrong = run(&["override", "acme", "/a", "lots", "1s", "--for", "30m", "--file", &path]);
    assert_eq!(wrong.0, Some(2), "{wrong:?}");
}
