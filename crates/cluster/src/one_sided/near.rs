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

/// Where the list of a key lies.
#[derive(Clone, Copy, Default)]
pub(super) struct Found<'a> {
    /// None of a key of which no list was loaded.
    segment: Option<&'a Segment>,
    /// Its neighbours, by their numbers.
    begin: usize,
    end: usize,
    is_remote: bool,
}

impl<'a> Found<'a> {
    /// How many neighbours it has.
    pub(super) fn length(&self) -> usize {
        self.end - self.begin
    }

    /// Its neighbours.
    pub(super) fn neighbours(&self) -> Neighbours<'a> {
        let at = |segment: &'a Segment| segment.neighbours_at(self.begin..self.end);
        self.segment.map_or(Neighbours::NONE, at)
    }
}

impl OneSided {
    /// Where the list of a key lies.
    // In its place at each caller: what goes back in memory piece by piece, and is read from there at once, waits.
    #[inline(always)]
    fn find<'a>(&self, of: &ReadLists<'a>, key: TermId) -> Result<Found<'a>, NotRead> {
        let shard = self.shards.owner(key);
        let segment = of.segment(shard).and_then(|segment| segment.near());
        let Some(segment) = segment else {
            return Ok(Found::default());
        };
        // What a peer says is not taken for granted.
        let Some(Range { start, end }) = segment.find(key) else {
            return Err(self.malformed(of, key));
        };
        Ok(Found {
            segment: Some(segment),
            begin: start,
            end,
            is_remote: self.is_of_other(shard),
        })
    }

    #[cold]
    fn malformed(&self, of: &ReadLists<'_>, key: TermId) -> NotRead {
        self.not_read(&FabricError::Malformed("bounds of a list"), of, &[key])
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
        let mut found = [Found::default(); AHEAD];
        'all: while cursor.key < keys.len() && out.len() < budget {
            let ahead = &keys[cursor.key..keys.len().min(cursor.key + AHEAD)];
            for (place, key) in found.iter_mut().zip(ahead) {
                *place = self.find(of, *key)?;
            }
            for list in &found[..ahead.len()] {
                if let Some(segment) = list.segment {
                    let begin = list.begin + cursor.offset;
                    let room = budget.saturating_sub(out.len()).max(1);
                    let end = list.end.min(begin.saturating_add(room));
                    segment.copy(begin..end, allowed, out);
                    rows.resize(out.len(), cursor.key as u32);
                    if list.is_remote {
                        reads.count(segment, end - begin);
                    }
                    if end < list.end {
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
        let mut walked = Found::default();
        let mut shortest = 0;
        for (number, of) in lists.iter().enumerate() {
            let list = self.find(of, of.list.keys[cursor.key])?;
            if let Some(segment) = list.segment
                && list.is_remote
            {
                reads.count(segment, list.length());
            }
            if number == 0 || list.length() < walked.length() {
                (walked, shortest) = (list, number);
            }
        }
        let next = Cursor {
            key: cursor.key + 1,
            offset: 0,
        };
        if let Some(segment) = walked.segment {
            let before = out.len();
            let begin = walked.begin + cursor.offset;
            let room = budget.saturating_sub(before).max(1);
            let end = walked.end.min(begin.saturating_add(room));
            segment.copy(begin..end, allowed, out);
            for (number, of) in lists.iter().enumerate() {
                if number == shortest || out.len() == before {
                    continue;
                }
                let list = self.find(of, of.list.keys[cursor.key])?;
                keep_common(list.neighbours(), before, out);
            }
            rows.resize(out.len(), cursor.key as u32);
            if end < walked.end {
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
            let list = self.find(of, *key)?;
            if let Some(segment) = list.segment
                && list.is_remote
            {
                reads.count(segment, if are_read { list.length() } else { 0 });
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
