//! Triples of CONSTRUCT and DESCRIBE queries.

use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;

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
    seen: HashSet<[TermId; 3]>,
    waiting: VecDeque<Triple>,
    solutions: u64,
    done: bool,
}

/// How solutions become triples.
pub(crate) enum GraphForm {
    /// By a template.
    Construct(Vec<TemplateTriple>),
    /// Everything about these, and about the blank nodes that are met.
    Describe(Vec<Slot>),
}

/// Bytes that a triple in the set of those seen takes, about.
const SEEN_BYTES: u64 = 40;

impl Graph {
    pub(crate) fn new(running: Running, form: GraphForm) -> Self {
        Self {
            running,
            form,
            seen: HashSet::new(),
            waiting: VecDeque::new(),
            solutions: 0,
            done: false,
        }
    }

    /// Reads some more solutions.
    fn fill(&mut self) -> Result<(), EngineError> {
        let Some(table) = self.running.execution.next_table()? else {
            self.done = true;
            return Ok(());
        };
        let form = std::mem::replace(&mut self.form, GraphForm::Construct(Vec::new()));
        for row in 0..table.rows() {
            match &form {
                GraphForm::Construct(template) => self.construct(template, &table, row),
                GraphForm::Describe(slots) => {
                    for slot in slots {
                        let id = match slot {
                            Slot::Var(var) => table.value(*var, row),
                            Slot::Const(id) => self.running.execution.context().constant(*id),
                        };
                        self.describe(id);
                    }
                }
            }
        }
        self.form = form;
        let limit_bytes = self.running.memory_bytes;
        if self.seen.len() as u64 * SEEN_BYTES > limit_bytes {
            return Err(EngineError::MemoryExceeded { limit_bytes });
        }
        Ok(())
    }

    fn construct(&mut self, template: &[TemplateTriple], table: &Table, row: usize) {
        self.solutions += 1;
        for triple in template {
            let [subject, predicate, object] = [triple.subject, triple.predicate, triple.object]
                .map(|slot| match slot {
                    TemplateSlot::Var(var) => table.value(var, row),
                    TemplateSlot::Const(id) => self.running.execution.context().constant(id),
                    TemplateSlot::Blank(number) => self.fresh_blank(number),
                });
            self.push(subject, predicate, object);
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

    /// All triples with this subject in the default graph, and those of blank nodes behind them.
    fn describe(&mut self, id: TermId) {
        let mut open = vec![id];
        let mut found = Vec::new();
        let mut begun = HashSet::new();
        while let Some(subject) = open.pop() {
            if !begun.insert(subject) || subject.is_none() || subject.is_inline() {
                continue;
            }
            let base = &self.running.graph.base;
            let pattern = Pattern {
                subject: Some(subject),
                predicate: None,
                object: None,
            };
            let _ = base.for_each_match(&pattern, Graphs::Default, &mut |s, p, o, _| {
                found.push([s, base.predicate_term(p), o]);
                if o.kind() == TermKind::Vertex {
                    let mut key = Vec::new();
                    base.push_key(o, &mut key);
                    if key.starts_with(b"_:") {
                        open.push(o);
                    }
                }
                ControlFlow::Continue(())
            });
        }
        for [subject, predicate, object] in found {
            self.push(subject, predicate, object);
        }
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
