//! What is a connection in memory, whose bytes a test can change, count and cut?

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Duplex;

/// Bytes that wait in a pipe at most.
const CAPACITY: usize = 16 << 10;

#[derive(Debug, Default)]
struct Pipe {
    state: Mutex<PipeState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PipeState {
    bytes: VecDeque<u8>,
    is_closed: bool,
}

impl Pipe {
    /// Waits until something can be done, and does it.
    fn wait<T>(
        &self,
        within: Duration,
        mut attempt: impl FnMut(&mut PipeState) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let end = Instant::now() + within;
        let mut state = self.state.lock();
        loop {
            if let Some(outcome) = attempt(&mut state) {
                self.changed.notify_all();
                return outcome;
            }
            if self.changed.wait_until(&mut state, end).timed_out() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
    }

    fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_all();
    }
}

/// One end of a connection in memory.
#[derive(Debug)]
pub(super) struct End {
    from: Arc<Pipe>,
    to: Arc<Pipe>,
    /// Bytes that a call moves at most.
    pub(super) step: usize,
    /// The place of a byte that is changed on its way from here, and the bits that flip.
    pub(super) change: Option<(usize, u8)>,
    /// All that was written here.
    record: Arc<Mutex<Vec<u8>>>,
}

pub(super) fn pair() -> (End, End) {
    let (one, other) = (Arc::<Pipe>::default(), Arc::<Pipe>::default());
    (
        End::new(Arc::clone(&one), Arc::clone(&other)),
        End::new(other, one),
    )
}

impl End {
    fn new(from: Arc<Pipe>, to: Arc<Pipe>) -> Self {
        Self {
            from,
            to,
            step: usize::MAX,
            change: None,
            record: Arc::default(),
        }
    }

    /// What is written to it is read from it.
    pub(super) fn mirror() -> Self {
        let pipe = Arc::<Pipe>::default();
        Self::new(Arc::clone(&pipe), pipe)
    }

    pub(super) fn record(&self) -> Arc<Mutex<Vec<u8>>> {
        Arc::clone(&self.record)
    }

    pub(super) fn written(&self) -> usize {
        self.record.lock().len()
    }
}

impl Duplex for End {
    fn read_within(&self, into: &mut [u8], within: Duration) -> io::Result<usize> {
        self.from.wait(within, |state| {
            let count = into.len().min(state.bytes.len()).min(self.step);
            if count == 0 && !state.is_closed {
                return None;
            }
            for (place, byte) in into.iter_mut().zip(state.bytes.drain(..count)) {
                *place = byte;
            }
            Some(Ok(count))
        })
    }

    fn write_within(&self, from: &[u8], within: Duration) -> io::Result<usize> {
        self.to.wait(within, |state| {
            if state.is_closed {
                return Some(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let count = from.len().min(self.step);
            let count = count.min(CAPACITY - state.bytes.len());
            if count == 0 {
                return None;
            }
            let mut record = self.record.lock();
            let first = record.len();
            record.extend(&from[..count]);
            state.bytes.extend(&from[..count]);
            if let Some((place, flipped)) = self.change
                && (first..first + count).contains(&place)
            {
                let back = first + count - place;
                let at = state.bytes.len() - back;
                state.bytes[at] ^= flipped;
            }
            Some(Ok(count))
        })
    }

    fn lift_limits(&self) -> io::Result<()> {
        Ok(())
    }

    fn end(&self) {
        self.from.close();
        self.to.close();
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.end();
    }
}

/// A peer that sends some bytes whatever it gets, and ends.
#[derive(Debug)]
pub(super) struct Script {
    bytes: Vec<u8>,
    read: AtomicUsize,
    pub(super) written: AtomicUsize,
}

impl Script {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            read: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
        }
    }

    /// Bytes of it that were read.
    pub(super) fn read(&self) -> usize {
        self.read.load(Relaxed)
    }
}

impl Duplex for Script {
    fn read_within(&self, into: &mut [u8], _within: Duration) -> io::Result<usize> {
        let rest = &self.bytes[self.read()..];
        let count = into.len().min(rest.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.read.fetch_add(count, Relaxed);
        Ok(count)
    }

    fn write_within(&self, from: &[u8], _within: Duration) -> io::Result<usize> {
        self.written.fetch_add(from.len(), Relaxed);
        Ok(from.len())
    }

    fn lift_limits(&self) -> io::Result<()> {
        Ok(())
    }

    fn end(&self) {}
}
