//! What a command is given of a request, and where it meets state.
//!
//! A [`Request`] is what a plan reads: words, keys already hashed, and whose connection asks. Its
//! command gets at state through a [`Ground`] alone, which locks the shards of its keys, or is
//! inside a transaction that has locked them already.

use super::last_quota::LastQuota;
use super::overload::Need;
use super::policed::Witness;
use super::service::Service;
use super::spec::KeyList;
use crate::engine::{Engine, KeyRef, Scope, Value, View};
use crate::prefilter::Lane;
use crate::protocol::{Args, Error};
use crate::time::Timestamp;

/// What the plan of a command reads: its words, and its keys already hashed.
pub(crate) struct Request<'a> {
    pub(crate) service: &'a Service,
    /// Of the worker that answers.
    pub(super) last_quota: &'a LastQuota,
    pub(crate) args: Args<'a>,
    pub(crate) keys: KeyList<'a>,
    pub(crate) db: usize,
    /// The moment of the batch; the transaction's own may be a little later.
    pub(crate) now: Timestamp,
    pub(super) everything: bool,
    /// The keys count as used: CLIENT NO-TOUCH is off.
    pub(super) touches: bool,
    /// The connection that asks.
    pub(super) connection: u64,
    /// It is told when the keys change.
    pub(super) tracks: bool,
    /// Where this thread counts what it asked of remembered denials.
    pub(super) lane: &'a Lane,
    /// How hard pressed the server is for the batch.
    pub(super) need: Need<'a>,
}

impl<'a> Request<'a> {
    /// The word at this place; the name stands at 0. Arity has promised that it is there.
    pub(crate) fn word(&self, place: usize) -> &'a [u8] {
        self.args.get(place).unwrap_or_default()
    }

    /// The plan of a command that asks for nothing but a key.
    pub(super) fn key(&self) -> Result<KeyRef<'a>, Error> {
        Ok(self.keys[0])
    }

    /// The plan of a command that asks for nothing but keys.
    pub(super) fn all_keys(&self) -> Result<KeyList<'a>, Error> {
        Ok(self.keys.clone())
    }

    /// The plan of a command that asks for nothing.
    pub(super) fn nothing(_: &Self) -> Result<(), Error> {
        Ok(())
    }

    /// The word at this place as a string to store.
    pub(super) fn value(&self, place: usize) -> Result<Value, Error> {
        let bytes = self.word(place);
        self.check_string_length(bytes.len())?;
        Ok(Value::string(bytes))
    }

    pub(super) fn check_string_length(&self, len: usize) -> Result<(), Error> {
        if len > self.service.runtime().value_bytes_max() {
            Err(Error::StringTooLong)
        } else {
            Ok(())
        }
    }

    /// What decisions by policy are told to.
    pub(super) fn witness(&self) -> Witness<'a> {
        Witness { service: self.service, lane: self.lane, need: self.need }
    }

    fn scope(&self) -> Scope<'_> {
        if self.everything { Scope::All } else { Scope::Keys(&self.keys) }
    }
}

/// Where a command meets state: it locks for itself, or runs inside a transaction.
pub(crate) enum Ground<'g, 'e> {
    Lock(&'g Engine),
    /// Of EXEC, a script, or a test: the shards are locked already.
    Within(&'g mut View<'e>),
}

impl Ground<'_, '_> {
    /// Runs `f` over the shards of the request's keys, in its database.
    pub(crate) fn transact<R>(
        self,
        request: &Request<'_>,
        f: impl FnOnce(&mut View<'_>) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let f = |view: &mut View<'_>| {
            view.touch_keys(request.touches);
            view.act_for(request.connection);
            if request.tracks {
                request.keys.iter().for_each(|key| view.track(*key, request.connection));
            }
            f(view)
        };
        match self {
            Self::Lock(engine) => {
                engine.try_transact(request.scope(), request.db, request.now, f)?
            }
            Self::Within(view) => {
                view.select(request.db);
                f(view)
            }
        }
    }

    /// Runs `f` over other shards than those of the request's keys.
    pub(crate) fn transact_over<R>(
        &mut self,
        scope: Scope<'_>,
        request: &Request<'_>,
        f: impl FnOnce(&mut View<'_>) -> R,
    ) -> Result<R, Error> {
        match self {
            Self::Lock(engine) => Ok(engine.try_transact(scope, request.db, request.now, f)?),
            Self::Within(view) => {
                view.select(request.db);
                Ok(f(view))
            }
        }
    }
}
