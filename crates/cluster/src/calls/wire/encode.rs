//! A request or an answer -> bytes.

use jindou_model::{Direction, IdRanges, Membership, Precision, PredicateId, TermId, Unavailable};

use super::super::words::{
    Answer, AskedGraph, AskedList, AskedPattern, Call, Column, Page, PageAsked, Place, Request,
    RequestNumber, Strings,
};
use super::{ANSWER, NO_RANGES, NUMBER, REQUEST, VERSION, answer, call, graph, kind};

/// Gives an encoded request its number.
pub(in super::super) fn set_number(request: &mut [u8], number: RequestNumber) {
    request[NUMBER].copy_from_slice(&number.0.to_le_bytes());
}

impl Request<'_> {
    /// The request as bytes.
    ///
    /// # Panics
    /// If there is more of something than a message may have.
    pub(in super::super) fn encode(&self) -> Vec<u8> {
        let (kind, rows) = self.call.kind_and_rows();
        let mut out = Out::begin(REQUEST, self.number, kind);
        out.u64(self.served.0);
        out.count(self.shards.len());
        self.shards.iter().for_each(|shard| out.u32(shard.0));
        out.count(rows);
        out.call(&self.call);
        out.0
    }
}

impl Call<'_> {
    fn kind_and_rows(&self) -> (u32, usize) {
        match self {
            Self::Members { .. } => (call::MEMBERS, 0),
            Self::Expand { lists, .. } => {
                let rows = lists.first().map_or(0, |list| list.keys.len());
                (call::EXPAND, rows)
            }
            Self::Places { list, .. } => (call::PLACES, list.keys.len()),
            Self::Contains { list, .. } => (call::CONTAINS, list.keys.len()),
            Self::Degrees { list, .. } => (call::DEGREES, list.keys.len()),
            Self::GraphsOf { list, .. } => (call::GRAPHS_OF, list.keys.len()),
            Self::Matches { pattern, .. } => (call::MATCHES, pattern.predicates.len()),
            Self::Quads { pattern, .. } => (call::QUADS, pattern.predicates.len()),
            Self::Keys { ids, .. } => (call::KEYS, ids.len()),
            Self::Candidates { hashes, .. } => (call::CANDIDATES, hashes.len()),
        }
    }
}

impl Answer {
    /// The answer to a request as bytes.
    pub(in super::super) fn encode(&self, number: RequestNumber) -> Vec<u8> {
        let mut out = Out::begin(ANSWER, number, self.kind());
        match self {
            Self::Members { ids, is_cut } => {
                out.u32(u32::from(*is_cut));
                out.ranges(ids.as_ref());
            }
            Self::Expanded { rows, ids, cursor } => {
                out.u64(cursor.key as u64);
                out.u64(cursor.offset as u64);
                out.rows_and_ids(rows, ids);
            }
            Self::Places(places) => out.u64(*places),
            Self::Contained(rows) => {
                out.count(rows.len());
                out.rows(rows);
            }
            Self::Degrees(degrees) => {
                out.count(degrees.len());
                out.words(degrees, |degree| *degree);
            }
            Self::GraphsOf {
                rows,
                graphs: ids,
                done,
            }
            | Self::Candidates { rows, ids, done } => {
                out.count(*done);
                out.rows_and_ids(rows, ids);
            }
            Self::Page(page) => out.page(page),
            Self::Keys { keys, rest } => {
                out.u64(*rest);
                out.count(keys.len());
                out.strings(keys);
            }
            Self::Unavailable(Unavailable::NotNow | Unavailable::Gone) => {}
            Self::Unavailable(Unavailable::Never(shard)) => out.u32(shard.0),
            Self::Refused(refusal) => out.u32(*refusal as u32),
        }
        out.0
    }

    pub(in super::super) fn kind(&self) -> u32 {
        match self {
            Self::Members { .. } => answer::MEMBERS,
            Self::Expanded { .. } => answer::EXPANDED,
            Self::Places(_) => answer::PLACES,
            Self::Contained(_) => answer::CONTAINED,
            Self::Degrees(_) => answer::DEGREES,
            Self::GraphsOf { .. } => answer::GRAPHS_OF,
            Self::Page(_) => answer::PAGE,
            Self::Keys { .. } => answer::KEYS,
            Self::Candidates { .. } => answer::CANDIDATES,
            Self::Unavailable(Unavailable::NotNow) => answer::NOT_NOW,
            Self::Unavailable(Unavailable::Never(_)) => answer::NEVER,
            Self::Unavailable(Unavailable::Gone) => answer::GONE,
            Self::Refused(_) => answer::REFUSED,
        }
    }
}

/// A message so far.
struct Out(Vec<u8>);

impl Out {
    fn begin(magic: [u8; 4], number: RequestNumber, kind: u32) -> Self {
        let mut out = Self(magic.to_vec());
        out.u32(VERSION);
        out.u64(number.0);
        out.u32(kind);
        out
    }

    fn u32(&mut self, number: u32) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn count(&mut self, count: usize) {
        let count = u32::try_from(count).expect("a message has fewer than 2^32 of everything");
        self.u32(count);
    }

    fn words<T>(&mut self, values: &[T], word: impl Fn(&T) -> u64) {
        self.0.reserve(size_of::<u64>() * values.len());
        values.iter().for_each(|value| self.u64(word(value)));
    }

    fn rows(&mut self, rows: &[u32]) {
        self.0.reserve(size_of_val(rows));
        rows.iter().for_each(|row| self.u32(*row));
    }

    fn ids(&mut self, ids: &[TermId]) {
        self.words(ids, |id| id.raw());
    }

    fn rows_and_ids(&mut self, rows: &[u32], ids: &[TermId]) {
        assert_eq!(rows.len(), ids.len(), "each id has a row");
        self.count(rows.len());
        self.rows(rows);
        self.ids(ids);
    }

    fn call(&mut self, call: &Call<'_>) {
        match call {
            Call::Members {
                graph,
                memberships,
                precision,
                within,
                from_range,
            } => {
                self.graph(graph);
                self.count(memberships.len());
                memberships.iter().for_each(|asked| self.membership(*asked));
                self.precision(*precision);
                self.ranges(within.as_ref());
                self.u64(*from_range);
            }
            Call::Expand {
                graph,
                lists,
                offset,
                allowed,
                budget,
            } => {
                self.graph(graph);
                self.count(lists.len());
                lists.iter().for_each(|list| self.list(list));
                self.u64(*offset as u64);
                self.ranges(allowed.as_ref());
                self.count(*budget);
            }
            Call::Places { graph, list } => {
                self.graph(graph);
                self.list(list);
            }
            Call::Contains { graph, list, to } => {
                self.graph(graph);
                self.list(list);
                self.ids(to);
            }
            Call::Degrees {
                graph,
                list,
                allowed,
            } => {
                self.graph(graph);
                self.list(list);
                self.ranges(allowed.as_ref());
            }
            Call::GraphsOf { list, to } => {
                self.list(list);
                self.ids(to);
            }
            Call::Matches {
                pattern,
                graph,
                page,
            } => {
                self.pattern(pattern);
                self.graph(graph);
                self.page_asked(*page);
            }
            Call::Quads { pattern, page } => {
                self.pattern(pattern);
                self.page_asked(*page);
            }
            Call::Keys {
                ids,
                from_byte,
                most_bytes,
            } => {
                self.ids(ids);
                self.u64(*from_byte);
                self.count(*most_bytes);
            }
            Call::Candidates {
                hashes,
                are_literals,
            } => {
                are_literals
                    .iter()
                    .for_each(|is| self.0.push(u8::from(*is)));
                hashes.iter().for_each(|hash| self.u64(*hash));
            }
        }
    }

    fn strings(&mut self, strings: &Strings) {
        strings.iter().for_each(|string| self.count(string.len()));
        self.0.reserve(strings.bytes());
        strings
            .iter()
            .for_each(|string| self.0.extend_from_slice(string));
    }

    fn graph(&mut self, asked: &AskedGraph<'_>) {
        match asked {
            AskedGraph::Default => self.u32(graph::DEFAULT),
            AskedGraph::One(name) => {
                self.u32(graph::ONE);
                self.u64(name.raw());
            }
            AskedGraph::Some(graphs) => {
                self.u32(graph::SOME);
                self.count(graphs.len());
                self.ids(graphs);
            }
            AskedGraph::Named => self.u32(graph::NAMED),
            AskedGraph::Union => self.u32(graph::UNION),
            AskedGraph::Each(graphs) => {
                self.u32(graph::EACH);
                self.ids(graphs);
            }
        }
    }

    fn list(&mut self, list: &AskedList<'_>) {
        self.predicate(list.predicate);
        self.direction(list.direction);
        self.ids(&list.keys);
    }

    fn predicate(&mut self, predicate: PredicateId) {
        self.u32(predicate.0);
    }

    fn direction(&mut self, direction: Direction) {
        self.u32(u32::from(direction as u8));
    }

    fn membership(&mut self, asked: Membership) {
        match asked {
            Membership::Type(class) => {
                self.u32(kind::TYPE);
                self.u64(class.raw());
            }
            Membership::Has(predicate, direction) => {
                self.u32(kind::HAS);
                self.predicate(predicate);
                self.direction(direction);
            }
        }
    }

    fn precision(&mut self, precision: Precision) {
        match precision {
            Precision::Exact => self.u32(kind::EXACT),
            Precision::Filter => self.u32(kind::FILTER),
            Precision::FilterOf(known) => {
                self.u32(kind::FILTER_OF);
                self.membership(known);
            }
        }
    }

    fn ranges(&mut self, ranges: Option<&IdRanges>) {
        let Some(ranges) = ranges else {
            return self.u32(NO_RANGES);
        };
        self.count(ranges.ranges().len());
        for (first, end) in ranges.ranges() {
            self.u64(*first);
            self.u64(*end);
        }
    }

    fn pattern(&mut self, asked: &AskedPattern<'_>) {
        let AskedPattern {
            pattern,
            predicates,
        } = asked;
        for end in [pattern.subject, pattern.object] {
            self.u32(u32::from(end.is_some()));
            end.into_iter().for_each(|end| self.u64(end.raw()));
        }
        self.u32(u32::from(pattern.predicate.is_some()));
        let predicate = pattern.predicate.iter();
        let all = predicate.chain(&**predicates);
        all.for_each(|predicate| self.predicate(*predicate));
    }

    fn page_asked(&mut self, page: PageAsked) {
        self.place(Some((page.turn, page.from)));
        self.count(page.most);
    }

    fn place(&mut self, place: Option<(u32, Place)>) {
        let Some((turn, place)) = place else {
            return self.u32(kind::END);
        };
        match place {
            Place::Start => self.u32(kind::START),
            Place::After(_) => self.u32(kind::AFTER),
            Place::At(..) => self.u32(kind::AT),
        }
        self.u32(turn);
        match place {
            Place::Start => {}
            Place::After(quads) => self.u64(quads),
            Place::At(subject, offset) => {
                self.u64(subject.raw());
                self.u64(offset as u64);
            }
        }
    }

    fn page(&mut self, page: &Page) {
        self.count(page.count);
        self.place(page.next);
        self.column(&page.subjects, |out, id| out.u64(id.raw()));
        self.column(&page.predicates, |out, predicate| out.predicate(predicate));
        self.column(&page.objects, |out, id| out.u64(id.raw()));
        self.column(&page.graphs, |out, id| out.u64(id.raw()));
    }

    fn column<T: Copy>(&mut self, column: &Column<T>, value: impl Fn(&mut Self, T)) {
        match column {
            Column::Same(same) => {
                self.u32(kind::SAME);
                value(self, *same);
            }
            Column::Each(values) => {
                self.u32(kind::EACH);
                self.0.reserve(size_of_val(values.as_slice()));
                values.iter().for_each(|each| value(self, *each));
            }
        }
    }
}
