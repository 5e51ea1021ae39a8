//! What do etcd's answers say?
//!
//! The gateway writes gRPC's messages as JSON: bytes in base64, numbers of 64 bits as strings, and nothing for
//! what is zero or empty. Whatever comes is checked here, so that nothing beyond depends on the sender.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeOwned, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};

use crate::Cause;

/// A state of the whole store: each change makes the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Revision(pub u64);

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is kept under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// The revision that wrote them.
    pub revision: Revision,
    /// How many times the key was written since it was absent; 1 if once.
    pub version: u64,
}

/// Bytes for JSON.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The end, exclusive, of the range of keys that begin so; an empty prefix is all keys.
pub(crate) fn range_end(prefix: &[u8]) -> Vec<u8> {
    let kept = prefix.iter().rposition(|byte| *byte < u8::MAX);
    match kept {
        Some(last) => {
            let mut end = prefix[..=last].to_vec();
            end[last] += 1;
            end
        }
        // In etcd's words: to the end of all keys.
        None => vec![0],
    }
}

/// Where the range of keys with a prefix begins, which may not be the empty key.
pub(crate) fn range_start(prefix: &[u8]) -> &[u8] {
    match prefix {
        [] => &[0],
        prefix => prefix,
    }
}

/// Reads an answer.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Cause> {
    serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))
}

/// Reads the only message of an answer that is a stream.
pub(crate) fn parse_streamed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Cause> {
    parse::<Streamed<T>>(bytes)?.into_result()
}

pub(crate) fn malformed(reason: impl Into<String>) -> Cause {
    Cause::Malformed(reason.into())
}

/// What every answer begins with. One without is not etcd's: nothing would be read as an absent key.
#[derive(Debug, Deserialize)]
pub(crate) struct Header {
    #[serde(deserialize_with = "revision")]
    pub(crate) revision: Revision,
}

/// A key with its value, as it is written in answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Entry {
    #[serde(deserialize_with = "bytes")]
    pub(crate) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    mod_revision: u64,
    #[serde(deserialize_with = "number")]
    version: u64,
}

impl Entry {
    /// # Errors
    /// [`Cause::Malformed`] if it was never written.
    pub(crate) fn into_value(self) -> Result<(Vec<u8>, Value), Cause> {
        if self.mod_revision == 0 || self.version == 0 {
            return Err(malformed("a value that was never written"));
        }
        let value = Value {
            bytes: self.value,
            revision: Revision(self.mod_revision),
            version: self.version,
        };
        Ok((self.key, value))
    }

    pub(crate) fn revision(&self) -> Revision {
        Revision(self.mod_revision)
    }
}

/// The answer to a read.
#[derive(Debug, Deserialize)]
pub(crate) struct RangeAnswer {
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) kvs: Vec<Entry>,
    #[serde(default)]
    pub(crate) more: bool,
}

impl RangeAnswer {
    /// What is kept under the only key that was asked for.
    ///
    /// # Errors
    /// [`Cause::Malformed`] if it is about others.
    pub(crate) fn into_only(mut self, key: &[u8]) -> Result<Option<Value>, Cause> {
        let Some(entry) = self.kvs.pop() else {
            return Ok(None);
        };
        let (found, value) = entry.into_value()?;
        match found == key && self.kvs.is_empty() {
            true => Ok(Some(value)),
            false => Err(malformed("another key than was asked for")),
        }
    }
}

/// The answer to a comparison with what follows from it.
#[derive(Debug, Deserialize)]
pub(crate) struct TxnAnswer {
    pub(crate) header: Header,
    #[serde(default)]
    pub(crate) succeeded: bool,
    #[serde(default)]
    responses: Vec<TxnResponse>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TxnResponse {
    response_range: Option<RangeAnswer>,
}

impl TxnAnswer {
    /// What the key had, where the comparison did not hold.
    ///
    /// # Errors
    /// [`Cause::Malformed`] if it does not say.
    pub(crate) fn into_found(mut self, key: &[u8]) -> Result<Option<Value>, Cause> {
        let range = self.responses.pop().and_then(|one| one.response_range);
        match range {
            Some(range) if self.responses.is_empty() => range.into_only(key),
            _ => Err(malformed(
                "a lost comparison that does not say what was found",
            )),
        }
    }
}

/// The answer of a member on itself.
#[derive(Debug, Deserialize)]
pub(crate) struct StatusAnswer {
    pub(crate) header: Header,
    pub(crate) version: String,
    #[serde(default, rename = "dbSize", deserialize_with = "number")]
    pub(crate) database_bytes: u64,
}

/// The answer to name and password.
#[derive(Debug, Deserialize)]
pub(crate) struct TokenAnswer {
    pub(crate) token: String,
}

/// Why a request was refused.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The status code of gRPC.
    pub(crate) code: u32,
    pub(crate) message: String,
}

impl Refusal {
    /// Reads the body of an answer that is no success; `None` if it is not etcd's.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<WireRefusal>(bytes).ok()?.read()
    }
}

/// Versions write it differently: 3.4 has the message under `error`, too, and its streams have `grpc_code`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct WireRefusal {
    code: Option<u32>,
    grpc_code: Option<u32>,
    message: Option<String>,
}

impl WireRefusal {
    fn read(self) -> Option<Refusal> {
        Some(Refusal {
            code: self.code.or(self.grpc_code)?,
            message: self.message?,
        })
    }
}

/// A message of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Streamed<T> {
    result: Option<T>,
    error: Option<WireRefusal>,
}

impl<T> Streamed<T> {
    /// # Errors
    /// [`Cause::Unavailable`] with what the stream ends with; [`Cause::Malformed`].
    pub(crate) fn into_result(self) -> Result<T, Cause> {
        match (self.result, self.error) {
            (Some(result), None) => Ok(result),
            (None, Some(error)) => {
                let Refusal { code, message } = error
                    .read()
                    .ok_or_else(|| malformed("an error without a message"))?;
                Err(Cause::Unavailable { code, message })
            }
            _ => Err(malformed("a message with neither result nor error")),
        }
    }
}

/// What a watch says.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WatchMessage {
    pub(crate) created: bool,
    pub(crate) canceled: bool,
    #[serde(deserialize_with = "number")]
    pub(crate) compact_revision: u64,
    pub(crate) cancel_reason: String,
    /// The next message goes on with it.
    pub(crate) fragment: bool,
    pub(crate) events: Vec<WatchEvent>,
}

/// A change.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct WatchEvent {
    #[serde(rename = "type")]
    pub(crate) kind: Kind,
    pub(crate) kv: Entry,
}

/// Whether a key was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Kind {
    #[default]
    #[serde(rename = "PUT")]
    Put,
    #[serde(rename = "DELETE")]
    Delete,
}

/// A number of up to 63 bits, as a string or not.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    struct Number;
    impl Visitor<'_> for Number {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number of up to 63 bits")
        }

        fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<u64, E> {
            match i64::try_from(value) {
                Ok(_) => Ok(value),
                Err(_) => Err(E::invalid_value(Unexpected::Unsigned(value), &self)),
            }
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<u64, E> {
            match text.parse() {
                Ok(value) => self.visit_u64(value),
                Err(_) => Err(E::invalid_value(Unexpected::Str(text), &self)),
            }
        }
    }
    deserializer.deserialize_any(Number)
}

/// That of a store, which begins with 1.
fn revision<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Revision, D::Error> {
    match number(deserializer)? {
        0 => Err(serde::de::Error::custom("no revision")),
        revision => Ok(Revision(revision)),
    }
}

fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("bytes in base64")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<u8>, E> {
            STANDARD.decode(text).map_err(E::custom)
        }
    }
    deserializer.deserialize_str(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As etcd 3.4, 3.5 and 3.6 write them.
    const ANSWERS: [&str; 12] = [
        r#"{"header":{"cluster_id":"324952591200643719","revision":"2"},"kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"2","version":"1","value":"YmFy"}],"count":"1"}"#,
        r#"{"header":{"revision":"3"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"3"}}}]}"#,
        r#"{"header":{"revision":"3"},"responses":[{"response_range":{"header":{"revision":"3"},"kvs":[{"key":"Zm9v","mod_revision":"3","version":"2","value":"YmF6"}],"count":"1"}}]}"#,
        r#"{"result":{"header":{"revision":"4"},"created":true}}"#,
        r#"{"result":{"header":{"revision":"4"},"events":[{"kv":{"key":"Zm9v","mod_revision":"2","version":"1","value":"YmFy"}},{"type":"DELETE","kv":{"key":"Zm9v","mod_revision":"4"}}]}}"#,
        r#"{"result":{"header":{},"canceled":true,"compact_revision":"3"}}"#,
        r#"{"header":{"revision":"4"},"ID":"2324035643315326733","TTL":"5"}"#,
        r#"{"result":{"header":{"revision":"4"},"ID":"123"}}"#,
        r#"{"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5}"#,
        r#"{"error":{"grpc_code":14,"http_code":503,"message":"etcdserver: no leader","http_status":"Service Unavailable"}}"#,
        r#"{"code":3,"message":"etcdserver: user name is empty","details":[]}"#,
        r#"{"header":{"revision":"1"},"version":"3.4.23","dbSize":"20480","leader":"3319814642761637952","raftIndex":"5"}"#,
    ];

    /// Reads bytes as every answer there is.
    fn read_as_anything(bytes: &[u8]) {
        if let Ok(range) = parse::<RangeAnswer>(bytes) {
            let _ = range.into_only(b"foo");
        }
        if let Ok(answer) = parse::<TxnAnswer>(bytes) {
            let _ = answer.into_found(b"foo");
        }
        if let Ok(watch) = parse_streamed::<WatchMessage>(bytes) {
            for event in watch.events {
                let _ = event.kv.into_value();
            }
        }
        let _ = parse::<StatusAnswer>(bytes);
        let _ = parse::<TokenAnswer>(bytes);
        let _ = Refusal::read(bytes);
    }

    #[test]
    fn a_value_is_read() {
        let range: RangeAnswer = parse(ANSWERS[0].as_bytes()).unwrap();
        assert_eq!(range.header.revision, Revision(2));
        let value = range.into_only(b"foo").unwrap().unwrap();
        let expected = Value {
            bytes: b"bar".to_vec(),
            revision: Revision(2),
            version: 1,
        };
        assert_eq!(value, expected);
        let other: RangeAnswer = parse(ANSWERS[0].as_bytes()).unwrap();
        assert!(other.into_only(b"other").is_err());
    }

    #[test]
    fn what_a_lost_comparison_found_is_read() {
        let lost: TxnAnswer = parse(ANSWERS[2].as_bytes()).unwrap();
        assert!(!lost.succeeded);
        assert_eq!(lost.into_found(b"foo").unwrap().unwrap().bytes, b"baz");
        let silent: TxnAnswer = parse(br#"{"header":{"revision":"3"}}"#).unwrap();
        assert!(silent.into_found(b"foo").is_err());
        for wrong in [
            "{}",
            "[]",
            r#"{"header":{}}"#,
            r#"{"header":{"revision":"0"}}"#,
        ] {
            assert!(parse::<TxnAnswer>(wrong.as_bytes()).is_err(), "{wrong}");
            assert!(parse::<RangeAnswer>(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn refusals_of_all_versions_are_read() {
        let code = |text: &str| Refusal::read(text.as_bytes()).map(|refusal| refusal.code);
        assert_eq!(code(ANSWERS[8]), Some(5));
        assert_eq!(code(ANSWERS[10]), Some(3));
        assert_eq!(code("<html>not found</html>"), None);
        assert_eq!(code("{}"), None);
        let streamed = parse_streamed::<WatchMessage>(ANSWERS[9].as_bytes());
        assert!(matches!(
            streamed,
            Err(Cause::Unavailable { code: 14, message }) if message == "etcdserver: no leader"
        ));
    }

    #[test]
    fn numbers_are_numbers_or_strings_of_63_bits() {
        let revision = |text: &str| {
            let header = format!(r#"{{"revision":{text}}}"#);
            parse::<Header>(header.as_bytes())
                .ok()
                .map(|header| header.revision.0)
        };
        assert_eq!(revision("\"9223372036854775807\""), Some(i64::MAX as u64));
        assert_eq!(revision("7"), Some(7));
        for wrong in [
            "\"9223372036854775808\"",
            "-1",
            "\"-1\"",
            "\"\"",
            "1.5",
            "null",
            "[]",
        ] {
            assert_eq!(revision(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_range_is_all_keys_with_the_prefix() {
        for (prefix, end) in [
            (&b"a"[..], &b"b"[..]),
            (b"a/", b"a0"),
            (b"a\xff", b"b"),
            (b"\xff\xff", b"\0"),
            (b"", b"\0"),
        ] {
            assert_eq!(range_end(prefix), end, "{prefix:?}");
        }
        assert_eq!(range_start(b""), b"\0");
        assert_eq!(range_start(b"a"), b"a");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            read_as_anything(&bytes);
        }

        #[test]
        fn no_mutated_answer_panics(
            answer in 0..ANSWERS.len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 0..6),
        ) {
            let mut bytes = ANSWERS[answer].as_bytes().to_vec();
            for (place, byte, change) in changes {
                let place = place.index(bytes.len().max(1));
                match change {
                    0 if place < bytes.len() => bytes[place] = byte,
                    1 if place < bytes.len() => drop(bytes.remove(place)),
                    _ => bytes.insert(place.min(bytes.len()), byte),
                }
            }
            read_as_anything(&bytes);
        }

        #[test]
        fn keys_are_in_the_range_of_their_prefix(prefix: Vec<u8>, rest: Vec<u8>, other: Vec<u8>) {
            let (start, end) = (range_start(&prefix), range_end(&prefix));
            let is_in = |key: &[u8]| key >= start && (end == [0] || key < &end[..]);
            let mut key = prefix.clone();
            key.extend(rest);
            prop_assert!(key.is_empty() || is_in(&key));
            prop_assert_eq!(is_in(&other), !other.is_empty() && other.starts_with(&prefix));
        }
    }
}
