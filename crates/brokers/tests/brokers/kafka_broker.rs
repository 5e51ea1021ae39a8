//! A broker of Kafka, of the jars of its release, with the clients that tests need.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::{ClientContext, DefaultClientContext};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{DeliveryResult, Headers, Message};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};
use rdkafka::{Offset, TopicPartitionList};
use tempfile::TempDir;

use crate::wait_for;

const VERSION: &str = "3.9.1";

/// A broker that is alone in its cluster.
pub(crate) struct Kafka {
    child: Child,
    pub(crate) address: String,
    producer: BaseProducer<Reports>,
    _folder: TempDir,
}

/// What the broker says of messages that were sent.
#[derive(Default)]
struct Reports {
    failures: Mutex<Vec<String>>,
}

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            let failures = self.failures.lock();
            let mut failures = failures.unwrap_or_else(PoisonError::into_inner);
            failures.push(error.to_string());
        }
    }
}

/// The one that tests share while they run.
static SHARED: Mutex<Weak<Kafka>> = Mutex::new(Weak::new());

impl Kafka {
    /// # Errors
    /// Why there is none.
    pub(crate) fn shared() -> Result<Arc<Self>, String> {
        let mut shared = SHARED
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(kafka) = shared.upgrade() {
            return Ok(kafka);
        }
        let kafka = Arc::new(Self::start(&jars()?)?);
        *shared = Arc::downgrade(&kafka);
        Ok(kafka)
    }

    fn start(jars: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let (port, controller) = (free_port(), free_port());
        let address = format!("127.0.0.1:{port}");
        let logs = folder.path().join("logs");
        let settings = folder.path().join("server.properties");
        let text = format!(
            "process.roles=broker,controller\nnode.id=1\n\
             controller.quorum.voters=1@127.0.0.1:{controller}\n\
             listeners=PLAINTEXT://{address},CONTROLLER://127.0.0.1:{controller}\n\
             advertised.listeners=PLAINTEXT://{address}\ncontroller.listener.names=CONTROLLER\n\
             listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT\n\
             log.dirs={}\noffsets.topic.replication.factor=1\noffsets.topic.num.partitions=1\n\
             auto.create.topics.enable=false\nlog.retention.ms=-1\n",
            logs.display()
        );
        std::fs::write(&settings, text).map_err(|error| error.to_string())?;
        let java = |arguments: &[&str]| {
            let mut java = Command::new("java");
            java.args(["-Xmx512m", "-cp", &format!("{}/*", jars.display())]);
            java.args(arguments).arg(&settings);
            java.current_dir(folder.path());
            java.stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            java
        };
        let id = "AAAAAAAAAAAAAAAAAAAAAA";
        let format = [
            "kafka.tools.StorageTool",
            "format",
            "--cluster-id",
            id,
            "--config",
        ];
        let formatted = java(&format)
            .status()
            .map_err(|error| format!("java: {error}"))?;
        if !formatted.success() {
            return Err("the storage of Kafka cannot be made".to_owned());
        }
        let child = java(&["kafka.Kafka"]).spawn();
        let child = child.map_err(|error| format!("java: {error}"))?;
        // A broker that is slow to answer is sent the same again, which is to be there once, and in order.
        let producer: BaseProducer<Reports> = ClientConfig::new()
            .set("bootstrap.servers", &address)
            .set("linger.ms", "0")
            .set("acks", "all")
            .set("enable.idempotence", "true")
            .create_with_context(Reports::default())
            .map_err(|error| error.to_string())?;
        let second = Duration::from_secs(1);
        wait_for("Kafka", || {
            producer.client().fetch_metadata(None, second).ok()
        });
        Ok(Self {
            child,
            address,
            producer,
            _folder: folder,
        })
    }

    pub(crate) fn create_topic(&self, name: &str, partitions: i32) {
        let admin: AdminClient<DefaultClientContext> = ClientConfig::new()
            .set("bootstrap.servers", &self.address)
            .create()
            .expect("a client");
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let topic = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        let made = runtime
            .expect("a runtime")
            .block_on(admin.create_topics(&[topic], &AdminOptions::new()));
        assert_eq!(made.expect("it answers"), [Ok(name.to_owned())]);
        let count = || {
            let second = Duration::from_secs(1);
            let metadata = self
                .producer
                .client()
                .fetch_metadata(Some(name), second)
                .ok()?;
            Some(metadata.topics()[0].partitions().len())
                .filter(|count| *count == partitions as usize)
        };
        wait_for("the topic", count);
    }

    /// Sends messages of a time and a text to a partition, and waits until the broker has them.
    pub(crate) fn send(&self, topic: &str, partition: i32, messages: &[(i64, String)]) {
        for (time, text) in messages {
            let record = BaseRecord::<(), String>::to(topic);
            let record = record.partition(partition).timestamp(*time).payload(text);
            self.producer
                .send(record)
                .map_err(|(error, _)| error)
                .expect("there is room");
        }
        self.producer.flush(crate::PATIENCE).expect("it takes them");
        // What failed is sent no more, too.
        let failures = self.producer.context().failures.lock();
        let failures = failures.unwrap_or_else(PoisonError::into_inner);
        assert!(failures.is_empty(), "{topic}/{partition}: {failures:?}");
    }

    /// Reads a topic of one partition from its beginning.
    pub(crate) fn read(&self, topic: &str) -> Reader {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.address)
            .set("group.id", topic)
            .set("enable.auto.commit", "false")
            .create()
            .expect("a client");
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Beginning)
            .expect("a partition");
        consumer.assign(&list).expect("it is there");
        Reader {
            consumer,
            seen: BTreeMap::new(),
            repeated: 0,
            next_offset: 0,
        }
    }
}

impl Drop for Kafka {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// A consumer that drops what it has: by the key of a message.
pub(crate) struct Reader {
    consumer: BaseConsumer,
    pub(crate) seen: BTreeMap<String, String>,
    /// Messages that came again.
    pub(crate) repeated: u64,
    next_offset: i64,
}

impl Reader {
    /// Reads all that is there.
    pub(crate) fn read_to_end(&mut self, topic: &str) {
        let ends = self.consumer.fetch_watermarks(topic, 0, crate::PATIENCE);
        let (_, end) = ends.expect("the broker is there");
        wait_for("the end", || {
            self.poll();
            (self.next_offset >= end).then_some(())
        });
    }

    /// Reads what comes soon.
    #[track_caller]
    pub(crate) fn poll(&mut self) {
        while let Some(message) = self.consumer.poll(Duration::from_millis(20)) {
            // The client reconnects by itself, and callers of this wait for a bounded time.
            let Ok(message) = message else {
                continue;
            };
            self.next_offset = message.offset() + 1;
            let key = String::from_utf8(message.key().expect("a key").to_vec()).expect("text");
            let text =
                String::from_utf8(message.payload().expect("a text").to_vec()).expect("text");
            let headers = message.headers().expect("it has some");
            let id = headers
                .iter()
                .find(|header| header.key == "id")
                .and_then(|header| header.value);
            let id = std::str::from_utf8(id.expect("an id")).expect("text");
            assert!(key.ends_with(&format!("/{id}")), "{key} {id}");
            if let Some(before) = self.seen.insert(key.clone(), text.clone()) {
                assert_eq!(before, text, "{key} has two contents");
                self.repeated += 1;
            }
        }
    }
}

/// The jars of Kafka, which are fetched once.
fn jars() -> Result<PathBuf, String> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache"));
    let cache = cache
        .or_else(home)
        .ok_or("no folder is known for what is fetched")?;
    let jars = cache.join("jindou-tests").join(format!("kafka-{VERSION}"));
    let complete = jars.join("complete");
    if complete.exists() {
        return Ok(jars);
    }
    std::fs::create_dir_all(&jars).map_err(|error| error.to_string())?;
    let project = format!(
        "<project><modelVersion>4.0.0</modelVersion><groupId>jindou</groupId>\
         <artifactId>kafka</artifactId><version>1</version><dependencies><dependency>\
         <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId>\
         <version>{VERSION}</version></dependency></dependencies></project>"
    );
    let file = jars.join("pom.xml");
    std::fs::write(&file, project).map_err(|error| error.to_string())?;
    let fetched = Command::new("mvn")
        .args([
            "-q",
            "-B",
            "dependency:copy-dependencies",
            "-DincludeScope=runtime",
            "-f",
        ])
        .arg(&file)
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .stdout(Stdio::null())
        .status()
        .map_err(|error| format!("mvn: {error}"))?;
    if !fetched.success() {
        return Err("the jars of Kafka cannot be fetched".to_owned());
    }
    std::fs::write(&complete, "").map_err(|error| error.to_string())?;
    Ok(jars)
}

/// A port that nobody listens at for now.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is one");
    listener.local_addr().expect("it listens").port()
}
