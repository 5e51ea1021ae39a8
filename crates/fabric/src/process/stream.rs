//! How do messages travel over a connection that the caller made, whatever the peer does to it?
//!
//! As frames: the number of words, and the words. Nothing here waits: what cannot be written yet is
//! kept until the socket takes it, and what came only in part until the rest is there.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use bytemuck::{cast_slice, cast_slice_mut};
use parking_lot::Mutex;

use super::due::{Due, DueAnswers};
use super::wire::{MESSAGE_ITEMS, MESSAGE_WORDS};
use crate::remote::NodeId;
use crate::remote::memory::WORD_BYTES;
use crate::schedule::runs_when_idle;

/// The longest message: its data, and six words for each item.
const MAX_FRAME_WORDS: usize = MESSAGE_WORDS + (MESSAGE_ITEMS + 2) * 6;

/// A connection with one peer.
pub(super) struct Stream {
    socket: TcpStream,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
    /// In the order of the messages that go out, so what is added is added while `outgoing` is locked.
    due: Mutex<DueAnswers>,
    /// Messages may have come that were not received.
    has_more: AtomicBool,
}

/// Frames that are not written, and how many bytes of the first one are.
#[derive(Default)]
struct Outgoing {
    frames: VecDeque<Vec<u64>>,
    written: usize,
}

/// The frame that is being read: its number of words comes first, as a frame of one word.
struct Incoming {
    words: Vec<u64>,
    read: usize,
    is_length: bool,
    /// Why nothing more is read: after an error nobody knows where the next frame begins.
    error: Option<ErrorKind>,
}

impl Stream {
    pub(super) fn new(socket: TcpStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let incoming = Incoming {
            words: vec![0],
            read: 0,
            is_length: true,
            error: None,
        };
        Ok(Self {
            socket,
            outgoing: Mutex::default(),
            incoming: Mutex::new(incoming),
            due: Mutex::default(),
            has_more: AtomicBool::new(false),
        })
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Sends a message, or keeps what the socket does not take, and all where the thread has no core for sure;
    /// true if nothing is kept. If the message asks for an answer, that is due from `now_ms` on.
    pub(super) fn send(&self, words: &[u64], due: Option<Due>, now_ms: u64) -> io::Result<bool> {
        assert!(words.len() <= MAX_FRAME_WORDS, "a message has a bound");
        let mut frame = Vec::with_capacity(words.len() + 1);
        frame.push(words.len() as u64);
        frame.extend_from_slice(words);
        let mut outgoing = self.outgoing.lock();
        if let Some(due) = due {
            self.due.lock().add(due, now_ms);
        }
        outgoing.frames.push_back(frame);
        // It may stand still with the lock, as long as others have its core.
        match runs_when_idle() {
            true => Ok(false),
            false => outgoing.write(&self.socket),
        }
    }

    /// An answer came over it, from the node at its other end.
    ///
    /// # Errors
    /// Why it is not the one that is due.
    pub(super) fn settle(
        &self,
        answer: &[u64],
        node: NodeId,
        now_ms: u64,
    ) -> Result<(), &'static str> {
        self.due.lock().settle(answer, node, now_ms)
    }

    /// For how long no answer has come though one was due. As long as messages wait to be received it is not known
    /// that none came.
    pub(super) fn waiting_ms(&self, now_ms: u64) -> u64 {
        match self.has_more.load(Ordering::Relaxed) {
            true => 0,
            false => self.due.lock().waiting_ms(now_ms),
        }
    }

    /// Writes what was kept; true if nothing is left.
    pub(super) fn flush(&self) -> io::Result<bool> {
        self.outgoing.lock().write(&self.socket)
    }

    /// True if something waits for the socket.
    pub(super) fn has_outgoing(&self) -> bool {
        !self.outgoing.lock().frames.is_empty()
    }

    /// The messages that came, up to some number, so that others have their turn. Those that came
    /// before the connection ended are given before its error.
    pub(super) fn receive(&self) -> io::Result<Vec<Vec<u64>>> {
        /// Messages before others have their turn.
        const MESSAGES: usize = 16;
        let mut messages = Vec::new();
        let mut incoming = self.incoming.lock();
        while messages.len() < MESSAGES {
            if let Some(error) = incoming.error {
                if messages.is_empty() {
                    return Err(error.into());
                }
                break;
            }
            match incoming.read(&self.socket) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => incoming.error = Some(error.kind()),
            }
        }
        self.has_more
            .store(messages.len() == MESSAGES, Ordering::Relaxed);
        Ok(messages)
    }

    /// Ends the connection, as the peer will see.
    pub(super) fn close(&self) {
        // One that is gone already is closed as well.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Outgoing {
    fn write(&mut self, mut socket: &TcpStream) -> io::Result<bool> {
        while let Some(frame) = self.frames.front() {
            let bytes: &[u8] = cast_slice(frame);
            match socket.write(&bytes[self.written..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.written == bytes.len() {
                self.written = 0;
                self.frames.pop_front();
            }
        }
        Ok(true)
    }
}

impl Incoming {
    /// The next message, if it is there whole.
    fn read(&mut self, mut socket: &TcpStream) -> io::Result<Option<Vec<u64>>> {
        loop {
            let bytes: &mut [u8] = cast_slice_mut(&mut self.words);
            while self.read < bytes.len() {
                match socket.read(&mut bytes[self.read..]) {
                    Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                    Ok(read) => self.read += read,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.read = 0;
            if !self.is_length {
                self.is_length = true;
                return Ok(Some(std::mem::replace(&mut self.words, vec![0])));
            }
            let length = self.words[0];
            if length > MAX_FRAME_WORDS as u64 {
                return Err(ErrorKind::InvalidData.into());
            }
            self.words = vec![0; length as usize];
            self.is_length = false;
        }
    }
}

const _: () = assert!(WORD_BYTES == size_of::<u64>());

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Stream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (other, _) = listener.accept().unwrap();
        (Stream::new(one).unwrap(), Stream::new(other).unwrap())
    }

    #[test]
    fn messages_of_all_lengths_arrive_though_the_socket_takes_pieces() {
        let (one, other) = pair();
        let message = |i: usize| vec![i as u64; [0, 1, 5, MAX_FRAME_WORDS][i % 4]];
        let mut is_all = true;
        for i in 0..200 {
            is_all &= one.send(&message(i), None, 0).unwrap();
        }
        // More than a socket holds.
        assert!(!is_all && one.has_outgoing());
        let mut received = 0;
        while received < 200 {
            for found in other.receive().unwrap() {
                assert_eq!(found, message(received));
                received += 1;
            }
            let _ = one.flush().unwrap();
        }
        assert!(!one.has_outgoing());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_runs_when_idle_leaves_its_messages_to_others() {
        let (one, other) = pair();
        std::thread::scope(|scope| {
            let sends = scope.spawn(|| {
                crate::schedule::run_when_idle().expect("any thread may");
                one.send(&[1, 2], None, 0).unwrap()
            });
            assert!(!sends.join().unwrap());
        });
        assert!(one.has_outgoing());
        assert!(one.send(&[3], None, 0).unwrap());
        let mut received = Vec::new();
        while received.len() < 2 {
            received.extend(other.receive().unwrap());
        }
        assert_eq!(received, [vec![1, 2], vec![3]]);
    }

    #[test]
    fn an_end_and_a_length_that_cannot_be_are_errors() {
        let (one, other) = pair();
        let mut socket = &one.socket;
        socket.write_all(&u64::MAX.to_ne_bytes()).unwrap();
        let error = loop {
            if let Err(error) = other.receive() {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let (one, other) = pair();
        one.send(&[1, 2], None, 0).unwrap();
        one.close();
        let mut messages = Vec::new();
        let error = loop {
            match other.receive() {
                Ok(more) => messages.extend(more),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert_eq!(messages, [[1, 2]]);
    }
    #[test]
    fn after_a_length_that_cannot_be_no_message_is_read() {
        let (one, other) = pair();
        let mut socket = &one.socket;
        // A message, the length, and what would be a message.
        for word in [1, 7, u64::MAX, 1, 8] {
            socket.write_all(&u64::to_ne_bytes(word)).unwrap();
        }
        one.close();
        let mut messages = Vec::new();
        let mut next = || loop {
            match other.receive() {
                Ok(more) => messages.extend(more),
                Err(error) => break error.kind(),
            }
        };
        assert_eq!([next(), next()], [ErrorKind::InvalidData; 2]);
        assert_eq!(messages, [[7]]);
    }
}
