//! Does a light continuous query go on beside an attack, and how long after its tuples come its results?
//!
//! A producer of its own pushes one tuple for each tenth of a second of event time to a stream of its own,
//! and says by a heartbeat that this tenth is over. The query counts the last second, so each result is known.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use super::client::{Client, Events};
use crate::BenchError;
use crate::hostile::report::LightUnder;
use crate::timing::Timing;

const STREAM: &str = "calm";
/// Milliseconds of a step, of event time.
const STEP_MS: i64 = 100;
/// Tuples that the window holds once it is full.
const HELD: i64 = 10;
/// From one tuple to the next, of the clock.
const PACE: Duration = Duration::from_millis(20);

/// The query and its producer.
pub(super) struct Calm {
    client: Client,
    events: Events,
    /// Steps so far.
    steps: i64,
}

impl Calm {
    /// Makes the stream, registers the query and begins to read its results.
    pub(super) fn new(address: SocketAddr) -> Result<Self, BenchError> {
        let mut client = Client::new(address);
        let made = client.put_stream(STREAM, "")?;
        let text = "SELECT (COUNT(*) AS ?n) FROM STREAM <http://e/calm> [RANGE 1s STEP 100ms] \
                    WHERE { ?sensor <http://e/reads> ?value }";
        let registered = client.register(STREAM, text)?;
        for answer in [made, registered] {
            if answer.status != 201 {
                let reason = answer.body;
                return Err(BenchError::NoLight { reason });
            }
        }
        Ok(Self {
            client,
            events: Events::of(address, STREAM).map_err(BenchError::io("events"))?,
            steps: 0,
        })
    }

    /// Goes on until it is told to stop, and at least for a few steps.
    pub(super) fn run_until(&mut self, stop: &AtomicBool) -> Result<LightUnder, BenchError> {
        let _ = jindou_fabric::schedule::take_short_turns();
        let (mut times, mut failed, mut first_failure) = (Vec::new(), 0, None);
        while !stop.load(Relaxed) || times.len() + (failed as usize) < HELD as usize {
            let begun = Instant::now();
            match self.step() {
                Ok(()) => times.push(begun.elapsed()),
                Err(reason) => {
                    failed += 1;
                    first_failure.get_or_insert(reason);
                }
            }
            std::thread::sleep(PACE.saturating_sub(begun.elapsed()));
        }
        if times.is_empty() {
            let reason = first_failure.unwrap_or_default();
            return Err(BenchError::NoLight { reason });
        }
        let max = times.iter().max().copied().unwrap_or_default();
        Ok(LightUnder {
            timing: Timing::of(times),
            max_ms: max.as_secs_f64() * 1e3,
            failed,
            first_failure,
        })
    }

    /// One tuple, and the result that has it.
    fn step(&mut self) -> Result<(), String> {
        let time_ms = self.steps * STEP_MS;
        self.steps += 1;
        let line = format!(
            "{time_ms}\t<http://e/s> <http://e/reads> \"{}\" .\n",
            self.steps
        );
        let said = |error: BenchError| error.to_string();
        let pushed = self.client.push(STREAM, &line).map_err(said)?;
        if pushed.status != 200 {
            return Err(format!(
                "a push was answered {}: {}",
                pushed.status, pushed.body
            ));
        }
        let end_ms = time_ms + STEP_MS;
        let beat = self.client.heartbeat(STREAM, &end_ms.to_string());
        let beat = beat.map_err(said)?;
        if beat.status != 204 {
            return Err(format!(
                "a heartbeat was answered {}: {}",
                beat.status, beat.body
            ));
        }
        loop {
            let event = self.events.next().map_err(|error| error.to_string())?;
            if event.instant_ms < end_ms {
                continue;
            }
            let expected = format!("\"value\":\"{}\"", self.steps.min(HELD));
            return match event.instant_ms == end_ms && event.data.contains(&expected) {
                true => Ok(()),
                false => Err(format!("at {end_ms} not {expected}: {}", event.data)),
            };
        }
    }
}
