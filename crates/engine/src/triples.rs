//! Triples of CONSTRUCT and DESCRIBE queries.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_exec::Table;
use jindou_model::{Graphs, Pattern, TermId, TermKind};
use jindou_plan::physical::{Slot, TemplateSlot, TemplateTriple};
use oxrdf::{BlankNode, NamedOrBlankNode, Term, Triple};

use crate::EngineError;
use crate::query::Running;

/// The triples of a graph, each once, found while they are read.
pub struct Graph {
    running: Running,
    form: GraphForm,
    /// Nodes to describe, and those that were.
    open: Vec<TermId>,
    begun: HashSet<TermId>,
    /// Triples found, which may be none or repeat others.
    found: VecDeque<[TermId; 3]>,
    seen: HashSet<[TermId; 3]>,
    waiting: VecDeque<Triple>,
    solutions: u64,
    /// Bytes booked for all of these.
    booked: usize,
    done: bool,
}

/// How solutions become triples.
#[derive(Clone)]
pub(crate) enum GraphForm {
    /// By a template.
    Construct(Arc<[TemplateTriple]>),
    /// Everything about these, and about the blank nodes that are met.
    Describe(Arc<[Slot]>),
}

/// Triples made of ids at once, between two looks at the clock.
const TRIPLES_AT_ONCE: usize = 2048;

impl Graph {
    pub(crate) fn new(running: Running, form: GraphForm) -> Self {
        Self {
            running,
            form,
            open: Vec::new(),
            begun: HashSet::new(),
            found: VecDeque::new(),
            seen: HashSet::new(),
            waiting: VecDeque::new(),
            solutions: 0,
            booked: 0,
            done: false,
        }
    }

    /// Makes some more triples: of what was found, of the next node, or of the next solutions.
    fn fill(&mut self) -> Result<(), EngineError> {
        self.running.execution.context().check()?;
        if !self.found.is_empty() {
            for _ in 0..self.found.len().min(TRIPLES_AT_ONCE) {
                let found = self.found.pop_front();
                let [subject, predicate, object] = found.expect("as many were counted");
                self.push(subject, predicate, object);
            }
        } else if let Some(node) = self.open.pop() {
            self.describe(node)?;
        } else if let Some(table) = self.running.execution.next_table()? {
            self.add_solutions(&table);
        } else {
            self.done = true;
        }
        self.book()
    }

    fn add_solutions(&mut self, table: &Table) {
        for row in 0..table.rows() {
            match self.form.clone() {
                GraphForm::Construct(template) => self.construct(&template, table, row),
                GraphForm::Describe(slots) => {
                    self.open.extend(slots.iter().map(|slot| match slot {
                        Slot::Var(var) => table.value(*var, row),
                        Slot::Const(id) => self.running.execution.context().constant(*id),
                    }));
                }
            }
        }
    }

    fn book(&mut self) -> Result<(), EngineError> {
        let triples = self.seen.capacity() + self.found.capacity();
        let nodes = self.begun.capacity() + self.open.capacity();
        let held = triples * size_of::<[TermId; 3]>() + nodes * size_of::<TermId>();
        let bytes = held.max(self.booked);
        let context = self.running.execution.context();
        context.charge(bytes - self.booked)?;
        self.booked = bytes;
        Ok(())
    }

    fn construct(&mut self, template: &[TemplateTriple], table: &Table, row: usize) {
        self.solutions += 1;
        for triple in template {
            let ids = [triple.subject, triple.predicate, triple.object].map(|slot| match slot {
                TemplateSlot::Var(var) => table.value(var, row),
                TemplateSlot::Const(id) => self.running.execution.context().constant(id),
                TemplateSlot::Blank(number) => self.fresh_blank(number),
            });
            self.found.push_back(ids);
        }
    }

    /// A blank node of this solution's own.
    fn fresh_blank(&self, number: u16) -> TermId {
        let label = format!("q{:x}x{}x{number}", self.running.seed, self.solutions);
        let node = BlankNode::new_unchecked(label);
        self.running
            .execution
            .context()
            .terms()
            .intern(node.as_ref().into())
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
        let limit_bytes = self.running.memory_bytes;
        let mut ended = Ok(());
        let mut key = Vec::new();
        let flow = base.for_each_match(&pattern, Graphs::Default, &mut |s, p, o, _| {
            self.found.push_back([s, base.predicate_term(p), o]);
            if o.kind() == TermKind::Vertex {
                key.clear();
                base.push_key(o, &mut key);
                if key.starts_with(b"_:") {
                    self.open.push(o);
                }
            }
            if self.found.len().is_multiple_of(TRIPLES_AT_ONCE) {
                ended = context.check().map_err(EngineError::from);
                if (self.found.len() * size_of::<[TermId; 3]>()) as u64 > limit_bytes {
                    ended = Err(EngineError::MemoryExceeded { limit_bytes });
                }
            }
            match ended {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        debug_assert_eq!(flow.is_break(), ended.is_err());
        ended
    }

    /// Adds a triple, if it is one and was not there.
    fn push(&mut self, subject: TermId, predicate: TermId, object: TermId) {
        let terms = self.running.execution.context().terms();
        let subject_term = match terms.term(subject) {
            Some(Term::NamedNode(node)) => NamedOrBlankNode::from(node),
            Some(Term::BlankNode(node)) => node.into(),
            Some(Term::Literal(_)) | None => return,
        };
        let Some(Term::NamedNode(predicate_term)) = terms.term(predicate) else {
            return;
        };
        let Some(object_term) = terms.term(object) else {
            return;
        };
        if self.seen.insert([subject, predicate, object]) {
            self.waiting
                .push_back(Triple::new(subject_term, predicate_term, object_term));
        }
    }

    /// The plan with the rows and the time of each step, if the query was asked to gather them.
    #[must_use]
    pub fn profile(&self) -> Option<String> {
        self.running.profile()
    }
}

impl Iterator for Graph {
    type Item = Result<Triple, EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(triple) = self.waiting.pop_front() {
                return Some(Ok(triple));
            }
            if self.done {
                return None;
            }
            if let Err(error) = self.fill() {
                self.done = true;
                return Some(Err(error));
            }
        }
    }
}

impl std::fmt::Debug for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph")
            .field("triples_so_far", &self.seen.len())
            .finish_non_exhaustive()
    }
}
