//! Do texts become the right trees, and wrong ones the right errors? One program for almost all tests of that, linked
//! once: `cargo test -p jindou-syntax --test suite messages::` runs those of one file.
//!
//! `memory` is a program of its own, beside this folder: it counts what the allocator gives, and it counts for all
//! threads.

#![forbid(unsafe_code)]

mod continuous;
mod data;
mod messages;
mod tree;
