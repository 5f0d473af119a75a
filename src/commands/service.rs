//! What all workers share: the engine, the command table, the settings that can change while
//! the server runs, and what is counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dashmap::DashMap;
use parking_lot::Mutex;

use super::baseline::Baseline;
use super::channels::Channels;
use super::decision_log::DecisionLog;
use super::host::{Facts, Host};
use super::latency::Latency;
use super::monitor::Monitors;
use super::overload::Overload;
use super::pause::Pause;
use super::policed::Tops;
use super::policies::Policies;
use super::push::Push;
use super::request::Ground;
use super::running::{ScriptRuns, Slots};
use super::runtime::Runtime;
use super::session::Session;
use super::slowlog::SlowLog;
use super::table::Table;
use super::tally::{CommandCounts, Tally};
use super::tracking::Tracking;
use super::transaction::{self, Watched};
use super::twins::TwinCounts;
use super::waiting::Wait;
use crate::engine::{Engine, KeyHasher, Patience, Stats};
use crate::lua::{Libraries, Scripts, UnknownFlags};
use crate::policy::Snapshot;
use crate::prefilter::Prefilter;
use crate::protocol::{Args, Error};
use crate::time::{Duration, Timestamp};

#[derive(Debug)]
pub(crate) struct Service {
    engine: Engine,
    table: Table,
    runtime: Runtime,
    prefilter: Prefilter,
    overload: Overload,
    tops: Tops,
    /// Checks of tenants that no policy knows.
    unknown_tenants: AtomicU64,
    decision_log: DecisionLog,
    slowlog: Mutex<SlowLog>,
    latency: Mutex<Latency>,
    tallies: Mutex<Vec<Arc<Tally>>>,
    started: Timestamp,
    baseline: Mutex<Baseline>,
    scripts: Scripts,
    libraries: Libraries,
    scripts_running: Slots,
    /// The engine has not been told yet whether to tell of every change.
    unsettled: AtomicBool,
    /// Keys that nobody watches any longer, in shards that were held for long.
    unwatched: Mutex<Vec<Watched>>,
    channels: Channels,
    tracking: Tracking,
    monitors: Monitors,
    pause: Pause,
    policies: Policies,
    /// By connection.
    waits: DashMap<u64, Arc<Wait>, KeyHasher>,
    /// Ended, and still with keys in shards that were held for long.
    unwaited: Mutex<Vec<Arc<Wait>>>,
}

impl Service {
    pub(crate) fn new(engine: Engine, runtime: Runtime, now: Timestamp) -> Self {
        let scripts = &runtime.scripts;
        let unknown_flags =
            if scripts.accept_unknown_flags { UnknownFlags::Accept } else { UnknownFlags::Refuse };
        let waits = DashMap::with_hasher(engine.hasher().clone());
        let (channels, tracking) = (Channels::new(engine.hasher()), Tracking::new(engine.hasher()));
        // A seed as secret as the engine's, and another one.
        let prefilter_seed = engine.hasher().key(b"prefilter").hash();
        let policies = Policies::new(&runtime.policies);
        Self {
            overload: Overload::new(&runtime.load, now),
            tops: Tops::new(engine.hasher().clone()),
            unknown_tenants: AtomicU64::default(),
            prefilter: Prefilter::new(&runtime.prefilter, prefilter_seed),
            decision_log: DecisionLog::default(),
            engine,
            // Command names are no secret: a fixed seed will do.
            table: Table::new(KeyHasher::new(0)),
            runtime,
            slowlog: Mutex::default(),
            latency: Mutex::default(),
            tallies: Mutex::default(),
            started: now,
            baseline: Mutex::default(),
            scripts: Scripts::new(unknown_flags),
            libraries: Libraries::default(),
            scripts_running: Slots::default(),
            unsettled: AtomicBool::default(),
            unwatched: Mutex::default(),
            channels,
            tracking,
            monitors: Monitors::default(),
            pause: Pause::default(),
            policies,
            waits,
            unwaited: Mutex::default(),
        }
    }

    /// The same, whose decisions are told one by one.
    pub(crate) fn with_decision_log(self, decision_log: DecisionLog) -> Self {
        Self { decision_log, ..self }
    }

    pub(crate) fn decision_log(&self) -> &DecisionLog {
        &self.decision_log
    }

    pub(super) fn channels(&self) -> &Channels {
        &self.channels
    }

    pub(super) fn tracking(&self) -> &Tracking {
        &self.tracking
    }

    pub(super) fn monitors(&self) -> &Monitors {
        &self.monitors
    }

    pub(crate) fn pause(&self) -> &Pause {
        &self.pause
    }

    pub(crate) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(super) fn waits(&self) -> &DashMap<u64, Arc<Wait>, KeyHasher> {
        &self.waits
    }

    pub(super) fn unwaited(&self) -> &Mutex<Vec<Arc<Wait>>> {
        &self.unwaited
    }

    /// Tells others what has happened in the keyspace, if anything; [`Service::broadcast`] has to
    /// follow.
    #[inline]
    pub(crate) fn hand_out(&self, host: &dyn Host, now: Timestamp, patience: Patience) {
        // Serving one who waits may be news for others.
        while self.engine.has_news() {
            self.tracking.hand_out(&self.engine, host, (now, patience));
        }
    }

    /// Tells who hears of all keys that begin alike, at the end of a batch.
    #[inline]
    pub(crate) fn broadcast(&self, host: &dyn Host) {
        self.tracking.broadcast(host);
    }

    /// Before a session is dropped, or begins anew: ends what it has begun that others would go
    /// on for.
    pub(crate) fn forget(&self, session: &mut Session, now: Timestamp) {
        transaction::abandon(self, session, now);
        self.wait_no_longer(session, now);
        if session.subscriptions() > 0 {
            self.channels.leave(session.id);
        }
        if session.monitors {
            self.monitors.remove(session.id);
        }
        if session.tracking.is_some() {
            self.tracking.end(session.id);
            self.unsettled.store(true, Ordering::Relaxed);
        }
    }

    /// Lets the engine tell of every change, or no longer.
    pub(super) fn settle(&self, ground: Ground<'_, '_>) {
        let broadcasts = || self.tracking.broadcasts();
        match ground {
            Ground::Lock(engine) => {
                if engine.broadcast(broadcasts, Patience::UntilBusy).is_err() {
                    self.unsettled.store(true, Ordering::Relaxed);
                }
            }
            Ground::Within(view) => view.broadcast(broadcasts()),
        }
    }

    fn settle_rest(&self) {
        if self.unsettled.swap(false, Ordering::Relaxed) {
            let done = self.engine.broadcast(|| self.tracking.broadcasts(), Patience::None);
            self.unsettled.fetch_or(done.is_err(), Ordering::Relaxed);
        }
    }

    /// Writes pushes that have waited, but for those of what has been left meanwhile: RESP2
    /// would take them for replies.
    pub(crate) fn write_pushes(
        &self,
        session: &mut Session,
        pushes: impl IntoIterator<Item = Push>,
        out: &mut Vec<u8>,
    ) {
        let checks = std::mem::take(&mut session.unsubscribed);
        for push in pushes {
            let is_wanted = !checks
                || push
                    .subscription()
                    .is_none_or(|(kind, name)| self.channels.subscribes(session.id, kind, name));
            if is_wanted {
                push.write(session, out);
            }
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The remembered denials.
    /// Brings a snapshot up to date.
    #[inline]
    pub(super) fn refresh(&self, policies: &mut Arc<Snapshot>) {
        let current = self.policies.snapshot();
        if !Arc::ptr_eq(&current, policies) {
            *policies = Arc::clone(&current);
        }
    }

    pub(crate) fn overload(&self) -> &Overload {
        &self.overload
    }

    pub(super) fn tops(&self) -> &Tops {
        &self.tops
    }

    pub(super) fn count_unknown_tenant(&self) {
        self.unknown_tenants.fetch_add(1, Ordering::Relaxed);
    }

    /// Checks of tenants that no policy knows.
    pub(crate) fn unknown_tenants(&self) -> u64 {
        self.unknown_tenants.load(Ordering::Relaxed)
    }

    pub(crate) fn prefilter(&self) -> &Prefilter {
        &self.prefilter
    }

    pub(crate) fn started(&self) -> Timestamp {
        self.started
    }

    /// What had been counted at the last CONFIG RESETSTAT.
    pub(super) fn baseline(&self) -> Baseline {
        self.baseline.lock().clone()
    }

    pub(super) fn unwatched(&self) -> &Mutex<Vec<Watched>> {
        &self.unwatched
    }

    pub(crate) fn scripts(&self) -> &Scripts {
        &self.scripts
    }

    pub(crate) fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    pub(super) fn running(&self) -> &Slots {
        &self.scripts_running
    }

    pub(crate) fn script_runs(&self) -> ScriptRuns {
        self.scripts_running.counts()
    }

    /// What every native twin has counted.
    pub(crate) fn twin_counts(&self) -> Vec<TwinCounts> {
        self.scripts_running.twin_counts()
    }

    /// Some times a second: finds the scripts that others should not wait for.
    pub(crate) fn look_for_long(&self, now: Timestamp) {
        if let Some(busy_after) = self.runtime.busy_after() {
            self.scripts_running.look(now, busy_after, self.engine.long());
        }
    }

    /// While a script runs for long: after which time a worker counts as held up by it.
    pub(crate) fn long_after(&self) -> Option<Duration> {
        if self.engine.long().is_any() { self.runtime.busy_after() } else { None }
    }

    /// The server stops, and no script outlives that.
    pub(crate) fn end_scripts(&self) {
        self.scripts_running.end_all();
    }

    /// Once a second: what had to be put off.
    pub(crate) fn upkeep(&self, now: Timestamp) {
        transaction::forget_rest(self, now);
        self.unwait_rest(now);
        self.settle_rest();
        self.tracking.serve_stalled(&self.engine, now);
        self.overload.upkeep(now);
        let snapshot = Arc::clone(&self.policies.snapshot());
        snapshot.tenants().for_each(|tenant| tenant.counts.note_second());
    }

    pub(super) fn slowlog(&self) -> &Mutex<SlowLog> {
        &self.slowlog
    }

    pub(super) fn latency(&self) -> &Mutex<Latency> {
        &self.latency
    }

    pub(super) fn new_tally(&self) -> Arc<Tally> {
        let tally = Arc::new(Tally::new(self.table.entries().len()));
        self.tallies.lock().push(Arc::clone(&tally));
        tally
    }

    /// What every command has counted, its subcommands included, summed over the workers, by
    /// command number.
    pub(crate) fn command_counts(&self) -> Vec<CommandCounts> {
        let counts = self.entry_counts();
        let mut from = self.table.specs().len();
        let mut sums = counts[..from].to_vec();
        for (sum, spec) in sums.iter_mut().zip(self.table.specs()) {
            let subs = from..from + spec.subcommands.len();
            from = subs.end;
            counts[subs].iter().for_each(|count| sum.add(count));
        }
        sums
    }

    /// What every command and subcommand has counted, by number: subcommands by themselves.
    pub(crate) fn entry_counts(&self) -> Vec<CommandCounts> {
        let mut sums = vec![CommandCounts::default(); self.table.entries().len()];
        for tally in self.tallies.lock().iter() {
            for (number, sum) in sums.iter_mut().enumerate() {
                tally.command(number as u16).add_to(sum);
            }
        }
        sums
    }

    /// Errors sent, by code.
    pub(crate) fn error_counts(&self) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for tally in self.tallies.lock().iter() {
            tally.add_errors(&mut sums);
        }
        sums
    }

    /// CONFIG RESETSTAT. All counting goes on; INFO leaves out what was before.
    pub(super) fn reset_stats(&self, facts: Facts, stats: &Stats) {
        *self.baseline.lock() = Baseline {
            facts,
            stats: *stats,
            entries: self.entry_counts(),
            errors: self.error_counts(),
        };
    }

    /// Whether this connection needs no password, or has given it.
    #[inline]
    pub(crate) fn lets_in(&self, session: &Session) -> bool {
        session.authenticated || !self.runtime.has_password()
    }

    pub(super) fn check_key_length(&self, key: &[u8]) -> Result<(), Error> {
        let max = self.runtime.key_bytes_max();
        if key.len() > max { Err(Error::key_too_long(key.len(), max)) } else { Ok(()) }
    }

    /// Hands a command's duration to the slow log and the latency monitor.
    pub(super) fn note_duration(
        &self,
        session: &Session,
        host: &dyn Host,
        args: Args<'_>,
        (began, ended): (Timestamp, Timestamp),
    ) {
        let took = ended.since(began);
        if self.runtime.is_slow(took) {
            let address = host.peer_address(session.id);
            let max = self.runtime.slowlog_entries_max();
            self.slowlog.lock().add(args, (began, took), (address, &session.name), max);
        }
        if self.runtime.is_latent(took) {
            self.latency.lock().add("command", ended, took);
        }
    }
}
