//! Why can a text not be planned?

use crate::stack::NoStack;
use jindou_syntax::tree::Span;
use jindou_syntax::{Error, position};

/// Errors of parsing and planning; all of them are about the query, never about the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is not a SPARQL query, or not an update where one is asked for.
    #[error("syntax error at line {line}, column {column}: {message}{}", after(hint.as_deref()))]
    Syntax {
        /// Line of the error, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What was being parsed, what was found, and what fits there.
        message: String,
        /// What would mend it, where that is likely.
        hint: Option<String>,
    },
    /// The text is an update where a query is asked for.
    #[error("this is an update, not a query")]
    Update,
    /// The base IRI given with the request is not an IRI.
    #[error("the base IRI <{iri}> is not valid: {message}")]
    Base {
        /// The IRI.
        iri: String,
        /// What is wrong with it.
        message: String,
    },
    /// The query uses something that is not supported.
    #[error("not supported: {feature} (line {line}, column {column})")]
    Unsupported {
        /// What it uses.
        feature: String,
        /// Line of its first use, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// A bare name of a continuous query is that of no stream and no graph.
    #[error(
        "no stream is called {name}, and stored graphs are written as IRIs (line {line}, column {column})"
    )]
    UnknownName {
        /// The name.
        name: String,
        /// Line of it, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
    },
    /// There is no more memory to parse the text.
    #[error("there is no memory to parse the text")]
    MemoryRefused,
    /// There is no memory for the stack that the plan needs.
    #[error(transparent)]
    NoStack(#[from] NoStack),
    /// The plan is not wanted any more.
    #[error("planning was given up")]
    Interrupted,
    /// An update names its dataset, which the request that brings it names too (SPARQL 1.1
    /// Protocol, section 2.2.3).
    #[error(
        "the request names the dataset of an update that has USING, USING NAMED or WITH itself"
    )]
    DatasetNamedTwice,
    /// The query is larger than the planner's limits allow.
    #[error("the query is too large: there are more than {limit} {what}")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much of it is allowed.
        limit: usize,
    },
}

impl PlanError {
    /// An [`PlanError::Unsupported`] that names `feature`, which the text has at a place.
    pub(crate) fn unsupported(feature: impl Into<String>, text: &str, span: Span) -> Self {
        let (line, column) = position(text, span.start);
        Self::Unsupported {
            feature: feature.into(),
            line,
            column,
        }
    }

    /// A bare name at a place of the text is not known.
    pub(crate) fn unknown_name(name: &str, text: &str, span: Span) -> Self {
        let (line, column) = position(text, span.start);
        Self::UnknownName {
            name: name.to_owned(),
            line,
            column,
        }
    }

    /// What is wrong with a text, with lines and columns.
    pub(crate) fn of_syntax(error: Error, text: &str) -> Self {
        match error {
            Error::IsUpdate { .. } => Self::Update,
            Error::Base { iri, message } => Self::Base { iri, message },
            Error::TooLarge { what, limit, .. } => Self::TooLarge { what, limit },
            Error::MemoryRefused => Self::MemoryRefused,
            Error::Interrupted => Self::Interrupted,
            Error::Unsupported { span, what } => Self::unsupported(what, text, span),
            other => {
                let span = other.span().unwrap_or_default();
                let (line, column) = position(text, span.start);
                Self::Syntax {
                    line,
                    column,
                    message: other.to_string(),
                    hint: other.hint().map(str::to_owned),
                }
            }
        }
    }
}

/// A hint as it stands after a message.
fn after(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("; {hint}"))
}
