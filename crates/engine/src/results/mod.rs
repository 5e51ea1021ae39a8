//! How are results written: terms, solutions, booleans and graphs, as text or as columns?
//!
//! Every writer appends to a `Vec<u8>` that the caller owns, drains and reuses. Terms arrive as
//! borrowed text, or a writer is given a query and finds, and writes, all of its answer, with the
//! help of other threads where it is large.
//!
//! ```
//! use jindou_engine::results::{SolutionsFormat, SolutionsWriter, TermText};
//!
//! let mut out = Vec::new();
//! let mut writer = SolutionsWriter::new(SolutionsFormat::Tsv, &["s", "name"]);
//! writer.start(&mut out)?;
//! writer.row(&mut out, [Some(TermText::Iri("http://example.org/a")), None])?;
//! writer.finish(&mut out)?;
//! assert_eq!(out, b"?s\t?name\n<http://example.org/a>\t\n");
//! # Ok::<(), jindou_engine::results::ResultsError>(())
//! ```

mod boolean;
mod columnar;
#[cfg(test)]
mod columnar_tests;
mod columns;
mod continuous;
mod continuous_columns;
mod escape;
mod format;
mod gathered;
mod graph;
mod json_ld;
mod memory;
mod names;
mod negotiate;
mod pen;
mod prefixed;
#[cfg(test)]
mod prefixed_tests;
mod rows;
mod solutions;
mod stage;
mod style;
mod table;
mod term;
#[cfg(test)]
mod tests;
mod tree;
mod xml_names;

use crate::EngineError;

/// What a writer that is given a query holds at the most besides its output, apart from terms that
/// are longer; what it holds beyond that is booked with the query.
pub const WRITER_BYTES: usize = memory::Size::Small.bytes();

pub use boolean::write_boolean;
pub use continuous::{TooLong, result_id, result_json, result_members, unsent_json};
pub use continuous_columns::{RESULT_COLUMNS_BYTES, ResultColumns};
pub use format::{BooleanFormat, GraphFormat, SolutionsFormat};
pub use graph::GraphWriter;
pub use names::Names;
pub use negotiate::{Offer, negotiate};
pub use solutions::SolutionsWriter;
pub use term::{QuadText, TermText, write_term};

/// What a call of [`SolutionsWriter::advance`] or [`GraphWriter::advance`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// Whether the query has to be asked for more before there is more to write: what was written
    /// so far should leave, if the next rows may be long in coming.
    pub waits: bool,
}

/// Why the answer to a query could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The query ended.
    #[error(transparent)]
    Query(#[from] EngineError),
    /// The format cannot hold the answer.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

/// Why a result could not be written in the format asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResultsError {
    /// XML 1.0 has no way to write this character, not even as a reference. Nothing is put in
    /// its place, since that would be another value.
    #[error(
        "the result holds the character U+{:04X}, which XML 1.0 cannot carry; ask for JSON",
        u32::from(*.character)
    )]
    NotXml {
        /// The character.
        character: char,
    },
    /// A profile can only be a member of a JSON document.
    #[error("a profile is part of results in JSON only, not in {}", .format.name())]
    NoProfile {
        /// The format that was asked for.
        format: SolutionsFormat,
    },
    /// A value is too long for a column of Arrow or Parquet.
    #[error("a value of {bytes} bytes is too long for Arrow and Parquet; ask for JSON")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The results of a query are none that Arrow holds.
    #[error(
        "the results of this query are not available as Arrow: {reason}; ask for text/event-stream"
    )]
    NoArrow {
        /// Why not.
        reason: String,
    },
    /// A row of a continuous query's result is too long for Arrow.
    #[error(
        "a row of {bytes} bytes is longer than the {most_bytes} that a row of Arrow may have here; ask for \
         text/event-stream"
    )]
    LongRow {
        /// Its length.
        bytes: usize,
        /// The bound.
        most_bytes: usize,
    },
    /// A table without columns cannot be a Parquet file.
    #[error("the result has no variables, and a Parquet file needs a column; ask for JSON")]
    NoColumns,
    /// The columns cannot be written as Arrow.
    #[error("the result cannot be written as Arrow: {0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// The columns cannot be written as Parquet.
    #[error("the result cannot be written as Parquet: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// The format holds one graph without a name.
    #[error("{} cannot hold the named graph {graph}; ask for N-Quads or TriG", .format.name())]
    NoNamedGraphs {
        /// The format that was asked for.
        format: GraphFormat,
        /// The graph.
        graph: String,
    },
    /// The graph cannot be written in this format, for instance because RDF/XML cannot name one
    /// of its predicates.
    #[error("the graph cannot be written as {}: {source}", .format.name())]
    Graph {
        /// The format that was asked for.
        format: GraphFormat,
        /// What the serializer says.
        source: std::io::Error,
    },
}
