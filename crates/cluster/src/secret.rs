//! What do the nodes of a cluster know that nobody else does? The bytes of a file that each of them is given.

use std::fmt;

use ring::hmac;

/// The fewest bytes of a secret.
pub(crate) const LEAST_SECRET_BYTES: usize = 16;
/// The most bytes of a secret.
pub(crate) const MOST_SECRET_BYTES: usize = 4096;

/// The secret of a cluster. Whoever knows it can be a node; it is never sent, and `Debug` does not print it.
#[derive(Clone)]
pub struct Secret {
    bytes: Box<[u8]>,
}

/// Bytes are no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// There are too few of them, or too many.
    #[error(
        "a secret has {LEAST_SECRET_BYTES} to {MOST_SECRET_BYTES} bytes, and this one has {found_bytes}"
    )]
    Length {
        /// How many there are.
        found_bytes: usize,
    },
    /// They are all zero, which HMAC does not tell from no secret.
    #[error("a secret of zeros is none")]
    Zeros,
}

impl Secret {
    /// A secret of these bytes, all of which count.
    ///
    /// # Errors
    /// [`SecretError`] for fewer than 16 bytes, for more than 4096, and for zeros.
    pub fn new(bytes: &[u8]) -> Result<Self, SecretError> {
        let found_bytes = bytes.len();
        if !(LEAST_SECRET_BYTES..=MOST_SECRET_BYTES).contains(&found_bytes) {
            return Err(SecretError::Length { found_bytes });
        }
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(SecretError::Zeros);
        }
        Ok(Self {
            bytes: bytes.into(),
        })
    }

    /// A key of what is signed with the secret, or with none: then anybody has it.
    pub(crate) fn key(secret: Option<&Self>) -> hmac::Key {
        let bytes = secret.map_or(&[][..], |secret| &secret.bytes);
        hmac::Key::new(hmac::HMAC_SHA256, bytes)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new(b"0123456789abcdef").unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_secret_is_neither_short_nor_long() {
        for found_bytes in [0, 15, 4097] {
            let refused = Secret::new(&vec![7; found_bytes]).unwrap_err();
            assert_eq!(refused, SecretError::Length { found_bytes });
        }
        for bytes in [16, 4096] {
            assert!(Secret::new(&vec![7; bytes]).is_ok());
        }
    }

    #[test]
    fn zeros_are_no_secret() {
        assert_eq!(Secret::new(&[0; 20]).unwrap_err(), SecretError::Zeros);
        let sign = |secret| hmac::sign(&Secret::key(secret), b"x");
        let zeros = hmac::Key::new(hmac::HMAC_SHA256, &[0; 20]);
        assert_eq!(sign(None).as_ref(), hmac::sign(&zeros, b"x").as_ref());
    }
}
