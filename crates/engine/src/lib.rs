//! The database: the only place that wires the graph, the planner and the executor together.
//!
//! ```
//! use jindou_engine::{Database, LoadOptions, QueryResults};
//! use jindou_engine::ingest::{Progress, Source};
//!
//! let database = Database::new();
//! let people = Source::bytes(
//!     "people.ttl",
//!     "@prefix : <http://example.org/> . :ann :knows :bob . :bob :knows :cid .",
//! );
//! database.load(vec![people], &LoadOptions::default(), &Progress::default())?;
//!
//! let query = "PREFIX : <http://example.org/> SELECT ?who WHERE { :ann :knows/:knows ?who }";
//! if let QueryResults::Solutions(solutions) = database.query(query)? {
//!     for solution in solutions {
//!         assert_eq!(solution?.get("who").unwrap().to_string(), "<http://example.org/cid>");
//!     }
//! }
//! # Ok::<(), jindou_engine::EngineError>(())
//! ```
#![forbid(unsafe_code)]

mod attempt;
mod background;
mod backup;
mod config;
mod database;
mod deadline;
mod delta;
mod distinct;
mod document;
mod error;
mod fetch;
mod gather;
mod grammar;
mod graph;
mod graph_store;
mod health;
mod keys;
mod large_document;
mod load;
#[cfg(target_os = "linux")]
mod load_part;
mod load_within;
mod merge;
mod merge_underway;
mod onto;
mod page;
mod parquet_source;
mod policy;
mod prefixes;
mod progress;
mod quads;
mod query;
mod reads;
mod replica;
mod request_memory;
pub mod results;
mod service;
mod shards;
mod solutions;
#[cfg(target_os = "linux")]
mod split;
mod statistics;
mod streams;
mod texts;
mod transact;
#[cfg(test)]
mod transact_tests;
mod triples;
mod turn;
mod update;
mod web;
mod writer;

pub use backup::{BackupReport, StoreReport};
pub use config::{
    Between, BetweenShards, BetweenTerms, Clock, Config, DEFAULT_SPILL_BYTES, KeepSolutions,
    LoadPolicy, MakeBetween, MakeBetweenShards, MakeBetweenTerms, NodeFabric, QueryOptions,
    SHARE_ALL, TransportOfTables,
};
pub use database::{DataMemory, Database};
pub use delta::UpdateDelta;
pub use error::{EngineError, LeaderErrorClass, TextPlace};
pub use grammar::{Grammar, check_query, check_update};
pub use graph_store::GraphReport;
pub use health::Failure;
pub use jindou_cluster::RemoteReads;
#[cfg(target_os = "linux")]
pub use jindou_cluster::{
    MailCounts, MemberStatus, Peer, PeerList, PeersError, Presence, Secret, Stage, read_secret,
};
pub use jindou_exec::{
    CancellationToken, FREE_BYTES, ForkPolicy, Forked, MemoryPool, MessageLimits, QueryClass,
    Reservation, ServiceCall, ServiceCaller, ServiceError, ServiceNext, ServiceRows, Sharing,
    SpillLimits, SubQueryWireError, WireError,
};
pub use jindou_ingest as ingest;
pub use jindou_ingest::LoadOptions;
pub use jindou_model::TermId;
pub use jindou_model::printable;
pub use jindou_model::{NodeId, SnapshotNumber};
pub use jindou_partition::{MapError, Shards, ShardsError};
pub use jindou_replication::{Configuration, Timing, Versioned};
pub use jindou_store::log::Fsync;
pub use jindou_store::{DurabilityOptions, Recovery, StoreError, StoreFile};
pub use jindou_stream::{
    BrokerProtocol, KafkaSink, KafkaSource, KafkaStart, LdesSource, MOST_DEFINITION_BYTES,
    MqttSink, MqttSource, NAME_RULE, Predicates, SinkDefinition, SourceDefinition,
    StreamDefinition, TimeSource, host_and_port, is_name, json_bytes,
};
pub use load::LoadReport;
#[cfg(target_os = "linux")]
pub use load_part::{PartOptions, PartReport};
pub use load_within::MERGING_TERMS;
pub use merge::MergePolicy;
pub use page::{Page, PageAnswer, PageRequest};
pub use parquet_source::{PARQUET_ENDING, parquet_source};
pub use policy::{AddressPolicy, AddressPrefix, InvalidAddressPrefix};
pub use prefixes::{PrefixError, PrefixTable};
pub use progress::QueryProgress;
pub use quads::GraphSelection;
pub use query::QueryResults;
pub use replica::{
    Anew, CopyError, FollowerStatus, Forwarding, Keeper, KeeperError, NodeNames, ReceivedCopy,
    Replica, ReplicaAgreement, ReplicaOptions, ReplicaStatus, ReplicaWay, Standing, Told,
    next_version,
};
#[cfg(target_os = "linux")]
pub use shards::fetching::{FetchOptions, fetch_copy};
#[cfg(target_os = "linux")]
pub use shards::member::ClusterOptions;
pub use solutions::{Batch, Solution, Solutions, TermDecoder};
#[cfg(target_os = "linux")]
pub use split::{FileBytes, SplitPart, SplitProgress, SplitReport};
pub use statistics::{
    DatabaseStatistics, GraphSizes, PartStatistics, PredicateStatistics, QuadCounts,
};
pub use streams::{
    Answer, AnswerForm, ContinuousResult, ContinuousResults, ContinuousStatus, Delivered,
    EventError, FeedMessage, FeedReport, HeldTuples, MOST_NOTES_BYTES, NextResult, Producer,
    PushReport, ResultSink, ResultWindow, Rows, StreamFeed, StreamStatus, TupleFormat,
    milliseconds_of,
};
pub use triples::Graph;
pub use turn::Occupation;
pub use update::{UpdateOptions, UpdateReport};
pub use web::WebError;
