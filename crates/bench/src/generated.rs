//! Which generated graphs are loaded while they are written?

use std::fmt::{self, Display, Formatter};
use std::io::{self, Write};

use jindou_datagen::literals::Literals;
use jindou_datagen::lubm::Lubm;

use crate::BenchError;

/// A graph that a generator writes as N-Triples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generated {
    /// Universities, whose literals are few beside their edges.
    Lubm(Lubm),
    /// Things with three literals each that no other has.
    Literals(Literals),
}

impl Generated {
    /// The kind, its size and its seed, from which [`Self::of_words`] makes it.
    pub(crate) fn words(self) -> [String; 3] {
        let (kind, size, seed) = match self {
            Self::Lubm(data) => ("lubm", data.universities, data.seed),
            Self::Literals(data) => ("literals", data.things, data.seed),
        };
        [kind.to_owned(), size.to_string(), seed.to_string()]
    }

    pub(crate) fn of_words([kind, size, seed]: [&str; 3]) -> Option<Self> {
        let (size, seed) = (size.parse().ok()?, seed.parse().ok()?);
        match kind {
            "lubm" => Some(Self::Lubm(Lubm::new(size, seed))),
            "literals" => Some(Self::Literals(Literals::new(size, seed))),
            _ => None,
        }
    }

    /// Different triples: what a store holds that has loaded it. A millisecond a university.
    ///
    /// # Errors
    /// [`BenchError::Datagen`].
    pub fn triples(self) -> Result<u64, BenchError> {
        match self {
            Self::Lubm(data) => Ok(data.count()?.distinct()),
            Self::Literals(data) => Ok(data.triples()),
        }
    }

    /// Writes all of it. Writes are large.
    ///
    /// # Errors
    /// What `out` reports, and `InvalidInput` for more universities than there can be.
    pub fn write(self, out: &mut impl Write) -> io::Result<()> {
        match self {
            Self::Lubm(data) => data.write(out).map(drop),
            Self::Literals(data) => data.write(out),
        }
    }
}

impl Display for Generated {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lubm(data) => write!(f, "LUBM({})", data.universities),
            Self::Literals(data) => write!(f, "literals of {} things", data.things),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_has_as_many_different_lines_as_it_says() {
        for graph in [
            Generated::Lubm(Lubm::new(1, 0)),
            Generated::Literals(Literals::new(50, 2)),
        ] {
            let mut text = Vec::new();
            graph.write(&mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let lines: std::collections::HashSet<&str> = text.lines().collect();
            assert_eq!(lines.len() as u64, graph.triples().unwrap(), "{graph}");
        }
    }
}
