//! How long do filters, aggregates and sort keys take for a row?
//!
//! `cargo test -p jindou-exec --release measure -- --ignored --nocapture`

use std::time::Instant;

use jindou_model::{TermId, inline};
use jindou_plan::expression::{Aggregate, AggregateFunction};

use super::support::{Sample, Table, World};
use crate::expr::{GroupedAccumulator, OrderedTerms, order_numbers};

const ROWS: usize = 1_000_000;

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!(
        "{what}: {:.1} ns a row",
        start.elapsed().as_nanos() as f64 / ROWS as f64
    );
    result
}

/// Integers below a prime, in an order that repeats late.
fn integers(step: i64) -> Vec<TermId> {
    let values = (0..ROWS as i64).map(|row| row * step % 1_000_003);
    values.filter_map(inline::from_integer).collect()
}

#[test]
#[ignore = "prints times, to be run by hand"]
fn measure_columns_of_a_million_rows() {
    let world = World::default();
    let cx = world.context();
    let words: Vec<TermId> = (0..1000)
        .map(|number| world.insert(&format!("\"word number {number}\"")))
        .collect();
    let strings = (0..ROWS).map(|row| words[row * 31 % words.len()]).collect();
    let table = Table {
        columns: vec![integers(7919), integers(104_729), strings],
    };
    for text in [
        "?a < 500000",
        "?a < ?b",
        "?a > 100 && ?a < 500000 && ?b != 7",
        "?a + ?b < 1000000",
        "?c = \"word number 7\"",
        "?c < \"word number 5\"",
        "REGEX(?c, \"9$\")",
    ] {
        let code = Sample::parse(text).compile(&cx);
        let mut keep = Vec::with_capacity(ROWS);
        timed(text, || {
            code.evaluator().filter(&table, ROWS, &cx, &mut keep)
        });
    }
    let groups: Vec<u32> = (0..ROWS as u32).map(|row| row % 1000).collect();
    for function in [
        AggregateFunction::Count,
        AggregateFunction::Sum,
        AggregateFunction::Max,
    ] {
        let what = format!("{function:?}");
        let aggregate = Aggregate {
            function,
            operand: None,
            distinct: false,
        };
        let mut accumulator = GroupedAccumulator::new(&aggregate);
        accumulator.grow(1000);
        accumulator.use_order(&cx.terms().text_order(), &cx);
        timed(&what, || {
            accumulator.add_column(&table.columns[0], &groups, &cx)
        });
    }
    timed("order numbers", || {
        let (terms, order) = (cx.terms(), &cx.terms().text_order());
        let terms = OrderedTerms { terms, order };
        order_numbers(&table.columns[0], terms, &mut |_| Ok::<bool, ()>(true))
            .expect("nothing refuses")
    });
}
