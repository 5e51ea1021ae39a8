//! How is a topic filter of an MQTT broker read?
//!
//! The broker keeps a session by the name of the client, with what was not acknowledged. A message is
//! acknowledged once the stream has it, durable if the stream is; so it comes at least once, and again after
//! a kill between the two. The broker sends no more than some before they are acknowledged, which is what
//! holds it back while the stream is full.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use jindou_engine::{FeedMessage, MqttSource};
use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{Client, Connection, Event};

use super::{connect, next, options};
use crate::error::BrokerError;
use crate::source::SourceJob;
use crate::stop::Backoff;

/// The most messages that are not acknowledged, and that are pushed together.
const MOST_MESSAGES: usize = 200;
/// Bytes of messages that wait, beyond which no more are read.
const MOST_BYTES: usize = 4 << 20;
/// Requests to the broker that wait: an acknowledgement for each message, and the subscription.
const MOST_REQUESTS: usize = 2 * MOST_MESSAGES;
/// How long to wait for a message, and for one after it.
const WAIT: Duration = Duration::from_millis(100);
const MORE: Duration = Duration::from_millis(1);

/// Reads until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn read(job: &SourceJob, definition: &MqttSource) -> Result<Infallible, BrokerError> {
    let own = format!("jindou-{}", job.feed.name());
    let client = definition.client.as_deref().unwrap_or(&own);
    let mut options = options(client, &definition.address);
    options.set_clean_start(false);
    options.set_session_expiry_interval(Some(u32::MAX));
    options.set_receive_maximum(Some(MOST_MESSAGES as u16));
    options.set_manual_acks(true);
    let (client, mut connection) = Client::new(options, MOST_REQUESTS);
    connect(&mut connection)?;
    let qos = if definition.qos == 0 {
        QoS::AtMostOnce
    } else {
        QoS::AtLeastOnce
    };
    let subscribed = client.try_subscribe(&*definition.topic, qos);
    subscribed.map_err(|error| BrokerError::client("it cannot be subscribed to", &error))?;
    let mut reader = Reader {
        job,
        client,
        waiting: Vec::new(),
        bytes: 0,
    };
    loop {
        job.stop.check()?;
        reader.gather(&mut connection)?;
        reader.push(&mut connection)?;
    }
}

struct Reader<'a> {
    job: &'a SourceJob,
    client: Client,
    /// Not acknowledged yet.
    waiting: Vec<Publish>,
    bytes: usize,
}

impl Reader<'_> {
    /// Takes the messages that are there.
    fn gather(&mut self, connection: &mut Connection) -> Result<(), BrokerError> {
        let mut wait = WAIT;
        while self.has_room() {
            match next(connection, wait)? {
                None => return Ok(()),
                Some(event) => self.take(event)?,
            }
            if !self.waiting.is_empty() {
                wait = MORE;
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < MOST_MESSAGES && self.bytes < MOST_BYTES
    }

    fn take(&mut self, event: Event) -> Result<(), BrokerError> {
        match event {
            Event::Incoming(Packet::Publish(message)) => {
                self.bytes += message.payload.len();
                self.waiting.push(message);
            }
            Event::Incoming(Packet::SubAck(ack)) => {
                use rumqttc::v5::mqttbytes::v5::SubscribeReasonCode::Success;
                match ack.return_codes.first() {
                    Some(Success(_)) => self.job.connected(),
                    refused => {
                        let reason = format!("{refused:?}");
                        return Err(BrokerError::client("it cannot be subscribed to", &reason));
                    }
                }
            }
            Event::Incoming(Packet::Disconnect(end)) => {
                let reason = format!("{:?}", end.reason_code);
                return Err(BrokerError::client(
                    "the broker ends the connection",
                    &reason,
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Makes the messages that wait part of the stream, and acknowledges them. Meanwhile the connection is
    /// kept.
    fn push(&mut self, connection: &mut Connection) -> Result<(), BrokerError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let count = self.waiting.len();
        let message = |message: &Publish| FeedMessage {
            time_ms: None,
            text: message.payload.to_vec(),
        };
        let messages: Vec<FeedMessage> = self.waiting.iter().map(message).collect();
        let mut backoff = Backoff::new();
        while let Err(error) = self.try_push(&messages) {
            let BrokerError::Engine(error) = error else {
                return Err(error);
            };
            self.job.wait_for(&error);
            let until = Instant::now() + backoff.next();
            while Instant::now() < until {
                self.job.stop.check()?;
                match self
                    .has_room()
                    .then(|| next(connection, WAIT))
                    .transpose()?
                {
                    Some(Some(event)) => self.take(event)?,
                    Some(None) => {}
                    None => self.job.stop.wait(WAIT)?,
                }
            }
        }
        for message in self.waiting.drain(..count) {
            self.bytes -= message.payload.len();
            if message.qos != QoS::AtMostOnce {
                let acknowledged = self.client.try_ack(&message);
                acknowledged.map_err(|error| {
                    BrokerError::client("a message is not acknowledged", &error)
                })?;
            }
        }
        Ok(())
    }

    fn try_push(&self, messages: &[FeedMessage]) -> Result<(), BrokerError> {
        let topic_of = |at: usize| String::from_utf8_lossy(&self.waiting[at].topic).into_owned();
        self.job.push(&[], messages, &topic_of)
    }
}
