//! What happened between two looks at the machine, as the load manager takes it.
//!
//! Processor time and throttled periods only grow, so one look says nothing of them: the first
//! reading leaves them out.

use super::{Look, Machine, MemoryUse, Process};
use crate::load::{Readings, Share};
use crate::time::Timestamp;

/// Looks at a machine again and again.
#[derive(Debug)]
pub struct Meter {
    machine: Machine,
    before: Option<(Timestamp, Look)>,
}

impl Meter {
    pub const fn new(machine: Machine) -> Self {
        Self { machine, before: None }
    }

    /// What the machine says now, and what happened since the last reading. The figures that only
    /// the program itself knows are left out.
    pub fn read(&mut self, now: Timestamp) -> Readings {
        let look = self.machine.look();
        let before = self.before.replace((now, look));
        Readings {
            cpu: before.and_then(|(then, before)| {
                cores_used(&before, &look, now.since(then).as_micros() as f64 / 1e6)
            }),
            throttled: before.and_then(|(_, before)| throttled(&before, &look)),
            psi_cpu_some_percent: look.cpu_some_percent,
            psi_memory_full_percent: look.memory_full_percent,
            memory_cgroup: look.memory.map(|memory| {
                let MemoryUse { used_bytes, limit_bytes } = memory;
                Share::new(used_bytes as f64, limit_bytes as f64)
            }),
            memory_machine: look
                .process
                .zip(look.machine_bytes)
                .map(|(process, bytes)| Share::new(process.resident_bytes as f64, bytes as f64)),
            ..Readings::default()
        }
    }
}

fn cores_used(before: &Look, look: &Look, elapsed_s: f64) -> Option<Share> {
    let total_s = |process: Process| process.cpu_user_s + process.cpu_system_s;
    let used_s = total_s(look.process?) - total_s(before.process?);
    (elapsed_s > 0.0).then_some(Share::new(used_s / elapsed_s, look.cores?))
}

/// Nothing where no period has passed.
fn throttled(before: &Look, look: &Look) -> Option<Share> {
    let (before, now) = (before.periods?, look.periods?);
    let all = now.all.checked_sub(before.all).filter(|periods| *periods > 0)?;
    Some(Share::new(now.throttled.saturating_sub(before.throttled) as f64, all as f64))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lay, machine};
    use super::*;

    #[test]
    fn what_only_grows_is_told_from_the_second_reading_on() {
        let (folder, machine) = machine(&[
            ("proc/self/status", "VmRSS: 1024 kB\nCpus_allowed_list: 0-3\n"),
            ("proc/self/stat", "1 (t) S 0 0 0 0 0 0 0 0 0 0 0 0"),
            ("proc/self/cgroup", "0::/\n"),
            ("proc/meminfo", "MemTotal: 4096 kB\n"),
            ("cgroup/cpu.max", "200000 100000\n"),
            ("cgroup/cpu.stat", "nr_periods 10\nnr_throttled 5\n"),
        ]);
        let mut meter = Meter::new(machine);
        let first = meter.read(Timestamp::from_millis(1_000));
        assert_eq!((first.cpu, first.throttled), (None, None));
        let machine_bytes = f64::from(4 << 20);
        assert_eq!(first.memory_machine, Some(Share::new(f64::from(1 << 20), machine_bytes)));
        let ticks = rustix::param::clock_ticks_per_second();
        let stat = format!("1 (t) S 0 0 0 0 0 0 0 0 0 0 {} {}", ticks / 2, ticks / 4);
        lay(
            folder.path(),
            &[("proc/self/stat", &stat), ("cgroup/cpu.stat", "nr_periods 15\nnr_throttled 6\n")],
        );
        let second = meter.read(Timestamp::from_millis(1_500));
        assert_eq!(second.cpu, Some(Share::new(1.5, 2.0)));
        assert_eq!(second.throttled, Some(Share::new(1.0, 5.0)));
        assert_eq!(meter.read(Timestamp::from_millis(1_500)).cpu, None);
    }

    #[test]
    fn cgroup_that_began_anew_says_nothing_of_the_past() {
        let stat = |text| ("cgroup/cpu.stat", text);
        let (folder, machine) = machine(&[
            ("proc/self/cgroup", "0::/\n"),
            ("cgroup/cpu.max", "100000 100000\n"),
            stat("nr_periods 100\nnr_throttled 50\n"),
        ]);
        let mut meter = Meter::new(machine);
        meter.read(Timestamp::EPOCH);
        lay(folder.path(), &[stat("nr_periods 3\nnr_throttled 3\n")]);
        assert_eq!(meter.read(Timestamp::from_millis(500)).throttled, None);
    }
}
