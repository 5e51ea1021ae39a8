//! How does a thread that waits hear that it is to end?

use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::error::BrokerError;

/// Set once.
#[derive(Default)]
pub(crate) struct Stop {
    stops: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    pub(crate) fn set(&self) {
        *self.stops.lock() = true;
        self.changed.notify_all();
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.stops.lock()
    }

    /// # Errors
    /// [`BrokerError::Stopped`] once it is set.
    pub(crate) fn check(&self) -> Result<(), BrokerError> {
        match self.is_set() {
            true => Err(BrokerError::Stopped),
            false => Ok(()),
        }
    }

    /// Waits so long.
    ///
    /// # Errors
    /// [`BrokerError::Stopped`] as soon as it is set.
    pub(crate) fn wait(&self, time: Duration) -> Result<(), BrokerError> {
        let mut stops = self.stops.lock();
        let is_going_on = |stops: &mut bool| !*stops;
        self.changed.wait_while_for(&mut stops, is_going_on, time);
        match *stops {
            true => Err(BrokerError::Stopped),
            false => Ok(()),
        }
    }
}

/// How long to wait before something is tried again: twice as long each time.
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);

    pub(crate) fn new() -> Self {
        Self { next: Self::FIRST }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let now = self.next;
        self.next = (2 * now).min(Self::LONGEST);
        now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound() {
        let mut backoff = Backoff::new();
        let waits: Vec<Duration> = (0..10).map(|_| backoff.next()).collect();
        assert_eq!(waits[..2], [Backoff::FIRST, 2 * Backoff::FIRST]);
        assert_eq!(waits[9], Backoff::LONGEST);
    }

    #[test]
    fn who_waits_hears_at_once() {
        let stop = Stop::default();
        assert!(stop.wait(Duration::ZERO).is_ok() && stop.check().is_ok());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| stop.wait(Duration::from_secs(3600)));
            stop.set();
            assert!(waits.join().expect("no panic").is_err());
        });
        assert!(stop.check().is_err());
    }
}
