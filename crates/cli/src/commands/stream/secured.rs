//! How does a client talk TLS with a configuration of its own?
//!
//! The HTTP client takes root certificates, but no certificate verifier. So this replaces its own connector,
//! and does what that does.

use std::fmt;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use ureq::config::Config;
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};
use ureq::{Agent, Error};

/// An agent whose HTTPS is secured so.
pub(super) fn agent(config: Config, tls: Arc<ClientConfig>) -> Agent {
    let connector = ().chain(TcpConnector::default()).chain(SecuredConnector(tls));
    Agent::with_parts(config, connector, DefaultResolver::default())
}

#[derive(Debug)]
struct SecuredConnector(Arc<ClientConfig>);

impl<In: Transport> Connector<In> for SecuredConnector {
    type Out = Either<In, Secured>;

    fn connect(
        &self,
        details: &ConnectionDetails<'_>,
        chained: Option<In>,
    ) -> Result<Option<Self::Out>, Error> {
        let transport = chained.ok_or(Error::ConnectionFailed)?;
        if !details.needs_tls() {
            return Ok(Some(Either::A(transport)));
        }
        let host = details.uri.host().unwrap_or_default();
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::Tls("the host of the address is no name of a server"))?;
        let mut connection = ClientConnection::new(Arc::clone(&self.0), name)?;
        let mut socket =
            TransportAdapter::new(transport.boxed(), Arc::clone(&details.current_time));
        socket.set_timeout(details.timeout);
        connection.complete_io(&mut socket)?;
        Ok(Some(Either::B(Secured {
            buffers: LazyBuffers::new(
                details.config.input_buffer_size(),
                details.config.output_buffer_size(),
            ),
            stream: StreamOwned::new(connection, socket),
        })))
    }
}

/// A connection that is secured.
struct Secured {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl fmt::Debug for Secured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secured").finish_non_exhaustive()
    }
}

impl Transport for Secured {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
