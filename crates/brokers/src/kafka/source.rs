//! How is a topic of Kafka read, each message once?
//!
//! All partitions are assigned to one consumer, without a group: the stream knows how far each was read, by
//! the number of the last push of a producer that is called after it, `kafka:TOPIC/PARTITION`. The number
//! is the offset that comes next. What a durable stream has of that survives with its tuples, all or
//! nothing; so after a kill the first message that is read is the one after the last that became part of it.
//! Messages of several partitions are one push, with the number of each.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use jindou_engine::{FeedMessage, KafkaSource, KafkaStart, Producer, TimeSource};
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::{Offset, TopicPartitionList};

use super::merge::{Flow, Merge, Waiting};
use super::{Quiet, config, failed};
use crate::error::BrokerError;
use crate::source::SourceJob;
use crate::status::Position;

/// Partitions that are read, at most: a stream knows the last numbers of 10,000 producers.
const MOST_PARTITIONS: usize = 1000;
/// Messages that are pushed together, and bytes of these.
const MOST_MESSAGES: usize = 1000;
const MOST_BYTES: usize = 1 << 20;
/// How long to wait for a message before looking whether to go on.
const WAIT: Duration = Duration::from_millis(100);
/// How long a broker may take for an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// How often the ends of partitions are asked for, and of how many.
const LOOK: Duration = Duration::from_secs(5);
const MOST_LOOKS: usize = 32;

/// Reads until that fails.
///
/// # Errors
/// Always one: why it ended.
pub(crate) fn read(job: &SourceJob, definition: &KafkaSource) -> Result<Infallible, BrokerError> {
    let mut reader = Reader::connect(job, definition)?;
    loop {
        job.stop.check()?;
        reader.gather()?;
        while let Some(batch) = reader.next_batch() {
            reader.push(&batch)?;
        }
        for flow in reader.merge.resumed() {
            reader.steer(flow)?;
        }
        reader.look()?;
    }
}

struct Reader<'a> {
    job: &'a SourceJob,
    topic: &'a str,
    consumer: BaseConsumer<Quiet>,
    partitions: Vec<i32>,
    merge: Merge,
    looked: Instant,
    /// The partition that is looked at next, by its place.
    next_look: usize,
}

/// Messages that are pushed together.
#[derive(Default)]
struct Batch {
    messages: Vec<FeedMessage>,
    /// Partition and offset of each.
    places: Vec<(i32, i64)>,
    /// By partition, the offset that comes next.
    next_offsets: BTreeMap<i32, i64>,
    bytes: usize,
}

impl<'a> Reader<'a> {
    fn connect(job: &'a SourceJob, definition: &'a KafkaSource) -> Result<Self, BrokerError> {
        let name = job.feed.name();
        let consumer: BaseConsumer<Quiet> = config(&definition.brokers)
            // Nothing is committed: the library asks for the name all the same.
            .set("group.id", format!("jindou-{name}"))
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true")
            .set("queued.max.messages.kbytes", "16384")
            .set("fetch.max.bytes", "16777216")
            .set("fetch.queue.backoff.ms", "20")
            .create_with_context(Quiet)
            .map_err(failed("no client can be made"))?;
        let mut reader = Self {
            job,
            topic: &definition.topic,
            consumer,
            partitions: Vec::new(),
            merge: Merge::new(std::iter::empty()),
            looked: Instant::now(),
            next_look: 0,
        };
        reader.partitions = reader.find_partitions()?;
        reader.assign(definition.start)?;
        job.connected();
        Ok(reader)
    }

    /// The numbers of the topic's partitions.
    fn find_partitions(&self) -> Result<Vec<i32>, BrokerError> {
        let metadata = self.consumer.fetch_metadata(Some(self.topic), ANSWER);
        let metadata = metadata.map_err(failed("the broker does not answer"))?;
        let topics = metadata.topics();
        let topic = topics.iter().find(|topic| topic.name() == self.topic);
        let topic = topic.filter(|topic| topic.error().is_none() && !topic.partitions().is_empty());
        let topic = topic.ok_or_else(|| BrokerError::NoTopic {
            topic: self.topic.to_owned(),
        })?;
        let mut partitions: Vec<i32> = topic.partitions().iter().map(|one| one.id()).collect();
        partitions.sort_unstable();
        match partitions.len() <= MOST_PARTITIONS {
            true => Ok(partitions),
            false => Err(BrokerError::TooManyPartitions {
                partitions: partitions.len(),
                most: MOST_PARTITIONS,
            }),
        }
    }

    fn assign(&mut self, start: KafkaStart) -> Result<(), BrokerError> {
        let mut list = TopicPartitionList::with_capacity(self.partitions.len());
        let mut begins = Vec::with_capacity(self.partitions.len());
        let feed = &self.job.feed;
        let is_known = |partition: &i32| feed.last_sequence(&self.producer(*partition)).is_some();
        // All of a partition that came later is new.
        let start = match self.partitions.iter().any(is_known) {
            true => KafkaStart::Earliest,
            false => start,
        };
        for partition in &self.partitions {
            self.job.stop.check()?;
            let (next_offset, end) = self.begin(*partition, start)?;
            let offset = Offset::Offset(next_offset);
            let added = list.add_partition_offset(self.topic, *partition, offset);
            added.map_err(failed("a partition cannot be read"))?;
            begins.push((*partition, next_offset, next_offset >= end));
        }
        if start == KafkaStart::Latest {
            // So that what comes before the first message is read is not passed over after a restart.
            let next_offsets = begins
                .iter()
                .map(|(partition, next, _)| (*partition, *next));
            self.push(&Batch {
                next_offsets: next_offsets.collect(),
                ..Batch::default()
            })?;
        }
        self.merge = Merge::new(begins.into_iter());
        let assigned = self.consumer.assign(&list);
        assigned.map_err(failed("partitions cannot be read"))
    }

    /// Where to begin in a partition, and where it ends for now.
    fn begin(&self, partition: i32, start: KafkaStart) -> Result<(i64, i64), BrokerError> {
        let ends = self
            .consumer
            .fetch_watermarks(self.topic, partition, ANSWER);
        let (first, end) = ends.map_err(failed("the ends of a partition are not known"))?;
        let producer = self.producer(partition);
        let known = self.job.feed.last_sequence(&producer);
        let known = known.map(|next| i64::try_from(next).unwrap_or(i64::MAX));
        // What was passed over before is not counted again.
        let passed = self.job.status.lock().partitions.get(&partition).copied();
        let next = known.map(|next| passed.map_or(next, |passed| passed.next_offset.max(next)));
        let next_offset = match next {
            Some(next) if next > end => {
                return Err(BrokerError::Behind {
                    partition,
                    end,
                    next,
                });
            }
            Some(next) => {
                let lost = (first - next).max(0);
                self.job.status.lock().lost += lost.unsigned_abs();
                next.max(first)
            }
            None => self.first_begin(partition, start, (first, end))?,
        };
        let position = Position {
            next_offset,
            end_offset: Some(end),
        };
        let mut status = self.job.status.lock();
        status.partitions.insert(partition, position);
        status.note_lag();
        Ok((next_offset, end))
    }

    /// Where to begin in a partition of which nothing was read.
    fn first_begin(
        &self,
        partition: i32,
        start: KafkaStart,
        (first, end): (i64, i64),
    ) -> Result<i64, BrokerError> {
        let feed = &self.job.feed;
        // Windows of a query that goes on from before need more than what comes from now on.
        if !feed.definition().durable
            && feed.needs_times()
            && let Some(needed_ms) = feed.needed_from_ms()
        {
            return self.offset_at(partition, needed_ms, end);
        }
        Ok(match start {
            KafkaStart::Latest => end,
            _ => first,
        })
    }

    /// The offset of the first message that is not older than a time.
    fn offset_at(&self, partition: i32, time_ms: i64, end: i64) -> Result<i64, BrokerError> {
        let unknown = "the offset of a time is not known";
        let mut asked = TopicPartitionList::new();
        let time = Offset::Offset(time_ms.max(0));
        let added = asked.add_partition_offset(self.topic, partition, time);
        added.map_err(failed(unknown))?;
        let found = self.consumer.offsets_for_times(asked, ANSWER);
        let found = found.map_err(failed(unknown))?;
        let offset = found.find_partition(self.topic, partition);
        Ok(match offset.map(|one| one.offset()) {
            Some(Offset::Offset(offset)) => offset,
            _ => end,
        })
    }

    fn producer(&self, partition: i32) -> String {
        format!("kafka:{}/{partition}", self.topic)
    }

    /// Takes the messages that are there, perhaps after some time.
    fn gather(&mut self) -> Result<(), BrokerError> {
        let needs_times = self.job.feed.needs_times();
        let is_ordered = self.job.feed.definition().time != TimeSource::Arrival;
        let mut wait = WAIT;
        for _ in 0..MOST_MESSAGES {
            let (partition, message) = match self.consumer.poll(wait) {
                None => break,
                Some(Ok(message)) => {
                    let time_ms = message.timestamp().to_millis();
                    let waiting = Waiting {
                        offset: message.offset(),
                        // Whatever comes first is first where the time is that of arrival.
                        time_ms: time_ms.filter(|_| is_ordered).unwrap_or(i64::MIN),
                        // One without a text says that what its key names is gone, and is no event.
                        message: message.payload().map(|text| FeedMessage {
                            time_ms: time_ms.filter(|_| needs_times),
                            text: text.to_vec(),
                        }),
                    };
                    (message.partition(), waiting)
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    self.merge.end(partition);
                    continue;
                }
                Some(Err(error)) => {
                    self.check_error(&error)?;
                    break;
                }
            };
            wait = Duration::ZERO;
            if let Some(flow) = self.merge.push(partition, message) {
                self.steer(flow)?;
            }
        }
        Ok(())
    }

    /// Some messages that can go on; `None` where there are none.
    fn next_batch(&mut self) -> Option<Batch> {
        let mut batch = Batch::default();
        while batch.messages.len() < MOST_MESSAGES && batch.bytes < MOST_BYTES {
            let Some((partition, waiting)) = self.merge.pop() else {
                break;
            };
            batch.next_offsets.insert(partition, waiting.offset + 1);
            if let Some(message) = waiting.message {
                batch.bytes += message.text.len();
                batch.messages.push(message);
                batch.places.push((partition, waiting.offset));
            }
        }
        (!batch.next_offsets.is_empty()).then_some(batch)
    }

    /// Has a partition wait or go on.
    fn steer(&self, flow: Flow) -> Result<(), BrokerError> {
        let mut list = TopicPartitionList::with_capacity(1);
        let steered = match flow {
            Flow::Pause(partition) => {
                list.add_partition(self.topic, partition);
                self.consumer.pause(&list)
            }
            Flow::Resume(partition) => {
                list.add_partition(self.topic, partition);
                self.consumer.resume(&list)
            }
        };
        steered.map_err(failed("a partition cannot be held back"))
    }

    /// Passes over what the library mends by itself.
    fn check_error(&self, error: &KafkaError) -> Result<(), BrokerError> {
        use RDKafkaErrorCode::{
            AllBrokersDown, BrokerTransportFailure, LeaderNotAvailable, NotLeaderForPartition,
            OperationTimedOut, Resolve,
        };
        match error {
            KafkaError::MessageConsumption(
                AllBrokersDown
                | BrokerTransportFailure
                | LeaderNotAvailable
                | NotLeaderForPartition
                | OperationTimedOut
                | Resolve,
            ) => {
                self.job.fail(error.to_string());
                Ok(())
            }
            error => Err(BrokerError::client("no messages come", error)),
        }
    }

    /// Makes messages part of the stream.
    fn push(&self, batch: &Batch) -> Result<(), BrokerError> {
        let producers = batch.next_offsets.iter();
        let producers: Vec<(String, u64)> = producers
            .map(|(partition, next)| (self.producer(*partition), next.unsigned_abs()))
            .collect();
        let by: Vec<Producer<'_>> = producers
            .iter()
            .map(|(name, sequence)| Producer {
                name,
                sequence: *sequence,
            })
            .collect();
        let place_of = |at: usize| {
            let (partition, offset) = batch.places[at];
            format!("{}/{partition}, offset {offset}", self.topic)
        };
        self.job.push_until_taken(&by, &batch.messages, &place_of)?;
        let mut status = self.job.status.lock();
        for (partition, next_offset) in &batch.next_offsets {
            let position = status.partitions.entry(*partition).or_default();
            position.next_offset = *next_offset;
            position.end_offset = position.end_offset.max(Some(*next_offset));
        }
        status.note_lag();
        Ok(())
    }

    /// Looks from time to time how far the partitions go, and whether there are others.
    fn look(&mut self) -> Result<(), BrokerError> {
        if self.looked.elapsed() < LOOK {
            return Ok(());
        }
        let looked = self
            .find_partitions()
            .and_then(|now| match now == self.partitions {
                true => self.find_ends(),
                false => Err(BrokerError::Repartitioned),
            });
        self.looked = Instant::now();
        match looked {
            // It is read on as soon as the broker is there again.
            Err(error @ BrokerError::Client { .. }) => self.job.fail(error.to_string()),
            Err(error) => return Err(error),
            Ok(()) => self.job.connected(),
        }
        Ok(())
    }

    fn find_ends(&mut self) -> Result<(), BrokerError> {
        for _ in 0..self.partitions.len().min(MOST_LOOKS) {
            self.job.stop.check()?;
            let partition = self.partitions[self.next_look % self.partitions.len()];
            self.next_look = (self.next_look + 1) % self.partitions.len();
            let ends = self
                .consumer
                .fetch_watermarks(self.topic, partition, ANSWER);
            let (_, end) = ends.map_err(failed("the ends of a partition are not known"))?;
            let mut status = self.job.status.lock();
            status.partitions.entry(partition).or_default().end_offset = Some(end);
            status.note_lag();
        }
        Ok(())
    }
}
