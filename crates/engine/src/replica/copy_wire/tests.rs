use std::fs;
use std::path::PathBuf;

use jindou_store::Partial;
use tempfile::TempDir;

use super::*;
use crate::{Config, Database};

/// A copy of a small store as it is sent, and the store.
struct Sent {
    bytes: Vec<u8>,
    files: Vec<StoreFile>,
    store: PathBuf,
    folder: TempDir,
}

fn sent() -> Sent {
    let folder = tempfile::tempdir().expect("there is room");
    let store = folder.path().join("store");
    let database = Database::open_or_create(&store, Config::default()).expect("it is new");
    let insert = "INSERT DATA { <http://e/a> <http://e/p> \"first\" GRAPH <http://e/g> { <http://e/b> a <http://e/C> } }";
    database.update(insert).expect("there is room");
    database.compact().expect("there is room");
    let insert = "INSERT DATA { <http://e/c> <http://e/p> \"second\" }";
    database.update(insert).expect("there is room");
    drop(database);
    let directory = Directory::open_to_copy(&store).expect("it is whole");
    let files = directory.files().expect("they are there");
    let mut bytes = Vec::new();
    send(&store, SnapshotNumber(3), &files, u64::MAX, &mut bytes).expect("memory takes all");
    drop(directory);
    Sent {
        bytes,
        files,
        store,
        folder,
    }
}

impl Sent {
    /// Takes bytes into a directory on its way to a place, which has the store then.
    fn take(&self, mut bytes: &[u8]) -> Result<(ReceivedCopy, PathBuf), CopyError> {
        let place = self.folder.path().join("copied");
        let partial = Partial::begin_beside(&place)?;
        let received = receive_copy(&mut bytes, partial.directory(), &|done, total| {
            assert!(done <= total);
        })?;
        fs::remove_dir_all(&place).ok();
        partial.finish()?;
        Ok((received, place))
    }
}

#[test]
fn a_store_arrives_as_it_was() {
    let sent = sent();
    let (received, place) = sent.take(&sent.bytes).expect("it is whole");
    let expected = ReceivedCopy {
        snapshot: SnapshotNumber(3),
        files: sent.files.len(),
        bytes: sent.files.iter().map(|file| file.bytes).sum(),
    };
    assert_eq!(received, expected);
    for file in &sent.files {
        let read = |folder: &Path| fs::read(folder.join(&file.name)).expect("it is there");
        assert!(read(&sent.store) == read(&place), "{}", file.name);
    }
    let report = Database::verify(&place).expect("it is a store");
    assert_eq!((report.triples, report.named_quads), (2, 1));
}

#[test]
fn what_is_cut_off_or_changed_is_no_copy() {
    let sent = sent();
    let seed = std::env::var("JINDOU_SEED").map_or(1, |text| text.parse().expect("a number"));
    let mut random: u64 = seed;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (random >> 33) as usize % bound
    };
    let length = sent.bytes.len();
    // The beginning byte by byte, and places of the rest.
    let places: Vec<usize> = (0..40).chain((0..60).map(|_| below(length))).collect();
    for place in places {
        let cut = sent.take(&sent.bytes[..place]);
        assert!(
            matches!(cut, Err(CopyError::Connection(_))),
            "seed {seed}, cut at {place}: {cut:?}"
        );
        let mut changed = sent.bytes.clone();
        changed[place] ^= 1 << below(8);
        let taken = sent.take(&changed);
        assert!(taken.is_err(), "seed {seed}, changed at {place}: {taken:?}");
    }
    for _ in 0..200 {
        let bytes: Vec<u8> = (0..below(200)).map(|_| below(256) as u8).collect();
        assert!(sent.take(&bytes).is_err(), "seed {seed}: {bytes:?}");
    }
    let left = fs::read_dir(sent.folder.path()).expect("it is a folder");
    assert_eq!(left.count(), 1, "nothing is left but the store");
}

#[test]
fn files_go_where_stores_have_them_and_nowhere_else() {
    let sent = sent();
    for name in [
        "../outside",
        "/tmp/outside",
        "LOCK",
        "streams/../../outside",
    ] {
        let mut bytes = Vec::new();
        let files = vec![(name.to_owned(), 0)];
        let head = CopyHead::Files { snapshot: 1, files };
        head.write(&mut bytes).expect("memory takes it");
        bytes.extend(Xxh3::new().digest().to_le_bytes());
        let taken = sent.take(&bytes);
        assert!(
            matches!(taken, Err(CopyError::Store(_))),
            "{name}: {taken:?}"
        );
    }
    let mut bytes = Vec::new();
    let files = vec![("a".to_owned(), u64::MAX), ("b".to_owned(), 1)];
    let head = CopyHead::Files { snapshot: 1, files };
    head.write(&mut bytes).expect("memory takes it");
    assert!(matches!(sent.take(&bytes), Err(CopyError::Damaged(_))));
}

#[test]
fn who_gives_none_says_why() {
    let sent = sent();
    let refused = |reason: &str, leader: Option<&str>| {
        let mut bytes = Vec::new();
        let head = CopyHead::Refused {
            reason: reason.to_owned(),
            leader: leader.map(str::to_owned),
        };
        head.write(&mut bytes).expect("memory takes it");
        sent.take(&bytes).expect_err("it is none")
    };
    match refused("another leads", Some("b")) {
        CopyError::Refused { reason, leader } => {
            assert_eq!(
                (reason.as_str(), leader.as_deref()),
                ("another leads", Some("b"))
            );
        }
        other => panic!("{other}"),
    }
    for (reason, leader) in [("\u{1b}[2J", None), ("no", Some("\n"))] {
        assert!(matches!(refused(reason, leader), CopyError::Damaged(_)));
    }
    let long = "x".repeat(MOST_REASON_BYTES + 1);
    assert!(matches!(refused(&long, None), CopyError::Damaged(_)));
}

#[test]
fn a_copy_goes_no_faster_than_its_rate() {
    let mut pace = Pace::new(1_000);
    let begun = pace.begun;
    let second = Duration::from_secs(1);
    assert_eq!(pace.wait_after(500, begun), second / 2);
    // It took longer than it had to.
    assert_eq!(pace.wait_after(500, begun + 2 * second), Duration::ZERO);
    assert_eq!(pace.wait_after(2_000, begun + 2 * second), second);
}
