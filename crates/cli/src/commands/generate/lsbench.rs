//! `jindou generate lsbench`: a stored social graph and its streams, a file each.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use jindou_bench::table::thousands;
use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};

use super::output::{Compression, OutputFile};
use crate::args::{CompressArgument, LsbenchArguments, PaceArgument, StreamRate};
use crate::progress::Watch;

/// Text is written when there is this much of it.
const CHUNK_BYTES: usize = 1 << 16;

pub(super) fn run(arguments: &LsbenchArguments) -> anyhow::Result<()> {
    let data = Lsbench::new(arguments.users.get(), arguments.seed);
    let folder = Folder {
        path: arguments.output.clone(),
        compression: match arguments.compress {
            None => Compression::None,
            Some(CompressArgument::Gz) => Compression::Gzip,
            Some(CompressArgument::Zst) => Compression::Zstandard,
        },
    };
    if folder.path.is_file() {
        bail!(
            "{}: it is a file, and a folder of files is written",
            folder.path.display()
        );
    }
    fs::create_dir_all(&folder.path)
        .with_context(|| format!("{}: cannot make the folder", folder.path.display()))?;
    let statements = stored(data, &folder)?;
    note!(
        "static: {} statements of {} users",
        thousands(statements),
        thousands(u64::from(data.users))
    );
    if arguments.seconds == 0 {
        return Ok(());
    }
    let load = Load {
        rates: match arguments.rate {
            StreamRate::OfPaper(factor) => Rates::PAPER.times(factor),
            StreamRate::OfData => Rates::given(data.users),
        },
        pace: match arguments.pace {
            PaceArgument::Even => Pace::Even,
            PaceArgument::Daily => Pace::Daily,
        },
        duration_ms: u64::from(arguments.seconds) * 1000,
    };
    for (stream, tuples) in Stream::ALL.into_iter().zip(streams(data, &load, &folder)?) {
        note!(
            "{}: {} tuples, {} a second",
            stream.name(),
            thousands(tuples),
            thousands(tuples / u64::from(arguments.seconds))
        );
    }
    Ok(())
}

/// Where files go.
struct Folder {
    path: PathBuf,
    compression: Compression,
}

impl Folder {
    fn create(&self, name: &str) -> anyhow::Result<NamedFile> {
        let ending = match self.compression {
            Compression::None => "",
            Compression::Gzip => ".gz",
            Compression::Zstandard => ".zst",
        };
        let path = self.path.join(format!("{name}{ending}"));
        let file = OutputFile::create(&path, self.compression).map_err(|e| cannot(&path, e))?;
        Ok(NamedFile {
            path,
            file,
            text: String::with_capacity(2 * CHUNK_BYTES),
        })
    }
}

fn cannot(path: &Path, error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context(format!("{}: cannot write", path.display()))
}

/// A file with text that is to be written.
struct NamedFile {
    path: PathBuf,
    file: OutputFile,
    text: String,
}

impl NamedFile {
    /// Writes the text if there is much of it.
    fn write_much(&mut self) -> anyhow::Result<()> {
        if self.text.len() >= CHUNK_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.file
            .write_all(self.text.as_bytes())
            .map_err(|e| cannot(&self.path, e))?;
        self.text.clear();
        Ok(())
    }

    fn finish(mut self) -> anyhow::Result<()> {
        self.write()?;
        self.file.finish().map_err(|e| cannot(&self.path, e))
    }
}

/// Writes the stored graph; returns the number of its statements.
fn stored(data: Lsbench, folder: &Folder) -> anyhow::Result<u64> {
    let mut blocks = data.stored()?;
    let mut file = folder.create("static.nt")?;
    let done = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let _watch = watch("generating static", &done, blocks.blocks());
    let mut statements = 0;
    while let Some(block) = blocks.next_block() {
        block.push_lines(&mut file.text);
        statements += block.len() as u64;
        file.write_much()?;
        done.0.fetch_add(1, Ordering::Relaxed);
        done.1.store(statements, Ordering::Relaxed);
    }
    file.finish()?;
    Ok(statements)
}

/// Writes all streams; returns the number of tuples of each.
fn streams(data: Lsbench, load: &Load, folder: &Folder) -> anyhow::Result<[u64; 5]> {
    let mut streams = data.streams(load, &Stream::ALL)?;
    let mut files = Stream::ALL
        .iter()
        .map(|stream| folder.create(&format!("{}.tnt", stream.name())))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let done = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let _watch = watch("generating streams", &done, load.duration_ms);
    let mut tuples = [0; 5];
    while let Some(event) = streams.next_event() {
        let file = &mut files[event.stream as usize];
        event.push_lines(&mut file.text);
        file.write_much()?;
        let count = event.statements.len() as u64;
        tuples[event.stream as usize] += count;
        done.0.store(event.time_ms, Ordering::Relaxed);
        done.1.fetch_add(count, Ordering::Relaxed);
    }
    for file in files {
        file.finish()?;
    }
    Ok(tuples)
}

/// Shows how much of `total` is done, and how many triples that are.
fn watch(what: &str, done: &Arc<(AtomicU64, AtomicU64)>, total: u64) -> Watch {
    let watched = Arc::clone(done);
    Watch::start(what.to_owned(), move || {
        let words = format!("{} triples", thousands(watched.1.load(Ordering::Relaxed)));
        (watched.0.load(Ordering::Relaxed), Some(total), words)
    })
}
