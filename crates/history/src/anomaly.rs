//! What can be wrong with a history, and why is it?
//!
//! The names are those of Adya's thesis (1999), of Elle (Kingsbury and Alvaro, 2020) and of Jepsen's reports.

use std::fmt;

use crate::{Key, OperationId, Value};

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependency {
    /// The second wrote the version that follows the first one's (ww).
    Write {
        /// What both wrote.
        key: Key,
        /// Version of the first.
        first: Value,
        /// Version of the second.
        then: Value,
    },
    /// The second read what the first wrote (wr).
    Read {
        /// What was read.
        key: Key,
        /// The version read.
        value: Value,
    },
    /// The first read the state before the version that the second wrote (rw, an anti-dependency).
    AntiDependency {
        /// What was read.
        key: Key,
        /// The version that the first did not see.
        missing: Value,
    },
    /// The first was acknowledged before the second began.
    RealTime {
        /// Nanoseconds between the two.
        by_ns: u64,
    },
}

/// An edge between two transactions of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What comes first.
    pub from: OperationId,
    /// What comes after it.
    pub to: OperationId,
    /// Why.
    pub why: Dependency,
}

/// Which edges a cycle has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CycleClass {
    /// Of writes only.
    G0,
    /// Of writes and reads.
    G1c,
    /// With one anti-dependency: read skew, lost update.
    GSingle,
    /// With several anti-dependencies, no two of which follow each other: no snapshot shows this either.
    GNonadjacent,
    /// With two anti-dependencies that follow each other: write skew. Snapshot isolation allows it.
    G2,
}

/// What is wrong, by name alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "each is described at the variant of `Anomaly` of this name"
)]
pub enum AnomalyName {
    AbortedRead,
    IntermediateRead,
    PartialRead,
    GarbageValue,
    FutureRead,
    DuplicateValue,
    IncompatibleOrder,
    LostUpdate,
    LostWrite,
    Cycle(CycleClass),
    RealTimeCycle(CycleClass),
    StaleRead,
    SnapshotReused,
    SnapshotOrder,
    SnapshotRead,
    SnapshotContradiction,
    ClientWentBack,
    NotMonotonic,
}

/// One thing that is wrong with a history, with the operations that show it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Anomaly {
    /// A value of a transaction that failed was read (G1a).
    AbortedRead {
        /// Who read it.
        read: OperationId,
        /// Who failed.
        writer: OperationId,
        /// Where.
        key: Key,
        /// The value.
        value: Value,
    },
    /// A value that its own transaction had appended more to was the last one read (G1b).
    IntermediateRead {
        /// Who read it.
        read: OperationId,
        /// Who appended it and more.
        writer: OperationId,
        /// Where.
        key: Key,
        /// The last value read.
        value: Value,
    },
    /// Of what one transaction wrote to two keys, a read of both shows a part.
    PartialRead {
        /// Who read it.
        read: OperationId,
        /// Who wrote both.
        writer: OperationId,
        /// What is shown.
        shown: (Key, Value),
        /// What is not.
        missing: (Key, Value),
    },
    /// A value that nobody wrote to this key was read.
    GarbageValue {
        /// Who read it.
        read: OperationId,
        /// Where.
        key: Key,
        /// The value.
        value: Value,
    },
    /// A value was read that the same transaction wrote after it had read (Adya's internal consistency).
    FutureRead {
        /// Who read and wrote it.
        read: OperationId,
        /// Where.
        key: Key,
        /// The value.
        value: Value,
    },
    /// A list has a value twice.
    DuplicateValue {
        /// Who read it.
        read: OperationId,
        /// Which list.
        key: Key,
        /// The value.
        value: Value,
    },
    /// Neither of two lists of one key is a prefix of the other.
    IncompatibleOrder {
        /// Who read them; the second has the longest list of this key.
        reads: [OperationId; 2],
        /// Which list.
        key: Key,
        /// The first position at which they differ.
        position: usize,
    },
    /// Two transactions read one version of a key, and both wrote the next.
    LostUpdate {
        /// The two.
        writers: [OperationId; 2],
        /// What both read and wrote.
        key: Key,
        /// The version that both read; `None` for the state before all writes.
        version: Option<Value>,
    },
    /// An acknowledged write is in no final read of its key.
    LostWrite {
        /// Whose write it is.
        writer: OperationId,
        /// A final read.
        read: OperationId,
        /// Where.
        key: Key,
        /// The value.
        value: Value,
    },
    /// Each of these transactions comes before the next, and the last before the first.
    Cycle {
        /// Which edges it has, those of real time aside.
        class: CycleClass,
        /// True if it needs an edge of real time.
        real_time: bool,
        /// The edges, each from where the one before ends.
        edges: Vec<Edge>,
    },
    /// A read does not show a write that was acknowledged before the read began.
    StaleRead {
        /// Who read.
        read: OperationId,
        /// Whose write is not shown: of those, the one acknowledged first.
        writer: OperationId,
        /// Where.
        key: Key,
        /// The value that is not shown.
        value: Value,
        /// Nanoseconds from the acknowledgement to the begin of the read.
        by_ns: u64,
    },
    /// Two acknowledged writes have one snapshot number.
    SnapshotReused {
        /// The two.
        writers: [OperationId; 2],
        /// Their number.
        snapshot: u64,
    },
    /// Of two values in a list, the later one has the smaller snapshot number.
    SnapshotOrder {
        /// The two, as in the list.
        writers: [OperationId; 2],
        /// Which list.
        key: Key,
        /// Their numbers.
        snapshots: [u64; 2],
    },
    /// A read at a snapshot does not show exactly the writes up to its number.
    SnapshotRead {
        /// Who read.
        read: OperationId,
        /// The snapshot that was read.
        snapshot: u64,
        /// A write that is shown and should not be, or the reverse.
        writer: OperationId,
        /// Where.
        key: Key,
        /// The number of this write.
        number: u64,
        /// True if the read shows it.
        shown: bool,
    },
    /// No snapshot number fits a write whose outcome, or number, is unknown but which was seen.
    SnapshotContradiction {
        /// Whose write it is.
        writer: OperationId,
        /// Its number is above this one, because of this operation.
        above: (u64, OperationId),
        /// Its number is at most this one, because of this operation.
        at_most: (u64, OperationId),
    },
    /// A client saw a smaller snapshot number than before.
    ClientWentBack {
        /// Its two operations, in order.
        operations: [OperationId; 2],
        /// Their numbers.
        snapshots: [u64; 2],
    },
    /// An operation has a smaller snapshot number than one acknowledged before it began.
    NotMonotonic {
        /// The two, in order.
        operations: [OperationId; 2],
        /// Their numbers.
        snapshots: [u64; 2],
    },
}

impl Anomaly {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> AnomalyName {
        match self {
            Self::AbortedRead { .. } => AnomalyName::AbortedRead,
            Self::IntermediateRead { .. } => AnomalyName::IntermediateRead,
            Self::PartialRead { .. } => AnomalyName::PartialRead,
            Self::GarbageValue { .. } => AnomalyName::GarbageValue,
            Self::FutureRead { .. } => AnomalyName::FutureRead,
            Self::DuplicateValue { .. } => AnomalyName::DuplicateValue,
            Self::IncompatibleOrder { .. } => AnomalyName::IncompatibleOrder,
            Self::LostUpdate { .. } => AnomalyName::LostUpdate,
            Self::LostWrite { .. } => AnomalyName::LostWrite,
            Self::Cycle {
                class,
                real_time: false,
                ..
            } => AnomalyName::Cycle(*class),
            Self::Cycle { class, .. } => AnomalyName::RealTimeCycle(*class),
            Self::StaleRead { .. } => AnomalyName::StaleRead,
            Self::SnapshotReused { .. } => AnomalyName::SnapshotReused,
            Self::SnapshotOrder { .. } => AnomalyName::SnapshotOrder,
            Self::SnapshotRead { .. } => AnomalyName::SnapshotRead,
            Self::SnapshotContradiction { .. } => AnomalyName::SnapshotContradiction,
            Self::ClientWentBack { .. } => AnomalyName::ClientWentBack,
            Self::NotMonotonic { .. } => AnomalyName::NotMonotonic,
        }
    }

    /// The operations in it, each once.
    #[must_use]
    pub fn operations(&self) -> Vec<OperationId> {
        match self {
            Self::GarbageValue { read, .. }
            | Self::FutureRead { read, .. }
            | Self::DuplicateValue { read, .. } => vec![*read],
            Self::AbortedRead { read, writer, .. }
            | Self::IntermediateRead { read, writer, .. }
            | Self::PartialRead { read, writer, .. }
            | Self::LostWrite { read, writer, .. }
            | Self::StaleRead { read, writer, .. }
            | Self::SnapshotRead { read, writer, .. } => vec![*read, *writer],
            Self::IncompatibleOrder { reads: both, .. }
            | Self::LostUpdate { writers: both, .. }
            | Self::SnapshotReused { writers: both, .. }
            | Self::SnapshotOrder { writers: both, .. }
            | Self::ClientWentBack {
                operations: both, ..
            }
            | Self::NotMonotonic {
                operations: both, ..
            } => both.to_vec(),
            Self::Cycle { edges, .. } => edges.iter().map(|edge| edge.from).collect(),
            Self::SnapshotContradiction {
                writer,
                above,
                at_most,
            } => vec![*writer, above.1, at_most.1],
        }
    }
}

impl fmt::Display for AnomalyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AbortedRead => "aborted read (G1a)",
            Self::IntermediateRead => "intermediate read (G1b)",
            Self::PartialRead => "partial read",
            Self::GarbageValue => "garbage value",
            Self::FutureRead => "future read",
            Self::DuplicateValue => "duplicate value",
            Self::IncompatibleOrder => "incompatible order",
            Self::LostUpdate => "lost update",
            Self::LostWrite => "lost write",
            Self::Cycle(class) => return write!(f, "{class}"),
            Self::RealTimeCycle(class) => return write!(f, "{class}-real-time"),
            Self::StaleRead => "stale read",
            Self::SnapshotReused => "snapshot number used twice",
            Self::SnapshotOrder => "snapshot numbers against the list",
            Self::SnapshotRead => "read unlike its snapshot",
            Self::SnapshotContradiction => "no snapshot number fits",
            Self::ClientWentBack => "client went back",
            Self::NotMonotonic => "not monotonic",
        })
    }
}

impl fmt::Display for CycleClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::G0 => "G0",
            Self::G1c => "G1c",
            Self::GSingle => "G-single",
            Self::GNonadjacent => "G-nonadjacent",
            Self::G2 => "G2",
        })
    }
}

impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to, why } = self;
        match why {
            Dependency::Write { key, first, then } => {
                write!(f, "{to} wrote {then} to {key} after {first} of {from} (ww)")
            }
            Dependency::Read { key, value } => {
                write!(f, "{to} read {value} of {key}, which {from} wrote (wr)")
            }
            Dependency::AntiDependency { key, missing } => {
                write!(
                    f,
                    "{from} read {key} without {missing}, which {to} wrote (rw)"
                )
            }
            Dependency::RealTime { by_ns } => {
                write!(f, "{from} ended {by_ns} ns before {to} began")
            }
        }
    }
}

/// One line that names the anomaly, its operations and the reason for each edge.
impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name())?;
        match self {
            Self::AbortedRead {
                read,
                writer,
                key,
                value,
            } => {
                write!(
                    f,
                    "{read} read {value} of {key}, but {writer}, which wrote it, failed"
                )
            }
            Self::IntermediateRead {
                read,
                writer,
                key,
                value,
            } => {
                write!(
                    f,
                    "{read} read {key} up to {value}, after which {writer} itself appended more"
                )
            }
            Self::PartialRead {
                read,
                writer,
                shown,
                missing,
            } => write!(
                f,
                "{read} shows {} of {} but not {} of {}, both written by {writer}",
                shown.1, shown.0, missing.1, missing.0
            ),
            Self::GarbageValue { read, key, value } => {
                write!(f, "{read} read {value} of {key}, which nobody wrote there")
            }
            Self::FutureRead { read, key, value } => {
                write!(f, "{read} read {value} of {key}, which it wrote only then")
            }
            Self::DuplicateValue { read, key, value } => {
                write!(f, "{read} read {value} of {key} twice")
            }
            Self::IncompatibleOrder {
                reads: [one, other],
                key,
                position,
            } => {
                write!(
                    f,
                    "{one} and {other} read lists of {key} that differ at position {position}"
                )
            }
            Self::LostUpdate {
                writers: [one, other],
                key,
                version,
            } => {
                write!(f, "{one} and {other} both wrote {key} after reading ")?;
                match version {
                    Some(version) => write!(f, "it at {version}"),
                    None => f.write_str("it before all writes"),
                }
            }
            Self::LostWrite {
                writer,
                read,
                key,
                value,
            } => {
                write!(
                    f,
                    "{writer} was acknowledged, but no final read of {key} shows {value}; one is {read}"
                )
            }
            Self::Cycle { edges, .. } => {
                for (place, edge) in edges.iter().enumerate() {
                    let between = if place == 0 { "" } else { "; " };
                    write!(f, "{between}{edge}")?;
                }
                Ok(())
            }
            Self::StaleRead {
                read,
                writer,
                key,
                value,
                by_ns,
            } => write!(
                f,
                "{read} read {key} without {value}, of which {writer} was acknowledged {by_ns} ns before {read} began"
            ),
            _ => self.describe_numbers(f),
        }
    }
}

impl Anomaly {
    fn describe_numbers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SnapshotReused {
                writers: [one, other],
                snapshot,
            } => {
                write!(f, "{one} and {other} both made snapshot {snapshot}")
            }
            Self::SnapshotOrder {
                writers: [one, other],
                key,
                snapshots: [first, then],
            } => write!(
                f,
                "in {key}, {one} (snapshot {first}) comes before {other} (snapshot {then})"
            ),
            Self::SnapshotRead {
                read,
                snapshot,
                writer,
                key,
                number,
                shown,
            } => {
                let shows = if *shown { "shows" } else { "does not show" };
                write!(
                    f,
                    "{read}, at snapshot {snapshot}, {shows} in {key} what {writer} wrote at {number}"
                )
            }
            Self::SnapshotContradiction {
                writer,
                above,
                at_most,
            } => write!(
                f,
                "{writer} has a number above {} because of {}, and of at most {} because of {}",
                above.0, above.1, at_most.0, at_most.1
            ),
            Self::ClientWentBack {
                operations: [one, other],
                snapshots: [first, then],
            } => {
                write!(
                    f,
                    "a client saw snapshot {then} in {other} after {first} in {one}"
                )
            }
            Self::NotMonotonic {
                operations: [one, other],
                snapshots: [first, then],
            } => write!(
                f,
                "{other} saw snapshot {then}, and {one} had ended before with {first}"
            ),
            _ => Ok(()),
        }
    }
}
