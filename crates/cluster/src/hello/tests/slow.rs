//! How long does a peer hold a thread that is slow, or says nothing?

use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use super::*;
use std::time::Instant;

/// A peer of which each byte takes a second of a time of its own, in both directions.
struct Dripping {
    start: Instant,
    seconds: AtomicU64,
    bytes: Vec<u8>,
    read: AtomicUsize,
    writes_at_once: bool,
}

impl Dripping {
    fn new(bytes: &[u8], writes_at_once: bool) -> Self {
        Self {
            start: Instant::now(),
            seconds: AtomicU64::new(0),
            bytes: bytes.to_vec(),
            read: AtomicUsize::new(0),
            writes_at_once,
        }
    }

    /// Lets a second pass, if the call waits for so long.
    fn wait(&self, within: Duration) -> io::Result<()> {
        assert!(!within.is_zero());
        self.seconds.fetch_add(1, Relaxed);
        match within < Duration::from_secs(1) {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => Ok(()),
        }
    }
}

impl Duplex for Dripping {
    fn read_within(&self, into: &mut [u8], within: Duration) -> io::Result<usize> {
        self.wait(within)?;
        into[0] = self.bytes[self.read.fetch_add(1, Relaxed)];
        Ok(1)
    }

    fn write_within(&self, from: &[u8], within: Duration) -> io::Result<usize> {
        if self.writes_at_once {
            return Ok(from.len());
        }
        self.wait(within)?;
        Ok(1)
    }

    fn lift_limits(&self) -> io::Result<()> {
        Ok(())
    }

    fn end(&self) {}

    fn now(&self) -> Instant {
        self.start + Duration::from_secs(self.seconds.load(Relaxed))
    }
}

#[test]
fn a_peer_that_sends_a_byte_a_second_is_left_in_time() {
    let (one, mut other) = sides();
    let first = FirstMessage::new(one.node, &one.facts.to_bytes().unwrap()).unwrap();
    for seconds in [1, 9, 40, 70] {
        for writes_at_once in [true, false] {
            let peer = Dripping::new(first.bytes(), writes_at_once);
            other.within = Duration::from_secs(seconds);
            let refused = other.handshake().run(&peer).unwrap_err();
            assert!(matches!(refused, HelloError::TimedOut { within } if within == other.within));
            assert_eq!(peer.seconds.load(Relaxed), seconds);
        }
    }
}

#[test]
fn a_silent_peer_is_left_in_time() {
    let (mut one, _) = sides();
    one.within = Duration::from_millis(5);
    let (stream, _silent) = loopback();
    let refused = one.handshake().run(&stream).unwrap_err();
    assert!(matches!(refused, HelloError::TimedOut { .. }));
    one.within = Duration::ZERO;
    let refused = one.handshake().run(&stream).unwrap_err();
    assert!(matches!(refused, HelloError::TimedOut { .. }));
}

#[test]
fn an_exchange_with_a_silent_peer_ends_in_time() {
    let ((mut one, one_end), (_other, _other_end)) = greeted_pair();
    // More than the pipe takes: the thread that writes waits, too.
    let message = vec![0; 1 << 20];
    let refused = one.exchange(&one_end, &message, Duration::from_millis(5));
    assert!(matches!(refused, Err(HelloError::TimedOut { .. })));
}

#[test]
fn an_exchange_over_tcp_with_a_silent_peer_ends_in_time() {
    let (one, other) = sides();
    let (one, other) = run_both((&one, &other), loopback());
    let ((mut one, stream), (_other, _silent)) = (one.unwrap(), other.unwrap());
    let message = vec![0; 64 << 20];
    let refused = one.exchange(&stream, &message, Duration::from_millis(50));
    assert!(matches!(refused, Err(HelloError::TimedOut { .. })));
}
