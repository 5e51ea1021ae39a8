//! How do bytes get to a client and back: plainly, or by TLS?

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::stall::StallGuard;

/// A connection; each write of it makes progress, or fails.
pub(crate) enum Wire {
    Plain(StallGuard),
    Tls {
        stream: Box<TlsStream<StallGuard>>,
        /// Read to see whether there is more, and not yet taken.
        peeked: Option<u8>,
    },
}

impl Wire {
    pub(crate) fn tls(stream: TlsStream<StallGuard>) -> Self {
        Self::Tls {
            stream: Box::new(stream),
            peeked: None,
        }
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream.stream(),
            Self::Tls { stream, .. } => stream.get_ref().0.stream(),
        }
    }

    /// Has the connection be reset when it is dropped, so that its client does not take what it has for the whole.
    pub(crate) fn reset(&self) {
        if let Err(error) = socket2::SockRef::from(self.tcp()).set_linger(Some(Duration::ZERO)) {
            tracing::debug!(%error, "a client may take a part of an answer for the whole");
        }
    }

    /// An error of the connection that no read or write has told yet.
    pub(crate) fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.tcp().take_error()
    }

    /// Whether the client has ended its sending side; pending while it may send more.
    pub(crate) fn poll_ended(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        match self {
            Self::Plain(stream) => {
                let count = ready!(stream.stream().poll_peek(context, &mut buffer))?;
                Poll::Ready(Ok(count == 0))
            }
            // What comes next on the wire may be the end or part of a record: it must be read to tell.
            Self::Tls { stream, peeked } => {
                if peeked.is_none() {
                    ready!(Pin::new(stream).poll_read(context, &mut buffer))?;
                    *peeked = buffer.filled().first().copied();
                }
                Poll::Ready(Ok(peeked.is_none()))
            }
        }
    }

    /// Sends a few bytes where nothing else waits to be sent; nothing where there is no room for them.
    pub(crate) fn say(&mut self, bytes: &[u8], context: &mut Context<'_>) -> io::Result<()> {
        let written = match self {
            Self::Plain(stream) => match stream.stream().try_write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                written => Poll::Ready(written),
            },
            Self::Tls { stream, .. } => Pin::new(&mut *stream).poll_write(context, bytes),
        };
        match written {
            Poll::Ready(Ok(written)) if written == bytes.len() => {}
            Poll::Ready(Ok(_)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => return Ok(()),
        }
        match Pin::new(self).poll_flush(context) {
            Poll::Ready(Err(error)) => Err(error),
            Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls { stream, peeked } => {
                if buffer.remaining() > 0
                    && let Some(byte) = peeked.take()
                {
                    buffer.put_slice(&[byte]);
                    return Poll::Ready(Ok(()));
                }
                Pin::new(stream).poll_read(context, buffer)
            }
        }
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls { stream, .. } => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Tls { stream, .. } => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Tls { stream, .. } => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls { stream, .. } => Pin::new(stream).poll_shutdown(context),
        }
    }
}
