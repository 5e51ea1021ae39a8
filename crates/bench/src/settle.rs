//! When has the background of a database nothing to do any more?

use std::time::{Duration, Instant};

use jindou_engine::Database;

/// Longest wait for the background.
const SETTLES_WITHIN: Duration = Duration::from_secs(300);
/// Time between two looks whether it works.
const LOOK: Duration = Duration::from_millis(10);

/// How the background came to rest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settled {
    /// It rested within the longest wait.
    pub(crate) is_at_rest: bool,
    /// How long loads, merges and the like were under way.
    pub(crate) working: Duration,
}

/// Waits until the background has had nothing to do for so long.
pub(crate) fn settle(database: &Database, quiet: Duration) -> Settled {
    let begin = Instant::now();
    let state = || {
        let memory = database.data_memory(None);
        (memory.generation, memory.change_bytes, memory.is_in_work)
    };
    let mut last = state();
    let (mut since, mut looked) = (begin, begin);
    let mut working = Duration::ZERO;
    while begin.elapsed() < SETTLES_WITHIN + quiet {
        std::thread::sleep(LOOK);
        let now = state();
        if now.2 {
            working += looked.elapsed();
        }
        looked = Instant::now();
        if now != last || now.2 {
            (last, since) = (now, looked);
        }
        if since.elapsed() >= quiet {
            return Settled {
                is_at_rest: true,
                working,
            };
        }
    }
    Settled {
        is_at_rest: false,
        working,
    }
}
