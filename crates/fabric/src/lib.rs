//! Memory that a graph lives in: allocated or mapped once, read by everyone, moved by nobody.
//!
//! A [`Region`] is a read-only run of bytes at a fixed address, aligned to eight bytes at least:
//! anonymous memory advised for huge pages, or a mapped file. Registering regions for remote
//! reads and passing messages join this crate when there is a second machine.

pub mod allocator;
mod region;

pub use region::{Region, RegionBuilder};
