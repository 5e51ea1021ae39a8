//! What does the Lehigh University Benchmark's data look like, for any number of universities?
//!
//! The benchmark (Guo, Pan, Heflin: "LUBM: A Benchmark for OWL Knowledge Base Systems", Journal
//! of Web Semantics 3, 2005) describes universities with departments, faculty, students,
//! courses and publications. [`Lubm`] makes the same statements, in the same order, as the
//! benchmark's own generator (UBA 1.7) does with seed 0. As there, the statement that a
//! university is one is repeated with each degree taken from it; nothing else is repeated.
//! Nothing is inferred: only what is stated here exists.
//!
//! Universities are independent of each other, so they can be made in parallel and in any
//! order. One has about 100 thousand to 170 thousand statements.
//!
//! ```
//! use jindou_datagen::lubm::Lubm;
//!
//! let mut text = Vec::new();
//! let counts = Lubm::new(1, 0).write(&mut text)?;
//! assert_eq!(counts.statements(), 103_074);
//! assert_eq!(counts.distinct(), 100_543);
//! # Ok::<(), std::io::Error>(())
//! ```

mod counts;
mod light;
mod queries;
mod random;
mod render;
mod statement;
mod vocabulary;
mod walk;

use std::io::{self, Write};
use std::ops::Range;

use oxrdf::TripleRef;

use crate::DatagenError;
use render::{TextSink, TripleSink};
use statement::Nowhere;
use walk::Walk;

pub use counts::Counts;
pub use light::{CONSTANT, LightClass, LightLoad, LightQuery};
pub use queries::{HEAVY, QUERIES};
pub use vocabulary::{Class, Predicate, UB};
pub use walk::Department;

/// Degrees are taken from universities 0 to this, whether or not those are generated.
pub const DEGREE_POOL: u32 = 1000;

/// The highest number a university can have.
pub const LAST_UNIVERSITY: u32 = i32::MAX as u32;

/// A data set: which universities, from which seed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lubm {
    /// How many universities.
    pub universities: u32,
    /// The number of the first one; the others follow.
    pub first: u32,
    /// Seed of the data, of which the low 17 bits count. The literature uses 0, and it is for 0
    /// that the text was compared with the benchmark's.
    pub seed: u64,
}

impl Lubm {
    /// Universities `0..universities`.
    pub const fn new(universities: u32, seed: u64) -> Self {
        Self {
            universities,
            first: 0,
            seed,
        }
    }

    /// The numbers of the universities.
    ///
    /// # Errors
    /// [`DatagenError::TooManyUniversities`] if they pass [`LAST_UNIVERSITY`].
    pub fn indices(&self) -> Result<Range<u32>, DatagenError> {
        match self.first.checked_add(self.universities) {
            Some(end) if end <= LAST_UNIVERSITY + 1 => Ok(self.first..end),
            _ => Err(DatagenError::TooManyUniversities {
                first: self.first,
                universities: self.universities,
            }),
        }
    }

    /// Writes all universities as N-Triples, in order. Holds one department, about 2 MB.
    ///
    /// # Errors
    /// What `out` reports, and `InvalidInput` around the error of [`Lubm::indices`].
    pub fn write(&self, out: &mut impl Write) -> io::Result<Counts> {
        let mut counts = Counts::default();
        for university in self.indices().map_err(invalid_input)? {
            counts += &self.write_university(university, out)?;
        }
        Ok(counts)
    }

    /// Writes one university as N-Triples. Writes are large, one a department: `out` needs no
    /// buffer of its own. The university need not be among [`Lubm::indices`].
    ///
    /// # Errors
    /// What `out` reports.
    pub fn write_university(&self, university: u32, out: &mut impl Write) -> io::Result<Counts> {
        let mut walk = Walk::new(self, university);
        let mut sink = TextSink::default();
        while walk.next_department(&mut sink).is_some() {
            out.write_all(sink.text.as_bytes())?;
            sink.text.clear();
        }
        Ok(walk.into_counts())
    }

    /// Appends one university's N-Triples, about 20 MB, to `text`.
    pub fn append_university(&self, university: u32, text: &mut String) -> Counts {
        let mut walk = Walk::new(self, university);
        let mut sink = TextSink::appending_to(std::mem::take(text));
        while walk.next_department(&mut sink).is_some() {}
        *text = sink.text;
        walk.into_counts()
    }

    /// Hands every statement to `sink`, in order, without making text of it.
    ///
    /// # Errors
    /// As [`Lubm::indices`], before the first statement.
    pub fn generate(&self, mut sink: impl FnMut(TripleRef<'_>)) -> Result<Counts, DatagenError> {
        let mut counts = Counts::default();
        for university in self.indices()? {
            counts += &self.generate_university(university, &mut sink);
        }
        Ok(counts)
    }

    /// Hands every statement of one university to `sink`.
    pub fn generate_university(&self, university: u32, sink: impl FnMut(TripleRef<'_>)) -> Counts {
        let mut walk = Walk::new(self, university);
        let mut sink = TripleSink::new(sink);
        while walk.next_department(&mut sink).is_some() {}
        walk.into_counts()
    }

    /// Counts what the data holds without making it: about a millisecond a university.
    ///
    /// # Errors
    /// As [`Lubm::indices`].
    pub fn count(&self) -> Result<Counts, DatagenError> {
        let mut counts = Counts::default();
        for university in self.indices()? {
            let mut walk = Walk::new(self, university);
            while walk.next_department(&mut Nowhere).is_some() {}
            counts += &walk.into_counts();
        }
        Ok(counts)
    }

    /// Different pairs of seed and university start different sequences.
    fn random_seed(&self, university: u32) -> u64 {
        // The benchmark multiplies the seed by an overflown 2^31, which is negative.
        self.seed
            .wrapping_mul((1_u64 << 31).wrapping_neg())
            .wrapping_add(u64::from(university))
    }
}

fn invalid_input(error: DatagenError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}
