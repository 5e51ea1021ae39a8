//! Bulk load by the nodes of a cluster: each reads its share of the same files, and ends with its part of the store.
//!
//! Nobody holds the whole at any time. All succeed or none: a part takes its place when those of all nodes are on
//! their devices.

use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use jindou_cluster::{Mesh, MeshError, MeshOptions, Peer, PeerList, Secret};
use jindou_ingest::{LoadOptions, Progress, Share, Source};
use jindou_model::{NodeId, SnapshotNumber};
use jindou_store::bulk::dealt::{DealtPart, Exchange, ExchangeError, build_part};
use jindou_store::{Base, DurableStore, Partial, Snapshot};

use crate::load::{Collected, Declared, LoadReport, release_free_memory, report};
use crate::split::FileBytes;
use crate::{Database, EngineError, prefixes};

/// Bytes of a purpose that are told to other nodes, for people to compare.
const PURPOSE_BYTES: usize = 400;

/// With whom a node loads.
pub struct PartOptions {
    /// All nodes, each of which is started with the same files and options.
    pub peers: PeerList,
    /// Which of them this is.
    pub node: NodeId,
    /// What proves to others that it is one of them.
    pub secret: Option<Secret>,
    /// Where others come to; a listener at its address if there is none.
    pub listener: Option<TcpListener>,
    /// How long the others are waited for, until all are there.
    pub meet_within: Duration,
    /// What is loaded and how, in words that are the same at all nodes: those that differ refuse each other.
    pub purpose: String,
    /// The default graph of queries is the union of all graphs, unless they say otherwise.
    pub union_default_graph: bool,
}

/// What a node has of a load that nodes made together.
#[derive(Debug)]
#[non_exhaustive]
pub struct PartReport {
    /// What it read, and how many quads there are at all nodes together.
    pub load: LoadReport,
    /// The files of its part.
    pub bytes: FileBytes,
    /// Bytes that it gave to other nodes.
    pub sent_bytes: u64,
}

/// The exchange of a load, by a mesh.
struct ByMesh<'a>(&'a Mesh);

impl Exchange for ByMesh<'_> {
    fn nodes(&self) -> u32 {
        self.0.nodes()
    }

    fn here(&self) -> NodeId {
        self.0.here()
    }

    fn exchange(&self, to: &mut [Vec<u8>], got: &mut [Vec<u8>]) -> Result<(), ExchangeError> {
        self.0.exchange_into(to, got).map_err(ExchangeError::new)
    }
}

impl Database {
    /// Loads files together with other nodes into a folder that must be absent or empty: what all have loaded is one
    /// store, of which each has its [part](Database::split) at the end. A part is opened by
    /// [`Database::open_to_join`]. `waiting` is told the names of those nodes that are not there yet.
    ///
    /// Each node reads its [`Share`] of the sources, holds about its part of the terms and edges, and sends each edge
    /// to the nodes that have its ends. Ids are those that one process would have given.
    ///
    /// # Errors
    /// As [`Database::create`]; [`EngineError::Mesh`] where nodes are not there, go, or are about to do something else,
    /// and [`EngineError::OtherNode`] with what one of the others failed at. Nothing is left then, at any node.
    pub fn create_part(
        location: &Path,
        sources: Vec<Source>,
        options: &LoadOptions,
        progress: &Progress,
        with: PartOptions,
        waiting: &dyn Fn(&[&str]),
    ) -> Result<PartReport, EngineError> {
        let place = Partial::begin(location)?;
        let (peers, node) = (&with.peers, with.node);
        let mesh = Mesh::meet(
            MeshOptions {
                peers,
                here: node,
                secret: with.secret.as_ref(),
                purpose: short(&with.purpose),
                listener: with.listener,
                within: with.meet_within,
            },
            waiting,
        )?;
        let mut options = options.clone();
        options.share = Some(Share {
            number: node.0,
            of: mesh.nodes(),
        });
        let collected = Collected::read(sources, &options, progress);
        let together = Together { peers, mesh: &mesh };
        let mut collected = together.agree(collected)?;
        let begin = Instant::now();
        let declared = together.declared(std::mem::take(&mut collected.report.prefixes))?;
        let sinks = std::mem::take(&mut collected.sinks);
        let part = DealtPart::new(peers.map(), &peers.peers()[node.0 as usize].name);
        let documents = collected.report.next_blank_scope;
        let base = build_part(sinks, documents, part, &ByMesh(&mesh));
        release_free_memory();
        let base = base?.with_union(with.union_default_graph);
        let written = write(&place, base, &declared);
        let quads = together.agree(written)?;
        let bytes = FileBytes::of(&place.directory().files()?);
        let placed = place.finish().map_err(EngineError::from);
        let is_placed = placed.is_ok();
        if let Err(error) = together.agree(placed) {
            if is_placed {
                // What is left of it would keep the next load out; that it cannot be removed is no other failure.
                let _ = std::fs::remove_dir_all(location);
            }
            return Err(error);
        }
        let times = [collected.read_time, begin.elapsed()];
        Ok(PartReport {
            load: report(collected.report, quads, times),
            bytes,
            sent_bytes: mesh.sent_bytes(),
        })
    }
}

/// A purpose, of which what is beyond [`PURPOSE_BYTES`] is a number that tells it from others.
fn short(purpose: &str) -> String {
    let border = purpose.floor_char_boundary(PURPOSE_BYTES);
    match purpose.len() > border {
        false => purpose.to_owned(),
        true => {
            let digest = jindou_dictionary::hash(purpose.as_bytes());
            format!("{}… ({digest:016x})", &purpose[..border])
        }
    }
}

/// Puts a part on the device; gives the triples and the quads of named graphs of the whole.
fn write(place: &Partial, base: Base, declared: &Declared) -> Result<[u64; 2], EngineError> {
    const FIRST: SnapshotNumber = SnapshotNumber(1);
    prefixes::write_first(place.directory(), declared)?;
    DurableStore::write_new(place.directory(), &base, FIRST)?;
    let snapshot = Snapshot::of_base(base, 1, FIRST);
    Ok([snapshot.triples(), snapshot.named_quads()])
}

/// Nodes that do each step together.
struct Together<'a> {
    peers: &'a PeerList,
    mesh: &'a Mesh,
}

impl Together<'_> {
    /// What a step came to, if it came to something at all nodes.
    fn agree<T>(&self, own: Result<T, EngineError>) -> Result<T, EngineError> {
        let said = own.as_ref().err().map(ToString::to_string);
        let told = self.tell(said.unwrap_or_default().into_bytes());
        // What this node failed at is more than that others are lost.
        let own = own?;
        let failed = |(_, said): &(&Peer, Vec<u8>)| !said.is_empty();
        match self.peers.peers().iter().zip(told?).find(failed) {
            None => Ok(own),
            Some((peer, said)) => Err(EngineError::OtherNode {
                name: peer.name.clone(),
                reason: jindou_model::printable(&String::from_utf8_lossy(&said)).into_owned(),
            }),
        }
    }

    fn tell(&self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, MeshError> {
        self.mesh.exchange(vec![bytes; self.mesh.nodes() as usize])
    }

    /// The prefixes of the documents of all nodes, in the order of nodes.
    fn declared(&self, own: Declared) -> Result<Declared, EngineError> {
        let own = postcard::to_extend(&own, Vec::new()).expect("memory takes all that is written");
        let mut all = Declared::new();
        for (peer, bytes) in self.peers.peers().iter().zip(self.tell(own)?) {
            let read: Result<Declared, _> = postcard::from_bytes(&bytes);
            all.extend(read.map_err(|error| EngineError::OtherNode {
                name: peer.name.clone(),
                reason: format!("the prefixes that it sent cannot be read: {error}"),
            })?);
        }
        Ok(all)
    }
}
