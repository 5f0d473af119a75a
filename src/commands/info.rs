//! INFO: the state of the server in Redis's sections and fields, and a section of our own.
//!
//! A field that Redis has is there under its name where it means something here; where it counts
//! a thing that does not exist here (replicas, forks), it says so with Redis's value for none.
//! Sections are written by `info_sections.rs`; this file chooses them.

use super::call::{Answer, Call};
use super::info_sections as sections;
use super::load_section;
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec};
use crate::protocol::{Args, Reply};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "INFO",
    arity: Arity::at_least(1),
    keys: Keys::All,
    flags: Flags::LOADING.and(Flags::STALE).and(Flags::SLOW),
    group: Group::Server,
    since: "1.0.0",
    complexity: "O(n) in the shards and connections",
    summary: "Return the state of the server, by sections.",
    subcommands: &[],
    handler: Handler::Plain(info),
}];

/// One section: its name, whether it is shown unasked, and what writes it.
struct Section {
    name: &'static str,
    default: bool,
    write: fn(&Call<'_, '_>, &mut String),
}

const fn section(name: &'static str, write: fn(&Call<'_, '_>, &mut String)) -> Section {
    Section { name, default: true, write }
}

/// In the order of Redis.
const SECTIONS: [Section; 16] = [
    section("Server", sections::server),
    section("Clients", sections::clients),
    section("Memory", sections::memory),
    section("Persistence", sections::persistence),
    section("Stats", sections::stats),
    section("Replication", sections::replication),
    section("CPU", sections::cpu),
    section("Modules", sections::modules),
    Section { default: false, ..section("Commandstats", sections::command_stats) },
    section("Errorstats", sections::error_stats),
    Section { default: false, ..section("Latencystats", sections::latency_stats) },
    section("Cluster", sections::cluster),
    section("Keyspace", sections::keyspace),
    section("Tollgate", sections::tollgate),
    section("Load", load_section::load),
    Section { default: false, ..section("Twins", sections::twins) },
];

/// INFO [section ... | all | everything | default]
fn info(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let mut text = String::new();
    for section in SECTIONS.iter().filter(|section| is_asked(section, call.args.skip(1))) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("# ");
        text.push_str(section.name);
        text.push('\n');
        (section.write)(call, &mut text);
    }
    reply.verbatim(text.replace('\n', "\r\n"));
    Ok(Outcome::Reply)
}

fn is_asked(section: &Section, words: Args<'_>) -> bool {
    (words.is_empty() && section.default)
        || words.iter().any(|word| match word.to_ascii_lowercase().as_slice() {
            b"all" | b"everything" => true,
            b"default" => section.default,
            name => section.name.as_bytes().eq_ignore_ascii_case(name),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OwnedArgs;

    fn asked(words: &[&str]) -> Vec<&'static str> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let owned = OwnedArgs::of(&words);
        let words = owned.as_args();
        let shown = SECTIONS.iter().filter(|section| is_asked(section, words));
        shown.map(|section| section.name).collect()
    }

    #[test]
    fn sections_are_shown_once_and_in_order_however_they_are_asked_for() {
        assert_eq!(asked(&["keyspace", "SERVER", "server"]), ["Server", "Keyspace"]);
        assert_eq!(asked(&["nosuch"]), Vec::<&str>::new());
        assert_eq!(asked(&["all"]).len(), SECTIONS.len());
        assert_eq!(asked(&["everything", "cpu"]).len(), SECTIONS.len());
        assert_eq!(asked(&[]), asked(&["default"]));
        assert!(!asked(&[]).contains(&"Commandstats"));
        assert!(asked(&["default", "commandstats"]).contains(&"Commandstats"));
    }
}
