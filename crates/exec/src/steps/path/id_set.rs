//! Which ids has a search seen?

use std::collections::HashMap;

use jindou_model::{TermId, TermKind};
use rustc_hash::{FxBuildHasher, FxHashSet};

/// Ids up to which a hash set is smaller than pages of bits.
const SMALL: usize = 512;
/// Bits of an id that number it within its page.
const PAGE_BITS: u32 = 12;
const WORDS: usize = 1 << (PAGE_BITS - 6);

type Page = Box<[u64; WORDS]>;

/// A set of ids: hashed while it is small, then the vertices, which are numbered densely, as
/// bits in pages.
#[derive(Default)]
pub(super) struct IdSet {
    hashed: FxHashSet<TermId>,
    pages: Option<HashMap<u64, Page, FxBuildHasher>>,
}

impl IdSet {
    /// Adds an id; true if it is new.
    pub(super) fn insert(&mut self, id: TermId) -> bool {
        match &mut self.pages {
            Some(pages) if id.kind() == TermKind::Vertex => set_bit(pages, id),
            Some(_) => self.hashed.insert(id),
            None => {
                let is_new = self.hashed.insert(id);
                if self.hashed.len() > SMALL {
                    self.make_pages();
                }
                is_new
            }
        }
    }

    pub(super) fn contains(&self, id: TermId) -> bool {
        match &self.pages {
            Some(pages) if id.kind() == TermKind::Vertex => {
                let (page, word, bit) = place(id);
                pages
                    .get(&page)
                    .is_some_and(|page| page[word] & (1 << bit) != 0)
            }
            _ => self.hashed.contains(&id),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let page = size_of::<[u64; WORDS]>() + 2 * size_of::<(u64, Page)>();
        let pages = self.pages.as_ref().map_or(0, HashMap::len);
        self.hashed.capacity() * (size_of::<TermId>() + 1) + pages * page
    }

    fn make_pages(&mut self) {
        let mut pages = HashMap::default();
        self.hashed.retain(|id| {
            let is_vertex = id.kind() == TermKind::Vertex;
            if is_vertex {
                set_bit(&mut pages, *id);
            }
            !is_vertex
        });
        self.pages = Some(pages);
    }
}

/// Page, word and bit of an id.
fn place(id: TermId) -> (u64, usize, u32) {
    let raw = id.raw();
    let within = raw & ((1 << PAGE_BITS) - 1);
    (
        raw >> PAGE_BITS,
        (within >> 6) as usize,
        (within & 63) as u32,
    )
}

fn set_bit(pages: &mut HashMap<u64, Page, FxBuildHasher>, id: TermId) -> bool {
    let (page, word, bit) = place(id);
    let word = &mut pages.entry(page).or_insert_with(|| Box::new([0; WORDS]))[word];
    let is_new = *word & (1 << bit) == 0;
    *word |= 1 << bit;
    is_new
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_set_of_any_size_holds_what_was_put_in() {
        let mut set = IdSet::default();
        let mut model = BTreeSet::new();
        let mut state = 1_u64;
        for _ in 0..6000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let local = (state >> 33) % 20_000;
            let id = match state >> 62 {
                0 => TermId::literal(local % 100),
                1 => TermId::vertex(local),
                _ => TermId::vertex(local),
            };
            assert_eq!(set.insert(id), model.insert(id), "{id:?}");
        }
        for local in 0..20_000 {
            for id in [
                TermId::literal(local),
                TermId::vertex(local),
                TermId::vertex(local),
            ] {
                assert_eq!(set.contains(id), model.contains(&id), "{id:?}");
            }
        }
        assert!(set.bytes() > 0);
    }
}
