//! Which headers go on to the other side? All but those that are about one connection (RFC 9110, section 7.6.1).

use hyper::header::{
    CONNECTION, EXPECT, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VIA,
};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

/// What a request says that came through a proxy of ours.
const THROUGH: &str = "1.1 jindou-proxy";

/// Removes what is about the connection that a message came by.
pub(super) fn leave_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(CONNECTION).iter();
    let named = named.filter_map(|value| value.to_str().ok());
    let named = named.flat_map(|value| value.split(','));
    let named = named.filter_map(|name| HeaderName::try_from(name.trim()).ok());
    for name in named.collect::<Vec<_>>() {
        headers.remove(name);
    }
    for name in [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        // The client was told here to go on.
        EXPECT,
    ] {
        headers.remove(name);
    }
}

/// Says in a request that it came through a proxy.
pub(super) fn add_via(headers: &mut HeaderMap) {
    headers.append(VIA, HeaderValue::from_static(THROUGH));
}

/// Whether a request came through a proxy of ours, which may be this one.
pub(super) fn came_through_proxy(headers: &HeaderMap) -> bool {
    let values = headers.get_all(VIA).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let mut hops = values.flat_map(|value| value.split(','));
    hops.any(|hop| hop.trim() == THROUGH)
}

#[cfg(test)]
mod tests {
    use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, ETAG, HOST};

    use super::*;

    #[test]
    fn what_is_about_one_connection_stays_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (CONNECTION, "keep-alive, X-Own"),
            (CONNECTION, "x-other"),
            (TRANSFER_ENCODING, "chunked"),
            (UPGRADE, "websocket"),
            (EXPECT, "100-continue"),
            (HeaderName::from_static("x-own"), "1"),
            (HeaderName::from_static("x-other"), "1"),
            (KEEP_ALIVE, "timeout=5"),
            (ACCEPT, "text/csv"),
            (AUTHORIZATION, "Bearer x"),
            (CONTENT_ENCODING, "gzip"),
            (ETAG, "\"x\""),
            (HOST, "db.example.org"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        leave_connection(&mut headers);
        let mut left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        left.sort_unstable();
        assert_eq!(
            left,
            [
                "accept",
                "authorization",
                "content-encoding",
                "etag",
                "host"
            ]
        );
    }

    #[test]
    fn a_request_says_that_it_came_through_a_proxy() {
        let mut headers = HeaderMap::new();
        headers.append(VIA, HeaderValue::from_static("1.1 nginx, 1.0 other"));
        assert!(!came_through_proxy(&headers));
        add_via(&mut headers);
        assert!(came_through_proxy(&headers));
    }
}
