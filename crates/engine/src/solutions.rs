//! Solutions of a SELECT query: as ids in batches, as text, or as terms one by one.

use std::sync::Arc;

use jindou_dictionary::{Around, BLOCK, WholeBlock};
use jindou_exec::{Execution, Forked, KeyKind, Table, Terms};
use jindou_model::{TermId, TermKind, inline, key};
use jindou_plan::physical::Var;
use jindou_store::{Snapshot, TermsDecoder};
use oxrdf::vocab::xsd;
use oxrdf::{Term, Triple};
use rustc_hash::FxHashSet;

use crate::EngineError;
use crate::graph::StoredGraph;
use crate::query::Running;
use crate::results::TermText;
use crate::texts::ReadTexts;

/// Variables that are looked through sooner than a set of them is made.
const FEW: usize = 32;

/// Solutions, found while they are read.
///
/// Dropping it ends the query.
pub struct Solutions {
    running: Running,
    names: Arc<[String]>,
    vars: Vec<Var>,
    /// Whether a later position has the variable of this one, where there are many.
    is_again: Option<Box<[bool]>>,
    /// The batch that the iterator is in, and the next of its rows.
    batch: Option<(Batch, usize)>,
}

/// Some solutions as columns of ids.
#[derive(Clone, Debug)]
pub struct Batch {
    rows: usize,
    columns: Vec<Vec<TermId>>,
}

impl Batch {
    /// Number of solutions.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The ids of the variable with this position; [`TermId::NONE`] where it is unbound.
    ///
    /// # Panics
    /// If there is no such variable.
    #[must_use]
    pub fn column(&self, position: usize) -> &[TermId] {
        &self.columns[position]
    }

    /// The ids of each variable in turn, as [`Self::column`].
    pub fn columns(&self) -> impl Iterator<Item = &[TermId]> {
        self.columns.iter().map(Vec::as_slice)
    }
}

impl Solutions {
    pub(crate) fn new(running: Running, vars: Vec<Var>) -> Self {
        let variables = &running.plan().variables;
        let names = vars
            .iter()
            .map(|var| variables[var.index()].clone())
            .collect();
        let is_again = (vars.len() > FEW).then(|| {
            let mut later = FxHashSet::default();
            let is_again = vars.iter().rev().map(|var| !later.insert(*var));
            let mut is_again: Box<[bool]> = is_again.collect();
            is_again.reverse();
            is_again
        });
        Self {
            running,
            names,
            vars,
            is_again,
            batch: None,
        }
    }

    /// The variables, without their question marks.
    #[must_use]
    pub fn variables(&self) -> &[String] {
        &self.names
    }

    /// The next solutions as ids; `None` at the end.
    ///
    /// # Errors
    /// The limit that the query met.
    pub fn next_batch(&mut self) -> Result<Option<Batch>, EngineError> {
        let Some(mut table) = self.running.next_table()? else {
            return Ok(None);
        };
        let rows = table.rows();
        let columns: Vec<Vec<TermId>> = (0..self.vars.len())
            .map(|place| self.column(&mut table, place))
            .collect();
        self.running.read_texts(columns.iter().flatten())?;
        Ok(Some(Batch { rows, columns }))
    }

    /// Takes the column of a variable, unless a later position has the same variable.
    fn column(&self, table: &mut Table, place: usize) -> Vec<TermId> {
        let var = self.vars[place];
        let is_again = match &self.is_again {
            Some(is_again) => is_again[place],
            None => self.vars[place + 1..].contains(&var),
        };
        let column = if is_again {
            table.get(var).map(<[TermId]>::to_vec)
        } else {
            table.take(var)
        };
        column.unwrap_or_else(|| vec![TermId::NONE; table.rows()])
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// What turns ids of the last batch into text.
    #[must_use]
    pub fn decoder(&self) -> TermDecoder<'_> {
        self.running.decoder()
    }

    /// Bytes written so far to temporary files for what does not fit into the query's memory.
    #[must_use]
    pub fn spilled_bytes(&self) -> u64 {
        self.running.execution.context().spilled_bytes()
    }

    /// Sub-queries that other nodes answered for it so far, and their rows.
    #[must_use]
    pub fn forked(&self) -> Forked {
        self.running.execution.context().forked()
    }

    /// The plan with the rows and the time of each step, if the query was asked to gather them.
    ///
    /// # Errors
    /// [`EngineError::NoStack`].
    pub fn profile(&self) -> Result<Option<String>, EngineError> {
        self.running.profile()
    }
}

impl Iterator for Solutions {
    type Item = Result<Solution, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((batch, row)) = &mut self.batch
                && *row < batch.rows()
            {
                let cells = batch.columns.iter().map(|column| column[*row]);
                let values = self
                    .running
                    .graph
                    .read(|| cells.map(|id| self.running.term(id)).collect());
                *row += 1;
                let values = match values {
                    Ok(values) => values,
                    Err(error) => return Some(Err(error)),
                };
                return Some(Ok(Solution {
                    names: Arc::clone(&self.names),
                    values,
                }));
            }
            match self.next_batch() {
                Ok(Some(batch)) => self.batch = Some((batch, 0)),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// One solution: a term for each variable that is bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solution {
    names: Arc<[String]>,
    values: Vec<Option<Term>>,
}

impl Solution {
    /// The term of a variable, named without its question mark.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Term> {
        self.get_index(self.names.iter().position(|known| known == name)?)
    }

    /// The term of the variable with this position.
    #[must_use]
    pub fn get_index(&self, position: usize) -> Option<&Term> {
        self.values.get(position)?.as_ref()
    }

    /// Number of variables, bound or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// True of a solution without variables.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The bound variables and their terms.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Term)> {
        self.names
            .iter()
            .zip(&self.values)
            .filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)))
    }
}

/// Turns ids of one query into text, remembering what it has just decoded.
///
/// The terms are those of the dictionary here, or what was read of one that is elsewhere.
pub struct TermDecoder<'a> {
    /// What was read, where the dictionary is not here.
    read: Option<&'a ReadTexts>,
    snapshot: &'a Snapshot,
    vertices: TermsDecoder<'a>,
    literals: TermsDecoder<'a>,
    terms: &'a Terms,
    scratch: Vec<u8>,
    lexical: String,
}

impl<'a> TermDecoder<'a> {
    pub(crate) fn new(
        graph: &'a StoredGraph,
        terms: &'a Terms,
        read: Option<&'a ReadTexts>,
    ) -> Self {
        Self {
            read,
            snapshot: &graph.snapshot,
            vertices: graph.snapshot.base().vertex_tables().decoder(),
            literals: graph.snapshot.base().literal_tables().decoder(),
            terms,
            scratch: Vec::new(),
            lexical: String::new(),
        }
    }

    /// The terms of a triple.
    ///
    /// # Panics
    /// If the ids are not those of a triple of this query.
    #[must_use]
    pub fn triple(&self, ids: [TermId; 3]) -> Triple {
        crate::triples::triple(&|id| term(self.terms, self.read, id), ids)
    }

    /// Whether a term lies in a block of the bulk load's dictionary, as those that came later do not.
    #[inline]
    pub(crate) fn has_block(&self, id: TermId) -> bool {
        if self.read.is_some() {
            return false;
        }
        let base = self.snapshot.base();
        match id.kind() {
            TermKind::Vertex => id.number() < base.vertex_tables().ground().len(),
            TermKind::Literal => id.number() < base.literal_tables().ground().len(),
            _ => false,
        }
    }

    /// The keys of the whole block of the dictionary that an id lies in, as [`TermsDecoder::block`];
    /// `None` if it lies in none, or in one that cannot be kept or read.
    pub(crate) fn block(
        &self,
        id: TermId,
        around: &Around,
        keys: &mut Vec<u8>,
        at: usize,
        ends: &mut [u32; BLOCK],
    ) -> Option<WholeBlock<'a>> {
        if !self.has_block(id) {
            return None;
        }
        let decoder = match id.kind() {
            TermKind::Vertex => &self.vertices,
            TermKind::Literal => &self.literals,
            _ => return None,
        };
        // Whatever is wrong with the block is told when its terms are read one by one.
        decoder
            .block(id.number(), around, keys, at, ends)
            .ok()
            .flatten()
    }

    /// The text of a term, until the next one is asked for; `None` where nothing is bound.
    ///
    /// # Panics
    /// If the id is of another query.
    #[inline]
    pub fn text(&mut self, id: TermId) -> Option<TermText<'_>> {
        if let Some(read) = self.read
            && matches!(id.kind(), TermKind::Vertex | TermKind::Literal)
        {
            let (key, kind) = read.key(id);
            return Some(key_text(key, kind == KeyKind::Literal));
        }
        match id.kind() {
            TermKind::None => None,
            TermKind::Vertex => {
                if let Some(key) = self.snapshot.appended_key(id) {
                    return Some(vertex_text(key));
                }
                let key = self
                    .vertices
                    .get(id.number())
                    .expect("the vertex is in the dictionary");
                Some(vertex_text(key))
            }
            TermKind::Literal => {
                if let Some(key) = self.snapshot.appended_key(id) {
                    return Some(literal_text(key));
                }
                let key = self
                    .literals
                    .get(id.number())
                    .expect("the literal is in the dictionary");
                Some(literal_text(key))
            }
            TermKind::Computed => {
                self.scratch.clear();
                let literal = self.terms.push_key(id, &mut self.scratch).expect(HERE);
                Some(key_text(&self.scratch, literal))
            }
            _ => {
                self.lexical.clear();
                assert!(
                    inline::decode_lexical(id, &mut self.lexical),
                    "an id holds a value"
                );
                let datatype = inline::datatype(id).map(|datatype| datatype.as_str());
                Some(TermText::Literal {
                    value: &self.lexical,
                    language: None,
                    datatype,
                })
            }
        }
    }
}

/// The term of an id of rows whose terms were `read`, or are here; `None` where nothing is bound.
pub(crate) fn term(terms: &Terms, read: Option<&ReadTexts>, id: TermId) -> Option<Term> {
    match (read, id.kind()) {
        (Some(read), TermKind::Vertex | TermKind::Literal) => {
            let (key, kind) = read.key(id);
            let term = match kind {
                KeyKind::Literal => key::literal(key).map(Term::from),
                KeyKind::None | KeyKind::Node => key::vertex(key),
            };
            Some(term.expect("the dictionary holds keys of terms"))
        }
        _ => terms.term(id).expect(HERE),
    }
}

/// Of terms that the query computed, and of all where the dictionary is here.
const HERE: &str = "what is here is never lost";

/// The text of a key.
///
/// # Panics
/// If the bytes are not a key.
pub(crate) fn key_text(key: &[u8], literal: bool) -> TermText<'_> {
    if literal {
        literal_text(key)
    } else {
        vertex_text(key)
    }
}

fn utf8(bytes: &[u8]) -> &str {
    simdutf8::basic::from_utf8(bytes).expect("the dictionary holds UTF-8")
}

#[inline]
fn vertex_text(key: &[u8]) -> TermText<'_> {
    let text = utf8(key);
    match text.strip_prefix("_:") {
        Some(label) => TermText::Blank(label),
        None => TermText::Iri(text),
    }
}

#[inline]
fn literal_text(key: &[u8]) -> TermText<'_> {
    // A plain string ends with the border: most literals by far.
    if let [value @ .., 0] = key {
        return TermText::Literal {
            value: utf8(value),
            language: None,
            datatype: None,
        };
    }
    let (value, language, datatype) =
        key::literal_parts(key).expect("the dictionary holds keys of literals");
    let plain = language.is_some() || datatype == xsd::STRING;
    TermText::Literal {
        value,
        language,
        datatype: (!plain).then(|| datatype.as_str()),
    }
}

/// The execution of one query and what it needs to stay alive.
impl std::fmt::Debug for Solutions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Solutions")
            .field("variables", &self.names)
            .finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn sendable<T: Send>() {}
    sendable::<Execution>();
    sendable::<Solutions>();
};
