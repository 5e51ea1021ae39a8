//! Why did a call not do what it was for, and may it have changed something all the same?

use std::io;
use std::path::PathBuf;

/// Why a call failed. Only after [`Error::Unknown`] may something have been changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A list of endpoints is not one.
    #[error("{text}: {reason}")]
    Endpoints {
        /// The endpoint that is wrong, or the whole list.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A file of certificates or of a key cannot be read.
    #[error("{}: cannot be read", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file of certificates or of a key has something else in it.
    #[error("{}: {reason}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No endpoint gave an answer; nothing was changed.
    #[error("etcd at {endpoint} gave no answer")]
    NoAnswer {
        /// The last one that was tried.
        endpoint: String,
        /// Why that one gave none.
        source: Cause,
    },
    /// The change was sent and no answer came: whether it was made is not known.
    #[error("etcd at {endpoint} may or may not have made a change")]
    Unknown {
        /// Where it was sent to.
        endpoint: String,
        /// Why the answer is not known.
        source: Cause,
    },
    /// etcd says no; nothing was changed.
    #[error("etcd at {endpoint} refuses: {message} (code {code})")]
    Refused {
        /// Who says so.
        endpoint: String,
        /// The status code of gRPC.
        code: u32,
        /// In etcd's words.
        message: String,
    },
    /// What was asked for has more bytes than are read.
    #[error("etcd's answer has more than {limit_bytes} bytes")]
    TooLarge {
        /// The bound.
        limit_bytes: usize,
    },
    /// The system gives no thread.
    #[error("no thread could be started")]
    Thread(#[source] io::Error),
}

/// Why one endpoint gave no answer that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// It cannot be reached, the time was over, or the connection broke.
    #[error("{0}")]
    Connection(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// It cannot say, as when it has no leader.
    #[error("it answers: {message} (code {code})")]
    Unavailable {
        /// The status code of gRPC.
        code: u32,
        /// In etcd's words.
        message: String,
    },
    /// It is no etcd, or one of another version.
    #[error("it answers with HTTP's status {0}, which is not etcd's way")]
    Status(u16),
    /// The answer is not what etcd's would be.
    #[error("its answer is malformed: {0}")]
    Malformed(String),
    /// The answer has more bytes than are read.
    #[error("its answer has more than {limit_bytes} bytes")]
    TooLarge {
        /// The bound.
        limit_bytes: usize,
    },
}

impl From<ureq::Error> for Cause {
    fn from(error: ureq::Error) -> Self {
        match error {
            ureq::Error::BodyExceedsLimit(limit) => Self::TooLarge {
                limit_bytes: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            error => Self::Connection(Box::new(error)),
        }
    }
}
