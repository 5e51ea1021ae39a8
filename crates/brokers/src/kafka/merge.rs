//! In which order do messages of several partitions become part of a stream?
//!
//! Each partition is in order, and nothing says how far another one is: a reader that comes late gets hours
//! of one partition before a message of the next. A stream would find most of them late. So messages wait
//! until every partition has one that is as recent, by the times that the broker has, or has no more for
//! now; what goes on then goes on together, in one push.

use std::collections::{BTreeMap, VecDeque};

use jindou_engine::FeedMessage;

/// Bytes of messages that wait, of all partitions together, and of one at least.
const MOST_BYTES: usize = 32 << 20;
const LEAST_SHARE_BYTES: usize = 64 << 10;
/// What a message takes beside its text.
const MESSAGE_BYTES: usize = 200;

/// A message that waits.
pub(super) struct Waiting {
    pub(super) offset: i64,
    /// By the broker; time before all times where it has none.
    pub(super) time_ms: i64,
    /// None where it has no text.
    pub(super) message: Option<FeedMessage>,
}

/// The partitions of a topic.
pub(super) struct Merge {
    partitions: BTreeMap<i32, Partition>,
    share_bytes: usize,
}

struct Partition {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The latest time of a message.
    latest_ms: i64,
    /// The offset that comes next.
    next_offset: i64,
    /// The broker had no more messages.
    is_at_end: bool,
    is_paused: bool,
}

/// What is to be done about a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Pause(i32),
    Resume(i32),
}

impl Waiting {
    fn bytes(&self) -> usize {
        let text = self
            .message
            .as_ref()
            .map_or(0, |message| message.text.len());
        text + MESSAGE_BYTES
    }
}

impl Merge {
    /// Partitions, each with the offset that comes next, and whether that is the end.
    pub(super) fn new(partitions: impl Iterator<Item = (i32, i64, bool)>) -> Self {
        let partition = |(number, next_offset, is_at_end)| {
            let partition = Partition {
                waiting: VecDeque::new(),
                bytes: 0,
                latest_ms: i64::MIN,
                next_offset,
                is_at_end,
                is_paused: false,
            };
            (number, partition)
        };
        let partitions: BTreeMap<i32, Partition> = partitions.map(partition).collect();
        Self {
            share_bytes: (MOST_BYTES / partitions.len().max(1)).max(LEAST_SHARE_BYTES),
            partitions,
        }
    }

    /// Takes a message in; one that came before, as after a pause, is passed over. Says whether the
    /// partition should wait.
    pub(super) fn push(&mut self, number: i32, message: Waiting) -> Option<Flow> {
        let partition = self.partitions.get_mut(&number)?;
        if message.offset < partition.next_offset {
            return None;
        }
        partition.next_offset = message.offset + 1;
        partition.is_at_end = false;
        partition.latest_ms = partition.latest_ms.max(message.time_ms);
        partition.bytes += message.bytes();
        partition.waiting.push_back(message);
        let pauses = partition.bytes > self.share_bytes && !partition.is_paused;
        partition.is_paused |= pauses;
        pauses.then_some(Flow::Pause(number))
    }

    /// Notes that the broker has no more messages of a partition.
    pub(super) fn end(&mut self, number: i32) {
        if let Some(partition) = self.partitions.get_mut(&number) {
            partition.is_at_end = true;
        }
    }

    /// The next message that can go on, with its partition.
    pub(super) fn pop(&mut self) -> Option<(i32, Waiting)> {
        // A partition that is paused is not waited for by others: it has messages.
        let behind = self
            .partitions
            .values()
            .filter(|partition| !partition.is_at_end);
        let horizon_ms = behind
            .map(|partition| partition.latest_ms)
            .min()
            .unwrap_or(i64::MAX);
        let first = |(number, partition): (&i32, &Partition)| {
            let time_ms = partition.waiting.front()?.time_ms;
            Some((time_ms, *number))
        };
        let (time_ms, number) = self.partitions.iter().filter_map(first).min()?;
        if time_ms > horizon_ms {
            return None;
        }
        let partition = self.partitions.get_mut(&number)?;
        let message = partition.waiting.pop_front()?;
        partition.bytes -= message.bytes();
        Some((number, message))
    }

    /// The partitions that need not wait any more.
    pub(super) fn resumed(&mut self) -> Vec<Flow> {
        let share_bytes = self.share_bytes;
        let is_resumed = |(number, partition): (&i32, &mut Partition)| {
            let resumes = partition.is_paused && partition.bytes <= share_bytes / 2;
            partition.is_paused &= !resumes;
            resumes.then_some(Flow::Resume(*number))
        };
        self.partitions.iter_mut().filter_map(is_resumed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(offset: i64, time_ms: i64) -> Waiting {
        let text = vec![b'x'; 1000];
        Waiting {
            offset,
            time_ms,
            message: Some(FeedMessage {
                time_ms: None,
                text,
            }),
        }
    }

    fn merge(partitions: i32) -> Merge {
        Merge::new((0..partitions).map(|number| (number, 0, false)))
    }

    fn popped(merge: &mut Merge) -> Vec<(i32, i64)> {
        let all = std::iter::from_fn(|| merge.pop());
        all.map(|(number, message)| (number, message.time_ms))
            .collect()
    }

    #[test]
    fn a_message_waits_for_partitions_that_may_have_older_ones() {
        let mut merge = merge(2);
        for (offset, time_ms) in [10, 20, 30].into_iter().enumerate() {
            assert_eq!(merge.push(0, message(offset as i64, time_ms)), None);
        }
        assert_eq!(popped(&mut merge), []);
        merge.push(1, message(0, 15));
        assert_eq!(popped(&mut merge), [(0, 10), (1, 15)]);
        merge.push(1, message(1, 15));
        assert_eq!(popped(&mut merge), [(1, 15)]);
        merge.end(1);
        // The first may have one that is as recent as its last.
        assert_eq!(popped(&mut merge), [(0, 20), (0, 30)]);
        merge.push(1, message(2, 31));
        assert_eq!(popped(&mut merge), []);
        merge.end(0);
        assert_eq!(popped(&mut merge), [(1, 31)]);
    }

    #[test]
    fn a_partition_that_is_far_ahead_is_paused_and_repeats_are_passed_over() {
        let mut merge = merge(2);
        let mut offset = 0;
        let pause = loop {
            if let Some(flow) = merge.push(0, message(offset, offset)) {
                break flow;
            }
            offset += 1;
            assert!((offset as usize) < MOST_BYTES / 1000, "it is bounded");
        };
        assert_eq!(pause, Flow::Pause(0));
        assert_eq!(merge.push(0, message(3, 3)), None);
        assert!(merge.resumed().is_empty());
        merge.end(1);
        assert_eq!(popped(&mut merge).len() as i64, offset + 1);
        assert_eq!(merge.resumed(), [Flow::Resume(0)]);
        assert!(merge.resumed().is_empty());
        merge.push(0, message(3, 3));
        assert_eq!(popped(&mut merge), []);
    }

    #[test]
    fn times_that_go_back_and_those_that_are_missing_hold_nothing_up() {
        let mut merge = merge(1);
        for (offset, time_ms) in [20, 10, i64::MIN, 5].into_iter().enumerate() {
            merge.push(0, message(offset as i64, time_ms));
        }
        assert_eq!(
            popped(&mut merge),
            [(0, 20), (0, 10), (0, i64::MIN), (0, 5)]
        );
    }
}
