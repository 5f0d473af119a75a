//! A door for the fuzz targets in `fuzz/` and the benches, which see only what is public.
//!
//! Not part of the interface: it exists behind the feature `fuzzing`, and changes with them.

use std::sync::Arc;

use bytes::Bytes;

use crate::engine::{Engine, Expires, Kept, Scope, Value};
use crate::limit::{Cost, Decision, Quota, State, check};
use crate::policy::{self, Book, Change, Facts, Unmatched};
use crate::prefilter::{Accept, Denial, Fingerprint, Lane, Options, Prefilter, Question};
use crate::protocol::{Error, Limits, Reply, Resp, Scanner, Torn, Trust, cut, scan_pieces};
use crate::size;
use crate::time::Timestamp;

/// What a scan found: requests as lists of arguments, and why it ended early.
pub type Found = (Vec<Vec<Vec<u8>>>, Option<String>);

/// Scans `input` cut at `cuts` as a connection would that received it in such pieces.
pub fn scan(input: &[u8], cuts: &[usize]) -> Found {
    let pieces = cut(input, cuts);
    let (requests, failed) = scan_pieces(Limits::default(), Trust::Authenticated, &pieces);
    (requests, failed.map(|err| err.to_string()))
}

/// A worker's scanner with one connection.
#[derive(Debug)]
pub struct Worker {
    scanner: Scanner,
    torn: Torn,
}

impl Default for Worker {
    fn default() -> Self {
        Self { scanner: Scanner::new(Limits::default()), torn: Torn::default() }
    }
}

impl Worker {
    /// Scans once and looks at each argument: how many requests, and bytes of arguments.
    pub fn scan(&mut self, input: &[u8]) -> (usize, usize) {
        self.scanner.scan(&mut self.torn, input, Trust::Authenticated);
        let bytes = (0..self.scanner.len())
            .filter_map(|at| self.scanner.request(at, input))
            .map(|args| args.iter().map(<[u8]>::len).sum::<usize>());
        (self.scanner.len(), bytes.sum())
    }
}

/// Writes the reply of a limiter command.
pub fn reply_integers(out: &mut Vec<u8>, values: &[i64]) {
    Reply::new(out, Resp::V2).integers(values);
}

/// Writes a value.
pub fn reply_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    Reply::new(out, Resp::V2).bulk(bytes);
}

/// One quota for many keys: the engine that counts it, and the memory of its denials.
#[derive(Debug)]
pub struct Limiter {
    engine: Engine,
    prefilter: Prefilter,
    lane: Arc<Lane>,
    quota: Quota,
}

impl Limiter {
    pub fn new(quota: Quota, denials_max: u32) -> Self {
        let entries_max = i64::from(denials_max).try_into().expect("within the bounds");
        let prefilter = Prefilter::new(&Options { enabled: true, entries_max }, 2);
        let (engine, lane) = (Engine::new(256, 1), prefilter.new_lane());
        Self { engine, prefilter, lane, quota }
    }

    /// A decision of the engine, as a limiter command has it made.
    pub fn decide(&self, key: &[u8], now: Timestamp) -> Decision {
        let (key, quota) = (self.engine.key(key), &self.quota);
        let decided: Result<Decision, Error> = self
            .engine
            .try_transact(Scope::Keys(&[key]), 0, now, |view| {
                view.update(
                    key,
                    |now| Value::Limit(State::new(quota, now)),
                    |value, now| {
                        let state = value.as_limit_mut().expect("there is nothing else");
                        let decision = check(quota, state, Cost::ONE, now);
                        let expires = Expires::At(state.expires_at());
                        let spent = decision.is_allowed();
                        let kept = if spent { Kept::Changed { expires } } else { Kept::Unchanged };
                        Ok((decision, kept))
                    },
                )
            })
            .expect("nothing takes long here");
        decided.expect("there is room")
    }

    pub fn remember(&self, key: &[u8], decision: Decision, now: Timestamp) {
        let denial = Denial {
            decision,
            opens_after: decision.retry_after(),
            held: 0,
            place: 0,
            shard: 0,
            generation: 0,
        };
        self.prefilter.remember(&self.lane, &self.question(key), &denial, now);
    }

    /// The denial that is remembered, if one is.
    pub fn ask(&self, key: &[u8], now: Timestamp) -> Option<Decision> {
        let repeated = self.prefilter.ask(&self.lane, &self.question(key), now, |_| 0);
        repeated.map(|repeated| repeated.decision)
    }

    fn question<'a>(&self, key: &'a [u8]) -> Question<'a> {
        Question {
            bucket: self.engine.key(key),
            quota: Fingerprint::of(&self.quota),
            revision: 1,
            cost: Cost::ONE,
            accept: Accept::Exact,
        }
    }
}

/// Policies in force, one tenant a document.
#[derive(Debug)]
pub struct Policies {
    book: Book,
    revision: u64,
}

impl Policies {
    /// Compiles documents; the tenants are named by their places.
    pub fn new(documents: &[String]) -> Self {
        let options = policy::Options {
            unmatched: Unmatched::Allow,
            document_bytes_max: size::Bytes::new(4 << 20),
        };
        let mut policies = Self { book: Book::new(&options), revision: 0 };
        let batch = documents.iter().enumerate().map(|(at, text)| change(at, text, 1)).collect();
        policies.book.apply(batch, Timestamp::EPOCH);
        policies
    }

    /// Puts another document in the place of one; how many tenants changed.
    pub fn change(&mut self, at: usize, document: &str) -> usize {
        self.revision += 1;
        let batch = vec![change(at, document, self.revision)];
        self.book.apply(batch, Timestamp::EPOCH).changed.len()
    }

    /// How many tenants are in force.
    pub fn tenants(&self) -> usize {
        self.book.snapshot().tenants().count()
    }

    /// Asks for each of the endpoints what applies to it at a tenant, and writes the names of
    /// the buckets; how many rules that was.
    pub fn matching(&self, tenant: &str, endpoints: &[String], name: &mut Vec<u8>) -> usize {
        let snapshot = self.book.snapshot();
        let mut count = 0;
        for endpoint in endpoints {
            let Some(tenant) = snapshot.tenant(tenant.as_bytes()) else { continue };
            let facts = Facts {
                endpoint: Some(endpoint.as_bytes()),
                caller: Some(b"u42"),
                ..Facts::default()
            };
            for found in tenant.matching(&facts, Timestamp::EPOCH) {
                name.clear();
                found.bucket_name(&found.rule.quotas[0], |part| name.extend_from_slice(part));
                count += 1;
            }
        }
        count
    }
}

fn change(at: usize, text: &str, revision: u64) -> Change {
    let name = at.to_string();
    let text = Bytes::copy_from_slice(text.as_bytes());
    Change::Put { source: name.as_str().into(), tenant: Some(name.into()), text, revision }
}
