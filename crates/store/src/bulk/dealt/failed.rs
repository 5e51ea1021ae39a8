//! Where did a load of several nodes fail: must the others still be told?

use jindou_dictionary::DictionaryError;
use jindou_model::NodeId;

use super::exchange::ExchangeError;
use crate::StoreError;

/// Why a node gives up.
#[derive(Debug)]
pub(super) enum Failed {
    /// What failed here: the others are waiting for this node's next bytes.
    Here(StoreError),
    /// All know, or cannot be told.
    Elsewhere(StoreError),
}

/// Another node writes otherwise than this one reads.
#[derive(Debug, thiserror::Error)]
#[error("another node sent what cannot be read: all must be of one version")]
struct Malformed;

impl Failed {
    #[cold]
    pub(super) fn malformed() -> Self {
        Self::Here(ExchangeError::new(Malformed).into())
    }

    /// There are more terms than ids.
    pub(super) fn too_large(reason: impl ToString) -> Self {
        let reason = reason.to_string();
        Self::Here(StoreError::TooLarge { reason })
    }

    pub(super) fn into_error(self) -> StoreError {
        match self {
            Self::Here(error) | Self::Elsewhere(error) => error,
        }
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Here(error)
    }
}

impl From<DictionaryError> for Failed {
    fn from(error: DictionaryError) -> Self {
        Self::too_large(error)
    }
}

/// How a message ends that says what failed, and one that does not.
const FINE: u8 = 0;
const TOO_LARGE: u8 = 1;
const OTHER: u8 = 2;

/// What the others are told of an error.
pub(super) fn message_of(error: &StoreError) -> (String, u8) {
    match error {
        StoreError::TooLarge { reason } => (reason.clone(), TOO_LARGE),
        error => (error.to_string(), OTHER),
    }
}

/// The end of a message that says of no failure.
pub(super) fn fine() -> u8 {
    FINE
}

/// What a node said that failed, if it did.
pub(super) fn read(node: usize, message: &[u8], end: u8) -> Result<(), Failed> {
    let reason = || String::from_utf8_lossy(message).into_owned();
    let error = match end {
        FINE => return Ok(()),
        TOO_LARGE => StoreError::TooLarge { reason: reason() },
        _ => StoreError::OtherNode {
            node: NodeId(node as u32),
            reason: reason(),
        },
    };
    Err(Failed::Elsewhere(error))
}
