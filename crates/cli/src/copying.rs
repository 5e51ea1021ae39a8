//! How does a node get the store of the one that leads, and what does it say meanwhile? It asks one node after the other until
//! one gives a copy.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jindou_bench::table::{bytes, thousands};
use jindou_engine::{CopyError, FetchOptions, NodeId, ReceivedCopy, fetch_copy, printable};

use crate::progress::Watch;

/// How long after nobody gave a copy all are asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Whether a folder is absent or has nothing in it.
///
/// # Errors
/// One that cannot be looked at.
pub(crate) fn is_empty(location: &Path) -> anyhow::Result<bool> {
    let entries = match std::fs::read_dir(location) {
        Ok(mut entries) => entries.next().transpose(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => Err(error),
    };
    let first = entries.with_context(|| location.display().to_string())?;
    Ok(first.is_none())
}

/// Copies the store of the node that leads, whenever one does, to where that of this node is to be.
///
/// # Errors
/// What the place does not take, and a list that has no other node.
pub(crate) fn copy(options: &FetchOptions<'_>, location: &Path) -> anyhow::Result<()> {
    let peers = options.peers.peers();
    let own = &peers[options.node.0 as usize].name;
    let others = (0..peers.len() as u32).map(NodeId);
    let others: Vec<NodeId> = others.filter(|node| *node != options.node).collect();
    if others.is_empty() {
        bail!("the list has no node but {own}: there is nobody to copy the store of");
    }
    note!(
        "node {own} copies the store of the node that leads to {}",
        location.display()
    );
    let mut told = String::new();
    loop {
        let reasons = match ask_all(options, &others, location)? {
            Ok(()) => return Ok(()),
            Err(reasons) => reasons,
        };
        if reasons != told {
            note!("node {own} waits for a copy of the store: {reasons}");
            told = reasons;
        }
        thread::sleep(AGAIN);
    }
}

/// Asks each node once, and one that another one names at once after that; says why none gives a copy.
fn ask_all(
    options: &FetchOptions<'_>,
    others: &[NodeId],
    location: &Path,
) -> anyhow::Result<Result<(), String>> {
    let mut left = others.to_vec();
    let mut reasons = Vec::new();
    while !left.is_empty() {
        let node = left.remove(0);
        let name = &options.peers.peers()[node.0 as usize].name;
        match ask(options, (node, name), location) {
            Ok(()) => return Ok(Ok(())),
            Err(CopyError::Store(error)) => return Err(error.into()),
            Err(error) => {
                if let CopyError::Refused {
                    leader: Some(leader),
                    ..
                } = &error
                    && let Ok(leader) = options.peers.node(leader)
                    && let Some(at) = left.iter().position(|other| *other == leader)
                {
                    left.swap(0, at);
                }
                reasons.push(format!("{name} ({})", printable(&error.to_string())));
            }
        }
    }
    reasons.sort_unstable();
    Ok(Err(reasons.join(", ")))
}

fn ask(
    options: &FetchOptions<'_>,
    (node, name): (NodeId, &str),
    location: &Path,
) -> Result<(), CopyError> {
    let so_far = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let seen = Arc::clone(&so_far);
    let watch = Watch::start(format!("copying the store of node {name}"), move || {
        let (done, total) = (seen.0.load(Relaxed), seen.1.load(Relaxed));
        let words = format!("{} of {}", bytes(done), bytes(total));
        (done, (total > 0).then_some(total), words)
    });
    let begun = Instant::now();
    let copied = fetch_copy(options, node, location, &|done, total| {
        so_far.0.store(done, Relaxed);
        so_far.1.store(total, Relaxed);
    });
    drop(watch);
    let ReceivedCopy {
        snapshot, bytes: n, ..
    } = copied?;
    note!(
        "copied the store of node {name}: snapshot {}, {} in {:.1} s",
        thousands(snapshot.0),
        bytes(n),
        begun.elapsed().as_secs_f64()
    );
    Ok(())
}
