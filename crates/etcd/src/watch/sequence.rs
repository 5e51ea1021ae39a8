//! Which events follow, and at which revision does a new watch go on?
//!
//! All events of a revision are handed on together, so that going on after it misses nothing. A message that
//! was cut may end within a revision: its last one is held until the next message has the rest.

use super::Event;
use crate::wire::{Kind, Revision, WatchEvent, WatchMessage, malformed};
use crate::{Cause, MOST_ANSWER_BYTES};

pub(super) struct Sequence {
    prefix: Vec<u8>,
    /// The first revision of which nothing was handed on.
    next: Revision,
    /// Events of one revision that may have more.
    held: Vec<Event>,
    held_revision: Revision,
    held_bytes: usize,
}

/// What follows from a message.
pub(super) enum Step {
    Events(Vec<Event>),
    Compacted(Revision),
}

impl Sequence {
    pub(super) fn new(prefix: &[u8], after: Revision) -> Self {
        Self {
            prefix: prefix.to_vec(),
            next: Revision(after.0.saturating_add(1)),
            held: Vec::new(),
            held_revision: Revision(0),
            held_bytes: 0,
        }
    }

    /// Where a new watch goes on.
    pub(super) fn next(&self) -> Revision {
        self.next
    }

    /// The events that are complete by a message.
    ///
    /// # Errors
    /// [`Cause::Malformed`] if events are not in their order, or of other keys; [`Cause::TooLarge`] if those of
    /// one revision are. What was held is dropped: a new watch has it again.
    pub(super) fn take(&mut self, message: WatchMessage) -> Result<Step, Cause> {
        if message.created {
            self.drop_held();
        }
        let step = self.step(message);
        if step.is_err() {
            self.drop_held();
        }
        step
    }

    fn step(&mut self, message: WatchMessage) -> Result<Step, Cause> {
        if message.compact_revision > 0 {
            return Ok(Step::Compacted(Revision(message.compact_revision)));
        }
        if message.canceled {
            let reason = message.cancel_reason;
            return Err(malformed(format!("it ends the watch: {reason}")));
        }
        let mut complete = Vec::new();
        for event in message.events {
            self.hold(event, &mut complete)?;
        }
        if !message.fragment {
            self.hand_on(&mut complete);
        }
        Ok(Step::Events(complete))
    }

    /// Holds one more event; if it is of a later revision, what was held is complete.
    fn hold(&mut self, event: WatchEvent, complete: &mut Vec<Event>) -> Result<(), Cause> {
        let WatchEvent { kind, kv } = event;
        let revision = kv.revision();
        if revision < self.next || revision < self.held_revision {
            return Err(malformed("events that are not in their order"));
        }
        if !kv.key.starts_with(&self.prefix) {
            return Err(malformed("a change of a key that is not watched"));
        }
        if revision > self.held_revision {
            self.hand_on(complete);
        }
        let event = match kind {
            Kind::Put => {
                let (key, value) = kv.into_value()?;
                self.held_bytes += key.len() + value.bytes.len();
                Event::Put { key, value }
            }
            Kind::Delete => {
                let key = kv.key;
                self.held_bytes += key.len();
                Event::Deleted { key, revision }
            }
        };
        self.held_revision = revision;
        self.held.push(event);
        if self.held_bytes > MOST_ANSWER_BYTES {
            let limit_bytes = MOST_ANSWER_BYTES;
            return Err(Cause::TooLarge { limit_bytes });
        }
        Ok(())
    }

    fn hand_on(&mut self, complete: &mut Vec<Event>) {
        if !self.held.is_empty() {
            self.next = Revision(self.held_revision.0.saturating_add(1));
            complete.append(&mut self.held);
        }
        self.drop_held();
    }

    fn drop_held(&mut self) {
        self.held.clear();
        self.held_revision = Revision(0);
        self.held_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse;
    use proptest::prelude::*;

    /// A message with events of these revisions.
    fn message(revisions: &[u64], fragment: bool) -> WatchMessage {
        let events: Vec<String> = revisions
            .iter()
            .map(|revision| {
                format!(r#"{{"kv":{{"key":"YQ==","mod_revision":"{revision}","version":"1"}}}}"#)
            })
            .collect();
        let events = events.join(",");
        let text = format!(r#"{{"fragment":{fragment},"events":[{events}]}}"#);
        parse(text.as_bytes()).unwrap()
    }

    fn revisions(step: Step) -> Vec<u64> {
        let Step::Events(events) = step else {
            panic!("there are events");
        };
        let revision = |event: &Event| match event {
            Event::Put { value, .. } => value.revision.0,
            other => panic!("{other:?}"),
        };
        events.iter().map(revision).collect()
    }

    #[test]
    fn a_revision_that_is_cut_is_handed_on_as_a_whole() {
        let mut sequence = Sequence::new(b"", Revision(0));
        let step = sequence.take(message(&[2, 3, 3], true)).unwrap();
        assert_eq!(revisions(step), [2]);
        assert_eq!(sequence.next(), Revision(3));
        let step = sequence.take(message(&[3, 4], false)).unwrap();
        assert_eq!(revisions(step), [3, 3, 3, 4]);
        assert_eq!(sequence.next(), Revision(5));
    }

    #[test]
    fn what_is_held_of_a_broken_stream_is_not_handed_on_twice() {
        let mut sequence = Sequence::new(b"", Revision(0));
        let step = sequence.take(message(&[2, 2], true)).unwrap();
        assert_eq!(revisions(step), [0; 0]);
        let mut created = message(&[], false);
        created.created = true;
        assert_eq!(revisions(sequence.take(created).unwrap()), [0; 0]);
        let step = sequence.take(message(&[2, 2, 2], false)).unwrap();
        assert_eq!(revisions(step), [2, 2, 2]);
    }

    #[test]
    fn events_out_of_order_or_of_other_keys_are_malformed() {
        let mut sequence = Sequence::new(b"", Revision(5));
        assert!(sequence.take(message(&[5], false)).is_err());
        assert!(sequence.take(message(&[7, 6], false)).is_err());
        assert!(sequence.take(message(&[0], false)).is_err());
        assert_eq!(sequence.next(), Revision(6));
        let mut sequence = Sequence::new(b"b", Revision(5));
        assert!(sequence.take(message(&[6], false)).is_err());
        let mut last = Sequence::new(b"", Revision(u64::MAX));
        assert!(last.take(message(&[7], false)).is_err());
    }

    proptest! {
        /// However messages are cut, and wherever the stream breaks and goes on at `next`.
        #[test]
        fn each_event_is_handed_on_once(
            steps in prop::collection::vec(0..2_u64, 1..30),
            cuts in prop::collection::vec((1..5_usize, any::<bool>(), 0..4_u8), 0..80),
        ) {
            let mut all = Vec::new();
            let mut revision = 2;
            for step in steps {
                revision += step;
                all.push(revision);
            }
            let mut sequence = Sequence::new(b"", Revision(1));
            let mut heard = Vec::new();
            let mut place = 0;
            for (count, fragment, breaks) in cuts {
                let end = (place + count).min(all.len());
                // etcd ends a message within a revision only where it says so.
                let is_within = end > 0 && end < all.len() && all[end] == all[end - 1];
                let message = message(&all[place..end], fragment || is_within);
                heard.extend(revisions(sequence.take(message).unwrap()));
                place = end;
                if breaks == 0 {
                    place = all.iter().filter(|one| **one < sequence.next().0).count();
                    let created = WatchMessage { created: true, ..WatchMessage::default() };
                    sequence.take(created).unwrap();
                }
            }
            heard.extend(revisions(sequence.take(message(&all[place..], false)).unwrap()));
            prop_assert_eq!(heard, all);
        }
    }
}
