//! Do sockets feed streams and give results, and does each end say why?

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use jindou_engine::{Config, MemoryPool};
use jindou_server::Cors;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::client::Running;
use crate::streams::{
    JSON, LATEST, QUERY, assert_status, feed, post, put, with_query, with_stream,
};

const LINE: &str = "500\t<http://e/a> <http://e/p> \"1\" .";

/// A client of a WebSocket.
struct Socket {
    runtime: Runtime,
    stream: WebSocketStream<TcpStream>,
}

impl Socket {
    fn of(server: &Running, target: &str) -> Self {
        Self::open(server, target, None).expect("the server takes it")
    }

    /// # Errors
    /// The status that the server answers.
    fn open(server: &Running, target: &str, origin: Option<&str>) -> Result<Self, u16> {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let stream = runtime.block_on(async {
            let stream = TcpStream::connect(server.address).await.unwrap();
            let url = format!("ws://{}{target}", server.address);
            let mut request = url.into_client_request().unwrap();
            if let Some(origin) = origin {
                request
                    .headers_mut()
                    .insert("origin", origin.parse().unwrap());
            }
            match client_async(request, stream).await {
                Ok((stream, _)) => Ok(stream),
                Err(Error::Http(response)) => Err(response.status().as_u16()),
                Err(error) => panic!("{error}"),
            }
        })?;
        Ok(Self { runtime, stream })
    }

    fn send(&mut self, message: Message) {
        let sent = self.runtime.block_on(self.stream.send(message));
        sent.expect("the server reads");
    }

    fn next(&mut self) -> Message {
        loop {
            let next =
                async { tokio::time::timeout(Duration::from_secs(60), self.stream.next()).await };
            let next = self.runtime.block_on(next).expect("in time");
            match next.expect("before the end").expect("as it should be") {
                Message::Ping(_) => {}
                message => return message,
            }
        }
    }

    fn json(&mut self) -> Value {
        match self.next() {
            Message::Text(text) => serde_json::from_str(text.as_str()).expect("JSON"),
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    fn assert_closed(mut self, code: CloseCode, part: &str) {
        match self.next() {
            Message::Close(Some(frame)) => {
                assert_eq!(frame.code, code, "{frame}");
                assert!(frame.reason.contains(part), "{frame}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_frame_is_a_push() {
    let server = with_stream();
    let mut socket = Socket::of(&server, "/streams/s");
    socket.send(Message::text(format!("{LINE}\n{LINE}\n")));
    assert_eq!(
        socket.json(),
        json!({ "frame": 1, "accepted": 2, "late": 0 })
    );
    socket.send(Message::text("soon\t<http://e/a>"));
    let refused = socket.json();
    assert_eq!(
        (&refused["frame"], &refused["status"]),
        (&json!(2), &json!(400))
    );
    assert!(
        refused["error"].as_str().unwrap().contains("line 1"),
        "{refused}"
    );
    socket.send(Message::text(LINE));
    assert_eq!(socket.json()["frame"], 3);
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 3);
    socket.send(Message::binary(vec![0]));
    socket.assert_closed(CloseCode::Unsupported, "text");
    let mut lines = Socket::of(&server, "/streams/s?format=application/x-ndjson&time=600");
    lines.send(Message::text("{\"http://e/p\":1}\n{\"http://e/p\":2}"));
    assert_eq!(lines.json()["accepted"], 2);
    server.send("DELETE", "/streams/s", "", "");
    lines.send(Message::text("{\"http://e/p\":1}"));
    assert_eq!(lines.json()["status"], 404);
}

#[test]
fn what_a_producer_sends_again_through_a_socket_is_taken_once() {
    let server = with_stream();
    let mut first = Socket::of(&server, "/streams/s?producer=meter%201&sequence=7");
    for frame in 1..=3 {
        first.send(Message::text(LINE));
        assert_eq!(
            first.json(),
            json!({ "frame": frame, "accepted": 1, "late": 0 })
        );
    }
    drop(first);
    // It has not heard of the last two.
    let mut again = Socket::of(&server, "/streams/s?producer=meter%201&sequence=8");
    for frame in 1..=2 {
        again.send(Message::text(LINE));
        let repeated = json!({ "frame": frame, "accepted": 0, "late": 0, "repeated": true });
        assert_eq!(again.json(), repeated);
    }
    again.send(Message::text(LINE));
    assert_eq!(again.json()["accepted"], 1);
    again.send(Message::text("soon"));
    assert_eq!(again.json()["status"], 400);
    again.assert_closed(CloseCode::Policy, "later numbers");
    // By either way it is the same producer.
    let headers =
        "Content-Type: text/tab-separated-values\r\nProducer: meter 1\r\nSequence: 10\r\n";
    let repeated = post(&server, "/streams/s", headers, LINE);
    assert_status(&repeated, 200, "\"repeated\":true");
    let refused = Socket::open(&server, "/streams/s?producer=a", None);
    assert_eq!(refused.err(), Some(400));
}

#[test]
fn results_come_as_frames() {
    let server = with_query();
    feed(&server, 0..2);
    let mut events = Socket::of(&server, "/continuous/q/results?after=1");
    let result = events.json();
    assert_eq!(
        (&result["sequence"], &result["instant"]),
        (&json!(2), &json!(2000))
    );
    assert_eq!(result["results"]["bindings"][0]["y"]["value"], "é\n1");
    // Far more than one part of a message.
    let value = "é".repeat(300_000);
    let line = format!("2500\t<http://e/x> <http://e/p> \"{value}\" .\n");
    let lines = "Content-Type: text/tab-separated-values\r\n";
    assert_status(&post(&server, "/streams/s", lines, &line), 200, "accepted");
    post(&server, "/streams/s/heartbeat?time=3000", "", "");
    let long = events.json();
    assert_eq!(long["results"]["bindings"][0]["y"]["value"], value);
    assert_eq!(server.send("DELETE", "/continuous/q", "", "").status, 204);
    events.assert_closed(CloseCode::Normal, "no more results");
    server.wait_for_metric("jindou_result_readers 0");
}

#[test]
fn a_reader_that_says_something_and_a_server_that_stops_end_sockets() {
    let mut server = with_query();
    let mut reader = Socket::of(&server, "/continuous/q/results");
    reader.send(Message::text("more"));
    reader.assert_closed(CloseCode::Policy, "nothing is taken");
    let (reader, push) = (
        Socket::of(&server, "/continuous/q/results"),
        Socket::of(&server, "/streams/s"),
    );
    server.stop();
    reader.assert_closed(CloseCode::Away, "the server stops");
    push.assert_closed(CloseCode::Away, "the server stops");
}

#[test]
fn limits_hold_for_sockets() {
    let server = Running::with(|config| {
        config.max_body_bytes = 1_000;
        config.result_readers = 1;
        config.idle_timeout = Duration::from_millis(300);
        config.keep_alive = Duration::from_millis(50);
    });
    let made = put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    assert_status(&made, 201, "");
    assert_status(&put(&server, "/continuous/q", QUERY, LATEST), 201, "");
    let mut large = Socket::of(&server, "/streams/s");
    large.send(Message::text("x".repeat(1_001)));
    large.assert_closed(CloseCode::Size, "1000 bytes");
    let _reader = Socket::of(&server, "/continuous/q/results");
    assert_eq!(
        Socket::open(&server, "/continuous/q/results", None).err(),
        Some(503)
    );
    // The head of a frame of 500 bytes, its mask, and a byte.
    let mut cut = Socket::of(&server, "/streams/s");
    let stream = cut.stream.get_mut();
    let frame = [0x81, 0x80 | 126, 1, 244, 0, 0, 0, 0, b'x'];
    cut.runtime.block_on(async {
        use tokio::io::AsyncWriteExt;
        stream.write_all(&frame).await.unwrap();
    });
    cut.assert_closed(CloseCode::Policy, "nothing whole came");
    assert_eq!(server.get("/streams/s", "").json()["tuples"], 0);
    server.wait_for_metric("jindou_connections 1");
}

#[test]
fn what_comes_in_is_reserved_before_it_is_whole() {
    let mut engine = Config::default();
    let pool = Arc::new(MemoryPool::new(256 << 10));
    engine.memory_pool = Some(Arc::clone(&pool));
    let server = Running::with_engine(engine, |_| {});
    put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    let mut socket = Socket::of(&server, "/streams/s");
    // A frame of a megabyte, half of which comes.
    let mut frame = vec![0x81, 0x80 | 127, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0];
    frame.resize(512 << 10, b'x');
    let stream = socket.stream.get_mut();
    let sent = async { tokio::io::AsyncWriteExt::write_all(stream, &frame).await };
    // The server may have closed before all of it was sent.
    let _ = socket.runtime.block_on(sent);
    socket.assert_closed(CloseCode::Again, "memory");
    server.wait_for_metric("jindou_connections 1");
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn requests_that_are_no_sockets_are_told_so() {
    let server = with_query();
    let upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\n";
    for (headers, status, part) in [
        (upgrade.to_owned(), 426, "13"),
        (format!("{upgrade}Sec-WebSocket-Version: 8\r\n"), 426, "13"),
        (
            format!("{upgrade}Sec-WebSocket-Version: 13\r\n"),
            400,
            "Sec-WebSocket-Key",
        ),
    ] {
        for target in ["/streams/s", "/continuous/q/results"] {
            assert_status(&server.get(target, &headers), status, part);
        }
    }
    for (target, status) in [
        ("/streams/t", 404),
        ("/continuous/r/results", 404),
        ("/streams/s?format=turtle", 415),
        ("/streams/s?time=soon", 400),
        ("/continuous/q/results?slow=down", 400),
    ] {
        assert_eq!(
            Socket::open(&server, target, None).err(),
            Some(status),
            "{target}"
        );
    }
}

#[test]
fn pages_of_other_origins_open_no_sockets_that_change_something() {
    let other = Some("http://other.example");
    let refused = |server: &Running, target: &str| Socket::open(server, target, other).err();
    let server = with_query();
    assert_eq!(refused(&server, "/streams/s"), Some(403));
    // A local server lets every page read.
    assert_eq!(refused(&server, "/continuous/q/results"), None);
    let own = format!("http://{}", server.address);
    assert!(Socket::open(&server, "/streams/s", Some(&own)).is_ok());
    let server = Running::with(|config| config.cors = Cors::None);
    put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    put(&server, "/continuous/q", QUERY, LATEST);
    assert_eq!(refused(&server, "/continuous/q/results"), Some(403));
    let server = Running::with(|config| {
        config.cors = Cors::Origins(vec!["http://other.example".to_owned()])
    });
    put(&server, "/streams/s", JSON, r#"{"iri":"http://e/s"}"#);
    put(&server, "/continuous/q", QUERY, LATEST);
    assert_eq!(refused(&server, "/continuous/q/results"), None);
    assert_eq!(refused(&server, "/streams/s"), None);
}
