//! Who reads the sources of streams, and who delivers results to brokers?
//!
//! [`Connectors`] has a thread for each source and each sink of a database. A source hands messages to its
//! stream, many at a time and each with a number that the stream remembers, so that none is lost and none
//! becomes part of a durable stream twice. A sink takes results from the log of its query, waits until the
//! broker has them, and notes up to which one that is: so each comes at least once, always with the same id
//! and content. Neither ever holds up the engine: a source waits while its stream is full, and a sink that
//! falls behind loses the oldest results, and counts them.
//!
//! The clients of brokers are features: `kafka` (librdkafka) and `mqtt`. What a build does not have is refused
//! by name. Linked Data Event Streams (`ldes`) need nothing but the engine, and are always there.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(all(feature = "kafka", feature = "mqtt")),
    allow(
        dead_code,
        reason = "some of what clients need is needed by one of them alone"
    )
)]

mod client;
mod connectors;
mod error;
#[cfg(feature = "kafka")]
mod kafka;
mod ldes;
#[cfg(feature = "mqtt")]
mod mqtt;
mod policy;
mod sink;
mod source;
mod status;
mod stop;

pub use connectors::Connectors;
pub use error::{BrokerError, Refused};
pub use ldes::PageError;
pub use policy::BrokerPolicy;
pub use status::{Connection, Pages, Position, RefusedMessage, SinkStatus, SourceStatus};
