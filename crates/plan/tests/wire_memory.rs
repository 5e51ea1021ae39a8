//! Reading steps holds no more memory than their bytes allow: counted by the allocator.

mod common;

use common::Flat;
use jindou_counting::peak;
use jindou_plan::expression::Expression;
use jindou_plan::physical::{
    ConstId, Node, Operator, Outcome, PathExpression, PlannedStep, Scope, Slot, Step, Var,
};
use jindou_plan::{PlanSizes, Stack, decode_steps, decoded_bytes, encode_steps, plan};

/// Bytes that are held whatever is read.
const FREE: u64 = 4 << 10;
const SIZES: PlanSizes = PlanSizes {
    variables: 4,
    constants: 4,
    ids: 4,
};
/// How often each is nested or repeated.
const TIMES: usize = 60;

fn planned(step: Step) -> Vec<PlannedStep> {
    let (rows, id) = (1.0, 0);
    vec![PlannedStep { step, rows, id }]
}

fn exists(operator: Operator) -> Vec<PlannedStep> {
    let (rows, id) = (1.0, 0);
    planned(Step::ExistsGiven {
        node: Box::new(Node { operator, rows, id }),
        all_bound: None,
        given: vec![],
        outcome: Outcome::Keep,
    })
}

/// What takes the most memory for its bytes.
fn wasteful() -> Vec<(&'static str, Vec<PlannedStep>)> {
    let bound = || Expression::Bound(Var(0));
    let nested = |wrap: &dyn Fn(Expression) -> Expression| {
        let expression = (0..TIMES).fold(bound(), |inner, _| wrap(inner));
        planned(Step::Filter(expression))
    };
    let edge = PathExpression::Negated(vec![], jindou_model::Direction::Out);
    let path = (0..TIMES).fold(edge, |inner, _| PathExpression::ZeroOrMore(Box::new(inner)));
    let of_nodes = (0..TIMES).fold(Operator::Union(vec![]), |operator, _| {
        let (rows, id) = (1.0, 0);
        Operator::Union(vec![Node { operator, rows, id }])
    });
    vec![
        (
            "operands",
            nested(&|inner| Expression::Coalesce(vec![inner])),
        ),
        (
            "negations",
            nested(&|inner| Expression::Not(Box::new(inner))),
        ),
        ("branches", planned(Step::Union(vec![vec![]; TIMES * 100]))),
        (
            "rows",
            planned(Step::Values {
                vars: vec![],
                rows: vec![vec![]; TIMES * 100],
            }),
        ),
        (
            "cells",
            planned(Step::Values {
                vars: vec![Var(0)],
                rows: vec![vec![Some(ConstId(1))]; TIMES * 100],
            }),
        ),
        (
            "path",
            planned(Step::Path {
                subject: Slot::Var(Var(0)),
                path,
                object: Slot::Var(Var(1)),
                scope: Scope::Default,
            }),
        ),
        ("unions", exists(of_nodes)),
        (
            "steps",
            (0..TIMES).fold(planned(Step::Union(vec![])), |steps, _| {
                planned(Step::Optional { steps })
            }),
        ),
    ]
}

/// One test, as there is one counter.
#[test]
fn reading_holds_no_more_than_its_bytes_allow() {
    let check = |name: &str, bytes: &[u8]| {
        let (most, decoded) = peak(|| decode_steps(bytes).map(drop));
        assert_eq!(decoded, Ok(()), "{name}");
        let allowed = decoded_bytes(bytes.len()) as u64 + FREE;
        println!("{name}: {} bytes, {most} in memory", bytes.len());
        assert!(most <= allowed, "{name}: {most} of {allowed}");
    };
    for (name, steps) in wasteful() {
        let bytes = encode_steps(&steps, SIZES, Stack::plain()).expect("it is a plan");
        check(name, &bytes);
    }
    for text in [
        "SELECT * { ?a ?b ?c . ?c <a:> ?d OPTIONAL { ?d <b:> ?e FILTER(?e > 1 || ?c = 2) } }",
        "SELECT ?a { ?a <a:> ?b FILTER NOT EXISTS { ?b <a:>* ?c BIND(1 AS ?d) } } ORDER BY ?a",
    ] {
        let plan = plan(text, None, None, &Flat).expect("a plan");
        let steps = exists(plan.root.operator.clone());
        let bytes = encode_steps(&steps, plan.sizes(), plan.stack()).expect("it is a plan");
        check(text, &bytes);
    }
}
