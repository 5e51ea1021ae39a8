//! What does a node say of itself before it joins? Texts of bounded length, of which a terminal obeys nothing.

use serde::{Deserialize, Serialize};

use super::HelloError;
use crate::peers::is_name;
use jindou_model::is_printable;

/// The most bytes of facts on their way.
pub(super) const MOST_FACTS_BYTES: usize = 4096;
/// The most bytes of [`Facts::snapshot`].
pub const MOST_SNAPSHOT_BYTES: usize = 200;
/// The most bytes of [`Facts::program`].
const MOST_PROGRAM_BYTES: usize = 100;

/// What a node says of itself. Whoever can connect to it can read this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of its program, of 100 bytes at most.
    pub program: String,
    /// The digest of its list of peers ([`PeerList::digest`](crate::PeerList::digest)).
    pub cluster: [u8; 32],
    /// How often that had changed ([`PeerList::version`](crate::PeerList::version)).
    pub list: u64,
    /// Its name in this list.
    pub name: String,
    /// Shards of the cluster.
    pub shards: u32,
    /// Which snapshot of which store it serves, in a form of [`MOST_SNAPSHOT_BYTES`] at most that is equal for
    /// copies.
    pub snapshot: String,
    /// It serves nothing, and asks for a copy of the other one's store.
    pub wants_copy: bool,
}

impl Facts {
    /// The facts as bytes.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, HelloError> {
        self.check()?;
        Ok(postcard::to_extend(self, Vec::new()).expect("memory takes all that is written"))
    }

    /// The facts of these bytes, which anybody may have sent.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, HelloError> {
        let read: Result<(Self, &[u8]), _> = postcard::take_from_bytes(bytes);
        match read {
            Ok((facts, [])) => facts.check().map(|()| facts),
            _ => Err(HelloError::Malformed("what it says of itself")),
        }
    }

    fn check(&self) -> Result<(), HelloError> {
        if !is_name(&self.name) {
            return Err(HelloError::Malformed("the name of a node"));
        }
        for (what, text, most_bytes) in [
            (
                "the version of a program",
                &self.program,
                MOST_PROGRAM_BYTES,
            ),
            (
                "the name of a snapshot",
                &self.snapshot,
                MOST_SNAPSHOT_BYTES,
            ),
        ] {
            if text.len() > most_bytes {
                return Err(too_long(what, text.len() as u64, most_bytes));
            }
            if !is_printable(text) {
                return Err(HelloError::Malformed(what));
            }
        }
        Ok(())
    }
}

/// That what a node says in a handshake is too long.
pub(super) fn too_long(what: &'static str, found_bytes: u64, most_bytes: usize) -> HelloError {
    HelloError::TooLong {
        what,
        found_bytes,
        most_bytes: most_bytes as u64,
        advice: "run one version of the program on all nodes",
    }
}
