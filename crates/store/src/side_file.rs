//! What is kept in a store's directory beside the graph: is it what was written?
//!
//! A side file is a text of somebody above, whole or not there at all: it is written beside the old one
//! and takes its place by a rename, with a checksum in its last line.

use std::fs;
use std::io;

use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::directory::Directory;
use crate::log::write_file;

/// The streams and continuous queries of a store.
pub(crate) const STREAMS: &str = "STREAMS";

impl Directory {
    /// Removes what is known of streams, which is known elsewhere now.
    ///
    /// # Errors
    /// What the operating system says; it may be there or not.
    pub fn remove_streams(&self) -> Result<(), StoreError> {
        let failed = |source| StoreError::Io {
            path: self.path().join(STREAMS),
            source,
        };
        match self.storage().remove(STREAMS) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            Err(_) => Ok(()),
            Ok(()) => self.storage().sync().map_err(failed),
        }
    }

    /// Replaces what is known of streams, which is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was written before stays, or this is there.
    pub fn write_streams(&self, text: &str) -> Result<(), StoreError> {
        write_file(self.storage(), STREAMS, |writer| {
            writer.write_all(text.as_bytes())?;
            writeln!(writer, "\n{:016x}", xxh3_64(text.as_bytes()))
        })?;
        self.storage().sync().map_err(|source| StoreError::Io {
            path: self.path().to_owned(),
            source,
        })
    }

    /// What is known of streams; `None` if nothing was ever written.
    ///
    /// # Errors
    /// What the operating system says; [`StoreError::Corrupt`].
    pub fn read_streams(&self) -> Result<Option<String>, StoreError> {
        let path = self.path().join(STREAMS);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let text = String::from_utf8(text).ok();
        match text.as_deref().and_then(without_checksum) {
            Some(text) => Ok(Some(text.to_owned())),
            None => Err(StoreError::Corrupt {
                path,
                reason: "its checksum is another one than it says".to_owned(),
            }),
        }
    }
}

fn without_checksum(text: &str) -> Option<&str> {
    let (text, checksum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let expected = u64::from_str_radix(checksum, 16).ok()?;
    (checksum.len() == 16 && xxh3_64(text.as_bytes()) == expected).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_side_file_is_read_as_written_or_named_as_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Directory::create(folder.path()).unwrap();
        assert_eq!(directory.read_streams().unwrap(), None);
        for text in ["", "{\n \"a\": 1\n}", "b"] {
            directory.write_streams(text).unwrap();
            assert_eq!(directory.read_streams().unwrap().as_deref(), Some(text));
        }
        let path = folder.path().join(STREAMS);
        let whole = fs::read(&path).unwrap();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            fs::write(&path, &damaged).unwrap();
            let found = directory.read_streams();
            assert!(
                matches!(found, Err(StoreError::Corrupt { .. })),
                "byte {place}"
            );
            fs::write(&path, &whole[..place]).unwrap();
            assert!(directory.read_streams().is_err(), "{place} bytes");
        }
    }
}
