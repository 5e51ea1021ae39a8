//! Does the engine answer as another engine does, as the definitions say, or as itself where the same is done another
//! way? `cargo test -p jindou-conformance --test oracle differential::` runs those of one file.

#![forbid(unsafe_code)]

mod differential;
mod dump;
mod elsewhere;
mod federation;
mod forms;
mod functions;
mod graph_forms;
mod nested;
mod nodes;
mod paths;
mod plan_wire;
mod processes;
mod shards;
mod unready;
mod update_concurrent;
mod update_differential;
