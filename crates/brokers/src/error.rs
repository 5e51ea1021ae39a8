//! Why is a source or a sink refused, and why does one not go on?

use jindou_engine::{BrokerProtocol, EngineError, WebError};

use crate::ldes::PageError;

/// Why a source or a sink is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The program was built without the client.
    #[error(
        "{protocol} is not supported by this build: the feature `{protocol}` builds its client, as in \
         `cargo build --release --features {protocol}`"
    )]
    NotBuilt {
        /// The protocol's name.
        protocol: &'static str,
    },
    /// The settings do not allow to connect to an address.
    #[error("the broker {address} may not be connected to: --allow-broker does not allow it")]
    NotAllowed {
        /// The address.
        address: String,
    },
    /// The settings do not allow to read a page.
    #[error("{url} may not be read: {reason} (--allow-load says what may)")]
    Page {
        /// Its address.
        url: String,
        /// Why not.
        reason: WebError,
    },
    /// There are as many as there may be.
    #[error("there are {most} sources and sinks, as many as a server reads and feeds")]
    TooMany {
        /// The bound.
        most: usize,
    },
}

impl Refused {
    pub(crate) fn not_built(protocol: BrokerProtocol) -> Self {
        Self::NotBuilt {
            protocol: protocol.name(),
        }
    }
}

/// Why a connection ended, after which it is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokerError {
    /// The broker cannot be reached, or refuses something.
    #[error("{what}: {reason}")]
    Client {
        /// What was tried.
        what: &'static str,
        /// What the client says.
        reason: String,
    },
    /// The topic is not there.
    #[error("the broker has no topic {topic}")]
    NoTopic {
        /// Its name.
        topic: String,
    },
    /// The topic has more partitions than are read.
    #[error("the topic has {partitions} partitions, and at most {most} are read")]
    TooManyPartitions {
        /// How many it has.
        partitions: usize,
        /// The bound.
        most: usize,
    },
    /// The topic ends before what was read of it: it is another one of the same name.
    #[error(
        "partition {partition} ends at offset {end}, and was read up to {next}: it was made anew, so the \
         stream is to be made anew, too"
    )]
    Behind {
        /// The number of the partition.
        partition: i32,
        /// The offset after its last message.
        end: i64,
        /// The next offset to be read.
        next: i64,
    },
    /// The topic has other partitions than before.
    #[error("the topic has other partitions")]
    Repartitioned,
    /// A page of an event stream cannot be taken.
    #[error("{address}: {source}")]
    Page {
        /// Its address.
        address: String,
        /// Why not.
        source: Box<PageError>,
    },
    /// An event stream has more members than are known at once.
    #[error(
        "more than {most} members are on pages that may change, which the server does not say never will          (Cache-Control: immutable)"
    )]
    TooManyMembers {
        /// The bound.
        most: usize,
    },
    /// An event stream has more pages than are known at once.
    #[error(
        "it has more than {most} pages that never change, or more than {most_open} others (which the server \
         does not say never will, by Cache-Control: immutable)"
    )]
    TooManyPages {
        /// The bound of pages that never change.
        most: usize,
        /// That of others.
        most_open: usize,
    },
    /// What was noted before is not what this program notes.
    #[error("the notes of the source make no sense: the stream is to be made anew")]
    BadNotes,
    /// The engine takes nothing for now.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The stream or the query is gone.
    #[error("it was dropped")]
    Gone,
    /// The server stops.
    #[error("the server stops")]
    Stopped,
}

impl BrokerError {
    pub(crate) fn client(what: &'static str, reason: &impl ToString) -> Self {
        Self::Client {
            what,
            reason: reason.to_string(),
        }
    }
}
