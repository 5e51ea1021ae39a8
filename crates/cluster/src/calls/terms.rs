//! How are the terms asked for that another node has? Some at once, as a message.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use jindou_exec::{KeyKind, Keys};
use jindou_model::{ShardId, TermId, TermKind, Unavailable};

use super::connection::{Begun, Connection, NoAnswer};
use super::wire::CallError;
use super::words::{
    Answer, Call, MOST_KEY_BYTES, MOST_ROWS, Request, RequestNumber, ServedId, Strings,
};

/// Terms that are asked for together, at most.
pub(crate) const MOST_TERMS: usize = MOST_ROWS;
/// Bytes of keys that are looked up together, unless there is only one.
pub(crate) const MOST_BYTES: usize = MOST_KEY_BYTES;

/// The part of a dictionary that another node has, at one snapshot.
pub struct AskedTerms {
    served: ServedId,
    connection: Arc<Connection>,
    /// What is to be there for as long as this is used.
    _kept: Arc<dyn Any + Send + Sync>,
}

/// A question that is on its way; the shard is the one that is lost if the node is.
#[must_use = "its answer is kept for whoever waits for it"]
pub(crate) struct Asking {
    shard: ShardId,
    begun: Result<Begun, NoAnswer>,
}

impl AskedTerms {
    /// What the server at the other end of a connection has by this name. `kept` is not dropped before this.
    #[must_use]
    pub fn new(
        served: ServedId,
        connection: &Arc<Connection>,
        kept: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        Self {
            served,
            connection: Arc::clone(connection),
            _kept: kept,
        }
    }

    /// Asks for the keys of terms, the first one of which a shard has.
    pub(crate) fn ask_keys(&self, shard: ShardId, ids: &[TermId], most_bytes: usize) -> Asking {
        self.ask_keys_from(shard, ids, 0, most_bytes)
    }

    fn ask_keys_from(
        &self,
        shard: ShardId,
        ids: &[TermId],
        from_byte: u64,
        most_bytes: usize,
    ) -> Asking {
        let call = Call::Keys {
            ids: Cow::Borrowed(ids),
            from_byte,
            most_bytes: most_bytes.min(MOST_KEY_BYTES),
        };
        self.begin(shard, call)
    }

    /// Waits for the keys of the first of these terms, one at least, and appends them to `keys`; gives how many.
    pub(crate) fn keys(
        &self,
        asking: Asking,
        ids: &[TermId],
        keys: &mut Keys,
    ) -> Result<usize, Unavailable> {
        let shard = asking.shard;
        let (read, mut rest) = self.some_keys(asking, ids.len())?;
        if rest == 0 {
            for (id, key) in ids.iter().zip(read.iter()) {
                keys.push(key, KeyKind::of(*id));
            }
            return Ok(read.len());
        }
        let mut key = read.get(0).to_vec();
        while rest > 0 {
            let from = key.len() as u64;
            let asking = self.ask_keys_from(shard, &ids[..1], from, MOST_KEY_BYTES);
            let (more, left) = self.some_keys(asking, 1)?;
            key.extend_from_slice(more.get(0));
            if left >= rest {
                return Err(Unavailable::Never(shard));
            }
            rest = left;
        }
        keys.push(&key, KeyKind::of(ids[0]));
        Ok(1)
    }

    /// Keys, and how many bytes of the last one follow.
    fn some_keys(&self, asking: Asking, most: usize) -> Result<(Strings, u64), Unavailable> {
        self.finish(asking, |answer| match answer {
            Answer::Keys { keys, rest } => {
                let is_fitting = match rest {
                    0 => (1..=most).contains(&keys.len()),
                    _ => keys.len() == 1,
                };
                let part = "keys";
                let rows = most;
                let misfit = CallError::Rows { part, rows };
                is_fitting.then_some((keys, rest)).ok_or(misfit)
            }
            other => Err(other_call(&other)),
        })
    }

    /// Asks which ids the terms of these hashes may have, literals or not, of which a shard is asked for the first.
    pub(crate) fn ask_candidates(&self, shard: ShardId, asked: &[(u64, bool)]) -> Asking {
        let (hashes, are_literals) = asked.iter().copied().unzip();
        let call = Call::Candidates {
            hashes,
            are_literals,
        };
        self.begin(shard, call)
    }

    /// Waits for an answer about so many hashes. Gives the place of a hash with each id that its term may have, and how
    /// many hashes were looked at: the first ones, one at least.
    pub(crate) fn candidates(
        &self,
        asking: Asking,
        count: usize,
    ) -> Result<(Vec<(u32, TermId)>, usize), Unavailable> {
        self.finish(asking, |answer| match answer {
            Answer::Candidates { rows, ids, done } => {
                let is_fitting = (1..=count).contains(&done)
                    && rows.iter().all(|row| (*row as usize) < done)
                    && ids.iter().all(|id| is_stored(*id));
                let (part, rows_asked) = ("candidates", count);
                let misfit = CallError::Rows {
                    part,
                    rows: rows_asked,
                };
                let found = || (rows.into_iter().zip(ids).collect(), done);
                is_fitting.then(found).ok_or(misfit)
            }
            other => Err(other_call(&other)),
        })
    }

    fn begin(&self, shard: ShardId, call: Call<'_>) -> Asking {
        let request = Request {
            number: RequestNumber::default(),
            served: self.served,
            shards: Cow::Borrowed(&[]),
            call,
        };
        Asking {
            shard,
            begun: self.connection.begin(request.encode()),
        }
    }

    /// The answer, of which `pick` takes what fits the call.
    fn finish<T>(
        &self,
        asking: Asking,
        pick: impl FnOnce(Answer) -> Result<T, CallError>,
    ) -> Result<T, Unavailable> {
        let never = Unavailable::Never(asking.shard);
        let answer = asking.begun.and_then(|begun| self.connection.finish(begun));
        let answer = match answer {
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
}

fn is_stored(id: TermId) -> bool {
    matches!(id.kind(), TermKind::Vertex | TermKind::Literal)
}

fn other_call(answer: &Answer) -> CallError {
    let found = answer.kind();
    CallError::OtherCall { found }
}
