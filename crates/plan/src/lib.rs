//! Text -> algebra -> plan: what will be done to answer this query, and what is it expected to cost?
//!
//! SPARQL is parsed by `spargebra`; its algebra is converted to the types of [`expression`] and
//! [`physical`] at one boundary. Plans are cached by the shape of a query's text, so that one
//! which differs only in constants is neither parsed nor planned anew. Updates become lists of
//! operations ([`Update`]), whose patterns are planned when their turn comes. What is known of the data
//! comes through the trait [`Statistics`], which stores implement.
#![forbid(unsafe_code)]

mod algebra;
mod arguments;
mod block;
mod build;
mod cache;
mod convert;
mod convert_expression;
mod convert_nested;
mod convert_path;
mod data_block;
mod data_terms;
mod error;
mod estimate_path;
mod existence;
mod explain;
pub mod expression;
mod facts;
mod group;
mod levels;
mod lexer;
mod misread;
mod modifiers;
mod order;
mod parse;
mod patience;
pub mod physical;
mod planner;
mod prepared;
mod remote;
mod repeats;
mod rows;
mod service;
mod shape;
mod stack;
mod star;
mod statistics;
mod tree_size;
mod update;
mod update_convert;
mod update_text;
mod varset;

pub use data_block::{DataBlock, DataQuad, DataTerm};
pub use error::PlanError;
pub use explain::{Actual, explain, explain_profile};
pub use planner::{Planner, PlannerConfig, plan};
pub use prepared::Prepared;
pub use stack::{NoStack, Stack};
pub use statistics::{Membership, SegmentStatistics, Statistics};
pub use tree_size::tree_bytes;
pub use update::{
    GraphTarget, Modify, Operation, TemplateQuad, Update, parse_update, parse_update_within,
};
