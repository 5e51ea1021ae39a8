//! Do the published queries of LSBench and CityBench, as their texts are, answer what ordinary queries
//! answer over the same windows?
//!
//! On one node, and on several logical ones. `JINDOU_SECONDS` sets how much of the streams is played.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{
    Config, Database, LoadOptions, MergePolicy, NextResult, Predicates, Shards, StreamDefinition,
    TupleFormat,
};

use super::answers::{Found, asked, of_answer};
use super::setting;

/// Instants of a query that are compared, of those with rows and of all.
const COMPARED: usize = 12;

fn folder(name: &str) -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = data.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: queries of {name} (…/shared/data/{name} is absent)");
    None
}

/// A stream of lines.
struct Feed {
    name: String,
    iri: String,
    /// Time and statement.
    lines: Vec<(i64, String)>,
    next: usize,
}

impl Feed {
    fn read(path: &Path, name: &str, iri: &str) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let bytes = zstd::decode_all(file).expect("it is compressed");
        let text = String::from_utf8(bytes).expect("it is text");
        let line = |line: &str| {
            let (time, statement) = line.split_once('\t').expect("a line has a tab");
            (
                time.parse().expect("a line has a time"),
                statement.to_owned(),
            )
        };
        Self {
            name: name.to_owned(),
            iri: iri.to_owned(),
            lines: text.lines().map(line).collect(),
            next: 0,
        }
    }

    /// The lines before a time that were not taken yet.
    fn take_before(&mut self, until_ms: i64) -> &[(i64, String)] {
        let begin = self.next;
        self.next += self.lines[begin..]
            .iter()
            .take_while(|(time, _)| *time < until_ms)
            .count();
        &self.lines[begin..self.next]
    }
}

/// A query of the published ones.
struct Published {
    name: String,
    text: String,
    /// What an ordinary query is that asks the same.
    asked: String,
    windows: Vec<Extent>,
    seen: u64,
    instants: usize,
    rows: usize,
    compared: usize,
    compared_with_rows: usize,
}

struct Extent {
    stream: String,
    range_ms: i64,
    step_ms: i64,
}

impl Published {
    fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let (asked, windows) = ordinary(&text);
        let name = path.file_stem().expect("a file has a name");
        Self {
            name: name.to_str().expect("it is text").to_owned(),
            text,
            asked,
            windows,
            seen: 0,
            instants: 0,
            rows: 0,
            compared: 0,
            compared_with_rows: 0,
        }
    }
}

fn window_graph(number: usize) -> String {
    format!("<http://oracle/w{number}>")
}

/// The text with a named graph for each window and without a header, and the windows.
fn ordinary(text: &str) -> (String, Vec<Extent>) {
    let mut rest = text;
    if let Some(at) = rest.find("REGISTER") {
        let after = &rest[at..];
        rest = &after[after.find(" AS").expect("a header ends") + 3..];
    }
    let (mut asked, mut windows) = (String::new(), Vec::new());
    loop {
        let lower = rest.to_ascii_lowercase();
        let from = lower
            .match_indices("from")
            .map(|(at, _)| at)
            .find(|at| lower[at + 4..].trim_start().starts_with("stream"));
        let Some(from) = from else {
            asked.push_str(rest);
            return (asked, windows);
        };
        asked.push_str(&rest[..from]);
        let clause = &rest[from..];
        let open = clause.find('<').expect("a stream has an IRI");
        let close = clause.find('>').expect("an IRI ends");
        let extent = clause.find('[').expect("a stream has a window");
        let end = clause.find(']').expect("a window ends");
        let words: Vec<&str> = clause[extent + 1..end].split_whitespace().collect();
        let [_, range, _, step] = words[..] else {
            panic!("{}", &clause[extent..=end]);
        };
        asked.push_str(&format!("FROM {} ", window_graph(windows.len())));
        windows.push(Extent {
            stream: clause[open + 1..close].to_owned(),
            range_ms: milliseconds(range),
            step_ms: milliseconds(step),
        });
        rest = &clause[end + 1..];
    }
}

fn milliseconds(text: &str) -> i64 {
    match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => number.parse().expect("it is a number"),
        (None, Some(number)) => number.parse::<i64>().expect("it is a number") * 1000,
        (None, None) => panic!("{text}"),
    }
}

fn load(database: &Database, path: &Path, format: Format, graph: &str) {
    let source = Source::path(path).with_format(format);
    let options = LoadOptions {
        graph: Some(oxrdf::NamedNode::new_unchecked(graph)),
        ..LoadOptions::default()
    };
    database
        .load(vec![source], &options, &Progress::default())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}

struct Play {
    database: Database,
    /// Has what is stored, and the windows of one query at one instant.
    oracle: Database,
    feeds: Vec<Feed>,
    queries: Vec<Published>,
}

impl Play {
    /// The streams are played on so many logical nodes.
    fn new(nodes: u32, feeds: Vec<Feed>, queries: Vec<Published>) -> Self {
        let mut config = Config::default();
        config.threads = 1;
        config.merge = MergePolicy::never();
        let oracle = Database::with_config(config.clone());
        if nodes > 1 {
            config.nodes = nodes;
            config.shards = Shards::new(8).expect("a power of two");
        }
        Self {
            database: Database::with_config(config),
            oracle,
            feeds,
            queries,
        }
    }

    fn load(&self, path: &Path, format: Format, graph: &str) {
        load(&self.database, path, format, graph);
        load(&self.oracle, path, format, graph);
    }

    /// Plays the streams from a time on, in slices of a second.
    fn play(&mut self, begin_ms: i64, seconds: i64) {
        for query in &self.queries {
            let registered = self.database.register(&query.name, &query.text);
            registered.unwrap_or_else(|error| panic!("{}: {error}", query.name));
        }
        for second in 1..=seconds {
            let until_ms = begin_ms + second * 1000;
            for feed in &mut self.feeds {
                let name = feed.name.clone();
                let lines = feed.take_before(until_ms).iter();
                let text: String = lines
                    .map(|(time, statement)| format!("{time}\t{statement}\n"))
                    .collect();
                let pushed = self
                    .database
                    .push(&name, TupleFormat::Lines, None, text.into_bytes());
                pushed.unwrap_or_else(|error| panic!("{name}: {error}"));
                self.database
                    .heartbeat(&name, until_ms)
                    .expect("it is sound");
            }
            self.compare();
            if second % 7 == 0 {
                self.database.compact().expect("there is room");
            }
        }
        let (mut instants, mut compared) = (0, 0);
        for query in &self.queries {
            let Published {
                name,
                instants: of_query,
                rows,
                ..
            } = query;
            println!(
                "{name}: {of_query} instants, {rows} rows; {} compared, {} of them with rows",
                query.compared, query.compared_with_rows
            );
            assert!(*of_query > 0, "{name}");
            instants += of_query;
            compared += query.compared;
        }
        println!("{instants} instants, {compared} compared");
    }

    fn compare(&mut self) {
        let Self {
            database,
            oracle,
            feeds,
            queries,
        } = self;
        for query in queries {
            let results = database.results_of(&query.name, Some(query.seen));
            let mut results = results.expect("it is there");
            while let NextResult::Result(result, missed) = results.next_within(Duration::ZERO) {
                assert_eq!(missed, 0);
                query.seen = result.sequence;
                query.instants += 1;
                let answer = result.answer.as_ref();
                let answer = answer.unwrap_or_else(|error| panic!("{}: {error}", query.name));
                let found = of_answer(answer).comparable(false);
                query.rows += found.len();
                let is_wanted = match found.len() {
                    0 => query.compared - query.compared_with_rows < COMPARED,
                    _ => query.compared_with_rows < COMPARED || query.instants % 50 == 0,
                };
                if is_wanted {
                    let expected = expected(oracle, feeds, query, result.instant_ms);
                    let instant = result.instant_ms;
                    assert_eq!(expected, found, "{} at {instant}", query.name);
                    query.compared += 1;
                    query.compared_with_rows += usize::from(found.len() > 0);
                }
            }
        }
    }
}

/// What an ordinary query answers that is asked of all windows at an instant.
fn expected(oracle: &Database, feeds: &[Feed], query: &Published, instant_ms: i64) -> Found {
    let mut update = String::new();
    for (number, window) in query.windows.iter().enumerate() {
        let graph = window_graph(number);
        let feed = feeds.iter().find(|feed| feed.iri == window.stream);
        let feed = feed.unwrap_or_else(|| panic!("no stream {}", window.stream));
        let until = instant_ms - instant_ms.rem_euclid(window.step_ms);
        let from = until - window.range_ms;
        let lines = feed.lines.iter();
        let lines = lines.filter(|(time, _)| from <= *time && *time < until);
        let data: String = lines
            .map(|(_, statement)| format!("{statement} "))
            .collect();
        update.push_str(&format!(
            "CLEAR SILENT GRAPH {graph} ; INSERT DATA {{ GRAPH {graph} {{ {data} }} }} ; "
        ));
    }
    oracle.update(&update).expect("it is sound");
    let found = asked(oracle, &query.asked);
    found.expect("it is an ordinary query").comparable(false)
}

fn texts(folder: &Path, extension: &str) -> Vec<Published> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("there are queries")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|one| one == extension))
        .collect();
    paths.sort();
    paths.iter().map(|path| Published::read(path)).collect()
}

/// The numbers of nodes that streams are played on, each for a part of the time only where there are several.
const NODES: [(u32, u64); 4] = [(1, 1), (2, 2), (3, 2), (5, 2)];

#[test]
fn lsbench_queries_answer_as_ordinary_ones_do() {
    for (nodes, part) in NODES {
        lsbench(nodes, setting("JINDOU_SECONDS", 120 / part) as i64);
    }
}

fn lsbench(nodes: u32, seconds: i64) {
    let Some(folder) = folder("lsbench") else {
        return;
    };
    let iri = |name: &str| format!("http://example.org/lsbench/{name}");
    let feed = |name: &str| Feed::read(&folder.join(format!("{name}.tnt.zst")), name, &iri(name));
    let feeds = ["post", "postlike", "photo", "photolike", "gps"].map(feed);
    let mut play = Play::new(
        nodes,
        feeds.into(),
        texts(&folder.join("queries/continuous"), "csparql"),
    );
    assert_eq!(play.queries.len(), 6);
    play.load(
        &folder.join("static.nt.zst"),
        Format::NTriples,
        &iri("static"),
    );
    for feed in &play.feeds {
        let mut definition = StreamDefinition::new(feed.iri.clone());
        definition.timeless = (feed.name != "gps").then_some(Predicates::ALL);
        let is_new = play.database.create_stream(&feed.name, definition);
        assert!(is_new.expect("it makes sense"));
    }
    play.play(0, seconds);
    let rows: usize = play.queries.iter().map(|query| query.rows).sum();
    assert!(rows > 0);
}

#[test]
fn citybench_queries_answer_as_ordinary_ones_do() {
    for (nodes, part) in NODES {
        citybench(nodes, setting("JINDOU_SECONDS", 15 / (3 * part - 2)) as i64);
    }
}

fn citybench(nodes: u32, seconds: i64) {
    let Some(folder) = folder("citybench") else {
        return;
    };
    let prefix = "http://www.insight-centre.org/dataset/SampleEventService#";
    let mut feeds = Vec::new();
    for entry in std::fs::read_dir(folder.join("streams")).expect("there are streams") {
        let path = entry.expect("it can be read").path();
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.and_then(|name| name.strip_suffix(".tnt.zst"));
        let name = name.expect("streams have such names").to_owned();
        feeds.push(Feed::read(&path, &name, &format!("{prefix}{name}")));
    }
    let queries = texts(&folder.join("queries/csparql"), "txt");
    assert_eq!(queries.len(), 19);
    let mut play = Play::new(nodes, feeds, queries);
    // Texts name the same files by two addresses.
    for address in [
        "http://127.0.0.1:9000/WebGlCity/RDF/",
        "http://127.0.0.1:9000/WebGlCity/",
    ] {
        for name in [
            "SensorRepository",
            "AarhusCulturalEvents",
            "AarhusLibraryEvents",
        ] {
            let graph = format!("{address}{name}.rdf");
            let is_read = |query: &Published| query.text.contains(&graph);
            if play.queries.iter().any(is_read) {
                let path = folder.join(format!("static/{name}.n3"));
                play.load(&path, Format::Turtle, &graph);
            }
        }
    }
    for feed in &play.feeds {
        let definition = StreamDefinition::new(feed.iri.clone());
        let is_new = play.database.create_stream(&feed.name, definition);
        assert!(is_new.expect("it makes sense"));
    }
    play.play(1_406_880_000_000, seconds);
    let rows: usize = play.queries.iter().map(|query| query.rows).sum();
    assert!(rows > 0);
}
