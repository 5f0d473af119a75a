//! Rules about rooms: their order in `src/lib.rs`, and their doors.

use super::tree::{File, Tree};
use super::{Finding, Rule};

const LIB: &str = "//! A.\n// Core\nmod time;\nmod engine;\n// Edges\nmod server;\n// Assembly\n";

pub(crate) const RULES: &[Rule] = &[
    Rule {
        name: "a room uses only rooms above it",
        check: order,
        beside: &[("src/lib.rs", LIB)],
        bad: &[("src/engine/mod.rs", "//! A.\nuse crate::server::Reply;\n")],
    },
    Rule {
        name: "nobody climbs out of a room by super",
        check: climbing,
        beside: &[],
        bad: &[("src/engine/slab.rs", "//! A.\nuse super::super::server::Reply;\n")],
    },
    Rule {
        name: "a room is entered by its door",
        check: doors,
        beside: &[("src/engine/slab.rs", "//! A.\n")],
        bad: &[("src/server/mod.rs", "//! A.\nuse crate::engine::{\n    slab::Slab,\n};\n")],
    },
    Rule {
        name: "one use line a room",
        check: one_use,
        beside: &[],
        bad: &[
            ("src/server/a.rs", "//! A.\nuse crate::engine::B;\nuse crate::engine::C;\n"),
            ("src/server/b.rs", "//! A.\nuse crate::{engine::B, time::C};\n"),
        ],
    },
    Rule {
        name: "features stand on mod lines and their re-exports",
        check: features,
        beside: &[],
        bad: &[
            ("src/engine/a.rs", "//! A.\n#[cfg(feature = \"server\")]\nfn b() {}\n"),
            ("src/engine/b.rs", "//! A.\nfn b() { if cfg!(feature = \"server\") {} }\n"),
        ],
    },
    Rule {
        name: "pub is for the public rooms",
        check: visibility,
        beside: &[],
        bad: &[("src/engine/mod.rs", "//! A.\npub fn b() {}\n")],
    },
];

/// Rooms whose names a user of the crate may see, with the files that make it, and the door
/// for fuzz targets.
const PUBLIC: [&str; 11] =
    ["lib", "main", "time", "size", "limit", "load", "grl", "machine", "client", "cli", "fuzzing"];

/// The rooms in their order.
fn rooms(tree: &Tree) -> Vec<String> {
    let lines = tree.file("src/lib.rs").map(|lib| lib.code.as_slice()).unwrap_or_default();
    lines.iter().filter_map(|line| module(line)).map(str::to_owned).collect()
}

/// The rooms above the comment that begins the edges.
pub(crate) fn core_rooms(tree: &Tree) -> Vec<String> {
    let Some(lib) = tree.file("src/lib.rs") else { return Vec::new() };
    let border = lib.lines.iter().position(|line| line.starts_with("// Edges"));
    let border = border.unwrap_or(lib.lines.len());
    lib.code[..border].iter().filter_map(|line| module(line)).map(str::to_owned).collect()
}

/// The module that a `mod name;` line declares.
pub(crate) fn module(line: &str) -> Option<&str> {
    let line = line.trim().trim_start_matches("pub(crate) ").trim_start_matches("pub(super) ");
    let name = line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';')?;
    Some(name.trim_start_matches("r#"))
}

/// The names that follow each `prefix` on the line, with what follows them.
fn names_after<'a>(line: &'a str, prefix: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = Vec::new();
    for (at, _) in line.match_indices(prefix) {
        let inside_name = line[..at].ends_with(|end: char| end.is_alphanumeric() || end == '_');
        let rest = &line[at + prefix.len()..];
        let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        if !inside_name && length > 0 {
            found.push(rest.split_at(length));
        }
    }
    found
}

fn order(tree: &Tree) -> Vec<Finding> {
    let rooms = rooms(tree);
    let place = |name: &str| rooms.iter().position(|room| room == name);
    let mut findings = Vec::new();
    for file in tree.src() {
        let Some(own) = file.room().and_then(place) else { continue };
        for (number, line) in file.code() {
            for (name, _) in names_after(line, "crate::") {
                if place(name).is_some_and(|other| other > own) {
                    let text = format!(
                        "room `{}` uses `{name}`, which is below it in src/lib.rs; let `{name}` \
                         call down, or own a trait here that it implements",
                        rooms[own]
                    );
                    findings.push(file.finding(number, &text));
                }
            }
        }
    }
    findings
}

/// `super::` once too often names the crate's top, and by it any room.
fn climbing(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.src().filter(|file| file.path != "src/lib.rs") {
        let depth = file.path.trim_end_matches("/mod.rs").matches('/').count();
        for (number, line) in file.code() {
            let depth = depth + usize::from(file.tests_from != 0 && file.is_test(number));
            if line.contains(&"super::".repeat(depth)) {
                let text = "this path leaves the room by `super`; write `crate::room::Thing`";
                findings.push(file.finding(number, text));
            }
        }
    }
    findings
}

fn doors(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.src() {
        let Some(own) = file.room() else { continue };
        for (number, line) in file.code() {
            for (room, rest) in names_after(line, "crate::") {
                if room == own {
                    continue;
                }
                for inner in entered(rest, &file.code[number..]) {
                    if tree.is_inner_module(room, &inner) {
                        let text = format!(
                            "`crate::{room}::{inner}::` goes in by the window; let \
                             src/{room}/mod.rs re-export the thing and use `crate::{room}::Thing`"
                        );
                        findings.push(file.finding(number, &text));
                    }
                }
            }
        }
    }
    findings
}

/// The names after which a path goes on, right behind a room: `::inner::` or `::{inner::Thing}`.
fn entered(rest: &str, following: &[String]) -> Vec<String> {
    let Some(rest) = rest.strip_prefix("::") else { return Vec::new() };
    let mut text = rest.to_owned();
    if rest.starts_with('{') {
        for line in following.iter().take_while(|_| rest.starts_with('{')) {
            if text.contains(';') {
                break;
            }
            text.push_str(line);
        }
        let list = text.split(';').next().unwrap_or_default().trim_start_matches('{');
        let heads = list.split(',').filter_map(|item| item.trim().split_once("::"));
        return heads.map(|(head, _)| head.to_owned()).collect();
    }
    text.split_once("::").map(|(head, _)| head.to_owned()).into_iter().collect()
}

fn one_use(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.src() {
        let mut seen: Vec<(&str, bool)> = Vec::new();
        for (number, line) in file.code() {
            let is_use = line.trim_start().starts_with("use ")
                || line.trim_start().starts_with("pub") && line.contains(" use ");
            if !is_use {
                continue;
            }
            if line.contains("use crate::{") {
                let text = "several rooms in one `use`; write one `use crate::room::{..};` a room";
                findings.push(file.finding(number, text));
            }
            for (room, _) in names_after(line, "use crate::") {
                let entry = (room, file.is_test(number));
                if seen.contains(&entry) {
                    let text = format!("a second `use crate::{room}`; put both into one");
                    findings.push(file.finding(number, &text));
                }
                seen.push(entry);
            }
        }
    }
    findings
}

fn features(tree: &Tree) -> Vec<Finding> {
    let exempt = |file: &&File| !matches!(file.room(), Some("roles" | "cli"));
    let mut findings = Vec::new();
    for file in tree.src().filter(exempt) {
        for (number, line) in file.shipped() {
            if !line.contains("feature = \"") {
                continue;
            }
            let gated = file.code[number..].iter().find(|next| !next.trim().starts_with("#["));
            let may_be_gated = |item: &String| {
                module(item).is_some() || file.ends_in("/mod.rs") && item.contains(" use ")
            };
            if !(line.trim().starts_with("#[cfg") && gated.is_some_and(may_be_gated)) {
                let text = "a feature inside the code; gate a `mod` line, or decide in roles";
                findings.push(file.finding(number, text));
            }
        }
    }
    findings
}

fn visibility(tree: &Tree) -> Vec<Finding> {
    let hidden = |file: &&File| file.room().is_some_and(|room| !PUBLIC.contains(&room));
    let words = ["fn", "struct", "enum", "trait", "mod", "use", "const", "type", "static", "async"];
    let mut findings = Vec::new();
    for file in tree.src().filter(hidden) {
        for (number, line) in file.code() {
            let item =
                line.trim_start().strip_prefix("pub ").and_then(|rest| rest.split(' ').next());
            if item.is_some_and(|item| words.contains(&item)) {
                let text = "`pub` in a room that is not public; write `pub(crate)` or less";
                findings.push(file.finding(number, text));
            }
        }
    }
    findings
}
