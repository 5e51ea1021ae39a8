//! What do clients of a server wait for that has thousands of continuous queries?
//!
//! [`measure`] starts a server on the loopback, registers selective queries over HTTP, and pushes the five
//! streams over HTTP at the pace of the clock, each by a connection of its own. Some of the queries, evenly
//! spread, have a client each that reads results as server-sent events. Noted is when a result is read, after
//! its window was over by the clock and after the request was sent that completes the window.

mod clients;
mod feed;
mod report;

use std::net::SocketAddr;
use std::time::Instant;

use jindou_datagen::lsbench::Lsbench;
use jindou_engine::Database;
use jindou_server::{HeavyPriority, MemoryLimits};

pub use report::{ServedClass, ServedReport};

use super::queries::{QUERIES, Query};
use super::{Options, setup};
use crate::BenchError;
use crate::http::{Connection, HttpError};
use crate::machine::{Machine, Memory};
use crate::percentiles::Percentiles;
use crate::serving::Serving;
use clients::{Arrival, Clients};
use feed::{Fed, Mark};

/// Results of windows that end before this time of the streams are left out: plans are made then.
const WARM_UP_MS: i64 = 2_000;

/// Measures; so many queries have a client.
///
/// # Errors
/// As [`super::measure`]; [`BenchError::Http`].
pub fn measure(
    options: &Options,
    readers: u32,
    mut note: impl FnMut(&str),
) -> Result<ServedReport, BenchError> {
    let data = Lsbench::new(options.users, 0);
    note("loading the social graph");
    let database = database(options, &data)?;
    let stored = database.quad_counts().total();
    let serving = Serving::start(database.clone())?;
    let classes = || {
        QUERIES
            .iter()
            .filter(|query| query.is_selective && options.wants(query))
    };
    let names = names(classes(), options);
    note(&format!("registering {} queries", names.len()));
    let begun = Instant::now();
    register(serving.address, classes(), options)?;
    let registering = begun.elapsed();
    let watched = spread(&names, readers as usize);
    let instants = options.seconds * 1_000 / options.step_ms;
    let last_ms = (instants * options.step_ms) as i64;
    let clients = Clients::connect(serving.address, &watched, last_ms)?;
    note(&format!("{} s of streams", options.seconds));
    let fed = feed::push(serving.address, &data, options)?;
    let arrivals = clients.end()?;
    let resident_bytes = Memory::of_this_process()?.resident_bytes;
    serving.stop()?;
    let all = database.continuous_queries();
    let evaluating: f64 = all.iter().map(|query| query.seconds).sum();
    Ok(ServedReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        users: options.users,
        stored,
        seconds: options.seconds,
        range_ms: options.range_ms,
        step_ms: options.step_ms,
        tuples: fed.tuples,
        rate: options.tuples_per_second(),
        queries: names.len() as u64,
        registering_seconds: registering.as_secs_f64(),
        readers: watched.len() as u64,
        executions: all.iter().map(|query| query.executions).sum(),
        failures: all.iter().map(|query| query.failures).sum(),
        evaluating_ms: evaluating * 1e3 / instants.max(1) as f64,
        resident_bytes,
        classes: figures(classes(), &watched, &arrivals, &fed),
        pushing: Percentiles::of(fed.pushing),
        completing: Percentiles::of(fed.completing),
    })
}

/// A database as `jindou serve` has it, with the graph and the streams.
fn database(options: &Options, data: &Lsbench) -> Result<Database, BenchError> {
    let mut config = MemoryLimits::default().engine_config(HeavyPriority::default());
    config.keep_solutions = options.keep;
    config.continuous_threads = (config.threads / 2).max(1);
    let database = Database::with_config(config);
    setup::load(&database, data)?;
    setup::create_streams(&database)?;
    Ok(database)
}

/// A query, and how it is named.
type Named = (&'static Query, String);

/// The queries of all classes, those of one number after the other.
fn names(classes: impl Iterator<Item = &'static Query>, options: &Options) -> Vec<Named> {
    let classes: Vec<&Query> = classes.collect();
    let numbers = 0..options.selective;
    let of_number = |number| {
        classes
            .iter()
            .map(move |&class| (class, setup::name(class, number)))
    };
    numbers.flat_map(of_number).collect()
}

/// So many of them, evenly spread.
fn spread(names: &[Named], count: usize) -> Vec<Named> {
    let count = count.min(names.len());
    (0..count)
        .map(|number| names[number * names.len() / count].clone())
        .collect()
}

fn register(
    server: SocketAddr,
    classes: impl Iterator<Item = &'static Query>,
    options: &Options,
) -> Result<(), BenchError> {
    let mut connection = Connection::open(server)?;
    for class in classes {
        for number in 0..options.selective {
            let user = setup::user(number, options.users);
            let text = class.text(options.range_ms, options.step_ms, user);
            let request = format!(
                "PUT /continuous/{} HTTP/1.1\r\nHost: {server}\r\nContent-Type: application/sparql-query\r\n\
                 Content-Length: {}\r\n\r\n{text}",
                setup::name(class, number),
                text.len()
            );
            connection.send(request.as_bytes())?;
            let mut said = Vec::new();
            match connection
                .receive(|piece| said.extend_from_slice(piece))?
                .status
            {
                200..300 => {}
                status => return Err(HttpError::refused(status, &said).into()),
            }
        }
    }
    Ok(())
}

/// What the clients of each class, and all of them, have waited for.
fn figures(
    classes: impl Iterator<Item = &'static Query>,
    watched: &[Named],
    arrivals: &[Arrival],
    fed: &Fed,
) -> Vec<ServedClass> {
    let of = |name: &str, is_one: &dyn Fn(&Query) -> bool| {
        let (mut by_clock, mut by_request) = (Vec::new(), Vec::new());
        let mut missed = 0;
        for arrival in arrivals {
            let (class, _) = &watched[arrival.reader];
            if !is_one(class) || arrival.instant_ms < WARM_UP_MS {
                continue;
            }
            missed += arrival.missed;
            by_clock.push(
                arrival
                    .at
                    .saturating_duration_since(fed.schedule.at(arrival.instant_ms as u64)),
            );
            let is_read = |mark: &&Mark| class.windows.contains(&mark.stream);
            let marks = fed.marks.iter().filter(is_read);
            let own = marks.filter(|mark| mark.end_ms as i64 == arrival.instant_ms);
            if let Some(sent) = own.map(|mark| mark.sent).max() {
                by_request.push(arrival.at.saturating_duration_since(sent));
            }
        }
        Some(ServedClass {
            name: name.to_owned(),
            missed,
            by_clock: Percentiles::of(by_clock)?,
            by_request: Percentiles::of(by_request)?,
        })
    };
    let each = classes.filter_map(|class| of(class.name, &|query| query.name == class.name));
    let each: Vec<ServedClass> = each.collect();
    each.into_iter().chain(of("all", &|_| true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_reads_a_result_for_each_instant() {
        let options = Options {
            users: 200,
            seconds: 4,
            rate: 0.05,
            selective: 20,
            step_ms: 1_000,
            ..Options::new()
        };
        let report = measure(&options, 12, |_| {}).unwrap();
        assert_eq!(
            (report.queries, report.readers, report.failures),
            (60, 12, 0)
        );
        let names: Vec<&str> = report.classes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["L1", "L2", "L3", "all"]);
        let all = report.classes.last().unwrap();
        assert_eq!((all.by_clock.count, all.missed), (12 * 3, 0), "{report:?}");
        assert_eq!(all.by_request.count, all.by_clock.count);
        assert!(report.to_string().contains("60 queries"), "{report}");
    }

    #[test]
    fn clients_are_spread_over_all_queries() {
        let options = Options {
            selective: 100,
            ..Options::new()
        };
        let names = names(QUERIES.iter().filter(|query| query.is_selective), &options);
        assert_eq!(names.len(), 300);
        let some = spread(&names, 30);
        for class in ["L1", "L2", "L3"] {
            let of_class = some.iter().filter(|(query, _)| query.name == class);
            assert!(of_class.count() >= 5, "{class}");
        }
        assert_eq!(spread(&names, 1_000).len(), 300);
    }
}
