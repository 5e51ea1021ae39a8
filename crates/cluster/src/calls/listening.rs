//! How does a server get its requests? By a thread for each node that asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use jindou_exec::QueryClass;
use jindou_fabric::FabricError;
use jindou_fabric::remote::{Doorbell, Interrupt};
use jindou_fabric::ring::RingError;

use super::link::{LinkEnd, LinkError, is_interrupt, push};
use super::server::ShardServer;
use crate::workers::{ThreadStart, long_work};

/// A thread that answers what comes over a link, until the link ends or this is dropped.
///
/// Dropping waits for the thread, and that for the call that it is making.
pub struct Listening {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

/// Asks the thread to end.
struct Stop {
    is_set: AtomicBool,
    bell: Arc<Doorbell>,
}

impl Listening {
    /// Answers what comes over a link, for queries of any class.
    ///
    /// # Errors
    /// [`LinkError::Thread`].
    pub fn start(server: Arc<ShardServer>, end: LinkEnd) -> Result<Self, LinkError> {
        let start = Arc::new(|| ());
        Self::start_for((QueryClass::Light, start), server, end)
    }

    /// Answers what comes over a link of queries of this class, on a thread that calls `start` first.
    ///
    /// # Errors
    /// [`LinkError::Thread`].
    pub fn start_for(
        (class, start): (QueryClass, ThreadStart),
        server: Arc<ShardServer>,
        end: LinkEnd,
    ) -> Result<Self, LinkError> {
        let stop = Arc::new(Stop {
            is_set: AtomicBool::new(false),
            bell: Arc::clone(&end.bell),
        });
        let seen = Arc::clone(&stop);
        let node = end.peer;
        let name = format!("calls of node {node}");
        let thread = Builder::new().name(name).spawn(move || {
            start();
            let answer = |request: &[u8]| {
                let _long = long_work(class);
                server.answer(request)
            };
            // However the link ends: whoever asks sees it at the other end.
            let _ended: Result<(), RingError> = listen(answer, end, &seen);
        });
        let refused = |source| LinkError::Thread {
            node,
            source: Arc::new(source),
        };
        let thread = Some(thread.map_err(refused)?);
        Ok(Self { stop, thread })
    }

    /// True once the link ended, and with it the thread.
    #[cfg(test)]
    pub(super) fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.is_set.store(true, Ordering::SeqCst);
        self.stop.bell.ring();
        if let Some(thread) = self.thread.take() {
            // It catches the panics of what it calls: one of its own is not to become two.
            let _ended = thread.join();
        }
    }
}

impl Stop {
    fn is_set(&self) -> bool {
        self.is_set.load(Ordering::SeqCst)
    }
}

/// Answers until somebody stops it.
fn listen(
    answer: impl Fn(&[u8]) -> Vec<u8>,
    mut end: LinkEnd,
    stop: &Stop,
) -> Result<(), RingError> {
    loop {
        let seen = end.bell.count();
        if stop.is_set() {
            return Ok(());
        }
        if let Some(request) = end.receiver.try_receive()? {
            end.reply(&answer(&request), stop)?;
            continue;
        }
        let until = Interrupt::at(end.fabric.now() + end.options.probe_every);
        push(&mut end.sender, &until)?;
        match end.fabric.wait(&end.bell, seen, &until) {
            Ok(_) => {}
            Err(FabricError::Deadline) => end.probe()?,
            Err(error) => return Err(error.into()),
        }
    }
}

impl LinkEnd {
    /// Sends an answer. While there is no room for it nothing else is answered.
    fn reply(&mut self, answer: &[u8], stop: &Stop) -> Result<(), RingError> {
        while !stop.is_set() {
            let until = Interrupt::at(self.fabric.now() + self.options.probe_every);
            match self.sender.send(answer, &until) {
                Err(error) if is_interrupt(&error) => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// Learns whether the other node is lost.
    fn probe(&mut self) -> Result<(), RingError> {
        let until = Interrupt::at(self.fabric.now() + self.options.probe_every);
        match self.receiver.probe(&until) {
            Err(error) if is_interrupt(&error) => Ok(()),
            outcome => outcome,
        }
    }
}
