//! Does a store hold what it was given, whatever is changed, merged, cut or damaged? One program for all tests of it,
//! linked once: `cargo test -p jindou-store --test suite log::` runs those of one file or folder.

#![forbid(unsafe_code)]

mod against_a_set_of_quads;
mod counted_ends;
mod log;
mod parts;
mod text_places;

use proptest::test_runner::Config;

/// So many cases, unless `PROPTEST_CASES` says another number.
fn cases(default: u32) -> Config {
    match std::env::var_os("PROPTEST_CASES") {
        Some(_) => Config::default(),
        None => Config::with_cases(default),
    }
}
