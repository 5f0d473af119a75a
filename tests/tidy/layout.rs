//! Rules about where files stand, and what must stand beside them.

use super::rooms::module;
use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "no drawers",
        check: drawers,
        beside: &[],
        bad: &[("src/server/util.rs", "//! A.\n"), ("src/common/mod.rs", "//! A.\n")],
    },
    Rule {
        name: "no dead files",
        check: dead_files,
        beside: &[
            ("src/lib.rs", "//! A.\nmod server;\n"),
            ("src/server/mod.rs", "//! A.\nmod used;\n"),
            ("src/server/used.rs", "//! A.\n"),
        ],
        bad: &[("src/server/a.rs", "//! A.\n"), ("tests/it/b.rs", "//! A.\n")],
    },
    Rule {
        name: "re-exports are in doors",
        check: re_exports,
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\npub(crate) use super::b::C;\n")],
    },
    Rule {
        name: "a command has its transcript",
        check: transcripts,
        beside: &[("tests/it/wire/rl.resp", "> RL.LIMIT key 1 1s\n< *5\n")],
        bad: &[(
            "src/commands/limit.rs",
            "//! A.\nSpec { name: \"RL.LIMIT\" }\nSpec {\n    name: \"KEY\",\n}\n",
        )],
    },
];

/// Names under which anything could be put, so that everything is.
const DRAWERS: [&str; 9] =
    ["util", "utils", "common", "helper", "helpers", "misc", "types", "shared", "stuff"];

fn drawers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let drawer = file.path.split('/').find(|name| {
            let name = name.split_once('.').map_or(*name, |(stem, _)| stem);
            DRAWERS.contains(&name)
        });
        if let Some(drawer) = drawer {
            let text = format!("`{drawer}` is a drawer; name the file after the one thing in it");
            findings.push(file.finding(1, &text));
        }
    }
    findings
}

/// A file is alive if the door of its folder declares it.
fn dead_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let Some((door, name)) = declared_in(&file.path) else { continue };
        let declares = |door: &File| door.code().any(|(_, line)| module(line) == Some(name));
        if !tree.file(&door).is_some_and(declares) {
            let text = format!("no `mod {name};` in {door}; declare the file, or delete it");
            findings.push(file.finding(1, &text));
        }
    }
    findings
}

/// The file that must declare this one, and under which name; nothing for roots.
fn declared_in(path: &str) -> Option<(String, &str)> {
    let path_of_module = path.strip_suffix(".rs")?.trim_end_matches("/mod");
    let (folder, name) = path_of_module.rsplit_once('/')?;
    match (folder, name) {
        ("src", "lib" | "main")
        | ("tests" | "benches" | "examples" | "fuzz/fuzz_targets", _)
        | (_, "main") => None,
        ("src", _) => Some(("src/lib.rs".to_owned(), name)),
        ("tests/tidy", _) => Some(("tests/tidy.rs".to_owned(), name)),
        (root, _) if root.matches('/').count() == 1 && !root.starts_with("src/") => {
            Some((format!("{root}/main.rs"), name))
        }
        (folder, _) => Some((format!("{folder}/mod.rs"), name)),
    }
}

fn re_exports(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let door = |file: &&File| !file.path.ends_with("/mod.rs") && file.path != "src/lib.rs";
    for file in tree.src().filter(door) {
        for (number, line) in file.code() {
            let line = line.trim_start();
            // A macro has no other way to be seen by its neighbours than `pub(super) use name;`.
            if line.starts_with("pub") && line.contains(" use ") && line.contains("::") {
                let text = "a re-export outside a door; write it in the room's mod.rs";
                findings.push(file.finding(number, text));
            }
        }
    }
    findings
}

/// Every row in the table of commands is asked for in some transcript.
fn transcripts(tree: &Tree) -> Vec<Finding> {
    let asked: Vec<String> = tree
        .files
        .iter()
        .filter(|file| file.path.starts_with("tests/it/wire/") && file.ends_in(".resp"))
        .flat_map(|file| &file.lines)
        .filter_map(|line| line.strip_prefix('>')?.split_whitespace().next())
        .map(str::to_ascii_uppercase)
        .collect();
    let mut findings = Vec::new();
    // Before there is any transcript there is nothing to hold a command to.
    if asked.is_empty() {
        return findings;
    }
    for file in tree.src().filter(|file| file.room() == Some("commands")) {
        let mut in_spec = false;
        for (number, _) in file.shipped() {
            let line = &file.lines[number - 1];
            // A subcommand's row stands within its parent's and is asked for with it.
            in_spec = (in_spec || line.contains("Spec {")) && !line.contains("Sub {");
            let Some((_, name)) = line.split_once("name: \"").filter(|_| in_spec) else { continue };
            let name = name.split('"').next().unwrap_or_default();
            if !asked.contains(&name.to_ascii_uppercase()) {
                let text = format!("`{name}` has no transcript; ask it in tests/it/wire/*.resp");
                findings.push(file.finding(number, &text));
            }
        }
    }
    findings
}
