//! When is a query or a transaction to end, done or not?

use std::time::{Duration, Instant};

use jindou_exec::CancellationToken;
use jindou_plan::PlanError;
use parking_lot::{Mutex, MutexGuard};

use crate::EngineError;

/// How long a thread waits for its turn between two looks at whether it is still wanted.
pub(crate) const TURN_LOOK: Duration = Duration::from_millis(20);

/// When something is to end.
#[derive(Clone)]
pub(crate) struct Deadline {
    begin: Instant,
    limit: Option<Duration>,
    cancellation: Option<CancellationToken>,
}

impl Deadline {
    pub(crate) fn new(
        begin: Instant,
        limit: Option<Duration>,
        cancellation: Option<&CancellationToken>,
    ) -> Self {
        Self {
            begin,
            limit,
            cancellation: cancellation.cloned(),
        }
    }

    /// No end.
    pub(crate) fn never() -> Self {
        Self::new(Instant::now(), None, None)
    }

    /// The same, with this limit from now on if it ends earlier.
    pub(crate) fn within(&self, limit: Duration) -> Self {
        let left = self
            .limit
            .map(|all| all.saturating_sub(self.begin.elapsed()));
        Self {
            begin: Instant::now(),
            limit: Some(left.map_or(limit, |left| left.min(limit))),
            cancellation: self.cancellation.clone(),
        }
    }

    /// The time that is left, if that is limited.
    ///
    /// # Errors
    /// If there is none, or somebody ended it.
    pub(crate) fn left(&self) -> Result<Option<Duration>, EngineError> {
        if self
            .cancellation
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
        {
            return Err(EngineError::Cancelled);
        }
        let Some(limit) = self.limit else {
            return Ok(None);
        };
        match limit.checked_sub(self.begin.elapsed()) {
            Some(left) if !left.is_zero() => Ok(Some(left)),
            _ => Err(EngineError::Timeout { limit }),
        }
    }

    /// Parses or plans with a function that is given what says when to give up.
    ///
    /// # Errors
    /// As [`Deadline::left`] if it gave up, otherwise what is wrong with the text.
    pub(crate) fn plan<T>(
        &self,
        make: impl FnOnce(&dyn Fn() -> bool) -> Result<T, PlanError>,
    ) -> Result<T, EngineError> {
        match make(&|| self.left().is_err()) {
            Err(PlanError::Interrupted) => {
                self.left()?;
                unreachable!("what was over stays over")
            }
            made => Ok(made?),
        }
    }
}

/// Waits for a lock.
///
/// # Errors
/// As [`Deadline::left`].
pub(crate) fn wait_for_lock<'a, T>(
    lock: &'a Mutex<T>,
    deadline: &Deadline,
) -> Result<MutexGuard<'a, T>, EngineError> {
    loop {
        let left = deadline.left()?.unwrap_or(TURN_LOOK);
        if let Some(guard) = lock.try_lock_for(left.min(TURN_LOOK)) {
            return Ok(guard);
        }
    }
}
