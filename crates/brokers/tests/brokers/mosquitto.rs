//! A broker of MQTT: mosquitto, with the clients that tests need.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rumqttc::v5::mqttbytes::QoS;
use rumqttc::v5::mqttbytes::v5::{Packet, Publish};
use rumqttc::v5::{Client, Connection, Event, MqttOptions};
use tempfile::TempDir;

use crate::wait_for;

/// How long to wait for what comes next.
const NEXT: Duration = Duration::from_millis(20);

/// A broker that keeps sessions while it runs.
pub(crate) struct Mosquitto {
    child: Child,
    pub(crate) port: u16,
    _folder: TempDir,
}

impl Mosquitto {
    /// # Errors
    /// Why there is none.
    pub(crate) fn start(port: u16) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let settings = folder.path().join("mosquitto.conf");
        let text =
            format!("listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n");
        std::fs::write(&settings, text).map_err(|error| error.to_string())?;
        // Debian has it where only its administrator looks for programs.
        let found = ["mosquitto", "/usr/sbin/mosquitto"]
            .into_iter()
            .find_map(|program| {
                let mut command = Command::new(program);
                command.arg("-c").arg(&settings);
                command
                    .stdout(Stdio::null())
                    .stderr(Stdio::null())
                    .spawn()
                    .ok()
            });
        let mosquitto = Self {
            child: found.ok_or("there is no mosquitto")?,
            port,
            _folder: folder,
        };
        wait_for("mosquitto", || mosquitto.connect("probe").ok());
        Ok(mosquitto)
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A client, once the broker has accepted it.
    fn connect(&self, name: &str) -> Result<(Client, Connection), String> {
        let mut options = MqttOptions::new(name, "127.0.0.1", self.port);
        options.set_max_packet_size(Some(1 << 20));
        let (client, mut connection) = Client::new(options, 1000);
        match connection.recv() {
            Ok(Ok(Event::Incoming(Packet::ConnAck(_)))) => Ok((client, connection)),
            other => Err(format!("{other:?}")),
        }
    }

    /// Publishes texts, and waits until the broker has them.
    pub(crate) fn publish(&self, topic: &str, texts: &[String]) {
        let (client, mut connection) = self.connect("publisher").expect("it is there");
        for texts in texts.chunks(100) {
            for text in texts {
                let sent = client.try_publish(topic, QoS::AtLeastOnce, false, text.clone());
                sent.expect("there is room");
            }
            let mut left = texts.len();
            while left > 0 {
                let event = connection
                    .recv()
                    .expect("there is a client")
                    .expect("it is there");
                left -= usize::from(matches!(event, Event::Incoming(Packet::PubAck(_))));
            }
        }
    }

    /// Subscribes to a topic.
    pub(crate) fn subscribe(&self, topic: &str) -> Subscriber {
        let (client, mut connection) = self.connect("subscriber").expect("it is there");
        client
            .try_subscribe(topic, QoS::AtLeastOnce)
            .expect("there is room");
        wait_for("a subscription", || {
            let event = connection.recv_timeout(NEXT).ok()?.expect("it is there");
            matches!(event, Event::Incoming(Packet::SubAck(_))).then_some(())
        });
        Subscriber {
            _client: client,
            connection,
        }
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

pub(crate) struct Subscriber {
    _client: Client,
    connection: Connection,
}

impl Subscriber {
    /// The next message.
    pub(crate) fn next(&mut self) -> Publish {
        wait_for("a message", || {
            let event = self.connection.recv_timeout(NEXT).ok()?;
            match event.expect("the broker is there") {
                Event::Incoming(Packet::Publish(message)) => Some(message),
                _ => None,
            }
        })
    }
}
