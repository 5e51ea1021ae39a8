//! What is kept under a key, and how is it changed if nobody else changed it?

use serde_json::{Value as Json, json};

use crate::transport::{Resend, Transport};
use crate::watch::{Event, Watch};
use crate::wire::{
    Entry, RangeAnswer, Revision, StatusAnswer, TxnAnswer, Value, encode, malformed, parse,
    range_end, range_start,
};
use crate::{Cause, Error, MOST_ANSWER_BYTES, Options};

/// Keys of an answer; fewer where their values are large.
const PAGE_KEYS: usize = 256;
/// The most bytes of keys and values that [`Client::get_all`] holds.
const MOST_LISTED_BYTES: usize = 4 * MOST_ANSWER_BYTES;
/// How often a list is begun anew because its revision was compacted meanwhile.
const MOST_LISTINGS: usize = 5;
/// How etcd says that.
const COMPACTED: &str = "has been compacted";

/// A client of etcd. It may be used by many threads at once, and clones share its connections.
///
/// Each call asks one endpoint after the other until one answers, beginning with the one that answered last.
/// Each may take [`Options::timeout`], and as long again where it has to be said who asks. A change that may
/// have been handled is not sent again.
#[derive(Clone)]
pub struct Client {
    transport: Transport,
}

/// What has to hold for a change to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There is no such key.
    Absent,
    /// The key was last written by this revision.
    Revision(Revision),
}

/// What came of a change that was to be made if something holds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Swap {
    /// It was made, by this revision.
    Won(Revision),
    /// It was not made, as this was there instead.
    Lost(Option<Value>),
}

/// Keys with what is kept under them, all of one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// By key.
    pub entries: Vec<(Vec<u8>, Value)>,
    /// The revision of the store; changes after it come by [`Client::watch`].
    pub revision: Revision,
}

/// A member of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Of the program, such as `3.4.23`.
    pub version: String,
    /// Of the store, as this member knows it.
    pub revision: Revision,
    /// The size of its file.
    pub database_bytes: u64,
}

impl Client {
    /// A client that connects when it is first asked something. Reads the files of certificates.
    ///
    /// # Errors
    /// [`Error::File`] and [`Error::Pem`]; [`Error::Endpoints`] if there are files of certificates and an
    /// endpoint begins with `http://`.
    pub fn new(options: Options) -> Result<Self, Error> {
        let transport = Transport::new(options)?;
        Ok(Self { transport })
    }

    /// The member that is asked at present.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Refused`].
    pub fn status(&self) -> Result<Status, Error> {
        let path = "/v3/maintenance/status";
        self.transport
            .ask(Resend::Always, path, &json!({}), |bytes| {
                let answer: StatusAnswer = parse(bytes)?;
                Ok(Status {
                    version: answer.version,
                    revision: answer.header.revision,
                    database_bytes: answer.database_bytes,
                })
            })
    }

    /// What is kept under a key. Every change that was acknowledged before is seen (the read is linearizable),
    /// which takes a round of messages between the members of etcd.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Refused`], [`Error::TooLarge`].
    pub fn get(&self, key: &[u8]) -> Result<Option<Value>, Error> {
        let request = json!({ "key": encode(key) });
        self.transport
            .ask(Resend::Always, "/v3/kv/range", &request, |bytes| {
                parse::<RangeAnswer>(bytes)?.into_only(key)
            })
    }

    /// All keys that begin so, of one revision, read in pages; all there are for an empty prefix.
    ///
    /// # Errors
    /// Those of [`Client::get`]; [`Error::TooLarge`] where keys and values have more than 64 MiB in all.
    pub fn get_all(&self, prefix: &[u8]) -> Result<Listing, Error> {
        let mut left = MOST_LISTINGS;
        loop {
            left -= 1;
            match self.list(prefix) {
                Err(Error::Refused { message, .. }) if left > 0 && message.contains(COMPACTED) => {}
                listed => return listed,
            }
        }
    }

    fn list(&self, prefix: &[u8]) -> Result<Listing, Error> {
        let mut limit = PAGE_KEYS;
        let mut entries: Vec<(Vec<u8>, Value)> = Vec::new();
        let mut revision = None;
        let mut held_bytes = 0;
        loop {
            let last = entries.last().map(|(key, _)| &key[..]);
            let page = match self.page(prefix, last, revision, limit) {
                Err(Error::TooLarge { .. }) if limit > 1 => {
                    limit /= 2;
                    continue;
                }
                page => page?,
            };
            let sizes = page.entries.iter();
            held_bytes += sizes
                .map(|(key, value)| key.len() + value.bytes.len())
                .sum::<usize>();
            if held_bytes > MOST_LISTED_BYTES {
                let limit_bytes = MOST_LISTED_BYTES;
                return Err(Error::TooLarge { limit_bytes });
            }
            let revision = *revision.get_or_insert(page.revision);
            entries.extend(page.entries);
            if !page.is_followed {
                return Ok(Listing { entries, revision });
            }
        }
    }

    /// The keys after another one, as of a revision, or of the latest.
    fn page(
        &self,
        prefix: &[u8],
        after: Option<&[u8]>,
        revision: Option<Revision>,
        limit: usize,
    ) -> Result<Page, Error> {
        let from = match after {
            None => range_start(prefix).to_vec(),
            Some(last) => [last, &[0]].concat(),
        };
        let request = json!({
            "key": encode(&from),
            "range_end": encode(&range_end(prefix)),
            "limit": limit.to_string(),
            "revision": revision.unwrap_or_default().0.to_string(),
        });
        self.transport
            .ask(Resend::Always, "/v3/kv/range", &request, |bytes| {
                Page::read(bytes, prefix, &from)
            })
    }

    /// Writes a value if what is expected holds, which etcd decides and does in one step.
    ///
    /// # Errors
    /// [`Error::Unknown`] if it was sent and no answer came: whoever asks has to read what is there.
    /// [`Error::NoAnswer`], [`Error::Refused`] if nothing was changed.
    pub fn put_if(&self, key: &[u8], expected: Expected, value: &[u8]) -> Result<Swap, Error> {
        let put = json!({ "request_put": { "key": encode(key), "value": encode(value) } });
        self.swap(key, expected, &put)
    }

    /// Removes a key if what is expected holds. Where the key is absent and expected to be, nothing changes.
    ///
    /// # Errors
    /// Those of [`Client::put_if`].
    pub fn delete_if(&self, key: &[u8], expected: Expected) -> Result<Swap, Error> {
        let delete = json!({ "request_delete_range": { "key": encode(key) } });
        self.swap(key, expected, &delete)
    }

    fn swap(&self, key: &[u8], expected: Expected, change: &Json) -> Result<Swap, Error> {
        // What is absent was written by no revision.
        let written = match expected {
            Expected::Absent => Revision(0),
            Expected::Revision(revision) => revision,
        };
        let request = json!({
            "compare": [{
                "key": encode(key),
                "target": "MOD",
                "result": "EQUAL",
                "mod_revision": written.0.to_string(),
            }],
            "success": [change],
            "failure": [{ "request_range": { "key": encode(key) } }],
        });
        self.transport
            .ask(Resend::IfUnsent, "/v3/kv/txn", &request, |bytes| {
                let answer: TxnAnswer = parse(bytes)?;
                match answer.succeeded {
                    true => Ok(Swap::Won(answer.header.revision)),
                    false => answer.into_found(key).map(Swap::Lost),
                }
            })
    }

    /// Hears of all changes after a revision of keys that begin so, in their order, until what is returned is
    /// dropped. A thread of its own calls `on_event`, which may take its time, as etcd waits, and may not panic.
    ///
    /// Dropping waits for a call of `on_event` that is under way, but not for etcd, except for an address that
    /// is being looked up or connected to, for which that takes up to [`Options::timeout`].
    ///
    /// # Errors
    /// [`Error::Thread`]. Whatever else happens is an event.
    pub fn watch(
        &self,
        prefix: &[u8],
        after: Revision,
        on_event: impl FnMut(Event) + Send + 'static,
    ) -> Result<Watch, Error> {
        Watch::start(
            &self.transport,
            prefix,
            after,
            crate::watch::QUIET,
            on_event,
        )
    }
}

/// A part of a list.
struct Page {
    entries: Vec<(Vec<u8>, Value)>,
    revision: Revision,
    is_followed: bool,
}

impl Page {
    /// Reads the keys with a prefix from one on.
    fn read(bytes: &[u8], prefix: &[u8], from: &[u8]) -> Result<Self, Cause> {
        let answer: RangeAnswer = parse(bytes)?;
        let values = answer.kvs.into_iter().map(Entry::into_value);
        let entries: Vec<_> = values.collect::<Result<_, _>>()?;
        let keys = entries.iter().map(|(key, _)| &key[..]);
        let is_asked_for = |key: &[u8]| key.starts_with(prefix) && key >= from;
        if !keys.clone().all(is_asked_for) || !keys.is_sorted_by(|one, next| one < next) {
            return Err(malformed("keys that were not asked for, or out of order"));
        }
        // Otherwise the next page would be this one again.
        if answer.more && entries.is_empty() {
            return Err(malformed("an empty page that is followed by another"));
        }
        Ok(Self {
            entries,
            revision: answer.header.revision,
            is_followed: answer.more,
        })
    }
}

#[cfg(test)]
mod tests;
