//! What do nodes say to each other about sub-queries, in bytes?
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `JNDFORKS` |
//! | 4 | version, little-endian |
//! | | a [`Message`], in the format of `postcard` |
//! | | with rows: a table as [`Table::encode`] writes it |
//! | | with a sub-query: what it has of its query ([`query`]), steps, and a table |
//!
//! Nothing that a message says is taken for granted: see [`query`], [`jindou_plan::decode_steps`] and
//! [`Table::decode`] for what is in it.

mod error;
mod failure;
pub(super) mod query;

use serde::{Deserialize, Serialize};

pub use error::SubQueryWireError;
pub(super) use failure::Failure;

use super::Forked;
use super::chain::Shape;
use super::messages::{ChainId, MessageLimits, QueryId, SubQueryId};
use crate::ExecError;
use crate::class::QueryClass;
use crate::context::{Context, SharedContext};
use crate::table::Table;

/// What a message begins with.
const MAGIC: [u8; 8] = *b"JNDFORKS";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 5;
/// Bytes before the message itself.
const HEADER_BYTES: usize = 12;

/// A message. Each but the first goes to the node of a chain's reader, or comes from there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Message {
    /// Rows that go on here.
    SubQuery(SubQueryHead),
    /// Rows that a sub-query found.
    Rows { chain: ChainId },
    /// Why a sub-query found no more.
    Failed { chain: ChainId, failure: Failure },
    /// A sub-query has ended, after it had others set out.
    Ended {
        chain: ChainId,
        id: SubQueryId,
        had: Vec<SubQueryId>,
        work: Work,
    },
    /// The reader has taken so many tables, and so many sub-queries have ended that set out here.
    Credit {
        chain: ChainId,
        tables: u32,
        ended: u32,
    },
    /// Nobody reads the replies to the chain any more.
    Closed { chain: ChainId },
    /// The query has ended.
    Cancelled { query: QueryId },
}

/// What a sub-query is, beside what follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SubQueryHead {
    pub(super) query: QueryId,
    pub(super) chain: ChainId,
    pub(super) id: SubQueryId,
    /// Of its query, when it set out.
    pub(super) class: QueryClass,
    /// The snapshot of the graph that its query asks.
    pub(super) snapshot: u64,
    /// What its query has left, if its time is limited.
    pub(super) nanoseconds_left: Option<u64>,
    /// The first of its steps scans what the node has of an index vertex.
    pub(super) own_scan: bool,
    /// The last one may give rows once each, with their numbers.
    pub(super) counted: bool,
    /// Columns of its tables.
    pub(super) width: u32,
    /// The one that says which row each belongs to, of those that stayed where the chain was forked.
    pub(super) origin: Option<u16>,
    /// The first column that the steps may use for themselves.
    pub(super) hidden: u16,
    /// The variables wanted behind all steps, as bits.
    pub(super) needed: Vec<u64>,
    /// Rows expected before the first step.
    pub(super) rows_before: f64,
    /// Bytes of what it has of its query, and of its steps; those of the table are the rest.
    pub(super) query_bytes: u64,
    pub(super) step_bytes: u64,
}

/// What was done at a node for a query, since it was last told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    sub_queries: u64,
    rows: u64,
    bytes: u64,
    spilled_bytes: u64,
    /// Rows and nanoseconds by the number of a step or operator, if the query is profiled.
    measured: Vec<(u32, u64, u64)>,
}

impl Work {
    pub(super) fn take_from(query: &SharedContext) -> Self {
        let forked = query.fork_counts.take();
        Self {
            sub_queries: forked.sub_queries,
            rows: forked.rows,
            bytes: forked.bytes,
            spilled_bytes: query.take_spilled(),
            measured: query
                .profile
                .as_ref()
                .map_or_else(Vec::new, |all| all.take()),
        }
    }

    pub(super) fn add_to(&self, query: &SharedContext) {
        query.fork_counts.add(Forked {
            sub_queries: self.sub_queries,
            rows: self.rows,
            bytes: self.bytes,
        });
        query.note_spilled(self.spilled_bytes);
        if let Some(profile) = &query.profile {
            for (id, rows, nanoseconds) in &self.measured {
                profile.add(*id, *rows, *nanoseconds);
            }
        }
    }
}

impl Message {
    /// What is sent instead of a message that cannot be, to who waits for it.
    pub(super) fn failed_instead(&self, error: SubQueryWireError) -> Option<Vec<u8>> {
        let (Self::Rows { chain } | Self::Ended { chain, .. } | Self::Failed { chain, .. }) = self
        else {
            return None;
        };
        let failed = Self::Failed {
            chain: *chain,
            failure: Failure::of(error.into()).shortened(),
        };
        let whole = MessageLimits {
            message_bytes: usize::MAX,
            ..MessageLimits::default()
        };
        write(&failed, &[], &whole).ok()
    }
}

/// A message as bytes, and what follows it.
///
/// # Errors
/// [`SubQueryWireError::TooLarge`].
pub(super) fn write(
    message: &Message,
    parts: &[&[u8]],
    limits: &MessageLimits,
) -> Result<Vec<u8>, SubQueryWireError> {
    let head = postcard::to_allocvec(message).expect("writing to memory never fails");
    let parts_bytes: usize = parts.iter().map(|part| part.len()).sum();
    let bytes = HEADER_BYTES + head.len() + parts_bytes;
    check_size(bytes, limits)?;
    let mut all = Vec::with_capacity(bytes);
    all.extend_from_slice(&MAGIC);
    all.extend_from_slice(&VERSION.to_le_bytes());
    debug_assert_eq!(all.len(), HEADER_BYTES);
    all.extend_from_slice(&head);
    parts.iter().for_each(|part| all.extend_from_slice(part));
    Ok(all)
}

fn check_size(bytes: usize, limits: &MessageLimits) -> Result<(), SubQueryWireError> {
    let most = limits.message_bytes;
    match bytes <= most {
        true => Ok(()),
        false => Err(SubQueryWireError::TooLarge { bytes, most }),
    }
}

/// The message that bytes begin with, and what follows it.
///
/// # Errors
/// What is wrong with them.
pub(super) fn read<'b>(
    bytes: &'b [u8],
    limits: &MessageLimits,
) -> Result<(Message, &'b [u8]), SubQueryWireError> {
    check_size(bytes.len(), limits)?;
    read_any(bytes)
}

fn read_any(bytes: &[u8]) -> Result<(Message, &[u8]), SubQueryWireError> {
    let truncated = || SubQueryWireError::Truncated {
        part: "the header",
        end: bytes.len(),
    };
    let (magic, rest) = bytes.split_first_chunk().ok_or_else(truncated)?;
    if *magic != MAGIC {
        return Err(SubQueryWireError::NoMessage { found: *magic });
    }
    let (version, rest) = rest.split_first_chunk().ok_or_else(truncated)?;
    let found = u32::from_le_bytes(*version);
    if found != VERSION {
        let known = VERSION;
        return Err(SubQueryWireError::Version { found, known });
    }
    taken("the message", rest)
}

/// What bytes begin with, in the format of `postcard`, and what follows it.
fn taken<'b, T: Deserialize<'b>>(
    part: &'static str,
    bytes: &'b [u8],
) -> Result<(T, &'b [u8]), SubQueryWireError> {
    postcard::take_from_bytes(bytes).map_err(|error| match error {
        postcard::Error::DeserializeUnexpectedEnd => SubQueryWireError::Truncated {
            part,
            end: bytes.len(),
        },
        error => SubQueryWireError::Malformed {
            part,
            reason: error.to_string(),
        },
    })
}

/// # Errors
/// [`SubQueryWireError::TooLong`] if something follows.
pub(super) fn nothing_more(rest: &[u8]) -> Result<(), SubQueryWireError> {
    match rest.len() {
        0 => Ok(()),
        bytes => Err(SubQueryWireError::TooLong { bytes }),
    }
}

/// So many of the bytes, and the others.
pub(super) fn split<'b>(
    part: &'static str,
    bytes: &'b [u8],
    count: u64,
) -> Result<(&'b [u8], &'b [u8]), SubQueryWireError> {
    let split = usize::try_from(count).ok();
    let split = split.and_then(|count| bytes.split_at_checked(count));
    let end = bytes.len();
    split.ok_or(SubQueryWireError::Truncated { part, end })
}

/// The table of a message with rows, which was looked at when it came.
///
/// # Errors
/// What is wrong with the table, and what ends the query if it has no memory for it.
pub(super) fn rows_of_reply(
    message: &[u8],
    shape: Shape,
    cx: &Context,
) -> Result<Table, ExecError> {
    let (_, table) = read_any(message)?;
    table_of(table, shape, cx)
}

/// A table of a chain.
///
/// # Errors
/// As [`rows_of_reply`].
pub(super) fn table_of(bytes: &[u8], shape: Shape, cx: &Context) -> Result<Table, ExecError> {
    let table = Table::decode(bytes, cx.terms(), cx)?;
    let what = if table.width() != shape.width {
        "of another width than its chain"
    } else if !table.is_of_terms_and(shape.origin) {
        "with a variable that has no terms, or rows that belong to none"
    } else if table.has_counts() && !shape.counted {
        "of rows that stand for several"
    } else {
        return Ok(table);
    };
    Err(SubQueryWireError::Mismatch { what }.into())
}

#[cfg(test)]
mod tests;
