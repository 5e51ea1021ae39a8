//! What do several lists of neighbours hold in common?

use jindou_model::{Cursor, IdRanges, Lists, Neighbours, TermId, with_narrow};

use super::view::LayerView;

/// Rows whose lists are located together.
const ROWS_AT_ONCE: usize = 256;
/// Ids that are looked at in one call: the caller has a time limit.
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
                locate(self, list, &list.keys[cursor.key..end], located);
            }
            let begin = cursor.key;
            let mut looked = 0;
            let most = FOUND_BATCHES * budget;
            while cursor.key < end && out.len() < most && looked < IDS_AT_ONCE {
                of_row.clear();
                of_row.extend(located.iter().map(|located| located[cursor.key - begin]));
                let from = cursor.offset;
                let part = (from, most);
                let to = intersect_row(&mut of_row, &mut places, allowed, part, out);
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
    (from, most): (usize, usize),
    out: &mut Vec<TermId>,
) -> Option<usize> {
    lists.sort_unstable_by_key(|list| list.len());
    let (driver, others) = lists.split_first()?;
    places.fill(0);
    let end = driver.len().min(from.saturating_add(IDS_AT_ONCE));
    let mut others = Others {
        lists: others,
        places,
        allowed,
    };
    let walked = match *driver {
        // Mostly; then the width of the numbers is looked at once.
        Neighbours::Run { base, items } => with_narrow!(items, items => {
            let id = |item: u64| TermId::from_raw(base.wrapping_add(item));
            let ids = items[from.min(end)..end].iter().map(|item| id(u64::from(*item)));
            others.walk(ids, most, out)
        }),
        driver => others.walk((from..end).map(|index| driver.get(index)), most, out),
    };
    match walked {
        Walked::All => (end < driver.len()).then_some(end),
        Walked::Enough(count) => Some(from + count),
        Walked::NoMore => None,
    }
}

/// How a walk along the shortest list ended.
enum Walked {
    All,
    /// With enough found, after this many ids.
    Enough(usize),
    /// One of the others has nothing behind.
    NoMore,
}

/// The longer lists of a row, and how far each was searched.
struct Others<'l, 'a> {
    lists: &'l [Neighbours<'a>],
    places: &'l mut [usize],
    allowed: Option<&'l IdRanges>,
}

enum Held {
    Yes,
    No,
    /// Nor any id behind this one.
    NoMore,
}

impl Others<'_, '_> {
    /// Adds those of some rising ids that all lists hold, until `out` has `most`.
    #[inline]
    fn walk(
        &mut self,
        ids: impl Iterator<Item = TermId>,
        most: usize,
        out: &mut Vec<TermId>,
    ) -> Walked {
        for (index, id) in ids.enumerate() {
            if out.len() >= most {
                return Walked::Enough(index);
            }
            match self.hold(id) {
                Held::Yes => out.push(id),
                Held::No => {}
                Held::NoMore => return Walked::NoMore,
            }
        }
        Walked::All
    }

    #[inline]
    fn hold(&mut self, id: TermId) -> Held {
        if self.allowed.is_some_and(|allowed| !allowed.contains(id)) {
            return Held::No;
        }
        for (list, place) in self.lists.iter().zip(self.places.iter_mut()) {
            *place = list.seek(*place, id);
            if *place >= list.len() {
                return Held::NoMore;
            }
            if list.get(*place) != id {
                return Held::No;
            }
        }
        Held::Yes
    }
}

/// The lists of some keys; of one key that all have, looked up once.
fn locate<'a>(
    layer: LayerView<'a>,
    list: &Lists<'_>,
    keys: &[TermId],
    located: &mut Vec<Neighbours<'a>>,
) {
    match keys {
        [first, rest @ ..] if rest.iter().all(|key| key == first) => {
            let of_key = layer.neighbours(list.predicate, list.direction, *first);
            located.resize(keys.len(), of_key);
        }
        keys => layer.locate(list.predicate, list.direction, keys, located),
    }
}
