//! The table by itself: sums, sizes, files.

mod merged;

use std::cell::Cell;
use std::hint::black_box;

use jindou_fabric::Region;

use super::*;
use crate::StoreError;
use crate::image::{ImageReader, ImageWriter};
use crate::log::Folder;

/// Sets of one vertex each, but every thousandth of a thousand; a third have type 7, all
/// predicate 1, and every fifth predicate 2 with two edges.
fn many(count: usize) -> Clusters {
    let size = |set: usize| if set.is_multiple_of(1000) { 1000 } else { 1 };
    let mut starts = vec![0];
    let (mut types, mut out) = (Lists::default(), Lists::default());
    let mut incoming = Lists::default();
    for set in 0..count {
        starts.push(starts[set] + size(set));
        types.push(set.is_multiple_of(3).then_some(vertex(7).raw()));
        let second = set.is_multiple_of(5).then_some((PredicateId(2), 2));
        out.push([(PredicateId(1), 1)].into_iter().chain(second));
        incoming.push([]);
    }
    let stretches = Stretches::one_each(starts);
    Clusters::new(stretches, types, [out, incoming], no_pairs(3))
}

fn no_pairs(predicates: usize) -> Lists<PairEdges> {
    let mut pairs = Lists::default();
    (0..predicates).for_each(|_| pairs.push([]));
    pairs
}

/// Single vertices of two sets in turn: one of a type and with predicate 1, the other without.
fn alternating(vertices: u64) -> Clusters {
    let mut stretches = Stretches::default();
    (0..vertices).for_each(|number| stretches.push(number + 1, (number % 2) as u32));
    let (mut types, mut out) = (Lists::default(), Lists::default());
    types.push([vertex(0).raw()]);
    types.push([]);
    out.push([(PredicateId(1), vertices / 2)]);
    out.push([]);
    let mut incoming = Lists::default();
    (0..2).for_each(|_| incoming.push([]));
    Clusters::new(stretches, types, [out, incoming], no_pairs(2))
}

const TYPE_SEVEN: Membership = Membership::Type(TermId::vertex(7));
const HAS_TWO: Membership = Membership::Has(PredicateId(2), Direction::Out);

#[test]
fn sums_over_many_sets_look_at_few_and_come_near() {
    let clusters = many(300_000);
    let traits = [TYPE_SEVEN, HAS_TWO];
    let sizes = clusters.sets_with(&traits).map(|set| clusters.sizes[set]);
    let exact = sizes.sum::<u64>() as f64;
    let looks = Cell::new(0);
    let estimate = clusters.sum_over(&traits, |set| {
        looks.set(looks.get() + 1);
        clusters.sizes[set] as f64
    });
    assert!(looks.get() <= SAMPLED, "{} looks", looks.get());
    let ratio = estimate / exact;
    assert!((0.7..1.4).contains(&ratio), "{estimate} for {exact}");
    let of_type = clusters.sets_with(&traits[..1]).map(|s| clusters.sizes[s]);
    let of_type = of_type.sum::<u64>() as f64;
    assert_eq!(clusters.count_with(&traits[..1]), of_type);
    assert!(!clusters.is_short(&traits));
}

#[test]
fn sums_over_few_sets_are_exact() {
    let clusters = many(1000);
    let traits = [TYPE_SEVEN, HAS_TWO];
    // Sets 0, 15, 30 ... 990, the first of a thousand vertices.
    assert_eq!(clusters.count_with(&traits), 1066.0);
    let edges = clusters.edges_from(PredicateId(2), Direction::Out, &traits[..1]);
    assert_eq!(edges, 134.0);
    assert!(!clusters.is_short(&traits) && many(100).is_short(&traits));
}

#[test]
fn a_stretch_costs_no_copy_of_its_set() {
    let vertices = 100_000;
    let clusters = alternating(vertices);
    assert_eq!((clusters.len(), clusters.stretches()), (2, 100_000));
    let ranges = clusters.type_ranges[0].ranges().len() * 24;
    assert_eq!(ranges, vertices as usize / 2 * 24);
    let each = (clusters.bytes() - ranges) / vertices as usize;
    assert!(each < 32, "{each} bytes a stretch");
    let has_one = [Membership::Has(PredicateId(1), Direction::Out)];
    // Two sets, but a long list.
    assert!(!clusters.is_short(&has_one));
    assert_eq!(clusters.vertices_with(&has_one), clusters.type_ranges[0]);
    assert_eq!(clusters.count_with(&has_one), vertices as f64 / 2.0);
}

#[test]
fn few_stretches_among_many_are_found_in_order() {
    // Two stretches of each set, those of the second round in the opposite order.
    let sets = 500;
    let mut stretches = Stretches::default();
    let order = (0..sets).chain((0..sets).rev().skip(1)).chain([sets - 1]);
    for set in order {
        stretches.push(stretches.end() + 3, set);
    }
    let (mut types, mut out, mut incoming) = (Lists::default(), Lists::default(), Lists::default());
    for set in 0..sets {
        types.push([vertex(0).raw() + u64::from(set / 5)]);
        out.push([(PredicateId(1), 1)]);
        incoming.push([]);
    }
    let clusters = Clusters::new(stretches, types, [out, incoming], no_pairs(2));
    for class in 0..u64::from(sets) / 5 {
        let of_class = Membership::Type(vertex(class));
        let has_one = Membership::Has(PredicateId(1), Direction::Out);
        let expected = clusters.vertices_with(&[of_class]);
        assert_eq!(clusters.vertices_with(&[of_class, has_one]), expected);
        assert_eq!(clusters.count_with(&[of_class]), 30.0);
    }
}

#[test]
fn a_search_finds_the_stretch_of_every_number() {
    for (count, width) in [(1, 1), (1, 7), (255, 3), (256, 1), (300, 3), (5000, 40)] {
        let mut stretches = Stretches::default();
        let mut expected = Vec::new();
        for stretch in 0..count {
            // One in a hundred is much wider than the others.
            let wide = if stretch % 100 == 50 { 500 } else { 1 };
            let size = (stretch * 7 % width + 1) * wide;
            stretches.push(stretches.end() + size, stretch as u32);
            expected.extend((0..size).map(|_| stretch as usize));
        }
        for stretches in [stretches.clone(), stretches.indexed()] {
            let found = (0..stretches.end()).map(|number| stretches.at(number).unwrap());
            assert!(found.eq(expected.iter().copied()), "{count} of {width}");
            assert_eq!(stretches.at(stretches.end()), None);
            assert_eq!(stretches.at(u64::MAX), None);
        }
    }
    assert_eq!(Stretches::default().indexed().at(0), None);
}

/// A small table with everything in it.
fn small() -> Clusters {
    let mut stretches = Stretches::default();
    for (end, set) in [(3, 0), (4, 1), (9, 0), (12, 2), (13, 1)] {
        stretches.push(end, set);
    }
    let mut types = Lists::default();
    types.push([vertex(1).raw(), vertex(2).raw()]);
    types.push([]);
    types.push([vertex(2).raw()]);
    let mut has = [Lists::default(), Lists::default()];
    has[0].push([(PredicateId(1), 9), (PredicateId(2), 8)]);
    has[0].push([(PredicateId(2), 2)]);
    has[0].push([]);
    has[1].push([(PredicateId(1), 9)]);
    has[1].push([]);
    has[1].push([(PredicateId(1), 3)]);
    let mut pairs = no_pairs(1);
    let pair = |subjects, objects, edges| PairEdges {
        subjects,
        objects,
        edges,
    };
    pairs.push([pair(0, 0, 8), pair(0, 2, 1)]);
    pairs.push([]);
    Clusters::new(stretches, types, has, pairs)
}

/// Asks a table whatever there is to ask: no answer may be a panic.
fn ask(clusters: &Clusters) {
    let mut traits = vec![TYPE_SEVEN, Membership::Type(vertex(2))];
    for direction in [Direction::Out, Direction::In] {
        traits.extend((0..4).map(|id| Membership::Has(PredicateId(id), direction)));
    }
    for pair in traits.windows(2) {
        for predicate in (0..4).map(PredicateId) {
            black_box(clusters.edges_from(predicate, Direction::Out, pair));
            black_box(clusters.edges_between(predicate, &pair[..1], &pair[1..]));
        }
        black_box(clusters.count_with(pair));
        black_box(clusters.is_short(pair));
        black_box(clusters.vertices_with(pair));
        black_box(clusters.members_within(pair[0], &IdRanges::all()));
    }
    for number in 0..20 {
        black_box(clusters.types_of_vertex(vertex(number)));
        black_box(clusters.type_place(vertex(number), vertex(2)));
    }
    for place in 0..clusters.type_edges().min(100) {
        black_box(clusters.type_edge_at(place as usize));
    }
    let _ = black_box(clusters.check(13, false, &|_| true));
    for predicate in (0..4).map(PredicateId) {
        let _ = clusters.check_predicate(predicate, Direction::Out, None);
    }
}

/// Writes the arrays of a table and reads them as one.
fn read_back(folder: &std::path::Path, arrays: &[Vec<u8>]) -> Result<Clusters, StoreError> {
    let mut image = ImageWriter::default();
    for array in arrays {
        image.region(&Region::copy_from(array));
    }
    image.finish(&Folder::new(folder), "part.jnd", 9)?;
    Clusters::read(&mut ImageReader::open(&folder.join("part.jnd"), 9)?, 3)
}

#[test]
fn the_arrays_of_a_table_lie_in_one_region() {
    let clusters = small();
    let id = clusters.stretches.parts().0.region().id();
    let (offsets, types) = clusters.types.parts();
    let (pair_offsets, pairs) = clusters.pairs.parts();
    let mut ids = vec![
        clusters.stretches.parts().1.region().id(),
        offsets.region().id(),
        types.region().id(),
        pair_offsets.region().id(),
        pairs.region().id(),
    ];
    for has in &clusters.has {
        let (offsets, predicates, edges) = has.parts();
        ids.extend([offsets, predicates, edges].map(|array| array.region().id()));
    }
    assert!(ids.iter().all(|other| *other == id));
}

#[test]
fn what_was_written_is_read_and_what_contradicts_itself_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut image = ImageWriter::default();
    small().write(&mut image);
    let storage = Folder::new(folder.path());
    image.finish(&storage, "part.jnd", 9).unwrap();
    let mut reader = ImageReader::open(&folder.path().join("part.jnd"), 9).unwrap();
    let arrays: Vec<Vec<u8>> = (0..12).map(|_| reader.region().unwrap().to_vec()).collect();
    let read = read_back(folder.path(), &arrays).unwrap();
    assert_eq!(format!("{read:?}"), format!("{:?}", small()));
    assert_eq!(read.check(13, false, &|_| true), Ok(()));

    let mut refused = 0;
    for array in 0..arrays.len() {
        for place in 0..arrays[array].len() / 4 {
            for value in [0, 2, u32::MAX] {
                let mut bad = arrays.clone();
                bad[array][place * 4..][..4].copy_from_slice(&u32::to_le_bytes(value));
                match read_back(folder.path(), &bad) {
                    Ok(table) => ask(&table),
                    Err(error) => {
                        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
                        refused += 1;
                    }
                }
            }
        }
        let mut bad = arrays.clone();
        let shorter = bad[array].len() - 4;
        bad[array].truncate(shorter);
        let error = read_back(folder.path(), &bad).expect_err("an array is too short");
        assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    }
    assert!(
        refused > 100,
        "{refused} of the altered tables were refused"
    );
}
