//! What goes between the nodes of a cluster, as Prometheus has it?

use std::fmt;

use jindou_engine::ReplicaStatus;

use crate::cluster::{ClusterNow, MailNow, NodeState};
use crate::metrics_now::Figure;

/// Nothing where the database is no node.
pub(crate) fn encode_cluster(out: &mut Figure<'_>, now: Option<&ClusterNow>) -> fmt::Result {
    let Some(now) = now else { return Ok(()) };
    encode_nodes(out, now)?;
    encode_copies(out, now)?;
    encode_mail(out, now)?;
    encode_reads(out, now)
}

fn encode_nodes(out: &mut Figure<'_>, now: &ClusterNow) -> fmt::Result {
    let count = |state: &str| {
        let nodes = now.nodes.iter();
        nodes.filter(|node| node.state.name() == state).count()
    };
    out.gauges(
        (
            "jindou_cluster_nodes",
            "Nodes of the cluster: this one, those whose memory is mapped, those reached by TCP, and those \
             that are away.",
        ),
        NodeState::NAMES.map(|state| ([("state", state)], count(state))),
    )?;
    let others = now.nodes.iter();
    let others = others.filter(|node| node.state != NodeState::Here);
    let values = others.flat_map(|node| {
        let (read, all) = node.read;
        let of = |by, count| ([("node", &*node.name), ("by", by)], count);
        [of("read", read), of("call", all - read)]
    });
    out.gauges(
        (
            "jindou_cluster_predicates",
            "Predicates whose lists are read of another node one-sided, and those for which it is called.",
        ),
        values,
    )
}

/// Of a store that is written.
fn encode_copies(out: &mut Figure<'_>, now: &ClusterNow) -> fmt::Result {
    let (Some(copy), Some(agreement)) = (&now.copy, &now.agreement) else {
        return Ok(());
    };
    let leads = matches!(copy, ReplicaStatus::Leads { .. });
    let gauges = [
        (
            "jindou_cluster_leads",
            "1 where this node orders the transactions of the cluster.",
            u64::from(leads),
        ),
        (
            "jindou_cluster_term",
            "Grows each time that another node begins to lead.",
            agreement.term,
        ),
        (
            "jindou_cluster_in_sync",
            "Nodes that transactions wait for, the one that leads among them.",
            agreement.in_sync.len() as u64,
        ),
        (
            "jindou_cluster_committed",
            "The last transaction that all of these have.",
            agreement.committed.0,
        ),
    ];
    for (name, help, value) in gauges {
        out.gauge((name, help), value)?;
    }
    Ok(())
}

fn encode_mail(out: &mut Figure<'_>, now: &ClusterNow) -> fmt::Result {
    type Value = fn(MailNow) -> u64;
    let counters: [(&str, &str, Value); 2] = [
        (
            "jindou_cluster_messages",
            "Messages of sub-queries between this node and another since they met.",
            |mail| mail.messages,
        ),
        ("jindou_cluster_message_bytes", "Their bytes.", |mail| {
            mail.bytes
        }),
    ];
    for (name, help, value) in counters {
        let others = now.nodes.iter();
        let others = others.filter(|node| node.state != NodeState::Here);
        let values = others.flat_map(|node| {
            let of = |direction, mail| {
                (
                    [("node", &*node.name), ("direction", direction)],
                    value(mail),
                )
            };
            [of("sent", node.sent), of("received", node.received)]
        });
        out.counters((name, help), values)?;
    }
    Ok(())
}

fn encode_reads(out: &mut Figure<'_>, now: &ClusterNow) -> fmt::Result {
    for (name, help, value) in [
        (
            "jindou_cluster_reads",
            "One-sided reads of the memory of other nodes.",
            now.reads.reads,
        ),
        ("jindou_cluster_read_bytes", "Their bytes.", now.reads.bytes),
        (
            "jindou_cluster_read_batches",
            "Batches of such reads, for each of which a query waits once.",
            now.reads.batches,
        ),
        (
            "jindou_cluster_calls",
            "Calls that other nodes answered, as no read does.",
            now.reads.calls,
        ),
        (
            "jindou_cluster_call_messages",
            "Messages of these calls.",
            now.reads.messages,
        ),
        (
            "jindou_cluster_call_bytes",
            "Bytes of these messages.",
            now.reads.message_bytes,
        ),
    ] {
        out.counter((name, help), value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::cluster::tests::example;
    use crate::metrics::Metrics;
    use crate::metrics_now::Now;

    #[test]
    fn a_node_tells_of_the_others_and_who_is_none_of_nobody() {
        let alone = Metrics::new().text(Now::example());
        assert!(!alone.contains("jindou_cluster"), "{alone}");
        let now = Now {
            cluster: Some(example()),
            ..Now::example()
        };
        let text = Metrics::new().text(now);
        for line in [
            "jindou_cluster_nodes{state=\"here\"} 1",
            "jindou_cluster_nodes{state=\"mapped\"} 0",
            "jindou_cluster_nodes{state=\"away\"} 1",
            "jindou_cluster_predicates{node=\"b\",by=\"read\"} 0",
            "jindou_cluster_predicates{node=\"b\",by=\"call\"} 7",
            "jindou_cluster_messages_total{node=\"b\",direction=\"sent\"} 2",
            "jindou_cluster_message_bytes_total{node=\"b\",direction=\"received\"} 0",
            "jindou_cluster_reads_total 3",
            "jindou_cluster_read_bytes_total 70",
            "jindou_cluster_calls_total 0",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} in\n{text}");
        }
    }
}
