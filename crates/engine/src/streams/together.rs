//! Complete batches that become part of the data together: a transaction with its sync costs as much as many
//! small ones.

use std::borrow::Cow;
use std::collections::VecDeque;

use jindou_store::window::StreamTuple;

use super::records::Facts;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::EngineError;

/// Batches take no more together than this, beside one that does by itself: they are copied.
const MOST_BYTES: u64 = 4 << 20;

/// Successive batches, each with its first millisecond.
#[derive(Default)]
pub(super) struct Batches {
    all: VecDeque<(i64, Tuples)>,
    bytes: u64,
}

impl Batches {
    /// The oldest complete ones of a stream.
    pub(super) fn take_complete(stream: &Stream) -> Self {
        let mut batches = Self::default();
        let mut intake = stream.intake.lock();
        while let Some((begin_ms, tuples)) = intake.take_complete() {
            if !batches.fits(&tuples) {
                intake.put_back(begin_ms, tuples);
                break;
            }
            batches.push(begin_ms, tuples);
        }
        batches
    }

    /// Adds the one after the others.
    pub(super) fn push(&mut self, begin_ms: i64, tuples: Tuples) {
        self.bytes += tuples.size();
        self.all.push_back((begin_ms, tuples));
    }

    /// True if a batch may be added.
    pub(super) fn fits(&self, tuples: &Tuples) -> bool {
        self.are_none() || self.bytes + tuples.size() <= MOST_BYTES
    }

    pub(super) fn are_none(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.all.len() as u64
    }

    /// About what they take.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What the log calls their facts; `None` without batches.
    pub(super) fn facts(&self) -> Option<Facts> {
        let ((first_ms, _), (last_ms, _)) = (self.all.front()?, self.all.back()?);
        Some(match first_ms == last_ms {
            true => Facts::Batch(*first_ms),
            false => Facts::Batches(*first_ms, *last_ms),
        })
    }

    /// All their tuples, in order.
    pub(super) fn joined(&self) -> Cow<'_, Tuples> {
        if let (1, Some((_, only))) = (self.all.len(), self.all.front()) {
            return Cow::Borrowed(only);
        }
        let mut joined = Tuples::default();
        for (_, tuples) in &self.all {
            (0..tuples.len()).for_each(|tuple| joined.copy(tuples, tuple));
        }
        Cow::Owned(joined)
    }

    /// Puts all into the rings of a stream, each as a batch of its own, and takes away those that are there.
    ///
    /// # Errors
    /// Those of a ring.
    pub(super) fn append_to(
        &mut self,
        stream: &Stream,
        mut timed: &[StreamTuple],
    ) -> Result<(), EngineError> {
        while let Some((_, tuples)) = self.all.front() {
            let (of_batch, others) = timed.split_at(tuples.len());
            stream.append(of_batch)?;
            timed = others;
            self.bytes -= tuples.size();
            self.all.pop_front();
        }
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Lets them wait again.
    pub(super) fn put_back(self, stream: &Stream) {
        let mut intake = stream.intake.lock();
        for (begin_ms, tuples) in self.all {
            intake.put_back(begin_ms, tuples);
        }
    }
}
