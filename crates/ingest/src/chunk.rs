//! Which run of whole lines comes next?
//!
//! A pipe or compressed file is read by whoever holds it, one chunk at a time. An uncompressed file
//! is cut by offsets without looking at it: the chunk `[from, to)` owns the lines that *begin* in
//! it, so each thread finds its own line ends.

use crate::source::{BYTE_ORDER_MARK, Guard};
use memchr::{memchr, memchr_iter, memrchr};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How chunks are cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// About so many bytes a chunk.
    pub(crate) chunk_bytes: usize,
    /// A line may be longer than a chunk, but not much longer than this.
    pub(crate) max_line_bytes: usize,
}

/// Why there is no chunk.
#[derive(Debug)]
pub(crate) enum CutError {
    Io(io::Error),
    /// Nor is there an end of the line that follows so many lines of this chunk.
    TooLong {
        lines_before: u64,
    },
}

impl From<io::Error> for CutError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Cuts a stream at line ends.
pub(crate) struct Stream {
    reader: Box<dyn Read + Send>,
    /// The start of a line whose end has not been read yet.
    rest: Vec<u8>,
    guard: Option<Arc<dyn Guard>>,
}

/// What one thread puts its chunks into, one after the other.
#[derive(Default)]
pub(crate) struct Buffer {
    pub(crate) bytes: Vec<u8>,
    /// The longest chunk that a guard knows of.
    held: usize,
}

/// How often a long line may be there: in its chunk while that grows, and as what a sink makes of
/// it.
const LINE_COPIES: usize = 5;

impl Stream {
    pub(crate) fn new(reader: Box<dyn Read + Send>, guard: Option<Arc<dyn Guard>>) -> Self {
        Self {
            reader,
            rest: Vec::new(),
            guard,
        }
    }

    /// Reserves memory for a chunk that is longer than usual: each thread has one of its own.
    fn hold(&self, held: &mut usize, bytes: usize, sizes: Sizes) -> io::Result<()> {
        let known = (*held).max(sizes.chunk_bytes);
        if let Some(guard) = &self.guard
            && bytes > known
        {
            guard.hold(((bytes - known) * LINE_COPIES) as u64)?;
            *held = bytes;
        }
        Ok(())
    }

    /// Puts the next lines into `buffer`. It stays empty at the end of the stream.
    pub(crate) fn next(&mut self, buffer: &mut Buffer, sizes: Sizes) -> Result<(), CutError> {
        let Buffer { bytes: chunk, held } = buffer;
        chunk.clear();
        chunk.append(&mut self.rest);
        let mut wanted = sizes.chunk_bytes;
        loop {
            let seen = chunk.len();
            let missing = wanted.saturating_sub(seen).max(1);
            self.hold(held, seen + missing, sizes)?;
            chunk.reserve_exact(missing);
            let read = (&mut self.reader).take(missing as u64).read_to_end(chunk)?;
            if let Some(end) = memrchr(b'\n', &chunk[seen..]) {
                self.rest.extend_from_slice(&chunk[seen + end + 1..]);
                chunk.truncate(seen + end + 1);
                return Ok(());
            }
            if read < missing {
                return Ok(());
            }
            if chunk.len() > sizes.max_line_bytes {
                return Err(CutError::TooLong { lines_before: 0 });
            }
            wanted = chunk.len().saturating_mul(2);
        }
    }
}

/// A part of a file that can be read without anyone else's help.
pub(crate) struct FilePart {
    pub(crate) file: Arc<File>,
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) file_len: u64,
}

impl FilePart {
    /// Puts the lines that begin in this part into `buffer` and returns where there they begin.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>, sizes: Sizes) -> Result<usize, CutError> {
        buffer.clear();
        // The byte before tells whether a line begins right at the start.
        let read_from = self.from.saturating_sub(1);
        self.append(buffer, read_from, self.to)?;
        let begin = if self.from == 0 {
            0
        } else {
            memchr(b'\n', buffer).map_or(buffer.len(), |at| at + 1)
        };
        if begin == buffer.len() {
            return Ok(begin);
        }
        // The last line runs on into the next parts.
        let mut end = self.to;
        let mut step = (sizes.chunk_bytes / 8).max(16);
        while end < self.file_len && buffer.last() != Some(&b'\n') {
            let seen = buffer.len();
            let next = self.file_len.min(end + step as u64);
            self.append(buffer, end, next)?;
            end = next;
            if let Some(at) = memchr(b'\n', &buffer[seen..]) {
                buffer.truncate(seen + at + 1);
                break;
            }
            if buffer.len() - begin > sizes.max_line_bytes.max(sizes.chunk_bytes) {
                let lines_before = memchr_iter(b'\n', &buffer[begin..]).count() as u64;
                return Err(CutError::TooLong { lines_before });
            }
            step *= 2;
        }
        if self.from == 0 && buffer.starts_with(BYTE_ORDER_MARK) {
            return Ok(BYTE_ORDER_MARK.len());
        }
        Ok(begin)
    }

    fn append(&self, buffer: &mut Vec<u8>, from: u64, to: u64) -> io::Result<()> {
        let seen = buffer.len();
        let missing = usize::try_from(to - from).map_err(io::Error::other)?;
        buffer.resize(seen + missing, 0);
        self.file
            .read_exact_at(&mut buffer[seen..], from)
            .map_err(|e| {
                if e.kind() == io::ErrorKind::UnexpectedEof {
                    io::Error::new(e.kind(), "the file became shorter while it was read")
                } else {
                    e
                }
            })
    }
}

/// How many lines begin in the first so many bytes of a file.
pub(crate) fn lines_before(file: &File, bytes: u64) -> io::Result<u64> {
    let Some(last) = bytes.checked_sub(1) else {
        return Ok(0);
    };
    let mut buffer = vec![0; 1 << 16];
    let (mut lines, mut at) = (1, 0);
    while at < last {
        let part = (last - at).min(buffer.len() as u64) as usize;
        file.read_exact_at(&mut buffer[..part], at)?;
        lines += memchr_iter(b'\n', &buffer[..part]).count() as u64;
        at += part as u64;
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn stream_chunks(text: &[u8], sizes: Sizes) -> Result<Vec<Vec<u8>>, CutError> {
        let mut stream = Stream::new(Box::new(io::Cursor::new(text.to_vec())), None);
        let mut chunks = Vec::new();
        loop {
            let mut chunk = Buffer::default();
            stream.next(&mut chunk, sizes)?;
            if chunk.bytes.is_empty() {
                return Ok(chunks);
            }
            chunks.push(chunk.bytes);
        }
    }

    fn file_chunks(text: &[u8], sizes: Sizes) -> Result<Vec<Vec<u8>>, CutError> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text).unwrap();
        let (file, file_len) = (Arc::new(file), text.len() as u64);
        let mut chunks = Vec::new();
        for from in (0..file_len).step_by(sizes.chunk_bytes) {
            let to = file_len.min(from + sizes.chunk_bytes as u64);
            let mut buffer = Vec::new();
            let part = FilePart {
                file: Arc::clone(&file),
                from,
                to,
                file_len,
            };
            let begin = part.read(&mut buffer, sizes)?;
            chunks.push(buffer.split_off(begin));
        }
        Ok(chunks)
    }

    proptest! {
        #[test]
        fn chunks_are_whole_lines_and_nothing_is_lost(
            text in "[ab\n\r]{0,80}", chunk_bytes in 1_usize..20
        ) {
            let sizes = Sizes { chunk_bytes, max_line_bytes: 1000 };
            for chunks in [
                stream_chunks(text.as_bytes(), sizes).unwrap(),
                file_chunks(text.as_bytes(), sizes).unwrap(),
            ] {
                prop_assert_eq!(chunks.concat(), text.as_bytes());
                let full: Vec<_> = chunks.iter().filter(|c| !c.is_empty()).collect();
                for chunk in full.iter().take(full.len().saturating_sub(1)) {
                    prop_assert_eq!(chunk.last(), Some(&b'\n'));
                }
            }
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_refused() {
        let sizes = Sizes {
            chunk_bytes: 10,
            max_line_bytes: 100,
        };
        let text = [b"ok\n".as_slice(), &[b'x'; 1000], b"\n"].concat();
        assert!(matches!(
            stream_chunks(&text, sizes),
            Err(CutError::TooLong { .. })
        ));
        assert!(matches!(
            file_chunks(&text, sizes),
            Err(CutError::TooLong { .. })
        ));
        let sizes = Sizes {
            chunk_bytes: 10,
            max_line_bytes: 2000,
        };
        assert!(stream_chunks(&text, sizes).is_ok() && file_chunks(&text, sizes).is_ok());
    }
}
