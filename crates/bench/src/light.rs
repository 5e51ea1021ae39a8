//! How many light queries a second, in process and over HTTP?

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::{LightClass, LightLoad, LightQuery, Lubm};
use jindou_engine::Database;

use crate::BenchError;
use crate::http::{Connection, query_request, query_request_with};
use crate::report::{ClassFigures, HttpLightFigures, LightFigures};
use crate::run;
use crate::serving::{QUERY_PATH, Serving};
use crate::timing::Timing;

/// Queries drawn for each thread; the thread starts over when it has run them all.
const DRAWN: usize = 20_000;
/// Requests drawn for each thread of the load over HTTP, held whole.
const REQUESTS: usize = 4_000;
/// Seed of the draws; thread 0 takes it, the next ones the numbers after it.
const SEED: u64 = 20;
/// The classes of the load over HTTP: q4, q5 and q6 about changing constants.
pub(crate) const HTTP_CLASSES: [LightClass; 3] = [LightClass::L4, LightClass::L5, LightClass::L6];

/// The mixed light load on this many threads, each running one query at a time, ids only.
pub(crate) fn in_process(
    database: &Database,
    data: Lubm,
    threads: usize,
    length: Duration,
) -> Result<LightFigures, BenchError> {
    let draws = (0..threads)
        .map(|thread| {
            Ok(LightLoad::over(data, SEED + thread as u64)?
                .take(DRAWN)
                .collect())
        })
        .collect::<Result<Vec<Vec<LightQuery>>, BenchError>>()?;
    // Not counted: plans of every class, and the memory they touch.
    each(&draws, |draws| mixed(database, draws, length / 10))?;
    let start = Instant::now();
    let times = each(&draws, |draws| mixed(database, draws, length))?;
    let seconds = start.elapsed().as_secs_f64();
    let times: Vec<_> = times.into_iter().flatten().collect();
    let classes = LightClass::ALL.into_iter().filter_map(|class| {
        let of_class = times.iter().filter(|(found, _)| *found == class);
        let of_class: Vec<Duration> = of_class.map(|&(_, time)| time).collect();
        (!of_class.is_empty()).then(|| ClassFigures {
            class: class.name().to_owned(),
            timing: Timing::of(of_class),
        })
    });
    Ok(LightFigures {
        threads,
        seconds,
        queries: times.len() as u64,
        queries_per_second: times.len() as f64 / seconds,
        classes: classes.collect(),
    })
}

/// One thread's part: each query's class and time.
fn mixed(
    database: &Database,
    draws: &[LightQuery],
    length: Duration,
) -> Result<Vec<(LightClass, Duration)>, BenchError> {
    let mut times = Vec::with_capacity(1 << 20);
    let start = Instant::now();
    let mut now = start;
    for query in draws.iter().cycle() {
        run::as_ids(database, &query.text, 1)?;
        let then = Instant::now();
        times.push((query.class, then - now));
        now = then;
        if now - start >= length {
            break;
        }
    }
    Ok(times)
}

/// Light queries of one class over loopback connections, each with one request under way at any time.
///
/// A generating thread writes to all its connections before it reads from the first, so that
/// the server always has work and the generator seldom waits.
pub(crate) fn over_http(
    serving: &Serving,
    data: Lubm,
    class: LightClass,
    connections: usize,
    length: Duration,
) -> Result<HttpLightFigures, BenchError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(connections).max(1);
    let address = serving.address;
    let parts = (0..threads)
        .map(|thread| {
            let held = connections / threads + usize::from(thread < connections % threads);
            let requests = requests(address, data, class, thread, "")?;
            let open = (0..held).map(|_| Connection::open(address));
            Ok((requests, open.collect::<Result<Vec<_>, _>>()?))
        })
        .collect::<Result<Vec<Part>, BenchError>>()?;
    let mut parts = parts;
    drive_all(&mut parts, length / 10)?;
    let start = Instant::now();
    let answered = drive_all(&mut parts, length)?;
    let seconds = start.elapsed().as_secs_f64();
    Ok(HttpLightFigures {
        class: class.name().to_owned(),
        connections,
        seconds,
        queries: answered,
        queries_per_second: answered as f64 / seconds,
    })
}

/// Requests of one thread, and its connections.
pub(crate) type Part<S = TcpStream> = (Vec<Vec<u8>>, Vec<Connection<S>>);

/// What one of several threads sends, with these headers.
pub(crate) fn requests(
    address: SocketAddr,
    data: Lubm,
    class: LightClass,
    thread: usize,
    headers: &str,
) -> Result<Vec<Vec<u8>>, BenchError> {
    let mut load = LightLoad::over(data, SEED + thread as u64)?;
    let draw = |_| {
        let text = load.draw_of(class).text;
        query_request_with(address, QUERY_PATH, &text, headers)
    };
    Ok((0..REQUESTS).map(draw).collect())
}

/// So many requests of all classes in turn, with constants drawn from this seed.
pub(crate) fn mixed_requests(
    address: SocketAddr,
    data: Lubm,
    seed: u64,
    count: usize,
) -> Result<Vec<Vec<u8>>, BenchError> {
    let mut load = LightLoad::over(data, seed)?;
    let classes = HTTP_CLASSES.into_iter().cycle().take(count);
    let requests = classes.map(|class| {
        let text = load.draw_of(class).text;
        query_request(address, QUERY_PATH, &text)
    });
    Ok(requests.collect())
}

/// Drives each part on a thread of its own. Gives the number of answers.
pub(crate) fn drive_all<S: Read + Write + Send>(
    parts: &mut [Part<S>],
    length: Duration,
) -> Result<u64, BenchError> {
    let answered = each_mut(parts, |part| drive(part, length))?;
    Ok(answered.iter().sum())
}

/// Keeps one request under way on each connection until the time is over, then reads what is
/// outstanding. Gives the number of answers.
fn drive<S: Read + Write>(
    (requests, connections): &mut Part<S>,
    length: Duration,
) -> Result<u64, BenchError> {
    let mut next = requests.iter().cycle();
    let start = Instant::now();
    for connection in connections.iter_mut() {
        connection.send(next.next().expect("a cycle over some requests"))?;
    }
    let mut answered = 0;
    while start.elapsed() < length {
        for connection in connections.iter_mut() {
            connection.receive_lines()?;
            connection.send(next.next().expect("a cycle over some requests"))?;
            answered += 1;
        }
    }
    for connection in connections.iter_mut() {
        connection.receive_lines()?;
        answered += 1;
    }
    Ok(answered)
}

/// Runs `work` on each item, on a thread of its own.
fn each<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> Result<R, BenchError> + Sync,
) -> Result<Vec<R>, BenchError> {
    let mut items: Vec<&T> = items.iter().collect();
    each_mut(&mut items, |item| work(item))
}

fn each_mut<T: Send, R: Send>(
    items: &mut [T],
    work: impl Fn(&mut T) -> Result<R, BenchError> + Sync,
) -> Result<Vec<R>, BenchError> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items
            .iter_mut()
            .map(|item| scope.spawn(move || work(item)))
            .collect();
        let done = threads
            .into_iter()
            .map(|t| t.join().map_err(|_| BenchError::Thread)?);
        done.collect()
    })
}
