//! How do two nodes that have greeted each other send each other a message of any length? Both at once: the length,
//! a signature, and the bytes.
//!
//! A thread writes while another reads, as each side could otherwise wait for the other to read first.

use std::time::Duration;

use jindou_model::NodeId;
use ring::digest;

use super::duplex::{Duplex, Limited};
use super::session::{Session, Signed, TAG_BYTES};
use super::{Greeted, HelloError};

/// The most bytes of a message of [`Greeted::exchange`].
pub const MOST_MESSAGE_BYTES: u64 = 256 << 20;
/// Bytes that are read, or copied behind a header, at once.
const PIECE_BYTES: usize = 64 << 10;

impl Greeted {
    /// Sends the other side a message and returns the one that it sends by the same call: both sides make as many.
    /// Nothing is read beyond it, and later calls on the connection have no time limit. Costs a thread for that time,
    /// and memory for twice the bytes that have come; a length that is only claimed costs none.
    ///
    /// # Errors
    /// [`HelloError::TooLong`] for more than [`MOST_MESSAGE_BYTES`] in either direction, [`HelloError::TimedOut`]
    /// unless all is sent and read `within` this time, [`HelloError::Changed`] if the other side did not sign what
    /// came, [`HelloError::Ended`] and [`HelloError::Io`]. The connection is then ended, unless the own message is
    /// too long.
    pub fn exchange<S: Duplex + ?Sized>(
        &mut self,
        stream: &S,
        bytes: &[u8],
        within: Duration,
    ) -> Result<Vec<u8>, HelloError> {
        check_length(bytes.len() as u64)?;
        let limited = Limited::new(stream, within);
        let exchange = Exchange {
            session: &self.session,
            node: self.node,
            stream: &limited,
        };
        let received = exchange.run(bytes)?;
        self.session.exchanges += 1;
        limited.lift()?;
        Ok(received)
    }
}

fn check_length(found_bytes: u64) -> Result<(), HelloError> {
    if found_bytes <= MOST_MESSAGE_BYTES {
        return Ok(());
    }
    Err(HelloError::TooLong {
        what: "a message between nodes",
        found_bytes,
        most_bytes: MOST_MESSAGE_BYTES,
        advice: "use more nodes or fewer shards",
    })
}

/// One exchange of messages.
struct Exchange<'e, S: ?Sized> {
    session: &'e Session,
    node: NodeId,
    stream: &'e Limited<'e, S>,
}

impl<S: Duplex + ?Sized> Exchange<'_, S> {
    fn run(&self, bytes: &[u8]) -> Result<Vec<u8>, HelloError> {
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("hello".to_owned());
            let send = || self.ending(self.send(bytes));
            let sending = builder.spawn_scoped(scope, send).map_err(HelloError::Io);
            let sending = self.ending(sending)?;
            let received = self.ending(self.receive());
            let sent = sending.join();
            let sent = sent.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            match (received, sent) {
                // The connection may have ended because this direction failed.
                (Err(HelloError::Ended), Err(error)) | (Ok(_), Err(error)) => Err(error),
                (received, _) => received,
            }
        })
    }

    /// A direction that failed ends the other one.
    fn ending<T>(&self, outcome: Result<T, HelloError>) -> Result<T, HelloError> {
        if outcome.is_err() {
            self.stream.end();
        }
        outcome
    }

    fn send(&self, bytes: &[u8]) -> Result<(), HelloError> {
        let tag = self.session.sign(Signed::Message, &self.signed(bytes));
        let (first, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES));
        let mut begin = (bytes.len() as u64).to_le_bytes().to_vec();
        begin.extend(tag.as_ref());
        begin.extend(first);
        self.stream.write(&begin)?;
        self.stream.write(rest)
    }

    fn receive(&self) -> Result<Vec<u8>, HelloError> {
        let length = u64::from_le_bytes(self.stream.read_array()?);
        check_length(length)?;
        let tag: [u8; TAG_BYTES] = self.stream.read_array()?;
        let mut bytes = Vec::new();
        read_growing(self.stream, length as usize, &mut bytes)?;
        let is_signed = self
            .session
            .is_signed(Signed::Message, &self.signed(&bytes), &tag);
        match is_signed {
            true => Ok(bytes),
            false => Err(HelloError::Changed { node: self.node }),
        }
    }

    /// What of a message is signed: which exchange it is of, how long it is, and its digest.
    fn signed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut signed = self.session.exchanges.to_le_bytes().to_vec();
        signed.extend((bytes.len() as u64).to_le_bytes());
        signed.extend(digest::digest(&digest::SHA256, bytes).as_ref());
        signed
    }
}

/// Reads `length` bytes into a buffer that grows as they come.
pub(super) fn read_growing<S: Duplex + ?Sized>(
    stream: &Limited<'_, S>,
    length: usize,
    into: &mut Vec<u8>,
) -> Result<(), HelloError> {
    while into.len() < length {
        let filled = into.len();
        into.resize(length.min(filled + PIECE_BYTES), 0);
        stream.read(&mut into[filled..])?;
    }
    Ok(())
}
