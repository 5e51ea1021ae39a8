//! What can be wrong with a text, and where?

use crate::tree::Span;

/// Why a text is not parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not what SPARQL's grammar and the notes to it ask for.
    #[error("{message}")]
    Syntax {
        /// What is wrong: its start is the place of the error, see [`position`].
        span: Span,
        /// What was being parsed, what was found, and what fits there.
        message: String,
        /// What would mend it, where that is likely.
        hint: Option<String>,
    },
    /// The text is an update, and a query is asked for.
    #[error("this is an update, not a query")]
    IsUpdate {
        /// The word that says so.
        span: Span,
    },
    /// The text is a query, and an update is asked for.
    #[error("this is a query, not an update")]
    IsQuery {
        /// The word that says so.
        span: Span,
    },
    /// The base IRI given beside the text is not one.
    #[error("the base IRI <{iri}> is not valid: {message}")]
    Base {
        /// The IRI.
        iri: String,
        /// What is wrong with it.
        message: String,
    },
    /// More of something than is parsed.
    #[error("there are more than {limit} {what}")]
    TooLarge {
        /// Where the limit was reached.
        span: Span,
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// [`Options::reserve`](crate::Options::reserve) refused memory.
    #[error("there is no memory to parse the text")]
    MemoryRefused,
    /// [`Options::is_over`](crate::Options::is_over) said so.
    #[error("parsing was given up")]
    Interrupted,
    /// Data that no RDF 1.1 store can hold is to be read ([`DataBlock::for_each`]), or a
    /// continuous query has what another language of such queries has.
    ///
    /// [`DataBlock::for_each`]: crate::data::DataBlock::for_each
    #[error("not supported: {what}")]
    Unsupported {
        /// Where it is.
        span: Span,
        /// What it is.
        what: &'static str,
    },
}

impl Error {
    /// The place in the text, if the error has one.
    #[must_use]
    pub const fn span(&self) -> Option<Span> {
        match self {
            Self::Syntax { span, .. }
            | Self::IsUpdate { span }
            | Self::IsQuery { span }
            | Self::TooLarge { span, .. }
            | Self::Unsupported { span, .. } => Some(*span),
            Self::Base { .. } | Self::MemoryRefused | Self::Interrupted => None,
        }
    }

    /// What would mend it, where that is likely.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Syntax { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }
}

/// Line and column, in characters and from 1, of a byte of the text.
///
/// An offset after the end or inside a character is that of the end or of the character. Costs
/// one pass over the text before.
#[must_use]
pub fn position(text: &str, offset: u32) -> (usize, usize) {
    let mut end = (offset as usize).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let before = &text[..end];
    let line_start = memchr::memrchr(b'\n', before.as_bytes()).map_or(0, |at| at + 1);
    let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
    (line, before[line_start..].chars().count() + 1)
}
