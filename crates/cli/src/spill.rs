//! What may queries put on disk when their memory does not suffice?

use std::io;
use std::path::PathBuf;

use anyhow::{Context, anyhow};
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
    ///
    /// # Errors
    /// A folder that was named and in which no file can be made: the first query or document that needs one
    /// would find that.
    pub(crate) fn apply(&self, config: &mut Config) -> anyhow::Result<()> {
        let bytes = self.spill_limit.unwrap_or(config.spill.bytes);
        let directory = self.spill_dir.as_deref();
        let directory = directory.unwrap_or(&config.spill.directory);
        config.spill = SpillLimits::new(directory, bytes);
        if let (Some(named), Some(error)) = (&self.spill_dir, refusal(&config.spill)) {
            let reason =
                anyhow!("no file can be made there: {error}; --spill-limit 0 does without");
            return Err(reason).with_context(|| format!("--spill-dir {}", named.display()));
        }
        Ok(())
    }

    /// Says so if none can be made in the folder that nobody named.
    pub(crate) fn warn_of_default(&self, config: &Config) {
        if let (None, Some(error)) = (&self.spill_dir, refusal(&config.spill)) {
            let folder = config.spill.directory.display();
            note!(
                "warning: {folder}: no temporary file can be made there: {error}; --spill-dir names another folder"
            );
        }
    }
}

/// Why there is no temporary file where there may be some.
fn refusal(spill: &SpillLimits) -> Option<io::Error> {
    if spill.bytes == 0 {
        return None;
    }
    tempfile::tempfile_in(&spill.directory).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_asked_for_stays() {
        let mut config = Config::default();
        let before = config.spill.clone();
        let applied = SpillArguments::default().apply(&mut config);
        assert!(applied.is_ok());
        assert_eq!(config.spill, before);
        let asked = SpillArguments {
            spill_dir: Some("/spill".into()),
            spill_limit: Some(0),
        };
        assert!(asked.apply(&mut config).is_ok(), "nothing is put there");
        assert_eq!(config.spill, SpillLimits::new("/spill".as_ref(), 0));
    }

    #[test]
    fn a_folder_in_which_no_file_can_be_made_is_refused_with_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let (file, absent) = (folder.path().join("file"), folder.path().join("absent"));
        std::fs::write(&file, "").unwrap();
        let apply = |folder: &std::path::Path| {
            let asked = SpillArguments {
                spill_dir: Some(folder.to_owned()),
                spill_limit: None,
            };
            asked.apply(&mut Config::default())
        };
        assert!(apply(folder.path()).is_ok());
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "the file that was there");
        for wrong in [&file, &absent] {
            let said = format!("{:#}", apply(wrong).unwrap_err());
            let begin = format!(
                "--spill-dir {}: no file can be made there: ",
                wrong.display()
            );
            assert!(said.starts_with(&begin), "{said}");
        }
    }
}
