//! Does a database do what its interface says? One program for almost all tests of it: linked once, and run on as
//! many threads as there are cores. `cargo test -p jindou-engine --test suite updates::` runs those of one file.
//!
//! Programs of their own, beside this folder, are tests that need a process for themselves:
//!
//! - `cheap_counts`, `documents`, `held_by_requests`, `load_memory`, `order_of_later_literals`, `soak`,
//!   `stream_bounds` and `wide_queries` count what the allocator gives: it counts for all threads;
//! - `deep`, where a mistake overflows a stack, and `lost_bytes`, where it is a signal: either ends the process;
//! - `durability` and `replication` start themselves again to be killed, or set how the process panics.

#![forbid(unsafe_code)]

mod classes;
mod cluster;
mod concurrent_updates;
mod continuous;
mod continuous_oracle;
mod continuous_survival;
#[cfg(target_os = "linux")]
mod copied_anew;
mod counted;
mod counted_ends;
mod damaged_store;
mod dealt_terms;
mod endpoint;
mod exists;
mod graph_sizes;
mod graph_store;
mod kept_solutions;
mod large_numbers;
mod last_tuples;
mod letter;
mod limits;
mod loads;
mod loads_onto_data;
mod nodes;
mod order_in_groups;
mod order_of_appended_texts;
mod parts;
mod prefixes;
mod repeated_terms;
mod request_memory;
mod services;
mod shared_out;
mod spill;
mod subscriptions;
mod threads;
mod times_of_triples;
mod update_deltas;
mod updates;
mod written_by_threads;
mod written_cluster;
