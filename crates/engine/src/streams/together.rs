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

/// What of a batch is part of the data already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    #[default]
    New,
    /// Its facts are: they were stored before the database was opened. Its tuples are to get their ids again.
    Stored,
    /// As before, and what the stream has counted has it, too.
    Counted,
}

/// The last batches of each standing when a database was opened, by their first milliseconds. Batches become
/// part of the data in order, so all before one of them are what it is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standings {
    pub(super) stored_ms: Option<i64>,
    pub(super) counted_ms: Option<i64>,
}

impl Standings {
    fn of(self, begin_ms: i64) -> Standing {
        let is_before = |last_ms: Option<i64>| last_ms.is_some_and(|last_ms| begin_ms <= last_ms);
        match (is_before(self.counted_ms), is_before(self.stored_ms)) {
            (true, _) => Standing::Counted,
            (false, true) => Standing::Stored,
            (false, false) => Standing::New,
        }
    }
}

/// Successive batches of one standing, each with its first millisecond.
#[derive(Default)]
pub(super) struct Batches {
    all: VecDeque<(i64, Tuples)>,
    bytes: u64,
    standing: Standing,
}

impl Batches {
    /// The oldest complete ones of a stream.
    pub(super) fn take_complete(stream: &Stream) -> Self {
        let mut batches = Self::default();
        let standings = *stream.standings.lock();
        let mut intake = stream.intake.lock();
        while let Some((begin_ms, tuples)) = intake.take_complete() {
            let standing = standings.of(begin_ms);
            if batches.are_none() {
                batches.standing = standing;
            } else if !batches.fits(&tuples) || batches.standing != standing {
                intake.put_back(begin_ms, tuples);
                break;
            }
            batches.bytes += tuples.size();
            batches.all.push_back((begin_ms, tuples));
        }
        batches
    }

    fn fits(&self, tuples: &Tuples) -> bool {
        self.bytes + tuples.size() <= MOST_BYTES
    }

    pub(super) fn standing(&self) -> Standing {
        self.standing
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
        self.all.clear();
        self.bytes = 0;
    }

    /// Lets them wait again.
    pub(super) fn put_back(self, stream: &Stream) {
        let mut intake = stream.intake.lock();
        for (begin_ms, tuples) in self.all {
            intake.put_back(begin_ms, tuples);
        }
    }
}
