//! Steps over binding tables: what are the solutions of this plan?
//!
//! The executor owns the traits of what it works on: [`TermSource`] for terms and
//! [`GraphSource`] for the graph. Stores, remote shards and simulated ones implement them.
#![forbid(unsafe_code)]

pub mod expr;
mod terms;

pub use terms::{ComputedTerms, TermSource, Terms};
