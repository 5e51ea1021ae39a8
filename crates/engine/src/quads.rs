//! How is a whole dataset, or some graphs of it, read quad by quad?

use std::ops::ControlFlow;
use std::sync::Arc;

use jindou_exec::{Catalogue, Terms};
use jindou_model::{GraphRef, Pattern, PredicateId, TermId, TermKind, key};
use oxrdf::{NamedNode, NamedOrBlankNode};

use crate::graph::StoredGraph;
use crate::results::{QuadText, TermText};
use crate::solutions::TermDecoder;
use crate::{Database, EngineError};

/// Quads visited between two looks whether the store's files are whole.
pub(crate) const QUADS_BETWEEN_CHECKS: u64 = 1024;

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
        visit_all(&self.graph(), graphs, visit)
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
        visit_all(&stored, &selection, visit).map(Some)
    }

    /// Whether a named graph has a quad, or was declared.
    #[must_use]
    pub fn has_graph(&self, name: &NamedOrBlankNode) -> bool {
        let graph = self.graph();
        find_graph(&graph, name).is_some()
    }
}

fn visit_all<E: From<EngineError>>(
    graph: &Arc<StoredGraph>,
    graphs: &GraphSelection,
    mut visit: impl FnMut(QuadText<'_>) -> Result<(), E>,
) -> Result<u64, E> {
    let terms = Terms::new(graph.clone());
    let mut reader = QuadReader::new(graph, &terms);
    let mut visited = 0_u64;
    let mut outcome = Ok(());
    let mut visit = |s, p, o, g| {
        let text = reader.text(s, p, o, g);
        outcome = match visited.is_multiple_of(QUADS_BETWEEN_CHECKS) {
            true => graph.read(|| ()).map_err(E::from),
            false => Ok(()),
        }
        .and_then(|()| visit(text));
        match outcome {
            Ok(()) => {
                visited += 1;
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        }
    };
    let _ = graph.read(|| for_each_id(graph, graphs, &mut visit))?;
    outcome.map(|()| visited)
}

fn find_graph(graph: &StoredGraph, name: &NamedOrBlankNode) -> Option<TermId> {
    let mut bytes = Vec::new();
    key::push_term(&mut bytes, name.as_ref().into());
    graph.find(&bytes, false).filter(|id| graph.has_graph(*id))
}

fn for_each_id(
    graph: &Arc<StoredGraph>,
    graphs: &GraphSelection,
    visit: &mut jindou_model::Visit<'_>,
) -> ControlFlow<()> {
    let all = Pattern {
        subject: None,
        predicate: None,
        object: None,
    };
    let graph_of = graph;
    let graph = &graph_of.snapshot;
    match graphs {
        GraphSelection::Default => graph.for_each_match(&all, GraphRef::Default, visit),
        GraphSelection::Named(name) => match find_graph(graph_of, name) {
            Some(id) => graph.for_each_match(&all, GraphRef::One(id), visit),
            None => ControlFlow::Continue(()),
        },
        GraphSelection::All => {
            graph.for_each_match(&all, GraphRef::Default, visit)?;
            let mut named = Vec::new();
            graph.for_each_graph(&mut |graph| named.push(graph));
            for id in named {
                graph.for_each_match(&all, GraphRef::One(id), visit)?;
            }
            ControlFlow::Continue(())
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
    pub(crate) fn new(graph: &'g Arc<StoredGraph>, terms: &'g Terms) -> Self {
        let decoder = || TermDecoder::new(graph, terms, None);
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
