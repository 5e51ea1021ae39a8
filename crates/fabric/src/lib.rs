//! Memory that a graph lives in: allocated or mapped once, read by everyone, moved by nobody.
//!
//! A [`Region`] is a read-only run of bytes at a fixed address, aligned to eight bytes at least:
//! anonymous memory advised for huge pages, or a mapped file. Registering regions for remote
//! reads and passing messages join this crate when there is a second machine. What else of the
//! operating system takes unsafe code is here, too: the [`allocator`], how threads are
//! [`schedule`]d and [`pace`]d, and what becomes of reads from a mapped file that lost its bytes.

pub mod allocator;
mod fault;
pub mod pace;
mod region;
pub mod schedule;

pub use region::{Region, RegionBuilder, RegionId};
