//! Bits flipped, sectors lost, files cut, removed or put back: is it noticed, and named?

use std::path::Path;

use jindou_store::log::{Log, MAX_PAYLOAD_BYTES};
use jindou_store::{Identity, StoreError};
use proptest::prelude::*;

use super::disk::{Disk, Random};
use super::{GENERATION, Groups, create, open, options, read};

/// A log of several files, all synced, as a killed process leaves it; and where the records of its
/// last file end.
fn killed() -> (Disk, Groups, u64) {
    let disk = Disk::default();
    let log = create(&disk);
    let mut groups = Groups::new();
    for number in 0..30_u8 {
        let mut group = log.group().unwrap();
        let mut payloads = Vec::new();
        for part in 0..number % 3 {
            payloads.push(vec![part; usize::from(number) * 7]);
            group = group.append(payloads.last().unwrap()).unwrap();
        }
        payloads.push(vec![number; 200]);
        let ticket = group.commit(payloads.last().unwrap()).unwrap();
        groups.push(payloads);
        if number % 4 == 1 {
            log.sync(ticket).unwrap();
        }
    }
    let end = log.files().last().unwrap().bytes;
    assert!(log.files().len() >= 2);
    log.sync(log.append(b"last").unwrap()).unwrap();
    groups.push(vec![b"last".to_vec()]);
    // 40 bytes, the payload, its padding.
    (disk.after_kill(), groups, end + 48)
}

/// Asserts that the damage is refused by the name of the file.
fn assert_refused(contents: &[(String, Vec<u8>)], name: &str, what: &str) {
    match read(&Disk::of(contents), 1) {
        Err(StoreError::Corrupt { path, reason }) => {
            assert_eq!(path, Path::new("/disk").join(name), "{what}: {reason}");
        }
        Err(StoreError::Version { path, .. }) => assert_eq!(path, Path::new("/disk").join(name)),
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what} was not noticed"),
    }
}

#[test]
fn every_flipped_bit_of_an_acknowledged_record_is_noticed_and_the_file_named() {
    let (disk, groups, records_end) = killed();
    let contents = disk.contents();
    assert_eq!(read(&disk, 1).unwrap().1, groups);
    for (file, (name, bytes)) in contents.iter().enumerate() {
        let last = file + 1 == contents.len();
        let end = match last {
            true => records_end as usize,
            // A file with another behind it ends in a word that says so, which may be torn.
            false => bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1 - 40,
        };
        for bit in 4096 * 8..end * 8 {
            let mut bad = contents.clone();
            bad[file].1[bit / 8] ^= 1 << (bit % 8);
            // One bit of each byte, and all bits of some.
            if bit % 8 == bit / 8 % 8 || bit / 8 % 16 == 0 {
                assert_refused(&bad, name, &format!("{name}, bit {bit} of {}", end * 8));
            }
        }
        // Elsewhere it is noticed, or it harms nothing.
        for bit in (0..4096 * 8).step_by(5).chain(end * 8..bytes.len() * 8) {
            let mut bad = contents.clone();
            bad[file].1[bit / 8] ^= 1 << (bit % 8);
            match read(&Disk::of(&bad), 1) {
                Ok((_, found)) => assert_eq!(found, groups, "{name}, bit {bit}"),
                Err(StoreError::Corrupt { path, .. } | StoreError::Version { path, .. }) => {
                    assert_eq!(path, Path::new("/disk").join(name));
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    let (disk, groups, _) = killed();
    let contents = disk.contents();
    for (file, (name, bytes)) in contents.iter().enumerate() {
        let last = file + 1 == contents.len();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        for length in 0..bytes.len() {
            let mut bad = contents.clone();
            bad[file].1.truncate(length);
            if last || length < used - 40 {
                assert_refused(&bad, name, &format!("{name} cut to {length}"));
            } else {
                assert_eq!(read(&Disk::of(&bad), 1).unwrap().1, groups);
            }
        }
    }
}

#[test]
fn a_sector_lost_in_what_was_synced_is_refused() {
    let (disk, _, records_end) = killed();
    let contents = disk.contents();
    for (file, (name, bytes)) in contents.iter().enumerate() {
        let last = file + 1 == contents.len();
        let used = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
        // The last sector takes the mark along that vouches for it.
        let end = if last {
            records_end as usize - 512
        } else {
            used - 40
        };
        for begin in (0..end).step_by(512).filter(|at| ![512, 1024].contains(at)) {
            let mut bad = contents.clone();
            let sector = begin..(begin + 512).min(bytes.len());
            if bytes[sector.clone()].iter().all(|&byte| byte == 0) {
                continue;
            }
            bad[file].1[sector].fill(0);
            assert_refused(&bad, name, &format!("{name} without the sector at {begin}"));
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let (disk, _, _) = killed();
    let contents = disk.contents();
    for (file, (name, _)) in contents.iter().enumerate() {
        let mut bad = contents.clone();
        bad.remove(file);
        assert_refused(&bad, name, "a missing file");
    }
}

#[test]
fn a_file_of_another_log_is_refused() {
    let (one, _, _) = killed();
    let (other, _, _) = killed();
    let mut mixed = one.contents();
    mixed[1] = other.contents()[1].clone();
    let name = mixed[1].0.clone();
    assert_refused(&mixed, &name, "a file of another log");
    let mut renamed = one.contents();
    renamed[1].1 = renamed[0].1.clone();
    assert_refused(&renamed, &name, "a file under another's name");
}

#[test]
fn a_torn_last_record_that_was_never_synced_is_dropped_and_the_log_goes_on() {
    torn_last_record(&[2; 300]);
}

#[test]
fn a_record_cut_short_is_not_completed_by_the_zeros_behind_it() {
    torn_last_record(&[0; 300]);
}

fn torn_last_record(payload: &[u8]) {
    let disk = Disk::default();
    let log = create(&disk);
    log.sync(log.append(&[1; 100]).unwrap()).unwrap();
    let begin = log.files()[0].bytes as usize;
    log.append(payload).unwrap();
    let end = log.files()[0].bytes as usize;
    let contents = disk.contents();
    for place in begin..end {
        // Cut off there, or broken there.
        for fill in [0, 0xff] {
            let mut torn = contents.clone();
            match fill {
                0 => torn[0].1[place..end].fill(0),
                _ => torn[0].1[place] ^= fill,
            }
            let disk = Disk::of(&torn);
            let (log, recovered, groups) = open(&disk, 1).unwrap();
            assert_eq!(groups, [[vec![1; 100]]]);
            assert_eq!(recovered.dropped_bytes > 0, place > begin || fill != 0);
            log.sync(log.append(b"on").unwrap()).unwrap();
            let (_, recovered, groups) = open(&disk.after_kill(), 1).unwrap();
            assert_eq!(groups, [[vec![1; 100]], [b"on".to_vec()]]);
            assert_eq!(recovered.dropped_bytes, 0);
        }
    }
}

#[test]
fn a_full_disk_leaves_the_log_as_it_was_and_usable() {
    use super::disk::Fault;
    for after in 0..6 {
        for part in [0, 100, 254] {
            let disk = Disk::default();
            let log = create(&disk);
            log.sync(log.append(b"one").unwrap()).unwrap();
            let before = (log.bytes(), log.last_sequence());
            disk.arm(after, Fault::Full(part), 1);
            let group = log.group().unwrap();
            let result = group
                .append(&[2; 3000])
                .and_then(|group| group.append(&[3; 100_000]))
                .and_then(|group| group.commit(&[4; 10]));
            let mut expected = vec![vec![b"one".to_vec()]];
            match result {
                Err(StoreError::DiskFull { path, .. }) => {
                    assert!(path.ends_with("log-4-1.jnd"));
                    assert_eq!((log.bytes(), log.last_sequence()), before);
                }
                Ok(_) => expected.push(vec![vec![2; 3000], vec![3; 100_000], vec![4; 10]]),
                Err(other) => panic!("{other}"),
            }
            log.sync(log.append(b"two").unwrap()).unwrap();
            expected.push(vec![b"two".to_vec()]);
            assert_eq!(open(&disk.after_power_loss(1), 1).unwrap().2, expected);
        }
    }
}

#[test]
fn a_record_that_is_too_large_is_refused_by_its_size() {
    let disk = Disk::default();
    let log = create(&disk);
    // Untouched zero pages: this takes addresses, not memory.
    let large = vec![0; MAX_PAYLOAD_BYTES as usize + 1];
    let error = log.append(&large).unwrap_err();
    assert!(
        matches!(error, StoreError::RecordTooLarge { .. }),
        "{error}"
    );
    assert_eq!(log.last_sequence(), 0);
    log.append(b"small").unwrap();
}

#[test]
fn a_log_that_is_not_there_is_named() {
    assert_refused(&[], "log-4-1.jnd", "no log");
    let (disk, _, _) = killed();
    let error = Log::open(
        Box::new(disk),
        options(),
        GENERATION,
        Identity::default(),
        90,
        |_| Ok::<_, StoreError>(()),
    );
    assert!(error.unwrap_err().to_string().contains("log-4-90.jnd"));
}

proptest! {
    #![proptest_config(crate::cases(2000))]

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        let name = "log-4-1.jnd".to_owned();
        prop_assert!(open(&Disk::of(&[(name, bytes)]), 1).is_err());
    }

    #[test]
    fn bytes_moved_about_in_a_log_never_make_another_record(seed in any::<u64>()) {
        let (disk, groups, _) = killed();
        let mut random = Random(seed);
        let mut contents = disk.contents();
        for _ in 0..=random.below(4) {
            let file = random.below(contents.len());
            let source = contents[random.below(contents.len())].1.clone();
            let bytes = &mut contents[file].1;
            let length = 1 + random.below(600);
            let align = [1, 8, 512][random.below(3)];
            let from = random.below(source.len() - length) / align * align;
            let to = random.below(bytes.len() - length) / align * align;
            bytes[to..to + length].copy_from_slice(&source[from..from + length]);
            if random.below(4) == 0 {
                bytes.truncate(to);
                break;
            }
        }
        match open(&Disk::of(&contents), 1) {
            Ok((_, _, found)) => prop_assert!(groups.starts_with(&found)),
            Err(StoreError::Corrupt { .. } | StoreError::Version { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}
