//! Does a store hold what it was given, whatever is changed, merged, cut or damaged? One program for all tests of it,
//! linked once: `cargo test -p jindou-store --test suite log::` runs those of one file or folder.

#![forbid(unsafe_code)]

mod against_a_set_of_quads;
mod log;
mod parts;
mod text_places;
