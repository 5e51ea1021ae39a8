//! A model of a disk: which states of a folder may a loss of power leave?
//!
//! What a sync has covered is there; of all else any part may be: names that were given or taken
//! without a sync of the folder, and of each write any of its sectors.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Random;

/// Bytes that a device writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// One change of a file since it was synced last.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Data { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

/// A file of the disk's model, which may have several names or none.
#[derive(Clone, Debug, Default)]
struct Inode {
    durable: Vec<u8>,
    /// With the number of the call that made each.
    pending: Vec<(usize, Change)>,
}

/// A change of the folder.
#[derive(Clone, Debug)]
pub(crate) enum Naming {
    Link(String, usize),
    Rename(String, String, usize),
    Unlink(String),
}

/// What the disk may hold of one folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    inodes: Vec<Inode>,
    /// Names as the running system sees them.
    pub(crate) names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    pending: Vec<(usize, Naming)>,
}

fn apply(bytes: &mut Vec<u8>, change: &Change, keep: &mut dyn FnMut() -> bool) {
    match change {
        Change::Length(length) => bytes.resize(*length, 0),
        Change::Data {
            offset,
            bytes: data,
        } => {
            let mut at = 0;
            while at < data.len() {
                let place = offset + at;
                let to = data.len().min(at + SECTOR_BYTES - place % SECTOR_BYTES);
                if keep() {
                    let end = offset + to;
                    if bytes.len() < end {
                        bytes.resize(end, 0);
                    }
                    bytes[place..end].copy_from_slice(&data[at..to]);
                }
                at = to;
            }
        }
    }
}

fn rename(names: &mut BTreeMap<String, usize>, naming: &Naming) {
    match naming {
        Naming::Link(name, inode) => {
            names.insert(name.clone(), *inode);
        }
        Naming::Rename(from, to, inode) => {
            names.remove(from);
            names.insert(to.clone(), *inode);
        }
        Naming::Unlink(name) => {
            names.remove(name);
        }
    }
}

impl Disk {
    /// All that a folder has, on the device.
    pub(crate) fn of(folder: &Path) -> Self {
        let mut disk = Self::default();
        let Ok(entries) = fs::read_dir(folder) else {
            return disk;
        };
        for entry in entries {
            let entry = entry.expect("the folder can be read");
            if !entry.file_type().expect("it can be read").is_file() {
                continue;
            }
            let name = entry.file_name().into_string().expect("names are text");
            let durable = fs::read(entry.path()).expect("it can be read");
            disk.names.insert(name, disk.inodes.len());
            disk.inodes.push(Inode {
                durable,
                pending: Vec::new(),
            });
        }
        disk.durable_names = disk.names.clone();
        disk
    }

    /// The file of a name, made if it is not there, and emptied if it is `cut`.
    pub(crate) fn open(&mut self, call: usize, name: &str, cut: bool) -> usize {
        let inode = match self.names.get(name) {
            Some(&inode) => inode,
            None => {
                let inode = self.inodes.len();
                self.inodes.push(Inode::default());
                self.name(call, Naming::Link(name.to_owned(), inode));
                inode
            }
        };
        if cut {
            self.change(inode, call, Change::Length(0));
        }
        inode
    }

    /// Whether a loss of power now could undo what was done to names.
    pub(crate) fn has_pending_names(&self) -> bool {
        !self.pending.is_empty()
    }

    pub(crate) fn name(&mut self, call: usize, naming: Naming) {
        rename(&mut self.names, &naming);
        self.pending.push((call, naming));
    }

    pub(crate) fn change(&mut self, inode: usize, call: usize, change: Change) {
        self.inodes[inode].pending.push((call, change));
    }

    /// What was done before a sync began is on the device.
    pub(crate) fn sync(&mut self, inode: usize, began: usize) {
        let Inode { durable, pending } = &mut self.inodes[inode];
        pending.retain(|(call, change)| {
            let is_covered = *call < began;
            if is_covered {
                apply(durable, change, &mut || true);
            }
            !is_covered
        });
    }

    pub(crate) fn sync_names(&mut self, began: usize) {
        let durable = &mut self.durable_names;
        self.pending.retain(|(call, naming)| {
            let is_covered = *call < began;
            if is_covered {
                rename(durable, naming);
            }
            !is_covered
        });
    }

    /// Writes one of the states that a crash may leave.
    pub(crate) fn crash(&self, random: &mut Random, to: &Path) {
        let mut names = self.durable_names.clone();
        let in_order = random.below(2) == 0;
        let prefix = random.below(self.pending.len() as u64 + 1) as usize;
        for (number, (_, naming)) in self.pending.iter().enumerate() {
            let keep = match in_order {
                true => number < prefix,
                false => random.below(2) == 0,
            };
            if keep {
                rename(&mut names, naming);
            }
        }
        fs::create_dir(to).expect("the folder is new");
        for (name, inode) in names {
            let Inode { durable, pending } = &self.inodes[inode];
            let mut bytes = durable.clone();
            // Nothing, all, the first ones, or any sectors of what no sync has covered.
            let kind = random.below(4);
            let prefix = random.below(pending.len() as u64 + 1) as usize;
            for (number, (_, change)) in pending.iter().enumerate() {
                let is_kept = match kind {
                    0 => false,
                    1 => true,
                    2 => number < prefix,
                    _ => matches!(change, Change::Data { .. }) || random.below(2) == 0,
                };
                if is_kept {
                    apply(&mut bytes, change, &mut || {
                        kind != 3 || random.below(2) == 0
                    });
                }
            }
            fs::write(to.join(name), bytes).expect("there is room");
        }
    }
}
