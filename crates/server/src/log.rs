//! How do lines get into a file without keeping requests waiting for it?
//!
//! By a queue of bounded length and a thread that writes. Where the file is slower than the requests, or takes
//! nothing more, lines are dropped and counted, and the count is logged.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
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
    /// Opens a log and starts its thread. A file is a regular one, a character device, or a named pipe that
    /// somebody reads: nobody is waited for.
    ///
    /// # Errors
    /// What the operating system says of the file or the thread, and what else has the name of the file.
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
                    written = written.and(self.flush(&mut writer));
                    match self::writer(&self.target) {
                        Ok(reopened) => writer = reopened,
                        Err(error) => self.warn(&error, "cannot be opened again"),
                    }
                }
                if let Message::Line(entry) = message {
                    line.clear();
                    entry.write(self.format, &mut line);
                    writer.push(&line);
                    if writer.is_full() {
                        written = written.and(self.flush(&mut writer));
                    }
                }
                next = queue.try_recv().ok();
            }
            written = written.and(self.flush(&mut writer));
            let now = Instant::now();
            match &written {
                Err(error) if failures.is_due(now) => {
                    self.warn(error, "cannot be written");
                    told = self.dropped.load(Relaxed);
                }
                // The lines that it costs are part of what was told.
                Err(_) => {}
                Ok(()) => {
                    if failures.ends() {
                        tracing::warn!(log = %self.target, "a log can be written again");
                    }
                    if self.dropped.load(Relaxed) > told && drops.is_due(now) {
                        told = self.tell_dropped();
                    }
                }
            }
        }
        if self.dropped.load(Relaxed) > told {
            self.tell_dropped();
        }
    }

    /// Writes the lines that were collected, and counts those that cannot be written.
    fn flush(&self, writer: &mut Writer) -> io::Result<()> {
        writer.flush().map_err(|Unwritten { lines, source }| {
            self.dropped.fetch_add(lines, Relaxed);
            source
        })
    }

    /// Warns of the lines that were dropped so far, and gives their number.
    fn tell_dropped(&self) -> u64 {
        let dropped = self.dropped.load(Relaxed);
        tracing::warn!(log = %self.target, dropped, "lines of a log were dropped");
        dropped
    }

    fn warn(&self, error: &io::Error, what: &str) {
        let dropped = self.dropped.load(Relaxed);
        tracing::warn!(log = %self.target, %error, dropped, "a log {what}");
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

/// Lines that are written together.
struct Writer {
    out: Box<dyn Write + Send>,
    lines: Vec<u8>,
    /// Whether what was written last is the beginning of a line.
    is_torn: bool,
}

/// Lines that cannot be written, which are gone.
#[derive(Debug)]
struct Unwritten {
    lines: u64,
    source: io::Error,
}

impl Writer {
    fn new(out: impl Write + Send + 'static) -> Self {
        Self {
            out: Box::new(out),
            lines: Vec::with_capacity(BUFFER_BYTES),
            is_torn: false,
        }
    }

    fn push(&mut self, line: &[u8]) {
        debug_assert!(line.is_empty() || line.ends_with(b"\n"));
        self.lines.extend_from_slice(line);
    }

    fn is_full(&self) -> bool {
        self.lines.len() >= BUFFER_BYTES
    }

    /// Writes what was pushed. What cannot be written is not tried again: lines that wait for a file that
    /// takes none would be without bound. A line that was begun ends before the next one.
    fn flush(&mut self) -> Result<(), Unwritten> {
        let written = self.write();
        let (done, source) = match written {
            Ok(()) => (self.lines.len(), None),
            Err((done, source)) => (done, Some(source)),
        };
        let (whole, rest) = self.lines.split_at(done);
        let lines = rest.iter().filter(|byte| **byte == b'\n').count() as u64;
        if let Some(last) = whole.last() {
            self.is_torn = *last != b'\n';
        }
        self.lines.clear();
        match source {
            None => Ok(()),
            Some(source) => Err(Unwritten { lines, source }),
        }
    }

    /// # Errors
    /// How many bytes of the lines were written, and why no more.
    fn write(&mut self) -> Result<(), (usize, io::Error)> {
        if self.is_torn && !self.lines.is_empty() {
            self.out.write_all(b"\n").map_err(|error| (0, error))?;
            self.is_torn = false;
        }
        let mut done = 0;
        while done < self.lines.len() {
            match self.out.write(&self.lines[done..]) {
                Ok(0) => return Err((done, io::ErrorKind::WriteZero.into())),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err((done, error)),
            }
        }
        self.out.flush().map_err(|error| (done, error))
    }
}

fn writer(target: &LogTarget) -> io::Result<Writer> {
    Ok(match target {
        LogTarget::Standard => Writer::new(io::stdout()),
        LogTarget::File(path) => Writer::new(append(path)?),
    })
}

#[cfg(unix)]
fn append(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // What is asked is not for everybody's eyes.
    options.mode(0o640);
    // To open a pipe would wait for its reader.
    options.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path).map_err(|error| {
        let kind = std::fs::metadata(path).map(|metadata| metadata.file_type());
        match kind {
            Ok(kind) if kind.is_fifo() => io::Error::new(error.kind(), "a pipe that nobody reads"),
            Ok(kind) if kind.is_socket() => no_file("a socket"),
            _ => error,
        }
    })?;
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_char_device() && !kind.is_fifo() {
        return Err(no_file("neither a file nor a pipe"));
    }
    let flags = fcntl_getfl(&file)?;
    fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

#[cfg(unix)]
fn no_file(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(not(unix))]
fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
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

    /// A file that has no room left after so many bytes.
    #[derive(Clone, Default)]
    struct Small(Arc<std::sync::Mutex<(Vec<u8>, usize)>>);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (text, room) = &mut *self.0.lock().expect("nobody panics while it has it");
            let taken = bytes.len().min(*room);
            *room -= taken;
            text.extend_from_slice(&bytes[..taken]);
            match taken {
                0 => Err(io::ErrorKind::StorageFull.into()),
                _ => Ok(taken),
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_the_next_ones_are_whole() {
        let small = Small::default();
        let mut writer = Writer::new(small.clone());
        // Nothing, the beginning of a line, two lines, all of them; the last two after torn ones.
        for (room, lost) in [(0, 3), (2, 3), (9, 1), (0, 3), (3, 3), (40, 0)] {
            small.0.lock().expect("whole").1 = room;
            for line in [&b"one\n"[..], b"two\n", b"three\n"] {
                writer.push(line);
            }
            let lines = writer.flush().map_err(|unwritten| unwritten.lines);
            assert_eq!(lines.err().unwrap_or(0), lost, "{room} bytes");
        }
        let text = small.0.lock().expect("whole").0.clone();
        let text = String::from_utf8(text).expect("as it was given");
        assert_eq!(text, "on\none\ntwo\none\none\ntwo\nthree\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn lines_for_a_device_without_room_are_dropped_and_counted() {
        let log =
            Log::open(LogTarget::File("/dev/full".into()), LogFormat::Text).expect("it opens");
        for number in 0..3 {
            log.push(Text(number.to_string()));
        }
        let give_up = Instant::now() + Duration::from_secs(60);
        while log.dropped() < 3 {
            assert!(Instant::now() < give_up, "{} lines", log.dropped());
            std::thread::yield_now();
        }
        assert_eq!(log.dropped(), 3);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_that_nobody_reads_is_refused_and_one_with_a_reader_gets_all_lines() {
        use std::io::Read as _;
        use std::os::unix::net::UnixListener;
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo runs").success());
        let open = |path: &Path| Log::open(LogTarget::File(path.to_owned()), LogFormat::Text);
        let refused = open(&pipe).expect_err("nobody reads it").to_string();
        assert_eq!(refused, "a pipe that nobody reads");
        let path = pipe.clone();
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            let read = File::open(path).and_then(|mut pipe| pipe.read_to_string(&mut text));
            read.map(|_| text)
        });
        let give_up = Instant::now() + Duration::from_secs(60);
        let log = loop {
            match open(&pipe) {
                Ok(log) => break log,
                Err(_) => assert!(Instant::now() < give_up, "nobody reads"),
            }
            std::thread::yield_now();
        };
        // More than a pipe holds: its reader is waited for.
        let lines = 1000;
        for number in 0..lines {
            log.push(Text(format!("{number} {}", "x".repeat(200))));
        }
        assert_eq!(log.dropped(), 0);
        drop(log);
        let text = reader.join().expect("it reads").expect("it is text");
        assert_eq!(text.lines().count(), lines);
        let socket = folder.path().join("socket");
        let _listener = UnixListener::bind(&socket).expect("a socket");
        let refused = open(&socket).expect_err("no file").to_string();
        assert_eq!(refused, "a socket");
        assert!(open(folder.path()).is_err());
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
