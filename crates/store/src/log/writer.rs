//! The end of the log: how does a record get into the file, and out again if it does not fit?

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::commit::{Commits, Handle, Position};
use super::format::{
    BLOCK_BYTES, FileHeader, Kind, MAX_PAYLOAD_BYTES, Promise, RECORD_BYTES, RecordHead, padding,
};
use super::storage::{LogFile, Storage, is_full, write_all, write_zeros};
use super::{Fsync, LogOptions, file_name, temporary_name};
use crate::identity::random;
use crate::{Identity, StoreError};

/// Room kept behind every record for marks and for the word that another file follows.
const RESERVE_BYTES: u64 = 4 * RECORD_BYTES;
/// Records up to this size are written by one call.
const ONE_WRITE_BYTES: usize = 64 << 10;

/// What the writer needs and does not alter.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) storage: Box<dyn Storage>,
    pub(super) options: LogOptions,
    pub(super) generation: u64,
    /// The base that the log continues.
    pub(super) base: Identity,
    pub(super) commits: Commits,
}

impl Shared {
    /// The error of a write: a full disk may pass, anything else ends the log.
    fn write_failed(&self, handle: &Handle, source: io::Error) -> StoreError {
        let path = handle.path.clone();
        match is_full(&source) {
            true => StoreError::DiskFull { path, source },
            false => self.commits.fail(path, source),
        }
    }
}

/// A point to which the log can be cut back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) end: u64,
    pub(super) chain: u64,
    /// Of the last record.
    pub(super) sequence: u64,
    /// How far the file is synced, as the last record or mark says.
    pub(super) claimed: u64,
}

/// The file being written.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) handle: Arc<Handle>,
    pub(super) point: Point,
    /// Bytes up to here may be other than zero.
    touched: u64,
    /// The file's length.
    allocated: u64,
    promise: Promise,
    /// What the other promise in the file says at most.
    promise_before: u64,
    first_sequence: u64,
    /// A write found no space since the log was last cut back.
    found_full: bool,
    /// The files before, and where their records end.
    pub(super) complete: BTreeMap<u64, u64>,
    scratch: Vec<u8>,
}

impl Writer {
    pub(super) fn new(
        handle: Arc<Handle>,
        point: Point,
        (allocated, promise): (u64, Promise),
        first_sequence: u64,
        complete: BTreeMap<u64, u64>,
    ) -> Self {
        Self {
            handle,
            point,
            touched: point.end,
            allocated,
            promise,
            promise_before: u64::MAX,
            first_sequence,
            found_full: false,
            complete,
            scratch: Vec::new(),
        }
    }

    pub(super) fn position(&self) -> Position {
        Position {
            handle: Arc::clone(&self.handle),
            end: self.point.end,
            sequence: self.point.sequence,
        }
    }

    /// True if no record is in the current file.
    pub(super) fn is_empty(&self) -> bool {
        self.point.sequence + 1 == self.first_sequence
    }

    /// Writes one record of the caller behind the others. After an error the file may hold a piece
    /// of it: see [`Writer::rewind`].
    pub(super) fn append(
        &mut self,
        shared: &Shared,
        kind: Kind,
        payload: &[u8],
    ) -> Result<(), StoreError> {
        let bytes = payload.len() as u64;
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(StoreError::RecordTooLarge {
                bytes,
                limit: MAX_PAYLOAD_BYTES,
            });
        }
        let appended = self
            .reserve(shared, RECORD_BYTES + bytes + RESERVE_BYTES)
            .and_then(|()| {
                self.point.sequence += 1;
                self.put(shared, kind, payload)
            });
        self.found_full |= matches!(appended, Err(StoreError::DiskFull { .. }));
        appended
    }

    fn put(&mut self, shared: &Shared, kind: Kind, payload: &[u8]) -> Result<(), StoreError> {
        let place = self.point.end;
        let durable = shared
            .commits
            .durable_in(self.handle.number)
            .unwrap_or(self.point.claimed);
        assert!(durable <= place);
        let head = RecordHead::new(
            kind,
            self.point.sequence,
            durable,
            payload,
            (self.handle.salt, place),
        );
        let padding = padding(payload.len() as u64);
        let chain = head.chain_behind(self.point.chain, payload, padding);
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        scratch.extend_from_slice(&head.bytes());
        let mut result = Ok(());
        if payload.len() <= ONE_WRITE_BYTES {
            scratch.extend_from_slice(payload);
        } else {
            result = self.write(shared, &scratch);
            scratch.clear();
            result = result.and_then(|()| self.write(shared, payload));
        }
        scratch.extend_from_slice(padding);
        scratch.extend_from_slice(&chain.to_le_bytes());
        result = result.and_then(|()| self.write(shared, &scratch));
        self.scratch = scratch;
        result?;
        self.point.end = place + head.total();
        assert!(self.touched == self.point.end && self.point.end <= self.allocated);
        self.point.chain = chain;
        self.point.claimed = durable;
        Ok(())
    }

    fn write(&mut self, shared: &Shared, bytes: &[u8]) -> Result<(), StoreError> {
        match write_all(&*self.handle.file, bytes, self.touched) {
            Ok(()) => {
                self.touched += bytes.len() as u64;
                Ok(())
            }
            Err((done, source)) => {
                self.touched += done;
                Err(shared.write_failed(&self.handle, source))
            }
        }
    }

    /// Cuts the log back, by zeros: the bytes are there already, so that this needs no space. If
    /// it fails the log has failed.
    pub(super) fn rewind(&mut self, shared: &Shared, point: Point) {
        assert!(point.end <= self.point.end && point.sequence <= self.point.sequence);
        if self.touched > point.end {
            if let Err(source) = write_zeros(&*self.handle.file, point.end, self.touched) {
                // Told to whoever appends or waits next.
                shared.commits.fail(self.handle.path.clone(), source);
            }
            self.touched = point.end;
        }
        self.point = point;
        if std::mem::take(&mut self.found_full) {
            // A failure that matters is told to whoever appends or waits next; after any other
            // the file is longer than it need be.
            let _ = self.give_back(shared);
        }
    }

    /// Cuts the file down to what its records need, for the disk is full: the pages that a refused
    /// record took, and zeros fill now, are free for others.
    fn give_back(&mut self, shared: &Shared) -> Result<(), StoreError> {
        let length = (self.point.end + RESERVE_BYTES).next_multiple_of(shared.options.grow_bytes);
        if length >= self.allocated {
            return Ok(());
        }
        // No promise may say more than the file will have, once it may have less: neither the
        // later one nor that which stays if the later one is damaged. They are written one after
        // the other, so that a torn one leaves the other.
        if self.promise.length.max(self.promise_before) > length {
            let sync = || shared.commits.lead()?.sync();
            sync()?;
            for _ in 0..2 {
                self.promise(shared, length)?;
                sync()?;
            }
        }
        let failed = |source| shared.write_failed(&self.handle, source);
        self.handle.file.set_length(length).map_err(failed)?;
        self.allocated = length;
        Ok(())
    }

    /// Makes the file long enough.
    fn reserve(&mut self, shared: &Shared, bytes: u64) -> Result<(), StoreError> {
        let need = self.point.end + bytes;
        if need > self.allocated {
            let length = need.next_multiple_of(shared.options.grow_bytes);
            self.handle
                .file
                .set_length(length)
                .map_err(|source| shared.write_failed(&self.handle, source))?;
            self.allocated = length;
        }
        self.promise_length(shared)
    }

    /// Notes the file's length in its first block, once it is synced: a file that is shorter than
    /// it promises has been cut.
    pub(super) fn promise_length(&mut self, shared: &Shared) -> Result<(), StoreError> {
        if self.promise.length >= self.allocated || shared.options.fsync == Fsync::Never {
            return Ok(());
        }
        shared.commits.lead()?.sync()?;
        self.promise(shared, self.allocated)
    }

    /// Writes a promise in place of the older one of the two.
    fn promise(&mut self, shared: &Shared, length: u64) -> Result<(), StoreError> {
        let promise = Promise {
            counter: self.promise.counter + 1,
            length,
        };
        // Also a write that fails may have brought it there.
        self.promise_before = self.promise_before.max(length);
        let sector = promise.sector(self.handle.salt);
        write_all(&*self.handle.file, &sector, promise.place())
            .map_err(|(_, source)| shared.write_failed(&self.handle, source))?;
        self.promise_before = self.promise.length;
        self.promise = promise;
        Ok(())
    }

    /// Notes in the file how far it is synced, if no record says so yet. A mark is no part of what
    /// is promised to anyone: where it does not fit there is none.
    pub(super) fn mark(&mut self, shared: &Shared) {
        let durable = shared.commits.durable_in(self.handle.number);
        let room = self.point.end + 2 * RECORD_BYTES <= self.allocated;
        if durable.is_some_and(|durable| durable > self.point.claimed) && room {
            self.note(shared, Kind::Mark);
            shared.commits.set_appended(self.position());
        }
    }

    fn note(&mut self, shared: &Shared, kind: Kind) {
        let point = self.point;
        // An error that is more than a full disk has failed the log.
        if self.put(shared, kind, &[]).is_err() {
            self.rewind(shared, point);
        }
    }

    /// Ends this file and begins the next. Everything in this one is durable before the next one
    /// exists, so that only the last file of a log can end in a torn record.
    pub(super) fn start_next_file(&mut self, shared: &Shared) -> Result<(), StoreError> {
        let lead = shared.commits.lead()?;
        lead.sync()?;
        let number = self.handle.number + 1;
        let header = FileHeader {
            generation: shared.generation,
            number,
            first_sequence: self.point.sequence + 1,
            previous_end: self.point.end,
            previous_chain: self.point.chain,
            random: random(),
            base: shared.base,
        };
        let (handle, allocated) = create_file(&*shared.storage, &header, shared.options.grow_bytes)
            .map_err(|failed| {
                let path = shared.storage.path(&file_name(shared.generation, number));
                // Only while there surely is no next file can this one go on.
                match is_full(&failed.source) && !failed.named {
                    true => StoreError::DiskFull {
                        path,
                        source: failed.source,
                    },
                    false => shared.commits.fail(path, failed.source),
                }
            })?;
        self.complete.insert(self.handle.number, self.point.end);
        self.note(shared, Kind::Next);
        // So that the loss of the whole next file is noticed.
        lead.sync()?;
        self.point = Point {
            end: BLOCK_BYTES,
            chain: header.salt(),
            sequence: self.point.sequence,
            claimed: BLOCK_BYTES,
        };
        self.handle = handle;
        self.touched = BLOCK_BYTES;
        self.allocated = allocated;
        self.promise = Promise {
            counter: 1,
            length: allocated,
        };
        self.promise_before = allocated;
        self.first_sequence = header.first_sequence;
        shared.commits.set_file(self.position());
        Ok(())
    }
}

/// Why there is no new file.
#[derive(Debug)]
pub(super) struct CreateFailed {
    pub(super) source: io::Error,
    /// The file has its name, which may or may not last.
    named: bool,
}

/// Writes the first block of a file, syncs it, and only then gives the file its name: a file of
/// that name always has a whole header.
pub(super) fn create_file(
    storage: &dyn Storage,
    header: &FileHeader,
    grow_bytes: u64,
) -> Result<(Arc<Handle>, u64), CreateFailed> {
    let name = file_name(header.generation, header.number);
    let temporary = temporary_name(header.generation, header.number);
    let length = BLOCK_BYTES.next_multiple_of(grow_bytes).max(grow_bytes);
    let write = || -> io::Result<Arc<dyn LogFile>> {
        let file = storage.create(&temporary)?;
        write_all(&*file, &header.block(length), 0).map_err(|(_, source)| source)?;
        file.set_length(length)?;
        file.sync()?;
        storage.rename(&temporary, &name)?;
        Ok(file)
    };
    let file = write().map_err(|source| {
        // What stays of it is removed when the log is opened.
        let _ = storage.remove(&temporary);
        CreateFailed {
            source,
            named: false,
        }
    })?;
    storage.sync().map_err(|source| CreateFailed {
        source,
        named: true,
    })?;
    let handle = Handle {
        number: header.number,
        salt: header.salt(),
        path: storage.path(&name),
        file,
    };
    Ok((Arc::new(handle), length))
}
