//! Why can a text not be planned?

use crate::stack::NoStack;

/// Errors of parsing and planning; all of them are about the query, never about the data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The text is not a SPARQL query, or not an update where one is asked for.
    #[error("syntax error at line {line}, column {column}: {message}")]
    Syntax {
        /// Line of the error, from 1.
        line: usize,
        /// Column in characters, from 1, of the furthest place that the parser looked at.
        column: usize,
        /// What was expected there.
        message: String,
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
    #[error("not supported: {feature}")]
    Unsupported {
        /// What it uses.
        feature: String,
    },
    /// Whoever lends memory for parsing has no more.
    #[error("there is no memory to parse the text")]
    MemoryRefused,
    /// There is no memory for the stack that the text needs.
    #[error(transparent)]
    NoStack(#[from] NoStack),
    /// Whoever asked for the plan wants it no more.
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
    /// An [`PlanError::Unsupported`] that names `feature`.
    pub(crate) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported {
            feature: feature.into(),
        }
    }
}
