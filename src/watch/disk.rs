//! A file is replaced as a whole or not at all, whoever reads it meanwhile and whatever fails.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Writes `bytes` beside the file, under a hidden name, and puts that in its place.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Behind a link stands the file that is meant.
    let path = fs::canonicalize(path).unwrap_or_else(|_is_new| path.to_owned());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let folder = folder_of(&path);
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(".tmp");
    let beside = folder.join(hidden);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| fs::rename(&beside, &path));
    if renamed.is_err() {
        // It may not even have been made.
        drop(fs::remove_file(&beside));
    }
    renamed?;
    File::open(folder)?.sync_all()
}

/// The folder that a path stands in.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The bytes of a file, cut off one past `bytes_max`: enough to see that there are too many.
pub(super) fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_replaced_behind_its_link_and_nothing_stays_beside_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        replace(&path, b"one").expect("it is new");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        replace(&link, b"two").expect("it is there");
        assert_eq!(fs::read(&path).expect("it is there"), b"two");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn what_cannot_be_written_leaves_the_file_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        replace(&path, b"one").expect("it is new");
        fs::create_dir(folder.path().join(".a.tmp")).expect("it is in the way");
        replace(&path, b"two").expect_err("its place beside is taken");
        assert_eq!(fs::read(&path).expect("it is there"), b"one");
    }
}
