//! Where is the HTTP server of a node?

use std::fmt;
use std::str::FromStr;

use hyper::Uri;

/// The URL of a node: `http` or `https`, a host, and perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeUrl {
    is_tls: bool,
    /// In lower case, an address of IPv6 in brackets.
    host: String,
    port: u16,
}

/// A text that is the URL of no node.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no URL of a node; give one as http://10.0.0.1:7878, without a path")]
pub struct NodeUrlError(String);

impl FromStr for NodeUrl {
    type Err = NodeUrlError;

    fn from_str(text: &str) -> Result<Self, NodeUrlError> {
        Self::parse(text).ok_or_else(|| NodeUrlError(text.to_owned()))
    }
}

impl NodeUrl {
    fn parse(text: &str) -> Option<Self> {
        let uri: Uri = text.parse().ok()?;
        let is_tls = match uri.scheme_str()? {
            "http" => false,
            "https" => true,
            _ => return None,
        };
        let authority = uri.authority()?;
        let has_more = uri.path() != "/" || uri.query().is_some();
        let has_user = authority.as_str().contains('@');
        if has_more || has_user || authority.host().is_empty() {
            return None;
        }
        // What is behind a colon and no number is no port.
        let has_port = authority.as_str().len() > authority.host().len();
        let port = match (authority.port_u16(), has_port) {
            (Some(port), _) => port,
            (None, true) => return None,
            (None, false) if is_tls => 443,
            (None, false) => 80,
        };
        Some(Self {
            is_tls,
            host: authority.host().to_ascii_lowercase(),
            port,
        })
    }

    /// The node that a redirection leads to, with its path and parameters cut off.
    pub(super) fn of_location(location: &str) -> Option<Self> {
        let uri: Uri = location.parse().ok()?;
        let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
        Self::parse(&format!("{scheme}://{authority}"))
    }

    pub(super) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// A name, or an address without brackets.
    pub(super) fn host(&self) -> &str {
        self.host.trim_start_matches('[').trim_end_matches(']')
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// As the header `Host` has it.
    pub(super) fn authority(&self) -> String {
        let usual = if self.is_tls { 443 } else { 80 };
        match self.port == usual {
            true => self.host.clone(),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_one_server() {
        for (text, host, port, shown) in [
            (
                "http://10.0.0.1:7878",
                "10.0.0.1",
                7878,
                "http://10.0.0.1:7878",
            ),
            ("http://A.example/", "a.example", 80, "http://a.example"),
            (
                "https://a.example:443",
                "a.example",
                443,
                "https://a.example",
            ),
            ("http://[::1]:7878", "::1", 7878, "http://[::1]:7878"),
        ] {
            let url: NodeUrl = text.parse().expect(text);
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
            assert_eq!(url.to_string(), shown);
            assert_eq!(shown.parse(), Ok(url));
        }
        for wrong in [
            "",
            "a.example",
            "a.example:80",
            "ftp://a.example",
            "http://",
            "http://a.example/b",
            "http://a.example?b",
            "http://ann:secret@a.example",
            "http://a.example:99999",
            "http://a.example:",
        ] {
            let said = wrong.parse::<NodeUrl>().expect_err(wrong).to_string();
            assert!(said.contains("http://10.0.0.1:7878"), "{said}");
        }
    }

    #[test]
    fn a_location_leads_to_a_node() {
        let url = NodeUrl::of_location("http://b.example:7878/streams/s?a=b");
        assert_eq!(url, "http://b.example:7878".parse().ok());
        assert_eq!(NodeUrl::of_location("/streams/s"), None);
    }
}
