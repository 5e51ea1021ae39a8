//! Did a request fail before any of it was sent?
//!
//! The HTTP client's errors do not say: a socket's error is the same whenever it comes. So what fails while an
//! address is looked up or a connection is made is marked here, by wrappers of what does that.

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    ConnectionDetails, Connector, NextTimeout, RustlsConnector, TcpConnector, Transport,
};
use ureq::{Agent, Error};

/// An agent whose errors say whether something was sent.
pub(crate) fn agent(config: Config) -> Agent {
    let connector = ().chain(TcpConnector::default()).chain(RustlsConnector::default());
    Agent::with_parts(
        config,
        Marked(connector),
        Marked(DefaultResolver::default()),
    )
}

/// Whether nothing of the request was sent.
///
/// A server of TLS 1.3 that distrusts this client says so only after the client has begun to send, and that
/// counts as sent.
pub(crate) fn is_unsent(error: &Error) -> bool {
    matches!(error, Error::Other(error) if error.is::<Unsent>())
}

/// What happened before anything was sent.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Unsent(Error);

fn unsent(error: Error) -> Error {
    Error::Other(Box::new(Unsent(error)))
}

#[derive(Debug)]
struct Marked<T>(T);

impl<In: Transport, C: Connector<In>> Connector<In> for Marked<C> {
    type Out = C::Out;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        self.0.connect(details, chained).map_err(unsent)
    }
}

impl<R: Resolver> Resolver for Marked<R> {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        self.0.resolve(uri, config, timeout).map_err(unsent)
    }
}
