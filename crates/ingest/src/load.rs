//! Load these sources into those sinks: what may be asked for, and what is told afterwards?

use crate::chunk::Sizes;
use crate::contexts::Contexts;
use crate::error::{IngestError, SyntaxError};
use crate::format::Format;
use crate::odd::{Faults, Odd};
use crate::pool;
use crate::progress::Progress;
use crate::source::{self, Source};
use oxrdf::{NamedNode, QuadRef};
use std::error::Error;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::Arc;

/// Takes the quads that one thread parses.
pub trait QuadSink: Send {
    /// Why a quad may be refused. It ends the load.
    type Error: Error + Send + Sync + 'static;

    /// Takes one quad. Terms are borrowed from the input where they hold no escapes, and live
    /// only during the call. Blank nodes have their outside names (see
    /// [`LoadOptions::blank_scope_start`]); language tags are in lower case.
    ///
    /// # Errors
    /// Whatever keeps the sink from going on; [`load`] returns it as [`IngestError::Sink`].
    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Self::Error>;
}

/// A function that each thread calls when it begins, to set its priority for instance.
#[derive(Clone)]
pub struct ThreadStart(pub Arc<dyn Fn() + Send + Sync>);

impl ThreadStart {
    /// This function.
    #[must_use]
    pub fn new(start: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }
}

impl fmt::Debug for ThreadStart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ThreadStart")
    }
}

/// Which share of the sources is read, where several processes read the same ones together: each quad is of one share.
///
/// Uncompressed files of N-Triples and N-Quads are cut at lines, in ranges of about the same length; of other sources
/// each is of one share as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The number of the share, from 0 on.
    pub number: u32,
    /// How many there are.
    pub of: u32,
}

impl Share {
    /// The bytes of a file of which it has the lines that begin there.
    pub(crate) fn range(self, len: u64) -> Range<u64> {
        let border = |number: u32| {
            let bytes = u128::from(len) * u128::from(number) / u128::from(self.of.max(1));
            u64::try_from(bytes).unwrap_or(len).min(len)
        };
        border(self.number)..border(self.number + 1)
    }

    /// True if a source that is not cut is of it.
    pub(crate) fn has(self, source: usize) -> bool {
        source as u64 % u64::from(self.of.max(1)) == u64::from(self.number)
    }
}

/// How to load.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// How many threads parse, and how many sinks are made. Default: as many as the machine runs
    /// at once.
    pub threads: NonZeroUsize,
    /// Whether to go on after syntax errors. Quads are kept whose IRIs or language tags their
    /// standards refuse, if they can be read ([`Odd`]). A bad line of N-Triples or N-Quads is left
    /// out; a Turtle or TriG document goes on after the end of the bad statement (a bad `@prefix` or
    /// `@base` is left out like any, so what follows may mean something else); the rest of an RDF/XML
    /// or JSON-LD document is dropped. Other errors end the load all the same. Default: no.
    pub lenient: bool,
    /// The scope number of the first source; the others follow. `_:x` in the source with scope 7
    /// reaches the sinks as `f7_x`, a node without a label as `f7-0`, `f7-1`, ... Keep the
    /// numbers of one store apart from load to load: the next free one is in
    /// [`Report::next_blank_scope`].
    pub blank_scope_start: u64,
    /// The graph for statements that name none, in any format. Default: the default graph.
    pub graph: Option<NamedNode>,
    /// How many skipped errors [`Report::errors`] describes at most.
    pub max_reported_errors: usize,
    /// About how many bytes of lines a thread takes at a time.
    pub chunk_bytes: NonZeroUsize,
    /// A line of N-Triples or N-Quads that does not fit in a chunk may be about as long as this.
    pub max_line_bytes: usize,
    /// The contexts that documents of JSON-LD may name. Default: those that are known to begin with.
    pub contexts: Contexts,
    /// What each thread that parses calls first. Default: nothing.
    pub thread_start: Option<ThreadStart>,
    /// The share of the sources that is read. Default: all.
    pub share: Option<Share>,
}

impl LoadOptions {
    /// The default of [`chunk_bytes`](Self::chunk_bytes).
    pub const CHUNK_BYTES: usize = 1 << 20;
    /// The default of [`max_line_bytes`](Self::max_line_bytes).
    pub const MAX_LINE_BYTES: usize = 256 << 20;
    /// The default of [`max_reported_errors`](Self::max_reported_errors).
    pub const MAX_REPORTED_ERRORS: usize = 100;
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            lenient: false,
            blank_scope_start: 0,
            graph: None,
            max_reported_errors: Self::MAX_REPORTED_ERRORS,
            chunk_bytes: NonZeroUsize::new(Self::CHUNK_BYTES).expect("it is not zero"),
            max_line_bytes: Self::MAX_LINE_BYTES,
            contexts: Contexts::default(),
            thread_start: None,
            share: None,
        }
    }
}

/// What a load came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Quads handed to sinks, repeats included.
    pub quads: u64,
    /// Bytes taken from the sources, before decompression.
    pub bytes_read: u64,
    /// Syntax errors passed over; 0 unless [`LoadOptions::lenient`].
    pub skipped: u64,
    /// The first of them by source and place, at most [`LoadOptions::max_reported_errors`].
    pub errors: Vec<Skipped>,
    /// All of them, by what is wrong.
    pub faults: Faults,
    /// What a lenient load kept though its standard refuses it.
    pub odd: Odd,
    /// The sources that are in another format than their name says, in their order.
    pub mistaken: Vec<Mistaken>,
    /// The first scope number this load has not used.
    pub next_blank_scope: u64,
    /// Names and the IRIs that documents declare for them: each name once, with the IRI of the first
    /// source that has it, in the order of the sources; of very many the first.
    pub prefixes: Vec<(String, String)>,
}

/// A source that is in another format than its name or media type says, by its first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistaken {
    /// The name of the source.
    pub file: Arc<str>,
    /// What its name says.
    pub likely: Format,
    /// In what it was read.
    pub format: Format,
}

/// A syntax error passed over in a lenient load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where and what.
    pub error: SyntaxError,
    /// Whether the rest of the document was dropped too, because its format cannot be taken up
    /// again after an error.
    pub rest_dropped: bool,
}

/// Parses all `sources` on [`LoadOptions::threads`] threads and hands each quad to the sink of the
/// thread that parsed it; `make_sink` makes the sink of thread 0, 1, ... In which order, and to
/// which sink, quads come is left open, except that the quads of one document in Turtle, TriG,
/// RDF/XML or JSON-LD come to one sink in the order of the document.
///
/// Holds about one chunk of text a thread, besides what the sinks hold and what parsers need:
/// JSON-LD is held whole, Turtle up to a token, and a document's anonymous blank nodes take 32
/// bytes each, up to a bound.
///
/// # Errors
/// The first error by source and place among those found before all threads stopped; within
/// one document that is the first of the document, on any number of threads. Formats, files and
/// base IRIs are checked before anything is parsed. Sinks are dropped on error, and may have got
/// quads by then.
pub fn load<S: QuadSink>(
    sources: Vec<Source>,
    options: &LoadOptions,
    mut make_sink: impl FnMut(usize) -> S,
    progress: &Progress,
) -> Result<(Vec<S>, Report), IngestError> {
    let sources = sources
        .into_iter()
        .map(source::prepare)
        .collect::<Result<Vec<_>, _>>()?;
    let next_blank_scope = options.blank_scope_start + sources.len() as u64;
    let total: Option<u64> = sources.iter().map(|s| s.size).sum();
    let shares = options.share.map_or(1, |share| u64::from(share.of.max(1)));
    progress.set_total(total.map(|total| total / shares));
    let bytes_before = progress.bytes_read();
    let sizes = Sizes {
        chunk_bytes: options.chunk_bytes.get(),
        max_line_bytes: options.max_line_bytes,
    };
    let sinks = (0..options.threads.get()).map(&mut make_sink).collect();
    let (sinks, outcome) = pool::run(sources, options, sizes, sinks, progress)?;
    let report = Report {
        quads: outcome.quads,
        bytes_read: progress.bytes_read() - bytes_before,
        skipped: outcome.skipped,
        errors: outcome.errors,
        faults: outcome.faults,
        odd: outcome.odd,
        mistaken: outcome.mistaken,
        next_blank_scope,
        prefixes: outcome.prefixes.into_vec(),
    };
    Ok((sinks, report))
}
