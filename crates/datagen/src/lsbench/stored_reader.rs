//! How is the stored graph read as text without holding all of it?

use std::io::{self, Read};

use super::StoredGraph;

/// The stored graph as N-Triples, a block at a time. See
/// [`Lsbench::stored_reader`](super::Lsbench::stored_reader).
#[derive(Debug)]
pub struct StoredReader {
    graph: StoredGraph,
    /// The lines of the block under way,
    text: String,
    /// of which so many bytes were read.
    taken: usize,
}

impl StoredReader {
    pub(super) fn new(graph: StoredGraph) -> Self {
        Self {
            graph,
            text: String::new(),
            taken: 0,
        }
    }
}

impl Read for StoredReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len() {
            self.text.clear();
            self.taken = 0;
            if let Some(block) = self.graph.next_block() {
                block.push_lines(&mut self.text);
            }
        }
        let left = &self.text.as_bytes()[self.taken..];
        let length = left.len().min(buffer.len());
        buffer[..length].copy_from_slice(&left[..length]);
        self.taken += length;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::super::Lsbench;

    #[test]
    fn what_is_read_is_what_is_written() {
        let data = Lsbench::new(70, 3);
        let (mut written, mut read) = (Vec::new(), Vec::new());
        data.write_stored(&mut written).unwrap();
        let mut reader = data.stored_reader().unwrap();
        let mut piece = [0; 777];
        loop {
            match reader.read(&mut piece).unwrap() {
                0 => break,
                length => read.extend_from_slice(&piece[..length]),
            }
        }
        assert!(written == read, "{} and {}", written.len(), read.len());
        assert_eq!(reader.read(&mut piece).unwrap(), 0);
    }
}
