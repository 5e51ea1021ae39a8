//! Which addresses may SERVICE call and LOAD read?
//!
//! Whoever may query or update can make the process send requests, also to places that only it can
//! reach. The policy is asked for each address that a request goes to, redirections included.

use std::str::FromStr;
use std::sync::Arc;

use ureq::http::Uri;
use ureq::http::uri::Authority;

use crate::web::WebError;

/// Which addresses SERVICE may call, or LOAD may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum AddressPolicy {
    /// All.
    #[default]
    Any,
    /// Those that begin like one of these.
    Allowed(Arc<[AddressPrefix]>),
    /// None.
    None,
}

impl AddressPolicy {
    /// True if requests may go there.
    pub(crate) fn allows(&self, address: &Uri) -> bool {
        match self {
            Self::Any => true,
            Self::Allowed(prefixes) => prefixes.iter().any(|prefix| prefix.covers(address)),
            Self::None => false,
        }
    }
}

/// The beginning of an IRI of the web: scheme and host in full, and whole segments of its path.
///
/// `http://example.org/a` covers `http://example.org/a`, `http://example.org/a/b` and
/// `http://example.org/a?x=y`, but neither `http://example.org/ab` nor anything of
/// `http://example.org.evil.example/`.
///
/// ```
/// use jindou_engine::{AddressPolicy, AddressPrefix};
///
/// let prefix: AddressPrefix = "https://query.wikidata.org/".parse()?;
/// let policy = AddressPolicy::Allowed([prefix].into());
/// # Ok::<(), jindou_engine::InvalidAddressPrefix>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct AddressPrefix {
    origin: Origin,
    /// Path and query; `/` for all.
    path: String,
}

/// Where a server is, as far as connecting to it goes.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Origin {
    is_https: bool,
    user: Option<String>,
    host: String,
    port: u16,
}

impl Origin {
    fn of(address: &Uri) -> Option<Self> {
        let is_https = match address.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = address.authority()?;
        Some(Self {
            is_https,
            user: user(authority),
            host: authority.host().to_ascii_lowercase(),
            port: authority
                .port_u16()
                .unwrap_or(if is_https { 443 } else { 80 }),
        })
    }
}

fn user(authority: &Authority) -> Option<String> {
    let (user, _) = authority.as_str().rsplit_once('@')?;
    Some(user.to_owned())
}

impl AddressPrefix {
    fn covers(&self, address: &Uri) -> bool {
        if Origin::of(address).as_ref() != Some(&self.origin) {
            return false;
        }
        if self.path == "/" {
            return true;
        }
        // A server may take such a path for one outside of the prefix.
        if has_dot_segment(address.path()) {
            return false;
        }
        let path = address.path_and_query().map_or("/", |path| path.as_str());
        path.strip_prefix(self.path.as_str()).is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with(['/', '?', '&']) || rest.starts_with(['/', '?'])
        })
    }
}

fn has_dot_segment(path: &str) -> bool {
    let path = path.to_ascii_lowercase().replace("%2e", ".");
    // Escaped separators, too, may be read as such.
    let path = path
        .replace("%2f", "/")
        .replace("%5c", "/")
        .replace('\\', "/");
    path.split('/').any(|segment| matches!(segment, "." | ".."))
}

/// A text is not the beginning of an IRI of the web.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text} is not the beginning of an address: {reason}")]
pub struct InvalidAddressPrefix {
    /// The text.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
}

impl FromStr for AddressPrefix {
    type Err = InvalidAddressPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidAddressPrefix> {
        let wrong = |reason: String| InvalidAddressPrefix {
            text: text.to_owned(),
            reason,
        };
        let address = address(text).map_err(|error| match error {
            WebError::NoAddress { reason } => wrong(reason),
            other => wrong(other.to_string()),
        })?;
        let origin = Origin::of(&address).expect("an address has scheme and host");
        if has_dot_segment(address.path()) {
            return Err(wrong("it has a segment . or ..".to_owned()));
        }
        let path = address.path_and_query().map_or("/", |path| path.as_str());
        Ok(Self {
            origin,
            path: path.to_owned(),
        })
    }
}

/// The address that an IRI stands for.
pub(crate) fn address(iri: &str) -> Result<Uri, WebError> {
    let wrong = |reason: String| WebError::NoAddress { reason };
    let mut text = String::with_capacity(iri.len());
    let iri = iri.split_once('#').map_or(iri, |(before, _)| before);
    for char in iri.chars() {
        if char.is_ascii() {
            text.push(char);
        } else {
            let mut bytes = [0; 4];
            for byte in char.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    let address: Uri = text
        .parse()
        .map_err(|error: ureq::http::uri::InvalidUri| wrong(error.to_string()))?;
    if !matches!(address.scheme_str(), Some("http" | "https")) {
        return Err(wrong(
            "it does not begin with http:// or https://".to_owned(),
        ));
    }
    if address.host().is_none_or(str::is_empty) {
        return Err(wrong("it has no host".to_owned()));
    }
    Ok(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(prefix: &str, iri: &str) -> bool {
        let policy = AddressPolicy::Allowed([prefix.parse().expect(prefix)].into());
        policy.allows(&address(iri).expect(iri))
    }

    #[test]
    fn a_prefix_covers_whole_hosts_and_segments() {
        for (prefix, iri) in [
            ("http://e.org", "http://e.org/sparql"),
            ("http://e.org/", "http://e.org"),
            ("http://E.org:80", "HTTP://e.ORG/a?b#c"),
            ("https://e.org:443/", "https://e.org/x"),
            ("http://e.org/a", "http://e.org/a"),
            ("http://e.org/a", "http://e.org/a/b"),
            ("http://e.org/a", "http://e.org/a?x=y"),
            ("http://e.org/a/", "http://e.org/a/b"),
            ("http://[::1]:7878/", "http://[::1]:7878/sparql"),
        ] {
            assert!(allows(prefix, iri), "{prefix} {iri}");
        }
    }

    #[test]
    fn a_prefix_covers_nothing_that_only_looks_like_it() {
        for (prefix, iri) in [
            ("http://e.org", "http://e.org.evil.example/"),
            ("http://e.org", "http://e.org@evil.example/"),
            ("http://e.org", "http://e.org:81/"),
            ("http://e.org", "https://e.org/"),
            ("http://e.org", "http://user@e.org/"),
            ("http://e.org/a", "http://e.org/ab"),
            ("http://e.org/a", "http://e.org/a/../b"),
            ("http://e.org/a", "http://e.org/a/%2E%2e/b"),
            ("http://e.org/a", "http://e.org/a/..%2fb"),
            ("http://e.org/a", "http://e.org/"),
        ] {
            assert!(!allows(prefix, iri), "{prefix} {iri}");
        }
    }

    #[test]
    fn only_http_is_an_address() {
        for iri in [
            "file:///etc/passwd",
            "urn:x",
            "ftp://e.org/",
            "http:///a",
            "nonsense",
        ] {
            let error = address(iri).expect_err(iri);
            assert!(matches!(error, WebError::NoAddress { .. }), "{iri}");
            assert!(iri.parse::<AddressPrefix>().is_err(), "{iri}");
        }
        assert!("http://e.org/a/../b".parse::<AddressPrefix>().is_err());
        let address = address("http://e.org/é?ü#x").expect("an address");
        assert_eq!(address.to_string(), "http://e.org/%C3%A9?%C3%BC");
    }
}
