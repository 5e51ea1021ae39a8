//! Are the answers right? The harness that the conformance tests share.
//!
//! | module | question |
//! |---|---|
//! | [`data`] | where does the test data lie, and what is inside its archives? |
//! | [`engines`] | how is each engine given data and asked a query? |
//! | [`contents`] | what is in a database, and how is it put there by updates? |
//! | [`answer`] | what did an engine answer, in a comparable form? |
//! | [`isomorphism`] | are two sets of rows the same up to names of blank nodes? |
//! | [`part`] | are some rows a part of others, up to names of blank nodes? |
//! | [`manifest`] | which tests does a W3C manifest hold? |
//! | [`update_suite`] | which update evaluation tests does a manifest hold? |
//! | [`exchange`] | which HTTP requests does a manifest hold, and which answers do they want? |
//! | [`transcript`] | which exchanges does the prose of the older graph store suite hold? |
//! | [`served`] | how is a server of ours run in this process, and asked? |
//! | [`reply_check`] | is an answer over HTTP what a test expects? |
//! | [`result_file`] | which answer does a result file of a W3C test expect? |
//! | [`random`] | which number comes next? |
//! | [`random_data`] | which small data sets make joins, types and values collide? |
//! | [`random_expression`], [`random_query`] | which queries are worth asking of them? |
//! | [`common_ground`] | which of them must both engines answer alike? |
//! | [`query`], [`path`] | what is a generated query, and how is it written? |
//! | [`path_definition`] | which terms does a path connect by the definitions of SPARQL? |
//! | [`reference`] | what is the answer to a generated query by the definitions of SPARQL? |
//! | [`random_update`] | which sequences of updates are worth making? |
//! | [`differential`] | do our engine and the oracle answer alike? |
//! | [`graph_placement`] | in which graphs do the triples of a data set lie? |
//! | [`graph_history`] | how did quads come into a database, and how does it hold them? |
//! | [`query_facts`] | what is in a query's text? |
//! | [`graph_text`] | how is a query about the default graph written about named graphs? |
//! | [`graph_form`] | how are named graphs asked for what the default graph would answer? |
//! | [`graph_check`] | do data in named graphs give the answers of the default graph? |
//! | [`latitude`] | in what may two right answers to a query differ? |
//! | [`record`] | where do the counts of a W3C suite go, for docs/w3c.md? |
//! | [`update_differential`] | do both hold the same after each update of a sequence? |
//! | [`unready`] | how is a graph asked that is not ready, or has lost a shard? |
//! | [`members`], [`processes`] | how is a graph asked that nodes of a cluster have, in this process or as servers? |
//! | [`hosts`] | how are there several hosts on one machine? |
//! | [`elsewhere`] | how does a query run whose tables go to another machine and back? |
//! | [`shrink`] | what is the smallest case that still fails? |
//!
//! The tests in `tests/`: the W3C SPARQL suites, reference data of published benchmarks with their
//! answers, property paths against their definitions, random queries on random data against
//! oxigraph and against the definitions of SPARQL, and all of these on data in named graphs against
//! the same data in the default graph.

#![forbid(unsafe_code)]

pub mod answer;
pub mod cases;
pub mod common_ground;
pub mod contents;
pub mod data;
pub mod differential;
pub mod elsewhere;
pub mod engines;
pub mod exchange;
pub mod graph_check;
pub mod graph_form;
pub mod graph_history;
pub mod graph_placement;
pub mod graph_text;
#[cfg(target_os = "linux")]
pub mod hosts;
pub mod isomorphism;
pub mod latitude;
pub mod manifest;
#[cfg(target_os = "linux")]
pub mod members;
pub mod part;
pub mod path;
pub mod path_definition;
#[cfg(target_os = "linux")]
pub mod processes;
pub mod query;
pub mod query_facts;
pub mod random;
pub mod random_data;
pub mod random_expression;
pub mod random_query;
pub mod random_update;
pub mod record;
pub mod reference;
pub mod reply_check;
pub mod result_file;
pub mod served;
pub mod shrink;
pub mod transcript;
pub mod unready;
pub mod update_differential;
pub mod update_suite;
