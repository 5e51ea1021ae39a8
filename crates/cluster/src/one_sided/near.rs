//! How are lists read that loads of this process reach?
//!
//! They lie in memory of a node of the same machine, mapped here, or of this node itself. A key's row is computed, its
//! bounds are loaded and its neighbours copied, as those of a store are; nothing waits, and nothing is allocated.
//! Such reads are counted as those that fly.

use std::ops::Range;

use jindou_fabric::FabricError;
use jindou_model::{Cursor, IdRanges, TermId};
use jindou_store::Segment;

use super::counts::NearReads;
use super::{NotRead, OneSided, ReadLists};

/// Keys whose bounds are loaded before the first of their lists is, so that loads overlap.
const AHEAD: usize = 16;

/// Where the list of a key lies: none of one without neighbours.
type Found<'a> = Option<(&'a Segment, Range<usize>)>;

impl OneSided {
    /// Where the list of a key lies, and whether it is another node's.
    #[inline]
    fn find<'a>(&self, of: &ReadLists<'a>, key: TermId) -> Result<(Found<'a>, bool), NotRead> {
        let shard = self.shards.owner(key);
        let segment = of.segment(shard).and_then(|segment| segment.near());
        let Some(segment) = segment else {
            return Ok((None, false));
        };
        // What a peer says is not taken for granted.
        let numbers = segment.find(key).ok_or_else(|| {
            let error = FabricError::Malformed("bounds of a list");
            self.not_read(&error, of, &[key])
        })?;
        Ok((Some((segment, numbers)), self.is_of_other(shard)))
    }

    /// As [`OneSided::expand`] of lists that are near.
    pub(super) fn expand_near(
        &self,
        of: &ReadLists<'_>,
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), NotRead> {
        let keys = of.list.keys;
        let mut reads = NearReads::default();
        let mut found: [(Found<'_>, bool); AHEAD] = Default::default();
        'all: while cursor.key < keys.len() && out.len() < budget {
            let ahead = &keys[cursor.key..keys.len().min(cursor.key + AHEAD)];
            for (place, key) in found.iter_mut().zip(ahead) {
                *place = self.find(of, *key)?;
            }
            for (list, is_remote) in &found[..ahead.len()] {
                if let Some((segment, numbers)) = list {
                    let begin = numbers.start + cursor.offset;
                    let room = budget.saturating_sub(out.len()).max(1);
                    let end = numbers.end.min(begin.saturating_add(room));
                    segment.copy(begin..end, allowed, out);
                    rows.resize(out.len(), cursor.key as u32);
                    if *is_remote {
                        reads.count(segment, end - begin);
                    }
                    if end < numbers.end {
                        cursor.offset += end - begin;
                        break 'all;
                    }
                }
                *cursor = Cursor {
                    key: cursor.key + 1,
                    offset: 0,
                };
                if out.len() >= budget {
                    break 'all;
                }
            }
        }
        self.counts.count_near(&reads);
        Ok(())
    }

    /// Calls `each` with the place of every key and its list.
    pub(super) fn for_each_near<'a>(
        &self,
        of: &ReadLists<'a>,
        are_read: bool,
        mut each: impl FnMut(usize, Found<'a>),
    ) -> Result<(), NotRead> {
        let mut reads = NearReads::default();
        for (place, key) in of.list.keys.iter().enumerate() {
            let (list, is_remote) = self.find(of, *key)?;
            if let Some((segment, numbers)) = &list
                && is_remote
            {
                reads.count(segment, if are_read { numbers.len() } else { 0 });
            }
            each(place, list);
        }
        self.counts.count_near(&reads);
        Ok(())
    }
}

/// How many neighbours a list has.
pub(super) fn length(list: &Found<'_>) -> u64 {
    list.as_ref().map_or(0, |(_, numbers)| numbers.len() as u64)
}
