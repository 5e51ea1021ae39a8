//! Does a graph whose nodes each have a part of the dictionary answer as one whose nodes have all of it, in every
//! format, how often do they ask each other, and what becomes of answers whose terms are lost midway?

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jindou_engine::ingest::{Progress, Source};
use jindou_engine::results::{GraphFormat, GraphWriter, SolutionsFormat, SolutionsWriter};
use jindou_engine::{
    BetweenTerms, Config, Database, EngineError, ForkPolicy, LoadOptions, MergePolicy,
    MessageLimits, QueryResults, Shards,
};
use jindou_exec::{Keys, TermSource};
use jindou_model::{IdEpoch, ShardId, TermId, Unavailable};

const PEOPLE: usize = 3000;

/// Everybody knows two others and has a name, some of which are long or need escapes.
fn text() -> String {
    let mut text = String::new();
    for number in 0..PEOPLE {
        let name = match number % 40 {
            3 => format!("\"{} {number}\"", "long ".repeat(500)),
            7 => format!("\"name {number}\"@en"),
            9 => format!("\"tab\\t and \\\"quote\\\" {number}\""),
            11 => format!("\"{number}\"^^<http://x/type>"),
            13 => number.to_string(),
            _ => format!("\"name {number}\""),
        };
        let next = (number + 1) % PEOPLE;
        let other = match number % 9 {
            4 => format!("_:b{}", number % 70),
            _ => format!("<http://x/p{}>", (number + 7) % PEOPLE),
        };
        writeln!(text, "<http://x/p{number}> a <http://x/Person> .").unwrap();
        writeln!(text, "<http://x/p{number}> <http://x/name> {name} .").unwrap();
        writeln!(
            text,
            "<http://x/p{number}> <http://x/knows> <http://x/p{next}> ."
        )
        .unwrap();
        writeln!(text, "<http://x/p{number}> <http://x/knows> {other} .").unwrap();
    }
    for number in 0..70 {
        writeln!(text, "_:b{number} <http://x/name> \"nobody {number}\" .").unwrap();
    }
    text
}

fn database_with(config: Config) -> Database {
    let database = Database::with_config(config);
    let source = Source::bytes("people.ttl", text().into_bytes());
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("it loads");
    database
}

fn config(deal_terms: bool, messages: Option<MessageLimits>) -> Config {
    let mut config = Config::default();
    config.shards = Shards::new(8).expect("a power of two");
    config.nodes = 3;
    config.deal_terms = deal_terms;
    config.fork_policy = match messages {
        Some(_) => ForkPolicy::ForkJoin,
        None => ForkPolicy::InPlace,
    };
    config.fork_messages = messages;
    config.merge = MergePolicy::never();
    config
}

/// An answer as text.
fn written(
    database: &Database,
    query: &str,
    (rows, graph): (SolutionsFormat, GraphFormat),
) -> Result<Vec<u8>, EngineError> {
    let mut out = Vec::new();
    let failed = |error: jindou_engine::results::WriteError| match error {
        jindou_engine::results::WriteError::Query(error) => error,
        other => panic!("{other}: {query}"),
    };
    match database.query(query)? {
        QueryResults::Boolean(value) => out.push(u8::from(value)),
        QueryResults::Solutions(mut solutions) => {
            let mut writer = SolutionsWriter::new(rows, solutions.variables());
            writer.start(&mut out).expect("it can be written");
            while writer
                .advance(&mut out, &mut solutions)
                .map_err(failed)?
                .is_some()
            {}
            writer.finish(&mut out).expect("it can be written");
        }
        QueryResults::Graph(mut triples) => {
            let mut writer = GraphWriter::new(graph);
            while writer
                .advance(&mut out, &mut triples)
                .map_err(failed)?
                .is_some()
            {}
            writer.finish(&mut out).expect("it can be written");
        }
    }
    Ok(out)
}

/// Lines in order: rows come in any order, and blank nodes of templates have names of their own.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    // Rows of JSON and XML have no lines of their own.
    let text = text.replace("[{", "[\n{").replace("}},{", "}}\n{");
    let text = text.replace("]}}", "\n").replace("<result>", "\n<result>");
    let text = text.replace("</results>", "\n");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

const QUERIES: [&str; 12] = [
    "SELECT * { ?a <http://x/knows> ?b . ?b <http://x/name> ?n }",
    "SELECT * { <http://x/p5> ?p ?o }",
    "SELECT ?n { ?a <http://x/name> ?n FILTER(CONTAINS(STR(?n), \"99\") && LANG(?n) != \"de\") }",
    "SELECT (STRLEN(STR(?n)) AS ?l) (DATATYPE(?n) AS ?d) ?n { ?a <http://x/name> ?n FILTER(?n > \"name 2\") }",
    "SELECT ?n { ?a <http://x/name> ?n } ORDER BY DESC(?n) ?a LIMIT 1500",
    "SELECT (MIN(?n) AS ?least) (MAX(?n) AS ?most) (SUM(STRLEN(STR(?n))) AS ?s) (COUNT(DISTINCT ?n) AS ?c) { ?a <http://x/name> ?n }",
    "SELECT ?k (GROUP_CONCAT(?s) AS ?all) { { SELECT (STRLEN(STR(?a)) AS ?k) (STR(?a) AS ?s) { ?a a <http://x/Person> } ORDER BY ?s } } GROUP BY ?k",
    "SELECT (CONCAT(\"name \", \"17\") AS ?made) (COUNT(*) AS ?c) { ?a <http://x/name> ?n FILTER(?n = CONCAT(\"name \", \"17\")) }",
    "CONSTRUCT { ?a <http://x/new> ?n ; <http://x/is> _:own } { ?a <http://x/name> ?n FILTER(ISIRI(?a) && STRLEN(STR(?n)) < 8) }",
    "CONSTRUCT { ?s ?p ?o } { ?s ?p ?o }",
    "DESCRIBE <http://x/p4> <http://x/p13> ?x { ?x <http://x/name> \"nobody 4\" }",
    "ASK { ?a <http://x/name> \"name 100\" }",
];

#[test]
fn answers_in_every_format_are_those_of_the_whole_dictionary() {
    let whole = database_with(config(false, None));
    let formats = [
        (SolutionsFormat::Json, GraphFormat::NTriples),
        (SolutionsFormat::Csv, GraphFormat::Turtle),
        (SolutionsFormat::Tsv, GraphFormat::NTriples),
        (SolutionsFormat::Xml, GraphFormat::NTriples),
    ];
    for messages in [None, Some(MessageLimits::default())] {
        let dealt = database_with(config(true, messages));
        for query in QUERIES {
            for format in formats {
                let read = |database| lines(&written(database, query, format).unwrap());
                let mut both = [read(&whole), read(&dealt)];
                if query.contains("_:own") {
                    // Labels of this query's own.
                    for lines in &mut both {
                        lines.retain(|line| !line.contains("_:q"));
                    }
                }
                if format.1 == GraphFormat::Turtle && !query.starts_with("SELECT") {
                    // Whole graphs are laid out by subjects, in the order in which they come.
                    continue;
                }
                let [whole, dealt] = both;
                assert_eq!(whole.len(), dealt.len(), "{query}");
                let other = whole
                    .iter()
                    .zip(&dealt)
                    .find(|(whole, dealt)| whole != dealt);
                assert_eq!(other, None, "{query}: {format:?}");
            }
        }
    }
}

#[test]
fn updates_give_terms_and_take_them_as_with_the_whole_dictionary() {
    let both = [false, true].map(|deal| database_with(config(deal, None)));
    for update in [
        "INSERT { ?a <http://x/length> ?l ; <http://x/text> ?t } WHERE { ?a <http://x/name> ?n BIND(STRLEN(STR(?n)) AS ?l) BIND(CONCAT(\"new \", STR(?n)) AS ?t) FILTER(STRLEN(STR(?n)) < 8) }",
        "DELETE { ?a <http://x/name> ?n } INSERT { ?a <http://x/was> ?n ; <http://x/b> _:x } WHERE { ?a <http://x/name> ?n FILTER(STRENDS(STR(?n), \"7\")) }",
        "INSERT DATA { <http://x/added> <http://x/name> \"added\", \"name 100\" }",
    ] {
        for database in &both {
            database.update(update).unwrap();
        }
    }
    for query in [
        "SELECT ?a ?p ?o { ?a ?p ?o FILTER(?p != <http://x/b>) }",
        "SELECT (COUNT(?o) AS ?c) { ?a <http://x/b> ?o }",
        "SELECT ?t { ?a <http://x/text> ?t } ORDER BY ?t LIMIT 20",
    ] {
        let format = (SolutionsFormat::Tsv, GraphFormat::NTriples);
        let read = |database| lines(&written(database, query, format).unwrap());
        assert_eq!(read(&both[0]), read(&both[1]), "{query}");
    }
}

#[test]
fn terms_travel_many_in_a_message() {
    let counted = |deal_terms| {
        let database = database_with(config(deal_terms, None));
        let query = "SELECT * { ?a a <http://x/Person> ; <http://x/name> ?n }";
        let rows = lines(
            &written(
                &database,
                query,
                (SolutionsFormat::Csv, GraphFormat::NTriples),
            )
            .unwrap(),
        );
        assert_eq!(rows.len(), PEOPLE + 1);
        database.remote_reads().calls
    };
    let (whole, dealt) = (counted(false), counted(true));
    // Two nodes are asked for each batch of some two thousand rows, and for the constants.
    let more = dealt - whole;
    println!("{more} calls more for {PEOPLE} rows of two terms");
    assert!(more <= 24, "{more} calls more than without");
}

/// A dictionary that loses a shard after so many calls.
struct LostAfter {
    terms: Arc<dyn TermSource>,
    left: AtomicU64,
}

impl LostAfter {
    fn call(&self) -> Result<(), Unavailable> {
        let less = |left: u64| left.checked_sub(1);
        let left = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.map(|_| ()).map_err(|_| Unavailable::Never(ShardId(6)))
    }
}

impl TermSource for LostAfter {
    fn epoch(&self) -> IdEpoch {
        self.terms.epoch()
    }

    fn has(&self, id: TermId) -> bool {
        self.terms.has(id)
    }

    fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> Result<(), Unavailable> {
        self.call()?;
        self.terms.push_key(id, key)
    }

    fn lookup(&self, key: &[u8], literal: bool) -> Result<Option<TermId>, Unavailable> {
        self.call()?;
        self.terms.lookup(key, literal)
    }

    fn push_keys(
        &self,
        ids: &[TermId],
        most_bytes: usize,
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        self.call()?;
        self.terms.push_keys(ids, most_bytes, keys)
    }

    fn lookup_keys(&self, keys: &Keys, ids: &mut Vec<Option<TermId>>) -> Result<(), Unavailable> {
        self.call()?;
        self.terms.lookup_keys(keys, ids)
    }
}

#[test]
fn terms_that_are_lost_midway_end_the_query_with_the_shard() {
    let calls = Arc::new(AtomicU64::new(u64::MAX));
    let mut config = Config::default();
    let until = Arc::clone(&calls);
    config.between_terms = Some(BetweenTerms(Arc::new(move |terms| {
        let left = until.load(Ordering::Relaxed).into();
        Arc::new(LostAfter { terms, left })
    })));
    let database = database_with(config);
    for query in QUERIES {
        let format = (SolutionsFormat::Tsv, GraphFormat::NTriples);
        calls.store(u64::MAX, Ordering::Relaxed);
        let whole = lines(&written(&database, query, format).unwrap());
        let mut lost = 0;
        for after in (0..40).chain([60, 100, 1000, 100_000]) {
            calls.store(after, Ordering::Relaxed);
            match written(&database, query, format) {
                Ok(answer) if query.contains("_:own") => {
                    assert_eq!(lines(&answer).len(), whole.len(), "{query} after {after}");
                }
                Ok(answer) => assert!(lines(&answer) == whole, "{query} after {after}"),
                Err(EngineError::ShardLost { shard: 6, .. }) => lost += 1,
                Err(error) => panic!("{query} after {after}: {error}"),
            }
        }
        let is_looked_up_once = query.starts_with("ASK");
        assert!(lost > 0 || is_looked_up_once, "{query} never met the loss");
    }
}
