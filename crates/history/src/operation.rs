//! What did a client ask, when, and what did it hear?

use std::fmt;

/// A key of the workload: a list or a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// A value that is written once in a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u64);

/// The place of an operation in its history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(pub u32);

/// What a transaction read and wrote. Lists and registers have keys of their own: list 3 and register 3
/// are two things. What a transaction reads is what was there before it wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Appends values to lists, in this order.
    Append {
        /// A key may be named several times.
        appends: Vec<(Key, Value)>,
    },
    /// Reads lists.
    Read {
        /// Each once.
        keys: Vec<Key>,
        /// What was read, by key; empty unless the operation is done.
        lists: Vec<Vec<Value>>,
    },
    /// Reads lists and appends to lists.
    ReadAppend {
        /// What is read, each once.
        keys: Vec<Key>,
        /// What was read, by key, where the client knows it.
        lists: Option<Vec<Vec<Value>>>,
        /// A key may be named several times.
        appends: Vec<(Key, Value)>,
    },
    /// Replaces the values of registers.
    Write {
        /// Each key once.
        writes: Vec<(Key, Value)>,
    },
    /// Reads registers.
    ReadRegister {
        /// Each once.
        keys: Vec<Key>,
        /// What was read, by key, `None` where nothing was there; empty unless the operation is done.
        values: Vec<Option<Value>>,
    },
    /// Reads registers and replaces the values of registers.
    ReadWrite {
        /// What is read, each once.
        keys: Vec<Key>,
        /// What was read, by key, where the client knows it.
        values: Option<Vec<Option<Value>>>,
        /// Each key once.
        writes: Vec<(Key, Value)>,
    },
}

/// What the client heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was acknowledged.
    Done {
        /// The number of the snapshot that was read, or that the transaction made, where it is known.
        snapshot: Option<u64>,
    },
    /// It was refused, and nothing was changed.
    Failed,
    /// Nothing was heard: it may take effect at any time, or never.
    Unknown,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Who asked. A client has one operation at a time.
    pub client: u32,
    /// When the client asked, in nanoseconds of a clock that all clients share and that never goes back.
    pub begun: u64,
    /// When the client heard the outcome, by the same clock; known where the operation is done.
    pub ended: Option<u64>,
    /// What was asked.
    pub kind: Kind,
    /// What was heard.
    pub outcome: Outcome,
}

impl Operation {
    /// True if it was acknowledged.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done { .. })
    }

    /// The number of its snapshot, if it was acknowledged with one.
    #[must_use]
    pub fn snapshot(&self) -> Option<u64> {
        match self.outcome {
            Outcome::Done { snapshot } => snapshot,
            Outcome::Failed | Outcome::Unknown => None,
        }
    }

    /// When it was acknowledged. An operation of unknown outcome has no end: it may still take effect.
    #[must_use]
    pub fn acknowledged(&self) -> Option<u64> {
        self.ended.filter(|_| self.is_done())
    }

    /// True if it changes something.
    #[must_use]
    pub fn is_update(&self) -> bool {
        !(self.appends().is_empty() && self.writes().is_empty())
    }

    /// What it appends to lists.
    #[must_use]
    pub fn appends(&self) -> &[(Key, Value)] {
        match &self.kind {
            Kind::Append { appends } | Kind::ReadAppend { appends, .. } => appends,
            _ => &[],
        }
    }

    /// What it writes to registers.
    #[must_use]
    pub fn writes(&self) -> &[(Key, Value)] {
        match &self.kind {
            Kind::Write { writes } | Kind::ReadWrite { writes, .. } => writes,
            _ => &[],
        }
    }

    /// The lists that it is known to have read, with their keys.
    pub fn lists(&self) -> impl Iterator<Item = (Key, &[Value])> {
        let (keys, lists): (&[Key], &[Vec<Value>]) = match &self.kind {
            Kind::Read { keys, lists } => (keys, lists),
            Kind::ReadAppend { keys, lists, .. } => (keys, lists.as_deref().unwrap_or_default()),
            _ => (&[], &[]),
        };
        keys.iter().copied().zip(lists.iter().map(Vec::as_slice))
    }

    /// The registers that it is known to have read, with their keys.
    pub fn registers(&self) -> impl Iterator<Item = (Key, Option<Value>)> {
        let (keys, values): (&[Key], &[Option<Value>]) = match &self.kind {
            Kind::ReadRegister { keys, values } => (keys, values),
            Kind::ReadWrite { keys, values, .. } => (keys, values.as_deref().unwrap_or_default()),
            _ => (&[], &[]),
        };
        keys.iter().copied().zip(values.iter().copied())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "k{}", self.0)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for OperationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// One line: client, times, what was asked and heard.
impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}, {} to ", self.client, self.begun)?;
        match self.ended {
            Some(ended) => write!(f, "{ended}:")?,
            None => f.write_str("?:")?,
        }
        for (key, list) in self.lists() {
            write!(
                f,
                " read {key} {:?}",
                list.iter().map(|v| v.0).collect::<Vec<_>>()
            )?;
        }
        for (key, value) in self.registers() {
            write!(f, " read {key} {:?}", value.map(|value| value.0))?;
        }
        for (key, value) in self.appends() {
            write!(f, " append {value} to {key}")?;
        }
        for (key, value) in self.writes() {
            write!(f, " write {value} to {key}")?;
        }
        match self.outcome {
            Outcome::Done { snapshot: None } => f.write_str("; done"),
            Outcome::Done { snapshot: Some(n) } => write!(f, "; done, snapshot {n}"),
            Outcome::Failed => f.write_str("; failed"),
            Outcome::Unknown => f.write_str("; unknown"),
        }
    }
}
