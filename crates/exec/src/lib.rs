//! Steps over binding tables: what are the solutions of this plan?
//!
//! The executor owns the traits of what it works on: [`TermSource`] for terms and
//! [`GraphSource`] for the graph. Stores, remote shards and simulated ones implement them.
#![forbid(unsafe_code)]

mod access;
mod account;
mod blocks;
mod class;
mod context;
mod discard;
mod error;
mod exchange;
mod execution;
pub mod expr;
mod fork;
mod keys;
mod operator;
mod operators;
mod pairs;
mod rows;
mod service;
mod source;
mod spill;
mod steps;
mod table;
mod terms;
#[cfg(test)]
mod test_world;
mod transport;
mod workers;

pub use account::{Account, FREE_BYTES, MemoryPool, Reservation};
pub use class::{ByClass, QueryClass};
pub use context::{
    CancellationToken, Context, ContextParts, Held, Limits, Measured, SharedContext,
};
pub use error::ExecError;
pub use execution::{Execution, Sharing};
pub use fork::{
    Arrived, ChainId, ForkNode, ForkPolicy, ForkSettings, Forked, Forks, MessageCost,
    MessageLimits, Messages, QueryId, Resources, SubQuery, SubQueryId, SubQueryWireError,
};
pub use keys::{KeyKind, Keys};
pub use operators::MaterializedRows;
pub use service::{ServiceCall, ServiceCaller, ServiceError, ServiceNext, ServiceRows, Services};
pub use source::{Catalogue, Catalogued, GraphSource};
pub use spill::SpillLimits;
pub use table::{BATCH_ROWS, Column, ColumnKind, EncodedTable, Table, VarSet, WireError};
pub use terms::{ComputedTerms, TermPart, TermSource, Terms, TextOrder};
pub use transport::Transport;
pub use workers::Workers;
