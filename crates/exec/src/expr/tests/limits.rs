//! Are expressions refused by name where they go beyond what the engine does, and do they look at
//! the limits of the query?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jindou_model::TermId;

use super::support::{Cells, Sample, World};
use crate::Terms;
use crate::expr::{CompileError, CompiledExpression, ExprError};

#[test]
fn what_patterns_lack_is_refused_by_name() {
    let world = World::default();
    let cx = world.context();
    for (text, part) in [
        ("REGEX(?a, \"((a){300}){300}\\\\1\")", "65536 instructions"),
        ("REGEX(?a, \"\\\\p{IsGreek}\")", "IsGreek"),
        ("REPLACE(?a, \"(\\\\w{200}){200}\", \"\")", "bytes"),
    ] {
        let sample = Sample::parse(text);
        let constants: Vec<TermId> = sample
            .constants
            .iter()
            .map(|term| cx.terms().intern(term.as_ref()).unwrap())
            .collect();
        match CompiledExpression::compile(&sample.expression, &constants, &cx) {
            Err(CompileError::Pattern { reason }) => assert!(reason.contains(part), "{reason}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    // A pattern of the data is refused when it is met, and the query then fails.
    let dynamic = Sample::parse("REGEX(?a, ?b)").compile(&cx);
    let row = Cells(vec![
        world.insert("\"aa\""),
        world.insert("\"((a){300}){300}\\\\1\""),
    ]);
    assert_eq!(cx.refusal(), None);
    assert_eq!(dynamic.evaluate(&row, &cx), Err(ExprError::Refused));
    assert!(cx.refusal().expect("a refusal").contains("instructions"));
}

#[test]
fn a_pattern_too_long_to_parse_is_refused() {
    let world = World::default();
    let cx = world.context();
    let long = format!("\"{}\"", "a".repeat((1 << 18) + 1));
    let row = Cells(vec![world.insert("\"aa\""), world.insert(&long)]);
    let dynamic = Sample::parse("REGEX(?a, ?b)").compile(&cx);
    assert_eq!(dynamic.evaluate(&row, &cx), Err(ExprError::Refused));
    assert!(cx.refusal().expect("a refusal").contains("262144 bytes"));
}

#[test]
fn costly_functions_look_at_the_limits_between_rows() {
    const LOOKS: u64 = 12;
    let long = format!("\"{}\"", "ab".repeat(1 << 15));
    for (text, first) in [
        // A pattern that is computed is looked up, or compiled, for each row.
        (
            "REGEX(?a, CONCAT(\"(a{1,50}){1,\", STR(?b), \"}\"))",
            "\"aa\"",
        ),
        ("REPLACE(?a, STR(?b), \"x\")", "\"aa\""),
        ("REGEX(?a, \"b$\")", &long),
        ("REPLACE(?a, \"a\", \"cd\")", &long),
        ("CONCAT(?a, STR(?b))", &long),
        ("UCASE(?a)", &long),
        ("ENCODE_FOR_URI(?a)", &long),
        ("SHA512(?a)", &long),
        ("STRLEN(?a)", &long),
        ("CONTAINS(?a, STR(?b))", &long),
        ("CONTAINS(?a, \"c\")", &long),
        ("STRAFTER(?a, STR(?b))", &long),
    ] {
        let world = World::default();
        let mut cx = world.context();
        let looks = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&looks);
        cx.watch(Arc::new(move |_: &Terms| {
            counted.fetch_add(1, Relaxed) + 1 == LOOKS
        }));
        let compiled = Sample::parse(text).compile(&cx);
        let first = world.insert(first);
        let values = (1..=20).map(|number| {
            let row = Cells(vec![first, world.insert(&format!("\"{number}\""))]);
            compiled.evaluate(&row, &cx)
        });
        let values: Vec<_> = values.collect();
        assert!(cx.is_over(), "{text}");
        assert_eq!(looks.load(Relaxed), LOOKS, "{text}: nobody looks again");
        assert!(values[0].is_ok(), "{text}: {:?}", values[0]);
        assert_eq!(values[15..], vec![Err(ExprError::Refused); 5], "{text}");
    }
}
