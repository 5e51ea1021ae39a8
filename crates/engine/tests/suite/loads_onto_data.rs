//! Loads onto a database that has data, beside a naive set of quads: what is there then, do living
//! terms keep their ids, and is it all or nothing?

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{
    Config, Database, EngineError, LoadOptions, MergePolicy, QueryResults, TermId,
};

/// Subject, predicate, object and graph as N-Quads writes them; no text is the default graph. Blank
/// nodes have names that are theirs alone.
type Quad = [String; 4];

const NAME: &str = "<http://e/name>";

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn iri(&mut self, kind: &str, count: u64) -> String {
        format!("<http://e/{kind}{}>", self.below(count))
    }

    fn quad(&mut self) -> Quad {
        let mut object = self.iri("s", 80);
        let mut predicate = self.iri("p", 9);
        match self.below(6) {
            0 => object = format!("\"a text {}\"@en", self.below(50)),
            1 => {
                object = format!(
                    "\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>",
                    self.below(9)
                )
            }
            2 => {
                "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>".clone_into(&mut predicate);
                object = self.iri("class", 4);
            }
            3 => predicate = self.iri("s", 3),
            _ => {}
        }
        let graph = match self.below(3) {
            0 => self.iri("g", 4),
            _ => String::new(),
        };
        [self.iri("s", 80), predicate, object, graph]
    }
}

/// A document of random quads, some twice, with blank nodes; what it says goes to `quads`.
fn document(random: &mut Random, most: u64, scope: &str, quads: &mut BTreeSet<Quad>) -> String {
    let mut text = String::new();
    let mut say = |text: &mut String, quad: Quad, label: &str, name: &str| {
        let line = format!("{} .\n", quad.join(" "));
        text.push_str(&line);
        quads.insert(quad.map(|term| if term == label { name.to_owned() } else { term }));
    };
    for _ in 0..random.below(most) {
        let quad = random.quad();
        for _ in 0..=random.below(2) {
            say(&mut text, quad.clone(), "_:", "");
        }
    }
    for number in 0..random.below(5) {
        let (label, name) = (format!("_:b{number}"), format!("_:{scope}b{number}"));
        let named = [
            label.clone(),
            NAME.to_owned(),
            format!("\"{scope}b{number}\""),
            String::new(),
        ];
        say(&mut text, named, &label, &name);
        let mut quad = random.quad();
        quad[[0, 2, 3][random.below(3) as usize]].clone_from(&label);
        say(&mut text, quad, &label, &name);
    }
    text
}

fn load(database: &Database, texts: &[String]) -> Result<u64, EngineError> {
    let source =
        |text: &String| Source::bytes("data.nq", text.as_str()).with_format(Format::NQuads);
    let (options, progress) = (LoadOptions::default(), Progress::default());
    let report = database.load(texts.iter().map(source).collect(), &options, &progress)?;
    Ok(report.triples + report.named_quads)
}

/// The quads of a database and the ids of their terms.
fn contents(database: &Database) -> (BTreeSet<Quad>, BTreeMap<String, TermId>) {
    let (mut rows, mut ids, mut names) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
    for query in [
        "SELECT ?s ?p ?o { ?s ?p ?o }",
        "SELECT ?s ?p ?o ?g { GRAPH ?g { ?s ?p ?o } }",
    ] {
        let Ok(QueryResults::Solutions(mut solutions)) = database.query(query) else {
            panic!("SELECT gives solutions");
        };
        let has_graph = solutions.variables().len() == 4;
        while let Some(batch) = solutions.next_batch().expect("there are no limits") {
            let decoder = solutions.decoder();
            for row in 0..batch.rows() {
                let id = |place: usize| batch.column(place)[row];
                let triple = decoder.triple([id(0), id(1), id(2)]);
                let graph = has_graph.then(|| decoder.triple([id(3), id(1), id(2)]).subject);
                let quad = [
                    triple.subject.to_string(),
                    triple.predicate.to_string(),
                    triple.object.to_string(),
                    graph.map_or_else(String::new, |graph| graph.to_string()),
                ];
                (0..3 + usize::from(has_graph)).for_each(|place| {
                    ids.insert(quad[place].clone(), id(place));
                });
                if quad[1] == NAME {
                    let name = format!("_:{}", quad[2].trim_matches('"'));
                    names.insert(quad[0].clone(), name);
                }
                rows.push(quad);
            }
        }
    }
    let named = |term: String| names.get(&term).cloned().unwrap_or(term);
    let quads = rows.into_iter().map(|quad| quad.map(named));
    (quads.collect(), ids)
}

#[track_caller]
fn check(
    database: &Database,
    expected: &BTreeSet<Quad>,
    before: &mut BTreeMap<String, TermId>,
    what: &str,
) {
    let (found, ids) = contents(database);
    let lacks = expected.difference(&found).next();
    let has = found.difference(expected).next();
    assert!(
        lacks.is_none() && has.is_none(),
        "{what}: lacks {lacks:?}, has {has:?}"
    );
    assert_eq!(
        database.quad_counts().total(),
        expected.len() as u64,
        "{what}"
    );
    for (term, id) in &*before {
        let later = ids.get(term);
        assert!(later.is_none_or(|later| later == id), "{what}: {term}");
    }
    *before = ids;
}

fn config() -> Config {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config.threads = 1;
    config
}

/// Removes some of the quads that have no blank nodes.
fn delete(database: &Database, random: &mut Random, quads: &mut BTreeSet<Quad>) {
    let is_named = |quad: &&Quad| quad.iter().all(|term| !term.starts_with("_:"));
    let gone = quads
        .iter()
        .filter(is_named)
        .filter(|_| random.below(4) == 0);
    let gone: Vec<Quad> = gone.cloned().collect();
    let data: String = gone
        .iter()
        .map(|[s, p, o, g]| match g.is_empty() {
            true => format!("{s} {p} {o} . "),
            false => format!("GRAPH {g} {{ {s} {p} {o} }} "),
        })
        .collect();
    database
        .update(&format!("DELETE DATA {{ {data} }}"))
        .expect("the update is sound");
    quads.retain(|quad| !gone.contains(quad));
}

fn live(seed: u64, location: Option<&Path>) {
    let mut random = Random(seed);
    let open = || match location {
        Some(location) => Database::open_or_create(location, config()).expect("it is a store"),
        None => Database::with_config(config()),
    };
    let mut database = open();
    let (mut quads, mut ids) = (BTreeSet::new(), BTreeMap::new());
    for step in 0..8 {
        let what = format!("seed {seed}, step {step}");
        // Often little beside the graph, which is a transaction.
        let most = [300, 300, 12, 60][random.below(4) as usize];
        let mut expected = quads.clone();
        let texts: Vec<String> = (0..1 + random.below(3))
            .map(|part| document(&mut random, most, &format!("{step}-{part}-"), &mut expected))
            .collect();
        if random.below(3) == 0 {
            let broken = [&texts[..], &["<http://e/a> <http://e/b> .\n".to_owned()]].concat();
            load(&database, &broken).expect_err("the last file is broken");
            check(&database, &quads, &mut ids, &format!("{what}, refused"));
        }
        let count = load(&database, &texts).expect("the documents are sound");
        assert_eq!(count, expected.len() as u64, "{what}");
        quads = expected;
        check(&database, &quads, &mut ids, &format!("{what}, loaded"));
        delete(&database, &mut random, &mut quads);
        match random.below(4) {
            0 => drop(database.compact().expect("there is room")),
            1 => drop(database.fold().expect("there is room")),
            2 if location.is_some() => {
                drop(database);
                database = open();
            }
            _ => {}
        }
        check(&database, &quads, &mut ids, &format!("{what}, changed"));
    }
    if let Some(location) = location {
        drop(database);
        let report = Database::verify(location).expect("the store is whole");
        assert_eq!(
            report.triples + report.named_quads,
            quads.len() as u64,
            "seed {seed}"
        );
        check(
            &open(),
            &quads,
            &mut ids,
            &format!("seed {seed}, opened again"),
        );
    }
}

#[test]
fn what_is_loaded_is_added_and_living_terms_keep_their_ids() {
    for seed in 0..16 {
        live(seed, None);
    }
    for seed in 16..24 {
        let folder = tempfile::tempdir().expect("there is room");
        live(seed, Some(&folder.path().join("store")));
    }
}

#[test]
fn a_query_begun_before_a_load_goes_on_as_if_there_were_none() {
    let database = Database::with_config(config());
    let lines = |range: std::ops::Range<u64>| -> String {
        let line = |n| format!("<http://e/{n}> <http://e/p> <http://e/{}> .\n", n + 1);
        range.map(line).collect()
    };
    load(&database, &[lines(0..20_000)]).expect("it is sound");
    let query = "SELECT * { ?s <http://e/p> ?o }";
    let Ok(QueryResults::Solutions(mut solutions)) = database.query(query) else {
        panic!("SELECT gives solutions");
    };
    solutions
        .next()
        .expect("there are many")
        .expect("there are no limits");
    load(&database, &[lines(10_000..40_000)]).expect("it is sound");
    assert_eq!(solutions.count(), 19_999);
    assert_eq!(database.quad_counts().triples, 40_000);
}
