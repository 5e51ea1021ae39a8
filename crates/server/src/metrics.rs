//! What has this server done, in Prometheus text?

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use jindou_brokers::SourceStatus;
use jindou_engine::{ContinuousStatus, Failure, MemoryPool, StreamStatus, UpdateReport};

use crate::admission::Figures;
use crate::broker_metrics::push_brokers;
use crate::sinks::Sink;

/// Upper bounds of the histogram's buckets, in microseconds.
const BOUNDS_MICROS: [u64; 16] = [
    50,
    100,
    250,
    500,
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    100_000,
    250_000,
    1_000_000,
    2_500_000,
    10_000_000,
    60_000_000,
    300_000_000,
];

/// How a query ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    /// The request or query was wrong, or asked for what cannot be had.
    Refused,
    Unsupported,
    Timeout,
    /// The client went away, or stopped reading.
    Abandoned,
    /// Somebody asked for its end.
    Cancelled,
    /// The server had too much to do, or the query needed too much memory.
    Overload,
    Failed,
}

impl Ending {
    const ALL: [Self; 8] = [
        Self::Ok,
        Self::Refused,
        Self::Unsupported,
        Self::Timeout,
        Self::Abandoned,
        Self::Cancelled,
        Self::Overload,
        Self::Failed,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Refused => "refused",
            Self::Unsupported => "unsupported",
            Self::Timeout => "timeout",
            Self::Abandoned => "abandoned",
            Self::Cancelled => "cancelled",
            Self::Overload => "overload",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::OK => Self::Ok,
            StatusCode::NOT_IMPLEMENTED => Self::Unsupported,
            StatusCode::GATEWAY_TIMEOUT => Self::Timeout,
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::INSUFFICIENT_STORAGE => Self::Overload,
            StatusCode::CONFLICT => Self::Cancelled,
            status if status.is_client_error() => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// Which bound a query met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rejected {
    /// As many heavy queries wait as may.
    QueueFull,
    /// It waited for as long as one may.
    QueueWait,
    /// Its own memory or temporary files, or those of all queries.
    Memory,
    /// Rows of a result.
    Rows,
    /// Its client may not ask for it, or nobody knows who it is.
    Access,
    /// Its address asks too often.
    Rate,
}

impl Rejected {
    const ALL: [Self; 6] = [
        Self::QueueFull,
        Self::QueueWait,
        Self::Memory,
        Self::Rows,
        Self::Access,
        Self::Rate,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::QueueWait => "queue_wait",
            Self::Memory => "memory",
            Self::Rows => "rows",
            Self::Access => "access",
            Self::Rate => "rate",
        }
    }
}

/// What is told beside the counters.
pub(crate) struct Now {
    pub(crate) triples: u64,
    pub(crate) in_flight: usize,
    pub(crate) connections: usize,
    pub(crate) heavy: Figures,
    pub(crate) memory: Option<Arc<MemoryPool>>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) streams: Vec<StreamStatus>,
    pub(crate) continuous: Vec<ContinuousStatus>,
    /// With the names of their streams.
    pub(crate) sources: Vec<(String, SourceStatus)>,
    pub(crate) sinks: Vec<Sink>,
    /// Clients that read results of continuous queries.
    pub(crate) readers: usize,
}

/// Counters, updated without locks.
pub(crate) struct Metrics {
    started: Instant,
    ended: [AtomicU64; Ending::ALL.len()],
    buckets: [AtomicU64; BOUNDS_MICROS.len() + 1],
    total_micros: AtomicU64,
    moved: AtomicU64,
    rejected: [AtomicU64; Rejected::ALL.len()],
    rows: AtomicU64,
    bytes: AtomicU64,
    written: [AtomicU64; Ending::ALL.len()],
    written_micros: AtomicU64,
    inserted: AtomicU64,
    deleted: AtomicU64,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            ended: Default::default(),
            buckets: Default::default(),
            total_micros: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            rejected: Default::default(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            written: Default::default(),
            written_micros: AtomicU64::new(0),
            inserted: AtomicU64::new(0),
            deleted: AtomicU64::new(0),
        }
    }

    /// Counts a query that was given a thread of its own.
    pub(crate) fn moved(&self) {
        self.moved.fetch_add(1, Relaxed);
    }

    /// Counts a query that met a bound of the server's.
    pub(crate) fn rejected(&self, why: Rejected) {
        self.rejected[why as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn record(&self, ending: Ending, elapsed: Duration, rows: u64, bytes: u64) {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_MICROS.partition_point(|&bound| bound < micros);
        self.ended[ending as usize].fetch_add(1, Relaxed);
        self.buckets[bucket].fetch_add(1, Relaxed);
        self.total_micros.fetch_add(micros, Relaxed);
        self.rows.fetch_add(rows, Relaxed);
        self.bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts an update, and what it did.
    pub(crate) fn wrote(&self, ending: Ending, elapsed: Duration, report: Option<&UpdateReport>) {
        let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        self.written[ending as usize].fetch_add(1, Relaxed);
        self.written_micros.fetch_add(micros, Relaxed);
        if let Some(report) = report {
            self.inserted.fetch_add(report.inserted, Relaxed);
            self.deleted.fetch_add(report.deleted, Relaxed);
        }
        tracing::debug!(ending = ending.name(), ?elapsed, ?report, "update");
    }

    fn push_writes(&self, text: &mut String) {
        let name = "jindou_updates_total";
        head(text, name, "counter", "Updates by how they ended.");
        for ending in Ending::ALL {
            let count = self.written[ending as usize].load(Relaxed);
            line(
                text,
                &format!("{name}{{status=\"{}\"}}", ending.name()),
                count,
            );
        }
        let seconds = self.written_micros.load(Relaxed) as f64 / 1e6;
        let counters: [(&str, &str, &dyn std::fmt::Display); 3] = [
            (
                "jindou_update_seconds_total",
                "Time that updates took.",
                &seconds,
            ),
            (
                "jindou_quads_inserted_total",
                "Quads added by updates.",
                &self.inserted.load(Relaxed),
            ),
            (
                "jindou_quads_deleted_total",
                "Quads removed by updates.",
                &self.deleted.load(Relaxed),
            ),
        ];
        for (name, help, value) in counters {
            head(text, name, "counter", help);
            line(text, name, value);
        }
    }

    /// All figures. Reads one file of `/proc`.
    pub(crate) fn text(&self, now: &Now) -> String {
        let mut text = String::with_capacity(4096);
        head(
            &mut text,
            "jindou_queries_total",
            "counter",
            "Queries by how they ended.",
        );
        for ending in Ending::ALL {
            let count = self.ended[ending as usize].load(Relaxed);
            line(
                &mut text,
                &format!("jindou_queries_total{{status=\"{}\"}}", ending.name()),
                count,
            );
        }
        self.push_histogram(&mut text);
        self.push_limits(&mut text, now);
        self.push_writes(&mut text);
        push_streams(&mut text, now);
        push_continuous(&mut text, now);
        push_brokers(&mut text, now);
        let mut one = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            head(&mut text, name, kind, help);
            line(&mut text, name, value);
        };
        one(
            "jindou_queries_in_flight",
            "gauge",
            "Queries under way.",
            &now.in_flight,
        );
        one(
            "jindou_queries_moved_total",
            "counter",
            "Queries that were given a thread of their own.",
            &self.moved.load(Relaxed),
        );
        one(
            "jindou_rows_total",
            "counter",
            "Rows and triples returned.",
            &self.rows.load(Relaxed),
        );
        one(
            "jindou_result_bytes_total",
            "counter",
            "Bytes of results before compression.",
            &self.bytes.load(Relaxed),
        );
        one(
            "jindou_triples",
            "gauge",
            "Triples in the database.",
            &now.triples,
        );
        one(
            "jindou_uptime_seconds",
            "gauge",
            "Time since the server began.",
            &self.started.elapsed().as_secs_f64(),
        );
        if let Some(bytes) = resident_bytes() {
            one(
                "process_resident_memory_bytes",
                "gauge",
                "Resident memory of the process.",
                &bytes,
            );
        }
        text
    }

    fn push_limits(&self, text: &mut String, now: &Now) {
        let name = "jindou_rejected_total";
        head(
            text,
            name,
            "counter",
            "Queries that met a bound of the server, by which.",
        );
        for why in Rejected::ALL {
            let count = self.rejected[why as usize].load(Relaxed);
            line(text, &format!("{name}{{reason=\"{}\"}}", why.name()), count);
        }
        let name = "jindou_heavy_queries";
        head(
            text,
            name,
            "gauge",
            "Heavy queries that compute, wait for their turn, or wait for their clients to read.",
        );
        for (state, count) in [
            ("computing", now.heavy.computing),
            ("queued", now.heavy.queued),
            ("stalled", now.heavy.stalled),
        ] {
            line(text, &format!("{name}{{state=\"{state}\"}}"), count);
        }
        let name = "jindou_store_failed";
        head(
            text,
            name,
            "gauge",
            "1 where the log failed or the data is damaged, which ends updates, or the last merge or \
             checkpoint failed.",
        );
        let is_log = |failure: &Failure| matches!(failure, Failure::Log { .. });
        let is_data = |failure: &Failure| matches!(failure, Failure::Data { .. });
        let is_maintenance = |failure: &Failure| matches!(failure, Failure::Maintenance { .. });
        for (part, failed) in [
            ("log", now.failures.iter().any(is_log)),
            ("data", now.failures.iter().any(is_data)),
            ("maintenance", now.failures.iter().any(is_maintenance)),
        ] {
            line(
                text,
                &format!("{name}{{part=\"{part}\"}}"),
                u8::from(failed),
            );
        }
        let mut gauge = |name: &str, help: &str, value: u64| {
            head(text, name, "gauge", help);
            line(text, name, value);
        };
        gauge(
            "jindou_connections",
            "Connections open.",
            now.connections as u64,
        );
        if let Some(pool) = &now.memory {
            gauge(
                "jindou_query_memory_bytes",
                "Memory that queries hold together, beyond the first MiB of each.",
                pool.held_bytes(),
            );
            gauge(
                "jindou_query_memory_limit_bytes",
                "Memory that queries may hold together.",
                pool.limit_bytes(),
            );
        }
    }

    fn push_histogram(&self, text: &mut String) {
        let name = "jindou_query_duration_seconds";
        head(
            text,
            name,
            "histogram",
            "Time from a query's arrival to its last row.",
        );
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS_MICROS) {
            count += bucket.load(Relaxed);
            line(
                text,
                &format!("{name}_bucket{{le=\"{}\"}}", bound as f64 / 1e6),
                count,
            );
        }
        count += self.buckets[BOUNDS_MICROS.len()].load(Relaxed);
        line(text, &format!("{name}_bucket{{le=\"+Inf\"}}"), count);
        line(
            text,
            &format!("{name}_sum"),
            self.total_micros.load(Relaxed) as f64 / 1e6,
        );
        line(text, &format!("{name}_count"), count);
    }
}

/// What each stream has had. Names need no escapes.
fn push_streams(text: &mut String, now: &Now) {
    type Value = fn(&StreamStatus) -> u64;
    let figures: [(&str, &str, &str, Value); 5] = [
        (
            "jindou_stream_tuples_total",
            "counter",
            "Tuples that came in time.",
            |stream| stream.tuples,
        ),
        (
            "jindou_stream_late_total",
            "counter",
            "Tuples that came late.",
            |stream| stream.late,
        ),
        (
            "jindou_stream_absorbed_total",
            "counter",
            "Tuples that were stored in a graph.",
            |stream| stream.absorbed,
        ),
        (
            "jindou_stream_window_bytes",
            "gauge",
            "Memory of the windows.",
            |stream| stream.window_bytes,
        ),
        (
            "jindou_stream_waiting_bytes",
            "gauge",
            "Memory of tuples whose batch is not complete.",
            |stream| stream.waiting_bytes,
        ),
    ];
    for (name, kind, help, value) in figures {
        head(text, name, kind, help);
        for stream in &now.streams {
            let of = format!("{name}{{stream=\"{}\"}}", stream.name);
            line(text, &of, value(stream));
        }
    }
}

/// What each continuous query has done.
fn push_continuous(text: &mut String, now: &Now) {
    type Value = fn(&ContinuousStatus) -> f64;
    let figures: [(&str, &str, Value); 4] = [
        (
            "jindou_continuous_executions_total",
            "Instants at which a continuous query was evaluated.",
            |query| query.executions as f64,
        ),
        (
            "jindou_continuous_failures_total",
            "Evaluations that ended with an error.",
            |query| query.failures as f64,
        ),
        (
            "jindou_continuous_rows_total",
            "Rows and triples found.",
            |query| query.rows as f64,
        ),
        (
            "jindou_continuous_seconds_total",
            "Time that evaluations took.",
            |query| query.seconds,
        ),
    ];
    for (name, help, value) in figures {
        head(text, name, "counter", help);
        for query in &now.continuous {
            let of = format!("{name}{{query=\"{}\"}}", query.name);
            line(text, &of, value(query));
        }
    }
    let name = "jindou_result_readers";
    head(
        text,
        name,
        "gauge",
        "Clients that read results of continuous queries.",
    );
    line(text, name, now.readers);
}

pub(crate) fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}").expect("a String takes all");
}

pub(crate) fn line(text: &mut String, name: &str, value: impl std::fmt::Display) {
    writeln!(text, "{name} {value}").expect("a String takes all");
}

/// `None` where there is no `/proc`.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_bounds_inclusive() {
        let metrics = Metrics::new();
        for micros in [50, 51, 400_000_000] {
            metrics.record(Ending::Ok, Duration::from_micros(micros), 2, 10);
        }
        metrics.rejected(Rejected::Rows);
        let text = metrics.text(&Now {
            triples: 7,
            in_flight: 1,
            connections: 3,
            heavy: Figures {
                computing: 2,
                queued: 4,
                stalled: 0,
            },
            memory: Some(Arc::new(MemoryPool::new(99))),
            failures: Vec::new(),
            streams: Vec::new(),
            continuous: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            readers: 0,
        });
        for line in [
            "jindou_queries_total{status=\"ok\"} 3",
            "jindou_query_duration_seconds_bucket{le=\"0.00005\"} 1",
            "jindou_query_duration_seconds_bucket{le=\"0.0001\"} 2",
            "jindou_query_duration_seconds_bucket{le=\"300\"} 2",
            "jindou_query_duration_seconds_bucket{le=\"+Inf\"} 3",
            "jindou_rows_total 6",
            "jindou_result_bytes_total 30",
            "jindou_triples 7",
            "jindou_queries_in_flight 1",
            "jindou_rejected_total{reason=\"rows\"} 1",
            "jindou_heavy_queries{state=\"queued\"} 4",
            "jindou_query_memory_limit_bytes 99",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
