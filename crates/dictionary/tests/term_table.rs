//! Does a term table answer as maps of its numbers and strings do, merged or not, damaged or not?

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use jindou_dictionary::{DictionaryError, Residues, StringTable, TermTable, hash};
use jindou_fabric::Region;

/// The naive model: strings by number.
type Model = BTreeMap<u64, Vec<u8>>;

/// A generator of numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn string(&mut self) -> Vec<u8> {
        match self.below(20) {
            0 => vec![b'l'; 100 + self.below(3_000) as usize],
            1 => (0..self.below(4)).map(|_| self.next() as u8).collect(),
            _ => format!("http://example.org/{}", self.next() >> 40).into_bytes(),
        }
    }

    /// A number as terms have them: near to others, in ranges far apart, or anywhere.
    fn number(&mut self) -> u64 {
        match self.below(10) {
            0 => self.next(),
            1..=3 => (1 << 40) + self.below(1 << 20),
            4 => (self.below(3) << 50) + self.below(100),
            _ => 1_000 + self.below(10_000),
        }
    }

    /// Up to `len` terms with distinct numbers, and strings that are in no one of `others`.
    fn terms(&mut self, len: u64, others: &[Model]) -> Model {
        let used = |number: u64| others.iter().any(|other| other.contains_key(&number));
        let mut strings: HashMap<Vec<u8>, u64> = HashMap::new();
        for other in others {
            strings.extend(other.iter().map(|(number, s)| (s.clone(), *number)));
        }
        let mut terms = Model::new();
        for _ in 0..len {
            let (number, string) = (self.number(), self.string());
            if used(number) || terms.contains_key(&number) || strings.contains_key(&string) {
                continue;
            }
            strings.insert(string.clone(), number);
            terms.insert(number, string);
        }
        terms
    }
}

/// A table with mapped numbers, of terms that are given in an order that the seed decides.
fn mapped(model: &Model, random: &mut Random) -> TermTable {
    let mut terms: Vec<(&u64, &Vec<u8>)> = model.iter().collect();
    for at in (1..terms.len()).rev() {
        terms.swap(at, random.below(at as u64 + 1) as usize);
    }
    let numbers: Vec<u64> = terms.iter().map(|(number, _)| **number).collect();
    TermTable::build(&numbers, |at| terms[at].1.as_slice()).unwrap()
}

/// A table with a range of numbers.
fn range(first: u64, strings: &[Vec<u8>]) -> TermTable {
    let strings = StringTable::build(strings.len(), |row| strings[row].as_slice()).unwrap();
    TermTable::from_range(first, strings).unwrap()
}

fn reopened(table: &TermTable) -> TermTable {
    let (strings, numbers) = table.regions();
    let strings = StringTable::open(Region::copy_from(strings)).unwrap();
    let numbers = numbers.map(|region| Region::copy_from(region));
    TermTable::open(strings, numbers, table.least().unwrap_or(0)).unwrap()
}

/// Compares every answer of `table` with the model; `case` says how to repeat it.
fn check(table: &TermTable, model: &Model, random: &mut Random, case: &str) {
    check_once(table, model, random, case);
    check_once(&reopened(table), model, random, case);
}

fn check_once(table: &TermTable, model: &Model, random: &mut Random, case: &str) {
    table
        .verify()
        .unwrap_or_else(|error| panic!("{case}: {error}"));
    assert_eq!(table.len(), model.len() as u64, "{case}");
    assert_eq!(table.is_empty(), model.is_empty(), "{case}");
    assert_eq!(table.least(), model.keys().next().copied(), "{case}");
    assert_eq!(table.greatest(), model.keys().last().copied(), "{case}");
    assert!(table.numbers().eq(model.keys().copied()), "{case}");
    check_reading(table, model, case);
    check_lookups(table, model, random, case);
    check_absent_numbers(table, model, random, case);
}

fn check_reading(table: &TermTable, model: &Model, case: &str) {
    let mut by_text: Vec<(&[u8], u64)> = model.iter().map(|(n, s)| (s.as_slice(), *n)).collect();
    by_text.sort_unstable();
    let ranks: HashMap<u64, u64> = (0..)
        .zip(&by_text)
        .map(|(rank, (_, n))| (*n, rank))
        .collect();
    let (mut getting, mut pushing) = (table.decoder(), table.decoder());
    let mut rows = vec![false; model.len()];
    for (number, string) in model {
        let row = table
            .row(*number)
            .unwrap_or_else(|| panic!("{case}: {number}"));
        rows[row as usize] = true;
        assert!(table.contains(*number), "{case}: {number}");
        assert_eq!(table.number_at(row), Some(*number), "{case}");
        assert_eq!(getting.row(*number), Some(row), "{case}");
        assert_eq!(
            getting.get(*number),
            Ok(string.as_slice()),
            "{case}: {number}"
        );
        assert_eq!(
            getting.rows().get(row),
            Ok(string.as_slice()),
            "{case}: {number}"
        );
        let rank = table.is_text_ordered().then(|| ranks[number]);
        assert_eq!(table.rank(*number), rank, "{case}: {number}");
        let mut text = b"before".to_vec();
        pushing.push(*number, &mut text).unwrap();
        table.extract(*number, &mut text).unwrap();
        assert_eq!(
            text,
            [b"before", &string[..], string].concat(),
            "{case}: {number}"
        );
    }
    assert!(rows.iter().all(|row| *row), "{case}");
    assert_eq!(table.number_at(table.len()), None, "{case}");
    assert_eq!(table.number_at(u64::MAX), None, "{case}");
}

fn check_lookups(table: &TermTable, model: &Model, random: &mut Random, case: &str) {
    let absent: Vec<Vec<u8>> = (0..20)
        .map(|_| [b"no ".to_vec(), random.string()].concat())
        .collect();
    let numbers: HashMap<&[u8], u64> = model.iter().map(|(n, s)| (s.as_slice(), *n)).collect();
    let keys: Vec<&[u8]> = model.values().chain(&absent).map(Vec::as_slice).collect();
    for key in &keys {
        assert_eq!(
            table.lookup(key),
            numbers.get(key).copied(),
            "{case}: {key:?}"
        );
        assert_eq!(
            table.lookup_hashed(hash(key), key),
            table.lookup(key),
            "{case}"
        );
    }
    // Some are known already, and stay as they are.
    let known: Vec<Option<u64>> = keys
        .iter()
        .map(|_| (random.below(3) == 0).then_some(77))
        .collect();
    let expected: Vec<Option<u64>> = known
        .iter()
        .zip(&keys)
        .map(|(known, key)| known.or(numbers.get(key).copied()))
        .collect();
    let mut found = known.clone();
    table.lookup_batch(&keys, &mut found);
    assert_eq!(found, expected, "{case}");
    let hashes: Vec<u64> = keys.iter().map(|key| hash(key)).collect();
    let mut found = known;
    table.lookup_batch_hashed(&hashes, &keys, &mut found);
    assert_eq!(found, expected, "{case}");
}

fn check_absent_numbers(table: &TermTable, model: &Model, random: &mut Random, case: &str) {
    let near = model
        .keys()
        .flat_map(|n| [n.wrapping_sub(1), n.wrapping_add(1), n ^ (1 << 16)]);
    let far = (0..50)
        .map(|_| random.number())
        .chain([0, 1, u64::MAX, 1 << 60]);
    let mut decoder = table.decoder();
    for number in near.chain(far).filter(|number| !model.contains_key(number)) {
        let unknown = DictionaryError::UnknownNumber { number };
        let mut text = Vec::new();
        assert!(!table.contains(number), "{case}: {number}");
        assert_eq!(
            (table.row(number), table.rank(number)),
            (None, None),
            "{case}: {number}"
        );
        assert_eq!(table.extract(number, &mut text), Err(unknown), "{case}");
        assert_eq!(decoder.push(number, &mut text), Err(unknown), "{case}");
        assert_eq!(decoder.get(number), Err(unknown), "{case}");
        assert!(text.is_empty(), "{case}");
    }
}

#[test]
fn mapped_tables_agree_with_maps() {
    for seed in 0..60 {
        let random = &mut Random(seed);
        let len = [0, 1, 2, 15, 16, 17, 300][seed as usize % 7];
        let model = random.terms(len, &[]);
        let table = mapped(&model, random);
        assert!(table.is_text_ordered(), "seed {seed}");
        check(&table, &model, random, &format!("seed {seed}"));
    }
}

#[test]
fn ranges_agree_with_maps() {
    for seed in 0..30 {
        let random = &mut Random(seed);
        let strings: Vec<Vec<u8>> = random.terms(seed * 7, &[]).into_values().collect();
        for first in [0, 1, 1 << 40, u64::MAX - strings.len() as u64] {
            let model: Model = (first..).zip(strings.iter().cloned()).collect();
            let table = range(first, &strings);
            assert!(!table.is_text_ordered(), "seed {seed}");
            assert_eq!(table.bytes(), table.strings().bytes(), "seed {seed}");
            check(
                &table,
                &model,
                random,
                &format!("seed {seed}, first {first}"),
            );
        }
    }
}

#[test]
fn dense_and_sparse_chunks_agree_with_maps() {
    let random = &mut Random(5);
    // One chunk is full, one has too many numbers for a list, and others have few.
    let numbers = (65_000..140_000)
        .chain((1 << 40..(1 << 40) + 30_000).step_by(5))
        .chain((1 << 41..(1 << 41) + 30_000).step_by(1_000));
    let model: Model = numbers
        .map(|n| (n, format!("term {}", n * 7_919).into_bytes()))
        .collect();
    check(&mapped(&model, random), &model, random, "dense and sparse");
}

#[test]
fn long_strings_agree_with_maps() {
    let random = &mut Random(6);
    let lens = [0, 1, 255, 256, 65_535, 65_536, 65_537, 200_000];
    let model: Model = (0..)
        .zip(lens)
        .map(|(n, len)| (n << 33, vec![b'a'; len]))
        .collect();
    let table = mapped(&model, random);
    check(&table, &model, random, "long strings");
    check(
        &TermTable::merge(&[&table], |_| true).unwrap(),
        &model,
        random,
        "long strings, merged",
    );
}

#[test]
fn repeated_numbers_and_strings_are_refused() {
    let build = |numbers: &[u64], strings: &[&'static str]| {
        TermTable::build(numbers, |at| strings[at].as_bytes()).map(|_| ())
    };
    let number = DictionaryError::RepeatedNumber { number: 4 };
    assert_eq!(build(&[4, 9, 4], &["a", "b", "c"]), Err(number));
    let error = build(&[4, 9, 5], &["a", "b", "a"]).unwrap_err();
    let either =
        [(4, 5), (5, 4)].map(|(one, other)| DictionaryError::RepeatedString { one, other });
    assert!(either.contains(&error), "{error}");

    let a = TermTable::build(&[4, 5], |at| [b"a", b"b"][at]).unwrap();
    let b = range(5, &[b"x".to_vec(), b"a".to_vec()]);
    let merge = |keep: &(dyn Fn(u64) -> bool + Sync)| TermTable::merge(&[&a, &b], keep).map(|_| ());
    assert!(matches!(
        merge(&|_| true),
        Err(DictionaryError::RepeatedString { .. })
    ));
    let number = DictionaryError::RepeatedNumber { number: 5 };
    assert_eq!(merge(&|n| n != 4), Err(number));
    assert!(matches!(
        merge(&|n| n != 5),
        Err(DictionaryError::RepeatedString { .. })
    ));
    assert_eq!(merge(&|n| n == 4), Ok(()));
}

#[test]
fn a_range_beyond_the_largest_number_is_refused() {
    let strings = StringTable::build(2, |row| [b"a", b"b"][row]).unwrap();
    let (first, len) = (u64::MAX - 1, 2);
    let error = TermTable::from_range(first, strings).unwrap_err();
    assert_eq!(error, DictionaryError::NoSuchRange { first, len });
}

#[test]
fn merged_tables_agree_with_maps_and_are_as_built_at_once() {
    for seed in 0..60 {
        let random = &mut Random(seed);
        let mut models: Vec<Model> = Vec::new();
        let mut tables = Vec::new();
        for _ in 0..random.below(6) {
            let len = random.below(200);
            let mut model = random.terms(len, &models);
            if random.below(3) == 0 {
                let first = (1 << 45) + tables.len() as u64 * 1_000;
                model = (first..).zip(model.into_values()).collect();
                let strings: Vec<Vec<u8>> = model.values().cloned().collect();
                tables.push(range(first, &strings));
            } else {
                tables.push(mapped(&model, random));
            }
            models.push(model);
        }
        let drop_one_in = [1, 2, 5, u64::MAX][seed as usize % 4];
        let keep = |number: u64| !(number ^ seed).is_multiple_of(drop_one_in);
        let tables: Vec<&TermTable> = tables.iter().collect();
        let merged = TermTable::merge(&tables, keep).unwrap();
        let model: Model = models
            .into_iter()
            .flatten()
            .filter(|(n, _)| keep(*n))
            .collect();
        check(&merged, &model, random, &format!("seed {seed}"));
        assert!(
            regions_equal(&merged, &mapped(&model, random)),
            "seed {seed}"
        );
    }
}

fn regions_equal(a: &TermTable, b: &TermTable) -> bool {
    let bytes = |table: &TermTable| {
        let (strings, numbers) = table.regions();
        (strings.to_vec(), numbers.map(|region| region.to_vec()))
    };
    bytes(a) == bytes(b)
}

#[test]
fn merges_of_many_pieces_are_as_built_at_once() {
    // Several pieces, whose cuts are no ends of blocks, from tables that overlap or do not.
    let random = &mut Random(8);
    let mut models = vec![Model::new(); 3];
    for i in 0..400_000_u64 {
        let table = if i < 100_000 {
            0
        } else {
            1 + random.below(2) as usize
        };
        models[table].insert(
            i,
            format!("http://example.org/{}", i * 7_919 % 400_009).into_bytes(),
        );
    }
    models.push(Model::new());
    for i in 0..80_000_u64 {
        models[3].insert((1 << 40) + i * 3, format!("zz {i}").into_bytes());
    }
    let strings: Vec<Vec<u8>> = models[0].values().cloned().collect();
    let mut tables = vec![range(0, &strings)];
    tables.extend(models[1..].iter().map(|model| mapped(model, random)));
    let tables: Vec<&TermTable> = tables.iter().collect();
    for drop_one_in in [3, 7, u64::MAX] {
        let keep = |number: u64| number == 0 || !number.is_multiple_of(drop_one_in);
        let kept = models.iter().flatten().filter(|(n, _)| keep(**n));
        let model: Model = kept.map(|(n, s)| (*n, s.clone())).collect();
        let merged = TermTable::merge(&tables, keep).unwrap();
        merged.verify().unwrap();
        assert!(
            regions_equal(&merged, &mapped(&model, random)),
            "{drop_one_in}"
        );
    }
}

#[test]
fn several_tables_are_asked_one_after_the_other() {
    for seed in 0..20 {
        let random = &mut Random(seed);
        let mut models: Vec<Model> = Vec::new();
        for len in [300, 0, 90, 1] {
            let model = random.terms(len, &models);
            models.push(model);
        }
        let tables: Vec<TermTable> = models.iter().map(|model| mapped(model, random)).collect();
        let terms: Vec<(&u64, &Vec<u8>)> = models.iter().flatten().collect();
        let absent = b"absent".to_vec();
        let asked: Vec<(Option<u64>, &[u8])> = (0..500)
            .map(
                |_| match terms.get(random.below(terms.len() as u64 + 50) as usize) {
                    Some((number, string)) => (Some(**number), string.as_slice()),
                    None => (None, absent.as_slice()),
                },
            )
            .collect();
        let keys: Vec<&[u8]> = asked.iter().map(|(_, key)| *key).collect();
        let mut numbers = vec![None; keys.len()];
        for table in &tables {
            table.lookup_batch(&keys, &mut numbers);
        }
        let expected: Vec<Option<u64>> = asked.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, expected, "seed {seed}");
        // What has no place or no hash is left alone.
        let mut few = vec![None; 3];
        tables[0].lookup_batch(&keys, &mut few);
        tables[0].lookup_batch_hashed(&[], &keys, &mut few);
        tables[0].lookup_batch(&[], &mut few);
    }
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    let random = &mut Random(9);
    let model: Model = (0..150_000)
        .map(|n| (n, format!("{:x}", n * 7_919).into_bytes()))
        .collect();
    let table = mapped(&model, random);
    let strings: Vec<Vec<u8>> = (0..1_000).map(|i| format!("z{i}").into_bytes()).collect();
    let other = range(1 << 40, &strings);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| TermTable::merge(&[&table, &other], |number| number % 5 > 0).unwrap())
    };
    assert!(
        regions_equal(&with(1), &with(3)),
        "one thread and three built different tables"
    );
}

#[test]
fn tables_can_be_mapped_from_files() {
    let random = &mut Random(10);
    let model = random.terms(1_000, &[]);
    let table = mapped(&model, random);
    let mapped_file = |region: &Region| {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(region).unwrap();
        Region::map_file(&file).unwrap()
    };
    let strings = StringTable::open(mapped_file(table.strings().region())).unwrap();
    let numbers = table.numbers_region().map(mapped_file);
    let again = TermTable::open(strings, numbers, 0).unwrap();
    check(&again, &model, random, "files");
}

/// Calls everything that reads `table`; what it answers is not looked at.
fn touch_all(table: &TermTable, model: &Model) {
    let mut decoder = table.decoder();
    let mut text = Vec::new();
    let numbers: Vec<u64> = table.numbers().chain(model.keys().copied()).collect();
    for number in numbers.into_iter().chain([0, u64::MAX]) {
        let _ = (table.contains(number), table.rank(number));
        let _ = table.extract(number, &mut text);
        let _ = decoder.get(number);
        let _ = decoder.push(number, &mut text);
    }
    for row in 0..=table.len() {
        let _ = table.number_at(row);
    }
    let keys: Vec<&[u8]> = model.values().map(Vec::as_slice).collect();
    table.lookup_batch(&keys, &mut vec![None; keys.len()]);
    let _ = (table.least(), table.greatest());
    let _ = TermTable::merge(&[table], |number| number % 3 > 0);
}

#[test]
fn every_changed_byte_of_the_numbers_is_found_and_does_not_panic() {
    for (seed, len) in [(0, 0), (1, 1), (2, 40)] {
        let random = &mut Random(seed);
        let model = random.terms(len, &[]);
        let table = mapped(&model, random);
        let bytes = table.numbers_region().unwrap().to_vec();
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                let region = Some(Region::copy_from(&changed));
                let Ok(table) = TermTable::open(table.strings().clone(), region, 0) else {
                    continue;
                };
                assert!(table.verify().is_err(), "seed {seed}, byte {at}");
                touch_all(&table, &model);
            }
        }
        for len in 0..bytes.len() {
            let region = Some(Region::copy_from(&bytes[..len]));
            let opened = TermTable::open(table.strings().clone(), region, 0);
            assert!(opened.is_err(), "seed {seed}, {len} bytes");
        }
    }
}

#[test]
fn changed_bytes_of_a_bitmap_do_not_panic() {
    let random = &mut Random(11);
    let model: Model = (0..6_000)
        .map(|n| (n * 2, format!("{n:09}").into_bytes()))
        .collect();
    let table = mapped(&model, random);
    let bytes = table.numbers_region().unwrap().to_vec();
    for _ in 0..60 {
        let mut changed = bytes.clone();
        for _ in 0..20 {
            let at = random.below(bytes.len() as u64 - 200) as usize + 200;
            changed[at] = random.next() as u8;
        }
        let region = Some(Region::copy_from(&changed));
        if let Ok(table) = TermTable::open(table.strings().clone(), region, 0) {
            assert!(table.verify().is_err(), "seed 11");
            touch_all(&table, &model);
        }
    }
}

#[test]
fn damaged_strings_give_an_error_or_no_panic() {
    for seed in 0..100 {
        let random = &mut Random(seed);
        let model = random.terms(100, &[]);
        let table = mapped(&model, random);
        let mut bytes = table.strings().region().to_vec();
        for _ in 0..5 {
            let at = 64 + random.below(bytes.len() as u64 - 64) as usize;
            bytes[at] = random.next() as u8;
        }
        if let Ok(strings) = StringTable::open(Region::copy_from(&bytes)) {
            let numbers = table.numbers_region().cloned();
            if let Ok(table) = TermTable::open(strings, numbers, 0) {
                let _ = table.verify();
                touch_all(&table, &model);
            }
        }
    }
}

#[test]
fn other_files_and_the_numbers_of_other_strings_are_refused() {
    let build = |strings: [&'static str; 2]| {
        TermTable::build(&[1, 2], |at| strings[at].as_bytes()).unwrap()
    };
    let (one, other) = (build(["a", "b"]), build(["a", "c"]));
    let strings = one.strings().clone();
    let open =
        |region: &Region| TermTable::open(strings.clone(), Some(region.clone()), 0).map(|_| ());
    assert_eq!(open(one.numbers_region().unwrap()), Ok(()));
    let error = open(other.numbers_region().unwrap()).unwrap_err();
    assert!(matches!(error, DictionaryError::Damaged { .. }), "{error}");
    assert_eq!(open(strings.region()), Err(DictionaryError::NotNumbers));
    let mut newer = one.numbers_region().unwrap().to_vec();
    newer[8] = 2;
    let (found, supported) = (2, 1);
    let error = DictionaryError::Version { found, supported };
    assert_eq!(open(&Region::copy_from(&newer)), Err(error));
}

#[test]
fn numbers_of_a_contiguous_range_cost_few_bytes_a_string() {
    for (len, most) in [(100_000_u64, 6.3), (60_000, 4.6)] {
        let texts: Vec<String> = (0..len)
            .map(|n| format!("{:07}", n * 7_919 % 1_000_003))
            .collect();
        for first in [0, (1 << 59) + 12_345] {
            let numbers: Vec<u64> = (first..first + len).collect();
            let table = TermTable::build(&numbers, |at| texts[at].as_bytes()).unwrap();
            let bytes = table.numbers_region().unwrap().len() as f64 / len as f64;
            assert!(bytes < most, "{bytes} bytes a string of {len}");
        }
    }
}

#[test]
fn the_parts_of_a_table_have_together_what_it_has() {
    let texts: Vec<String> = (0..1_000).map(|i| format!("http://e/{i:04}")).collect();
    let strings = StringTable::build(texts.len(), |at| texts[at].as_bytes()).unwrap();
    let numbers: Vec<u64> = (0..1_000).map(|at| at * 7 % 4_001).collect();
    let tables = [
        TermTable::from_range(0, strings).unwrap(),
        TermTable::build(&numbers, |at| texts[at].as_bytes()).unwrap(),
    ];
    for table in tables {
        let mut found = Vec::new();
        for (node, residues) in [&[0, 3][..], &[1], &[2]].into_iter().enumerate() {
            let residues = Residues::new(2, residues).unwrap();
            let wanted = |hash: u64| hash % 3 == node as u64;
            let (part, hashes) = table.part(&residues, wanted, |_| true).unwrap();
            let mut decoder = part.decoder();
            let own = part.numbers();
            let own = own.map(|number| (number, decoder.get(number).unwrap().to_vec()));
            let own: Vec<(u64, Vec<u8>)> = own.collect();
            assert!(own.iter().all(|(number, _)| residues.contains(*number)));
            for (number, key) in &own {
                assert!(part.contains(*number));
                assert_eq!(part.lookup(key), None, "without an index");
            }
            assert_eq!(part.least(), own.first().map(|(number, _)| *number));
            assert_eq!(part.greatest(), own.last().map(|(number, _)| *number));
            part.verify().unwrap();
            found.extend(own);
            for (hash, number) in hashes {
                let mut key = Vec::new();
                table.extract(number, &mut key).unwrap();
                assert_eq!(jindou_dictionary::hash(&key), hash);
                assert!(wanted(hash));
            }
            let (strings, numbers) = part.regions();
            let strings = StringTable::open(strings.clone()).unwrap();
            let again = match part.residues() {
                Some(residues) => TermTable::of_residues(residues.clone(), strings),
                None => TermTable::open(strings, numbers.cloned(), 0).unwrap(),
            };
            assert!(again.numbers().eq(part.numbers()));
        }
        found.sort_unstable();
        let mut decoder = table.decoder();
        let all = table.numbers();
        let all = all.map(|number| (number, decoder.get(number).unwrap().to_vec()));
        assert_eq!(found, all.collect::<Vec<_>>());
    }
}
