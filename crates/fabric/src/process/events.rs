//! What does the fabric's thread block for?
//!
//! Descriptors: sockets, UCX's, those of processes that may end, and one that other threads of this
//! process ring.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use crate::FabricError;

/// A descriptor to wait for, until it can be read, or also until it can be written.
pub(super) fn event(descriptor: RawFd, is_writer: bool) -> libc::pollfd {
    let writes = if is_writer { libc::POLLOUT } else { 0 };
    libc::pollfd {
        fd: descriptor,
        events: libc::POLLIN | writes,
        revents: 0,
    }
}

/// Blocks until something can be done with one of them, or for so long; true if so.
pub(super) fn wait_for(events: &mut [libc::pollfd], milliseconds: i32) -> bool {
    let count = events.len() as libc::nfds_t;
    // SAFETY: as many live values as is said.
    unsafe { libc::poll(events.as_mut_ptr(), count, milliseconds) > 0 }
}

/// A process of this machine, to see when it ends.
pub(super) struct Process(OwnedFd);

impl Process {
    /// `None` if it ended already, or the system cannot say.
    pub(super) fn watch(number: u32) -> Option<Self> {
        // SAFETY: the call takes numbers only.
        let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, number, 0) };
        let descriptor = RawFd::try_from(descriptor).ok().filter(|fd| *fd >= 0)?;
        // SAFETY: the descriptor is new and nobody else's.
        Some(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    /// Can be read once the process ended.
    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(super) fn has_ended(&self) -> bool {
        wait_for(&mut [event(self.descriptor(), false)], 0)
    }
}

/// Wakes a thread that waits for descriptors.
pub(super) struct EventFd(OwnedFd);

impl EventFd {
    pub(super) fn new() -> Result<Self, FabricError> {
        // SAFETY: the call has no precondition.
        let descriptor = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if descriptor < 0 {
            let reason = io::Error::last_os_error().to_string();
            let call = "eventfd";
            return Err(FabricError::Transport { call, reason });
        }
        // SAFETY: the descriptor is new and nobody else's.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }))
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub(super) fn ring(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes are read from a live value. Where it does not succeed, the descriptor
        // can be read already.
        unsafe { libc::write(self.descriptor(), (&raw const one).cast(), 8) };
    }

    /// Cannot be read until it rings again.
    pub(super) fn clear(&self) {
        let mut rings = 0_u64;
        // SAFETY: eight bytes are written to a live value, if it rang.
        unsafe { libc::read(self.descriptor(), (&raw mut rings).cast(), 8) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_there_until_it_is_cleared() {
        let bell = EventFd::new().unwrap();
        let is_rung = || wait_for(&mut [event(bell.descriptor(), false)], 0);
        assert!(!is_rung());
        bell.ring();
        bell.ring();
        assert!(is_rung());
        bell.clear();
        assert!(!is_rung());
    }

    #[test]
    fn the_end_of_a_process_is_seen() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let process = Process::watch(child.id());
        if let Some(process) = &process {
            assert!(!process.has_ended());
        } else {
            println!("SKIPPED: this system has no descriptors of processes");
        }
        child.kill().unwrap();
        if let Some(process) = &process {
            assert!(wait_for(&mut [event(process.descriptor(), false)], -1));
        }
        child.wait().unwrap();
        assert!(process.is_none_or(|process| process.has_ended()));
    }
}
