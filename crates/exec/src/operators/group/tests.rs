//! Groups of several threads, put together, are those of all rows.

use std::sync::{Arc, Mutex};

use jindou_model::{TermId, TermKind, inline};
use jindou_plan::Stack;
use jindou_plan::expression::{Aggregate, AggregateFunction, Expression};
use jindou_plan::physical::Var;

use super::{Arguments, Group, Input, PartialGroups};
use crate::ExecError;
use crate::QueryClass;
use crate::context::Context;
use crate::exchange::Exchange;
use crate::operator::{Boxed, Operator};
use crate::table::Table;
use crate::test_world::World;
use crate::workers::Workers;

const THREADS: usize = 3;
/// Two keys and a value.
const WIDTH: usize = 3;
const ROWS_PER_TABLE: usize = 500;

type Row = [TermId; WIDTH];

/// Hands over tables, each to whoever comes first.
#[derive(Clone)]
struct Tables(Arc<Mutex<std::vec::IntoIter<Table>>>);

impl Operator for Tables {
    fn produce(&mut self, _: &Context) -> Result<Option<Table>, ExecError> {
        Ok(self.0.lock().unwrap().next())
    }
}

fn tables(rows: &[Row]) -> Tables {
    let table = |rows: &[Row]| {
        let mut table = Table::with_rows(WIDTH, rows.len());
        for column in 0..WIDTH {
            let ids = rows.iter().map(|row| row[column]).collect();
            table.set(Var(column as u16), ids);
        }
        table
    };
    let tables: Vec<Table> = rows.chunks(ROWS_PER_TABLE).map(table).collect();
    Tables(Arc::new(Mutex::new(tables.into_iter())))
}

/// So many rows whose first key has so many values; some values are none.
fn rows(count: u64, keys: u64) -> Vec<Row> {
    let mut state = count ^ keys;
    let mut below = |bound: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % bound
    };
    let integer = |value: u64| inline::from_integer(value as i64).expect("it is small");
    let row = |_| {
        let value = below(300);
        let value = if value == 0 {
            TermId::NONE
        } else {
            integer(value)
        };
        [TermId::vertex(below(keys)), TermId::vertex(below(3)), value]
    };
    (0..count).map(row).collect()
}

fn aggregates() -> Vec<(Var, Aggregate)> {
    let value = || Some(Expression::Variable(Var(2)));
    let all = [
        (AggregateFunction::Count, None, false),
        (AggregateFunction::Count, value(), false),
        (AggregateFunction::Count, value(), true),
        (AggregateFunction::Sum, value(), false),
        (AggregateFunction::Sum, value(), true),
        (AggregateFunction::Avg, value(), false),
        (AggregateFunction::Min, value(), false),
        (AggregateFunction::Max, value(), true),
    ];
    let aggregate = |(function, operand, distinct)| Aggregate {
        function,
        operand,
        distinct,
    };
    let vars = (WIDTH as u16..).map(Var);
    vars.zip(all.map(aggregate)).collect()
}

/// A term, the same in all worlds.
fn shown(id: TermId, cx: &Context) -> String {
    match id.kind() {
        TermKind::Computed => format!("{:?}", cx.terms().term(id)),
        _ => format!("{id:?}"),
    }
}

/// The groups of rows that so many threads find, in the order of their keys.
fn groups(
    (rows, threads, distinct): (&[Row], usize, Option<Var>),
    keys: usize,
    aggregates: &[(Var, Aggregate)],
    world: &World,
) -> Result<Vec<Vec<String>>, ExecError> {
    let by: Vec<Var> = (0..keys).map(|key| Var(key as u16)).collect();
    let all: Vec<Var> = (0..WIDTH).map(|var| Var(var as u16)).collect();
    let cx = &world.cx;
    let source = tables(rows);
    let input = match threads {
        1 => Input::Rows(Box::new(source)),
        threads => {
            let partial = || PartialGroups::new(&by, aggregates, &all, distinct, cx).unwrap();
            let shares = (0..threads).map(|_| (Box::new(source.clone()) as Boxed, partial()));
            let workers = Arc::new(Workers::new(threads - 1));
            let around = (cx, &workers);
            let exchange = Exchange::new(shares.collect(), Vec::new(), Stack::plain(), around);
            Input::Exchange(Box::new(exchange))
        }
    };
    let of_all = aggregates.iter().map(|(_, aggregate)| aggregate);
    let layout = Arguments::new(&by, of_all, &all, cx).unwrap();
    let width = WIDTH + self::aggregates().len();
    let mut group = Group::new(input, &by, layout, aggregates, width, cx);
    let mut found = Vec::new();
    while let Some(table) = group.next(cx)? {
        let columns = || by.iter().chain(aggregates.iter().map(|(var, _)| var));
        let row = |row| {
            columns()
                .map(|var| shown(table.value(*var, row), cx))
                .collect()
        };
        found.extend((0..table.rows()).map(row));
    }
    found.sort_unstable();
    Ok(found)
}

/// The same rows, with other first keys in each table.
fn with_keys_of_tables(rows: &[Row]) -> Vec<Row> {
    let tables = rows.chunks(ROWS_PER_TABLE).zip(1..);
    let row = |row: &Row, table: u64| {
        let key = TermId::vertex(row[0].number() + (table << 24));
        [key, row[1], row[2]]
    };
    tables
        .flat_map(|(rows, table)| rows.iter().map(move |of_table| row(of_table, table)))
        .collect()
}

#[test]
fn groups_of_several_threads_are_those_of_one() {
    for (count, key_values) in [(1_000, 5), (6_000, 700)] {
        let rows = rows(count, key_values);
        let memory = [1 << 30, 1 << 20, 300_000];
        are_those_of_one(&rows, None, &memory);
        are_those_of_one(&with_keys_of_tables(&rows), Some(Var(0)), &memory);
    }
    // Each thread meets so many groups that it passes rows on.
    are_those_of_one(&rows(60_000, 20_000), None, &[1 << 30]);
}

/// Of rows where each value of `distinct` is of one thread.
fn are_those_of_one(rows: &[Row], distinct: Option<Var>, memory: &[u64]) {
    let all = aggregates();
    let without_texts = [&all[..5], &all[6..]].concat();
    for (keys, aggregates) in [
        (0, &all),
        (1, &all),
        (2, &all),
        (0, &without_texts),
        (1, &without_texts),
        (2, &without_texts),
        (1, &all[..2].to_vec()),
        (2, &all[3..4].to_vec()),
    ] {
        let large = World::new(1 << 30);
        let expected = groups((rows, 1, None), keys, aggregates, &large).unwrap();
        for memory in memory.iter().copied() {
            let what = format!(
                "{} rows, {keys} keys, {memory} bytes, {distinct:?}",
                rows.len()
            );
            let alone = groups((rows, 1, None), keys, aggregates, &World::new(memory));
            let world = World::of(memory, (THREADS, QueryClass::Heavy));
            match groups((rows, THREADS, distinct), keys, aggregates, &world) {
                Ok(found) => assert!(found == expected, "{what}"),
                // Averages are texts, which stay in memory.
                Err(ExecError::Memory { .. }) => {
                    assert!(alone.is_err(), "{what}, {} aggregates", aggregates.len());
                }
                Err(error) => panic!("{what}: {error}"),
            }
            world.assert_clean();
        }
    }
}
