//! How do nodes that make something together exchange bytes, each with each?
//!
//! By a connection between each two of them, which both have proved to be of. All make the same calls in the same
//! order: what one sends in a call, the others get in theirs. A node that goes, or cannot go on, ends the calls of all.

mod error;
mod meet;
#[cfg(test)]
mod tests;

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use jindou_model::NodeId;
use xxhash_rust::xxh3::xxh3_64;

pub use self::error::MeshError;
use crate::{PeerList, Secret};

/// The longest text of what nodes are about to do together.
const MOST_PURPOSE_BYTES: u64 = 1 << 10;

/// Who is to be met, and where.
pub struct MeshOptions<'a> {
    /// All nodes.
    pub peers: &'a PeerList,
    /// This one.
    pub here: NodeId,
    /// What proves to others that it is one of them.
    pub secret: Option<&'a Secret>,
    /// What they are about to do together, in words: all must say the same.
    pub purpose: String,
    /// Where others come to; a listener at the address of the list if there is none.
    pub listener: Option<TcpListener>,
    /// All must be there after this time.
    pub within: Duration,
}

/// Connections with all other nodes.
#[derive(Debug)]
pub struct Mesh {
    here: NodeId,
    /// By node; none with itself.
    others: Vec<Option<Other>>,
    sent: AtomicU64,
    /// The number of the node that was lost first, and one more; 0 before.
    lost: AtomicU32,
}

/// A connection with another node.
#[derive(Debug)]
struct Other {
    name: String,
    stream: TcpStream,
}

impl Mesh {
    /// Meets all nodes. Now and then `waiting` is told the names of those that are not there yet.
    ///
    /// # Errors
    /// [`MeshError`].
    pub fn meet(options: MeshOptions<'_>, waiting: &dyn Fn(&[&str])) -> Result<Self, MeshError> {
        let (here, purpose) = (options.here, options.purpose.clone());
        let streams = meet::meet(options, waiting)?;
        let mesh = Self {
            here,
            others: streams,
            sent: AtomicU64::new(0),
            lost: AtomicU32::new(0),
        };
        mesh.compare(&purpose)?;
        Ok(mesh)
    }

    /// Refuses nodes that are about to do something else.
    fn compare(&self, purpose: &str) -> Result<(), MeshError> {
        let mut own = vec![purpose.as_bytes().to_vec(); self.others.len()];
        let mut told = vec![Vec::new(); self.others.len()];
        self.exchange_within(&mut own, &mut told, MOST_PURPOSE_BYTES)?;
        for (other, theirs) in self.others.iter().zip(told) {
            if let Some(other) = other
                && theirs != purpose.as_bytes()
            {
                let theirs = String::from_utf8_lossy(&theirs);
                return Err(MeshError::OtherPurpose {
                    name: other.name.clone(),
                    theirs: jindou_model::printable(&theirs).into_owned(),
                    here: purpose.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// How many nodes there are.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.others.len() as u32
    }

    /// Which one this is.
    #[must_use]
    pub fn here(&self) -> NodeId {
        self.here
    }

    /// Bytes that it has sent to others.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Gives each node its bytes, and gets what each has for this one, by node; the own ones come back as they are.
    /// Waits for all nodes to make the call. Holds all of these bytes.
    ///
    /// # Errors
    /// As [`Self::exchange_into`].
    ///
    /// # Panics
    /// If there are not bytes for each node.
    pub fn exchange(&self, mut to: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, MeshError> {
        let mut got = vec![Vec::new(); to.len()];
        self.exchange_into(&mut to, &mut got)?;
        Ok(got)
    }

    /// The same: what nodes have for this one takes the place of what is in `got`, whose room is used again, and the own
    /// bytes change places.
    ///
    /// # Errors
    /// [`MeshError::Lost`] once a node has gone; [`MeshError::Damaged`] where bytes are not those that were sent;
    /// [`MeshError::Thread`]. All later calls fail then, here and elsewhere.
    ///
    /// # Panics
    /// If there are not bytes for each node, or no places for those of each.
    pub fn exchange_into(&self, to: &mut [Vec<u8>], got: &mut [Vec<u8>]) -> Result<(), MeshError> {
        self.exchange_within(to, got, u64::MAX)
    }

    /// The same, where nobody has more than so many bytes for this one.
    fn exchange_within(
        &self,
        to: &mut [Vec<u8>],
        got: &mut [Vec<u8>],
        most: u64,
    ) -> Result<(), MeshError> {
        assert_eq!(to.len(), self.others.len(), "each node has its bytes");
        assert_eq!(got.len(), self.others.len(), "each node's have a place");
        let done = thread::scope(|scope| {
            let mut calls = Vec::with_capacity(to.len());
            for (node, (other, (to, got))) in
                (1..).zip(self.others.iter().zip(to.iter_mut().zip(got)))
            {
                let Some(other) = other else {
                    std::mem::swap(to, got);
                    continue;
                };
                self.sent.fetch_add(to.len() as u64, Ordering::Relaxed);
                let write = move || self.ended(node, other.write(to));
                let read = move || self.ended(node, other.read(got, most));
                let write = thread::Builder::new().spawn_scoped(scope, write);
                let read = thread::Builder::new().spawn_scoped(scope, read);
                calls.push((node, Call { other, write, read }));
            }
            let done = calls
                .into_iter()
                .map(|(node, call)| (node, self.wait_for(call)));
            // All are waited for.
            done.collect::<Vec<(u32, Result<(), MeshError>)>>()
        });
        let mut failed = None;
        let first = self.lost.load(Ordering::SeqCst);
        for (node, one) in done {
            // Those that were lost after the first were lost because of it.
            if let Err(error) = one
                && (failed.is_none() || node == first)
            {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// What a call with a node came to.
    fn wait_for(&self, call: Call<'_, '_>) -> Result<(), MeshError> {
        let threads = call.write.and_then(|write| Ok((write, call.read?)));
        let (write, read) = threads.map_err(|source| {
            // The other threads wait for this no longer.
            self.end();
            MeshError::Thread { source }
        })?;
        let never = "reading and writing do not panic";
        let (written, read) = (write.join().expect(never), read.join().expect(never));
        let name = || call.other.name.clone();
        let gone = |source| MeshError::Lost {
            name: name(),
            source,
        };
        written.map_err(gone)?;
        read.map_err(|error| match error.downcast::<Damaged>() {
            Ok(Damaged) => MeshError::Damaged { name: name() },
            Err(source) => gone(source),
        })
    }

    /// What was read or written; where that failed, nobody waits for anybody any more.
    fn ended<T>(&self, node: u32, moved: io::Result<T>) -> io::Result<T> {
        moved.inspect_err(|_| {
            let first = (Ordering::SeqCst, Ordering::SeqCst);
            let _noted = self.lost.compare_exchange(0, node, first.0, first.1);
            self.end();
        })
    }

    /// Ends all connections: others cannot go on without this node, either.
    fn end(&self) {
        self.others.iter().flatten().for_each(Other::end);
    }
}

/// A thread that moves bytes, if it could be started.
type Moving<'scope> = io::Result<thread::ScopedJoinHandle<'scope, io::Result<()>>>;

/// What is under way with another node.
struct Call<'scope, 'o> {
    other: &'o Other,
    write: Moving<'scope>,
    read: Moving<'scope>,
}

/// A message is not what its checksum says.
#[derive(Debug, thiserror::Error)]
#[error("a message is not what was sent")]
struct Damaged;

/// A message begins with its length and its checksum: that of TCP has 16 bits, which is few for what takes hours.
const HEAD_BYTES: usize = 16;

impl Other {
    fn end(&self) {
        // It fails where the connection is over, which is what is wanted.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut stream = &self.stream;
        let mut head = [0; HEAD_BYTES];
        head[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        head[8..].copy_from_slice(&xxh3_64(bytes).to_le_bytes());
        stream.write_all(&head)?;
        stream.write_all(bytes)
    }

    /// Puts a message in the place of what is in `bytes`.
    fn read(&self, bytes: &mut Vec<u8>, most: u64) -> io::Result<()> {
        let mut stream = &self.stream;
        let mut head = [[0; 8]; 2];
        stream.read_exact(head.as_flattened_mut())?;
        let [length, checksum] = head.map(u64::from_le_bytes);
        bytes.clear();
        if length > most {
            let what = format!("it sends {length} bytes, where {most} are the most");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        // Its room is made at once, but takes no memory before the bytes come.
        let room = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let reserved = bytes.try_reserve_exact(room);
        reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
        let read = stream.take(length).read_to_end(bytes)?;
        if (read as u64) < length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match xxh3_64(bytes) == checksum {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidData, Damaged)),
        }
    }
}
