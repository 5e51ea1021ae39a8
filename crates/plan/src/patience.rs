//! Is the plan that is being made still wanted?

use std::cell::Cell;

use crate::error::PlanError;

/// Asked now and then whether planning is to be given up.
///
/// Once it is, what is left is planned by the first way that comes, which takes no time to speak
/// of, and the plan is thrown away.
pub(crate) struct Patience<'a> {
    is_over: &'a dyn Fn() -> bool,
    was_over: Cell<bool>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(is_over: &'a dyn Fn() -> bool) -> Self {
        Self {
            is_over,
            was_over: Cell::new(false),
        }
    }

    /// True once planning is to be given up.
    pub(crate) fn is_over(&self) -> bool {
        if !self.was_over.get() && (self.is_over)() {
            self.was_over.set(true);
        }
        self.was_over.get()
    }

    /// What was made, if it was made with care.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`].
    pub(crate) fn keep<T>(&self, made: T) -> Result<T, PlanError> {
        match self.was_over.get() {
            true => Err(PlanError::Interrupted),
            false => Ok(made),
        }
    }
}
