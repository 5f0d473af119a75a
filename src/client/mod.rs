//! Asks a server from a caller's process: pipelines by itself, remembers denials, never hangs.
//!
//! A [`Client`] is cheap to clone and made for many tasks at once: what they ask at the same
//! time travels in one pipeline over one connection. A denial is remembered for as long as it
//! surely stands, so a key over its limit costs no round trip. When the server is away, late or
//! overloaded, decisions are made as [`WithoutServer`] says, within the deadline.
//!
//! A call that ran into its deadline, or lost its connection, may have been carried out: nothing
//! is sent twice. Change what is in force by this client, and it forgets at once what it
//! remembered; what others change is seen after [`MemoryOptions::believed_max`] at the latest.
//!
//! ```no_run
//! use tollgate::client::{Client, Limit, Options};
//! use tollgate::limit::{Algorithm, Quota};
//! use tollgate::time::Duration;
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::start(Options::at("127.0.0.1:6379"))?;
//! let quota = Quota::new(Algorithm::SlidingLog, 100, Duration::from_secs(60))?;
//! if client.limit(&Limit::new("user:42", quota)).await?.is_allowed() {
//!     // Do the work.
//! }
//! # Ok(())
//! # }
//! ```

mod answer;
mod dice;
mod error;
mod held;
mod link;
mod memory;
mod options;
mod pipeline;
mod request;
mod stats;

pub use crate::load::Tier;
pub use answer::{Answer, Left, Source};
pub use error::Error;
pub use held::{Acquired, Lease, Reservation, Reserved};
pub use options::{Login, MemoryOptions, Options, QUEUE_MAX, WithoutServer};
pub use request::{Check, Limit};
pub use stats::Stats;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use self::answer::{Details, count, limit_stands};
use self::dice::Dice;
use self::link::{Shared, State, keep};
use self::memory::Memory;
use self::pipeline::{Background, Call, Queues, Waiting};
use self::request::{Look, Told, Words};
use self::stats::Counters;
use crate::limit::{Cost, Verdict};
use crate::protocol::Answer as Reply;
use crate::time::{Clock, Duration};

/// A connection to one server, shared by all its clones. The last one that is dropped ends it.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    clock: Clock,
    calls: mpsc::Sender<Call>,
    settlements: mpsc::Sender<Call>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// Which queue a call waits in.
#[derive(Clone, Copy, Debug)]
enum Lane {
    Calls,
    Settlements,
}

/// What a decision is asked by.
#[derive(Clone, Copy)]
enum Question<'q> {
    Limit(&'q Limit<'q>),
    Check(&'q Check<'q>),
}

impl Client {
    /// Begins to connect, in a task of the tokio runtime that this is called in, which needs its
    /// drivers of time and of I/O. Fails only where there is no runtime.
    pub fn start(options: Options) -> Result<Self, Error> {
        Self::start_with_clock(options, Clock::system())
    }

    /// The same under another clock, by which denials are remembered: for tests.
    pub fn start_with_clock(options: Options, clock: Clock) -> Result<Self, Error> {
        let runtime =
            Handle::try_current().map_err(|_| Error::not_connected("there is no tokio runtime"))?;
        let queue_max = options.queue_max.get().min(QUEUE_MAX);
        let (calls, calls_waiting) = mpsc::channel(queue_max);
        let (settlements, settlements_waiting) = mpsc::channel(queue_max);
        let shared = Arc::new(Shared {
            counters: Counters::default(),
            memory: options.memory.as_ref().map(Memory::new),
            dice: Dice::new(),
            state: watch::Sender::new(State::Connecting { last: None }),
            options,
        });
        let queues = Queues { calls: calls_waiting, settlements: settlements_waiting };
        let task = runtime.spawn(keep(Arc::clone(&shared), queues));
        let task = Arc::new(Mutex::new(Some(task)));
        Ok(Self { shared, clock, calls, settlements, task })
    }

    /// Returns once the server has been reached; after this span, why it has not.
    pub async fn ready(&self, within: Duration) -> Result<(), Error> {
        let mut state = self.shared.state.subscribe();
        let connected = state.wait_for(|state| matches!(state, State::Connected));
        match timeout(within.as_std(), connected).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) => Err(Error::Closed),
            Err(_) => Err(self.shared.failure()),
        }
    }

    /// May this pass? Spends if it may.
    pub async fn limit(&self, limit: &Limit<'_>) -> Result<Answer, Error> {
        self.decide(Question::Limit(limit)).await
    }

    /// The answer that [`limit`](Self::limit) would give; spends nothing and always asks.
    pub async fn peek_limit(&self, limit: &Limit<'_>) -> Result<Answer, Error> {
        self.look(Question::Limit(limit)).await
    }

    /// May this pass, by the tenant's policy? Spends if it may.
    pub async fn check(&self, check: &Check<'_>) -> Result<Answer, Error> {
        self.decide(Question::Check(check)).await
    }

    /// The answer that [`check`](Self::check) would give; spends nothing and always asks.
    pub async fn peek_check(&self, check: &Check<'_>) -> Result<Answer, Error> {
        self.look(Question::Check(check)).await
    }

    /// Gives back what was spent on a key, never above its limit; how much that was.
    pub async fn refund_key(
        &self,
        key: &(impl AsRef<[u8]> + ?Sized),
        cost: Cost,
    ) -> Result<u64, Error> {
        let key = key.as_ref();
        let mut words = Words::of(&[b"RL.REFUND", b"KEY", key]);
        words.number(cost.0);
        self.give_back(words, vec![key.into()]).await
    }

    /// Gives back what a check has spent; how much that was.
    pub async fn refund(&self, check: &Check<'_>) -> Result<u64, Error> {
        let words = check.words(&[b"RL.REFUND", b"TENANT"]);
        self.give_back(words, vec![check.tenant.into()]).await
    }

    /// Forgets what was spent on the keys; how many had something to forget.
    pub async fn reset_keys<Key: AsRef<[u8]>>(&self, keys: &[Key]) -> Result<u64, Error> {
        if keys.is_empty() {
            return Ok(0);
        }
        let mut words = Words::of(&[b"RL.RESET", b"KEY"]);
        for key in keys {
            words.push(key.as_ref());
        }
        self.give_back(words, keys.iter().map(|key| key.as_ref().into()).collect()).await
    }

    /// Forgets what was spent by a tenant, or only on these of its endpoints.
    pub async fn reset_tenant<Endpoint: AsRef<[u8]>>(
        &self,
        tenant: &(impl AsRef<[u8]> + ?Sized),
        endpoints: &[Endpoint],
    ) -> Result<u64, Error> {
        let tenant = tenant.as_ref();
        let mut words = Words::of(&[b"RL.RESET", b"TENANT", tenant]);
        for endpoint in endpoints {
            words.push(endpoint.as_ref());
        }
        self.give_back(words, vec![tenant.into()]).await
    }

    pub fn stats(&self) -> Stats {
        self.shared.counters.read(self.shared.memory.as_ref().map_or(0, Memory::len))
    }

    /// Sends what is still to be given back and ends the connection. What other clones ask from
    /// then on is answered without a server.
    pub async fn close(self) {
        // Its answer comes after those of all that was given back before it.
        let ping = Words::of(&[b"PING"]).finish(Look::Spend);
        // Whatever comes of it: the connection ends.
        drop(self.ask(Lane::Settlements, ping, |_, _| Ok(())).await);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // It has been aborted, which is an error here.
            drop(task.await);
        }
    }

    async fn decide(&self, question: Question<'_>) -> Result<Answer, Error> {
        let Some(memory) = &self.shared.memory else { return self.look_or_spend(question).await };
        let now = self.clock.now();
        let request = question.request(Look::Spend, Told::InDetail);
        if let Some(recalled) = memory.recall(&request, now) {
            self.shared.counters.recalled();
            if recalled.refresh {
                self.refresh(question, request, memory);
            }
            return Ok(recalled.answer);
        }
        let learn = self.lesson(question, memory);
        let read = |request: Vec<u8>, reply: Reply<'_>| {
            let answer = Answer::read(&reply)?;
            learn(request, &answer, &reply);
            Ok(answer)
        };
        self.or_without_server(self.ask(Lane::Calls, request, read).await)
    }

    async fn look_or_spend(&self, question: Question<'_>) -> Result<Answer, Error> {
        self.plainly(question.request(Look::Spend, Told::Briefly)).await
    }

    async fn look(&self, question: Question<'_>) -> Result<Answer, Error> {
        self.plainly(question.request(Look::Peek, Told::Briefly)).await
    }

    /// Asks for a decision of which nothing is remembered.
    async fn plainly(&self, request: Vec<u8>) -> Result<Answer, Error> {
        let read = |_: Vec<u8>, reply: Reply<'_>| Answer::read(&reply);
        self.or_without_server(self.ask(Lane::Calls, request, read).await)
    }

    /// Asks in the background whether a denial still stands.
    fn refresh(&self, question: Question<'_>, request: Vec<u8>, memory: &Memory) {
        let learn = self.lesson(question, memory);
        let read = move |reply: Reply<'_>| {
            // An error teaches nothing: the denial ends soon by itself.
            if let Ok(answer) = Answer::read(&reply) {
                learn(request, &answer, &reply);
            }
        };
        let peek = question.request(Look::Peek, Told::InDetail);
        // A full queue is for those who wait; the denial ends soon by itself.
        if self.calls.try_send(Call { request: peek, done: Box::new(Background(read)) }).is_ok() {
            self.shared.counters.refreshed();
        }
    }

    /// How to take in the answer to a question that is about to be asked.
    fn lesson(
        &self,
        question: Question<'_>,
        memory: &Memory,
    ) -> impl FnOnce(Vec<u8>, &Answer, &Reply<'_>) + Send + 'static {
        let ticket = memory.ticket(question.subject(), self.clock.now());
        let tenant: Option<Box<[u8]>> = question.tenant().map(Into::into);
        let shared = Arc::clone(&self.shared);
        move |request, answer, reply| {
            let Some(memory) = &shared.memory else { return };
            let stands = match tenant {
                None => limit_stands(answer),
                Some(tenant) => {
                    let details = Details::read(reply);
                    if let Some(revision) = details.revision {
                        memory.see(&tenant, revision);
                    }
                    details.frozen
                }
            };
            memory.learn(request.into(), ticket, answer, stands);
        }
    }

    /// What makes less of what was spent is forgotten before it is sent, for who asks next, and
    /// after it was answered, for who asked meanwhile.
    async fn give_back(&self, words: Words, subjects: Vec<Box<[u8]>>) -> Result<u64, Error> {
        self.forget(&subjects);
        let client = self.clone();
        let read = move |_: Vec<u8>, reply: Reply<'_>| {
            client.forget(&subjects);
            count(&reply)
        };
        self.ask(Lane::Settlements, words.finish(Look::Spend), read).await
    }

    fn forget(&self, subjects: &[Box<[u8]>]) {
        for subject in subjects {
            self.shared.forget(subject);
        }
    }

    fn or_without_server(&self, result: Result<Answer, Error>) -> Result<Answer, Error> {
        match result {
            Err(error) if error.is_outage() => {
                self.shared.counters.without_server();
                Ok(self.without_server(error))
            }
            result => result,
        }
    }

    fn without_server(&self, error: Error) -> Answer {
        let verdict = match self.shared.options.without_server {
            WithoutServer::Open => Verdict::Allow,
            WithoutServer::Closed { retry_after } => {
                let most = Duration::from_micros(retry_after.as_micros().saturating_mul(2));
                Verdict::Deny { retry_after: Some(self.shared.dice.between(retry_after, most)) }
            }
        };
        let source = Source::WithoutServer(error);
        Answer { verdict, quota: None, reset_after: Duration::ZERO, source }
    }

    /// Asks, and waits for what `read` makes of the reply, up to the deadline.
    async fn ask<T: Send + 'static>(
        &self,
        lane: Lane,
        request: Vec<u8>,
        read: impl FnOnce(Vec<u8>, Reply<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        self.answered(self.send(lane, request, read)?).await
    }

    /// Queues a call; from then on it is sent, or what it waits for is dropped.
    fn send<T: Send + 'static>(
        &self,
        lane: Lane,
        request: Vec<u8>,
        read: impl FnOnce(Vec<u8>, Reply<'_>) -> Result<T, Error> + Send + 'static,
    ) -> Result<oneshot::Receiver<Result<T, Error>>, Error> {
        let (sender, receiver) = oneshot::channel();
        let call = Call { request, done: Box::new(Waiting { sender, read }) };
        let queue = match lane {
            Lane::Calls => &self.calls,
            Lane::Settlements => &self.settlements,
        };
        match queue.try_send(call) {
            Ok(()) => Ok(receiver),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Error::Closed),
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.shared.counters.failed(&Error::QueueFull);
                Err(Error::QueueFull)
            }
        }
    }

    async fn answered<T>(&self, receiver: oneshot::Receiver<Result<T, Error>>) -> Result<T, Error> {
        match timeout(self.shared.options.deadline.as_std(), receiver).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) if self.calls.is_closed() => Err(Error::Closed),
            Ok(Err(_)) => Err(self.shared.failure()),
            Err(_) => {
                self.shared.counters.failed(&Error::Late);
                Err(Error::Late)
            }
        }
    }
}

impl Question<'_> {
    /// What its answer depends on, as a client can know it.
    fn subject(&self) -> &[u8] {
        match self {
            Self::Limit(limit) => limit.key,
            Self::Check(check) => check.tenant,
        }
    }

    fn tenant(&self) -> Option<&[u8]> {
        match self {
            Self::Limit(_) => None,
            Self::Check(check) => Some(check.tenant),
        }
    }

    fn request(&self, look: Look, told: Told) -> Vec<u8> {
        match self {
            Self::Limit(limit) => limit.request(look),
            Self::Check(check) => check.request(look, told),
        }
    }
}
