//! Plans give the answers of SPARQL's bottom-up semantics: random queries over random small
//! graphs, planned and interpreted step by step as the contract of `physical` says, against the
//! definitions of the algebra followed to the letter.

mod definition;
mod random;
mod run;
mod update;

use std::collections::{BTreeMap, BTreeSet};

use crate::common::Noise;
use definition::{define, of_dataset};
use jindou_plan::physical::{Constant, Dataset, Form};
use jindou_plan::plan;
use oxrdf::NamedNode;
use random::{Random, data, group};
use run::{Row, Run};
use spargebra::SparqlParser;

const TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// Graph (empty for the default graph), subject, predicate, object.
type Quads = BTreeSet<(String, String, String, String)>;
type Solution = BTreeMap<String, String>;

#[test]
fn plans_answer_as_the_algebra_defines() {
    let mut compared = 0;
    let mut with_answers = 0;
    for seed in 1..=30_000u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let text = format!("PREFIX e: <http://e/> SELECT * {}", group(&mut random, 2));
        let Ok(spargebra::Query::Select { pattern, .. }) = SparqlParser::new().parse_query(&text)
        else {
            // BIND of a variable in scope, which the grammar forbids.
            continue;
        };
        let mut quads = data(&mut random);
        let graph = |number: u64| NamedNode::new_unchecked(format!("http://e/c{number}"));
        let dataset = (random.below(4) == 0).then(|| Dataset {
            default: (0..random.below(3)).map(graph).collect(),
            named: vec![graph(random.below(2))],
        });
        if let Some(dataset) = &dataset {
            quads = of_dataset(&quads, dataset);
        }
        let planned = plan(&text, None, dataset.as_ref(), &Noise(seed))
            .unwrap_or_else(|error| panic!("{seed} {text}: {error}"));
        let Form::Select(_) = planned.form else {
            panic!("not a SELECT");
        };
        let mut wanted = define(&pattern, "", &quads, &Solution::new());
        wanted.sort();
        compared += 1;
        with_answers += usize::from(!wanted.is_empty());
        for lazy in [false, true] {
            let run = Run {
                plan: &planned,
                quads: &quads,
                lazy,
                given: Row::new(),
            };
            let mut found: Vec<Solution> = run
                .node(&planned.root)
                .into_iter()
                .map(|row| {
                    let names = row
                        .into_iter()
                        .map(|(var, value)| (planned.variables[var.index()].clone(), value));
                    names.collect()
                })
                .collect();
            found.sort();
            assert_eq!(
                found,
                wanted,
                "seed {seed}\n{text}\n{quads:#?}\n{}",
                jindou_plan::explain(&planned, &[], &|id| match &planned.constants[id.index()] {
                    Constant::Fixed(term) => term.clone(),
                    other => panic!("{other:?}"),
                })
                .expect("a stack")
            );
        }
    }
    assert!(
        compared > 10_000 && with_answers > 3000,
        "{compared} {with_answers}"
    );
}
