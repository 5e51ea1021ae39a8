//! What did a store last say of its copies: who leads them, and which have all that clients were told of?
//!
//! Where the list of nodes is fixed the store that leads keeps it; where others may lead each store notes what it heard last.
//! It is of this store and no other, so that it does not go with a copy of the folder.

use crate::StoreError;
use crate::directory::Directory;
use crate::text_file::TextFile;

/// What it is called while it is written.
pub(crate) const UNFINISHED: &str = "COPIES.new";
const FILE: TextFile = TextFile {
    name: "COPIES",
    head: "jindou copies 2",
};

/// Who leads several copies of a store, and which are in sync, by the names of their nodes: of letters, digits and `._-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiesFile {
    /// Grows with each change.
    pub version: u64,
    /// Grows with each time that one begins to lead.
    pub term: u64,
    /// Which one leads.
    pub leader: String,
    /// Those that have all that clients were told of.
    pub in_sync: Vec<String>,
}

impl CopiesFile {
    /// What it is called.
    pub const NAME: &'static str = FILE.name;

    /// That of a store, if it has one.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file is not as it was written; what the operating system says.
    pub fn read(directory: &Directory) -> Result<Option<Self>, StoreError> {
        let Some(lines) = FILE.read(directory)? else {
            return Ok(None);
        };
        let read = Self::of_lines(&lines);
        let read = read.ok_or_else(|| FILE.corrupt(directory, "its lines are others"))?;
        Ok(Some(read))
    }

    fn of_lines(lines: &[String]) -> Option<Self> {
        let [version, term, leader, in_sync] = lines else {
            return None;
        };
        let in_sync = in_sync.strip_prefix("in-sync ")?.split(' ');
        Some(Self {
            version: version.strip_prefix("version ")?.parse().ok()?,
            term: term.strip_prefix("term ")?.parse().ok()?,
            leader: leader.strip_prefix("leader ")?.to_owned(),
            in_sync: in_sync.map(str::to_owned).collect(),
        })
    }

    /// Replaces what the store has. It is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was there before stays.
    pub fn write(&self, directory: &Directory) -> Result<(), StoreError> {
        let lines = [
            format!("version {}", self.version),
            format!("term {}", self.term),
            format!("leader {}", self.leader),
            format!("in-sync {}", self.in_sync.join(" ")),
        ];
        FILE.write(directory, lines.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_it_was_written_and_nothing_else_is_taken_for_it() {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("it is new");
        assert_eq!(CopiesFile::read(&directory).expect("it is absent"), None);
        let file = CopiesFile {
            version: 7,
            term: 3,
            leader: "a".to_owned(),
            in_sync: vec!["a".to_owned(), "c.1".to_owned()],
        };
        file.write(&directory).expect("there is room");
        assert_eq!(
            CopiesFile::read(&directory).expect("it is whole"),
            Some(file)
        );
        let path = directory.path().join(FILE.name);
        let text = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(&path, text.replace("in-sync a", "in-sync b")).expect("there is room");
        assert!(CopiesFile::read(&directory).is_err());
    }
}
