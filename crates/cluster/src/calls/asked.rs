//! How are the shards of another node a graph like any other? Each call goes there as a message.
//!
//! One message has the keys of all shards of the node: the node finds the shard of each.
//! Calls of many rows go in pieces, so that none is larger than a message, and none takes long. Of a set
//! of ids with many ranges those that are not in it are left out here. What an answer says is checked
//! against what was asked before anything of it is used.

use std::any::Any;
use std::borrow::Cow;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use jindou_exec::{Catalogue, Catalogued, GraphSource};
use jindou_model::{
    Cursor, GraphRef, IdRanges, Lists, Membership, Pattern, Precision, PredicateId, ShardId,
    TermId, Unavailable, Visit,
};
use jindou_partition::Shards;

use super::connection::{Connection, NoAnswer};
use super::wire::CallError;
use super::words::{
    Answer, AskedGraph, AskedList, AskedPattern, Call, MOST_IDS, MOST_QUADS, MOST_RANGES_ASKED,
    MOST_ROWS, MOST_SHARDS, Page, PageAsked, Place, Request, RequestNumber, ServedId,
};
use crate::matching::PATIENCE_OF_SCANS;

/// Quads in the first page of a pattern. Later pages have more: a reader that goes on wants more.
const FIRST_QUADS: usize = 256;
/// How many times as many quads a page has as the one before.
const PAGE_GROWTH: usize = 8;
/// Between two questions for a page that was not ready.
const PAUSE_OF_PAGES: Duration = Duration::from_millis(1);

/// Shards of another node at one snapshot, which are asked over a connection.
///
/// Shards whose node is lost answer [`Unavailable::Never`], and so do those whose node refuses a
/// call: it runs another version, or cannot read them.
pub struct AskedShards {
    shards: Shards,
    /// Those that are asked, in order; one at least.
    asked: Vec<ShardId>,
    served: ServedId,
    connection: Arc<Connection>,
    catalogue: Arc<dyn Catalogue>,
    /// What is to be there for as long as this is used.
    _kept: Arc<dyn Any + Send + Sync>,
}

impl AskedShards {
    /// Some of the shards of a graph, which the server at the other end of a connection knows by this name; what
    /// every node knows is in the `catalogue`. `kept` is not dropped before this: what keeps the shards there.
    ///
    /// # Panics
    /// If it is no shard, or they do not rise.
    #[must_use]
    pub fn new(
        (shards, asked, served): (Shards, Vec<ShardId>, ServedId),
        connection: &Arc<Connection>,
        catalogue: Arc<dyn Catalogue>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        assert!(!asked.is_empty(), "some shards are asked");
        assert!(asked.is_sorted_by(|a, b| a < b), "shards rise");
        Self {
            shards,
            asked,
            served,
            connection: Arc::clone(connection),
            catalogue,
            _kept: kept,
        }
    }

    /// The shards of some keys are lost, one at least.
    fn never(&self, key: Option<&TermId>) -> Unavailable {
        let owner = key.map(|key| self.shards.owner(*key));
        let shard = owner.filter(|owner| self.asked.binary_search(owner).is_ok());
        Unavailable::Never(shard.unwrap_or(self.asked[0]))
    }

    /// The answer to a call of the shards of some keys.
    fn ask_for_keys<T>(
        &self,
        keys: &[TermId],
        call: Call<'_>,
        pick: impl FnOnce(Answer) -> Result<T, CallError>,
    ) -> Result<T, Unavailable> {
        let shards = match &*self.asked {
            one @ [_] => one,
            _ => &[],
        };
        let never = self.never(keys.first());
        self.ask((shards, never), call, pick)
    }

    /// The shards in which a pattern is read: those of its ends have their edges.
    fn shards_of(&self, pattern: &Pattern) -> &[ShardId] {
        let owner = (pattern.subject.or(pattern.object)).map(|key| self.shards.owner(key));
        match owner.map(|owner| self.asked.binary_search(&owner)) {
            Some(Ok(place)) => &self.asked[place..=place],
            _ => &self.asked,
        }
    }

    /// The answer to a call, of which `pick` takes what fits the call.
    fn ask<T>(
        &self,
        (shards, never): (&[ShardId], Unavailable),
        call: Call<'_>,
        pick: impl FnOnce(Answer) -> Result<T, CallError>,
    ) -> Result<T, Unavailable> {
        let request = Request {
            number: RequestNumber::default(),
            served: self.served,
            shards: Cow::Borrowed(shards),
            call,
        };
        let answer = match self.connection.ask(request.encode()) {
            Ok(answer) => answer,
            Err(NoAnswer::NotYet) => return Err(Unavailable::NotNow),
            Err(NoAnswer::Never) => return Err(never),
        };
        match Answer::decode(&answer) {
            Ok(Answer::Unavailable(why)) => Err(why),
            Ok(Answer::Refused(_)) | Err(_) => Err(never),
            Ok(answer) => pick(answer).map_err(|_| never),
        }
    }

    /// Some of the ranges of a set in some shards, from one on, and whether others follow.
    fn ranges(
        &self,
        shards: &[ShardId],
        asked: (AskedGraph<'_>, &[Membership], Precision),
        within: Option<&IdRanges>,
        from_range: u64,
    ) -> Result<(Option<IdRanges>, bool), Unavailable> {
        let (graph, memberships, precision) = asked;
        let call = Call::Members {
            graph,
            memberships: Cow::Borrowed(memberships),
            precision,
            within: within.cloned(),
            from_range,
        };
        let shards = (shards, Unavailable::Never(shards[0]));
        self.ask(shards, call, |answer| match answer {
            Answer::Members { ids, is_cut } => Ok((ids, is_cut)),
            other => Err(other_call(&other)),
        })
    }

    /// The whole set.
    fn members_in(
        &self,
        shards: &[ShardId],
        asked: &(AskedGraph<'_>, &[Membership], Precision),
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        let mut all = IdRanges::new();
        let mut from_range = 0;
        loop {
            let (ids, is_cut) = self.ranges(shards, asked.clone(), within, from_range)?;
            let Some(ids) = ids else {
                return Ok(None);
            };
            // They lie after those that came before, and there are some if others follow.
            let last = all.ranges().last().map_or(0, |last| last.1);
            let first = ids.ranges().first().map_or(u64::MAX, |first| first.0);
            if first < last || is_cut && ids.is_empty() {
                return Err(Unavailable::Never(shards[0]));
            }
            from_range += ids.ranges().len() as u64;
            all.append(&ids);
            if !is_cut {
                return Ok(Some(all));
            }
        }
    }

    /// Follows the lists of one piece of rows, of which the first goes on at `offset`.
    fn follow(&self, keys: &[TermId], call: Call<'_>) -> Result<Followed, Unavailable> {
        let rows = keys.len();
        self.ask_for_keys(keys, call, |answer| match answer {
            Answer::Expanded {
                rows: of_ids,
                ids,
                cursor,
            } => {
                let is_within = cursor.key < rows || cursor == at_row(rows);
                let last = cursor.key.saturating_add(1).min(rows);
                fit(is_within, "cursors", rows)?;
                fit(of_ids.is_sorted(), "rows of ids", rows)?;
                fit(are_below(&of_ids, last), "rows of ids", rows)?;
                Ok(Followed {
                    rows: of_ids,
                    ids,
                    cursor,
                })
            }
            other => Err(other_call(&other)),
        })
    }

    /// The rows of one piece whose edges are there.
    fn contained(&self, keys: &[TermId], call: Call<'_>) -> Result<Vec<u32>, Unavailable> {
        let rows = keys.len();
        self.ask_for_keys(keys, call, |answer| match answer {
            Answer::Contained(found) => {
                let is_sorted = found.windows(2).all(|pair| pair[0] < pair[1]);
                fit(is_sorted, "rows", rows)?;
                fit(are_below(&found, rows), "rows", rows)?;
                Ok(found)
            }
            other => Err(other_call(&other)),
        })
    }

    fn counted(&self, keys: &[TermId], call: Call<'_>) -> Result<Vec<u64>, Unavailable> {
        let rows = keys.len();
        self.ask_for_keys(keys, call, |answer| match answer {
            Answer::Degrees(degrees) => {
                fit(degrees.len() == rows, "degrees", rows)?;
                Ok(degrees)
            }
            other => Err(other_call(&other)),
        })
    }

    /// Graphs of the first edges of one piece, and how many edges these are.
    fn graphs(
        &self,
        keys: &[TermId],
        call: Call<'_>,
    ) -> Result<(Vec<u32>, Vec<TermId>, usize), Unavailable> {
        let rows = keys.len();
        self.ask_for_keys(keys, call, |answer| match answer {
            Answer::GraphsOf {
                rows: of_edges,
                graphs,
                done,
            } => {
                fit((1..=rows).contains(&done), "edges that are done", rows)?;
                fit(are_below(&of_edges, done), "rows of graphs", rows)?;
                fit(of_edges.is_sorted(), "rows of graphs", rows)?;
                Ok((of_edges, graphs, done))
            }
            other => Err(other_call(&other)),
        })
    }

    /// Degrees where the allowed ids are too many ranges to send: the lists are followed.
    fn count_here(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: &IdRanges,
    ) -> Result<Vec<u64>, Unavailable> {
        let mut degrees = vec![0; list.keys.len()];
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let mut cursor = Cursor::default();
        while cursor.key < list.keys.len() {
            rows.clear();
            ids.clear();
            let (lists, allowed) = (std::slice::from_ref(list), Some(allowed));
            self.expand(
                graph,
                lists,
                &mut cursor,
                allowed,
                MOST_IDS,
                &mut rows,
                &mut ids,
            )?;
            rows.iter().for_each(|row| degrees[*row as usize] += 1);
        }
        Ok(degrees)
    }

    /// Calls `visit` with what `call` asks for in some shards, page by page.
    fn visit_pages<'a>(
        &self,
        shards: &[ShardId],
        call: impl Fn(PageAsked) -> Call<'a>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let mut has_begun = false;
        for some in shards.chunks(MOST_SHARDS) {
            let flow = self.visit_some(some, &call, &mut has_begun, visit)?;
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same for shards that fit into one request.
    fn visit_some<'a>(
        &self,
        shards: &[ShardId],
        call: impl Fn(PageAsked) -> Call<'a>,
        has_begun: &mut bool,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let mut asked = PageAsked {
            turn: 0,
            from: Place::Start,
            most: FIRST_QUADS,
        };
        loop {
            let page = self.page(shards, call(asked), asked, *has_begun)?;
            for (subject, predicate, object, graph) in page.quads() {
                *has_begun = true;
                if visit(subject, predicate, object, graph).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            let Some((turn, from)) = page.next else {
                return Ok(ControlFlow::Continue(()));
            };
            asked = PageAsked {
                turn,
                from,
                most: (asked.most * PAGE_GROWTH).min(MOST_QUADS),
            };
        }
    }

    /// One page; waits for it, for a bounded time, if it is too late to say that the graph is not ready. Each
    /// question waits for its answer, but where the link is not ready itself.
    fn page(
        &self,
        shards: &[ShardId],
        call: Call<'_>,
        asked: PageAsked,
        has_begun: bool,
    ) -> Result<Page, Unavailable> {
        let begun_at = self.connection.now();
        let never = Unavailable::Never(shards[asked.turn as usize]);
        loop {
            let page = self.ask((shards, never), call.clone(), |answer| match answer {
                Answer::Page(page) => {
                    // Otherwise the reader could loop for ever.
                    let is_onward = match page.next {
                        Some((turn, _)) if turn == asked.turn => {
                            page.next != Some((turn, asked.from))
                        }
                        Some((turn, _)) => turn > asked.turn && (turn as usize) < shards.len(),
                        None => true,
                    };
                    fit(is_onward, "places", page.count)?;
                    Ok(page)
                }
                other => Err(other_call(&other)),
            });
            match page {
                Err(Unavailable::NotNow) if has_begun => {
                    if self.connection.now() >= begun_at + PATIENCE_OF_SCANS {
                        return Err(never);
                    }
                    thread::sleep(PAUSE_OF_PAGES);
                }
                page => return page,
            }
        }
    }
}

/// What was found of the first rows of a piece.
struct Followed {
    rows: Vec<u32>,
    ids: Vec<TermId>,
    cursor: Cursor,
}

fn at_row(key: usize) -> Cursor {
    Cursor { key, offset: 0 }
}

fn other_call(answer: &Answer) -> CallError {
    let found = answer.kind();
    CallError::OtherCall { found }
}

fn fit(is_fitting: bool, part: &'static str, rows: usize) -> Result<(), CallError> {
    match is_fitting {
        true => Ok(()),
        false => Err(CallError::Rows { part, rows }),
    }
}

fn are_below(rows: &[u32], end: usize) -> bool {
    rows.iter().all(|row| (*row as usize) < end)
}

/// A set to be sent, if it has few ranges, and one that is to be looked at here, if it has many.
fn sent_and_kept(ids: Option<&IdRanges>) -> (Option<IdRanges>, Option<&IdRanges>) {
    match ids {
        Some(ids) if ids.ranges().len() > MOST_RANGES_ASKED => (None, Some(ids)),
        ids => (ids.cloned(), None),
    }
}

/// The rows of a call in pieces of as many as a request has.
fn pieces(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let begins = (0..rows).step_by(MOST_ROWS);
    begins.map(move |begin| begin..rows.min(begin + MOST_ROWS))
}

impl GraphSource for AskedShards {
    fn members(
        &self,
        graph: GraphRef<'_>,
        memberships: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Result<Option<IdRanges>, Unavailable> {
        let (sent, kept) = sent_and_kept(within);
        let mut all = IdRanges::new();
        for shards in self.asked.chunks(MOST_SHARDS) {
            let asked = (AskedGraph::of_no_row(graph), memberships, precision);
            match self.members_in(shards, &asked, sent.as_ref())? {
                Some(ids) if all.is_empty() => all = ids,
                Some(ids) => all = all.union(&ids),
                None => return Ok(None),
            }
        }
        Ok(Some(match kept {
            Some(within) => all.within(within),
            None => all,
        }))
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        cursor: &mut Cursor,
        allowed: Option<&IdRanges>,
        budget: usize,
        rows: &mut Vec<u32>,
        out: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let count = lists.first().map_or(0, |list| list.keys.len());
        assert!(
            lists.iter().all(|list| list.keys.len() == count),
            "each list has a key for each row"
        );
        let (sent, kept) = sent_and_kept(allowed);
        let mut has_moved = false;
        while cursor.key < count && out.len() < budget {
            let first = cursor.key;
            let piece = first..count.min(first + MOST_ROWS);
            let of_piece = lists
                .iter()
                .map(|list| AskedList::of_rows(list, piece.clone()));
            let call = Call::Expand {
                graph: AskedGraph::of_rows(graph, piece.clone()),
                lists: of_piece.collect(),
                offset: cursor.offset,
                allowed: sent.clone(),
                budget: (budget - out.len()).min(MOST_IDS),
            };
            let keys = &lists[0].keys[piece];
            let found = match self.follow(keys, call) {
                // What is there may be all that the caller needs.
                Err(Unavailable::NotNow) if has_moved => return Ok(()),
                found => found?,
            };
            for (row, id) in found.rows.iter().zip(&found.ids) {
                if kept.is_none_or(|kept| kept.contains(*id)) {
                    rows.push(first as u32 + row);
                    out.push(*id);
                }
            }
            let next = Cursor {
                key: first + found.cursor.key,
                offset: found.cursor.offset,
            };
            let is_end = next == *cursor;
            has_moved |= !is_end;
            *cursor = next;
            // The places of one list may be shared out: see `GraphSource::expand`.
            if count == 1 || is_end {
                break;
            }
        }
        Ok(())
    }

    fn places(&self, graph: GraphRef<'_>, list: &Lists<'_>) -> Result<u64, Unavailable> {
        assert_eq!(list.keys.len(), 1, "places are those of one key");
        let call = Call::Places {
            graph: AskedGraph::of_no_row(graph),
            list: AskedList::of_rows(list, 0..1),
        };
        self.ask_for_keys(list.keys, call, |answer| match answer {
            Answer::Places(places) => Ok(places),
            other => Err(other_call(&other)),
        })
    }

    fn contains(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
    ) -> Result<(), Unavailable> {
        let mut found = Vec::new();
        for piece in pieces(list.keys.len()) {
            let first = piece.start as u32;
            let call = Call::Contains {
                graph: AskedGraph::of_rows(graph, piece.clone()),
                list: AskedList::of_rows(list, piece.clone()),
                to: Cow::Borrowed(&to[piece.clone()]),
            };
            let of_piece = self.contained(&list.keys[piece], call)?;
            found.extend(of_piece.into_iter().map(|row| first + row));
        }
        rows.append(&mut found);
        Ok(())
    }

    fn degrees(
        &self,
        graph: GraphRef<'_>,
        list: &Lists<'_>,
        allowed: Option<&IdRanges>,
        out: &mut Vec<u64>,
    ) -> Result<(), Unavailable> {
        let (sent, kept) = sent_and_kept(allowed);
        if let Some(allowed) = kept {
            out.append(&mut self.count_here(graph, list, allowed)?);
            return Ok(());
        }
        let mut found = Vec::with_capacity(list.keys.len());
        for piece in pieces(list.keys.len()) {
            let call = Call::Degrees {
                graph: AskedGraph::of_rows(graph, piece.clone()),
                list: AskedList::of_rows(list, piece.clone()),
                allowed: sent.clone(),
            };
            found.append(&mut self.counted(&list.keys[piece], call)?);
        }
        out.append(&mut found);
        Ok(())
    }

    fn graphs_of(
        &self,
        list: &Lists<'_>,
        to: &[TermId],
        rows: &mut Vec<u32>,
        graphs: &mut Vec<TermId>,
    ) -> Result<(), Unavailable> {
        let (mut found_rows, mut found_graphs) = (Vec::new(), Vec::new());
        let mut first = 0;
        while first < list.keys.len() {
            let piece = first..list.keys.len().min(first + MOST_ROWS);
            let call = Call::GraphsOf {
                list: AskedList::of_rows(list, piece.clone()),
                to: Cow::Borrowed(&to[piece.clone()]),
            };
            let (of_edges, mut of_piece, done) = self.graphs(&list.keys[piece], call)?;
            found_rows.extend(of_edges.into_iter().map(|row| first as u32 + row));
            found_graphs.append(&mut of_piece);
            first += done;
        }
        rows.append(&mut found_rows);
        graphs.append(&mut found_graphs);
        Ok(())
    }

    fn for_each_match(
        &self,
        pattern: &Pattern,
        graph: GraphRef<'_>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let call = |page| Call::Matches {
            pattern: (*pattern).into(),
            graph: AskedGraph::of_no_row(graph),
            page,
        };
        self.visit_pages(self.shards_of(pattern), call, visit)
    }

    fn for_each_quad(
        &self,
        pattern: &Pattern,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let call = |page| Call::Quads {
            pattern: (*pattern).into(),
            page,
        };
        self.visit_pages(self.shards_of(pattern), call, visit)
    }

    /// One question for thousands of predicates.
    fn for_each_of(
        &self,
        (predicates, done): (&[PredicateId], &mut usize),
        pattern: &Pattern,
        graph: Option<GraphRef<'_>>,
        visit: &mut Visit<'_>,
    ) -> Result<ControlFlow<()>, Unavailable> {
        let pattern = &Pattern {
            predicate: None,
            ..*pattern
        };
        for some in predicates[*done..].chunks(MOST_ROWS) {
            let asked = AskedPattern {
                pattern: *pattern,
                predicates: Cow::Borrowed(some),
            };
            let call = |page| match graph {
                Some(graph) => Call::Matches {
                    pattern: asked.clone(),
                    graph: AskedGraph::of_no_row(graph),
                    page,
                },
                None => Call::Quads {
                    pattern: asked.clone(),
                    page,
                },
            };
            let flow = self.visit_pages(self.shards_of(pattern), call, visit)?;
            if flow.is_break() {
                return Ok(flow);
            }
            *done += some.len();
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What every machine knows is known here.
impl Catalogued for AskedShards {
    fn catalogue(&self) -> &dyn Catalogue {
        &*self.catalogue
    }
}
