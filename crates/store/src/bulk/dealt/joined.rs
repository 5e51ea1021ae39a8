//! What have the threads seen that parsed at a node, in one numbering?
//!
//! Seen get one number each where they are dealt to ([`terms`](super::terms)). To give them one before, too, as a
//! load of one process does ([`merge`](crate::bulk::merge)), would be the dearest step of both: here one that several
//! threads have seen has several numbers.

use jindou_dictionary::Interner;
use jindou_model::{TermId, TermKind};
use rayon::prelude::*;

use super::failed::Failed;
use crate::bulk::sink::{BulkSink, Edges, NamedEdges, intern};

/// Seen of some interners: those of one come after those of the one before.
pub(super) struct Seen {
    interners: Vec<Interner>,
    /// Where the numbers of each begin.
    starts: Vec<u32>,
}

impl Seen {
    fn of(interners: Vec<Interner>) -> Result<Self, Failed> {
        let mut starts = Vec::with_capacity(interners.len());
        let mut end = 0_u32;
        for interner in &interners {
            starts.push(end);
            let next = end.checked_add(interner.len() as u32);
            // Of this many a load of one process has one number each, too.
            end = next
                .ok_or_else(|| Failed::too_large("the threads of a node have seen 2^32 terms"))?;
        }
        Ok(Self { interners, starts })
    }

    pub(super) fn len(&self) -> usize {
        self.interners.iter().map(Interner::len).sum()
    }

    /// The string of a number.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[u8] {
        let place = self.starts.partition_point(|start| *start <= number) - 1;
        self.interners[place].get(number - self.starts[place])
    }

    /// The hashes of all, by number.
    pub(super) fn hashes(&self) -> impl Iterator<Item = u64> + '_ {
        let all = self.interners.iter();
        all.flat_map(|interner| (0..interner.len() as u32).map(|number| interner.hash_of(number)))
    }

    /// A number of a string, a new one if it has none.
    pub(super) fn intern(&mut self, string: &[u8]) -> Result<u32, Failed> {
        for (interner, start) in self.interners.iter().zip(&self.starts) {
            if let Some(number) = interner.find(string) {
                return Ok(start + number);
            }
        }
        let last = self.interners.last_mut().expect("there is one");
        let start = self.starts[self.starts.len() - 1];
        let number = start.checked_add(intern(last, string)?);
        number.ok_or_else(|| Failed::too_large("the threads of a node have seen 2^32 terms"))
    }
}

/// Terms and edges of all threads of a node.
pub(super) struct Joined {
    pub(super) vertices: Seen,
    pub(super) literals: Seen,
    /// Once each; number 0 is `rdf:type`.
    pub(super) predicates: Interner,
    /// By predicate.
    pub(super) edges: Vec<Edges>,
    pub(super) named: Vec<NamedEdges>,
}

/// Puts what sinks collected one after the other.
pub(super) fn join(mut sinks: Vec<BulkSink>) -> Result<Joined, Failed> {
    if sinks.is_empty() {
        sinks.push(BulkSink::new());
    }
    let take = |of: fn(&mut BulkSink) -> &mut Interner, sinks: &mut [BulkSink]| {
        Seen::of(
            sinks
                .iter_mut()
                .map(|sink| std::mem::take(of(sink)))
                .collect(),
        )
    };
    let mut joined = Joined {
        vertices: take(|sink| &mut sink.vertices, &mut sinks)?,
        literals: take(|sink| &mut sink.literals, &mut sinks)?,
        predicates: Interner::new(),
        edges: Vec::new(),
        named: Vec::new(),
    };
    for (place, sink) in sinks.into_iter().enumerate() {
        let shift = Shift {
            vertices: joined.vertices.starts[place].into(),
            literals: joined.literals.starts[place].into(),
        };
        joined.append(sink, &shift)?;
    }
    Ok(joined)
}

/// What is added to the numbers of a sink.
struct Shift {
    vertices: u64,
    literals: u64,
}

impl Shift {
    #[inline]
    fn term(&self, raw: u64) -> u64 {
        match TermId::from_raw(raw).kind() {
            TermKind::Vertex => raw + self.vertices,
            TermKind::Literal => raw + self.literals,
            _ => raw,
        }
    }
}

impl Joined {
    fn append(&mut self, mut sink: BulkSink, shift: &Shift) -> Result<(), Failed> {
        let mut work = Vec::new();
        for (number, iri) in sink.predicates.iter().enumerate() {
            let to = intern(&mut self.predicates, iri)? as usize;
            if to == self.edges.len() {
                self.edges.push(Edges::new());
                self.named.push(NamedEdges::new());
            }
            work.resize_with(self.edges.len(), Default::default);
            let lists = (&mut sink.edges[number], &mut sink.named[number]);
            work[to] = (std::mem::take(lists.0), std::mem::take(lists.1));
        }
        let lists = self.edges.par_iter_mut().zip(&mut self.named).zip(work);
        lists.for_each(|((edges, named), (more, more_named))| {
            append(edges, more, |(s, o)| (shift.term(s), shift.term(o)));
            append(named, more_named, |(s, o, g)| {
                (shift.term(s), shift.term(o), shift.term(g))
            });
        });
        Ok(())
    }
}

/// Appends what `shifted` makes of more; the first list stays where it is.
fn append<E: Copy>(list: &mut Vec<E>, mut more: Vec<E>, shifted: impl Fn(E) -> E) {
    if list.is_empty() {
        more.iter_mut().for_each(|edge| *edge = shifted(*edge));
        *list = more;
        return;
    }
    list.reserve_exact(more.len());
    list.extend(more.into_iter().map(shifted));
}
