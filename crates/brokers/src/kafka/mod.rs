//! Kafka, by librdkafka.

mod merge;
mod sink;
mod source;

use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::KafkaError;

pub(crate) use sink::write;
pub(crate) use source::read;

use crate::error::BrokerError;

/// Passes on what the library has to say: what matters comes as errors of calls, too.
struct Quiet;

impl ClientContext for Quiet {
    fn log(&self, _level: RDKafkaLogLevel, facility: &str, message: &str) {
        tracing::debug!(facility, message, "librdkafka");
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "librdkafka");
    }
}

impl ConsumerContext for Quiet {}

/// What clients have in common.
fn config(brokers: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", brokers)
        .set("client.id", "jindou")
        .set("allow.auto.create.topics", "false")
        .set("socket.keepalive.enable", "true")
        .set("reconnect.backoff.max.ms", "5000");
    config
}

fn failed(what: &'static str) -> impl FnOnce(KafkaError) -> BrokerError {
    move |error| BrokerError::client(what, &error)
}
