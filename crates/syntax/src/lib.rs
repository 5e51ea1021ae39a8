//! Text -> tree: what does a request say, where does each part of it stand, and what is wrong
//! with it?
//!
//! One tokenizer and one recursive-descent parser for queries and updates of SPARQL 1.1 and 1.2.
//! The tree ([`tree`]) follows the grammar: names are resolved, abbreviations of triples are
//! written out, and each node has its place in the text. What it means is the planner's to say.
//!
//! Time is linear in the text. Memory is reserved before it is held, and nesting is bounded, so
//! that no text overflows the stack of the thread that parses it.
#![forbid(unsafe_code)]

pub mod data;
pub mod tree;
