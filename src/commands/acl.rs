//! ACL: the one user, `default`, who may do everything once the password is given.

use super::call::{Answer, Call};
use super::command;
use super::details::{self, CATEGORIES};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use crate::protocol::{Error, Reply};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "ACL",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::NOSCRIPT.and(Flags::LOADING).and(Flags::STALE),
    group: Group::Server,
    since: "6.0.0",
    complexity: "O(n) in the commands there are",
    summary: "Tell users and categories of commands.",
    subcommands: &[
        Sub::plain("CAT", Arity::at_least(2), "Return categories, or the commands of one.", cat),
        Sub::plain("GETUSER", Arity::exactly(3), "Return the rules of a user.", user),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
        Sub::plain("LIST", Arity::exactly(2), "Return the rules of all users.", list),
        Sub::plain("USERS", Arity::exactly(2), "Return the names of all users.", users),
        Sub::plain("WHOAMI", Arity::exactly(2), "Return the connection's user.", whoami),
    ],
    handler: Handler::Parent,
}];

/// The only user there is.
pub(super) const USER: &str = "default";

fn whoami(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.bulk(USER);
    Ok(Outcome::Reply)
}

fn users(_: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.bulks(&[USER]);
    Ok(Outcome::Reply)
}

fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let login = match call.service.runtime().password_digest() {
        Some(digest) => format!("sanitize-payload #{digest}"),
        None => "nopass sanitize-payload".into(),
    };
    reply.bulks(&[format!("user {USER} on {login} ~* &* +@all")]);
    Ok(Outcome::Reply)
}

/// ACL GETUSER user
fn user(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    if call.args.get(2) != Some(USER.as_bytes()) {
        reply.null();
        return Ok(Outcome::Reply);
    }
    let digest = call.service.runtime().password_digest();
    reply.map(6);
    reply.bulk("flags");
    let flags: &[&str] = match digest {
        Some(_) => &["on", "sanitize-payload"],
        None => &["on", "nopass", "sanitize-payload"],
    };
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("passwords");
    reply.bulks(digest.as_slice());
    for (name, value) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        reply.bulk(name);
        reply.bulk(value);
    }
    reply.bulk("selectors");
    reply.array(0);
    Ok(Outcome::Reply)
}

/// `ACL CAT [category]`
fn cat(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let words = call.args.skip(2);
    if words.len() > 1 {
        return Err(Error::subcommand_or_arity("ACL", call.args.get(1).unwrap_or_default()));
    }
    let Some(word) = words.get(0) else {
        reply.bulks(&CATEGORIES);
        return Ok(Outcome::Reply);
    };
    let is_asked = |category: &str| category.as_bytes().eq_ignore_ascii_case(word);
    if !CATEGORIES.into_iter().any(is_asked) {
        return Err(Error::quoting("Unknown category", word));
    }
    let entries = call.service.table().entries().iter();
    let names: Vec<&str> = entries
        .filter(|entry| details::categories(entry).any(is_asked))
        .map(|entry| entry.name.as_str())
        .collect();
    reply.bulks(&names);
    Ok(Outcome::Reply)
}
