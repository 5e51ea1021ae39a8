//! Where is an attempt given up, if a test says so?
//!
//! A time limit may strike anywhere in an evaluation. Tests have it strike at places that a seed draws, so that
//! each run has the same.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::Streams;
use crate::{Config, EngineError};

/// An attempt is interrupted after fewer steps than this.
const MOST_STEPS: u64 = 24;

/// Ends an attempt after some of its steps.
pub(super) struct Interruption {
    steps_left: Cell<u64>,
}

impl Interruption {
    /// # Errors
    /// [`EngineError::Timeout`] once there are no steps left.
    pub(super) fn go_on(&self) -> Result<(), EngineError> {
        let steps = self.steps_left.get();
        self.steps_left.set(steps.saturating_sub(1));
        match steps {
            0 => Err(EngineError::Timeout {
                limit: Duration::ZERO,
            }),
            _ => Ok(()),
        }
    }
}

impl Streams {
    /// What ends the next attempt early, if something does.
    pub(super) fn interruption(&self, config: &Config) -> Option<Interruption> {
        let seed = config.interruptions?;
        let drawn = mixed(seed ^ mixed(self.attempts.fetch_add(1, Relaxed)));
        // The attempts after it come to their ends.
        drawn.is_multiple_of(2).then(|| Interruption {
            steps_left: Cell::new((drawn >> 8) % MOST_STEPS),
        })
    }
}

/// A number whose bits depend on all those of another one.
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
