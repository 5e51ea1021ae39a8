//! Which clients was this built with?

use std::convert::Infallible;

use jindou_engine::BrokerProtocol;
#[cfg(any(feature = "kafka", feature = "mqtt"))]
use jindou_engine::SinkDefinition;
use jindou_engine::SourceDefinition;

use crate::error::{BrokerError, Refused};
use crate::sink::SinkJob;
use crate::source::SourceJob;

/// # Errors
/// [`Refused::NotBuilt`].
pub(crate) fn check(protocol: BrokerProtocol) -> Result<(), Refused> {
    match protocol {
        #[cfg(feature = "kafka")]
        BrokerProtocol::Kafka => Ok(()),
        #[cfg(feature = "mqtt")]
        BrokerProtocol::Mqtt => Ok(()),
        BrokerProtocol::Ldes => Ok(()),
        other => Err(Refused::not_built(other)),
    }
}

/// Reads a source until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn read(job: &SourceJob) -> Result<Infallible, BrokerError> {
    match job.feed.source() {
        #[cfg(feature = "kafka")]
        SourceDefinition::Kafka(kafka) => crate::kafka::read(job, kafka),
        #[cfg(feature = "mqtt")]
        SourceDefinition::Mqtt(mqtt) => crate::mqtt::read(job, mqtt),
        SourceDefinition::Ldes(ldes) => crate::ldes::read(job, ldes),
        other => Err(BrokerError::client(
            "it cannot be read",
            &Refused::not_built(other.protocol()),
        )),
    }
}

/// Delivers results to a sink until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn write(job: &SinkJob) -> Result<Infallible, BrokerError> {
    match job.sink.definition() {
        #[cfg(feature = "kafka")]
        SinkDefinition::Kafka(kafka) => crate::kafka::write(job, kafka),
        #[cfg(feature = "mqtt")]
        SinkDefinition::Mqtt(mqtt) => crate::mqtt::write(job, mqtt),
        other => Err(BrokerError::client(
            "it cannot be written",
            &Refused::not_built(other.protocol()),
        )),
    }
}
