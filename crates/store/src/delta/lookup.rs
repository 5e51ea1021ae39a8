//! Which ids have these keys?
//!
//! A lookup waits for memory several times. Many keys are looked up together, table by table, so that
//! their loads overlap.

use jindou_model::TermId;

use super::snapshot::Snapshot;
use crate::StoreError;
use crate::tables::TermTables;

/// The key of a vertex or a literal of the dictionary, with its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TermKey<'k> {
    bytes: &'k [u8],
    is_literal: bool,
    hash: u64,
}

impl<'k> TermKey<'k> {
    /// A key as [`jindou_model::key`] makes it.
    #[must_use]
    pub fn new(bytes: &'k [u8], is_literal: bool) -> Self {
        Self::hashed(bytes, is_literal, jindou_dictionary::hash(bytes))
    }

    /// The same, given the hash of the key.
    #[must_use]
    pub fn hashed(bytes: &'k [u8], is_literal: bool, hash: u64) -> Self {
        Self {
            bytes,
            is_literal,
            hash,
        }
    }

    /// Equal keys have equal ones.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.hash
    }
}

impl Snapshot {
    /// The ids of the terms with these keys, one for each; `None` where there is no such term.
    ///
    /// A key costs a fraction of what [`Snapshot::find_node`] costs where tables are larger than
    /// the caches.
    #[must_use]
    pub fn find_keys(&self, keys: &[TermKey<'_>]) -> Vec<Option<TermId>> {
        let mut ids = vec![None; keys.len()];
        for is_literal in [false, true] {
            let places = (0..keys.len()).filter(|place| keys[*place].is_literal == is_literal);
            let places: Vec<usize> = places.collect();
            let of_base = self.find_in_base(is_literal, &places, keys);
            for (place, number) in places.into_iter().zip(of_base) {
                let key = keys[place];
                let term = match is_literal {
                    false => TermId::vertex,
                    true => TermId::literal,
                };
                ids[place] = match number.map(term) {
                    Some(id) if self.is_living(id) => Some(id),
                    // Another table may have it again.
                    Some(_) if is_literal => self.find_literal(key.bytes),
                    Some(_) => self.find_node(key.bytes),
                    None => self.find_appended(key),
                };
            }
        }
        ids
    }

    /// The ids of the terms with these keys, one for each, new ones where they are not known; the
    /// snapshot knows them from then on.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] after 2^32 terms.
    pub fn intern_keys(&mut self, keys: &[TermKey<'_>]) -> Result<Vec<TermId>, StoreError> {
        let found = self.find_keys(keys);
        let mut ids = Vec::with_capacity(keys.len());
        for (key, found) in keys.iter().zip(found) {
            // One of the keys before it may be the same.
            ids.push(match found.or_else(|| self.find_appended(*key)) {
                Some(id) => id,
                None => self.push_term(*key)?,
            });
        }
        Ok(ids)
    }

    /// What the tables of the base have, forgotten ones too.
    fn find_in_base(
        &self,
        is_literal: bool,
        places: &[usize],
        keys: &[TermKey<'_>],
    ) -> Vec<Option<u64>> {
        let tables: &TermTables = match is_literal {
            false => &self.base().vertices,
            true => &self.base().literals,
        };
        let hashes: Vec<u64> = places.iter().map(|place| keys[*place].hash).collect();
        let keys: Vec<&[u8]> = places.iter().map(|place| keys[*place].bytes).collect();
        tables.lookup_batch(&hashes, &keys)
    }

    /// Of the terms that came since the base, appends those that have this hash.
    pub(super) fn push_appended_candidates(
        &self,
        hash: u64,
        is_literal: bool,
        ids: &mut Vec<TermId>,
    ) {
        let (kept, known) = (self.kept(), self.known());
        let [kept, known] = [kept, known].map(|counts| match is_literal {
            false => counts.vertices,
            true => counts.literals,
        });
        let id_of = |number| match is_literal {
            false => TermId::vertex(number),
            true => TermId::literal(number),
        };
        let mut push = |is_known: bool, number| {
            let id = id_of(number);
            if is_known && self.is_living(id) {
                ids.push(id);
            }
        };
        let appended = self.appended_terms();
        match is_literal {
            false => appended.each_vertex_of(hash, |place, number| push(place < kept, number)),
            true => appended.each_literal_of(hash, |number| push(number < kept, number)),
        }
        if let Some(pending) = self.pending_terms() {
            pending.each_of(hash, is_literal, |place, number| {
                push(place < known, number);
            });
        }
    }

    fn find_appended(&self, key: TermKey<'_>) -> Option<TermId> {
        match key.is_literal {
            false => self.find_appended_node(key.hash, key.bytes),
            true => self.find_appended_literal(key.hash, key.bytes),
        }
    }

    fn push_term(&mut self, key: TermKey<'_>) -> Result<TermId, StoreError> {
        match key.is_literal {
            false => self.push_node(key.hash, key.bytes),
            true => self.push_literal(key.hash, key.bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Merged;
    use crate::bulk::build;
    use crate::delta::Rebase;
    use jindou_model::{SnapshotNumber, TermKind};
    use proptest::prelude::*;

    /// A key of either kind.
    fn key(number: u8) -> (Vec<u8>, bool) {
        match number % 2 {
            0 => (format!("http://e/{number}").into_bytes(), false),
            _ => (format!("{number}\0").into_bytes(), true),
        }
    }

    fn of(keys: &[(Vec<u8>, bool)]) -> Vec<TermKey<'_>> {
        let keys = keys.iter();
        keys.map(|(key, is_literal)| TermKey::new(key, *is_literal))
            .collect()
    }

    proptest! {
        #[test]
        fn many_keys_are_found_as_each_alone_and_none_gets_two_ids(
            rounds in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..40), 0_u8..4, any::<u8>()),
                1..8,
            ),
        ) {
            let mut snapshot = Snapshot::of_base(build(Vec::new(), 0).unwrap(), 1, SnapshotNumber(1));
            let all: Vec<_> = (0..=255).map(key).collect();
            for (new, then, forgotten) in rounds {
                let new: Vec<_> = new.into_iter().map(key).collect();
                let ids = snapshot.intern_keys(&of(&new)).unwrap();
                prop_assert_eq!(&snapshot.intern_keys(&of(&new)).unwrap(), &ids);
                for ((key, is_literal), id) in new.iter().zip(&ids) {
                    let mut found = Vec::new();
                    snapshot.push_key(*id, &mut found);
                    let is_found_literal = id.kind() == TermKind::Literal;
                    prop_assert_eq!((&found, is_found_literal), (key, *is_literal));
                }
                if then > 0 {
                    snapshot.keep_terms();
                    let gone = ids.into_iter().filter(|id| id.number() % 3 == u64::from(forgotten) % 3);
                    snapshot.forget_terms(&gone.collect::<Vec<_>>());
                }
                if then > 1 {
                    snapshot.close_extents();
                    let merged = Merged::new(snapshot.clone(), Vec::new()).unwrap();
                    snapshot = Rebase::new(merged, &snapshot).apply(&snapshot);
                }
                let alone = all.iter().map(|(key, is_literal)| match is_literal {
                    false => snapshot.find_node(key),
                    true => snapshot.find_literal(key),
                });
                let alone = alone.collect::<Vec<_>>();
                prop_assert_eq!(&snapshot.find_keys(&of(&all)), &alone);
                for (key, id) in of(&all).into_iter().zip(alone) {
                    let mut candidates = Vec::new();
                    snapshot.push_candidates(key.hash, key.is_literal, &mut candidates);
                    prop_assert!(id.is_none_or(|id| candidates.contains(&id)));
                    prop_assert!(candidates.iter().all(|id| snapshot.knows(*id) && snapshot.is_living(*id)));
                }
            }
        }
    }
}
