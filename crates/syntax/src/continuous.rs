//! What does a continuous query say besides its query?
//!
//! A continuous query is a [`Query`] with windows of streams beside its dataset, and perhaps a
//! header that registers it. RSP-QL, C-SPARQL and the form of the Wukong+S paper give the same
//! tree; `docs/streams.md` has their grammar.

use crate::tree::{Iri, Query, Span};

/// The IRI of the function `timestamp` of C-SPARQL.
pub const TIMESTAMP: &str = "http://larkc.eu/csparql/sparql/jena/ext#timestamp";

/// A continuous query.
#[derive(Clone, Debug, PartialEq)]
pub struct Registration<'t> {
    /// From the first token to the last.
    pub span: Span,
    /// The name that the header gives it; none if there is no header.
    pub name: Option<CatalogueName<'t>>,
    /// What it is registered as.
    pub kind: RegistrationKind,
    /// COMPUTED EVERY.
    pub every: Option<Duration>,
    /// Which results are sent, if the text says so.
    pub output: Option<Output>,
    /// The windows, in the order of the text; at most [`crate::MAX_WINDOWS`].
    pub windows: Vec<Window<'t>>,
    /// FROM and FROM NAMED with a bare name and no window.
    pub graphs: CatalogueGraphs<'t>,
    /// The query, whose dataset has the graphs that are named by IRIs and have no window.
    pub query: Query<'t>,
}

/// What a continuous query is registered as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegistrationKind {
    /// REGISTER QUERY, or no header: it returns results.
    #[default]
    Query,
    /// REGISTER STREAM, RSTREAM, ISTREAM or DSTREAM: its results are a stream.
    Stream,
}

/// Which results are sent each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// RSTREAM: all of them.
    RStream,
    /// ISTREAM: those that the time before did not have.
    IStream,
    /// DSTREAM: those that only the time before had.
    DStream,
}

/// A name without prefix and brackets, which the catalogue resolves: letters, digits, `_` and
/// `-`, and no keyword of SPARQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BareName<'t> {
    /// The name.
    pub span: Span,
    /// As it is written: case matters.
    pub name: &'t str,
}

/// The name of a query, a stream or a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogueName<'t> {
    /// An IRI.
    Iri(Iri<'t>),
    /// A bare name.
    Bare(BareName<'t>),
}

/// Stored graphs by their bare names.
///
/// [`Element::BareGraph`](crate::tree::Element::BareGraph) matches those of either list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CatalogueGraphs<'t> {
    /// Merged into the default graph.
    pub default: Vec<BareName<'t>>,
    /// Those with NAMED.
    pub named: Vec<BareName<'t>>,
}

/// A window of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window<'t> {
    /// From FROM to the bracket that closes.
    pub span: Span,
    /// How patterns reach it.
    pub role: WindowRole<'t>,
    /// Of which stream it is.
    pub stream: CatalogueName<'t>,
    /// What it holds.
    pub extent: Extent,
}

/// How patterns reach a window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowRole<'t> {
    /// FROM STREAM: merged into the default graph.
    Default,
    /// FROM NAMED STREAM, or FROM NAMED and a window: GRAPH and the name of the stream.
    Graph,
    /// FROM and a window, without STREAM: both, as Wukong+S has it.
    DefaultAndGraph,
    /// FROM NAMED WINDOW: WINDOW and this name, which no other window has.
    Named(Iri<'t>),
}

/// What a window holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// `[RANGE 10s STEP 1s]`: what came in the last range of time.
    Time {
        /// RANGE.
        range: Duration,
        /// STEP.
        step: Option<Duration>,
    },
    /// `[RANGE 10s TUMBLING]`: as before, with the range as the step.
    Tumbling {
        /// RANGE.
        range: Duration,
    },
    /// `[TRIPLES 100 STEP 10]`: the last triples.
    Count {
        /// TRIPLES; at least one.
        triples: u64,
        /// STEP, in triples; at least one.
        step: Option<u64>,
    },
}

/// A length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration {
    /// All of it: unit and datatype included.
    pub span: Span,
    /// In milliseconds, from 1 to 2^63 - 1.
    pub ms: u64,
}
