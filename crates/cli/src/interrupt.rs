//! How does Ctrl-C end a command that must leave nothing half done?

use std::fmt;

use anyhow::Context;
use jindou_engine::CancellationToken;

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

/// A token that Ctrl-C or a request to terminate cancels, from now to the process's end; a second
/// one ends the process at once.
///
/// # Errors
/// If the signals or a thread cannot be had.
pub(crate) fn watch() -> anyhow::Result<CancellationToken> {
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
    let token = CancellationToken::new();
    let cancelled = token.clone();
    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                signals.next().await;
                cancelled.cancel();
                signals.next().await;
                std::process::exit(INTERRUPTED.into());
            });
        })
        .context(what)?;
    Ok(token)
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
