//! Where is a node reached, and is that over a network?

use std::net::SocketAddr;

/// The most bytes of a host's name.
const MOST_HOST_BYTES: usize = 253;

/// Where a node is reached. Two that are equal are one place, however they are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Endpoint {
    /// By an address of its machine.
    Ip(SocketAddr),
    /// By the name of its machine, in small letters, and a port.
    Named(String, u16),
}

impl Endpoint {
    /// What `host:port` or `[host]:port` says, if others can connect to it.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            let address = unmapped(address);
            let is_reachable = address.port() != 0 && !address.ip().is_unspecified();
            return is_reachable.then_some(Self::Ip(address));
        }
        let (host, port) = text.rsplit_once(':')?;
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        let is_host = (1..=MOST_HOST_BYTES).contains(&host.len()) && host.bytes().all(is_allowed);
        let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| *port != 0)?;
        (is_host && is_number).then(|| Self::Named(host.to_ascii_lowercase(), port))
    }

    /// True if only processes of the same machine reach it.
    pub(super) fn is_loopback(&self) -> bool {
        match self {
            Self::Ip(address) => address.ip().is_loopback(),
            Self::Named(host, _) => host == "localhost",
        }
    }
}

/// An IPv4 address that is written as one of IPv6 is the same place.
fn unmapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(v4) => SocketAddr::new(v4.into(), v6.port()),
            None => address,
        },
        SocketAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for text in [
            "10.0.0.1:7900",
            "[::1]:7900",
            "[fe80::1%2]:7900",
            "node-1.example:1",
            "n_1:65535",
        ] {
            assert!(Endpoint::parse(text).is_some(), "{text}");
        }
        for text in [
            "",
            ":7900",
            "a",
            "a:",
            "a:0",
            "a:65536",
            "a:+80",
            "a: 80",
            "::1:7900",
            "[::1]",
            "[a]:1",
            "a b:1",
            "a\u{1b}:1",
            "http://a:80",
            "a:80/",
            "0.0.0.0:7900",
            "[::]:7900",
            "10.0.0.1:0",
        ] {
            assert_eq!(Endpoint::parse(text), None, "{text}");
        }
    }

    #[test]
    fn one_place_is_equal_however_it_is_written() {
        for (one, other) in [
            ("A.example:80", "a.EXAMPLE:080"),
            ("[::1]:80", "[0:0::1]:80"),
            ("[::ffff:10.0.0.1]:80", "10.0.0.1:80"),
        ] {
            assert_eq!(Endpoint::parse(one), Endpoint::parse(other));
        }
        assert_ne!(Endpoint::parse("a:80"), Endpoint::parse("a:81"));
    }

    #[test]
    fn loopback_is_known() {
        let is_loopback = |text| Endpoint::parse(text).unwrap().is_loopback();
        for text in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "localhost:1",
            "LocalHost:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            assert!(is_loopback(text), "{text}");
        }
        for text in ["10.0.0.1:1", "[::2]:1", "localhost.example:1", "127.1:1"] {
            assert!(!is_loopback(text), "{text}");
        }
    }
}
