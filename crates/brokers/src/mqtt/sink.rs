//! How do results reach a topic of an MQTT broker?
//!
//! Each is a message of quality of service 1, with its id among the user properties, and counts as
//! delivered once it was acknowledged. Where the connection fails before, all that were sent together are
//! sent again.

use std::convert::Infallible;

use jindou_engine::MqttSink;
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, PubAckReason, PublishProperties};
use rumqttc::v5::{Client, Connection, Event};

use super::{connect, options, wait_for};
use crate::error::BrokerError;
use crate::sink::{Results, SinkJob, SinkMessage};

/// Requests to the broker that wait: more than results are sent together.
const MOST_REQUESTS: usize = 256;

/// Delivers until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn write(job: &SinkJob, definition: &MqttSink) -> Result<Infallible, BrokerError> {
    let (query, sink) = (job.sink.query(), job.sink.name());
    let mut options = options(&format!("jindou-{query}-{sink}"), &definition.address);
    options.set_clean_start(true);
    let (client, mut connection) = Client::new(options, MOST_REQUESTS);
    connect(&mut connection)?;
    job.connected();
    let mut results = job.sink.results();
    loop {
        let next = job.next_results(&mut results)?;
        if next.messages.is_empty() {
            // Pings go, and an end of the connection is noticed.
            super::next(&mut connection, std::time::Duration::from_millis(1))?;
            continue;
        }
        let topic = &definition.topic;
        deliver(job, (&client, &mut connection, topic), &next)?;
        job.delivered(&next);
    }
}

/// Publishes results, and waits until the broker has all of them.
fn deliver(
    job: &SinkJob,
    (client, connection, topic): (&Client, &mut Connection, &str),
    results: &Results,
) -> Result<(), BrokerError> {
    for message in &results.messages {
        let (text, properties) = (message.text.clone(), properties(job, message));
        let qos = QoS::AtLeastOnce;
        let sent = client.try_publish_with_properties(topic, qos, false, text, properties);
        sent.map_err(|error| BrokerError::client("a result cannot be sent", &error))?;
    }
    let mut left = results.messages.len();
    wait_for(connection, &job.stop, |event| {
        match event {
            Event::Incoming(Packet::PubAck(ack)) => match ack.reason {
                PubAckReason::Success | PubAckReason::NoMatchingSubscribers => left -= 1,
                refused => {
                    let reason = format!("{refused:?}");
                    return Err(BrokerError::client("a result was not taken", &reason));
                }
            },
            Event::Incoming(Packet::Disconnect(end)) => {
                let reason = format!("{:?}", end.reason_code);
                return Err(BrokerError::client(
                    "the broker ends the connection",
                    &reason,
                ));
            }
            _ => {}
        }
        Ok(left == 0)
    })
}

fn properties(job: &SinkJob, message: &SinkMessage) -> PublishProperties {
    let property = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    PublishProperties {
        content_type: Some("application/json".to_owned()),
        user_properties: vec![
            property("query", job.sink.query()),
            property("id", &message.id),
        ],
        ..PublishProperties::default()
    }
}
