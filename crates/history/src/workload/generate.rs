//! Which operation comes next?

use super::decode::{Contradiction, DecodeError, decode_lists, decode_numbers};
use super::learn::Sighting;
use super::names::Family;
use super::texts;
use crate::{Key, Kind, Random, Value};

/// How often each kind of operation comes, in proportion to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// [`Kind::Append`].
    pub append: u32,
    /// [`Kind::Read`].
    pub read: u32,
    /// [`Kind::ReadAppend`].
    pub read_append: u32,
    /// [`Kind::Write`].
    pub write: u32,
    /// [`Kind::ReadRegister`].
    pub read_register: u32,
    /// [`Kind::ReadWrite`].
    pub read_write: u32,
}

impl Mix {
    /// Lists, half of the operations being reads.
    pub const LISTS: Self = Self {
        append: 2,
        read: 4,
        read_append: 2,
        write: 0,
        read_register: 0,
        read_write: 0,
    };

    /// Registers, half of the operations being reads.
    pub const REGISTERS: Self = Self {
        append: 0,
        read: 0,
        read_append: 0,
        write: 2,
        read_register: 4,
        read_write: 2,
    };
}

/// What a workload is like.
#[derive(Clone, Debug)]
pub struct WorkloadConfig {
    /// Keys of each family that are in use at a time.
    pub keys: u32,
    /// Writes after which a key gives way to a new one: so lists stay short.
    pub writes_per_key: u32,
    /// Keys that one operation reads, or writes, at most.
    pub keys_per_operation: u32,
    /// How often each kind comes.
    pub mix: Mix,
}

/// A sequence of operations that follows from a seed. Values and keys rise from 0.
#[derive(Clone, Debug)]
pub struct Workload {
    random: Random,
    config: WorkloadConfig,
    lists: Keys,
    registers: Keys,
    next_value: u64,
}

/// The keys of a family that are in use, with the writes that each has had.
#[derive(Clone, Debug)]
struct Keys {
    used: Vec<(Key, u32)>,
    next: u32,
}

impl Keys {
    fn new(count: u32) -> Self {
        let used = (0..count).map(|key| (Key(key), 0)).collect();
        Self { used, next: count }
    }
}

impl Workload {
    /// The sequence of a seed.
    ///
    /// # Panics
    /// If there are no keys, no keys in an operation, or no operations in the mix.
    #[must_use]
    pub fn new(seed: u64, config: WorkloadConfig) -> Self {
        assert!(config.keys > 0 && config.keys_per_operation > 0);
        assert!(weights(config.mix).iter().any(|weight| *weight > 0));
        Self {
            random: Random::new(seed),
            lists: Keys::new(config.keys),
            registers: Keys::new(config.keys),
            next_value: 0,
            config,
        }
    }

    /// The next operation.
    pub fn request(&mut self) -> Request {
        let weights = weights(self.config.mix);
        let mut left = self
            .random
            .below(weights.iter().map(|w| u64::from(*w)).sum());
        let mut kind = 0;
        while left >= u64::from(weights[kind]) {
            left -= u64::from(weights[kind]);
            kind += 1;
        }
        let family = if kind < 3 {
            Family::List
        } else {
            Family::Register
        };
        let keys = match kind % 3 {
            0 => Vec::new(),
            _ => self.some_keys(family),
        };
        let written = match kind % 3 {
            1 => Vec::new(),
            _ => self.some_writes(family, &keys),
        };
        Request {
            kind: match kind {
                0 => Kind::Append { appends: written },
                1 => read_of(Family::List, keys),
                2 => Kind::ReadAppend {
                    keys,
                    lists: None,
                    appends: written,
                },
                3 => Kind::Write { writes: written },
                4 => read_of(Family::Register, keys),
                _ => Kind::ReadWrite {
                    keys,
                    values: None,
                    writes: written,
                },
            },
        }
    }

    /// Reads of all keys that were ever used, for the end.
    #[must_use]
    pub fn finals(&self) -> Vec<Request> {
        let mut requests = Vec::new();
        let mix = self.config.mix;
        for (family, next, is_used) in [
            (
                Family::List,
                self.lists.next,
                mix.append + mix.read_append > 0,
            ),
            (
                Family::Register,
                self.registers.next,
                mix.write + mix.read_write > 0,
            ),
        ] {
            let keys: Vec<Key> = (0..next).filter(|_| is_used).map(Key).collect();
            let chunks = keys.chunks(self.config.keys_per_operation as usize);
            requests.extend(chunks.map(|keys| Request {
                kind: read_of(family, keys.to_vec()),
            }));
        }
        requests
    }

    fn keys(&mut self, family: Family) -> &mut Keys {
        match family {
            Family::List => &mut self.lists,
            _ => &mut self.registers,
        }
    }

    /// Different keys, one at least.
    fn some_keys(&mut self, family: Family) -> Vec<Key> {
        let most = self.config.keys_per_operation.min(self.config.keys);
        let count = 1 + self.random.below(u64::from(most));
        let mut keys = Vec::new();
        while (keys.len() as u64) < count {
            let place = self.random.below(u64::from(self.config.keys)) as usize;
            let (key, _) = self.keys(family).used[place];
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        keys
    }

    /// New values for different keys. Half of what reads also writes the first key that it read.
    fn some_writes(&mut self, family: Family, read: &[Key]) -> Vec<(Key, Value)> {
        let mut keys = self.some_keys(family);
        if let Some(first) = read.first()
            && self.random.chance(500)
            && !keys.contains(first)
        {
            keys[0] = *first;
        }
        // A list may get several values at once.
        if family == Family::List && self.random.chance(200) {
            keys.push(keys[0]);
        }
        let write = |key: Key| (key, self.value(family, key));
        keys.into_iter().map(write).collect()
    }

    fn value(&mut self, family: Family, key: Key) -> Value {
        let most = self.config.writes_per_key;
        let keys = self.keys(family);
        let next = keys.next;
        let used = keys.used.iter_mut().find(|(used, _)| *used == key);
        if let Some((used, writes)) = used {
            *writes += 1;
            if *writes >= most {
                (*used, *writes) = (Key(next), 0);
                keys.next += 1;
            }
        }
        self.next_value += 1;
        Value(self.next_value - 1)
    }
}

fn weights(mix: Mix) -> [u32; 6] {
    [
        mix.append,
        mix.read,
        mix.read_append,
        mix.write,
        mix.read_register,
        mix.read_write,
    ]
}

fn read_of(family: Family, keys: Vec<Key>) -> Kind {
    match family {
        Family::List => Kind::Read {
            keys,
            lists: Vec::new(),
        },
        _ => Kind::ReadRegister {
            keys,
            values: Vec::new(),
        },
    }
}

/// An operation to be asked. Its text goes to the endpoint of queries or of updates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    kind: Kind,
}

/// A query with its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// For the history.
    pub kind: Kind,
    /// For [`super::learn`].
    pub sightings: Vec<Sighting>,
    /// Each is an anomaly in itself.
    pub contradictions: Vec<Contradiction>,
}

impl Request {
    /// What is asked, without what is read.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The kind, for an update, or for a query without an answer.
    #[must_use]
    pub fn into_kind(self) -> Kind {
        self.kind
    }

    /// True if it is an update, and a query otherwise.
    #[must_use]
    pub fn is_update(&self) -> bool {
        !matches!(self.kind, Kind::Read { .. } | Kind::ReadRegister { .. })
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Append { appends } => texts::append(appends),
            Kind::Read { keys, .. } => texts::read_lists(keys),
            Kind::ReadAppend { keys, appends, .. } => texts::read_append(keys, appends),
            Kind::Write { writes } => texts::write(writes),
            Kind::ReadRegister { keys, .. } => texts::read_numbers(Family::Register, keys),
            Kind::ReadWrite { keys, writes, .. } => texts::read_write(keys, writes),
        }
    }

    /// A query with its answer in SPARQL 1.1 Query Results JSON.
    ///
    /// # Errors
    /// [`DecodeError`] for what is no such answer.
    ///
    /// # Panics
    /// If it is an update.
    pub fn answered(&self, json: &str) -> Result<Answered, DecodeError> {
        assert!(!self.is_update(), "an update has no answer");
        let keys = match &self.kind {
            Kind::Read { keys, .. } => {
                let answer = decode_lists(keys, json)?;
                let (keys, lists) = (keys.clone(), answer.lists);
                return Ok(Answered {
                    kind: Kind::Read { keys, lists },
                    sightings: answer.sightings,
                    contradictions: answer.contradictions,
                });
            }
            Kind::ReadRegister { keys, .. } => keys.clone(),
            _ => Vec::new(),
        };
        let answer = decode_numbers(Family::Register, &keys, json)?;
        // The workload writes no negative number, so one stays a value that nobody wrote.
        let value = |number: Option<i64>| number.map(|number| Value(number as u64));
        let values = answer.numbers.into_iter().map(value).collect();
        Ok(Answered {
            kind: Kind::ReadRegister { keys, values },
            sightings: answer.sightings,
            contradictions: answer.contradictions,
        })
    }
}
