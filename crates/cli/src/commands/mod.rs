//! What does each command do?

pub(crate) mod bench;
pub(crate) mod demo;
pub(crate) mod dump;
pub(crate) mod generate;
pub(crate) mod load;
pub(crate) mod query;
pub(crate) mod serve;
pub(crate) mod stats;
