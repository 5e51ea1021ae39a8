//! How often may a client's address do something?
//!
//! A bucket of tokens for each address: it holds a burst at most, and one token comes back after
//! each interval. The table is bounded; addresses for which it has no room share one bucket, so that
//! whoever has many addresses gains nothing by filling it.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Addresses with a bucket of their own, at most.
const MOST_ADDRESSES: usize = 16 << 10;
/// How often the table is searched for buckets that are full again, at most.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// Buckets by address.
pub(crate) struct Buckets {
    burst: u32,
    interval: Duration,
    table: Mutex<Table>,
}

struct Table {
    /// When the bucket of an address will be full again.
    full_at: HashMap<IpAddr, Instant>,
    shared_full_at: Option<Instant>,
    searched_at: Option<Instant>,
}

impl Buckets {
    /// # Panics
    /// If the burst is 0.
    pub(crate) fn new(burst: u32, interval: Duration) -> Self {
        assert!(burst > 0, "nobody could ever do anything");
        Self {
            burst,
            interval,
            table: Mutex::new(Table {
                full_at: HashMap::new(),
                shared_full_at: None,
                searched_at: None,
            }),
        }
    }

    /// Takes a token; otherwise says when the next one is there.
    pub(crate) fn take(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let key = key_of(address);
        let mut table = self.lock();
        let full_at = table.full_at(key, now);
        self.check_full_at(full_at, now)?;
        table.set(key, full_at.max(now) + self.interval, now);
        Ok(())
    }

    /// Whether a token is there, which stays.
    pub(crate) fn check(&self, address: IpAddr, now: Instant) -> Result<(), Duration> {
        let full_at = self.lock().full_at(key_of(address), now);
        self.check_full_at(full_at, now)
    }

    /// Puts a token back that was taken. A bucket that addresses share stays as it is.
    pub(crate) fn give_back(&self, address: IpAddr, now: Instant) {
        if let Some(full_at) = self.lock().full_at.get_mut(&key_of(address)) {
            *full_at = full_at.checked_sub(self.interval).unwrap_or(now).max(now);
        }
    }

    fn check_full_at(&self, full_at: Instant, now: Instant) -> Result<(), Duration> {
        let missing = full_at.saturating_duration_since(now);
        let most = self.interval * (self.burst - 1);
        match missing <= most {
            true => Ok(()),
            false => Err(missing - most),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nobody panics while it has it")
    }
}

impl Table {
    fn full_at(&self, key: IpAddr, now: Instant) -> Instant {
        let own = self.full_at.get(&key).copied();
        let is_full = self.full_at.len() >= MOST_ADDRESSES;
        let shared = self.shared_full_at.filter(|_| is_full);
        own.or(shared).unwrap_or(now)
    }

    fn set(&mut self, key: IpAddr, full_at: Instant, now: Instant) {
        if self.full_at.len() >= MOST_ADDRESSES && !self.full_at.contains_key(&key) {
            let is_due = |at: Instant| now.saturating_duration_since(at) >= SEARCH_INTERVAL;
            if self.searched_at.is_none_or(is_due) {
                self.full_at.retain(|_, full_at| *full_at > now);
                self.searched_at = Some(now);
            }
            if self.full_at.len() >= MOST_ADDRESSES {
                self.shared_full_at = Some(full_at);
                return;
            }
        }
        self.full_at.insert(key, full_at);
    }
}

/// The address of IPv4, or the network of IPv6: a client commonly has all addresses of a /64.
fn key_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn address(n: u32) -> IpAddr {
        IpAddr::V4(n.into())
    }

    #[test]
    fn a_bucket_holds_a_burst_and_fills_again() {
        let (buckets, now) = (Buckets::new(2, SECOND), Instant::now());
        assert_eq!(buckets.take(address(1), now), Ok(()));
        assert_eq!(buckets.take(address(1), now), Ok(()));
        assert_eq!(buckets.take(address(1), now), Err(SECOND));
        assert_eq!(buckets.check(address(1), now), Err(SECOND));
        assert_eq!(buckets.take(address(2), now), Ok(()), "another's");
        assert_eq!(buckets.take(address(1), now + SECOND), Ok(()));
        assert_eq!(buckets.take(address(1), now + SECOND), Err(SECOND));
    }

    #[test]
    fn a_token_that_is_given_back_is_there_and_no_more_than_a_burst() {
        let (buckets, now) = (Buckets::new(2, SECOND), Instant::now());
        buckets.give_back(address(1), now);
        for _ in 0..2 {
            assert_eq!(buckets.take(address(1), now), Ok(()));
        }
        assert_eq!(buckets.take(address(1), now), Err(SECOND));
        buckets.give_back(address(1), now);
        assert_eq!(buckets.take(address(1), now), Ok(()));
        assert_eq!(buckets.take(address(1), now), Err(SECOND));
        for _ in 0..5 {
            buckets.give_back(address(1), now);
        }
        for _ in 0..2 {
            assert_eq!(buckets.take(address(1), now), Ok(()));
        }
        assert_eq!(buckets.take(address(1), now), Err(SECOND));
    }

    #[test]
    fn the_addresses_of_a_network_share_a_bucket() {
        let (buckets, now) = (Buckets::new(1, SECOND), Instant::now());
        let of = |text: &str| text.parse().expect("an address");
        assert_eq!(buckets.take(of("2001:db8::1"), now), Ok(()));
        assert_eq!(buckets.take(of("2001:db8::ffff:2"), now), Err(SECOND));
        assert_eq!(buckets.take(of("2001:db8:0:1::1"), now), Ok(()));
        assert_eq!(buckets.take(of("::ffff:1.2.3.4"), now), Ok(()));
        assert_eq!(buckets.take(of("1.2.3.4"), now), Err(SECOND));
    }

    #[test]
    fn a_full_table_grows_no_further_until_buckets_are_full_again() {
        let (buckets, now) = (Buckets::new(1, SECOND), Instant::now());
        let most = MOST_ADDRESSES as u32;
        for n in 0..most {
            assert_eq!(buckets.take(address(n), now), Ok(()));
        }
        assert_eq!(buckets.take(address(most), now), Ok(()));
        assert_eq!(buckets.take(address(most + 1), now), Err(SECOND), "shared");
        assert_eq!(buckets.lock().full_at.len(), MOST_ADDRESSES);
        assert_eq!(buckets.take(address(most + 1), now + SECOND), Ok(()));
        assert_eq!(buckets.lock().full_at.len(), 1);
    }
}
