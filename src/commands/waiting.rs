//! Commands that wait until there is something to take: how they begin, are served, and end.
//!
//! A command says what it wishes for. What is there is taken at once. Else the wish is left with
//! the keys, under their locks, so nothing is missed; the connection answers nothing more until
//! whoever fills one of the keys has served the wish, its time is over, or another connection
//! ends it. Whichever comes first decides, and writes the answer. Inside EXEC and scripts nothing
//! waits: nothing there is answered as if the time were over.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::host::Host;
use super::list_ends::{self, Popping, Shift};
use super::request::{Ground, Request};
use super::service::Service;
use super::session::{Outcome, Session};
use super::sorted;
use crate::collection::{Direction, End};
use crate::engine::{KeyRef, Scope, Served, View, Waiter};
use crate::protocol::{Args, Error, OwnedArgs, Reply, Resp, parse_f64};
use crate::time::{Duration, Timestamp};

/// What a command that waits has asked for.
pub(crate) struct Plan {
    pub(super) wish: Wish,
    /// `None` for ever.
    pub(super) timeout: Option<Duration>,
}

/// What is to be taken from the first key that has it.
#[derive(Debug)]
pub(super) enum Wish {
    /// An element: the key and it.
    Element(End),
    /// Elements: the key and an array of them.
    Elements(Popping),
    /// An element, to be put into another list.
    Move { to: Box<[u8]>, taken: End, put: End },
    /// A member: the key, it, and its score.
    Member(Direction),
    /// Members: the key, and an array of pairs.
    Members { from: Direction, count: usize },
    /// Nothing of any key: the word of whoever carries an order out.
    Word,
}

impl Wish {
    /// The keys that it may be taken from: of a move, the first one.
    fn sources<'r, 'k>(&self, keys: &'r [KeyRef<'k>]) -> &'r [KeyRef<'k>] {
        match self {
            Self::Move { .. } => keys.get(..1).unwrap_or_default(),
            _ => keys,
        }
    }

    /// Takes it and answers. False, and no answer, where the key is missing.
    fn take(
        &self,
        view: &mut View<'_>,
        key: KeyRef<'_>,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Error> {
        match self {
            Self::Element(end) => {
                let one = Popping { end: *end, count: 1 };
                list_ends::pop(view, key, one, reply, |reply, _| {
                    reply.array(2);
                    reply.bulk(key.bytes());
                })
            }
            Self::Elements(popping) => list_ends::pop_named(view, key, *popping, reply),
            Self::Move { to, taken, put } => {
                let to = view.key(to);
                let shift = Shift { from: key, to, taken: *taken, put: *put };
                list_ends::shift(view, shift, reply)
            }
            Self::Member(from) => sorted::pop_one(view, key, *from, reply),
            Self::Members { from, count } => sorted::pop_some(view, key, (*from, *count), reply),
            Self::Word => Ok(false),
        }
    }

    /// Where nothing may wait, a move answers as one that cannot.
    fn answer_nothing(&self, reply: &mut Reply<'_>) {
        match self {
            Self::Move { .. } => reply.null(),
            _ => reply.null_array(),
        }
    }

    /// Whether the value under the key is of the kind that is taken from.
    fn fits(&self, view: &mut View<'_>, key: KeyRef<'_>) -> bool {
        let kind = match self {
            Self::Element(_) | Self::Elements(_) | Self::Move { .. } => "list",
            Self::Member(_) | Self::Members { .. } => "zset",
            Self::Word => return false,
        };
        view.look(key).is_some_and(|found| found.value.type_name() == kind)
    }
}

/// Why a wait ends that nobody has served.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Unserved {
    /// Its time is over, or somebody says so.
    TimedOut,
    /// Somebody has ended it as an error.
    Unblocked,
}

/// One connection's wait.
#[derive(Debug)]
pub(crate) struct Wait {
    resp: Resp,
    db: usize,
    keys: Vec<Box<[u8]>>,
    wish: Wish,
    timeout: Option<Duration>,
    /// The request, and the time that it took to begin: noted once it has its answer.
    noted: OnceLock<(OwnedArgs, Span)>,
    /// Taken once, by whoever comes first.
    answer: Mutex<Answer>,
}

/// When something began and ended.
type Span = (Timestamp, Timestamp);

#[derive(Debug, Default)]
enum Answer {
    #[default]
    Open,
    Given(Vec<u8>),
    Taken,
}

impl Answer {
    fn is_open(&self) -> bool {
        matches!(self, Self::Open)
    }
}

impl Waiter for Wait {
    fn serve(&self, view: &mut View<'_>, key: KeyRef<'_>) -> Served {
        let mut answer = self.answer.lock();
        if !answer.is_open() {
            return Served::Done;
        }
        if !self.wish.fits(view, key) {
            return Served::Waits;
        }
        if let Wish::Move { to, .. } = &self.wish
            && !view.holds(view.key(to))
        {
            return Served::Needs(to.clone());
        }
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, self.resp);
        match self.wish.take(view, key, &mut reply) {
            Ok(true) => {}
            Ok(false) => return Served::Waits,
            Err(error) => reply.error(&error),
        }
        *answer = Answer::Given(out);
        Served::Done
    }
}

impl Wait {
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Whether there is an answer, which comes before what its serving is told others of.
    pub(crate) fn is_served(&self) -> bool {
        !self.answer.lock().is_open()
    }

    /// The request that waits, and the time it has taken so far: waiting itself counts as none.
    pub(super) fn note(&self, args: Args<'_>, span: Span) {
        self.noted.get_or_init(|| (OwnedArgs::copy(args), span));
    }

    /// Ends the wait, unless it has been served. Returns whether it has ended by this.
    pub(crate) fn end(&self, why: Unserved) -> bool {
        let mut answer = self.answer.lock();
        if !answer.is_open() {
            return false;
        }
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, self.resp);
        match why {
            Unserved::TimedOut if matches!(self.wish, Wish::Word) => {
                reply.error(&Error::text(NO_WORD));
            }
            Unserved::TimedOut => reply.null_array(),
            Unserved::Unblocked => reply.error(&Error::Unblocked),
        }
        *answer = Answer::Given(out);
        true
    }

    /// Gives the word that is waited for, unless the wait has ended.
    pub(super) fn tell(&self, word: Result<(), Error>) {
        let mut answer = self.answer.lock();
        if !answer.is_open() {
            return;
        }
        let mut out = Vec::new();
        let mut reply = Reply::new(&mut out, self.resp);
        match word {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(&error),
        }
        *answer = Answer::Given(out);
    }

    fn take_answer(&self) -> Option<Vec<u8>> {
        let mut answer = self.answer.lock();
        if answer.is_open() {
            return None;
        }
        match std::mem::replace(&mut *answer, Answer::Taken) {
            Answer::Given(answer) => Some(answer),
            Answer::Open | Answer::Taken => None,
        }
    }
}

/// Takes what is there, or begins to wait.
pub(super) fn begin(
    plan: Plan,
    request: &Request<'_>,
    ground: Ground<'_, '_>,
    session: &mut Session,
    reply: &mut Reply<'_>,
) -> Result<Outcome, Error> {
    let Plan { wish, timeout } = plan;
    let may_wait = matches!(ground, Ground::Lock(_));
    let sources = wish.sources(&request.keys);
    let wait = ground.transact(request, |view| {
        for key in sources {
            if wish.take(view, *key, reply)? {
                return Ok(None);
            }
        }
        if !may_wait {
            wish.answer_nothing(reply);
            return Ok(None);
        }
        let keys = sources.iter().map(|key| key.bytes().into()).collect();
        let (resp, db) = (reply.resp(), request.db);
        let (noted, answer) = (OnceLock::default(), Mutex::default());
        let wait = Arc::new(Wait { resp, db, keys, wish, timeout, noted, answer });
        for key in &request.keys[..wait.keys.len()] {
            view.wait(*key, session.id, Arc::clone(&wait) as Arc<dyn Waiter>);
        }
        Ok(Some(wait))
    })?;
    let Some(wait) = wait else { return Ok(Outcome::Reply) };
    Ok(block(request.service, session, wait))
}

fn block(service: &Service, session: &mut Session, wait: Arc<Wait>) -> Outcome {
    service.waits().insert(session.id, Arc::clone(&wait));
    session.wait = Some(wait);
    session.changed = true;
    Outcome::Block
}

/// How long the word of who carries an order out is waited for.
const WORD_TIMEOUT: Duration = Duration::from_secs(30);

/// What is answered without it.
const NO_WORD: &str = "no answer in time: it may be written or not";

/// For how long a word is waited for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Patience {
    /// As long as a disk or a peer may reasonably take.
    Usual,
    /// The word comes in any case.
    Forever,
}

/// Begins to wait for somebody's word, which comes by [`Wait::tell`].
pub(super) fn begin_for_word(
    service: &Service,
    session: &mut Session,
    (resp, patience): (Resp, Patience),
) -> (Outcome, Arc<Wait>) {
    let keys = Vec::new();
    let timeout = match patience {
        Patience::Usual => Some(WORD_TIMEOUT),
        Patience::Forever => None,
    };
    let (noted, answer) = (OnceLock::default(), Mutex::default());
    let wait = Wait { resp, db: session.db, keys, wish: Wish::Word, timeout, noted, answer };
    let wait = Arc::new(wait);
    (block(service, session, Arc::clone(&wait)), wait)
}

impl Service {
    /// The answer to what a connection waits for, once there is one: it waits no longer. Where
    /// CLIENT REPLY says so, nothing is to be sent.
    pub(crate) fn waited(
        &self,
        session: &mut Session,
        host: &dyn Host,
        now: Timestamp,
    ) -> Option<Vec<u8>> {
        let wait = session.wait.clone()?;
        let answer = wait.take_answer()?;
        self.wait_no_longer(session, now);
        if let Some((words, span)) = wait.noted.get() {
            self.note_duration(session, host, words.as_args(), *span);
        }
        let silent = std::mem::take(&mut session.waits_silently);
        Some(if silent { Vec::new() } else { answer })
    }

    /// Ends a connection's wait, if it waits: nobody is to serve it any more.
    pub(super) fn wait_no_longer(&self, session: &mut Session, now: Timestamp) {
        let Some(wait) = session.wait.take() else { return };
        session.changed = true;
        // What was served already is lost with its connection, as in Redis.
        wait.end(Unserved::TimedOut);
        self.waits().remove(&session.id);
        self.unwait(wait, now);
    }

    /// Takes a wait that has ended away from its keys; later, where a script holds them.
    fn unwait(&self, wait: Arc<Wait>, now: Timestamp) {
        let waiter = Arc::clone(&wait) as Arc<dyn Waiter>;
        for key in &wait.keys {
            let key = self.engine().key(key);
            let done = self.engine().attempt(Scope::Keys(&[key]), wait.db, now, |view| {
                view.wait_no_longer(key, &waiter);
            });
            if done.is_err() {
                self.unwaited().lock().push(wait);
                return;
            }
        }
    }

    /// Takes away what had to be left.
    pub(super) fn unwait_rest(&self, now: Timestamp) {
        let rest = std::mem::take(&mut *self.unwaited().lock());
        for wait in rest {
            self.unwait(wait, now);
        }
    }
}

/// A span in seconds, fractions too; zero is for ever.
pub(super) fn read_timeout(word: &[u8]) -> Result<Option<Duration>, Error> {
    let wrong = || Error::text("timeout is not a float or out of range");
    let seconds = parse_f64(word).ok_or_else(wrong)?;
    if seconds < 0.0 {
        return Err(Error::text("timeout is negative"));
    }
    let ms = (seconds * 1_000.0).ceil();
    if ms >= i64::MAX as f64 {
        return Err(Error::text("timeout is out of range"));
    }
    Ok((ms > 0.0).then(|| Duration::from_millis(ms as u64)))
}
