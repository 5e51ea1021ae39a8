//! How is a long step's progress shown without disturbing anything else?
//!
//! On standard error, only where that is a terminal, and only for what takes longer than half a
//! second or the patience a command has.

use std::borrow::Cow;
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jindou_bench::table::{bytes, thousands};
use jindou_engine::ingest::Progress;

/// What ends sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const STEP: Duration = Duration::from_millis(100);

/// Shows progress from another thread until it is dropped.
pub(crate) struct Watch {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// How far it is: done, of how much in the same unit (if known), and in words.
type Look = (u64, Option<u64>, String);

impl Watch {
    /// Watches a load; `statements` is how many there will be, if known.
    pub(crate) fn load(what: &str, progress: Progress, statements: Option<u64>) -> Self {
        let start = Instant::now();
        Self::start(what.to_owned(), move || {
            let quads = progress.quads();
            let read = progress.bytes_read();
            let rate = quads as f64 / start.elapsed().as_secs_f64() / 1e6;
            let words = format!(
                "{} triples, {rate:.2} M/s, {}",
                thousands(quads),
                bytes(read)
            );
            let (done, total) = match statements {
                Some(total) => (quads, Some(total)),
                None => (read, progress.bytes_total()),
            };
            if let Some(step) = progress.step() {
                return (done, total, format!("{} triples; {step}", thousands(quads)));
            }
            if total.is_some_and(|total| done >= total) {
                return (
                    done,
                    total,
                    format!("{} triples; indexing", thousands(quads)),
                );
            }
            (done, total, words)
        })
    }

    /// Watches whatever `look` tells.
    pub(crate) fn start(what: String, look: impl FnMut() -> Look + Send + 'static) -> Self {
        Self::after(PATIENCE, what, look)
    }

    /// Watches whatever `look` tells, once that took so long.
    pub(crate) fn after(
        patience: Duration,
        what: String,
        mut look: impl FnMut() -> Look + Send + 'static,
    ) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self {
                stop: None,
                thread: None,
            };
        }
        let (stop, stopped) = sync_channel::<()>(0);
        let thread = std::thread::spawn(move || {
            let mut wait = patience;
            let mut bar = None;
            // Nothing is ever sent: the channel ends when the watch does.
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(wait) {
                wait = STEP;
                let (done, total, words) = look();
                show(
                    bar.get_or_insert_with(|| new_bar(what.clone())),
                    done,
                    total,
                    words,
                );
            }
            if let Some(bar) = bar {
                bar.finish_and_clear();
            }
        });
        Self {
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A bar that failed is no reason to fail.
            let _ = thread.join();
        }
    }
}

fn new_bar(what: impl Into<Cow<'static, str>>) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_prefix(what);
    bar
}

fn show(bar: &ProgressBar, done: u64, total: Option<u64>, words: String) {
    if bar.length() != total || bar.message().is_empty() {
        let template = match total {
            Some(_) => "{prefix} [{bar:30}] {percent}% {msg}, {eta} left",
            None => "{prefix} {spinner} {msg}, {elapsed}",
        };
        let style = ProgressStyle::with_template(template).expect("the templates are valid");
        bar.set_style(style.progress_chars("=> "));
        if let Some(total) = total {
            bar.set_length(total);
        }
    }
    bar.set_message(words);
    bar.set_position(done);
}
