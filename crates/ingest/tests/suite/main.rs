//! Is what documents say what is read of them? One program for all tests of that, linked once: `cargo test -p
//! jindou-ingest --test suite fuzz::` runs those of one file.

#![forbid(unsafe_code)]

mod bounds;
mod common;
mod fuzz;
mod lenient;
mod line_formats;
mod loads;
