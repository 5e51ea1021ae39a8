//! How are the quads of a pattern cut into pages, so that reading all of them costs what they are?
//!
//! A graph calls its visitor until that breaks, and does not say how to go on from there. So where the
//! objects of a predicate are wanted, its subjects are listed and their lists followed, which goes on
//! from any place. Other patterns have few matches, mostly: of these a page is what comes after so many
//! quads, which are visited again.

use std::ops::ControlFlow;

use jindou_exec::GraphSource;
use jindou_model::{
    Cursor, Direction, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId,
    ShardId, TermId, TermKind, Unavailable, Visit,
};
use jindou_partition::Shards;

use super::words::{MOST_QUADS, Page, PageAsked, Place, Quad};

/// Subjects whose lists are followed together.
const SUBJECTS_AT_ONCE: usize = 1024;
/// Subjects of a page, at most: a graph may have none of their edges.
const MOST_SUBJECTS: usize = 1 << 16;

/// Rows of one shard, and the pattern that is read in them.
pub(super) struct Scan<'a> {
    pub(super) rows: &'a dyn GraphSource,
    pub(super) shards: Shards,
    pub(super) shard: ShardId,
    pub(super) pattern: Pattern,
    /// Those that it is read with; none for that of the pattern.
    pub(super) predicates: &'a [PredicateId],
    /// Triples of this graph are read, or quads of all named ones.
    pub(super) graph: Option<GraphRef<'a>>,
}

/// A page of what is read in some shards, one after the other.
///
/// # Errors
/// The [`Unavailable`] of a shard, if nothing was read before.
pub(super) fn page<'a>(
    shards: usize,
    asked: PageAsked,
    scan: impl Fn(usize) -> Result<Scan<'a>, Unavailable>,
) -> Result<Page, Unavailable> {
    let most = asked.most.clamp(1, MOST_QUADS);
    let mut quads = Vec::new();
    let mut place = (asked.turn, asked.from);
    while (place.0 as usize) < shards && quads.len() < most {
        let (turn, from) = place;
        let room = most - quads.len();
        let read = scan(turn as usize).and_then(|scan| scan.read(from, room));
        let (mut some, next) = match read {
            Err(Unavailable::NotNow) if !quads.is_empty() => break,
            read => read?,
        };
        quads.append(&mut some);
        if let Some(next) = next {
            return Ok(Page::new(&quads, Some((turn, next))));
        }
        place = (turn + 1, Place::Start);
    }
    let is_end = place.0 as usize >= shards;
    Ok(Page::new(&quads, (!is_end).then_some(place)))
}

/// What a page has so far.
struct Growing {
    quads: Vec<Quad>,
    most: usize,
}

impl Growing {
    fn room(&self) -> usize {
        self.most.saturating_sub(self.quads.len())
    }

    fn ending(self, next: Option<Place>) -> Read {
        (self.quads, next)
    }
}

/// Some quads, and where others follow, if they do.
type Read = (Vec<Quad>, Option<Place>);

impl Scan<'_> {
    /// The quads from a place on, about as many as are asked for.
    fn read(&self, from: Place, most: usize) -> Result<Read, Unavailable> {
        let page = Growing {
            quads: Vec::new(),
            most,
        };
        match (from, self.walked()) {
            (Place::Start, Some(predicate)) => {
                let first = self.pattern.subject.unwrap_or(TermId::vertex(0));
                self.walk(predicate, (first, 0), page)
            }
            (Place::At(subject, offset), Some(predicate)) => {
                self.walk(predicate, (subject, offset), page)
            }
            (Place::After(quads), _) => self.replay(quads, page),
            (Place::Start | Place::At(..), _) => self.replay(0, page),
        }
    }

    /// The predicate whose lists are followed, if that is how the pattern is read. The same for all
    /// pages of one pattern, as nothing of a snapshot changes.
    fn walked(&self) -> Option<PredicateId> {
        let predicate = self.pattern.predicate?;
        if predicate == PredicateId::TYPE || self.pattern.object.is_some() {
            return None;
        }
        if self.pattern.subject.is_some() {
            return Some(predicate);
        }
        let edges = |graph| self.rows.edges(graph, predicate);
        let own = match self.graph {
            Some(GraphRef::One(graph)) => edges(GraphRef::One(graph)),
            Some(GraphRef::Some(graphs)) => {
                let all = graphs.iter().map(|graph| edges(GraphRef::One(*graph)));
                all.sum()
            }
            _ => return Some(predicate),
        };
        // Its lists are found among those of all named graphs.
        let (own, all) = (own?, edges(GraphRef::Named)?);
        let visited_again = (own / MOST_QUADS as u64 / 2).saturating_mul(own);
        (visited_again > all).then_some(predicate)
    }

    fn visit(&self, visit: &mut Visit<'_>) -> Result<ControlFlow<()>, Unavailable> {
        match (self.predicates, self.graph) {
            ([], Some(graph)) => self.rows.for_each_match(&self.pattern, graph, visit),
            ([], None) => self.rows.for_each_quad(&self.pattern, visit),
            (some, graph) => (self.rows).for_each_of((some, &mut 0), &self.pattern, graph, visit),
        }
    }

    /// The page after so many quads.
    fn replay(&self, before: u64, mut page: Growing) -> Result<Read, Unavailable> {
        let mut left = before;
        let flow = self.visit(&mut |s, p, o, g| {
            if left > 0 {
                left -= 1;
                return ControlFlow::Continue(());
            }
            if page.room() == 0 {
                return ControlFlow::Break(());
            }
            page.quads.push((s, p, o, g));
            ControlFlow::Continue(())
        })?;
        let next = before.saturating_add(page.quads.len() as u64);
        Ok(page.ending(flow.is_break().then_some(Place::After(next))))
    }

    /// The page that begins with a place in the list of a subject.
    fn walk(
        &self,
        predicate: PredicateId,
        (subject, mut offset): (TermId, usize),
        mut page: Growing,
    ) -> Result<Read, Unavailable> {
        let Some(mut subjects) = self.subjects(predicate, subject)? else {
            return Ok(page.ending(None));
        };
        let (mut keys, mut begin) = (Vec::new(), None);
        for _ in 0..MOST_SUBJECTS / SUBJECTS_AT_ONCE {
            keys.clear();
            keys.extend(subjects.by_ref().take(SUBJECTS_AT_ONCE));
            let Some(first) = keys.first() else {
                return Ok(page.ending(None));
            };
            let mut place = Place::At(*first, offset);
            let begin = *begin.get_or_insert(place);
            let mut cursor = Cursor { key: 0, offset };
            while cursor.key < keys.len() {
                if page.room() == 0 {
                    return Ok(page.ending(Some(place)));
                }
                let list = Lists {
                    predicate,
                    direction: Direction::Out,
                    keys: &keys,
                };
                match self.follow(&list, &mut cursor, &mut page) {
                    Ok(()) => {}
                    Err(Unavailable::NotNow) if place != begin => {
                        return Ok(page.ending(Some(place)));
                    }
                    Err(why) => return Err(why),
                }
                if let Some(key) = keys.get(cursor.key) {
                    place = Place::At(*key, cursor.offset);
                }
            }
            offset = 0;
        }
        Ok(page.ending(subjects.next().map(|next| Place::At(next, 0))))
    }

    /// Follows some lists, as far as there is room. If these do not answer, nothing was appended.
    fn follow(
        &self,
        list: &Lists<'_>,
        cursor: &mut Cursor,
        page: &mut Growing,
    ) -> Result<(), Unavailable> {
        let graph = self.graph.unwrap_or(GraphRef::Named);
        let (mut rows, mut objects) = (Vec::new(), Vec::new());
        let mut to = *cursor;
        let lists = std::slice::from_ref(list);
        let room = page.room();
        (self.rows).expand(graph, lists, &mut to, None, room, &mut rows, &mut objects)?;
        let subject = |row: u32| list.keys[row as usize];
        if self.graph.is_some() {
            let name = match graph {
                GraphRef::One(name) => name,
                _ => TermId::NONE,
            };
            let edges = rows.into_iter().zip(objects);
            let quads = edges.map(|(row, object)| (subject(row), list.predicate, object, name));
            page.quads.extend(quads);
        } else {
            let keys: Vec<TermId> = rows.iter().map(|row| subject(*row)).collect();
            let edges = Lists {
                keys: &keys,
                ..*list
            };
            let (mut of_edge, mut graphs) = (Vec::new(), Vec::new());
            (self.rows).graphs_of(&edges, &objects, &mut of_edge, &mut graphs)?;
            let quads = of_edge.into_iter().zip(graphs).map(|(edge, graph)| {
                let edge = edge as usize;
                (keys[edge], list.predicate, objects[edge], graph)
            });
            page.quads.extend(quads);
        }
        *cursor = to;
        Ok(())
    }

    /// The subjects from one on that may have edges of the predicate, in order.
    fn subjects(
        &self,
        predicate: PredicateId,
        from: TermId,
    ) -> Result<Option<Subjects>, Unavailable> {
        let mut within = IdRanges::new();
        match self.pattern.subject {
            Some(subject) => {
                let end = TermId::from_raw(subject.raw().saturating_add(1));
                within.push(subject, end);
            }
            // To the last vertex.
            None => within.push(from, TermId::literal(0)),
        }
        let ids = match self.pattern.subject {
            Some(_) => Some(within),
            None => {
                // In a graph that is no layer, some of those of its layer.
                let graph = match self.graph {
                    Some(GraphRef::Default) => GraphRef::Default,
                    Some(GraphRef::Union) => GraphRef::Union,
                    _ => GraphRef::Named,
                };
                let has = [Membership::Has(predicate, Direction::Out)];
                (self.rows).members(graph, &has, Precision::Exact, Some(&within))?
            }
        };
        Ok(ids.map(|ids| Subjects {
            ids,
            range: 0,
            next: from.raw(),
            owner: self
                .pattern
                .subject
                .is_none()
                .then_some((self.shards, self.shard)),
        }))
    }
}

/// Subjects of a set that a shard owns, in order.
struct Subjects {
    ids: IdRanges,
    /// The first range that was not left behind.
    range: usize,
    /// The first id that was not.
    next: u64,
    /// Others are left out, without looking at each.
    owner: Option<(Shards, ShardId)>,
}

impl Iterator for Subjects {
    type Item = TermId;

    fn next(&mut self) -> Option<TermId> {
        loop {
            let (first, end) = *self.ids.ranges().get(self.range)?;
            let from = TermId::from_raw(self.next.max(first));
            let owned = match self.owner {
                Some((shards, shard)) => next_owned(shards, shard, from),
                None => from,
            };
            self.next = owned.raw();
            if self.next < end {
                self.next += 1;
                return Some(owned);
            }
            self.range += 1;
        }
    }
}

/// The first id from one on that a shard owns, where all are vertices; any after them otherwise.
fn next_owned(shards: Shards, shard: ShardId, from: TermId) -> TermId {
    if from.kind() != TermKind::Vertex {
        return from;
    }
    let last = shards.count() as u64 - 1;
    let steps = u64::from(shard.0).wrapping_sub(from.number()) & last;
    TermId::from_raw(from.raw() + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_are_those_of_the_shard_from_one_on() {
        let shards = Shards::new(4).unwrap();
        let mut ids = IdRanges::new();
        for (first, end) in [(3, 4), (6, 7), (8, 30), (31, 40)] {
            ids.push(TermId::vertex(first), TermId::vertex(end));
        }
        for shard in shards.all() {
            for from in 0..45 {
                let subjects = Subjects {
                    ids: ids.clone(),
                    range: 0,
                    next: TermId::vertex(from).raw(),
                    owner: Some((shards, shard)),
                };
                let expected: Vec<TermId> = (from..45)
                    .map(TermId::vertex)
                    .filter(|id| ids.contains(*id) && shards.owner(*id) == shard)
                    .collect();
                assert_eq!(subjects.collect::<Vec<_>>(), expected, "{shard:?} {from}");
            }
        }
    }
}
