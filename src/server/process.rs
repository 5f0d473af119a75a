//! What the system says of this process and its machine: memory and processor time.
//!
//! Read from `/proc` and the cgroup files; where one is missing its figure is zero.

use std::fs;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process {
    pub(crate) resident_bytes: u64,
    pub(crate) cpu_user_s: f64,
    pub(crate) cpu_system_s: f64,
}

pub(crate) fn read() -> Process {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let (cpu_user_s, cpu_system_s) = cpu_seconds(&stat);
    Process { resident_bytes: kilobytes(&status, "VmRSS:") << 10, cpu_user_s, cpu_system_s }
}

pub(super) fn os() -> String {
    let name = rustix::system::uname();
    let [sysname, release, machine] =
        [name.sysname(), name.release(), name.machine()].map(|part| part.to_string_lossy());
    format!("{sysname} {release} {machine}")
}

pub(super) fn executable() -> String {
    std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default()
}

/// Memory this process may use: the cgroup's limit (v2 or v1) where it is below the machine's.
pub(crate) fn memory_limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine_bytes = kilobytes(&machine, "MemTotal:") << 10;
    ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok())
        .fold(machine_bytes, u64::min)
}

fn kilobytes(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// User and system seconds: the 14th and 15th words, counted after the name, which may itself
/// hold blanks and parentheses.
fn cpu_seconds(stat: &str) -> (f64, f64) {
    let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let mut words = after_name.split_whitespace().skip(11).map(str::parse::<f64>);
    let mut next = || words.next().and_then(Result::ok).unwrap_or(0.0) / ticks_per_second;
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_past_a_name_with_blanks() {
        let ticks = rustix::param::clock_ticks_per_second();
        let (user, system) = (ticks * 3, ticks * 2);
        let stat = format!("1 (a ) b) S 0 0 0 0 0 0 0 0 0 0 {user} {system} 0");
        assert_eq!(cpu_seconds(&stat), (3.0, 2.0));
    }

    #[test]
    fn this_process_uses_memory_and_the_machine_has_some() {
        let process = read();
        assert!(process.resident_bytes > 0);
        assert!(memory_limit_bytes() >= process.resident_bytes);
    }
}
