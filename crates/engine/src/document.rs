//! How is a document of RDF read whole, before a transaction begins?

use std::num::NonZeroUsize;

use jindou_ingest::{IngestError, LoadOptions, Progress, QuadSink, Source};
use jindou_store::StoreError;
use oxrdf::{NamedNode, Quad, QuadRef, TermRef};

use crate::EngineError;
use crate::database::Inner;

/// Bytes of a quad beside itself and the text of its object, about.
const QUAD_TEXT_BYTES: usize = 64;

/// The quads of some documents, each with blank nodes of its own. Statements that name no graph
/// are in `graph`.
///
/// # Errors
/// What is wrong with a document; if their quads need more than one query may hold.
pub(crate) fn read(
    sources: Vec<Source>,
    graph: Option<NamedNode>,
    inner: &Inner,
) -> Result<Vec<Quad>, EngineError> {
    let options = LoadOptions {
        graph,
        blank_scope_start: 0,
        threads: NonZeroUsize::MIN,
        ..LoadOptions::default()
    };
    let limit_bytes = inner.config.query_memory_bytes;
    let sink = |_| DocumentSink {
        quads: Vec::new(),
        bytes: 0,
        limit_bytes,
    };
    let loaded = jindou_ingest::load(sources, &options, sink, &Progress::default());
    let (sinks, _) = loaded.map_err(too_large)?;
    Ok(sinks.into_iter().flat_map(|sink| sink.quads).collect())
}

/// Takes a sink's own error out of the loader's.
fn too_large(error: IngestError) -> EngineError {
    match error {
        IngestError::Sink { source, file } => match source.downcast::<StoreError>() {
            Ok(error) => (*error).into(),
            Err(source) => IngestError::Sink { source, file }.into(),
        },
        error => error.into(),
    }
}

struct DocumentSink {
    quads: Vec<Quad>,
    bytes: u64,
    limit_bytes: u64,
}

impl QuadSink for DocumentSink {
    type Error = StoreError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Self::Error> {
        let text = match quad.object {
            TermRef::Literal(literal) => literal.value().len(),
            TermRef::NamedNode(node) => node.as_str().len(),
            TermRef::BlankNode(node) => node.as_str().len(),
        };
        self.bytes += (size_of::<Quad>() + text + QUAD_TEXT_BYTES) as u64;
        if self.bytes > self.limit_bytes {
            return Err(StoreError::TooLarge {
                reason: format!(
                    "the document needs more than the {} bytes that a request may hold",
                    self.limit_bytes
                ),
            });
        }
        self.quads.push(quad.into_owned());
        Ok(())
    }
}
