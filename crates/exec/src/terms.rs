//! Terms during a query: what does this id stand for, and which id has this term?

use std::sync::{Arc, Mutex};

use jindou_model::{TermId, TermKind, TextRun, inline, key};
use oxrdf::{Literal, Term, TermRef};
use rustc_hash::FxHashMap;

/// A dictionary, as the executor sees it.
pub trait TermSource: Send + Sync {
    /// Appends the key (see [`jindou_model::key`]) of a vertex, dictionary literal or predicate.
    ///
    /// # Panics
    /// If the id is of another kind or unknown: ids come from the same source.
    fn push_key(&self, id: TermId, key: &mut Vec<u8>);

    /// The id of the vertex or predicate (`literal` false) or dictionary literal (`literal`
    /// true) with this key.
    fn lookup(&self, key: &[u8], literal: bool) -> Option<TermId>;

    /// Calls `visit` with the place and the key of each of these terms, in their order: cheaper
    /// than one by one where ids that are near each other follow each other.
    ///
    /// # Panics
    /// As [`TermSource::push_key`].
    fn for_each_key(&self, ids: &[TermId], visit: &mut dyn FnMut(usize, &[u8])) {
        let mut key = Vec::new();
        for (place, id) in ids.iter().enumerate() {
            key.clear();
            self.push_key(*id, &mut key);
            visit(place, &key);
        }
    }

    /// The run of terms in the order of their ids that a term belongs to, if it is known without
    /// much work.
    fn text_run(&self, _id: TermId) -> Option<TextRun> {
        None
    }
}

/// Terms that one query computed and the store does not have.
///
/// Shared by the threads that run the query; ids are given in order of first sight.
#[derive(Default)]
pub struct ComputedTerms {
    table: Mutex<ComputedTable>,
}

/// Bytes of a computed term beside its key: counts, both tables, and the room that they keep free.
const TERM_BYTES: usize = 96;

#[derive(Default)]
struct ComputedTable {
    ids: FxHashMap<Arc<[u8]>, u32>,
    /// Key and whether it is a literal's.
    keys: Vec<(Arc<[u8]>, bool)>,
    bytes: usize,
}

impl ComputedTerms {
    fn intern(&self, key: &[u8], literal: bool) -> TermId {
        // A vertex and a literal never share a key: a literal's holds a zero byte.
        let mut table = self.lock();
        let number = match table.ids.get(key) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(table.keys.len()).expect("under 2^32 computed terms");
                let key: Arc<[u8]> = key.into();
                table.bytes += key.len() + TERM_BYTES;
                table.ids.insert(Arc::clone(&key), number);
                table.keys.push((key, literal));
                number
            }
        };
        TermId::new(TermKind::Computed, u64::from(number))
    }

    /// Appends the key of a computed term and tells whether it is a literal.
    ///
    /// # Panics
    /// If the id is not one of this query's computed terms.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> bool {
        let table = self.lock();
        let (bytes, literal) = &table.keys[id.payload() as usize];
        key.extend_from_slice(bytes);
        *literal
    }

    /// Bytes held, for the query's memory budget.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.lock().bytes
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ComputedTable> {
        self.table
            .lock()
            .expect("no thread panics while it holds the computed terms")
    }
}

/// Both directions between ids and terms for one query.
#[derive(Clone)]
pub struct Terms {
    source: Arc<dyn TermSource>,
    computed: Arc<ComputedTerms>,
}

impl Terms {
    /// The terms of `source` and those that the query computes.
    #[must_use]
    pub fn new(source: Arc<dyn TermSource>) -> Self {
        Self {
            source,
            computed: Arc::default(),
        }
    }

    /// Bytes that the query's own terms take.
    #[must_use]
    pub fn computed_bytes(&self) -> usize {
        self.computed.bytes()
    }

    /// Appends the key of any term but an inline one to `key`; tells whether it is a literal's.
    ///
    /// # Panics
    /// If the id is `NONE`, inline or of another query.
    pub fn push_key(&self, id: TermId, key: &mut Vec<u8>) -> bool {
        match id.kind() {
            TermKind::Computed => self.computed.push_key(id, key),
            kind => {
                self.source.push_key(id, key);
                kind == TermKind::Literal
            }
        }
    }

    /// Calls `visit` with the place and the key of each of these terms, and whether it is a
    /// literal's.
    ///
    /// # Panics
    /// As [`Terms::push_key`].
    pub(crate) fn for_each_key(&self, ids: &[TermId], visit: &mut dyn FnMut(usize, &[u8], bool)) {
        let is_computed = |id: &TermId| id.kind() == TermKind::Computed;
        let mut key = Vec::new();
        let mut begin = 0;
        for part in ids.chunk_by(|a, b| is_computed(a) == is_computed(b)) {
            if is_computed(&part[0]) {
                for (place, id) in part.iter().enumerate() {
                    key.clear();
                    let literal = self.computed.push_key(*id, &mut key);
                    visit(begin + place, &key, literal);
                }
            } else {
                self.source.for_each_key(part, &mut |place, key| {
                    visit(begin + place, key, part[place].kind() == TermKind::Literal);
                });
            }
            begin += part.len();
        }
    }

    /// The run of terms in the order of their ids that a term belongs to, if that is known.
    #[inline]
    pub(crate) fn text_run(&self, id: TermId) -> Option<TextRun> {
        match id.kind() {
            TermKind::Vertex | TermKind::Literal => self.source.text_run(id),
            _ => None,
        }
    }

    /// The id of a literal: inline where it fits, else the dictionary's, else the query's own.
    #[must_use]
    pub fn intern_literal(&self, literal: &Literal) -> TermId {
        let datatype = literal.datatype();
        if literal.language().is_none()
            && let Some(id) = inline::encode(literal.value(), datatype.as_str())
        {
            return id;
        }
        let mut key = Vec::new();
        key::push_literal(&mut key, literal.as_ref());
        self.intern_key(&key, true)
    }

    /// The id of any term.
    #[must_use]
    pub fn intern(&self, term: TermRef<'_>) -> TermId {
        if let TermRef::Literal(literal) = term {
            return self.intern_literal(&literal.into_owned());
        }
        let mut key = Vec::new();
        key::push_term(&mut key, term);
        self.intern_key(&key, false)
    }

    /// The id of the term with this key, which is not one that fits inline.
    #[must_use]
    pub fn intern_key(&self, key: &[u8], literal: bool) -> TermId {
        self.source
            .lookup(key, literal)
            .unwrap_or_else(|| self.computed.intern(key, literal))
    }

    /// The term of an id; `None` for [`TermId::NONE`].
    ///
    /// # Panics
    /// If the id is of another query, or the dictionary holds bytes that are no term (its
    /// checksums were right, so that is our own mistake).
    #[must_use]
    pub fn term(&self, id: TermId) -> Option<Term> {
        if id.is_none() {
            return None;
        }
        if id.is_inline() {
            let mut lexical = String::new();
            let datatype =
                inline::datatype(id).filter(|_| inline::decode_lexical(id, &mut lexical));
            let datatype = datatype.expect("the id was made by encoding a literal");
            return Some(Literal::new_typed_literal(lexical, datatype).into());
        }
        let mut bytes = Vec::new();
        let literal = self.push_key(id, &mut bytes);
        let term = if literal {
            key::literal(&bytes).map(Term::from)
        } else {
            key::vertex(&bytes)
        };
        Some(term.expect("the dictionary holds keys of terms"))
    }
}
