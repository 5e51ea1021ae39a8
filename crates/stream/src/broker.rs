//! Which broker do the messages of a stream come from, or the results of a query go to?

use serde::{Deserialize, Serialize};

use crate::definition::DefinitionError;

/// The longest list of addresses, topic or name of a client, in bytes.
const MOST_TEXT_BYTES: usize = 1000;
/// The longest topic of Kafka, in bytes.
const MOST_KAFKA_TOPIC_BYTES: usize = 249;
/// How long one may wait before pages of an event stream are asked for again, in milliseconds.
const POLLS_MS: std::ops::RangeInclusive<u64> = 10..=86_400_000;

/// Where a stream has its messages from. As JSON: an object with one member, the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SourceDefinition {
    /// A topic of Kafka.
    Kafka(KafkaSource),
    /// A topic filter of an MQTT broker.
    Mqtt(MqttSource),
    /// A Linked Data Event Stream.
    Ldes(LdesSource),
}

/// A [Linked Data Event Stream](https://w3id.org/ldes/specification) that is replicated and followed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LdesSource {
    /// The address of the event stream, of a view of it, or of a page that tells which views it has.
    pub url: String,
    /// How long after all pages were read those that may change are asked for again, in milliseconds.
    #[serde(default = "default_poll_ms")]
    pub poll_ms: u64,
}

fn default_poll_ms() -> u64 {
    5_000
}

/// A topic of Kafka that is read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaSource {
    /// Addresses of brokers, `HOST:PORT`, with commas between them.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The media type of its messages.
    pub format: String,
    /// Where to begin in a partition of which nothing was read.
    #[serde(default)]
    pub start: KafkaStart,
}

/// Where reading begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum KafkaStart {
    /// With the first message that is there.
    #[default]
    Earliest,
    /// With the next one that comes.
    Latest,
}

/// A topic filter of an MQTT broker that is subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MqttSource {
    /// The address of the broker, `HOST:PORT`.
    pub address: String,
    /// The topic filter, perhaps with the wildcards `+` and `#`.
    pub topic: String,
    /// The media type of its messages.
    pub format: String,
    /// 1: a message comes again until it was acknowledged; 0: it comes once at most.
    #[serde(default = "default_qos")]
    pub qos: u8,
    /// What the broker keeps the session by; `jindou-` and the stream's name unless it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

/// Where results of a continuous query go. As JSON: an object with one member, the protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SinkDefinition {
    /// A topic of Kafka.
    Kafka(KafkaSink),
    /// A topic of an MQTT broker.
    Mqtt(MqttSink),
}

/// A topic of Kafka that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct KafkaSink {
    /// Addresses of brokers, `HOST:PORT`, with commas between them.
    pub brokers: String,
    /// The topic.
    pub topic: String,
}

/// A topic of an MQTT broker that is published to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct MqttSink {
    /// The address of the broker, `HOST:PORT`.
    pub address: String,
    /// The topic.
    pub topic: String,
}

fn default_qos() -> u8 {
    1
}

/// The protocol of a broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerProtocol {
    /// That of Apache Kafka.
    Kafka,
    /// MQTT 5.
    Mqtt,
    /// Linked Data Event Streams, which is no broker's: pages by HTTP.
    Ldes,
}

impl BrokerProtocol {
    /// What it is called in definitions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kafka => "kafka",
            Self::Mqtt => "mqtt",
            Self::Ldes => "ldes",
        }
    }
}

impl SourceDefinition {
    /// The broker's protocol.
    #[must_use]
    pub fn protocol(&self) -> BrokerProtocol {
        match self {
            Self::Kafka(_) => BrokerProtocol::Kafka,
            Self::Mqtt(_) => BrokerProtocol::Mqtt,
            Self::Ldes(_) => BrokerProtocol::Ldes,
        }
    }

    /// Each address of a broker that it names, `HOST:PORT`.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        let list = match self {
            Self::Kafka(kafka) => Some(&*kafka.brokers),
            Self::Mqtt(mqtt) => Some(&*mqtt.address),
            Self::Ldes(_) => None,
        };
        list.into_iter().flat_map(addresses)
    }

    /// The media type of messages; members of an event stream are made N-Quads, whatever its pages are.
    #[must_use]
    pub fn format(&self) -> &str {
        match self {
            Self::Kafka(kafka) => &kafka.format,
            Self::Mqtt(mqtt) => &mqtt.format,
            Self::Ldes(_) => "application/n-quads",
        }
    }

    /// Says what is wrong with it, if something is.
    ///
    /// # Errors
    /// [`DefinitionError::BrokerAddress`], [`DefinitionError::Topic`], [`DefinitionError::Qos`],
    /// [`DefinitionError::Client`], [`DefinitionError::Page`], [`DefinitionError::Poll`].
    pub fn check(&self) -> Result<(), DefinitionError> {
        match self {
            Self::Kafka(kafka) => {
                check_addresses(&kafka.brokers)?;
                check_kafka_topic(&kafka.topic)
            }
            Self::Mqtt(mqtt) => {
                check_address(&mqtt.address)?;
                if mqtt.qos > 1 {
                    return Err(DefinitionError::Qos { qos: mqtt.qos });
                }
                if let Some(client) = &mqtt.client
                    && (client.is_empty() || !is_mqtt_text(client))
                {
                    return Err(DefinitionError::Client {
                        client: client.clone(),
                    });
                }
                check_topic(&mqtt.topic, is_mqtt_filter)
            }
            Self::Ldes(ldes) => {
                check_page(&ldes.url)?;
                match POLLS_MS.contains(&ldes.poll_ms) {
                    true => Ok(()),
                    false => Err(DefinitionError::Poll {
                        poll_ms: ldes.poll_ms,
                    }),
                }
            }
        }
    }
}

impl SinkDefinition {
    /// The broker's protocol.
    #[must_use]
    pub fn protocol(&self) -> BrokerProtocol {
        match self {
            Self::Kafka(_) => BrokerProtocol::Kafka,
            Self::Mqtt(_) => BrokerProtocol::Mqtt,
        }
    }

    /// Each address that it names, `HOST:PORT`.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        addresses(match self {
            Self::Kafka(kafka) => &kafka.brokers,
            Self::Mqtt(mqtt) => &mqtt.address,
        })
    }

    /// Says what is wrong with it, if something is.
    ///
    /// # Errors
    /// [`DefinitionError::BrokerAddress`], [`DefinitionError::Topic`].
    pub fn check(&self) -> Result<(), DefinitionError> {
        match self {
            Self::Kafka(kafka) => {
                check_addresses(&kafka.brokers)?;
                check_kafka_topic(&kafka.topic)
            }
            Self::Mqtt(mqtt) => {
                check_address(&mqtt.address)?;
                let is_topic = |topic: &str| is_mqtt_text(topic) && !topic.contains(['+', '#']);
                check_topic(&mqtt.topic, is_topic)
            }
        }
    }
}

fn addresses(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

/// The host and the port of an address `HOST:PORT`; an IPv6 address is between brackets.
#[must_use]
pub fn host_and_port(address: &str) -> Option<(&str, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let is_host = match host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            let is_part =
                |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            !host.is_empty() && host.bytes().all(is_part)
        }
    };
    // Not with a sign, as a number may have one.
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (is_host && is_port).then_some((host, port))
}

fn check_page(url: &str) -> Result<(), DefinitionError> {
    let rest = url
        .strip_prefix("http://")
        .or_else(|| url.strip_prefix("https://"));
    let is_part = |char: char| !char.is_control() && !char.is_whitespace();
    let is_page = |rest: &str| !rest.is_empty() && rest.chars().all(is_part);
    match url.len() <= MOST_TEXT_BYTES && rest.is_some_and(is_page) {
        true => Ok(()),
        false => Err(DefinitionError::Page {
            url: url.chars().take(MOST_TEXT_BYTES).collect(),
        }),
    }
}

fn check_addresses(list: &str) -> Result<(), DefinitionError> {
    addresses(list).try_for_each(check_address)?;
    match list.len() <= MOST_TEXT_BYTES {
        true => Ok(()),
        false => Err(DefinitionError::BrokerAddress {
            address: list.chars().take(MOST_TEXT_BYTES).collect(),
        }),
    }
}

fn check_address(address: &str) -> Result<(), DefinitionError> {
    match host_and_port(address).filter(|_| address.len() <= MOST_TEXT_BYTES) {
        Some(_) => Ok(()),
        None => Err(DefinitionError::BrokerAddress {
            address: address.chars().take(MOST_TEXT_BYTES).collect(),
        }),
    }
}

fn check_kafka_topic(topic: &str) -> Result<(), DefinitionError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_topic = |topic: &str| {
        let length = 1..=MOST_KAFKA_TOPIC_BYTES;
        length.contains(&topic.len()) && topic.bytes().all(is_part) && topic != "." && topic != ".."
    };
    check_topic(topic, is_topic)
}

fn check_topic(topic: &str, is_topic: impl Fn(&str) -> bool) -> Result<(), DefinitionError> {
    match !topic.is_empty() && topic.len() <= MOST_TEXT_BYTES && is_topic(topic) {
        true => Ok(()),
        false => Err(DefinitionError::Topic {
            topic: topic.chars().take(MOST_TEXT_BYTES).collect(),
        }),
    }
}

fn is_mqtt_text(text: &str) -> bool {
    text.len() <= MOST_TEXT_BYTES && !text.contains('\0')
}

/// A wildcard is a level of its own, and `#` the last one.
fn is_mqtt_filter(filter: &str) -> bool {
    let levels: Vec<&str> = filter.split('/').collect();
    let is_level = |(at, level): (usize, &&str)| match *level {
        "#" => at + 1 == levels.len(),
        "+" => true,
        level => !level.contains(['+', '#']),
    };
    is_mqtt_text(filter) && levels.iter().enumerate().all(is_level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> Result<SourceDefinition, String> {
        let source: SourceDefinition =
            serde_json::from_str(json).map_err(|error| error.to_string())?;
        source.check().map_err(|error| error.to_string())?;
        Ok(source)
    }

    #[test]
    fn a_source_is_one_of_a_protocol_that_is_known() {
        let kafka = |members: &str| {
            source(&format!(
                r#"{{"kafka":{{"brokers":"a:9092, [::1]:1","topic":"t","format":"text/turtle"{members}}}}}"#
            ))
        };
        let read = kafka(r#","start":"latest""#).expect("it is sound");
        assert_eq!(read.addresses().collect::<Vec<_>>(), ["a:9092", "[::1]:1"]);
        assert_eq!(read.format(), "text/turtle");
        let text = serde_json::to_string(&read).expect("plain data");
        assert_eq!(source(&text), Ok(read));
        assert!(kafka(r#","group":"g""#).unwrap_err().contains("group"));
        assert!(kafka(r#","start":"7""#).is_err());
        let ldes = source(r#"{"ldes":{"url":"http://e/feed"}}"#).expect("it is sound");
        assert_eq!(
            (ldes.addresses().count(), ldes.format()),
            (0, "application/n-quads")
        );
        let SourceDefinition::Ldes(ldes) = ldes else {
            panic!("it is of another protocol");
        };
        assert_eq!(ldes.poll_ms, 5_000);
        for (wrong, part) in [
            (r#""url":"ftp://e/feed""#, "ftp://e/feed"),
            (r#""url":"http://""#, "http://"),
            (r#""url":"http://e/a b""#, "a b"),
            (r#""url":"http://e/","poll_ms":9"#, "poll_ms"),
            (r#""url":"http://e/","format":"text/turtle""#, "format"),
        ] {
            let said = source(&format!(r#"{{"ldes":{{{wrong}}}}}"#)).unwrap_err();
            assert!(said.contains(part), "{said}");
        }
        assert!(source(r#"{"amqp":{}}"#).unwrap_err().contains("amqp"));
        assert!(source("{}").is_err());
    }

    #[test]
    fn topics_are_those_of_their_protocol() {
        let kafka = |topic: &str| check_kafka_topic(topic).is_ok();
        assert!(kafka("a.b_c-1") && !kafka("") && !kafka(".") && !kafka("a/b") && !kafka("é"));
        assert!(!kafka(&"a".repeat(MOST_KAFKA_TOPIC_BYTES + 1)));
        for filter in ["a", "a/+/b", "#", "a/#", "+", "/", "$share/g/a"] {
            assert!(is_mqtt_filter(filter), "{filter}");
        }
        for filter in ["a#", "#/a", "a+/b", "a/#/b", "a\0"] {
            assert!(!is_mqtt_filter(filter), "{filter}");
        }
        let sink = |topic: &str| {
            let (address, topic) = ("h:1883".to_owned(), topic.to_owned());
            SinkDefinition::Mqtt(MqttSink { address, topic }).check()
        };
        assert!(sink("a/b").is_ok() && sink("a/+").is_err() && sink("").is_err());
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for (address, parts) in [
            ("a:1", ("a", 1)),
            ("a.b-c:65535", ("a.b-c", 65535)),
            ("127.0.0.1:9092", ("127.0.0.1", 9092)),
            ("[::1]:9092", ("[::1]", 9092)),
        ] {
            assert_eq!(host_and_port(address), Some(parts));
        }
        for wrong in [
            "", "a", ":1", "a:", "a:0", "a:65536", "a:+1", "::1:1", "a b:1", "a/b:1", "[a]:1",
        ] {
            assert_eq!(host_and_port(wrong), None, "{wrong}");
        }
    }
}
