//! `jindou stream replay`: files of tuples, sent in batches as fast as asked.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use jindou_bench::table::thousands;
use serde_json::Value;

use super::client::{Client, Refused};
use super::heartbeat::beat;
use super::{LINES, hint_at_seconds, open, time_of};
use crate::progress::Watch;
use crate::stream_args::{Pace, ReplayArguments};

/// What is sent at once at most, well below the bodies that a server takes.
const BATCH_BYTES: usize = 1 << 20;
/// What is paced is sent this often at most.
const TICK: Duration = Duration::from_millis(10);
/// How long a server may refuse the same batch because it has no room.
const MOST_WAIT: Duration = Duration::from_secs(60);
/// A replay that takes less shows no progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// # Errors
/// Files that cannot be read, a server that cannot be reached, and what it refuses.
pub(super) fn run(arguments: &ReplayArguments) -> anyhow::Result<()> {
    let client = Client::new(&arguments.server)?;
    let stream = client.get(&format!("/streams/{}", arguments.name))?;
    if stream["time"] == "arrival" {
        bail!(
            "the stream {} has times of arrival, and a replay has its own; push documents instead",
            arguments.name
        );
    }
    let sent = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let progress = Arc::clone(&sent);
    let watch = Watch::after(PATIENCE, "replaying".to_owned(), move || {
        let tuples = progress.load(Relaxed);
        let rate = tuples as f64 / begun.elapsed().as_secs_f64();
        let words = format!("{} tuples, {rate:.0} a second", thousands(tuples));
        (tuples, None, words)
    });
    let mut replay = Replay {
        client,
        path: format!("/streams/{}", arguments.name),
        pace: arguments.pace,
        producer: arguments.producer.clone(),
        batches: 0,
        repeated: 0,
        batch: Vec::new(),
        batch_tuples: 0,
        origin: Origin::default(),
        first: None,
        earliest: None,
        latest: None,
        sent,
        late: 0,
    };
    for file in &arguments.files {
        replay.file(file)?;
    }
    replay.send()?;
    if let (Some(latest), false) = (replay.latest, arguments.no_heartbeat) {
        let interval = stream["interval_ms"].as_i64().unwrap_or(1).max(1);
        let end = (latest.div_euclid(interval) + 1).saturating_mul(interval);
        beat(&replay.client, &arguments.name, Some(end))?;
    }
    drop(watch);
    if replay.repeated > 0 {
        note!("{} tuples were there before", thousands(replay.repeated));
    }
    let (tuples, seconds) = (replay.sent.load(Relaxed), begun.elapsed().as_secs_f64());
    note!(
        "replayed {} tuples in {seconds:.2} s, {} of them late",
        thousands(tuples),
        thousands(replay.late)
    );
    if replay.late == tuples
        && let Some(times) = replay.earliest.zip(replay.latest)
    {
        hint_at_seconds(times);
    }
    Ok(())
}

struct Replay {
    client: Client,
    path: String,
    pace: Pace,
    /// As whom it sends, if a replay that broke off is to go on.
    producer: Option<String>,
    /// Batches sent: the same ones each time, as their bytes alone say where they end.
    batches: u64,
    /// Tuples that were there before.
    repeated: u64,
    /// Lines that are to be sent.
    batch: Vec<u8>,
    batch_tuples: u64,
    /// Where they come from.
    origin: Origin,
    /// The time of the first tuple, and when it was read.
    first: Option<(i64, Instant)>,
    /// The earliest time of all tuples.
    earliest: Option<i64>,
    /// The latest one.
    latest: Option<i64>,
    sent: Arc<AtomicU64>,
    late: u64,
}

impl Replay {
    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        let name: Arc<str> = path.display().to_string().into();
        let mut lines = open(path).with_context(|| format!("{name}: cannot read the file"))?;
        let mut line = Vec::new();
        for number in 1_u64.. {
            line.clear();
            let read = lines.read_until(b'\n', &mut line);
            if read.with_context(|| format!("{name}: cannot read line {number}"))? == 0 {
                break;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            let time = time_of(&line).ok_or_else(|| {
                anyhow!(
                    "{name}: line {number}: a line has a time in milliseconds, a tab, and a statement"
                )
            })?;
            self.line(time, &line)?;
            self.origin.note(&name, number);
        }
        Ok(())
    }

    fn line(&mut self, time: i64, line: &[u8]) -> anyhow::Result<()> {
        self.wait_until_due(time)?;
        if !self.batch.is_empty() && self.batch.len() + line.len() > BATCH_BYTES {
            self.send()?;
        }
        self.batch.extend_from_slice(line);
        if line.last() != Some(&b'\n') {
            self.batch.push(b'\n');
        }
        self.batch_tuples += 1;
        self.earliest = self.earliest.map(|first| first.min(time)).or(Some(time));
        self.latest = self.latest.max(Some(time));
        Ok(())
    }

    /// Waits until a tuple is to be sent, before which all others are.
    fn wait_until_due(&mut self, time: i64) -> anyhow::Result<()> {
        let Pace::Times(pace) = self.pace else {
            return Ok(());
        };
        let (first, begun) = *self.first.get_or_insert_with(|| (time, Instant::now()));
        let after_ms = time.saturating_sub(first).max(0);
        let after = Duration::try_from_secs_f64(after_ms as f64 / 1e3 / pace);
        let after = after.context("the time of a tuple is too far in the future")?;
        if after > begun.elapsed() {
            self.send()?;
            // The next ones are sent together.
            let left = after.saturating_sub(begun.elapsed());
            std::thread::sleep(left.max(TICK));
        }
        Ok(())
    }

    /// Sends what is there; waits where the server has no room for it.
    fn send(&mut self) -> anyhow::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        self.batches += 1;
        let producer = self.producer.as_deref().map(|name| (name, self.batches));
        let report = loop {
            let to = ("POST", &*self.path);
            let body = Some((LINES, &*self.batch));
            let asked = self.client.ask_as(producer, to, body);
            match asked.with_context(|| self.origin.lines())? {
                Ok(report) => break report,
                Err(refused) => match refused.pause() {
                    Some(pause) if begun.elapsed() < MOST_WAIT => std::thread::sleep(pause),
                    _ => return Err(self.refused(refused)),
                },
            }
        };
        let report: Value = serde_json::from_str(&report).context("the answer is no JSON")?;
        self.late += report["late"].as_u64().unwrap_or_default();
        self.sent.fetch_add(self.batch_tuples, Relaxed);
        if report["repeated"] == true {
            self.repeated += self.batch_tuples;
        }
        self.batch.clear();
        self.batch_tuples = 0;
        self.origin = Origin::default();
        Ok(())
    }

    /// Why the lines that were sent are not taken: all of them, or none. A line of these is one of a file.
    fn refused(&self, refused: Refused) -> anyhow::Error {
        let place = refused.line().and_then(|line| self.origin.place(line));
        let (Some((file, line)), Some((first_file, first))) = (place, self.origin.place(1)) else {
            return refused.error().context(self.origin.lines());
        };
        anyhow!(
            "{file}: line {line}: {}; no line was taken from line {first} of {first_file} on",
            refused.reason()
        )
    }
}

/// Which lines of which files lines come from that are sent together.
#[derive(Debug, Default)]
struct Origin(Vec<Stretch>);

/// Lines of a file that follow one another.
#[derive(Debug)]
struct Stretch {
    file: Arc<str>,
    first: u64,
    count: u64,
}

impl Origin {
    /// Adds a line of a file.
    fn note(&mut self, file: &Arc<str>, line: u64) {
        match self.0.last_mut() {
            Some(last) if *last.file == **file && last.first + last.count == line => {
                last.count += 1;
            }
            _ => self.0.push(Stretch {
                file: Arc::clone(file),
                first: line,
                count: 1,
            }),
        }
    }

    /// The file and the line in it of one of the lines, from 1.
    fn place(&self, line: usize) -> Option<(&str, u64)> {
        let mut before = line.checked_sub(1)? as u64;
        for stretch in &self.0 {
            if before < stretch.count {
                return Some((&stretch.file, stretch.first + before));
            }
            before -= stretch.count;
        }
        None
    }

    /// All of them, in words.
    fn lines(&self) -> String {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return "no lines".to_owned();
        };
        let end = last.first + last.count - 1;
        match first.file == last.file {
            true if first.first == end => format!("{}: line {end}", first.file),
            true => format!("{}: lines {} to {end}", first.file, first.first),
            false => format!(
                "{}, line {}, to {}, line {end}",
                first.file, first.first, last.file
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_sent_is_found_in_its_file() {
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let mut origin = Origin::default();
        assert_eq!(
            (origin.place(1), origin.lines()),
            (None, "no lines".to_owned())
        );
        origin.note(&one, 7);
        assert_eq!(origin.lines(), "one: line 7");
        // The ninth is blank.
        for line in [8, 10, 11] {
            origin.note(&one, line);
        }
        assert_eq!(origin.lines(), "one: lines 7 to 11");
        // The same file once more.
        for (file, line) in [(&two, 1), (&two, 2), (&one, 1)] {
            origin.note(file, line);
        }
        let places = [
            ("one", 7),
            ("one", 8),
            ("one", 10),
            ("one", 11),
            ("two", 1),
            ("two", 2),
            ("one", 1),
        ];
        for (number, place) in places.into_iter().enumerate() {
            assert_eq!(origin.place(number + 1), Some(place));
        }
        assert_eq!((origin.place(0), origin.place(8)), (None, None));
        origin.note(&two, 5);
        assert_eq!(origin.lines(), "one, line 7, to two, line 5");
    }
}
