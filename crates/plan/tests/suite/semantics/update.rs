//! The solutions that the templates of an update get are those of its WHERE clause, in the dataset
//! that WITH, USING, USING NAMED and the protocol say.

use std::collections::BTreeSet;

use jindou_plan::physical::{Dataset, Form, Plan};
use jindou_plan::{Modify, Operation, PlanError, parse_update};
use oxrdf::NamedNode;
use spargebra::SparqlParser;

use super::definition::{define, of_dataset, only};
use super::random::{Random, data, group};
use super::run::{Row, Run};
use super::{Quads, Solution};
use crate::common::Noise;

const VARIABLES: [&str; 5] = ["a", "b", "c", "d", "g"];

/// A graph of the data, an empty one among them.
fn graph(random: &mut Random) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/c{}", random.below(3)))
}

/// The one operation of a text.
fn modify(text: &str, dataset: Option<&Dataset>) -> Modify {
    let update = parse_update(text, None, dataset);
    let update = update.unwrap_or_else(|error| panic!("{text}: {error}"));
    match <[Operation; 1]>::try_from(update.operations) {
        Ok([Operation::Modify(modify)]) => modify,
        other => panic!("{text}: {other:?}"),
    }
}

/// The quads with one named graph as the default graph too.
fn with(quads: &Quads, graph: &NamedNode) -> Quads {
    let mut shown = Quads::new();
    for (name, subject, predicate, object) in quads {
        let (subject, predicate, object) = (subject.clone(), predicate.clone(), object.clone());
        if name == graph.as_str() {
            shown.insert((
                String::new(),
                subject.clone(),
                predicate.clone(),
                object.clone(),
            ));
        }
        if !name.is_empty() {
            shown.insert((name.clone(), subject, predicate, object));
        }
    }
    shown
}

fn run(plan: &Plan, quads: &Quads, lazy: bool) -> Vec<Solution> {
    let Form::Select(columns) = &plan.form else {
        panic!("not a SELECT");
    };
    let run = Run {
        plan,
        quads,
        lazy,
        given: Row::new(),
    };
    let mut found: Vec<Solution> = run
        .node(&plan.root)
        .into_iter()
        .map(|row| {
            let columns = columns.iter().filter_map(|var| {
                Some((plan.variables[var.index()].clone(), row.get(var)?.clone()))
            });
            columns.collect()
        })
        .collect();
    found.sort();
    found
}

#[test]
fn templates_get_the_solutions_of_the_dataset_that_the_update_names() {
    let names: BTreeSet<String> = VARIABLES.map(str::to_owned).into();
    let (mut compared, mut with_answers) = ([0; 4], [0; 4]);
    for seed in 1..=8000_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let group = group(&mut random, 2);
        let query = format!("PREFIX e: <http://e/> SELECT * {group}");
        let Ok(spargebra::Query::Select { pattern, .. }) = SparqlParser::new().parse_query(&query)
        else {
            continue;
        };
        let mut quads = data(&mut random);
        let kind = random.below(4) as usize;
        let dataset = Dataset {
            default: (0..1 + random.below(2))
                .map(|_| graph(&mut random))
                .collect(),
            named: (0..random.below(2)).map(|_| graph(&mut random)).collect(),
        };
        let with_graph = graph(&mut random);
        // In a third of the cases there is no such graph.
        let seen = match kind {
            0 => quads.clone(),
            1 => with(&quads, &with_graph),
            _ => of_dataset(&quads, &dataset),
        };
        let using: String = (dataset
            .default
            .iter()
            .map(|graph| format!("USING {graph} ")))
        .chain((dataset.named.iter()).map(|graph| format!("USING NAMED {graph} ")))
        .collect();
        let template = "INSERT { ?a ?b ?c . GRAPH ?g { ?d ?d ?a } }";
        let text = match kind {
            0 | 3 => format!("PREFIX e: <http://e/> {template} WHERE {group}"),
            1 => format!("PREFIX e: <http://e/> WITH {with_graph} {template} WHERE {group}"),
            _ => {
                format!("PREFIX e: <http://e/> WITH {with_graph} {template} {using} WHERE {group}")
            }
        };
        let modify = modify(&text, (kind == 3).then_some(&dataset));
        let prepared = modify.plan(&Noise(seed)).expect("a plan");
        let mut wanted: Vec<Solution> = define(&pattern, "", &seen, &Solution::new())
            .iter()
            .map(|solution| only(solution, &names))
            .collect();
        wanted.sort();
        compared[kind] += 1;
        with_answers[kind] += usize::from(!wanted.is_empty());
        // A plan for a dataset is followed in what is seen of it.
        if prepared.plan.dataset.is_some() {
            quads = seen;
        }
        for lazy in [false, true] {
            assert_eq!(
                run(&prepared.plan, &quads, lazy),
                wanted,
                "seed {seed}\n{text}\n{quads:#?}\n{}",
                prepared.explain().expect("a stack")
            );
        }
    }
    assert!(
        compared.iter().all(|count| *count > 500) && with_answers.iter().all(|count| *count > 150),
        "{compared:?} {with_answers:?}"
    );
}

/// Solutions where the default graph is a graph that does not exist.
#[test]
fn an_absent_graph_is_an_empty_default_graph() {
    let quads = Quads::from([(
        "http://e/c0".to_owned(),
        "http://e/c1".to_owned(),
        "http://e/p0".to_owned(),
        "http://e/c2".to_owned(),
    )]);
    for (group, wanted) in [
        ("{}", 1),
        ("{ ?a e:p0 ?b }", 0),
        ("{ OPTIONAL { ?a e:p0 ?b } }", 1),
        ("{ FILTER NOT EXISTS { ?a e:p0 ?b } }", 1),
        ("{ VALUES ?a { e:c1 e:c2 } MINUS { ?a e:p0 ?b } }", 2),
        ("{ GRAPH ?g { ?a e:p0 ?b } }", 1),
        ("{ e:c1 e:p0* ?a }", 1),
        ("{ ?a e:p0? e:c1 }", 1),
        ("{ e:c1 e:p0* e:c1 }", 1),
        ("{ e:c1 e:p0* e:c2 }", 0),
        ("{ ?a e:p0* ?b }", 0),
        ("{ e:c1 e:p0+ ?a }", 0),
    ] {
        let text = format!(
            "PREFIX e: <http://e/> WITH e:absent DELETE {{ ?a e:p0 ?b }} INSERT {{ ?a e:p1 _:x }} WHERE {group}"
        );
        for seed in 0..20 {
            let prepared = modify(&text, None).plan(&Noise(seed)).expect("a plan");
            let found = run(&prepared.plan, &quads, false);
            assert_eq!(
                found.len(),
                wanted,
                "{group}\n{}",
                prepared.explain().expect("a stack")
            );
        }
    }
}

#[test]
fn delete_where_finds_what_it_deletes() {
    let quad = |graph: &str, object: &str| {
        (
            graph.to_owned(),
            "http://e/s".to_owned(),
            "http://e/p".to_owned(),
            object.to_owned(),
        )
    };
    let quads = Quads::from([
        quad("", "http://e/a"),
        quad("http://e/g", "http://e/a"),
        quad("http://e/h", "http://e/b"),
    ]);
    for (text, wanted) in [
        ("DELETE WHERE { ?s <http://e/p> ?o }", 1),
        ("DELETE WHERE { GRAPH ?g { ?s <http://e/p> ?o } }", 2),
        (
            "DELETE WHERE { ?s <http://e/p> ?o . GRAPH ?g { ?s ?p ?o } }",
            1,
        ),
        ("DELETE WHERE { GRAPH <http://e/h> { ?s ?p ?o } }", 1),
        ("COPY <http://e/h> TO DEFAULT", 1),
    ] {
        let update = parse_update(text, None, None).expect(text);
        let modify = match update.operations.last() {
            Some(Operation::Modify(modify)) => modify,
            Some(Operation::Transfer(transfer)) => &transfer.copy,
            other => panic!("{text}: {other:?}"),
        };
        let prepared = modify.plan(&Noise(1)).expect("a plan");
        assert_eq!(run(&prepared.plan, &quads, false).len(), wanted, "{text}");
    }
}

#[test]
fn the_dataset_of_the_request_is_not_for_transfers() {
    let dataset = Dataset {
        default: vec![NamedNode::new_unchecked("http://e/g")],
        named: Vec::new(),
    };
    let text = "INSERT { GRAPH <http://e/t> { ?s ?p ?o } } WHERE { ?s ?p ?o } ;
        ADD DEFAULT TO <http://e/t> ; # DELETE WHERE has a pattern of its own
        DELETE WHERE { ?s ?p ?o }";
    let update = parse_update(text, None, Some(&dataset)).expect("an update");
    let datasets: Vec<Option<Dataset>> = update
        .operations
        .iter()
        .map(|operation| {
            let modify = match operation {
                Operation::Modify(modify) => modify,
                Operation::Transfer(transfer) => &transfer.copy,
                other => panic!("{other:?}"),
            };
            let prepared = modify.plan(&Noise(1)).expect("a plan");
            prepared.plan.dataset.clone()
        })
        .collect();
    assert_eq!(
        datasets,
        [Some(dataset.clone()), None, Some(dataset.clone())]
    );
    for own in ["WITH <http://e/g>", ""] {
        for using in ["USING <http://e/g>", "USING NAMED <http://e/g>", ""] {
            let text =
                format!("CLEAR ALL; {own} INSERT {{ ?s ?p ?o }} {using} WHERE {{ ?s ?p ?o }}");
            let refused = parse_update(&text, None, Some(&dataset));
            assert_eq!(
                refused.err(),
                (own != using).then_some(PlanError::DatasetNamedTwice),
                "{text}"
            );
        }
    }
}
