//! What does etcd keep, and who changed it?
//!
//! A blocking client of etcd 3.4 and later over its HTTP/JSON gateway, for the little that a cluster needs of
//! it: a key is read, and changed if nobody else changed it ([`Client::put_if`]); and changes are heard in their
//! order ([`Client::watch`]).
//!
//! ```no_run
//! use jindou_etcd::{Client, Expected, Options, Swap};
//!
//! let client = Client::new(Options::new("http://10.0.0.1:2379,http://10.0.0.2:2379".parse()?))?;
//! let expected = match client.get(b"/leader")? {
//!     None => Expected::Absent,
//!     Some(value) => Expected::Revision(value.revision),
//! };
//! match client.put_if(b"/leader", expected, b"node 1")? {
//!     Swap::Won(revision) => println!("written at {revision}"),
//!     Swap::Lost(found) => println!("another was faster: {found:?}"),
//! }
//! # Ok::<(), jindou_etcd::Error>(())
//! ```

#![forbid(unsafe_code)]

mod client;
mod error;
mod lines;
#[cfg(unix)]
mod local;
mod options;
mod secured;
#[cfg(test)]
mod testing;
mod transport;
mod unsent;
mod watch;
mod wire;
mod worker;

pub use client::{Client, Expected, Listing, Status, Swap};
pub use error::{Cause, Error};
#[cfg(unix)]
pub use local::LocalEtcd;
pub use options::{Endpoints, Identity, MOST_ENDPOINTS, Options, TlsFiles, User};
pub use transport::MOST_ANSWER_BYTES;
pub use watch::{Event, Watch};
pub use wire::{Revision, Value};
