//! `tollgate policy` as a person uses it: on files, and against a running server.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::policies::{APPLIED, is, tenant, wait_until};
use crate::server::{Program, Tollgate, command};

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
