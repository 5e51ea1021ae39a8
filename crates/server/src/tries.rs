//! How many wrong names, passwords and tokens has an address tried, and which of them count no more?
//!
//! Those about a line of the file of credentials that has changed since: whoever tried a password before
//! it was put there did not guess.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::buckets::Buckets;
use crate::credentials::Claim;

/// Wrong tries that an address has at once,
const BURST: u32 = 10;
/// and after how long it has one more.
const INTERVAL: Duration = Duration::from_secs(6);
/// Tries of all addresses that may be forgotten, at most: of more, the first count on.
const MOST_RECENT: usize = 1024;

/// Wrong tries by address.
pub(crate) struct Tries {
    buckets: Buckets,
    /// Those that may still count, in the order of their times.
    recent: Mutex<VecDeque<Try>>,
}

struct Try {
    at: Instant,
    address: IpAddr,
    claim: Claim,
}

impl Tries {
    pub(crate) fn new() -> Self {
        Self {
            buckets: Buckets::new(BURST, INTERVAL),
            recent: Mutex::default(),
        }
    }

    /// Whether an address may try; otherwise after how long.
    pub(crate) fn check(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        self.buckets.check(address, now)
    }

    /// Counts a wrong try.
    pub(crate) fn count(&self, address: IpAddr, claim: Claim, now: Instant) {
        // What is counted here is at most as many more as are verified at once.
        if self.buckets.take(address, now).is_err() {
            return;
        }
        let mut recent = self.lock();
        let counts = |one: &Try| now.saturating_duration_since(one.at) < BURST * INTERVAL;
        while recent.len() >= MOST_RECENT || recent.front().is_some_and(|first| !counts(first)) {
            recent.pop_front();
        }
        recent.push_back(Try {
            at: now,
            address,
            claim,
        });
    }

    /// Counts those no more that are about what has changed.
    pub(crate) fn forget(&self, has_changed: impl Fn(&Claim) -> bool, now: Instant) {
        self.lock().retain(|one| {
            let forgets = has_changed(&one.claim);
            if forgets {
                self.buckets.give_back(one.address, now);
            }
            !forgets
        });
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Try>> {
        self.recent.lock().expect("nobody panics while it has it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn claim(name: &str) -> Claim {
        Claim::Name(name.into())
    }

    #[test]
    fn tries_about_what_has_changed_count_no_more_and_the_others_do() {
        let (tries, now) = (Tries::new(), Instant::now());
        for _ in 0..BURST {
            assert_eq!(tries.check(HERE, now), Ok(()));
            tries.count(HERE, claim("ann"), now);
        }
        assert_eq!(tries.check(HERE, now), Err(INTERVAL));
        tries.forget(|about| *about == claim("bob"), now);
        assert_eq!(tries.check(HERE, now), Err(INTERVAL), "it was not bob");
        tries.forget(|about| *about == claim("ann"), now);
        for _ in 0..BURST {
            assert_eq!(tries.check(HERE, now), Ok(()));
            tries.count(HERE, claim("bob"), now);
        }
        tries.forget(|about| *about == claim("ann"), now);
        assert_eq!(tries.check(HERE, now), Err(INTERVAL), "once");
    }

    #[test]
    fn what_may_be_forgotten_is_bounded_and_gives_no_more_than_a_burst() {
        let (tries, begin) = (Tries::new(), Instant::now());
        let address = |n: usize| IpAddr::V4((n as u32).into());
        for n in 0..2 * MOST_RECENT {
            tries.count(address(n), claim("ann"), begin);
        }
        assert_eq!(tries.lock().len(), MOST_RECENT);
        let later = begin + BURST * INTERVAL;
        tries.count(HERE, claim("ann"), later);
        assert_eq!(tries.lock().len(), 1, "the others count no more anyway");
        tries.forget(|_| true, later);
        for _ in 0..BURST {
            tries.count(HERE, claim("ann"), later);
        }
        assert_eq!(tries.check(HERE, later), Err(INTERVAL));
    }
}
