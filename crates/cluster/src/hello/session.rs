//! How does a side prove that it knows the secret, and what it sends to be its own?
//!
//! By HMAC-SHA256: of both first messages with the secret, and of all that follows with a key that the secret makes of
//! them, so that it is of this connection only.

use jindou_model::NodeId;
use ring::hmac;

use super::duplex::{Duplex, Limited};
use super::facts::too_long;
use super::first::FirstMessage;
use super::{HelloError, Role};
use crate::secret::Secret;
use jindou_model::printable;

/// Bytes of a signature.
pub(super) const TAG_BYTES: usize = 32;
/// The most bytes of a refusal's text.
const MOST_REFUSAL_BYTES: usize = 500;
const JOINED: u8 = 0;
const REFUSED: u8 = 1;
/// What the key of a session is made of, before both first messages.
const SESSION: &[u8] = b"jindou session 1\0";

/// What is signed with the key of a session, so that nothing is taken for something else.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(super) enum Signed {
    /// That the handshake is over.
    Verdict = 1,
    /// A message of an exchange.
    Message = 2,
}

/// A connection between two sides that know one secret.
#[derive(Debug)]
pub(super) struct Session {
    key: hmac::Key,
    role: Role,
    /// Exchanges so far: the number of the next one.
    pub(super) exchanges: u64,
}

impl Session {
    /// Proves to the other side that this one knows the secret, and asks the same of it.
    pub(super) fn authenticate<S: Duplex + ?Sized>(
        secret: Option<&Secret>,
        role: Role,
        stream: &Limited<'_, S>,
        own: &FirstMessage,
        others: &FirstMessage,
    ) -> Result<Self, HelloError> {
        let key = Secret::key(secret);
        let (own_bytes, others_bytes) = (own.bytes(), others.bytes());
        let proven = [&[role.number()][..], own_bytes, others_bytes].concat();
        stream.write(hmac::sign(&key, &proven).as_ref())?;
        let proof: [u8; TAG_BYTES] = stream.read_array()?;
        let proven = [&[role.others_number()][..], others_bytes, own_bytes].concat();
        let wrong = |_| HelloError::OtherSecret {
            node: others.node(),
        };
        hmac::verify(&key, &proven, &proof).map_err(wrong)?;
        let (dialers, acceptors) = match role {
            Role::Dialer { .. } => (own_bytes, others_bytes),
            Role::Acceptor => (others_bytes, own_bytes),
        };
        let session = hmac::sign(&key, &[SESSION, dialers, acceptors].concat());
        Ok(Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, session.as_ref()),
            role,
            exchanges: 0,
        })
    }

    /// The signature of what this side sends.
    pub(super) fn sign(&self, kind: Signed, bytes: &[u8]) -> hmac::Tag {
        let signed = [&[kind as u8, self.role.number()][..], bytes].concat();
        hmac::sign(&self.key, &signed)
    }

    /// Whether the other side signed this, in a time that does not depend on it.
    pub(super) fn is_signed(&self, kind: Signed, bytes: &[u8], tag: &[u8; TAG_BYTES]) -> bool {
        let signed = [&[kind as u8, self.role.others_number()][..], bytes].concat();
        hmac::verify(&self.key, &signed, tag).is_ok()
    }

    /// Says that the other side can join, or why not.
    pub(super) fn send_verdict<S: Duplex + ?Sized>(
        &self,
        stream: &Limited<'_, S>,
        refusal: Option<&HelloError>,
    ) -> Result<(), HelloError> {
        let code = if refusal.is_some() { REFUSED } else { JOINED };
        let text = refusal.map_or_else(String::new, |error| {
            printable(&error.to_string()).into_owned()
        });
        let text = &text[..text.floor_char_boundary(MOST_REFUSAL_BYTES)];
        let mut verdict = vec![code];
        verdict.extend((text.len() as u16).to_le_bytes());
        verdict.extend(text.as_bytes());
        let tag = self.sign(Signed::Verdict, &verdict);
        verdict.extend(tag.as_ref());
        stream.write(&verdict)
    }

    /// Reads whether the other side joins.
    pub(super) fn read_verdict<S: Duplex + ?Sized>(
        &self,
        stream: &Limited<'_, S>,
        node: NodeId,
    ) -> Result<(), HelloError> {
        let header: [u8; 3] = stream.read_array()?;
        let [code, length @ ..] = header;
        let text_bytes = u16::from_le_bytes(length);
        if usize::from(text_bytes) > MOST_REFUSAL_BYTES {
            let what = "the refusal of a node";
            return Err(too_long(what, text_bytes.into(), MOST_REFUSAL_BYTES));
        }
        let mut verdict = header.to_vec();
        verdict.resize(header.len() + usize::from(text_bytes), 0);
        stream.read(&mut verdict[header.len()..])?;
        let tag = stream.read_array()?;
        if !self.is_signed(Signed::Verdict, &verdict, &tag) {
            return Err(HelloError::Changed { node });
        }
        let text = &verdict[header.len()..];
        match code {
            JOINED if text.is_empty() => Ok(()),
            REFUSED => {
                let text = printable(&String::from_utf8_lossy(text)).into_owned();
                Err(HelloError::Refused { node, text })
            }
            _ => Err(HelloError::Malformed("whether it joins")),
        }
    }
}
