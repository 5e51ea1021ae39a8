//! What should continuous queries answer? Computed from plain lists, at each instant from the beginning.
//!
//! A stream is a list of tuples with their times. A window over time has those of them whose time is in
//! `[until - range, until)`, where `until` is the last multiple of its step; one of a number of tuples
//! has the last ones of those sorted by time, up to the last whose place is a multiple of its step. The
//! windows are named graphs, beside everything stored, of a fresh database which is asked an ordinary
//! query, in which the times of triples are written out as constants.

use std::collections::{BTreeMap, BTreeSet};

use jindou_engine::Database;
use jindou_engine::LoadOptions;
use jindou_engine::ingest::{Format, Progress, Source};

use super::answers::{Found, asked};
use super::queries::with_times;

/// The graph that updates clear: from then on it is there without quads, too.
pub(crate) const CLEARED: &str = "<http://e/g0>";

/// Subject, predicate and object as N-Triples writes them.
pub(crate) type Triple = [String; 3];

/// A triple and its time.
pub(crate) type Tuple = (i64, Triple);

/// The name of the graph as N-Quads writes it, empty for the default graph, and the triple.
pub(crate) type Quad = (String, Triple);

pub(crate) struct Stream {
    pub(crate) interval_ms: i64,
    pub(crate) lateness_ms: i64,
    /// Predicates of tuples that are stored, if some are.
    pub(crate) is_timeless: Box<dyn Fn(&str) -> bool>,
    /// Where they go.
    pub(crate) graph: String,
    /// Whatever came in time.
    pub(crate) tuples: Vec<(i64, Triple)>,
    /// Of these, the ones that are to be stored once their batch is complete.
    waiting: Vec<(i64, Triple)>,
    watermark_ms: Option<i64>,
    pub(crate) stable_ms: Option<i64>,
    begin_ms: Option<i64>,
}

impl Stream {
    pub(crate) fn new(interval_ms: i64, lateness_ms: i64) -> Self {
        Self {
            interval_ms,
            lateness_ms,
            is_timeless: Box::new(|_| false),
            graph: String::new(),
            tuples: Vec::new(),
            waiting: Vec::new(),
            watermark_ms: None,
            stable_ms: None,
            begin_ms: None,
        }
    }

    /// Those that are part of the data before a time, in the order of their times, and of one time in
    /// that in which they came.
    fn in_order(&self, until_ms: i64) -> Vec<&(i64, Triple)> {
        let tuples = self.tuples.iter().filter(|(time, _)| *time < until_ms);
        let mut tuples: Vec<&(i64, Triple)> = tuples.collect();
        tuples.sort_by_key(|(time, _)| *time);
        tuples
    }

    /// Tuples of a window at an instant, of which none came before a time, and what is said of them.
    fn held(&self, window: &Window, instant_ms: i64, begin_ms: i64) -> (Vec<&Tuple>, Held) {
        let (range, step) = (window.range, window.step);
        if window.unit == Unit::Milliseconds {
            let until = instant_ms - instant_ms.rem_euclid(step);
            let from = (until - range).max(begin_ms).min(until);
            let tuples = self.tuples.iter();
            let tuples = tuples.filter(|(time, _)| from <= *time && *time < until);
            return (tuples.collect(), (from, until, None));
        }
        let tuples = self.in_order(instant_ms);
        let last = tuples.len() - tuples.len() % step as usize;
        let numbered = (1..).zip(&tuples[..last]);
        let numbered = numbered.skip(last.saturating_sub(range as usize));
        let held: Vec<(u64, &&(i64, Triple))> = numbered
            .filter(|(_, (time, _))| *time >= begin_ms)
            .collect();
        let said = match (held.first(), held.last()) {
            (Some((first, (from, _))), Some((last, (to, _)))) => {
                (*from, to + 1, Some((*first, *last)))
            }
            _ => (instant_ms, instant_ms, None),
        };
        (held.iter().map(|(_, tuple)| **tuple).collect(), said)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Unit {
    Milliseconds,
    Tuples,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) stream: usize,
    /// What range and step are counted in.
    pub(crate) unit: Unit,
    pub(crate) range: i64,
    pub(crate) step: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    All,
    New,
    Gone,
}

/// A text, as which the oracle asks a query.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) text: String,
    /// The order of rows matters.
    pub(crate) is_ordered: bool,
    pub(crate) output: Output,
    /// The stored default graph is the union of all graphs.
    pub(crate) is_union: bool,
}

pub(crate) struct Query {
    pub(crate) name: String,
    pub(crate) windows: Vec<Window>,
    pub(crate) every_ms: Option<i64>,
    pub(crate) asked: Asked,
    pub(crate) is_paused: bool,
    /// Of each window, what came before the query is not in it.
    begins: Vec<i64>,
    last_ms: Option<i64>,
    before: Option<Found>,
}

#[derive(Default)]
pub(crate) struct Model {
    pub(crate) streams: Vec<Stream>,
    pub(crate) stored: BTreeSet<Quad>,
    /// [`CLEARED`] is there, if it has quads or not.
    pub(crate) is_cleared: bool,
    pub(crate) queries: Vec<Query>,
}

/// What should be answered at an instant, and the bounds of the windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    pub(crate) instant_ms: i64,
    pub(crate) windows: Vec<Held>,
    pub(crate) found: Result<Found, String>,
}

/// The times of what a window has, from one on and before another, and the numbers of the first and the
/// last tuple of one that has a number of them.
pub(crate) type Held = (i64, i64, Option<(u64, u64)>);

/// The name of the graph that has a window in the oracle's database.
pub(crate) fn window_graph(number: usize) -> String {
    format!("<http://oracle/w{number}>")
}

impl Model {
    /// How many of the tuples are late.
    pub(crate) fn push(&mut self, stream: usize, tuples: &[(i64, Triple)]) -> usize {
        let into = &mut self.streams[stream];
        let mut late = 0;
        for (time, triple) in tuples {
            let is_timeless = (into.is_timeless)(&triple[1]);
            if into.stable_ms.is_some_and(|stable| *time < stable) {
                late += 1;
                if is_timeless {
                    self.stored.insert((into.graph.clone(), triple.clone()));
                }
                continue;
            }
            into.tuples.push((*time, triple.clone()));
            if is_timeless {
                into.waiting.push((*time, triple.clone()));
            }
            into.begin_ms = Some(into.begin_ms.map_or(*time, |begin| begin.min(*time)));
            let watermark = time - into.lateness_ms;
            into.watermark_ms = into.watermark_ms.max(Some(watermark));
        }
        self.close(stream);
        late
    }

    pub(crate) fn heartbeat(&mut self, stream: usize, time_ms: i64) {
        let into = &mut self.streams[stream];
        into.watermark_ms = into.watermark_ms.max(Some(time_ms));
        self.close(stream);
    }

    /// What is complete is stored.
    fn close(&mut self, stream: usize) {
        let into = &mut self.streams[stream];
        let Some(watermark) = into.watermark_ms else {
            return;
        };
        let stable = watermark.div_euclid(into.interval_ms) * into.interval_ms;
        into.stable_ms = into.stable_ms.max(Some(stable));
        let is_complete = |tuple: &(i64, Triple)| Some(tuple.0) < into.stable_ms;
        let complete = into.waiting.iter().filter(|tuple| is_complete(tuple));
        let complete = complete.map(|(_, triple)| (into.graph.clone(), triple.clone()));
        self.stored.extend(complete);
        let stable = into.stable_ms;
        into.waiting.retain(|(time, _)| Some(*time) >= stable);
    }

    pub(crate) fn register(
        &mut self,
        name: &str,
        windows: Vec<Window>,
        every_ms: Option<i64>,
        asked: Asked,
    ) {
        let stable = |window: &Window| self.streams[window.stream].stable_ms;
        self.queries.push(Query {
            name: name.to_owned(),
            begins: windows
                .iter()
                .map(|window| stable(window).unwrap_or(i64::MIN))
                .collect(),
            last_ms: windows.iter().filter_map(stable).max(),
            windows,
            every_ms,
            asked,
            is_paused: false,
            before: None,
        });
    }

    /// What a query should have answered since it was asked last.
    pub(crate) fn due(&mut self, query: usize) -> Vec<Instant> {
        let mut query = self.queries.swap_remove(query);
        let due = self.instants(&query);
        let mut found = Vec::new();
        for instant_ms in due {
            query.last_ms = Some(instant_ms);
            if !query.is_paused {
                found.push(self.evaluate(&mut query, instant_ms));
            }
        }
        self.queries.push(query);
        found
    }

    /// The instants at which all windows are complete by now.
    fn instants(&self, query: &Query) -> BTreeSet<i64> {
        let streams = || query.windows.iter().map(|one| &self.streams[one.stream]);
        let begin = streams().filter_map(|stream| stream.begin_ms).min();
        // A stream that nothing is known of is stable before all times.
        let stable = streams().map(|stream| stream.stable_ms).min().flatten();
        let (Some(last), Some(stable)) = (query.last_ms.or(begin), stable) else {
            return BTreeSet::new();
        };
        let over_time = query.windows.iter();
        let over_time = over_time.filter(|window| window.unit == Unit::Milliseconds);
        let periods: Vec<i64> = match query.every_ms {
            Some(every) => vec![every],
            None => over_time.map(|window| window.step).collect(),
        };
        if periods.is_empty() {
            let windows = query.windows.iter();
            let slides = windows.flat_map(|window| self.slides(window, stable));
            return slides.filter(|end| *end > last && *end <= stable).collect();
        }
        let mut instants = BTreeSet::new();
        for period in periods {
            let mut instant = last - last.rem_euclid(period) + period;
            while instant <= stable {
                instants.insert(instant);
                instant += period;
            }
        }
        instants
    }

    /// The ends of batches with which a window of a number of tuples slides.
    fn slides(&self, window: &Window, stable_ms: i64) -> Vec<i64> {
        let stream = &self.streams[window.stream];
        let tuples = (1..).zip(stream.in_order(stable_ms));
        let slides = tuples.filter(|(number, _)| number % window.step == 0);
        let batch = |time: i64| time.div_euclid(stream.interval_ms);
        slides
            .map(|(_, (time, _))| (batch(*time) + 1) * stream.interval_ms)
            .collect()
    }

    fn evaluate(&self, query: &mut Query, instant_ms: i64) -> Instant {
        let mut quads = self.stored.clone();
        if query.asked.is_union {
            let named = self.stored.iter();
            quads.extend(named.map(|(_, triple)| (String::new(), triple.clone())));
        }
        let mut windows = Vec::new();
        let mut times = BTreeMap::new();
        for (number, window) in query.windows.iter().enumerate() {
            let stream = &self.streams[window.stream];
            let (tuples, said) = stream.held(window, instant_ms, query.begins[number]);
            windows.push(said);
            for (time, triple) in tuples {
                quads.insert((window_graph(number), triple.clone()));
                let last = times.entry(triple).or_insert(*time);
                *last = (*last).max(*time);
            }
        }
        let database = database(&quads);
        // A window is there, be it empty.
        let windows_there = (0..query.windows.len()).map(window_graph);
        let cleared = self.is_cleared.then(|| CLEARED.to_owned());
        let there = windows_there.chain(cleared);
        let create = there.map(|graph| format!("CREATE SILENT GRAPH {graph} ; "));
        database
            .update(&create.collect::<String>())
            .expect("it is sound");
        let is_there = |graph: &str| {
            let graph = format!("<http://e/{graph}>");
            quads.iter().any(|(of, _)| *of == graph) || self.is_cleared && graph == CLEARED
        };
        let text = with_graphs_there(&query.asked.text, is_there);
        let text = with_times(&text, &|triple| value_of_time(triple, &times));
        let found = asked(&database, &text);
        let found = found.map(|found| {
            let given = match query.asked.output {
                Output::All => found.clone(),
                Output::New => found.without(query.before.as_ref()),
                Output::Gone => match &query.before {
                    Some(before) => before.without(Some(&found)),
                    None => Found::Rows(Vec::new()).without(None),
                },
            };
            query.before = Some(found);
            given
        });
        Instant {
            instant_ms,
            windows,
            found: found.map(|found| found.comparable(query.asked.is_ordered)),
        }
    }
}

/// A query whose dataset has those graphs that its patterns name and that are there.
fn with_graphs_there(text: &str, is_there: impl Fn(&str) -> bool) -> String {
    let mut pieces = text.split("⟦there :");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (graph, rest) = piece.split_once('⟧').expect("it ends");
        if is_there(graph) {
            whole.push_str(&format!("FROM NAMED :{graph}"));
        }
        whole.push_str(rest);
    }
    whole
}

/// The expression for the time of a triple, whose parts are variables or constants.
fn value_of_time(
    [subject, predicate, object]: [&str; 3],
    times: &BTreeMap<&Triple, i64>,
) -> String {
    let mut text = String::from("COALESCE(1/0");
    for ([s, p, o], time) in times {
        text.push_str(&format!(
            ", IF(sameTerm({subject}, {s}) && sameTerm({predicate}, {p}) && sameTerm({object}, {o}), \
             {time}, 1/0)"
        ));
    }
    text + ")"
}

/// A database of these quads.
pub(crate) fn database(quads: &BTreeSet<Quad>) -> Database {
    let mut text = String::new();
    for (graph, [subject, predicate, object]) in quads {
        text.push_str(&format!("{subject} {predicate} {object} {graph} .\n"));
    }
    let database = Database::new();
    load(&database, text);
    database
}

/// Loads N-Quads.
pub(crate) fn load(database: &Database, text: String) {
    let source = Source::bytes("quads", text.into_bytes()).with_format(Format::NQuads);
    database
        .load(vec![source], &LoadOptions::default(), &Progress::default())
        .expect("they are sound");
}
