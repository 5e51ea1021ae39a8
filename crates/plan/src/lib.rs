//! Text -> algebra -> plan: what will be done to answer this query, and what is it expected to cost?
//!
//! SPARQL is parsed by `spargebra`; its algebra is converted to the types of [`expression`] and
//! [`physical`] at one boundary. Plans are cached by the shape of a query's text, so that one
//! which differs only in constants is neither parsed nor planned anew. What is known of the data
//! comes through the trait [`Statistics`], which stores implement.
#![forbid(unsafe_code)]

pub mod expression;
pub mod physical;
mod statistics;

pub use jindou_model::Membership;
pub use statistics::{SegmentStatistics, Statistics};
