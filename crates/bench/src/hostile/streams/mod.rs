//! What becomes of light queries, continuous and one-shot, while clients of streams do their worst?
//!
//! A server in a process of its own meets one attack after the other. Beside each, a light continuous query
//! and light one-shot queries go on, whose answers are checked; the peak of the server's memory is compared
//! with its bounds, and after it with what it was before.

mod attacks;
mod calm;
mod client;
mod report;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use jindou_datagen::lubm::Lubm;
use jindou_server::ServerConfig;

use self::attacks::{ATTACKS, Attack, Ground, STREAM_BYTES};
use self::calm::Calm;
use super::server::{Server, get};
use super::{light, report::LightUnder};
use crate::BenchError;
use crate::child::ChildProgram;
use crate::data;
use crate::machine::Machine;

pub use report::{AttackReport, StreamsReport};

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the data's file is kept.
    pub folder: PathBuf,
    /// How long each attack goes on that has no end of its own.
    pub duration: Duration,
    /// What all queries of the server may hold together, in bytes.
    pub memory_bytes: u64,
    /// Queries to be registered.
    pub registrations: usize,
    /// Clients that stop in the middle, or never read.
    pub clients: usize,
    /// The attack of this name alone, or of those whose names have this.
    pub only: Option<String>,
    /// How to start a process that hands its arguments to [`child`](super::child).
    pub child: ChildProgram,
}

/// The largest body that one of the servers takes.
const LARGE_BODY_BYTES: u64 = 2 << 30;
/// How long the memory of an attack may take to come back,
const BACK_WITHIN: Duration = Duration::from_secs(30);
/// and how often that is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long light queries have the server to themselves before an attack.
const QUIET: Duration = Duration::from_secs(2);

/// Measures; `note` is told what is being done, a few words at a time.
///
/// # Errors
/// Any [`BenchError`]. A light query that fails, and what a server says that it should not, is a figure.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<StreamsReport, BenchError> {
    let data = Lubm::new(1, 0);
    note("generating the data");
    let file = data::lubm_file(&options.folder, data)?;
    let mut attacks = Vec::new();
    for takes_large in [false, true] {
        let chosen: Vec<&Attack> = ATTACKS
            .iter()
            .filter(|attack| attack.takes_large == takes_large && is_chosen(attack, options))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        note("starting a server");
        let most_body = match takes_large {
            true => LARGE_BODY_BYTES,
            false => ServerConfig::default().max_body_bytes as u64,
        };
        let (child, memory) = (&options.child, options.memory_bytes);
        let server = Server::start_with(child, &file.path, memory, most_body)?;
        let mut calm = Calm::new(server.address)?;
        // Not counted: plans, and the memory that they touch.
        quietly(&server, &mut calm, data)?;
        for attack in chosen {
            note(attack.name);
            attacks.push(one(options, &server, &mut calm, data, attack)?);
        }
    }
    Ok(StreamsReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        seconds: options.duration.as_secs_f64(),
        memory_bytes: options.memory_bytes,
        stream_bytes: STREAM_BYTES,
        attacks,
    })
}

fn is_chosen(attack: &Attack, options: &Options) -> bool {
    let only = options.only.as_deref();
    only.is_none_or(|only| attack.name.contains(only))
}

/// Light queries of both kinds alone.
fn quietly(
    server: &Server,
    calm: &mut Calm,
    data: Lubm,
) -> Result<(LightUnder, LightUnder), BenchError> {
    let stop = AtomicBool::new(false);
    beside(server, calm, data, &stop, || std::thread::sleep(QUIET)).map(|(_, light)| light)
}

/// Does something while light queries of both kinds go on: one-shot ones, and the continuous one.
fn beside<T: Send>(
    server: &Server,
    calm: &mut Calm,
    data: Lubm,
    stop: &AtomicBool,
    work: impl FnOnce() -> T + Send,
) -> Result<(T, (LightUnder, LightUnder)), BenchError> {
    let address = server.address;
    std::thread::scope(|scope| {
        let one_shot = scope.spawn(|| light::run_until(address, data, stop));
        let continuous = scope.spawn(|| calm.run_until(stop));
        let worked = scope.spawn(work).join();
        stop.store(true, Relaxed);
        let one_shot = one_shot.join().map_err(|_| BenchError::Thread)??;
        let continuous = continuous.join().map_err(|_| BenchError::Thread)??;
        let worked = worked.map_err(|_| BenchError::Thread)?;
        Ok((worked, (one_shot, continuous)))
    })
}

/// One attack: before it, beside it and after it.
fn one(
    options: &Options,
    server: &Server,
    calm: &mut Calm,
    data: Lubm,
    attack: &Attack,
) -> Result<AttackReport, BenchError> {
    let (quiet_one_shot, quiet_continuous) = quietly(server, calm, data)?;
    let had = triples(server)?;
    let before_bytes = server.begin_peak()?;
    let ground = Ground {
        address: server.address,
        length: options.duration,
        registrations: options.registrations,
        clients: options.clients,
    };
    let begun = Instant::now();
    let stop = AtomicBool::new(false);
    let attacked = || {
        jindou_server::HeavyPriority::Low.take();
        (attack.run)(&ground)
    };
    let (told, (one_shot, continuous)) = beside(server, calm, data, &stop, attacked)?;
    let seconds = begun.elapsed().as_secs_f64();
    let peak_bytes = server.peak()?;
    let told = told?;
    let (after_bytes, back_seconds) = wait_for_memory(server, before_bytes)?;
    Ok(AttackReport {
        name: attack.name.to_owned(),
        seconds,
        answers: told.answers,
        said: told.said,
        wrong: told.wrong,
        before_bytes,
        peak_bytes,
        after_bytes,
        back_seconds,
        quiet_one_shot,
        quiet_continuous,
        one_shot,
        continuous,
        is_sound: is_sound(server, had)?,
    })
}

/// Waits until the server's memory is back, or for so long; what it holds then.
fn wait_for_memory(server: &Server, before_bytes: u64) -> Result<(u64, f64), BenchError> {
    let begun = Instant::now();
    loop {
        let resident = server.resident()?;
        let is_over = begun.elapsed() >= BACK_WITHIN;
        if is_over || resident <= before_bytes + report::REST_BYTES {
            return Ok((resident, begun.elapsed().as_secs_f64()));
        }
        std::thread::sleep(LOOK);
    }
}

/// How many triples a server says that it has.
fn triples(server: &Server) -> Result<Option<u64>, BenchError> {
    let query = "SELECT%20(COUNT(*)%20AS%20%3Fn)%20%7B%3Fs%20%3Fp%20%3Fo%7D";
    let path = format!("/sparql?query={query}&format=csv");
    let (status, body) = get(server.address, &path)?;
    let found = body
        .lines()
        .nth(1)
        .and_then(|line| line.trim().parse().ok());
    Ok(found.filter(|_| status == 200))
}

/// Whether the server answers, and has the data that it had, and nothing of the attack: the stream and the
/// query that are light are its only ones.
fn is_sound(server: &Server, had: Option<u64>) -> Result<bool, BenchError> {
    let (_, streams) = get(server.address, "/streams")?;
    let (_, queries) = get(server.address, "/continuous")?;
    let count = |text: &str| {
        let list: Option<Vec<serde_json::Value>> = serde_json::from_str(text).ok();
        list.map(|list| list.len())
    };
    let left = (count(&streams), count(&queries));
    Ok(had.is_some() && triples(server)? == had && left == (Some(1), Some(1)))
}
