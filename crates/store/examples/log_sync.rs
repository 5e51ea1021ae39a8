//! What a sync costs in a folder, and how many transactions a second a log there takes.
//!
//! `cargo run --release -p jindou-store --example log_sync -- [FOLDER]`

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jindou_store::log::{Folder, Fsync, Log, LogOptions, Storage};
use jindou_store::{Identity, StoreError};

const SECONDS: f64 = 2.0;
/// About what a transaction of one triple takes.
const PAYLOAD_BYTES: usize = 150;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    let folder = tempfile::tempdir_in(folder)?;
    println!("folder: {}", folder.path().display());
    let storage = Folder::new(folder.path());
    for (what, length) in [("that grows", 0), ("whose length stays", 1 << 20)] {
        println!(
            "fdatasync of a file {what}: {:.1} us",
            sync_us(&storage, length)?
        );
    }
    for (fsync, threads) in [
        (Fsync::Always, 1),
        (Fsync::Always, 4),
        (Fsync::Always, 16),
        (Fsync::Never, 1),
        (Fsync::Never, 16),
    ] {
        appends(&storage, fsync, threads)?;
    }
    bulk(&storage)?;
    Ok(())
}

/// Mean time of a sync after a write of 150 bytes.
fn sync_us(storage: &Folder, length: u64) -> std::io::Result<f64> {
    const TIMES: u64 = 2000;
    let file = storage.create("probe.jnd")?;
    file.set_length(length)?;
    file.sync()?;
    let mut spent = Duration::ZERO;
    for time in 0..TIMES {
        file.write_at(&[7; PAYLOAD_BYTES], time * PAYLOAD_BYTES as u64)?;
        let begin = Instant::now();
        file.sync()?;
        spent += begin.elapsed();
    }
    storage.remove("probe.jnd")?;
    Ok(spent.as_secs_f64() * 1e6 / TIMES as f64)
}

fn log_of(storage: &Folder, fsync: Fsync) -> Result<Log, StoreError> {
    let options = LogOptions {
        fsync,
        ..LogOptions::default()
    };
    Log::create(Box::new(storage.clone()), options, 1, Identity::default())
}

fn appends(storage: &Folder, fsync: Fsync, threads: usize) -> Result<(), StoreError> {
    let log = log_of(storage, fsync)?;
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    let count: u64 = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let ticket = log.append(&[7; PAYLOAD_BYTES])?;
                        log.sync(ticket)?;
                        count += 1;
                    }
                    Ok::<u64, StoreError>(count)
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs_f64(SECONDS));
        stop.store(true, Ordering::Relaxed);
        workers
            .into_iter()
            .map(|worker| worker.join().expect("a worker ends"))
            .sum::<Result<u64, StoreError>>()
    })?;
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "fsync {fsync:?}, {threads} threads: {:.0} transactions of {PAYLOAD_BYTES} bytes a second, \
         {:.1} to a sync",
        count as f64 / seconds,
        count as f64 / log.syncs().max(1) as f64,
    );
    Ok(())
}

/// Large records, and how fast they are recovered.
fn bulk(storage: &Folder) -> Result<(), StoreError> {
    const RECORDS: u64 = 2000;
    const BYTES: usize = 100 << 10;
    let log = log_of(storage, Fsync::Always)?;
    let begin = Instant::now();
    for _ in 0..RECORDS {
        log.sync(log.append(&[7; BYTES])?)?;
    }
    let written = begin.elapsed().as_secs_f64();
    drop(log);
    let begin = Instant::now();
    let recovered = jindou_store::log::read(storage, 1, Identity::default(), 1, |_| {
        Ok::<_, StoreError>(())
    })?;
    let read = begin.elapsed().as_secs_f64();
    let megabytes = recovered.bytes as f64 / 1e6;
    println!(
        "records of {BYTES} bytes, each synced: {:.0} MB/s written, {:.0} MB/s recovered",
        megabytes / written,
        megabytes / read,
    );
    Ok(())
}
