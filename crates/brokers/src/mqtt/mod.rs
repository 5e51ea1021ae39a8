//! MQTT 5, by rumqttc.

mod sink;
mod source;

use std::time::Duration;

use jindou_engine::host_and_port;
use rumqttc::v5::mqttbytes::v5::{ConnectReturnCode, Packet};
use rumqttc::v5::{Connection, Event, MqttOptions};

pub(crate) use sink::write;
pub(crate) use source::read;

use crate::error::BrokerError;
use crate::stop::Stop;

/// The largest message that is taken.
const MOST_PACKET_BYTES: u32 = 16 << 20;
/// How long a broker may take until a connection is made.
const CONNECT: Duration = Duration::from_secs(5);
const KEEP_ALIVE: Duration = Duration::from_secs(30);

fn options(client: &str, address: &str) -> MqttOptions {
    let (host, port) = host_and_port(address).expect("the definition was checked");
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let mut options = MqttOptions::new(client, host, port);
    options.set_keep_alive(KEEP_ALIVE);
    options.set_connection_timeout(CONNECT.as_secs());
    options.set_max_packet_size(Some(MOST_PACKET_BYTES));
    options
}

/// Waits until the broker has accepted a client.
fn connect(connection: &mut Connection) -> Result<(), BrokerError> {
    match next(connection, 2 * CONNECT)? {
        Some(Event::Incoming(Packet::ConnAck(ack))) if ack.code == ConnectReturnCode::Success => {
            Ok(())
        }
        Some(Event::Incoming(Packet::ConnAck(ack))) => Err(BrokerError::client(
            "the broker refuses the client",
            &format!("{:?}", ack.code),
        )),
        _ => Err(BrokerError::client(
            "the broker does not answer",
            &"it did not accept the client in time",
        )),
    }
}

/// What happens next; `None` where nothing does soon.
fn next(connection: &mut Connection, wait: Duration) -> Result<Option<Event>, BrokerError> {
    match connection.recv_timeout(wait) {
        Ok(Ok(event)) => Ok(Some(event)),
        Ok(Err(error)) => Err(BrokerError::client("the connection failed", &error)),
        Err(rumqttc::v5::RecvTimeoutError::Timeout) => Ok(None),
        Err(rumqttc::v5::RecvTimeoutError::Disconnected) => Err(BrokerError::Stopped),
    }
}

/// Goes on with a connection until an answer came that is waited for.
fn wait_for(
    connection: &mut Connection,
    stop: &Stop,
    mut is_answer: impl FnMut(&Event) -> Result<bool, BrokerError>,
) -> Result<(), BrokerError> {
    loop {
        stop.check()?;
        if let Some(event) = next(connection, crate::sink::LOOK)?
            && is_answer(&event)?
        {
            return Ok(());
        }
    }
}
