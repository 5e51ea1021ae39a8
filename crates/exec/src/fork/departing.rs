//! A sub-query -> bytes, for another node.

use std::sync::Arc;

use super::messages::{ForkNode, SubQueryId};
use super::wire::{self, Message, SubQueryHead, query};
use super::{ForkedChain, SubQuery};
use crate::ExecError;

/// A sub-query as a message. `None` if that cannot be; then its reader knows why.
pub(super) fn encode(node: &Arc<ForkNode>, mut sub_query: SubQuery) -> Option<Vec<u8>> {
    let id = node.new_sub_query();
    match written(node, &sub_query, id) {
        Ok(message) => {
            sub_query.replies.leave(id);
            sub_query.has_left = true;
            Some(message)
        }
        Err(error) => {
            sub_query.replies.fail(error);
            sub_query.settled = true;
            None
        }
    }
}

fn written(
    node: &Arc<ForkNode>,
    sub_query: &SubQuery,
    id: SubQueryId,
) -> Result<Vec<u8>, ExecError> {
    let SubQuery {
        cx,
        rest,
        table,
        replies,
        ..
    } = sub_query;
    cx.check()?;
    let part = query::part(cx, || node.new_query())?;
    let steps = rest.chain.encoded(rest.from)?;
    let ForkedChain {
        needed,
        shape,
        hidden,
        ..
    } = &*rest.chain;
    let forks = cx.forks.as_ref();
    let forks = forks.expect("a query whose rows leave has nodes");
    let nanoseconds = cx.time_left().map(|left| left.as_nanos());
    let head = SubQueryHead {
        query: part.id,
        chain: Arc::clone(replies).chain(node, cx),
        id,
        class: cx.class(),
        snapshot: forks.snapshot().0,
        nanoseconds_left: nanoseconds.map(|left| u64::try_from(left).unwrap_or(u64::MAX)),
        own_scan: rest.own_scan,
        counted: shape.counted,
        width: u32::try_from(shape.width).expect("fewer than 2^32 columns"),
        origin: shape.origin.map(|var| var.0),
        hidden: *hidden,
        needed: needed.words().to_vec(),
        rows_before: rest.chain.rows_before(rest.from),
        query_bytes: part.bytes.len() as u64,
        step_bytes: steps.len() as u64,
    };
    let table = table.encode(cx.terms(), cx)?;
    let message = Message::SubQuery(head);
    let parts = [&*part.bytes, &*steps, table.bytes()];
    Ok(wire::write(&message, &parts, node.limits())?)
}
