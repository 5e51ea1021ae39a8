//! Which answers are due over a connection, and is an answer that came the next of them?
//!
//! A peer carries out the messages of a connection one after the other and answers each, so what comes next is the
//! answer to the oldest message that has none. Any other answer proves that a message or an answer was lost or
//! altered on the way, or that the peer does not keep to the protocol: the answer that is missing will not come. No
//! time limit is as sure, as a peer that is slow still answers in order.

use std::collections::VecDeque;

use super::wire::check_answer;
use crate::remote::NodeId;

/// An answer that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// The flight of the message, and its place there.
    pub(super) flight: u64,
    pub(super) place: u64,
    /// Words of data that come back unless it fails.
    pub(super) data_words: usize,
}

/// The answers that are due over a connection, oldest first: as many as flights and their windows allow, and a few to
/// first messages. Those of flights that were abandoned are due as well.
#[derive(Debug, Default)]
pub(super) struct DueAnswers {
    answers: VecDeque<Due>,
    /// When the last answer came, or the first of these became due if that was later.
    since_ms: u64,
}

impl DueAnswers {
    /// One more is due.
    pub(super) fn add(&mut self, due: Due, now_ms: u64) {
        if self.answers.is_empty() {
            self.since_ms = now_ms;
        }
        self.answers.push_back(due);
    }

    /// An answer came from `node`.
    ///
    /// # Errors
    /// Why it is not the one that is due next.
    pub(super) fn settle(
        &mut self,
        answer: &[u64],
        node: NodeId,
        now_ms: u64,
    ) -> Result<(), &'static str> {
        let due = self.answers.pop_front();
        let due = due.ok_or("it answers though it was not asked")?;
        check_answer(answer, node, due)?;
        self.since_ms = now_ms;
        Ok(())
    }

    /// For how long no answer has come though one was due.
    pub(super) fn waiting_ms(&self, now_ms: u64) -> u64 {
        match self.answers.is_empty() {
            true => 0,
            false => now_ms.saturating_sub(self.since_ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_answers_now_and_then_is_waited_for_since_its_last_answer() {
        let due = |place| Due {
            flight: 7,
            place,
            data_words: 0,
        };
        let answer = |place| super::super::wire::tests::answer(NodeId(4), 7, place, &[]);
        let mut answers = DueAnswers::default();
        assert_eq!(answers.waiting_ms(50), 0);
        answers.add(due(0), 100);
        answers.add(due(1), 150);
        assert_eq!(answers.waiting_ms(160), 60);
        assert_eq!(answers.settle(&answer(0), NodeId(4), 200), Ok(()));
        assert_eq!(answers.waiting_ms(260), 60);
        assert_eq!(answers.settle(&answer(1), NodeId(4), 300), Ok(()));
        assert_eq!(answers.waiting_ms(9000), 0);
        assert!(answers.settle(&answer(2), NodeId(4), 9000).is_err());
    }
}
