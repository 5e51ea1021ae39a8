//! Files -> quads: how does RDF text, in whatever format and compression, become quads handed to
//! sinks on several threads?
//!
//! [`load`] is the whole of it: it takes [`Source`]s, decompresses and parses them on a fixed
//! number of threads, and hands each quad to the [`QuadSink`] of the thread that parsed it.
//!
//! * N-Triples and N-Quads are cut into chunks at line ends and parsed in parallel by a parser of
//!   our own over borrowed slices. Lines it is not sure about go to `oxttl`, so both agree on what
//!   is accepted, by construction and by test.
//! * Turtle, TriG, RDF/XML and JSON-LD go through `oxrdfio`, one document to a thread.
//! * Blank nodes are scoped by document: see [`LoadOptions::blank_scope_start`].
//! * Memory is bounded by `threads` chunks, plus what one line or one parser needs.
//!
//! ```
//! use jindou_ingest::{LoadOptions, Progress, QuadSink, Source, load};
//! use oxrdf::QuadRef;
//!
//! struct Count(u64);
//! impl QuadSink for Count {
//!     type Error = std::convert::Infallible;
//!     fn quad(&mut self, _: QuadRef<'_>) -> Result<(), Self::Error> {
//!         self.0 += 1;
//!         Ok(())
//!     }
//! }
//!
//! let source = Source::bytes("people.nt", "<http://a> <http://knows> <http://b> .\n");
//! let (sinks, report) =
//!     load(vec![source], &LoadOptions::default(), |_| Count(0), &Progress::default())?;
//! assert_eq!(report.quads, 1);
//! assert_eq!(sinks.iter().map(|s| s.0).sum::<u64>(), 1);
//! # Ok::<(), jindou_ingest::IngestError>(())
//! ```
#![forbid(unsafe_code)]

mod blank;
mod chunk;
mod content;
mod contexts;
mod document;
mod error;
mod format;
mod iri;
mod json;
mod json_cost;
mod json_terms;
mod line;
mod lines;
mod load;
mod odd;
mod pool;
mod prefixes;
mod progress;
mod single;
mod source;
mod statements;
mod turtle;
mod xml;
mod xml_base;
mod xml_encoding;
mod xml_entities;
mod xml_literal;
mod xml_marks;
mod xml_names;
mod xml_rewrite;
mod xml_tags;

pub use contexts::Contexts;
pub use error::{IngestError, SyntaxError};
pub use format::{Compression, Format};
pub use json_cost::JsonSteps;
pub use lines::read_lines;
pub use load::{LoadOptions, Mistaken, QuadSink, Report, Share, Skipped, ThreadStart, load};
pub use odd::{Faults, Odd};
pub use prefixes::{MOST_PREFIX_BYTES, MOST_PREFIXES};
pub use progress::Progress;
pub use single::{read_document, with_parser_stack};
pub use source::{Guard, RawSource, Source};
