//! How are many small documents read, one after the other, without a pool of threads for each?
//!
//! The caller's thread parses them. It needs the stack that parsers of nested documents need:
//! [`with_parser_stack`] gives it one.

use crate::contexts::Contexts;
use crate::document::{DocumentContext, DocumentTally, read};
use crate::error::IngestError;
use crate::load::QuadSink;
use crate::pool::PARSER_STACK_BYTES;
use crate::progress::Progress;
use crate::source::{Source, prepare};
use oxrdf::GraphNameRef;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;

/// Reads one document of Turtle, TriG, RDF/XML or JSON-LD on the calling thread, up to its first
/// error. `_:x` reaches the sink as `fN_x`, where N is `blank_scope`. Quads come in the order of the
/// document, each before more of the text is read than the parser needs for it.
///
/// # Errors
/// Those of [`load`](crate::load).
///
/// # Panics
/// If the format is one of lines, for which there is [`read_lines`](crate::read_lines).
pub fn read_document<S: QuadSink>(
    source: Source,
    blank_scope: u64,
    sink: &mut S,
) -> Result<(), IngestError> {
    let source = prepare(source)?;
    let (name, base_iri) = (Arc::clone(&source.name), source.base_iri.clone());
    let progress = Progress::default();
    let opened = source.open(&progress)?;
    let format = opened.format;
    assert!(!format.is_line_based(), "lines have a reader of their own");
    let context = DocumentContext {
        file: &name,
        base_iri: base_iri.as_deref(),
        scope: blank_scope,
        default_graph: GraphNameRef::DefaultGraph,
        lenient: false,
        max_described: 0,
        contexts: &Contexts::default(),
        progress: &progress,
    };
    let mut tally = DocumentTally::default();
    read(format, opened, &context, sink, || false, &mut tally)
}

/// Does something on a thread with the stack that [`read_document`] needs, and waits for it.
///
/// # Errors
/// [`IngestError::Thread`].
pub fn with_parser_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, IngestError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("jindou-parse".to_owned())
            .stack_size(PARSER_STACK_BYTES)
            .spawn_scoped(scope, work)
            .map_err(|source| IngestError::Thread { source })?;
        Ok(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;
    use oxrdf::QuadRef;
    use std::convert::Infallible;

    struct Lines(Vec<String>);

    impl QuadSink for Lines {
        type Error = Infallible;

        fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), Infallible> {
            self.0.push(quad.to_string());
            Ok(())
        }
    }

    #[test]
    fn documents_are_read_one_after_the_other() {
        let mut sink = Lines(Vec::new());
        let text = "@prefix : <http://e/> . _:a :p [] .";
        for scope in [3, 4] {
            let source = Source::bytes("s", text).with_format(Format::Turtle);
            let read = with_parser_stack(|| read_document(source, scope, &mut sink));
            read.expect("a thread starts").expect("it is Turtle");
        }
        assert_eq!(
            sink.0,
            ["_:f3_a <http://e/p> _:f3-0", "_:f4_a <http://e/p> _:f4-0"]
        );
        let source = Source::bytes("s", "<http://e/a> .").with_format(Format::Turtle);
        let error = read_document(source, 0, &mut sink).unwrap_err();
        assert!(error.to_string().starts_with("s:1:"), "{error}");
    }
}
