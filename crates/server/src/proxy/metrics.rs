//! What has a proxy done, and how are the nodes, as Prometheus counts it?

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use hyper::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::standing::{Rank, Standing};
use crate::metrics_now::Figure;
use crate::process_metrics::encode_process;

/// Why a node did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failing {
    /// It could not be reached: nothing was sent.
    Refused,
    /// The connection ended, or the node has not answered anything for long.
    Lost,
    /// It took too long.
    Late,
}

impl Failing {
    fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Lost => "lost",
            Self::Late => "late",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeCode {
    node: String,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NodeReason {
    node: String,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    code: u16,
}

/// Counters, updated without waiting.
pub(super) struct Metrics {
    registry: Registry,
    answered: Family<NodeCode, Counter>,
    failed: Family<NodeReason, Counter>,
    retries: Counter,
    refusals: Family<Code, Counter>,
    connections: AtomicUsize,
}

impl Metrics {
    pub(super) fn new() -> Self {
        let mut registry = Registry::default();
        let (answered, failed, refusals) =
            (Family::default(), Family::default(), Family::default());
        let retries = Counter::default();
        registry.register(
            "jindou_proxy_requests",
            "Answers of nodes to what was passed on to them, by their status",
            Family::clone(&answered),
        );
        registry.register(
            "jindou_proxy_failures",
            "Requests that a node did not answer, by why",
            Family::clone(&failed),
        );
        registry.register(
            "jindou_proxy_retries",
            "Requests that were sent to another node after one",
            retries.clone(),
        );
        registry.register(
            "jindou_proxy_refusals",
            "Requests that the proxy refused itself, by status",
            Family::clone(&refusals),
        );
        Self {
            registry,
            answered,
            failed,
            retries,
            refusals,
            connections: AtomicUsize::new(0),
        }
    }

    pub(super) fn answered(&self, node: String, status: StatusCode) {
        let code = status.as_u16();
        self.answered.get_or_create(&NodeCode { node, code }).inc();
    }

    pub(super) fn failed(&self, node: String, why: Failing) {
        let reason = why.name();
        self.failed
            .get_or_create(&NodeReason { node, reason })
            .inc();
    }

    pub(super) fn retried(&self) {
        self.retries.inc();
    }

    pub(super) fn refused(&self, status: StatusCode) {
        let code = status.as_u16();
        self.refusals.get_or_create(&Code { code }).inc();
    }

    /// Counts a connection for as long as what this returns lives.
    pub(super) fn connected(self: &Arc<Self>) -> Connected {
        self.connections.fetch_add(1, Relaxed);
        Connected(Arc::clone(self))
    }

    /// All figures, in Prometheus' text format 0.0.4.
    pub(super) fn text(&self, standing: Arc<Standing>, held_bytes: usize) -> String {
        let connections = self.connections.load(Relaxed);
        let mut momentary = Registry::default();
        momentary.register_collector(Box::new(Now {
            standing,
            held_bytes,
            connections,
        }));
        let mut text = String::new();
        let written =
            encode(&mut text, &self.registry).and_then(|()| encode(&mut text, &momentary));
        written.expect("a String takes all");
        text
    }
}

/// An open connection, counted.
pub(super) struct Connected(Arc<Metrics>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
}

/// What is read off at a scrape.
struct Now {
    standing: Arc<Standing>,
    held_bytes: usize,
    connections: usize,
}

impl fmt::Debug for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Now").finish_non_exhaustive()
    }
}

impl Collector for Now {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Figure(encoder);
        let nodes = self.standing.nodes();
        let count = |wanted| nodes.iter().filter(|(_, rank)| *rank == wanted).count();
        let states = [
            ("in_sync", Rank::InSync),
            ("behind", Rank::There),
            ("away", Rank::Away),
        ];
        out.gauges(
            (
                "jindou_proxy_nodes",
                "Nodes that are in sync, that are there and not in sync, and that are away.",
            ),
            states.map(|(state, rank)| ([("state", state)], count(rank) as u64)),
        )?;
        let leader = self.standing.leader();
        out.gauge(
            (
                "jindou_proxy_leader_known",
                "1 where the node that leads is known and there.",
            ),
            u64::from(leader.is_some()),
        )?;
        let named: Vec<_> = nodes
            .iter()
            .map(|(node, _)| (node.name(), node.underway()))
            .collect();
        out.gauges(
            (
                "jindou_proxy_underway",
                "Requests that a node has not answered to the end.",
            ),
            named
                .iter()
                .map(|(name, count)| ([("node", &**name)], *count as u64)),
        )?;
        out.gauge(
            (
                "jindou_proxy_held_bytes",
                "Bytes of bodies that are held until they were sent.",
            ),
            self.held_bytes as u64,
        )?;
        out.gauge(
            ("jindou_proxy_connections", "Connections of clients."),
            self.connections as u64,
        )?;
        encode_process(&mut out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_counted_is_told() {
        let metrics = Arc::new(Metrics::new());
        metrics.answered("a".to_owned(), StatusCode::OK);
        metrics.answered("a".to_owned(), StatusCode::OK);
        metrics.failed("b".to_owned(), Failing::Lost);
        metrics.retried();
        metrics.refused(StatusCode::BAD_REQUEST);
        let _connected = metrics.connected();
        let text = metrics.text(Arc::new(Standing::of(Vec::new())), 4096);
        for line in [
            "jindou_proxy_requests_total{node=\"a\",code=\"200\"} 2",
            "jindou_proxy_failures_total{node=\"b\",reason=\"lost\"} 1",
            "jindou_proxy_retries_total 1",
            "jindou_proxy_refusals_total{code=\"400\"} 1",
            "jindou_proxy_nodes{state=\"in_sync\"} 0",
            "jindou_proxy_held_bytes 4096",
            "jindou_proxy_connections 1",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} in\n{text}");
        }
    }
}
