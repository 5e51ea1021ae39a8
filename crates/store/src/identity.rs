//! Which of all bases is this one? A random number of 128 bits, drawn when a base is written.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The identity of a base: what its log and its checkpoints name as the one that they continue.
///
/// A copy of a base keeps it, since what continues the one continues the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity(pub(crate) [u64; 2]);

impl Identity {
    /// One that no other base has.
    #[must_use]
    pub fn random() -> Self {
        Self([random(), random()])
    }

    /// What is wrong with a file that continues another base than this one.
    pub(crate) fn mismatch(self, found: Self) -> String {
        format!("it continues the base {found} of another store, and the base here is {self}")
    }

    /// Reads what [`Display`](fmt::Display) writes, to the letter.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (high, low) = text.split_at_checked(16)?;
        let word = |digits| u64::from_str_radix(digits, 16).ok();
        let identity = Self([word(high)?, word(low)?]);
        (identity.to_string() == text).then_some(identity)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low] = self.0;
        write!(f, "{high:016x}{low:016x}")
    }
}

/// A number that no other call gives, here or in another process: keyed by the system's random
/// numbers.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_written_and_no_other_text_is_one() {
        let identity = Identity::random();
        let text = identity.to_string();
        assert_eq!(Identity::parse(&text), Some(identity));
        for bad in ["", "12", &text[1..], &format!("+{}", &text[1..])] {
            assert_eq!(Identity::parse(bad), None, "{bad:?}");
        }
        assert_ne!(Identity::random(), identity);
    }
}
