//! Does an interner number strings as a hash map does?

use std::collections::HashMap;

use jindou_dictionary::{Interner, hash};
use proptest::collection::vec;
use proptest::prelude::*;

fn check(calls: &[Vec<u8>]) {
    let mut interner = Interner::new();
    let mut model: HashMap<&[u8], u32> = HashMap::new();
    let mut order: Vec<&[u8]> = Vec::new();
    for key in calls {
        assert_eq!(interner.find(key), model.get(key.as_slice()).copied());
        let expected = *model.entry(key).or_insert_with(|| {
            order.push(key);
            (order.len() - 1) as u32
        });
        assert_eq!(interner.intern(key), Ok(expected));
    }
    assert_eq!(interner.len(), order.len());
    assert_eq!(interner.is_empty(), order.is_empty());
    assert!(interner.iter().eq(order.iter().copied()));
    for (id, key) in (0..).zip(order) {
        assert_eq!(interner.get(id), key);
        assert_eq!(interner.hash_of(id), hash(key));
        assert_eq!(interner.find(key), Some(id));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn interners_agree_with_a_hash_map(
        calls in vec(prop_oneof![vec(0_u8..3, 0..4), vec(any::<u8>(), 0..40)], 0..400),
    ) {
        check(&calls);
    }
}

#[test]
fn strings_that_fill_chunks_to_the_byte_and_beyond_keep_apart() {
    let sizes = [
        65_535,
        1,
        0,
        131_072,
        3,
        9 << 20,
        0,
        1,
        70_000,
        70_000,
        20 << 20,
        5,
    ];
    let mut calls: Vec<Vec<u8>> = (b'a'..).zip(sizes).map(|(b, size)| vec![b; size]).collect();
    calls.extend(calls.clone());
    check(&calls);
}

#[test]
fn colliding_hashes_keep_strings_apart() {
    let mut interner = Interner::with_capacity(4);
    for key in 0..1_000_u32 {
        assert_eq!(interner.intern_hashed(7, &key.to_le_bytes()), Ok(key));
    }
    assert_eq!(interner.find_hashed(7, &999_u32.to_le_bytes()), Some(999));
    assert_eq!(interner.find_hashed(7, &1_000_u32.to_le_bytes()), None);
}

#[test]
fn interning_many_strings_costs_little_more_than_their_bytes() {
    let mut interner = Interner::new();
    let mut bytes = 0;
    for i in 0..200_000 {
        let key = format!(
            "http://www.Department{}.University0.edu/Student{i}",
            i / 100
        );
        bytes += key.len();
        interner.intern(key.as_bytes()).unwrap();
    }
    let limit = bytes + (8 << 20) + 200_000 * 45;
    assert!(
        interner.bytes() < limit,
        "{} bytes, limit {limit}",
        interner.bytes()
    );
}
