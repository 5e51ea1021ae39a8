//! How is the body of a request decompressed, as it comes?
//!
//! By its `Content-Encoding`, or by how a document begins that has none, into a sink that counts each byte before it keeps it: what a few bytes
//! stand for is never there at once.

use std::io::{self, Write};

use brotli_decompressor::DecompressorWriter;
use flate2::write::MultiGzDecoder;
use hyper::StatusCode;
use hyper::header::{CONTENT_ENCODING, HeaderMap};
use jindou_engine::ingest::Compression;
use zstd::stream::{raw, zio};
use zstd::zstd_safe::DParameter;

use crate::error::Refusal;

/// The longest window of zstd, as a power of two: what decoders are asked to support (RFC 8878, section
/// 3.1.1.1.2).
const ZSTD_WINDOW_LOG: u32 = 23;
/// First bytes of a document that say how it is compressed.
pub(crate) const MARK_BYTES: usize = 4;
/// Bytes that the decoder of brotli hands on at once.
const BROTLI_BUFFER_BYTES: usize = 64 << 10;

/// How a body is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Identity,
    Gzip,
    Zstd,
    Brotli,
}

impl Coding {
    /// That of a request.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut codings = headers
            .get_all(CONTENT_ENCODING)
            .iter()
            .flat_map(|value| value.as_bytes().split(|&byte| byte == b','))
            .map(|name| name.trim_ascii().to_ascii_lowercase());
        let coding = match codings.next().as_deref() {
            None | Some(b"" | b"identity") => Some(Self::Identity),
            Some(b"gzip" | b"x-gzip") => Some(Self::Gzip),
            Some(b"zstd") => Some(Self::Zstd),
            Some(b"br") => Some(Self::Brotli),
            Some(_) => None,
        };
        match (coding, codings.next()) {
            (Some(coding), None) => Ok(coding),
            _ => Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the Content-Encoding of a body is gzip, zstd, br or identity, and one of them",
            )),
        }
    }

    /// How a document of RDF is compressed of which no header says so, as files that are sent as they are:
    /// neither gzip's mark nor that of zstd can begin a text.
    pub(crate) fn of_document(head: &[u8]) -> Self {
        match Compression::from_magic(head) {
            Compression::Gzip => Self::Gzip,
            Compression::Zstd => Self::Zstd,
            _ => Self::Identity,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// What its decoder holds at most, in bytes.
    pub(crate) fn held_bytes(self) -> usize {
        match self {
            Self::Identity => 0,
            Self::Gzip => 96 << 10,
            // The window, and room for the block that is written to it.
            Self::Zstd => (1 << ZSTD_WINDOW_LOG) + (1 << 20),
            // The longest window of RFC 7932, and the tables.
            Self::Brotli => (16 << 20) + (1 << 20),
        }
    }

    /// Bytes that are decompressed at once, which stand for some megabytes at most.
    pub(crate) fn step(self) -> usize {
        match self {
            Self::Identity => usize::MAX,
            Self::Gzip => 4 << 10,
            Self::Zstd => 256,
            Self::Brotli => 16,
        }
    }

    /// Decompresses into a sink.
    pub(crate) fn decoder<W: Write>(self, sink: W) -> io::Result<Decoder<W>> {
        Ok(match self {
            Self::Identity => Decoder::Identity(sink),
            Self::Gzip => Decoder::Gzip(Box::new(MultiGzDecoder::new(sink))),
            Self::Zstd => {
                let mut decoder = raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(ZSTD_WINDOW_LOG))?;
                Decoder::Zstd(Box::new(zio::Writer::new(sink, decoder)))
            }
            Self::Brotli => {
                let decoder = DecompressorWriter::new(sink, BROTLI_BUFFER_BYTES);
                Decoder::Brotli(Box::new(decoder))
            }
        })
    }

    /// A body that is not what its header or its beginning says.
    pub(crate) fn malformed(self, error: &io::Error) -> Refusal {
        Refusal::bad_request(format!("the body is no whole {}: {error}", self.name()))
    }
}

/// Decompresses what is written to it.
pub(crate) enum Decoder<W: Write> {
    Identity(W),
    Gzip(Box<MultiGzDecoder<W>>),
    Zstd(Box<zio::Writer<W, raw::Decoder<'static>>>),
    Brotli(Box<DecompressorWriter<W>>),
}

impl<W: Write> Decoder<W> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Identity(sink) => sink.write_all(bytes),
            Self::Gzip(decoder) => decoder.write_all(bytes),
            Self::Zstd(decoder) => decoder.write_all(bytes),
            Self::Brotli(decoder) => decoder.write_all(bytes),
        }
    }

    /// Hands on what is left; an error where the body ended early.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Identity(_) => Ok(()),
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zstd(decoder) => decoder.finish(),
            Self::Brotli(decoder) => decoder.close(),
        }
    }

    pub(crate) fn sink(&mut self) -> &mut W {
        match self {
            Self::Identity(sink) => sink,
            Self::Gzip(decoder) => decoder.get_mut(),
            Self::Zstd(decoder) => decoder.writer_mut(),
            Self::Brotli(decoder) => decoder.get_mut(),
        }
    }
}
