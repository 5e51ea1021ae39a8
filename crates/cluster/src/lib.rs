//! What do many shards answer together?
//!
//! [`Sharded`] is a graph over graphs, each of which has the rows of one shard. It asks each shard for
//! the keys that it owns and for no others, and puts the answers in the order that callers expect.
//! [`LogicalNodes`] are nodes in one process, between which sub-queries go. [`OneSided`] reads shards of
//! other nodes without asking these, and [`AskedShards`] ask for them by messages. [`DealtTerms`] is a dictionary over parts of it at
//! nodes. A [`Mail`] carries messages
//! of sub-queries to another node and back.
//!
//! Where nodes are processes, a [`PeerList`] says which there are, and a [`Handshake`] over a connection that two of
//! them belong together. Those that load together are a [`Mesh`]; one that has no copy of the store asks for it by a
//! [`CopyRequest`].

#![forbid(unsafe_code)]

mod advert;
mod ask;
mod calls;
mod connect;
mod copy;
mod dealt;
mod expand;
mod hello;
mod logical;
mod mail;
mod matching;
#[cfg(target_os = "linux")]
mod member;
mod members;
mod mesh;
mod message_cost;
mod one_sided;
mod peers;
mod rows;
mod secret;
mod sharded;
mod workers;

pub use advert::{Advert, AdvertError, BaseTags};
pub use calls::{
    AskedShards, AskedTerms, Connection, Link, LinkEnd, LinkError, LinkOptions, Listening, OpenEnd,
    ServedId, ServedShards, ShardServer,
};
pub use copy::{CopyRequest, CopyRequestError};
pub use dealt::DealtTerms;
pub use hello::{
    Duplex, Facts, Greeted, Handshake, HelloError, MOST_MESSAGE_BYTES, MOST_SNAPSHOT_BYTES,
    PROTOCOL_VERSION, Role,
};
pub use logical::{ForkMessages, LogicalNodes, NodeGraphs, NodeTerms};
pub use mail::{Mail, MailCounts, MailLimits, Postman};
#[cfg(target_os = "linux")]
pub use member::{
    LastSeen, LinkUser, Member, MemberGraphs, MemberOptions, MemberStatus, OwnBase, OwnGraph,
    Presence, SeenGraph,
};
pub use mesh::{Mesh, MeshError, MeshOptions};
pub use message_cost::MESSAGE_COST_BY_TCP;
pub use one_sided::{Offered, OneSided, Publication, ReadCounts, RemoteReads};
pub use peers::{MOST_NODES, Peer, PeerList, PeersError, Stage, WrongPeers, read_secret};
pub use secret::{Secret, SecretError};
pub use sharded::{ChangedLists, Sharded};
pub use workers::{ThreadStart, ThreadStarts};
