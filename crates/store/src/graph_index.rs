//! The index vertices of named graphs: which quads has this graph?
//!
//! The quads of each graph lie together, sorted by predicate, subject and object, so that reading
//! a graph, or what it has of one predicate, costs just that, whatever other graphs say of the
//! same subjects.

use std::ops::Range;

use jindou_model::{PredicateId, TermId};

use crate::StoreError;
use crate::column::Column;
use crate::domain::Domain;
use crate::image::{ImageReader, ImageWriter};
use crate::named::NamedSegment;

/// Graph -> (predicate, subject, object), sorted.
#[derive(Clone, Debug)]
pub struct GraphIndex {
    graphs: Domain,
    /// Where each graph's quads begin, and one more.
    offsets: Column,
    predicates: Column,
    subjects: Column,
    objects: Column,
}

impl GraphIndex {
    /// The index of the quads of these segments, subject -> object, by predicate.
    pub(crate) fn from_segments(segments: &[Option<NamedSegment>]) -> Self {
        let mut ids: Vec<u64> = Vec::new();
        let mut sorted = 0;
        for segment in segments.iter().flatten() {
            let graphs = segment.graphs();
            for edge in 0..graphs.len() {
                let graph = graphs.get(edge);
                if ids.last() != Some(&graph) {
                    ids.push(graph);
                }
                // Repeats leave once they may be half of the list: it stays as long as it must.
                if ids.len() > 2 * sorted + 1024 {
                    ids.sort_unstable();
                    ids.dedup();
                    sorted = ids.len();
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let graphs = Domain::from_sorted(&ids);
        drop(ids);

        let row = |graph: u64| {
            let row = graphs.row(TermId::from_raw(graph));
            row.expect("the domain holds every graph")
        };
        let mut offsets = vec![0_u64; graphs.len() + 1];
        for segment in segments.iter().flatten() {
            let of_edges = segment.graphs();
            (0..of_edges.len()).for_each(|edge| offsets[row(of_edges.get(edge)) + 1] += 1);
        }
        for row in 0..graphs.len() {
            offsets[row + 1] += offsets[row];
        }
        let quads = offsets[graphs.len()] as usize;
        let mut next = offsets.clone();
        let mut predicates = vec![0; quads];
        let mut subjects = vec![0; quads];
        let mut objects = vec![0; quads];
        // Predicates and subjects come in order, so each graph gets its quads in order.
        for (number, segment) in segments.iter().enumerate() {
            let Some(segment) = segment else { continue };
            segment.edges().domain().for_each(&mut |subject| {
                segment.for_each(subject, &mut |object, graph| {
                    let place = &mut next[row(graph.raw())];
                    predicates[*place as usize] = number as u64;
                    subjects[*place as usize] = subject.raw();
                    objects[*place as usize] = object.raw();
                    *place += 1;
                });
            });
        }
        Self {
            offsets: Column::from_values(&offsets),
            predicates: Column::from_values(&predicates),
            subjects: Column::from_values(&subjects),
            objects: Column::from_values(&objects),
            graphs,
        }
    }

    /// The graphs.
    #[must_use]
    pub fn graphs(&self) -> &Domain {
        &self.graphs
    }

    /// The numbers of a graph's quads.
    #[must_use]
    pub fn quads(&self, graph: TermId) -> Range<usize> {
        match self.graphs.row(graph) {
            Some(row) => self.offsets.get(row) as usize..self.offsets.get(row + 1) as usize,
            None => 0..0,
        }
    }

    /// Those of a graph's quads that have a predicate: two searches.
    #[must_use]
    pub fn of_predicate(&self, quads: Range<usize>, predicate: PredicateId) -> Range<usize> {
        part(&self.predicates, quads, u64::from(predicate.0))
    }

    /// Those of one predicate's quads in one graph that have a subject: two searches.
    #[must_use]
    pub fn of_subject(&self, quads: Range<usize>, subject: TermId) -> Range<usize> {
        part(&self.subjects, quads, subject.raw())
    }

    /// Those of one subject's quads of one predicate and graph that have an object.
    #[must_use]
    pub fn of_object(&self, quads: Range<usize>, object: TermId) -> Range<usize> {
        part(&self.objects, quads, object.raw())
    }

    /// Subject, predicate and object of a quad.
    ///
    /// # Panics
    /// If there is none of this number.
    #[inline]
    #[must_use]
    pub fn quad(&self, number: usize) -> (TermId, PredicateId, TermId) {
        (
            TermId::from_raw(self.subjects.get(number)),
            PredicateId(self.predicates.get(number) as u32),
            TermId::from_raw(self.objects.get(number)),
        )
    }

    /// Bytes of its columns.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.graphs.bytes()
            + self.offsets.bytes()
            + self.predicates.bytes()
            + self.subjects.bytes()
            + self.objects.bytes()
    }

    /// Calls `visit` with each quad, by graph; false if they are out of order.
    pub(crate) fn check(&self, visit: &mut dyn FnMut(TermId, PredicateId, TermId, TermId)) -> bool {
        let mut sound = self.graphs.is_sound();
        self.graphs.for_each(&mut |graph| {
            let quads = self.quads(graph);
            sound &= !quads.is_empty();
            let mut before = None;
            for number in quads {
                let (subject, predicate, object) = self.quad(number);
                let place = (predicate.0, subject, object);
                sound &= before.is_none_or(|before| before < place);
                before = Some(place);
                visit(subject, predicate, object, graph);
            }
        });
        sound
    }

    pub(crate) fn write(&self, image: &mut ImageWriter) {
        self.graphs.write(image);
        self.offsets.write(image);
        self.predicates.write(image);
        self.subjects.write(image);
        self.objects.write(image);
    }

    pub(crate) fn read(image: &mut ImageReader) -> Result<Self, StoreError> {
        let graphs = Domain::read(image)?;
        let offsets = Column::read(image)?;
        let predicates = Column::read(image)?;
        let subjects = Column::read(image)?;
        let objects = Column::read(image)?;
        let quads = predicates.len();
        let is_whole = offsets.len() == graphs.len() + 1
            && offsets.get(0) == 0
            && offsets.get(graphs.len()) == quads as u64
            && (0..graphs.len()).all(|row| offsets.get(row) <= offsets.get(row + 1))
            && subjects.len() == quads
            && objects.len() == quads;
        if !is_whole {
            return Err(image.corrupt("the index of named graphs contradicts itself"));
        }
        Ok(Self {
            graphs,
            offsets,
            predicates,
            subjects,
            objects,
        })
    }
}

/// The places in `range`, where the column is sorted, that hold `value`.
fn part(column: &Column, range: Range<usize>, value: u64) -> Range<usize> {
    let Some(narrow) = value.checked_sub(column.base()) else {
        return range.start..range.start;
    };
    let items = column.narrow().slice(range.clone());
    let begin = items.seek(0, narrow);
    let end = items.seek(begin, narrow.saturating_add(1));
    range.start + begin..range.start + end
}
