//! Streams and windows: what is in a window at an instant, and when is that complete?
//!
//! [`Intake`] keeps what comes until it is complete, [`Numbers`] counts what is, [`Schedule`] says when a
//! continuous query is evaluated, and [`WindowedGraph`] is the graph of one execution: a stored graph at
//! one snapshot, and the windows of the query as further graphs, each with an id of [`TermId::window`].
//! Steps, plans and operators are those of any other query: a pattern in a window is a pattern in one
//! graph, and a default graph of windows and stored graphs is a merge of some graphs.
//!
//! [`TermId::window`]: jindou_model::TermId::window
#![forbid(unsafe_code)]

mod broker;
mod context;
mod definition;
mod figures;
mod intake;
mod merged;
mod numbers;
mod producers;
mod schedule;
mod windowed;

pub use broker::{
    BrokerProtocol, KafkaSink, KafkaSource, KafkaStart, LdesSource, MqttSink, MqttSource,
    SinkDefinition, SourceDefinition, host_and_port,
};
pub use definition::{
    All, DefinitionError, MOST_DEFINITION_BYTES, NAME_RULE, Predicates, StreamDefinition,
    TimeSource, TimelessPredicates, is_name, json_bytes,
};
pub use figures::WindowedFigures;
pub use intake::{Intake, Late, Position};
pub use numbers::Numbers;
pub use producers::{MOST_PRODUCERS, Producers};
pub use schedule::{CountWindow, Schedule, SlidingWindow, TimeWindow};
pub use windowed::{TupleTimes, WindowedGraph};
