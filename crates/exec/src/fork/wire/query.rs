//! What does a sub-query take along of its query? All that tells what its steps mean, the same bytes with
//! each: a node that has a part of the query already need not read them again.
//!
//! A [`QueryHead`] in the format of `postcard`, and a table with the ids of constants and of the graphs of
//! the dataset, the query's own terms with their texts.

use std::str::FromStr as _;
use std::sync::Arc;

use jindou_model::{TermId, TermKind};
use jindou_plan::Stack;
use jindou_plan::physical::Var;
use oxrdf::NamedNode;
use oxsdatatypes::DateTime;
use serde::{Deserialize, Serialize};

use super::super::arrived::Resources;
use super::super::chain::Shape;
use super::super::messages::{QueryId, QueryPart, SubQueryId};
use super::{SubQueryWireError, taken};
use crate::class::QueryClass;
use crate::context::{ActiveDataset, Assembly, Context};
use crate::fork::QueryMessages;
use crate::table::Table;
use crate::{ExecError, expr};

/// Steps and operators of a plan at most.
const MOST_IDS: u32 = 1 << 24;
/// Operators that can spill, at most: each has a share of the memory.
const MOST_SPILLING: u64 = 1 << 20;
/// Bytes for the counts of each step and operator of a profiled query.
const PROFILE_BYTES: usize = 16;

/// What a query is, beside its ids.
#[derive(Debug, Serialize, Deserialize)]
struct QueryHead {
    base: Option<String>,
    seed: u64,
    now: String,
    memory_bytes: u64,
    spilling_operators: u64,
    threads: u32,
    is_profiled: bool,
    ids: u32,
    union_default_graph: bool,
    constants: u32,
    dataset: Option<DatasetHead>,
    /// Those of the ids that are windows, which no table holds: their places, and all of their bits.
    windows: Vec<(u32, u64)>,
}

/// How many ids follow those of the constants.
#[derive(Debug, Serialize, Deserialize)]
struct DatasetHead {
    default: u32,
    default_is_all: bool,
    named: u32,
    within: u32,
}

/// The part of the query of `cx` that all of its sub-queries take along; `id` numbers the query if this is
/// the first.
///
/// # Errors
/// If the query has no memory for the bytes.
pub(in crate::fork) fn part(
    cx: &Context,
    id: impl FnOnce() -> QueryId,
) -> Result<&QueryPart, ExecError> {
    if let Some(part) = cx.messages.part() {
        return Ok(part);
    }
    let bytes = encode(cx)?.into();
    Ok(cx.messages.set_part(QueryPart { id: id(), bytes }))
}

fn encode(cx: &Context) -> Result<Vec<u8>, ExecError> {
    let count = |ids: &[TermId]| u32::try_from(ids.len()).expect("fewer than 2^32 ids");
    let mut ids = cx.constants.clone();
    let dataset = cx.dataset.as_ref().map(|dataset| {
        for graphs in [&dataset.default, &dataset.named, &dataset.within] {
            ids.extend_from_slice(graphs);
        }
        DatasetHead {
            default: count(&dataset.default),
            default_is_all: dataset.default_is_all,
            named: count(&dataset.named),
            within: count(&dataset.within),
        }
    });
    let mut windows = Vec::new();
    for (id, place) in ids.iter_mut().zip(0..) {
        if id.kind() == TermKind::Window {
            windows.push((place, id.raw()));
            *id = TermId::NONE;
        }
    }
    let expressions = &cx.expressions;
    let head = QueryHead {
        base: expressions.base().map(str::to_owned),
        seed: expressions.seed(),
        now: expressions.now().to_string(),
        memory_bytes: cx.memory_bytes(),
        spilling_operators: cx.spilling_operators,
        threads: u32::try_from(cx.threads).unwrap_or(u32::MAX),
        is_profiled: cx.profile.is_some(),
        ids: cx.ids,
        union_default_graph: cx.union_default_graph,
        constants: count(&cx.constants),
        dataset,
        windows,
    };
    let mut table = Table::with_rows(1, ids.len());
    table.set(Var(0), ids);
    let table = table.encode(cx.terms(), cx)?;
    let mut bytes = postcard::to_allocvec(&head).expect("writing to memory never fails");
    bytes.extend_from_slice(table.bytes());
    Ok(bytes)
}

/// What a node has of a query that came with these bytes, for the sub-query `first`, whose query has what
/// `resources` say there.
///
/// # Errors
/// What is wrong with the bytes, and what ends the query if it has no memory for what they say.
pub(in crate::fork) fn decode(
    bytes: &[u8],
    first: SubQueryId,
    resources: Resources,
    messages: QueryMessages,
) -> Result<Context, ExecError> {
    let (head, table): (QueryHead, _) = taken("the query", bytes)?;
    if head.ids > MOST_IDS || head.spilling_operators > MOST_SPILLING {
        let what = "of a query with more operators than any has";
        return Err(SubQueryWireError::Mismatch { what }.into());
    }
    let profile_bytes = match head.is_profiled {
        true => head.ids as usize * PROFILE_BYTES,
        false => 0,
    };
    let Resources {
        source,
        terms,
        forks,
        mut limits,
        transport,
    } = resources;
    limits.memory_bytes = limits.memory_bytes.min(head.memory_bytes);
    if profile_bytes as u64 > limits.memory_bytes {
        let limit_bytes = limits.memory_bytes;
        return Err(ExecError::Memory { limit_bytes });
    }
    let mut cx = Context::assemble(Assembly {
        expressions: head.expressions(terms, first)?,
        source,
        forks: Some(forks),
        constants: Vec::new(),
        dataset: None,
        union_default_graph: head.union_default_graph,
        services: None,
        limits,
        spilling_operators: head.spilling_operators,
        is_profiled: head.is_profiled,
        ids: head.ids,
        threads: head.threads.max(1) as usize,
        transport,
        materialized: Arc::default(),
        // The sub-query says it that came with it.
        class: QueryClass::Light,
        first_solution: first.place(),
        stack: Stack::plain(),
        messages,
    });
    cx.charge(profile_bytes)?;
    let (constants, dataset) = head.ids(table, &cx)?;
    cx.set_ids(constants, dataset);
    Ok(cx)
}

impl QueryHead {
    fn expressions(
        &self,
        terms: crate::Terms,
        first: SubQueryId,
    ) -> Result<expr::Context, ExecError> {
        let malformed = |reason: String| SubQueryWireError::Malformed {
            part: "the query",
            reason,
        };
        let now = DateTime::from_str(&self.now).map_err(|error| malformed(error.to_string()))?;
        let base = self.base.as_ref().map(NamedNode::new).transpose();
        let base = base.map_err(|error| malformed(error.to_string()))?;
        let mut expressions = expr::Context::new(terms, Some(now), base.as_ref(), self.seed);
        expressions.begin_at(first.place());
        Ok(expressions)
    }

    /// The ids of constants, and those of the dataset.
    fn ids(
        &self,
        table: &[u8],
        cx: &Context,
    ) -> Result<(Vec<TermId>, Option<ActiveDataset>), ExecError> {
        let shape = Shape {
            width: 1,
            counted: false,
            origin: None,
        };
        let mut table = super::table_of(table, shape, cx)?;
        let mut ids = table.take(Var(0)).unwrap_or_default();
        for (place, raw) in &self.windows {
            let id = TermId::from_raw(*raw);
            match ids.get_mut(*place as usize) {
                Some(known) if id.kind() == TermKind::Window => *known = id,
                _ => return Err(not_the_ids().into()),
            }
        }
        let mut rest = ids.into_iter();
        let mut next = |count: u32| {
            let taken: Vec<TermId> = rest.by_ref().take(count as usize).collect();
            match taken.len() == count as usize {
                true => Ok(taken),
                false => Err(not_the_ids()),
            }
        };
        let constants = next(self.constants)?;
        let dataset = match &self.dataset {
            None => None,
            Some(head) => Some(ActiveDataset {
                default: sorted(next(head.default)?),
                default_is_all: head.default_is_all,
                named: sorted(next(head.named)?),
                within: sorted(next(head.within)?),
            }),
        };
        match rest.next() {
            None => Ok((constants, dataset)),
            Some(_) => Err(not_the_ids().into()),
        }
    }
}

/// Terms that a query computed have other ids at each node.
fn sorted(mut ids: Vec<TermId>) -> Vec<TermId> {
    ids.sort_unstable();
    ids
}

fn not_the_ids() -> SubQueryWireError {
    SubQueryWireError::Mismatch {
        what: "a list of ids that are not those of its query",
    }
}
