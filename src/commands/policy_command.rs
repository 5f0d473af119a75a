//! RL.POLICY: look at the policies in force, and write them.
//!
//! SET and DEL answer once the policy store has taken the document; it is in force as soon as the
//! watch brings it back, which takes less than a second. What is refused is refused before
//! anything is written, by the same reader as every document, with the same text and place.
//!
//! A document may hold several tenants. It is written as a whole, so one that would take other
//! tenants away by being silent of them is refused.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use super::call::{Answer, Call};
use super::command;
use super::policy_order::{PolicyOrder, PolicyRefusal};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use super::waiting;
use crate::policy::{Finding, lint, parse};
use crate::protocol::{Error, Reply};

/// In a transaction nothing can be waited for, and a script must not write policies.
const FLAGS: Flags = Flags::ADMIN
    .and(Flags::NOSCRIPT)
    .and(Flags::NO_MULTI)
    .and(Flags::LOADING)
    .and(Flags::STALE)
    .and(Flags::SLOW);

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "RL.POLICY",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: FLAGS,
    group: Group::RateLimit,
    since: "0.1.0",
    complexity: "O(n) in the tenants, or in the bytes of a document",
    summary: "Look at the policies in force, and write them.",
    subcommands: &[
        Sub::plain("DEL", Arity::at_least(3), "Remove a tenant's document from the store.", del),
        Sub::plain("GET", Arity::exactly(3), "Return the document in force of a tenant.", get),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
        Sub::plain("LINT", Arity::exactly(3), "Look a document over; write nothing.", lint_one),
        Sub::plain("LIST", Arity::exactly(2), "Return the tenants in force.", list),
        Sub::plain("REVISION", Arity::exactly(2), "Return the revision in force.", revision),
        Sub::plain("SET", Arity::between(4, 6), "Write a tenant's document to the store.", set),
        Sub::plain("STATUS", Arity::exactly(2), "Show how every document stands.", status),
    ],
    handler: Handler::Parent,
}];

/// RL.POLICY LIST: names, sorted.
fn list(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let snapshot = Arc::clone(&call.service.policies().snapshot());
    let mut names: Vec<&str> = snapshot.tenants().map(|tenant| &*tenant.name).collect();
    names.sort_unstable();
    reply.bulks(&names);
    Ok(Outcome::Reply)
}

/// RL.POLICY GET tenant: the whole document that holds it, as it was written; null for none.
fn get(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let name = std::str::from_utf8(call.args.get(2).unwrap_or_default()).unwrap_or_default();
    match call.service.policies().document(name) {
        Some((_, text)) => reply.bulk(text),
        None => reply.null(),
    }
    Ok(Outcome::Reply)
}

/// RL.POLICY REVISION: of the store, as far as it has been looked at.
fn revision(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let revision = call.service.policies().snapshot().revision;
    reply.integer(i64::try_from(revision).unwrap_or(i64::MAX));
    Ok(Outcome::Reply)
}

/// RL.POLICY STATUS: a map for each document.
fn status(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let documents = call.service.policies().status();
    reply.array(documents.len());
    for document in documents {
        reply.map(6);
        reply.bulk("source");
        reply.bulk(document.source.as_bytes());
        reply.bulk("revision");
        integer(reply, Some(document.revision));
        reply.bulk("in_force");
        integer(reply, document.in_force);
        reply.bulk("error");
        match &document.error {
            Some(error) => reply.bulk(error.as_bytes()),
            None => reply.null(),
        }
        for (name, place) in [("line", document.line), ("column", document.column)] {
            reply.bulk(name);
            integer(reply, Some(place as u64));
        }
    }
    Ok(Outcome::Reply)
}

/// RL.POLICY LINT document: a map for each doubt; an error where it would be refused.
fn lint_one(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let options = call.service.runtime().policies;
    let text = call.args.get(2).unwrap_or_default();
    let findings = lint(text, None, &options, call.now).map_err(|complaint| refused(&complaint))?;
    reply.array(findings.len());
    for Finding { line, column, tenant, rule, text } in findings {
        reply.map(5);
        for (name, place) in [("line", line), ("column", column)] {
            reply.bulk(name);
            integer(reply, Some(place as u64));
        }
        reply.bulk("tenant");
        reply.bulk(tenant.as_bytes());
        reply.bulk("rule");
        match &rule {
            Some(rule) => reply.bulk(rule.as_bytes()),
            None => reply.null(),
        }
        reply.bulk("text");
        reply.bulk(text);
    }
    Ok(Outcome::Reply)
}

/// RL.POLICY SET tenant document [IFEQ document]
fn set(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    const USAGE: &str = "IFEQ document";
    let tenant = tenant(call)?;
    let instead_of = match (call.args.get(4), call.args.get(5)) {
        (None, _) => None,
        (Some(word), _) if !word.eq_ignore_ascii_case(b"IFEQ") => {
            return Err(Error::bad_word("RL.POLICY SET", word, USAGE));
        }
        (Some(word), None) => return Err(Error::missing_value("RL.POLICY SET", word, USAGE)),
        (Some(_), Some(text)) => Some(Bytes::copy_from_slice(text)),
    };
    let text = call.args.get(3).unwrap_or_default();
    let options = call.service.runtime().policies;
    let parsed = parse(text, Some(tenant), &options, call.now);
    let terms = parsed.map_err(|complaint| refused(&complaint))?;
    let names: Vec<&str> = terms.iter().map(|terms| &*terms.name).collect();
    if !names.contains(&tenant) {
        let found = names.join("`, `");
        let text = format!("the document is not of the tenant `{tenant}`, but of `{found}`");
        return Err(Error::text(text));
    }
    let source = call.service.policies().source(tenant);
    check_others(call, (tenant, source.as_deref()), &names)?;
    let text = Some(Bytes::copy_from_slice(text));
    Ok(order(call, PolicyOrder { tenant: tenant.into(), source, text, instead_of }, reply))
}

/// RL.POLICY DEL tenant [tenant ...]: the document that holds them, and no others.
fn del(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let tenant = tenant(call)?;
    let mut sources = call.args.skip(2).iter().map(|name| {
        let name = String::from_utf8_lossy(name);
        let source = call.service.policies().source(&name);
        source.ok_or_else(|| Error::text(format!("there is no tenant `{name}`")))
    });
    let source = sources.next().expect("a tenant is named")?;
    for other in sources {
        let other = other?;
        if other != source {
            return Err(Error::text(format!("they are of two documents: `{source}`, `{other}`")));
        }
    }
    let named: Vec<_> = call.args.skip(2).iter().map(String::from_utf8_lossy).collect();
    let named: Vec<&str> = named.iter().map(|name| &**name).collect();
    check_others(call, (tenant, Some(&source)), &named)?;
    let order =
        PolicyOrder { tenant: tenant.into(), source: Some(source), text: None, instead_of: None };
    Ok(self::order(call, order, reply))
}

fn tenant<'c>(call: &Call<'c, '_>) -> Result<&'c str, Error> {
    let name = std::str::from_utf8(call.args.get(2).unwrap_or_default()).unwrap_or_default();
    if name.is_empty() { Err(Error::argument("tenant", "expected a name")) } else { Ok(name) }
}

/// No other tenant may be lost by a document, and none be taken from another document.
fn check_others(
    call: &Call<'_, '_>,
    (tenant, source): (&str, Option<&str>),
    written: &[&str],
) -> Result<(), Error> {
    let snapshot = call.service.policies().snapshot();
    for other in snapshot.tenants().filter(|other| *other.name != *tenant) {
        let (name, owner) = (&*other.name, &*other.source);
        let is_written = written.contains(&name);
        if source == Some(owner) && !is_written {
            let text = format!("`{owner}` holds the tenant `{name}`, too: write it as a whole");
            return Err(Error::text(text));
        }
        if source != Some(owner) && is_written {
            return Err(Error::text(format!("the tenant `{name}` is in `{owner}` already")));
        }
    }
    Ok(())
}

/// Hands an order on; who carries it out answers.
fn order(call: &mut Call<'_, '_>, order: PolicyOrder, reply: &Reply<'_>) -> Outcome {
    let (outcome, wait) = waiting::begin_for_word(
        call.service,
        call.session,
        (reply.resp(), waiting::Patience::Usual),
    );
    let answer = move |result: Result<(), PolicyRefusal>| {
        wait.tell(result.map_err(|refusal| match refusal {
            PolicyRefusal::Changed => Error::Text { code: "CHANGED", text: told(&refusal) },
            PolicyRefusal::Busy
            | PolicyRefusal::NoStore
            | PolicyRefusal::OneFile(_)
            | PolicyRefusal::Name
            | PolicyRefusal::Failed(_) => Error::text(told(&refusal)),
        }));
    };
    call.host.write_policy(call.session.id, order, Box::new(answer));
    outcome
}

fn told(refusal: &PolicyRefusal) -> Cow<'static, str> {
    refusal.to_string().into()
}

/// The text that every reader of documents gives, with the place in front.
fn refused(complaint: &impl std::fmt::Display) -> Error {
    Error::text(complaint.to_string())
}

fn integer(reply: &mut Reply<'_>, number: Option<u64>) {
    match number {
        Some(number) => reply.integer(i64::try_from(number).unwrap_or(i64::MAX)),
        None => reply.null(),
    }
}
