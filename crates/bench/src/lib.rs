//! How fast is it, and how much memory does it take? Measurements on the Lehigh University
//! Benchmark, for `jindou bench` and for the program `bench-peers`.
//!
//! [`lubm::measure`] is the whole of the first: it generates the data (kept in a file), loads it,
//! runs the seven queries several times in several ways and the mixed light load, and gives a
//! [`Report`] that prints as aligned tables and serializes as JSON. What needs a process of its
//! own, such as memory after a load, is done by [`child`].
//!
//! Every way of running a query must give the same number of rows; otherwise there is no report.

#![forbid(unsafe_code)]

pub mod bulk;
pub mod child;
pub mod citybench;
#[cfg(target_os = "linux")]
pub mod cluster;
pub mod counts;
pub mod data;
pub mod emulate;
mod error;
pub mod figure;
pub mod generated;
pub mod graphs;
pub mod hostile;
pub mod http;
pub mod ingest;
mod light;
pub mod lsbench;
pub mod lubm;
pub mod machine;
mod made;
pub mod merges;
pub mod nodes;
pub mod operators;
pub mod percentiles;
pub mod plot;
pub mod report;
pub mod run;
pub mod running;
pub mod scale;
pub mod served;
mod serving;
mod settle;
mod store_folder;
pub mod table;
pub mod timing;
pub mod together;
pub mod turns;
pub mod updates;

pub use error::BenchError;
pub use report::Report;
