//! Other SPARQL endpoints, as the executor sees them: what do they answer to this query?
//!
//! The executor owns the trait; a client of the SPARQL protocol implements it, and so may a
//! database in the same process.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use oxrdf::Term;
use serde::{Deserialize, Serialize};

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct ServiceCall<'a> {
    /// The IRI of the endpoint.
    pub endpoint: &'a str,
    /// The query, a SELECT.
    pub query: &'a str,
    /// The variables of interest, without their question marks, in the order in which rows are
    /// to have them.
    pub variables: &'a [String],
    /// Time that the call may take, to the last byte of the answer.
    pub timeout: Duration,
    /// Bytes that the answer may have.
    pub response_bytes: u64,
}

/// Calls endpoints.
pub trait ServiceCaller: Debug + Send + Sync {
    /// Begins a call and returns at once; the answer comes through what is returned.
    ///
    /// # Errors
    /// What is already known to be wrong, such as an endpoint that may not be called.
    fn call(&self, call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError>;
}

/// The solutions of one call. Dropping it ends the call.
pub trait ServiceRows: Send {
    /// The next solutions, for which it waits so long at most (tens of milliseconds, so that a
    /// query that is cancelled meanwhile ends soon).
    ///
    /// # Errors
    /// Why there will be no more.
    fn next(&mut self, wait: Duration) -> Result<ServiceNext, ServiceError>;

    /// Bytes of the answer so far; the query's memory budget pays for them until the call ends.
    fn received_bytes(&self) -> u64;
}

/// What there is for now.
#[derive(Clone, Debug)]
pub enum ServiceNext {
    /// Some solutions: a term for each variable of the call, where it is bound.
    Rows(Vec<Vec<Option<Term>>>),
    /// Nothing yet.
    Waiting,
    /// All solutions were handed over.
    End,
}

/// Why an endpoint did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum ServiceError {
    /// The settings do not allow to call it.
    #[error("calling it is not allowed here")]
    NotAllowed,
    /// It is no endpoint, such as a literal or an IRI that is not of HTTP.
    #[error("this is no SPARQL endpoint: {reason}")]
    NoEndpoint {
        /// Why not.
        reason: String,
    },
    /// Nothing binds the variable that should hold it.
    #[error("nothing binds the variable that should hold the endpoint")]
    Unbound,
    /// It could not be reached, or the connection broke.
    #[error("it cannot be reached: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// It took too long.
    #[error("it took longer than {} s", limit.as_secs_f64())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// It refused the query, or failed.
    #[error("it answered with status {status}{}", after(body))]
    Status {
        /// The status of HTTP.
        status: u16,
        /// How its message begins.
        body: String,
    },
    /// It answered with something other than results of SPARQL.
    #[error(
        "it answered with {found}, which is no format of SPARQL results that is read here{}",
        after(body)
    )]
    MediaType {
        /// The media type.
        found: String,
        /// How the answer begins.
        body: String,
    },
    /// Its results cannot be read.
    #[error("its answer is wrong: {reason}")]
    Malformed {
        /// What is wrong.
        reason: String,
    },
    /// Its answer is too large.
    #[error("its answer is larger than {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
}

/// The beginning of a message behind what it belongs to.
fn after(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// What a query needs to call endpoints.
#[derive(Clone, Debug)]
pub struct Services {
    /// Calls them.
    pub caller: Arc<dyn ServiceCaller>,
    /// Time that one call may take; never more than the query has left.
    pub timeout: Duration,
    /// Bytes that one answer may have.
    pub response_bytes: u64,
}
