//! What a request asks of a tenant's policy: the words that all these commands share.
//!
//! `tenant endpoint [CALLER c] [ATTR name value]... [COST n] [TIER t]`, and behind or between
//! them what the command itself takes. Option words come in any case and order; an endpoint of
//! `-` is none. Nothing is looked up here, and nothing is copied.

use crate::commands::limits::{number, window};
use crate::limit::Cost;
use crate::load::Tier;
use crate::policy::Facts;
use crate::protocol::{Args, Error};
use crate::time::Duration;

/// Attributes of one request: each is compared with the rules of its class.
const ATTRIBUTES_MAX: usize = 32;

/// What a command takes besides the words that all take.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Takes {
    /// How errors call the command.
    pub(super) name: &'static str,
    /// What it takes, for the error that names an unknown word.
    pub(super) usage: &'static str,
    /// The options besides CALLER, ATTR and TIER.
    pub(super) options: &'static [&'static [u8]],
}

impl Takes {
    fn has(&self, option: &[u8]) -> bool {
        self.options.contains(&option)
    }
}

/// A request, read.
#[derive(Debug)]
pub(super) struct Asking<'a> {
    pub(super) tenant: &'a [u8],
    pub(super) facts: Facts<'a>,
    /// Where it is not said, the rule says it.
    pub(super) cost: Option<Cost>,
    pub(super) tier: Option<Tier>,
    pub(super) peek: bool,
    pub(super) detail: bool,
    pub(super) ttl: Option<Duration>,
}

impl<'a> Asking<'a> {
    /// Reads the words from the tenant on.
    pub(super) fn read(words: Args<'a>, takes: &Takes) -> Result<Self, Error> {
        let mut asking = Self {
            tenant: words.name(),
            facts: Facts::default(),
            cost: None,
            tier: None,
            peek: false,
            detail: false,
            ttl: None,
        };
        asking.facts.endpoint = words.get(1).filter(|endpoint| *endpoint != b"-");
        let mut at = 2;
        while let Some(word) = words.get(at) {
            at += asking.option(word, words.skip(at + 1), takes)?;
        }
        if takes.has(b"TTL") && asking.ttl.is_none() {
            return Err(Error::missing_value(takes.name, b"TTL", takes.usage));
        }
        Ok(asking)
    }

    /// Takes one option; how many words it was.
    fn option(&mut self, word: &[u8], rest: Args<'a>, takes: &Takes) -> Result<usize, Error> {
        let is = |name: &[u8]| word.eq_ignore_ascii_case(name);
        if takes.has(b"PEEK") && is(b"PEEK") {
            self.peek = true;
            return Ok(1);
        }
        if takes.has(b"DETAIL") && is(b"DETAIL") {
            self.detail = true;
            return Ok(1);
        }
        let value = |place: usize| {
            let missing = || Error::missing_value(takes.name, word, takes.usage);
            rest.get(place).ok_or_else(missing)
        };
        if is(b"CALLER") {
            return self.fact(b"caller", value(0)?).map(|()| 2);
        }
        if is(b"ATTR") {
            return self.fact(value(0)?, value(1)?).map(|()| 3);
        }
        if takes.has(b"COST") && is(b"COST") {
            self.cost = Some(Cost(number("COST", value(0)?)?));
        } else if takes.has(b"TTL") && is(b"TTL") {
            self.ttl = Some(ttl(value(0)?)?);
        } else if is(b"TIER") {
            self.tier = Some(tier(value(0)?)?);
        } else {
            return Err(Error::bad_word(takes.name, word, takes.usage));
        }
        Ok(2)
    }

    fn fact(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), Error> {
        if self.facts.attributes.len() == ATTRIBUTES_MAX {
            let text = format!("expected at most {ATTRIBUTES_MAX} attributes");
            return Err(Error::argument("ATTR", text));
        }
        if self.facts.note(name, value) {
            return Ok(());
        }
        Err(Error::bad_argument("ATTR", name, "a name that has no value yet"))
    }
}

/// t0 to t5.
pub(in crate::commands) fn tier(word: &[u8]) -> Result<Tier, Error> {
    Tier::parse(word).ok_or_else(|| Error::bad_argument("TIER", word, "t0, t1, t2, t3, t4 or t5"))
}

/// How long something is held: not for no time at all.
fn ttl(word: &[u8]) -> Result<Duration, Error> {
    let span = window("TTL", word)?;
    if span.is_zero() {
        return Err(Error::bad_argument("TTL", word, "longer than zero"));
    }
    Ok(span)
}
