//! Rules about words: each stands only where its room is.

use super::rooms::core_rooms;
use super::tree::{File, Tree};
use super::{Finding, Rule};

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "the clock is in time",
        check: |tree| {
            let words = ["Instant::now", "SystemTime::now", "clock_gettime"];
            let text = "the clock outside src/time; take `now: Timestamp` or a `Clock`";
            code_words(tree, &words, text, |file| file.room() != Some("time"))
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\nfn b() { std::time::Instant::now() }\n")],
    },
    Rule {
        name: "the core has no I/O, tasks or logs",
        check: |tree| {
            let core = core_rooms(tree);
            let words = [
                "tokio::",
                "hyper::",
                "axum::",
                "tracing::",
                "etcd_client::",
                "std::net",
                "std::fs",
                "std::thread",
                "std::process",
            ];
            let text = "I/O, tasks or logs in a core room; do it in a room below `// Edges`";
            code_words(tree, &words, text, |file| in_rooms(file, &core))
        },
        beside: &[CORE_LIB],
        bad: &[("src/engine/a.rs", "//! A.\nuse tokio::net::TcpStream;\n")],
    },
    Rule {
        name: "the core has no dice",
        check: |tree| {
            let core = core_rooms(tree);
            let words = ["rand::", "fastrand", "RandomState", "thread_rng"];
            let text = "dice in a core room; take the seed by Options or as an argument";
            code_words(tree, &words, text, |file| in_rooms(file, &core))
        },
        beside: &[CORE_LIB],
        bad: &[("src/engine/a.rs", "//! A.\nuse std::hash::RandomState;\n")],
    },
    Rule {
        name: "no unwrap outside tests",
        check: |tree| {
            let text = "unwrap; return the error, or `expect(\"why it cannot fail\")`";
            code_words(tree, &[".unwrap()"], text, |_| true)
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\nfn b() { c.unwrap(); }\n")],
    },
    Rule {
        name: "metric names are in telemetry",
        check: |tree| {
            let text = "a metric name outside src/telemetry/metrics; add a row there, use it";
            raw_words(tree, &["\"tollgate_"], text, |file, number| {
                file.path.starts_with("src/")
                    && !file.path.starts_with("src/telemetry/metrics")
                    && !file.is_test(number)
            })
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\nconst B: &str = \"tollgate_checks_total\";\n")],
    },
    Rule {
        name: "settings are in config",
        check: |tree| {
            let text = "the environment outside src/config; add a key to config/tollgate.yaml";
            code_words(tree, &["env::var"], text, |file| file.room() != Some("config"))
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\nfn b() { std::env::var(\"C\") }\n")],
    },
    Rule {
        name: "printing is in cli",
        check: |tree| {
            let words = ["println!", "eprintln!", "print!", "eprint!"];
            let text = "printing outside src/cli; return the text, or log by `tracing`";
            code_words(tree, &words, text, |file| file.room() != Some("cli"))
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\nfn b() { println!(\"c\") }\n")],
    },
    Rule {
        name: "no leftovers",
        check: |tree| {
            let text = "a leftover; finish it, or file an issue and take this out";
            let words = ["TODO", "FIXME", "dbg!", "todo!(", "unimplemented!("];
            raw_words(tree, &words, text, |file, _| file.ends_in(".rs"))
        },
        beside: &[],
        bad: &[
            ("tests/it/a.rs", "//! A.\n// TODO b\n"),
            ("src/b.rs", "//! A.\nfn a() { dbg!(1) }\n"),
        ],
    },
    Rule {
        name: "lints are expected, not allowed",
        check: |tree| {
            let text = "a lint switched off; mend it, or `#[expect(lint, reason = \"..\")]`";
            raw_words(tree, &["#[allow", "#![allow"], text, |file, _| file.ends_in(".rs"))
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\n#[allow(dead_code)]\nfn b() {}\n")],
    },
    Rule {
        name: "test names are sentences",
        check: |tree| {
            let text = "a test name that begins like a label; say what holds, as a sentence";
            let words = ["fn test_", "fn should_", "fn it_"];
            raw_words(tree, &words, text, |file, _| file.ends_in(".rs"))
        },
        beside: &[],
        bad: &[("src/server/a.rs", "//! A.\n#[test]\nfn test_b() {}\n")],
    },
    Rule {
        name: "no test sleeps or is skipped",
        check: |tree| {
            let text = "a test that sleeps or is skipped; tell it the time, wait for the event";
            raw_words(tree, &["sleep(", "#[ignore"], text, |file, number| {
                file.ends_in(".rs") && file.is_test(number) && !is_bench(file)
            })
        },
        beside: &[],
        bad: &[("tests/it/a.rs", "//! A.\nfn b() { std::thread::sleep(c) }\n")],
    },
    Rule {
        name: "no path of one machine",
        check: |tree| {
            let text = "a path of one machine; nobody else has it";
            raw_words(tree, &["/home/", "/work/", "/root/", "/Users/"], text, |_, _| true)
        },
        beside: &[],
        bad: &[("README.md", "See /home/me/notes.md.\n")],
    },
    Rule {
        name: "no globs",
        check: globs,
        beside: &[],
        bad: &[
            ("src/server/a.rs", "//! A.\nuse super::*;\n"),
            ("src/server/b.rs", "//! A.\n#[cfg(test)]\nmod tests {\n    use std::io::*;\n}\n"),
        ],
    },
];

const CORE_LIB: (&str, &str) = ("src/lib.rs", "// Core\nmod engine;\n// Edges\nmod server;\n");

fn in_rooms(file: &File, rooms: &[String]) -> bool {
    file.room().is_some_and(|own| rooms.iter().any(|room| room == own))
}

fn is_bench(file: &File) -> bool {
    file.path.starts_with("benches/")
}

/// The rules' own words stand in the rules.
fn is_rule(file: &File) -> bool {
    file.path.starts_with("tests/tidy")
}

/// Finds `words` in the code of the crate that not only tests see.
fn code_words(
    tree: &Tree,
    words: &[&str],
    text: &str,
    applies: impl Fn(&File) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.src().filter(|file| applies(file)) {
        for (number, line) in file.shipped() {
            if let Some(word) = words.iter().find(|word| stands_in(line, word)) {
                findings.push(file.finding(number, &format!("`{word}`: {text}")));
            }
        }
    }
    findings
}

/// Finds `words` in lines as they stand, comments and literals included.
fn raw_words(
    tree: &Tree,
    words: &[&str],
    text: &str,
    applies: impl Fn(&File, usize) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| !is_rule(file)) {
        for (index, line) in file.lines.iter().enumerate() {
            let word = words.iter().find(|word| stands_in(line, word));
            if let Some(word) = word.filter(|_| applies(file, index + 1)) {
                findings.push(file.finding(index + 1, &format!("`{word}`: {text}")));
            }
        }
    }
    findings
}

/// Whether `word` stands in the line and is not the end of a longer name.
fn stands_in(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let begins_with_name = word.starts_with(|first: char| first.is_alphanumeric());
        !(begins_with_name && before.is_some_and(|c| c.is_alphanumeric() || c == '_'))
    })
}

fn globs(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for (number, line) in file.code() {
            let line = line.trim();
            if !line.contains("use ") || !(line.contains("::*;") || line.contains("::*}")) {
                continue;
            }
            // A crate's prelude is made for it.
            let fits_tests = line == "use super::*;" || line.ends_with("::prelude::*;");
            if !(fits_tests && file.is_test(number)) {
                let text = "a glob; name what you use (tests may `use super::*` and preludes)";
                findings.push(file.finding(number, text));
            }
        }
    }
    findings
}
