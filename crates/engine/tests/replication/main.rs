//! Copies of a store that are written at all nodes: do they hold the same, under the same ids, whatever happens to the
//! links between them and to the nodes?

#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../durability/contents.rs"]
mod contents;
mod deposed;
mod device;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../durability/faults.rs"]
mod faults;
mod net;
mod random;
#[allow(dead_code, reason = "shared with tests that use more of it")]
#[path = "../durability/random_requests.rs"]
mod random_requests;
mod refusals;
mod streams;
mod writes;

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below a bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
