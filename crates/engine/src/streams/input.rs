//! What comes into a stream: tuples with their times.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_ingest::read_lines;
use jindou_stream::{Intake, TimeSource};
use oxrdf::{BlankNode, NamedOrBlankNode, Quad, Term};

use super::events::{self, EventError};
use super::formats::TupleFormat;
use super::records::{Push, Record};
use super::stream::Stream;
use super::tuples::{BATCH_BYTES, Tuples};
use crate::database::Inner;
use crate::{Database, EngineError};

/// What became of tuples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct PushReport {
    /// Those that came in time.
    pub accepted: u64,
    /// Those that came late.
    pub late: u64,
    /// The producer had sent this before: nothing was done now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// Who pushes something, and the how-manyth thing of theirs it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Producer<'a> {
    /// Whom no other producer of the stream is called like.
    pub name: &'a str,
    /// Greater than that of anything the producer has pushed to the stream before.
    pub sequence: u64,
}

/// What the stream remembers with some tuples.
#[derive(Clone, Copy, Default)]
pub(super) struct Pushed<'a> {
    /// Whose they are; nothing is done if all of these have pushed something of these numbers before.
    pub(super) by: &'a [(&'a str, u64)],
    /// Appended to what the source of the stream has noted.
    pub(super) notes: &'a [u8],
}

impl<'a> From<&'a [(&'a str, u64)]> for Pushed<'a> {
    fn from(by: &'a [(&'a str, u64)]) -> Self {
        Self { by, notes: &[] }
    }
}

impl Database {
    /// Adds tuples to a stream: all of them, or none if something is wrong with one. What is complete
    /// thereby becomes part of the data, and queries that are due are evaluated.
    ///
    /// `time_ms` is the time of all events of the text, where the stream has the times of events. One
    /// that has times of arrival or of a predicate takes none, and lines neither.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; what is wrong with the text or the time; [`EngineError::StreamFull`], and the
    /// source should wait; those of a transaction that a push before could not make, as while the disk is
    /// full. Nothing is kept then. A push that is the first one to complete what cannot become part of the
    /// data yet is kept: that is tried again before anything else is taken, and by [`Database::tick`].
    pub fn push(
        &self,
        name: &str,
        format: TupleFormat,
        time_ms: Option<i64>,
        text: Vec<u8>,
    ) -> Result<PushReport, EngineError> {
        self.check_streams_awake()?;
        let stream = self.known_stream(name)?;
        check_time(&stream, format, time_ms)?;
        let tuples = self.tuples(&stream, format, time_ms, text)?;
        self.inner().push_tuples(&stream, tuples, Pushed::default())
    }

    /// [`Database::push`] that does nothing if the producer has pushed something of this number or of
    /// a greater one: so what was not acknowledged can be sent again. The last number of each of the
    /// last [`MOST_PRODUCERS`](jindou_stream::MOST_PRODUCERS) producers of a stream is known, and
    /// survives with a durable stream.
    ///
    /// # Errors
    /// As [`Database::push`].
    pub fn push_once(
        &self,
        name: &str,
        producer: Producer<'_>,
        format: TupleFormat,
        time_ms: Option<i64>,
        text: Vec<u8>,
    ) -> Result<PushReport, EngineError> {
        self.check_streams_awake()?;
        let stream = self.known_stream(name)?;
        check_time(&stream, format, time_ms)?;
        let tuples = self.tuples(&stream, format, time_ms, text)?;
        let by = [(producer.name, producer.sequence)];
        self.inner()
            .push_tuples(&stream, tuples, Pushed::from(&by[..]))
    }

    /// Says that nothing before a time will come any more.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] for a stream that has times of arrival,
    /// see [`heartbeat_now`](Self::heartbeat_now); those of a transaction, as [`Database::push`] has them:
    /// the watermark stays then.
    pub fn heartbeat(&self, name: &str, time_ms: i64) -> Result<(), EngineError> {
        self.check_streams_awake()?;
        let stream = self.known_stream(name)?;
        if stream.definition.time == TimeSource::Arrival {
            return Err(has_arrival_times(&stream));
        }
        stream.check_ahead(time_ms, self.inner()).map_err(|error| {
            let message = format!("{}: a heartbeat: {error}", stream.name);
            EngineError::InvalidQuery { message }
        })?;
        self.inner().catch_up(&stream)?;
        self.inner().heartbeat_of(&stream, time_ms)?;
        self.inner().settle_heartbeat(&stream)
    }

    /// Says that nothing has come up to now, to a stream that has times of arrival.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] for a stream that has times of events;
    /// those of a transaction.
    pub fn heartbeat_now(&self, name: &str) -> Result<(), EngineError> {
        self.check_streams_awake()?;
        let stream = self.known_stream(name)?;
        if stream.definition.time != TimeSource::Arrival {
            return Err(needs_time(&stream));
        }
        self.inner().catch_up(&stream)?;
        self.inner()
            .heartbeat_of(&stream, self.inner().config.clock.now_ms())?;
        self.inner().settle_heartbeat(&stream)
    }

    /// Tuples of a text, whose blank nodes have labels that no other text has.
    pub(super) fn tuples(
        &self,
        stream: &Stream,
        format: TupleFormat,
        time_ms: Option<i64>,
        mut text: Vec<u8>,
    ) -> Result<Tuples, EngineError> {
        match (format, time_ms) {
            (TupleFormat::Lines, _) => {
                let mut tuples = Tuples::default();
                let name = &*stream.name;
                let times = take_times(name, &mut text)?;
                self.check_lines(stream, &times, &text)?;
                let scope = self.blank_scope(&text)?;
                read_lines(name, &text, scope.unwrap_or(0), &mut tuples)?;
                tuples.set_scope(documents(scope));
                if times.len() != tuples.len() {
                    return Err(EngineError::InvalidQuery {
                        message: "each line has a time, a tab and one statement".to_owned(),
                    });
                }
                tuples.set_times(times);
                Ok(tuples)
            }
            (format, time_ms) => events::read(self.inner(), stream, format, time_ms, text),
        }
    }

    /// Refuses lines whose times are too far ahead. Their text has blanks in the place of these.
    fn check_lines(&self, stream: &Stream, times: &[i64], text: &[u8]) -> Result<(), EngineError> {
        // The latest decides for all.
        let latest = times.iter().max();
        if latest.is_none_or(|latest| stream.check_ahead(*latest, self.inner()).is_ok()) {
            return Ok(());
        }
        let Some((event, source)) = times.iter().enumerate().find_map(|(event, time_ms)| {
            let checked = stream.check_ahead(*time_ms, self.inner());
            Some((event, checked.err()?))
        }) else {
            return Ok(());
        };
        let lines = text.split(|byte| *byte == b'\n').enumerate();
        let mut lines = lines.filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace));
        Err(EngineError::Event {
            stream: stream.name.clone(),
            event: event as u64 + 1,
            line: lines.nth(event).map(|(number, _)| number as u64 + 1),
            source,
        })
    }

    /// A number for the blank nodes of a text that is no other text's, if it has some.
    fn blank_scope(&self, text: &[u8]) -> Result<Option<u64>, EngineError> {
        match memchr::memmem::find(text, b"_:") {
            None => Ok(None),
            Some(_) => self.inner().writer.lock().reserve_documents(1, 0).map(Some),
        }
    }
}

impl Inner {
    /// Makes that part of the data which could not be so far.
    ///
    /// # Errors
    /// Those of a transaction; it waits on.
    pub(super) fn catch_up(self: &Arc<Self>, stream: &Stream) -> Result<(), EngineError> {
        self.check_says()?;
        self.begin_late();
        if stream.is_behind.load(Relaxed) {
            self.close_batches(stream)?;
            self.wake_readers(stream);
        }
        Ok(())
    }

    /// Makes all complete batches part of the data. Where that fails they wait, and what completed them
    /// is kept all the same.
    fn go_on_with(self: &Arc<Self>, stream: &Stream) {
        let was_behind = stream.is_behind.load(Relaxed);
        if let Err(error) = self.close_batches(stream)
            && !was_behind
        {
            tracing::warn!(stream = stream.name, %error, "complete batches wait");
        }
        self.wake_readers(stream);
    }

    /// Notes a heartbeat, of which all that it completes becomes part of the data, now or later.
    ///
    /// # Errors
    /// As [`Journal::append`](super::journal::Journal::append); nothing was noted then.
    pub(super) fn heartbeat_of(
        self: &Arc<Self>,
        stream: &Stream,
        time_ms: i64,
    ) -> Result<(), EngineError> {
        {
            let journal = self.journal_of(stream);
            let _cut = journal.map(|_| self.streams.cut.read());
            let mut intake = stream.intake.lock();
            let is_new = intake.watermark_ms().is_none_or(|last| last < time_ms);
            if let (Some(journal), true) = (journal, is_new) {
                journal.beat(stream, time_ms)?;
            }
            intake.heartbeat(time_ms);
            stream.hear(&intake, &self.config.clock);
        }
        self.go_on_with(stream);
        Ok(())
    }

    /// Waits until a heartbeat outlives this process: it is in a file, or at the other copies of the store.
    ///
    /// # Errors
    /// Those of a transaction.
    fn settle_heartbeat(self: &Arc<Self>, stream: &Stream) -> Result<(), EngineError> {
        if let Some(journal) = self.journal_of(stream) {
            journal.sync_if_elsewhere()?;
        }
        self.limit_journal();
        Ok(())
    }

    /// Adds tuples, which are lasting when this returns if the stream is durable.
    pub(super) fn push_tuples(
        self: &Arc<Self>,
        stream: &Stream,
        tuples: Tuples,
        pushed: Pushed<'_>,
    ) -> Result<PushReport, EngineError> {
        self.catch_up(stream)?;
        let report = self.put_tuples(stream, tuples, pushed)?;
        if let Some(journal) = self.journal_of(stream) {
            // Those that were pushed before, too: their push may not have waited yet.
            journal.sync_all()?;
            self.limit_journal();
        }
        Ok(report)
    }

    /// Adds tuples, which are lasting when whatever follows from them is.
    ///
    /// # Errors
    /// [`EngineError::StreamFull`]; those of the log. Nothing was added then.
    pub(super) fn put_tuples<'a>(
        self: &Arc<Self>,
        stream: &Stream,
        mut tuples: Tuples,
        pushed: impl Into<Pushed<'a>>,
    ) -> Result<PushReport, EngineError> {
        if stream.is_full() {
            self.close_batches(stream)?;
            stream.forget_read();
            if stream.is_full() {
                self.collect_terms(stream);
            }
            if stream.is_full() {
                return Err(EngineError::StreamFull {
                    name: stream.name.clone(),
                    limit_bytes: stream.definition.memory,
                    kept_for: stream.kept_for(),
                });
            }
        }
        let report = self.take_in(stream, &mut tuples, pushed.into())?;
        if !report.repeated {
            self.go_on_with(stream);
        }
        Ok(report)
    }

    /// Puts tuples into their batches.
    fn take_in(
        &self,
        stream: &Stream,
        tuples: &mut Tuples,
        Pushed { by, notes }: Pushed<'_>,
    ) -> Result<PushReport, EngineError> {
        let journal = self.journal_of(stream);
        let _cut = journal.map(|_| self.streams.cut.read());
        let mut intake = stream.intake.lock();
        let mut producers = stream.producers.lock();
        let has_sent = |(name, sequence): &(&str, u64)| producers.has_sent(name, *sequence);
        if !by.is_empty() && by.iter().all(has_sent) {
            return Ok(PushReport {
                repeated: true,
                ..PushReport::default()
            });
        }
        // Asked while nothing else can come, and never back: no tuple is late for another.
        if stream.definition.time == TimeSource::Arrival {
            let now = self.config.clock.now_ms();
            let now = intake.watermark_ms().map_or(now, |last| now.max(last));
            tuples.set_time(.., now);
        }
        let late = self.next_seed();
        if let Some(journal) = journal {
            journal.append(&Record::Push(Push {
                stream: stream.number,
                producers: by.to_vec(),
                first_open: intake.position().first_open,
                late,
                notes,
                tuples: Cow::Borrowed(tuples),
            }))?;
        }
        stream.notes.lock().extend_from_slice(notes);
        by.iter()
            .for_each(|(name, sequence)| producers.note(name, *sequence));
        drop(producers);
        let report = stream.put(&mut intake, tuples, late);
        stream.hear(&intake, &self.config.clock);
        Ok(report)
    }

    /// Gives blank nodes labels that no other document has.
    ///
    /// Returns how many documents have numbers then; 0 if there are no blank nodes.
    pub(super) fn name_blank_nodes(&self, quads: &mut [Quad]) -> Result<u64, EngineError> {
        let has_some = quads.iter().any(|quad| {
            matches!(quad.subject, NamedOrBlankNode::BlankNode(_))
                || matches!(quad.object, Term::BlankNode(_))
        });
        if !has_some {
            return Ok(0);
        }
        let number = self.writer.lock().reserve_documents(1, 0)?;
        for quad in quads {
            if let NamedOrBlankNode::BlankNode(node) = &mut quad.subject {
                *node = scoped(number, node);
            }
            if let Term::BlankNode(node) = &mut quad.object {
                *node = scoped(number, node);
            }
        }
        Ok(documents(Some(number)))
    }
}

impl Stream {
    /// # Errors
    /// [`EventError::Ahead`] for a time that is further ahead of the clock than the definition lets: all
    /// that comes after it would be late.
    pub(super) fn check_ahead(&self, time_ms: i64, inner: &Inner) -> Result<(), EventError> {
        let Some(most_ms) = self.definition.max_ahead_ms else {
            return Ok(());
        };
        let now_ms = inner.config.clock.now_ms();
        match time_ms <= now_ms.saturating_add_unsigned(most_ms) {
            true => Ok(()),
            false => Err(EventError::Ahead {
                time_ms,
                now_ms,
                most_ms,
            }),
        }
    }

    /// Puts tuples into their batches; those that come too late are kept aside, and their facts wait to
    /// be stored.
    pub(super) fn put(
        &self,
        intake: &mut Intake<Tuples>,
        tuples: &Tuples,
        name: u64,
    ) -> PushReport {
        let mut report = PushReport::default();
        let (mut late, mut bytes) = (Tuples::default(), 0);
        for (tuple, time_ms) in tuples.times().iter().enumerate() {
            match intake.batch_at(*time_ms) {
                Ok(batch) => {
                    bytes += if batch.is_empty() { BATCH_BYTES } else { 0 };
                    batch.copy(tuples, tuple);
                    bytes += tuples.size_of(tuple);
                    report.accepted += 1;
                }
                Err(jindou_stream::Late) => late.copy(tuples, tuple),
            }
        }
        // While no batch can be taken, which is to be subtracted.
        self.waiting_bytes.fetch_add(bytes, Relaxed);
        self.counts.tuples.fetch_add(report.accepted, Relaxed);
        report.late = late.len() as u64;
        if !late.is_empty() {
            for (time_ms, tuple) in late.iter() {
                self.keep_late(format!("{time_ms}\t{} .\n", tuple.text()));
            }
            self.late_facts.lock().push((name, late));
        }
        report
    }
}

/// How many documents have numbers, of which this is the last one.
fn documents(last: Option<u64>) -> u64 {
    last.map_or(0, |last| last + 1)
}

/// Refuses tuples that say their time where they must not, and those that do not where they must.
pub(super) fn check_time(
    stream: &Stream,
    format: TupleFormat,
    time_ms: Option<i64>,
) -> Result<(), EngineError> {
    let is_lines = format == TupleFormat::Lines;
    match (&stream.definition.time, time_ms) {
        (TimeSource::Predicate(predicate), _) if is_lines || time_ms.is_some() => {
            Err(EngineError::InvalidQuery {
                message: format!(
                    "the stream {} has the times that <{predicate}> says; none may be given",
                    stream.name
                ),
            })
        }
        (TimeSource::Predicate(_), _) => Ok(()),
        (TimeSource::Arrival, _) if is_lines || time_ms.is_some() => Err(has_arrival_times(stream)),
        (TimeSource::Arrival, _) => Ok(()),
        (_, Some(_)) if is_lines => Err(EngineError::InvalidQuery {
            message: "each line has a time of its own, and another one is given for all".to_owned(),
        }),
        (_, None) if !is_lines => Err(needs_time(stream)),
        _ => Ok(()),
    }
}

fn has_arrival_times(stream: &Stream) -> EngineError {
    EngineError::InvalidQuery {
        message: format!(
            "the stream {} has times of arrival, which the clock of the database gives; none may be given",
            stream.name
        ),
    }
}

fn needs_time(stream: &Stream) -> EngineError {
    EngineError::InvalidQuery {
        message: format!(
            "the stream {} has times of events, and none is given",
            stream.name
        ),
    }
}

fn scoped(number: u64, node: &BlankNode) -> BlankNode {
    BlankNode::new_unchecked(format!("f{number}_{}", node.as_str()))
}

/// The times of lines, in the place of which they get blanks: so errors have the right columns.
fn take_times(name: &str, text: &mut [u8]) -> Result<Vec<i64>, EngineError> {
    let mut times = Vec::new();
    for (number, line) in text.split_mut(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let tab = line.iter().position(|byte| *byte == b'\t');
        let time = tab.and_then(|tab| std::str::from_utf8(&line[..tab]).ok()?.parse().ok());
        let (Some(tab), Some(time)) = (tab, time) else {
            return Err(EngineError::Event {
                stream: name.to_owned(),
                event: times.len() as u64 + 1,
                line: Some(number as u64 + 1),
                source: EventError::NoLine,
            });
        };
        times.push(time);
        line[..=tab].fill(b' ');
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_from_lines() {
        let mut text = b"12\t<a> <b> <c> .\n\n-3\t<d> <e> <f> .".to_vec();
        assert_eq!(take_times("s", &mut text).unwrap(), [12, -3]);
        assert_eq!(text, b"   <a> <b> <c> .\n\n   <d> <e> <f> .");
        for wrong in ["<a> <b> <c> .", "x\t<a> <b> <c> .", "1.5\t<a> <b> <c> ."] {
            let mut text = format!("1\t<a> <b> <c> .\n{wrong}\n").into_bytes();
            let error = take_times("s", &mut text).unwrap_err().to_string();
            assert!(error.starts_with("s: line 2: "), "{error}");
        }
    }

    #[test]
    fn an_error_has_the_column_that_the_line_has_it_in() {
        let database = Database::new();
        let definition = jindou_stream::StreamDefinition::new("http://e/s");
        database.create_stream("s", definition).unwrap();
        let text = b"1\t<http://e/a> <http://e/b> <http://e/c> .\n1234\t<http://e/a> x".to_vec();
        let pushed = database.push("s", TupleFormat::Lines, None, text);
        let error = pushed.unwrap_err().to_string();
        assert!(error.starts_with("s:2:19:"), "{error}");
    }
}
