//! How does a request get to a node? By a connection that has been used before, or a new one.
//!
//! A connection that nothing was asked on for a while is not used again: the node may close it at any moment, and what
//! is sent then may or may not have come to it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::outgoing::Outgoing;
use super::url::NodeUrl;

/// How long it may take to connect to a node, with TLS.
const CONNECT_TIME: Duration = Duration::from_secs(2);
/// How long a connection that nothing is asked on is kept, which is less than nodes do.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// Connections to a node that are kept so.
const MOST_IDLE: usize = 256;
/// What is read of an answer before it is handed on, at most.
const BUFFER_BYTES: usize = 64 << 10;

/// The way to a node.
pub(super) struct Link {
    url: NodeUrl,
    trust: Option<Arc<ClientConfig>>,
    /// The one that was used last is at the end.
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    sender: SendRequest<Outgoing>,
    since: Instant,
}

/// Why a node did not answer a request.
pub(super) enum Unanswered {
    /// Nothing of it was sent: here it is.
    Unsent(Box<Request<Outgoing>>, io::Error),
    /// What it brought did not come from the client.
    Body,
    /// It may have been executed.
    Lost(hyper::Error),
}

impl Link {
    pub(super) fn new(url: NodeUrl, trust: Option<Arc<ClientConfig>>) -> Self {
        Self {
            url,
            trust,
            idle: Mutex::default(),
        }
    }

    pub(super) fn url(&self) -> &NodeUrl {
        &self.url
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// A node that cannot be reached, or is lost before it answers.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Outgoing>,
    ) -> Result<Response<Incoming>, Unanswered> {
        loop {
            let (mut sender, is_new) = match self.take_idle() {
                Some(sender) => (sender, false),
                None => match self.connect().await {
                    Ok(sender) => (sender, true),
                    Err(error) => return Err(Unanswered::Unsent(Box::new(request), error)),
                },
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    self.keep(sender);
                    return Ok(response);
                }
                Err(mut error) => {
                    let unsent = error.take_message();
                    let error = error.into_error();
                    match unsent {
                        // The node had closed it. There are fewer with each round.
                        Some(unsent) if !is_new => request = unsent,
                        Some(unsent) => {
                            let error = io::Error::other(error);
                            return Err(Unanswered::Unsent(Box::new(unsent), error));
                        }
                        None if error.is_user() => return Err(Unanswered::Body),
                        None => return Err(Unanswered::Lost(error)),
                    }
                }
            }
        }
    }

    /// Forgets connections, as the node is lost.
    pub(super) fn forget_idle(&self) {
        self.lock().clear();
    }

    fn take_idle(&self) -> Option<SendRequest<Outgoing>> {
        let mut idle = self.lock();
        while let Some(last) = idle.pop() {
            if last.since.elapsed() > IDLE_TIME {
                // So are all before it.
                idle.clear();
            } else if last.sender.is_ready() {
                return Some(last.sender);
            }
        }
        None
    }

    /// Keeps a connection once its answer was read as a whole.
    fn keep(self: &Arc<Self>, mut sender: SendRequest<Outgoing>) {
        let link = Arc::clone(self);
        tokio::spawn(async move {
            // Otherwise it is closed, as its answer was not read to the end.
            if sender.ready().await.is_ok() {
                let mut idle = link.lock();
                if idle.len() < MOST_IDLE {
                    let since = Instant::now();
                    idle.push(Idle { sender, since });
                }
            }
        });
    }

    async fn connect(&self) -> io::Result<SendRequest<Outgoing>> {
        let connected = timeout(CONNECT_TIME, self.connect_in_time()).await;
        connected.map_err(|_| {
            let message = format!("no connection within {} s", CONNECT_TIME.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, message)
        })?
    }

    async fn connect_in_time(&self) -> io::Result<SendRequest<Outgoing>> {
        let stream = TcpStream::connect((self.url.host(), self.url.port())).await?;
        stream.set_nodelay(true)?;
        if !self.url.is_tls() {
            return begin(stream).await;
        }
        let trust = self.trust.as_ref().ok_or_else(|| {
            io::Error::other("nothing says which certificates of nodes are to be trusted")
        })?;
        let name = ServerName::try_from(self.url.host().to_owned()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::clone(trust));
        begin(connector.connect(name, stream).await?).await
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().expect("nobody panics while it has it")
    }
}

/// Begins HTTP on a connection, which ends with its last user.
async fn begin<S>(stream: S) -> io::Result<SendRequest<Outgoing>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.max_buf_size(BUFFER_BYTES);
    let (sender, connection) = http
        .handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "a connection to a node ended early");
        }
    });
    Ok(sender)
}
