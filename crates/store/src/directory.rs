//! A store in a directory: which files is it made of, and are they whole?
//!
//! `CURRENT` names the generation G and the checkpoint C (two numbers). The generation's files are
//! `base-G.jnd` (segments, clusters), `vertices-G.jnd`, `literals-G.jnd` and `predicates-G.jnd`;
//! `changes-G-C.jnd` holds all that changed since, up to the checkpoint, and is absent where C is
//! 0; `log-G-N.jnd` with N > C what was committed after it. New files are written beside the old
//! ones and become current by one rename of `CURRENT`, so that whatever fails before leaves the
//! store as it was. `LOCK` is locked for as long as a process has the store open.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use jindou_dictionary::StringTable;
use jindou_fabric::Region;

use crate::StoreError;
use crate::base::Base;
use crate::bulk::assemble;
use crate::clusters::Clusters;
use crate::image::{ImageReader, ImageWriter};
use crate::named::NamedGraphs;
use crate::segment::Segment;

const CURRENT: &str = "CURRENT";
const LOCK: &str = "LOCK";

/// What a file holds, as its header says.
const KIND_BASE: u64 = 1;
const KIND_TABLE: u64 = 2;
const KIND_CHANGES: u64 = 3;

const TABLES: [&str; 3] = ["vertices", "literals", "predicates"];

/// What a store is made of now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Current {
    pub(crate) generation: u64,
    /// The last log file that the checkpoint covers; 0 for no checkpoint.
    pub(crate) checkpoint: u64,
}

/// A directory that this process has locked.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Held for its lock.
    _lock: File,
}

impl Directory {
    /// Locks a directory that holds a store.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::Locked`], or what the operating system says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if !path.join(CURRENT).is_file() {
            return Err(StoreError::NotAStore {
                path: path.to_owned(),
            });
        }
        Self::lock(path)
    }

    /// Locks a directory for a store, and makes it if it is not there. A directory with other
    /// things in it is refused.
    ///
    /// # Errors
    /// As [`Directory::open`]; [`StoreError::NotEmpty`] for a directory of other things.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let failed = |source: io::Error| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        fs::create_dir_all(path).map_err(failed)?;
        if !path.join(CURRENT).is_file() {
            for entry in fs::read_dir(path).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let ours = name == LOCK || Path::new(&name).extension().is_some_and(|e| e == "jnd");
                if !ours && Path::new(&name).extension().is_none_or(|e| e != "new") {
                    return Err(StoreError::NotEmpty {
                        path: path.to_owned(),
                    });
                }
            }
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self, StoreError> {
        let name = path.join(LOCK);
        let failed = |source: io::Error| StoreError::Io {
            path: name.clone(),
            source,
        };
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&name)
            .map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked {
                path: path.to_owned(),
            }),
            Err(TryLockError::Error(source)) => Err(failed(source)),
        }
    }

    /// The directory's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if a generation was written.
    #[must_use]
    pub fn has_store(&self) -> bool {
        self.path.join(CURRENT).is_file()
    }

    pub(crate) fn current(&self) -> Result<Current, StoreError> {
        let path = self.path.join(CURRENT);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Current::default()),
            Err(source) => return Err(StoreError::Io { path, source }),
        };
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(generation)), Some(Ok(checkpoint)), None) => Ok(Current {
                generation,
                checkpoint,
            }),
            _ => Err(StoreError::Corrupt {
                path,
                reason: "it does not name a generation and a checkpoint".to_owned(),
            }),
        }
    }

    fn file(&self, part: &str, generation: u64) -> PathBuf {
        self.path.join(format!("{part}-{generation}.jnd"))
    }

    /// Writes the files of a generation that is not current.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub(crate) fn write_base(&self, base: &Base, generation: u64) -> Result<(), StoreError> {
        let next = generation;
        let mut checksums = Vec::with_capacity(TABLES.len());
        for (name, table) in TABLES
            .iter()
            .zip([&base.vertices, &base.literals, &base.predicates])
        {
            let mut image = ImageWriter::default();
            image.region(table.region());
            checksums.push(image.finish(&self.file(name, next), KIND_TABLE)?);
        }
        let mut image = ImageWriter::default();
        // Ids mean nothing beside other tables.
        checksums.into_iter().for_each(|sum| image.word(sum));
        image.word(base.documents);
        image.words(&base.declared);
        image.word(base.predicate_count() as u64);
        for segment in base.segments.iter().flatten() {
            image.word(u64::from(segment.is_some()));
            if let Some(segment) = segment {
                segment.write(&mut image);
            }
        }
        base.clusters.write(&mut image);
        base.named.write(&mut image);
        image.finish(&self.file("base", next), KIND_BASE)?;
        Ok(())
    }

    /// Removes files of other generations and checkpoints than the current one, which a crash may
    /// have left. A file that cannot be removed costs space only.
    pub(crate) fn remove_leftovers(&self, current: Current) -> Result<(), StoreError> {
        let failed = |source| StoreError::Io {
            path: self.path.clone(),
            source,
        };
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_leftover(name, current) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    /// Writes the bytes of a checkpoint that is not current.
    ///
    /// # Errors
    /// What the operating system says; the store is as it was.
    pub(crate) fn write_changes(&self, at: Current, bytes: &[u8]) -> Result<(), StoreError> {
        let mut image = ImageWriter::default();
        image.region(&Region::copy_from(bytes));
        image.finish(&self.changes_file(at), KIND_CHANGES)?;
        Ok(())
    }

    /// The bytes of a checkpoint.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if they are not what was written.
    pub(crate) fn read_changes(&self, at: Current) -> Result<Region, StoreError> {
        ImageReader::open(&self.changes_file(at), KIND_CHANGES)?.region()
    }

    pub(crate) fn changes_file(&self, at: Current) -> PathBuf {
        let Current {
            generation,
            checkpoint,
        } = at;
        self.path
            .join(format!("changes-{generation}-{checkpoint}.jnd"))
    }

    pub(crate) fn make_current(&self, current: Current) -> Result<(), StoreError> {
        use std::io::Write as _;
        let failed = |path: &Path, source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let temporary = self.path.join("CURRENT.new");
        let mut file = File::create(&temporary).map_err(|e| failed(&temporary, e))?;
        writeln!(file, "{} {}", current.generation, current.checkpoint)
            .map_err(|e| failed(&temporary, e))?;
        file.sync_all().map_err(|e| failed(&temporary, e))?;
        let current = self.path.join(CURRENT);
        fs::rename(&temporary, &current).map_err(|e| failed(&current, e))?;
        // The renames above are lasting once the directory is.
        let folder = File::open(&self.path).map_err(|e| failed(&self.path, e))?;
        folder.sync_all().map_err(|e| failed(&self.path, e))
    }

    /// Maps the files of a generation. Every file is compared with its checksum.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the file that is missing bytes or altered.
    pub(crate) fn read_base(&self, generation: u64) -> Result<Base, StoreError> {
        let table = |name: &str| {
            let path = self.file(name, generation);
            let mut image = ImageReader::open(&path, KIND_TABLE)?;
            let table = StringTable::open(image.region()?)
                .map_err(|error| image.corrupt(&error.to_string()))?;
            Ok::<_, StoreError>((table, image.checksum()))
        };
        let [vertices, literals, predicates] = TABLES.map(table);
        let tables = [vertices?, literals?, predicates?];
        let mut image = ImageReader::open(&self.file("base", generation), KIND_BASE)?;
        for (name, (_, checksum)) in TABLES.iter().zip(&tables) {
            if image.word()? != *checksum {
                return Err(image.corrupt(&format!("it does not belong to the table of {name}")));
            }
        }
        let [vertices, literals, predicates] = tables.map(|(table, _)| table);
        let documents = image.word()?;
        let declared = image.words()?;
        let count = image.length()?;
        if count as u64 != predicates.len() {
            return Err(image.corrupt("it does not belong to the table of predicates"));
        }
        let mut list = || {
            (0..count)
                .map(|_| match image.word()? {
                    0 => Ok(None),
                    _ => Segment::read(&mut image).map(Some),
                })
                .collect::<Result<Vec<_>, StoreError>>()
        };
        let segments = [list()?, list()?];
        let clusters = Clusters::read(&mut image, count)?;
        let named = NamedGraphs::read(&mut image, count)?;
        let mut base = assemble(
            vertices, literals, predicates, clusters, segments, named, documents,
        );
        base.declared = declared;
        Ok(base)
    }
}

/// True of a file of ours that the current generation and checkpoint do not use; files of the
/// current log are its own affair.
fn is_leftover(name: &str, current: Current) -> bool {
    let Some(stem) = name.strip_suffix(".jnd") else {
        return Path::new(name).extension().is_some_and(|e| e == "new");
    };
    let mut parts = stem.split('-');
    let kind = parts.next().unwrap_or_default();
    let mut number = || parts.next().and_then(|part| part.parse::<u64>().ok());
    let Some(generation) = number() else {
        return false;
    };
    match kind {
        "base" | "vertices" | "literals" | "predicates" | "log" => generation != current.generation,
        "changes" => generation != current.generation || number() != Some(current.checkpoint),
        _ => false,
    }
}
