//! How does what the log of streams says get to the copies of a store, and survive the loss of a node?
//!
//! Where a store is one of several copies, its leader writes no log of streams by itself. What is to be said waits
//! ([`Copied::say`]) until the next transaction, and goes with it: so it is in the log of transactions, reaches the
//! copies and is committed as these are, in one order with the facts that streams store. Whoever must know that it is lasting
//! makes a transaction that does nothing else. What all copies in sync have goes from there into the log of streams of
//! each ([`Copied::keep`]), as one record for each transaction, before the log of transactions may lose it.
//!
//! So a copy needs nothing but what it has to go on with the streams when it leads: the records that are kept, and then
//! those of the transactions behind them. A record without bytes says that all that was said before means nothing any
//! more: a state follows it.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jindou_model::SnapshotNumber;
use jindou_store::{Directory, DurabilityOptions, SideLog, StoreError};
use parking_lot::{Mutex, MutexGuard};

use super::records::{Record, SAID};
use crate::EngineError;

/// Bytes before each record that is said with a transaction: how many it has.
const HEAD_BYTES: usize = 4;

/// What one copy of a store has of the streams.
pub(crate) struct Copied {
    directory: Arc<Directory>,
    options: DurabilityOptions,
    /// Bytes that may be said with one transaction.
    most_bytes: usize,
    unsaid: Mutex<Unsaid>,
    kept: Mutex<Kept>,
}

/// What is to be said with the next transaction, as it will be there.
#[derive(Default)]
struct Unsaid {
    bytes: Vec<u8>,
    /// Records so far, and how many of these went with a transaction.
    records: u64,
    said: u64,
    /// Bytes since the last state, and of that.
    since_state: u64,
    state_bytes: u64,
    /// No transaction could be made for it.
    is_stuck: bool,
}

/// What is in the log of streams, and what is to come there.
struct Kept {
    log: Option<SideLog>,
    /// The last transaction whose records are there.
    last: SnapshotNumber,
    /// What transactions said that are not known to be at all copies in sync.
    waiting: VecDeque<(SnapshotNumber, Box<[u8]>)>,
}

impl Copied {
    /// That of a store, with what its transactions say that the log of streams does not have yet.
    ///
    /// # Errors
    /// Those of a log of streams that is not as it was written.
    pub(crate) fn open(
        directory: &Arc<Directory>,
        options: &DurabilityOptions,
        most_bytes: usize,
    ) -> Result<Self, EngineError> {
        let mut last = SnapshotNumber(0);
        let opened = SideLog::open(directory, options, &mut |bytes| {
            if let Ok(Record::Said { snapshot, .. }) = Record::decode(bytes) {
                last = last.max(SnapshotNumber(snapshot));
            }
            Ok::<_, EngineError>(())
        })?;
        Ok(Self {
            directory: Arc::clone(directory),
            options: options.clone(),
            most_bytes,
            unsaid: Mutex::default(),
            kept: Mutex::new(Kept {
                log: opened.map(|(log, _)| log),
                last,
                waiting: VecDeque::new(),
            }),
        })
    }

    /// Has a record go with the next transaction; gives the number of records so far.
    ///
    /// # Errors
    /// [`EngineError::TransactionTooLarge`].
    pub(super) fn say(&self, record: &[u8]) -> Result<u64, EngineError> {
        let bytes = record.len() + HEAD_BYTES;
        if bytes > self.most_bytes {
            return Err(EngineError::TransactionTooLarge {
                bytes: bytes as u64,
                limit_bytes: self.most_bytes as u64,
            });
        }
        Ok(self.unsaid.lock().add(record))
    }

    /// Has a record of some bytes go with the next transaction.
    pub(super) fn say_short(&self, record: &[u8]) {
        self.unsaid.lock().add(record);
    }

    /// Has a state go with the next transaction, in the place of all that was said before.
    ///
    /// # Errors
    /// What writing it says: nothing of it goes then.
    pub(super) fn say_state(
        &self,
        write: impl FnOnce(&mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()>,
    ) -> Result<(), EngineError> {
        let mut state = Unsaid::default();
        state.add(&[]);
        let written = write(&mut |record| {
            if record.len() + HEAD_BYTES > self.most_bytes {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            state.add(record);
            Ok(())
        });
        written.map_err(|source| StoreError::Io {
            path: self.path(),
            source,
        })?;
        let mut unsaid = self.unsaid.lock();
        unsaid.bytes.extend_from_slice(&state.bytes);
        unsaid.records += state.records;
        unsaid.state_bytes = state.bytes.len() as u64;
        unsaid.since_state = 0;
        Ok(())
    }

    /// Takes the records that fit into a transaction of `bytes` bytes.
    pub(crate) fn take(&self, bytes: usize) -> Box<[u8]> {
        let mut unsaid = self.unsaid.lock();
        if unsaid.bytes.is_empty() {
            return Box::default();
        }
        let most = self.most_bytes.saturating_sub(bytes);
        let (mut end, mut count) = (0, 0);
        for record in Records(&unsaid.bytes) {
            let next = end + HEAD_BYTES + record.len();
            if next > most {
                break;
            }
            (end, count) = (next, count + 1);
        }
        unsaid.said += count;
        let rest = unsaid.bytes.split_off(end);
        std::mem::replace(&mut unsaid.bytes, rest).into()
    }

    /// What was [taken](Self::take) goes with none: it is the first again.
    pub(crate) fn put_back(&self, said: &[u8]) {
        let mut unsaid = self.unsaid.lock();
        unsaid.said -= Records(said).count() as u64;
        let later = std::mem::replace(&mut unsaid.bytes, said.to_vec());
        unsaid.bytes.extend_from_slice(&later);
    }

    /// Records so far.
    pub(super) fn records(&self) -> u64 {
        self.unsaid.lock().records
    }

    /// Whether the first `records` records went with transactions.
    pub(crate) fn are_said(&self, records: u64) -> bool {
        self.unsaid.lock().said >= records
    }

    /// Whether all that was said went with transactions up to one.
    pub(super) fn is_all_said(&self, until: SnapshotNumber) -> bool {
        let unsaid = self.unsaid.lock();
        let kept = self.kept.lock();
        let last = kept.waiting.back().map_or(kept.last, |(number, _)| *number);
        unsaid.bytes.is_empty() && last <= until
    }

    /// Notes whether a transaction could be made for what is to be said.
    pub(super) fn note_stuck(&self, is_stuck: bool) {
        self.unsaid.lock().is_stuck = is_stuck;
    }

    /// Whether the last transaction for what is to be said could not be made.
    pub(super) fn is_stuck(&self) -> bool {
        self.unsaid.lock().is_stuck
    }

    /// Bytes since the last state, and those of that.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let unsaid = self.unsaid.lock();
        (unsaid.since_state, unsaid.state_bytes)
    }

    /// Notes what a transaction said that is in the log; the caller holds the writer's lock, or nobody else knows of this.
    pub(crate) fn note(&self, number: SnapshotNumber, said: Box<[u8]>) {
        let mut kept = self.kept.lock();
        if !said.is_empty() && number > kept.last {
            kept.waiting.push_back((number, said));
        }
    }

    /// Writes what transactions up to one said, which all copies in sync have, into the log of streams.
    ///
    /// # Errors
    /// Those of that log. What was not written is tried again with the next.
    pub(crate) fn keep(&self, until: SnapshotNumber) -> Result<(), StoreError> {
        self.keep_of(&mut self.kept.lock(), until)
    }

    fn keep_of(&self, kept: &mut Kept, until: SnapshotNumber) -> Result<(), StoreError> {
        while let Some((number, said)) = kept.waiting.front()
            && *number <= until
        {
            let number = *number;
            self.write(&mut kept.log, number, said)?;
            kept.last = number;
            kept.waiting.pop_front();
        }
        Ok(())
    }

    /// Writes what one transaction said.
    fn write(
        &self,
        log: &mut Option<SideLog>,
        number: SnapshotNumber,
        said: &[u8],
    ) -> Result<(), StoreError> {
        let (since_state, is_state) = since_state(said);
        let mut record = Vec::new();
        Record::Said {
            snapshot: number.0,
            records: since_state.into(),
        }
        .encode(&mut record);
        match log {
            Some(log) if is_state => {
                let file = log.begin_state()?;
                log.write_state(file, &mut |put| put(&record))?;
            }
            Some(log) => {
                log.append(&record)?;
            }
            None => {
                let options = &self.options;
                *log = Some(SideLog::create(&self.directory, options, &mut |put| {
                    put(&record)
                })?);
            }
        }
        Ok(())
    }

    /// Has all that transactions up to one said survive the loss of the log of transactions.
    ///
    /// # Errors
    /// Those of the log of streams.
    pub(crate) fn settle(&self, until: SnapshotNumber) -> Result<(), StoreError> {
        self.settled(until).map(drop)
    }

    /// Copies the log of streams, with what transactions up to one said at least, into another directory.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn copy(&self, until: SnapshotNumber, to: &Directory) -> Result<(), StoreError> {
        let kept = self.settled(until)?;
        SideLog::copy(&self.directory, to)?;
        drop(kept);
        Ok(())
    }

    fn settled(&self, until: SnapshotNumber) -> Result<MutexGuard<'_, Kept>, StoreError> {
        let mut kept = self.kept.lock();
        self.keep_of(&mut kept, until)?;
        kept.log.as_ref().map_or(Ok(()), SideLog::sync_all)?;
        Ok(kept)
    }

    /// True if nothing was ever said.
    pub(super) fn is_empty(&self) -> bool {
        let kept = self.kept.lock();
        kept.log.is_none() && kept.waiting.is_empty()
    }

    /// The log of streams.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("streams")
    }

    /// Hands over all that was said: what is in the log of streams, and what transactions behind that said. True if some
    /// of it was said by no transaction, as this was no copy of a store then.
    ///
    /// # Errors
    /// What `deliver` says; those of the log of streams.
    pub(super) fn read(
        &self,
        deliver: &mut dyn FnMut(&[u8]) -> Result<(), EngineError>,
    ) -> Result<bool, EngineError> {
        let mut was_alone = false;
        let kept = self.settled(SnapshotNumber(0))?;
        // The log counts from its last state on, which another leader may have written.
        let waiting_bytes = kept.waiting.iter().map(|(_, said)| said.len() as u64);
        let log_bytes = kept.log.as_ref().map_or(0, SideLog::bytes);
        self.unsaid.lock().since_state = log_bytes + waiting_bytes.sum::<u64>();
        let waiting = kept.waiting.iter().map(|(_, said)| since_state(said));
        let waiting: Vec<_> = waiting.collect();
        let first = waiting.iter().rposition(|(_, is_state)| *is_state);
        if first.is_none() {
            SideLog::read(&self.directory, &mut |bytes| {
                was_alone |= bytes.first() != Some(&SAID);
                deliver(bytes)
            })?;
        }
        for (said, _) in &waiting[first.unwrap_or(0)..] {
            Records(said).try_for_each(&mut *deliver)?;
        }
        Ok(was_alone)
    }
}

impl Unsaid {
    fn add(&mut self, record: &[u8]) -> u64 {
        let length = u32::try_from(record.len()).expect("a transaction has fewer bytes");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(record);
        self.since_state += (record.len() + HEAD_BYTES) as u64;
        self.records += 1;
        self.records
    }
}

/// What was said with a transaction behind its last record without bytes, and whether it has one.
fn since_state(said: &[u8]) -> (&[u8], bool) {
    let mut records = Records(said);
    let mut found = None;
    while let Some(record) = records.next() {
        if record.is_empty() {
            found = Some(records.0);
        }
    }
    (found.unwrap_or(said), found.is_some())
}

/// The records of what was said with a transaction. Bytes that are none end them.
pub(super) struct Records<'a>(pub(super) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.0.split_first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_le_bytes(*length) as usize;
        let (record, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some(record)
    }
}

/// That bytes which came with a transaction of another copy are records.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn check_said(said: &[u8]) -> Result<(), String> {
    let mut records = Records(said);
    for record in records.by_ref() {
        if !record.is_empty() {
            let decoded = Record::decode(record).map_err(|bad| bad.to_string())?;
            if let Record::Said { .. } = decoded {
                return Err("it says that something was said".to_owned());
            }
        }
    }
    match records.0 {
        [] => Ok(()),
        _ => Err("what is said of streams with a transaction ends in the middle".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copied(directory: &Arc<Directory>) -> Copied {
        Copied::open(directory, &DurabilityOptions::default(), 1 << 20).unwrap()
    }

    fn heartbeat(time_ms: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Record::Heartbeat { stream: 1, time_ms }.encode(&mut bytes);
        bytes
    }

    /// The times of all that was said, in order.
    fn times(copied: &Copied) -> Vec<i64> {
        let mut times = Vec::new();
        let mut take = |bytes: &[u8]| {
            let inner = match Record::decode(bytes).unwrap() {
                Record::Said { records, .. } => records.into_owned(),
                Record::Heartbeat { time_ms, .. } => {
                    times.push(time_ms);
                    return Ok(());
                }
                other => panic!("{other:?}"),
            };
            for record in Records(&inner) {
                let Record::Heartbeat { time_ms, .. } = Record::decode(record).unwrap() else {
                    panic!("nothing else was said");
                };
                times.push(time_ms);
            }
            Ok(())
        };
        copied.read(&mut take).unwrap();
        times
    }

    #[test]
    fn what_transactions_said_is_read_once_whether_it_is_kept_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::create(folder.path()).unwrap());
        let first = copied(&directory);
        assert!(first.is_empty());
        let mut all = Vec::new();
        for number in 1..=4_u64 {
            for time_ms in [number as i64 * 10, number as i64 * 10 + 1] {
                assert_eq!(first.say(&heartbeat(time_ms)).unwrap(), first.records());
                all.push(time_ms);
            }
            assert!(!first.are_said(first.records()));
            first.note(SnapshotNumber(number), first.take(0));
            assert!(first.are_said(first.records()));
            assert!(first.take(0).is_empty(), "all of it went");
        }
        let said: Vec<_> = first.kept.lock().waiting.iter().cloned().collect();
        assert_eq!(times(&first), all);
        first.keep(SnapshotNumber(2)).unwrap();
        assert_eq!(times(&first), all);
        first.settle(SnapshotNumber(3)).unwrap();
        drop(first);
        // Transactions are read from their log again, those that are kept, too.
        let second = copied(&directory);
        for (number, said) in said {
            second.note(number, said);
        }
        assert_eq!(times(&second), all);
        second.say(&heartbeat(50)).unwrap();
        second.say_state(|put| put(&heartbeat(100))).unwrap();
        second.say(&heartbeat(101)).unwrap();
        second.note(SnapshotNumber(7), second.take(0));
        assert_eq!(times(&second), [100, 101]);
        second.settle(SnapshotNumber(7)).unwrap();
        assert_eq!(times(&second), [100, 101]);
        drop(second);
        assert_eq!(times(&copied(&directory)), [100, 101]);
    }

    #[test]
    fn what_goes_with_no_transaction_is_the_first_again() {
        let folder = tempfile::tempdir().unwrap();
        let directory = Arc::new(Directory::create(folder.path()).unwrap());
        let copied = copied(&directory);
        for time_ms in 1..=3 {
            copied.say(&heartbeat(time_ms)).unwrap();
        }
        let said = copied.take(copied.most_bytes - 2 * (HEAD_BYTES + heartbeat(1).len()));
        assert_eq!(Records(&said).count(), 2, "the third has no room");
        assert!(copied.are_said(2) && !copied.are_said(3));
        copied.put_back(&said);
        assert!(!copied.are_said(1));
        copied.note(SnapshotNumber(1), copied.take(0));
        assert_eq!(times(&copied), [1, 2, 3]);
        assert!(copied.say(&vec![0; 1 << 20]).is_err(), "it is too large");
    }

    #[test]
    fn bytes_that_are_no_records_are_refused() {
        let mut sound = Unsaid::default();
        sound.add(&[]);
        sound.add(&heartbeat(7));
        assert!(check_said(&sound.bytes).is_ok());
        for length in 1..sound.bytes.len() {
            let is_whole = length == HEAD_BYTES;
            assert_eq!(
                check_said(&sound.bytes[..length]).is_ok(),
                is_whole,
                "{length}"
            );
        }
        for place in 0..sound.bytes.len() {
            let mut other = sound.bytes.clone();
            other[place] ^= 0x80;
            // Another time is a time.
            let _ = check_said(&other);
        }
    }
}
