//! How do results reach a topic of Kafka?
//!
//! Each is a message with its id as key. They are sent by an idempotent producer, and count as delivered
//! once all replicas that are in sync have them.

use std::convert::Infallible;

use jindou_engine::KafkaSink;
use parking_lot::Mutex;
use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use super::{Quiet, config, failed};
use crate::error::BrokerError;
use crate::sink::{LOOK, Results, SinkJob, SinkMessage};

/// Delivers until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn write(job: &SinkJob, definition: &KafkaSink) -> Result<Infallible, BrokerError> {
    let producer: BaseProducer<Reports> = config(&definition.brokers)
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("linger.ms", "0")
        .set("message.timeout.ms", "30000")
        .create_with_context(Reports::default())
        .map_err(failed("no client can be made"))?;
    check_topic(&producer, &definition.topic)?;
    job.connected();
    let mut results = job.sink.results();
    loop {
        let next = job.next_results(&mut results)?;
        deliver(job, (&producer, &definition.topic), &next)?;
        job.delivered(&next);
    }
}

/// So that a topic that is not there is known before a result waits for it.
fn check_topic(producer: &BaseProducer<Reports>, topic: &str) -> Result<(), BrokerError> {
    let metadata = producer.client().fetch_metadata(Some(topic), 50 * LOOK);
    let metadata = metadata.map_err(failed("the broker does not answer"))?;
    let mut topics = metadata.topics().iter();
    match topics.any(|one| one.name() == topic && one.error().is_none()) {
        true => Ok(()),
        false => Err(BrokerError::NoTopic {
            topic: topic.to_owned(),
        }),
    }
}

/// Sends results, and waits until the broker has all of them.
fn deliver(
    job: &SinkJob,
    (producer, topic): (&BaseProducer<Reports>, &str),
    results: &Results,
) -> Result<(), BrokerError> {
    *producer.context().0.lock() = Delivery::default();
    for message in &results.messages {
        let headers = headers(job, message);
        let mut record = BaseRecord::to(topic)
            .payload(&message.text)
            .headers(headers);
        let key = format!("{}/{}", job.sink.query(), message.id);
        record = record.key(&key);
        // The library takes 0 for the time of the clock.
        if message.instant_ms > 0 {
            record = record.timestamp(message.instant_ms);
        }
        let sent = producer.send(record);
        sent.map_err(|(error, _)| BrokerError::client("a result cannot be sent", &error))?;
    }
    loop {
        let delivery = std::mem::take(&mut *producer.context().0.lock());
        if let Some(error) = delivery.failed {
            return Err(BrokerError::client("a result was not taken", &error));
        }
        if delivery.taken == results.messages.len() {
            return Ok(());
        }
        producer.context().0.lock().taken += delivery.taken;
        job.stop.check()?;
        producer.poll(LOOK);
    }
}

fn headers(job: &SinkJob, message: &SinkMessage) -> OwnedHeaders {
    let header = |key, value| Header {
        key,
        value: Some(value),
    };
    OwnedHeaders::new()
        .insert(header("query", job.sink.query()))
        .insert(header("id", &message.id))
        .insert(header("content-type", "application/json"))
}

/// What the broker says of results that were sent.
#[derive(Default)]
struct Delivery {
    taken: usize,
    failed: Option<KafkaError>,
}

#[derive(Default)]
struct Reports(Mutex<Delivery>);

impl ClientContext for Reports {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        Quiet.log(level, facility, message);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        Quiet.error(error, reason);
    }
}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let mut delivery = self.0.lock();
        match result {
            Ok(_) => delivery.taken += 1,
            Err((error, _)) => delivery.failed = Some(error.clone()),
        }
    }
}
