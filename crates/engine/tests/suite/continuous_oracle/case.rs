//! One case: streams, queries and what happens to them, in the engine and in the model.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use jindou_engine::ingest::Format;
use jindou_engine::{
    Config, ContinuousResult, Database, EngineError, KeepSolutions, MergePolicy, NextResult,
    Predicates, Shards, StreamDefinition, TupleFormat,
};

use super::answers::{Found, of_answer};
use super::model::{self, CLEARED, Instant, Model, Quad, Triple};
use super::queries::{self, CLASSES, PREDICATES, PREFIX, VERTICES, World};
use super::random::Random;

/// What was compared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) instants: u64,
    pub(crate) rows: u64,
    pub(crate) with_rows: u64,
    /// Of these, the ones of windows of a number of tuples, and of queries that ask for times.
    pub(crate) counted: u64,
    pub(crate) timed: u64,
    pub(crate) late: u64,
    pub(crate) refused: u64,
    /// Instants whose solutions had been kept.
    pub(crate) incremental: u64,
    /// Instants at which a query was evaluated as one of a shape.
    pub(crate) together: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Self) {
        self.instants += other.instants;
        self.rows += other.rows;
        self.with_rows += other.with_rows;
        self.counted += other.counted;
        self.timed += other.timed;
        self.late += other.late;
        self.refused += other.refused;
        self.incremental += other.incremental;
        self.together += other.together;
    }
}

const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
const QUERIES: usize = 3;

struct Case {
    random: Random,
    database: Database,
    model: Model,
    world: World,
    now_ms: i64,
    /// Numbers of new terms, and of documents.
    fresh: usize,
    documents: usize,
    texts: Vec<(String, String)>,
    /// Numbers of the last results that were read.
    seen: [u64; QUERIES],
    tally: Tally,
    history: String,
}

/// Plays the case of a seed.
///
/// # Errors
/// Where engine and model differ.
pub(crate) fn play(seed: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let folder = random
        .percent(6)
        .then(|| tempfile::tempdir().expect("there is room"));
    let is_union = random.percent(8);
    let mut config = Config::default();
    config.threads = 1 + random.below(2);
    config.union_default_graph = is_union;
    config.merge = MergePolicy::never();
    config.together_from = random.one_of(&[1, 1, 8]);
    config.keep_solutions = match random.below(10) {
        0..6 => KeepSolutions::Always,
        6..8 => KeepSolutions::ByCost,
        _ => KeepSolutions::Never,
    };
    // Drawn apart, so that cases are what they were without.
    config.interruptions = (!seed.is_multiple_of(3)).then_some(seed);
    if random.percent(12) {
        config.shards = Shards::new(random.one_of(&[2, 4])).expect("a power of two");
    }
    if random.percent(15) {
        config.merge.changes = 3;
        config.merge.share_of_graph = 1000;
        config.merge.fold_changes = 2;
    }
    let database = match &folder {
        Some(folder) => {
            Database::open_or_create(&folder.path().join("store"), config).expect("there is room")
        }
        None => Database::with_config(config),
    };
    let world = World {
        streams: random.one_of(&[1, 1, 2, 2, 3, 4]),
        is_union,
        has_blanks: random.percent(25),
    };
    let now_ms = random.one_of(&[0, 0, -270, 1000, 1_700_000_000_000]);
    let mut case = Case {
        random,
        database,
        model: Model::default(),
        world,
        now_ms,
        fresh: 0,
        documents: 0,
        texts: Vec::new(),
        seen: [0; QUERIES],
        tally: Tally::default(),
        history: String::new(),
    };
    let is_merged_beside = case.random.percent(10);
    let database = case.database.clone();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It ends with a panic of the case, too.
        let _ends = Ends(&is_over);
        if is_merged_beside {
            scope.spawn(|| merge_until(&database, &is_over));
        }
        case.live()
            .map_err(|error| format!("seed {seed}: {error}\n{}", case.history))?;
        Ok(case.tally)
    })
}

/// Sets it when dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Merges at any moment whatever has changed.
fn merge_until(database: &Database, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        database.compact().expect("there is room");
        database.fold().expect("there is room");
        std::thread::yield_now();
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("{}", self.history);
        }
    }
}

impl Case {
    fn live(&mut self) -> Result<(), String> {
        if self.random.percent(70) {
            self.load(60);
        }
        for number in 0..self.world.streams {
            self.create_stream(number);
        }
        let early = 1 + self.random.below(QUERIES);
        for number in 0..early {
            self.register(number)?;
        }
        for _ in 0..16 {
            self.step()?;
            self.compare()?;
        }
        self.now_ms += 250;
        for stream in 0..self.world.streams {
            self.heartbeat(stream, self.now_ms);
            self.compare()?;
        }
        let queries = self.database.continuous_queries();
        self.tally.incremental = queries.iter().map(|query| query.incremental).sum();
        self.tally.together = queries.iter().map(|query| query.together).sum();
        Ok(())
    }

    fn step(&mut self) -> Result<(), String> {
        let advance = match self.random.below(10) {
            0..2 => 0,
            2..5 => self.random.below(60) as i64,
            5..8 => 100 - self.now_ms.rem_euclid(100),
            8 => 100,
            _ if self.random.percent(10) => 1_100,
            _ => 37,
        };
        self.now_ms += advance;
        let stream = self.random.below(self.world.streams);
        match self.random.below(100) {
            0..66 => self.push(stream)?,
            66..72 => {
                let time = self.now_ms - self.random.one_of(&[0, 0, 1, 50]);
                self.heartbeat(stream, time);
            }
            72..84 => self.update(),
            84..94 => self.maintain(),
            _ => self.change_queries()?,
        }
        Ok(())
    }

    fn note(&mut self, what: &str) {
        let _ = writeln!(self.history, "  {what}");
    }

    fn create_stream(&mut self, number: usize) {
        let iri = format!("http://e/s{number}");
        let interval = self.random.one_of(&[100, 100, 50, 30, 10]);
        let lateness = self.random.one_of(&[0, 0, 30, 100, 250]);
        let mut definition = StreamDefinition::new(iri);
        definition.interval_ms = interval as u32;
        definition.lateness_ms = lateness as u64;
        let some = vec![
            "http://e/p0".to_owned(),
            "http://e/p1".to_owned(),
            trimmed(TYPE),
        ];
        let is_some =
            |predicate: &str| ["<http://e/p0>", "<http://e/p1>", TYPE].contains(&predicate);
        let mut model = model::Stream::new(interval, lateness);
        match self.random.below(5) {
            0..2 => {}
            2 => {
                definition.timeless = Some(Predicates::ALL);
                model.is_timeless = Box::new(|_| true);
            }
            3 => {
                definition.timeless = Some(Predicates::Some(some));
                model.is_timeless = Box::new(is_some);
            }
            _ => {
                definition.timing = Some(Predicates::Some(some));
                model.is_timeless = Box::new(move |predicate| !is_some(predicate));
            }
        }
        if definition.has_timeless() && self.random.percent(60) {
            let graph = self.random.one_of(&["g0", "g1", "s0"]);
            definition.graph = Some(format!("http://e/{graph}"));
            model.graph = format!("<http://e/{graph}>");
        }
        if self.random.percent(10) {
            definition.memory = 2_000 + self.random.below(4_000) as u64;
        }
        self.note(&format!("{definition:?}"));
        let is_new = self
            .database
            .create_stream(&format!("s{number}"), definition);
        assert!(is_new.expect("it makes sense"));
        self.model.streams.push(model);
    }

    fn register(&mut self, number: usize) -> Result<(), String> {
        let name = format!("q{number}");
        let made = queries::query(&mut self.random, &name, self.world);
        self.note(&format!(
            "register {name} {:?}\n    {}\n    {}",
            made.windows, made.text, made.asked.text
        ));
        let registered = self.database.register(&name, &made.text);
        registered.map_err(|error| format!("{error}: {}", made.text))?;
        self.texts.retain(|(other, _)| *other != name);
        self.texts.push((name.clone(), made.text));
        self.seen[number] = 0;
        self.model
            .register(&name, made.windows, made.every_ms, made.asked);
        Ok(())
    }

    fn change_queries(&mut self) -> Result<(), String> {
        let number = self.random.below(QUERIES);
        let name = format!("q{number}");
        let Some(at) = self.model.queries.iter().position(|one| one.name == name) else {
            return self.register(number);
        };
        if self.random.percent(50) {
            self.note(&format!("unregister {name}"));
            self.model.queries.remove(at);
            assert!(self.database.unregister(&name).unwrap());
            return Ok(());
        }
        let query = &mut self.model.queries[at];
        query.is_paused ^= true;
        let is_paused = query.is_paused;
        self.note(&format!("{name} is paused: {is_paused}"));
        let paused = self.database.set_paused(&name, is_paused);
        paused.map_err(|error| error.to_string())
    }

    fn push(&mut self, stream: usize) -> Result<(), String> {
        self.documents += 1;
        let count = 1 + self.random.below(24);
        let is_document = self.random.percent(15);
        let at_once = self.time(stream);
        let mut tuples: Vec<(i64, Triple)> = Vec::new();
        for _ in 0..count {
            let time = match is_document || self.random.percent(20) {
                true => at_once,
                false => self.time(stream),
            };
            let triple = match tuples.is_empty() || self.random.percent(85) {
                true => self.triple(),
                false => self.random.one_of(&tuples).1,
            };
            tuples.push((time, triple));
        }
        let statement = |[s, p, o]: &Triple| format!("{s} {p} {o} .\n");
        let lines = |tuples: &[(i64, Triple)]| -> String {
            let line = |(time, triple): &(i64, Triple)| format!("{time}\t{}", statement(triple));
            tuples.iter().map(line).collect()
        };
        let name = format!("s{stream}");
        if self.random.percent(3) {
            let broken = format!("{}{at_once}\t<http://e/x> <http://e/y> .\n", lines(&tuples));
            let pushed = self
                .database
                .push(&name, TupleFormat::Lines, None, broken.into());
            pushed.expect_err("the last line is broken");
        }
        self.note(&format!(
            "push {name} {}",
            lines(&tuples).replace('\n', "\n    ")
        ));
        let pushed = match is_document {
            true => {
                let text: String = tuples.iter().map(|(_, triple)| statement(triple)).collect();
                let format = TupleFormat::Document(Format::NTriples);
                self.database
                    .push(&name, format, Some(at_once), text.into())
            }
            false => {
                let text = lines(&tuples).into();
                self.database.push(&name, TupleFormat::Lines, None, text)
            }
        };
        match pushed {
            Ok(report) => {
                let late = self.model.push(stream, &tuples);
                self.tally.late += late as u64;
                match report.late == late as u64 && report.accepted == (count - late) as u64 {
                    true => Ok(()),
                    false => Err(format!("{report:?}, of which {late} of {count} are late")),
                }
            }
            Err(EngineError::StreamFull { .. }) => {
                self.note("it is full");
                self.tally.refused += 1;
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    fn heartbeat(&mut self, stream: usize, time_ms: i64) {
        self.note(&format!("heartbeat s{stream} {time_ms}"));
        let done = self.database.heartbeat(&format!("s{stream}"), time_ms);
        done.expect("it is sound");
        self.model.heartbeat(stream, time_ms);
    }

    /// The time of a tuple: often on the bound of a batch or window, sometimes too late.
    fn time(&mut self, stream: usize) -> i64 {
        let lateness = self.model.streams[stream].lateness_ms;
        let back = match self.random.below(10) {
            0..4 => 0,
            4..7 => self.random.below(40) as i64,
            7..9 => self.random.below(lateness as usize + 1) as i64,
            _ => lateness + self.random.below(200) as i64,
        };
        let time = self.now_ms - back;
        match self.random.below(4) {
            0 => time - time.rem_euclid(50),
            1 => time - time.rem_euclid(100) + 99,
            _ => time,
        }
    }

    fn triple(&mut self) -> Triple {
        let mut subject = format!("<http://e/v{}>", self.random.below(VERTICES));
        match self.random.below(100) {
            0..4 => subject = self.new_iri(),
            4..8 => subject = format!("<http://e/p{}>", self.random.below(PREDICATES)),
            8..10 => subject = format!("<http://e/s{}>", self.random.below(2)),
            10..18 if self.world.has_blanks => subject = self.blank(),
            _ => {}
        }
        if self.random.percent(15) {
            let class = format!("<http://e/c{}>", self.random.below(CLASSES));
            return [subject, TYPE.to_owned(), class];
        }
        let mut predicate = format!("<http://e/p{}>", self.random.below(PREDICATES));
        if self.random.percent(3) {
            predicate = self.new_iri();
        }
        let object = match self.random.below(100) {
            0..25 => {
                let number = self.random.below(10);
                format!("\"{number}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
            }
            25..33 => format!("\"text {}\"", self.random.below(6)),
            33..38 => format!("\"text {}\"@en", self.random.below(6)),
            38..42 => {
                self.fresh += 1;
                format!("\"a longer text, which is new: {}\"", self.fresh)
            }
            42..45 => self.new_iri(),
            45..49 if self.world.has_blanks => self.blank(),
            _ => format!("<http://e/v{}>", self.random.below(VERTICES)),
        };
        [subject, predicate, object]
    }

    fn new_iri(&mut self) -> String {
        self.fresh += 1;
        format!("<http://e/n{}>", self.fresh)
    }

    /// Blank nodes of a document are those of no other.
    fn blank(&mut self) -> String {
        format!("_:d{}x{}", self.documents, self.random.below(3))
    }

    fn quad(&mut self) -> Quad {
        let graph =
            self.random
                .one_of(&["", "", "<http://e/g0>", "<http://e/g1>", "<http://e/s0>"]);
        (graph.to_owned(), self.triple())
    }

    fn load(&mut self, most: usize) {
        let quads: BTreeSet<Quad> = (0..self.random.below(most))
            .map(|_| self.quad())
            .filter(|quad| !has_blank(quad))
            .collect();
        let line = |(graph, [s, p, o]): &Quad| format!("{s} {p} {o} {graph} .\n");
        let text: String = quads.iter().map(line).collect();
        self.note(&format!("load {}", text.replace('\n', "\n    ")));
        model::load(&self.database, text);
        self.model.stored.extend(quads);
    }

    /// Inserts and deletes, of which windows see nothing.
    fn update(&mut self) {
        let mut text = String::from(PREFIX);
        let inserted: Vec<Quad> = (0..self.random.below(6))
            .map(|_| self.quad())
            .filter(|quad| !has_blank(quad))
            .collect();
        let stored: Vec<Quad> = self.model.stored.iter().cloned().collect();
        let mut deleted: Vec<Quad> = Vec::new();
        for quad in stored {
            if !has_blank(&quad) && self.random.percent(20) {
                deleted.push(quad);
            }
        }
        let data = |quads: &[Quad]| -> String {
            let one = |(graph, [s, p, o]): &Quad| match graph.is_empty() {
                true => format!("{s} {p} {o} . "),
                false => format!("GRAPH {graph} {{ {s} {p} {o} }} "),
            };
            quads.iter().map(one).collect()
        };
        let _ = write!(
            text,
            "DELETE DATA {{ {} }} ; INSERT DATA {{ {} }}",
            data(&deleted),
            data(&inserted)
        );
        self.model.stored.retain(|quad| !deleted.contains(quad));
        self.model.stored.extend(inserted);
        if self.random.percent(15) {
            text.push_str(" ; CLEAR SILENT GRAPH :g0");
            let before = self.model.stored.len();
            self.model.stored.retain(|(graph, _)| graph != CLEARED);
            self.model.is_cleared |= self.model.stored.len() < before;
        }
        self.note(&text);
        self.database.update(&text).expect("it is sound");
    }

    fn maintain(&mut self) {
        let kind = self.random.below(11);
        self.note(&format!("maintain {kind}"));
        let done = match kind {
            0..4 => self.database.compact().map(|_| ()),
            4 => {
                let is_chosen = |iri: &str| iri.ends_with(['0', '2', 'e']);
                self.database.compact_some(&is_chosen).map(|_| ())
            }
            5..7 => self.database.fold().map(|_| ()),
            // Windows may keep terms from it.
            7 => match self.database.renumber_within(None) {
                Err(EngineError::InUse { .. }) => Ok(()),
                done => done,
            },
            8 => self.database.checkpoint(),
            _ => {
                self.load(10);
                Ok(())
            }
        };
        done.expect("there is room");
    }

    /// Whatever is due by now is the same on both sides.
    fn compare(&mut self) -> Result<(), String> {
        let names: Vec<String> = self
            .model
            .queries
            .iter()
            .map(|one| one.name.clone())
            .collect();
        for name in names {
            let at = self.model.queries.iter().position(|one| one.name == name);
            let at = at.expect("it is there");
            let is_ordered = self.model.queries[at].asked.is_ordered;
            let expected = self.model.due(at);
            let number = usize::from(name.as_bytes()[1] - b'0');
            let mut reader = self
                .database
                .results_of(&name, Some(self.seen[number]))
                .expect("it is there");
            let mut found = Vec::new();
            while let NextResult::Result(result, missed) = reader.next_within(Duration::ZERO) {
                assert_eq!(missed, 0);
                self.seen[number] = result.sequence;
                found.push(instant(&result, is_ordered));
            }
            self.check(&name, &expected, &found)?;
        }
        Ok(())
    }

    fn check(&mut self, name: &str, expected: &[Instant], found: &[Instant]) -> Result<(), String> {
        let text = self.texts.iter().find(|(one, _)| one == name);
        let asks_times = text.is_some_and(|(_, text)| text.contains("timestamp"));
        for (one, other) in expected.iter().zip(found) {
            self.tally.instants += 1;
            let rows = one.found.as_ref().map_or(0, Found::len) as u64;
            self.tally.rows += rows;
            self.tally.with_rows += u64::from(rows > 0);
            let is_counted = one.windows.iter().any(|(_, _, numbers)| numbers.is_some());
            self.tally.counted += u64::from(rows > 0 && is_counted);
            self.tally.timed += u64::from(rows > 0 && asks_times);
            if one != other || one.found.is_err() {
                let text = &self
                    .texts
                    .iter()
                    .find(|(one, _)| one == name)
                    .expect("it has one")
                    .1;
                return Err(format!("{text}\n expected {one:?}\n found    {other:?}\n"));
            }
        }
        match expected.len() == found.len() {
            true => Ok(()),
            false => {
                let instants = |all: &[Instant]| -> Vec<i64> {
                    all.iter().map(|one| one.instant_ms).collect()
                };
                let (expected, found) = (instants(expected), instants(found));
                Err(format!("{name} at {found:?} instead of {expected:?}"))
            }
        }
    }
}

fn instant(result: &ContinuousResult, is_ordered: bool) -> Instant {
    let found = result.answer.as_ref().map(of_answer);
    let found = found.map(|found| found.comparable(is_ordered));
    let windows = result.windows.iter().map(|window| window.held);
    Instant {
        instant_ms: result.instant_ms,
        windows: windows
            .map(|held| (held.from_ms, held.until_ms, held.numbers))
            .collect(),
        found: found.map_err(String::clone),
    }
}

fn has_blank((_, [subject, _, object]): &Quad) -> bool {
    subject.starts_with("_:") || object.starts_with("_:")
}

fn trimmed(iri: &str) -> String {
    iri.trim_matches(['<', '>']).to_owned()
}
