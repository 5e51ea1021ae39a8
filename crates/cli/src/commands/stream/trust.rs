//! Which certificate of a server is trusted where a file names those that are?
//!
//! One that leads to a certificate of the file, as to those of the web's authorities, and one that is in the
//! file itself: what `openssl req -x509` makes calls itself an authority, which no server's may be otherwise.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// What a connection is made with that trusts these certificates alone.
///
/// # Errors
/// A certificate that cannot be read; or if there is none.
pub(super) fn trusting(known: Vec<CertificateDer<'static>>) -> anyhow::Result<Arc<ClientConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let trust = Trust::new(known, &provider)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(rustls::ALL_VERSIONS)?;
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(trust));
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Verifies the certificates of servers.
#[derive(Debug)]
struct Trust {
    known: Vec<CertificateDer<'static>>,
    chains: Arc<WebPkiServerVerifier>,
}

impl Trust {
    fn new(
        known: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in &known {
            roots.add(certificate.clone())?;
        }
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self {
            known,
            chains: chains.build()?,
        })
    }

    /// Whether a certificate that leads to none of the file is one of them. Its time is known to be right:
    /// the verification of its chain checks that first.
    fn is_known(&self, certificate: &CertificateDer<'_>, refused: &Error) -> bool {
        let leads_nowhere = matches!(
            refused,
            Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::Other(_))
        );
        leads_nowhere && self.known.contains(certificate)
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.chains
                .verify_server_cert(certificate, intermediates, name, ocsp_response, now);
        match verified {
            Err(refused) if self.is_known(certificate, &refused) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{
        BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SerialNumber, date_time_ymd,
    };

    use super::*;

    const NAME: &str = "db.example.org";

    /// When all certificates of these tests are valid, and when none is any more.
    const NOW_SECONDS: u64 = 1_750_000_000;
    const LATER_SECONDS: u64 = 1_950_000_000;

    fn parameters(is_ca: IsCa, serial: u64) -> CertificateParams {
        let mut parameters = CertificateParams::new([NAME.to_owned()]).expect("a name");
        parameters.is_ca = is_ca;
        parameters.serial_number = Some(SerialNumber::from(serial));
        parameters.not_before = date_time_ymd(2025, 1, 1);
        parameters.not_after = date_time_ymd(2030, 1, 1);
        parameters
    }

    fn verified(
        known: &CertificateDer<'static>,
        shown: &CertificateDer<'_>,
        name: &str,
        seconds: u64,
    ) -> Result<(), Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let trust = Trust::new(vec![known.clone()], &provider).expect("a certificate");
        let name = ServerName::try_from(name.to_owned()).expect("a name");
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        let verified = trust.verify_server_cert(shown, &[], &name, &[], now);
        verified.map(drop)
    }

    #[track_caller]
    fn refuses(verified: Result<(), Error>, expected: &str) {
        let refused = verified.expect_err("it is not to be trusted");
        assert!(format!("{refused:?}").contains(expected), "{refused:?}");
    }

    #[test]
    fn the_certificate_of_the_server_itself_is_trusted_for_its_name_and_time() {
        let key = KeyPair::generate().expect("a key");
        let authority = || IsCa::Ca(BasicConstraints::Unconstrained);
        for is_ca in [authority(), IsCa::ExplicitNoCa, IsCa::NoCa] {
            let is_authority = matches!(is_ca, IsCa::Ca(_));
            let own = parameters(is_ca, 1).self_signed(&key).expect("signed");
            let own = own.der();
            verified(own, own, NAME, NOW_SECONDS).expect("it is the server's own");
            refuses(
                verified(own, own, "other.example.org", NOW_SECONDS),
                "NotValidForName",
            );
            refuses(verified(own, own, NAME, LATER_SECONDS), "Expired");
            refuses(verified(own, own, NAME, 0), "NotValidYet");
            if is_authority {
                // Of the same name and key, but another one.
                let other = parameters(authority(), 2)
                    .self_signed(&key)
                    .expect("signed");
                refuses(
                    verified(own, other.der(), NAME, NOW_SECONDS),
                    "CaUsedAsEndEntity",
                );
            }
            let others_key = KeyPair::generate().expect("a key");
            let other = parameters(IsCa::NoCa, 1)
                .self_signed(&others_key)
                .expect("signed");
            refuses(
                verified(own, other.der(), NAME, NOW_SECONDS),
                "BadSignature",
            );
        }
    }

    #[test]
    fn what_an_authority_signed_is_trusted_by_the_authority_or_by_itself() {
        let key = KeyPair::generate().expect("a key");
        let mut of_authority = parameters(IsCa::Ca(BasicConstraints::Unconstrained), 1);
        of_authority
            .distinguished_name
            .push(rcgen::DnType::CommonName, "an authority");
        let authority = of_authority.self_signed(&key).expect("signed");
        let issuer = Issuer::new(of_authority, &key);
        let own_key = KeyPair::generate().expect("a key");
        let signed = |serial| {
            let parameters = parameters(IsCa::NoCa, serial);
            parameters.signed_by(&own_key, &issuer).expect("signed")
        };
        let (own, other) = (signed(2), signed(3));
        verified(authority.der(), own.der(), NAME, NOW_SECONDS).expect("it leads to it");
        verified(own.der(), own.der(), NAME, NOW_SECONDS).expect("it is the same");
        refuses(
            verified(own.der(), own.der(), "other.example.org", NOW_SECONDS),
            "NotValidForName",
        );
        refuses(
            verified(own.der(), own.der(), NAME, LATER_SECONDS),
            "Expired",
        );
        refuses(
            verified(own.der(), other.der(), NAME, NOW_SECONDS),
            "UnknownIssuer",
        );
    }
}
