//! The named graphs by number, and the sets of them that edges are in.
//!
//! A graph has its number from its first quad on, in the order in which graphs came, and keeps it
//! when its last quad goes: what a merge leaves alone speaks of the same graphs after it.

use std::hash::{Hash, Hasher};

use hashbrown::HashTable;
use jindou_model::TermId;
use rustc_hash::FxHasher;

use crate::StoreError;
use crate::clusters::Lists;
use crate::image::{ImageReader, ImageWriter};

/// The named graphs of one edge, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GraphList<'a> {
    One(u32),
    Many(&'a [u32]),
}

impl GraphList<'_> {
    #[inline]
    pub(crate) fn contains(self, graph: u32) -> bool {
        match self {
            Self::One(only) => only == graph,
            Self::Many(all) => all.binary_search(&graph).is_ok(),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let list = match self {
            Self::One(only) => std::slice::from_ref(only),
            Self::Many(all) => all,
        };
        list.iter().copied()
    }
}

/// All graphs that ever had quads, and sets of them. Both only grow.
///
/// The graphs of an edge are one word, its *code*: twice the number of its only graph, or twice the
/// number of a set, and one. So codes stay when graphs come.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphTable {
    /// Ids by number.
    ids: Vec<u64>,
    /// The numbers in the order of their ids; empty while the numbers are in that order themselves,
    /// as a bulk load gives them.
    by_id: Vec<u32>,
    /// Sets of several graphs, as sorted numbers.
    sets: Lists<u32>,
}

impl GraphTable {
    /// These graphs, whose ids are distinct, by number.
    pub(crate) fn new(ids: Vec<u64>, sets: Lists<u32>) -> Self {
        let mut by_id = Vec::new();
        if !ids.is_sorted() {
            by_id = (0..ids.len() as u32).collect();
            by_id.sort_unstable_by_key(|number| ids[*number as usize]);
        }
        Self { ids, by_id, sets }
    }

    /// These graphs and others: those that have no number get the next ones, by id.
    pub(crate) fn with(&self, graphs: impl IntoIterator<Item = u64>) -> Self {
        let is_new = |graph: &u64| self.number(TermId::from_raw(*graph)).is_none();
        let mut new: Vec<u64> = graphs.into_iter().filter(is_new).collect();
        new.sort_unstable();
        new.dedup();
        let mut ids = self.ids.clone();
        ids.extend(new);
        Self::new(ids, self.sets.clone())
    }

    /// How many graphs have numbers, whether they have quads or not.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The number of a graph.
    #[inline]
    pub(crate) fn number(&self, graph: TermId) -> Option<u32> {
        let raw = graph.raw();
        if self.by_id.is_empty() {
            return self.ids.binary_search(&raw).ok().map(|place| place as u32);
        }
        let id = |number: &u32| self.ids[*number as usize];
        let place = self.by_id.binary_search_by_key(&raw, id);
        place.ok().map(|place| self.by_id[place])
    }

    /// The graph of a number.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub(crate) fn id(&self, number: u32) -> TermId {
        TermId::from_raw(self.ids[number as usize])
    }

    /// The numbers in the order of the graphs' ids.
    pub(crate) fn numbers_by_id(&self) -> impl Iterator<Item = u32> + '_ {
        let own = if self.by_id.is_empty() { self.len() } else { 0 };
        (0..own as u32).chain(self.by_id.iter().copied())
    }

    /// The graphs of a code.
    ///
    /// # Panics
    /// If it is that of a set that is not there.
    #[inline]
    pub(crate) fn list(&self, code: u64) -> GraphList<'_> {
        match code & 1 {
            0 => GraphList::One((code / 2) as u32),
            _ => GraphList::Many(self.sets.get((code / 2) as usize)),
        }
    }

    /// True of a code of graphs that are there.
    pub(crate) fn is_code(&self, code: u64) -> bool {
        let limit = match code & 1 {
            0 => self.ids.len(),
            _ => self.sets.len(),
        };
        code / 2 < limit as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ids.len() * 8 + self.by_id.len() * 4 + self.sets.bytes()
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        image.words(&self.ids);
        let (offsets, items) = self.sets.parts();
        image.words(offsets);
        let items: Vec<u64> = items.iter().map(|item| u64::from(*item)).collect();
        image.words(&items);
    }

    pub(crate) fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let ids = image.words()?;
        let offsets = image.words()?;
        let items = image.words()?;
        let graphs = ids.len() as u64;
        if graphs > u64::from(u32::MAX) || items.iter().any(|number| *number >= graphs) {
            return Err(image.corrupt("the list of named graphs is broken"));
        }
        let items = items.into_iter().map(|number| number as u32).collect();
        let sets = Lists::from_parts(offsets, items).filter(|sets| {
            let mut all = (0..sets.len()).map(|set| sets.get(set));
            all.all(|set| set.is_sorted_by(|a, b| a < b))
        });
        let sets = sets.ok_or_else(|| image.corrupt("the sets of named graphs are broken"))?;
        let table = Self::new(ids, sets);
        let in_order = table.numbers_by_id().map(|number| table.id(number));
        match in_order.is_sorted_by(|a, b| a < b) {
            true => Ok(table),
            false => Err(image.corrupt("a named graph has two numbers")),
        }
    }
}

/// Gives codes to the graphs of edges: each set of several is in the table once.
pub(crate) struct GraphCoder {
    table: GraphTable,
    /// The numbers of the sets, by what is in them.
    known: HashTable<usize>,
}

fn hash_of(graphs: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    graphs.hash(&mut hasher);
    hasher.finish()
}

impl GraphCoder {
    /// Costs a look at each set of the table.
    pub(crate) fn new(table: GraphTable) -> Self {
        let sets = &table.sets;
        let mut known = HashTable::with_capacity(sets.len());
        let hash = |set: &usize| hash_of(sets.get(*set));
        for set in 0..sets.len() {
            known.insert_unique(hash(&set), set, hash);
        }
        Self { table, known }
    }

    /// The code of some graphs, by sorted numbers.
    pub(crate) fn code(&mut self, graphs: &[u32]) -> u64 {
        if let [only] = graphs {
            return 2 * u64::from(*only);
        }
        let sets = &mut self.table.sets;
        let hash = hash_of(graphs);
        if let Some(set) = self.known.find(hash, |set| sets.get(*set) == graphs) {
            return 2 * *set as u64 + 1;
        }
        let set = sets.len();
        sets.push(graphs.iter().copied());
        let rehash = |set: &usize| hash_of(sets.get(*set));
        self.known.insert_unique(hash, set, rehash);
        2 * set as u64 + 1
    }

    /// The table with the sets so far.
    pub(crate) fn table(&self) -> &GraphTable {
        &self.table
    }

    pub(crate) fn finish(self) -> GraphTable {
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_codes_stay_when_graphs_come() {
        let mut coder = GraphCoder::new(GraphTable::new(vec![30, 50], Lists::default()));
        let both = coder.code(&[0, 1]);
        let table = coder.finish().with([70, 10, 50, 10]);
        let ids: Vec<u64> = (0..4).map(|number| table.id(number).raw()).collect();
        assert_eq!(ids, [30, 50, 10, 70]);
        for (number, id) in (0..).zip(ids) {
            assert_eq!(table.number(TermId::from_raw(id)), Some(number));
        }
        assert_eq!(table.number(TermId::from_raw(31)), None);
        assert_eq!(table.numbers_by_id().collect::<Vec<_>>(), [2, 0, 1, 3]);
        let mut coder = GraphCoder::new(table);
        assert_eq!(coder.code(&[0, 1]), both);
        assert_ne!(coder.code(&[1, 3]), both);
        assert_eq!(coder.table().list(both), GraphList::Many(&[0, 1]));
        assert_eq!(coder.table().list(2 * 3), GraphList::One(3));
        assert!(coder.table().is_code(3) && !coder.table().is_code(5));
    }
}
