//! How is the report of `bench cluster` printed?

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::client::Failed;
use super::growth::Growth;
use super::ingest::UnderIngest;
use super::ledger::UpdateCounts;
use super::samples::{FailedRequest, FailureReport, Failures, Spread};
use super::throughput::Throughput;
use crate::machine::Machine;
use crate::table::{Table, bytes, millis, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, Serialize)]
pub struct ClusterReport {
    /// Where.
    pub machine: Machine,
    /// Version of Jindou.
    pub version: String,
    /// Whether it was compiled with optimization.
    pub optimized: bool,
    /// Universities of the data.
    pub universities: u32,
    /// Nodes of the cluster.
    pub nodes: u32,
    /// Clients of [`throughput`](Self::throughput).
    pub clients: usize,
    /// One server, all nodes, and all nodes but one.
    pub throughput: Vec<Throughput>,
    /// What kills came to.
    pub failures: FailureReport,
    /// What one more node came to.
    pub growth: Growth,
    /// One server, and all nodes.
    pub ingest: Vec<UnderIngest>,
    /// The updates of the cluster.
    pub updates: UpdateCounts,
}

impl ClusterReport {
    fn throughput(&self) -> Table {
        let mut table = Table::new([
            "answered a second",
            "light queries",
            "to one server",
            "to all nodes",
            "failed",
            "updates",
            "to one server",
            "to all nodes",
            "failed",
        ]);
        let ratio = |own: f64, of: Option<f64>| {
            of.map_or_else(String::new, |of| format!("{:.2}", own / of))
        };
        for (number, row) in self.throughput.iter().enumerate() {
            let to = |place: usize| (number > place).then(|| &self.throughput[place]);
            let (queries, updates) = (row.queries_per_second, row.updates_per_second);
            table.row([
                row.servers.clone(),
                thousands(queries as u64),
                ratio(queries, to(0).map(|base| base.queries_per_second)),
                ratio(queries, to(1).map(|base| base.queries_per_second)),
                row.queries_failed.to_string(),
                thousands(updates as u64),
                ratio(updates, to(0).map(|base| base.updates_per_second)),
                ratio(updates, to(1).map(|base| base.updates_per_second)),
                row.updates_failed.to_string(),
            ]);
        }
        table
    }

    fn failures(&self) -> Table {
        let FailureReport {
            leader,
            follower,
            between,
        } = &self.failures;
        let mut table = Table::new([
            "after kill -9 of",
            "the leader: median",
            "largest",
            "a follower: median",
            "largest",
            "while all were there",
            "unit",
        ]);
        let mut spread = |what: &str, of: fn(&Failures) -> Spread, none: String, unit: &str| {
            let [one, other] = [leader, follower].map(|failures| {
                let Spread { median, max, .. } = of(failures);
                [median, max].map(|value| match unit {
                    "ms" => millis(value),
                    _ => thousands(value as u64),
                })
            });
            let [median, max] = one;
            let [other_median, other_max] = other;
            let what = what.to_owned();
            table.row([
                what,
                median,
                max,
                other_median,
                other_max,
                none,
                unit.to_owned(),
            ]);
        };
        let none = String::new;
        spread("noticed by all others", |of| of.noticed_ms, none(), "ms");
        spread(
            "next update acknowledged",
            |of| of.acknowledged_ms,
            none(),
            "ms",
        );
        let longest = millis(between.longest_query_ms);
        spread(
            "longest light query of others",
            |of| of.longest_query_ms,
            longest,
            "ms",
        );
        spread(
            "started again until in sync",
            |of| of.in_sync_ms,
            none(),
            "ms",
        );
        spread(
            "  with so much to catch up on",
            |of| of.missed,
            none(),
            "transactions",
        );
        table
    }

    fn requests(&self) -> Table {
        let FailureReport {
            leader,
            follower,
            between,
        } = &self.failures;
        let mut table = Table::new([
            "sent to the others",
            "light queries",
            "failed",
            "updates",
            "failed",
        ]);
        for (when, requests) in [
            ("around kills of the leader", &leader.others),
            ("around kills of a follower", &follower.others),
            ("while all were there", between),
        ] {
            table.row([
                when.to_owned(),
                thousands(requests.queries),
                requests.queries_failed.to_string(),
                thousands(requests.updates),
                requests.updates_failed.to_string(),
            ]);
        }
        table
    }

    fn growth(&self) -> Table {
        let mut table = Table::new([
            "sent to the others",
            "for, s",
            "light queries: median, ms",
            "p99, ms",
            "to quiet",
            "failed",
            "updates: median, ms",
            "p99, ms",
            "longest, ms",
            "failed",
        ]);
        let Growth {
            quiet,
            joining,
            leaving,
            ..
        } = &self.growth;
        for (when, phase) in [
            ("before", quiet),
            ("while another node joins", joining),
            ("while it is drained", leaving),
        ] {
            table.row([
                when.to_owned(),
                format!("{:.1}", phase.length_ms / 1e3),
                millis(phase.query_median_ms),
                millis(phase.query_p99_ms),
                format!("{:.2}", phase.query_p99_ms / quiet.query_p99_ms),
                phase.requests.queries_failed.to_string(),
                millis(phase.update_median_ms),
                millis(phase.update_p99_ms),
                millis(phase.longest_update_ms),
                phase.requests.updates_failed.to_string(),
            ]);
        }
        table
    }

    fn ingest(&self) -> Table {
        let columns = self.ingest.iter().flat_map(|under| {
            let servers = &under.servers;
            [
                format!("{servers}: quiet, ms"),
                "beside updates, ms".to_owned(),
                "times".to_owned(),
            ]
        });
        let heading = ["query", "rows"].map(str::to_owned);
        let mut table = Table::new(heading.into_iter().chain(columns));
        let Some(first) = self.ingest.first() else {
            return table;
        };
        for (number, query) in first.queries.iter().enumerate() {
            let figures = self.ingest.iter().flat_map(|under| {
                let query = &under.queries[number];
                let ratio = format!("{:.2}", query.ratio());
                [
                    millis(query.quiet.median_ms),
                    millis(query.busy.median_ms),
                    ratio,
                ]
            });
            let heading = [query.name.to_owned(), thousands(query.rows)];
            table.row(heading.into_iter().chain(figures));
        }
        let means = ["heavy, geometric mean", "light, geometric mean"];
        for (place, what) in means.into_iter().enumerate() {
            let figures = self.ingest.iter().flat_map(|under| {
                let ratio = format!("{:.2}", under.ratios()[place]);
                [String::new(), String::new(), ratio]
            });
            table.row([what.to_owned(), String::new()].into_iter().chain(figures));
        }
        let inserted = self.ingest.iter().flat_map(|under| {
            let rate = thousands(under.triples_per_second as u64);
            [String::new(), rate, String::new()]
        });
        let heading = ["triples inserted a second", ""].map(str::to_owned);
        table.row(heading.into_iter().chain(inserted));
        table
    }

    /// Some of what failed, with its reason.
    fn examples(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut first = |servers: &str, what: &str, failed: &Failed| {
            if let Some(reason) = &failed.first {
                let count = failed.count();
                lines.push(format!(
                    "{servers}: {count} {what} failed, the first by {reason}"
                ));
            }
        };
        for row in &self.throughput {
            first(&row.servers, "light queries", &row.queries_failed);
            first(&row.servers, "updates", &row.updates_failed);
        }
        for row in &self.ingest {
            first(&row.servers, "queries beside updates", &row.queries_failed);
            first(&row.servers, "updates beside queries", &row.updates_failed);
        }
        let FailureReport {
            leader,
            follower,
            between,
        } = &self.failures;
        let Growth {
            quiet,
            joining,
            leaving,
            ..
        } = &self.growth;
        let grown = [quiet, joining, leaving].map(|phase| &phase.requests);
        let killed = [&leader.others, &follower.others, between];
        for requests in killed.into_iter().chain(grown) {
            lines.extend(requests.examples.iter().map(ToString::to_string));
        }
        lines
    }
}

impl Display for FailedRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self.is_update {
            true => "an update",
            false => "a light query",
        };
        write!(f, "{what} at {}", self.node)?;
        if let Some(sent_ms) = self.sent_ms {
            write!(f, ", sent {sent_ms:.0} ms after a kill,")?;
        }
        write!(f, " failed after {:.0} ms: {}", self.took_ms, self.reason)
    }
}

impl Display for ClusterReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self {
            universities,
            nodes,
            clients,
            ..
        } = self;
        writeln!(f, "{}", self.machine)?;
        write!(f, "jindou {}", self.version)?;
        if !self.optimized {
            write!(f, ", compiled without optimization")?;
        }
        writeln!(
            f,
            "; LUBM({universities}), one server and {nodes} nodes, each a process over loopback HTTP, with one etcd\n"
        )?;
        writeln!(f, "{clients} clients:")?;
        writeln!(f, "{}", self.throughput())?;
        let rounds = self.failures.leader.noticed_ms.count;
        writeln!(
            f,
            "{rounds} kills of each, under a light load of queries and updates:"
        )?;
        writeln!(f, "{}", self.failures())?;
        writeln!(f, "{}", self.requests())?;
        let growth = &self.growth;
        writeln!(
            f,
            "another node joins with a copy of {} at {} a second at most: in sync after {:.1} s, with shards after {:.1} s; it has \
             left {:.1} s after it is to be drained:",
            bytes(growth.store_bytes),
            bytes(growth.copy_rate),
            growth.in_sync_ms / 1e3,
            growth.holds_ms / 1e3,
            growth.drained_ms / 1e3,
        )?;
        writeln!(f, "{}", self.growth())?;
        writeln!(
            f,
            "while updates of 1,000 triples come in as fast as they are taken:"
        )?;
        writeln!(f, "{}", self.ingest())?;
        let UpdateCounts {
            acknowledged,
            refused,
            unknown,
        } = self.updates;
        writeln!(
            f,
            "{} updates of the cluster were acknowledged, and are at each node; {} were refused, and are at none; of {} \
             nobody was told",
            thousands(acknowledged),
            thousands(refused),
            thousands(unknown)
        )?;
        for line in self.examples() {
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}
