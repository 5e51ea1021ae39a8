//! How is a shard of another node asked what only it can answer?
//!
//! By messages. A [`ShardServer`] makes of a request's bytes those of its answer; a [`Listening`] thread
//! does so for what comes over a link, a pair of rings. At the other node a [`Connection`] has the other
//! end, and [`AskedShards`] are a graph whose calls go over it.
//!
//! A request names the shard and the snapshot, a number that the server gave to what it holds
//! ([`ShardServer::serve`]): connections outlive snapshots. What is not answered in time is
//! [`NotNow`](jindou_model::Unavailable::NotNow), and what cannot be any more
//! [`Never`](jindou_model::Unavailable::Never).

mod asked;
mod connection;
mod link;
mod listening;
#[cfg(test)]
pub(crate) mod naive;
mod pages;
mod server;
mod terms;
#[cfg(test)]
mod tests;
mod wire;
mod words;

pub use asked::AskedShards;
pub use connection::Connection;
pub(crate) use link::is_interrupt;
pub use link::{Link, LinkEnd, LinkError, LinkOptions, OpenEnd};
pub use listening::Listening;
#[cfg(target_os = "linux")]
pub(crate) use server::incarnation;
pub use server::{ServedShards, ShardServer};
pub use terms::AskedTerms;
pub(crate) use terms::{Asking, MOST_BYTES, MOST_TERMS};
pub use words::ServedId;
