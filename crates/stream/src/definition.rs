//! What is a stream, as its owner describes it?

use std::collections::HashSet;
use std::io;

use oxrdf::NamedNode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::broker::SourceDefinition;
use crate::context::check_context;

/// The longest interval of a batch: a day.
const MOST_INTERVAL_MS: u32 = 24 * 60 * 60 * 1000;
/// The longest name.
const MOST_NAME_BYTES: usize = 200;
/// The longest definition, as JSON in bytes: thousands of predicates, or the context of a large vocabulary.
/// All definitions are in memory, in the log of streams, and in each answer that lists them.
pub const MOST_DEFINITION_BYTES: u64 = 1 << 20;
/// What names of streams and continuous queries are, in words.
pub const NAME_RULE: &str =
    "up to 200 letters, digits, \"_\" and \"-\", of which the first is a letter or \"_\"";

/// A stream. As JSON, what is not given is as [`StreamDefinition::new`] has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StreamDefinition {
    /// What queries call it, beside its name.
    pub iri: String,
    /// Where the time of a tuple comes from.
    #[serde(default)]
    pub time: TimeSource,
    /// How many milliseconds after later tuples one may come.
    #[serde(default)]
    pub lateness_ms: u64,
    /// Milliseconds of a batch.
    #[serde(default = "default_interval")]
    pub interval_ms: u32,
    /// Predicates of tuples that are kept only while a window may need them.
    #[serde(default)]
    pub timing: Option<Predicates>,
    /// Predicates of tuples that are absorbed into the stored graph, too.
    #[serde(default)]
    pub timeless: Option<Predicates>,
    /// The IRI of the graph that takes them; the default graph unless it is given.
    #[serde(default)]
    pub graph: Option<String>,
    /// Bytes that its windows may take.
    #[serde(default = "default_memory")]
    pub memory: u64,
    /// The JSON-LD context of plain JSON: without one, plain JSON is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<Value>,
    /// After so many milliseconds without a tuple, the stream goes on with the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How many milliseconds ahead of the clock a time may be that is not the clock's: one that is further
    /// ahead is refused, as all that comes after it would be late. `None` takes all.
    #[serde(default = "default_max_ahead")]
    pub max_ahead_ms: Option<u64>,
    /// Its tuples come back with the store, as do the results of queries that read it: what was
    /// acknowledged is logged before.
    #[serde(default)]
    pub durable: bool,
    /// Whose messages it takes, beside what is pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceDefinition>,
}

/// Where the time of a tuple comes from. As JSON: `"event"`, `"arrival"` or the IRI of a predicate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub enum TimeSource {
    /// It comes with the tuple.
    #[default]
    Event,
    /// It is when the tuple came.
    Arrival,
    /// It is the value that the predicate of this IRI has in the tuple's event.
    Predicate(String),
}

impl TryFrom<String> for TimeSource {
    type Error = DefinitionError;

    fn try_from(text: String) -> Result<Self, DefinitionError> {
        match &*text {
            "event" => Ok(Self::Event),
            "arrival" => Ok(Self::Arrival),
            _ if NamedNode::new(&*text).is_ok() => Ok(Self::Predicate(text)),
            _ => Err(DefinitionError::Time { time: text }),
        }
    }
}

impl From<TimeSource> for String {
    fn from(time: TimeSource) -> Self {
        match time {
            TimeSource::Event => "event".to_owned(),
            TimeSource::Arrival => "arrival".to_owned(),
            TimeSource::Predicate(iri) => iri,
        }
    }
}

/// Some predicates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "timing and timeless are lists of IRIs, or \"all\""
)]
pub enum Predicates {
    /// Those of these IRIs.
    Some(Vec<String>),
    /// All of them, written as `"all"`.
    All(All),
}

/// The word `all`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum All {
    /// It.
    All,
}

impl Predicates {
    /// All predicates.
    pub const ALL: Self = Self::All(All::All);

    /// Those of a list, for many lookups.
    fn set(&self) -> Option<HashSet<&str>> {
        match self {
            Self::All(_) => None,
            Self::Some(iris) => Some(iris.iter().map(String::as_str).collect()),
        }
    }
}

fn default_interval() -> u32 {
    100
}

/// An hour, as in Kafka (`message.timestamp.after.max.ms`): more than clocks differ.
fn default_max_ahead() -> Option<u64> {
    Some(60 * 60 * 1000)
}

fn default_memory() -> u64 {
    256 << 20
}

/// What is wrong with a definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// The name cannot be written in a query or an address.
    #[error("{name:?} is no name of a stream: {NAME_RULE}")]
    Name {
        /// The name.
        name: String,
    },
    /// What should be an IRI is none.
    #[error("{field}: {iri:?} is no absolute IRI")]
    Iri {
        /// Which field has it.
        field: &'static str,
        /// What it has.
        iri: String,
    },
    /// The time comes from nowhere that is known.
    #[error("time is `event` or `arrival` or the absolute IRI of a predicate, not {time:?}")]
    Time {
        /// What it says.
        time: String,
    },
    /// The context of plain JSON refers to what is elsewhere.
    #[error(
        "context: {reference:?} is elsewhere, and contexts are not fetched; write out what it says"
    )]
    RemoteContext {
        /// What it refers to.
        reference: String,
    },
    /// The context of plain JSON is none.
    #[error("context: a context is an object, or an array of objects")]
    NoContext,
    /// A stream with times of arrival goes on with the clock anyway.
    #[error(
        "idle_ms is for times of events: a stream with times of arrival goes on with the clock anyway"
    )]
    Idle,
    /// A batch takes no time, or more than a day.
    #[error("interval_ms is {interval_ms}, and must be from 1 to {MOST_INTERVAL_MS}")]
    Interval {
        /// What it is.
        interval_ms: u32,
    },
    /// A predicate is said to be both.
    #[error("{predicate:?} is in timing and in timeless")]
    Both {
        /// Its IRI, or `all`.
        predicate: String,
    },
    /// A graph is named, and no tuple goes to it.
    #[error("graph is given, but no tuple is timeless")]
    GraphOfNothing,
    /// What should be the address of a broker is none.
    #[error("{address:?} is no address of a broker: it is HOST:PORT")]
    BrokerAddress {
        /// What it is.
        address: String,
    },
    /// The protocol has no such topics.
    #[error("{topic:?} is no topic that the protocol has")]
    Topic {
        /// What it is.
        topic: String,
    },
    /// Messages are not delivered so often.
    #[error("qos is {qos}, and must be 0 or 1")]
    Qos {
        /// What it is.
        qos: u8,
    },
    /// A source reads no such page.
    #[error("{url:?} is no address of a page, http://HOST/... or https://HOST/...")]
    Page {
        /// What it is.
        url: String,
    },
    /// Pages are asked for again too often, or not at all.
    #[error("poll_ms is from 10 to 86400000, and not {poll_ms}")]
    Poll {
        /// What it is.
        poll_ms: u64,
    },
    /// It is longer than any may be.
    #[error(
        "the definition has {bytes} bytes as JSON, and one may have {MOST_DEFINITION_BYTES} at most"
    )]
    TooLong {
        /// How long it is.
        bytes: u64,
    },
    /// A broker does not keep a session by this.
    #[error("{client:?} is no name of a client")]
    Client {
        /// What it is.
        client: String,
    },
}

impl StreamDefinition {
    /// A stream of this IRI whose tuples come in order with their times, and are kept only while a
    /// window may need them, in batches of 100 ms and 256 MiB; up to an hour ahead of the clock.
    #[must_use]
    pub fn new(iri: impl Into<String>) -> Self {
        Self {
            iri: iri.into(),
            time: TimeSource::default(),
            lateness_ms: 0,
            interval_ms: default_interval(),
            timing: None,
            timeless: None,
            graph: None,
            memory: default_memory(),
            context: None,
            idle_ms: None,
            max_ahead_ms: default_max_ahead(),
            durable: false,
            source: None,
        }
    }

    /// Says what is wrong with it under a name, if something is.
    ///
    /// # Errors
    /// [`DefinitionError`].
    pub fn check(&self, name: &str) -> Result<(), DefinitionError> {
        check_name(name)?;
        let time = match &self.time {
            TimeSource::Predicate(iri) => Some(iri),
            TimeSource::Event | TimeSource::Arrival => None,
        };
        let iris = [
            ("iri", Some(&self.iri)),
            ("graph", self.graph.as_ref()),
            ("time", time),
        ];
        for (field, iri) in iris {
            check_iri(field, iri)?;
        }
        for (field, list) in [("timing", &self.timing), ("timeless", &self.timeless)] {
            if let Some(Predicates::Some(iris)) = list {
                iris.iter()
                    .try_for_each(|iri| check_iri(field, Some(iri)))?;
            }
        }
        if !(1..=MOST_INTERVAL_MS).contains(&self.interval_ms) {
            return Err(DefinitionError::Interval {
                interval_ms: self.interval_ms,
            });
        }
        if let (Some(timing), Some(timeless)) = (&self.timing, &self.timeless) {
            check_disjoint(timing, timeless)?;
        }
        if self.idle_ms.is_some() && self.time == TimeSource::Arrival {
            return Err(DefinitionError::Idle);
        }
        if let Some(context) = &self.context {
            check_context(context)?;
        }
        if let Some(source) = &self.source {
            source.check()?;
        }
        if self.graph.is_some() && !self.has_timeless() {
            return Err(DefinitionError::GraphOfNothing);
        }
        Ok(())
    }

    /// How long it is as JSON. Costs a pass over it.
    ///
    /// # Errors
    /// [`DefinitionError::TooLong`] if that is more than [`MOST_DEFINITION_BYTES`].
    pub fn json_bytes(&self) -> Result<u64, DefinitionError> {
        match json_bytes(self) {
            bytes if bytes <= MOST_DEFINITION_BYTES => Ok(bytes),
            bytes => Err(DefinitionError::TooLong { bytes }),
        }
    }

    /// True if some tuples are absorbed into the stored graph.
    #[must_use]
    pub fn has_timeless(&self) -> bool {
        match (&self.timing, &self.timeless) {
            (_, Some(Predicates::Some(iris))) => !iris.is_empty(),
            (_, Some(Predicates::All(_))) => true,
            (Some(Predicates::Some(_)), None) => true,
            (_, None) => false,
        }
    }

    /// Which predicates are timeless, for lookups. Costs a pass over the lists.
    #[must_use]
    pub fn timeless_predicates(&self) -> TimelessPredicates {
        let (listed, is_listed_timeless) = match (&self.timing, &self.timeless) {
            (_, Some(Predicates::Some(iris))) => (Some(iris), true),
            (Some(Predicates::Some(iris)), _) => (Some(iris), false),
            (Some(Predicates::All(_)), _) | (None, None) => (None, true),
            (None, Some(Predicates::All(_))) => (None, false),
        };
        TimelessPredicates {
            listed: listed.into_iter().flatten().cloned().collect(),
            is_listed_timeless,
        }
    }
}

/// The predicates whose tuples are absorbed into the stored graph. What one list of a definition does not
/// name is of the other kind; without lists all are timing.
#[derive(Clone, Debug)]
pub struct TimelessPredicates {
    listed: HashSet<String>,
    /// Whether it is the listed ones, or all others.
    is_listed_timeless: bool,
}

impl TimelessPredicates {
    /// True if tuples of a predicate are absorbed into the stored graph.
    #[must_use]
    pub fn has(&self, predicate: &str) -> bool {
        self.listed.contains(predicate) == self.is_listed_timeless
    }
}

/// Whether a stream or a continuous query may have this name: one that a query can write as a bare
/// word, and an address as it is.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_part = |part: char| part.is_ascii_alphanumeric() || matches!(part, '_' | '-');
    begins && name.len() <= MOST_NAME_BYTES && name.chars().all(is_part)
}

/// How many bytes something has as JSON, which is not kept meanwhile; 0 for what has no such form.
#[must_use]
pub fn json_bytes(value: &impl Serialize) -> u64 {
    /// Takes all and keeps nothing.
    struct Counter(u64);

    impl io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => 0,
    }
}

fn check_name(name: &str) -> Result<(), DefinitionError> {
    match is_name(name) {
        true => Ok(()),
        false => Err(DefinitionError::Name {
            name: name.chars().take(MOST_NAME_BYTES).collect(),
        }),
    }
}

fn check_iri(field: &'static str, iri: Option<&String>) -> Result<(), DefinitionError> {
    match iri.filter(|iri| NamedNode::new(iri.as_str()).is_err()) {
        None => Ok(()),
        Some(iri) => Err(DefinitionError::Iri {
            field,
            iri: iri.clone(),
        }),
    }
}

fn check_disjoint(timing: &Predicates, timeless: &Predicates) -> Result<(), DefinitionError> {
    let both = match (timing.set(), timeless.set()) {
        (None, None) => Some("all".to_owned()),
        (Some(timing), Some(timeless)) => timing
            .intersection(&timeless)
            .min()
            .map(|iri| (*iri).to_owned()),
        // The list is an exception to the rest.
        _ => None,
    };
    match both {
        None => Ok(()),
        Some(predicate) => Err(DefinitionError::Both { predicate }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some(iris: &[&str]) -> Option<Predicates> {
        Some(Predicates::Some(
            iris.iter().map(|iri| (*iri).to_owned()).collect(),
        ))
    }

    #[test]
    fn what_no_list_names_is_of_the_other_kind() {
        let all = Some(Predicates::ALL);
        let cases = [
            (None, None, false, false),
            (all.clone(), None, false, false),
            (None, all.clone(), true, true),
            (some(&["http://e/a"]), None, false, true),
            (None, some(&["http://e/a"]), true, false),
            (some(&["http://e/a"]), all.clone(), false, true),
            (all, some(&["http://e/a"]), true, false),
            (some(&["http://e/a"]), some(&["http://e/b"]), false, false),
        ];
        for (timing, timeless, a, c) in cases {
            let mut stream = StreamDefinition::new("http://e/s");
            (stream.timing, stream.timeless) = (timing, timeless);
            let predicates = stream.timeless_predicates();
            let of = ["http://e/a", "http://e/c"].map(|iri| predicates.has(iri));
            assert_eq!(of, [a, c], "{stream:?}");
            assert!(stream.check("s").is_ok());
        }
    }

    #[test]
    fn long_lists_are_checked_and_searched_in_time_with_their_length() {
        const LENGTH: usize = 200_000;
        let named = |kind: &str| {
            let iris = (0..LENGTH).map(|number| format!("http://e/{kind}{number}"));
            Some(Predicates::Some(iris.collect()))
        };
        let mut stream = StreamDefinition::new("http://e/s");
        (stream.timing, stream.timeless) = (named("timing"), named("timeless"));
        assert_eq!(stream.check("s"), Ok(()));
        let predicates = stream.timeless_predicates();
        for number in 0..LENGTH {
            assert!(predicates.has(&format!("http://e/timeless{number}")));
            assert!(!predicates.has(&format!("http://e/timing{number}")));
        }
        let Some(Predicates::Some(timing)) = &mut stream.timing else {
            panic!("it is a list");
        };
        timing.push(format!("http://e/timeless{}", LENGTH - 1));
        assert!(matches!(
            stream.check("s"),
            Err(DefinitionError::Both { .. })
        ));
    }

    #[test]
    fn a_definition_may_be_so_long_and_no_longer() {
        let mut stream = StreamDefinition::new("http://e/");
        let without = serde_json::to_vec(&stream).unwrap().len() as u64;
        assert_eq!(stream.json_bytes(), Ok(without));
        // A character that JSON writes with two.
        let padding = usize::try_from(MOST_DEFINITION_BYTES - without - 2).unwrap();
        stream.iri = format!("http://e/{}\"", "x".repeat(padding));
        assert_eq!(stream.json_bytes(), Ok(MOST_DEFINITION_BYTES));
        stream.iri.push('x');
        let bytes = MOST_DEFINITION_BYTES + 1;
        let error = stream.json_bytes().unwrap_err();
        assert_eq!(error, DefinitionError::TooLong { bytes });
        assert!(error.to_string().contains("1048577 bytes"), "{error}");
        assert!(error.to_string().contains("1048576"), "{error}");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let stream = StreamDefinition::new("http://e/s");
        for name in ["", "1a", "a b", "a/b", "é"] {
            assert!(
                matches!(stream.check(name), Err(DefinitionError::Name { .. })),
                "{name}"
            );
        }
        assert!(stream.check("_a-1").is_ok());
        let changed = |change: &dyn Fn(&mut StreamDefinition)| {
            let mut stream = stream.clone();
            change(&mut stream);
            stream.check("s").unwrap_err()
        };
        let iri = |field, iri: &str| DefinitionError::Iri {
            field,
            iri: iri.to_owned(),
        };
        assert_eq!(changed(&|s| s.iri = "s".to_owned()), iri("iri", "s"));
        assert_eq!(changed(&|s| s.timing = some(&["x"])), iri("timing", "x"));
        assert_eq!(
            changed(&|s| s.interval_ms = 0),
            DefinitionError::Interval { interval_ms: 0 }
        );
        assert_eq!(
            changed(&|s| s.graph = Some("http://e/g".to_owned())),
            DefinitionError::GraphOfNothing
        );
        let both = changed(&|s| {
            s.timing = some(&["http://e/a"]);
            s.timeless = some(&["http://e/b", "http://e/a"]);
        });
        let predicate = "http://e/a".to_owned();
        assert_eq!(both, DefinitionError::Both { predicate });
    }
}
