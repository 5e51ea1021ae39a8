//! What can go wrong, told apart by who has to do something about it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jindou_exec::{ExecError, ServiceError, SubQueryWireError, WireError};
use jindou_ingest::IngestError;
use jindou_model::SnapshotNumber;
use jindou_plan::{NoStack, PlanError, Span, SyntaxError, position};
use jindou_store::StoreError;

use crate::{EventError, Occupation, WebError};

/// A place in the text of a query or an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPlace {
    /// From 1.
    pub line: u64,
    /// In characters, from 1.
    pub column: u64,
}

impl TextPlace {
    /// Where a span of a text begins. Costs the text up to there.
    pub(crate) fn of(text: &str, span: Span) -> Self {
        let (line, column) = position(text, span.start);
        Self {
            line: line as u64,
            column: column as u64,
        }
    }
}

impl fmt::Display for TextPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// An error of the database.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The query is not SPARQL.
    #[error("line {line}, column {column}: {message}{}", after(hint.as_deref()))]
    Syntax {
        /// Line of the query, from 1.
        line: u64,
        /// Column, in characters from 1.
        column: u64,
        /// What was being read, what was found, and what fits there.
        message: String,
        /// What would mend it, where that is likely.
        hint: Option<String>,
    },
    /// The query is SPARQL and asks for something that is not there yet.
    #[error("not supported: {feature}{}", at(*place))]
    Unsupported {
        /// What it asks for.
        feature: String,
        /// Where, unless it depends on values that are not in the text.
        place: Option<TextPlace>,
    },
    /// A continuous query has not given a result of this number yet.
    #[error("the continuous query {name} has given {last} results: none has the number {after}")]
    NoSuchResult {
        /// The query.
        name: String,
        /// The number that was asked for.
        after: u64,
        /// The number of its last result.
        last: u64,
    },
    /// The query or its arguments make no sense.
    #[error("{message}")]
    InvalidQuery {
        /// Why.
        message: String,
    },
    /// The query ran for longer than it may.
    #[error("the query ran for longer than its limit of {} s", limit.as_secs_f64())]
    Timeout {
        /// The limit.
        limit: Duration,
    },
    /// The query is planned to cost more than its options allow.
    #[error("the query is expected to handle {cost:.0} rows, more than it may")]
    TooCostly {
        /// Rows that its steps are expected to handle.
        cost: f64,
    },
    /// Somebody ended the query.
    #[error("the query was cancelled")]
    Cancelled,
    /// The query needs more memory than it may hold.
    #[error("the query needs more than its memory budget of {limit_bytes} bytes")]
    MemoryExceeded {
        /// The budget.
        limit_bytes: u64,
    },
    /// A result of a continuous query is larger than all results that are kept for readers may be.
    #[error(
        "the result has more than the {limit_bytes} bytes that all results kept for readers may have together"
    )]
    ResultTooLarge {
        /// What they may have.
        limit_bytes: u64,
    },
    /// What documents say takes more memory than a request may hold. Nothing was changed.
    #[error("the document needs more than the {limit_bytes} bytes that a request may hold")]
    DocumentTooLarge {
        /// What it may hold.
        limit_bytes: u64,
    },
    /// What documents say takes more memory than all requests may hold together. Nothing was changed.
    #[error(
        "the document needs more than the {limit_bytes} bytes that all requests may hold together"
    )]
    DocumentBeyondPool {
        /// What they may hold.
        limit_bytes: u64,
    },
    /// An update was to return the quads that it changes, and these are too many. Nothing was changed.
    #[error(
        "the update changes {changes} quads, and to return as many takes more than its memory budget \
         of {limit_bytes} bytes; nothing was changed"
    )]
    DeltaTooLarge {
        /// Quads that it adds and removes, by operation, summed.
        changes: u64,
        /// The budget.
        limit_bytes: u64,
    },
    /// The query needs more memory than it may hold, and more temporary files than it may write.
    #[error("the query needs more than its {limit_bytes} bytes of temporary files")]
    SpillExceeded {
        /// Bytes that it may have on disk.
        limit_bytes: u64,
    },
    /// What does not fit into a query's memory cannot be put on disk.
    #[error("temporary files in {}: {source}", directory.display())]
    Spill {
        /// Where they are.
        directory: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Nothing can be written; queries are answered.
    #[error("the store takes no updates: {reason}")]
    ReadOnly {
        /// Why.
        reason: String,
    },
    /// Others changed what an update reads each time that it had found what it is to change, until
    /// its time was over. Nothing was changed.
    #[error(
        "other updates changed the graph while this one searched it, {executions} times; try again later"
    )]
    Contended {
        /// How often it was executed.
        executions: u64,
    },
    /// Something else was under way for as long as a load, merge, checkpoint or backup was to wait
    /// for it. Nothing was changed.
    #[error("{by} kept the store busy for {} s; try again later", limit.as_secs_f64())]
    Busy {
        /// How long it waited.
        limit: Duration,
        /// What was under way at the end of that time.
        by: Occupation,
    },
    /// The settings do not allow it.
    #[error("{what} is not allowed by the settings")]
    Forbidden {
        /// What was asked for.
        what: String,
    },
    /// An update is about a graph that is not there.
    #[error("there is no graph <{graph}> (SILENT would pass over it)")]
    GraphAbsent {
        /// Its name.
        graph: String,
    },
    /// An update would create a graph that is there.
    #[error("the graph <{graph}> exists already (SILENT would pass over it)")]
    GraphExists {
        /// Its name.
        graph: String,
    },
    /// The query calls an endpoint that the settings do not allow it to call.
    #[error("SERVICE {endpoint}: calling it is not allowed here")]
    ServiceNotAllowed {
        /// The endpoint, as a query would write it.
        endpoint: String,
    },
    /// An endpoint that the query calls did not answer.
    #[error("SERVICE {endpoint}: {source}")]
    Service {
        /// The endpoint, as a query would write it.
        endpoint: String,
        /// Why not.
        source: ServiceError,
    },
    /// A document of the web that LOAD names cannot be had.
    #[error("LOAD <{address}>: {source}")]
    Document {
        /// Its address.
        address: String,
        /// Why not.
        source: WebError,
    },
    /// The query would wait for others, and [`must_not_wait`](crate::QueryOptions) was asked for.
    #[error("the query waits for other services, which this thread must not")]
    WouldWait,
    /// All queries together need more memory than they may hold, this one among them.
    #[error("all queries together need more than their memory budget of {limit_bytes} bytes")]
    PoolExhausted {
        /// The budget.
        limit_bytes: u64,
    },
    /// There is no memory for the stack that a deeply nested query needs.
    #[error("there is no memory for a thread with a stack of {bytes} bytes")]
    NoStack {
        /// Bytes of the stack.
        bytes: usize,
    },
    /// A part of the graph was lost.
    #[error("shard {shard} is lost{}, and the query needs it", with_node(node.as_deref()))]
    ShardLost {
        /// Its number.
        shard: u32,
        /// The node that has it, by name, where the database is one of a cluster.
        node: Option<String>,
    },
    /// A node of the cluster was lost, and parts of the query may have been there.
    #[error("node {} is lost, and the query needs it", name.as_deref().unwrap_or("of another process"))]
    NodeLost {
        /// Its number.
        node: u32,
        /// Its name, where the database is one of a cluster.
        name: Option<String>,
    },
    /// A node of the cluster does not have the graph as it was when the query began, or not any more.
    #[error("a node does not have the snapshot of the query, which may have taken too long")]
    SnapshotGone,
    /// This node's copy of the store of a cluster may hold what the others do not.
    #[error("this copy of the store does not follow the leader of its cluster: {reason}")]
    NotFollowing {
        /// Why.
        reason: String,
    },
    /// The settings have more nodes than shards.
    #[error(transparent)]
    Nodes(#[from] jindou_partition::MapError),
    /// Nodes cannot read each other's memory.
    #[error(transparent)]
    Fabric(#[from] jindou_fabric::FabricError),
    /// The database cannot be a node of a cluster, or cannot do this while it is one.
    #[error("{0}")]
    Cluster(&'static str),
    /// The database is the part of a store that another node has, or another list of nodes.
    #[error(
        "the store is the part of {part}, and the list of nodes makes this {asked}; give the node its own part, or \
         split the store by this list"
    )]
    PartOfOther {
        /// Of which node it is the part, among how many, with how many shards.
        part: String,
        /// Which one the database is to be.
        asked: String,
    },
    /// The node that takes all writes of the cluster is away. Nothing was changed.
    #[error(
        "node {node}, which takes all writes of the cluster, is away; nothing was changed; try again later"
    )]
    LeaderLost {
        /// Its name.
        node: String,
    },
    /// Another node has come to take all writes of the cluster since this one was begun. Nothing was changed.
    #[error(
        "another node takes the writes of the cluster since this one was begun; nothing was changed; send it again"
    )]
    LeaderChanged,
    /// Streams and continuous queries of a cluster go on at the node that leads, and this is another one.
    #[error("streams and continuous queries of the cluster are at node {node}; ask that one")]
    StreamsElsewhere {
        /// Its name.
        node: String,
    },
    /// This node leads since now, and reads what the streams were.
    #[error("this node has begun to lead, and reads what the streams are; try again later")]
    StreamsBegin,
    /// This node leads, and cannot read what the streams were.
    #[error("the streams of the cluster do not go on at this node: {reason}")]
    StreamsFailed {
        /// Why.
        reason: String,
    },
    /// The node that takes all writes was lost after a write had been sent to it.
    #[error(
        "node {node}, which takes all writes of the cluster, has not said whether this one was done; look \
         at the data before it is sent again"
    )]
    WriteUnknown {
        /// Its name.
        node: String,
    },
    /// A write was done, and the copy at this node does not have it yet.
    #[error(
        "the write was done at node {node} as snapshot {}, which this node does not have yet", .snapshot.0
    )]
    Behind {
        /// The node that takes all writes.
        node: String,
        /// The first snapshot that has it.
        snapshot: SnapshotNumber,
    },
    /// A write failed at the node that takes all writes, for a reason that has no variant of its own here.
    #[error("{message}")]
    AtLeader {
        /// Who has to do something about it.
        class: LeaderErrorClass,
        /// What that node says.
        message: String,
    },
    /// A transaction of a cluster is larger than its nodes send each other. Nothing was changed.
    #[error(
        "the transaction has {bytes} bytes, and nodes of a cluster send each other {limit_bytes} at most; \
         load large files before the cluster is started"
    )]
    TransactionTooLarge {
        /// Its bytes.
        bytes: u64,
        /// What they may send.
        limit_bytes: u64,
    },
    /// The documents of a write are larger than this node, which follows, hands to the one that leads. Nothing was changed.
    #[error(
        "the documents have more than the {limit_bytes} bytes that this node sends to the one that takes all writes: \
         send them to node {node}"
    )]
    DocumentsBeyondLink {
        /// What it hands on.
        limit_bytes: usize,
        /// The node that leads.
        node: String,
    },
    /// What is loaded into a cluster, as one transaction, takes more memory than all requests may hold
    /// together. Nothing was changed.
    #[error(
        "as one transaction of a cluster the load needs more than the {limit_bytes} bytes that all requests \
         may hold together; load large files before the cluster is started"
    )]
    LoadBeyondPool {
        /// What they may hold.
        limit_bytes: u64,
    },
    /// A load that is to keep within a given memory would not fill an empty store.
    #[error(
        "the memory of a load can be bounded (--memory) where it fills an empty store in a folder, and {reason}; \
         load without the bound, or into a new folder"
    )]
    BoundedLoad {
        /// What this is instead.
        reason: &'static str,
    },
    /// The address at which a node meets others cannot be had.
    #[error("other nodes cannot be met at {address}: {source}")]
    NodeAddress {
        /// As the list of nodes has it.
        address: String,
        /// What the operating system says.
        source: io::Error,
    },
    /// Nodes cannot ask each other.
    #[error(transparent)]
    Link(#[from] jindou_cluster::LinkError),
    /// Nodes that are to load together do not.
    #[error(transparent)]
    Mesh(#[from] jindou_cluster::MeshError),
    /// Another node could not do its part of what is done together. Nothing was made at any node.
    #[error("node {name} failed, and nothing was made: {reason}")]
    OtherNode {
        /// Which.
        name: String,
        /// What it says.
        reason: String,
    },
    /// A table that came from another part of the query, elsewhere, cannot be used.
    #[error("a table from elsewhere cannot be used: {source}")]
    Transport {
        /// Why not.
        source: WireError,
    },
    /// What nodes said to each other about a part of the query cannot be used.
    #[error("a message between nodes cannot be used: {source}")]
    SubQuery {
        /// Why not.
        source: SubQueryWireError,
    },
    /// A mistake of ours ended the query.
    #[error("an internal error ended the query; the log has its trace")]
    Internal,
    /// Input could not be read.
    #[error(transparent)]
    Ingest(#[from] IngestError),
    /// The operating system refused to read or write.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system starts no more threads.
    #[error("no thread can be started: {source}")]
    Thread {
        /// Why.
        source: io::Error,
    },
    /// A file of the store is not what was written.
    #[error("{}: the file is damaged: {reason}; load the store again or restore a copy", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// What is asked for would take something away that others use, or put it in the place of
    /// something else.
    #[error("{message}")]
    InUse {
        /// What, and by whom.
        message: String,
    },
    /// There is no stream or continuous query of this name.
    #[error("there is no {what}")]
    NotFound {
        /// What it is, and its name.
        what: String,
    },
    /// An event of a stream is not what it should be.
    #[error("{stream}: {}event {event}: {source}", line_of(*.line))]
    Event {
        /// The stream's name.
        stream: String,
        /// The number of the event in its text, from 1.
        event: u64,
        /// The line that it begins or goes wrong on, from 1, where that is known.
        line: Option<u64>,
        /// What is wrong.
        source: EventError,
    },
    /// The windows of a stream, with what waits to enter them, take all that they may.
    #[error(
        "the stream {name} is full: its windows may take {limit_bytes} bytes{}",
        for_whom(kept_for.as_deref())
    )]
    StreamFull {
        /// Its name.
        name: String,
        /// Its limit.
        limit_bytes: u64,
        /// The continuous query that needs the oldest of the tuples that it keeps, if one does.
        kept_for: Option<String>,
    },
    /// The streams and continuous queries that are there take all the memory that they may.
    #[error(
        "there are {queries} continuous queries and {streams} streams, and one more takes more than the \
         {limit_bytes} bytes that all of them may; drop one that is not needed"
    )]
    TooManyRegistered {
        /// How many streams there are.
        streams: u64,
        /// How many queries there are.
        queries: u64,
        /// What they may take together.
        limit_bytes: u64,
    },
    /// Anything else about the store: see the error inside.
    #[error(transparent)]
    Store(StoreError),
}

/// Who has to do something about a write that failed at another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum LeaderErrorClass {
    /// The client: the request is wrong.
    Request,
    /// The client: what it asks for does not agree with what is there.
    Conflict,
    /// Nobody: it may be tried again later.
    Unavailable,
    /// An endpoint or a server of documents gave no use.
    Elsewhere,
    /// An endpoint or a server of documents did not answer in time.
    ElsewhereTimedOut,
    /// Whoever keeps the disk of the node.
    DiskFull,
    /// We: it is a mistake of ours, or of the node's files.
    Internal,
}

/// A hint as it stands after a message.
fn after(hint: Option<&str>) -> String {
    hint.map_or_else(String::new, |hint| format!("; {hint}"))
}

/// Whose windows keep a stream full, as it stands after that it is.
fn for_whom(query: Option<&str>) -> String {
    query.map_or_else(String::new, |query| {
        format!(", and the continuous query {query} needs the oldest tuples")
    })
}

/// Who has a shard, as it stands after that it is lost.
fn with_node(node: Option<&str>) -> String {
    node.map_or_else(String::new, |node| format!(" with node {node}"))
}

fn line_of(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// A place as it stands after what is there.
fn at(place: Option<TextPlace>) -> String {
    place.map_or_else(String::new, |place| format!(" ({place})"))
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io { path, source } => Self::Io { path, source },
            StoreError::Corrupt { path, reason } => Self::Corrupt { path, reason },
            other => Self::Store(other),
        }
    }
}

impl From<NoStack> for EngineError {
    fn from(NoStack { bytes }: NoStack) -> Self {
        Self::NoStack { bytes }
    }
}

impl From<PlanError> for EngineError {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Syntax {
                line,
                column,
                message,
                hint,
            } => Self::Syntax {
                line: line as u64,
                column: column as u64,
                message,
                hint,
            },
            PlanError::Unsupported {
                feature,
                line,
                column,
            } => Self::Unsupported {
                feature,
                place: Some(TextPlace {
                    line: line as u64,
                    column: column as u64,
                }),
            },
            PlanError::UnknownName { name, line, column } => Self::NotFound {
                what: format!("stream or graph {name} (line {line}, column {column})"),
            },
            PlanError::NoStack(error) => error.into(),
            other => Self::InvalidQuery {
                message: other.to_string(),
            },
        }
    }
}

impl From<SyntaxError> for EngineError {
    /// What is wrong with data that was read before without an error.
    fn from(error: SyntaxError) -> Self {
        Self::InvalidQuery {
            message: error.to_string(),
        }
    }
}

impl EngineError {
    /// True if a node of the cluster that the query needed was lost, or did not have its snapshot.
    #[must_use]
    pub fn is_of_other_node(&self) -> bool {
        matches!(
            self,
            Self::ShardLost { .. } | Self::NodeLost { .. } | Self::SnapshotGone
        )
    }
}

impl From<ExecError> for EngineError {
    fn from(error: ExecError) -> Self {
        match error {
            ExecError::Timeout { limit } => Self::Timeout { limit },
            ExecError::Cancelled => Self::Cancelled,
            ExecError::Memory { limit_bytes } => Self::MemoryExceeded { limit_bytes },
            ExecError::SpillExceeded { limit_bytes } => Self::SpillExceeded { limit_bytes },
            ExecError::Spill { directory, source } => Self::Spill { directory, source },
            ExecError::PoolExhausted { limit_bytes } => Self::PoolExhausted { limit_bytes },
            ExecError::NoStack(error) => error.into(),
            ExecError::Panicked => Self::Internal,
            ExecError::Wire(source) => Self::Transport { source },
            ExecError::SubQuery(source) => Self::SubQuery { source },
            ExecError::ShardLost { shard } => Self::ShardLost {
                shard: shard.0,
                node: None,
            },
            ExecError::SnapshotGone => Self::SnapshotGone,
            ExecError::NodeLost { node } => Self::NodeLost {
                node: node.0,
                name: None,
            },
            ExecError::Service {
                endpoint,
                source: ServiceError::NotAllowed,
            } => Self::ServiceNotAllowed { endpoint },
            ExecError::Service { endpoint, source } => Self::Service { endpoint, source },
            other => Self::Unsupported {
                feature: other.to_string(),
                place: None,
            },
        }
    }
}
