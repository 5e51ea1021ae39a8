//! How does a copy of a store travel to a node that has none? As one message by postcard behind its length, which lists the
//! files, and then each of them; behind each there is a hash of it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use jindou_cluster::CopyRequestError;
use jindou_model::{SnapshotNumber, is_printable};
use jindou_store::{Directory, Received, StoreError, StoreFile};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The most bytes of the message: a name and a length for each of some hundred thousand files.
const MOST_HEAD_BYTES: u32 = 16 << 20;
/// Bytes that are read and written at once.
const PIECE_BYTES: usize = 1 << 20;
/// The most bytes of a reason.
const MOST_REASON_BYTES: usize = 500;
/// The most bytes of the name of a node.
const MOST_NAME_BYTES: usize = 128;

/// What begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum CopyHead {
    /// There is no copy from this node.
    Refused {
        reason: String,
        /// Who gives one, if that is known.
        leader: Option<String>,
    },
    /// A copy of the store at this snapshot: the names and lengths of its files, in the order in which they follow.
    Files {
        snapshot: u64,
        files: Vec<(String, u64)>,
    },
}

/// Why no copy came.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The node cannot be asked.
    #[error(transparent)]
    Request(#[from] CopyRequestError),
    /// The node gives none.
    #[error("{reason}")]
    Refused {
        /// Why, in its words.
        reason: String,
        /// The name of a node that may give one.
        leader: Option<String>,
    },
    /// The connection ended before all was there.
    #[error("the connection failed: {0}")]
    Connection(#[source] io::Error),
    /// What came is no copy of a store.
    #[error("what came is damaged: {0}")]
    Damaged(String),
    /// It cannot be kept here.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedCopy {
    /// The snapshot that it is of.
    pub snapshot: SnapshotNumber,
    /// Its files,
    pub files: usize,
    /// and their bytes.
    pub bytes: u64,
}

impl CopyHead {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let bytes = postcard::to_allocvec(self).expect("memory takes all of it");
        let length = u32::try_from(bytes.len()).ok();
        let length = length.filter(|length| *length <= MOST_HEAD_BYTES);
        let length = length.ok_or_else(|| io::Error::other("the store has too many files"))?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&bytes)?;
        out.write_all(&xxh3_64(&bytes).to_le_bytes())
    }

    fn read(input: &mut dyn Read) -> Result<Self, CopyError> {
        let mut length = [0; 4];
        input
            .read_exact(&mut length)
            .map_err(CopyError::Connection)?;
        let length = u32::from_le_bytes(length);
        if length > MOST_HEAD_BYTES {
            return Err(damaged("it lists too many files"));
        }
        // Grows as it comes, whatever length is claimed.
        let mut bytes = Vec::new();
        let read = input.take(length.into()).read_to_end(&mut bytes);
        read.map_err(CopyError::Connection)?;
        if bytes.len() < length as usize {
            return Err(CopyError::Connection(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut sent = [0; 8];
        let read = input.read_exact(&mut sent);
        read.map_err(CopyError::Connection)?;
        if u64::from_le_bytes(sent) != xxh3_64(&bytes) {
            return Err(damaged("the list of its files was changed on its way"));
        }
        match postcard::take_from_bytes(&bytes) {
            Ok((head, [])) => Self::check(head),
            _ => Err(damaged("it does not list its files")),
        }
    }

    fn check(self) -> Result<Self, CopyError> {
        let Self::Refused { reason, leader } = &self else {
            return Ok(self);
        };
        let is_short = |text: &str, most_bytes| text.len() <= most_bytes && is_printable(text);
        let leader = leader.as_deref().unwrap_or_default();
        match is_short(reason, MOST_REASON_BYTES) && is_short(leader, MOST_NAME_BYTES) {
            true => Ok(self),
            false => Err(damaged("it does not say why there is none")),
        }
    }
}

fn damaged(reason: &str) -> CopyError {
    CopyError::Damaged(reason.to_owned())
}

/// Sends the files of a store that is in a folder, so many bytes a second at most.
pub(super) fn send(
    folder: &Path,
    snapshot: SnapshotNumber,
    files: &[StoreFile],
    rate: u64,
    out: &mut dyn Write,
) -> io::Result<()> {
    let named = files.iter().map(|file| (file.name.clone(), file.bytes));
    CopyHead::Files {
        snapshot: snapshot.0,
        files: named.collect(),
    }
    .write(out)?;
    let mut pace = Pace::new(rate);
    // At any rate the receiver hears something each second.
    let piece_bytes = usize::try_from(rate).map_or(PIECE_BYTES, |rate| rate.clamp(1, PIECE_BYTES));
    let mut piece = vec![0; piece_bytes];
    for file in files {
        let mut from = File::open(folder.join(&file.name))?;
        let mut hash = Xxh3::new();
        let mut left = file.bytes;
        while left > 0 {
            let next = &mut piece[..piece_bytes.min(usize::try_from(left).unwrap_or(usize::MAX))];
            from.read_exact(next)?;
            hash.update(next);
            out.write_all(next)?;
            left -= next.len() as u64;
            std::thread::sleep(pace.wait_after(next.len(), Instant::now()));
        }
        out.write_all(&hash.digest().to_le_bytes())?;
    }
    out.flush()
}

/// How fast bytes go.
struct Pace {
    rate: u64,
    begun: Instant,
    bytes: u64,
}

impl Pace {
    fn new(rate: u64) -> Self {
        Self {
            rate: rate.max(1),
            begun: Instant::now(),
            bytes: 0,
        }
    }

    /// How long to wait at a moment at which so many more bytes were sent.
    fn wait_after(&mut self, bytes: usize, now: Instant) -> Duration {
        self.bytes += bytes as u64;
        let due = Duration::from_secs_f64(self.bytes as f64 / self.rate as f64);
        due.saturating_sub(now.saturating_duration_since(self.begun))
    }
}

/// Takes a store into a directory that holds none, and tells how many of how many bytes have come.
///
/// # Errors
/// [`CopyError`]. What came is then in the directory, which is no store.
pub(crate) fn receive_copy(
    input: &mut dyn Read,
    directory: &Directory,
    progress: &dyn Fn(u64, u64),
) -> Result<ReceivedCopy, CopyError> {
    let (snapshot, files) = match CopyHead::read(input)? {
        CopyHead::Files { snapshot, files } => (SnapshotNumber(snapshot), files),
        CopyHead::Refused { reason, leader } => {
            return Err(CopyError::Refused { reason, leader });
        }
    };
    let total = files.iter().try_fold(0_u64, |sum, (_, bytes)| {
        sum.checked_add(*bytes)
            .ok_or_else(|| damaged("its files are too long"))
    })?;
    let mut received = Received::into(directory);
    let mut done = 0;
    for (name, bytes) in &files {
        let file = received.file(name)?;
        let path = directory.path().join(name);
        receive_file(input, &file, *bytes, &mut |more| {
            done += more;
            progress(done, total);
        })
        .map_err(|error| error.at(&path))?;
    }
    received.finish()?;
    Ok(ReceivedCopy {
        snapshot,
        files: files.len(),
        bytes: total,
    })
}

/// What went wrong with one file.
enum FileError {
    Input(io::Error),
    Output(io::Error),
    Hash,
}

impl FileError {
    fn at(self, path: &Path) -> CopyError {
        match self {
            Self::Input(error) => CopyError::Connection(error),
            Self::Output(source) => StoreError::Io {
                path: path.to_owned(),
                source,
            }
            .into(),
            Self::Hash => CopyError::Damaged(format!(
                "{}: it has not the hash that it was sent with",
                path.display()
            )),
        }
    }
}

fn receive_file(
    input: &mut dyn Read,
    mut file: &File,
    bytes: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<(), FileError> {
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    let mut hash = Xxh3::new();
    let mut left = bytes;
    while left > 0 {
        let most = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = match input.read(&mut piece[..most]) {
            // The process was stopped for a while.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read.map_err(FileError::Input)?,
        };
        if read == 0 {
            return Err(FileError::Input(io::ErrorKind::UnexpectedEof.into()));
        }
        hash.update(&piece[..read]);
        file.write_all(&piece[..read]).map_err(FileError::Output)?;
        left -= read as u64;
        progress(read as u64);
    }
    let mut sent = [0; 8];
    input.read_exact(&mut sent).map_err(FileError::Input)?;
    if u64::from_le_bytes(sent) != hash.digest() {
        return Err(FileError::Hash);
    }
    file.sync_all().map_err(FileError::Output)
}

#[cfg(test)]
mod tests;
