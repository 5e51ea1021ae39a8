//! Does the command do what it says? One program for all tests of it but those of clusters, which are in `cluster`:
//! linked once, and run on as many threads as there are cores. `cargo test -p jindou --test suite streams::` runs those
//! of one file.

#![forbid(unsafe_code)]

mod access;
mod bench_streams;
mod commands;
mod config_file;
mod files;
mod logs;
mod manifests;
mod online_backup;
mod readers;
mod reference_counts;
mod streams;
mod surroundings;
mod union;
mod wrong_arguments;
