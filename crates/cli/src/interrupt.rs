//! How does Ctrl-C end a command that must leave nothing half done?

use std::fmt;
use std::io;
use std::time::Duration;

use anyhow::Context;
use jindou_engine::CancellationToken;
use jindou_fabric::schedule::all_run_as_usual;
use tokio::sync::oneshot;

use crate::failure::INTERRUPTED;

/// The error of a command that Ctrl-C ended.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted before the output was whole")
    }
}

impl std::error::Error for Interrupted {}

/// Ends the process, whatever its threads do.
pub(crate) fn end_at_once() -> ! {
    all_run_as_usual();
    std::process::exit(INTERRUPTED.into())
}

/// A token that Ctrl-C or a request to terminate cancels, from now to the process's end; a second
/// one ends the process at once.
///
/// # Errors
/// If the signals or a thread cannot be had.
pub(crate) fn watch() -> anyhow::Result<CancellationToken> {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    let mut is_first = true;
    on_each(move || match is_first {
        true => {
            cancelled.cancel();
            is_first = false;
        }
        false => end_at_once(),
    })?;
    Ok(token)
}

/// Calls a function at each Ctrl-C or request to terminate, from now to the process's end.
///
/// # Errors
/// If the signals or a thread cannot be had.
pub(crate) fn on_each(mut act: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let what = "cannot watch for Ctrl-C";
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context(what)?;
    // Registered before this returns: a signal right after it must not end the process.
    let mut signals = {
        let _inside = runtime.enter();
        Signals::new().context(what)?
    };
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    signals.next().await;
                    act();
                }
            });
        })
        .context(what)?;
    Ok(())
}

/// How long a process may run after its standard input ended, as the program that started it is gone.
const MOST_AFTER_INPUT: Duration = Duration::from_secs(10);

/// The end of standard input, or what never comes.
pub(crate) struct EndOfInput(Option<oneshot::Receiver<()>>);

impl EndOfInput {
    /// It is not waited for.
    pub(crate) fn never() -> Self {
        Self(None)
    }

    /// Reads standard input from now on; the process ends some seconds after that has, if it has not by then.
    ///
    /// # Errors
    /// If a thread cannot be had.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let (send, receive) = oneshot::channel();
        let thread = std::thread::Builder::new().name("end of input".to_owned());
        let read = move || {
            // An error is an end, too.
            let _bytes = io::copy(&mut io::stdin().lock(), &mut io::sink());
            // Nobody waits for it where the server has ended.
            let _ended = send.send(());
            std::thread::sleep(MOST_AFTER_INPUT);
            end_at_once();
        };
        thread.spawn(read).context("cannot watch standard input")?;
        Ok(Self(Some(receive)))
    }

    pub(crate) async fn wait(self) {
        match self.0 {
            Some(end) => drop(end.await),
            None => std::future::pending().await,
        }
    }
}

/// Ctrl-C and, where there is such, the request to terminate that service managers send.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Begins to watch, inside a runtime with its drivers enabled.
    pub(crate) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Ctrl-C and, where there is such, the request to terminate that service managers send.
#[cfg(windows)]
pub(crate) struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    /// Begins to watch, inside a runtime with its drivers enabled.
    pub(crate) fn new() -> std::io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    pub(crate) async fn next(&mut self) {
        self.0.recv().await;
    }
}
