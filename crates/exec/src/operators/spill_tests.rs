//! Operators that put rows on disk, against the plainest way to find the same rows; and how much
//! they do between two looks at the clock.

use std::collections::BTreeSet;
use std::sync::Arc;

use jindou_model::{TermId, inline};
use jindou_plan::Stack;
use jindou_plan::expression::{Aggregate, AggregateFunction};
use jindou_plan::physical::Var;

use super::distinct::{Distinct, Input};
use super::join::JoinSide;
use super::kept_side::KeptSide;
use super::minus::MinusSide;
use super::sorter::{SortBy, Sorter};
use super::two_sided::{Side, TwoSided};
use crate::context::Context;
use crate::exchange::{Exchange, PassOn, SharedRows, TakeRows};
use crate::operator::{Boxed, Operator};
use crate::table::{Table, VarSet};
use crate::test_world::{Empty, World};
use crate::{ExecError, TermSource, Workers};

/// Hands over tables.
struct Tables(std::vec::IntoIter<Table>);

impl Operator for Tables {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(self.0.next())
    }
}

type Row = Vec<u64>;

fn id(cell: u64) -> TermId {
    match cell {
        0 => TermId::NONE,
        cell => TermId::vertex(cell),
    }
}

fn table(width: usize, rows: &[Row]) -> Table {
    let mut table = Table::with_rows(width, rows.len());
    for column in 0..width {
        let ids: Vec<TermId> = rows.iter().map(|row| id(row[column])).collect();
        if ids.iter().any(|id| !id.is_none()) {
            table.set(Var(column as u16), ids);
        }
    }
    table
}

fn tables(width: usize, rows: &[Row]) -> Boxed {
    let tables: Vec<Table> = rows.chunks(300).map(|rows| table(width, rows)).collect();
    Box::new(Tables(tables.into_iter()))
}

fn cells(table: &Table, width: usize) -> Vec<Row> {
    let cell = |column: usize, row: usize| match table.value(Var(column as u16), row) {
        id if id.is_none() => 0,
        id => id.number(),
    };
    (0..table.rows())
        .map(|row| (0..width).map(|column| cell(column, row)).collect())
        .collect()
}

fn drain(operator: &mut dyn Operator, width: usize, cx: &Context) -> Result<Vec<Row>, ExecError> {
    let mut rows = Vec::new();
    while let Some(table) = operator.next(cx)? {
        rows.extend(cells(&table, width));
    }
    Ok(rows)
}

fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_unstable();
    rows
}

fn all(width: usize) -> VarSet {
    vars(0..width).into_iter().collect()
}

fn vars(range: std::ops::Range<usize>) -> Vec<Var> {
    range.map(|number| Var(number as u16)).collect()
}

/// Numbers below a bound, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Rows of cells from `least` on, each of its column's number of values.
    fn rows(&mut self, count: usize, columns: &[(u64, u64)]) -> Vec<Row> {
        let mut row = || {
            let cells = columns.iter();
            cells
                .map(|(least, values)| least + self.below(*values))
                .collect()
        };
        (0..count).map(|_| row()).collect()
    }
}

/// How two rows meet: `keys` columns are equal, `loose` ones equal or unbound in one.
#[derive(Clone, Copy)]
struct Shape {
    keys: usize,
    loose: usize,
}

impl Shape {
    fn meets(self, a: &Row, b: &Row) -> bool {
        let equal = |column: usize| a[column] == b[column];
        (0..self.keys).all(equal)
            && (self.keys..self.keys + self.loose)
                .all(|column| equal(column) || a[column] == 0 || b[column] == 0)
    }

    /// They bind a variable both.
    fn overlaps(self, a: &Row, b: &Row) -> bool {
        (0..self.keys + self.loose).any(|column| a[column] == b[column] && a[column] != 0)
    }

    /// Keys, loose variables, then a column of the kept side and one of the streaming side.
    fn width(self) -> usize {
        self.keys + self.loose + 2
    }

    fn joined(self, kept: &[Row], streaming: &[Row], left: bool) -> Vec<Row> {
        let mut rows = Vec::new();
        for a in streaming {
            let before = rows.len();
            for b in kept.iter().filter(|b| self.meets(a, b)) {
                rows.push(a.iter().zip(b).map(|(a, b)| *a.max(b)).collect());
            }
            if left && rows.len() == before {
                rows.push(a.clone());
            }
        }
        rows
    }

    fn removed(self, kept: &[Row], streaming: &[Row]) -> Vec<Row> {
        let is_left = |a: &&Row| {
            let removes = |b: &Row| self.meets(a, b) && self.overlaps(a, b);
            !kept.iter().any(removes)
        };
        streaming.iter().filter(is_left).cloned().collect()
    }

    fn vars(self) -> (Vec<Var>, Vec<Var>) {
        (vars(0..self.keys), vars(self.keys..self.keys + self.loose))
    }

    /// Rows of both sides; values of a key are few if `skewed`.
    fn sides(self, random: &mut Random, skewed: bool, count: usize) -> (Vec<Row>, Vec<Row>) {
        let values = if skewed { 2 } else { 400 };
        let mut columns = vec![(1, values); self.keys];
        columns.extend(vec![(0, 300); self.loose]);
        let kept: Vec<(u64, u64)> = columns
            .iter()
            .copied()
            .chain([(1, 9_999), (0, 1)])
            .collect();
        let streaming: Vec<(u64, u64)> = columns
            .iter()
            .copied()
            .chain([(0, 1), (1, 9_999)])
            .collect();
        (random.rows(count, &kept), random.rows(count, &streaming))
    }
}

/// Enough for some hundreds of rows, and for all of them.
const MEMORY: [u64; 2] = [10_000, 1 << 30];

#[test]
fn joins_and_minus_find_on_disk_what_nested_loops_find() {
    for (keys, loose, skewed) in [
        (1, 0, false),
        (2, 0, false),
        (1, 0, true),
        (0, 0, false),
        (1, 1, false),
        (1, 2, true),
        (0, 2, false),
    ] {
        let shape = Shape { keys, loose };
        for seed in 1..4 {
            let count = if skewed || keys + loose == 0 {
                350
            } else {
                700
            };
            let (kept, streaming) = shape.sides(&mut Random(seed), skewed, count);
            let (key_vars, loose_vars) = shape.vars();
            let width = shape.width();
            for (memory, left) in MEMORY.into_iter().flat_map(|m| [(m, false), (m, true)]) {
                let world = World::new(memory);
                let side = JoinSide::new(&key_vars, &loose_vars, None, all(width));
                let (a, b) = (tables(width, &kept), tables(width, &streaming));
                let mut join = TwoSided::new(a, b, side, &key_vars, left, all(width), &world.cx);
                let found = drain(&mut join, width, &world.cx).expect("it fits on disk");
                assert_eq!(
                    sorted(found),
                    sorted(shape.joined(&kept, &streaming, left)),
                    "{keys} keys, {loose} loose, seed {seed}, {memory} bytes, left {left}"
                );
                assert_eq!(world.cx.spilled_bytes() > 0, memory < 1 << 20);
                drop(join);
                world.assert_clean();

                let side = MinusSide::new(&key_vars, &loose_vars, true);
                let (a, b) = (tables(width, &kept), tables(width, &streaming));
                let mut minus = TwoSided::new(a, b, side, &key_vars, true, all(width), &world.cx);
                let found = drain(&mut minus, width, &world.cx).expect("it fits on disk");
                if keys > 0 {
                    assert_eq!(
                        sorted(found),
                        sorted(shape.removed(&kept, &streaming)),
                        "{keys} keys, {loose} loose, seed {seed}, {memory} bytes"
                    );
                }
                drop(minus);
                world.assert_clean();
            }
        }
    }
}

/// What several threads join that share out the rows that stream past one kept side.
fn joined_by_threads<S: Side + 'static>(
    sides: impl Fn() -> S,
    (kept, streaming): (&[Row], &[Row]),
    (keys, left): (&[Var], bool),
    width: usize,
    world: &World,
) -> Vec<Row> {
    const THREADS: usize = 3;
    let cx = &world.cx;
    let rows = Arc::new(SharedRows::new(tables(width, streaming), THREADS));
    let side = KeptSide::new(tables(width, kept), sides().empty(), (keys, left), cx);
    let side = Arc::new(side);
    let share = |_| {
        let input = Box::new(TakeRows(Arc::clone(&rows)));
        let join = TwoSided::past(Arc::clone(&side), input, sides(), all(width));
        (Box::new(join) as Boxed, PassOn)
    };
    let shares = (0..THREADS).map(share).collect();
    let workers = Arc::new(Workers::new(THREADS - 1));
    let mut exchange = Exchange::new(shares, vec![side], Stack::plain(), (cx, &workers));
    drain(&mut exchange, width, cx).expect("it fits on disk")
}

#[test]
fn threads_that_share_a_kept_side_find_what_one_finds() {
    for (keys, skewed) in [(1, false), (2, false), (1, true)] {
        let shape = Shape { keys, loose: 0 };
        let (kept, streaming) = shape.sides(&mut Random(keys as u64), skewed, 350);
        let (vars, _) = shape.vars();
        let width = shape.width();
        let nothing: &[Row] = &[];
        for kept in [kept.as_slice(), nothing] {
            for (memory, left) in MEMORY.into_iter().flat_map(|m| [(m, false), (m, true)]) {
                let world = World::new(memory);
                let what = format!("{keys} keys, {} rows, {memory} bytes, {left}", kept.len());
                let side = || JoinSide::new(&vars, &[], None, all(width));
                let rows = (kept, streaming.as_slice());
                let found = joined_by_threads(side, rows, (&vars, left), width, &world);
                let expected = shape.joined(kept, &streaming, left);
                assert_eq!(sorted(found), sorted(expected), "{what}");
                let side = || MinusSide::new(&vars, &[], true);
                let found = joined_by_threads(side, rows, (&vars, true), width, &world);
                let expected = shape.removed(kept, &streaming);
                assert_eq!(sorted(found), sorted(expected), "{what}");
            }
        }
    }
}

#[test]
fn distinct_rows_are_those_of_a_set_and_keep_their_order_where_it_matters() {
    for seed in 1..6 {
        let rows = Random(seed).rows(6_000, &[(0, 40), (1, 75)]);
        let mut seen = BTreeSet::new();
        let first: Vec<Row> = rows
            .iter()
            .filter(|row| seen.insert(*row))
            .cloned()
            .collect();
        for (memory, ordered) in MEMORY.into_iter().flat_map(|m| [(m, false), (m, true)]) {
            let world = World::new(memory);
            let input = Input::Rows(tables(2, &rows));
            let mut distinct = Distinct::new(input, vars(0..2), ordered, 2, &world.cx);
            let found = drain(&mut distinct, 2, &world.cx).expect("it fits on disk");
            if ordered {
                assert_eq!(found, first, "seed {seed}, {memory} bytes");
            }
            assert_eq!(
                sorted(found),
                sorted(first.clone()),
                "seed {seed}, {memory} bytes"
            );
            assert_eq!(world.cx.spilled_bytes() > 0, memory < 1 << 20);
            drop(distinct);
            world.assert_clean();
        }
    }
}

/// The rows in order, by a sorter with so much memory.
fn sort(
    rows: &[Row],
    limit: Option<usize>,
    world: &World,
) -> Result<Vec<(i64, TermId)>, ExecError> {
    let by = [(1, false), (0, true)].map(|(var, descending)| SortBy {
        var: Var(var),
        descending,
    });
    let mut sorter = Sorter::new(by.to_vec(), limit, all(3), &world.cx);
    for rows in rows.chunks(300) {
        let mut table = table(3, rows);
        let number = |row: &Row| inline::from_integer(row[0] as i64).expect("it is small");
        table.set(Var(0), rows.iter().map(number).collect());
        sorter.push(&table, &world.cx)?;
    }
    let mut found = Vec::new();
    while let Some(table) = sorter.next(&world.cx)? {
        for row in 0..table.rows() {
            let number = inline::as_integer(table.value(Var(0), row)).expect("it was put there");
            found.push((number, table.value(Var(2), row)));
        }
    }
    Ok(found)
}

#[test]
fn rows_are_sorted_as_by_a_stable_sort() {
    for seed in 1..4 {
        let mut rows = Random(seed).rows(8_000, &[(1, 60), (0, 50), (0, 1)]);
        (1..)
            .zip(&mut rows)
            .for_each(|(number, row)| row[2] = number);
        let mut key: Vec<(&Row, Vec<u8>)> = rows
            .iter()
            .map(|row| {
                let mut key = Vec::new();
                if row[1] > 0 {
                    Empty.push_key(id(row[1]), &mut key).unwrap();
                }
                (row, key)
            })
            .collect();
        key.sort_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b[0].cmp(&a[0])));
        let expected: Vec<(i64, TermId)> = key
            .iter()
            .map(|(row, _)| (row[0] as i64, id(row[2])))
            .collect();
        for (memory, limit) in MEMORY
            .into_iter()
            .flat_map(|m| [None, Some(10), Some(4_000)].map(|limit| (m, limit)))
        {
            let world = World::new(memory);
            let found = sort(&rows, limit, &world).expect("it fits on disk");
            let wanted = limit.unwrap_or(rows.len());
            assert!(
                found == expected[..wanted],
                "seed {seed}, {memory} bytes, {limit:?}"
            );
            let is_large = limit.is_none_or(|limit| limit > 3_000);
            let spilled = world.cx.spilled_bytes() > 0;
            assert!(if memory < 1 << 20 {
                spilled || !is_large
            } else {
                !spilled
            });
            world.assert_clean();
        }
    }
}

/// Runs an operator to its end, and again with a switch that ends it at several of its looks.
fn ends_where_it_is_cancelled(
    what: &str,
    rows: u64,
    memory: u64,
    run: &dyn Fn(&World) -> Result<u64, ExecError>,
) {
    /// Rows that are handled between two looks at the switch at most.
    const ROWS_AT_ONCE: u64 = 1 << 14;
    let world = World::new(memory);
    run(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
    let looks = world.token.looks();
    assert!(
        looks >= rows / ROWS_AT_ONCE,
        "{what}: {looks} looks for {rows} rows, {memory} bytes"
    );
    for look in [1, looks / 5, looks / 2, looks * 9 / 10, looks] {
        let world = World::new(memory);
        world.token.cancel_at_look(look.max(1));
        let ended = run(&world);
        assert!(
            matches!(ended, Err(ExecError::Cancelled)),
            "{what}: {ended:?} at look {look} of {looks}"
        );
        assert_eq!(world.token.looks(), look.max(1), "{what}: it went on");
        world.assert_clean();
    }
}

#[test]
fn what_is_cancelled_does_nothing_more() {
    let rows = Random(9).rows(60_000, &[(1, 3_000), (0, 2_000), (1, 1)]);
    for memory in [200_000, 1 << 30] {
        // Each row is sorted in about log2(60,000 / 16,384) merges, or written and read.
        ends_where_it_is_cancelled("sort", 3 * 60_000, memory, &|world| {
            sort(&rows, None, world).map(|rows| rows.len() as u64)
        });
        ends_where_it_is_cancelled("distinct", 60_000, memory, &|world| {
            let input = Input::Rows(tables(3, &rows));
            let mut distinct = Distinct::new(input, vars(0..3), true, 3, &world.cx);
            drain(&mut distinct, 3, &world.cx).map(|rows| rows.len() as u64)
        });
        ends_where_it_is_cancelled("join", 2 * 60_000, memory, &|world| {
            let side = JoinSide::new(&vars(0..1), &vars(1..2), None, all(3));
            let (a, b) = (tables(3, &rows), tables(3, &rows[..3_000]));
            let mut join = TwoSided::new(a, b, side, &vars(0..1), false, all(3), &world.cx);
            drain(&mut join, 3, &world.cx).map(|rows| rows.len() as u64)
        });
        ends_where_it_is_cancelled("minus", 2 * 60_000, memory, &|world| {
            let side = MinusSide::new(&vars(0..1), &vars(1..2), true);
            let (a, b) = (tables(3, &rows), tables(3, &rows));
            let mut minus = TwoSided::new(a, b, side, &vars(0..1), true, all(3), &world.cx);
            drain(&mut minus, 3, &world.cx).map(|rows| rows.len() as u64)
        });
        ends_where_it_is_cancelled("group", 60_000, memory, &|world| {
            let aggregate = Aggregate {
                function: AggregateFunction::Count,
                operand: None,
                distinct: true,
            };
            let mut group = super::group::of_tables(
                tables(3, &rows),
                &vars(0..1),
                (Var(3), aggregate),
                &vars(0..3),
                &world.cx,
            );
            drain(&mut *group, 1, &world.cx).map(|rows| rows.len() as u64)
        });
    }
}
