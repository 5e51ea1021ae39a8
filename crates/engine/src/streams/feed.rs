//! How does the source of a stream hand messages over, many at a time and each once?
//!
//! Messages that came together are one push: all that can be read become part of the stream together, with
//! the number of the last one, so that a durable stream waits for its device once for all of them. One that
//! cannot be read is given back with the reason; the number counts it, so that it is not sent again.

use std::borrow::Cow;
use std::sync::Arc;

use jindou_stream::{SourceDefinition, StreamDefinition, TimeSource};

use super::formats::TupleFormat;
use super::input::{Producer, PushReport, Pushed, check_time};
use super::records::Record;
use super::stream::Stream;
use super::tuples::Tuples;
use crate::policy::address;
use crate::{Database, EngineError};

/// The longest notes of a source: they are in memory, and in each state of the log.
pub const MOST_NOTES_BYTES: usize = 64 << 20;

/// A stream whose definition names a source, for whoever reads that.
#[derive(Clone)]
pub struct StreamFeed {
    database: Database,
    stream: Arc<Stream>,
}

/// A message of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedMessage {
    /// The time of its events, where the format has none and the stream has times of events.
    pub time_ms: Option<i64>,
    /// Its events.
    pub text: Vec<u8>,
}

/// What became of some messages.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct FeedReport {
    /// Of all that could be read.
    pub pushed: PushReport,
    /// Those that could not be, by their place among all, and why.
    pub refused: Vec<(usize, EngineError)>,
}

impl Database {
    /// All streams that have a source.
    #[must_use]
    pub fn feeds(&self) -> Vec<StreamFeed> {
        let names = self.inner().streams.names.read();
        let streams = names.streams.values();
        let fed = streams.filter(|stream| stream.definition.source.is_some());
        let feed = |stream: &Arc<Stream>| StreamFeed {
            database: self.clone(),
            stream: Arc::clone(stream),
        };
        fed.map(feed).collect()
    }
}

impl StreamFeed {
    /// The stream's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.stream.name
    }

    /// What no other stream of the database ever has.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.stream.number
    }

    /// What the stream is.
    #[must_use]
    pub fn definition(&self) -> &StreamDefinition {
        &self.stream.definition
    }

    /// What the stream has its messages from.
    #[must_use]
    pub fn source(&self) -> &SourceDefinition {
        let source = self.stream.definition.source.as_ref();
        source.expect("a feed is of a stream with a source")
    }

    /// How messages are written.
    #[must_use]
    pub fn format(&self) -> TupleFormat {
        TupleFormat::from_media_type(self.source().format())
            .expect("the definition was checked when the stream was made")
    }

    /// Whether a message has to have a time beside its text.
    #[must_use]
    pub fn needs_times(&self) -> bool {
        needs_times(&self.stream.definition, self.format())
    }

    /// The number of the last push of a producer; `None` if it is not known.
    #[must_use]
    pub fn last_sequence(&self, producer: &str) -> Option<u64> {
        self.stream.producers.lock().last_of(producer)
    }

    /// The earliest time from which windows and batches that are not complete need tuples, as
    /// [`StreamStatus`](crate::StreamStatus) has it.
    #[must_use]
    pub fn needed_from_ms(&self) -> Option<i64> {
        self.stream.needed_from_ms()
    }

    /// Adds the tuples of some messages to the stream, as one push: of those that can be read, all or
    /// none. The messages may be of several producers, as of several partitions; each goes on from its last
    /// number. Nothing is done if all of them have pushed something of these numbers or of greater ones.
    ///
    /// # Errors
    /// As [`Database::push`], but for what is wrong with a message: nothing was kept, and the same messages
    /// can be pushed again. [`EngineError::NotFound`] once the stream was dropped.
    pub fn push(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
    ) -> Result<FeedReport, EngineError> {
        self.push_with_notes(by, messages, &[])
    }

    /// [`push`](Self::push) that appends bytes to the [`notes`](Self::notes) of the source: with a durable
    /// stream they survive if, and only if, the messages do. What they say only the source knows.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`EngineError::InvalidQuery`] for notes that are longer than
    /// [`MOST_NOTES_BYTES`] together.
    pub fn push_with_notes(
        &self,
        by: &[Producer<'_>],
        messages: &[FeedMessage],
        notes: &[u8],
    ) -> Result<FeedReport, EngineError> {
        self.database.check_streams_awake()?;
        self.check_there()?;
        check_notes(self.notes_bytes() + notes.len())?;
        let mut tuples = Tuples::default();
        let mut report = FeedReport::default();
        for (place, message) in messages.iter().enumerate() {
            match self.read(message) {
                Ok(of_message) => {
                    (0..of_message.len()).for_each(|tuple| tuples.copy(&of_message, tuple));
                }
                Err(error) if is_of_message(&error) => report.refused.push((place, error)),
                Err(error) => return Err(error),
            }
        }
        if by.is_empty() && notes.is_empty() && tuples.is_empty() {
            return Ok(report);
        }
        let by: Vec<(&str, u64)> = by.iter().map(|by| (by.name, by.sequence)).collect();
        let pushed = Pushed { by: &by, notes };
        report.pushed = self
            .database
            .inner()
            .push_tuples(&self.stream, tuples, pushed)?;
        Ok(report)
    }

    /// All that the source has noted, in the order in which it did.
    #[must_use]
    pub fn notes(&self) -> Vec<u8> {
        self.stream.notes.lock().clone()
    }

    /// How long the notes are.
    #[must_use]
    pub fn notes_bytes(&self) -> usize {
        self.stream.notes.lock().len()
    }

    /// Puts other notes in the place of all that the source has noted.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] once the stream was dropped; [`EngineError::InvalidQuery`] for notes that
    /// are longer than [`MOST_NOTES_BYTES`]; what the operating system says. The notes before stay then.
    pub fn replace_notes(&self, notes: Vec<u8>) -> Result<(), EngineError> {
        self.database.check_streams_awake()?;
        self.check_there()?;
        check_notes(notes.len())?;
        let inner = self.database.inner();
        let Some(journal) = inner.journal_of(&self.stream) else {
            *self.stream.notes.lock() = notes;
            return Ok(());
        };
        {
            let _cut = inner.streams.cut.read();
            journal.append(&Record::Notes {
                stream: self.stream.number,
                notes: Cow::Borrowed(&notes),
            })?;
            *self.stream.notes.lock() = notes;
        }
        journal.sync_all()?;
        inner.limit_journal();
        Ok(())
    }

    fn read(&self, message: &FeedMessage) -> Result<Tuples, EngineError> {
        let (stream, format) = (&*self.stream, self.format());
        check_time(stream, format, message.time_ms)?;
        let text = message.text.clone();
        self.database.tuples(stream, format, message.time_ms, text)
    }

    /// Whether the stream is there still.
    #[must_use]
    pub fn is_there(&self) -> bool {
        let names = self.database.inner().streams.names.read();
        let named = names.streams.get(&self.stream.name);
        named.is_some_and(|named| Arc::ptr_eq(named, &self.stream))
    }

    fn check_there(&self) -> Result<(), EngineError> {
        match self.is_there() {
            true => Ok(()),
            false => Err(EngineError::NotFound {
                what: format!("stream {}", self.stream.name),
            }),
        }
    }
}

/// # Errors
/// [`EngineError::InvalidQuery`].
fn check_notes(bytes: usize) -> Result<(), EngineError> {
    match bytes <= MOST_NOTES_BYTES {
        true => Ok(()),
        false => Err(EngineError::InvalidQuery {
            message: format!(
                "the notes of a source have {bytes} bytes, and may have {MOST_NOTES_BYTES}"
            ),
        }),
    }
}

/// Whether messages have to have times beside their texts.
fn needs_times(definition: &StreamDefinition, format: TupleFormat) -> bool {
    definition.time == TimeSource::Event && format != TupleFormat::Lines
}

/// Whether a message is at fault, so that the same would come of it whenever it is read.
fn is_of_message(error: &EngineError) -> bool {
    use jindou_ingest::IngestError;
    match error {
        EngineError::Ingest(error) => !matches!(error, IngestError::Io { .. }),
        EngineError::InvalidQuery { .. }
        | EngineError::Event { .. }
        | EngineError::Unsupported { .. }
        | EngineError::MemoryExceeded { .. }
        | EngineError::Timeout { .. } => true,
        _ => false,
    }
}

/// Says what is wrong with the source of a stream, if something is.
///
/// # Errors
/// [`EngineError::InvalidQuery`].
pub(super) fn check_source(definition: &StreamDefinition) -> Result<(), EngineError> {
    let Some(source) = &definition.source else {
        return Ok(());
    };
    let refused = |message: String| Err(EngineError::InvalidQuery { message });
    let Some(format) = TupleFormat::from_media_type(source.format()) else {
        let known = TupleFormat::MEDIA_TYPES.join(", ");
        return refused(format!(
            "source: messages are not read as {:?}; they may be {known}",
            source.format()
        ));
    };
    if format == TupleFormat::Lines && definition.time != TimeSource::Event {
        return refused(
            "source: lines have times, and a stream with times of arrival or of a predicate takes none"
                .to_owned(),
        );
    }
    if let SourceDefinition::Ldes(ldes) = source
        && let Err(error) = address(&ldes.url)
    {
        return refused(format!("source: {}: {error}", ldes.url));
    }
    if matches!(source, SourceDefinition::Mqtt(_)) && needs_times(definition, format) {
        return refused(
            "source: messages of MQTT have no times: the time of the stream is that of arrival or of a \
             predicate, or the format is text/tab-separated-values"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fed(json: &str) -> Result<(Database, StreamFeed), EngineError> {
        let database = Database::new();
        let definition = serde_json::from_str(json).expect("it is a definition");
        database.create_stream("s", definition)?;
        let feed = database.feeds().pop().expect("it has a source");
        Ok((database, feed))
    }

    fn kafka(format: &str, time: &str) -> Result<(Database, StreamFeed), EngineError> {
        fed(&format!(
            r#"{{"iri":"http://e/s","time":{time:?},"source":
                {{"kafka":{{"brokers":"h:1","topic":"t","format":{format:?}}}}}}}"#
        ))
    }

    fn message(time_ms: Option<i64>, text: &str) -> FeedMessage {
        let text = text.as_bytes().to_vec();
        FeedMessage { time_ms, text }
    }

    fn by(sequence: u64) -> [Producer<'static>; 1] {
        let name = "kafka:t/0";
        [Producer { name, sequence }]
    }

    #[test]
    fn messages_are_one_push_and_those_that_cannot_be_read_are_passed() {
        let (database, feed) = kafka("application/n-triples", "event").expect("it is sound");
        let triple = "<http://e/a> <http://e/b> <http://e/c> .";
        let messages = [
            message(Some(1), triple),
            message(Some(2), "no triple"),
            message(None, triple),
            message(Some(4), ""),
            message(Some(5), triple),
        ];
        assert!(feed.needs_times());
        let report = feed.push(&by(5), &messages).expect("the stream is there");
        let places: Vec<usize> = report.refused.iter().map(|(place, _)| *place).collect();
        assert_eq!((places, report.pushed.accepted), (vec![1, 2], 2));
        assert_eq!(feed.last_sequence("kafka:t/0"), Some(5));
        let again = feed.push(&by(5), &messages).expect("the stream is there");
        assert!(again.pushed.repeated);
        let passed = feed.push(&by(6), &[message(Some(6), "no triple")]);
        assert_eq!(passed.expect("it is passed").refused.len(), 1);
        assert_eq!(feed.last_sequence("kafka:t/0"), Some(6));
        let status = database.stream("s").expect("it is there");
        assert_eq!((status.tuples, status.watermark_ms), (2, Some(5)));
    }

    #[test]
    fn a_feed_ends_with_its_stream() {
        let (database, feed) = kafka("text/tab-separated-values", "event").expect("it is sound");
        let definition = feed.definition().clone();
        let line = message(None, "7\t<http://e/a> <http://e/b> <http://e/c> .");
        assert!(feed.push(&[], std::slice::from_ref(&line)).is_ok());
        assert!(database.drop_stream("s").expect("nobody reads it"));
        assert!(database.create_stream("s", definition).expect("it is new"));
        let pushed = feed.push(&by(1), &[line]);
        assert!(matches!(pushed, Err(EngineError::NotFound { .. })));
        assert_eq!(database.stream("s").expect("it is there").tuples, 0);
    }

    #[test]
    fn what_has_no_time_is_refused_with_the_definition() {
        let wrong = |made: Result<_, EngineError>| made.err().expect("refused").to_string();
        let said = wrong(kafka("image/png", "event"));
        assert!(
            said.contains("\"image/png\"") && said.contains("text/turtle"),
            "{said}"
        );
        let said = wrong(kafka("text/tab-separated-values", "arrival"));
        assert!(said.contains("lines have times"), "{said}");
        let mqtt = |time: &str, format: &str| {
            fed(&format!(
                r#"{{"iri":"http://e/s","time":{time:?},"source":
                    {{"mqtt":{{"address":"h:1","topic":"t/#","format":{format:?}}}}}}}"#
            ))
        };
        let said = wrong(mqtt("event", "text/turtle"));
        assert!(said.contains("messages of MQTT have no times"), "{said}");
        assert!(mqtt("arrival", "text/turtle").is_ok());
        assert!(mqtt("event", "text/tab-separated-values").is_ok());
    }
}
