//! Policies in files: what is written there is in force soon after, and what is wrong with it is
//! seen from outside.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use tollgate::time::{Clock, Duration};

use crate::exposition::Page;
use crate::http::metrics;
use crate::server::{Tollgate, command};

/// Nothing that works takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const IN_FORCE: &str = "tollgate_policy_documents{state=\"in_force\"}";
pub(crate) const OUTDATED: &str = "tollgate_policy_documents{state=\"outdated\"}";
pub(crate) const REFUSED: &str = "tollgate_policy_documents{state=\"refused\"}";
pub(crate) const APPLIED: &str = "tollgate_policy_changes_total{outcome=\"applied\"}";
pub(crate) const REMOVED: &str = "tollgate_policy_changes_total{outcome=\"removed\"}";
pub(crate) const SKIPPED: &str = "tollgate_policy_changes_total{outcome=\"skipped\"}";
pub(crate) const SOURCE_UP: &str = "tollgate_policy_source_up";

/// Looks at the metrics until they show what is waited for.
pub(crate) fn wait_until(tollgate: &Tollgate, shown: impl Fn(&Page) -> bool) -> Page {
    wait_for(|| metrics(tollgate), shown)
}

pub(crate) fn wait_for(look: impl Fn() -> Page, shown: impl Fn(&Page) -> bool) -> Page {
    let clock = Clock::system();
    let began = clock.now();
    loop {
        let page = look();
        if shown(&page) {
            // A page is no moment: some of it was read before what was waited for.
            return look();
        }
        assert!(clock.now().since(began) < PATIENCE, "it never comes: {page:#?}");
    }
}

/// Whether a series is at a number.
pub(crate) fn is(page: &Page, series: &str, value: u32) -> bool {
    (page.value(series) - f64::from(value)).abs() < f64::EPSILON
}

/// A document of one tenant.
pub(crate) fn tenant(name: &str, limit: u32) -> String {
    format!("name: {name}\nrules:\n  - endpoint: /a\n    limit: {limit}\n    window: 1s\n")
}

/// One that ends in the middle of a word.
pub(crate) const BROKEN: &str = "name: [";

fn start(path: &Path, flags: &[&str]) -> Tollgate {
    let path = path.to_str().expect("its name is text");
    Tollgate::start(&[&["--policies", path], flags].concat())
}

#[test]
fn file_may_be_renamed_over_written_in_place_removed_and_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (path, beside) = (folder.path().join("limits.yaml"), folder.path().join("limits.tmp"));
    fs::write(&path, tenant("acme", 100)).expect("it is written");
    let tollgate = start(&path, &[]);
    assert!(is(&metrics(&tollgate), APPLIED, 1), "in force before clients come");
    fs::write(&beside, tenant("acme", 7)).expect("it is written");
    fs::rename(&beside, &path).expect("it is renamed");
    wait_until(&tollgate, |page| is(page, APPLIED, 2));
    fs::write(&path, tenant("acme", 9)).expect("it is written");
    wait_until(&tollgate, |page| is(page, APPLIED, 3));
    fs::remove_file(&path).expect("it is there");
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 0));
    assert!(is(&page, IN_FORCE, 1) && is(&page, REMOVED, 0), "{page:?}");
    fs::write(&path, tenant("acme", 11)).expect("it is written");
    let page = wait_until(&tollgate, |page| is(page, APPLIED, 4));
    assert!(is(&page, SOURCE_UP, 1) && is(&page, IN_FORCE, 1), "{page:?}");
}

#[test]
fn file_that_leaves_its_folder_takes_its_tenants_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str| {
        fs::write(folder.path().join(format!("{name}.yaml")), tenant(name, 1)).expect("written");
    };
    write("a");
    write("b");
    let tollgate = start(folder.path(), &[]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 2));
    fs::create_dir(folder.path().join("team")).expect("a folder");
    write("team/c");
    wait_until(&tollgate, |page| is(page, IN_FORCE, 3));
    fs::remove_file(folder.path().join("a.yaml")).expect("it is there");
    wait_until(&tollgate, |page| is(page, IN_FORCE, 2) && is(page, REMOVED, 1));
}

#[test]
fn bad_document_leaves_its_last_good_version_and_the_others_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b, c] = ["a", "b", "c"].map(|name| folder.path().join(format!("{name}.yaml")));
    fs::write(&a, tenant("a", 1)).expect("it is written");
    fs::write(&b, tenant("b", 1)).expect("it is written");
    let tollgate = start(folder.path(), &[]);
    fs::write(&b, BROKEN).expect("it is written");
    fs::write(&c, BROKEN).expect("it is written");
    fs::write(&a, tenant("a", 2)).expect("it is written");
    wait_until(&tollgate, |page| {
        is(page, IN_FORCE, 1) && is(page, OUTDATED, 1) && is(page, REFUSED, 1)
    });
    fs::write(&b, tenant("b", 3)).expect("it is written");
    fs::remove_file(&c).expect("it is there");
    wait_until(&tollgate, |page| {
        is(page, IN_FORCE, 2) && is(page, OUTDATED, 0) && is(page, REFUSED, 0)
    });
}

#[test]
fn mounted_folder_changes_when_its_link_is_swapped() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    for (version, limit) in [("..v1", 1), ("..v2", 2)] {
        fs::create_dir(path.join(version)).expect("a folder");
        for name in ["a", "b"] {
            let file = path.join(version).join(format!("{name}.yaml"));
            fs::write(file, tenant(name, limit)).expect("it is written");
        }
    }
    symlink("..v1", path.join("..data")).expect("a link");
    for name in ["a.yaml", "b.yaml"] {
        symlink(format!("..data/{name}"), path.join(name)).expect("a link");
    }
    let (whole, one) = (start(path, &[]), start(&path.join("a.yaml"), &[]));
    assert!(is(&metrics(&whole), IN_FORCE, 2) && is(&metrics(&one), IN_FORCE, 1));
    symlink("..v2", path.join("..data_tmp")).expect("a link");
    fs::rename(path.join("..data_tmp"), path.join("..data")).expect("it is renamed");
    fs::remove_dir_all(path.join("..v1")).expect("it is there");
    wait_until(&whole, |page| is(page, APPLIED, 4) && is(page, IN_FORCE, 2));
    wait_until(&one, |page| is(page, APPLIED, 2) && is(page, IN_FORCE, 1));
}

#[test]
fn folder_that_is_replaced_by_another_is_watched_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policies");
    let fill = |at: &Path, limit| {
        fs::create_dir(at).expect("a folder");
        fs::write(at.join("a.yaml"), tenant("a", limit)).expect("it is written");
    };
    fill(&path, 1);
    let tollgate = start(&path, &[]);
    fill(&folder.path().join("next"), 2);
    fs::rename(&path, folder.path().join("before")).expect("it is renamed");
    fs::rename(folder.path().join("next"), &path).expect("it is renamed");
    wait_until(&tollgate, |page| is(page, APPLIED, 2) && is(page, SOURCE_UP, 1));
    fs::write(path.join("a.yaml"), tenant("a", 3)).expect("it is written");
    wait_until(&tollgate, |page| is(page, APPLIED, 3));
}

#[test]
fn touching_a_file_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let [a, b] = ["a", "b"].map(|name| folder.path().join(format!("{name}.yaml")));
    fs::write(&a, tenant("a", 1)).expect("it is written");
    let tollgate = start(folder.path(), &[]);
    fs::write(&a, tenant("a", 1)).expect("it is written");
    fs::write(&b, tenant("b", 1)).expect("it is written");
    let page = wait_until(&tollgate, |page| is(page, IN_FORCE, 2));
    assert!(is(&page, APPLIED, 2), "{page:?}");
}

#[test]
fn path_that_is_not_there_is_told_in_a_sentence() {
    let output = command(&["--port", "0", "--policies", "/nowhere/policies"]).output();
    let output = output.expect("the program is built");
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("read /nowhere/policies: No such file or directory"), "{told}");
    assert!(told.contains("name a folder or file of policies that is there"), "{told}");
}

#[test]
fn start_without_its_path_begins_with_the_last_good_documents() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policies");
    fs::create_dir(&path).expect("a folder");
    fs::write(path.join("a.yaml"), tenant("a", 1)).expect("it is written");
    fs::write(path.join("b.yaml"), BROKEN).expect("it is written");
    let last_good = format!("policies.last_good={}", folder.path().join("last").display());
    let flags = ["--set", &last_good];
    start(&path, &flags).stop();
    fs::rename(&path, folder.path().join("away")).expect("it is renamed");
    let tollgate = start(&path, &flags);
    let page = metrics(&tollgate);
    assert!(is(&page, IN_FORCE, 1) && is(&page, SOURCE_UP, 0), "{page:?}");
    fs::rename(folder.path().join("away"), &path).expect("it is renamed");
    let page = wait_until(&tollgate, |page| is(page, SOURCE_UP, 1) && is(page, REFUSED, 1));
    assert!(is(&page, IN_FORCE, 1) && is(&page, APPLIED, 1), "nothing was new: {page:?}");
}

/// What RL.POLICY STATUS says of the one document that is refused.
fn complaint(tollgate: &Tollgate) -> String {
    let told = tollgate.connect().ask(&[b"RL.POLICY", b"STATUS"]);
    let errors = told.iter().zip(&told[1..]).filter(|(name, _)| *name == "\"error\"");
    let mut errors = errors.map(|(_, error)| error).filter(|error| *error != "$-1");
    let error = errors.next().expect("one is refused").clone();
    assert_eq!(errors.next(), None);
    error
}

#[test]
fn rules_that_tie_are_refused_once_and_the_version_before_goes_on_counting() {
    let folder = tempfile::tempdir().expect("a folder");
    let [one, two] = ["one", "two"].map(|name| folder.path().join(format!("{name}.yaml")));
    let rules = |limits: &[u32]| {
        let rule = |limit| format!("  - {{match: {{kind: foo}}, limit: {limit}, window: 1m}}\n");
        limits.iter().map(rule).collect::<String>()
    };
    fs::write(&one, format!("name: one\nrules:\n{}", rules(&[3]))).expect("it is written");
    fs::write(&two, format!("name: two\nrules:\n{}", rules(&[3]))).expect("it is written");
    let tollgate = start(folder.path(), &[]);
    let mut connection = tollgate.connect();
    for tenant in ["one", "two"] {
        let reply = connection.line(&format!("RL.CHECK {tenant} - ATTR kind foo"));
        assert_eq!(reply, "*5 :0 :3 :2 :-1 :60000");
    }
    fs::write(&one, format!("name: one\nrules:\n{}", rules(&[5, 50]))).expect("it is written");
    wait_until(&tollgate, |page| is(page, OUTDATED, 1));
    let told = complaint(&tollgate);
    for part in ["rule `kind=foo` and rule `kind=foo` match equally", "stands at line 3"] {
        assert!(told.contains(part), "{told}");
    }
    for tenant in ["one", "two"] {
        let reply = connection.line(&format!("RL.CHECK {tenant} - ATTR kind foo"));
        assert_eq!(reply, "*5 :0 :3 :1 :-1 :60000");
    }
    // It is the same complaint, however often the folder is read.
    let failures = "tollgate_policy_reload_failures_total{reason=\"document\"}";
    fs::write(&two, tenant("two", 9)).expect("it is written");
    let page = wait_until(&tollgate, |page| is(page, APPLIED, 3));
    assert!(is(&page, failures, 1), "{page:?}");
}

#[test]
fn tenant_in_two_files_is_told_with_both_and_the_others_work() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, owner) in [("a", "same"), ("b", "same"), ("c", "other")] {
        fs::write(folder.path().join(format!("{name}.yaml")), tenant(owner, 3)).expect("written");
    }
    let tollgate = start(folder.path(), &[]);
    assert!(is(&metrics(&tollgate), IN_FORCE, 2) && is(&metrics(&tollgate), REFUSED, 1));
    let told = complaint(&tollgate);
    let source = |name: &str| told.contains(&format!("/{name}.yaml"));
    assert!(told.contains("`same`") && (source("a") || source("b")), "{told}");
    let mut connection = tollgate.connect();
    for tenant in ["same", "other"] {
        let reply = connection.line(&format!("RL.CHECK {tenant} /a"));
        assert_eq!(reply, "*5 :0 :3 :2 :-1 :1000");
    }
}

#[test]
fn document_that_says_the_same_in_another_layout_keeps_what_was_spent() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("acme.yaml");
    let text = tenant("acme", 10);
    fs::write(&path, &text).expect("it is written");
    let tollgate = start(folder.path(), &[]);
    let mut connection = tollgate.connect();
    let versions = [text.clone(), text.replace('\n', " \n"), format!("# new\n{text}")];
    for (version, text) in versions.iter().enumerate() {
        fs::write(&path, text).expect("it is written");
        wait_until(&tollgate, |page| is(page, APPLIED, (version as u32).max(1)));
        let left = 9 - version;
        let reply = connection.line("RL.CHECK acme /a");
        assert_eq!(reply, format!("*5 :0 :10 :{left} :-1 :1000"));
    }
}
