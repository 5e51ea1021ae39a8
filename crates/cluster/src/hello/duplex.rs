//! How do many reads and writes of a connection end in time together? Each may wait no longer than what is left.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use super::HelloError;

/// A connection whose directions two threads may use at once, by calls that end in time.
pub trait Duplex: Sync {
    /// Reads some bytes, at least one unless the other side has ended. Waits for `within` at most, which is not zero.
    ///
    /// # Errors
    /// Those of [`io::Read::read`]; [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`] after that time.
    fn read_within(&self, into: &mut [u8], within: Duration) -> io::Result<usize>;

    /// Writes some bytes, at least one. Waits for `within` at most, which is not zero.
    ///
    /// # Errors
    /// Those of [`io::Write::write`]; [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`] after that time.
    fn write_within(&self, from: &[u8], within: Duration) -> io::Result<usize>;

    /// Lets reads and writes by others wait for any time again.
    ///
    /// # Errors
    /// Those of the system.
    fn lift_limits(&self) -> io::Result<()>;

    /// Ends both directions, and so the calls that wait.
    fn end(&self);

    /// The time by which waits are measured.
    fn now(&self) -> Instant {
        Instant::now()
    }
}

impl Duplex for TcpStream {
    fn read_within(&self, into: &mut [u8], within: Duration) -> io::Result<usize> {
        self.set_read_timeout(Some(within))?;
        { self }.read(into)
    }

    fn write_within(&self, from: &[u8], within: Duration) -> io::Result<usize> {
        self.set_write_timeout(Some(within))?;
        { self }.write(from)
    }

    fn lift_limits(&self) -> io::Result<()> {
        self.set_read_timeout(None)?;
        self.set_write_timeout(None)
    }

    fn end(&self) {
        // It fails where the connection is over, which is what is wanted.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// A connection that is used until a time.
pub(super) struct Limited<'s, S: ?Sized> {
    stream: &'s S,
    within: Duration,
    /// None if that is beyond what a clock can say.
    end: Option<Instant>,
}

impl<'s, S: Duplex + ?Sized> Limited<'s, S> {
    pub(super) fn new(stream: &'s S, within: Duration) -> Self {
        Self {
            stream,
            within,
            end: stream.now().checked_add(within),
        }
    }

    /// Fills a buffer, and reads nothing beyond it.
    pub(super) fn read(&self, into: &mut [u8]) -> Result<(), HelloError> {
        let mut filled = 0;
        while filled < into.len() {
            let read = self.stream.read_within(&mut into[filled..], self.left()?);
            filled += self.moved(read)?;
        }
        Ok(())
    }

    pub(super) fn read_array<const N: usize>(&self) -> Result<[u8; N], HelloError> {
        let mut bytes = [0; N];
        self.read(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes all bytes.
    pub(super) fn write(&self, mut bytes: &[u8]) -> Result<(), HelloError> {
        while !bytes.is_empty() {
            let written = self.stream.write_within(bytes, self.left()?);
            bytes = &bytes[self.moved(written)?..];
        }
        Ok(())
    }

    /// Hands the connection on.
    pub(super) fn lift(&self) -> Result<(), HelloError> {
        self.stream.lift_limits().map_err(HelloError::Io)
    }

    pub(super) fn end(&self) {
        self.stream.end();
    }

    fn left(&self) -> Result<Duration, HelloError> {
        let Some(end) = self.end else {
            return Ok(self.within);
        };
        let left = end.saturating_duration_since(self.stream.now());
        match left.is_zero() {
            true => Err(self.timed_out()),
            false => Ok(left),
        }
    }

    /// Bytes that a call moved: none if it was interrupted.
    fn moved(&self, outcome: io::Result<usize>) -> Result<usize, HelloError> {
        use io::ErrorKind as Kind;
        match outcome {
            Ok(0) => Err(HelloError::Ended),
            Ok(count) => Ok(count),
            Err(error) => match error.kind() {
                Kind::Interrupted => Ok(0),
                Kind::WouldBlock | Kind::TimedOut => Err(self.timed_out()),
                Kind::UnexpectedEof
                | Kind::BrokenPipe
                | Kind::ConnectionReset
                | Kind::ConnectionAborted
                | Kind::NotConnected => Err(HelloError::Ended),
                _ => Err(HelloError::Io(error)),
            },
        }
    }

    fn timed_out(&self) -> HelloError {
        let within = self.within;
        HelloError::TimedOut { within }
    }
}
