//! Where does the text come from, and how is it opened and decompressed?

use crate::content::HEAD_BYTES;
use crate::error::IngestError;
use crate::format::{Compression, Format};
use crate::json_cost::JsonSteps;
use crate::progress::Progress;
use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use jindou_syntax::without_dots;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The buffer in front of a decompressor, in bytes.
const COMPRESSED_BUFFER_BYTES: usize = 256 << 10;

/// The longest window of zstd where a [`Guard`] answers for it, as a power of two: what decoders
/// are asked to support (RFC 8878, section 3.1.1.1.2).
const GUARDED_WINDOW_LOG: u32 = 23;

/// How much text is read between two looks of a [`Guard`].
const GUARDED_PART_BYTES: usize = 64 << 10;

/// One document to load: a file, a pipe, or bytes in memory.
pub struct Source {
    name: Arc<str>,
    input: Input,
    format: Option<Format>,
    likely: Option<Format>,
    compression: Option<Compression>,
    base_iri: Option<String>,
    guard: Option<Arc<dyn Guard>>,
    json_steps: Option<Arc<JsonSteps>>,
}

/// Answers for what reading a source takes.
pub trait Guard: Send + Sync {
    /// Asked before each part of the text: may reading go on?
    ///
    /// # Errors
    /// Why not; [`load`](crate::load) returns it within [`IngestError::Io`].
    fn look(&self) -> io::Result<()>;

    /// Told how many bytes more decompressors and parsers hold, before they do, where that is
    /// more than some buffers. What sinks are given is not among them.
    ///
    /// # Errors
    /// Why they must not; as that of [`look`](Self::look).
    fn hold(&self, bytes: u64) -> io::Result<()>;
}

enum Input {
    Path(PathBuf),
    /// Nothing but a regular file.
    File(PathBuf),
    Stdin,
    Bytes(Vec<u8>),
    Reader(Box<dyn Read + Send>),
}

impl Source {
    /// A file, or anything else that can be opened by its path.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::new(path.display().to_string(), Input::Path(path))
    }

    /// A regular file: what else has that path, as a pipe whose writer may never come, is refused.
    pub fn regular_file(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self::new(path.display().to_string(), Input::File(path))
    }

    /// Standard input. It needs [`with_format`](Self::with_format) or
    /// [`with_likely_format`](Self::with_likely_format).
    pub fn stdin() -> Self {
        Self::new("<stdin>".to_owned(), Input::Stdin)
    }

    /// Bytes in memory; the format may be told by the ending of `name`.
    pub fn bytes(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(name.into(), Input::Bytes(bytes.into()))
    }

    /// Whatever can be read, like the body of a request; the format may be told by the ending of
    /// `name`.
    pub fn reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Self {
        Self::new(name.into(), Input::Reader(Box::new(reader)))
    }

    fn new(name: String, input: Input) -> Self {
        Self {
            name: name.into(),
            input,
            format: None,
            likely: None,
            compression: None,
            base_iri: None,
            guard: None,
            json_steps: None,
        }
    }

    /// Sets the format, whatever the name and the first bytes say.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// Sets what the format should be, in place of what the name says; the first bytes may say
    /// otherwise ([`Format::of_content`]).
    #[must_use]
    pub fn with_likely_format(mut self, format: Format) -> Self {
        self.likely = Some(format);
        self
    }

    /// Sets the compression, whatever the name and the first bytes say.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Sets the IRI that relative IRIs are resolved against, once the segments `.` and `..` of its
    /// path are resolved themselves. Without it, it is the `file:` IRI of the absolute path for a
    /// file, and there is none for other sources.
    #[must_use]
    pub fn with_base_iri(mut self, base_iri: impl Into<String>) -> Self {
        self.base_iri = Some(base_iri.into());
        self
    }

    /// Lets somebody watch how the source is read. It is read as a stream then, by one thread, and
    /// zstd windows of more than 8 MiB are refused.
    #[must_use]
    pub fn with_guard(mut self, guard: Arc<dyn Guard>) -> Self {
        self.guard = Some(guard);
        self
    }

    /// Has a document of JSON-LD share the steps that its parser may take with others.
    #[must_use]
    pub fn with_json_steps(mut self, steps: Arc<JsonSteps>) -> Self {
        self.json_steps = Some(steps);
        self
    }

    /// Its length, if it is bytes in memory.
    pub fn bytes_in_memory(&self) -> Option<usize> {
        match &self.input {
            Input::Bytes(bytes) => Some(bytes.len()),
            _ => None,
        }
    }

    /// The name used in errors and progress.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads it as it is stored, for another process to parse; `None` if it has more than so many bytes. Its
    /// [guard](Self::with_guard) and [steps](Self::with_json_steps) stay behind.
    ///
    /// # Errors
    /// [`IngestError::Io`], and [`IngestError::NoRegularFile`] for what is to be one.
    pub fn into_raw(self, most_bytes: usize) -> Result<Option<RawSource>, IngestError> {
        let name = Arc::clone(&self.name);
        let failed = |source| IngestError::Io {
            file: Arc::clone(&name),
            source,
        };
        let mut base_iri = self.base_iri;
        let mut reader: Box<dyn Read> = match self.input {
            Input::Bytes(bytes) if bytes.len() > most_bytes => return Ok(None),
            Input::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Input::Stdin => Box::new(io::stdin()),
            Input::Reader(reader) => reader,
            Input::File(path) if !path.metadata().map_err(failed)?.is_file() => {
                return Err(IngestError::NoRegularFile { file: self.name });
            }
            Input::Path(path) | Input::File(path) => {
                let absolute = std::path::absolute(&path).map_err(failed)?;
                base_iri.get_or_insert_with(|| file_iri(&absolute));
                Box::new(File::open(path).map_err(failed)?)
            }
        };
        let mut bytes = Vec::new();
        // One byte more, to see whether there is one.
        let most = (most_bytes as u64).saturating_add(1);
        (&mut reader)
            .take(most)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        Ok((bytes.len() <= most_bytes).then(|| RawSource {
            name: self.name.as_ref().to_owned(),
            bytes,
            format: self.format,
            likely: self.likely,
            compression: self.compression,
            base_iri,
        }))
    }
}

/// A [`Source`] that was read as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSource {
    /// See [`Source::name`].
    pub name: String,
    /// What was read, compressed or not.
    pub bytes: Vec<u8>,
    /// See [`Source::with_format`].
    pub format: Option<Format>,
    /// See [`Source::with_likely_format`].
    pub likely: Option<Format>,
    /// See [`Source::with_compression`].
    pub compression: Option<Compression>,
    /// See [`Source::with_base_iri`].
    pub base_iri: Option<String>,
}

impl From<RawSource> for Source {
    fn from(raw: RawSource) -> Self {
        Self {
            format: raw.format,
            likely: raw.likely,
            compression: raw.compression,
            base_iri: raw.base_iri,
            ..Self::bytes(raw.name, raw.bytes)
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("name", &self.name)
            .field("format", &self.format)
            .field("compression", &self.compression)
            .field("base_iri", &self.base_iri)
            .finish_non_exhaustive()
    }
}

/// A source whose format is known and whose file is there.
pub(crate) struct Prepared {
    pub(crate) name: Arc<str>,
    pub(crate) format: Expected,
    pub(crate) base_iri: Option<String>,
    /// Bytes before decompression; `None` for a pipe.
    pub(crate) size: Option<u64>,
    input: Input,
    compression: Option<Compression>,
    /// What the name says.
    named_compression: Compression,
    guard: Option<Arc<dyn Guard>>,
    json_steps: Option<Arc<JsonSteps>>,
}

/// What is known of a format before the text is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    Given(Format),
    /// What the text is asked about.
    Likely(Option<Format>),
}

impl Expected {
    /// The format of a text that begins so.
    fn of(self, head: &[u8]) -> Option<Format> {
        match self {
            Self::Given(format) => Some(format),
            Self::Likely(likely) => Format::of_content(head, likely),
        }
    }
}

/// Checks what can be checked before anything is read: a load should not fail after an hour
/// because the last file's name is misspelt.
pub(crate) fn prepare(source: Source) -> Result<Prepared, IngestError> {
    let Source {
        name,
        input,
        format,
        likely,
        compression,
        base_iri,
        guard,
        json_steps,
    } = source;
    let (named_format, named_compression) = Format::from_file_name(&name);
    let io_error = |source| IngestError::Io {
        file: Arc::clone(&name),
        source,
    };
    let mut default_base = None;
    let size = match &input {
        Input::Path(path) | Input::File(path) => {
            let metadata = std::fs::metadata(path).map_err(io_error)?;
            if metadata.is_dir() {
                return Err(io_error(io::ErrorKind::IsADirectory.into()));
            }
            if matches!(input, Input::File(_)) && !metadata.is_file() {
                return Err(IngestError::NoRegularFile { file: name });
            }
            if metadata.is_file() {
                // What may not be read is not found only when its turn comes.
                std::fs::File::open(path).map_err(io_error)?;
            }
            default_base = Some(file_iri(&std::path::absolute(path).map_err(io_error)?));
            metadata.is_file().then_some(metadata.len())
        }
        Input::Bytes(bytes) => Some(bytes.len() as u64),
        Input::Stdin | Input::Reader(_) => None,
    };
    let format = match format {
        Some(format) => Expected::Given(format),
        None => Expected::Likely(likely.or(named_format)),
    };
    if let Expected::Likely(None) = format {
        let is_known = match &input {
            Input::Path(path) | Input::File(path) if size.is_some() => {
                let file = File::open(path).map_err(io_error)?;
                let head = head_of(file, compression.unwrap_or(named_compression));
                format.of(&head.map_err(io_error)?).is_some()
            }
            Input::Bytes(bytes) => {
                let compression = compression.unwrap_or(named_compression);
                let head = head_of(bytes.as_slice(), compression).map_err(io_error)?;
                format.of(&head).is_some()
            }
            // What is read once only is asked when its turn comes.
            Input::Reader(_) => true,
            Input::Path(_) | Input::File(_) | Input::Stdin => false,
        };
        if !is_known {
            return Err(IngestError::UnknownFormat { file: name });
        }
    }
    if let Some(base_iri) = &base_iri
        && let Err(e) = oxrdf::NamedNodeRef::new(base_iri)
    {
        let (base_iri, reason) = (base_iri.clone(), e.to_string());
        return Err(IngestError::BaseIri {
            file: name,
            base_iri,
            reason,
        });
    }
    let base_iri = base_iri
        .or(default_base)
        .map(|base| without_dots(&base).into_owned());
    Ok(Prepared {
        name,
        format,
        base_iri,
        size,
        input,
        compression,
        named_compression,
        guard,
        json_steps,
    })
}

/// How a source is compressed that begins so: as its first bytes say, and where they say nothing, as its
/// name does, unless they are plain text.
fn compression_of(head: &[u8], named: Compression) -> Compression {
    match Compression::from_magic(head) {
        Compression::None if is_text(head) => Compression::None,
        // Only the name says so: let the decompressor tell what is wrong.
        Compression::None => named,
        found => found,
    }
}

/// Whether a source begins with text in UTF-8, whose last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let whole = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    let is_control = |c: char| c.is_control() && !c.is_ascii_whitespace();
    !whole.is_empty() && !whole.contains(is_control)
}

/// How a text begins that may be compressed, whatever its name says.
fn head_of(mut raw: impl Read, named: Compression) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    (&mut raw).take(HEAD_BYTES as u64).read_to_end(&mut begin)?;
    let compression = compression_of(&begin, named);
    let buffered = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, Cursor::new(begin).chain(raw));
    let text: Box<dyn Read + '_> = match compression {
        Compression::None => Box::new(buffered),
        Compression::Gzip => Box::new(MultiGzDecoder::new(buffered)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(buffered)?),
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(buffered)),
    };
    let mut head = Vec::new();
    text.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(head)
}

/// The `file:` IRI of an absolute path.
fn file_iri(path: &Path) -> String {
    let mut iri = String::from("file://");
    for &byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                iri.push(char::from(byte));
            }
            _ => iri.push_str(&format!("%{byte:02X}")),
        }
    }
    iri
}

/// A source that can be read.
pub(crate) struct Opened {
    pub(crate) format: Format,
    /// The text, decompressed.
    pub(crate) reader: Box<dyn Read + Send>,
    pub(crate) guard: Option<Arc<dyn Guard>>,
    pub(crate) json_steps: Option<Arc<JsonSteps>>,
    /// The file, if it is an uncompressed one that can be read at any offset, and its length.
    pub(crate) plain_file: Option<(File, u64)>,
}

impl Prepared {
    /// Opens the source and finds out how it is compressed.
    pub(crate) fn open(self, progress: &Progress) -> Result<Opened, IngestError> {
        let mut plain_file = None;
        let io_error = |source| IngestError::Io {
            file: Arc::clone(&self.name),
            source,
        };
        let mut raw: Box<dyn Read + Send> = match self.input {
            Input::Path(path) | Input::File(path) => {
                let file = File::open(path).map_err(io_error)?;
                if let Some(size) = self.size.filter(|_| self.guard.is_none()) {
                    plain_file = Some((file.try_clone().map_err(io_error)?, size));
                }
                Box::new(file)
            }
            Input::Stdin => Box::new(io::stdin()),
            Input::Bytes(bytes) => Box::new(Cursor::new(bytes)),
            Input::Reader(reader) => reader,
        };
        // What comes slowly is not waited for where it has nothing to say.
        let looked_at = match (self.format, self.named_compression) {
            (Expected::Given(_), Compression::None) => Compression::MAGIC_BYTES,
            _ => HEAD_BYTES,
        };
        let mut head = Vec::with_capacity(looked_at);
        (&mut raw)
            .take(looked_at as u64)
            .read_to_end(&mut head)
            .map_err(io_error)?;
        let compression = self
            .compression
            .unwrap_or_else(|| compression_of(&head, self.named_compression));
        let head_is_empty = head.is_empty();
        let mut format = match (self.format, compression) {
            (Expected::Given(_), _) | (_, Compression::None) => Some(self.format.of(&head)),
            _ => None,
        };
        let counted = Counted {
            inner: Cursor::new(head).chain(raw),
            progress: progress.clone(),
        };
        if compression != Compression::None {
            plain_file = None;
            if head_is_empty {
                // Not every decompressor minds, but no compressor makes an empty file.
                let source = io::ErrorKind::UnexpectedEof.into();
                return Err(IngestError::Decompress {
                    file: self.name,
                    compression,
                    source,
                });
            }
        }
        let guard = self.guard;
        let read_error = |error| read_error(error, &self.name);
        if let Some(guard) = &guard {
            guard.hold(decoder_bytes(compression)).map_err(read_error)?;
        }
        let window = guard.is_some().then_some(GUARDED_WINDOW_LOG);
        let mut reader = decompress(counted, compression, window).map_err(read_error)?;
        if let Some(guard) = &guard {
            reader = Box::new(Guarded {
                inner: reader,
                guard: Arc::clone(guard),
            });
        }
        if format.is_none() {
            let mut head = Vec::with_capacity(HEAD_BYTES);
            (&mut reader)
                .take(HEAD_BYTES as u64)
                .read_to_end(&mut head)
                .map_err(read_error)?;
            format = Some(self.format.of(&head));
            reader = Box::new(Cursor::new(head).chain(reader));
        }
        let Some(format) = format.flatten() else {
            return Err(IngestError::UnknownFormat { file: self.name });
        };
        Ok(Opened {
            format,
            reader: skip_byte_order_mark(reader),
            plain_file,
            guard,
            json_steps: self.json_steps,
        })
    }
}

fn decompress(
    counted: impl Read + Send + 'static,
    compression: Compression,
    window_log: Option<u32>,
) -> io::Result<Box<dyn Read + Send>> {
    if compression == Compression::None {
        return Ok(Box::new(counted));
    }
    let buffered = BufReader::with_capacity(COMPRESSED_BUFFER_BYTES, counted);
    let inner: Box<dyn Read + Send> = match compression {
        Compression::None => Box::new(buffered),
        Compression::Gzip => Box::new(MultiGzDecoder::new(buffered)),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::with_buffer(buffered)?;
            if let Some(log) = window_log {
                decoder.window_log_max(log)?;
            }
            Box::new(decoder)
        }
        Compression::Bzip2 => Box::new(MultiBzDecoder::new(buffered)),
    };
    Ok(Box::new(Tagged { inner, compression }))
}

/// Leaves out a mark of the byte order in front of the text.
fn skip_byte_order_mark(reader: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
    Box::new(Marked {
        inner: reader,
        head: Some(Vec::with_capacity(BYTE_ORDER_MARK.len())),
        at: 0,
    })
}

/// U+FEFF in UTF-8.
pub(crate) const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A text that may begin with a mark of the byte order.
struct Marked {
    inner: Box<dyn Read + Send>,
    /// The first bytes, until they were handed on.
    head: Option<Vec<u8>>,
    /// So many of them were.
    at: usize,
}

impl Read for Marked {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let Some(head) = &mut self.head else {
            return self.inner.read(buf);
        };
        if buf.is_empty() {
            return Ok(0);
        }
        // Only a text that goes on like the mark is waited for.
        while self.at == 0 && head.len() < BYTE_ORDER_MARK.len() {
            let mut byte = [0];
            match self.inner.read(&mut byte) {
                Ok(0) => break,
                Ok(_) => head.push(byte[0]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if !BYTE_ORDER_MARK.starts_with(head) {
                break;
            }
        }
        let rest = match head.as_slice() {
            BYTE_ORDER_MARK => &[],
            head => &head[self.at..],
        };
        if rest.is_empty() {
            self.head = None;
            return self.inner.read(buf);
        }
        let count = rest.len().min(buf.len());
        buf[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// What a decompressor holds at most, its buffer included.
fn decoder_bytes(compression: Compression) -> u64 {
    let decoder = match compression {
        Compression::None => return 0,
        Compression::Gzip => 64 << 10,
        // The window, and room for the block that is written to it.
        Compression::Zstd => (1 << GUARDED_WINDOW_LOG) + (1 << 20),
        Compression::Bzip2 => 4 << 20,
    };
    decoder + COMPRESSED_BUFFER_BYTES as u64
}

/// Asks before each part whether to go on.
struct Guarded {
    inner: Box<dyn Read + Send>,
    guard: Arc<dyn Guard>,
}

impl Read for Guarded {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.guard.look()?;
        let most = buf.len().min(GUARDED_PART_BYTES);
        self.inner.read(&mut buf[..most])
    }
}

/// Counts the bytes taken from a source.
struct Counted<R> {
    inner: R,
    progress: Progress,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.progress.add_bytes(n as u64);
        Ok(n)
    }
}

/// What a decompressor complained about, told apart from what the operating system says.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
struct DecompressionFailure {
    compression: Compression,
    source: io::Error,
}

/// Marks the errors of a decompressor.
struct Tagged {
    inner: Box<dyn Read + Send>,
    compression: Compression,
}

impl Read for Tagged {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).map_err(|source| {
            if source.raw_os_error().is_some() || source.kind() == io::ErrorKind::Interrupted {
                return source;
            }
            let kind = source.kind();
            io::Error::new(
                kind,
                DecompressionFailure {
                    compression: self.compression,
                    source,
                },
            )
        })
    }
}

/// Whether a decompressor, not the operating system or a parser, made this error.
pub(crate) fn is_decompression_failure(error: &io::Error) -> bool {
    error
        .get_ref()
        .is_some_and(|inner| inner.is::<DecompressionFailure>())
}

/// The error of reading an opened source.
pub(crate) fn read_error(error: io::Error, file: &Arc<str>) -> IngestError {
    let file = Arc::clone(file);
    match error.downcast::<DecompressionFailure>() {
        Ok(DecompressionFailure {
            compression,
            source,
        }) => IngestError::Decompress {
            file,
            compression,
            source,
        },
        Err(source) => IngestError::Io { file, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_becomes_a_file_iri_with_its_strange_bytes_escaped() {
        assert_eq!(
            file_iri(Path::new("/a b/c#d/é.ttl")),
            "file:///a%20b/c%23d/%C3%A9.ttl"
        );
    }
}
