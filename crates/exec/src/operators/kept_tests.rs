//! Joins with variables that may be unbound, against comparing every row with every other.

use jindou_model::TermId;
use jindou_plan::physical::Var;
use proptest::prelude::*;

use super::{Kept, Pairs, Place, Room};
use crate::ExecError;
use crate::table::Table;

fn free(_: usize) -> Result<bool, ExecError> {
    Ok(true)
}

fn id(value: u64) -> TermId {
    match value {
        0 => TermId::NONE,
        value => TermId::vertex(value),
    }
}

/// Cells of 0 are unbound.
fn table(width: usize, rows: &[Vec<u64>]) -> Table {
    let mut table = Table::with_rows(width, rows.len());
    for column in 0..width {
        let values: Vec<TermId> = rows.iter().map(|row| id(row[column])).collect();
        if values.iter().any(|value| !value.is_none()) {
            table.set(Var(column as u16), values);
        }
    }
    table
}

fn vars(range: std::ops::Range<usize>) -> Vec<Var> {
    range.map(|number| Var(number as u16)).collect()
}

/// All pairs, found piece by piece, and the candidates that were tried.
fn hashed(
    keys: usize,
    width: usize,
    kept: &[Vec<u64>],
    streaming: &[Vec<u64>],
    piece: usize,
) -> (Vec<(u32, u32)>, u64) {
    hashed_within(keys, width, kept, streaming, piece, &mut free)
}

fn hashed_within(
    keys: usize,
    width: usize,
    kept: &[Vec<u64>],
    streaming: &[Vec<u64>],
    piece: usize,
    room: Room<'_>,
) -> (Vec<(u32, u32)>, u64) {
    let mut side = Kept::new(&vars(0..keys), &vars(keys..width));
    for rows in kept.chunks(piece) {
        side.add(&table(width, rows));
    }
    let probe = table(width, streaming);
    let mut place = Place::default();
    let mut found = Vec::new();
    while place.row < probe.rows() {
        let pairs = match side.find(&probe, &mut place, piece) {
            Ok(pairs) => pairs,
            Err(wanted) => {
                side.make(wanted, room).expect("nothing is charged");
                continue;
            }
        };
        let Pairs { streaming, kept } = pairs;
        found.extend(streaming.into_iter().zip(kept));
    }
    found.sort_unstable();
    (found, side.tried())
}

fn nested(keys: usize, kept: &[Vec<u64>], streaming: &[Vec<u64>]) -> Vec<(u32, u32)> {
    let mut found = Vec::new();
    for (row, a) in streaming.iter().enumerate() {
        for (other, b) in kept.iter().enumerate() {
            let fits = a
                .iter()
                .zip(b)
                .enumerate()
                .all(|(column, (x, y))| x == y || (column >= keys && (*x == 0 || *y == 0)));
            if fits {
                found.push((row as u32, other as u32));
            }
        }
    }
    found
}

/// Rows of `keys` columns that are always bound, and others that are often not.
fn rows(keys: usize, width: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    let row = (0..width)
        .map(|column| u64::from(column < keys)..5)
        .collect::<Vec<_>>();
    prop::collection::vec(row, 0..60)
}

proptest! {
    #[test]
    fn finds_the_pairs_that_a_nested_loop_finds(
        (keys, width, kept, streaming) in (0..3_usize, 0..7_usize).prop_flat_map(|(keys, loose)| {
            let width = keys + loose;
            (Just(keys), Just(width), rows(keys, width), rows(keys, width))
        }),
        piece in 1..200_usize,
    ) {
        let (found, _) = hashed(keys, width, &kept, &streaming, piece);
        prop_assert_eq!(&found, &nested(keys, &kept, &streaming));
        // One index by the plain key does as well.
        let mut none = |_| Ok(false);
        let (again, _) = hashed_within(keys, width, &kept, &streaming, piece, &mut none);
        prop_assert_eq!(again, found);
    }
}

#[test]
fn rows_that_bind_their_loose_variables_meet_only_their_equals() {
    let rows: Vec<Vec<u64>> = (1..=10_000).map(|value| vec![value]).collect();
    let (found, tried) = hashed(0, 1, &rows, &rows, 1000);
    assert_eq!((found.len(), tried), (10_000, 10_000));
}

#[test]
fn only_rows_without_the_variable_meet_all_others() {
    let rows: Vec<Vec<u64>> = (0..10_000)
        .map(|value| vec![if value % 1000 == 0 { 0 } else { value }])
        .collect();
    let (found, tried) = hashed(0, 1, &rows, &rows, 1000);
    // 10 rows on either side that go with everything, and each other row with its equal.
    assert_eq!(found.len(), 10 * 10_000 * 2 - 100 + 9990);
    assert_eq!(tried, found.len() as u64);
}

#[test]
fn many_sets_of_bound_variables_are_all_found() {
    // 1024 sets of bound variables: more than there are groups for.
    let rows: Vec<Vec<u64>> = (0..1024_u64)
        .map(|set| (0..10).map(|bit| set >> bit & 1).collect())
        .collect();
    let (found, _) = hashed(0, 10, &rows, &rows, 100_000);
    assert_eq!(found.len(), 1024 * 1024, "bound values are all equal");
}
