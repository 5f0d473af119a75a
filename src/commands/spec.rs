//! What a command is: one row of data, from which everything about it follows.
//!
//! The same row feeds dispatch, the gate, the choice of locks, COMMAND and its subcommands, the
//! statistics, the metrics and the list in the README. A command is added in its family's file:
//! the handler, and above it its [`Spec`].

use std::ops::BitOr;

use smallvec::SmallVec;

use super::call::{Answer, Call};
use super::request::{Ground, Request};
use super::runner::Runner;
use super::session::Outcome;
use super::waiting::Plan;
use crate::engine::KeyRef;
use crate::protocol::{Args, Error, Reply, parse_u64};

/// One command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spec {
    /// Upper case, as it is listed.
    pub(crate) name: &'static str,
    pub(crate) arity: Arity,
    pub(crate) keys: Keys,
    pub(crate) flags: Flags,
    pub(crate) group: Group,
    /// The version of Redis, or for our own commands of Tollgate, that first had it.
    pub(crate) since: &'static str,
    pub(crate) complexity: &'static str,
    /// One sentence for COMMAND DOCS and the README.
    pub(crate) summary: &'static str,
    pub(crate) subcommands: &'static [Sub],
    pub(crate) handler: Handler,
}

/// One subcommand: dispatched by its parent's handler, described here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sub {
    /// Upper case, without the parent's name.
    pub(crate) name: &'static str,
    /// Counts the parent's name too.
    pub(crate) arity: Arity,
    pub(crate) keys: Keys,
    pub(crate) summary: &'static str,
    pub(crate) handler: Handler,
}

impl Spec {
    /// A family's row to begin with: each command says what is different about it, and its
    /// handler, which is [`Handler::Parent`] until then.
    pub(crate) const fn of(
        group: Group,
        name: &'static str,
        arity: Arity,
        keys: Keys,
        flags: Flags,
    ) -> Self {
        Self {
            name,
            arity,
            keys,
            flags,
            group,
            since: "1.0.0",
            complexity: "O(1)",
            summary: "",
            subcommands: &[],
            handler: Handler::Parent,
        }
    }
}

/// How a command is carried out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Handler {
    /// Needs no key: answers from the session, the service and the host.
    Plain(Plain),
    /// Reads its arguments first (`plan`), then runs inside a transaction over its keys.
    Keyed(Keyed),
    /// The same, and waits where there is nothing to take.
    Blocking(Blocking),
    /// Carries out other commands.
    Nested(Nested),
    /// Looks its second word up among the subcommands.
    Parent,
}

/// A handler that needs no key.
pub(crate) type Plain = fn(&mut Call<'_, '_>, &mut Reply<'_>) -> Result<Outcome, Error>;

impl Sub {
    /// A subcommand that needs no key.
    pub(crate) const fn plain(
        name: &'static str,
        arity: Arity,
        summary: &'static str,
        handler: Plain,
    ) -> Self {
        Self { name, arity, keys: Keys::None, summary, handler: Handler::Plain(handler) }
    }
}

/// Carries out a command with keys.
pub(crate) type Keyed = fn(&Request<'_>, Ground<'_, '_>, &mut Reply<'_>) -> Result<(), Error>;

/// Says what a command that waits wishes for.
pub(crate) type Blocking = fn(&Request<'_>) -> Result<Plan, Error>;

/// Carries out a command that carries out others.
pub(crate) type Nested = fn(&mut Runner<'_>, Args<'_>, Ground<'_, '_>, &mut Reply<'_>) -> Answer;

/// Joins a command's `plan` (arguments to a typed request, before any lock) and its `run` (the
/// typed request inside the transaction) into a [`Handler`].
macro_rules! keyed {
    ($plan:expr, $run:expr) => {
        $crate::commands::spec::Handler::Keyed(|request, ground, reply| {
            let plan: Result<_, $crate::protocol::Error> = $plan(request);
            let plan = plan?;
            ground.transact(request, |view| $run(view, plan, reply))
        })
    };
}
pub(super) use keyed;

/// How many words a request has, the command's name included.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Arity {
    min: usize,
    max: usize,
}

impl Arity {
    pub(crate) const fn exactly(words: usize) -> Self {
        Self { min: words, max: words }
    }

    pub(crate) const fn at_least(words: usize) -> Self {
        Self { min: words, max: usize::MAX }
    }

    pub(crate) const fn between(min: usize, max: usize) -> Self {
        Self { min, max }
    }

    pub(crate) const fn allows(self, words: usize) -> bool {
        self.min <= words && words <= self.max
    }

    /// As COMMAND tells it: negative for a minimum.
    pub(crate) const fn as_redis(self) -> i64 {
        if self.min == self.max { self.min as i64 } else { -(self.min as i64) }
    }
}

/// Where in the request its keys stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Keys {
    None,
    /// Words `first` to `last` (negative: from the end), each `step`th one.
    Range {
        first: usize,
        last: i32,
        step: usize,
    },
    /// As many as the word at `count` says, behind it; and before them all, where there is one,
    /// the word at `first`.
    Counted {
        count: usize,
        first: Option<usize>,
    },
    /// No key by name, but the whole keyspace.
    All,
}

impl Keys {
    /// One key, the first argument.
    pub(crate) const ONE: Self = Self::Range { first: 1, last: 1, step: 1 };
    /// Every argument from the first on.
    pub(crate) const REST: Self = Self::Range { first: 1, last: -1, step: 1 };

    /// Numbers of the words that are keys. A count that is none, or that is larger than what
    /// follows, counts no keys: the command says what is wrong with it.
    pub(crate) fn places(self, args: Args<'_>) -> impl Iterator<Item = usize> {
        let words = args.len();
        let mut before = None;
        let (first, last, step) = match self {
            Self::None | Self::All => (1, 0, 1),
            Self::Counted { count, first } => {
                before = first;
                let keys = args.get(count).and_then(parse_u64).unwrap_or(0);
                let keys = usize::try_from(keys).unwrap_or(usize::MAX);
                let fits = keys <= words.saturating_sub(count + 1);
                (count + 1, if fits { count + keys } else { 0 }, 1)
            }
            Self::Range { first, last, step } => {
                let last = match usize::try_from(last) {
                    Ok(last) => last,
                    Err(_) => words.saturating_sub(last.unsigned_abs() as usize),
                };
                (first, last, step)
            }
        };
        before
            .into_iter()
            .chain((first..=last).step_by(step))
            .take_while(move |place| *place < words)
    }
}

/// The keys of one request, hashed once. Nearly always one.
pub(crate) type KeyList<'a> = SmallVec<[KeyRef<'a>; 1]>;

/// Redis's command flags, and what the gate needs to know besides.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Flags(u32);

impl Flags {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const WRITE: Self = Self(1);
    pub(crate) const READONLY: Self = Self(1 << 1);
    pub(crate) const DENYOOM: Self = Self(1 << 2);
    pub(crate) const ADMIN: Self = Self(1 << 3);
    pub(crate) const FAST: Self = Self(1 << 4);
    pub(crate) const NOSCRIPT: Self = Self(1 << 5);
    pub(crate) const LOADING: Self = Self(1 << 6);
    pub(crate) const STALE: Self = Self(1 << 7);
    pub(crate) const NO_AUTH: Self = Self(1 << 8);
    pub(crate) const ALLOW_BUSY: Self = Self(1 << 9);
    /// May take long: timed by itself, and the clock is read again after it.
    pub(crate) const SLOW: Self = Self(1 << 10);
    pub(crate) const NO_MULTI: Self = Self(1 << 11);
    pub(crate) const NO_ASYNC_LOADING: Self = Self(1 << 12);
    pub(crate) const BLOCKING: Self = Self(1 << 13);
    /// May store a new key, and is not refused at the memory bound if it need not: room is made
    /// first, and only a key that has none is refused.
    pub(crate) const MAKES_KEYS: Self = Self(1 << 14);
    /// Where the keys stand depends on the request. Told of commands; no row says it.
    pub(crate) const MOVABLE_KEYS: Self = Self(1 << 15);
    /// Carried out at once also after MULTI, instead of being queued.
    pub(crate) const AT_ONCE: Self = Self(1 << 16);
    /// The commands that it carries out are noted in the slow log one by one.
    pub(crate) const SKIP_SLOWLOG: Self = Self(1 << 17);
    /// The commands that it carries out are shown to MONITOR, not it.
    pub(crate) const SKIP_MONITOR: Self = Self(1 << 18);
    /// May be asked without any key.
    pub(crate) const NO_MANDATORY_KEYS: Self = Self(1 << 19);
    pub(crate) const PUBSUB: Self = Self(1 << 20);
    /// A RESP2 connection that subscribes to something may still give it.
    pub(crate) const SUBSCRIBER: Self = Self(1 << 21);

    /// Those that Redis has, with its names and in its order.
    const NAMED: [(Self, &'static str); 18] = [
        (Self::WRITE, "write"),
        (Self::READONLY, "readonly"),
        (Self::DENYOOM, "denyoom"),
        (Self::ADMIN, "admin"),
        (Self::PUBSUB, "pubsub"),
        (Self::NOSCRIPT, "noscript"),
        (Self::BLOCKING, "blocking"),
        (Self::LOADING, "loading"),
        (Self::STALE, "stale"),
        (Self::SKIP_MONITOR, "skip_monitor"),
        (Self::SKIP_SLOWLOG, "skip_slowlog"),
        (Self::FAST, "fast"),
        (Self::NO_AUTH, "no_auth"),
        (Self::NO_MANDATORY_KEYS, "no_mandatory_keys"),
        (Self::NO_ASYNC_LOADING, "no_async_loading"),
        (Self::NO_MULTI, "no_multi"),
        (Self::MOVABLE_KEYS, "movablekeys"),
        (Self::ALLOW_BUSY, "allow_busy"),
    ];

    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMED.into_iter().filter(move |(flag, _)| self.has(*flag)).map(|(_, name)| name)
    }
}

impl BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.and(other)
    }
}

/// The family a command is listed under; the names are those of COMMAND DOCS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Group {
    RateLimit,
    String,
    Hash,
    List,
    Set,
    SortedSet,
    Generic,
    Connection,
    Server,
    Cluster,
    Transactions,
    PubSub,
    Scripting,
}

impl Group {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::RateLimit => "rate-limit",
            Self::String => "string",
            Self::Hash => "hash",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Transactions => "transactions",
            Self::PubSub => "pubsub",
            Self::Scripting => "scripting",
            Self::Generic => "generic",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Cluster => "cluster",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::OwnedArgs;

    fn places(keys: Keys, words: usize) -> Vec<usize> {
        places_in(keys, &vec!["w"; words])
    }

    fn places_in(keys: Keys, words: &[&str]) -> Vec<usize> {
        keys.places(OwnedArgs::of(words).as_args()).collect()
    }

    #[test]
    fn counted_keys_stand_behind_their_count() {
        let eval = Keys::Counted { count: 2, first: None };
        assert_eq!(places_in(eval, &["EVAL", "s", "2", "a", "b", "c"]), [3, 4]);
        assert_eq!(places_in(eval, &["EVAL", "s", "0", "a"]), Vec::<usize>::new());
        let store = Keys::Counted { count: 2, first: Some(1) };
        assert_eq!(places_in(store, &["ZUNIONSTORE", "d", "1", "a", "WEIGHTS", "1"]), [1, 3]);
    }

    #[test]
    fn count_that_is_none_or_too_large_counts_no_keys() {
        let eval = Keys::Counted { count: 2, first: None };
        for count in ["-1", "x", "3", "18446744073709551615"] {
            assert_eq!(places_in(eval, &["EVAL", "s", count, "a", "b"]), Vec::<usize>::new());
        }
    }

    #[test]
    fn key_places_follow_the_range() {
        assert_eq!(places(Keys::ONE, 5), [1]);
        assert_eq!(places(Keys::REST, 4), [1, 2, 3]);
        assert_eq!(places(Keys::Range { first: 1, last: -1, step: 2 }, 5), [1, 3]);
        assert_eq!(places(Keys::Range { first: 1, last: 2, step: 1 }, 3), [1, 2]);
        assert_eq!(places(Keys::ONE, 1), Vec::<usize>::new());
        assert_eq!(places(Keys::None, 3), Vec::<usize>::new());
    }

    #[test]
    fn arity_reads_as_redis_tells_it() {
        assert_eq!(Arity::exactly(2).as_redis(), 2);
        assert_eq!(Arity::at_least(3).as_redis(), -3);
        assert_eq!(Arity::between(1, 2).as_redis(), -1);
        assert!(Arity::between(1, 2).allows(2) && !Arity::between(1, 2).allows(3));
    }
}
