//! Are bytes that are no steps refused, whatever is wrong with them, and never trusted?

use std::thread;

use super::*;
use crate::expression::{Aggregate, AggregateFunction, Expression};
use crate::physical::{
    ConstId, Node, Operator, Outcome, PathExpression, Requirement, Scope, Service, Side, Slot,
    Step, Var,
};
use jindou_model::Direction;

const SIZES: PlanSizes = PlanSizes {
    variables: 3,
    constants: 2,
    ids: 5,
};

fn planned(step: Step) -> PlannedStep {
    PlannedStep {
        step,
        rows: 1.5,
        id: 4,
    }
}

fn node(operator: Operator) -> Node {
    Node {
        operator,
        rows: 2.0,
        id: 0,
    }
}

fn exists(node: Node) -> Vec<PlannedStep> {
    vec![planned(Step::ExistsGiven {
        node: Box::new(node),
        all_bound: None,
        given: vec![Var(0)],
        outcome: Outcome::Mark(Var(1)),
    })]
}

fn bind() -> Step {
    Step::Bind {
        var: Var(2),
        sides: vec![Side {
            from: Slot::Const(ConstId(1)),
            predicate: ConstId(0),
            direction: Direction::In,
        }],
        requires: vec![Requirement::Has(ConstId(0), Direction::Out)],
        scope: Scope::Graph(Slot::Var(Var(0))),
    }
}

fn encoded(steps: &[PlannedStep]) -> Vec<u8> {
    let stack = Stack::of_levels(levels::of_steps(steps));
    encode_steps(steps, SIZES, stack).expect("it is a plan")
}

fn refused(steps: &[PlannedStep]) -> PlanWireError {
    decode_steps(&encoded(steps)).expect_err("it is refused")
}

#[test]
fn steps_come_back_as_they_were() {
    let steps = vec![
        planned(bind()),
        planned(Step::Values {
            vars: vec![Var(0), Var(1)],
            rows: vec![vec![Some(ConstId(1)), None]],
        }),
    ];
    let decoded = decode_steps(&encoded(&steps)).expect("they are steps");
    assert_eq!(*decoded, *steps);
    assert_eq!(decoded.sizes(), SIZES);
}

#[test]
fn a_header_that_is_none_is_refused_by_name() {
    let whole = encoded(&[planned(bind())]);
    let with = |place: usize, bytes: &[u8]| {
        let mut changed = whole.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        decode_steps(&changed).expect_err("it is refused")
    };
    assert_eq!(
        with(0, b"x"),
        PlanWireError::NoSteps {
            found: *b"xNDSTEPS"
        }
    );
    assert_eq!(with(8, &[9]), PlanWireError::Version { found: 9, known: 1 });
    let many = u32::MAX.to_le_bytes();
    for (place, part) in [
        (16, "variables"),
        (20, "constants"),
        (24, "steps and operators"),
    ] {
        let PlanWireError::TooMany { part: said, .. } = with(place, &many) else {
            panic!("{part} without end");
        };
        assert_eq!(said, part);
    }
    let mut longer = whole.clone();
    longer.push(0);
    assert_eq!(
        decode_steps(&longer).expect_err("it is refused"),
        PlanWireError::TooLong { bytes: 1 }
    );
    for end in 0..whole.len() {
        assert!(
            decode_steps(&whole[..end]).is_err(),
            "the first {end} bytes"
        );
    }
}

#[test]
fn numbers_that_the_plan_has_not_are_refused_wherever_they_are() {
    let of = |steps: &[PlannedStep]| match refused(steps) {
        PlanWireError::Number { part, found, .. } => (part, found),
        other => panic!("{other}"),
    };
    let variable = planned(Step::Filter(Expression::Not(Box::new(Expression::Bound(
        Var(3),
    )))));
    assert_eq!(of(&[variable]), ("variables", 3));
    let constant = planned(Step::Path {
        subject: Slot::Var(Var(0)),
        path: PathExpression::ZeroOrMore(Box::new(PathExpression::Edge(
            ConstId(2),
            Direction::Out,
        ))),
        object: Slot::Var(Var(1)),
        scope: Scope::Default,
    });
    assert_eq!(of(&[constant]), ("constants", 2));
    let mut step = planned(bind());
    step.id = 5;
    assert_eq!(of(&[step]), ("steps and operators", 5));
    let mut inner = node(Operator::Union(Vec::new()));
    inner.id = 7;
    let outer = node(Operator::Distinct {
        input: Box::new(inner),
    });
    assert_eq!(of(&exists(outer)), ("steps and operators", 7));
    let group = node(Operator::Group {
        input: Box::new(node(Operator::Union(Vec::new()))),
        by: vec![],
        aggregates: vec![(
            Var(2),
            Aggregate {
                function: AggregateFunction::Sum,
                operand: Some(Expression::Variable(Var(u16::MAX))),
                distinct: true,
            },
        )],
    });
    assert_eq!(of(&exists(group)), ("variables", u64::from(u16::MAX)));
}

#[test]
fn shapes_that_no_plan_has_are_refused() {
    let scan = planned(Step::Bind {
        var: Var(0),
        sides: vec![],
        requires: vec![],
        scope: Scope::Default,
    });
    let row = planned(Step::Values {
        vars: vec![Var(0)],
        rows: vec![vec![None, None]],
    });
    let operands = planned(Step::Filter(Expression::Or(vec![])));
    let given = exists(node(Operator::Materialized { vars: vec![] }));
    let query = crate::physical::RemoteQuery {
        base: None,
        names: vec!["a".to_owned()],
        spare: "b".to_owned(),
        pattern: "é".to_owned(),
        plain: true,
        openings: vec![crate::physical::Opening {
            at: 1,
            variables: vec![],
        }],
    };
    let service = |columns: Vec<Var>, send: Vec<Var>| {
        exists(node(Operator::Service {
            input: None,
            service: Box::new(Service {
                endpoint: Slot::Const(ConstId(0)),
                endpoint_name: String::new(),
                silent: false,
                query: query.clone(),
                columns,
                certain: vec![],
            }),
            keys: vec![],
            loose: vec![],
            send,
            optional: false,
            marks: vec![],
            condition: None,
        }))
    };
    let wrong = [
        vec![scan],
        vec![row],
        vec![operands],
        given,
        service(vec![], vec![]),
        service(vec![Var(0)], vec![Var(1)]),
        // Its opening cuts a character.
        service(vec![Var(0)], vec![]),
    ];
    for steps in wrong {
        let error = refused(&steps);
        assert!(matches!(error, PlanWireError::Shape { .. }), "{error}");
    }
}

/// Each kind of nesting, so deep.
fn nested(depth: usize) -> Vec<Vec<PlannedStep>> {
    let wrapped = |first: Expression, wrap: &dyn Fn(Expression) -> Expression| {
        let expression = (0..depth).fold(first, |inner, _| wrap(inner));
        vec![planned(Step::Filter(expression))]
    };
    let bound = || Expression::Bound(Var(0));
    let nodes = |wrap: &dyn Fn(Box<Node>) -> Operator| {
        let first = node(Operator::Union(Vec::new()));
        exists((0..depth).fold(first, |inner, _| node(wrap(Box::new(inner)))))
    };
    let steps = |wrap: &dyn Fn(Vec<PlannedStep>) -> Step| {
        (0..depth).fold(vec![planned(bind())], |inner, _| vec![planned(wrap(inner))])
    };
    let edge = PathExpression::Edge(ConstId(0), Direction::Out);
    let path = (0..depth).fold(edge, |inner, _| {
        PathExpression::Sequence(Box::new([
            inner,
            PathExpression::Edge(ConstId(0), Direction::In),
        ]))
    });
    vec![
        wrapped(bound(), &|inner| Expression::Not(Box::new(inner))),
        wrapped(bound(), &|inner| Expression::Or(vec![bound(), inner])),
        wrapped(bound(), &|inner| {
            let rest = vec![(crate::expression::Arithmetic::Add, inner)];
            Expression::Arithmetic(Box::new(bound()), rest)
        }),
        nodes(&|input| Operator::Distinct { input }),
        nodes(&|input| Operator::Union(vec![*input])),
        nodes(&|input| Operator::LeftJoin {
            left: Box::new(node(Operator::Union(Vec::new()))),
            right: input,
            keys: vec![],
            loose: vec![],
            marks: vec![],
            condition: None,
        }),
        nodes(&|input| Operator::Explore {
            input: Some(input),
            steps: [planned(bind())].into(),
        }),
        steps(&|steps| Step::Optional { steps }),
        steps(&|inner| Step::Union(vec![inner])),
        steps(&|steps| Step::ExistsGiven {
            node: Box::new(node(Operator::Explore {
                input: None,
                steps: steps.into(),
            })),
            all_bound: None,
            given: vec![],
            outcome: Outcome::Keep,
        }),
        vec![planned(Step::Path {
            subject: Slot::Var(Var(0)),
            path,
            object: Slot::Var(Var(1)),
            scope: Scope::Default,
        })],
    ]
}

/// Runs `work` on a thread of so many bytes of stack.
fn on_stack(bytes: usize, work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(bytes).spawn(work);
    if let Err(panic) = thread.expect("there is a thread").join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn what_is_read_without_a_stack_of_its_own_fits_that_of_any_thread() {
    // Half of what a thread has that asks for nothing else, at the depth up to which it is asked for.
    let encoded = |depth: usize| nested(depth).iter().map(|steps| encoded(steps)).collect();
    let all: Vec<Vec<u8>> = [20, 40, 60, 120]
        .into_iter()
        .flat_map(|depth| -> Vec<_> { encoded(depth) })
        .collect();
    on_stack(1 << 20, move || {
        for bytes in all {
            let decoded = decode_steps(&bytes);
            assert!(decoded.is_ok(), "{decoded:?}");
        }
    });
}

#[test]
fn plans_of_any_depth_are_written_and_read_and_dropped() {
    const DEPTH: usize = 5_000;
    let large = Stack::of_levels(3 * DEPTH);
    let done = large.run(|| {
        for steps in nested(DEPTH) {
            let bytes = encoded(&steps);
            let small = bytes.clone();
            on_stack(256 << 10, move || {
                drop(decode_steps(&small).expect("they are steps"));
            });
            let decoded = decode_steps(&bytes).expect("they are steps");
            assert!(*decoded == *steps);
        }
    });
    assert_eq!(done, Ok(()));
}

#[test]
fn deeper_than_is_said_is_refused_before_the_stack_ends() {
    const DEPTH: usize = 20_000;
    let large = Stack::of_levels(3 * DEPTH);
    let done = large.run(|| {
        for steps in nested(DEPTH) {
            let mut bytes = encoded(&steps);
            for said in [0_u32, 1, 100] {
                bytes[12..16].copy_from_slice(&said.to_le_bytes());
                let bytes = bytes.clone();
                on_stack(1 << 20, move || {
                    let error = decode_steps(&bytes).expect_err("it is refused");
                    let levels = said as usize;
                    assert_eq!(error, PlanWireError::TooDeep { levels });
                });
            }
            // No more levels than bytes, and no more than any plan has.
            bytes[12..16].copy_from_slice(&u32::MAX.to_le_bytes());
            let error = decode_steps(&bytes).expect_err("it is refused");
            assert!(matches!(error, PlanWireError::TooMany { .. }), "{error}");
        }
    });
    assert_eq!(done, Ok(()));
}

#[test]
fn a_list_longer_than_its_bytes_takes_no_memory() {
    // A list of 2^56 steps, of which none is there.
    let mut bytes = encoded(&[]);
    bytes.truncate(HEADER_BYTES);
    bytes.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    let error = decode_steps(&bytes).expect_err("it is refused");
    assert!(matches!(error, PlanWireError::Truncated { .. }), "{error}");
}
