//! Which requests may come from a page in a browser?
//!
//! A browser sends requests for whatever page it shows. What a page of this server may do is told
//! from what others may by its origin; and a name in `Host` proves nothing, as whoever owns a name
//! may let it point here after its page was loaded (DNS rebinding).

use std::net::{IpAddr, Ipv6Addr};

use hyper::header::{
    ACCEPT_LANGUAGE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERER, USER_AGENT,
};
use hyper::{Request, StatusCode, Version};

use crate::config::{Cors, ServerConfig};
use crate::error::Refusal;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is known of the origins of a server's pages, and of others that it trusts.
pub(crate) struct Origins {
    /// Which pages may read.
    pub(crate) cors: Cors,
    /// As in `https://example.org`, in lower case.
    public_url: Option<String>,
    /// Whether reading is for hosts only that are known to be this server.
    guards_reads: bool,
}

impl Origins {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let is_local = config.address.ip().to_canonical().is_loopback();
        let cors = match &config.cors {
            Cors::Local if is_local => Cors::Any,
            Cors::Local => Cors::None,
            cors => cors.clone(),
        };
        let public_url = config.public_url.as_deref();
        Self {
            cors,
            public_url: public_url.map(|url| origin_of(url).to_ascii_lowercase()),
            guards_reads: is_local && config.cors != Cors::Any,
        }
    }

    /// Refuses what a page asks for by a name that may be another's.
    pub(crate) fn check_read<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        let headers = request.headers();
        if !self.guards_reads || !is_of_browser(headers) || self.is_own_host(host(request)) {
            return Ok(());
        }
        if headers
            .get(ORIGIN)
            .is_some_and(|origin| self.is_listed(origin))
        {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "this server is not known by the name in the header Host; use its address or \
             localhost, or start it with --public-url and that name",
        ))
    }

    /// Refuses what a page of another server would change.
    pub(crate) fn check_change<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        // A browser sends forms and plain text of any page anywhere, without asking first.
        let Some(origin) = request.headers().get(ORIGIN) else {
            return Ok(());
        };
        if self.is_own(origin, host(request)) || self.is_listed(origin) {
            return Ok(());
        }
        Err(Refusal::new(
            StatusCode::FORBIDDEN,
            "pages of other servers may change nothing here; they may, if this one is started \
             with --cors-origin and their origin; its own name is given by --public-url",
        ))
    }

    /// Refuses the socket of a page that may not read answers: no browser looks at that itself.
    pub(crate) fn check_socket<B>(&self, request: &Request<B>) -> Result<(), Refusal> {
        match self.cors {
            Cors::Any => Ok(()),
            _ => self.check_change(request),
        }
    }

    /// Whether an origin is this server's, which the request reached as `host`.
    fn is_own(&self, origin: &HeaderValue, host: Option<&str>) -> bool {
        let Ok(origin) = origin.to_str() else {
            return false;
        };
        let is_public = self.public_url.as_deref() == Some(origin);
        let of_host = origin.split_once("://").map(|(_, host)| host);
        is_public || of_host.is_some() && of_host == host && self.is_own_host(host)
    }

    fn is_listed(&self, origin: &HeaderValue) -> bool {
        match &self.cors {
            Cors::Origins(list) => list.iter().any(|o| o.as_bytes() == origin.as_bytes()),
            Cors::Any | Cors::None | Cors::Local => false,
        }
    }

    /// Whether a name, perhaps with a port, can be no other server's in a browser.
    fn is_own_host(&self, host: Option<&str>) -> bool {
        let Some(host) = host else {
            return false;
        };
        let name = name_of(host);
        let public = self.public_url.as_deref().and_then(|o| o.split_once("://"));
        is_address(name)
            || name.eq_ignore_ascii_case("localhost")
            || public.is_some_and(|(_, public)| name_of(public).eq_ignore_ascii_case(name))
    }
}

/// Refuses requests that leave it open which server they are for, or which page sent them: others
/// on their way may have read another of the names (RFC 9112, section 3.2).
pub(crate) fn check_names<B>(request: &Request<B>) -> Result<(), Refusal> {
    let count = |name: HeaderName| request.headers().get_all(name).iter().count();
    let needs_host = request.version() >= Version::HTTP_11;
    match (count(HOST), count(ORIGIN)) {
        (0, _) if needs_host => Err(Refusal::bad_request("the header Host is missing")),
        (0 | 1, 0 | 1) => Ok(()),
        (0 | 1, _) => Err(Refusal::bad_request("there is more than one header Origin")),
        _ => Err(Refusal::bad_request("there is more than one header Host")),
    }
}

/// The name that a request was sent to.
fn host<B>(request: &Request<B>) -> Option<&str> {
    let authority = request.uri().authority().map(|a| a.as_str());
    let host = || request.headers().get(HOST)?.to_str().ok();
    authority.or_else(host)
}

/// Whether a request has what every browser sends. Pages cannot leave out all of it: the language
/// goes with each request, those to the page's own origin among them.
fn is_of_browser(headers: &HeaderMap) -> bool {
    let is_browser = |agent: &HeaderValue| agent.as_bytes().starts_with(b"Mozilla/");
    [ORIGIN, SEC_FETCH_SITE, ACCEPT_LANGUAGE, REFERER]
        .iter()
        .any(|name| headers.contains_key(name))
        || headers.get(USER_AGENT).is_some_and(is_browser)
}

/// A URL without its path.
fn origin_of(url: &str) -> &str {
    let after = url.find("://").map_or(0, |at| at + 3);
    let end = url[after..].find('/').map_or(url.len(), |at| after + at);
    &url[..end]
}

/// A host without its port.
fn name_of(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    let inner = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => matches!(name.parse(), Ok(IpAddr::V4(_))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:7878",
            "[::1]:80",
            "[::1]",
            "192.168.0.9:1",
        ] {
            assert!(is_address(name_of(host)), "{host}");
        }
        for host in [
            "evil:7878",
            "1.2.3",
            "::1",
            "127.0.0.1.evil.org",
            "[evil]",
            "",
            "[::1",
        ] {
            assert!(!is_address(name_of(host)), "{host}");
        }
    }

    #[test]
    fn any_page_may_read_by_default_only_where_the_server_is_local() {
        let cors = |address: &str, cors| {
            let config = ServerConfig {
                address: address.parse().expect("an address"),
                cors,
                ..ServerConfig::default()
            };
            Origins::new(&config).cors
        };
        assert_eq!(cors("127.0.0.1:1", Cors::Local), Cors::Any);
        assert_eq!(cors("[::1]:1", Cors::Local), Cors::Any);
        assert_eq!(cors("0.0.0.0:1", Cors::Local), Cors::None);
        assert_eq!(cors("192.168.1.2:1", Cors::Local), Cors::None);
        assert_eq!(cors("0.0.0.0:1", Cors::Any), Cors::Any);
    }

    #[test]
    fn a_url_has_an_origin() {
        assert_eq!(origin_of("https://e.org/a/b"), "https://e.org");
        assert_eq!(origin_of("https://e.org:8080"), "https://e.org:8080");
    }
}
