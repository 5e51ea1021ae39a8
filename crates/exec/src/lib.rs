//! Steps over binding tables: what are the solutions of this plan?
//!
//! The executor owns the traits of what it works on: [`TermSource`] for terms and
//! [`GraphSource`] for the graph. Stores, remote shards and simulated ones implement them.
#![forbid(unsafe_code)]

mod account;
mod context;
mod error;
mod execution;
pub mod expr;
mod operator;
mod operators;
mod rows;
mod source;
mod steps;
mod table;
mod terms;
mod workers;

pub use account::{Account, MemoryPool, Reservation};
pub use context::{CancellationToken, Context, ContextParts, Limits, Measured};
pub use error::ExecError;
pub use execution::Execution;
pub use source::GraphSource;
pub use table::{BATCH_ROWS, Table, VarSet};
pub use terms::{ComputedTerms, TermSource, Terms};
pub use workers::Workers;
