//! Could these transactions have happened one after the other?
//!
//! Clients record what they asked of a database and what they heard, as a list of [`Operation`]s; [`check`] says whether a
//! database of a [`Level`] can have answered so, and otherwise names each [`Anomaly`], the operations in it and
//! why one comes before the other. It works in the manner of Elle (Kingsbury and Alvaro, 2020): lists to which unique
//! values are appended show the order of all writes before a read, so that cycles can be looked for in linear time.
//! [`workload`] makes such operations from a seed, as SPARQL texts, and reads their answers.
//!
//! ```
//! use jindou_history::{Check, Key, Kind, Level, Operation, Outcome, Value, check};
//! # fn main() -> Result<(), jindou_history::HistoryError> {
//! let operation = |begun, ended, kind| Operation {
//!     client: 0,
//!     begun,
//!     ended: Some(ended),
//!     kind,
//!     outcome: Outcome::Done { snapshot: None },
//! };
//! let history = [
//!     operation(0, 5, Kind::Append { appends: vec![(Key(1), Value(7))] }),
//!     operation(9, 10, Kind::Read { keys: vec![Key(1)], lists: vec![vec![]] }),
//! ];
//! assert!(check(&history, &Check::new(Level::SnapshotIsolation))?.is_clean());
//! let report = check(&history, &Check::new(Level::StrictSerializable))?;
//! assert!(report.to_string().contains("T0 was acknowledged 4 ns before T1 began"));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod anomaly;
mod check;
mod cycles;
mod edges;
mod graph;
mod operation;
mod orders;
mod random;
mod reads;
mod registers;
mod report;
mod snapshots;
pub mod sums;
pub mod workload;

pub use anomaly::{Anomaly, AnomalyName, CycleClass, Dependency, Edge};
pub use check::{Check, HistoryError, Level, check};
pub use operation::{Key, Kind, Operation, OperationId, Outcome, Value};
pub use random::Random;
pub use report::{MOST_EXAMPLES, Report, Sizes};
