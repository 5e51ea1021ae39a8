//! How does a node that has no copy of the store, or one that is too old, get one? It asks the node that leads, before it
//! opens anything, and puts what comes into the place of what it has.

use std::path::Path;
use std::time::Duration;

use jindou_cluster::{CopyRequest, PeerList, Secret};
use jindou_model::NodeId;
use jindou_store::Partial;

use crate::replica::{CopyError, ReceivedCopy, receive_copy};

/// How long a connection may take, and then the greeting.
const MEET_WITHIN: Duration = Duration::from_secs(10);
/// How long nothing may come.
const SILENT_WITHIN: Duration = Duration::from_secs(60);

/// Which node of which cluster gets a copy.
#[derive(Clone, Copy, Debug)]
pub struct FetchOptions<'a> {
    /// All nodes.
    pub peers: &'a PeerList,
    /// What only they know.
    pub secret: Option<&'a Secret>,
    /// Which of them this is.
    pub node: NodeId,
}

/// Copies the store of a node, which leads, into a folder: it is there as a whole or not at all, and then in the place of
/// a store that was there before, which nobody may have open. Tells how many of how many bytes have come. Takes the bytes of
/// the store beside those of the one before.
///
/// # Errors
/// [`CopyError`]. The folder is as it was.
///
/// # Panics
/// If the list has no such nodes.
pub fn fetch_copy(
    options: &FetchOptions<'_>,
    of: NodeId,
    location: &Path,
    progress: &dyn Fn(u64, u64),
) -> Result<ReceivedCopy, CopyError> {
    // What cannot be replaced is known before anything comes.
    let place = Partial::begin_in_place_of(location)?;
    let request = CopyRequest {
        peers: options.peers,
        secret: options.secret,
        here: options.node,
        within: MEET_WITHIN,
    };
    let mut stream = request.ask(of)?;
    let limited = stream.set_read_timeout(Some(SILENT_WITHIN));
    limited.map_err(CopyError::Connection)?;
    let copy = receive_copy(&mut stream, place.directory(), progress)?;
    place.replace()?;
    Ok(copy)
}
