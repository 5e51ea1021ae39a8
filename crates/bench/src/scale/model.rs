//! What would a query take on many machines, by what it was counted to do on a few nodes?
//!
//! A query in place on M machines computes what it does on one, reads its share of lists from others, and waits for a
//! batch of reads as often as it did when it was counted:
//!
//! `time = alone + reads * each + waits * latency + bytes / bandwidth`
//!
//! By fork-join it computes its share of what it does on one, and waits for messages:
//!
//! `time = alone / M + hops * 2 * (latency + wake) + messages * each / M + bytes / bandwidth`
//!
//! Of N nodes, keys are elsewhere in (N - 1) / N of all cases, so counts grow from N to M by that. What a read costs
//! beside its wait is fitted to the times in place of all queries. The faster of both ways is what the engine takes. The
//! network is not shared with anybody, and no machine is slower than another.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::nodes::NodesFigures;

/// What lies between machines.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Gigabits a second of each machine.
    pub gigabits: f64,
    /// Until a one-sided read is there, in microseconds.
    pub latency_us: f64,
    /// Until a thread that sleeps has begun with a message, in microseconds.
    pub wake_us: f64,
}

impl Default for Link {
    /// A card of 100 Gb/s with one-sided reads.
    fn default() -> Self {
        Self {
            gigabits: 100.0,
            latency_us: 2.0,
            wake_us: 10.0,
        }
    }
}

/// What a query was counted to do on some nodes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Its name.
    pub query: String,
    /// How many nodes these were.
    pub nodes: u32,
    /// Milliseconds on one node, in place on these.
    pub alone_ms: f64,
    /// See `alone_ms`.
    pub in_place_ms: f64,
    /// Lists read of other nodes in place, their bytes, and how often it waited for some.
    pub reads: f64,
    /// See `reads`.
    pub read_bytes: f64,
    /// See `reads`.
    pub waits: f64,
    /// Sub-queries by fork-join, and their bytes.
    pub sub_queries: f64,
    /// See `sub_queries`.
    pub sent_bytes: f64,
}

impl Counted {
    /// The counts of a measurement on so many nodes.
    pub(super) fn of(figures: &NodesFigures, nodes: u32) -> Self {
        let (place, fork) = (&figures.in_place, &figures.fork_join);
        Self {
            query: figures.name.clone(),
            nodes,
            alone_ms: figures.one_ms,
            in_place_ms: figures.in_place_ms,
            reads: place.reads as f64,
            read_bytes: place.read_bytes as f64,
            waits: place.read_batches as f64,
            sub_queries: fork.sub_queries as f64,
            sent_bytes: (fork.bytes + fork.read_bytes) as f64,
        }
    }

    /// How many times as much goes to others on so many machines.
    fn grown(&self, machines: u32) -> f64 {
        let elsewhere = |nodes: u32| f64::from(nodes - 1) / f64::from(nodes);
        elsewhere(machines) / elsewhere(self.nodes)
    }
}

/// What bounds a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// What it computes.
    Computing,
    /// The work of reads, beside waiting for them.
    Reads,
    /// Waiting for reads, one after the other.
    Waits,
    /// Messages, and the threads that they wake.
    Messages,
    /// Bytes on the way.
    Bytes,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Computing => "computing",
            Self::Reads => "reads",
            Self::Waits => "waits",
            Self::Messages => "messages",
            Self::Bytes => "bytes",
        })
    }
}

/// What a query is expected to take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Its name.
    pub query: String,
    /// On so many machines.
    pub machines: u32,
    /// In milliseconds, in place,
    pub in_place_ms: f64,
    /// by fork-join,
    pub fork_join_ms: f64,
    /// and what takes the most of the faster of both.
    pub bound: Bound,
}

/// The parts of a time, in milliseconds.
type Parts = Vec<(Bound, f64)>;

/// Costs by which counts become times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// What a read costs beside its wait, in microseconds: fitted.
    pub read_us: f64,
    /// What lies between machines.
    pub link: Link,
}

impl Model {
    /// Fits the cost of a read: least squares of what queries take longer in place on nodes that share memory than on
    /// one.
    #[must_use]
    pub fn fitted(counted: &[Counted], link: Link) -> Self {
        let product: f64 = counted
            .iter()
            .map(|query| query.reads * (query.in_place_ms - query.alone_ms))
            .sum();
        let squares: f64 = counted.iter().map(|query| query.reads * query.reads).sum();
        let read_us = match squares > 0.0 {
            true => (product / squares * 1e3).max(0.0),
            false => 0.0,
        };
        Self { read_us, link }
    }

    /// What the model says of the time in place on the nodes where it was counted, which share memory.
    #[must_use]
    pub fn on_shared_memory(&self, query: &Counted) -> f64 {
        query.alone_ms + query.reads * self.read_us / 1e3
    }

    /// Each query on each number of machines.
    #[must_use]
    pub fn predict(&self, counted: &[Counted], machines: &[u32]) -> Vec<Prediction> {
        let each = |query: &Counted| {
            let of_query = machines.iter().map(|machines| self.of(query, *machines));
            of_query.collect::<Vec<_>>()
        };
        counted.iter().flat_map(each).collect()
    }

    fn of(&self, query: &Counted, machines: u32) -> Prediction {
        let (place, fork) = (
            self.in_place(query, machines),
            self.fork_join(query, machines),
        );
        let sum = |parts: &Parts| parts.iter().map(|(_, ms)| ms).sum::<f64>();
        let (in_place_ms, fork_join_ms) = (sum(&place), sum(&fork));
        let faster = if in_place_ms <= fork_join_ms {
            place
        } else {
            fork
        };
        let bound = faster
            .into_iter()
            .max_by(|one, other| one.1.total_cmp(&other.1));
        Prediction {
            query: query.query.clone(),
            machines,
            in_place_ms,
            fork_join_ms,
            bound: bound.map_or(Bound::Computing, |(bound, _)| bound),
        }
    }

    fn in_place(&self, query: &Counted, machines: u32) -> Parts {
        let grown = query.grown(machines);
        vec![
            (Bound::Computing, query.alone_ms),
            (Bound::Reads, query.reads * grown * self.read_us / 1e3),
            (Bound::Waits, query.waits * self.link.latency_us / 1e3),
            (Bound::Bytes, self.transfer_ms(query.read_bytes * grown)),
        ]
    }

    fn fork_join(&self, query: &Counted, machines: u32) -> Parts {
        let others = f64::from(query.nodes - 1);
        // Each step sends to all others at most.
        let hops = (query.sub_queries / others).ceil();
        let messages = query.sub_queries / others * f64::from(machines - 1) * 2.0;
        let message_us = self.link.latency_us + self.link.wake_us;
        vec![
            (Bound::Computing, query.alone_ms / f64::from(machines)),
            (
                Bound::Messages,
                (hops * 2.0 + messages / f64::from(machines)) * message_us / 1e3,
            ),
            (
                Bound::Bytes,
                self.transfer_ms(query.sent_bytes * query.grown(machines)) / f64::from(machines),
            ),
        ]
    }

    fn transfer_ms(&self, bytes: f64) -> f64 {
        bytes * 8.0 / (self.link.gigabits * 1e9) * 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(reads: f64, alone_ms: f64, in_place_ms: f64) -> Counted {
        Counted {
            query: "q".to_owned(),
            nodes: 3,
            alone_ms,
            in_place_ms,
            reads,
            read_bytes: reads * 100.0,
            waits: 4.0,
            sub_queries: 2.0,
            sent_bytes: 1_000.0,
        }
    }

    #[test]
    fn a_read_costs_what_all_queries_say_together() {
        let queries = [counted(1_000.0, 1.0, 1.05), counted(10.0, 0.5, 0.5005)];
        let model = Model::fitted(&queries, Link::default());
        assert!((model.read_us - 0.05).abs() < 1e-9);
        assert!((model.on_shared_memory(&queries[0]) - 1.05).abs() < 1e-9);
        // A machine that was disturbed does not make reads give time back.
        let slower_alone = [counted(10.0, 2.0, 1.0)];
        assert_eq!(Model::fitted(&slower_alone, Link::default()).read_us, 0.0);
        assert_eq!(Model::fitted(&[], Link::default()).read_us, 0.0);
    }

    #[test]
    fn light_queries_wait_and_heavy_ones_are_shared_out() {
        let queries = [counted(10.0, 0.003, 0.0035), counted(1e6, 100.0, 150.0)];
        let model = Model::fitted(&queries, Link::default());
        let [light, _, heavy, heavier] = &model.predict(&queries, &[8, 64])[..] else {
            panic!("two queries on two numbers of machines");
        };
        assert_eq!(light.bound, Bound::Waits);
        // Four waits of 2 us, 0.003 ms, and reads and bytes of next to nothing.
        assert!((0.011..0.013).contains(&light.in_place_ms), "{light:?}");
        assert!(light.in_place_ms < light.fork_join_ms);
        assert!(heavy.fork_join_ms < heavy.in_place_ms);
        assert!(heavier.fork_join_ms < heavy.fork_join_ms);
        assert_eq!(heavy.bound, Bound::Computing);
        // Seven eighths of keys are elsewhere instead of two thirds.
        let bytes = 1e6 * 100.0 * (7.0 / 8.0) / (2.0 / 3.0) * 8.0 / 1e11 * 1e3;
        let reads = 1e6 * (7.0 / 8.0) / (2.0 / 3.0) * model.read_us / 1e3;
        assert!((heavy.in_place_ms - (100.0 + 0.008 + bytes + reads)).abs() < 1e-6);
    }
}
