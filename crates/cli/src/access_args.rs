//! Who may use a server, and how often: which options say so?

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use jindou_server::{AccessPolicy, Credentials, Role, ServerConfig, Tls};

use crate::values::parse_count;

/// Who may use a server.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Access")]
pub(crate) struct AccessArguments {
    /// File of those who may use the server, lines of `NAME:ROLE:HASH` and `token:NAME:ROLE:HASH` as
    /// `jindou hash-password` prints; roles are read, write and admin. It is read again when it changes,
    /// and on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) credentials: Option<PathBuf>,
    /// What clients without credentials may do [default: none with --credentials, otherwise everything]
    #[arg(long, value_name = "ROLE", value_enum, requires = "credentials")]
    pub(crate) anonymous: Option<Anonymous>,
    /// File of the certificate by which clients know the server, with those that lead to one they trust, in
    /// PEM: the server then speaks HTTPS only. It is read again with its key when they change, and on SIGHUP
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// File of the certificate's private key, in PEM and not encrypted
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Listen beyond this machine without --credentials: anyone who reaches the address can do everything
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Requests that a client's address may send in a second; more are answered 429 [default: any number]
    #[arg(
        long,
        value_name = "N",
        value_parser = parse_count::<NonZeroU32>,
        allow_negative_numbers = true
    )]
    pub(crate) requests_per_second: Option<NonZeroU32>,
}

/// What clients without credentials may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Anonymous {
    /// Nothing but ask whether the server is well
    None,
    /// Ask queries, and read graphs and streams
    Read,
    /// Change the data, and feed streams, too
    Write,
    /// Everything
    Admin,
}

impl AccessArguments {
    /// Puts what was asked for into the settings of a server, whose address they must allow.
    ///
    /// # Errors
    /// Files of credentials and certificates that cannot be used, and an address that is open to all.
    pub(crate) fn apply(&self, config: &mut ServerConfig) -> anyhow::Result<()> {
        check_open(config.address, self.credentials.is_some() || self.insecure)?;
        config.requests_per_second = self.requests_per_second;
        if let Some((certificate, key)) = self.tls_certificate.as_ref().zip(self.tls_key.as_ref()) {
            let tls = Tls::read(certificate, key);
            config.tls = Some(tls.context("--tls-certificate and --tls-key")?);
        }
        let Some(file) = &self.credentials else {
            return Ok(());
        };
        config.access = AccessPolicy::Known {
            credentials: Credentials::read(file).context("--credentials")?,
            anonymous: match self.anonymous {
                None | Some(Anonymous::None) => None,
                Some(Anonymous::Read) => Some(Role::Read),
                Some(Anonymous::Write) => Some(Role::Write),
                Some(Anonymous::Admin) => Some(Role::Admin),
            },
        };
        if !is_loopback(config.address.ip()) && config.tls.is_none() {
            note!(
                "passwords and tokens come to {} unencrypted: give --tls-certificate and --tls-key, or \
                 have a proxy with TLS in front of it",
                config.address
            );
        }
        Ok(())
    }
}

/// Fails if an address can be reached from elsewhere though nobody is asked for credentials.
///
/// # Errors
/// The address, and what to do about it.
pub(crate) fn check_open(address: SocketAddr, is_meant: bool) -> anyhow::Result<()> {
    if is_meant || is_loopback(address.ip()) {
        return Ok(());
    }
    bail!(
        "{address} can be reached from other machines, and whoever reaches it may do everything; name \
         those who may by --credentials FILE (see `jindou hash-password`), listen at 127.0.0.1, or say \
         --insecure if that is meant"
    )
}

pub(crate) fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_beyond_this_machine_needs_credentials_or_leave() {
        for address in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
        ] {
            let address = address.parse().unwrap();
            assert!(check_open(address, false).is_ok(), "{address}");
        }
        for address in [
            "0.0.0.0:1",
            "[::]:1",
            "192.168.1.2:1",
            "[::ffff:10.0.0.1]:1",
        ] {
            let address = address.parse().unwrap();
            let said = check_open(address, false).unwrap_err().to_string();
            for choice in ["--credentials", "127.0.0.1", "--insecure"] {
                assert!(said.contains(choice), "{said}");
            }
            assert!(check_open(address, true).is_ok(), "{address}");
        }
    }
}
