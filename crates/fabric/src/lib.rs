//! Memory that a graph lives in: allocated or mapped once, read by everyone, moved by nobody.
//!
//! A [`Region`] is a read-only run of bytes at a fixed address, aligned to eight bytes at least:
//! anonymous memory advised for huge pages, a mapped file, or memory that a fabric lends. Other nodes
//! read regions, and write words that are shared for that, through [`remote`]: those that share a
//! process ([`local`]), processes of one machine or several (`process`), or simulated ones ([`sim`]);
//! a [`ring`] carries messages between them. What else of the
//! operating system takes unsafe code is here, too: the [`allocator`], how threads are
//! [`schedule`]d and [`pace`]d, and what becomes of reads from a mapped file that lost its bytes.

pub mod allocator;
mod error;
mod fault;
pub mod local;
pub mod pace;
#[cfg(target_os = "linux")]
pub mod process;
mod region;
mod registry;
pub mod remote;
pub mod ring;
pub mod schedule;
pub mod sim;

pub use error::FabricError;
pub use region::{LentMemory, Region, RegionBuilder, RegionId};
