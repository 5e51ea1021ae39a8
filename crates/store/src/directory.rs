//! A store in a directory: which files is it made of, and are they whole?
//!
//! `CURRENT` names the generation (a number); its files are `base-N.jnd` (segments, clusters),
//! `vertices-N.jnd`, `literals-N.jnd` and `predicates-N.jnd`. A new generation is written beside
//! the old one and becomes current by one rename, so that a failed load leaves the store as it
//! was. `LOCK` is locked for as long as a process has the store open.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use jindou_dictionary::StringTable;

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

const TABLES: [&str; 3] = ["vertices", "literals", "predicates"];

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

    fn generation(&self) -> Result<u64, StoreError> {
        let path = self.path.join(CURRENT);
        match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().map_err(|_| StoreError::Corrupt {
                path,
                reason: "it does not name a generation".to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(source) => Err(StoreError::Io { path, source }),
        }
    }

    fn file(&self, part: &str, generation: u64) -> PathBuf {
        self.path.join(format!("{part}-{generation}.jnd"))
    }

    /// Writes a new generation, makes it current and removes the one before.
    ///
    /// # Errors
    /// What the operating system says; the store is then as it was.
    pub fn write(&self, base: &Base) -> Result<(), StoreError> {
        let before = self.generation()?;
        let next = before + 1;
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
        self.make_current(next)?;
        for part in TABLES.iter().chain(&["base"]) {
            // A file that stays behind costs space only; the next write removes nothing of it.
            let _ = fs::remove_file(self.file(part, before));
        }
        Ok(())
    }

    fn make_current(&self, generation: u64) -> Result<(), StoreError> {
        use std::io::Write as _;
        let failed = |path: &Path, source| StoreError::Io {
            path: path.to_owned(),
            source,
        };
        let temporary = self.path.join("CURRENT.new");
        let mut file = File::create(&temporary).map_err(|e| failed(&temporary, e))?;
        writeln!(file, "{generation}").map_err(|e| failed(&temporary, e))?;
        file.sync_all().map_err(|e| failed(&temporary, e))?;
        let current = self.path.join(CURRENT);
        fs::rename(&temporary, &current).map_err(|e| failed(&current, e))?;
        // The renames above are lasting once the directory is.
        let folder = File::open(&self.path).map_err(|e| failed(&self.path, e))?;
        folder.sync_all().map_err(|e| failed(&self.path, e))
    }

    /// Maps the current generation. Every file is compared with its checksum.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] with the name of the file that is missing bytes or altered.
    pub fn read(&self) -> Result<Base, StoreError> {
        let generation = self.generation()?;
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
        Ok(assemble(
            vertices, literals, predicates, clusters, segments, named, documents,
        ))
    }
}
