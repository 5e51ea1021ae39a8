//! Which names does a database know for the beginnings of IRIs?
//!
//! What documents declare that are loaded is kept beside the graph, so that what is written names things
//! as whoever made the data did. A name that is known keeps its IRI, whatever documents say:
//! [`Database::set_prefixes`] and [`Database::change_prefixes`] alone give it another one.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use jindou_store::{Directory, PrefixFile};
use oxiri::Iri;
use oxrdfio::{RdfFormat, RdfParser};
use parking_lot::Mutex;

use crate::database::Inner;
use crate::results::Names;
use crate::{Database, EngineError};

/// Names and the beginnings of IRIs that they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrefixTable(BTreeMap<String, String>);

/// Why a table cannot have a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefixError {
    /// It is no `PN_PREFIX` of SPARQL and Turtle.
    #[error(
        "{name:?} is no name of a prefix: that begins with a letter, and goes on with letters, digits, \
         `-`, `_` and `.`, the last of which is no `.`"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// It stands for no absolute IRI.
    #[error("the prefix {name}: stands for <{iri}>, which is no absolute IRI: {reason}")]
    Iri {
        /// The name.
        name: String,
        /// What it would stand for.
        iri: String,
        /// What is wrong with that.
        reason: String,
    },
    /// Its name or its IRI is too long.
    #[error(
        "the prefix {name}: and its IRI have {bytes} bytes, and may have {}",
        PrefixTable::MOST_BYTES
    )]
    TooLong {
        /// The name, or the begin of it.
        name: String,
        /// Bytes of both.
        bytes: usize,
    },
    /// A text is no Turtle.
    #[error("the prefixes are no Turtle: {reason}")]
    Turtle {
        /// What is wrong with it.
        reason: String,
    },
    /// A text has more than declarations of prefixes.
    #[error("the text states triples, where declarations of prefixes alone are asked for")]
    States,
    /// A text that should declare prefixes declares none.
    #[error("the text declares no prefix")]
    Empty,
    /// The table is full.
    #[error("there are more than {} prefixes", PrefixTable::MOST)]
    TooMany,
}

impl PrefixTable {
    /// Prefixes that a table has at most.
    pub const MOST: usize = jindou_ingest::MOST_PREFIXES;
    /// Bytes that a name and its IRI have at most, both together.
    pub const MOST_BYTES: usize = jindou_ingest::MOST_PREFIX_BYTES;

    /// Lets a name, which may be empty, stand for an IRI, whatever it stood for before.
    ///
    /// ```
    /// let mut table = jindou_engine::PrefixTable::default();
    /// table.set("foaf", "http://xmlns.com/foaf/0.1/")?;
    /// assert_eq!(table.get("foaf"), Some("http://xmlns.com/foaf/0.1/"));
    /// assert!(table.set("not a name", "http://e/").is_err());
    /// # Ok::<(), jindou_engine::PrefixError>(())
    /// ```
    ///
    /// # Errors
    /// Why that cannot be; the table is then as it was.
    pub fn set(&mut self, name: &str, iri: &str) -> Result<(), PrefixError> {
        let bytes = name.len() + iri.len();
        if bytes > Self::MOST_BYTES {
            let name = name.chars().take(40).collect();
            return Err(PrefixError::TooLong { name, bytes });
        }
        if !jindou_syntax::is_prefix_name(name) {
            let name = name.to_owned();
            return Err(PrefixError::Name { name });
        }
        if let Err(error) = Iri::parse(iri) {
            return Err(PrefixError::Iri {
                name: name.to_owned(),
                iri: iri.to_owned(),
                reason: error.to_string(),
            });
        }
        if self.0.len() >= Self::MOST && !self.0.contains_key(name) {
            return Err(PrefixError::TooMany);
        }
        self.0.insert(name.to_owned(), iri.to_owned());
        Ok(())
    }

    /// What a text in Turtle declares.
    ///
    /// ```
    /// let table = jindou_engine::PrefixTable::of_turtle(b"@prefix e: <http://e/> .")?;
    /// assert_eq!(table.to_turtle(), "@prefix e: <http://e/> .\n");
    /// # Ok::<(), jindou_engine::PrefixError>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the text, triples included, or that it declares nothing; why a prefix cannot be.
    pub fn of_turtle(text: &[u8]) -> Result<Self, PrefixError> {
        let mut parser = RdfParser::from_format(RdfFormat::Turtle).for_slice(text);
        match parser.next() {
            None => {}
            Some(Ok(_)) => return Err(PrefixError::States),
            Some(Err(error)) => {
                let reason = error.to_string();
                return Err(PrefixError::Turtle { reason });
            }
        }
        let mut table = Self::default();
        for (name, iri) in parser.prefixes() {
            table.set(name, iri)?;
        }
        match table.is_empty() {
            // A table is not emptied by what came empty by mistake.
            true => Err(PrefixError::Empty),
            false => Ok(table),
        }
    }

    /// Declarations of all prefixes, as Turtle has them.
    #[must_use]
    pub fn to_turtle(&self) -> String {
        let line = |(name, iri)| format!("@prefix {name}: <{iri}> .\n");
        self.iter().map(line).collect()
    }

    /// Forgets a name; false if it was not there.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    /// What a name stands for.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Names and IRIs, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, iri)| (&**name, &**iri))
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names for what is written: these, which go first, and then those of the table.
    #[must_use]
    pub fn after(&self, declared: &[(String, String)]) -> Names {
        let own = self.0.iter().map(|(name, iri)| (name.clone(), iri.clone()));
        Names::new(declared.iter().cloned().chain(own))
    }

    /// The names by which the answer to a query is written: what its text declares, and then those of the
    /// table. Of a text that is wrong, what it declares before the mistake.
    ///
    /// ```
    /// let table = jindou_engine::PrefixTable::default();
    /// let names = table.names_for("PREFIX e: <http://e/> SELECT * { ?s e:p ?o }", None);
    /// assert!(!names.is_empty());
    /// ```
    #[must_use]
    pub fn names_for(&self, text: &str, base: Option<&str>) -> Names {
        self.after(&jindou_syntax::prefixes(text, base))
    }

    /// Adds prefixes whose names are not there; those that no table has are passed over, as is what a
    /// full one has no room for: a document says what it says without them. True if there were any.
    fn learn(&mut self, declared: &[(String, String)]) -> bool {
        let before = self.len();
        for (name, iri) in declared {
            if !self.0.contains_key(name) {
                let _unfit = self.set(name, iri);
            }
        }
        self.len() > before
    }
}

/// The table of a database.
#[derive(Debug, Default)]
pub(crate) struct Prefixes {
    current: ArcSwap<PrefixTable>,
    /// Held while it is replaced.
    writing: Mutex<()>,
    /// Whether it is that of a store that was opened to be read.
    is_read_only: bool,
}

impl Prefixes {
    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<PrefixTable> {
        self.current.load_full()
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    pub(crate) fn new(is_read_only: bool) -> Self {
        Self {
            is_read_only,
            ..Self::default()
        }
    }
}

/// # Errors
/// [`EngineError::Corrupt`] if the file in a store's folder is not as it was written.
pub(crate) fn read(directory: &Directory) -> Result<PrefixTable, EngineError> {
    let mut table = PrefixTable::default();
    for (name, iri) in PrefixFile::read(directory)? {
        table
            .set(&name, &iri)
            .map_err(|error| EngineError::Corrupt {
                path: directory.path().to_owned(),
                reason: error.to_string(),
            })?;
    }
    Ok(table)
}

/// Writes what documents declare into the folder of a store that is to be made.
pub(crate) fn write_first(
    directory: &Directory,
    declared: &[(String, String)],
) -> Result<(), EngineError> {
    let mut table = PrefixTable::default();
    if table.learn(declared) {
        PrefixFile::write(directory, table.iter())?;
    }
    Ok(())
}

impl Database {
    /// The prefixes that the database knows.
    #[must_use]
    pub fn prefixes(&self) -> Arc<PrefixTable> {
        self.inner().prefixes.current.load_full()
    }

    /// The names by which the answer to a query is written: what its text declares, and then what the
    /// database knows. Of a text that is wrong, what it declares before the mistake.
    #[must_use]
    pub fn names_for(&self, text: &str, base: Option<&str>) -> Names {
        self.prefixes().names_for(text, base)
    }

    /// Replaces all prefixes that the database knows. For a stored one they are on the device when this
    /// returns.
    ///
    /// # Errors
    /// As [`Database::change_prefixes`].
    pub fn set_prefixes(&self, table: PrefixTable) -> Result<(), EngineError> {
        self.change_prefixes(|known| *known = table)
    }

    /// Changes the prefixes that the database knows, while nobody else does.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`] for a store that was opened to be read; what the operating system says; of a copy that
    /// follows another store, which has that change them, as [`Database::update_with`]. They are then as they were.
    pub fn change_prefixes<T>(
        &self,
        change: impl FnOnce(&mut PrefixTable) -> T,
    ) -> Result<T, EngineError> {
        let inner = self.inner();
        if inner.prefixes.is_read_only {
            let directory = inner
                .directory
                .as_ref()
                .map(|it| it.path().display().to_string());
            let reason = format!(
                "{} was opened to be read only",
                directory.unwrap_or_default()
            );
            return Err(EngineError::ReadOnly { reason });
        }
        if let Some(follower) = inner.follower() {
            let before = self.prefixes();
            let mut after = PrefixTable::clone(&before);
            let changed = change(&mut after);
            follower.change_prefixes(inner, &before, &after)?;
            return Ok(changed);
        }
        inner.change_prefixes(change)
    }

    /// Takes the prefixes of a stored database out of its folder.
    ///
    /// # Errors
    /// As [`read`].
    pub(crate) fn restore_prefixes(self) -> Result<Self, EngineError> {
        if let Some(directory) = &self.inner().directory {
            if !self.inner().prefixes.is_read_only {
                PrefixFile::remove_unfinished(directory);
            }
            let table = read(directory)?;
            self.inner().prefixes.current.store(Arc::new(table));
        }
        Ok(self)
    }
}

impl Inner {
    /// Adds what documents declare that are about to be stored. A name that is known stays as it is.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn learn_prefixes(&self, declared: &[(String, String)]) -> Result<(), EngineError> {
        let known = self.prefixes.current.load();
        let is_known = |(name, _): &(String, String)| known.get(name).is_some();
        // What is read only refuses the documents later, by name.
        if declared.iter().all(is_known) || self.prefixes.is_read_only {
            return Ok(());
        }
        drop(known);
        self.change_prefixes(|table| table.learn(declared))
            .map(drop)
    }

    fn change_prefixes<T>(
        &self,
        change: impl FnOnce(&mut PrefixTable) -> T,
    ) -> Result<T, EngineError> {
        let _one = self.prefixes.writing.lock();
        let before = self.prefixes.current.load_full();
        let mut table = PrefixTable::clone(&before);
        let changed = change(&mut table);
        if table != *before {
            if let Some(directory) = &self.directory {
                PrefixFile::write(directory, table.iter())?;
            }
            let table = Arc::new(table);
            self.prefixes.current.store(Arc::clone(&table));
            if let Some(leader) = self.leader() {
                leader.send_prefixes(&table);
            }
        }
        Ok(changed)
    }

    /// Replaces all prefixes by those of the store that this one follows.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn replace_prefixes(&self, table: PrefixTable) -> Result<(), EngineError> {
        self.change_prefixes(|known| *known = table)
    }

    /// Puts the prefixes into a copy of the store.
    ///
    /// # Errors
    /// What the operating system says.
    pub(crate) fn copy_prefixes(&self, to: &Directory) -> Result<(), EngineError> {
        let table = self.prefixes.current.load_full();
        if !table.is_empty() {
            PrefixFile::write(to, table.iter())?;
        }
        Ok(())
    }

    /// What is wrong with a text, with what the database knows of a prefix that it does not declare.
    pub(crate) fn with_known_prefix(&self, error: EngineError) -> EngineError {
        let EngineError::Syntax {
            line,
            column,
            message,
            hint,
        } = error
        else {
            return error;
        };
        let table = self.prefixes.current.load();
        let name = jindou_syntax::undeclared_prefix(&message);
        let known = name.and_then(|name| Some((name, table.get(name)?)));
        let known = known.map(|(name, iri)| {
            format!("the store knows it: PREFIX {name}: <{iri}> before the query declares it")
        });
        EngineError::Syntax {
            hint: known.or(hint),
            line,
            column,
            message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_names_and_absolute_iris_up_to_its_bounds() {
        let mut table = PrefixTable::default();
        let long = format!("http://e/{}", "x".repeat(PrefixTable::MOST_BYTES));
        for (name, iri, expected) in [
            ("a b", "http://e/", "\"a b\" is no name"),
            ("a:", "http://e/", "\"a:\" is no name"),
            ("a", "e/", "stands for <e/>"),
            ("a", "http://e/ b", "stands for <http://e/ b>"),
            ("a", &long, "1024"),
        ] {
            let error = table.set(name, iri).expect_err(name).to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(table.is_empty());
        for number in 0..PrefixTable::MOST {
            table
                .set(&format!("p{number}"), "http://e/")
                .expect("there is room");
        }
        assert_eq!(table.set("q", "http://e/"), Err(PrefixError::TooMany));
        table.set("p0", "http://f/").expect("it is there");
        assert!(table.remove("p1") && !table.remove("p1"));
        table.set("q", "http://e/").expect("there is room again");
        assert_eq!(table.get("p0"), Some("http://f/"));
    }

    #[test]
    fn a_text_without_declarations_is_no_table() {
        for text in ["", " \n", "# nothing", "@base <http://e/> ."] {
            let error = PrefixTable::of_turtle(text.as_bytes());
            assert_eq!(error, Err(PrefixError::Empty), "{text}");
        }
        let table = PrefixTable::of_turtle(b"PREFIX : <http://e/>").expect("it declares one");
        assert_eq!(table.get(""), Some("http://e/"));
    }

    #[test]
    fn what_is_learned_replaces_nothing_and_what_does_not_fit_is_passed_over() {
        let mut table = PrefixTable::default();
        table.set("a", "http://e/a#").expect("it fits");
        let pair = |name: &str, iri: &str| (name.to_owned(), iri.to_owned());
        let declared = [
            pair("a", "http://other/"),
            pair("b", "not an IRI"),
            pair("", "urn:x:"),
        ];
        assert!(table.learn(&declared));
        assert!(!table.learn(&declared));
        let known: Vec<_> = table.iter().collect();
        assert_eq!(known, [("", "urn:x:"), ("a", "http://e/a#")]);
    }
}
