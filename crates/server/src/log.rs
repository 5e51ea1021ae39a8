//! How do lines get into a file without keeping requests waiting for it?
//!
//! By a queue of bounded length and a thread that writes. Where the file is slower than the requests, lines
//! are dropped and counted, and the count is logged.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines that wait to be written.
const QUEUED_LINES: usize = 4096;
/// Bytes written at once.
const BUFFER_BYTES: usize = 64 << 10;

/// How long trouble that goes on is not told again.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How a line of a log looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people, and for tools that cut lines into words.
    #[default]
    Text,
    /// An object of JSON on each line.
    Json,
}

/// Where a log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogTarget {
    /// Standard output.
    Standard,
    /// The end of a file, made if it is not there.
    File(PathBuf),
}

impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard => f.write_str("standard output"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

/// Something that becomes a line.
pub(crate) trait Line: Send {
    /// Adds the line, with the newline at its end.
    fn write(&self, format: LogFormat, out: &mut Vec<u8>);
}

/// A log; clones share it, and the last one that is dropped waits until all lines are written.
#[derive(Clone)]
pub struct Log(Arc<Open>);

struct Open {
    shared: Arc<Shared>,
    /// Taken when it ends.
    lines: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    target: LogTarget,
    format: LogFormat,
    dropped: AtomicU64,
    reopen: AtomicBool,
}

enum Message {
    Line(Box<dyn Line>),
    /// Something else is to be looked at.
    Wake,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Log").field(&self.0.shared.target).finish()
    }
}

impl Log {
    /// Opens a log and starts its thread.
    ///
    /// # Errors
    /// What the operating system says of the file or the thread.
    pub fn open(target: LogTarget, format: LogFormat) -> io::Result<Self> {
        let writer = writer(&target)?;
        let shared = Arc::new(Shared {
            target,
            format,
            dropped: AtomicU64::new(0),
            reopen: AtomicBool::new(false),
        });
        let (lines, queue) = sync_channel(QUEUED_LINES);
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("log".to_owned());
        let thread = thread.spawn(move || of_thread.write_all(&queue, writer))?;
        Ok(Self(Arc::new(Open {
            shared,
            lines: Some(lines),
            thread: Some(thread),
        })))
    }

    /// Has the file opened again by its name before the next line is written: whoever rotates logs gives it
    /// another name first.
    pub fn reopen(&self) {
        self.0.shared.reopen.store(true, Relaxed);
        // A full queue has the thread look, too.
        let _ = self.0.lines().try_send(Message::Wake);
    }

    /// Queues a line, or drops it where the queue is full.
    pub(crate) fn push(&self, line: impl Line + 'static) {
        let pushed = self.0.lines().try_send(Message::Line(Box::new(line)));
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = pushed {
            self.0.shared.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Lines that were dropped or could not be written.
    pub(crate) fn dropped(&self) -> u64 {
        self.0.shared.dropped.load(Relaxed)
    }
}

impl Open {
    fn lines(&self) -> &SyncSender<Message> {
        self.lines
            .as_ref()
            .expect("it is taken when this is dropped")
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!(log = %self.shared.target, "the thread of a log panicked");
        }
    }
}

impl Shared {
    /// Writes lines until nobody is left who has any.
    fn write_all(&self, queue: &Receiver<Message>, mut writer: Writer) {
        let mut line = Vec::new();
        let (mut failures, mut drops) = (Telling::default(), Telling::default());
        let mut told = 0;
        while let Ok(first) = queue.recv() {
            let mut next = Some(first);
            let mut written = Ok(());
            while let Some(message) = next {
                if self.reopen.swap(false, Relaxed) {
                    written = written.and(writer.flush());
                    match self::writer(&self.target) {
                        Ok(reopened) => writer = reopened,
                        Err(error) => self.warn(&error, "cannot be opened again"),
                    }
                }
                if let Message::Line(entry) = message {
                    line.clear();
                    entry.write(self.format, &mut line);
                    let one = writer.write_all(&line);
                    if one.is_err() {
                        self.dropped.fetch_add(1, Relaxed);
                    }
                    written = written.and(one);
                }
                next = queue.try_recv().ok();
            }
            written = written.and(writer.flush());
            let now = Instant::now();
            match &written {
                Err(error) if failures.is_due(now) => self.warn(error, "cannot be written"),
                Err(_) => {}
                Ok(()) if failures.ends() => {
                    tracing::warn!(log = %self.target, "a log can be written again");
                }
                Ok(()) => {}
            }
            if self.dropped.load(Relaxed) > told && drops.is_due(now) {
                told = self.tell_dropped();
            }
        }
        if self.dropped.load(Relaxed) > told {
            self.tell_dropped();
        }
    }

    /// Warns of the lines that were dropped so far, and gives their number.
    fn tell_dropped(&self) -> u64 {
        let dropped = self.dropped.load(Relaxed);
        tracing::warn!(log = %self.target, dropped, "lines of a log were dropped");
        dropped
    }

    fn warn(&self, error: &io::Error, what: &str) {
        tracing::warn!(log = %self.target, %error, "a log {what}");
    }
}

/// When trouble is told: at once, and while it goes on, once in [`TOLD_EVERY`].
#[derive(Debug, Default)]
struct Telling {
    last: Option<Instant>,
}

impl Telling {
    /// Whether to tell of what is there now; then it counts as told.
    fn is_due(&mut self, now: Instant) -> bool {
        let since = self.last.map(|last| now.saturating_duration_since(last));
        let is_due = since.is_none_or(|since| since >= TOLD_EVERY);
        if is_due {
            self.last = Some(now);
        }
        is_due
    }

    /// Whether this ends what was told.
    fn ends(&mut self) -> bool {
        self.last.take().is_some()
    }
}

type Writer = BufWriter<Box<dyn Write + Send>>;

fn writer(target: &LogTarget) -> io::Result<Writer> {
    let out: Box<dyn Write + Send> = match target {
        LogTarget::Standard => Box::new(io::stdout()),
        LogTarget::File(path) => Box::new(append(path)?),
    };
    Ok(BufWriter::with_capacity(BUFFER_BYTES, out))
}

fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // What is asked is not for everybody's eyes.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    options.open(path)
}

/// Adds text so that it stays on its line and within its quotes.
pub(crate) fn push_escaped(text: &str, out: &mut Vec<u8>) {
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend([b'\\', character as u8]),
            '\n' => out.extend(b"\\n"),
            '\r' => out.extend(b"\\r"),
            '\t' => out.extend(b"\\t"),
            _ if character.is_control() => {
                out.extend(format!("\\u{{{:x}}}", u32::from(character)).bytes());
            }
            _ => out.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
}

/// Adds a name, which is one word whatever is in it.
pub(crate) fn push_word(name: &str, out: &mut Vec<u8>) {
    let from = out.len();
    push_escaped(name, out);
    for byte in &mut out[from..] {
        if *byte == b' ' {
            *byte = b'_';
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Sender, channel};

    use super::*;

    struct Text(String);

    impl Line for Text {
        fn write(&self, _: LogFormat, out: &mut Vec<u8>) {
            out.extend(self.0.bytes());
            out.push(b'\n');
        }
    }

    /// Says when the thread is at it, and keeps it there until the other end is dropped.
    struct Stuck(Sender<()>, Receiver<()>);

    impl Line for Stuck {
        fn write(&self, _: LogFormat, _: &mut Vec<u8>) {
            self.0.send(()).expect("awaited");
            let _dropped = self.1.recv();
        }
    }

    #[test]
    fn what_the_queue_does_not_hold_is_dropped_and_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let log = Log::open(LogTarget::File(path.clone()), LogFormat::Text).expect("a log");
        let ((at_it, is_at_it), (go_on, stuck)) = (channel(), channel());
        log.push(Stuck(at_it, stuck));
        is_at_it.recv().expect("the thread writes");
        for number in 0..QUEUED_LINES + 3 {
            log.push(Text(number.to_string()));
        }
        assert_eq!(log.dropped(), 3);
        drop(go_on);
        drop(log);
        let text = std::fs::read_to_string(&path).expect("a log");
        assert_eq!(text.lines().count(), QUEUED_LINES);
        assert_eq!(
            text.lines().next_back(),
            Some(&*(QUEUED_LINES - 1).to_string())
        );
    }

    #[test]
    fn a_file_that_got_another_name_is_made_anew_when_the_log_is_reopened() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, old) = (folder.path().join("log"), folder.path().join("log.1"));
        let log = Log::open(LogTarget::File(path.clone()), LogFormat::Text).expect("a log");
        let before = log.clone();
        before.push(Text("before".to_owned()));
        let give_up = Instant::now() + Duration::from_secs(60);
        while std::fs::metadata(&path).expect("it is there").len() == 0 {
            assert!(Instant::now() < give_up, "never written");
            std::thread::yield_now();
        }
        std::fs::rename(&path, &old).expect("renamed");
        log.reopen();
        log.push(Text("after".to_owned()));
        drop((log, before));
        let read = |path| std::fs::read_to_string(path).expect("a log");
        assert_eq!((&*read(old), &*read(path)), ("before\n", "after\n"));
    }

    #[test]
    fn trouble_that_goes_on_is_told_once_a_minute() {
        let begin = Instant::now();
        let mut telling = Telling::default();
        let told: Vec<u64> = (0..200)
            .filter(|second| telling.is_due(begin + Duration::from_secs(*second)))
            .collect();
        assert_eq!(told, [0, 60, 120, 180]);
        let at = begin + Duration::from_secs(200);
        assert!(telling.ends() && !telling.ends());
        assert!(telling.is_due(at), "it began anew");
    }

    #[test]
    fn text_stays_on_its_line() {
        let mut out = Vec::new();
        push_escaped("a\"b\\c\nd\u{1b}[é", &mut out);
        assert_eq!(out, "a\\\"b\\\\c\\nd\\u{1b}[é".as_bytes());
    }
}
