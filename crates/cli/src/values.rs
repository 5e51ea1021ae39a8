//! What do addresses, names, counts, times and amounts of memory on the command line say?

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

use jindou_engine::Shards;
use jindou_engine::ingest::Format;
use jindou_engine::results::GraphFormat;
use jindou_server::Role;
use oxrdf::NamedNode;

use crate::args::{ContextArgument, CorsOrigin, StreamRate};

/// An address or a name with a port. `localhost` is 127.0.0.1; without an address, as in `:7878`, all of
/// the machine are meant, of both families where there is IPv6.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let wrong = || {
        "give an address or a name, and a port, as in 127.0.0.1:7878 or [::1]:7878; :7878 is at all \
         addresses of the machine"
            .to_owned()
    };
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    match host {
        "localhost" => return Ok((Ipv4Addr::LOCALHOST, port).into()),
        "" if has_ipv6() => return Ok((Ipv6Addr::UNSPECIFIED, port).into()),
        "" => return Ok((Ipv4Addr::UNSPECIFIED, port).into()),
        _ if host.contains([':', '[', ']', '/']) => return Err(wrong()),
        _ => {}
    }
    let resolved = (host, port).to_socket_addrs();
    let mut addresses = resolved.map_err(|error| format!("{host}: {error}"))?;
    addresses
        .next()
        .ok_or_else(|| format!("{host} has no address"))
}

/// Whether the machine has IPv6, to which sockets can be bound.
fn has_ipv6() -> bool {
    UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).is_ok()
}

/// A number of shards.
pub(crate) fn parse_shards(text: &str) -> Result<Shards, String> {
    let count = text.parse().map_err(|_| "give a power of two".to_owned())?;
    Shards::new(count).map_err(|error| error.to_string())
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

/// The name of a stream or a continuous query, which goes into addresses as it is.
pub(crate) fn parse_stream_name(text: &str) -> Result<String, String> {
    match jindou_engine::is_name(text) {
        true => Ok(text.to_owned()),
        false => Err(format!("a name has {}", jindou_engine::NAME_RULE)),
    }
}

/// A URL that paths may follow.
pub(crate) fn parse_public_url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .map(|rest| rest.trim_end_matches('/'));
    let is_url = rest.is_some_and(|rest| {
        !rest.is_empty()
            && !rest.starts_with('/')
            && rest.is_ascii()
            && !rest.contains(['?', '#', '@', '<', '>', '"'])
            && !rest.contains(char::is_whitespace)
    });
    match is_url {
        true => Ok(text.trim_end_matches('/').to_owned()),
        false => Err("a public URL is like https://example.org".to_owned()),
    }
}

/// `*`, `none`, or an origin as a browser names it.
pub(crate) fn parse_cors_origin(text: &str) -> Result<CorsOrigin, String> {
    match text {
        "*" | "any" => return Ok(CorsOrigin::Any),
        "none" => return Ok(CorsOrigin::None),
        _ => {}
    }
    let host = text.split_once("://").map(|(_, host)| host);
    let is_origin = host.is_some_and(|host| {
        !host.is_empty()
            && !host.contains(['/', '?', '#', '@'])
            && !host.contains(char::is_whitespace)
    });
    match is_origin && text.is_ascii() {
        // Browsers send it so.
        true => Ok(CorsOrigin::One(text.to_ascii_lowercase())),
        false => Err("an origin is like https://example.org or http://localhost:3000, without a path; or give * or none".to_owned()),
    }
}

pub(crate) fn parse_graph_format(name: &str) -> Result<GraphFormat, String> {
    GraphFormat::from_name(name).ok_or_else(|| {
        let names = GraphFormat::ALL.map(GraphFormat::name).join(", ");
        format!("give one of {names}")
    })
}

pub(crate) fn parse_format(name: &str) -> Result<Format, String> {
    Format::from_name(name).map_err(|e| e.to_string())
}

/// A prefix, as an option gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    pub(crate) name: String,
    pub(crate) iri: String,
}

/// A name and an IRI with `=` between them; the name may end in a colon, and the IRI stand in brackets.
pub(crate) fn parse_prefix(text: &str) -> Result<Prefix, String> {
    let (name, iri) = text
        .split_once('=')
        .ok_or("a prefix is written NAME=IRI, as in foaf=http://xmlns.com/foaf/0.1/")?;
    let name = name.strip_suffix(':').unwrap_or(name);
    let whole = iri.strip_prefix('<').and_then(|iri| iri.strip_suffix('>'));
    let iri = whole.unwrap_or(iri);
    // What can be a prefix is known once; here it is tried.
    let tried = jindou_engine::PrefixTable::default().set(name, iri);
    tried.map_err(|error| error.to_string())?;
    Ok(Prefix {
        name: name.to_owned(),
        iri: iri.to_owned(),
    })
}

/// A context of JSON-LD: its IRI, `=`, and the file that it is in. IRIs have that sign more often than
/// names of files.
pub(crate) fn parse_context(text: &str) -> Result<ContextArgument, String> {
    match text.rsplit_once('=') {
        Some((iri, file)) if !iri.is_empty() && !file.is_empty() => Ok(ContextArgument {
            iri: iri.to_owned(),
            file: file.into(),
        }),
        _ => Err("give the IRI of the context, `=` and its file".to_owned()),
    }
}

pub(crate) fn parse_iri(text: &str) -> Result<NamedNode, String> {
    NamedNode::new(text).map_err(|e| format!("{e}; give an absolute IRI"))
}

pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("give more than 0 seconds".to_owned()),
    }
}

/// Times the rates of more than this, a stream has more tuples a second than are generated.
const MOST_TIMES_PAPER: f64 = 1000.;

/// `data`, or a factor.
pub(crate) fn parse_stream_rate(text: &str) -> Result<StreamRate, String> {
    if text == "data" {
        return Ok(StreamRate::OfData);
    }
    match text.parse() {
        Ok(factor) if factor > 0. && factor <= MOST_TIMES_PAPER => Ok(StreamRate::OfPaper(factor)),
        _ => Err("give a factor over 0 and up to 1000, or `data`".to_owned()),
    }
}

/// A number of seconds, or one with a unit: `90`, `1.5m`, `500ms`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    match parse_any_duration(text) {
        Ok(duration) if duration.is_zero() => Err(NO_TIME.to_owned()),
        parsed => parsed,
    }
}

const NO_TIME: &str = "give more than 0 seconds";

/// As [`parse_duration`], also for 0.
pub(crate) fn parse_any_duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let unit = units
        .iter()
        .find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
    let (number, unit) = unit.unwrap_or((text, &1.0));
    let seconds: f64 = number
        .trim()
        .parse()
        .map_err(|_| "not a time; give seconds, or a number with ms, s, m or h".to_owned())?;
    // What is more than nothing and less than a nanosecond is no wish for nothing.
    match Duration::try_from_secs_f64(seconds * unit) {
        Ok(duration) if !duration.is_zero() || seconds == 0.0 => Ok(duration),
        _ => Err(NO_TIME.to_owned()),
    }
}

/// As [`parse_bytes`], but for 0.
pub(crate) fn parse_some_bytes(text: &str) -> Result<u64, String> {
    match parse_bytes(text)? {
        0 => Err("give at least 1 byte".to_owned()),
        bytes => Ok(bytes),
    }
}

/// What a user may do.
pub(crate) fn parse_role(text: &str) -> Result<Role, String> {
    text.parse()
        .map_err(|error: jindou_server::NoRole| error.to_string())
}

/// The name of a user.
pub(crate) fn parse_user_name(text: &str) -> Result<String, String> {
    jindou_server::check_name(text).map(|()| text.to_owned())
}

/// A name and a password.
pub(crate) fn parse_user(text: &str) -> Result<String, String> {
    match text.split_once(':') {
        Some((name, password)) if !name.is_empty() && !password.is_empty() => Ok(text.to_owned()),
        _ => Err("give a name and a password, as in ann:secret".to_owned()),
    }
}

/// A token, which goes into a header as it is.
pub(crate) fn parse_token(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(text.to_owned()),
        false => Err("a token is what `jindou hash-password --token` printed".to_owned()),
    }
}

/// A number of bytes, or one with a unit: `0`, `4096`, `512MiB`, `1.5G`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("not a unit of bytes; give KiB, MiB, GiB, kB, MB or GB".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "not a number of bytes".to_owned())?;
    let bytes = number * unit as f64;
    if bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err("give fewer than 2^64 bytes".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_port_and_all_are_meant_where_none_is_named() {
        for (text, address) in [
            ("localhost:7878", "127.0.0.1:7878"),
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
            "::1:80:",
            "http://127.0.0.1:80",
            "",
        ] {
            let said = parse_address(wrong).unwrap_err();
            assert!(said.contains("127.0.0.1:7878"), "{wrong}: {said}");
        }
        let all = parse_address(":8080").unwrap();
        assert!(all.ip().is_unspecified() && all.port() == 8080);
        let unknown = parse_address("no.such.host.invalid:80").unwrap_err();
        assert!(unknown.starts_with("no.such.host.invalid: "), "{unknown}");
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

    #[test]
    fn an_origin_has_no_path() {
        assert_eq!(parse_cors_origin("*"), Ok(CorsOrigin::Any));
        let public = parse_public_url("https://example.org:8080/");
        assert_eq!(public.as_deref(), Ok("https://example.org:8080"));
        assert!(parse_public_url("example.org").is_err());
        assert_eq!(parse_cors_origin("none"), Ok(CorsOrigin::None));
        let one = CorsOrigin::One("https://a.example:3000".to_owned());
        assert_eq!(parse_cors_origin("https://A.example:3000"), Ok(one));
        for wrong in [
            "",
            "a.example",
            "https://",
            "https://a.example/",
            "http://a b",
        ] {
            assert!(parse_cors_origin(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_timeout_is_a_positive_number_of_seconds() {
        assert_eq!(parse_seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "-1", "x", "inf", "NaN", "1e300"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_sizes_have_units() {
        for (text, millis) in [("2", 2000), ("1.5s", 1500), ("20ms", 20), ("10m", 600_000)] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)));
            assert_eq!(parse_any_duration(text), parse_duration(text));
        }
        for none in ["0", "0s", "0.0ms"] {
            assert_eq!(parse_any_duration(none), Ok(Duration::ZERO), "{none}");
        }
        for wrong in ["-1", "1e-300", "x", "NaN"] {
            assert!(parse_any_duration(wrong).is_err(), "{wrong}");
        }
        for (text, bytes) in [
            ("1", 1),
            ("1.5KiB", 1536),
            ("2 G", 2 << 30),
            ("3MB", 3_000_000),
            ("512m", 512 << 20),
        ] {
            assert_eq!(parse_some_bytes(text), Ok(bytes), "{text}");
        }
        for wrong in [
            "",
            "0",
            "x",
            "1q",
            "-1",
            "1e300",
            "0.1",
            "99999999TiB",
            "s",
            "1.2.3",
        ] {
            assert!(parse_some_bytes(wrong).is_err(), "{wrong}");
            assert!(parse_duration(wrong).is_err() || wrong == "0.1" || wrong == "99999999TiB");
        }
    }
}
