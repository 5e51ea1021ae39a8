//! What can go wrong while loading, and where in which file?

use crate::format::{Compression, Format};
use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

/// An error found while loading sources. Every variant that is about a file names it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IngestError {
    /// The ending of the name says nothing about the format, and none was given.
    #[error(
        "{file}: the format is known neither by the name nor by how it begins; known endings are \
         {}, each with .gz, .zst or .bz2 after it if compressed; otherwise name the format by --format \
         or a media type ({})",
        Format::ENDINGS,
        Format::NAMES
    )]
    UnknownFormat {
        /// The name of the source.
        file: Arc<str>,
    },
    /// A format was asked for by a name that no format has.
    #[error("unknown format {name:?}; the formats are {}", Format::NAMES)]
    UnknownFormatName {
        /// The name given.
        name: String,
    },
    /// The source could not be opened or read.
    #[error("{file}: {source}")]
    Io {
        /// The name of the source.
        file: Arc<str>,
        /// What the operating system said.
        source: io::Error,
    },
    /// The source must be a regular file, and is a pipe, a device or a socket.
    #[error("{file}: it is no regular file")]
    NoRegularFile {
        /// The name of the source.
        file: Arc<str>,
    },
    /// The compressed data is damaged, cut short, or not what its name says.
    #[error("{file}: bad {compression} data: {source}")]
    Decompress {
        /// The name of the source.
        file: Arc<str>,
        /// How the source is compressed.
        compression: Compression,
        /// What the decompressor said.
        source: io::Error,
    },
    /// The text does not follow the grammar of its format.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// A line of N-Triples or N-Quads, or one token of another format, is longer than the bound.
    #[error(
        "{file}: {}a line or token is longer than the bound of {limit_bytes} bytes",
        line_prefix(*.line)
    )]
    TooLong {
        /// The name of the source.
        file: Arc<str>,
        /// The line, counted from 1, where it is known.
        line: Option<u64>,
        /// The bound, in bytes.
        limit_bytes: usize,
    },
    /// The base IRI given for a source is not an absolute IRI.
    #[error("{file}: the base IRI <{base_iri}> is not valid: {reason}")]
    BaseIri {
        /// The name of the source.
        file: Arc<str>,
        /// The base IRI given.
        base_iri: String,
        /// Why it is refused.
        reason: String,
    },
    /// The document of a context is none.
    #[error("the context <{iri}> cannot be read: {reason}")]
    Context {
        /// The IRI by which documents name it.
        iri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The operating system gives no thread to parse on.
    #[error("no thread to parse on: {source}")]
    Thread {
        /// What it said.
        source: io::Error,
    },
    /// A sink refused a quad.
    #[error("{file}: {source}")]
    Sink {
        /// The source the quad came from.
        file: Arc<str>,
        /// The sink's own error; downcast it to get the type back.
        source: Box<dyn Error + Send + Sync>,
    },
}

fn line_prefix(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Where a text breaks the grammar of its format, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The name of the source.
    pub file: Arc<str>,
    /// The line, counted from 1. For RDF/XML it is the line that the parser had reached. `None`
    /// where the parser cannot say (JSON that is well formed but not JSON-LD).
    pub line: Option<u64>,
    /// The column, counted from 1 in characters. `None` where the parser cannot say (RDF/XML).
    pub column: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
            if let Some(column) = self.column {
                write!(f, "{column}:")?;
            }
        }
        write!(f, " {}", self.reason)
    }
}

impl Error for SyntaxError {}
