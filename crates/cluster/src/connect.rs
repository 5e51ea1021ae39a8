//! How is a connection with an address of the list of peers made?

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// A connection with the first address that a name stands for and that answers, each within this time.
///
/// # Errors
/// That of the last address.
pub(crate) fn connect(address: &str, within: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "it has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}
