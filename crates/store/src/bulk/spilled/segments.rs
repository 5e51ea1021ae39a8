//! The edges of one predicate after the other -> segments in files.

use std::sync::Arc;

use jindou_model::{Narrow, PredicateId, TermId, TermKind};
use rustc_hash::FxHashMap;

use super::limits::Limits;
use super::ranks::{Predicate, Ranked};
use super::records::EdgeList;
use super::scratch::{Appender, Scratch};
use super::sorter::{Row, Sorted, Sorter};
use crate::StoreError;
use crate::clusters::{SetCounts, Stretches};
use crate::column::ColumnBuilder;
use crate::domain::Domain;
use crate::graph_packing::Packer;
use crate::graph_table::GraphCoder;
use crate::image::ImageReader;
use crate::predicate_edges::PredicateEdges;
use crate::predicate_graphs::PredicateGraphs;
use crate::regions::write_group;
use crate::runs::Runs;
use crate::segment::Segment;

/// Bytes that are gathered for a file.
const GATHERED: usize = 1 << 20;
/// Bytes of memory for each edge of a predicate whose segments of both directions are made at once.
const BOTH_BYTES: u64 = 128;
/// Bytes of memory that a key takes while a segment is made: its own, and what finds it.
const KEY_BYTES: u64 = 16;
/// Of a file that is read back at once.
const KIND: u64 = 0;

/// Which numbers have vertices and graphs?
pub(super) struct Numbers {
    /// Of vertices, by rank.
    pub(super) vertices: Vec<u32>,
    /// Of graphs among the named graphs, by rank.
    pub(super) graphs: FxHashMap<u32, u64>,
}

impl Numbers {
    #[inline]
    pub(super) fn vertex(&self, rank: u32) -> u64 {
        TermId::vertex(self.vertices[rank as usize].into()).raw()
    }

    /// The id of a term; that of a literal says its rank already.
    #[inline]
    pub(super) fn term(&self, raw: u64) -> u64 {
        let id = TermId::from_raw(raw);
        match id.kind() {
            TermKind::Vertex => self.vertex(id.number() as u32),
            _ => raw,
        }
    }

    fn bytes(&self) -> u64 {
        (self.vertices.len() * 4 + self.graphs.capacity() * 16) as u64
    }
}

/// Makes the segments of all predicates.
pub(super) struct Packing<'a> {
    pub(super) scratch: &'a Arc<Scratch>,
    pub(super) limits: &'a Limits,
    pub(super) numbers: &'a Numbers,
    pub(super) runs: &'a Runs,
    pub(super) stretches: &'a Stretches,
    pub(super) coder: GraphCoder,
    /// By layer.
    pub(super) counts: [SetCounts; 2],
}

/// What was made of all predicates.
pub(super) struct Packed {
    pub(super) edges: Vec<PredicateEdges>,
    pub(super) coder: GraphCoder,
    pub(super) counts: [SetCounts; 2],
}

impl Packing<'_> {
    /// Tells `told` after each predicate how many are made.
    pub(super) fn run(
        mut self,
        ranked: Ranked,
        told: &dyn Fn(usize),
    ) -> Result<Packed, StoreError> {
        let mut made = Vec::with_capacity(ranked.predicates.len());
        let mut waiting = Vec::new();
        let mut waiting_bytes = 0;
        for (number, predicate) in ranked.predicates.into_iter().enumerate() {
            let id = PredicateId(number as u32);
            let edges = self.predicate(id, predicate)?;
            waiting_bytes += edges.bytes() as u64;
            waiting.push((id, edges));
            if waiting_bytes >= self.limits.group_bytes() {
                made.extend(self.put_into_file(std::mem::take(&mut waiting))?);
                waiting_bytes = 0;
            }
            told(number + 1);
        }
        made.extend(self.put_into_file(waiting)?);
        Ok(Packed {
            edges: made,
            coder: self.coder,
            counts: self.counts,
        })
    }

    /// Writes edges into a file, as a store has them, and maps that.
    fn put_into_file(
        &self,
        edges: Vec<(PredicateId, PredicateEdges)>,
    ) -> Result<Vec<PredicateEdges>, StoreError> {
        if edges.is_empty() {
            return Ok(Vec::new());
        }
        let file = self.scratch.create()?;
        let count = edges.len();
        let mut out = Appender::at(Arc::clone(&file), 0, GATHERED);
        let written = write_group(edges.into_iter()).write_unsynced(&mut out, KIND);
        written.map_err(|source| file.failed(source))?;
        // The mapping holds the file, whose name goes.
        let mut image = ImageReader::open_and_let_go(&file.path(), KIND)?;
        image.length()?;
        let read = (0..count).map(|_| {
            image.length()?;
            PredicateEdges::read(&mut image, None, self.coder.table())
        });
        let read: Result<Vec<PredicateEdges>, StoreError> = read.collect();
        image.file().1.let_go();
        read
    }

    fn predicate(
        &mut self,
        id: PredicateId,
        predicate: Predicate,
    ) -> Result<PredicateEdges, StoreError> {
        let held = self.numbers.bytes();
        let bytes = self.limits.beside(held, "the numbers of vertices")?;
        let default = match id {
            // Types are in the clusters.
            PredicateId::TYPE => [None, None],
            _ => self.default_segments(&predicate.edges, bytes)?,
        };
        self.counts[0].add(id, &default, self.stretches);
        drop(predicate.edges);
        let held: u64 = default.iter().map(|one| bytes_of(one.as_ref())).sum();
        let bytes = bytes.saturating_sub(held);
        let (named, graphs, count) = self.named(id, &predicate.named, bytes)?;
        self.counts[1].add(id, &named, self.stretches);
        Ok(PredicateEdges::new([default, named], graphs, count))
    }

    /// The segments of edges of the default graph; both are made at the same time where memory is
    /// enough.
    fn default_segments(
        &self,
        edges: &EdgeList,
        bytes: u64,
    ) -> Result<[Option<Segment>; 2], StoreError> {
        if edges.len() * BOTH_BYTES > bytes {
            let out = self.out(edges, bytes)?;
            let left = bytes.saturating_sub(bytes_of(out.as_ref()));
            return Ok([out, self.incoming(edges, left)?]);
        }
        let (out, incoming) = rayon::join(
            || self.out(edges, bytes / 2),
            || self.incoming(edges, bytes / 2),
        );
        Ok([out?, incoming?])
    }

    fn out(&self, edges: &EdgeList, bytes: u64) -> Result<Option<Segment>, StoreError> {
        let mut sorter = Sorter::new(self.scratch, edges.len(), self.limits.sorted(bytes));
        edges.for_each(|edge| {
            let subject = self.numbers.vertex(edge.subject);
            sorter.push((subject, self.numbers.term(edge.object)))
        })?;
        segment(sorter.finish()?, |pair| pair, bytes)
    }

    fn incoming(&self, edges: &EdgeList, bytes: u64) -> Result<Option<Segment>, StoreError> {
        let mut sorter = Sorter::new(self.scratch, edges.len(), self.limits.sorted(bytes));
        edges.for_each(|edge| {
            let subject = self.numbers.vertex(edge.subject);
            sorter.push((self.numbers.term(edge.object), subject))
        })?;
        segment(sorter.finish()?, |pair| pair, bytes)
    }

    /// The segments of edges of named graphs, these graphs, and how many edges there are, each of
    /// which counts once.
    fn named(
        &mut self,
        id: PredicateId,
        edges: &EdgeList,
        bytes: u64,
    ) -> Result<([Option<Segment>; 2], PredicateGraphs, u64), StoreError> {
        let mut sorter = Sorter::new(self.scratch, edges.len(), self.limits.sorted(bytes));
        edges.for_each(|edge| {
            let subject = self.numbers.vertex(edge.subject);
            let graph = self.numbers.graphs[&edge.graph];
            sorter.push((subject, self.numbers.term(edge.object), graph))
        })?;
        let sorted = sorter.finish()?;
        let (graphs, count) = self.graphs(&sorted)?;
        if id == PredicateId::TYPE || edges.is_empty() {
            return Ok(([None, None], graphs, count));
        }
        let left = bytes.saturating_sub(graphs.bytes() as u64);
        let pair = |(subject, object, _)| (subject, object);
        let out = segment(sorted, pair, left)?;
        let left = left.saturating_sub(bytes_of(out.as_ref()));
        let incoming = self.incoming(edges, left)?;
        Ok(([out, incoming], graphs, count))
    }

    /// The graphs of sorted edges, and how many edges these are.
    fn graphs(
        &mut self,
        sorted: &Sorted<(u64, u64, u64)>,
    ) -> Result<(PredicateGraphs, u64), StoreError> {
        let mut count = 0;
        let mut before = None;
        sorted.for_each(|(subject, object, _)| {
            count += u64::from(before.replace((subject, object)) != Some((subject, object)));
            Ok(())
        })?;
        let mut packer = Packer::new(&mut self.coder, self.runs, count);
        let mut graphs = Vec::new();
        let mut edge = None;
        sorted.for_each(|(subject, object, graph)| {
            if let Some((last, _)) = edge
                && edge != Some((subject, object))
            {
                packer.edge(TermId::from_raw(last), &graphs);
                graphs.clear();
            }
            edge = Some((subject, object));
            graphs.push(graph as u32);
            Ok(())
        })?;
        if let Some((last, _)) = edge {
            packer.edge(TermId::from_raw(last), &graphs);
        }
        Ok((packer.finish(), count))
    }
}

fn bytes_of(segment: Option<&Segment>) -> u64 {
    segment.map_or(0, |segment| segment.bytes() as u64)
}

/// The segment of the pairs that sorted rows begin with, in so many bytes; none of no rows. The same
/// as [`Segment::from_sorted`] makes of the pairs.
fn segment<R: Row>(
    rows: Sorted<R>,
    pair: impl Fn(R) -> (u64, u64),
    bytes: u64,
) -> Result<Option<Segment>, StoreError> {
    let each = |visit: &mut dyn FnMut(bool, u64, u64)| {
        let mut before = None;
        rows.for_each(|row| {
            let (key, neighbour) = pair(row);
            if before != Some((key, neighbour)) {
                let is_new = before.is_none_or(|(before, _)| before != key);
                visit(is_new, key, neighbour);
                before = Some((key, neighbour));
            }
            Ok(())
        })
    };
    let (mut count, mut key_count) = (0, 0);
    let (mut least, mut most) = (u64::MAX, 0);
    each(&mut |is_new, _, neighbour| {
        count += 1;
        key_count += usize::from(is_new);
        (least, most) = (least.min(neighbour), most.max(neighbour));
    })?;
    if count == 0 {
        return Ok(None);
    }
    let wide = |most: u64| if most > u64::from(u32::MAX) { 8 } else { 4 };
    let needed =
        key_count as u64 * (KEY_BYTES + wide(count as u64)) + count as u64 * wide(most - least);
    Limits::check_segment(needed, bytes)?;
    let mut keys = Vec::with_capacity(key_count);
    let is_functional = key_count == count;
    let with_offsets = if is_functional { 0 } else { key_count + 1 };
    let mut offsets = ColumnBuilder::new(with_offsets, 0, count as u64);
    let mut neighbours = ColumnBuilder::new(count, least, most);
    let mut place = 0;
    each(&mut |is_new, key, neighbour| {
        if is_new {
            keys.push(key);
            if !is_functional {
                offsets.push(place);
            }
        }
        neighbours.extend(0, Narrow::U64(&[neighbour]));
        place += 1;
    })?;
    drop(rows);
    if !is_functional {
        offsets.push(place);
    }
    let domain = Domain::from_sorted(&keys);
    let offsets = (!is_functional).then(|| offsets.finish());
    Ok(Some(Segment::from_columns(
        domain,
        offsets,
        neighbours.finish(),
    )))
}
