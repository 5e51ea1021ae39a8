//! What do the files of certificates come to?

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig};

use crate::options::Identity;
use crate::{Error, Options};

/// How the agents of these options talk TLS.
///
/// # Errors
/// [`Error::File`] and [`Error::Pem`]; [`Error::Endpoints`] where there are files, and an endpoint would be
/// asked without TLS.
pub(crate) fn configuration(options: &Options) -> Result<TlsConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let plain = TlsConfig::builder().unversioned_rustls_crypto_provider(Arc::clone(&provider));
    let Some(files) = &options.tls else {
        return Ok(plain.build());
    };
    let endpoints = options.endpoints.as_slice();
    if let Some(endpoint) = endpoints.iter().find(|text| text.starts_with("http://")) {
        return Err(Error::Endpoints {
            text: endpoint.clone(),
            reason: "with files of certificates, an endpoint begins with https://",
        });
    }
    let authorities = certificates(&files.ca)?;
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        // The agent would pass over one that it cannot use.
        let added = roots.add(CertificateDer::from(authority.der()));
        added.map_err(|error| wrong(&files.ca, error))?;
    }
    let identity = files.identity.as_ref();
    let identity = identity.map(|files| read_identity(files, roots, provider));
    let config = plain
        .root_certs(RootCerts::from(authorities))
        .client_cert(identity.transpose()?);
    Ok(config.build())
}

fn read_identity(
    files: &Identity,
    roots: RootCertStore,
    provider: Arc<CryptoProvider>,
) -> Result<ClientCert, Error> {
    let chain = certificates(&files.certificate)?;
    let text = read(&files.key)?;
    let of_key = |error: &dyn ToString| wrong(&files.key, error.to_string());
    let key = PrivateKey::from_pem(&text).map_err(|error| of_key(&error))?;
    // The agent would panic where the key is of a kind that it does not know, or of another certificate.
    let checked = PrivateKeyDer::from_pem_slice(&text).map_err(|error| of_key(&error))?;
    let of_chain = chain.iter().map(|one| one.der().to_vec().into());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| of_key(&error))?
        .with_root_certificates(roots)
        .with_client_auth_cert(of_chain.collect(), checked)
        .map_err(|error| of_key(&error))?;
    Ok(ClientCert::new_with_certs(&chain, key))
}

/// All certificates of a file; there is at least one.
fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, Error> {
    let text = read(file)?;
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(&text) {
        if let PemItem::Certificate(certificate) = item.map_err(|error| wrong(file, error))? {
            found.push(certificate);
        }
    }
    if found.is_empty() {
        return Err(wrong(file, "no certificate in PEM is in it"));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(file).map_err(|source| Error::File {
        path: file.to_owned(),
        source,
    })
}

fn wrong(file: &Path, reason: impl ToString) -> Error {
    Error::Pem {
        path: file.to_owned(),
        reason: reason.to_string(),
    }
}
