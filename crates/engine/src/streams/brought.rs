//! What do the terms take that a stream has brought, and that windows alone hold?
//!
//! A term stays in the dictionary until a merge finds that neither quads nor windows have it. So a stream is
//! charged for all new terms of its batches until the next merge, which finds those that only windows hold: for
//! these it is charged until a merge finds that its windows have them no more.

use std::sync::Arc;

use jindou_model::TermId;
use jindou_store::Snapshot;

use super::Streams;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::database::Inner;
use crate::deadline::Deadline;
use crate::merge::Which;

/// What a term takes beside its text, about.
const TERM_BYTES: u64 = 32;
/// Terms of a tuple that may be new.
const MOST_TERMS: u64 = 3;

/// A merge for the terms of a full stream alone is worth it when one in so many tuples has left the windows since
/// the last one,
const LEFT_SHARE: u64 = 16;
/// or terms came that take one in so many bytes of what it may.
const NEW_SHARE: u64 = 4;

/// Bytes of terms that a stream is charged for.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// Of those that came since a merge began.
    new_bytes: u64,
    /// Of those that came before a merge that is under way, or that failed.
    merging_bytes: u64,
    /// Of those that the last merge found in windows alone.
    held_bytes: u64,
    /// Tuples that windows had then, and those that came since.
    tuples: u64,
}

impl Brought {
    /// Counts terms.
    pub(super) fn add_terms(&mut self, bytes: u64) {
        self.new_bytes += bytes;
    }

    /// Counts tuples that are put into a ring.
    pub(super) fn add_tuples(&mut self, tuples: usize) {
        self.tuples += tuples as u64;
    }

    fn bytes(&self) -> u64 {
        self.new_bytes + self.merging_bytes + self.held_bytes
    }

    fn begin_merge(&mut self) {
        self.merging_bytes += std::mem::take(&mut self.new_bytes);
    }

    /// A merge is over, which found that windows, with so many tuples, alone hold so many bytes.
    fn end_merge(&mut self, held_bytes: u64, tuples: u64) {
        self.merging_bytes = 0;
        self.held_bytes = held_bytes;
        self.tuples = tuples;
    }
}

/// The most that the new terms of a batch take of which facts have none: of all that it brought, what those of
/// its tuples that are not stored may have brought.
pub(super) fn bytes_of_timing(tuples: &Tuples, is_stored: &[bool], brought_bytes: u64) -> u64 {
    if !is_stored.contains(&true) {
        return brought_bytes;
    }
    let timing = (0..tuples.len()).filter(|tuple| !is_stored[*tuple]);
    let most = timing.map(|tuple| tuples.size_of(tuple) + MOST_TERMS * TERM_BYTES);
    brought_bytes.min(most.sum())
}

impl Stream {
    /// Bytes of the terms that it is charged for.
    pub(super) fn term_bytes(&self) -> u64 {
        self.brought.lock().bytes()
    }

    /// Tuples of its rings, also those that expired and are still there.
    fn tuples_in_rings(&self) -> u64 {
        let rings = self.rings();
        let runs = rings.iter().flat_map(|ring| ring.runs());
        runs.map(|run| run.len() as u64).sum()
    }

    /// True if a merge may find much that it is not to be charged for any more.
    fn is_worth_a_merge(&self) -> bool {
        let there = self.tuples_in_rings();
        let brought = self.brought.lock();
        let left = brought.tuples.saturating_sub(there);
        let new = brought.new_bytes + brought.merging_bytes;
        let has_left = left > 0 && left.saturating_mul(LEFT_SHARE) >= brought.tuples;
        brought.bytes() > 0 && (has_left || new.saturating_mul(NEW_SHARE) >= self.definition.memory)
    }
}

/// By stream, the terms that a merge found in its windows alone.
pub(super) type HeldBy = Vec<(Arc<Stream>, Vec<TermId>)>;

impl Streams {
    /// A merge begins, of a snapshot that has all terms that came so far.
    pub(crate) fn begin_counting_terms(&self) {
        let names = self.names.read();
        let streams = names.streams.values();
        streams.for_each(|stream| stream.brought.lock().begin_merge());
    }

    /// The merge is over: charges each stream for the terms that were found in its windows alone. Costs a look at
    /// the text of each.
    pub(crate) fn count_terms(&self, snapshot: &Snapshot) {
        let held_by = std::mem::take(&mut *self.held_by.lock());
        let streams: Vec<Arc<Stream>> = self.names.read().streams.values().cloned().collect();
        let mut key = Vec::new();
        for stream in streams {
            let its = held_by.iter().filter(|(of, _)| Arc::ptr_eq(of, &stream));
            let sizes = its.flat_map(|(_, terms)| terms).map(|term| {
                key.clear();
                snapshot.push_key(*term, &mut key);
                key.len() as u64 + TERM_BYTES
            });
            let bytes: u64 = sizes.sum();
            let tuples = stream.tuples_in_rings();
            stream.brought.lock().end_merge(bytes, tuples);
        }
    }
}

impl Inner {
    /// Has the terms of a full stream collected that no window has any more, where that is worth it. Where it
    /// fails, the stream stays full.
    pub(super) fn collect_terms(&self, stream: &Stream) {
        if stream.is_worth_a_merge()
            && let Err(error) = self.merge(Which::Terms, &Deadline::never())
        {
            tracing::warn!(stream = stream.name, %error, "terms that no window has stay");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_during_a_merge_is_counted_until_the_next() {
        let mut brought = Brought::default();
        brought.add_terms(10);
        brought.begin_merge();
        brought.add_terms(5);
        assert_eq!(brought.bytes(), 15);
        // It failed, and the next one takes both.
        brought.begin_merge();
        brought.add_terms(1);
        assert_eq!(brought.bytes(), 16);
        brought.end_merge(7, 3);
        assert_eq!(brought.bytes(), 8);
        brought.begin_merge();
        brought.end_merge(0, 0);
        assert_eq!(brought.bytes(), 0);
    }
}
