//! How is a small text of a store written, and is it as it was written?
//!
//! A line that says what it is and of which version, lines, and a line with the checksum of what comes before it.
//! It is replaced as a whole, by a rename, and absent where there is none.

use std::fs;
use std::io::{self, Read as _};

use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::directory::{Directory, StoreFile};
use crate::log::write_file;

/// No file that was written here is longer.
const MOST_BYTES: u64 = 16 << 20;

/// A kind of such files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextFile {
    pub(crate) name: &'static str,
    /// The first line.
    pub(crate) head: &'static str,
}

impl TextFile {
    /// Its lines but for the first and the last; `None` where there is no file.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file is not as it was written; what the operating system says.
    pub(crate) fn read(self, directory: &Directory) -> Result<Option<Vec<String>>, StoreError> {
        let path = directory.path().join(self.name);
        let file = match fs::File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened,
        };
        let mut bytes = Vec::new();
        file.and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes))
            .map_err(|source| StoreError::Io { path, source })?;
        let text =
            String::from_utf8(bytes).map_err(|_| self.corrupt(directory, "it is no text"))?;
        let lines = checked(&text)
            .ok_or_else(|| self.corrupt(directory, "its checksum is another one than it says"))?;
        let mut lines = lines.lines();
        if lines.next() != Some(self.head) {
            return Err(self.corrupt(directory, "it is none that this version reads"));
        }
        Ok(Some(lines.map(str::to_owned).collect()))
    }

    /// What is wrong with it.
    pub(crate) fn corrupt(self, directory: &Directory, reason: &str) -> StoreError {
        StoreError::Corrupt {
            path: directory.path().join(self.name),
            reason: reason.to_owned(),
        }
    }

    /// Replaces what there is. It is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was there before stays.
    ///
    /// # Panics
    /// If a line has a line end.
    pub(crate) fn write(
        self,
        directory: &Directory,
        lines: impl Iterator<Item = String>,
    ) -> Result<(), StoreError> {
        let mut text = format!("{}\n", self.head);
        for line in lines {
            assert!(!line.contains(['\n', '\r']), "{line:?} is no line");
            text.extend([&line, "\n"]);
        }
        let sum = xxh3_64(text.as_bytes());
        text.push_str(&format!("{sum:016x}\n"));
        directory.begin()?;
        let storage = directory.storage();
        write_file(storage, self.name, |writer| {
            writer.write_all(text.as_bytes())
        })?;
        storage.sync().map_err(|source| StoreError::Io {
            path: directory.path().join(self.name),
            source,
        })
    }

    /// The file, if there is one.
    pub(crate) fn file(self, directory: &Directory) -> Result<Option<StoreFile>, StoreError> {
        let path = directory.path().join(self.name);
        match fs::metadata(&path) {
            Ok(found) => Ok(Some(StoreFile {
                name: self.name.to_owned(),
                bytes: found.len(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Io { path, source }),
        }
    }
}

/// The lines before the checksum, if that is theirs.
fn checked(text: &str) -> Option<&str> {
    let (lines, sum) = text.strip_suffix('\n')?.rsplit_once('\n')?;
    let lines = &text[..=lines.len()];
    let sum = u64::from_str_radix(sum, 16).ok()?;
    (xxh3_64(lines.as_bytes()) == sum).then_some(lines)
}
