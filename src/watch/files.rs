//! Documents in a file or a folder, as they stand now.
//!
//! A folder's are the files in it and in its subfolders that end in `.yaml`, `.yml` or `.json`.
//! What begins with a dot is passed over: editors and Kubernetes (`..data`) keep there what is
//! meant to be seen under another name. A file that is reached by several links counts once.
//!
//! What cannot be read for the moment is told as such, so that it stays as it was: only a file
//! that has left its folder is gone. Blocking; the thread of the watch has nothing else to do.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk;
use super::replica::{DOCUMENTS_MAX, Document};
use crate::policy::Change;

/// Folders within folders: deeper ones are passed over.
const DEPTH_MAX: usize = 8;

const EXTENSIONS: [&str; 3] = ["yaml", "yml", "json"];

/// The files of a path, without their contents.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Listing {
    files: Vec<(PathBuf, Stamp)>,
    unreadable: Vec<(PathBuf, String)>,
    is_folder: bool,
}

/// What differs when a file has been written or replaced.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Stamp {
    place: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Every document that can be read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) documents: Vec<Document>,
    /// Sources that are there and cannot be read, each with why.
    pub(super) unreadable: Vec<(Box<str>, String)>,
}

/// Lists what is at `path`. An error means that the path itself is not there or cannot be
/// read.
pub(super) fn list(path: &Path) -> io::Result<Listing> {
    let metadata = fs::metadata(path)?;
    let mut listing = Listing { is_folder: metadata.is_dir(), ..Listing::default() };
    if listing.is_folder {
        let mut seen = HashSet::from([place(&metadata)]);
        walk(path, DEPTH_MAX, &mut seen, &mut listing)?;
    } else {
        listing.files.push((path.to_owned(), stamp(&metadata)));
    }
    Ok(listing)
}

fn walk(
    folder: &Path,
    depth: usize,
    seen: &mut HashSet<(u64, u64)>,
    listing: &mut Listing,
) -> io::Result<()> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort_unstable();
    for path in paths.into_iter().filter(|path| !is_hidden(path)) {
        let is_document = is_document(&path);
        let metadata = match fs::metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if is_document => {
                listing.unreadable.push((path, error.to_string()));
                continue;
            }
            // No document, or a link that leads nowhere: none of ours.
            Err(_) => continue,
        };
        let is_ours = metadata.is_dir() || metadata.is_file() && is_document;
        if !is_ours || !seen.insert(place(&metadata)) {
            continue;
        }
        if metadata.is_file() {
            // One more than is held tells the replica that there are too many.
            if listing.files.len() <= DOCUMENTS_MAX {
                listing.files.push((path, stamp(&metadata)));
            }
        } else if depth > 0
            && let Err(error) = walk(&path, depth - 1, seen, listing)
        {
            listing.unreadable.push((path, error.to_string()));
        }
    }
    Ok(())
}

/// Reads what was listed. All of it counts as `revision`: files do not count themselves.
pub(super) fn read(listing: &Listing, bytes_max: usize, revision: u64) -> Reading {
    let mut reading = Reading::default();
    let unreadable = listing.unreadable.iter().map(|(path, why)| (source(path), why.clone()));
    reading.unreadable.extend(unreadable);
    for (path, _) in &listing.files {
        match disk::read(path, bytes_max) {
            Ok(text) => reading.documents.push(Document {
                source: source(path),
                tenant: tenant(path).filter(|_| listing.is_folder),
                text: text.into(),
                revision,
            }),
            Err(error) => reading.unreadable.push((source(path), error.to_string())),
        }
    }
    reading
}

/// Every document of a path as a change, for who looks documents over and watches nothing. Here
/// what cannot be read is an error.
pub(crate) fn documents(path: &Path, bytes_max: usize) -> io::Result<Vec<Change>> {
    let Reading { documents, unreadable } = read(&list(path)?, bytes_max, 0);
    if let Some((source, why)) = unreadable.into_iter().next() {
        return Err(io::Error::other(format!("{source}: {why}")));
    }
    let change = |Document { source, tenant, text, revision }| Change::Put {
        source,
        tenant,
        text,
        revision,
    };
    Ok(documents.into_iter().map(change).collect())
}

/// The tenant that a file of a folder is named after.
pub(super) fn tenant(path: &Path) -> Option<Box<str>> {
    path.file_stem()?.to_str().map(Box::from)
}

fn source(path: &Path) -> Box<str> {
    path.to_string_lossy().into()
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

pub(super) fn is_document(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

/// Where a file really is, whatever path leads there.
fn place(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn stamp(metadata: &Metadata) -> Stamp {
    Stamp {
        place: place(metadata),
        bytes: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        fs::create_dir_all(disk::folder_of(&path)).expect("a folder");
        fs::write(path, text).expect("it is written");
    }

    /// Sources without the folder, with tenant and text.
    fn documents(path: &Path) -> Vec<(String, Option<Box<str>>, String)> {
        let reading = read(&list(path).expect("it is there"), 64, 1);
        let shorter = |document: Document| {
            let source = document.source.replace(&format!("{}/", path.display()), "");
            (source, document.tenant, String::from_utf8_lossy(&document.text).into_owned())
        };
        reading.documents.into_iter().map(shorter).collect()
    }

    fn row(source: &str, tenant: &str, text: &str) -> (String, Option<Box<str>>, String) {
        (source.into(), Some(tenant.into()), text.into())
    }

    #[test]
    fn folder_holds_documents_and_passes_over_what_is_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        for name in ["b.yaml", "a.json", "deep/er/c.yml", ".hidden.yaml", "..data/d.yaml", "note"] {
            write(path, name, name);
        }
        let expected = [
            row("a.json", "a", "a.json"),
            row("b.yaml", "b", "b.yaml"),
            row("deep/er/c.yml", "c", "deep/er/c.yml"),
        ];
        assert_eq!(documents(path), expected);
    }

    #[test]
    fn mounted_folder_of_links_shows_each_file_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        write(path, "..v1/a.yaml", "one");
        symlink("..v1", path.join("..data")).expect("a link");
        symlink("..data/a.yaml", path.join("a.yaml")).expect("a link");
        symlink("a.yaml", path.join("again.yaml")).expect("a link");
        symlink(".", path.join("round")).expect("a link");
        assert_eq!(documents(path), [row("a.yaml", "a", "one")]);
    }

    #[test]
    fn link_that_leads_nowhere_is_told_and_stays_what_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        symlink("nowhere", folder.path().join("a.yaml")).expect("a link");
        symlink("nowhere", folder.path().join("other")).expect("a link");
        let reading = read(&list(folder.path()).expect("it is there"), 64, 1);
        assert!(reading.documents.is_empty());
        assert_eq!(reading.unreadable.len(), 1);
        assert!(reading.unreadable[0].0.ends_with("/a.yaml"));
    }

    #[test]
    fn one_file_gives_no_tenant_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "any.conf", "text");
        let path = folder.path().join("any.conf");
        let expected = (path.display().to_string(), None, "text".to_owned());
        assert_eq!(documents(&path), [expected]);
        assert!(list(&folder.path().join("none")).is_err());
    }

    #[test]
    fn listing_differs_when_a_file_is_written_or_replaced_and_only_then() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path();
        write(path, "a.yaml", "one");
        let before = list(path).expect("it is there");
        assert_eq!(list(path).expect("it is there"), before);
        write(path, "a.yaml", "three");
        let written = list(path).expect("it is there");
        assert_ne!(written, before);
        disk::replace(&path.join("a.yaml"), b"seven").expect("it can be replaced");
        assert_ne!(list(path).expect("it is there"), written);
    }

    #[test]
    fn too_long_text_is_cut_off_one_past_the_most() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), "a.yaml", &"#".repeat(1_000));
        assert_eq!(documents(folder.path())[0].2.len(), 65);
    }
}
