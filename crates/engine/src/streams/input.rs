//! What comes into a stream: tuples with their times.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use jindou_ingest::read_lines;
use jindou_stream::TimeSource;
use oxrdf::{BlankNode, NamedOrBlankNode, Quad, Term};

use super::events;
use super::formats::TupleFormat;
use super::stream::Stream;
use super::tuples::Tuples;
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
    /// source should wait; those of a transaction.
    pub fn push(
        &self,
        name: &str,
        format: TupleFormat,
        time_ms: Option<i64>,
        text: Vec<u8>,
    ) -> Result<PushReport, EngineError> {
        let stream = self.known_stream(name)?;
        check_time(&stream, format, time_ms)?;
        let tuples = self.tuples(&stream, format, time_ms, text)?;
        self.inner().push_tuples(&stream, tuples)
    }

    /// Says that nothing before a time will come any more.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] for a stream that has times of arrival,
    /// see [`heartbeat_now`](Self::heartbeat_now); those of a transaction.
    pub fn heartbeat(&self, name: &str, time_ms: i64) -> Result<(), EngineError> {
        let stream = self.known_stream(name)?;
        if stream.definition.time == TimeSource::Arrival {
            return Err(has_arrival_times(&stream));
        }
        self.inner().heartbeat_of(&stream, time_ms)
    }

    /// Says that nothing has come up to now, to a stream that has times of arrival.
    ///
    /// # Errors
    /// [`EngineError::NotFound`]; [`EngineError::InvalidQuery`] for a stream that has times of events;
    /// those of a transaction.
    pub fn heartbeat_now(&self, name: &str) -> Result<(), EngineError> {
        let stream = self.known_stream(name)?;
        if stream.definition.time != TimeSource::Arrival {
            return Err(needs_time(&stream));
        }
        self.inner()
            .heartbeat_of(&stream, self.inner().config.clock.now_ms())
    }

    /// Tuples of a text, whose blank nodes have labels that no other text has.
    fn tuples(
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
                let scope = self.blank_scope(&text)?;
                read_lines(name, &text, scope, &mut tuples)?;
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

    /// A number for the blank nodes of a text that is no other text's, if it has some.
    fn blank_scope(&self, text: &[u8]) -> Result<u64, EngineError> {
        match memchr::memmem::find(text, b"_:") {
            None => Ok(0),
            Some(_) => self.inner().writer.lock().reserve_documents(1, 0),
        }
    }
}

impl Inner {
    pub(super) fn heartbeat_of(
        self: &Arc<Self>,
        stream: &Stream,
        time_ms: i64,
    ) -> Result<(), EngineError> {
        {
            let mut intake = stream.intake.lock();
            intake.heartbeat(time_ms);
            stream.hear(&intake, &self.config.clock);
        }
        self.close_batches(stream)?;
        self.wake_readers(stream);
        Ok(())
    }

    pub(super) fn push_tuples(
        self: &Arc<Self>,
        stream: &Stream,
        mut tuples: Tuples,
    ) -> Result<PushReport, EngineError> {
        if stream.is_full() {
            self.close_batches(stream)?;
            if stream.is_full() {
                return Err(EngineError::StreamFull {
                    name: stream.name.clone(),
                    limit_bytes: stream.definition.memory,
                });
            }
        }
        let mut report = PushReport::default();
        let (mut late, mut bytes) = (Tuples::default(), 0);
        {
            let mut intake = stream.intake.lock();
            // Asked while nothing else can come, and never back: no tuple is late for another.
            let arrival = (stream.definition.time == TimeSource::Arrival).then(|| {
                let now = self.config.clock.now_ms();
                intake.watermark_ms().map_or(now, |last| now.max(last))
            });
            if let Some(now) = arrival {
                tuples.set_time(.., now);
            }
            for (tuple, time_ms) in tuples.times().iter().enumerate() {
                match intake.batch_at(*time_ms) {
                    Ok(batch) => {
                        batch.copy(&tuples, tuple);
                        bytes += tuples.size_of(tuple);
                        report.accepted += 1;
                    }
                    Err(jindou_stream::Late) => late.copy(&tuples, tuple),
                }
            }
            stream.hear(&intake, &self.config.clock);
            // While no batch can be taken, which is to be subtracted.
            stream.waiting_bytes.fetch_add(bytes, Relaxed);
        }
        report.late = late.len() as u64;
        stream.counts.tuples.fetch_add(report.accepted, Relaxed);
        self.absorb_late(stream, &late)?;
        self.close_batches(stream)?;
        self.wake_readers(stream);
        Ok(report)
    }

    /// Gives blank nodes labels that no other document has.
    pub(super) fn name_blank_nodes(&self, quads: &mut [Quad]) -> Result<(), EngineError> {
        let has_some = quads.iter().any(|quad| {
            matches!(quad.subject, NamedOrBlankNode::BlankNode(_))
                || matches!(quad.object, Term::BlankNode(_))
        });
        if !has_some {
            return Ok(());
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
        Ok(())
    }
}

/// Refuses tuples that say their time where they must not, and those that do not where they must.
fn check_time(
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
            return Err(EngineError::InvalidQuery {
                message: format!(
                    "{name}: line {}: a line has a time in milliseconds, a tab, and a statement",
                    number + 1
                ),
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
