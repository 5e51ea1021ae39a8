//! What have sources and sinks done, as Prometheus has it?

use std::fmt;

use jindou_brokers::{Connection, SourceStatus};

use crate::metrics_now::{Figure, Labels};
use crate::sinks::Sink;

/// What each source and each sink has done.
pub(crate) fn encode_brokers(
    out: &mut Figure<'_>,
    sources: &[(String, SourceStatus)],
    sinks: &[Sink],
) -> fmt::Result {
    encode_sources(out, sources)?;
    encode_sinks(out, sinks)
}

fn encode_sources(out: &mut Figure<'_>, sources: &[(String, SourceStatus)]) -> fmt::Result {
    type Value = fn(&SourceStatus) -> u64;
    let counters: [(&str, &str, Value); 3] = [
        (
            "jindou_source_messages",
            "Messages that the source of a stream had.",
            |source| source.messages,
        ),
        (
            "jindou_source_refused",
            "Messages of a source that were no events.",
            |source| source.refused,
        ),
        (
            "jindou_source_lost",
            "Messages that the broker had deleted before they were read.",
            |source| source.lost,
        ),
    ];
    let of = |stream| [("stream", stream)];
    for (name, help, value) in counters {
        let values = sources.iter();
        let values = values.map(|(stream, source)| (of(&**stream), value(source)));
        out.counters((name, help), values)?;
    }
    let lags = sources.iter();
    let lags = lags.filter_map(|(stream, source)| Some((of(&**stream), source.lag?)));
    out.gauges(
        (
            "jindou_source_lag",
            "Messages that the broker has and that were not read.",
        ),
        lags,
    )?;
    let connected = |source: &SourceStatus| u32::from(source.connection == Connection::Connected);
    let sources = sources.iter();
    out.gauges(
        (
            "jindou_source_connected",
            "Whether messages of a source can come.",
        ),
        sources.map(|(stream, source)| (of(&**stream), connected(source))),
    )
}

fn encode_sinks(out: &mut Figure<'_>, sinks: &[Sink]) -> fmt::Result {
    let parts = || sinks.iter().map(Sink::parts);
    let of = |query, sink| -> Labels<'_, 2> { [("query", query), ("sink", sink)] };
    let results = parts().map(|(query, sink, _, status)| (of(query, sink), status.results));
    out.counters(("jindou_sink_results", "Results that a sink got."), results)?;
    let missed = parts().map(|(query, sink, missed, _)| (of(query, sink), missed));
    out.counters(
        (
            "jindou_sink_missed",
            "Results that were dropped before a sink could get them.",
        ),
        missed,
    )?;
    let connected = parts().map(|(query, sink, _, status)| {
        let is_connected = status.connection == Connection::Connected;
        (of(query, sink), u32::from(is_connected))
    });
    out.gauges(
        ("jindou_sink_connected", "Whether results can go to a sink."),
        connected,
    )
}
