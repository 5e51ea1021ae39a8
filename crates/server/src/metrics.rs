//! What has this server done, as Prometheus counts it?
//!
//! What is counted as it happens is here; what is read off at a scrape is [`Now`]'s.

use std::fmt::{Error, Write};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use hyper::StatusCode;
use jindou_engine::UpdateReport;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::metrics_now::Now;

/// Upper bounds of the histograms' buckets, in seconds.
const BOUNDS: [f64; 16] = [
    0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1., 2.5, 10.,
    60., 300.,
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

/// Labels with one name, whose value is one of a few.
type Label = [(&'static str, &'static str); 1];
type Seconds = Counter<f64, AtomicU64>;

/// The status of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: u16,
}

/// Counters, updated without waiting.
pub(crate) struct Metrics {
    registry: Registry,
    ended: [Counter; Ending::ALL.len()],
    query_seconds: Histogram,
    moved: Counter,
    rejected: [Counter; Rejected::ALL.len()],
    rows: Counter,
    bytes: Counter,
    written: [Counter; Ending::ALL.len()],
    written_seconds: Seconds,
    update_seconds: Histogram,
    inserted: Counter,
    deleted: Counter,
    responses: Family<Code, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut registry = Registry::default();
        let registry_ref = &mut registry;
        let ended = labelled(
            registry_ref,
            ("jindou_queries", "Queries by how they ended"),
            Ending::ALL.map(|ending| [("status", ending.name())]),
        );
        let query_seconds = Histogram::new(BOUNDS);
        registry_ref.register(
            "jindou_query_duration_seconds",
            "Time from a query's arrival to its last row",
            query_seconds.clone(),
        );
        let rejected = labelled(
            registry_ref,
            (
                "jindou_rejected",
                "Queries that met a bound of the server, by which",
            ),
            Rejected::ALL.map(|why| [("reason", why.name())]),
        );
        let written = labelled(
            registry_ref,
            ("jindou_updates", "Updates by how they ended"),
            Ending::ALL.map(|ending| [("status", ending.name())]),
        );
        let update_seconds = Histogram::new(BOUNDS);
        registry_ref.register(
            "jindou_update_duration_seconds",
            "Time from an update's arrival to its answer",
            update_seconds.clone(),
        );
        let written_seconds = Seconds::default();
        registry_ref.register(
            "jindou_update_seconds",
            "Time that updates took",
            written_seconds.clone(),
        );
        let responses = Family::default();
        registry_ref.register(
            "jindou_responses",
            "Answers by their status",
            Family::clone(&responses),
        );
        let mut one = |name: &str, help: &str| {
            let counter = Counter::default();
            registry_ref.register(name, help, counter.clone());
            counter
        };
        Self {
            ended,
            query_seconds,
            rejected,
            written,
            written_seconds,
            update_seconds,
            responses,
            moved: one(
                "jindou_queries_moved",
                "Queries that were given a thread of their own",
            ),
            rows: one("jindou_rows", "Rows and triples returned"),
            bytes: one("jindou_result_bytes", "Bytes of results before compression"),
            inserted: one("jindou_quads_inserted", "Quads added by updates"),
            deleted: one("jindou_quads_deleted", "Quads removed by updates"),
            registry,
        }
    }

    /// Counts a query that was given a thread of its own.
    pub(crate) fn moved(&self) {
        self.moved.inc();
    }

    /// Counts a query that met a bound of the server's.
    pub(crate) fn rejected(&self, why: Rejected) {
        self.rejected[why as usize].inc();
    }

    /// Counts an answer to a request.
    pub(crate) fn responded(&self, status: StatusCode) {
        let code = status.as_u16();
        self.responses.get_or_create(&Code { code }).inc();
    }

    pub(crate) fn record(&self, ending: Ending, elapsed: Duration, rows: u64, bytes: u64) {
        self.ended[ending as usize].inc();
        self.query_seconds.observe(elapsed.as_secs_f64());
        self.rows.inc_by(rows);
        self.bytes.inc_by(bytes);
    }

    /// Counts an update, and what it did.
    pub(crate) fn wrote(&self, ending: Ending, elapsed: Duration, report: Option<&UpdateReport>) {
        self.written[ending as usize].inc();
        self.written_seconds.inc_by(elapsed.as_secs_f64());
        self.update_seconds.observe(elapsed.as_secs_f64());
        if let Some(report) = report {
            self.inserted.inc_by(report.inserted);
            self.deleted.inc_by(report.deleted);
        }
        tracing::debug!(ending = ending.name(), ?elapsed, ?report, "update");
    }

    /// All figures, in Prometheus' text format 0.0.4.
    pub(crate) fn text(&self, now: Now) -> String {
        let mut text = String::with_capacity(8192);
        self.write(now, &mut text).expect("a String takes all");
        text
    }

    fn write(&self, now: Now, out: &mut impl Write) -> Result<(), Error> {
        encode(out, &self.registry)?;
        let mut momentary = Registry::default();
        momentary.register_collector(Box::new(now));
        encode(out, &momentary)
    }
}

/// A counter for each of some labels, which all are there from the start.
fn labelled<const N: usize>(
    registry: &mut Registry,
    (name, help): (&str, &str),
    labels: [Label; N],
) -> [Counter; N] {
    let family = Family::<Label, Counter>::default();
    registry.register(name, help, family.clone());
    labels.map(|label| family.get_or_create_owned(&label))
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
        metrics.wrote(Ending::Refused, Duration::from_millis(2), None);
        metrics.rejected(Rejected::Rows);
        metrics.responded(StatusCode::NOT_FOUND);
        let text = metrics.text(Now::example());
        for line in [
            "# TYPE jindou_queries_total counter",
            "jindou_queries_total{status=\"ok\"} 3",
            "jindou_query_duration_seconds_bucket{le=\"5e-05\"} 1",
            "jindou_query_duration_seconds_bucket{le=\"0.0001\"} 2",
            "jindou_query_duration_seconds_bucket{le=\"300\"} 2",
            "jindou_query_duration_seconds_bucket{le=\"+Inf\"} 3",
            "jindou_query_duration_seconds_count 3",
            "jindou_rows_total 6",
            "jindou_result_bytes_total 30",
            "jindou_rejected_total{reason=\"rows\"} 1",
            "jindou_updates_total{status=\"refused\"} 1",
            "jindou_update_duration_seconds_bucket{le=\"0.0025\"} 1",
            "jindou_update_seconds_total 0.002",
            "jindou_responses_total{code=\"404\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }

    #[test]
    fn no_name_is_given_twice() {
        let text = Metrics::new().text(Now::example());
        let types = text.lines().filter(|line| line.starts_with("# TYPE "));
        let mut names: Vec<&str> = types.filter_map(|line| line.split(' ').nth(2)).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
