//! Which names does a store have for the beginnings of IRIs, and is that as it was written?
//!
//! `PREFIXES` is a text: a line with the version, a line `name IRI` for each prefix, and a line with
//! the checksum of what comes before it. It is replaced as a whole, by a rename, and absent where there is
//! none. No transaction knows of it: what it says changes how IRIs are shown, and not what is stored.

use crate::StoreError;
use crate::directory::{Directory, StoreFile, copy_file};
use crate::text_file::TextFile;

pub(crate) const PREFIXES: &str = "PREFIXES";
/// What it is called while it is written. Whoever writes it removes what a crash left.
pub(crate) const UNFINISHED: &str = "PREFIXES.new";
const FILE: TextFile = TextFile {
    name: PREFIXES,
    head: "jindou prefixes 1",
};

/// The file of a store's prefixes.
#[derive(Debug)]
pub struct PrefixFile;

impl PrefixFile {
    /// Names and IRIs, in the order in which they were written; none where there is no file.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file is not as it was written; what the operating system says.
    pub fn read(directory: &Directory) -> Result<Vec<(String, String)>, StoreError> {
        let lines = FILE.read(directory)?.unwrap_or_default();
        let prefix = |line: &String| {
            let (name, iri) = line.split_once(' ')?;
            Some((name.to_owned(), iri.to_owned()))
        };
        let prefixes: Option<Vec<_>> = lines.iter().map(prefix).collect();
        prefixes.ok_or_else(|| FILE.corrupt(directory, "a line has no name and IRI"))
    }

    /// Removes what a crash has left of a file that was being written: one that cannot be removed costs
    /// space, and is replaced by the next.
    pub fn remove_unfinished(directory: &Directory) {
        let storage = directory.storage();
        let names = storage.list().unwrap_or_default();
        if names.iter().any(|name| name == UNFINISHED) {
            let _ = storage.remove(UNFINISHED);
        }
    }

    /// Replaces what there is. It is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was there before stays.
    ///
    /// # Panics
    /// If a name has white space, or an IRI a line end.
    pub fn write<'a>(
        directory: &Directory,
        prefixes: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), StoreError> {
        let line = |(name, iri): (&str, &str)| {
            assert!(!name.contains(char::is_whitespace), "{name:?} is no name");
            format!("{name} {iri}")
        };
        FILE.write(directory, prefixes.map(line))
    }

    /// Copies that of a directory into another one, if there is one.
    pub(crate) fn copy(from: &Directory, to: &Directory) -> Result<(), StoreError> {
        match Self::file(from)? {
            Some(file) => copy_file(&from.path().join(&file.name), &to.path().join(&file.name)),
            None => Ok(()),
        }
    }

    /// The file, if there is one.
    pub(crate) fn file(directory: &Directory) -> Result<Option<StoreFile>, StoreError> {
        FILE.file(directory)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_any_other_byte_is_damage() {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("it is new");
        let read = || PrefixFile::read(&directory);
        assert_eq!(read().expect("there is none"), []);
        let prefixes = [("", "http://e/"), ("é", "http://e/#")];
        PrefixFile::write(&directory, prefixes.into_iter()).expect("there is room");
        let expected = prefixes.map(|(name, iri)| (name.to_owned(), iri.to_owned()));
        assert_eq!(read().expect("it was written"), expected);
        let path = directory.path().join(PREFIXES);
        let bytes = fs::read(&path).expect("it is there");
        for place in 0..bytes.len() {
            let mut altered = bytes.clone();
            altered[place] ^= 1;
            fs::write(&path, &altered).expect("there is room");
            let error = read().expect_err("a byte is another");
            assert!(error.to_string().contains(PREFIXES), "{error}");
            fs::write(&path, &bytes[..place]).expect("there is room");
            read().expect_err("it is cut");
        }
        let unfinished = directory.path().join(UNFINISHED);
        fs::write(&unfinished, "half").expect("there is room");
        directory.remove_leftovers(&crate::directory::InUse::nothing());
        assert!(unfinished.exists(), "another thread may be writing it");
        PrefixFile::remove_unfinished(&directory);
        assert!(!unfinished.exists());
        PrefixFile::write(&directory, [].into_iter()).expect("there is room");
        assert!(!unfinished.exists());
        assert_eq!(read().expect("it was written"), []);
    }
}
