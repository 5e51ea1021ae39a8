//! Does a filter over columns keep the rows for which the condition is true one by one?

use std::str::FromStr as _;

use jindou_model::{IdRanges, TermId};
use jindou_plan::physical::Var;
use oxrdf::Term;

use crate::expr::{CompiledExpression, Context};
use crate::{KeyKind, Keys};

use super::support::{Cells, Sample, Table, World, pool};

/// All pairs of the pool, unbound included, and a third column that varies.
fn pairs(world: &World) -> Table {
    let mut ids: Vec<TermId> = pool().iter().map(|text| world.insert(text)).collect();
    ids.push(TermId::NONE);
    // Terms that the store does not have.
    for text in ["\"bcd\"", "\"bcd\"@en", "<http://example.org/u>", "_:other"] {
        let term = Term::from_str(text).expect("a term");
        ids.push(world.terms.intern(term.as_ref()).unwrap());
    }
    ids.push(world.insert("_:node"));
    let mut columns = vec![Vec::new(); 3];
    for left in &ids {
        for right in &ids {
            columns[0].push(*left);
            columns[1].push(*right);
            let row = columns[2].len();
            columns[2].push(ids[(row * 7) % ids.len()]);
        }
    }
    Table { columns }
}

const CONDITIONS: &[&str] = &[
    "?a = 1",
    "?a != 1",
    "!(?a = 1)",
    "!(?a != 1)",
    "1 < ?a",
    "?a < 1",
    "?a <= 2.5",
    "?a > 0.1",
    "?a >= 2.5e0",
    "!(?a < 1)",
    "?a = true",
    "?a != false",
    "?a < \"2020-06-01T00:00:00Z\"^^xsd:dateTime",
    "?a >= \"2020-01-01T00:00:00\"^^xsd:dateTime",
    "?a = \"2020-01-01\"^^xsd:date",
    "?a != \"2020-01-01Z\"^^xsd:date",
    "?a = \"abc\"",
    "?a != \"abc\"",
    "?a < \"abc\"",
    "?a = \"abc\"@en",
    "?a = :s",
    "?a != :s",
    ":s = ?a",
    "sameTerm(?a, 1)",
    "!sameTerm(?a, 1)",
    "sameTerm(?a, ?b)",
    "!sameTerm(?a, ?b)",
    "?a = ?b",
    "?a != ?b",
    "?a < ?b",
    "?a >= ?b",
    "?a IN (:s, :t, \"abc\")",
    "?a NOT IN (:s, :t)",
    "?a NOT IN (:s, \"abc\")",
    "?a IN (1, :s)",
    "?a IN ()",
    "?a NOT IN ()",
    "BOUND(?a)",
    "!BOUND(?a)",
    "?a",
    "!?a",
    "true",
    "\"\"",
    "1/0",
    "BOUND(?a) && ?b > 0 && REGEX(STR(?a), \"0\")",
    "?a = 1 || ?b = 1 || ?a = :s",
    "!(?a = 1 || ?b < 2)",
    "!(?a = 1 && ?b < 2)",
    "!(BOUND(?a) && !BOUND(?b))",
    "(?a = 1 || ?b) && (?c < 100 || STRLEN(?a) = 3)",
    "?a + ?b < ?c",
    "COALESCE(?a, ?b) = ?c",
    "IF(BOUND(?a), ?a, ?b)",
    "CONTAINS(STR(?a), \"0\")",
    "COALESCE(STRLEN(?a), 0) = 0",
    "REGEX(?a, ?b)",
    "LANGMATCHES(LANG(?a), \"en\")",
    "YEAR(?a) = 2020",
    "isNumeric(?a) && ?a < ?b",
    "YEAR(?a) != 2020",
    "YEAR(?a) < 2020",
    "2020 <= YEAR(?a)",
    "!(YEAR(?a) > 2019)",
    "YEAR(?a) = 2020.0",
    "YEAR(?a) > 9223372036854775806",
    "MONTH(?a) = 6 || DAY(?a) = 31",
    "MONTH(?a) != 6",
    "!(3 >= MONTH(?a))",
    "DAY(?a) < 15 && HOURS(?a) >= 10",
    "HOURS(?a) <= 10",
    "MINUTES(?a) > 20.5",
    "MINUTES(?a) = 20",
    "HOURS(?a) * 60 + MINUTES(?a) = 620",
    "SECONDS(?a) = 0.5",
    "ABS(?a) = ?b",
    "?b != -?a",
    "FLOOR(?a / 2) = ?b",
    "xsd:date(?a) >= \"2020-01-01\"^^xsd:date",
    "CONTAINS(?a, \"b\")",
    "CONTAINS(?a, \"b\"@en)",
    "CONTAINS(?a, ?b)",
    "STRSTARTS(STR(?a), \"http\")",
    "STRENDS(?a, ?b)",
    "LANG(?a) = \"en\"",
    "\"en\" = LANG(?a)",
    "LANG(?a) != \"en\"",
    "!(LANG(?a) = \"en\")",
    "LANG(?a) = \"\"",
    "LANG(?a) < \"en\"",
    "CONTAINS(LANG(?a), \"n\")",
    "!LANGMATCHES(LANG(?a), \"EN\")",
    "LANGMATCHES(LANG(?a), \"en\"@en)",
    "STRLEN(?a) = 3",
    "STRLEN(?a) > 2.5",
    "3 > STRLEN(STR(?a))",
    "STRLEN(LANG(?a)) = 2",
    "!(STRLEN(?a) >= 3)",
    "STR(?a) = \"abc\"",
    "STR(?a) != \"http://example.org/s\"",
    "sameTerm(STR(?a), \"abc\")",
    "sameTerm(STRLEN(?a), 3)",
    "STRSTARTS(?a, \"a\")",
    "STRSTARTS(?a, \"a\"@en)",
    "!STRSTARTS(?a, \"a\")",
    "!STRENDS(STR(?a), \"c\")",
    "!CONTAINS(?a, \"b\")",
    "REGEX(STR(?a), \"^.b\")",
    "!REGEX(?a, \"^a\")",
    "LANG(?a) < LANG(?b)",
    "LANGMATCHES(LANG(?a), \"*\")",
    "UCASE(?a) = ?b",
    "?b != LCASE(?a)",
    "UCASE(?a) < \"B\"@en",
    "STR(?a) <= STR(?b)",
    "CONTAINS(LCASE(?a), \"b\")",
    "CONTAINS(UCASE(STR(?a)), \"B\")",
    "!STRSTARTS(LCASE(STR(?a)), \"http\")",
    "REGEX(LCASE(?a), \"^.b\")",
    "STRLEN(UCASE(?a)) = 3",
    "STRENDS(UCASE(?a), \"É\")",
    "LCASE(?a) = \"abc\"",
    "LCASE(STR(?a)) = \"abc\"",
    "UCASE(STR(?a)) != \"ABC\"",
    "\"ABC\" < UCASE(STR(?a))",
    "LCASE(?a) < \"b\"",
    "?a < \"b\"",
    "?a < \"b\"@en",
    "\"abc\" <= ?a",
    "!(?a > \"abc\")",
    "!(?a >= \"\")",
    "STR(?a) > \"http://example.org/s\"",
    "?a >= \"a\" && ?a < \"b\"",
    "SUBSTR(?a, 2) = \"bc\"",
    "STRBEFORE(?a, \"b\") = \"a\"@en",
    "DATATYPE(?a) = DATATYPE(?b)",
    "REGEX(?a, \"B\", \"i\")",
    "REPLACE(?a, \"b\", \"x\") = \"axc\"",
];

#[test]
fn columns_and_rows_agree_on_all_pairs() {
    let world = World::default();
    let cx = world.context();
    let table = pairs(&world);
    let rows = table.columns[0].len();
    for text in CONDITIONS {
        let code = Sample::parse(text).compile(&cx);
        let expected: Vec<u32> = (0..rows)
            .filter(|row| {
                let cells = table.columns.iter().map(|column| column[*row]).collect();
                code.effective_boolean(&Cells(cells), &cx)
            })
            .map(|row| row as u32)
            .collect();
        let mut evaluator = code.clone().evaluator();
        // Twice: the second time from what is remembered.
        for _ in 0..2 {
            let mut keep = vec![7];
            evaluator.filter(&table, rows, &cx, &mut keep);
            assert!(
                keep == expected,
                "{text}: {} rows, not {}",
                keep.len(),
                expected.len()
            );
        }
        let mut some: Vec<u32> = (0..rows as u32).step_by(3).collect();
        evaluator.retain(&table, &cx, &mut some);
        let expected: Vec<u32> = expected
            .iter()
            .copied()
            .filter(|row| row % 3 == 0)
            .collect();
        assert!(some == expected, "{text}, on every third row");
    }
}

#[test]
fn a_variable_without_a_column_is_unbound() {
    let world = World::default();
    let cx = world.context();
    let table = Table {
        columns: vec![vec![world.insert("1"); 4]],
    };
    for (text, count) in [
        ("!BOUND(?b)", 4),
        ("BOUND(?b)", 0),
        ("?a = ?b", 0),
        ("?b = 1", 0),
        ("?b != 1", 0),
        ("?b IN (:s)", 0),
        ("?a = 1 || ?b = 1", 4),
        ("COALESCE(STRLEN(?b), 0) = 0", 4),
    ] {
        let code = Sample::parse(text).compile(&cx);
        let mut keep = Vec::new();
        code.evaluator().filter(&table, 4, &cx, &mut keep);
        assert_eq!(keep.len(), count, "{text}");
    }
}

#[test]
fn columns_of_values_are_those_of_rows() {
    let world = World::default();
    let cx = world.context();
    let table = pairs(&world);
    let rows = table.columns[0].len();
    for text in [
        "?a",
        "?b + 1",
        "STRLEN(?a)",
        "CONCAT(STR(?a), \"x\")",
        "?a + ?b",
        "5",
        "1/0",
        "UCASE(?c)",
        "SUBSTR(?a, 2, 1)",
        "LANG(?b)",
        "STRAFTER(?a, ?b)",
        "REPLACE(?a, \"[b-z]\", \"\")",
        "CONCAT(?a, ?b)",
        "MD5(?a)",
        "YEAR(?a)",
        "SECONDS(?a)",
        "?a / ?b",
        "xsd:dateTime(?a)",
        "DATATYPE(?a)",
        "IF(?a < ?b, UCASE(?a), ?b)",
    ] {
        let code = Sample::parse(text).compile(&cx);
        let mut out = vec![TermId::NONE];
        let mut evaluator = code.clone().evaluator();
        evaluator.evaluate_column(&table, rows, &cx, &mut out);
        assert_eq!(out.len(), rows + 1);
        for row in 0..rows {
            let cells = table.columns.iter().map(|column| column[row]).collect();
            assert_eq!(
                out[row + 1],
                code.evaluate_id(&Cells(cells), &cx),
                "{text}, row {row}"
            );
        }
    }
}

#[test]
fn what_is_remembered_is_bounded() {
    let world = World::default();
    let cx = world.context();
    let code = Sample::parse("REGEX(STR(?a), \"^[13579]*$\")").compile(&cx);
    let ids: Vec<TermId> = (0..200_000)
        .filter_map(jindou_model::inline::from_integer)
        .collect();
    let table = Table { columns: vec![ids] };
    let mut evaluator = code.clone().evaluator();
    let mut keep = Vec::new();
    evaluator.filter(&table, 200_000, &cx, &mut keep);
    // 5 + 25 + 125 + 625 + 3125 of at most five digits, and 5^5 that begin with a one.
    assert_eq!(keep.len(), 3905 + 3125);
    assert!(evaluator.bytes() < 4 << 20, "{} bytes", evaluator.bytes());
}

#[test]
fn nothing_is_remembered_where_it_does_not_pay() {
    let world = World::default();
    let cx = world.context();
    let code = Sample::parse("STRENDS(STR(?a), \"7\")").compile(&cx);
    let numbers = |from: u64, to: u64| -> Table {
        let text = |number| world.insert(&format!("\"number {number}\""));
        let column = (from..to).map(text).collect();
        Table {
            columns: vec![column],
        }
    };
    let mut evaluator = code.evaluator();
    let mut keep = Vec::new();
    let mut kept = 0;
    for from in (0..20_000).step_by(2_000) {
        evaluator.filter(&numbers(from, from + 2_000), 2_000, &cx, &mut keep);
        kept += keep.len();
    }
    assert_eq!(kept, 2_000);
    // Of 20,000 results it would hold more.
    assert!(evaluator.bytes() < 400_000, "{} bytes", evaluator.bytes());
    // Values that come again are remembered again.
    let repeated = numbers(30_000, 30_500);
    for _ in 0..100 {
        evaluator.filter(&repeated, 500, &cx, &mut keep);
        assert_eq!(keep.len(), 50);
    }
}

#[test]
fn a_cut_set_has_all_that_a_filter_keeps() {
    let world = World::default();
    let cx = world.context();
    let mut texts: Vec<String> = pool().iter().map(|text| (*text).to_owned()).collect();
    for zone in ["", "Z", "+14:00", "-14:00", "+01:00"] {
        for day in [
            "2019-12-30",
            "2019-12-31",
            "2020-01-01",
            "2020-01-02",
            "2020-06-01",
        ] {
            texts.push(format!(
                "\"{day}{zone}\"^^<http://www.w3.org/2001/XMLSchema#date>"
            ));
            for time in ["00:00:00", "10:20:00", "23:59:59.999"] {
                texts.push(format!(
                    "\"{day}T{time}{zone}\"^^<http://www.w3.org/2001/XMLSchema#dateTime>"
                ));
            }
        }
    }
    let mut ids: Vec<TermId> = texts.iter().map(|text| world.insert(text)).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut all = IdRanges::new();
    all.extend_sorted(ids.iter().map(|id| id.raw()));
    let mut dropped = 0;
    for constant in [
        "1",
        "-3",
        "2.5",
        "\"2020-01-01T00:00:00Z\"^^xsd:dateTime",
        "\"2020-01-01T10:20:00\"^^xsd:dateTime",
        "\"2019-12-31+14:00\"^^xsd:date",
        "\"2020-01-02\"^^xsd:date",
        "YEAR",
    ] {
        for operator in ["=", "!=", "<", "<=", ">", ">="] {
            let text = match constant {
                "YEAR" => format!("YEAR(?a) {operator} 2020"),
                constant => format!("?a {operator} {constant} && ?a != 7"),
            };
            let code = Sample::parse(&text).compile(&cx);
            let cut = code.cut(Var(0), all.clone());
            for id in &ids {
                let kept = code.effective_boolean(&Cells(vec![*id]), &cx);
                assert!(!kept || cut.contains(*id), "{text}: {id:?}");
            }
            dropped += all.len() - cut.len();
            assert_eq!(code.cut(Var(1), all.clone()), all, "of another variable");
        }
    }
    assert!(dropped > 300, "{dropped} ids were left out");
}

#[test]
fn keys_come_in_the_order_of_ids_and_within_the_bytes_asked_for() {
    let world = World::default();
    let stored = world.insert("\"stored\"");
    let computed = Term::from_str("\"computed\"@en").expect("a term");
    let computed = world.terms.intern(computed.as_ref()).unwrap();
    let node = world.insert("<http://example.org/s>");
    let ids = [
        stored,
        TermId::NONE,
        computed,
        world.insert("5"),
        node,
        stored,
    ];
    let mut keys = Keys::default();
    assert_eq!(
        world.terms.push_keys(&ids, usize::MAX, &mut keys).unwrap(),
        6
    );
    let all: Vec<_> = keys.iter().collect();
    let expected: [(&[u8], KeyKind); 6] = [
        (b"stored\0", KeyKind::Literal),
        (b"", KeyKind::None),
        (b"computed\0@en", KeyKind::Literal),
        (b"", KeyKind::None),
        (b"http://example.org/s", KeyKind::Node),
        (b"stored\0", KeyKind::Literal),
    ];
    assert_eq!(all, expected);
    // The same keys are the same terms, of the store or not.
    let mut again = Vec::new();
    world.terms.intern_keys(&keys, &mut again).unwrap();
    let none = TermId::NONE;
    assert_eq!(again, [stored, none, computed, none, node, stored]);
    keys.clear();
    assert_eq!(world.terms.push_keys(&ids, 1, &mut keys).unwrap(), 1);
    keys.clear();
    assert_eq!(world.terms.push_keys(&ids[1..], 1, &mut keys).unwrap(), 2);
}

#[test]
fn threads_may_share_expressions_and_their_context() {
    fn shared<T: Send + Sync>() {}
    shared::<CompiledExpression>();
    shared::<Context>();
}
