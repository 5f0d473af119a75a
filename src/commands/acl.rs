//! ACL: the two users. `default` may do everything once the password is given; where operators
//! have a password of their own, what is for administrators is left to `operator`.

use super::call::{Answer, Call};
use super::command;
use super::details::{self, CATEGORIES};
use super::runtime::Runtime;
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

/// Who everyone is that has not said the operators' password.
pub(super) const DEFAULT: &str = "default";

/// Who has. There is such a user only where operators have a password.
pub(super) const OPERATOR: &str = "operator";

pub(super) const USERS: [&str; 2] = [DEFAULT, OPERATOR];

/// The category holds two commands more than the flag guards.
const NOT_ADMIN: &str = "+@all -@admin +lastsave +role";

/// What ACL tells of a user.
struct User {
    name: &'static str,
    /// `None` where it needs no password.
    digest: Option<String>,
    commands: &'static str,
}

impl User {
    fn all(runtime: &Runtime) -> Vec<Self> {
        let operator = runtime.operator_digest().map(|digest| Self {
            name: OPERATOR,
            digest: Some(digest),
            commands: "+@all",
        });
        let commands = if operator.is_some() { NOT_ADMIN } else { "+@all" };
        let digest = runtime.password_digest();
        [Self { name: DEFAULT, digest, commands }].into_iter().chain(operator).collect()
    }
}

fn whoami(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    reply.bulk(call.session.user());
    Ok(Outcome::Reply)
}

fn users(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let users = User::all(call.service.runtime());
    reply.bulks(&users.iter().map(|user| user.name).collect::<Vec<_>>());
    Ok(Outcome::Reply)
}

fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let lines: Vec<String> = User::all(call.service.runtime())
        .iter()
        .map(|User { name, digest, commands }| {
            let login = match digest {
                Some(digest) => format!("sanitize-payload #{digest}"),
                None => "nopass sanitize-payload".into(),
            };
            format!("user {name} on {login} ~* &* {commands}")
        })
        .collect();
    reply.bulks(&lines);
    Ok(Outcome::Reply)
}

/// ACL GETUSER user
fn user(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let asked = call.args.get(2).unwrap_or_default();
    let users = User::all(call.service.runtime());
    let Some(user) = users.iter().find(|user| user.name.as_bytes() == asked) else {
        reply.null();
        return Ok(Outcome::Reply);
    };
    reply.map(6);
    reply.bulk("flags");
    let flags: &[&str] = match user.digest {
        Some(_) => &["on", "sanitize-payload"],
        None => &["on", "nopass", "sanitize-payload"],
    };
    reply.set(flags.len());
    for flag in flags {
        reply.bulk(flag);
    }
    reply.bulk("passwords");
    reply.bulks(user.digest.as_slice());
    for (name, value) in [("commands", user.commands), ("keys", "~*"), ("channels", "&*")] {
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
