//! How does a node answer calls of the shards that it holds?
//!
//! Keys of several of its shards come in one message, and are looked for in the shard of each; what is read of
//! whole shards is read of one after the other.

use std::collections::hash_map::{Entry, RandomState};
use std::hash::{BuildHasher as _, Hasher as _};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use jindou_exec::{GraphSource, Keys, TermPart};
use jindou_model::{Cursor, GraphRef, IdRanges, Lists, ShardId, TermId, TermKind, Unavailable};
use jindou_partition::Shards;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::pages::{Scan, page};
use super::wire::number_of_request;
use super::words::{
    Answer, AskedList, AskedPattern, Call, MOST_IDS, MOST_KEY_BYTES, MOST_RANGES, Refusal, Request,
    RequestNumber, ServedId, Strings,
};
use crate::Sharded;

/// Rows whose graphs are asked for together: each edge may be in many.
const ROWS_OF_GRAPHS_AT_ONCE: usize = 256;

/// Answers calls of the shards that a node holds, at as many snapshots as somebody uses.
///
/// [`ShardServer::answer`] is a function from bytes to bytes; what carries these is a matter of
/// [`Listening`](super::Listening).
pub struct ShardServer {
    shards: Shards,
    served: RwLock<FxHashMap<ServedId, Weak<ServedShards>>>,
    next: AtomicU64,
    find: Option<Box<Find>>,
}

/// Finds what is asked for by a name for which the server does not answer yet.
type Find = dyn Fn(ServedId) -> Result<Arc<ServedShards>, Unavailable> + Send + Sync;

/// The shards of a node at one snapshot, which its server answers for until this is dropped.
///
/// Nodes of one process share it: whoever asks keeps what it asks for. Between processes the node that
/// holds the shards finds it by the number of the snapshot.
pub struct ServedShards {
    id: ServedId,
    /// The graph, without the rows of shards that are lost, or another node's.
    graph: Sharded,
    /// The node's part of the dictionary, if that is dealt to nodes.
    terms: Option<Arc<dyn TermPart>>,
    server: Weak<ShardServer>,
}

impl ServedShards {
    /// What the server knows it by.
    #[must_use]
    pub fn id(&self) -> ServedId {
        self.id
    }
}

impl Drop for ServedShards {
    fn drop(&mut self) {
        let Some(server) = self.server.upgrade() else {
            return;
        };
        // The name may be that of another one by now.
        if let Entry::Occupied(entry) = server.served.write().entry(self.id)
            && entry.get().strong_count() == 0
        {
            entry.remove();
        }
    }
}

impl ShardServer {
    /// A server that holds nothing yet, of a graph that is cut into `shards`.
    #[must_use]
    pub fn new(shards: Shards) -> Arc<Self> {
        Self::of(shards, None)
    }

    /// The same, which finds by `find` what is asked for by a name for which it does not answer yet.
    #[must_use]
    pub fn finding(
        shards: Shards,
        find: impl Fn(ServedId) -> Result<Arc<ServedShards>, Unavailable> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Self::of(shards, Some(Box::new(find)))
    }

    fn of(shards: Shards, find: Option<Box<Find>>) -> Arc<Self> {
        Arc::new(Self {
            shards,
            served: RwLock::default(),
            next: AtomicU64::new(incarnation()),
            find,
        })
    }

    /// Answers from now on for the rows of a graph at one snapshot: calls of a shard that has none there are
    /// answered by [`Unavailable::Never`].
    ///
    /// # Panics
    /// If it is not cut into as many shards as this server's.
    #[must_use]
    pub fn serve(self: &Arc<Self>, graph: Sharded) -> Arc<ServedShards> {
        let id = ServedId(self.next.fetch_add(1, Ordering::Relaxed));
        self.serve_by(id, graph)
    }

    /// As [`ShardServer::serve`], with the node's part of a dictionary that is dealt to nodes.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn serve_with_terms(
        self: &Arc<Self>,
        graph: Sharded,
        terms: Arc<dyn TermPart>,
    ) -> Arc<ServedShards> {
        let id = ServedId(self.next.fetch_add(1, Ordering::Relaxed));
        self.serve_both(id, graph, Some(terms))
    }

    /// As [`ShardServer::serve`], under a name that the caller chose. If the name is in use, what it names stays,
    /// and the graph is dropped.
    ///
    /// # Panics
    /// As there.
    #[must_use]
    pub fn serve_by(self: &Arc<Self>, id: ServedId, graph: Sharded) -> Arc<ServedShards> {
        self.serve_both(id, graph, None)
    }

    /// As [`ShardServer::serve_by`], with the node's part of a dictionary that is dealt to nodes, if it is.
    pub(crate) fn serve_both(
        self: &Arc<Self>,
        id: ServedId,
        graph: Sharded,
        terms: Option<Arc<dyn TermPart>>,
    ) -> Arc<ServedShards> {
        assert_eq!(graph.shards, self.shards, "the server's shards");
        let server = Arc::downgrade(self);
        let served = Arc::new(ServedShards {
            id,
            graph,
            terms,
            server,
        });
        let mut all = self.served.write();
        // Dropped behind the lock, which it takes.
        let before = all.get(&id).and_then(Weak::upgrade);
        if let Some(before) = before {
            drop(all);
            return before;
        }
        all.insert(id, Arc::downgrade(&served));
        drop(all);
        served
    }

    /// Snapshots that somebody uses.
    #[cfg(test)]
    pub(super) fn snapshots(&self) -> usize {
        self.served.read().len()
    }

    /// The answer to a request, both as bytes. Whatever the bytes are there is one: of what is no
    /// request, that it is none.
    #[must_use]
    pub fn answer(&self, request: &[u8]) -> Vec<u8> {
        // No request has this number.
        let number = number_of_request(request).unwrap_or(RequestNumber(0));
        let answer = match Request::decode(request) {
            Ok(request) => self.answer_to(&request),
            Err(_) => Answer::Refused(Refusal::Malformed),
        };
        answer.encode(number)
    }

    fn answer_to(&self, request: &Request<'_>) -> Answer {
        let served = self.served.read().get(&request.served).cloned();
        let served = match (served.and_then(|served| served.upgrade()), &self.find) {
            (Some(served), _) => served,
            (None, None) => return Answer::Refused(Refusal::NotServed),
            (None, Some(find)) => match find(request.served) {
                Ok(served) => served,
                Err(why) => return Answer::Unavailable(why),
            },
        };
        if let Call::Keys { .. } | Call::Candidates { .. } = request.call {
            let Some(terms) = &served.terms else {
                return Answer::Refused(Refusal::NotServed);
            };
            // As with rows, below.
            return match catch_unwind(AssertUnwindSafe(|| of_terms(&**terms, &request.call))) {
                Ok(answer) => answer.unwrap_or_else(Answer::Unavailable),
                Err(_) => Answer::Refused(Refusal::Broken),
            };
        }
        let count = self.shards.count();
        if (request.shards.iter()).any(|shard| shard.0 as usize >= count) {
            return Answer::Refused(Refusal::NotServed);
        }
        let asked = Asked {
            graph: &served.graph,
            shards: &request.shards,
        };
        // Of a mapped file that lost bytes anything may be read, and make anything panic: that is the
        // failure of this call, and not of those who ask for something else.
        match catch_unwind(AssertUnwindSafe(|| asked.answer(&request.call))) {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => Answer::Unavailable(why),
            Err(_) => Answer::Refused(Refusal::Broken),
        }
    }
}

/// What a node's part of the dictionary answers.
fn of_terms(terms: &dyn TermPart, call: &Call<'_>) -> Result<Answer, Unavailable> {
    match call {
        Call::Keys {
            ids,
            from_byte,
            most_bytes,
        } => {
            let is_stored = |id: &TermId| matches!(id.kind(), TermKind::Vertex | TermKind::Literal);
            if !ids
                .iter()
                .all(|id| is_stored(id) && terms.has(*id) && terms.has_key(*id))
            {
                return Ok(Answer::Refused(Refusal::Malformed));
            }
            let most = (*most_bytes).clamp(1, MOST_KEY_BYTES);
            let mut read = Keys::default();
            let count = terms.push_keys(ids, most, &mut read)?;
            let (mut keys, mut rest) = (Strings::default(), 0);
            for number in 0..count {
                let (key, _) = read.get(number);
                let begin = match number {
                    0 => usize::try_from(*from_byte).map_or(key.len(), |from| from.min(key.len())),
                    _ => 0,
                };
                let key = &key[begin..];
                if number == 0 {
                    let now = key.len().min(MOST_KEY_BYTES);
                    keys.push(&key[..now]);
                    rest = (key.len() - now) as u64;
                } else if rest == 0 && keys.bytes() + key.len() <= MOST_KEY_BYTES {
                    keys.push(key);
                } else {
                    break;
                }
            }
            Ok(Answer::Keys { keys, rest })
        }
        Call::Candidates {
            hashes,
            are_literals,
        } => {
            let (mut rows, mut ids, mut done) = (Vec::new(), Vec::new(), 0);
            for (hash, is_literal) in hashes.iter().zip(are_literals) {
                if ids.len() >= MOST_IDS {
                    break;
                }
                match terms.push_candidates(*hash, *is_literal, &mut ids) {
                    Err(Unavailable::NotNow) if done > 0 => break,
                    pushed => pushed?,
                }
                rows.resize(ids.len(), done as u32);
                done += 1;
            }
            Ok(Answer::Candidates { rows, ids, done })
        }
        _ => unreachable!("a dictionary is asked for terms"),
    }
}

/// Where a node begins to count: a number that it gave before a restart names nothing.
pub(crate) fn incarnation() -> u64 {
    RandomState::new().build_hasher().finish() >> 1
}

/// The shards that are asked.
struct Asked<'a> {
    graph: &'a Sharded,
    /// None where each key is looked for in its own.
    shards: &'a [ShardId],
}

impl Asked<'_> {
    /// What has the lists of the keys of a call.
    fn of_keys(&self) -> Result<&dyn GraphSource, Unavailable> {
        match self.shards {
            [shard] => self.graph.of_shard(*shard),
            _ => Ok(self.graph),
        }
    }

    fn answer(&self, call: &Call<'_>) -> Result<Answer, Unavailable> {
        match call {
            Call::Members {
                graph,
                memberships,
                precision,
                within,
                from_range,
            } => {
                let within = within.as_ref();
                let graph = graph.as_ref();
                let of_shard = |shard: &ShardId| {
                    let rows = self.graph.of_shard(*shard)?;
                    rows.members(graph, memberships, *precision, within)
                };
                let all: Result<Option<Vec<_>>, _> = self.shards.iter().map(of_shard).collect();
                Ok(cut(all?.map(IdRanges::union_of), *from_range))
            }
            Call::Expand {
                graph,
                lists,
                offset,
                allowed,
                budget,
            } => {
                let lists: Vec<Lists<'_>> = lists.iter().map(AskedList::as_ref).collect();
                let allowed = allowed.as_ref();
                self.expand(graph.as_ref(), &lists, (*offset, *budget), allowed)
            }
            Call::Places { graph, list } => {
                let places = self.of_keys()?.places(graph.as_ref(), &list.as_ref())?;
                Ok(Answer::Places(places))
            }
            Call::Contains { graph, list, to } => {
                let mut rows = Vec::new();
                (self.of_keys()?).contains(graph.as_ref(), &list.as_ref(), to, &mut rows)?;
                Ok(Answer::Contained(rows))
            }
            Call::Degrees {
                graph,
                list,
                allowed,
            } => {
                let mut degrees = Vec::with_capacity(list.keys.len());
                let (graph, allowed) = (graph.as_ref(), allowed.as_ref());
                (self.of_keys()?).degrees(graph, &list.as_ref(), allowed, &mut degrees)?;
                Ok(Answer::Degrees(degrees))
            }
            Call::GraphsOf { list, to } => self.graphs_of(list, to),
            Call::Matches {
                pattern,
                graph,
                page: asked,
            } => {
                let graph = Some(graph.as_ref());
                let scan = |turn| self.scan(turn, pattern, graph);
                page(self.shards.len(), *asked, scan).map(Answer::Page)
            }
            Call::Quads {
                pattern,
                page: asked,
            } => {
                let scan = |turn| self.scan(turn, pattern, None);
                page(self.shards.len(), *asked, scan).map(Answer::Page)
            }
            Call::Keys { .. } | Call::Candidates { .. } => {
                unreachable!("a shard is asked for no terms")
            }
        }
    }

    fn scan<'s>(
        &'s self,
        turn: usize,
        asked: &'s AskedPattern<'_>,
        graph: Option<GraphRef<'s>>,
    ) -> Result<Scan<'s>, Unavailable> {
        let shard = self.shards[turn];
        Ok(Scan {
            rows: self.graph.of_shard(shard)?,
            shards: self.graph.shards,
            shard,
            pattern: asked.pattern,
            predicates: &asked.predicates,
            graph,
        })
    }

    fn expand(
        &self,
        graph: GraphRef<'_>,
        lists: &[Lists<'_>],
        (offset, budget): (usize, usize),
        allowed: Option<&IdRanges>,
    ) -> Result<Answer, Unavailable> {
        let mut cursor = Cursor { key: 0, offset };
        let (mut rows, mut ids) = (Vec::new(), Vec::new());
        let source = self.of_keys()?;
        let budget = budget.min(MOST_IDS);
        let count = lists.first().map_or(0, |list| list.keys.len());
        let outcome = loop {
            let before = cursor;
            let found = (&mut rows, &mut ids);
            let outcome =
                source.expand(graph, lists, &mut cursor, allowed, budget, found.0, found.1);
            // A graph of several shards may stop before there is no room any more. The places of one list may
            // be shared out: see `GraphSource::expand`.
            let is_over = cursor.key >= count || ids.len() >= budget || cursor == before;
            if count == 1 || is_over || outcome.is_err() {
                break outcome;
            }
        };
        // The cursor says how far it came: that is something to answer.
        match outcome {
            Err(why) if cursor == (Cursor { key: 0, offset }) => Err(why),
            Err(why @ (Unavailable::Never(_) | Unavailable::Gone)) => Err(why),
            Ok(()) | Err(Unavailable::NotNow) => Ok(Answer::Expanded { rows, ids, cursor }),
        }
    }

    /// The graphs of the first rows, until these are as many as an answer has.
    fn graphs_of(&self, list: &AskedList<'_>, to: &[TermId]) -> Result<Answer, Unavailable> {
        let source = self.of_keys()?;
        let (mut rows, mut graphs) = (Vec::new(), Vec::new());
        let mut done = 0;
        while done < to.len() && graphs.len() < MOST_IDS {
            let part: Range<usize> = done..to.len().min(done + ROWS_OF_GRAPHS_AT_ONCE);
            let (begin, first) = (rows.len(), done);
            let list = list.part(part.clone());
            match source.graphs_of(&list, &to[part.clone()], &mut rows, &mut graphs) {
                Ok(()) => {}
                Err(Unavailable::NotNow) if done > 0 => break,
                Err(why) => return Err(why),
            }
            rows[begin..]
                .iter_mut()
                .for_each(|row| *row += first as u32);
            done = part.end;
        }
        Ok(Answer::GraphsOf { rows, graphs, done })
    }
}

/// As many ranges of a set, from one on, as an answer has.
fn cut(ids: Option<IdRanges>, from_range: u64) -> Answer {
    let Some(ids) = ids else {
        return Answer::Members {
            ids: None,
            is_cut: false,
        };
    };
    let ranges = ids.ranges();
    let from = usize::try_from(from_range).map_or(ranges.len(), |from| from.min(ranges.len()));
    let end = ranges.len().min(from + MOST_RANGES);
    if (from, end) == (0, ranges.len()) {
        let (ids, is_cut) = (Some(ids), false);
        return Answer::Members { ids, is_cut };
    }
    let mut some = IdRanges::new();
    for (first, end) in &ranges[from..end] {
        some.push(TermId::from_raw(*first), TermId::from_raw(*end));
    }
    Answer::Members {
        ids: Some(some),
        is_cut: end < ranges.len(),
    }
}
