//! What is wrong with a list of peers, and where?

use std::io;
use std::path::PathBuf;

use jindou_partition::{MapError, ShardsError};

use super::{MOST_NAME_BYTES, MOST_NODES};
use crate::secret::SecretError;

/// Names that an error lists at most.
pub(super) const KNOWN_NAMES: usize = 20;

/// A list of peers cannot be read, or is none, or lacks a node.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeersError {
    /// A file cannot be read.
    #[error("{}", path.display())]
    File {
        /// The list, or the secret.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The secret cannot be one.
    #[error("{}", path.display())]
    Secret {
        /// Its file.
        path: PathBuf,
        /// Why.
        source: SecretError,
    },
    /// What is wrong, in a list that is a file.
    #[error("{}, {error}", path.display())]
    In {
        /// The file.
        path: PathBuf,
        /// [`PeersError::Syntax`] or [`PeersError::Wrong`].
        error: Box<PeersError>,
    },
    /// The text is not TOML, lacks a key or has one that means nothing.
    #[error("line {line}: {reason}")]
    Syntax {
        /// From 1.
        line: usize,
        /// What the parser says.
        reason: String,
    },
    /// A value cannot be.
    #[error("line {line}, {key}: {reason}")]
    Wrong {
        /// From 1.
        line: usize,
        /// The key whose value it is.
        key: &'static str,
        /// Why.
        reason: WrongPeers,
    },
    /// A list that is kept elsewhere cannot be.
    #[error("the list of nodes: {0}")]
    Kept(WrongPeers),
    /// No node has this name.
    #[error("no node is named {name:?}: there are {}{}", known.join(", "), and_more(*more))]
    UnknownNode {
        /// The name.
        name: String,
        /// The first of those that there are.
        known: Vec<String>,
        /// How many there are besides.
        more: usize,
    },
}

/// Why a value of a list cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WrongPeers {
    /// The list is empty.
    #[error("a cluster has at least one [[node]]")]
    NoNodes,
    /// The list is too long.
    #[error("{0} nodes, and a cluster has at most {MOST_NODES}")]
    TooManyNodes(usize),
    /// It is no name.
    #[error(
        "{0:?} is no name: it takes 1 to {MOST_NAME_BYTES} characters of A-Z, a-z, 0-9, `.`, `_` and `-`"
    )]
    Name(String),
    /// Another node has the name.
    #[error("{name} is the name of the node in line {first_line}, too")]
    DuplicateName {
        /// The name.
        name: String,
        /// Where the other has it.
        first_line: usize,
    },
    /// Another node has the name, in a list without lines.
    #[error("two nodes are named {0}")]
    SameName(String),
    /// Another node has the address, in a list without lines.
    #[error("{0} is the address of another node, too")]
    SameAddress(String),
    /// It is no address that others can reach.
    #[error("{0:?} is no address of a node: it is host:port, or [host]:port for IPv6")]
    Address(String),
    /// Another node has the address.
    #[error("{address} is the address of the node in line {first_line}, too")]
    DuplicateAddress {
        /// The address.
        address: String,
        /// Where the other has it.
        first_line: usize,
    },
    /// It is no URL of an HTTP server.
    #[error("{0:?} is no URL that begins with http:// or https://")]
    Http(String),
    /// There cannot be so many shards.
    #[error(transparent)]
    Shards(ShardsError),
    /// There are too few shards.
    #[error(transparent)]
    Map(MapError),
    /// Anybody who reaches the address could be a node.
    #[error("a secret-file is needed where nodes are reached over a network, as at {0}")]
    NoSecret(String),
    /// The path of the secret is empty.
    #[error("the path of a file is needed")]
    NoPath,
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        _ => format!(" and {more} more"),
    }
}

/// The line of a place in a text, from 1.
pub(super) fn line_of(text: &[u8], at: usize) -> usize {
    let before = &text[..at.min(text.len())];
    before.iter().filter(|byte| **byte == b'\n').count() + 1
}
