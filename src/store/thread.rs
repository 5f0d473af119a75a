//! The thread of the store: how it begins, what wakes it, and how it ends.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration as Span;

use tracing::{error, info};

use super::durability::{Turn, Turns};
use super::error::Error;
use super::folder::Folder;
use super::keeper::{Ground, Keeper};
use super::options::{JournalMode, Options};
use super::recovery::{Recovered, recover};
use super::status::Status;
use crate::commands::{LastSave, SaveAnswer, SaveOrder, SaveRefusal, Service, StoreFacts};
use crate::time::{Clock, Duration, Timestamp};

/// How often what has changed goes to the disk: with the time that this takes, and with what a
/// busy machine adds, a crash loses less than a second.
const TICK_EVERY: Duration = Duration::from_millis(500);

/// How long a snapshot that nobody waits for rests between two slices: it takes about a tenth of
/// one core.
const REST: Span = Span::from_millis(8);

/// Orders that wait to be read: one, and those who are told to come again.
const ORDERS_MAX: usize = 16;

/// Where the kernel names the boot of the machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Whom the store works for.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) service: Arc<Service>,
    pub(crate) clock: Clock,
}

enum Order {
    Save(SaveOrder, SaveAnswer),
    /// Somebody has asked for a turn.
    Wake,
    /// With a snapshot, or with nothing more than what is journaled anyway.
    Stop {
        snapshot: bool,
    },
}

/// By which snapshots are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Saver {
    orders: SyncSender<Order>,
    status: Status,
    /// Where replies wait for the disk.
    turns: Option<Turns>,
}

impl Saver {
    /// Whoever carries it out answers; nobody is waited for.
    pub(crate) fn submit(&self, order: SaveOrder, answer: SaveAnswer) {
        match self.orders.try_send(Order::Save(order, answer)) {
            Ok(()) => {}
            Err(TrySendError::Full(order)) => refuse(order, SaveRefusal::Saving),
            Err(TrySendError::Disconnected(order)) => {
                refuse(order, SaveRefusal::Failed("the server stops".to_owned()));
            }
        }
    }

    /// The turn of the journal that replies have to wait for; nothing where they do not.
    #[inline]
    pub(crate) fn ask(&self) -> Option<Turn> {
        let turn = self.turns.as_ref()?.ask();
        // Where so many orders wait, the thread is awake.
        drop(self.orders.try_send(Order::Wake));
        Some(turn)
    }

    /// Whether that turn is over.
    pub(crate) fn poll(&self, turn: Turn, cx: &mut Context<'_>) -> Poll<()> {
        self.turns.as_ref().map_or(Poll::Ready(()), |turns| turns.poll(turn, cx))
    }

    /// What a stop is to do.
    pub(crate) fn set_last(&self, last: LastSave) {
        self.status.set_last(last);
    }

    pub(crate) fn facts(&self) -> StoreFacts {
        self.status.facts()
    }
}

fn refuse(order: Order, refusal: SaveRefusal) {
    if let Order::Save(_, answer) = order {
        answer(Err(refusal));
    }
}

/// A data folder that is being kept, until this is stopped or dropped.
#[derive(Debug)]
pub(crate) struct Store {
    saver: Saver,
    has_journal: bool,
    thread: Option<JoinHandle<bool>>,
}

/// Takes over what the data folder of the settings holds, and keeps it from then on; nothing
/// where they name none. Nobody else may use the service yet.
pub(crate) fn open(options: &Options, target: Target) -> Result<Option<Store>, Error> {
    let Some(path) = options.folder() else { return Ok(None) };
    let folder = Folder::open(path)?;
    let boot = std::fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned();
    let pace = Clock::system();
    let began = pace.now();
    let Target { service, clock } = target;
    let recovered = recover(&folder, &service, (&boot, &clock))?;
    folder.clear_unfinished()?;
    clock.lead_to(recovered.resume);
    let took = pace.now().since(began);
    tell(&recovered, took, &service);
    let status = Status::default();
    status.note(|facts| facts.restore_time = took);
    let has_journal = options.journal != JournalMode::Off;
    let ground =
        Ground { service, clock, folder, options: options.clone(), boot, status: status.clone() };
    let keeper = Keeper::begin(ground, &recovered)?;
    let turns = (options.journal == JournalMode::Always).then(Turns::default);
    let kept = turns.clone().unwrap_or_default();
    let (orders, received) = sync_channel(ORDERS_MAX);
    let thread = std::thread::Builder::new()
        .name("store".into())
        .spawn(move || keep(keeper, &received, &kept))
        .map_err(Error::Thread)?;
    let saver = Saver { orders, status, turns };
    Ok(Some(Store { saver, has_journal, thread: Some(thread) }))
}

fn tell(recovered: &Recovered, took: Duration, service: &Service) {
    let stats = service.engine().stats();
    info!(
        records = recovered.records,
        keys = stats.databases.iter().map(|database| database.keys).sum::<usize>(),
        buckets = stats.buckets,
        snapshot = recovered.snapshot.map_or(0, |(number, ..)| number),
        journals = recovered.journals,
        damaged_bytes = recovered.damaged_bytes,
        took_ms = took.as_millis(),
        "restored what the data folder holds"
    );
}

/// The life of the thread. Returns whether all is on the disk.
fn keep(mut keeper: Keeper, orders: &Receiver<Order>, turns: &Turns) -> bool {
    let pace = Clock::system();
    let mut ticked: Timestamp = pace.now();
    loop {
        let left = TICK_EVERY.as_std().saturating_sub(pace.now().since(ticked).as_std());
        let wait = match keeper.making() {
            // A script has held a shard: the turn is tried again.
            _ if turns.due().is_some() => Span::ZERO,
            None => left,
            Some(false) => left.min(REST),
            Some(true) => Span::ZERO,
        };
        match orders.recv_timeout(wait) {
            Ok(Order::Save(order, answer)) => keeper.order(order, answer),
            Ok(Order::Stop { snapshot }) => return keeper.end(snapshot),
            Ok(Order::Wake) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return keeper.end(false),
        }
        if let Some(turn) = turns.due()
            && keeper.commit()
        {
            turns.done(turn);
        }
        keeper.go_on();
        if pace.now().since(ticked) >= TICK_EVERY {
            ticked = pace.now();
            keeper.tick();
        }
    }
}

impl Store {
    /// By which snapshots are asked for.
    pub(crate) fn saver(&self) -> &Saver {
        &self.saver
    }

    /// Puts the last changes on the disk; whoever made them has ended.
    pub(crate) fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let snapshot = match self.saver.status.last() {
            LastSave::AsSet => !self.has_journal,
            LastSave::Snapshot => true,
            LastSave::None => false,
        };
        // An error means that the thread has ended already.
        drop(self.saver.orders.send(Order::Stop { snapshot }));
        match thread.join() {
            Ok(true) => info!("all that was counted is in the data folder"),
            Ok(false) => error!("not all that was counted could be written"),
            Err(_) => error!("the thread of the store panicked"),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.end();
    }
}
