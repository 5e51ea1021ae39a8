//! `jindou demo streams`: what do streams look like, in one command and without any file?

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use jindou_bench::table::thousands;
use jindou_datagen::lsbench::{Event, Load, Lsbench, Pace, Rates, STORED_GRAPH_IRI, Stream};
use jindou_engine::ingest::{Format, LoadOptions, Progress, Source};
use jindou_engine::{Database, EngineError, Predicates, StreamDefinition, TupleFormat};
use jindou_server::{HeavyPriority, MemoryLimits};
use oxrdf::NamedNode;

use crate::access_args::check_open;
use crate::allow::load_policies;
use crate::args::DemoStreamsArguments;
use crate::commands::serve;
use crate::limit_args::LimitArguments;

/// Time of a batch, and of what is pushed at once.
const BATCH: Duration = Duration::from_millis(100);
/// The same tuples come again after this time of a stream.
const LOOP_MS: u64 = 60_000;
/// What is asked, with the names of the queries.
const QUERIES: [(&str, &str); 3] = [
    ("places", include_str!("places.rq")),
    ("agreement", include_str!("agreement.rq")),
    ("friends", include_str!("friends.rq")),
];

/// # Errors
/// A port that is taken; anything else is our own fault.
pub(super) fn run(arguments: &DemoStreamsArguments) -> anyhow::Result<()> {
    check_open(arguments.bind, arguments.insecure)?;
    serve::check_address(arguments.bind)?;
    let data = Lsbench::new(arguments.users.get(), 0);
    let mut config = MemoryLimits::default().engine_config(HeavyPriority::default());
    (config.load, config.load_addresses) = load_policies(&[]);
    config.continuous_threads = 1;
    let database = Database::with_config(config);
    note!(
        "loading a social graph of {} users ...",
        thousands(u64::from(data.users))
    );
    load(&database, &data)?;
    for stream in Stream::ALL {
        let mut definition = StreamDefinition::new(stream.iri());
        // Where people are is of interest for a moment only; what they say and like stays.
        if !stream.is_timing() {
            definition.timeless = Some(Predicates::ALL);
        }
        database.create_stream(stream.name(), definition)?;
    }
    for (name, text) in QUERIES {
        database.register(name, text)?;
    }
    let load = Load {
        rates: Rates::PAPER.times(arguments.rate),
        pace: Pace::Even,
        duration_ms: LOOP_MS,
    };
    note!(
        "{} facts/s over five streams, three continuous queries: see http://{}/live",
        thousands(load.rates.total() as u64),
        arguments.bind
    );
    let fed = database.clone();
    thread::Builder::new()
        .name("jindou-demo".to_owned())
        .spawn(move || {
            if let Err(error) = feed(&fed, &data, &load) {
                note!("the streams end: {error:#}");
            }
        })
        .context("cannot start a thread")?;
    serve::serve(
        database,
        serve::config(arguments.bind, &LimitArguments::default()),
        None,
    )
}

fn load(database: &Database, data: &Lsbench) -> anyhow::Result<()> {
    let mut text = Vec::new();
    data.write_stored(&mut text).context("cannot generate")?;
    let source = Source::bytes("static.nt", text).with_format(Format::NTriples);
    let options = LoadOptions {
        graph: Some(NamedNode::new_unchecked(STORED_GRAPH_IRI)),
        ..LoadOptions::default()
    };
    database.load(vec![source], &options, &Progress::default())?;
    Ok(())
}

/// Pushes the streams at their pace, from now on, again and again.
fn feed(database: &Database, data: &Lsbench, load: &Load) -> anyhow::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let batch_ms = BATCH.as_millis() as u64;
    let begin_ms = now.as_millis() as u64 / batch_ms * batch_ms;
    let begun = Instant::now();
    let mut loops = 0;
    loop {
        let offset_ms = begin_ms + loops * LOOP_MS;
        let mut events = data.streams(load, &Stream::ALL)?;
        let mut texts: [String; 5] = Default::default();
        let mut end_ms = offset_ms + batch_ms;
        while let Some(event) = events.next_event() {
            let time_ms = event.time_ms + offset_ms;
            while time_ms >= end_ms {
                let due = begun + Duration::from_millis(end_ms - begin_ms);
                thread::sleep(due.saturating_duration_since(Instant::now()));
                complete(database, &mut texts, end_ms)?;
                end_ms += batch_ms;
            }
            let later = Event { time_ms, ..event };
            later.push_lines(&mut texts[event.stream as usize]);
        }
        complete(database, &mut texts, end_ms)?;
        loops += 1;
    }
}

/// Pushes a batch of each stream, and says that they are complete.
fn complete(database: &Database, texts: &mut [String; 5], end_ms: u64) -> Result<(), EngineError> {
    for (stream, text) in Stream::ALL.into_iter().zip(&mut *texts) {
        let lines = std::mem::take(text).into_bytes();
        if !lines.is_empty() {
            database.push(stream.name(), TupleFormat::Lines, None, lines)?;
        }
    }
    let end_ms = i64::try_from(end_ms).unwrap_or(i64::MAX);
    for stream in Stream::ALL {
        database.heartbeat(stream.name(), end_ms)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jindou_engine::NextResult;

    use super::*;

    #[test]
    fn each_query_has_answers_in_the_first_seconds() {
        let data = Lsbench::new(300, 0);
        let database = Database::new();
        super::load(&database, &data).unwrap();
        for stream in Stream::ALL {
            let definition = StreamDefinition::new(stream.iri());
            database.create_stream(stream.name(), definition).unwrap();
        }
        for (name, text) in QUERIES {
            assert!(text.starts_with("# "), "{name} is described in a comment");
            database.register(name, text).unwrap();
        }
        let load = Load {
            rates: Rates::PAPER.times(0.1),
            pace: Pace::Even,
            duration_ms: 5_000,
        };
        let mut events = data.streams(&load, &Stream::ALL).unwrap();
        let mut texts: [String; 5] = Default::default();
        let mut end_ms = 100;
        while let Some(event) = events.next_event() {
            while event.time_ms >= end_ms {
                complete(&database, &mut texts, end_ms).unwrap();
                end_ms += 100;
            }
            event.push_lines(&mut texts[event.stream as usize]);
        }
        complete(&database, &mut texts, end_ms).unwrap();
        for (name, _) in QUERIES {
            let mut results = database.results_of(name, Some(0)).unwrap();
            let mut rows = 0;
            while let NextResult::Result(result, _) = results.next_within(Duration::ZERO) {
                let answer = result.answer.as_ref().expect("it has an answer");
                rows += answer.rows().map_or(0, |rows| rows.len());
            }
            assert!(rows > 0, "{name} has no rows");
        }
    }
}
