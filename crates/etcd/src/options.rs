//! Where is etcd, who asks, and how long may an answer take?

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use ureq::http::Uri;

use crate::Error;

/// The most endpoints of a list.
pub const MOST_ENDPOINTS: usize = 32;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(2);

/// How etcd is asked.
#[derive(Clone, Debug)]
pub struct Options {
    /// The members of etcd, of which any will do.
    pub endpoints: Endpoints,
    /// What is trusted, and what is shown. Without, endpoints of `https://` have to have certificates of
    /// public authorities.
    pub tls: Option<TlsFiles>,
    /// As whom to ask, where etcd wants to know. What etcd hears over `http://` everybody on the way hears, too.
    pub user: Option<User>,
    /// How long one endpoint may take to answer.
    pub timeout: Duration,
}

impl Options {
    /// Without certificates and user, and with 2 s for each endpoint.
    #[must_use]
    pub fn new(endpoints: Endpoints) -> Self {
        Self {
            endpoints,
            tls: None,
            user: None,
            timeout: DEFAULT_TIMEOUT,
        }
    }
}

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificates of authorities that are trusted.
    pub ca: PathBuf,
    /// What is shown to etcd, if it wants to see something.
    pub identity: Option<Identity>,
}

/// Files in PEM that say who asks.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate, and those that lead from it to its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// A user of etcd. What it prints for debugging has no password.
#[derive(Clone)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// One address or several of etcd's members, each with scheme, host and port.
///
/// ```
/// use jindou_etcd::Endpoints;
///
/// let endpoints: Endpoints = "http://a:2379, http://b:2379/".parse()?;
/// assert_eq!(endpoints.as_slice(), ["http://a:2379", "http://b:2379"]);
/// assert!("a:2379".parse::<Endpoints>().is_err());
/// # Ok::<(), jindou_etcd::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints(Vec<String>);

impl Endpoints {
    /// Each as `http://HOST:PORT` or `https://HOST:PORT`; there is at least one.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }
}

impl FromStr for Endpoints {
    type Err = Error;

    /// Addresses with commas between them.
    ///
    /// # Errors
    /// [`Error::Endpoints`] if there is none, one twice, more than [`MOST_ENDPOINTS`], or what is no address.
    fn from_str(text: &str) -> Result<Self, Error> {
        let mut endpoints = Vec::new();
        for part in text.split(',').map(str::trim) {
            let wrong = |reason| Error::Endpoints {
                text: part.to_owned(),
                reason,
            };
            let endpoint = endpoint(part).map_err(wrong)?;
            if endpoints.contains(&endpoint) {
                return Err(wrong("this endpoint is there twice"));
            }
            if endpoints.len() == MOST_ENDPOINTS {
                return Err(wrong("there are more endpoints than a list may have"));
            }
            endpoints.push(endpoint);
        }
        Ok(Self(endpoints))
    }
}

fn endpoint(text: &str) -> Result<String, &'static str> {
    if text.is_empty() {
        return Err("an endpoint is empty; one looks like http://HOST:2379");
    }
    let uri: Uri = text.parse().map_err(|_| "this is no address")?;
    let scheme = match uri.scheme_str() {
        Some(scheme @ ("http" | "https")) => scheme,
        _ => return Err("an endpoint begins with http:// or https://"),
    };
    let authority = uri.authority().ok_or("an endpoint has a host")?;
    if authority.as_str().contains('@') {
        return Err("user and password are no part of an endpoint");
    }
    if authority.host().is_empty() || authority.port_u16().is_none_or(|port| port == 0) {
        return Err("an endpoint has host and port, such as http://HOST:2379");
    }
    if !matches!(uri.path(), "" | "/") || uri.query().is_some() || text.contains('#') {
        return Err("an endpoint ends with its port");
    }
    Ok(format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_as_written() {
        let list = "http://a:1,https://b.example.org:2379/ , http://[::1]:3";
        let endpoints: Endpoints = list.parse().unwrap();
        let expected = ["http://a:1", "https://b.example.org:2379", "http://[::1]:3"];
        assert_eq!(endpoints.as_slice(), expected);
    }

    #[test]
    fn what_is_no_list_is_refused_with_the_reason() {
        for (list, text, reason) in [
            ("", "", "empty"),
            ("http://a:1,", "", "empty"),
            ("http://a:1,b:2", "b:2", "begins with http://"),
            ("ftp://a:1", "ftp://a:1", "begins with http://"),
            ("localhost", "localhost", "begins with http://"),
            ("http://a", "http://a", "host and port"),
            ("http://a:0", "http://a:0", "host and port"),
            ("http://a:70000", "http://a:70000", ""),
            ("http://:1", "http://:1", ""),
            ("http://a:1/v3", "http://a:1/v3", "ends with its port"),
            ("http://a:1?x", "http://a:1?x", "ends with its port"),
            ("http://a:1#x", "http://a:1#x", ""),
            ("http://u:p@a:1", "http://u:p@a:1", "user and password"),
            ("http://a:1,http://a:1/", "http://a:1/", "twice"),
            ("http://a b:1", "http://a b:1", "no address"),
        ] {
            let error = list.parse::<Endpoints>().expect_err(list).to_string();
            assert!(error.starts_with(text), "{list}: {error}");
            assert!(error.contains(reason), "{list}: {error}");
        }
        let many: Vec<String> = (1..=MOST_ENDPOINTS + 1)
            .map(|port| format!("http://a:{port}"))
            .collect();
        let refused = many.join(",").parse::<Endpoints>();
        assert!(refused.unwrap_err().to_string().contains("more endpoints"));
        assert!(many[1..].join(",").parse::<Endpoints>().is_ok());
    }

    #[test]
    fn a_password_is_not_printed() {
        let mut options = Options::new("http://a:1".parse().unwrap());
        options.user = Some(User {
            name: "root".to_owned(),
            password: "secret".to_owned(),
        });
        let printed = format!("{options:?}");
        assert!(
            printed.contains("root") && !printed.contains("secret"),
            "{printed}"
        );
    }
}
