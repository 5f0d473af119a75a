//! The data folder: whose it is, and what its files are called.
//!
//! A snapshot of the number n holds all that was before the journals of number n and above. Each
//! start begins a journal of its own, so nothing is ever appended behind a torn end; each new
//! snapshot does, too. Files under other names are left alone, but a folder with files of a Redis
//! is refused: whoever named it expects them to be read.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::error::Error;
use super::frame::Kind;

const LOCK: &str = "tollgate.lock";
const EXTENSION: &str = ".tollgate";
const BACKUPS: &str = "backups";

/// Files in the making, under a hidden name.
const UNFINISHED: &str = ".unfinished-";

/// A folder that is ours until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held locked.
    _lock: File,
}

/// The files of one kind, by ascending number.
pub(super) type Numbers = Vec<u64>;

impl Folder {
    /// Makes the folder where only its last part is missing, and takes it for this process.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Folder { path: path.to_owned(), source };
        match fs::create_dir(path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        refuse_redis(path)?;
        let mut lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join(LOCK))
            .map_err(failed)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                // Only words of help are lost.
                drop(lock.take(20).read_to_string(&mut holder));
                let holder = holder.trim();
                let holder =
                    if holder.is_empty() { String::new() } else { format!(" (process {holder})") };
                return Err(Error::Locked { folder: path.to_owned(), holder });
            }
            Err(error) => return Err(failed(error.into())),
        }
        lock.set_len(0).map_err(failed)?;
        write!(lock, "{}", std::process::id()).map_err(failed)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    pub(super) fn file(&self, kind: Kind, number: u64) -> PathBuf {
        self.path.join(format!("{}-{number}{EXTENSION}", kind.name()))
    }

    /// Where a file is made that will be put under its name when it is whole.
    pub(super) fn unfinished(&self, name: &str) -> PathBuf {
        self.path.join(format!("{UNFINISHED}{name}{EXTENSION}"))
    }

    /// Where backups are put, unless the settings say otherwise.
    pub(super) fn backups(&self) -> PathBuf {
        self.path.join(BACKUPS)
    }

    /// The numbers of the snapshots and of the journals that are there.
    pub(super) fn list(&self) -> Result<(Numbers, Numbers), Error> {
        let names = names(&self.path)?;
        let numbers = |kind: Kind| {
            let mut numbers: Numbers = names.iter().filter_map(|name| number(name, kind)).collect();
            numbers.sort_unstable();
            numbers
        };
        Ok((numbers(Kind::Snapshot), numbers(Kind::Journal)))
    }

    /// Removes what was in the making when a server ended.
    pub(super) fn clear_unfinished(&self) -> Result<(), Error> {
        for name in names(&self.path)?.iter().filter(|name| name.starts_with(UNFINISHED)) {
            let path = self.path.join(name);
            fs::remove_file(&path).map_err(|source| Error::Write { path, source })?;
        }
        Ok(())
    }

    pub(super) fn remove(&self, kind: Kind, number: u64) -> io::Result<()> {
        fs::remove_file(self.file(kind, number))
    }

    /// Lets the names in the folder outlive a loss of power.
    pub(super) fn sync(&self) -> io::Result<()> {
        sync(&self.path)
    }
}

/// Lets the names in a folder outlive a loss of power.
pub(super) fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn names(folder: &Path) -> Result<Vec<String>, Error> {
    let failed = |source| Error::Folder { path: folder.to_owned(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        // Names that are no text are none of ours.
        names.extend(entry.map_err(failed)?.file_name().into_string());
    }
    Ok(names)
}

fn number(name: &str, kind: Kind) -> Option<u64> {
    let number = name.strip_prefix(kind.name())?.strip_prefix('-')?.strip_suffix(EXTENSION)?;
    number.parse().ok().filter(|parsed: &u64| parsed.to_string() == number)
}

fn refuse_redis(folder: &Path) -> Result<(), Error> {
    let is_of_redis = |name: &String| {
        let is_dump = Path::new(name).extension().is_some_and(|extension| extension == "rdb");
        is_dump || name == "appendonlydir" || name == "appendonly.aof"
    };
    match names(folder)?.into_iter().find(is_of_redis) {
        Some(found) => Err(Error::RedisFiles { folder: folder.to_owned(), found }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_is_of_one_server_at_a_time() {
        let parent = tempfile::tempdir().expect("a folder");
        let path = parent.path().join("data");
        let folder = Folder::open(&path).expect("it can be made");
        let complaint = Folder::open(&path).expect_err("it is taken").to_string();
        let process = format!("(process {})", std::process::id());
        assert!(complaint.contains(&process), "{complaint}");
        drop(folder);
        Folder::open(&path).expect("it is free again");
        Folder::open(&parent.path().join("a/b")).expect_err("the folder of the folder is missing");
    }

    #[test]
    fn only_our_own_names_are_listed() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = Folder::open(parent.path()).expect("it is there");
        for name in [
            "snapshot-10.tollgate",
            "snapshot-9.tollgate",
            "snapshot-09.tollgate",
            "snapshot-1.tollgate.bak",
            "journal-2.tollgate",
            "journal--2.tollgate",
            "lost+found",
        ] {
            fs::write(parent.path().join(name), b"").expect("it is written");
        }
        assert_eq!(folder.list().expect("it can be read"), (vec![9, 10], vec![2]));
    }

    #[test]
    fn folder_of_a_redis_is_refused_untouched() {
        for name in ["dump.rdb", "appendonlydir"] {
            let parent = tempfile::tempdir().expect("a folder");
            fs::write(parent.path().join(name), b"REDIS0011").expect("it is written");
            let complaint = Folder::open(parent.path()).expect_err("it is a Redis's");
            assert!(complaint.is_bad_input());
            assert!(complaint.to_string().contains(name), "{complaint}");
            assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 1);
        }
    }
}
