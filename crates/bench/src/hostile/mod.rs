//! What becomes of light queries while others do their worst?
//!
//! A server in a process of its own answers light queries alone first, then beside a mix of
//! queries and clients made to hurt. Beside that mix queries are cancelled, and again after it,
//! when it can also be told whether their memory is back.

mod attack;
mod cancel;
mod light;
mod report;
mod server;
mod slow;
pub mod streams;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use jindou_datagen::lubm::Lubm;

use crate::BenchError;
use crate::child::ChildProgram;
use crate::data;
use crate::machine::Machine;

pub use report::{AttackFigures, CancelFigures, HostileReport, Leftover, LightUnder, SlowFigures};
pub use server::child;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Universities of the data.
    pub universities: u32,
    /// Where the data's file is kept.
    pub folder: PathBuf,
    /// How long the mix goes on; the quiet part takes a quarter of it, and no more than 10 s.
    pub duration: Duration,
    /// Connections that read slowly.
    pub slow_connections: usize,
    /// What all queries of the server may hold together, in bytes.
    pub memory_bytes: u64,
    /// How to start a process that hands its arguments to [`child`].
    pub child: ChildProgram,
}

/// How long slow clients have the server to themselves, before the rest of the mix.
const SLOW_FIRST: Duration = Duration::from_secs(2);
/// The longest quiet part.
const QUIET: Duration = Duration::from_secs(10);

/// Measures; `note` is told what is being done, a few words at a time.
///
/// # Errors
/// Any [`BenchError`]. A light query that fails is a figure, not an error.
pub fn measure(options: &Options, mut note: impl FnMut(&str)) -> Result<HostileReport, BenchError> {
    let data = Lubm::new(options.universities, 0);
    note("generating the data");
    let file = data::lubm_file(&options.folder, data)?;
    note("starting a server");
    let server = server::Server::start(options, &file.path)?;
    let quiet_for = (options.duration / 4).min(QUIET);
    light::run(server.address, data, quiet_for / 4)?;
    note("light queries alone");
    let quiet = light::run(server.address, data, quiet_for)?;
    let resident_bytes = server.begin_peak()?;
    note("light queries beside the mix");
    let stop = Arc::new(AtomicBool::new(false));
    // First those who read slowly: they would find the server taken.
    let slow = slow::start(server.address, options.slow_connections, &stop)?;
    std::thread::sleep(SLOW_FIRST);
    let attacks = attack::start(server.address, &stop);
    let canceller = cancel::start_beside(server.address, &stop);
    let mixed = light::run(server.address, data, options.duration);
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    let peak_bytes = server.peak()?;
    let metrics = server.metrics()?;
    let (attacks, slow) = (attacks.join()?, slow.join()?);
    let cancelled_beside = canceller.join().map_err(|_| BenchError::Thread)?;
    let leftover = cancel::until_idle(server.address)?;
    note("cancelling");
    let cancelled_alone = cancel::alone(server.address)?;
    let quiet_again = light::run(server.address, data, quiet_for)?;
    let rest_bytes = server.resident()?;
    Ok(HostileReport {
        machine: Machine::here(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        optimized: !cfg!(debug_assertions),
        universities: options.universities,
        seconds: options.duration.as_secs_f64(),
        quiet,
        mixed: mixed?,
        quiet_again,
        resident_bytes,
        memory_bytes: options.memory_bytes,
        peak_bytes,
        rest_bytes,
        metrics,
        attacks,
        slow,
        cancelled_beside,
        leftover,
        cancelled_alone,
    })
}
