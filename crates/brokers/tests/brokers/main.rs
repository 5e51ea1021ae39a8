//! Real brokers on this machine, and a real server between them: is each message read, and each result
//! delivered, whatever is killed?
//!
//! `JINDOU_BIN` names the program, built with the features `kafka` and `mqtt`; `cargo xtask test --brokers`
//! builds it and sets that.

mod kafka;
mod kafka_broker;
mod kills;
mod mosquitto;
mod mqtt;
mod serving;

use std::time::{Duration, Instant};

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks at what is waited for.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until there is a value.
#[track_caller]
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = look() {
            return value;
        }
        assert!(Instant::now() < until, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(LOOK);
    }
}

/// A number from the environment, or another one.
fn environment(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

/// What a value is, or that the test is skipped as it cannot be had.
macro_rules! or_skip {
    ($test:literal, $value:expr) => {
        match $value {
            Ok(value) => value,
            Err(reason) => {
                println!("SKIPPED: {} ({reason})", $test);
                return;
            }
        }
    };
}
use or_skip;
