//! What the system says of this process and its machine: memory and processor time.
//!
//! Read from `/proc` and the cgroup files; where one is missing its figure is zero.

use std::fs;
use std::path::Path;

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

/// Memory this process may use: the least of what the machine has and what the limits of its
/// cgroups leave, v2 or v1.
pub(crate) fn memory_limit_bytes() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let machine_bytes = kilobytes(&machine, "MemTotal:") << 10;
    let cgroups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = cgroup_limit_bytes(&cgroups, Path::new("/sys/fs/cgroup"));
    limit.map_or(machine_bytes, |limit| limit.min(machine_bytes))
}

/// The lowest limit of the cgroups in which a process is, given its `/proc/self/cgroup` and the
/// folder where cgroups are mounted; `None` where nothing is limited.
fn cgroup_limit_bytes(cgroups: &str, mount: &Path) -> Option<u64> {
    cgroups.lines().filter_map(memory_cgroup).filter_map(|cgroup| cgroup.limit_bytes(mount)).min()
}

/// A cgroup that may bound memory: where its hierarchy is mounted, its path there, its file.
#[derive(Debug, Eq, PartialEq)]
struct MemoryCgroup<'t> {
    hierarchy: &'static str,
    path: &'t str,
    limit_file: &'static str,
}

/// Reads one line of `/proc/self/cgroup`: `0::/path` of v2, `4:memory:/path` of v1.
fn memory_cgroup(line: &str) -> Option<MemoryCgroup<'_>> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let path = path.trim_start_matches('/');
    if controllers.is_empty() {
        return Some(MemoryCgroup { hierarchy: "", path, limit_file: "memory.max" });
    }
    let bounds_memory = controllers.split(',').any(|controller| controller == "memory");
    let limit_file = "memory.limit_in_bytes";
    bounds_memory.then_some(MemoryCgroup { hierarchy: "memory", path, limit_file })
}

impl MemoryCgroup<'_> {
    /// The lowest limit from the cgroup up to the mount. In a container the mount shows the
    /// container's own cgroup, and the path may be the host's: then only the mount is there.
    fn limit_bytes(&self, mount: &Path) -> Option<u64> {
        let root = mount.join(self.hierarchy);
        // A path above the mount, as a cgroup namespace shows it, leads nowhere.
        let path = if self.path.split('/').any(|part| part == "..") { "" } else { self.path };
        root.join(path)
            .ancestors()
            .take_while(|folder| folder.starts_with(&root))
            .filter_map(|folder| fs::read_to_string(folder.join(self.limit_file)).ok())
            // `max` is no number, and no limit.
            .filter_map(|text| text.trim().parse().ok())
            .min()
    }
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
    fn lines_of_the_cgroup_file_are_read_in_both_versions() {
        let cgroup =
            |hierarchy, path, limit_file| Some(MemoryCgroup { hierarchy, path, limit_file });
        let rows = [
            ("0::/", cgroup("", "", "memory.max")),
            ("0::/system.slice/a:b", cgroup("", "system.slice/a:b", "memory.max")),
            ("4:memory:/docker/1", cgroup("memory", "docker/1", "memory.limit_in_bytes")),
            ("4:cpu,memory:/", cgroup("memory", "", "memory.limit_in_bytes")),
            ("3:cpuset:/docker/1", None),
            ("1:name=systemd:/", None),
            ("0:", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(memory_cgroup(line), expected, "{line}");
        }
    }

    #[test]
    fn lowest_limit_on_the_way_up_counts() {
        let mount = tempfile::tempdir().expect("a folder");
        let files = [
            ("memory.max", "max\n"),
            ("a/memory.max", "3000\n"),
            ("a/b/memory.max", "5000\n"),
            ("a/b/c/memory.max", "max\n"),
            ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("memory/d/memory.limit_in_bytes", "2000\n"),
        ];
        for (path, text) in files {
            let path = mount.path().join(path);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
            fs::write(path, text).expect("the file is written");
        }
        let rows = [
            ("0::/", None),
            ("0::/a", Some(3_000)),
            ("0::/a/b/c", Some(3_000)),
            ("0::/elsewhere", None),
            ("0::/../../a", None),
            ("4:memory:/", Some(9_223_372_036_854_771_712)),
            ("4:memory:/d\n0::/", Some(2_000)),
            ("4:memory:/d\n0::/a/b", Some(2_000)),
            ("4:memory:/docker/1", Some(9_223_372_036_854_771_712)),
            ("3:cpu:/d", None),
            ("", None),
        ];
        for (cgroups, limit) in rows {
            assert_eq!(cgroup_limit_bytes(cgroups, mount.path()), limit, "{cgroups}");
        }
    }

    #[test]
    fn this_process_uses_memory_and_the_machine_has_some() {
        let process = read();
        assert!(process.resident_bytes > 0);
        assert!(memory_limit_bytes() >= process.resident_bytes);
    }
}
