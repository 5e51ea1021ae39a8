//! What do addresses, counts and amounts of memory on the command line say?

use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use crate::args::parse_bytes;

/// An address with a port. The loopback's may be missing or go by its name: a server that was to be
/// reached from this machine only should not be open to others.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let at_loopback = text.strip_prefix("localhost:").or(text.strip_prefix(':'));
    if let Some(port) = at_loopback.and_then(|port| port.parse().ok()) {
        return Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    }
    text.parse().map_err(|_| {
        "give an IP address and a port, as in 127.0.0.1:7878 or [::1]:7878; 0.0.0.0:7878 is at all \
         addresses of the machine"
            .to_owned()
    })
}

/// A number that is not 0.
pub(crate) fn parse_count<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse()
        .map_err(|_| "give a whole number from 1 on".to_owned())
}

/// Least memory that queries may be given: with less not even small results are sorted.
const LEAST_MEMORY_BYTES: u64 = 1 << 20;

/// A number of bytes, but for what is no memory to work with, as `8` where 8GiB was meant.
pub(crate) fn parse_memory(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        bytes if bytes < LEAST_MEMORY_BYTES => Err(format!(
            "{bytes} bytes are too few; give 1MiB or more, with a unit, as in 512MiB or 8GiB"
        )),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_is_the_loopback_unless_it_is_named() {
        for (text, address) in [
            ("localhost:7878", "127.0.0.1:7878"),
            (":8080", "127.0.0.1:8080"),
            ("0.0.0.0:1", "0.0.0.0:1"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(parse_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for wrong in [
            "7878",
            "0.0.0.0",
            ":",
            ":99999",
            "localhost",
            "example.org:80",
            "",
        ] {
            let said = parse_address(wrong).unwrap_err();
            assert!(said.contains("127.0.0.1:7878"), "{wrong}: {said}");
        }
    }

    #[test]
    fn memory_without_a_unit_is_not_taken_for_bytes() {
        for wrong in ["0", "10", "8 kB", "1000000"] {
            let said = parse_memory(wrong).unwrap_err();
            assert!(said.contains("8GiB"), "{wrong}: {said}");
        }
        assert_eq!(parse_memory("1MiB"), Ok(1 << 20));
        assert_eq!(parse_memory("8589934592"), Ok(8 << 30));
    }
}
