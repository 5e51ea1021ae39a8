//! Do texts become the right plans? One program for almost all tests of that, linked once: `cargo test -p jindou-plan
//! --test suite golden::` runs those of one file.
//!
//! `parse_memory` and `wire_memory` are programs of their own, beside this folder: they count what the allocator gives,
//! and it counts for all threads.

#![forbid(unsafe_code)]

#[path = "../common/mod.rs"]
mod common;

mod cache;
mod connected;
mod golden;
mod hit_speed;
mod refusals;
mod semantics;
mod update;
mod wire;
