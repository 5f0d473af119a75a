//! The keeper without its thread: a disk that refuses, and files with any damage.

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::folder::Folder;
use super::frame::Kind;
use super::keeper::{Ground, Keeper};
use super::options::{JournalMode, Options};
use super::output::Output;
use super::recovery::{Recovered, recover};
use super::status::Status;
use crate::commands::{Initial, Runtime, Service};
use crate::engine::{Engine, Scope, Value};
use crate::time::{Clock, Duration, Timestamp};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn options(path: &Path) -> Options {
    Options {
        path: path.to_owned(),
        journal: JournalMode::Everysec,
        snapshot_period: Duration::ZERO,
        journal_bytes_max: "1gb".parse().expect("a size"),
        snapshots_kept: std::num::NonZeroUsize::MIN,
        backup_path: std::path::PathBuf::new(),
    }
}

fn service(seed: u64) -> Arc<Service> {
    Arc::new(Service::new(Engine::new(4, seed), Runtime::new(Initial::small()), NOW))
}

fn keeper(service: &Arc<Service>, path: &Path) -> (Keeper, Status) {
    let status = Status::default();
    let ground = Ground {
        service: Arc::clone(service),
        clock: Clock::manual(NOW),
        folder: Folder::open(path).expect("it is free"),
        options: options(path),
        boot: "this".to_owned(),
        status: status.clone(),
    };
    (Keeper::begin(ground, &Recovered::default()).expect("it can be written"), status)
}

fn set(service: &Service, key: &str, number: i64) {
    let engine = service.engine();
    let key = engine.key(key.as_bytes());
    engine.transact(Scope::Keys(&[key]), 0, NOW, |view| {
        view.insert(key, Value::Integer(number), Timestamp::MAX);
    });
}

fn get(service: &Service, key: &str) -> Option<i64> {
    let engine = service.engine();
    let key = engine.key(key.as_bytes());
    engine.transact(Scope::Keys(&[key]), 0, NOW, |view| match view.look(key)?.value {
        Value::Integer(number) => Some(*number),
        _ => None,
    })
}

fn restored(path: &Path) -> (Arc<Service>, Recovered) {
    let service = service(8);
    let folder = Folder::open(path).expect("it is free");
    let clock = Clock::manual(NOW);
    let recovered = recover(&folder, &service, ("this", &clock)).expect("it is ours");
    (service, recovered)
}

#[test]
fn full_disk_is_told_and_nothing_is_lost_once_there_is_room_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(7);
    let (mut keeper, status) = keeper(&service, folder.path());
    set(&service, "before", 1);
    keeper.tick();
    let full = OpenOptions::new().write(true).open("/dev/full").expect("it is a device");
    let good = keeper.journal.replace(Output::over(full));
    for number in 0..3 {
        set(&service, "meanwhile", number);
        keeper.tick();
        assert!(!status.facts().journal_ok);
    }
    assert_eq!(status.facts().failures, 3);
    keeper.journal = good;
    set(&service, "after", 1);
    keeper.tick();
    assert!(status.facts().journal_ok);
    drop(keeper);
    let (copy, recovered) = restored(folder.path());
    assert_eq!(recovered.damaged_bytes, 0);
    let found = ["before", "meanwhile", "after"].map(|key| get(&copy, key));
    assert_eq!(found, [Some(1), Some(2), Some(1)]);
}

#[test]
fn snapshot_that_cannot_be_made_leaves_what_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let service = service(7);
    let (mut keeper, status) = keeper(&service, folder.path());
    set(&service, "k", 1);
    // Something is in the way of its name, and cannot be replaced.
    fs::create_dir_all(folder.path().join("snapshot-2.tollgate/x")).expect("it is new");
    let (answer, answered) = std::sync::mpsc::channel();
    let tell = move |result| answer.send(result).expect("it is waited for");
    keeper.order(crate::commands::SaveOrder::Now, Box::new(tell));
    while keeper.making().is_some() {
        keeper.go_on();
    }
    assert!(answered.recv().expect("an answer").is_err());
    assert!(!status.facts().saved_ok);
    set(&service, "k", 2);
    assert!(keeper.end(false));
    fs::remove_dir_all(folder.path().join("snapshot-2.tollgate")).expect("it is there");
    assert_eq!(get(&restored(folder.path()).0, "k"), Some(2));
}

#[test]
fn clock_goes_on_from_what_was_written_last() {
    let minute = Duration::from_secs(60);
    // The machine has been up for as long as a manual clock says: what it said, and later.
    for (boot, up, expected) in [
        ("this", NOW + minute, NOW + minute),
        ("other", NOW + minute, NOW),
        ("this", NOW - minute, NOW),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let service = service(7);
        let (keeper, _) = keeper(&service, folder.path());
        assert!(keeper.end(false));
        let folder = Folder::open(folder.path()).expect("it is free");
        let recovered = recover(&folder, &service, (boot, &Clock::manual(up))).expect("it is ours");
        assert_eq!(recovered.resume, expected, "{boot}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each tick is one frame of one key, so it can be said which of them must be there.
    #[test]
    fn damage_costs_the_frames_that_it_hits_and_no_other(
        keys in 1_usize..20,
        at in any::<prop::sample::Index>(),
        damage in prop::collection::vec(any::<u8>(), 1..60),
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let service = service(7);
        let (mut keeper, _) = keeper(&service, folder.path());
        let file = folder.path().join("journal-1.tollgate");
        let length = || fs::metadata(&file).expect("it is there").len() as usize;
        let mut frames = Vec::new();
        for key in 0..keys {
            let begins = length();
            set(&service, &format!("k{key}"), key as i64);
            keeper.tick();
            frames.push(begins..length());
        }
        drop(keeper);
        let mut bytes = fs::read(&file).expect("it is there");
        let hit = at.index(bytes.len() - 10) + 10;
        let hit = hit..(hit + damage.len()).min(bytes.len());
        let whole = bytes.clone();
        bytes[hit.clone()].copy_from_slice(&damage[..hit.len()]);
        fs::write(&file, &bytes).expect("it is written");
        let (copy, _) = restored(folder.path());
        for (key, frame) in frames.into_iter().enumerate() {
            let is_same = bytes[frame.clone()] == whole[frame];
            let expected = is_same.then_some(key as i64);
            prop_assert_eq!(get(&copy, &format!("k{key}")), expected);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = [&Kind::Journal.preamble()[..], &bytes].concat();
        fs::write(folder.path().join("journal-1.tollgate"), &bytes).expect("it is written");
        let (_, recovered) = restored(folder.path());
        prop_assert_eq!(recovered.records, 0);
    }
}
