//! Which tuples does a stream of CityBench have, and at which times?

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::BenchError;

/// Milliseconds to which the length of a stream is rounded up where it is repeated.
const ROUND_MS: i64 = 1000;

/// The tuples of a stream, which begin anew where they end.
#[derive(Debug)]
pub(super) struct Feed {
    name: String,
    /// Time and statement, in the order of time; at least one.
    lines: Vec<(i64, Box<str>)>,
    next: usize,
    /// How often the lines were passed.
    rounds: i64,
}

impl Feed {
    /// Reads lines of time, tab and statement, up to this many seconds of stream time.
    ///
    /// # Errors
    /// [`BenchError::Io`], [`BenchError::BadLine`].
    pub(super) fn read(name: &str, path: &Path, seconds: u64) -> Result<Self, BenchError> {
        let io = || BenchError::io(path);
        let file = File::open(path).map_err(io())?;
        let reader: Box<dyn Read> = match path.extension().is_some_and(|ending| ending == "zst") {
            true => Box::new(zstd::Decoder::new(file).map_err(io())?),
            false => Box::new(file),
        };
        let bad = |number: usize, reason| BenchError::BadLine {
            path: path.to_owned(),
            line: number + 1,
            reason,
        };
        let mut lines: Vec<(i64, Box<str>)> = Vec::new();
        for (number, line) in BufReader::new(reader).lines().enumerate() {
            let line = line.map_err(io())?;
            let parts = line.split_once('\t');
            let parts = parts.and_then(|(time, rest)| Some((time.parse::<i64>().ok()?, rest)));
            let (time_ms, statement) =
                parts.ok_or_else(|| bad(number, "it has no time in milliseconds and tab"))?;
            if lines.last().is_some_and(|(last_ms, _)| *last_ms > time_ms) {
                return Err(bad(number, "it is earlier than the line before"));
            }
            let first_ms = lines.first().map_or(time_ms, |(first_ms, _)| *first_ms);
            if time_ms - first_ms >= seconds as i64 * 1000 {
                break;
            }
            lines.push((time_ms, statement.into()));
        }
        match lines.is_empty() {
            true => Err(bad(0, "there is none")),
            false => Ok(Self {
                name: name.to_owned(),
                lines,
                next: 0,
                rounds: 0,
            }),
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn first_ms(&self) -> i64 {
        self.lines[0].0
    }

    /// Appends the lines before a time that were not taken yet; returns how many. After the last one,
    /// all are repeated with later times, where `begin_ms` is when the streams began.
    pub(super) fn push_before(&mut self, end_ms: i64, begin_ms: i64, out: &mut String) -> u64 {
        use std::fmt::Write as _;

        let last_ms = self.lines.last().expect("there is one").0;
        let round_ms = ((last_ms - begin_ms) / ROUND_MS + 1) * ROUND_MS;
        let mut count = 0;
        loop {
            let shift_ms = self.rounds * round_ms;
            let Some((time_ms, statement)) = self.lines.get(self.next) else {
                (self.next, self.rounds) = (0, self.rounds + 1);
                continue;
            };
            let time_ms = time_ms + shift_ms;
            if time_ms >= end_ms {
                return count;
            }
            let _ = writeln!(out, "{time_ms}\t{statement}");
            (self.next, count) = (self.next + 1, count + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_repeated_with_later_times() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.tnt");
        std::fs::write(&path, "10000\ta\n11500\tb\n").unwrap();
        let mut feed = Feed::read("s", &path, 100).unwrap();
        let mut out = String::new();
        assert_eq!(feed.push_before(11_500, 10_000, &mut out), 1);
        assert_eq!(feed.push_before(14_001, 10_000, &mut out), 4);
        assert_eq!(out, "10000\ta\n11500\tb\n12000\ta\n13500\tb\n14000\ta\n");
    }

    #[test]
    fn lines_that_are_wrong_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.tnt");
        for (text, line) in [("", 1), ("1\ta\nb", 2), ("2\ta\n1\tb\n", 2)] {
            std::fs::write(&path, text).unwrap();
            let error = Feed::read("s", &path, 100).unwrap_err();
            assert!(
                matches!(error, BenchError::BadLine { line: at, .. } if at == line),
                "{error}"
            );
        }
    }
}
