//! Lists of any length, exchanged in rounds of bounded bytes.
//!
//! A load is a row of *streams*, one after the other, of some *steps* each: nodes send each other what they have of
//! step 0, then of step 1, and so on, as much at a time as fits into a round. A node that has little gets to later
//! steps before others do, but only by some rounds: what came of a step before all are there is held back until then.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use super::exchange::{Exchange, ExchangeError};
use super::failed::{self, Failed};
use super::wire::{Reader, word};
use crate::StoreError;

/// A message ends with the step that its sender has not yet sent all of, and a byte that says whether it failed.
const STEP_BYTES: usize = 8;
const END_BYTES: usize = STEP_BYTES + 1;
/// A block of a message begins with its step and its length.
const BLOCK_BYTES: usize = 12;
/// Bytes for one node in a round: pieces of strings have offsets of 32 bits.
const LEAST_BYTES: usize = 64;
/// Room for what follows the last that fits.
const SPARE_BYTES: usize = 4 << 10;
const MOST_BYTES: usize = 1 << 30;
/// Rounds by which a node may be ahead of others: of one, nodes that are about equally far would take turns.
const MOST_AHEAD: usize = 2;

/// All nodes of a load, as one of them sees them.
pub(super) struct Peers<'a> {
    exchange: &'a dyn Exchange,
    pub(super) nodes: usize,
    pub(super) here: usize,
    /// Bytes for one node in a round, about.
    limit: usize,
    /// Messages that are over, at most two for each node: memory that is taken anew for each costs more than to write
    /// it.
    spare: RefCell<Vec<Vec<u8>>>,
}

/// What is exchanged step by step.
pub(super) trait Stream {
    /// Puts more of a step into messages. True once that is all of it; else the messages are to be full.
    fn fill(&mut self, step: u32, out: &mut Outbox) -> Result<bool, Failed>;

    /// Takes what a node sent of a step, which is not the last time. Nothing of a later step came before, and what one
    /// node sends of a step comes in order, cut between what was put into the message.
    fn take(&mut self, step: u32, from: usize, bytes: &[u8]) -> Result<(), Failed>;

    /// All nodes have sent all of a step.
    fn done(&mut self, _step: u32) -> Result<(), Failed> {
        Ok(())
    }
}

/// The messages of a round, by node.
pub(super) struct Outbox {
    messages: Vec<Vec<u8>>,
    /// Where the block of this step begins in each message that has one.
    blocks: Vec<Option<usize>>,
    step: u32,
    limit: usize,
}

impl Outbox {
    /// Empty messages, one for each node.
    fn new(messages: Vec<Vec<u8>>, limit: usize) -> Self {
        Self {
            blocks: vec![None; messages.len()],
            messages,
            step: 0,
            limit,
        }
    }

    fn begin(&mut self, step: u32) {
        self.end_blocks();
        self.step = step;
    }

    fn end_blocks(&mut self) {
        for (message, block) in self.messages.iter_mut().zip(&mut self.blocks) {
            if let Some(begin) = block.take() {
                let length = (message.len() - begin) as u64;
                message[begin - 8..begin].copy_from_slice(&length.to_le_bytes());
            }
        }
    }

    /// The message to a node, to be written to its end.
    #[inline]
    pub(super) fn to(&mut self, node: usize) -> &mut Vec<u8> {
        if self.blocks[node].is_none() {
            self.begin_block(node);
        }
        &mut self.messages[node]
    }

    #[cold]
    fn begin_block(&mut self, node: usize) {
        let message = &mut self.messages[node];
        // One that grows would be copied again and again; room that stays free takes no memory.
        message.reserve(self.limit.saturating_sub(message.len()) + SPARE_BYTES);
        message.extend_from_slice(&self.step.to_le_bytes());
        message.extend_from_slice(&[0; BLOCK_BYTES - 4]);
        self.blocks[node] = Some(message.len());
    }

    /// Appends bytes to the message to a node; true if that is full then.
    #[inline]
    pub(super) fn put(&mut self, node: usize, bytes: &[u8]) -> bool {
        self.to(node).extend_from_slice(bytes);
        self.is_full(node)
    }

    /// True if the message to a node has as many bytes as it is to have.
    #[inline]
    pub(super) fn is_full(&self, node: usize) -> bool {
        self.messages[node].len() >= self.limit
    }

    /// Bytes that the message to a node may get yet.
    pub(super) fn room(&self, node: usize) -> usize {
        self.limit.saturating_sub(self.messages[node].len())
    }

    fn has_room(&self) -> bool {
        (0..self.messages.len()).all(|node| !self.is_full(node))
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        self.end_blocks();
        self.messages
    }
}

/// What a node sent of a step.
struct Block {
    from: usize,
    message: Arc<Vec<u8>>,
    place: Range<usize>,
}

/// Messages by node, and the step that each node has not yet sent all of.
type Got = (Vec<Vec<u8>>, Vec<u64>);

impl<'a> Peers<'a> {
    /// Those of an exchange, who get so many bytes in a round, about.
    pub(super) fn new(exchange: &'a dyn Exchange, round_bytes: usize) -> Self {
        let nodes = exchange.nodes() as usize;
        Self {
            exchange,
            nodes,
            here: exchange.here().0 as usize,
            limit: (round_bytes / nodes).clamp(LEAST_BYTES, MOST_BYTES),
            spare: RefCell::default(),
        }
    }

    /// Empty messages, one for each node, with room that was used before if there is some.
    fn messages(&self) -> Vec<Vec<u8>> {
        let mut spare = self.spare.borrow_mut();
        let messages = (0..self.nodes).map(|_| spare.pop().unwrap_or_default());
        messages.collect()
    }

    /// Keeps the room of a message that is over.
    fn keep_room(&self, mut message: Vec<u8>) {
        let mut spare = self.spare.borrow_mut();
        if message.capacity() > 0 && spare.len() < 2 * self.nodes {
            message.clear();
            spare.push(message);
        }
    }

    /// Keeps the room of a message once its last block is taken.
    fn release(&self, message: Arc<Vec<u8>>) {
        if let Some(message) = Arc::into_inner(message) {
            self.keep_room(message);
        }
    }

    /// One exchange.
    fn swap(&self, mut to: Vec<Vec<u8>>, step: u64) -> Result<Got, Failed> {
        for message in &mut to {
            message.extend_from_slice(&step.to_le_bytes());
            message.push(failed::fine());
        }
        let mut got = self.messages();
        let lost = |error: ExchangeError| Failed::Elsewhere(error.into());
        self.exchange.exchange(&mut to, &mut got).map_err(lost)?;
        to.into_iter().for_each(|message| self.keep_room(message));
        let mut steps = Vec::with_capacity(got.len());
        for (node, message) in got.iter_mut().enumerate() {
            let body = message.len().checked_sub(END_BYTES);
            let body = body.ok_or_else(Failed::malformed)?;
            let end = message[body + STEP_BYTES];
            failed::read(node, &message[..body], end)?;
            steps.push(word(&message[body..body + STEP_BYTES]));
            message.truncate(body);
        }
        Ok((got, steps))
    }

    /// Tells the others, who wait for the next bytes, that there are none.
    pub(super) fn tell(&self, error: &StoreError) {
        let (reason, end) = failed::message_of(error);
        let mut message = reason.into_bytes();
        message.extend_from_slice(&[0; STEP_BYTES]);
        message.push(end);
        // Whoever is not reached has noticed that himself.
        let mut to = vec![message; self.nodes];
        let _ = self.exchange.exchange(&mut to, &mut self.messages());
    }

    /// Waits until all nodes are here.
    pub(super) fn meet(&self) -> Result<(), Failed> {
        self.swap(self.messages(), 0).map(|_| ())
    }

    /// Exchanges a stream of so many steps, the same at all nodes.
    pub(super) fn in_steps(&self, steps: u32, stream: &mut dyn Stream) -> Result<(), Failed> {
        let mut blocks: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
        // The step that is not all sent, and the first that is not done.
        let (mut next, mut first) = (0, 0);
        // The last step of each round that others may have to hold back.
        let mut ahead: VecDeque<u32> = VecDeque::new();
        while first < steps {
            let mut out = Outbox::new(self.messages(), self.limit);
            while ahead.front().is_some_and(|last| *last <= first) {
                ahead.pop_front();
            }
            let mut last = None;
            while ahead.len() < MOST_AHEAD && next < steps && out.has_room() {
                out.begin(next);
                last = Some(next);
                match stream.fill(next, &mut out)? {
                    true => next += 1,
                    false => break,
                }
            }
            ahead.extend(last);
            let (got, reached) = self.swap(out.finish(), next.into())?;
            for (from, message) in got.into_iter().enumerate() {
                let message = Arc::new(message);
                keep(&mut blocks, from, &message, steps)?;
                self.release(message);
            }
            if reached.iter().any(|step| *step < first.into()) {
                return Err(Failed::malformed());
            }
            let reached = reached.into_iter().min().unwrap_or(0).min(steps.into()) as u32;
            for step in first..steps.min(reached.saturating_add(1)) {
                for block in blocks.remove(&step).into_iter().flatten() {
                    stream.take(step, block.from, &block.message[block.place])?;
                    self.release(block.message);
                }
                if step < reached {
                    stream.done(step)?;
                }
            }
            first = reached;
        }
        // All steps are done.
        match blocks.is_empty() {
            true => Ok(()),
            false => Err(Failed::malformed()),
        }
    }

    /// Sends the same to all nodes: `write` appends some of it and says whether that was the last, and `take` gets what
    /// each node wrote, cut as it was written.
    pub(super) fn to_all(
        &self,
        write: &mut dyn FnMut(&mut Vec<u8>) -> bool,
        take: &mut dyn FnMut(usize, &mut Reader<'_>) -> Result<(), Failed>,
    ) -> Result<(), Failed> {
        self.in_steps(1, &mut ToAll { write, take })
    }

    /// Sends each node numbers, so many by node, of which `number` gives one by node and place; what each has for this
    /// one, in order: as many as are `expected`, below `end`.
    pub(super) fn numbers(
        &self,
        counts: Vec<usize>,
        number: &dyn Fn(usize, usize) -> u32,
        (expected, end): (&[u32], u64),
    ) -> Result<Vec<Vec<u32>>, Failed> {
        let mut stream = Numbers {
            counts,
            number,
            sent: vec![0; self.nodes],
            got: vec![Vec::new(); self.nodes],
        };
        self.in_steps(1, &mut stream)?;
        let is_sound = |(got, expected): (&Vec<u32>, &u32)| {
            got.len() == *expected as usize && got.iter().all(|number| u64::from(*number) < end)
        };
        match stream.got.iter().zip(expected).all(is_sound) {
            true => Ok(stream.got),
            false => Err(Failed::malformed()),
        }
    }
}

/// Keeps the blocks of a message by their steps.
fn keep(
    blocks: &mut BTreeMap<u32, Vec<Block>>,
    from: usize,
    message: &Arc<Vec<u8>>,
    steps: u32,
) -> Result<(), Failed> {
    let mut begin = 0;
    while begin < message.len() {
        let head = message.get(begin..begin + BLOCK_BYTES);
        let head = head.ok_or_else(Failed::malformed)?;
        let (step, length) = (
            u32::from_le_bytes([head[0], head[1], head[2], head[3]]),
            word(&head[4..]),
        );
        begin += BLOCK_BYTES;
        let end = usize::try_from(length)
            .ok()
            .and_then(|length| begin.checked_add(length));
        let end = end.filter(|end| *end <= message.len() && step < steps);
        let end = end.ok_or_else(Failed::malformed)?;
        let message = Arc::clone(message);
        let place = begin..end;
        let block = Block {
            from,
            message,
            place,
        };
        blocks.entry(step).or_default().push(block);
        begin = end;
    }
    Ok(())
}

/// See [`Peers::to_all`].
struct ToAll<'a> {
    write: &'a mut dyn FnMut(&mut Vec<u8>) -> bool,
    take: &'a mut dyn FnMut(usize, &mut Reader<'_>) -> Result<(), Failed>,
}

impl Stream for ToAll<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        let mut bytes = Vec::new();
        let mut is_last = false;
        while !is_last && bytes.len() < out.room(0) {
            is_last = (self.write)(&mut bytes);
        }
        for node in 0..out.messages.len() {
            out.put(node, &bytes);
        }
        Ok(is_last)
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        (self.take)(from, &mut Reader::new(bytes))
    }
}

/// See [`Peers::numbers`].
struct Numbers<'a> {
    counts: Vec<usize>,
    number: &'a dyn Fn(usize, usize) -> u32,
    sent: Vec<usize>,
    got: Vec<Vec<u32>>,
}

impl Stream for Numbers<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        let mut are_all = true;
        for (node, sent) in self.sent.iter_mut().enumerate() {
            let count = self.counts[node];
            let end = count.min(*sent + out.room(node).div_ceil(4));
            for place in *sent..end {
                out.put(node, &(self.number)(node, place).to_le_bytes());
            }
            *sent = end;
            are_all &= end == count;
        }
        Ok(are_all)
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        self.got[from].extend(super::wire::numbers(bytes));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bulk::dealt::InProcess;

    const NODES: u32 = 3;

    /// Runs something at each of some nodes.
    fn at_each<T: Send>(round_bytes: usize, run: impl Fn(&Peers<'_>) -> T + Sync) -> Vec<T> {
        std::thread::scope(|scope| {
            let run = &run;
            let node =
                |exchange: InProcess| scope.spawn(move || run(&Peers::new(&exchange, round_bytes)));
            let threads: Vec<_> = InProcess::nodes(NODES).into_iter().map(node).collect();
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|done| done.expect("no node panics")).collect()
        })
    }

    /// Sends each node `counts[step]` words of a step.
    struct Words {
        here: usize,
        counts: Vec<u32>,
        /// By node: words of the step that were sent.
        sent: Vec<u32>,
        /// By step and node: words that came.
        got: Vec<Vec<Vec<u32>>>,
        done: u32,
    }

    impl Stream for Words {
        fn fill(&mut self, step: u32, out: &mut Outbox) -> Result<bool, Failed> {
            let count = self.counts[step as usize];
            for (node, sent) in self.sent.iter_mut().enumerate() {
                while *sent < count {
                    *sent += 1;
                    let word = (self.here as u32) << 24 | *sent;
                    if out.put(node, &word.to_le_bytes()) {
                        break;
                    }
                }
            }
            let is_all = self.sent.iter().all(|sent| *sent == count);
            if is_all {
                self.sent.fill(0);
            }
            Ok(is_all)
        }

        fn take(&mut self, step: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
            assert_eq!(step, self.done, "nothing is early");
            self.got[step as usize][from].extend(super::super::wire::numbers(bytes));
            Ok(())
        }

        fn done(&mut self, step: u32) -> Result<(), Failed> {
            assert_eq!(step, self.done);
            self.done += 1;
            Ok(())
        }
    }

    #[test]
    fn steps_come_in_order_whatever_each_node_has_of_them() {
        // Some have much of what others have nothing of, and at the end there is nothing.
        let count = |node: u32, step: u32| match (step * 7 + node * 5) % 11 {
            0..5 => 0,
            few @ 5..9 => few,
            _ if step < 50 => 300 * (node + 1),
            _ => 1,
        };
        const STEPS: u32 = 90;
        let counts = |node| (0..STEPS).map(move |step| count(node, step));
        for round_bytes in [1, 1_000, 1 << 20] {
            let done = at_each(round_bytes, |peers| {
                let mut words = Words {
                    here: peers.here,
                    counts: counts(peers.here as u32).collect(),
                    sent: vec![0; peers.nodes],
                    got: vec![vec![Vec::new(); peers.nodes]; STEPS as usize],
                    done: 0,
                };
                peers.in_steps(STEPS, &mut words).map(|()| words)
            });
            for words in done {
                let words = words.expect("nothing fails");
                assert_eq!(words.done, STEPS);
                for (step, of_nodes) in (0..).zip(&words.got) {
                    for (node, got) in (0..).zip(of_nodes) {
                        let expected = (1..=count(node, step)).map(|word| node << 24 | word);
                        assert!(got.iter().copied().eq(expected), "{step} of {node}");
                    }
                }
            }
        }
    }

    #[test]
    fn too_many_terms_at_one_node_are_too_many_at_all() {
        let met = at_each(1 << 10, |peers| {
            if peers.here == 1 {
                let Failed::Here(error) = Failed::too_large("many") else {
                    unreachable!("it is found here");
                };
                peers.tell(&error);
                return Ok(());
            }
            peers.meet()
        });
        for (node, met) in met.into_iter().enumerate().filter(|(node, _)| *node != 1) {
            let error = met.expect_err("a node failed");
            assert!(
                matches!(&error, Failed::Elsewhere(StoreError::TooLarge { reason }) if reason == "many"),
                "{node}: {error:?}"
            );
        }
    }
}
