//! Many threads at one log: do they share syncs, and hear of a failure?

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};

use jindou_store::log::{Folder, Fsync, Log, LogFile, LogOptions, Storage};
use jindou_store::{Identity, StoreError};

const THREADS: u8 = 16;

/// Files that hold back each sync until all threads have appended, and then may fail it.
#[derive(Debug, Default)]
struct Gate {
    appended: Mutex<u8>,
    changed: Condvar,
    fails: bool,
}

impl Gate {
    fn append(&self) {
        *self.appended.lock().unwrap() += 1;
        self.changed.notify_all();
    }

    fn wait(&self) -> io::Result<()> {
        let guard = self.appended.lock().unwrap();
        let all = self
            .changed
            .wait_while(guard, |appended| *appended < THREADS)
            .unwrap();
        drop(all);
        match self.fails {
            true => Err(io::Error::other("the device failed")),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Gated {
    folder: Folder,
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct GatedFile(Arc<dyn LogFile>, Arc<Gate>);

impl Storage for Gated {
    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.folder.create(name)
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        let file = self.folder.open(name)?;
        Ok(Arc::new(GatedFile(file, Arc::clone(&self.gate))))
    }
    fn open_to_read(&self, name: &str) -> io::Result<Arc<dyn LogFile>> {
        self.folder.open_to_read(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.folder.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.folder.remove(name)
    }
    fn sync(&self) -> io::Result<()> {
        self.folder.sync()
    }
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }
}

impl LogFile for GatedFile {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        LogFile::write_at(&*self.0, bytes, offset)
    }
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        LogFile::read_at(&*self.0, bytes, offset)
    }
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }
    fn sync(&self) -> io::Result<()> {
        self.1.wait()?;
        self.0.sync()
    }
}

/// Appends and syncs one record from each thread through the gate.
fn through_the_gate(fails: bool) -> (tempfile::TempDir, Log, Vec<Result<(), StoreError>>) {
    let folder = tempfile::tempdir().unwrap();
    let plain = Folder::new(folder.path());
    drop(
        Log::create(
            Box::new(plain.clone()),
            LogOptions::default(),
            1,
            Identity::default(),
        )
        .unwrap(),
    );
    let gate = Arc::new(Gate {
        fails,
        ..Gate::default()
    });
    let gated = Gated {
        folder: plain,
        gate: Arc::clone(&gate),
    };
    let (log, _) = Log::open(
        Box::new(gated),
        LogOptions::default(),
        1,
        Identity::default(),
        1,
        |_| Ok::<_, StoreError>(()),
    )
    .unwrap();
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                let (log, gate) = (&log, &gate);
                scope.spawn(move || {
                    let ticket = log.append(&[number]).unwrap();
                    gate.append();
                    log.sync(ticket)
                })
            })
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().unwrap());
        joined.collect()
    });
    (folder, log, results)
}

fn records(folder: &std::path::Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    jindou_store::log::read(&Folder::new(folder), 1, Identity::default(), 1, |record| {
        found.push(record.payload.to_vec());
        Ok::<_, StoreError>(())
    })
    .unwrap();
    found
}

#[test]
fn sixteen_threads_that_wait_share_two_syncs() {
    let (folder, log, results) = through_the_gate(false);
    assert!(results.into_iter().all(|result| result.is_ok()));
    // One for whoever came first, one for all the others.
    assert!(log.syncs() <= 2, "{} syncs", log.syncs());
    let mut found = records(folder.path());
    found.sort();
    assert_eq!(found, (0..THREADS).map(|n| vec![n]).collect::<Vec<_>>());
}

#[test]
fn a_failed_sync_is_told_to_all_who_wait_and_to_all_who_come() {
    let (folder, log, results) = through_the_gate(true);
    for result in results {
        let error = result.unwrap_err();
        assert!(matches!(error, StoreError::LogFailed { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("log-1-1.jnd") && text.contains("the device failed"),
            "{text}"
        );
    }
    assert!(log.append(b"late").is_err());
    assert!(log.start_next_file().is_err());
    assert_eq!(log.syncs(), 1, "no second try");
    drop(log);
    assert_eq!(records(folder.path()).len(), usize::from(THREADS));
}

#[test]
fn threads_that_append_through_many_files_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for fsync in [Fsync::Always, Fsync::Never] {
        let options = LogOptions {
            fsync,
            file_bytes: 20_000,
            grow_bytes: 4096,
        };
        let storage = || Box::new(Folder::new(folder.path()));
        let log = Log::create(storage(), options, 1, Identity::default()).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let log = &log;
                scope.spawn(move || {
                    for number in 0..100_u8 {
                        let group = log.group().unwrap().append(&[thread, number]).unwrap();
                        let ticket = group.commit(&[thread; 400]).unwrap();
                        log.sync(ticket).unwrap();
                    }
                });
            }
        });
        assert!(log.files().len() > 5);
        drop(log);
        let found = records(folder.path());
        for thread in 0..4 {
            let mine = found.iter().filter(|r| r.len() == 2 && r[0] == thread);
            assert!(mine.map(|record| record[1]).eq(0..100));
        }
        assert!(found.chunks(2).all(|pair| pair[1] == [pair[0][0]; 400]));
    }
}
