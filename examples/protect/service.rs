//! The toy service: two workers behind a socket, each request 2 ms of work, and a load manager.
//!
//! A request is a line, `id tier user`; its answer is `id ok`, or `id overloaded` with the
//! milliseconds after which to ask again. Answers come in the order of the work, not of the
//! requests. The work is a wait, as for a disk: the service's capacity is then the same on a
//! slow machine as on a fast one.
//!
//! What `tollgate::load` needs is in four places: `Service::start` makes it, `read` classifies
//! and asks, `work` begins and ends, `look_around` reports a signal and lets it look.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use tollgate::load::{
    Cohort, Declaration, Discipline, Full, Kind, LimitRange, Manager, Options, Outcome, Permit,
    Popped, Queue, Readings, Reason, Rejection, RejectorKind, Reported, Request, SAMPLE_PERIOD,
    Stats, Tier,
};
use tollgate::time::{Clock, Duration};

/// Requests that are worked on at once.
pub(crate) const WORKERS: u32 = 2;

/// How long each takes.
pub(crate) const WORK: Duration = Duration::from_millis(2);

/// What each holds from when it was read until it is answered.
const STATE_BYTES: usize = 16 * 1024;

/// Requests that may wait where nothing else protects the service: beyond them it would be the
/// machine that ends the comparison.
const WAITING_MAX: usize = 20_000;

/// Requests that may wait beside a load manager: two hundred milliseconds of work.
const WAITING_MAX_PROTECTED: usize = 200;

/// Bytes held by requests that count as full: the signal that only this service knows.
const HELD_BYTES_FULL: f64 = 64e6;

/// A request that was admitted.
struct Job {
    permit: Permit,
    asked: Asked,
}

/// Whom to answer, and what is held until then.
struct Asked {
    id: u64,
    answers: Answers,
    /// What a real service would have parsed and fetched by now.
    state: Vec<u8>,
}

type Answers = Arc<Mutex<TcpStream>>;

struct Shared {
    clock: Clock,
    manager: Manager,
    queue: Mutex<Queue<Job>>,
    /// A job was put into the queue, or it is over.
    filled: Condvar,
    held_bytes: AtomicU64,
    stopped: AtomicBool,
}

/// The service, running.
pub(crate) struct Service {
    shared: Arc<Shared>,
    pub(crate) address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

/// Whether a load manager decides, or nothing does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protection {
    On,
    Off,
}

fn options(protection: Protection) -> Options {
    let held = Declaration {
        name: "held_bytes".to_owned(),
        kind: Kind::Systemic,
        full: HELD_BYTES_FULL,
        expiry: Duration::from_secs(2),
    };
    let common = Options {
        in_flight: LimitRange::fixed(WORKERS),
        signals: vec![held],
        ..Options::default()
    };
    let hour = Duration::from_secs(3_600);
    match protection {
        Protection::On => Options {
            timeout_min: Duration::from_millis(50),
            timeout_max: Duration::from_millis(50),
            ..common
        },
        Protection::Off => Options {
            rejector: RejectorKind::Off,
            timeout_min: hour,
            timeout_max: hour,
            waiting_max: WAITING_MAX as u64,
            ..common
        },
    }
}

impl Service {
    pub(crate) fn start(protection: Protection) -> Result<Self, Box<dyn std::error::Error>> {
        let clock = Clock::system();
        let options = options(protection);
        let (discipline, waiting_max) = match protection {
            Protection::On => (Discipline::Priority, WAITING_MAX_PROTECTED),
            Protection::Off => (Discipline::Fifo, WAITING_MAX),
        };
        let queue = Queue::new(discipline, waiting_max, options.timeout_max, clock.now());
        let manager = Manager::new(options, clock.now())?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            clock,
            manager,
            queue: Mutex::new(queue),
            filled: Condvar::new(),
            held_bytes: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
        });
        let start = |run: fn(&Arc<Shared>)| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || run(&shared))
        };
        let mut threads: Vec<_> = (0..WORKERS).map(|_| start(|shared| work(shared))).collect();
        threads.push(start(|shared| look_around(shared)));
        let accepting = Arc::clone(&shared);
        threads.push(thread::spawn(move || accept(&accepting, &listener)));
        Ok(Self { shared, address, threads })
    }

    /// Stops, and tells what the load manager has seen.
    pub(crate) fn stop(self) -> Stats {
        self.shared.stopped.store(true, Ordering::Relaxed);
        self.shared.filled.notify_all();
        // Who accepts is waiting for somebody: this is the last one.
        drop(TcpStream::connect(self.address));
        for thread in self.threads {
            thread.thread().unpark();
            thread.join().expect("no thread of the service panics");
        }
        self.shared.manager.stats()
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue<Job>> {
        self.queue.lock().expect("no thread of the service panics")
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Answers, and lets go of what was held.
    fn answer(&self, asked: Asked, text: &str) {
        let Asked { id, answers, state } = asked;
        self.held_bytes.fetch_sub(state.len() as u64, Ordering::Relaxed);
        write_answer(&answers, id, text);
    }

    fn refuse(&self, job: Job, reason: Reason) {
        let text = overloaded(job.permit.reject(reason));
        self.answer(job.asked, &text);
    }
}

fn overloaded(rejection: Rejection) -> String {
    format!("overloaded {}", rejection.retry_after.as_millis_ceil())
}

/// Who has gone need not be answered.
fn write_answer(answers: &Answers, id: u64, text: &str) {
    let line = format!("{id} {text}\n");
    let mut stream = answers.lock().expect("no thread of the service panics");
    drop(stream.write_all(line.as_bytes()));
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    let mut readers = Vec::new();
    for stream in listener.incoming() {
        if shared.is_stopped() {
            break;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        readers.push(thread::spawn(move || read(&shared, stream)));
    }
    for reader in readers {
        reader.join().expect("no thread of the service panics");
    }
}

/// Classifies each request and asks the load manager before anything is done for it.
fn read(shared: &Shared, stream: TcpStream) {
    let Ok(reading) = stream.try_clone() else { return };
    let answers = Arc::new(Mutex::new(stream));
    for line in BufReader::new(reading).lines() {
        let Ok(line) = line else { return };
        let Some((id, tier, user)) = parse(&line) else { return };
        let now = shared.clock.now();
        let request =
            Request::new(tier).cohort(Cohort::of_user(user, now)).bytes(STATE_BYTES as u64);
        // Any number that looks random will do for dice; a service would ask its own source.
        let dice = (id.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        match shared.manager.admit(&request, now, dice) {
            Err(rejection) => write_answer(&answers, id, &overloaded(rejection)),
            Ok(permit) => {
                let state = vec![1; STATE_BYTES];
                shared.held_bytes.fetch_add(STATE_BYTES as u64, Ordering::Relaxed);
                let asked = Asked { id, answers: Arc::clone(&answers), state };
                let job = Job { permit, asked };
                let full = shared.queue().push(job, request.priority(), now);
                shared.filled.notify_one();
                if let Err(Full::Newcomer(job) | Full::Displaced(job)) = full {
                    shared.refuse(job, Reason::QueueFull);
                }
            }
        }
    }
}

fn parse(line: &str) -> Option<(u64, Tier, u64)> {
    let mut words = line.split(' ');
    let id = words.next()?.parse().ok()?;
    let tier = Tier::parse(words.next()?.as_bytes())?;
    Some((id, tier, words.next()?.parse().ok()?))
}

fn work(shared: &Shared) {
    while let Some(Job { permit, asked }) = next(shared) {
        match permit.begin(shared.clock.now()) {
            Err(rejection) => shared.answer(asked, &overloaded(rejection)),
            Ok(working) => {
                wait(&shared.clock, WORK);
                shared.answer(asked, "ok");
                working.done(shared.clock.now(), Outcome::Served);
            }
        }
    }
}

/// The next job that is still wanted; none when the service has stopped.
fn next(shared: &Shared) -> Option<Job> {
    let mut queue = shared.queue();
    loop {
        if shared.is_stopped() {
            return None;
        }
        let now = shared.clock.now();
        let expired = queue.pop_expired(now);
        if let Some(job) = expired {
            drop(queue);
            shared.refuse(job, Reason::QueueTimeout);
            queue = shared.queue();
            continue;
        }
        match queue.pop(now) {
            Some(Popped::Ready(job, _)) => return Some(job),
            Some(Popped::Expired(job)) => {
                drop(queue);
                shared.refuse(job, Reason::QueueTimeout);
                queue = shared.queue();
            }
            None => queue = shared.filled.wait(queue).expect("no thread of the service panics"),
        }
    }
}

/// Every half second: what only this service knows, and then a look.
fn look_around(shared: &Shared) {
    while !shared.is_stopped() {
        thread::park_timeout(SAMPLE_PERIOD.as_std());
        let now = shared.clock.now();
        let held = shared.held_bytes.load(Ordering::Relaxed) as f64;
        let reported = Reported { name: b"held_bytes", value: held, tenant: None, ttl: None };
        shared.manager.report(reported, now).expect("it is declared, and a count is a number");
        shared.manager.tick(&Readings::default(), now);
    }
}

/// Lets time pass, whoever wakes the thread.
pub(crate) fn wait(clock: &Clock, span: Duration) {
    let end = clock.now() + span;
    loop {
        let left = end.since(clock.now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left.as_std());
    }
}
