//! Files that are not as they were written: refused by name, or read as some acknowledged state.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use jindou_engine::{Database, EngineError};

use crate::{Random, config, environment, mark, marks, names, refusal, store};

#[test]
fn a_damaged_current_file_is_refused_by_name_and_costs_no_other_file() {
    let folder = tempfile::tempdir().unwrap();
    let location = store(folder.path(), 3);
    let database = Database::open(&location, config()).unwrap();
    database.compact().unwrap();
    mark(&database, 3).unwrap();
    database.checkpoint().unwrap();
    mark(&database, 4).unwrap();
    drop(database);
    let before = names(&location);
    let path = location.join("CURRENT");
    let whole = fs::read(&path).unwrap();
    let flips = (0..whole.len() * 8).map(|bit| {
        let mut altered = whole.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        altered
    });
    let cuts = (0..whole.len()).map(|length| whole[..length].to_vec());
    for altered in flips.chain(cuts) {
        fs::write(&path, &altered).unwrap();
        let refusal = refusal(&location);
        assert!(refusal.contains("CURRENT"), "{altered:?}: {refusal}");
        assert!(Database::open_or_create(&location, config()).is_err());
        assert_eq!(names(&location), before, "{altered:?}");
    }
    fs::remove_file(&path).unwrap();
    assert!(refusal(&location).contains("CURRENT"));
    let made = Database::open_or_create(&location, config());
    let made = made
        .map(|_| ())
        .expect_err("a store is not made over another");
    assert!(made.to_string().contains("CURRENT"), "{made}");
    fs::write(&path, &whole).unwrap();
    let database = Database::open(&location, config()).unwrap();
    assert_eq!(marks(&database), [0, 1, 2, 3, 4]);
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("a folder can be made");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("a file can be copied");
    }
}

/// A store with a base, a checkpoint and a log, and the states that it had after each transaction
/// since the checkpoint.
fn with_every_kind_of_file(folder: &Path) -> (PathBuf, BTreeSet<Vec<u64>>) {
    let location = store(folder, 5);
    let database = Database::open(&location, config()).unwrap();
    database.compact().unwrap();
    (5..8).for_each(|number| mark(&database, number).unwrap());
    database.checkpoint().unwrap();
    let mut states = BTreeSet::from([marks(&database)]);
    for number in 8..14 {
        mark(&database, number).unwrap();
        states.insert(marks(&database));
        let text = format!(
            "DELETE DATA {{ <http://e/mark> <http://e/is> {} }}",
            number - 6
        );
        database.update(&text).unwrap();
        states.insert(marks(&database));
    }
    (location, states)
}

/// Alters one file somewhere and says what was done.
fn damage(location: &Path, random: &mut Random) -> String {
    let mut files = names(location);
    files.retain(|name| name != "LOCK");
    let name = &files[random.below(files.len() as u64) as usize];
    let path = location.join(name);
    let mut bytes = fs::read(&path).unwrap();
    // A log is mostly room for what is to come.
    let used = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1);
    let length = match random.below(8) {
        0 => bytes.len(),
        _ => used,
    } as u64;
    let place = random.below(length) as usize;
    let what = match random.below(8) {
        0 => {
            bytes.truncate(place);
            format!("cut at {place}")
        }
        1 => {
            let count = 1 + random.below(1000) as usize;
            bytes.extend((0..count).map(|_| random.next() as u8));
            format!("{count} bytes longer")
        }
        2 => {
            fs::remove_file(&path).unwrap();
            return format!("{name}: removed");
        }
        3 => {
            let end = bytes.len().min(place + 1 + random.below(4096) as usize);
            bytes[place..end].fill(0);
            format!("zeros at {place}..{end}")
        }
        4 => {
            let end = bytes.len().min(place + 1 + random.below(600) as usize);
            bytes[place..end]
                .iter_mut()
                .for_each(|byte| *byte = random.next() as u8);
            format!("noise at {place}..{end}")
        }
        5 => {
            let from = random.below(length) as usize;
            let count = (1 + random.below(2000) as usize).min(bytes.len() - from.max(place));
            bytes.copy_within(from..from + count, place);
            format!("{count} bytes of {from} at {place}")
        }
        _ => {
            let bit = random.below(8);
            bytes[place] ^= 1 << bit;
            format!("bit {bit} of byte {place}")
        }
    };
    fs::write(&path, bytes).unwrap();
    format!("{name}: {what}")
}

#[test]
fn damage_anywhere_is_named_or_harmless() {
    let seed = environment("JINDOU_SEED", 1);
    let cases = environment("JINDOU_CASES", 400);
    println!("seed {seed}, {cases} cases (JINDOU_SEED, JINDOU_CASES)");
    let folder = tempfile::tempdir().unwrap();
    let (location, states) = with_every_kind_of_file(folder.path());
    let whole = states
        .iter()
        .max_by_key(|state| state.iter().max().copied());
    assert!(whole.is_some());
    let (mut refused, mut opened, mut shorter) = (0, 0, 0);
    for case in 0..cases {
        let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(case));
        let place = folder.path().join(format!("case-{case}"));
        copy(&location, &place);
        let what = damage(&place, &mut random);
        let verified = Database::verify(&place);
        match Database::open(&place, config()) {
            Ok(database) => {
                let state = marks(&database);
                assert!(states.contains(&state), "case {case}, {what}: {state:?}");
                opened += 1;
                shorter += u64::from(state.last() != Some(&13));
                assert!(verified.is_ok(), "case {case}, {what}: {verified:?}");
                mark(&database, 99).expect("the store goes on");
                database.compact().expect("the store goes on");
            }
            Err(error) => {
                let text = error.to_string();
                let names_it = text.contains(".jnd") || text.contains("CURRENT");
                assert!(names_it, "case {case}, {what}: {text}");
                assert!(verified.is_err(), "case {case}, {what}: {verified:?}");
                refused += 1;
            }
        }
        fs::remove_dir_all(&place).unwrap();
    }
    println!("{refused} refused, {opened} opened, {shorter} of these without a torn end");
    assert!(refused > opened);
}

#[test]
fn a_checkpoint_of_another_base_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (location, _) = with_every_kind_of_file(folder.path());
    let other = folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let (foreign, _) = with_every_kind_of_file(&other);
    let name = names(&location)
        .into_iter()
        .find(|name| name.starts_with("changes"))
        .expect("there is a checkpoint");
    let foreign_database = Database::open(&foreign, config()).unwrap();
    foreign_database
        .update("INSERT DATA { <http://e/x> <http://e/y> <http://e/z> }")
        .unwrap();
    foreign_database.compact().unwrap();
    (0..3).for_each(|number| mark(&foreign_database, number).unwrap());
    foreign_database.checkpoint().unwrap();
    drop(foreign_database);
    let theirs = names(&foreign)
        .into_iter()
        .find(|name| name.starts_with("changes"))
        .expect("there is a checkpoint");
    fs::copy(foreign.join(theirs), location.join(&name)).unwrap();
    assert!(refusal(&location).contains(&name));
    let refused = Database::verify(&location);
    assert!(
        matches!(refused, Err(EngineError::Corrupt { .. })),
        "{refused:?}"
    );
}
