//! How does a server prove who it is, and keep others from listening? By a certificate and its key.
//!
//! Both are read again when they change, so that a renewed certificate needs no restart: connections that
//! come then get it, and those that are there keep what they began with.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::{Error as PemError, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, InconsistentKeys, ServerConfig};
use tokio_rustls::server::TlsStream;

use crate::files::read_bounded;
use crate::stall::StallGuard;
use crate::watched::Watched;

/// The largest file of certificates or of a key, in bytes.
const MOST_FILE_BYTES: u64 = 1 << 20;
/// The protocol that is spoken inside of TLS, as clients name it.
const HTTP: &[u8] = b"http/1.1";
/// What a client without TLS gets for its first request.
const PLAIN_REFUSED: &str = "HTTP/1.1 400 Bad Request\r\n\
    Content-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 60\r\n\
    Connection: close\r\n\
    \r\n\
    this port takes HTTPS only; begin the address with https://\n";
/// What is read of a request that came without TLS, so that its client reads the answer: bytes, and time.
const PLAIN_BYTES: u64 = 64 << 10;
const PLAIN_TIME: Duration = Duration::from_secs(1);

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file has nothing of what it is to have.
    #[error("{}: no {what} in PEM is in it", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What it is to have.
        what: &'static str,
    },
    /// A file is no PEM.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong, which has nothing of a key.
        reason: &'static str,
    },
    /// The key is another certificate's.
    #[error("{}: the key does not belong to the certificate in {}", key.display(), certificate.display())]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
    },
    /// The certificate or the key is of a kind that is not supported, or malformed.
    #[error("{} with {}: {source}", certificate.display(), key.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
}

/// A certificate and its key, as their files were when they were last read; clones share them.
#[derive(Clone)]
pub struct Tls(Arc<Watched<ServerConfig, TlsError>>);

impl fmt::Debug for Tls {
    /// The files' names: a key belongs in no log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tls").field(&self.0.paths()).finish()
    }
}

impl Tls {
    /// Reads a certificate, with those that lead from it to one that clients know, and its key; both are
    /// PEM, and may be the same file.
    ///
    /// # Errors
    /// Files that cannot be read or have no such thing in them, and a key that is not the certificate's.
    pub fn read(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, TlsError> {
        let paths = [certificate.into(), key.into()];
        let watched = Watched::new(paths, |paths| read(&paths[0], &paths[1]))?;
        Ok(Self(Arc::new(watched)))
    }

    /// Reads the files again. Those that cannot be used change nothing.
    ///
    /// # Errors
    /// As [`Tls::read`].
    pub fn reread(&self) -> Result<(), TlsError> {
        self.0.reread()
    }

    /// Reads the files again if one has changed since they were last tried; `None` if none has.
    pub(crate) fn reread_if_changed(&self) -> Option<Result<(), TlsError>> {
        self.0.reread_if_changed()
    }

    /// What a client says first. `None` of one that speaks no TLS, which was told so.
    ///
    /// # Errors
    /// A client that is gone, or offers nothing that the server knows.
    pub(crate) async fn accept(
        &self,
        stream: StallGuard,
    ) -> io::Result<Option<TlsStream<StallGuard>>> {
        let mut first = [0];
        if stream.stream().peek(&mut first).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // A record of TLS begins with a small number, a request of HTTP with the letters of its method.
        if first[0].is_ascii_alphabetic() {
            // The client may be gone, which is its own affair.
            let _ = timeout(PLAIN_TIME, refuse_plain(stream)).await;
            return Ok(None);
        }
        let acceptor = TlsAcceptor::from(self.0.value());
        acceptor.accept(stream).await.map(Some)
    }
}

/// Answers a request that came without TLS. What the client sends is read for a while: to close before
/// would have its system drop the answer.
async fn refuse_plain(mut stream: StallGuard) -> io::Result<()> {
    stream.write_all(PLAIN_REFUSED.as_bytes()).await?;
    stream.shutdown().await?;
    let mut sent = stream.take(PLAIN_BYTES);
    tokio::io::copy(&mut sent, &mut tokio::io::sink()).await?;
    Ok(())
}

fn read(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let chain: Result<Vec<_>, _> =
        CertificateDer::pem_slice_iter(&read_file(certificate)?).collect();
    let chain = chain.map_err(|error| wrong_pem(certificate, &error, "certificate"))?;
    if chain.is_empty() {
        return Err(wrong_pem(
            certificate,
            &PemError::NoItemsFound,
            "certificate",
        ));
    }
    let secret = PrivateKeyDer::from_pem_slice(&read_file(key)?);
    let secret = secret.map_err(|error| wrong_pem(key, &error, "unencrypted private key"))?;
    let unusable = |source| match source {
        rustls::Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        },
        source => TlsError::Unusable {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            source,
        },
    };
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth();
    let mut config = config.with_single_cert(chain, secret).map_err(unusable)?;
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(config)
}

fn read_file(path: &Path) -> Result<Vec<u8>, TlsError> {
    read_bounded(path, MOST_FILE_BYTES).map_err(|source| TlsError::Io {
        path: path.to_owned(),
        source,
    })
}

/// What is wrong with a file, without any of its text, which may be a key's.
fn wrong_pem(path: &Path, error: &PemError, what: &'static str) -> TlsError {
    let path = path.to_owned();
    let reason = match error {
        PemError::NoItemsFound => return TlsError::Missing { path, what },
        PemError::MissingSectionEnd { .. } => "a section of PEM has no end",
        PemError::IllegalSectionStart { .. } => "a line that begins a section of PEM is malformed",
        PemError::Base64Decode(_) => "a section of PEM is no Base64",
        _ => "no PEM",
    };
    TlsError::Pem { path, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_refusal_of_a_plain_request_is_as_long_as_it_says() {
        let (head, body) = PLAIN_REFUSED.split_once("\r\n\r\n").expect("a head");
        let length = format!("Content-Length: {}", body.len());
        assert!(head.lines().any(|line| line == length), "{length}");
    }
}
