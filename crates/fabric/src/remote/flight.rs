//! How does one wait for remote memory, and what ends the wait early?

use std::fmt;
use std::time::Duration;

use crate::FabricError;
use crate::remote::Completed;

/// What ends a wait before its time: a deadline, a cancellation, both, or neither.
///
/// Deadlines are in the time of the fabric that waits, [`Fabric::now`](crate::remote::Fabric::now),
/// which a simulation advances as it likes.
#[derive(Clone, Copy)]
pub struct Interrupt<'a> {
    deadline: Option<Duration>,
    is_cancelled: Option<&'a dyn Fn() -> bool>,
}

impl Interrupt<'static> {
    /// Nothing ends the wait early.
    #[must_use]
    pub fn never() -> Self {
        let (deadline, is_cancelled) = (None, None);
        Self {
            deadline,
            is_cancelled,
        }
    }

    /// The wait ends at this time.
    #[must_use]
    pub fn at(deadline: Duration) -> Self {
        let (deadline, is_cancelled) = (Some(deadline), None);
        Self {
            deadline,
            is_cancelled,
        }
    }
}

impl<'a> Interrupt<'a> {
    /// The wait ends, too, soon after `is_cancelled` gives true: it is asked between looks at what
    /// is awaited, every few milliseconds while nothing happens.
    #[must_use]
    pub fn or_if<'b>(self, is_cancelled: &'b dyn Fn() -> bool) -> Interrupt<'b>
    where
        'a: 'b,
    {
        let (deadline, is_cancelled) = (self.deadline, Some(is_cancelled));
        Interrupt {
            deadline,
            is_cancelled,
        }
    }

    /// The same, ending at `time` at the latest.
    #[must_use]
    pub fn or_at(self, time: Duration) -> Self {
        let deadline = Some(self.deadline.map_or(time, |deadline| deadline.min(time)));
        Self { deadline, ..self }
    }

    /// When the wait ends at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// An error if the wait is to end.
    ///
    /// # Errors
    /// [`FabricError::Cancelled`], [`FabricError::Deadline`].
    pub fn check(&self, now: Duration) -> Result<(), FabricError> {
        if self.is_cancelled.is_some_and(|is_cancelled| is_cancelled()) {
            return Err(FabricError::Cancelled);
        }
        if self.deadline.is_some_and(|deadline| now >= deadline) {
            return Err(FabricError::Deadline);
        }
        Ok(())
    }

    /// How long to block at most before [`Interrupt::check`] is asked again.
    pub(crate) fn patience(&self, now: Duration) -> Option<Duration> {
        /// Between two looks at whether to stop.
        const LOOK: Duration = Duration::from_millis(5);
        let left = self.deadline.map(|deadline| deadline.saturating_sub(now));
        match self.is_cancelled {
            Some(_) => Some(left.map_or(LOOK, |left| left.min(LOOK))),
            None => left,
        }
    }
}

impl fmt::Debug for Interrupt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt")
            .field("deadline", &self.deadline)
            .field("is_cancellable", &self.is_cancelled.is_some())
            .finish()
    }
}

/// A batch on its way, as an implementation sees it.
pub(crate) trait Flight: Send {
    /// The outcome, once; does what can be done without waiting.
    fn poll(&mut self) -> Option<Result<Completed, FabricError>>;

    /// Returns when [`Flight::poll`] may have an outcome, or when the interrupt is to be checked.
    fn pause(&mut self, interrupt: &Interrupt<'_>) -> Result<(), FabricError>;

    /// The time of the fabric.
    fn now(&self) -> Duration;
}

enum State {
    Over(Result<Completed, FabricError>),
    Flying(Box<dyn Flight>),
    Taken,
}

/// A batch on its way. Dropping it abandons the batch: what it was to do may happen or not, and its
/// buffers are freed after that.
#[must_use = "a batch is done only when its flight says so"]
pub struct InFlight(State);

impl InFlight {
    pub(crate) fn over(outcome: Result<Completed, FabricError>) -> Self {
        Self(State::Over(outcome))
    }

    pub(crate) fn flying(flight: impl Flight + 'static) -> Self {
        Self(State::Flying(Box::new(flight)))
    }

    /// The outcome if the batch is over, without waiting; given once, and an error after that.
    ///
    /// All operations are done if it is `Ok`. Otherwise each may have happened, in part where it is
    /// larger than a word, or not, or may still happen; the error is the first one.
    pub fn poll(&mut self) -> Option<Result<Completed, FabricError>> {
        let outcome = match std::mem::replace(&mut self.0, State::Taken) {
            State::Over(outcome) => outcome,
            State::Taken => Err(FabricError::Unsupported("complete a batch twice")),
            State::Flying(mut flight) => match flight.poll() {
                Some(outcome) => outcome,
                None => {
                    self.0 = State::Flying(flight);
                    return None;
                }
            },
        };
        Some(outcome)
    }

    /// Waits for the outcome.
    ///
    /// # Errors
    /// That of the batch, as [`InFlight::poll`] gives it. [`FabricError::Deadline`],
    /// [`FabricError::Cancelled`] if the wait ended before: the batch is still on its way, and can
    /// be waited for again.
    pub fn wait(&mut self, interrupt: &Interrupt<'_>) -> Result<Completed, FabricError> {
        loop {
            if let Some(outcome) = self.poll() {
                return outcome;
            }
            if let State::Flying(flight) = &mut self.0 {
                interrupt.check(flight.now())?;
                flight.pause(interrupt)?;
            }
        }
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            State::Over(Ok(_)) => "InFlight(done)",
            State::Over(Err(_)) => "InFlight(failed)",
            State::Flying(_) => "InFlight",
            State::Taken => "InFlight(taken)",
        })
    }
}
