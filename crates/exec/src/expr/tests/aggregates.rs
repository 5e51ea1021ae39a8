//! Do aggregates give what section 18.5.1 says, also when threads aggregate apart?

use jindou_model::TermId;
use jindou_plan::expression::{Aggregate, AggregateFunction};
use oxrdf::Dataset;
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;

use super::support::{Sequence, World, pool};
use crate::expr::{Context, GroupedAccumulator};

fn functions() -> Vec<AggregateFunction> {
    vec![
        AggregateFunction::Count,
        AggregateFunction::Sum,
        AggregateFunction::Avg,
        AggregateFunction::Min,
        AggregateFunction::Max,
        AggregateFunction::Sample,
        AggregateFunction::GroupConcat("; ".to_owned()),
    ]
}

fn accumulator(function: AggregateFunction, distinct: bool) -> GroupedAccumulator {
    GroupedAccumulator::new(&Aggregate {
        function,
        operand: None,
        distinct,
    })
}

fn shown(id: TermId, cx: &Context) -> String {
    let text = cx
        .terms()
        .term(id)
        .unwrap()
        .map_or("error".to_owned(), |term| term.to_string());
    text.replace("http://www.w3.org/2001/XMLSchema#", "xsd:")
}

/// The aggregate of one group of these terms; `-` stands for an error.
fn aggregate(function: AggregateFunction, distinct: bool, terms: &[&str]) -> String {
    let world = World::default();
    let cx = world.context();
    let mut accumulator = accumulator(function, distinct);
    accumulator.grow(1);
    for term in terms {
        let id = if *term == "-" {
            TermId::NONE
        } else {
            world.insert(term)
        };
        accumulator.add(0, id, &cx);
    }
    shown(accumulator.finish(0, &cx), &cx)
}

#[test]
fn groups_of_nothing_have_the_values_of_the_specification() {
    let expected = [
        "\"0\"^^<xsd:integer>",
        "\"0\"^^<xsd:integer>",
        "\"0\"^^<xsd:integer>",
        "error",
        "error",
        "error",
        "\"\"",
    ];
    for (function, expected) in functions().into_iter().zip(expected) {
        for distinct in [false, true] {
            assert_eq!(
                aggregate(function.clone(), distinct, &[]),
                expected,
                "{function:?}"
            );
        }
    }
}

#[test]
fn errors_leave_all_but_count_and_sample_without_a_value() {
    let expected = [
        "\"2\"^^<xsd:integer>",
        "error",
        "error",
        "error",
        "error",
        "\"1\"^^<xsd:integer>",
        "error",
    ];
    for (function, expected) in functions().into_iter().zip(expected) {
        for distinct in [false, true] {
            let value = aggregate(function.clone(), distinct, &["1", "-", "2"]);
            assert_eq!(value, expected, "{function:?}, distinct {distinct}");
        }
    }
}

#[test]
fn sums_and_averages_promote() {
    let decimal = "\"0.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>";
    let float = "\"0.5\"^^<http://www.w3.org/2001/XMLSchema#float>";
    let double = "\"0.5\"^^<http://www.w3.org/2001/XMLSchema#double>";
    let largest = "9223372036854775807";
    let cases: [(&[&str], &str, &str); 9] = [
        (
            &["1", "2"],
            "\"3\"^^<xsd:integer>",
            "\"1.5\"^^<xsd:decimal>",
        ),
        (
            &["1", decimal],
            "\"1.5\"^^<xsd:decimal>",
            "\"0.75\"^^<xsd:decimal>",
        ),
        (
            &["1", decimal, float],
            "\"2\"^^<xsd:float>",
            "\"0.6666667\"^^<xsd:float>",
        ),
        (
            &["1", float, double],
            "\"2\"^^<xsd:double>",
            "\"0.6666666666666666\"^^<xsd:double>",
        ),
        (
            &["\"01\"^^<http://www.w3.org/2001/XMLSchema#byte>", "1"],
            "\"2\"^^<xsd:integer>",
            "\"1\"^^<xsd:decimal>",
        ),
        (&["1", "\"a\""], "error", "error"),
        (&["1", "<http://example.org/a>"], "error", "error"),
        (
            &[largest, largest],
            "\"18446744073709551614\"^^<xsd:integer>",
            "\"9223372036854775807\"^^<xsd:decimal>",
        ),
        // What is out of range only on the way is in range at the end.
        (
            &[largest, "1", "-1"],
            "\"9223372036854775807\"^^<xsd:integer>",
            "\"3074457345618258602.333333333333333333\"^^<xsd:decimal>",
        ),
    ];
    for (terms, sum, average) in cases {
        assert_eq!(
            aggregate(AggregateFunction::Sum, false, terms),
            sum,
            "{terms:?}"
        );
        assert_eq!(
            aggregate(AggregateFunction::Avg, false, terms),
            average,
            "{terms:?}"
        );
    }
    assert_eq!(
        aggregate(AggregateFunction::Sum, true, &["1", "1", "2"]),
        "\"3\"^^<xsd:integer>"
    );
}

#[test]
fn extremes_keep_the_term_and_follow_the_order_of_terms() {
    let zero_one = "\"01\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    let terms = ["2", zero_one, "\"b\"", "3", "<http://example.org/a>"];
    assert_eq!(
        aggregate(AggregateFunction::Min, false, &terms),
        "<http://example.org/a>"
    );
    assert_eq!(aggregate(AggregateFunction::Max, false, &terms), "\"b\"");
    assert_eq!(
        aggregate(AggregateFunction::Min, false, &terms[..2]),
        "\"01\"^^<xsd:integer>"
    );
    assert_eq!(
        aggregate(AggregateFunction::Max, false, &["-5", "-7"]),
        "\"-5\"^^<xsd:integer>"
    );
}

#[test]
fn texts_are_joined_in_the_order_of_rows() {
    let function = AggregateFunction::GroupConcat(", ".to_owned());
    let terms = [
        "\"b\"@en",
        "1",
        "\"b\"@en",
        "<http://example.org/a>",
        "\"\"",
    ];
    assert_eq!(
        aggregate(function.clone(), false, &terms),
        "\"b, 1, b, http://example.org/a, \""
    );
    assert_eq!(
        aggregate(function.clone(), true, &terms),
        "\"b, 1, http://example.org/a, \""
    );
    assert_eq!(aggregate(function, false, &["\"a\"", "_:node"]), "error");
}

#[test]
fn merged_parts_agree_with_the_whole() {
    let world = World::default();
    let cx = world.context();
    // Doubles and floats are left out: their sums depend on the order.
    let mut ids: Vec<TermId> = pool()
        .iter()
        .filter(|text| !text.contains("double") && !text.contains("float"))
        .map(|text| world.insert(text))
        .collect();
    ids.push(TermId::NONE);
    let numbers: Vec<TermId> = ["1", "2", "-7", "2.5", "100000000000"]
        .map(|text| world.insert(text))
        .into();
    for seed in 0..60 {
        let mut sequence = Sequence(seed);
        let pool = if seed % 2 == 0 { &ids } else { &numbers };
        let rows: Vec<(TermId, u32)> = (0..sequence.next(40))
            .map(|_| (pool[sequence.next(pool.len())], sequence.next(4) as u32))
            .collect();
        let cut = sequence.next(rows.len() + 1);
        for function in functions() {
            for distinct in [false, true] {
                let any_order = matches!(
                    function,
                    AggregateFunction::Count | AggregateFunction::Sum | AggregateFunction::Avg
                );
                if distinct && !any_order {
                    // Which of two equal numbers or of all values comes first may differ.
                    continue;
                }
                let part = |rows: &[(TermId, u32)], swap: u32| {
                    let mut part = accumulator(function.clone(), distinct);
                    part.grow(4);
                    let ids: Vec<TermId> = rows.iter().map(|row| row.0).collect();
                    let groups: Vec<u32> = rows.iter().map(|row| row.1 ^ swap).collect();
                    part.add_column(&ids, &groups, &cx);
                    part
                };
                let mut whole = part(&rows, 0);
                let mut merged = part(&rows[..cut], 0);
                // The other thread met its groups in another order.
                merged.merge(part(&rows[cut..], 1), &[1, 0, 3, 2], &cx);
                for group in 0..4 {
                    assert_eq!(
                        shown(merged.finish(group, &cx), &cx),
                        shown(whole.finish(group, &cx), &cx),
                        "{function:?}, distinct {distinct}, seed {seed}, group {group}"
                    );
                }
            }
        }
    }
}

#[test]
fn numbers_agree_with_another_engine() {
    let dataset = Dataset::new();
    let evaluator = QueryEvaluator::new();
    let numbers: Vec<String> = pool()
        .into_iter()
        .filter(|text| {
            ["#integer>", "#decimal>", "#int>"]
                .iter()
                .any(|end| text.ends_with(end))
        })
        .filter(|text| {
            ![
                "x",
                "1.5\"^^<http://www.w3.org/2001/XMLSchema#integer",
                "999999",
            ]
            .iter()
            .any(|part| text.starts_with(&format!("\"{part}")))
        })
        .filter(|text| !text.contains("9223372036854775807"))
        .collect();
    for seed in 0..40 {
        let mut sequence = Sequence(seed);
        let terms: Vec<&str> = (0..1 + sequence.next(8))
            .map(|_| numbers[sequence.next(numbers.len())].as_str())
            .collect();
        for (name, function) in [
            ("COUNT", AggregateFunction::Count),
            ("SUM", AggregateFunction::Sum),
            ("AVG", AggregateFunction::Avg),
            ("MIN", AggregateFunction::Min),
            ("MAX", AggregateFunction::Max),
        ] {
            let text = format!(
                "SELECT (({name}(?a) + 0.0) AS ?result) {{ VALUES ?a {{ {} }} }}",
                terms.join(" ")
            );
            let query = SparqlParser::new().parse_query(&text).expect("a query");
            let QueryResults::Solutions(mut solutions) = evaluator
                .prepare(&query)
                .execute(&dataset)
                .expect("the oracle runs")
            else {
                unreachable!("the query is a SELECT");
            };
            let solution = solutions.next().expect("a group").expect("the oracle runs");
            let expected = solution.get("result").map(ToString::to_string);
            let world = World::default();
            let cx = world.context();
            let mut accumulator = accumulator(function, false);
            accumulator.grow(1);
            for term in &terms {
                accumulator.add(0, world.insert(term), &cx);
            }
            let id = accumulator.finish(0, &cx);
            let sum = super::support::Sample::parse("?a + 0.0").compile(&cx);
            let got = cx
                .terms()
                .term(sum.evaluate_id(&super::support::Cells(vec![id]), &cx))
                .unwrap();
            assert_eq!(
                got.map(|term| term.to_string()),
                expected,
                "seed {seed}: {text}"
            );
        }
    }
}

#[test]
fn rows_and_solutions_are_counted() {
    let world = World::default();
    let cx = world.context();
    let mut rows = accumulator(AggregateFunction::Count, false);
    rows.grow(2);
    rows.add_rows(&[0, 1, 1, 1]);
    assert_eq!(shown(rows.finish(1, &cx), &cx), "\"3\"^^<xsd:integer>");

    let mut parts = [1, 2].map(|_| accumulator(AggregateFunction::Count, true));
    let a = world.insert("1");
    for part in &mut parts {
        part.grow(1);
        part.add_solution(0, &[a, TermId::NONE]);
        part.add_solution(0, &[a, a]);
        part.add_solution(0, &[a, a]);
    }
    let [mut first, mut second] = parts;
    second.add_solution(0, &[TermId::NONE, a]);
    first.merge(second, &[0], &cx);
    assert_eq!(shown(first.finish(0, &cx), &cx), "\"3\"^^<xsd:integer>");
}

#[test]
fn distinct_values_and_texts_are_counted_as_memory() {
    let world = World::default();
    let cx = world.context();
    let ids: Vec<TermId> = (0..10_000)
        .filter_map(jindou_model::inline::from_integer)
        .collect();
    let groups = vec![0; ids.len()];
    let mut distinct = accumulator(AggregateFunction::Sum, true);
    distinct.grow(1);
    distinct.add_column(&ids, &groups, &cx);
    assert!(
        distinct.bytes() >= 10_000 * 2 * size_of::<TermId>(),
        "{}",
        distinct.bytes()
    );
    let mut text = accumulator(AggregateFunction::GroupConcat(",".to_owned()), false);
    text.grow(1);
    text.add_column(&ids, &groups, &cx);
    assert!(text.bytes() >= 48_889, "{}", text.bytes());
}
