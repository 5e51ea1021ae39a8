//! What may queries put on disk when their memory does not suffice?

use std::path::PathBuf;

use clap::Args;
use jindou_engine::{Config, SpillLimits};

/// Temporary files of queries.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SpillArguments {
    /// Folder for what sorts, groups, distinct rows and joins cannot hold in memory; the files
    /// have no names there [default: the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) spill_dir: Option<PathBuf>,
    /// Most that one query may put there, as in 500MiB, and most that large documents for a server's
    /// graph store take there together; 0: nothing, a query then ends where its memory does
    /// [default: 16GiB]
    #[arg(long, value_name = "BYTES", value_parser = crate::values::parse_bytes)]
    pub(crate) spill_limit: Option<u64>,
}

impl SpillArguments {
    /// Puts what was asked for into the settings of a database.
    pub(crate) fn apply(&self, config: &mut Config) {
        let bytes = self.spill_limit.unwrap_or(config.spill.bytes);
        let directory = self.spill_dir.as_deref();
        let directory = directory.unwrap_or(&config.spill.directory);
        config.spill = SpillLimits::new(directory, bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_stays() {
        let mut config = Config::default();
        let before = config.spill.clone();
        SpillArguments::default().apply(&mut config);
        assert_eq!(config.spill, before);
        let asked = SpillArguments {
            spill_dir: Some("/spill".into()),
            spill_limit: Some(0),
        };
        asked.apply(&mut config);
        assert_eq!(config.spill, SpillLimits::new("/spill".as_ref(), 0));
    }
}
