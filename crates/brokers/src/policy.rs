//! Which brokers may a server connect to?

use std::collections::BTreeSet;

use crate::error::Refused;

/// Which brokers definitions may name.
///
/// Only what they name is looked at: a cluster of Kafka says by itself at which addresses its brokers are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BrokerPolicy {
    /// None: a client with the right to update could else have the server reach hosts in its own network.
    #[default]
    None,
    /// Any.
    Any,
    /// These, each `HOST:PORT`.
    Allowed(BTreeSet<String>),
}

impl BrokerPolicy {
    /// # Errors
    /// [`Refused::NotAllowed`] with the first address that it does not allow.
    pub(crate) fn check<'a>(
        &self,
        mut addresses: impl Iterator<Item = &'a str>,
    ) -> Result<(), Refused> {
        let is_refused = |address: &&str| match self {
            Self::None => true,
            Self::Any => false,
            Self::Allowed(allowed) => !allowed.contains(&address.to_ascii_lowercase()),
        };
        match addresses.find(is_refused) {
            None => Ok(()),
            Some(address) => Err(Refused::NotAllowed {
                address: address.to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_to_be_allowed() {
        let one = BrokerPolicy::Allowed(["a:1".to_owned(), "b:1".to_owned()].into());
        let refused = |policy: &BrokerPolicy, addresses: &[&str]| {
            policy.check(addresses.iter().copied()).err()
        };
        let not = |address: &str| {
            let address = address.to_owned();
            Some(Refused::NotAllowed { address })
        };
        assert_eq!(refused(&one, &["A:1", "b:1"]), None);
        assert_eq!(refused(&one, &["a:1", "a:2"]), not("a:2"));
        assert_eq!(refused(&BrokerPolicy::None, &["a:1"]), not("a:1"));
        assert_eq!(refused(&BrokerPolicy::Any, &["c:9"]), None);
    }
}
