//! Which data do the tests and benchmarks run on? Generators of benchmark data, written from
//! published descriptions, deterministic by seed, so that nobody has to download a data set.
//!
//! - [`literals`]: a graph with many different literals.
//! - [`lsbench`]: the Linked Stream Benchmark, a social graph and five streams.
//! - [`lubm`]: the Lehigh University Benchmark, with its queries and its mixed light load.

#![forbid(unsafe_code)]

pub mod literals;
pub mod lsbench;
pub mod lubm;
mod numbers;

/// What a generator refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DatagenError {
    /// A load of queries needs at least one university to draw its constants from.
    #[error("a query load needs data with at least one university")]
    NoUniversities,
    /// University numbers are at most 2^31 - 1, the bound of the benchmark's numbering.
    #[error("{universities} universities starting at number {first} pass the last number, {max}", max = lubm::LAST_UNIVERSITY)]
    TooManyUniversities {
        /// Number of the first university asked for.
        first: u32,
        /// How many were asked for.
        universities: u32,
    },
    /// A social graph needs somebody.
    #[error("a social graph needs at least one user")]
    NoUsers,
    /// A stream has from 0 to 10^8 tuples a second.
    #[error("{rate} is no number of tuples a second; a stream has from 0 to 10^8")]
    NoRate {
        /// What was given.
        rate: String,
    },
}
