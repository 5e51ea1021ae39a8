//! Is what was published answered as its authors say? The W3C's suites, and data of benchmarks with known answers.
//!
//! `cargo test -p jindou-conformance --test published update_eval::` runs those of one file.

#![forbid(unsafe_code)]

mod graph_store_prose;
mod protocol;
mod rdf11;
mod reference_data;
mod service_description;
mod sparql_w3c;
mod suites;
mod syntax;
mod update_eval;
mod update_syntax;
