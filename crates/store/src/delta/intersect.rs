//! What do several lists of neighbours hold in common?

use jindou_model::{Cursor, IdRanges, Lists, Neighbours, TermId};

use super::view::LayerView;

/// Rows whose lists are located together.
const ROWS_AT_ONCE: usize = 256;
/// Ids that are looked at in one call: whoever asks has a time limit.
const IDS_AT_ONCE: usize = 1 << 16;
/// Batches of ids found that end a batch of located rows early: these are located again.
const FOUND_BATCHES: usize = 4;

impl LayerView<'_> {
    /// As [`crate::Snapshot::expand`] of several lists.
    pub(super) fn intersect(
        self,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) {
        let count = lists.first().map_or(0, |list| list.keys.len());
        let mut located: Vec<Vec<Neighbours<'_>>> = vec![Vec::new(); lists.len()];
        let mut of_row = Vec::with_capacity(lists.len());
        let mut places = vec![0; lists.len()];
        while cursor.key < count && out.len() < budget {
            let end = count.min(cursor.key + ROWS_AT_ONCE);
            for (list, located) in lists.iter().zip(&mut located) {
                located.clear();
                let keys = &list.keys[cursor.key..end];
                self.locate(list.predicate, list.direction, keys, located);
            }
            let begin = cursor.key;
            let mut looked = 0;
            let most = FOUND_BATCHES * budget;
            while cursor.key < end && out.len() < most && looked < IDS_AT_ONCE {
                of_row.clear();
                of_row.extend(located.iter().map(|located| located[cursor.key - begin]));
                let from = cursor.offset;
                let to = intersect_row(&mut of_row, &mut places, allowed, from, most, out);
                rows.resize(out.len(), cursor.key as u32);
                // The shortest list is the first now.
                looked += 1 + to.unwrap_or(of_row[0].len()).saturating_sub(from);
                *cursor = match to {
                    Some(to) => Cursor {
                        key: cursor.key,
                        offset: to,
                    },
                    None => Cursor {
                        key: cursor.key + 1,
                        offset: 0,
                    },
                };
            }
            if looked >= IDS_AT_ONCE {
                return;
            }
        }
    }
}

/// What all lists hold: walks the shortest, from an index on, and gallops through the others.
/// Returns where it stopped for having looked at, or found, enough for now.
fn intersect_row(
    lists: &mut [Neighbours<'_>],
    places: &mut [usize],
    allowed: Option<&IdRanges>,
    from: usize,
    most: usize,
    out: &mut Vec<TermId>,
) -> Option<usize> {
    lists.sort_unstable_by_key(|list| list.len());
    let (driver, others) = lists.split_first()?;
    places.fill(0);
    let end = driver.len().min(from.saturating_add(IDS_AT_ONCE));
    'ids: for index in from..end {
        if out.len() >= most {
            return Some(index);
        }
        let id = driver.get(index);
        if allowed.is_some_and(|allowed| !allowed.contains(id)) {
            continue;
        }
        for (list, place) in others.iter().zip(places.iter_mut()) {
            *place = list.seek(*place, id);
            if *place >= list.len() {
                return None;
            }
            if list.get(*place) != id {
                continue 'ids;
            }
        }
        out.push(id);
    }
    (end < driver.len()).then_some(end)
}
