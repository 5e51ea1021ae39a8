//! A result is in the log of streams before anybody hears of it: how does it get there, and leave?
//!
//! Results are appended as they are found. Whoever has found all that is due waits for the device once,
//! and hands them to the readers in their order.

use std::borrow::Cow;
use std::sync::Arc;

use super::answer::Answer;
use super::continuous::{Continuous, Reached, State};
use super::records::{Record, ResultRecord};
use super::result_log::ContinuousResult;
use crate::EngineError;
use crate::database::Inner;

impl Inner {
    /// Notes a result of a query, which then is never found again, and lets it leave at once where it
    /// need not be kept.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] if the log takes nothing: nobody has heard of the result.
    pub(super) fn note_result(
        &self,
        query: &Continuous,
        state: &State,
        empty: u32,
        result: &Arc<ContinuousResult>,
    ) -> Result<(), EngineError> {
        let Some(journal) = self.journal_of_query(query) else {
            query.log.push(Arc::clone(result));
            return Ok(());
        };
        let found = match (query.gives_changes(), &state.before) {
            (true, Some(found)) => Some(&**found),
            _ => None,
        };
        let answer: Result<&Answer, &String> = result.answer.as_ref();
        let record = ResultRecord {
            query: query.number,
            instant_ms: result.instant_ms,
            sequence: result.sequence,
            windows: result.windows.iter().map(|window| window.held).collect(),
            snapshot: result.snapshot,
            empty,
            is_given: false,
            answer: answer
                .map(|given| Cow::Borrowed(found.unwrap_or(given)))
                .map_err(|error| Cow::Borrowed(&**error)),
        };
        let _cut = self.streams.cut.read();
        let ticket = journal.append(&Record::Result(record))?;
        *query.reached.lock() = Reached {
            last_ms: Some(result.instant_ms),
            before: state.before.clone(),
            sequence: result.sequence,
            empty,
        };
        query.leaving.lock().push_back((ticket, Arc::clone(result)));
        Ok(())
    }

    /// Hands those results of a query to its readers that nobody has heard of yet, once they are on the
    /// device. Where that fails, whatever comes next tries again.
    pub(super) fn let_results_leave(&self, query: &Arc<Continuous>) {
        let Some(journal) = self.journal_of_query(query) else {
            return;
        };
        // One after the other, in their order.
        let _one = query.handing_out.lock();
        let Some((last, _)) = query.leaving.lock().back().cloned() else {
            return;
        };
        if let Err(error) = journal.sync(last) {
            tracing::warn!(query = query.name, %error, "results are kept back");
            query.look_again();
            return;
        }
        // A state finds each among these or among those that left.
        let mut leaving = query.leaving.lock();
        while leaving.front().is_some_and(|(ticket, _)| *ticket <= last) {
            if let Some((_, result)) = leaving.pop_front() {
                query.log.push(result);
            }
        }
    }
}
