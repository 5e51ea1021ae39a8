//! Bulk load of data that does not fit into memory: how does it become the same base as [`build`]
//! makes?
//!
//! What a sink holds beyond its share goes to a file as a *run*: its terms in the order of their
//! keys, and edges by predicate in the places of these. Runs are merged by key, which gives each term
//! a *rank*, and edges are rewritten in ranks. Then as in [`build`]: characteristic sets, homes,
//! numbers by set, home and rank, the dictionary, and the segments of one predicate after the other,
//! sorted in pieces where they are too many. Tables and segments are files of the scratch folder that
//! are mapped, so that the base takes memory only where it is read; writing the store copies them.
//!
//! Held in memory all the time are predicates, and from the numbering on four bytes a vertex, and the
//! characteristic sets; meanwhile eight bytes a vertex, 20 where there are named graphs; then the
//! index of the dictionary, 6.5 bytes a term, and the columns of one predicate with eight bytes a key.
//!
//! [`build`]: super::build()

mod keys;
mod limits;
mod order;
mod ranks;
mod records;
mod scratch;
mod segments;
mod sets;
mod sink;
mod sorter;
mod tables;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use jindou_dictionary::TableWriter;
use jindou_fabric::allocator;
use jindou_model::TermId;

use super::build::{Parts, assemble, build, sorted_types};
use super::cluster::Clustering;
use crate::base::Base;
use crate::base_files::by_layer;
use crate::clusters::{Clusters, Lists, SetCounts, Stretches};
use crate::directory::Directory;
use crate::graph_table::{GraphCoder, GraphTable};
use crate::layer::Layer;
use crate::named::NamedGraphs;
use crate::runs::{NO_HOME, Runs};
use crate::{DurabilityOptions, StoreError};
use limits::Limits;
use order::Order;
use ranks::Ranked;
use scratch::Scratch;
use segments::{Numbers, Packed, Packing};
use sets::Homes;

pub use sink::SpillingSink;

/// What a load is doing after it has read its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadStep {
    /// The terms of all sinks are merged.
    MergingTerms,
    /// Characteristic sets are found, and vertices get their numbers.
    Numbering,
    /// The dictionary is made.
    Dictionary,
    /// Segments are made.
    Segments {
        /// Predicates whose segments are made.
        done: usize,
        /// All predicates.
        of: usize,
    },
}

/// A load that keeps within a given memory, by what it puts into a folder within the store's.
///
/// That folder goes when this is built or dropped.
#[derive(Debug)]
pub struct SpilledLoad {
    scratch: Arc<Scratch>,
    limits: Limits,
}

impl SpilledLoad {
    /// Begins a load that may hold so many bytes, those of the process included, whose sources are read
    /// by so many threads.
    ///
    /// # Errors
    /// [`StoreError::LoadMemory`] if that is too little; what the operating system says of the folder.
    pub fn begin(
        directory: &Directory,
        options: &DurabilityOptions,
        memory_bytes: u64,
        threads: usize,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            limits: Limits::new(memory_bytes, threads)?,
            scratch: Scratch::begin(directory, options)?,
        })
    }

    /// A sink for one thread.
    #[must_use]
    pub fn sink(&self) -> SpillingSink {
        SpillingSink::new(&self.scratch, &self.limits)
    }

    /// Makes the base of a store from everything that the sinks collected: the same as
    /// [`build`](super::build()). `told` hears of each step.
    ///
    /// `documents` is the number of documents that the store has seen with this load.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`] beyond 2^32 - 1 distinct vertices or literals;
    /// [`StoreError::LoadMemory`] if what must be held at once is more than may be; what the operating
    /// system says of files.
    pub fn build(
        self,
        sinks: Vec<SpillingSink>,
        documents: u64,
        told: &dyn Fn(LoadStep),
    ) -> Result<Base, StoreError> {
        let bytes = sinks.iter().map(|sink| sink.sink.bytes()).sum();
        let is_all_there = sinks.iter().all(|sink| sink.runs.is_empty());
        if is_all_there && self.limits.fit_in_memory(bytes) {
            told(LoadStep::Numbering);
            return build(sinks.into_iter().map(|sink| sink.sink).collect(), documents);
        }
        self.build_spilled(sinks, documents, told)
    }

    fn build_spilled(
        &self,
        mut sinks: Vec<SpillingSink>,
        documents: u64,
        told: &dyn Fn(LoadStep),
    ) -> Result<Base, StoreError> {
        told(LoadStep::MergingTerms);
        if sinks.is_empty() {
            sinks.push(self.sink());
        }
        for sink in &mut sinks {
            sink.spill()?;
        }
        let ranked = Ranked::new(sinks, &self.scratch, &self.limits)?;
        allocator::release_free_memory();
        told(LoadStep::Numbering);
        let numbered = self.number(&ranked)?;
        allocator::release_free_memory();
        told(LoadStep::Dictionary);
        let tables = self.tables(&ranked, &numbered)?;
        allocator::release_free_memory();
        self.assemble(ranked, numbered, tables, documents, told)
    }

    /// Finds sets, homes and numbers.
    fn number(&self, ranked: &Ranked) -> Result<Numbered, StoreError> {
        let vertices = ranked.vertices.count;
        let bytes = self.limits.beside(4 * vertices, "the sets of vertices")?;
        let sort_bytes = self.limits.sorted(bytes);
        let Clustering { cluster_of, types } = sets::cluster(ranked, &self.scratch, sort_bytes)?;
        let has_named = ranked.predicates.iter().any(|one| !one.named.is_empty());
        let of_homes = if has_named { 20 } else { 0 };
        self.limits
            .beside((4 + of_homes) * vertices, "the homes of vertices")?;
        let Homes { homes, graphs, all } = sets::homes(ranked)?;
        let order = order::number(cluster_of, types[0].len(), &homes);
        drop(homes);
        let id = |rank: &u32| TermId::vertex(order.numbers[*rank as usize].into()).raw();
        let mut ids: Vec<u64> = all.iter().map(id).collect();
        ids.sort_unstable();
        let place = |rank: &u32| {
            let place = ids.binary_search(&id(rank));
            place.expect("it is the id of a graph") as u64
        };
        let of_graphs = all.iter().map(|rank| (*rank, place(rank))).collect();
        let home = |number: &u32| {
            graphs
                .get(*number as usize)
                .map_or(NO_HOME, |rank| place(rank) as u32)
        };
        let homes = order.homes.iter().map(home).collect();
        let Order {
            numbers,
            starts,
            runs,
            ..
        } = order;
        Ok(Numbered {
            numbers: Numbers {
                vertices: numbers,
                graphs: of_graphs,
            },
            runs: Runs::new(runs, homes, ids.len()),
            starts,
            types,
            graphs: ids,
        })
    }

    /// Makes the tables of vertices and of literals, at the same time.
    fn tables(
        &self,
        ranked: &Ranked,
        numbered: &Numbered,
    ) -> Result<[crate::TermTables; 2], StoreError> {
        let (vertices, literals) = (&ranked.vertices, &ranked.literals);
        let index = TableWriter::bytes_for(vertices.count) + TableWriter::bytes_for(literals.count);
        let held = 4 * vertices.count + index;
        let bytes = self.limits.beside(held, "the index of the dictionary")?;
        let bytes = self.limits.sorted(bytes);
        let (vertices, literals) = rayon::join(
            || {
                let numbers = &numbered.numbers.vertices;
                tables::vertex_tables(vertices, numbers, &self.scratch, bytes)
            },
            || tables::literal_tables(literals, &self.scratch),
        );
        Ok([vertices?, literals?])
    }

    fn assemble(
        &self,
        ranked: Ranked,
        numbered: Numbered,
        tables: [crate::TermTables; 2],
        documents: u64,
        told: &dyn Fn(LoadStep),
    ) -> Result<Base, StoreError> {
        let numbers = &numbered.numbers;
        let of = ranked.predicates.len();
        let vertices = ranked.predicates.iter().map(|one| one.vertex);
        let predicate_terms = vertices.map(|rank| TermId::from_raw(numbers.vertex(rank)));
        let predicate_terms = predicate_terms.collect();
        let stretches = Stretches::one_each(numbered.starts.clone()).indexed();
        let sets = numbered.types[0].len();
        let packing = Packing {
            scratch: &self.scratch,
            limits: &self.limits,
            numbers,
            runs: &numbered.runs,
            stretches: &stretches,
            coder: GraphCoder::new(GraphTable::new(numbered.graphs, Lists::default())),
            counts: [SetCounts::none(sets), SetCounts::none(sets)],
        };
        told(LoadStep::Segments { done: 0, of });
        let packed = packing.run(ranked, &|done| told(LoadStep::Segments { done, of }))?;
        let Packed {
            edges,
            coder,
            counts,
        } = packed;
        let (segments, graphs) = by_layer(edges);
        let (mut counts, mut types) = (counts.into_iter(), numbered.types.iter());
        let layers = segments.map(|segments| {
            let counts = counts.next().expect("of each layer");
            let types: &[Vec<u64>] = types.next().expect("of each layer");
            let is_empty =
                segments[0].iter().all(Option::is_none) && types.iter().all(Vec::is_empty);
            let clusters = match is_empty {
                true => Clusters::none(of),
                false => Clusters::of_counts(
                    stretches.clone(),
                    sorted_types(types, |class| numbers.term(class)),
                    counts,
                ),
            };
            Layer::new(clusters, segments)
        });
        let [vertices, literals] = tables;
        let mut base = assemble(Parts {
            vertices,
            literals,
            predicate_terms,
            layers,
            named: NamedGraphs::join(Arc::new(coder.finish()), graphs),
            runs: numbered.runs,
            documents,
        });
        base.files.is_bounded = true;
        Ok(base)
    }
}

/// What is known of vertices once they have numbers.
struct Numbered {
    numbers: Numbers,
    /// Where each set begins, and one more.
    starts: Vec<u64>,
    /// Types of each set by layer, in ranks.
    types: [Vec<Vec<u64>>; 2],
    runs: Runs,
    /// All named graphs, sorted.
    graphs: Vec<u64>,
}
