//! How are streams fed, and results read, over a WebSocket (RFC 6455)?
//!
//! A socket is a connection that left HTTP. It counts among the connections, as one that is busy, until it
//! ends; the codes and reasons of its close frames say why it does. Whoever says nothing for as long as a
//! client may take for a request, and answers no ping, is gone.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::{OnUpgrade, on};
use hyper::{Method, Request, Response, StatusCode, Version};
use jindou_engine::{Database, PushReport, TupleFormat};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::body::{Body, Chunk};
use crate::connections::Peer;
use crate::error::Refusal;
use crate::events::Framing;
use crate::metered::Metered;
use crate::protocol;
use crate::queries::Client;
use crate::respond;
use crate::sender::Sender;
use crate::service::Service;
use crate::streams::{PUSH_FACTOR, described, format, time};

/// The version of the protocol.
const VERSION: &str = "13";
/// Bytes that are read at once, and of what is written, that wait to be sent.
const BUFFER_BYTES: usize = 16 << 10;
/// The longest reason that a close frame holds.
const REASON_BYTES: usize = 120;
/// How long a client may take to say that it has seen the close frame.
const CLOSE_GRACE: Duration = Duration::from_secs(1);

/// Whether a request asks to leave HTTP for a WebSocket.
pub(crate) fn is_asked_for<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    request.method() == Method::GET && has_token(headers, UPGRADE, "websocket")
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name);
    let values = values.iter().filter_map(|value| value.to_str().ok());
    let mut tokens = values.flat_map(|value| value.split(','));
    tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
}

/// The answer by which a connection leaves HTTP.
fn switch(request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
    let headers = request.headers();
    let is_version = |value: &HeaderValue| value.as_bytes() == VERSION.as_bytes();
    if !headers.get(SEC_WEBSOCKET_VERSION).is_some_and(is_version) {
        let message = "the header Sec-WebSocket-Version is 13 here";
        return Err(Refusal::new(StatusCode::UPGRADE_REQUIRED, message));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let Some(key) = key.filter(|_| has_token(headers, CONNECTION, "upgrade")) else {
        return Err(Refusal::bad_request(
            "a WebSocket needs the headers Connection: Upgrade and Sec-WebSocket-Key",
        ));
    };
    let accept = derive_accept_key(key.as_bytes());
    let accept = HeaderValue::from_str(&accept).map_err(|_| Refusal::internal())?;
    let mut response = respond::nothing();
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

fn peer(request: &Request<Incoming>) -> Result<Arc<Peer>, Refusal> {
    let peer = request.extensions().get::<Arc<Peer>>();
    peer.cloned().ok_or_else(Refusal::internal)
}

impl Service {
    /// Takes tuples of a stream as frames, each of which is one push.
    pub(crate) fn push_socket(
        &self,
        name: String,
        mut request: Request<Incoming>,
        client: &Arc<Client>,
    ) -> Result<Response<Body>, Refusal> {
        self.check_write(&request)?;
        let parameters = request.uri().query().unwrap_or_default();
        let wanted: Option<String> = protocol::number(parameters, "format", "a media type")?;
        let format = wanted.map_or(Ok(TupleFormat::Lines), |wanted| format(&wanted))?;
        let stream = self.executor.database.stream(&name);
        if stream.is_none() {
            let message = format!("there is no stream {name}");
            return Err(Refusal::new(StatusCode::NOT_FOUND, message));
        }
        let pushes = Pushes {
            name,
            format,
            time_ms: time(&request)?,
            sender: Sender::of_parameters(parameters)?,
            described: described(&request),
            client: Arc::clone(client),
            frames: 0,
        };
        let (response, peer) = (switch(&request)?, peer(&request)?);
        let upgrade = on(&mut request);
        peer.set_session(Box::new(move |service, peer| {
            Box::pin(async move {
                if let Some(mut socket) = Socket::open(&service, &peer, upgrade).await {
                    let close = pushes.run(&service, &mut socket).await;
                    socket.close(close).await;
                }
            })
        }));
        Ok(response)
    }

    /// Sends results as frames.
    pub(crate) async fn results_socket(
        &self,
        name: String,
        mut request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        self.check_socket(&request)?;
        let (response, peer) = (switch(&request)?, peer(&request)?);
        let chunks = self.read_results(name, &request, Framing::Messages).await?;
        let upgrade = on(&mut request);
        peer.set_session(Box::new(move |service, peer| {
            Box::pin(async move {
                if let Some(mut socket) = Socket::open(&service, &peer, upgrade).await {
                    let close = send_results(&mut socket, chunks).await;
                    socket.close(close).await;
                }
            })
        }));
        Ok(response)
    }
}

/// Why a socket ends.
enum Close {
    /// The client said so, or is gone.
    Gone,
    Because(CloseCode, Cow<'static, str>),
}

impl Close {
    fn because(code: CloseCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Because(code, reason.into())
    }

    fn of(error: &Error) -> Self {
        match error {
            Error::Capacity(error) => Self::because(CloseCode::Size, error.to_string()),
            Error::Utf8(_) => Self::because(CloseCode::Invalid, "a text is not UTF-8"),
            Error::Io(error) if error.kind() == std::io::ErrorKind::OutOfMemory => {
                Self::because(CloseCode::Again, error.to_string())
            }
            Error::Protocol(error) => Self::because(CloseCode::Protocol, error.to_string()),
            _ => Self::Gone,
        }
    }
}

/// A connection whose client speaks WebSocket.
struct Socket {
    stream: WebSocketStream<Metered>,
    stopping: watch::Receiver<bool>,
    keep_alive: Duration,
    idle_timeout: Duration,
    /// When the client was last heard, and is next asked whether it is there.
    heard: Instant,
    next_ping: Instant,
    limit_bytes: usize,
    _underway: crate::connections::Underway,
}

impl Socket {
    async fn open(service: &Service, peer: &Arc<Peer>, upgrade: OnUpgrade) -> Option<Self> {
        // Nothing of HTTP may be sent any more.
        let underway = peer.begin(Version::HTTP_10);
        let upgraded = upgrade.await.ok()?;
        let config = &service.config;
        let metered = Metered::new(upgraded, service.pool().cloned());
        let limit = Some(config.max_body_bytes);
        let options = WebSocketConfig::default()
            .read_buffer_size(BUFFER_BYTES)
            .write_buffer_size(BUFFER_BYTES)
            .max_message_size(limit)
            .max_frame_size(limit);
        let stream = WebSocketStream::from_raw_socket(metered, Role::Server, Some(options)).await;
        let now = Instant::now();
        Some(Self {
            stream,
            stopping: service.readers.stopping.subscribe(),
            keep_alive: config.keep_alive,
            idle_timeout: config.idle_timeout,
            heard: now,
            next_ping: now + config.keep_alive,
            limit_bytes: config.max_body_bytes,
            _underway: underway,
        })
    }

    /// The next message of the client that says something.
    async fn next(&mut self) -> Result<Message, Close> {
        loop {
            let message = tokio::select! {
                message = self.stream.next() => Some(message),
                stops = self.stopping.wait_for(|stops| *stops) => {
                    drop(stops);
                    return Err(Close::because(CloseCode::Away, "the server stops"));
                }
                () = sleep_until(self.next_ping) => None,
            };
            let Some(message) = message else {
                self.look().await?;
                continue;
            };
            self.heard = Instant::now();
            match message {
                None => return Err(Close::Gone),
                Some(Err(error)) => return Err(self.refuse(&error)),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
                Some(Ok(Message::Close(_))) => return Err(Close::Gone),
                Some(Ok(message)) => return Ok(message),
            }
        }
    }

    fn refuse(&self, error: &Error) -> Close {
        match Close::of(error) {
            Close::Because(CloseCode::Size, _) => {
                let limit = self.limit_bytes;
                let reason =
                    format!("a frame is larger than the {limit} bytes that --max-body sets");
                Close::because(CloseCode::Size, reason)
            }
            close => close,
        }
    }

    /// Asks the client whether it is there, unless it said nothing for too long.
    async fn look(&mut self) -> Result<(), Close> {
        if self.heard.elapsed() >= self.idle_timeout {
            let reason = "nothing whole came for too long, not even the answer to a ping";
            return Err(Close::because(CloseCode::Policy, reason));
        }
        let deadline = self.heard + self.idle_timeout;
        self.next_ping = (Instant::now() + self.keep_alive).min(deadline);
        self.send(Message::Ping(bytes::Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Close> {
        let sent = self.stream.send(message).await;
        sent.map_err(|_| Close::Gone)
    }

    async fn close(mut self, close: Close) {
        let mut is_cut = false;
        if let Close::Because(code, reason) = close {
            is_cut = matches!(
                code,
                CloseCode::Size | CloseCode::Again | CloseCode::Protocol | CloseCode::Invalid
            );
            let end = reason.floor_char_boundary(REASON_BYTES);
            let frame = CloseFrame {
                code,
                reason: reason[..end].into(),
            };
            if self.stream.close(Some(frame)).await.is_err() {
                return;
            }
        }
        // What is still under way, so that the client does not find its connection cut: its own close
        // frame, or the rest of what was refused.
        let last = async {
            match is_cut {
                true => self.stream.get_mut().discard().await,
                false => while let Some(Ok(_)) = self.stream.next().await {},
            }
        };
        let _ = tokio::time::timeout(CLOSE_GRACE, last).await;
    }
}

/// What comes into a stream through a socket.
struct Pushes {
    name: String,
    format: TupleFormat,
    time_ms: Option<i64>,
    /// Who sends the next frame, if that is said, and as which one.
    sender: Option<Sender>,
    described: String,
    client: Arc<Client>,
    frames: u64,
}

impl Pushes {
    async fn run(mut self, service: &Service, socket: &mut Socket) -> Close {
        loop {
            let text = match socket.next().await {
                Ok(Message::Text(text)) => text,
                Ok(_) => {
                    let reason = "tuples are text, and come in frames of text";
                    return Close::because(CloseCode::Unsupported, reason);
                }
                Err(close) => return close,
            };
            let memory = socket.stream.get_mut().settle();
            self.frames += 1;
            let pushed = self.push(service, text.as_str().as_bytes().to_vec()).await;
            drop((text, memory));
            let is_refused = pushed.is_err();
            let answer = Message::text(self.answer(pushed).to_string());
            if let Err(close) = socket.send(answer).await {
                return close;
            }
            let Some(sender) = self.sender.take() else {
                continue;
            };
            // Once the number of a later frame is known, this one would be taken for a repeated one.
            if is_refused {
                let reason = "a frame was refused, and those behind it have later numbers";
                return Close::because(CloseCode::Policy, reason);
            }
            self.sender = sender.next();
            if self.sender.is_none() {
                return Close::because(CloseCode::Policy, "there is no number after the last one");
            }
        }
    }

    async fn push(&self, service: &Service, text: Vec<u8>) -> Result<PushReport, Refusal> {
        let (name, format, time_ms) = (self.name.clone(), self.format, self.time_ms);
        let write = service.write_of(self.described.clone(), 0, &self.client);
        let memory = service.reserve_large(text.len() * PUSH_FACTOR)?;
        let sender = self.sender.clone();
        let work = move |database: &Database| {
            let _memory = memory;
            match &sender {
                None => database.push(&name, format, time_ms, text),
                Some(by) => database.push_once(&name, by.producer(), format, time_ms, text),
            }
        };
        service.executor.change(write, work).await
    }

    /// What became of a frame, or what is wrong with it.
    fn answer(&self, pushed: Result<PushReport, Refusal>) -> Value {
        match pushed {
            Ok(report) if report.repeated => json!({
                "frame": self.frames,
                "accepted": 0,
                "late": 0,
                "repeated": true,
            }),
            Ok(report) => json!({
                "frame": self.frames,
                "accepted": report.accepted,
                "late": report.late,
            }),
            Err(refusal) => json!({
                "frame": self.frames,
                "status": refusal.status.as_u16(),
                "error": refusal.message,
                "retry_after": refusal.retry_after,
            }),
        }
    }
}

/// Sends what a reader of results reads, until that ends.
async fn send_results(socket: &mut Socket, mut chunks: mpsc::Receiver<Chunk>) -> Close {
    let mut is_first = true;
    loop {
        let chunk = tokio::select! {
            chunk = chunks.recv() => chunk,
            came = socket.next() => match came {
                Ok(_) => {
                    socket.stream.get_mut().settle();
                    let reason = "results are read here, and nothing is taken";
                    return Close::because(CloseCode::Policy, reason);
                }
                Err(close) => return close,
            },
        };
        let (bytes, is_last) = match chunk {
            Some(Chunk::Data(bytes)) => (bytes, false),
            Some(Chunk::Last(bytes)) => (bytes, true),
            Some(Chunk::End) if *socket.stopping.borrow() => {
                return Close::because(CloseCode::Away, "the server stops");
            }
            Some(Chunk::End) => {
                return Close::because(CloseCode::Normal, "there are no more results");
            }
            None => return Close::because(CloseCode::Error, "the results were cut short"),
        };
        let data = if is_first { Data::Text } else { Data::Continue };
        is_first = is_last;
        let frame = Frame::message(bytes, OpCode::Data(data), is_last);
        if let Err(close) = socket.send(Message::Frame(frame)).await {
            return close;
        }
    }
}
