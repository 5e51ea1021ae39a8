//! Does the engine answer property paths as SPARQL 1.1 defines them (section 18.5)?
//!
//! Random small graphs with cycles, literals and named graphs, random paths, and all kinds of
//! ends, against the definitions followed to the letter. `JINDOU_SEED` sets the first seed,
//! `JINDOU_CASES` the number of cases.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use jindou_conformance::answer::Answer;
use jindou_conformance::cases::setting;
use jindou_conformance::engines::{ask, ask_oracle, load_quads};
use jindou_conformance::path::Path;
use jindou_conformance::path_definition::{Graph, evaluate, text_of};
use jindou_conformance::random::Random;
use oxrdf::{GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};

const DEFAULT_SEED: u64 = 1;
const DEFAULT_CASES: u64 = 3000;
/// Queries for one data set, as loading takes longer than asking.
const QUERIES: usize = 6;

fn iri(name: &str) -> NamedNode {
    NamedNode::new_unchecked(format!("http://example.org/{name}"))
}

fn random_quads(random: &mut Random) -> Vec<Quad> {
    let mut quads: Vec<Quad> = Vec::new();
    let vertices = random.between(2, 6);
    let count = match random.chance(5) {
        true => 0,
        false => random.between(4, 30),
    };
    for _ in 0..count {
        let graph: GraphName = match random.below(5) {
            0 => iri("g0").into(),
            1 => iri("g1").into(),
            _ => GraphName::DefaultGraph,
        };
        let vertex = |random: &mut Random| iri(&format!("v{}", random.below(vertices)));
        let subject: NamedOrBlankNode = match random.below(16) {
            0 => iri("p1").into(),
            1 => iri("g0").into(),
            _ => vertex(random).into(),
        };
        let predicate = match random.below(8) {
            0 => oxrdf::vocab::rdf::TYPE.into_owned(),
            _ => iri(&format!("p{}", random.below(3))),
        };
        let object: Term = match random.below(10) {
            0 => Literal::from(random.below(2) as i64).into(),
            1 => Literal::from("text").into(),
            2 => iri("C").into(),
            _ => vertex(random).into(),
        };
        let quad = Quad::new(subject, predicate, object, graph);
        if !quads.contains(&quad) {
            quads.push(quad);
        }
    }
    quads
}

/// Which graphs the path is matched in.
enum Place {
    Default,
    Graph(&'static str),
    AnyGraph,
}

/// An end of the pattern.
enum End {
    Term(String),
    Variable(&'static str),
}

impl End {
    fn random(random: &mut Random, is_subject: bool, variable: &'static str) -> Self {
        match random.below(10) {
            0..=2 => Self::Term(format!(":v{}", random.below(6))),
            3 if random.chance(40) => Self::Term(":absent".to_owned()),
            3 if !is_subject && random.chance(60) => Self::Term("1".to_owned()),
            4 if !is_subject => Self::Variable("x"),
            _ => Self::Variable(variable),
        }
    }

    fn term(&self) -> Option<&str> {
        match self {
            Self::Term(term) if term == "1" => {
                Some("\"1\"^^<http://www.w3.org/2001/XMLSchema#integer>")
            }
            Self::Term(term) => Some(term),
            Self::Variable(_) => None,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Term(term) => term.clone(),
            Self::Variable(name) => format!("?{name}"),
        }
    }
}

type Solution = BTreeMap<String, String>;

fn bind(solution: &mut Solution, name: &str, value: &str) -> bool {
    let value = value.to_owned();
    *solution
        .entry(name.to_owned())
        .or_insert_with(|| value.clone())
        == value
}

/// One random query: its text, and its solutions by the definitions.
fn case(random: &mut Random, quads: &[Quad]) -> (String, Vec<Solution>) {
    let depth = random.between(1, 3);
    let path = Path::random(random, depth);
    let ends = [
        End::random(random, true, "x"),
        End::random(random, false, "y"),
    ];
    let place = match random.below(6) {
        0 => Place::Graph("g0"),
        1 => Place::Graph("absent"),
        2 => Place::AnyGraph,
        _ => Place::Default,
    };
    let mut from: Option<(Vec<&str>, Vec<&str>)> = None;
    if random.chance(25) {
        let lists: [&[&str]; 4] = [&[], &["g0"], &["g0", "g1"], &["g1", "absent"]];
        from = Some((
            random.pick(&lists).to_vec(),
            random.pick(&[vec![], vec!["g0"], vec!["g0", "g1"]]).clone(),
        ));
        if from
            .as_ref()
            .is_some_and(|(a, b)| a.is_empty() && b.is_empty())
        {
            from = None;
        }
    }
    let mut text = "PREFIX : <http://example.org/>\nSELECT *\n".to_owned();
    for (word, names) in from.iter().flat_map(|(a, b)| [("", a), ("NAMED ", b)]) {
        for name in names {
            writeln!(text, "FROM {word}:{name}").expect("writing to a string never fails");
        }
    }
    text.push_str("WHERE { ");
    // Rows that bind an end before or after the path, be it to what the graph does not have.
    let values: Option<(&str, Vec<String>)> = random.chance(25).then(|| {
        let name = random.name(&["x", "y"]);
        let mut cell = |_| match random.below(8) {
            0 => ":absent".to_owned(),
            1 => ":p1".to_owned(),
            _ => format!(":v{}", random.below(6)),
        };
        (name, (0..4).map(&mut cell).collect())
    });
    let joined = random.chance(25).then(|| format!("p{}", random.below(3)));
    if let Some((name, rows)) = &values {
        write!(text, "VALUES ?{name} {{ {} }} ", rows.join(" ")).expect("it is a string");
    }
    let pattern = format!("{} {} {} .", ends[0].text(), path, ends[1].text());
    let pattern = match &joined {
        Some(predicate) => format!("?z :{predicate} ?x . {pattern}"),
        None => pattern,
    };
    match place {
        Place::Default => text.push_str(&pattern),
        Place::Graph(name) => {
            write!(text, "GRAPH :{name} {{ {pattern} }}").expect("it is a string")
        }
        Place::AnyGraph => write!(text, "GRAPH ?g {{ {pattern} }}").expect("it is a string"),
    }
    text.push_str(" }");

    let graph_of = |wanted: &dyn Fn(&str) -> bool| -> Graph {
        let of = |quad: &Quad| match &quad.graph_name {
            GraphName::NamedNode(name) => text_of(&name.clone().into())[1..].to_owned(),
            _ => String::new(),
        };
        quads
            .iter()
            .filter(|quad| wanted(&of(quad)))
            .map(|quad| {
                let predicate = text_of(&quad.predicate.clone().into());
                let predicate = match predicate.strip_prefix(':') {
                    Some(name) => name.to_owned(),
                    None => "type".to_owned(),
                };
                (
                    text_of(&quad.subject.clone().into()),
                    predicate,
                    text_of(&quad.object),
                )
            })
            .collect()
    };
    let named: Vec<&str> = match &from {
        Some((_, named)) => named.clone(),
        None => vec!["g0", "g1"],
    };
    let mut graphs: Vec<(Option<&str>, Graph)> = Vec::new();
    match place {
        Place::Default => graphs.push((
            None,
            match &from {
                Some((merged, _)) => graph_of(&|name| merged.contains(&name)),
                None => graph_of(&str::is_empty),
            },
        )),
        Place::Graph(only) => {
            if named.contains(&only) {
                graphs.push((None, graph_of(&|name| name == only)));
            }
        }
        Place::AnyGraph => {
            for name in named {
                graphs.push((Some(name), graph_of(&|other| other == name)));
            }
        }
    }
    let is_named = !matches!(place, Place::Default);
    let mut solutions = Vec::new();
    for (name, graph) in graphs {
        // A graph without triples is none, unless the query says that it is one.
        if is_named && from.is_none() && graph.is_empty() {
            continue;
        }
        for (subject, object) in evaluate(&graph, &path, ends[0].term(), ends[1].term()) {
            let mut found = Solution::new();
            let mut fits = true;
            for (end, value) in ends.iter().zip([&subject, &object]) {
                if let End::Variable(variable) = end {
                    fits &= bind(&mut found, variable, value);
                }
            }
            if let Some(name) = name {
                fits &= bind(&mut found, "g", &format!(":{name}"));
            }
            let joins: Vec<Solution> = match &joined {
                None => vec![found],
                Some(predicate) => graph
                    .iter()
                    .filter(|triple| triple.1 == *predicate)
                    .filter_map(|(s, _, o)| {
                        let mut found = found.clone();
                        (bind(&mut found, "z", s) && bind(&mut found, "x", o)).then_some(found)
                    })
                    .collect(),
            };
            if !fits {
                continue;
            }
            for found in joins {
                match &values {
                    None => solutions.push(found),
                    Some((name, rows)) => solutions.extend(rows.iter().filter_map(|row| {
                        let mut found = found.clone();
                        bind(&mut found, name, row).then_some(found)
                    })),
                }
            }
        }
    }
    (text, solutions)
}

#[test]
fn paths_are_answered_as_defined() {
    let first = setting("JINDOU_SEED", DEFAULT_SEED);
    let cases = setting("JINDOU_CASES", DEFAULT_CASES);
    let (mut with_results, mut compared) = (0_u64, 0_u64);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let quads = random_quads(&mut random);
        let database = load_quads(&quads).expect("the data loads");
        for _ in 0..QUERIES {
            let (text, mut wanted) = case(&mut random, &quads);
            let shown = || {
                let quads: Vec<String> = quads.iter().map(|quad| format!("{quad} .")).collect();
                format!("seed {seed}\n{}\n{text}", quads.join("\n"))
            };
            let answer =
                ask(&database, &text, None).unwrap_or_else(|error| panic!("{error}\n{}", shown()));
            let Answer::Solutions(table) = answer else {
                panic!("a SELECT has solutions");
            };
            let mut found: Vec<Solution> = table
                .rows
                .iter()
                .map(|row| {
                    let cells = table.variables.iter().zip(row);
                    cells
                        .filter_map(|(name, term)| Some((name.clone(), text_of(term.as_ref()?))))
                        .collect()
                })
                .collect();
            wanted.sort();
            found.sort();
            assert_eq!(found, wanted, "{}", shown());
            compared += 1;
            with_results += u64::from(!wanted.is_empty());
        }
    }
    println!("{compared} queries from seed {first}, {with_results} with results");
    assert!(
        cases < 100 || with_results > compared / 4,
        "nothing was tested"
    );
}

/// `cargo test -p jindou-conformance --test oracle paths:: -- --ignored --nocapture`
#[test]
#[ignore = "a measurement"]
fn a_closure_is_measured() {
    const VERTICES: usize = 100_000;
    let mut random = Random::new(1);
    let vertex = |number: usize| iri(&format!("v{number}"));
    let mut quads = Vec::new();
    for from in 0..VERTICES {
        // A random graph, in which most is reached from anywhere, and a tree.
        for _ in 0..5 {
            let to = vertex(random.below(VERTICES));
            let graph = GraphName::DefaultGraph;
            quads.push(Quad::new(vertex(from), iri("p0"), to, graph));
        }
        let graph = GraphName::DefaultGraph;
        quads.push(Quad::new(vertex(from), iri("p1"), vertex(from / 3), graph));
    }
    let database = load_quads(&quads).expect("the data loads");
    let dataset: oxrdf::Dataset = quads.iter().collect();
    for pattern in [
        ":v7 :p0+ ?y",
        ":v7 (:p0/^:p1)* ?y",
        "?x :p1* :v0",
        "?x :p1+ ?y",
        "?x :p1+ ?y . ?y :p0 :v5",
        ":v99999 :p1* :v3",
    ] {
        let text =
            format!("PREFIX : <http://example.org/> SELECT (COUNT(*) AS ?n) {{ {pattern} }}");
        let mut times = Vec::new();
        let mut answers = Vec::new();
        for is_oracle in [false, true, false, true] {
            let begin = std::time::Instant::now();
            let answer = if is_oracle {
                ask_oracle(&dataset, &text).expect("the oracle answers")
            } else {
                ask(&database, &text, None).expect("the engine answers")
            };
            times.push(begin.elapsed());
            answers.push(answer.to_string());
        }
        println!("{pattern}: {:?}, oracle {:?}", times[2], times[3]);
        assert_eq!(answers[2], answers[3]);
    }
}
