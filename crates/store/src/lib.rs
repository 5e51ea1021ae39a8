//! The neighbours of (vertex, predicate, direction): where is the graph, and what does it look like?
mod base;
pub mod bulk;
mod clusters;
mod column;
mod delta;
mod directory;
mod domain;
mod durable;
mod error;
mod graph_index;
mod identity;
mod image;
mod layer;
pub mod log;
mod named;
mod partial;
mod runs;
mod segment;
mod text_order;
mod verify;

pub use base::{Base, Footprint};
pub use clusters::Clusters;
pub use column::Column;
pub use delta::{
    Changed, Changes, EdgeGraphsAt, Effect, Fold, FoldRule, LayerView, NewTerms, Replay,
    ReplayError, Snapshot, Stage, TermCounts, Transaction, TransactionError, Translator,
};
pub use directory::{Directory, StoreFile};
pub use domain::Domain;
pub use durable::{Checkpoint, Copied, DurabilityOptions, DurableStore, OpenStorage, Recovery};
pub use error::StoreError;
pub use identity::Identity;
pub use layer::{Layer, LayerKind};
pub use named::NamedGraphs;
pub use partial::Partial;
pub use segment::Segment;
