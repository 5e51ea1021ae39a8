//! How does a thread that waits hear that it is to end, and when does it try again what failed?

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// Runs again what has failed, after a wait that grows as long as nothing more is `done` between two
/// failures; returns once it is to stop or what it is for is gone. A panic is a failure, too.
pub(crate) fn retry(
    stop: &Stop,
    run: &dyn Fn() -> Result<Infallible, BrokerError>,
    done: &dyn Fn() -> u64,
    fail: &dyn Fn(String),
) {
    let mut backoff = Backoff::new();
    let mut before = 0;
    loop {
        let error = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(never)) => match never {},
            Ok(Err(BrokerError::Stopped | BrokerError::Gone)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "an internal error; the log has its trace".to_owned(),
        };
        let now = done();
        if std::mem::replace(&mut before, now) < now {
            backoff = Backoff::new();
        }
        fail(error);
        if stop.wait(backoff.next()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_or_panics_runs_again_until_it_stops() {
        let stop = Stop::default();
        let (runs, errors) = (Mutex::new(0), Mutex::new(Vec::new()));
        let run = || {
            *runs.lock() += 1;
            match *runs.lock() {
                1 => panic!("the first run"),
                2 => Err(BrokerError::NoTopic {
                    topic: "t".to_owned(),
                }),
                _ => Err(BrokerError::Gone),
            }
        };
        retry(&stop, &run, &|| 0, &|error| errors.lock().push(error));
        let errors = errors.into_inner();
        assert_eq!((*runs.lock(), errors.len()), (3, 2), "{errors:?}");
        assert!(errors[0].contains("internal"), "{errors:?}");
        stop.set();
        retry(&stop, &|| Err(BrokerError::Stopped), &|| 0, &|error| {
            panic!("{error}")
        });
    }

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
