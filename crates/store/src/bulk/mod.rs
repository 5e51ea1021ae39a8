//! Bulk load: quads of terms, in any order and with repeats -> the base of a store.
//!
//! Each parsing thread fills a [`BulkSink`]: its own interners and edges by predicate, in ids of
//! its own. [`build`] merges the sinks, finds the characteristic sets, numbers vertices by them,
//! and makes dictionary and segments. The result does not depend on the number of threads or the
//! order of the input. Onto a snapshot that has data, what sinks collected goes the way of a
//! transaction instead, and ids stay ([`LoadedQuads`]). Where memory is not enough for all terms and
//! edges, [`SpilledLoad`] makes the same base by way of files.

mod build;
mod cluster;
pub mod dealt;
mod merge;
mod named;
mod onto;
mod sink;
mod sort;
mod spilled;

pub(crate) use build::{Parts, assemble};
pub use build::{build, rebuild};
pub use onto::{Loaded, LoadedQuads, quads_onto, stage_onto};
pub use sink::BulkSink;
pub use spilled::{LoadStep, SpilledLoad, SpillingSink};
