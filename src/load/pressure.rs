//! How full the machine is: plain readings to pressures, 1.0 at the hard limit.
//!
//! | source | pressure |
//! |---|---|
//! | `cpu` | cores used / cores to use |
//! | `throttle` | share of scheduler periods that were throttled / 0.25 |
//! | `psi_cpu` | stall of some task over 10 s, in percent / 50 |
//! | `psi_memory` | stall of all tasks over 10 s, in percent / 10 |
//! | `memory` | used / limit of the cgroup, or RSS / (0.9 * machine); used / own bound |
//! | `loop_lag` | 99th percentile of how late a timer is / 50 ms |
//! | `in_flight`, `tasks`, `bytes` | those there are / those there may be |
//! | `queue_delay` | 90th percentile of the wait / longest wait allowed |
//!
//! The whole is the **maximum**: resources do not make up for each other. A busy processor alone
//! is a poor sign of overload, so the first three and the lag of the timer, which a neighbour on
//! the same machine can cause, count at most [`BUSY_MAX`], which enters level 2 and never level 3.
//! What was not read is left out.

use crate::time::Duration;

/// The most that the processor alone may say.
pub const BUSY_MAX: f64 = 0.96;

const THROTTLED_SHARE_MAX: f64 = 0.25;
const PSI_CPU_PERCENT_MAX: f64 = 50.0;
const PSI_MEMORY_PERCENT_MAX: f64 = 10.0;
const LOOP_LAG_MAX: Duration = Duration::from_millis(50);
/// How much of a machine without a cgroup one process may take.
const MACHINE_SHARE: f64 = 0.9;

/// So much of so much, both in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    pub used: f64,
    pub limit: f64,
}

impl Share {
    pub const fn new(used: f64, limit: f64) -> Self {
        Self { used, limit }
    }

    /// Of a limit that is no positive number nothing can be said.
    fn pressure(self) -> Option<f64> {
        let is_limit = self.limit.is_finite() && self.limit > 0.0;
        clean(if is_limit { self.used / self.limit } else { f64::NAN })
    }
}

/// Below zero is zero; what is no finite number was not read.
fn clean(pressure: f64) -> Option<f64> {
    pressure.is_finite().then_some(pressure.max(0.0))
}

/// What one look at the machine and the process found. All fields may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Readings {
    /// Cores used since the last look, of those that quota or machine give.
    pub cpu: Option<Share>,
    /// Scheduler periods throttled since the last look, of all.
    pub throttled: Option<Share>,
    /// `some avg10` of the processor's pressure file, in percent.
    pub psi_cpu_some_percent: Option<f64>,
    /// `full avg10` of the memory's pressure file, in percent.
    pub psi_memory_full_percent: Option<f64>,
    /// Bytes in use without inactive file pages, of the cgroup's limit.
    pub memory_cgroup: Option<Share>,
    /// Bytes resident, of the machine's memory: asked only where no cgroup limits.
    pub memory_machine: Option<Share>,
    /// Bytes that the program counts itself, of its own bound.
    pub memory_own: Option<Share>,
    /// The 99th percentile of how late a 10 ms timer was over the last second.
    pub loop_lag_p99: Option<Duration>,
    /// Requests begun and not ended, of the limit.
    pub in_flight: Option<Share>,
    /// The 90th percentile of the wait in queues, of the longest allowed; microseconds.
    pub queue_delay: Option<Share>,
    /// Tasks alive, of the most.
    pub tasks: Option<Share>,
    /// Bytes of requests in flight, of the most.
    pub bytes: Option<Share>,
}

/// What can be full.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[repr(u8)]
pub enum Source {
    Cpu,
    Throttle,
    PsiCpu,
    PsiMemory,
    Memory,
    LoopLag,
    InFlight,
    QueueDelay,
    Tasks,
    Bytes,
}

impl Source {
    pub const ALL: [Self; 10] = [
        Self::Cpu,
        Self::Throttle,
        Self::PsiCpu,
        Self::PsiMemory,
        Self::Memory,
        Self::LoopLag,
        Self::InFlight,
        Self::QueueDelay,
        Self::Tasks,
        Self::Bytes,
    ];

    /// As statistics and settings name it; no declared signal may be called so.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Throttle => "throttle",
            Self::PsiCpu => "psi_cpu",
            Self::PsiMemory => "psi_memory",
            Self::Memory => "memory",
            Self::LoopLag => "loop_lag",
            Self::InFlight => "in_flight",
            Self::QueueDelay => "queue_delay",
            Self::Tasks => "tasks",
            Self::Bytes => "bytes",
        }
    }

    /// The most that this source alone may say.
    const fn most(self) -> f64 {
        match self {
            Self::Cpu | Self::Throttle | Self::PsiCpu | Self::LoopLag => BUSY_MAX,
            Self::PsiMemory
            | Self::Memory
            | Self::InFlight
            | Self::QueueDelay
            | Self::Tasks
            | Self::Bytes => f64::INFINITY,
        }
    }
}

/// The pressure of each source that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressures([Option<f64>; Source::ALL.len()]);

impl Readings {
    pub fn pressures(&self) -> Pressures {
        let share = |share: Option<Share>| share.and_then(Share::pressure);
        let over = |value: Option<f64>, limit: f64| {
            value.and_then(|value| Share::new(value, limit).pressure())
        };
        let loop_lag_us = self.loop_lag_p99.map(|lag| lag.as_micros() as f64);
        Pressures(Source::ALL.map(|source| match source {
            Source::Cpu => share(self.cpu),
            Source::Throttle => over(share(self.throttled), THROTTLED_SHARE_MAX),
            Source::PsiCpu => over(self.psi_cpu_some_percent, PSI_CPU_PERCENT_MAX),
            Source::PsiMemory => over(self.psi_memory_full_percent, PSI_MEMORY_PERCENT_MAX),
            Source::Memory => self.memory(),
            Source::LoopLag => over(loop_lag_us, LOOP_LAG_MAX.as_micros() as f64),
            Source::InFlight => share(self.in_flight),
            Source::QueueDelay => share(self.queue_delay),
            Source::Tasks => share(self.tasks),
            Source::Bytes => share(self.bytes),
        }))
    }

    fn memory(&self) -> Option<f64> {
        let of_machine = || {
            let whole = self.memory_machine?;
            Share { limit: whole.limit * MACHINE_SHARE, ..whole }.pressure()
        };
        let outer = self.memory_cgroup.and_then(Share::pressure).or_else(of_machine);
        larger(outer, self.memory_own.and_then(Share::pressure))
    }
}

fn larger(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

impl Pressures {
    /// As it was read, above 1.0 where more is used than may be; none where it was not read.
    pub fn of(&self, source: Source) -> Option<f64> {
        self.0[source as usize]
    }

    /// The pressure of the whole, and whose it is; none where nothing was read. What the
    /// processor says is cut off at [`BUSY_MAX`].
    pub fn highest(&self) -> Option<(Source, f64)> {
        let read = Source::ALL.into_iter().filter_map(|source| Some((source, self.of(source)?)));
        read.map(|(source, pressure)| (source, pressure.min(source.most())))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: Option<f64>, right: f64) {
        assert!(found.is_some_and(|found| (found - right).abs() < 1e-9), "{found:?}, {right}");
    }

    #[test]
    fn each_reading_is_normalised_by_its_own_limit() {
        let pressures = Readings {
            cpu: Some(Share::new(1.5, 2.0)),
            throttled: Some(Share::new(1.0, 10.0)),
            psi_cpu_some_percent: Some(20.0),
            psi_memory_full_percent: Some(5.0),
            memory_cgroup: Some(Share::new(30.0, 100.0)),
            memory_own: Some(Share::new(45.0, 100.0)),
            loop_lag_p99: Some(Duration::from_millis(20)),
            in_flight: Some(Share::new(8.0, 16.0)),
            queue_delay: Some(Share::new(60_000.0, 100_000.0)),
            tasks: Some(Share::new(7.0, 100.0)),
            bytes: Some(Share::new(9.0, 100.0)),
            ..Readings::default()
        }
        .pressures();
        let right = [0.75, 0.4, 0.4, 0.5, 0.45, 0.4, 0.5, 0.6, 0.07, 0.09];
        for (source, right) in Source::ALL.into_iter().zip(right) {
            assert_near(pressures.of(source), right);
        }
        assert_eq!(pressures.highest(), Some((Source::Cpu, 0.75)));
    }

    #[test]
    fn busy_processor_alone_never_says_more_than_level_two() {
        let busy = Readings {
            cpu: Some(Share::new(8.0, 2.0)),
            throttled: Some(Share::new(10.0, 10.0)),
            psi_cpu_some_percent: Some(100.0),
            loop_lag_p99: Some(Duration::from_secs(1)),
            ..Readings::default()
        };
        let highest = busy.pressures().highest().map(|(_, pressure)| pressure);
        assert_eq!(highest, Some(BUSY_MAX));
        assert_near(busy.pressures().of(Source::Cpu), 4.0);
        let full = Readings { memory_own: Some(Share::new(99.0, 100.0)), ..busy };
        assert_eq!(full.pressures().highest(), Some((Source::Memory, 0.99)));
    }

    #[test]
    fn memory_is_the_machines_only_without_a_cgroup() {
        let machine = Readings {
            memory_machine: Some(Share::new(45.0, 100.0)),
            memory_own: Some(Share::new(10.0, 100.0)),
            ..Readings::default()
        };
        assert_near(machine.pressures().of(Source::Memory), 0.5);
        let limited = Readings { memory_cgroup: Some(Share::new(20.0, 100.0)), ..machine };
        assert_near(limited.pressures().of(Source::Memory), 0.2);
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        assert_eq!(Readings::default().pressures().highest(), None);
        let odd = Readings {
            cpu: Some(Share::new(1.0, 0.0)),
            memory_own: Some(Share::new(1.0, f64::INFINITY)),
            psi_cpu_some_percent: Some(f64::NAN),
            tasks: Some(Share::new(-3.0, 10.0)),
            ..Readings::default()
        };
        assert_eq!(odd.pressures().highest(), Some((Source::Tasks, 0.0)));
    }
}
