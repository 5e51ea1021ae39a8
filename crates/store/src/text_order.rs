//! Which ids of the dictionary are in the order of their texts?
//!
//! Literals are numbered in the order of their keys, and vertices too within each cluster. What
//! the key alone tells, whether a vertex is an IRI and a literal a plain string, is found out when
//! it is first asked for, and kept in two bits a term.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use jindou_dictionary::StringTable;
use jindou_model::{TermId, TermKind, TextKind, TextRun, key};
use oxrdf::vocab::xsd;

use crate::Base;

/// Terms of a word.
const WORD_TERMS: u64 = 16;
const BITS: u64 = 2;
/// A word of zero is not known yet.
const FIRST_KIND: u32 = 1;
const SECOND_KIND: u32 = 2;
const OTHER: u32 = 3;

/// Two bits for each string of a table.
#[derive(Default)]
pub(crate) struct TextKinds {
    words: OnceLock<Box<[AtomicU32]>>,
}

impl TextKinds {
    pub(crate) fn bytes(&self) -> usize {
        self.words.get().map_or(0, |words| size_of_val(&**words))
    }

    /// What `kind_of` gives for the key of a string that is in the table.
    #[inline]
    fn get(&self, local: u64, table: &StringTable, kind_of: fn(&[u8]) -> u32) -> u32 {
        let words = self.words.get_or_init(|| {
            let count = table.len().div_ceil(WORD_TERMS);
            (0..count).map(|_| AtomicU32::new(0)).collect()
        });
        let slot = &words[(local / WORD_TERMS) as usize];
        let mut word = slot.load(Ordering::Relaxed);
        if word == 0 {
            word = read_kinds(local - local % WORD_TERMS, table, kind_of);
            // Whoever else finds it out finds the same.
            slot.store(word, Ordering::Relaxed);
        }
        (word >> (BITS * (local % WORD_TERMS))) & OTHER
    }
}

/// The kinds of the strings of a word.
#[cold]
fn read_kinds(first: u64, table: &StringTable, kind_of: fn(&[u8]) -> u32) -> u32 {
    let mut decoder = table.decoder();
    let mut word = 0;
    for local in first..table.len().min(first + WORD_TERMS) {
        let key = decoder
            .get(local)
            .unwrap_or_else(|error| panic!("string {local} is not in the dictionary: {error}"));
        word |= kind_of(key) << (BITS * (local - first));
    }
    word
}

fn vertex_kind(key: &[u8]) -> u32 {
    if key.starts_with(b"_:") {
        SECOND_KIND
    } else {
        FIRST_KIND
    }
}

fn literal_kind(key: &[u8]) -> u32 {
    match key::literal_parts(key) {
        Some((_, None, datatype)) if datatype == xsd::STRING => FIRST_KIND,
        // A zero byte before the border could sort a value after a longer one.
        Some((value, Some(_), _)) if !value.contains('\0') => SECOND_KIND,
        Some(_) | None => OTHER,
    }
}

impl Base {
    /// The run of ids in the order of their texts that a term belongs to; `None` for literals of
    /// other kinds, and for ids that are not of a vertex or dictionary literal of this base.
    ///
    /// Costs a few loads, and the first time for sixteen terms the decoding of them.
    #[must_use]
    pub fn text_run(&self, id: TermId) -> Option<TextRun> {
        let local = id.local();
        match id.kind() {
            TermKind::Vertex if local < self.vertices.len() => {
                let cluster = self.clusters.cluster_of(id)?;
                let kind = self.vertex_kinds.get(local, &self.vertices, vertex_kind);
                Some(TextRun {
                    kind: match kind {
                        SECOND_KIND => TextKind::Blank,
                        _ => TextKind::Iri,
                    },
                    number: u32::try_from(cluster).ok()?,
                })
            }
            TermKind::Literal if local < self.literals.len() => {
                let kind = self.literal_kinds.get(local, &self.literals, literal_kind);
                let kind = match kind {
                    FIRST_KIND => TextKind::String,
                    SECOND_KIND => TextKind::LangString,
                    _ => return None,
                };
                Some(TextRun { kind, number: 0 })
            }
            _ => None,
        }
    }
}
