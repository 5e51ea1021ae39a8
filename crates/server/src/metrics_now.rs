//! How is the server at the moment of a scrape, as Prometheus has it?

use std::fmt;
use std::sync::Arc;

use jindou_brokers::SourceStatus;
use jindou_engine::{ContinuousStatus, Failure, GraphSizes, MemoryPool, StreamStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, NoLabelSet,
};
use prometheus_client::metrics::MetricType;

use crate::admission::Figures;
use crate::broker_metrics::encode_brokers;
use crate::cluster::ClusterNow;
use crate::cluster_metrics::encode_cluster;
use crate::process_metrics::encode_process;
use crate::sinks::Sink;

/// Label of the default graph, and of all that are not named. No graph has such a name: none is an IRI.
const DEFAULT_GRAPH: &str = "default";
const OTHER_GRAPHS: &str = "other";

/// What is told beside the counters.
pub(crate) struct Now {
    pub(crate) graphs: GraphSizes,
    pub(crate) uptime_seconds: f64,
    pub(crate) in_flight: usize,
    pub(crate) connections: usize,
    pub(crate) heavy: Figures,
    pub(crate) memory: Option<Arc<MemoryPool>>,
    /// Bytes of documents that wait in temporary files.
    pub(crate) spooled_bytes: u64,
    pub(crate) failures: Vec<Failure>,
    pub(crate) streams: Vec<StreamStatus>,
    pub(crate) continuous: Vec<ContinuousStatus>,
    /// With the names of their streams.
    pub(crate) sources: Vec<(String, SourceStatus)>,
    pub(crate) sinks: Vec<Sink>,
    /// Clients that read results of continuous queries.
    pub(crate) readers: usize,
    /// Lines of logs that were dropped, with the names of the logs.
    pub(crate) dropped_lines: Vec<(&'static str, u64)>,
    /// None where the database is no node of one.
    pub(crate) cluster: Option<ClusterNow>,
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Now").finish_non_exhaustive()
    }
}

impl Collector for Now {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Figure(encoder);
        self.encode_data(&mut out)?;
        self.encode_work(&mut out)?;
        self.encode_streams(&mut out)?;
        self.encode_continuous(&mut out)?;
        encode_brokers(&mut out, &self.sources, &self.sinks)?;
        encode_cluster(&mut out, self.cluster.as_ref())?;
        encode_process(&mut out)
    }
}

/// The labels of one value.
pub(crate) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// Writes figures with their names, helps and labels.
pub(crate) struct Figure<'a>(pub(crate) DescriptorEncoder<'a>);

impl Figure<'_> {
    pub(crate) fn gauges<'a, V: EncodeGaugeValue, const N: usize>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (Labels<'a, N>, V)>,
    ) -> fmt::Result {
        let kind = MetricType::Gauge;
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            family.encode_family(&labels)?.encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Names of counters end in `_total`, which is added.
    pub(crate) fn counters<'a, V: EncodeCounterValue, const N: usize>(
        &mut self,
        (name, help): (&str, &str),
        values: impl IntoIterator<Item = (Labels<'a, N>, V)>,
    ) -> fmt::Result {
        let kind = MetricType::Counter;
        let mut family = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in values {
            let mut one = family.encode_family(&labels)?;
            one.encode_counter::<NoLabelSet, V, u64>(&value, None)?;
        }
        Ok(())
    }

    pub(crate) fn gauge(
        &mut self,
        name: (&str, &str),
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        self.gauges(name, [([], value)])
    }

    pub(crate) fn counter(
        &mut self,
        name: (&str, &str),
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        self.counters(name, [([], value)])
    }
}

impl Now {
    /// What is stored, and whether it is sound.
    fn encode_data(&self, out: &mut Figure<'_>) -> fmt::Result {
        let GraphSizes {
            default_graph,
            largest,
            others,
            ..
        } = &self.graphs;
        let named = largest.iter().map(|(name, count)| (&**name, *count));
        let all = named.chain([(DEFAULT_GRAPH, *default_graph), (OTHER_GRAPHS, *others)]);
        out.gauges(
            (
                "jindou_triples",
                "Triples of the default graph, of the largest named graphs, and of all others together.",
            ),
            all.map(|(name, count)| ([("graph", name)], count)),
        )?;
        let is_log = |failure: &Failure| matches!(failure, Failure::Log { .. });
        let is_data = |failure: &Failure| matches!(failure, Failure::Data { .. });
        let is_maintenance = |failure: &Failure| matches!(failure, Failure::Maintenance { .. });
        let parts = [
            ("log", self.failures.iter().any(is_log)),
            ("data", self.failures.iter().any(is_data)),
            ("maintenance", self.failures.iter().any(is_maintenance)),
        ];
        out.gauges(
            (
                "jindou_store_failed",
                "1 where the log failed or the data is damaged, which ends updates, or the last merge or \
                 checkpoint failed.",
            ),
            parts.map(|(part, failed)| ([("part", part)], u32::from(failed))),
        )
    }

    /// What is under way.
    fn encode_work(&self, out: &mut Figure<'_>) -> fmt::Result {
        out.gauge(
            ("jindou_queries_in_flight", "Queries under way."),
            self.in_flight,
        )?;
        let states = [
            ("computing", self.heavy.computing),
            ("queued", self.heavy.queued),
            ("stalled", self.heavy.stalled),
        ];
        out.gauges(
            (
                "jindou_heavy_queries",
                "Heavy queries that compute, wait for their turn, or wait for their clients to read.",
            ),
            states.map(|(state, count)| ([("state", state)], count)),
        )?;
        out.gauge(
            ("jindou_connections", "Connections open."),
            self.connections,
        )?;
        if let Some(pool) = &self.memory {
            out.gauge(
                (
                    "jindou_query_memory_bytes",
                    "Memory that queries hold together, beyond the first MiB of each.",
                ),
                pool.held_bytes(),
            )?;
            out.gauge(
                (
                    "jindou_query_memory_limit_bytes",
                    "Memory that queries may hold together.",
                ),
                pool.limit_bytes(),
            )?;
        }
        out.gauge(
            (
                "jindou_spooled_bytes",
                "Bytes of large documents that requests brought, in temporary files until they are stored.",
            ),
            self.spooled_bytes,
        )?;
        let dropped = self.dropped_lines.iter();
        out.counters(
            (
                "jindou_log_dropped_lines",
                "Lines of a log that were dropped, as it was slower than the requests or could not be written.",
            ),
            dropped.map(|(log, count)| ([("log", *log)], *count)),
        )?;
        let version = env!("CARGO_PKG_VERSION");
        let commit = option_env!("JINDOU_COMMIT").unwrap_or_default();
        out.gauges(
            ("jindou_build_info", "1; which build this is."),
            [([("version", version), ("commit", commit)], 1u32)],
        )?;
        out.gauge(
            ("jindou_uptime_seconds", "Time since the server began."),
            self.uptime_seconds,
        )
    }

    /// What each stream has had.
    fn encode_streams(&self, out: &mut Figure<'_>) -> fmt::Result {
        type Value = fn(&StreamStatus) -> u64;
        let of = |value: Value| {
            let streams = self.streams.iter();
            streams.map(move |stream| ([("stream", &*stream.name)], value(stream)))
        };
        let counters: [(&str, &str, Value); 3] = [
            (
                "jindou_stream_tuples",
                "Tuples that came in time.",
                |stream| stream.tuples,
            ),
            ("jindou_stream_late", "Tuples that came late.", |stream| {
                stream.late
            }),
            (
                "jindou_stream_absorbed",
                "Tuples that were stored in a graph.",
                |stream| stream.absorbed,
            ),
        ];
        for (name, help, value) in counters {
            out.counters((name, help), of(value))?;
        }
        out.gauges(
            ("jindou_stream_window_bytes", "Memory of the windows."),
            of(|stream| stream.window_bytes),
        )?;
        out.gauges(
            (
                "jindou_stream_waiting_bytes",
                "Memory of tuples whose batch is not complete.",
            ),
            of(|stream| stream.waiting_bytes),
        )
    }

    /// What each continuous query has done.
    fn encode_continuous(&self, out: &mut Figure<'_>) -> fmt::Result {
        type Value = fn(&ContinuousStatus) -> u64;
        let counters: [(&str, &str, Value); 3] = [
            (
                "jindou_continuous_executions",
                "Instants at which a continuous query was evaluated.",
                |query| query.executions,
            ),
            (
                "jindou_continuous_failures",
                "Evaluations that ended with an error.",
                |query| query.failures,
            ),
            (
                "jindou_continuous_rows",
                "Rows and triples found.",
                |query| query.rows,
            ),
        ];
        let of = |query| [("query", query)];
        for (name, help, value) in counters {
            let queries = self.continuous.iter();
            let values = queries.map(|query| (of(&*query.name), value(query)));
            out.counters((name, help), values)?;
        }
        let queries = self.continuous.iter();
        out.counters(
            ("jindou_continuous_seconds", "Time that evaluations took."),
            queries.map(|query| (of(&*query.name), query.seconds)),
        )?;
        out.gauge(
            (
                "jindou_result_readers",
                "Clients that read results of continuous queries.",
            ),
            self.readers,
        )
    }

    #[cfg(test)]
    pub(crate) fn example() -> Self {
        let mut graphs = GraphSizes::default();
        graphs.default_graph = 7;
        graphs.largest = vec![("http://e/\"g\"".to_owned(), 5)];
        graphs.others = 3;
        Self {
            graphs,
            uptime_seconds: 0.5,
            in_flight: 1,
            connections: 3,
            heavy: Figures {
                computing: 2,
                queued: 4,
                stalled: 0,
            },
            memory: Some(Arc::new(MemoryPool::new(99))),
            spooled_bytes: 0,
            failures: Vec::new(),
            streams: Vec::new(),
            continuous: Vec::new(),
            sources: Vec::new(),
            sinks: Vec::new(),
            readers: 0,
            dropped_lines: vec![("access", 2)],
            cluster: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    #[test]
    fn what_is_now_is_said_with_its_labels() {
        let text = Metrics::new().text(Now::example());
        let build = format!(
            "jindou_build_info{{version=\"{}\",commit=\"",
            env!("CARGO_PKG_VERSION")
        );
        for begun in [
            "jindou_triples{graph=\"default\"} 7\n",
            "jindou_triples{graph=\"http://e/\\\"g\\\"\"} 5\n",
            "jindou_triples{graph=\"other\"} 3\n",
            "jindou_queries_in_flight 1\n",
            "jindou_heavy_queries{state=\"queued\"} 4\n",
            "jindou_query_memory_limit_bytes 99\n",
            "jindou_store_failed{part=\"log\"} 0\n",
            "jindou_log_dropped_lines_total{log=\"access\"} 2\n",
            "jindou_uptime_seconds 0.5\n",
            &build,
        ] {
            assert!(text.contains(&format!("\n{begun}")), "{begun} in\n{text}");
        }
        #[cfg(target_os = "linux")]
        for (name, least) in [
            ("process_resident_memory_bytes", 1e6),
            ("process_virtual_memory_bytes", 1e6),
            // It may have had none yet that is counted.
            ("process_cpu_seconds_total", 0.),
            ("process_open_fds", 3.),
            ("process_max_fds", 3.),
            ("process_start_time_seconds", 1.7e9),
            ("process_threads", 1.),
        ] {
            let values = text.lines().filter_map(|line| line.strip_prefix(name));
            let values = values.filter_map(|value| value.trim().parse().ok());
            let values: Vec<f64> = values.collect();
            assert!(values.len() == 1 && values[0] >= least, "{name} in\n{text}");
        }
    }
}
