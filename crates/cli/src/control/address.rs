//! How is a socket reached whose path is longer than an address of sockets may be?

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::SocketAddr;
use std::path::Path;

/// The socket's name in the store's folder.
pub(super) const SOCKET: &str = "control.sock";

/// Where Linux gives open folders short names.
const OPEN_FILES: &str = "/proc/self/fd";

/// Calls with a path of a store's socket that fits into an address, which holds about a hundred
/// bytes.
///
/// # Errors
/// Those of the call, and a path that is too long where there is no shorter one.
pub(super) fn with_short_path<T>(
    store: &Path,
    call: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let path = store.join(SOCKET);
    let Err(too_long) = SocketAddr::from_pathname(&path) else {
        return call(&path);
    };
    let names = Path::new(OPEN_FILES);
    if !names.is_dir() {
        return Err(too_long);
    }
    let folder = File::open(store)?;
    call(&names.join(folder.as_raw_fd().to_string()).join(SOCKET))
}
