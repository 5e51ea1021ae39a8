//! The neighbours of (vertex, predicate, direction): where is the graph, and what does it look like?
mod array;
mod base;
mod base_files;
pub mod bulk;
mod clusters;
mod column;
mod cut;
mod delta;
mod directory;
mod domain;
mod durable;
mod error;
mod graph_index;
mod graph_packing;
mod graph_table;
mod history;
mod homes;
mod identity;
mod image;
mod later_order;
mod layer;
mod layout;
pub mod log;
mod merge;
mod named;
mod named_merge;
mod partial;
mod places;
mod predicate_edges;
mod predicate_graphs;
mod prefix_file;
mod regions;
mod runs;
mod segment;
mod segment_merge;
mod side_log;
mod tables;
mod text_file;
mod text_order;
mod unused;
mod verify;
pub mod window;

pub use base::{Base, Footprint};
pub use clusters::Clusters;
pub use column::Column;
pub use cut::{AllocateOfShard, Cut};
pub use delta::{
    Changed, Changes, EdgeGraphsAt, Effect, Fold, FoldRule, GivenNumbers, LayerView, NewIds,
    NewTerms, NumberedKey, Published, Rebase, Replay, ReplayError, Snapshot, Stage, TermCounts,
    TermKey, TextOrder, Transaction, TransactionError,
};
pub use directory::{Directory, StoreFile};
pub use domain::Domain;
pub use durable::{Checkpoint, Copied, DurabilityOptions, DurableStore, OpenStorage, Recovery};
pub use error::StoreError;
pub use history::{History, Run};
pub use identity::Identity;
pub use layer::{Layer, LayerKind};
pub use layout::{ArrayLayout, KeysLayout, PartLayout, ReadBytes, SegmentLayout};
pub use merge::{Merged, PredicateChanges};
pub use named::NamedGraphs;
pub use partial::Partial;
pub use prefix_file::PrefixFile;
pub use segment::Segment;
pub use side_log::{SideLog, WriteState};
pub use tables::{TermTables, TermsDecoder};
