//! Does a string table answer as a vector and a hash map of its strings do, damaged or not?

use std::collections::{HashMap, HashSet};
use std::io::Write;

use jindou_dictionary::{DictionaryError, StringTable};
use jindou_fabric::Region;
use proptest::collection::vec;
use proptest::prelude::*;

fn build(strings: &[Vec<u8>]) -> StringTable {
    StringTable::build(strings.len(), |id| strings[id].as_slice()).unwrap()
}

fn distinct(mut strings: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    strings.retain(|string| seen.insert(string.clone()));
    strings
}

/// Compares every answer of `table` with `strings`.
fn check(table: &StringTable, strings: &[Vec<u8>], absent: &[Vec<u8>]) {
    let model: HashMap<&[u8], u64> = (0..)
        .zip(strings)
        .map(|(id, s)| (s.as_slice(), id))
        .collect();
    assert_eq!(table.len(), strings.len() as u64);
    assert_eq!(table.is_empty(), strings.is_empty());
    let mut decoder = table.decoder();
    let mut backwards = table.decoder();
    let mut pushing = table.decoder();
    for (id, string) in strings.iter().enumerate() {
        let mut text = b"before".to_vec();
        table.extract(id as u64, &mut text).unwrap();
        assert_eq!(&text[6..], string);
        assert_eq!(decoder.get(id as u64).unwrap(), string);
        let last = strings.len() - 1 - id;
        assert_eq!(backwards.get(last as u64).unwrap(), strings[last]);
        let mut text = b"before".to_vec();
        pushing.push(id as u64, &mut text).unwrap();
        assert_eq!(&text[6..], string);
    }
    let keys: Vec<&[u8]> = strings.iter().chain(absent).map(Vec::as_slice).collect();
    let mut ids = Vec::new();
    table.lookup_batch(&keys, &mut ids);
    assert_eq!(ids.len(), keys.len());
    for (key, id) in keys.iter().zip(ids) {
        assert_eq!(table.lookup(key), model.get(key).copied());
        assert_eq!(id, model.get(key).copied());
    }
    for id in [table.len(), table.len() + 1, table.len() + 16, u64::MAX] {
        let unknown = DictionaryError::UnknownId {
            id,
            len: table.len(),
        };
        assert_eq!(decoder.get(id), Err(unknown));
        assert_eq!(decoder.push(id, &mut Vec::new()), Err(unknown));
        let mut text = Vec::new();
        assert_eq!(table.extract(id, &mut text), Err(unknown));
        assert!(text.is_empty());
    }
    table.verify().unwrap();
}

/// Calls everything that reads `table`; what it answers is not looked at.
fn touch_all(table: &StringTable, strings: &[Vec<u8>]) {
    let mut decoder = table.decoder();
    let mut text = Vec::new();
    for id in (0..table.len() + 20).take(20_000) {
        let _ = table.extract(id, &mut text);
        let _ = decoder.get(id);
        let _ = decoder.push(id, &mut text);
    }
    let keys: Vec<&[u8]> = strings.iter().map(Vec::as_slice).collect();
    let mut ids = Vec::new();
    table.lookup_batch(&keys, &mut ids);
    for key in keys {
        let _ = table.lookup(key);
    }
    let _ = table.verify();
}

fn iris(count: usize) -> Vec<Vec<u8>> {
    let iri = |i: usize| {
        let (department, student) = (i / 100, i % 100);
        format!("http://www.Department{department}.University0.edu/Student{student}").into_bytes()
    };
    (0..count).map(iri).collect()
}

fn any_string() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..6),
        "http://example\\.org/(a|b)/[0-9]{1,3}".prop_map(String::into_bytes),
        (any::<u8>(), 200_usize..400).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn tables_agree_with_a_hash_map(
        strings in vec(any_string(), 0..100),
        absent in vec(any_string(), 0..20),
    ) {
        let strings = distinct(strings);
        let table = build(&strings);
        check(&table, &strings, &absent);
        let again = StringTable::open(Region::copy_from(table.region())).unwrap();
        check(&again, &strings, &absent);
    }

    #[test]
    fn decoders_agree_with_a_vector_in_any_order_of_ids(
        count in 1_usize..3_000,
        long in any::<prop::sample::Index>(),
        reads in vec((any::<prop::sample::Index>(), 1_usize..20), 1..200),
    ) {
        let mut strings = iris(count);
        // A block that is too large to be kept.
        strings[long.index(count)] = vec![b'l'; 3_000];
        let table = build(&strings);
        let mut decoder = table.decoder();
        for (from, length) in reads {
            let from = from.index(count);
            for (id, string) in strings.iter().enumerate().skip(from).take(length) {
                prop_assert_eq!(decoder.get(id as u64), Ok(string.as_slice()));
                let mut text = Vec::new();
                prop_assert_eq!(decoder.push(id as u64, &mut text), Ok(()));
                prop_assert_eq!(&text, string);
            }
            prop_assert!(decoder.get((count + length) as u64).is_err());
        }
    }

    #[test]
    fn changed_bytes_give_an_error_or_no_panic(
        count in 0_usize..200,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let strings = iris(count);
        let mut bytes = build(&strings).region().to_vec();
        let length = bytes.len();
        for (at, byte) in changes {
            bytes[at.index(length)] = byte;
        }
        if let Ok(table) = StringTable::open(Region::copy_from(&bytes)) {
            touch_all(&table, &strings);
        }
    }

    #[test]
    fn changed_strings_and_index_open_and_do_not_panic(
        count in 1_usize..200,
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..200),
    ) {
        // The header and the offsets stay as they are, so that the damage is met later.
        let strings = iris(count);
        let original = build(&strings).region().to_vec();
        let mut bytes = original.clone();
        let start = 64 + 4 * (count.div_ceil(16) + 1);
        for (at, byte) in changes {
            let at = start + at.index(original.len() - start);
            bytes[at] = byte;
        }
        let table = StringTable::open(Region::copy_from(&bytes)).unwrap();
        prop_assert_eq!(table.verify().is_ok(), bytes == original);
        touch_all(&table, &strings);
    }
}

#[test]
fn thousands_of_strings_agree_with_a_hash_map() {
    // More than one run of the builder and more than one part of the index.
    for count in [0, 1, 15, 16, 17, 4_000, 140_000] {
        let strings = iris(count);
        check(
            &build(&strings),
            &strings,
            &[b"".to_vec(), b"http://".to_vec()],
        );
    }
}

#[test]
fn unsorted_strings_agree_with_a_hash_map() {
    let mut strings = iris(5_000);
    let count = strings.len();
    for i in 0..count {
        strings.swap(i, i * 7_919 % count);
    }
    check(&build(&strings), &strings, &[b"x".to_vec()]);
}

#[test]
fn strings_of_any_length_agree_with_a_hash_map() {
    let mut strings = vec![
        Vec::new(),
        vec![0],
        vec![0; 2],
        vec![255; 255],
        vec![255; 256],
    ];
    for length in [65_535, 65_536, 65_537, 200_000] {
        strings.push(vec![b'a'; length]);
        let mut other = vec![b'a'; length];
        other[length - 1] = b'b';
        strings.push(other);
    }
    strings.extend(iris(40));
    check(
        &build(&strings),
        &strings,
        &[vec![b'a'; 65_534], vec![b'a'; 200_001]],
    );
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let strings = iris(140_000);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| build(&strings).region().to_vec())
    };
    assert!(
        with(1) == with(3),
        "one thread and three built different tables"
    );
}

#[test]
fn a_table_can_be_mapped_from_a_file() {
    let strings = iris(1_000);
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(build(&strings).region()).unwrap();
    let table = StringTable::open(Region::map_file(&file).unwrap()).unwrap();
    check(&table, &strings, &[]);
}

#[test]
fn cut_tables_and_other_files_are_refused() {
    let bytes = build(&iris(50)).region().to_vec();
    for length in 0..bytes.len() {
        assert!(StringTable::open(Region::copy_from(&bytes[..length])).is_err());
    }
    let mut longer = bytes.clone();
    longer.extend_from_slice(&[0; 8]);
    assert!(StringTable::open(Region::copy_from(&longer)).is_err());

    let mut other = bytes.clone();
    other[0] ^= 1;
    let error = StringTable::open(Region::copy_from(&other)).unwrap_err();
    assert_eq!(error, DictionaryError::NotATable);

    let mut newer = bytes;
    newer[8] = 2;
    let error = StringTable::open(Region::copy_from(&newer)).unwrap_err();
    let (found, supported) = (2, 1);
    assert_eq!(error, DictionaryError::Version { found, supported });
}

#[test]
fn every_changed_byte_of_header_and_offsets_is_refused() {
    let strings = iris(50);
    let bytes = build(&strings).region().to_vec();
    for at in 0..64 {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            assert!(
                StringTable::open(Region::copy_from(&changed)).is_err(),
                "byte {at}"
            );
        }
    }
    // Offsets that are out of order or outside are refused; others give errors or wrong strings.
    for at in 64..64 + 5 * 4 {
        for value in 0..=255 {
            let mut changed = bytes.clone();
            changed[at] = value;
            if let Ok(table) = StringTable::open(Region::copy_from(&changed)) {
                touch_all(&table, &strings);
            }
        }
    }
}
