//! Does the checker pass what is right, and call by name what is wrong?
//!
//! Each assertion prints its seed; `JINDOU_CASES` is the number of seeds, from 0.

mod corrupted;
mod faults;
mod permuted;
mod simulated;
mod small;
mod threads;

use jindou_history::{Check, Level, Operation, Report, check};
use simulated::Played;

const LEVELS: [Level; 3] = [
    Level::SnapshotIsolation,
    Level::StrongSnapshotIsolation,
    Level::StrictSerializable,
];

fn seeds(count: u64) -> std::ops::Range<u64> {
    let cases = std::env::var("JINDOU_CASES").ok();
    0..cases.map_or(count, |cases| cases.parse().expect("a number"))
}

fn report(history: &[Operation], level: Level) -> Report {
    check(history, &Check::new(level)).expect("a history")
}

fn report_played(played: &Played, level: Level, numbers: bool) -> Report {
    let mut wanted = Check::new(level);
    wanted.finals_from = Some(played.finals_from);
    wanted.clients_go_forward = numbers;
    wanted.monotonic = numbers;
    check(&played.history, &wanted).expect("a history")
}
