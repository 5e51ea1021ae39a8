//! The side of a join that is kept in memory: which of its rows are compatible with this one?
//!
//! Rows are found by hash, by their certainly bound keys and also by their *loose* variables,
//! which may be unbound on either side: an unbound one is compatible with anything. Kept rows are
//! grouped by which loose variables they bind, and each group has a hash table for each subset of
//! these that streaming rows have turned out to bind as well, made when first asked for.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use jindou_model::TermId;
use jindou_plan::physical::Var;

use crate::ExecError;
use crate::blocks::Blocks;
use crate::rows::RowSet;
use crate::table::{Table, VarSet};

/// No further row: places are counted from 1.
const END: u32 = 0;
/// Loose variables that a hash key may hold; values of others are compared row by row.
const MOST_HASHED: usize = 16;
/// Groups of kept rows; rows that bind yet another set of loose variables share the last one.
const MOST_GROUPS: usize = 32;
/// Hash tables of one group; further sets of loose variables make do with the plain key.
const MOST_INDEXES: usize = 8;
/// Rows that are put into a hash table between two looks at the clock.
const ROWS_AT_ONCE: usize = 1 << 16;

/// Bytes of a row at most, beside its ids: in its group, and in an index beside the key's ids.
const PLACE_BYTES: usize = 32;

/// A set of loose variables, by their positions.
type Mask = u32;

/// Looks at the clock, and tells whether so many bytes may be held in all.
pub(super) type Room<'a> = &'a mut dyn FnMut(usize) -> Result<bool, ExecError>;

/// Rows kept in memory.
pub(super) struct Kept {
    keys: Vec<Var>,
    loose: Vec<Var>,
    rows: Blocks,
    groups: Vec<Group>,
    /// Candidates that were compared so far: the work that was done.
    tried: AtomicU64,
}

/// Rows that all bind the variables of `mask`, and no other ones if `exact`.
struct Group {
    mask: Mask,
    rows: Vec<u32>,
    indexes: Vec<Index>,
    /// There is memory for one index only, that by the plain key.
    plain_only: bool,
}

/// The rows of a group by the plain key and the variables of `mask`.
struct Index {
    mask: Mask,
    keys: RowSet,
    /// First place of each key in the group's rows, and the next place with the same key.
    first: Vec<u32>,
    next: Vec<u32>,
}

/// How far the rows of a streaming table have come.
#[derive(Clone, Copy, Default)]
pub(super) struct Place {
    /// The row in work.
    pub(super) row: usize,
    /// The group in work for that row.
    group: usize,
    /// Index of that group and the next candidate; `None` before the key was looked up.
    candidate: Option<(usize, u32)>,
}

/// An index that is not there: of a group of rows, by these loose variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    group: usize,
    mask: Mask,
}

/// Rows of the streaming table and rows kept that fit.
#[derive(Default)]
pub(super) struct Pairs {
    pub(super) streaming: Vec<u32>,
    pub(super) kept: Vec<u32>,
}

impl Kept {
    pub(super) fn new(keys: &[Var], loose: &[Var]) -> Self {
        Self {
            keys: keys.to_vec(),
            loose: loose.to_vec(),
            rows: Blocks::default(),
            groups: Vec::new(),
            tried: AtomicU64::new(0),
        }
    }

    /// Of the same variables, without rows.
    pub(super) fn emptied(&self) -> Self {
        Self::new(&self.keys, &self.loose)
    }

    /// Takes some more rows. All must be in before pairs are asked for.
    pub(super) fn add(&mut self, table: &Table) {
        let before = self.rows.rows();
        for row in 0..table.rows() {
            let mask = bound(&self.loose, table, row);
            let group = self.group_of(mask);
            self.groups[group].rows.push((before + row) as u32);
        }
        self.rows.push(table);
    }

    /// Gives some of the rows back, after which no pairs may be asked for; `None` if there are no
    /// more.
    pub(super) fn pop(&mut self) -> Option<Table> {
        self.groups.clear();
        self.rows.pop()
    }

    /// Bytes held, those of an index by the plain key included, made or not.
    pub(super) fn bytes(&self) -> usize {
        let groups = self.groups.iter();
        let places = groups.map(|group| group.bytes().max(self.index_bytes(group.rows.len(), 0)));
        self.rows.bytes() + places.sum::<usize>()
    }

    /// Bytes at most after these rows were taken.
    pub(super) fn bytes_with(&self, table: &Table) -> usize {
        self.rows.bytes_with(table) + self.index_bytes(self.rows.rows() + table.rows(), 0)
    }

    fn index_bytes(&self, rows: usize, mask: Mask) -> usize {
        let ids = self.keys.len() + mask.count_ones() as usize;
        rows * (ids * size_of::<TermId>() + PLACE_BYTES)
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.rows()
    }

    /// The variables that its rows have columns for.
    pub(super) fn bound(&self) -> VarSet {
        self.rows.bound()
    }

    /// Candidates compared so far.
    #[cfg(test)]
    pub(super) fn tried(&self) -> u64 {
        self.tried.load(Relaxed)
    }

    fn group_of(&mut self, mask: Mask) -> usize {
        if let Some(known) = self.groups.iter().position(|group| group.mask == mask) {
            return known;
        }
        // The empty mask is true of every row: values are then compared row by row.
        let mask = if self.groups.len() + 1 < MOST_GROUPS {
            mask
        } else {
            0
        };
        if let Some(known) = self.groups.iter().position(|group| group.mask == mask) {
            return known;
        }
        self.groups.push(Group {
            mask,
            rows: Vec::new(),
            indexes: Vec::new(),
            plain_only: false,
        });
        self.groups.len() - 1
    }

    /// Pairs of rows that fit, until the table is done, about `budget` candidates were tried, or an index is wanted
    /// that is not there.
    ///
    /// # Errors
    /// That index, where no pair was found before.
    pub(super) fn find(
        &self,
        table: &Table,
        place: &mut Place,
        budget: usize,
    ) -> Result<Pairs, Wanted> {
        let mut pairs = Pairs::default();
        let mut key = Vec::new();
        // Candidates that do not fit count too, and so do keys, so that the clock is looked at.
        let mut tried = 0;
        let mut compared = 0;
        while place.row < table.rows() && tried < budget {
            if place.group == self.groups.len() {
                *place = Place {
                    row: place.row + 1,
                    ..Place::default()
                };
                tried += 1;
                continue;
            }
            let found = match place.candidate {
                Some(candidate) => Ok(candidate),
                None => self.look_up(table, place, &mut key),
            };
            let (index, mut at) = match found {
                Ok(candidate) => candidate,
                Err(wanted) if pairs.kept.is_empty() => return Err(wanted),
                Err(_) => break,
            };
            let group = &self.groups[place.group];
            while at != END && tried < budget {
                let row = group.rows[at as usize - 1];
                if self.is_compatible(row, table, place.row) {
                    pairs.streaming.push(place.row as u32);
                    pairs.kept.push(row);
                }
                tried += 1;
                compared += 1;
                at = group.indexes[index].next[at as usize - 1];
            }
            if at == END {
                place.group += 1;
                place.candidate = None;
                tried += 1;
            } else {
                place.candidate = Some((index, at));
            }
        }
        self.tried.fetch_add(compared, Relaxed);
        Ok(pairs)
    }

    /// The index to use for a row in a group, and the first candidate there.
    fn look_up(
        &self,
        table: &Table,
        place: &Place,
        key: &mut Vec<TermId>,
    ) -> Result<(usize, u32), Wanted> {
        let mask = bound(&self.loose, table, place.row) & self.groups[place.group].mask;
        let number = self.known_index(place.group, mask)?;
        let index = &self.groups[place.group].indexes[number];
        let value = |var| table.value(var, place.row);
        push_key(&self.keys, &self.loose, index.mask, value, key);
        let first = index.keys.find(key).map_or(END, |found| index.first[found]);
        Ok((number, first))
    }

    /// The number of a group's index by the loose variables of `mask`, or of the one that must do for it.
    fn known_index(&self, group: usize, mask: Mask) -> Result<usize, Wanted> {
        let Group {
            indexes,
            plain_only,
            ..
        } = &self.groups[group];
        let known = |mask| indexes.iter().position(|index: &Index| index.mask == mask);
        let is_plain = *plain_only || indexes.len() + 1 >= MOST_INDEXES;
        let found = known(mask).or_else(|| is_plain.then(|| known(0)).flatten());
        let mask = if is_plain { 0 } else { mask };
        found.ok_or(Wanted { group, mask })
    }

    /// True if what was wanted is there by now.
    pub(super) fn has(&self, wanted: Wanted) -> bool {
        self.known_index(wanted.group, wanted.mask).is_ok()
    }

    /// Makes an index that was wanted, or where there is no room for it the one by the plain key.
    pub(super) fn make(&mut self, wanted: Wanted, room: Room<'_>) -> Result<(), ExecError> {
        let Wanted { group, mut mask } = wanted;
        let Group { indexes, rows, .. } = &self.groups[group];
        // The first index by the plain key is booked with the rows.
        if mask != 0 || !indexes.is_empty() {
            let more = self.index_bytes(rows.len(), mask);
            if !room(self.bytes() + more)? {
                mask = 0;
                self.groups[group].plain_only = true;
                self.groups[group].indexes.clear();
            }
        }
        self.make_index(group, mask, room)
    }

    fn make_index(&mut self, group: usize, mask: Mask, room: Room<'_>) -> Result<(), ExecError> {
        let count = self.groups[group].rows.len();
        self.groups[group].indexes.push(Index {
            mask,
            keys: RowSet::new(self.keys.len() + mask.count_ones() as usize),
            first: Vec::new(),
            next: vec![END; count],
        });
        let mut key = Vec::new();
        // From the last row to the first, so that a key's rows come in their order.
        let mut end = count;
        while end > 0 {
            let begin = end.saturating_sub(ROWS_AT_ONCE);
            let Group { rows, indexes, .. } = &mut self.groups[group];
            let index = indexes.last_mut().expect("the index was pushed above");
            for at in (begin..end).rev() {
                let value = |var| self.rows.value(var, rows[at] as usize);
                push_key(&self.keys, &self.loose, mask, value, &mut key);
                let place = at as u32 + 1;
                let (number, new) = index.keys.insert(&key);
                if new {
                    index.first.push(place);
                } else {
                    index.next[at] = std::mem::replace(&mut index.first[number], place);
                }
            }
            end = begin;
            // There is room: it was asked for before.
            room(self.bytes())?;
        }
        Ok(())
    }

    fn is_compatible(&self, kept: u32, table: &Table, row: usize) -> bool {
        self.loose.iter().all(|var| {
            let (a, b) = (self.rows.value(*var, kept as usize), table.value(*var, row));
            a == b || a.is_none() || b.is_none()
        })
    }

    /// Pairs of rows as one table.
    pub(super) fn merge(&self, streaming: &Table, pairs: &Pairs, keep: &VarSet) -> Table {
        let mut merged = streaming.gather(&pairs.streaming, keep);
        let bound = self.rows.bound();
        let vars = (0..streaming.width()).map(|number| Var(number as u16));
        for var in vars.filter(|var| keep.contains(*var) && bound.contains(*var)) {
            let of_kept = |row: &u32| self.rows.value(var, *row as usize);
            let column: Vec<TermId> = match merged.take(var) {
                // Where the streaming side is unbound, the kept side's value counts.
                Some(column) => column
                    .into_iter()
                    .zip(&pairs.kept)
                    .map(|(id, kept)| if id.is_none() { of_kept(kept) } else { id })
                    .collect(),
                None => pairs.kept.iter().map(of_kept).collect(),
            };
            merged.set(var, column);
        }
        merged
    }
}

impl Group {
    fn bytes(&self) -> usize {
        let indexes = self.indexes.iter().map(|index| {
            index.keys.bytes() + (index.first.capacity() + index.next.capacity()) * size_of::<u32>()
        });
        self.rows.capacity() * size_of::<u32>() + indexes.sum::<usize>()
    }
}

/// Which of the loose variables are bound in a row.
fn bound(loose: &[Var], table: &Table, row: usize) -> Mask {
    let hashed = loose.iter().take(MOST_HASHED).enumerate();
    hashed
        .filter(|(_, var)| !table.value(**var, row).is_none())
        .fold(0, |mask, (place, _)| mask | 1 << place)
}

/// The plain key of a row with these values, then its values of the loose variables of `mask`.
fn push_key(
    keys: &[Var],
    loose: &[Var],
    mask: Mask,
    value: impl Fn(Var) -> TermId,
    key: &mut Vec<TermId>,
) {
    key.clear();
    key.extend(keys.iter().map(|var| value(*var)));
    let hashed = loose.iter().take(MOST_HASHED).enumerate();
    key.extend(
        hashed
            .filter(|(place, _)| mask & (1 << place) != 0)
            .map(|(_, var)| value(*var)),
    );
}

#[cfg(test)]
#[path = "kept_tests.rs"]
mod tests;
