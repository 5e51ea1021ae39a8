//! Is the plan that is being made still wanted?

use std::cell::Cell;

use crate::error::PlanError;

/// Units of work between two questions, each a few dozen nanoseconds: a step of a loop that does
/// a thing of constant size.
const UNITS_PER_QUESTION: usize = 512;

/// Asked now and then whether planning is to be given up.
///
/// Every loop whose length grows with the text spends its steps here. Once planning is over,
/// conversion ends with an error, and what is left to plan is left out: the plan is thrown away.
pub(crate) struct Patience<'a> {
    is_over: &'a dyn Fn() -> bool,
    was_over: Cell<bool>,
    /// Units of work until the next question.
    left: Cell<usize>,
}

impl<'a> Patience<'a> {
    pub(crate) fn new(is_over: &'a dyn Fn() -> bool) -> Self {
        Self {
            is_over,
            was_over: Cell::new(false),
            left: Cell::new(UNITS_PER_QUESTION),
        }
    }

    /// True once planning is to be given up: asks at once.
    pub(crate) fn is_over(&self) -> bool {
        if !self.was_over.get() && (self.is_over)() {
            self.was_over.set(true);
        }
        self.was_over.get()
    }

    /// True once planning is to be given up; counts the work done, and asks when there was
    /// enough of it. The work is to be left out where it is over.
    pub(crate) fn spend(&self, units: usize) -> bool {
        #[cfg(test)]
        tests::count(if self.was_over.get() { 1 } else { units });
        match self.left.get().checked_sub(units) {
            Some(left) => self.left.set(left),
            None => {
                self.left.set(UNITS_PER_QUESTION);
                return self.is_over();
            }
        }
        self.was_over.get()
    }

    /// [`Patience::spend`] where errors can be returned.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`].
    pub(crate) fn work(&self, units: usize) -> Result<(), PlanError> {
        match self.spend(units) {
            true => Err(PlanError::Interrupted),
            false => Ok(()),
        }
    }

    /// [`Patience::is_over`] where errors can be returned.
    ///
    /// # Errors
    /// [`PlanError::Interrupted`].
    pub(crate) fn ask(&self) -> Result<(), PlanError> {
        match self.is_over() {
            true => Err(PlanError::Interrupted),
            false => Ok(()),
        }
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

#[cfg(test)]
#[path = "patience_tests.rs"]
mod tests;
