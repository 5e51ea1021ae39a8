//! What have sources and sinks done, as Prometheus has it?

use jindou_brokers::{Connection, SourceStatus};

use crate::metrics::{Now, head, line};

/// What each source and each sink has done. Names need no escapes.
pub(crate) fn push_brokers(text: &mut String, now: &Now) {
    push_sources(text, &now.sources);
    push_sinks(text, now);
}

fn push_sources(text: &mut String, sources: &[(String, SourceStatus)]) {
    type Value = fn(&SourceStatus) -> Option<u64>;
    let figures: [(&str, &str, &str, Value); 5] = [
        (
            "jindou_source_messages_total",
            "counter",
            "Messages that the source of a stream had.",
            |source| Some(source.messages),
        ),
        (
            "jindou_source_refused_total",
            "counter",
            "Messages of a source that were no events.",
            |source| Some(source.refused),
        ),
        (
            "jindou_source_lost_total",
            "counter",
            "Messages that the broker had deleted before they were read.",
            |source| Some(source.lost),
        ),
        (
            "jindou_source_lag",
            "gauge",
            "Messages that the broker has and that were not read.",
            |source| source.lag,
        ),
        (
            "jindou_source_connected",
            "gauge",
            "Whether messages of a source can come.",
            |source| Some((source.connection == Connection::Connected).into()),
        ),
    ];
    for (name, kind, help, value) in figures {
        head(text, name, kind, help);
        for (stream, source) in sources {
            if let Some(value) = value(source) {
                line(text, &format!("{name}{{stream=\"{stream}\"}}"), value);
            }
        }
    }
}

fn push_sinks(text: &mut String, now: &Now) {
    let figures = [
        (
            "jindou_sink_results_total",
            "counter",
            "Results that a sink got.",
        ),
        (
            "jindou_sink_missed_total",
            "counter",
            "Results that were dropped before a sink could get them.",
        ),
        (
            "jindou_sink_connected",
            "gauge",
            "Whether results can go to a sink.",
        ),
    ];
    for (place, (name, kind, help)) in figures.into_iter().enumerate() {
        head(text, name, kind, help);
        for sink in &now.sinks {
            let (query, of, missed, status) = sink.parts();
            let is_connected = status.connection == Connection::Connected;
            let values = [status.results, missed, is_connected.into()];
            let labels = format!("{name}{{query=\"{query}\",sink=\"{of}\"}}");
            line(text, &labels, values[place]);
        }
    }
}
