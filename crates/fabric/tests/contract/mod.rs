//! Does a fabric do what the documentation of `Fabric` and of rings says?
//!
//! Each implementation runs [`all`] from a test of its own, in this crate or another one:
//! `#[path = "../../fabric/tests/contract/mod.rs"] mod contract;`. A case gets a new cluster.

mod bells;
mod failures;
mod memory;
mod rings;

use std::sync::Arc;
use std::time::Duration;

use jindou_fabric::remote::{Batch, Completed, Fabric, Interrupt, MemoryKey, NodeId, RemoteMemory};
use jindou_fabric::{FabricError, Region};

/// Nodes of an implementation, connected with each other.
pub(crate) struct Cluster {
    /// By their numbers.
    pub(crate) fabrics: Vec<Arc<dyn Fabric>>,
    /// Ends a node as a crash does.
    pub(crate) kill: Box<dyn Fn(NodeId)>,
    /// Threads may block while others go on; false where all happens in one.
    pub(crate) has_threads: bool,
    /// What a killed node itself tries is an error: it is no other process that is gone.
    pub(crate) outlives_itself: bool,
}

/// Longer than anything here takes: what is not done by then hangs.
const LIMIT: Duration = Duration::from_secs(60);

impl Cluster {
    fn fabric(&self, node: usize) -> Arc<dyn Fabric> {
        Arc::clone(&self.fabrics[node])
    }

    fn kill(&self, node: u32) {
        (self.kill)(NodeId(node));
    }
}

/// Ends a wait that hangs.
fn soon(fabric: &dyn Fabric) -> Interrupt<'static> {
    Interrupt::at(fabric.now() + LIMIT)
}

fn complete(fabric: &dyn Fabric, batch: Batch) -> Result<Completed, FabricError> {
    fabric.complete(batch, &soon(fabric))
}

/// Opens a key that came as bytes.
fn open(fabric: &dyn Fabric, key: &MemoryKey) -> Result<RemoteMemory, FabricError> {
    fabric.open(&MemoryKey::from_bytes(&key.to_bytes())?)
}

/// Reads all at once, and directly if that can be: both agree.
fn read(
    fabric: &dyn Fabric,
    memory: &RemoteMemory,
    offset: u64,
    length: usize,
) -> Result<Vec<u8>, FabricError> {
    let mut batch = Batch::new();
    let answer = batch.read(memory, offset, length)?;
    let completed = complete(fabric, batch);
    let mut bytes = vec![0; length];
    match (fabric.try_read(memory, offset, &mut bytes), completed) {
        (Ok(is_read), Ok(completed)) => {
            let answer = completed.bytes(answer);
            assert!(!is_read || bytes == answer);
            Ok(answer.to_vec())
        }
        (Ok(is_read), Err(error)) => {
            assert!(!is_read, "{error:?}, but it was read");
            Err(error)
        }
        (Err(error), completed) => {
            assert_eq!(completed.unwrap_err(), error);
            Err(error)
        }
    }
}

/// Opens a key and reads all of the memory: finds whether it is there.
fn reach(fabric: &dyn Fabric, key: &MemoryKey) -> Result<Vec<u8>, FabricError> {
    let memory = open(fabric, key)?;
    read(fabric, &memory, 0, key.length() as usize)
}

/// Bytes that differ by place and salt.
fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|i| ((i * 31 + (i >> 8) * 17 + salt * 101) % 251) as u8)
        .collect()
}

/// A region in the fabric's memory.
fn region(fabric: &dyn Fabric, bytes: &[u8]) -> Region {
    let mut builder = fabric.allocate(bytes.len()).unwrap();
    builder.copy_from_slice(bytes);
    builder.finish()
}

/// Runs every case, each with a new cluster of as many nodes as it asks for.
pub(crate) fn all(new: &dyn Fn(usize) -> Cluster) {
    for (name, nodes, case) in memory::CASES
        .iter()
        .chain(bells::CASES)
        .chain(failures::CASES)
        .chain(rings::CASES)
    {
        println!("{name}");
        case(&new(*nodes));
    }
}

/// A name, the number of nodes, and what to do with them.
type Case = (&'static str, usize, fn(&Cluster));
