//! Which IRIs have the keys, and in which graph are they?

use std::fmt::Write;

use crate::Key;

pub(super) const BASE: &str = "https://history.example/";

/// What the subjects of a key hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// A list, to which values are appended.
    List,
    /// A register, whose value is replaced.
    Register,
    /// A counter, which begins at 0.
    Counter,
    /// An account, which begins with the balance that [`setup`] is given.
    Account,
}

/// A key is of one of three kinds, by its number.
const KINDS: u32 = 3;

/// Keys of the third kind are dealt to so many named graphs.
const GRAPHS: u32 = 2;

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::List => "list",
            Self::Register => "register",
            Self::Counter => "counter",
            Self::Account => "account",
        }
    }

    /// The predicate of the number that a register, counter or account has.
    pub(super) fn predicate(self) -> String {
        format!("<{BASE}{}-value>", self.name())
    }
}

/// The IRI of a key, without brackets.
pub(super) fn iri(family: Family, key: Key) -> String {
    format!("{BASE}{}/{}", family.name(), key.0)
}

/// The key that has an IRI.
pub(super) fn key_of(family: Family, iri: &str) -> Option<Key> {
    let rest = iri.strip_prefix(BASE)?.strip_prefix(family.name())?;
    rest.strip_prefix('/')?.parse().ok().map(Key)
}

/// Triples or patterns, in the graph in which a key is.
pub(super) fn in_graph(key: Key, triples: &str) -> String {
    match key.0 % KINDS {
        2 => format!(
            "GRAPH <{BASE}graph/{}> {{ {triples} }}",
            key.0 / KINDS % GRAPHS
        ),
        _ => triples.to_owned(),
    }
}

/// One update that makes the subjects of a family's first keys: their types and labels, by which they are of several
/// kinds; zeros for counters; and `balance` for accounts.
#[must_use]
pub fn setup(family: Family, keys: u32, balance: u32) -> String {
    let mut data = String::new();
    for key in (0..keys).map(Key) {
        let subject = iri(family, key);
        let kind = key.0 % KINDS;
        let mut triples = format!("<{subject}> a <{BASE}Kind{kind}> . ");
        let number = match family {
            Family::List | Family::Register => None,
            Family::Counter => Some(0),
            Family::Account => Some(balance),
        };
        let predicate = family.predicate();
        let also = match kind {
            0 => Some(format!("<{subject}> <{BASE}label> \"{}\" . ", key.0)),
            1 => Some(format!(
                "<{subject}> <{BASE}next> <{}> . ",
                iri(family, Key(key.0 + 1))
            )),
            _ => None,
        };
        triples.extend(also);
        triples.extend(number.map(|number| format!("<{subject}> {predicate} {number} . ")));
        writeln!(data, "{}", in_graph(key, &triples)).expect("a string takes all");
    }
    format!("INSERT DATA {{\n{data}}}")
}
