//! What does each command do?

pub(crate) mod backup;
pub(crate) mod bench;
mod bench_streams;
pub(crate) mod cluster;
pub(crate) mod compact;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod generate;
pub(crate) mod hash_password;
pub(crate) mod health;
pub(crate) mod load;
pub(crate) mod manual;
pub(crate) mod prefixes;
pub(crate) mod proxy;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod stream;
pub(crate) mod update;
pub(crate) mod verify;
