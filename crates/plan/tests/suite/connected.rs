//! Connected groups are explored without cross products, whatever their size and form.

use crate::common::{Flat, Noise, Toy};
use jindou_plan::physical::{Node, Operator, Slot, Step, Var};
use jindou_plan::{Statistics, plan};
use proptest::prelude::*;

/// Triple patterns as (pattern to attach to, which of its ends, new predicate, direction, kind).
fn bgp(choices: &[(usize, usize, u8, u8)]) -> String {
    let mut text = "PREFIX : <http://e/> SELECT * { ".to_owned();
    let mut variables = 1;
    let predicates = [
        "advisor",
        "name",
        "memberOf",
        "teacherOf",
        "unknown",
        "takesCourse",
    ];
    for (known, other, predicate, kind) in choices {
        let known = format!("?v{}", known % variables);
        let predicate = format!(
            ":{}",
            predicates[usize::from(*predicate) % predicates.len()]
        );
        let (other, predicate) = match kind {
            0 => (":Department0".to_owned(), predicate),
            1 => (":Course".to_owned(), "a".to_owned()),
            2 => (format!("?v{}", other % variables), predicate),
            3 => {
                variables += 1;
                (format!("?v{}", variables - 1), "?p".to_owned())
            }
            _ => {
                variables += 1;
                (format!("?v{}", variables - 1), predicate)
            }
        };
        let (subject, object) = if kind % 2 == 0 && *kind != 0 {
            (other, known)
        } else {
            (known, other)
        };
        text.push_str(&format!("{subject} {predicate} {object} . "));
    }
    text + "}"
}

fn assert_connected(node: &Node, text: &str) {
    match &node.operator {
        Operator::Project { input, .. } => assert_connected(input, text),
        Operator::Explore { input: None, steps } => {
            let mut bound: Vec<Var> = Vec::new();
            let has =
                |slot: &Slot, bound: &[Var]| matches!(slot, Slot::Var(v) if bound.contains(v));
            for step in steps.iter() {
                match &step.step {
                    Step::Bind { var, sides, .. } => {
                        let connected = sides.iter().any(|side| has(&side.from, &bound));
                        assert!(bound.is_empty() || connected, "{text}");
                        bound.push(*var);
                    }
                    Step::Match {
                        subject,
                        predicate,
                        object,
                        ..
                    } => {
                        let slots = [subject, predicate, object];
                        let connected = slots.iter().any(|slot| has(slot, &bound));
                        assert!(bound.is_empty() || connected, "{text}");
                        bound.extend(slots.iter().filter_map(|slot| match slot {
                            Slot::Var(var) => Some(*var),
                            Slot::Const(_) => None,
                        }));
                    }
                    Step::Check { .. } | Step::Test { .. } => (),
                    other => panic!("{other:?} in {text}"),
                }
            }
        }
        other => panic!("{other:?} for {text}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn connected_groups_have_no_cross_product(
        choices in proptest::collection::vec((0..20usize, 0..20usize, 0..6u8, 0..8u8), 1..25),
    ) {
        let toy = Toy::parse(include_str!("../plans/university.toy"));
        let text = bgp(&choices);
        let noise = Noise(choices.len() as u64);
        let all: [&(dyn Statistics + Sync); 3] = [&toy, &Flat, &noise];
        for statistics in all {
            let planned = plan(&text, None, None, statistics).expect("a plan");
            assert_connected(&planned.root, &text);
            prop_assert!(planned.cost.is_finite() && planned.cost >= 0.0);
        }
    }
}
