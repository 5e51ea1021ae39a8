//! Which records does a log hold, and is what is missing a torn end or damage?
//!
//! Everything is read and judged before the first record is handed out, and read again then, so
//! that memory holds one record at a time and a damaged log hands out nothing.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::commit::Handle;
use super::format::{
    ALIGNMENT, BLOCK_BYTES, BadHeader, COUNT_LIMIT, FileHeader, HEAD_BYTES, Kind, LOG_VERSION,
    Promise, RECORD_BYTES, RecordHead,
};
use super::storage::{Storage, read_exact, write_all, write_zeros};
use super::writer::Point;
use super::{Record, Recovered, file_name, numbers};
use crate::{Identity, StoreError};

/// Bytes read at once.
const WINDOW_BYTES: u64 = 1 << 20;

/// What is to be done with the files of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    /// They are read, repaired, and continued.
    Write,
}

/// A file, read through a window.
#[derive(Debug)]
struct Reader {
    handle: Arc<Handle>,
    length: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl Reader {
    /// Bytes that lie in the file.
    fn bytes(&mut self, range: Range<u64>) -> Result<&[u8], StoreError> {
        assert!(range.start <= range.end && range.end <= self.length);
        let window_end = self.window_at + self.window.len() as u64;
        if range.start < self.window_at || range.end > window_end {
            let size = (range.end - range.start)
                .max(WINDOW_BYTES)
                .min(self.length - range.start);
            self.window.clear();
            self.window.shrink_to(WINDOW_BYTES as usize);
            self.window.resize(size as usize, 0);
            self.window_at = range.start;
            let file = &self.handle.file;
            let whole = read_exact(&**file, &mut self.window, range.start).map_err(|source| {
                StoreError::Io {
                    path: self.handle.path.clone(),
                    source,
                }
            })?;
            if !whole {
                self.window.clear();
                return Err(self.corrupt("it became shorter while it was read".to_owned()));
            }
        }
        let begin = (range.start - self.window_at) as usize;
        Ok(&self.window[begin..begin + (range.end - range.start) as usize])
    }

    fn corrupt(&self, reason: String) -> StoreError {
        StoreError::Corrupt {
            path: self.handle.path.clone(),
            reason,
        }
    }
}

/// A place between two records.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    place: u64,
    chain: u64,
    sequence: u64,
}

impl Cursor {
    fn start(header: &FileHeader) -> Self {
        Self {
            place: BLOCK_BYTES,
            chain: header.salt(),
            sequence: header.first_sequence - 1,
        }
    }

    /// Reads the record at the cursor and steps over it, or says why there is no valid one.
    fn step(
        &mut self,
        reader: &mut Reader,
    ) -> Result<Result<RecordHead, &'static str>, StoreError> {
        let place = self.place;
        let left = reader.length - place;
        if left < RECORD_BYTES {
            return Ok(Err("the file ends there"));
        }
        let salt = reader.handle.salt;
        let bytes = reader.bytes(place..place + HEAD_BYTES)?;
        let Some(head) = RecordHead::read(bytes, salt, place) else {
            return Ok(Err(match bytes.iter().all(|&byte| byte == 0) {
                true => "only zeros are there",
                false => "the checksum of its head is wrong",
            }));
        };
        if head.total() > left {
            return Ok(Err("it reaches beyond the end of the file"));
        }
        let sequence = match head.kind {
            Kind::Part | Kind::Last => self.sequence + 1,
            Kind::Mark | Kind::Next => self.sequence,
        };
        if head.sequence != sequence || head.durable > place {
            return Ok(Err("it does not follow the record before it"));
        }
        let rest = reader.bytes(place + HEAD_BYTES..place + head.total())?;
        let (payload, rest) = rest.split_at(head.length as usize);
        let (padding, chain) = rest.split_at(rest.len() - 8);
        let expected = head.chain_behind(self.chain, payload, padding);
        if chain != expected.to_le_bytes() {
            return Ok(Err("its checksum is wrong"));
        }
        self.place += head.total();
        self.chain = expected;
        self.sequence = sequence;
        Ok(Ok(head))
    }
}

/// What was found in one file.
#[derive(Debug)]
struct Scan {
    reader: Reader,
    header: FileHeader,
    promise: Promise,
    /// Where the last complete group or mark ends.
    kept: Cursor,
    /// Where the last complete group ends.
    records_end: u64,
    records: u64,
    groups: u64,
    /// What the last kept record says of how far the file was synced.
    claimed: u64,
    /// The most that any record in the file says of how far the file was synced.
    certified: u64,
    /// The first place without a valid record, which record should be there, and why none is.
    bad_place: u64,
    bad_sequence: u64,
    bad_reason: &'static str,
    /// It says that another file follows.
    next: bool,
    /// Behind the last byte that is not zero.
    used: u64,
}

impl Scan {
    /// Reads a file from its first block to its last byte.
    fn read(
        storage: &dyn Storage,
        access: Access,
        base: (u64, Identity),
        number: u64,
    ) -> Result<Self, StoreError> {
        let (reader, header, promise) = open(storage, access, base, number)?;
        let mut cursor = Cursor::start(&header);
        let mut scan = Self {
            reader,
            header,
            promise,
            kept: cursor,
            records_end: BLOCK_BYTES,
            records: 0,
            groups: 0,
            claimed: BLOCK_BYTES,
            certified: BLOCK_BYTES,
            bad_place: BLOCK_BYTES,
            bad_sequence: 0,
            bad_reason: "",
            next: false,
            used: BLOCK_BYTES,
        };
        scan.walk(&mut cursor)?;
        scan.read_tail()?;
        // One window at a time is in memory, however many files there are.
        scan.reader.window = Vec::new();
        Ok(scan)
    }

    /// Goes from record to record up to the first place that has none.
    fn walk(&mut self, cursor: &mut Cursor) -> Result<(), StoreError> {
        loop {
            self.bad_place = cursor.place;
            self.bad_sequence = cursor.sequence + 1;
            let whole = self.kept.place == cursor.place;
            let record = match cursor.step(&mut self.reader)? {
                Ok(record) => record,
                Err(reason) => {
                    self.bad_reason = reason;
                    return Ok(());
                }
            };
            self.certified = self.certified.max(record.durable);
            match record.kind {
                Kind::Part => continue,
                Kind::Last => {
                    self.records += cursor.sequence - self.kept.sequence;
                    self.groups += 1;
                    self.records_end = cursor.place;
                }
                Kind::Mark | Kind::Next if !whole || record.length > 0 => {
                    self.bad_reason = "it does not belong there";
                    return Ok(());
                }
                Kind::Mark => {}
                Kind::Next => {
                    self.next = true;
                    self.bad_place = cursor.place;
                    return Ok(());
                }
            }
            self.claimed = record.durable;
            self.kept = *cursor;
        }
    }

    /// Looks through what no valid record covers for records that say how far the file was synced.
    fn read_tail(&mut self) -> Result<(), StoreError> {
        let reader = &mut self.reader;
        let salt = reader.handle.salt;
        let mut place = self.bad_place;
        self.used = place;
        while place < reader.length {
            let end = (place + WINDOW_BYTES).min(reader.length);
            let whole = (end + HEAD_BYTES).min(reader.length);
            let bytes = reader.bytes(place..whole)?;
            for begin in (0..end - place).step_by(ALIGNMENT as usize) {
                let here = &bytes[begin as usize..];
                let used = here
                    .iter()
                    .take(ALIGNMENT as usize)
                    .rposition(|&byte| byte != 0);
                let Some(used) = used else { continue };
                self.used = place + begin + used as u64 + 1;
                if here.len() as u64 >= HEAD_BYTES
                    && let Some(record) = RecordHead::read(here, salt, place + begin)
                    && record.durable <= place + begin
                {
                    self.certified = self.certified.max(record.durable);
                }
            }
            place = end;
        }
        Ok(())
    }

    fn bad(&self) -> String {
        format!(
            "record {} at byte {}: {}",
            self.bad_sequence, self.bad_place, self.bad_reason
        )
    }

    /// Refuses if something is missing that was synced.
    fn check_last(&self, storage: &dyn Storage) -> Result<(), StoreError> {
        let Self { reader, header, .. } = self;
        if reader.length < self.promise.length {
            return Err(reader.corrupt(format!(
                "it has {} bytes and had at least {}",
                reader.length, self.promise.length
            )));
        }
        if self.certified > self.kept.place {
            let what = match self.bad_place >= self.certified {
                // Valid records, and a group that is known to have been whole lacks its end.
                true => format!(
                    "the group of records behind byte {} is not whole",
                    self.kept.place
                ),
                false => self.bad(),
            };
            return Err(reader.corrupt(format!(
                "{what}; the file was synced up to byte {}",
                self.certified
            )));
        }
        if self.next {
            let name = file_name(header.generation, header.number + 1);
            return Err(StoreError::Corrupt {
                path: storage.path(&name),
                reason: format!(
                    "it is missing: {} says that it follows",
                    reader.handle.path.display()
                ),
            });
        }
        Ok(())
    }

    /// Refuses if the file is not whole, or `next` does not follow it. What is behind its end is
    /// of no matter: a word that a file follows, which may be torn, or what a failed sync left.
    fn check_before(&self, next: &Self) -> Result<(), StoreError> {
        let Self { reader, kept, .. } = self;
        let end = next.header.previous_end;
        if kept.place < end {
            return Err(reader.corrupt(format!(
                "{}; its records end at byte {end}, as the next file says",
                self.bad()
            )));
        }
        let follows = (end, next.header.previous_chain, next.header.first_sequence)
            == (kept.place, kept.chain, kept.sequence + 1);
        if !follows {
            return Err(next
                .reader
                .corrupt("it does not continue the file before it".to_owned()));
        }
        Ok(())
    }

    /// Hands out the records again.
    fn deliver<E: From<StoreError>>(
        &mut self,
        deliver: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        deliver_until(&mut self.reader, &self.header, self.records_end, deliver)
    }

    /// Makes durable what is kept, and removes what is not. True if that needs to be noted in the
    /// file.
    fn repair(&mut self) -> Result<bool, StoreError> {
        let torn = self.used > self.kept.place;
        if !torn && self.certified == self.kept.place {
            return Ok(false);
        }
        let handle = Arc::clone(&self.reader.handle);
        let failed = |source| StoreError::Io {
            path: handle.path.clone(),
            source,
        };
        let write = |bytes: &[u8], place| {
            write_all(&*handle.file, bytes, place).map_err(|(_, source)| failed(source))
        };
        write_zeros(&*handle.file, self.kept.place, self.used).map_err(failed)?;
        // What was read may be in the system's memory only, and clean there after a failed sync:
        // only bytes that are written again are sure to be synced.
        let sector = self.promise.sector(handle.salt);
        write(&sector, self.promise.place())?;
        let mut place = self.certified;
        while place < self.kept.place {
            let end = (place + WINDOW_BYTES).min(self.kept.place);
            write(self.reader.bytes(place..end)?, place)?;
            place = end;
        }
        handle.file.sync().map_err(failed)?;
        // A mark at the end is written again too, since what follows hangs on it, but needs no mark
        // of its own.
        Ok(torn || self.certified < self.records_end)
    }
}

/// Opens a file and reads its first block.
fn open(
    storage: &dyn Storage,
    access: Access,
    (generation, base): (u64, Identity),
    number: u64,
) -> Result<(Reader, FileHeader, Promise), StoreError> {
    let name = file_name(generation, number);
    let path = storage.path(&name);
    let failed = |source| StoreError::Io {
        path: path.clone(),
        source,
    };
    let file = match access {
        Access::Write => storage.open(&name),
        Access::Read => storage.open_to_read(&name),
    };
    let file = file.map_err(failed)?;
    let length = file.length().map_err(failed)?;
    let mut block = vec![0; BLOCK_BYTES as usize];
    let whole = read_exact(&*file, &mut block, 0).map_err(failed)?;
    let corrupt = |reason: &str| StoreError::Corrupt {
        path: path.clone(),
        reason: reason.to_owned(),
    };
    if !whole {
        return Err(corrupt("it is shorter than its header"));
    }
    let (header, promise) = FileHeader::read(&block).map_err(|bad| match bad {
        BadHeader::Version(found) => StoreError::Version {
            path: path.clone(),
            found,
            supported: LOG_VERSION,
        },
        BadHeader::Damaged(reason) => corrupt(reason),
    })?;
    let possible = (1..COUNT_LIMIT).contains(&header.first_sequence);
    if (header.generation, header.number) != (generation, number) || !possible {
        return Err(corrupt("it is another file of a log than its name says"));
    }
    if header.base != base {
        return Err(corrupt(&base.mismatch(header.base)));
    }
    let handle = Handle {
        number,
        salt: header.salt(),
        path,
        file,
    };
    let reader = Reader {
        handle: Arc::new(handle),
        length,
        window: Vec::new(),
        window_at: 0,
    };
    Ok((reader, header, promise))
}

/// Hands out the records of a file that end at or before the byte `end`, where a record ends: all that
/// precedes it was appended by this process or recovered by it, and stays as it is.
///
/// # Errors
/// [`StoreError::Corrupt`] if a record is not as it was written; what the operating system says, as where
/// the file was removed; what `deliver` says.
pub(super) fn read_until<E: From<StoreError>>(
    storage: &dyn Storage,
    base: (u64, Identity),
    (number, end): (u64, u64),
    deliver: &mut impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let (mut reader, header, _) = open(storage, Access::Read, base, number)?;
    deliver_until(&mut reader, &header, end, deliver)
}

/// As [`read_until`], of an open file.
fn deliver_until<E: From<StoreError>>(
    reader: &mut Reader,
    header: &FileHeader,
    end: u64,
    deliver: &mut impl FnMut(Record<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut cursor = Cursor::start(header);
    while cursor.place < end {
        let place = cursor.place;
        let head = cursor
            .step(reader)?
            .map_err(|reason| reader.corrupt(format!("byte {place}, read again: {reason}")))?;
        let ends_group = match head.kind {
            Kind::Part => false,
            Kind::Last => true,
            Kind::Mark | Kind::Next => continue,
        };
        let begin = place + HEAD_BYTES;
        deliver(Record {
            sequence: head.sequence,
            ends_group,
            payload: reader.bytes(begin..begin + u64::from(head.length))?,
        })?;
    }
    Ok(())
}

/// A log that was read whole.
#[derive(Debug)]
pub(super) struct Contents {
    scans: Vec<Scan>,
}

impl Contents {
    /// Reads and judges the files of a generation from number `first` on.
    pub(super) fn read(
        storage: &dyn Storage,
        access: Access,
        (generation, base): (u64, Identity),
        first: u64,
    ) -> Result<Self, StoreError> {
        let found: Vec<u64> = numbers(storage, generation)?
            .into_iter()
            .filter(|&number| number >= first)
            .collect();
        let last = found.last().copied().unwrap_or(first);
        let mut scans: Vec<Scan> = Vec::with_capacity(found.len());
        for (number, present) in (first..=last).zip(found.iter().map(Some).chain([None])) {
            if present != Some(&number) {
                return Err(StoreError::Corrupt {
                    path: storage.path(&file_name(generation, number)),
                    reason: "it is missing".to_owned(),
                });
            }
            let scan = Scan::read(storage, access, (generation, base), number)?;
            if let Some(before) = scans.last() {
                before.check_before(&scan)?;
            }
            scans.push(scan);
        }
        if let Some(scan) = scans.last() {
            scan.check_last(storage)?;
        }
        Ok(Self { scans })
    }

    pub(super) fn deliver<E: From<StoreError>>(
        &mut self,
        deliver: &mut impl FnMut(Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.scans
            .iter_mut()
            .try_for_each(|scan| scan.deliver(deliver))
    }

    pub(super) fn summary(&self) -> Recovered {
        let last = &self.scans[self.scans.len() - 1];
        Recovered {
            files: self.scans.len() as u64,
            records: self.scans.iter().map(|scan| scan.records).sum(),
            groups: self.scans.iter().map(|scan| scan.groups).sum(),
            bytes: self.scans.iter().map(|scan| scan.kept.place).sum(),
            last_sequence: last.kept.sequence,
            dropped_bytes: last.used.saturating_sub(last.kept.place),
        }
    }

    /// Makes the last file ready to be continued.
    pub(super) fn repair(self) -> Result<Repaired, StoreError> {
        let mut scans = self.scans;
        let mut last = scans.pop().expect("a log has a file");
        let changed = last.repair()?;
        Ok(Repaired {
            handle: last.reader.handle,
            point: Point {
                end: last.kept.place,
                chain: last.kept.chain,
                sequence: last.kept.sequence,
                claimed: last.claimed,
            },
            length: last.reader.length,
            promise: last.promise,
            first_sequence: last.header.first_sequence,
            complete: scans
                .iter()
                .map(|scan| (scan.header.number, scan.kept.place))
                .collect(),
            changed,
        })
    }
}

/// What a writer goes on from.
#[derive(Debug)]
pub(super) struct Repaired {
    pub(super) handle: Arc<Handle>,
    pub(super) point: Point,
    pub(super) length: u64,
    pub(super) promise: Promise,
    pub(super) first_sequence: u64,
    pub(super) complete: BTreeMap<u64, u64>,
    pub(super) changed: bool,
}
