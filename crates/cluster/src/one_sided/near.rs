//! How are lists read that loads of this process reach?
//!
//! They lie in memory of a node of the same machine, mapped here, or of this node itself. A key's row is computed, its
//! bounds are loaded and its neighbours copied, as those of a store are; nothing waits, and nothing is allocated.
//! Such reads are counted as those that fly.

use std::ops::Range;

use jindou_fabric::FabricError;
use jindou_model::{Cursor, IdRanges, Neighbours, TermId};
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

    /// As [`GraphSource::expand`](jindou_exec::GraphSource::expand) of several lists that are near, with the row of
    /// the cursor: the shortest one is walked, and what the others hold of it, too, is kept.
    pub(crate) fn intersect_near(
        &self,
        lists: &[ReadLists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        (rows, out): (&mut Vec<u32>, &mut Vec<TermId>),
    ) -> Result<(), NotRead> {
        let mut reads = NearReads::default();
        let mut walked: Found<'_> = None;
        let mut shortest = 0;
        for (number, of) in lists.iter().enumerate() {
            let (list, is_remote) = self.find(of, of.list.keys[cursor.key])?;
            if let Some((segment, numbers)) = &list
                && is_remote
            {
                reads.count(segment, numbers.len());
            }
            if number == 0 || length(&list) < length(&walked) {
                (walked, shortest) = (list, number);
            }
        }
        let next = Cursor {
            key: cursor.key + 1,
            offset: 0,
        };
        if let Some((segment, numbers)) = walked {
            let before = out.len();
            let begin = numbers.start + cursor.offset;
            let room = budget.saturating_sub(before).max(1);
            let end = numbers.end.min(begin.saturating_add(room));
            segment.copy(begin..end, allowed, out);
            for (number, of) in lists.iter().enumerate() {
                if number == shortest || out.len() == before {
                    continue;
                }
                match self.find(of, of.list.keys[cursor.key])?.0 {
                    Some((segment, numbers)) => {
                        keep_common(segment.neighbours_at(numbers), before, out);
                    }
                    None => out.truncate(before),
                }
            }
            rows.resize(out.len(), cursor.key as u32);
            if end < numbers.end {
                cursor.offset += end - begin;
                self.counts.count_near(&reads);
                return Ok(());
            }
        }
        *cursor = next;
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

/// Keeps those of the sorted ids from `first` on that a list has.
fn keep_common(list: Neighbours<'_>, first: usize, ids: &mut Vec<TermId>) {
    let (mut kept, mut at) = (first, 0);
    for place in first..ids.len() {
        let id = ids[place];
        at = list.seek(at, id);
        if at == list.len() {
            break;
        }
        if list.get(at) == id {
            ids[kept] = id;
            kept += 1;
        }
    }
    ids.truncate(kept);
}

/// How many neighbours a list has.
pub(super) fn length(list: &Found<'_>) -> u64 {
    list.as_ref().map_or(0, |(_, numbers)| numbers.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jindou_model::Narrow;

    #[test]
    fn what_both_have_is_kept_in_order() {
        let list = |items| Neighbours::Run {
            base: 10,
            items: Narrow::U8(items),
        };
        let ids = |numbers: &[u64]| -> Vec<TermId> {
            numbers.iter().map(|raw| TermId::from_raw(*raw)).collect()
        };
        for (items, before, after) in [
            (
                &[1_u8, 3, 5, 9][..],
                &[11_u64, 12, 15, 19][..],
                &[11_u64, 15, 19][..],
            ),
            (&[1, 3], &[9, 11, 14, 20], &[11]),
            (&[], &[11, 12], &[]),
            (&[7], &[], &[]),
        ] {
            let mut found = ids(&[1, 2]);
            found.extend(ids(before));
            keep_common(list(items), 2, &mut found);
            let mut expected = ids(&[1, 2]);
            expected.extend(ids(after));
            assert_eq!(found, expected);
        }
    }
}
