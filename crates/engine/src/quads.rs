//! How is a whole dataset, or some graphs of it, read quad by quad?

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use jindou_exec::{Catalogue, ExecError, GraphSource, TermSource, Terms};
use jindou_model::{GraphRef, Pattern, PredicateId, TermId, TermKind, Unavailable, key};
use oxrdf::{NamedNode, NamedOrBlankNode};

use crate::graph::StoredGraph;
use crate::results::{QuadText, TermText};
use crate::shards::Holders;
use crate::solutions::TermDecoder;
use crate::texts::ReadTexts;
use crate::{Database, EngineError};

/// Quads visited between two looks whether the store's files are whole.
pub(crate) const QUADS_BETWEEN_CHECKS: u64 = 1024;
/// Quads whose terms are read together where they are not all here.
const QUADS_AT_ONCE: usize = 4096;
/// Bytes of terms that are held of them, or those of one quad.
const MOST_TEXT_BYTES: usize = 16 << 20;
/// How long the nodes that have a graph are waited for until they are ready.
const PATIENCE: Duration = Duration::from_secs(30);

/// Graphs to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum GraphSelection {
    /// The default graph and all named graphs.
    #[default]
    All,
    /// The default graph, without the named ones.
    Default,
    /// One named graph; nothing if there is none of this name.
    Named(NamedOrBlankNode),
}

impl Database {
    /// Calls `visit` with each quad of some graphs, each once, as they are when the call begins;
    /// ends with the first error of `visit`. Gives the number of quads visited.
    ///
    /// First comes the default graph, predicate by predicate with subjects in the order of their
    /// ids, then each named graph as a whole. Memory held does not grow with the quads, but for
    /// the ids of the named graphs. A write that happens meanwhile is neither seen nor held up.
    ///
    /// ```
    /// use jindou_engine::ingest::{Progress, Source};
    /// use jindou_engine::{Database, GraphSelection, LoadOptions};
    ///
    /// let database = Database::new();
    /// let data = Source::bytes("a.ttl", "<http://e/a> <http://e/p> 1, 2 .");
    /// database.load(vec![data], &LoadOptions::default(), &Progress::default())?;
    /// let mut seen = 0;
    /// database.for_each_quad(&GraphSelection::All, |quad| {
    ///     assert_eq!(quad.predicate, "http://e/p");
    ///     seen += 1;
    ///     Ok::<(), jindou_engine::EngineError>(())
    /// })?;
    /// assert_eq!(seen, 2);
    /// # Ok::<(), jindou_engine::EngineError>(())
    /// ```
    ///
    /// # Errors
    /// The first of `visit`; [`EngineError::Corrupt`] if a file of the store lost bytes meanwhile.
    pub fn for_each_quad<E: From<EngineError>>(
        &self,
        graphs: &GraphSelection,
        visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
    ) -> Result<u64, E> {
        visit_all(self, &self.graph(), graphs, visit)
    }

    /// Calls `visit` with each quad of one graph, as [`Database::for_each_quad`]; `None`, if there
    /// is no such graph. Without a name it is the default graph, which is always there.
    ///
    /// # Errors
    /// As [`Database::for_each_quad`].
    pub fn for_each_quad_in<E: From<EngineError>>(
        &self,
        graph: Option<&NamedNode>,
        visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let stored = self.graph();
        let selection = match graph {
            None => GraphSelection::Default,
            Some(name) => GraphSelection::Named(name.clone().into()),
        };
        if let GraphSelection::Named(name) = &selection
            && find_graph(&stored, name).is_none()
        {
            return Ok(None);
        }
        visit_all(self, &stored, &selection, visit).map(Some)
    }

    /// Whether a named graph has a quad, or was declared.
    #[must_use]
    pub fn has_graph(&self, name: &NamedOrBlankNode) -> bool {
        let graph = self.graph();
        find_graph(&graph, name).is_some()
    }
}

fn visit_all<E: From<EngineError>>(
    database: &Database,
    graph: &Arc<StoredGraph>,
    graphs: &GraphSelection,
    visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    let inner = database.inner();
    inner.check_is_whole(graph)?;
    let asked = inner.shards.source_of_quads(graph)?;
    let mut visitor = Visitor {
        graph,
        holders: asked.holders,
        visit,
        visited: 0,
    };
    let outcome = match asked.terms {
        None => visitor.visit_here(&*asked.source, graphs),
        Some(terms) => visitor.visit_elsewhere(&*asked.source, graphs, terms),
    };
    outcome.map(|()| visitor.visited)
}

/// What is done with all quads of some graphs.
struct Visitor<'g, V> {
    graph: &'g Arc<StoredGraph>,
    holders: Holders,
    visit: V,
    visited: u64,
}

impl<E: From<EngineError>, V: FnMut(QuadText<'_>) -> Result<(), E>> Visitor<'_, V> {
    /// Where all terms are here.
    fn visit_here(&mut self, source: &dyn GraphSource, graphs: &GraphSelection) -> Result<(), E> {
        let graph = self.graph;
        let terms = Terms::new(graph.clone());
        let mut reader = QuadReader::new(graph, &terms, None);
        let mut outcome = Ok(());
        let mut visit = |s, p, o, g| {
            outcome = self.visit(reader.text(s, p, o, g));
            flow_of(&outcome)
        };
        let read = graph.read(|| for_each_id(source, graph, graphs, &mut visit))?;
        let _all = self.check(read)?;
        outcome
    }

    /// Where terms are at other nodes: those of many quads are read together.
    fn visit_elsewhere(
        &mut self,
        source: &dyn GraphSource,
        graphs: &GraphSelection,
        terms: Arc<dyn TermSource>,
    ) -> Result<(), E> {
        let graph = self.graph;
        let terms = Terms::new(terms);
        let mut quads = Vec::with_capacity(QUADS_AT_ONCE);
        let mut outcome = Ok(());
        let mut visit = |s, p, o, g| {
            quads.push((s, p, o, g));
            if quads.len() == QUADS_AT_ONCE {
                outcome = self.visit_some(&quads, &terms);
                quads.clear();
            }
            flow_of(&outcome)
        };
        let read = graph.read(|| for_each_id(source, graph, graphs, &mut visit))?;
        let _all = self.check(read)?;
        outcome?;
        self.visit_some(&quads, &terms)
    }

    fn visit_some(
        &mut self,
        mut quads: &[(TermId, PredicateId, TermId, TermId)],
        terms: &Terms,
    ) -> Result<(), E> {
        let graph = self.graph;
        let ids = |(s, p, o, g): &(TermId, PredicateId, TermId, TermId)| {
            [*s, graph.predicate_term(*p), *o, *g]
        };
        while !quads.is_empty() {
            let begun = Instant::now();
            terms.wait_until(move |_| begun.elapsed() > PATIENCE);
            let all: Vec<[TermId; 4]> = quads.iter().map(ids).collect();
            let read = graph.read(|| ReadTexts::of_quads(&all, MOST_TEXT_BYTES, terms))?;
            let (read, count) = self.check(read)?;
            let mut reader = QuadReader::new(graph, terms, Some(&read));
            for (s, p, o, g) in &quads[..count] {
                self.visit(reader.text(*s, *p, *o, *g))?;
            }
            quads = &quads[count..];
        }
        Ok(())
    }

    fn visit(&mut self, text: QuadText<'_>) -> Result<(), E> {
        if self.visited.is_multiple_of(QUADS_BETWEEN_CHECKS) {
            self.graph.read(|| ())?;
        }
        (self.visit)(text)?;
        self.visited += 1;
        Ok(())
    }

    /// What was read, or the error of what could not be, with the name of whoever has it.
    fn check<T>(&self, read: Result<T, Unavailable>) -> Result<T, E> {
        let failed = |why| self.holders.name(ExecError::of_unavailable(why).into());
        read.map_err(|why| E::from(failed(why)))
    }
}

fn flow_of<E>(outcome: &Result<(), E>) -> ControlFlow<()> {
    match outcome {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

fn find_graph(graph: &StoredGraph, name: &NamedOrBlankNode) -> Option<TermId> {
    let mut bytes = Vec::new();
    key::push_term(&mut bytes, name.as_ref().into());
    let id = graph.snapshot.find_name(&bytes);
    id.filter(|id| graph.has_graph(*id))
}

fn for_each_id(
    source: &dyn GraphSource,
    graph: &StoredGraph,
    graphs: &GraphSelection,
    visit: &mut jindou_model::Visit<'_>,
) -> Result<ControlFlow<()>, Unavailable> {
    let mut of_graph = |graph| visit_graph(source, graph, visit);
    match graphs {
        GraphSelection::Default => of_graph(GraphRef::Default),
        GraphSelection::Named(name) => match find_graph(graph, name) {
            Some(id) => of_graph(GraphRef::One(id)),
            None => Ok(ControlFlow::Continue(())),
        },
        GraphSelection::All => {
            let mut all = vec![GraphRef::Default];
            graph
                .snapshot
                .for_each_graph(&mut |graph| all.push(GraphRef::One(graph)));
            for graph in all {
                if of_graph(graph)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        }
    }
}

/// Visits all of one graph, as soon as those who have it are ready: until then nothing was visited.
fn visit_graph(
    source: &dyn GraphSource,
    graph: GraphRef<'_>,
    visit: &mut jindou_model::Visit<'_>,
) -> Result<ControlFlow<()>, Unavailable> {
    let begun = Instant::now();
    loop {
        match source.for_each_match(&Pattern::ALL, graph, visit) {
            Err(Unavailable::NotNow) if begun.elapsed() < PATIENCE => thread::yield_now(),
            Err(Unavailable::NotNow) => return Err(Unavailable::Gone),
            done => return done,
        }
    }
}

/// Turns ids into text. Each place has a decoder of its own, so that all four texts can be
/// borrowed at once and each decoder sees ids that are near each other.
pub(crate) struct QuadReader<'g> {
    graph: &'g StoredGraph,
    subjects: TermDecoder<'g>,
    objects: TermDecoder<'g>,
    predicate: Option<(PredicateId, String)>,
    named: Option<(TermId, Node)>,
    decoder: TermDecoder<'g>,
}

/// A node's text, kept.
enum Node {
    Iri(String),
    Blank(String),
}

impl<'g> QuadReader<'g> {
    /// One of quads of a graph, whose terms were `read` where they are not all here.
    pub(crate) fn new(
        graph: &'g Arc<StoredGraph>,
        terms: &'g Terms,
        read: Option<&'g ReadTexts>,
    ) -> Self {
        let decoder = || TermDecoder::new(graph, terms, read);
        Self {
            graph,
            subjects: decoder(),
            objects: decoder(),
            predicate: None,
            named: None,
            decoder: decoder(),
        }
    }

    pub(crate) fn text(
        &mut self,
        subject: TermId,
        predicate: PredicateId,
        object: TermId,
        graph: TermId,
    ) -> QuadText<'_> {
        if self
            .predicate
            .as_ref()
            .is_none_or(|(id, _)| *id != predicate)
        {
            let iri = match self.node(self.graph.predicate_term(predicate)) {
                Node::Iri(iri) => iri,
                Node::Blank(label) => panic!("the blank node {label} is a predicate"),
            };
            self.predicate = Some((predicate, iri));
        }
        if graph.kind() == TermKind::None {
            self.named = None;
        } else if self.named.as_ref().is_none_or(|(id, _)| *id != graph) {
            self.named = Some((graph, self.node(graph)));
        }
        let bound = "a quad has all its terms";
        QuadText {
            subject: self.subjects.text(subject).expect(bound),
            predicate: &self.predicate.as_ref().expect(bound).1,
            object: self.objects.text(object).expect(bound),
            graph: self.named.as_ref().map(|(_, node)| match node {
                Node::Iri(iri) => TermText::Iri(iri),
                Node::Blank(label) => TermText::Blank(label),
            }),
        }
    }

    fn node(&mut self, id: TermId) -> Node {
        match self.decoder.text(id).expect("the id is of this graph") {
            TermText::Iri(iri) => Node::Iri(iri.to_owned()),
            TermText::Blank(label) => Node::Blank(label.to_owned()),
            TermText::Literal { value, .. } => panic!("the literal {value:?} stands for a node"),
        }
    }
}
