//! Which files are read again while a server runs, and what is said of it?

use std::error::Error;
use std::fmt;

use crate::config::ServerConfig;
use crate::credentials::Credentials;
use crate::tls::Tls;

/// The files of a server's settings that are read again: by the server when they change, and whenever its
/// owner says so.
#[derive(Clone, Debug)]
pub struct RereadFiles {
    credentials: Option<Credentials>,
    tls: Option<Tls>,
}

/// That files were read again, or why not, which changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reread {
    what: What,
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Credentials,
    Certificate,
}

impl RereadFiles {
    /// Those of these settings.
    #[must_use]
    pub fn of(config: &ServerConfig) -> Self {
        Self {
            credentials: config.access.credentials().cloned(),
            tls: config.tls.clone(),
        }
    }

    /// Those of a certificate alone.
    #[must_use]
    pub fn of_tls(tls: Option<Tls>) -> Self {
        let credentials = None;
        Self { credentials, tls }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.credentials.is_none() && self.tls.is_none()
    }

    /// Reads all of them again.
    #[must_use]
    pub fn reread(&self) -> Vec<Reread> {
        let credentials = self.credentials.as_ref().map(Credentials::reread);
        let tls = self.tls.as_ref().map(Tls::reread);
        told(credentials, tls)
    }

    /// Reads those again that have changed.
    pub(crate) fn reread_changed(&self) -> Vec<Reread> {
        let credentials = self.credentials.as_ref();
        let credentials = credentials.and_then(Credentials::reread_if_changed);
        let tls = self.tls.as_ref().and_then(Tls::reread_if_changed);
        told(credentials, tls)
    }
}

fn told(
    credentials: Option<Result<(), impl Error>>,
    tls: Option<Result<(), impl Error>>,
) -> Vec<Reread> {
    let credentials = credentials.map(|read| Reread::new(What::Credentials, read));
    let tls = tls.map(|read| Reread::new(What::Certificate, read));
    credentials.into_iter().chain(tls).collect()
}

impl Reread {
    fn new(what: What, read: Result<(), impl Error>) -> Self {
        Self {
            what,
            failure: read.err().map(|error| error.to_string()),
        }
    }

    /// Whether the files could not be used.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        self.failure.is_some()
    }
}

impl fmt::Display for Reread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failure, self.what) {
            (None, What::Credentials) => f.write_str("the credentials were read again"),
            (None, What::Certificate) => f.write_str("the certificate was read again"),
            (Some(error), What::Credentials) => {
                write!(f, "{error}; the credentials stay as they were")
            }
            (Some(error), What::Certificate) => {
                write!(f, "{error}; the certificate stays as it was")
            }
        }
    }
}
