//! Text -> algebra -> plan: what will be done to answer this query, and what is it expected to cost?
//!
//! The tree of `jindou_syntax` is converted to the types of [`expression`] and [`physical`] at one
//! boundary. Plans are cached by the shape of a query's text, so that one
//! which differs only in constants is neither parsed nor planned anew. Updates become lists of
//! operations ([`Update`]), whose patterns are planned when their turn comes. What is known of the data
//! comes through the trait [`Statistics`], which stores implement.
#![forbid(unsafe_code)]

mod algebra;
mod arguments;
mod block;
mod build;
mod cache;
mod constants_used;
mod continuous;
mod convert;
mod convert_exists;
mod convert_expression;
mod convert_group;
mod convert_path;
mod convert_select;
mod count_last;
mod counted;
mod end_counts;
mod error;
mod estimate_path;
mod existence;
mod explain;
pub mod expression;
mod facts;
mod grammar;
mod group;
mod incremental;
mod join;
mod levels;
mod limits;
mod modifiers;
mod order;
mod patience;
mod pending;
pub mod physical;
mod planner;
mod prepared;
mod remote;
mod rows;
mod semi_join;
mod service;
mod shared;
mod stack;
mod statistics;
mod step_variables;
mod stored_reads;
mod update;
mod update_convert;
mod varset;
mod walk;
mod wire;

pub use continuous::{ContinuousQuery, Extent, Output, Resolve, StreamWindow, parse_continuous};
pub use error::PlanError;
pub use explain::{Actual, Dealt, Exchange, explain, explain_profile};
pub use grammar::{check_query, check_update};
pub use incremental::{Incremental, Position, Recomputed, WindowPattern};
pub use jindou_syntax::Error as SyntaxError;
pub use jindou_syntax::data::{DataBlock, DataQuad, DataTerm};
pub use jindou_syntax::position;
pub use jindou_syntax::tree::Span;
pub use limits::Limits;
pub use planner::{Planner, PlannerConfig, plan, plan_within};
pub use prepared::Prepared;
pub use shared::{ShapeKey, SharedQuery};
pub use stack::{NoStack, Stack};
pub use statistics::{Membership, SegmentStatistics, Statistics};
pub use stored_reads::StoredRead;
pub use update::{
    GraphTarget, Modify, Operation, TemplateQuad, Transfer, TransferKind, Update, parse_update,
    parse_update_within,
};
pub use wire::{DecodedSteps, PlanSizes, PlanWireError, decode_steps, decoded_bytes, encode_steps};
