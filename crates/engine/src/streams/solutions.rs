//! Solutions that are kept from one instant to the next: which are there, and until when?
//!
//! Where what reads them needs some of their columns only, and takes equal rows once with their
//! number, these are kept beside them: then an instant costs what comes and goes, however many
//! solutions there are.

use std::collections::BTreeMap;
use std::hash::Hasher as _;
use std::sync::Arc;

use hashbrown::HashTable;
use jindou_exec::MaterializedRows;
use jindou_model::TermId;
use rustc_hash::FxHasher;

/// A set of rows, each with the first instant at which it is not there any more.
///
/// An insertion and an expiry cost a hash lookup each, whatever else is there.
#[derive(Default)]
pub(super) struct Solutions {
    rows: Arc<MaterializedRows>,
    expires: Vec<i64>,
    /// The rounds in which rows were inserted last.
    rounds: Vec<u32>,
    round: u32,
    /// Numbers of rows by the hashes of their values.
    index: HashTable<u32>,
    /// Hashes of rows by the instants at which they expire; a row that came again meanwhile has a later
    /// one.
    due: BTreeMap<i64, Vec<u64>>,
    counted: Option<Counted>,
}

/// What solutions have in some of their columns, each combination once, with its number.
struct Counted {
    /// The columns.
    columns: Box<[usize]>,
    rows: Arc<MaterializedRows>,
    /// Numbers of rows by the hashes of their values.
    index: HashTable<u32>,
}

/// The last instant: what is there then is there for ever.
const FOR_EVER: i64 = i64::MAX;

impl Solutions {
    /// None yet; `counted` are the columns in which equal ones are given once.
    pub(super) fn new(columns: usize, counted: Option<&[usize]>) -> Self {
        let rows = MaterializedRows {
            columns: vec![Vec::new(); columns],
            rows: 0,
            counts: None,
        };
        Self {
            rows: rows.into(),
            counted: counted.map(Counted::new),
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.expires.len()
    }

    /// About the bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        // Values, expiry, number and hash, and what tables leave free.
        let row = self.rows.columns.len() * size_of::<TermId>() + 4 * size_of::<u64>();
        2 * row * self.len() + self.counted.as_ref().map_or(0, Counted::bytes)
    }

    /// What whoever reads them is given: the rows as they are now, or what they have in the columns that
    /// are counted.
    pub(super) fn given(&self) -> &Arc<MaterializedRows> {
        match &self.counted {
            Some(counted) => &counted.rows,
            None => &self.rows,
        }
    }

    /// Begins a round: a row that is inserted several times in one expires at the same instant each
    /// time.
    pub(super) fn begin_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Inserts a row; one that is there stays at least as long as this one would. When it expires is
    /// asked once in a round.
    pub(super) fn insert<E>(
        &mut self,
        row: &[TermId],
        expires_at: impl FnOnce() -> Result<i64, E>,
    ) -> Result<(), E> {
        let hash = hash_of(row.iter().copied());
        let is_it = |number: &u32| is_row(&self.rows, *number as usize, row);
        let found = self.index.find(hash, is_it).map(|number| *number as usize);
        if found.is_some_and(|number| self.rounds[number] == self.round) {
            return Ok(());
        }
        let expires_at = expires_at()?;
        match found {
            Some(number) => {
                self.rounds[number] = self.round;
                let expires = &mut self.expires[number];
                if *expires >= expires_at {
                    return Ok(());
                }
                *expires = expires_at;
            }
            None => self.push(hash, row, expires_at),
        }
        if expires_at < FOR_EVER {
            self.due.entry(expires_at).or_default().push(hash);
        }
        Ok(())
    }

    fn push(&mut self, hash: u64, row: &[TermId], expires_at: i64) {
        let number = u32::try_from(self.len()).expect("rows are bounded by their bytes");
        let rows = Arc::make_mut(&mut self.rows);
        for (column, id) in rows.columns.iter_mut().zip(row) {
            column.push(*id);
        }
        rows.rows += 1;
        if let Some(counted) = &mut self.counted {
            counted.add(&self.rows, number as usize);
        }
        self.expires.push(expires_at);
        self.rounds.push(self.round);
        let rows = &self.rows;
        let rehash = |number: &u32| hash_at(rows, *number as usize);
        self.index.insert_unique(hash, number, rehash);
    }

    /// Removes the rows that are not there at an instant any more.
    pub(super) fn expire(&mut self, instant_ms: i64) {
        while let Some(entry) = self.due.first_entry()
            && *entry.key() <= instant_ms
        {
            for hash in entry.remove() {
                self.remove_expired(hash, instant_ms);
            }
        }
    }

    /// Removes a row of this hash that is not there any more, if there is one.
    fn remove_expired(&mut self, hash: u64, instant_ms: i64) {
        let (rows, expires) = (&self.rows, &self.expires);
        // A table may ask of rows with other hashes, too.
        let is_over = |number: &u32| {
            let number = *number as usize;
            expires[number] <= instant_ms && hash_at(rows, number) == hash
        };
        // Another row with the same hash that is over, too, has an entry of its own.
        let Ok(found) = self.index.find_entry(hash, is_over) else {
            return;
        };
        let (number, _) = found.remove();
        let place = number as usize;
        if let Some(counted) = &mut self.counted {
            counted.remove(&self.rows, place);
        }
        swap_remove(&mut self.rows, &mut self.index, place);
        self.expires.swap_remove(place);
        self.rounds.swap_remove(place);
    }
}

impl Counted {
    fn new(columns: &[usize]) -> Self {
        let rows = MaterializedRows {
            columns: vec![Vec::new(); columns.len()],
            rows: 0,
            counts: Some(Vec::new()),
        };
        Self {
            columns: columns.into(),
            rows: rows.into(),
            index: HashTable::new(),
        }
    }

    /// About the bytes that they take.
    fn bytes(&self) -> usize {
        // Values, count, number.
        let row = self.columns.len() * size_of::<TermId>() + 2 * size_of::<u64>();
        2 * row * self.rows.rows
    }

    /// The hash of what a solution has, and its row if there is one.
    fn find(&self, solutions: &MaterializedRows, number: usize) -> (u64, Option<usize>) {
        let values = || (self.columns.iter()).map(|column| solutions.columns[*column][number]);
        let hash = hash_of(values());
        let is_it = |row: &u32| {
            let row = *row as usize;
            values().eq(self.rows.columns.iter().map(|column| column[row]))
        };
        let found = self.index.find(hash, is_it);
        (hash, found.map(|row| *row as usize))
    }

    fn add(&mut self, solutions: &MaterializedRows, number: usize) {
        let (hash, found) = self.find(solutions, number);
        let rows = Arc::make_mut(&mut self.rows);
        let counts = rows.counts.get_or_insert_default();
        if let Some(row) = found {
            counts[row] += 1;
            return;
        }
        counts.push(1);
        for (column, from) in rows.columns.iter_mut().zip(&self.columns) {
            column.push(solutions.columns[*from][number]);
        }
        let row = u32::try_from(rows.rows).expect("there are no more than solutions");
        rows.rows += 1;
        let rehash = |row: &u32| hash_at(rows, *row as usize);
        self.index.insert_unique(hash, row, rehash);
    }

    fn remove(&mut self, solutions: &MaterializedRows, number: usize) {
        let (hash, found) = self.find(solutions, number);
        let row = found.expect("what a solution has is counted");
        let counts = Arc::make_mut(&mut self.rows).counts.get_or_insert_default();
        counts[row] -= 1;
        if counts[row] > 0 {
            return;
        }
        counts.swap_remove(row);
        let is_it = |other: &u32| *other as usize == row;
        let entry = self.index.find_entry(hash, is_it);
        entry.expect("all rows are in the index").remove();
        swap_remove(&mut self.rows, &mut self.index, row);
    }
}

/// Removes a row that its index has no more; the last one takes its place.
fn swap_remove(rows: &mut Arc<MaterializedRows>, index: &mut HashTable<u32>, place: usize) {
    let last = rows.rows - 1;
    if place < last {
        let is_last = |number: &u32| *number as usize == last;
        let moved = index.find_mut(hash_at(rows, last), is_last);
        *moved.expect("all rows are in the index") = place as u32;
    }
    let rows = Arc::make_mut(rows);
    for column in &mut rows.columns {
        column.swap_remove(place);
    }
    rows.rows = last;
}

fn is_row(rows: &MaterializedRows, number: usize, row: &[TermId]) -> bool {
    let values = rows.columns.iter().map(|column| column[number]);
    values.eq(row.iter().copied())
}

fn hash_at(rows: &MaterializedRows, number: usize) -> u64 {
    hash_of(rows.columns.iter().map(|column| column[number]))
}

fn hash_of(row: impl Iterator<Item = TermId>) -> u64 {
    let mut hasher = FxHasher::default();
    row.for_each(|id| hasher.write_u64(id.raw()));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// The rows, each with its count where it has one.
    fn sorted(rows: &MaterializedRows) -> Vec<Vec<u64>> {
        let row = |number: usize| {
            let ids = rows.columns.iter().map(|column| column[number].number());
            let count = rows.counts.as_ref().map(|counts| counts[number]);
            ids.chain(count).collect()
        };
        let mut sorted: Vec<Vec<u64>> = (0..rows.rows).map(row).collect();
        sorted.sort_unstable();
        sorted
    }

    /// What rows have in some columns, each combination with its number.
    fn counted(rows: &[Vec<u64>], columns: &[usize]) -> Vec<Vec<u64>> {
        let mut counts: BTreeMap<Vec<u64>, u64> = BTreeMap::new();
        for row in rows {
            let values = columns.iter().map(|column| row[*column]).collect();
            *counts.entry(values).or_default() += 1;
        }
        let counts = counts.into_iter();
        let with_count = counts.map(|(mut values, count)| {
            values.push(count);
            values
        });
        with_count.collect()
    }

    #[test]
    fn rows_are_there_until_the_latest_of_their_ends() {
        for columns in [None, Some(&[1][..]), Some(&[1, 0]), Some(&[])] {
            follow_a_model(columns, &FEW);
            follow_a_model(columns, &MANY);
        }
    }

    struct Churn {
        instants: i64,
        /// At an instant.
        most_rows: u64,
        values: [u64; 2],
        lifetime: u64,
        /// More are made anew.
        kept: usize,
    }

    const FEW: Churn = Churn {
        instants: 2_000,
        most_rows: 6,
        values: [9, 5],
        lifetime: 30,
        kept: 30,
    };
    /// Of which some share what an index remembers of their hashes.
    const MANY: Churn = Churn {
        instants: 60,
        most_rows: 600,
        values: [400, 50],
        lifetime: 10,
        kept: usize::MAX,
    };

    fn follow_a_model(columns: Option<&[usize]>, churn: &Churn) {
        let mut solutions = Solutions::new(2, columns);
        let mut model: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
        let mut seed = 7_u64;
        let mut random = move |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % most
        };
        for instant in 0..churn.instants {
            solutions.expire(instant);
            model.retain(|_, expires| *expires > instant);
            for _ in 0..random(churn.most_rows) {
                let row = churn.values.map(&mut random);
                let until = match random(40) {
                    0 => FOR_EVER,
                    _ => instant + 1 + random(churn.lifetime) as i64,
                };
                solutions.begin_round();
                let inserted: Result<(), ()> =
                    solutions.insert(&row.map(TermId::vertex), || Ok(until));
                inserted.expect("there is no error");
                let expires = model.entry(row.to_vec()).or_insert(until);
                *expires = until.max(*expires);
            }
            // What is handed out is as it was then.
            let handed_out = (instant % 7 == 0).then(|| Arc::clone(solutions.given()));
            let rows: Vec<Vec<u64>> = model.keys().cloned().collect();
            assert_eq!(sorted(&solutions.rows), rows, "instant {instant}");
            if let Some(columns) = columns {
                let counted = counted(&rows, columns);
                assert_eq!(sorted(solutions.given()), counted, "instant {instant}");
            }
            if model.len() > churn.kept {
                solutions = Solutions::new(2, columns);
                model.clear();
            }
            drop(handed_out);
        }
    }
}
