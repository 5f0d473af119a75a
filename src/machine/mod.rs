//! What the system says of this process and its machine: processor, memory, and who waits for
//! them.
//!
//! Read from `/proc` and from the files of the process's cgroups, version 1 and 2. Where both
//! folders stand is an argument, so that tests lay out machines of their own. A figure whose file
//! is missing, as all are where there is no Linux, is missing too: nothing is guessed.
//!
//! A [`Look`] has what the files say; a [`Meter`] makes of two of them what happened in between,
//! as [`crate::load`] takes it. A look reads some ten small files that wait for no disk.

mod cgroup;
mod meter;
mod words;

use std::fs;
use std::path::PathBuf;

pub use self::meter::Meter;
use cgroup::Cgroups;

/// Where the system tells about itself.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Usually `/proc`.
    proc: PathBuf,
    /// Usually `/sys/fs/cgroup`.
    cgroups: PathBuf,
}

/// What a process has taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Process {
    pub resident_bytes: u64,
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
}

/// What the files say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Look {
    pub process: Option<Process>,
    /// Cores that the process may use: what its cgroups leave of those that it may run on.
    pub cores: Option<f64>,
    /// Of the cgroup that bounds the processor most.
    pub periods: Option<Periods>,
    /// Part of the last 10 s in which some task of our cgroup waited for the processor, in
    /// percent; none where the cgroup is the whole machine's.
    pub cpu_some_percent: Option<f64>,
    /// Part of the last 10 s in which all tasks, of our cgroup or else of the machine, waited for
    /// memory, in percent.
    pub memory_full_percent: Option<f64>,
    /// Of the cgroup that is nearest to its bound; none where no bound is below the machine's
    /// memory.
    pub memory: Option<MemoryUse>,
    pub machine_bytes: Option<u64>,
}

/// Periods of the scheduler since the cgroup was made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Periods {
    pub all: u64,
    /// Those in which the quota was used up.
    pub throttled: u64,
}

/// Memory of a cgroup that has a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MemoryUse {
    /// Without file pages that can be given up.
    pub used_bytes: u64,
    pub limit_bytes: u64,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn here() -> Self {
        Self::at("/proc", "/sys/fs/cgroup")
    }

    /// A machine as these two folders tell it.
    pub fn at(proc: impl Into<PathBuf>, cgroups: impl Into<PathBuf>) -> Self {
        Self { proc: proc.into(), cgroups: cgroups.into() }
    }

    /// What this process has taken so far.
    pub fn process(&self) -> Process {
        process(&self.read("self/status"), &self.read("self/stat")).unwrap_or_default()
    }

    /// Memory that this process may use: the least of what the machine has and what the limits of
    /// its cgroups leave. Zero where neither is known.
    pub fn memory_limit_bytes(&self) -> u64 {
        let machine_bytes = self.machine_bytes().unwrap_or_default();
        let limit_bytes = self.own_cgroups().memory_limit_bytes();
        limit_bytes.map_or(machine_bytes, |limit_bytes| limit_bytes.min(machine_bytes))
    }

    pub fn look(&self) -> Look {
        let (status, stat) = (self.read("self/status"), self.read("self/stat"));
        let cgroups = self.own_cgroups();
        let quota = cgroups.processor();
        let allowed = words::cpus_allowed(&status);
        let machine_bytes = self.machine_bytes();
        let is_bound =
            |memory: &MemoryUse| machine_bytes.is_none_or(|bytes| memory.limit_bytes < bytes);
        Look {
            process: process(&status, &stat),
            cores: match (quota.as_ref().map(|quota| quota.cores), allowed) {
                (Some(cores), Some(allowed)) => Some(cores.min(f64::from(allowed))),
                (cores, allowed) => cores.or(allowed.map(f64::from)),
            },
            periods: quota.and_then(|quota| quota.periods),
            // Who waits for the processor elsewhere on the machine says nothing of us.
            cpu_some_percent: words::stalled_percent(&cgroups.stalled("cpu"), "some"),
            memory_full_percent: words::stalled_percent(&cgroups.stalled("memory"), "full")
                .or_else(|| words::stalled_percent(&self.read("pressure/memory"), "full")),
            memory: cgroups.memory().filter(is_bound),
            machine_bytes,
        }
    }

    fn machine_bytes(&self) -> Option<u64> {
        words::kilobytes(&self.read("meminfo"), "MemTotal:").map(|kilobytes| kilobytes << 10)
    }

    fn own_cgroups(&self) -> Cgroups<'_> {
        Cgroups::new(self.read("self/cgroup"), &self.cgroups)
    }

    /// A file of `/proc`; empty where it is not there.
    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.proc.join(path)).unwrap_or_default()
    }
}

/// System, release and architecture, as `uname` says them.
pub fn os() -> String {
    let name = rustix::system::uname();
    let [sysname, release, machine] =
        [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy());
    format!("{sysname} {release} {machine}")
}

/// The path of the running program; empty where the system does not tell.
pub fn executable() -> String {
    std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
}

fn process(status: &str, stat: &str) -> Option<Process> {
    let resident_bytes = words::kilobytes(status, "VmRSS:")? << 10;
    let (cpu_user_s, cpu_system_s) = words::cpu_seconds(stat)?;
    Some(Process { resident_bytes, cpu_user_s, cpu_system_s })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Lays files out in a folder.
    pub(super) fn lay(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
            fs::write(path, text).expect("the file is written");
        }
    }

    pub(super) fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let folder = tempfile::tempdir().expect("a folder");
        lay(folder.path(), files);
        let machine = Machine::at(folder.path().join("proc"), folder.path().join("cgroup"));
        (folder, machine)
    }

    #[test]
    fn machine_without_files_says_nothing() {
        let (_folder, machine) = machine(&[]);
        assert_eq!(machine.look(), Look::default());
        assert_eq!(machine.process(), Process::default());
        assert_eq!(machine.memory_limit_bytes(), 0);
    }

    #[test]
    fn machine_without_bounds_has_its_own_cores_memory_and_stalls() {
        let (_folder, machine) = machine(&[
            ("proc/self/status", "VmRSS:\t    2048 kB\nCpus_allowed_list:\t0-2,5\n"),
            ("proc/self/stat", "1 (t) S 0 0 0 0 0 0 0 0 0 0 300 200 0"),
            ("proc/self/cgroup", "0::/\n"),
            ("proc/meminfo", "MemTotal:  8192 kB\n"),
            ("proc/pressure/cpu", "some avg10=12.50 avg60=1.00 avg300=0.00 total=9\n"),
            ("proc/pressure/memory", "some avg10=3.00\nfull avg10=1.25 avg60=0.00\n"),
            ("cgroup/memory.max", "max\n"),
            ("cgroup/cpu.max", "max 100000\n"),
            ("cgroup/cpu.pressure", "some avg10=88.00\n"),
        ]);
        let look = machine.look();
        assert_eq!(look.process.map(|process| process.resident_bytes), Some(2 << 20));
        assert_eq!(look.cores, Some(4.0));
        assert_eq!((look.periods, look.memory), (None, None));
        assert_eq!((look.cpu_some_percent, look.memory_full_percent), (None, Some(1.25)));
        assert_eq!((look.machine_bytes, machine.memory_limit_bytes()), (Some(8 << 20), 8 << 20));
    }

    #[test]
    fn container_of_version_two_is_held_to_its_cgroup() {
        let (_folder, machine) = machine(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-7\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("proc/meminfo", "MemTotal: 8192 kB\n"),
            ("proc/pressure/cpu", "some avg10=99.00\n"),
            ("cgroup/cpu.max", "150000 100000\n"),
            ("cgroup/cpu.stat", "usage_usec 1\nnr_periods 40\nnr_throttled 10\n"),
            ("cgroup/cgroup.events", "populated 1\n"),
            ("cgroup/cpu.pressure", "some avg10=7.00 avg60=0.00\n"),
            ("cgroup/memory.max", "4000000\n"),
            ("cgroup/memory.current", "3000000\n"),
            ("cgroup/memory.stat", "anon 5\ninactive_file 1000000\n"),
        ]);
        let look = machine.look();
        assert_eq!(look.cores, Some(1.5));
        assert_eq!(look.periods, Some(Periods { all: 40, throttled: 10 }));
        assert_eq!(look.cpu_some_percent, Some(7.0));
        let memory = MemoryUse { used_bytes: 2_000_000, limit_bytes: 4_000_000 };
        assert_eq!((look.memory, machine.memory_limit_bytes()), (Some(memory), 4_000_000));
    }

    #[test]
    fn container_of_version_one_is_held_to_its_cgroups() {
        let (_folder, machine) = machine(&[
            ("proc/self/cgroup", "5:cpu,cpuacct:/pod\n4:memory:/pod\n1:name=systemd:/pod\n"),
            ("proc/meminfo", "MemTotal: 8192 kB\n"),
            ("cgroup/cpu,cpuacct/pod/cpu.cfs_quota_us", "50000\n"),
            ("cgroup/cpu,cpuacct/pod/cpu.cfs_period_us", "100000\n"),
            ("cgroup/cpu,cpuacct/pod/cpu.stat", "nr_periods 8\nnr_throttled 2\n"),
            ("cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cgroup/memory/memory.usage_in_bytes", "7000000\n"),
            ("cgroup/memory/pod/memory.limit_in_bytes", "2000000\n"),
            ("cgroup/memory/pod/memory.usage_in_bytes", "1500000\n"),
            ("cgroup/memory/pod/memory.stat", "inactive_file 1\ntotal_inactive_file 500000\n"),
        ]);
        let look = machine.look();
        assert_eq!(look.cores, Some(0.5));
        assert_eq!(look.periods, Some(Periods { all: 8, throttled: 2 }));
        let memory = MemoryUse { used_bytes: 1_000_000, limit_bytes: 2_000_000 };
        assert_eq!(look.memory, Some(memory));
    }

    #[test]
    fn this_process_uses_memory_and_the_machine_has_some() {
        let here = Machine::here();
        let resident_bytes = here.process().resident_bytes;
        assert!(resident_bytes > 0);
        assert!(here.memory_limit_bytes() >= resident_bytes);
        assert!(here.look().cores.is_some_and(|cores| cores > 0.0));
    }
}
