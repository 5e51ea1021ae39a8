//! One event of 1 GB: of each format, with its length said before, in chunks, and through a WebSocket.

use std::net::TcpStream;

use super::{Ground, made};
use crate::BenchError;
use crate::hostile::streams::client::{
    Client, LINES, Told, frame_head, send_until_answered, socket,
};

/// Bytes of the event.
const EVENT_BYTES: u64 = 1 << 30;
/// Bytes that are sent at once.
const PIECE_BYTES: usize = 256 << 10;

const FORMATS: [(&str, &str); 3] = [
    (LINES, "1\t<http://e/s> <http://e/p> \""),
    ("application/n-triples", "<http://e/s> <http://e/p> \""),
    (
        "application/ld+json",
        "{\"@id\":\"http://e/s\",\"http://e/p\":\"",
    ),
];

pub(super) fn run(ground: &Ground) -> Result<Told, BenchError> {
    let mut client = Client::new(ground.address);
    let mut told = Told::default();
    made(&mut client, "giant", "")?;
    let io = || BenchError::io("a giant event");
    for (media_type, begin) in FORMATS {
        let path = match media_type {
            LINES => "/streams/giant".to_owned(),
            _ => "/streams/giant?time=1".to_owned(),
        };
        for way in [Way::Length, Way::Chunks] {
            let what = format!("{media_type}, {}", way.name());
            let stream = TcpStream::connect(ground.address).map_err(io())?;
            let head = way.head(ground, &path, media_type);
            let sent = send_until_answered(stream, pieces(head, begin, way));
            note(&mut told, &what, &[413, 503], sent);
        }
    }
    let opened = socket(ground.address, "/streams/giant").map_err(io())?;
    match opened {
        Ok(stream) => {
            let pieces = pieces(frame_head(EVENT_BYTES), FORMATS[0].1, Way::Length);
            let sent = send_until_answered(stream, pieces);
            note(&mut told, "a frame", &[1009, 1013], sent);
        }
        Err(refused) => told.expect("a socket", &[101], &refused),
    }
    told.expect("dropping", &[204], &client.delete("/streams/giant")?);
    Ok(told)
}

fn note(
    told: &mut Told,
    what: &str,
    right: &[u16],
    sent: std::io::Result<(crate::hostile::streams::client::Answer, u64)>,
) {
    match sent {
        Ok((answer, _)) => told.expect(what, right, &answer),
        Err(error) => told.wrong(format!("{what}: no answer: {error}")),
    }
}

/// How long a body is said to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Length,
    Chunks,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Length => "its length known",
            Self::Chunks => "in chunks",
        }
    }

    fn head(self, ground: &Ground, path: &str, media_type: &str) -> Vec<u8> {
        let length = match self {
            Self::Length => format!("Content-Length: {EVENT_BYTES}"),
            Self::Chunks => "Transfer-Encoding: chunked".to_owned(),
        };
        let host = ground.address;
        format!(
            "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {media_type}\r\n{length}\r\n\r\n"
        )
        .into_bytes()
    }
}

/// The head, the beginning of the event, and then one text without end.
fn pieces(head: Vec<u8>, begin: &'static str, way: Way) -> impl FnMut() -> Option<Vec<u8>> {
    let mut sent = 0;
    let mut head = Some(head);
    move || {
        if let Some(head) = head.take() {
            return Some(head);
        }
        if sent >= EVENT_BYTES {
            return None;
        }
        let mut piece = match sent {
            0 => begin.as_bytes().to_vec(),
            _ => Vec::new(),
        };
        piece.resize(PIECE_BYTES, b'x');
        sent += piece.len() as u64;
        if way == Way::Chunks {
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.append(&mut piece);
            chunk.extend_from_slice(b"\r\n");
            piece = chunk;
        }
        Some(piece)
    }
}
