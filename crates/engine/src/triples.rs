//! Triples of CONSTRUCT and DESCRIBE queries: as ids in batches, or as terms one by one.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_exec::{Context, Keys, Table, Terms};
use jindou_model::{Pattern, TermId, TermKind, Unavailable};
use jindou_plan::physical::{Plan, Slot, TemplateSlot, TemplateTriple};
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};
use rustc_hash::FxHashSet;

use crate::distinct::repeating;
use crate::query::Running;
use crate::results::Names;
use crate::{EngineError, PrefixTable, TermDecoder};

/// Bytes of keys of described nodes that are read together.
const KEY_BYTES: usize = 64 << 10;

/// The triples of a graph, each once, found while they are read.
pub struct Graph {
    running: Running,
    form: GraphForm,
    /// What the query declares: names and IRIs, and what the database knows beside that.
    prefixes: Vec<(String, String)>,
    known: Arc<PrefixTable>,
    /// Nodes to describe, and those that were.
    open: Vec<TermId>,
    begun: HashSet<TermId>,
    /// Triples found by descriptions, which may repeat others; those before `taken` were read.
    found: Vec<[TermId; 3]>,
    taken: usize,
    /// Triples that others may repeat.
    seen: FxHashSet<[TermId; 3]>,
    /// Solutions of which triples are still to be made.
    solving: Option<Box<Solving>>,
    /// The batch that the iterator is in, and the next of its triples.
    batch: (Vec<[TermId; 3]>, usize),
    solutions: u64,
    triples: u64,
    /// Bytes booked for all of these.
    booked: usize,
    done: bool,
}

/// How solutions become triples.
#[derive(Clone)]
pub(crate) enum GraphForm {
    /// By a template; with each triple, whether another row or triple may make the same.
    Construct(Arc<[(TemplateTriple, bool)]>),
    /// Everything about these, and about the blank nodes that are met.
    Describe(Arc<[Slot]>),
}

/// Solutions of a CONSTRUCT and how far they are, as a template may make many triples of each.
struct Solving {
    table: Table,
    /// The next row, and the next triple of the template for it.
    row: usize,
    triple: usize,
}

/// Triples made of ids at once, between two looks at the clock.
const TRIPLES_AT_ONCE: usize = 2048;
/// Triples of a template after which a batch ends.
const TRIPLES_PER_BATCH: usize = 8 << 10;
/// Triples of a template whose terms are looked up together.
const TEMPLATE_AT_ONCE: usize = 256;
/// Bytes of an entry of a hashed set of triples.
const SEEN_BYTES: usize = size_of::<[TermId; 3]>() + 1;

impl GraphForm {
    /// By the template of a plan.
    pub(crate) fn construct(plan: &Plan, template: &[TemplateTriple]) -> Self {
        let repeating = repeating(plan, template);
        Self::Construct(template.iter().copied().zip(repeating).collect())
    }
}

impl Graph {
    pub(crate) fn new(running: Running, form: GraphForm) -> Self {
        Self {
            running,
            form,
            prefixes: Vec::new(),
            known: Arc::default(),
            open: Vec::new(),
            begun: HashSet::new(),
            found: Vec::new(),
            taken: 0,
            seen: FxHashSet::default(),
            solving: None,
            batch: (Vec::new(), 0),
            solutions: 0,
            triples: 0,
            booked: 0,
            done: false,
        }
    }

    /// The next triples as ids: subject, predicate, object; `None` at the end.
    ///
    /// # Errors
    /// The limit that the query met; there is nothing more then.
    pub fn next_batch(&mut self) -> Result<Option<Vec<[TermId; 3]>>, EngineError> {
        let mut triples = Vec::new();
        while triples.is_empty() && !self.done {
            let graph = Arc::clone(&self.running.graph);
            let filled = graph.read(|| self.fill(&mut triples));
            if let Err(error) = filled.and_then(|filled| filled) {
                self.done = true;
                return Err(self.running.holders.name(error));
            }
        }
        self.running.read_texts(triples.as_flattened().iter())?;
        self.triples += triples.len() as u64;
        Ok((!triples.is_empty()).then_some(triples))
    }

    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// Sets what [`Self::prefixes`] gives, and what else [`Self::names`] does.
    pub(crate) fn with_prefixes(
        mut self,
        prefixes: Vec<(String, String)>,
        known: Arc<PrefixTable>,
    ) -> Self {
        (self.prefixes, self.known) = (prefixes, known);
        self
    }

    /// The names by which IRIs of the triples are abbreviated: those that the query declares, then those
    /// that the database knows.
    #[must_use]
    pub fn names(&self) -> Names {
        self.known.after(&self.prefixes)
    }

    /// The prefixes that the query declares, by name, each with its IRI; of very many the first.
    #[must_use]
    pub fn prefixes(&self) -> &[(String, String)] {
        &self.prefixes
    }

    /// What turns ids into text.
    #[must_use]
    pub fn decoder(&self) -> TermDecoder<'_> {
        self.running.decoder()
    }

    /// Makes some more triples: of what was found, of the next node, or of the next solutions.
    fn fill(&mut self, triples: &mut Vec<[TermId; 3]>) -> Result<(), EngineError> {
        self.running.execution.context().check()?;
        if self.taken < self.found.len() {
            self.take_found(triples);
        } else if let Some(node) = self.open.pop() {
            self.describe(node)?;
        } else if let Some(solving) = self.solving.take() {
            self.construct(solving, triples)?;
        } else if let Some(table) = self.running.next_table()? {
            match self.form.clone() {
                GraphForm::Construct(_) => {
                    self.solving = Some(Box::new(Solving {
                        table,
                        row: 0,
                        triple: 0,
                    }));
                }
                GraphForm::Describe(slots) => self.open_nodes(&slots, &table),
            }
        } else {
            self.done = true;
        }
        self.book()
    }

    fn take_found(&mut self, triples: &mut Vec<[TermId; 3]>) {
        let end = self.found.len().min(self.taken + TRIPLES_AT_ONCE);
        let found = &self.found[self.taken..end];
        triples.extend(found.iter().filter(|found| self.seen.insert(**found)));
        self.taken = end;
        if end == self.found.len() {
            self.found.clear();
            self.taken = 0;
        }
    }

    fn open_nodes(&mut self, slots: &[Slot], table: &Table) {
        let context = self.running.execution.context();
        for row in 0..table.rows() {
            self.open.extend(slots.iter().map(|slot| match slot {
                Slot::Var(var) => table.value(*var, row),
                Slot::Const(id) => context.constant(*id),
            }));
        }
    }

    fn book(&mut self) -> Result<(), EngineError> {
        self.book_seen(self.seen.capacity())
    }

    /// Reserves what is held, with room for this many triples that others may repeat.
    fn book_seen(&mut self, seen: usize) -> Result<(), EngineError> {
        let nodes = self.begun.capacity() + self.open.capacity();
        let held = seen * SEEN_BYTES
            + self.found.capacity() * size_of::<[TermId; 3]>()
            + nodes * size_of::<TermId>();
        let bytes = held.max(self.booked);
        let context = self.running.execution.context();
        context.charge(bytes - self.booked)?;
        self.booked = bytes;
        Ok(())
    }

    /// Some triples of a template for some rows, without those that are none or were there.
    fn construct(
        &mut self,
        mut at: Box<Solving>,
        triples: &mut Vec<[TermId; 3]>,
    ) -> Result<(), EngineError> {
        let GraphForm::Construct(template) = self.form.clone() else {
            unreachable!("solutions wait for a template only");
        };
        let context = Arc::clone(self.running.execution.context());
        let mut test = TripleTest::new(context.terms());
        while at.row < at.table.rows() && triples.len() < TRIPLES_PER_BATCH {
            let end = template.len().min(at.triple + TEMPLATE_AT_ONCE);
            let part = &template[at.triple..end];
            let is_whole = part.len() == template.len();
            let rows = match is_whole {
                true => (TRIPLES_PER_BATCH / part.len().max(1)).max(1),
                false => 1,
            };
            let rows = at.row..at.table.rows().min(at.row + rows);
            let repeating = part.iter().filter(|(_, repeats)| *repeats).count();
            self.reserve_seen(repeating * rows.len())?;
            let slots: Vec<_> = part
                .iter()
                .map(|(triple, repeats)| {
                    let slots = [triple.subject, triple.predicate, triple.object];
                    let sources = slots.map(|slot| Source::of(slot, &at.table, &context));
                    (sources, *repeats)
                })
                .collect();
            for row in rows.clone() {
                // The first part of a template begins a solution.
                self.solutions += u64::from(at.triple == 0);
                for (slots, repeats) in &slots {
                    let ids = slots.map(|source| match source {
                        Source::Column(column) => column[row],
                        Source::Constant(id) => id,
                        Source::Blank(number) => self.fresh_blank(number),
                    });
                    let is_triple = test.is_triple(ids);
                    if is_triple.map_err(|why| context.without_term(why))?
                        && (!repeats || self.seen.insert(ids))
                    {
                        triples.push(ids);
                    }
                }
            }
            (at.row, at.triple) = match end == template.len() {
                true => (rows.end, 0),
                false => (at.row, end),
            };
            context.check()?;
        }
        if at.row < at.table.rows() {
            self.solving = Some(at);
        }
        Ok(())
    }

    /// Makes room for more triples that others may repeat; their memory is reserved before.
    fn reserve_seen(&mut self, more: usize) -> Result<(), EngineError> {
        let capacity = self.seen.capacity();
        if capacity - self.seen.len() < more {
            // Until the old ones have moved, both tables are there.
            let grown = 2 * capacity.max(more);
            self.book_seen(capacity + grown)?;
            self.seen.reserve(more);
        }
        Ok(())
    }

    /// A blank node of this solution's own.
    fn fresh_blank(&self, number: u16) -> TermId {
        let label = format!("q{:x}x{}x{number}", self.running.seed, self.solutions);
        let node = BlankNode::new_unchecked(label);
        self.running
            .execution
            .context()
            .terms()
            .intern_fresh(node.as_ref())
    }

    /// All triples with this subject in the default graph; blank nodes behind them come next.
    fn describe(&mut self, subject: TermId) -> Result<(), EngineError> {
        if subject.is_none() || subject.is_inline() || !self.begun.insert(subject) {
            return Ok(());
        }
        let base = &self.running.graph.snapshot;
        let context = self.running.execution.context();
        let pattern = Pattern {
            subject: Some(subject),
            predicate: None,
            object: None,
        };
        let others =
            self.seen.capacity() * SEEN_BYTES + self.begun.capacity() * size_of::<TermId>();
        let mut booked = self.booked;
        let mut ended = Ok(());
        let first = self.found.len();
        let flow = context.for_each_of_default_graph(&pattern, &mut |s, p, o, _| {
            self.found.push([s, base.predicate_term(p), o]);
            if self.found.len().is_multiple_of(TRIPLES_AT_ONCE) {
                // With room for as many more, each with a node.
                let more = size_of::<[TermId; 3]>() + size_of::<TermId>();
                let bytes = others + 2 * self.found.len() * more;
                let charged = context.charge(bytes.saturating_sub(booked));
                booked = booked.max(bytes);
                ended = charged.and_then(|()| context.check());
            }
            match ended {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        self.booked = booked;
        let flow = flow?;
        debug_assert_eq!(flow.is_break(), ended.is_err());
        ended?;
        let objects = self.found[first..].iter().map(|[_, _, object]| *object);
        let objects = objects.filter(|object| object.kind() == TermKind::Vertex);
        let objects: Vec<TermId> = objects.collect();
        for objects in objects.chunks(TRIPLES_AT_ONCE) {
            let (mut keys, mut done) = (Keys::default(), 0);
            while done < objects.len() {
                keys.clear();
                let read = (context.terms()).push_keys(&objects[done..], KEY_BYTES, &mut keys);
                let read = read.map_err(|why| context.without_term(why))?;
                let are_blank = keys.iter().map(|(key, _)| key.starts_with(b"_:"));
                let of_keys = objects[done..].iter().zip(are_blank);
                self.open.extend(of_keys.filter(|of| of.1).map(|of| of.0));
                done += read;
            }
            context.check()?;
        }
        Ok(())
    }

    /// The plan with the rows and the time of each step, if the query was asked to gather them.
    ///
    /// # Errors
    /// [`EngineError::NoStack`].
    pub fn profile(&self) -> Result<Option<String>, EngineError> {
        self.running.profile()
    }
}

impl Iterator for Graph {
    type Item = Result<Triple, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.1 == self.batch.0.len() {
            match self.next_batch() {
                Ok(triples) => self.batch = (triples?, 0),
                Err(error) => return Some(Err(error)),
            }
        }
        let (triples, next) = &mut self.batch;
        let ids = triples[*next];
        *next += 1;
        let running = &self.running;
        Some(running.graph.read(|| triple(&|id| running.term(id), ids)))
    }
}

/// The terms of a triple.
///
/// # Panics
/// If the ids are not those of a triple.
pub(crate) fn triple(
    term: &dyn Fn(TermId) -> Option<Term>,
    [subject, predicate, object]: [TermId; 3],
) -> Triple {
    let subject = match term(subject) {
        Some(Term::NamedNode(node)) => NamedOrBlankNode::from(node),
        Some(Term::BlankNode(node)) => node.into(),
        Some(Term::Literal(_)) | None => unreachable!("subjects are nodes"),
    };
    let Some(Term::NamedNode(predicate)) = term(predicate) else {
        unreachable!("predicates are IRIs");
    };
    let object = term(object).expect("objects are bound");
    Triple::new(subject, predicate, object)
}

/// Where a term of a template's triple comes from, for the rows of one table.
#[derive(Clone, Copy)]
enum Source<'a> {
    Column(&'a [TermId]),
    Constant(TermId),
    Blank(u16),
}

impl<'a> Source<'a> {
    fn of(slot: TemplateSlot, table: &'a Table, context: &Context) -> Self {
        match slot {
            TemplateSlot::Var(var) => match table.get(var) {
                Some(column) => Self::Column(column),
                None => Self::Constant(TermId::NONE),
            },
            TemplateSlot::Const(id) => Self::Constant(context.constant(id)),
            TemplateSlot::Blank(number) => Self::Blank(number),
        }
    }
}

/// Tells which ids make a triple.
struct TripleTest<'a> {
    terms: &'a Terms,
    /// The predicate that was looked at last, and whether it is one.
    predicate: (TermId, bool),
    key: Vec<u8>,
}

impl<'a> TripleTest<'a> {
    fn new(terms: &'a Terms) -> Self {
        Self {
            terms,
            predicate: (TermId::NONE, false),
            key: Vec::new(),
        }
    }

    #[inline]
    fn is_triple(
        &mut self,
        [subject, predicate, object]: [TermId; 3],
    ) -> Result<bool, Unavailable> {
        if self.predicate.0 != predicate {
            self.predicate = (predicate, self.is_iri(predicate)?);
        }
        Ok(self.predicate.1 && self.is_node(subject)? && !object.is_none())
    }

    #[inline]
    fn is_node(&mut self, id: TermId) -> Result<bool, Unavailable> {
        match id.kind() {
            TermKind::Vertex => Ok(true),
            TermKind::Computed => {
                self.key.clear();
                let is_literal = self.terms.push_key(id, &mut self.key)?;
                Ok(!is_literal)
            }
            _ => Ok(false),
        }
    }

    fn is_iri(&mut self, id: TermId) -> Result<bool, Unavailable> {
        if !self.is_node(id)? {
            return Ok(false);
        }
        self.key.clear();
        self.terms.push_key(id, &mut self.key)?;
        Ok(!self.key.starts_with(b"_:"))
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("triples_so_far", &self.triples)
            .finish_non_exhaustive()
    }
}
