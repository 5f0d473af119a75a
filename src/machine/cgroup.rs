//! The cgroups that hold a process, and the bounds that they set it, in both versions.
//!
//! A bound holds for everything below it, so all folders from the process's own up to the mount
//! are looked at. In a container the mount shows the container's own cgroup, and the path may be
//! the host's: then only the mount is there.

use std::fs;
use std::path::{Path, PathBuf};

use super::words::{self, counter};
use super::{MemoryUse, Periods};

/// Where version 2 is mounted beside version 1.
const HYBRID: &str = "unified";

/// The cgroups of one process.
#[derive(Debug)]
pub(super) struct Cgroups<'m> {
    /// Its `/proc/self/cgroup`.
    list: String,
    mount: &'m Path,
}

/// What the processor is bounded to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quota {
    pub(super) cores: f64,
    pub(super) periods: Option<Periods>,
}

/// One line of the list: which hierarchy, and the path in it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Line<'t> {
    /// `0::/path`
    Two { path: &'t str },
    /// `4:cpu,cpuacct:/path`
    One { controllers: &'t str, path: &'t str },
}

impl<'t> Line<'t> {
    fn read(line: &'t str) -> Option<Self> {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        // A path above the mount, as a cgroup namespace shows it, leads nowhere.
        let path = if path.split('/').any(|part| part == "..") { "" } else { path };
        let path = path.trim_start_matches('/');
        let line = if controllers.is_empty() {
            Self::Two { path }
        } else {
            Self::One { controllers, path }
        };
        Some(line)
    }
}

impl<'m> Cgroups<'m> {
    pub(super) fn new(list: String, mount: &'m Path) -> Self {
        Self { list, mount }
    }

    /// The lowest bound on memory; nothing where none is set.
    pub(super) fn memory_limit_bytes(&self) -> Option<u64> {
        let two = self.folders_of_two().filter_map(|folder| number(&folder, "memory.max"));
        let one = self.folders_of_one("memory");
        two.chain(one.filter_map(|folder| number(&folder, "memory.limit_in_bytes"))).min()
    }

    /// Of the cgroup that is nearest to its bound.
    pub(super) fn memory(&self) -> Option<MemoryUse> {
        let two = self.folders_of_two().filter_map(|folder| {
            memory(&folder, ["memory.max", "memory.current", "inactive_file"])
        });
        let one = self.folders_of_one("memory").filter_map(|folder| {
            let files = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"];
            memory(&folder, files)
        });
        let share = |memory: &MemoryUse| memory.used_bytes as f64 / memory.limit_bytes as f64;
        two.chain(one).max_by(|a, b| share(a).total_cmp(&share(b)))
    }

    /// Of the cgroup that bounds the processor most; nothing where none does.
    pub(super) fn processor(&self) -> Option<Quota> {
        let two = self.folders_of_two().filter_map(|folder| {
            let cores = words::cores_of_quota(&read(&folder, "cpu.max")?)?;
            Some((cores, folder))
        });
        let one = self.folders_of_one("cpu").filter_map(|folder| {
            let [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"];
            let text = format!("{} {}", read(&folder, quota)?.trim(), read(&folder, period)?);
            Some((words::cores_of_quota(&text)?, folder))
        });
        let (cores, folder) = two.chain(one).min_by(|(a, _), (b, _)| a.total_cmp(b))?;
        let periods = read(&folder, "cpu.stat").and_then(|text| {
            let all = counter(&text, "nr_periods")?;
            Some(Periods { all, throttled: counter(&text, "nr_throttled")? })
        });
        Some(Quota { cores, periods })
    }

    /// The text of the nearest cgroup's file of stalls for `cpu` or `memory`; empty for none. The
    /// root is no cgroup of ours: everything on the machine is in it.
    pub(super) fn stalled(&self, resource: &str) -> String {
        let file = format!("{resource}.pressure");
        let mut own = self.folders_of_two().filter(|folder| !is_root(folder));
        own.find_map(|folder| read(&folder, &file)).unwrap_or_default()
    }

    fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        self.list.lines().filter_map(Line::read)
    }

    /// From the process's own cgroup up to the mount, if it is in version 2.
    fn folders_of_two(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.lines().filter_map(|line| match line {
            Line::Two { path } => Some(path),
            Line::One { .. } => None,
        });
        paths.flat_map(|path| {
            let hybrid = self.mount.join(HYBRID);
            let root = if hybrid.is_dir() { hybrid } else { self.mount.to_owned() };
            up_to(&root, path)
        })
    }

    /// The same in the hierarchy of version 1 that has this controller.
    fn folders_of_one(&self, wanted: &'static str) -> impl Iterator<Item = PathBuf> {
        let found = self.lines().filter_map(move |line| match line {
            Line::One { controllers, path } => controllers
                .split(',')
                .any(|controller| controller == wanted)
                .then_some((controllers, path)),
            Line::Two { .. } => None,
        });
        found.flat_map(move |(controllers, path)| {
            // Mounted under all its controllers' names, or linked under each.
            let joint = self.mount.join(controllers);
            let root = if joint.is_dir() { joint } else { self.mount.join(wanted) };
            up_to(&root, path)
        })
    }
}

/// The folder at `path` below `root` and those above it, down from the longest path to `root`.
fn up_to(root: &Path, path: &str) -> impl Iterator<Item = PathBuf> + use<> {
    let whole = root.join(path);
    let folders: Vec<PathBuf> = whole
        .ancestors()
        .take_while(|folder| folder.starts_with(root))
        .map(Path::to_owned)
        .collect();
    folders.into_iter()
}

/// Only the root of a machine has nobody who could be told of its end.
fn is_root(folder: &Path) -> bool {
    !folder.join("cgroup.events").exists()
}

fn memory(folder: &Path, [limit, used, reclaimable]: [&str; 3]) -> Option<MemoryUse> {
    let limit_bytes = number(folder, limit).filter(|bytes| *bytes > 0)?;
    let inactive = read(folder, "memory.stat").and_then(|text| counter(&text, reclaimable));
    let used_bytes = number(folder, used)?.saturating_sub(inactive.unwrap_or(0));
    Some(MemoryUse { used_bytes, limit_bytes })
}

fn read(folder: &Path, file: &str) -> Option<String> {
    fs::read_to_string(folder.join(file)).ok()
}

/// `max` is no number, and no limit.
fn number(folder: &Path, file: &str) -> Option<u64> {
    read(folder, file)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::tests::lay;
    use super::*;

    #[test]
    fn lines_of_the_list_are_read_in_both_versions() {
        let one = |controllers, path| Some(Line::One { controllers, path });
        let rows = [
            ("0::/", Some(Line::Two { path: "" })),
            ("0::/system.slice/a:b", Some(Line::Two { path: "system.slice/a:b" })),
            ("0::/../../a", Some(Line::Two { path: "" })),
            ("4:memory:/docker/1", one("memory", "docker/1")),
            ("4:cpu,memory:/", one("cpu,memory", "")),
            ("1:name=systemd:/", one("name=systemd", "")),
            ("0:", None),
            ("", None),
        ];
        for (line, expected) in rows {
            assert_eq!(Line::read(line), expected, "{line}");
        }
    }

    #[test]
    fn lowest_limit_on_the_way_up_counts() {
        let mount = tempfile::tempdir().expect("a folder");
        lay(
            mount.path(),
            &[
                ("memory.max", "max\n"),
                ("a/memory.max", "3000\n"),
                ("a/b/memory.max", "5000\n"),
                ("a/b/c/memory.max", "max\n"),
                ("memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("memory/d/memory.limit_in_bytes", "2000\n"),
            ],
        );
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
        for (list, limit) in rows {
            let cgroups = Cgroups::new(list.into(), mount.path());
            assert_eq!(cgroups.memory_limit_bytes(), limit, "{list}");
        }
    }

    #[test]
    fn cgroup_nearest_to_its_bound_is_told() {
        let mount = tempfile::tempdir().expect("a folder");
        lay(
            mount.path(),
            &[
                ("a/memory.max", "1000\n"),
                ("a/memory.current", "900\n"),
                ("a/b/memory.max", "500\n"),
                ("a/b/memory.current", "100\n"),
            ],
        );
        let cgroups = Cgroups::new("0::/a/b".into(), mount.path());
        let nearest = MemoryUse { used_bytes: 900, limit_bytes: 1_000 };
        assert_eq!(cgroups.memory(), Some(nearest));
        assert_eq!(cgroups.memory_limit_bytes(), Some(500));
    }

    #[test]
    fn tightest_quota_on_the_way_up_counts_with_its_periods() {
        let mount = tempfile::tempdir().expect("a folder");
        lay(
            mount.path(),
            &[
                ("unified/a/cpu.max", "200000 100000\n"),
                ("unified/a/cpu.stat", "nr_periods 7\nnr_throttled 3\n"),
                ("unified/a/b/cpu.max", "300000 100000\n"),
            ],
        );
        let cgroups = Cgroups::new("0::/a/b".into(), mount.path());
        let periods = Some(Periods { all: 7, throttled: 3 });
        assert_eq!(cgroups.processor(), Some(Quota { cores: 2.0, periods }));
    }
}
