//! Are the answers right? The harness that the conformance tests share.
//!
//! | module | question |
//! |---|---|
//! | [`data`] | where does the test data lie, and what is inside its archives? |
//! | [`engines`] | how is each engine given data and asked a query? |
//! | [`answer`] | what did an engine answer, in a comparable form? |
//! | [`isomorphism`] | are two sets of rows the same up to names of blank nodes? |
//! | [`manifest`] | which tests does a W3C manifest hold? |
//! | [`result_file`] | which answer does a result file of a W3C test expect? |
//!
//! The tests in `tests/`: the W3C SPARQL suites, reference data of published benchmarks with their
//! answers, and random queries on random data against oxigraph.

#![forbid(unsafe_code)]

pub mod answer;
pub mod data;
pub mod engines;
pub mod isomorphism;
pub mod manifest;
pub mod result_file;
