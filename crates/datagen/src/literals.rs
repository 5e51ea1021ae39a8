//! What does a graph look like in which many literals are different?
//!
//! Things, each with a name, a longer note and a short code that no other thing has, and with seven edges to other
//! things: ten triples and three literals a thing, so that ten million things are 100 million triples with 30
//! million literals. Dictionaries of such graphs are large beside their edges, other than those of [`lubm`](crate::lubm).
//!
//! ```
//! use jindou_datagen::literals::Literals;
//!
//! let data = Literals::new(1_000, 0);
//! let mut text = Vec::new();
//! data.write(&mut text)?;
//! assert_eq!(text.iter().filter(|&&byte| byte == b'\n').count() as u64, data.triples());
//! assert_eq!((data.triples(), data.literals()), (10_000, 3_000));
//! # Ok::<(), std::io::Error>(())
//! ```

use std::io::{self, Write};
use std::ops::Range;

use crate::numbers::{push_hexadecimal, push_number};

/// Edges of a thing to others, each with a predicate of its own.
const EDGES: u64 = 7;
/// Literals of a thing.
const LITERALS: u64 = 3;
/// Things whose text is written at once, about a MiB.
const BLOCK: u32 = 1 << 10;

/// Steps between the numbers of things that have an edge between them: primes, so that few edges are alike.
const STEP_OF_THING: u64 = 31;
const STEP_OF_EDGE: u64 = 7919;
/// Spreads codes over 32 bits: 2^32 by the golden ratio, which Knuth has for hashing.
const SPREAD: u64 = 2_654_435_761;

const THING: &str = "<http://example.org/thing/";

/// A data set: how many things, from which seed. All its triples are different, and so are their literals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Literals {
    /// How many things.
    pub things: u32,
    /// Decides which things have edges between them, and the codes.
    pub seed: u64,
}

impl Literals {
    /// Things `0..things`.
    #[must_use]
    pub const fn new(things: u32, seed: u64) -> Self {
        Self { things, seed }
    }

    /// Its triples: the lines of its text, and what a graph holds that loads it.
    #[must_use]
    pub fn triples(&self) -> u64 {
        u64::from(self.things) * (LITERALS + EDGES)
    }

    /// Its literals.
    #[must_use]
    pub fn literals(&self) -> u64 {
        u64::from(self.things) * LITERALS
    }

    /// Writes all of it as N-Triples, in the order of things. Holds about a MiB.
    ///
    /// # Errors
    /// What `out` reports.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_things(0..self.things, out)
    }

    /// Writes the triples of some things. Writes are large: `out` needs no buffer of its own.
    ///
    /// # Errors
    /// What `out` reports.
    ///
    /// # Panics
    /// If the range ends beyond the last thing.
    pub fn write_things(&self, things: Range<u32>, out: &mut impl Write) -> io::Result<()> {
        assert!(things.end <= self.things, "{things:?} of {}", self.things);
        let (mut text, mut subject) = (String::new(), String::new());
        for thing in things.clone() {
            self.push_thing(thing, &mut subject, &mut text);
            let is_last = thing + 1 == things.end;
            if is_last || (thing - things.start) % BLOCK == BLOCK - 1 {
                out.write_all(text.as_bytes())?;
                text.clear();
            }
        }
        Ok(())
    }

    /// Appends the lines of a thing; `subject` is memory for the beginning of each.
    fn push_thing(&self, thing: u32, subject: &mut String, text: &mut String) {
        subject.clear();
        push_iri(subject, thing.into());
        let number = u64::from(thing);
        text.push_str(subject);
        text.push_str(" <http://example.org/name> \"the name of thing number ");
        push_number(text, number);
        text.push_str("\" .\n");
        text.push_str(subject);
        text.push_str(" <http://example.org/note> \"");
        push_number(text, number);
        text.push_str(" is written about at some length here, ");
        push_number(text, number * STEP_OF_EDGE);
        text.push_str("\" .\n");
        text.push_str(subject);
        text.push_str(" <http://example.org/code> \"c-");
        // What is beyond 32 bits is not shown; the number of the thing makes codes different.
        push_hexadecimal(text, (number * SPREAD).wrapping_add(self.seed) as u32);
        text.push('-');
        push_number(text, number);
        text.push_str("\" .\n");
        let things = u64::from(self.things);
        let first = number * STEP_OF_THING + self.seed % things;
        for edge in 0..EDGES {
            text.push_str(subject);
            text.push_str(" <http://example.org/p");
            push_number(text, edge);
            text.push_str("> ");
            push_iri(text, (first + edge * STEP_OF_EDGE) % things);
            text.push_str(" .\n");
        }
    }
}

#[inline]
fn push_iri(out: &mut String, thing: u64) {
    out.push_str(THING);
    push_number(out, thing);
    out.push('>');
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn text(data: Literals) -> String {
        let mut text = Vec::new();
        data.write(&mut text).expect("memory takes all");
        String::from_utf8(text).expect("it is ASCII")
    }

    /// The same, as the description has it.
    fn described(data: Literals) -> String {
        let (things, seed) = (u64::from(data.things), u128::from(data.seed));
        let lines = (0..things).map(|i| {
            let line = |predicate: &str, object: String| {
                format!(
                    "<http://example.org/thing/{i}> <http://example.org/{predicate}> {object} .\n"
                )
            };
            let hash = (u128::from(i) * 2_654_435_761 + seed) % (1 << 32);
            let edges = (0..7).map(|k| {
                let other = (u128::from(i) * 31 + k * 7919 + seed) % u128::from(things);
                line(
                    &format!("p{k}"),
                    format!("<http://example.org/thing/{other}>"),
                )
            });
            [
                line("name", format!("\"the name of thing number {i}\"")),
                line(
                    "note",
                    format!("\"{i} is written about at some length here, {}\"", i * 7919),
                ),
                line("code", format!("\"c-{hash:x}-{i}\"")),
            ]
            .into_iter()
            .chain(edges)
            .collect::<String>()
        });
        lines.collect()
    }

    #[test]
    fn the_text_is_the_one_described_whatever_number_and_seed() {
        for (things, seed) in [(0, 0), (1, 5), (1_023, 0), (1_024, 1), (2_500, u64::MAX)] {
            let data = Literals::new(things, seed);
            assert!(text(data) == described(data), "{data:?}");
        }
    }

    #[test]
    fn all_triples_and_literals_are_different_and_as_many_as_are_known() {
        let data = Literals::new(3_000, 7);
        let text = text(data);
        let triples: HashSet<&str> = text.lines().collect();
        assert_eq!(triples.len() as u64, data.triples());
        let literals: HashSet<&str> = text
            .lines()
            .filter_map(|line| line.split('"').nth(1))
            .collect();
        assert_eq!(literals.len() as u64, data.literals());
    }

    #[test]
    fn parts_are_the_whole() {
        let data = Literals::new(3_000, 1);
        let mut parts = Vec::new();
        for things in [0..1, 1..2_100, 2_100..2_100, 2_100..3_000] {
            data.write_things(things, &mut parts)
                .expect("memory takes all");
        }
        assert!(parts == text(data).into_bytes());
    }
}
