//! CONFIG: reads parameters, and writes those that can change while the server runs.
//!
//! CONFIG SET takes several at once and changes all or none; nothing is ever written to a file.

use super::call::{Answer, Call};
use super::command;
use super::glob;
use super::parameter_table::parameters;
use super::parameters::{Change, IMMUTABLE, Parameter, Place};
use super::session::Outcome;
use super::spec::{Arity, Flags, Group, Handler, Keys, Spec, Sub};
use crate::protocol::{Error, Reply};

pub(super) const SPECS: &[Spec] = &[Spec {
    name: "CONFIG",
    arity: Arity::at_least(2),
    keys: Keys::None,
    flags: Flags::ADMIN.and(Flags::NOSCRIPT).and(Flags::LOADING).and(Flags::STALE).and(Flags::SLOW),
    group: Group::Server,
    since: "2.0.0",
    complexity: "O(n) in the parameters there are",
    summary: "Read and change parameters.",
    subcommands: &[
        Sub::plain("GET", Arity::at_least(3), "Return parameters by name or pattern.", get),
        Sub::plain("HELP", Arity::exactly(2), "Return helpful text.", command::help),
        Sub {
            keys: Keys::All,
            ..Sub::plain("RESETSTAT", Arity::exactly(2), "Begin to count anew.", reset_stats)
        },
        Sub::plain("REWRITE", Arity::exactly(2), "Settings are files: not supported.", rewrite),
        Sub::plain("SET", Arity::at_least(4), "Change parameters, all or none.", set),
    ],
    handler: Handler::Parent,
}];

/// Whether CONFIG SET takes a secret for the value of this name.
pub(super) fn is_secret(name: &[u8]) -> bool {
    row(name).is_some_and(Parameter::is_secret)
}

fn row(name: &[u8]) -> Option<&'static Parameter> {
    parameters().find(|parameter| parameter.name.as_bytes().eq_ignore_ascii_case(name))
}

/// CONFIG GET pattern [pattern ...]
fn get(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let place = Place { service: call.service, host: call.host };
    let patterns = call.args.skip(2);
    // The pattern that asks for a parameter first; it is shown as it was typed if it is a name.
    let asked = |name: &str| {
        let name = name.as_bytes();
        let is_match = |pattern: &&[u8]| glob::matches(&pattern.to_ascii_lowercase(), name);
        patterns.iter().find(is_match).map(|pattern| {
            if pattern.eq_ignore_ascii_case(name) { pattern.to_vec() } else { name.to_vec() }
        })
    };
    let mut found = Vec::new();
    for parameter in parameters() {
        if let Some(name) = asked(parameter.name) {
            found.push((name, parameter.value(&place)));
        }
    }
    for (path, value) in call.host.settings() {
        if row(path.as_bytes()).is_none()
            && let Some(name) = asked(path)
        {
            found.push((name, value.clone()));
        }
    }
    reply.map(found.len());
    for (name, value) in found {
        reply.bulk(name);
        reply.bulk(value);
    }
    Ok(Outcome::Reply)
}

/// CONFIG SET parameter value [parameter value ...]
fn set(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    let words = call.args.skip(2);
    if !words.len().is_multiple_of(2) {
        return Err(Error::Syntax);
    }
    let mut rows: Vec<(&'static Parameter, &[u8])> = Vec::new();
    for at in (0..words.len()).step_by(2) {
        let word = |place| words.get(place).unwrap_or_default();
        let (name, value) = (word(at), word(at + 1));
        let parameter = settable(call, name)?;
        if rows.iter().any(|(row, _)| row.name == parameter.name) {
            return Err(failed(parameter.name, "duplicate parameter"));
        }
        rows.push((parameter, value));
    }
    let place = Place { service: call.service, host: call.host };
    let mut changes: Vec<Change<'_>> = Vec::new();
    for (parameter, value) in rows {
        let change = parameter.parse(value, &place);
        changes.push(change.map_err(|reason| failed(parameter.name, &reason))?);
    }
    for change in changes {
        change(call.service);
    }
    reply.ok();
    Ok(Outcome::Reply)
}

/// The row of a parameter that is not settled for good.
fn settable(call: &Call<'_, '_>, name: &[u8]) -> Result<&'static Parameter, Error> {
    match row(name) {
        Some(parameter) if parameter.is_settled() => Err(failed(parameter.name, IMMUTABLE)),
        Some(parameter) => Ok(parameter),
        None => {
            let mut settings = call.host.settings().iter();
            match settings.find(|(path, _)| path.as_bytes().eq_ignore_ascii_case(name)) {
                Some((path, _)) => Err(failed(path, IMMUTABLE)),
                None => Err(Error::quoting(
                    "Unknown option or number of arguments for CONFIG SET -",
                    name,
                )),
            }
        }
    }
}

fn failed(name: &str, reason: &str) -> Error {
    let text = format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}");
    Error::text(text)
}

fn reset_stats(call: &mut Call<'_, '_>, reply: &mut Reply<'_>) -> Answer {
    call.service.reset_stats(call.host.facts(), &call.stats());
    reply.ok();
    Ok(Outcome::Reply)
}

fn rewrite(_: &mut Call<'_, '_>, _: &mut Reply<'_>) -> Answer {
    Err(Error::text("CONFIG REWRITE: settings are files, and the server does not write them"))
}
