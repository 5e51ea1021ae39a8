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
    /// Most that one query may put there, as in 500MiB; 0: nothing, a query then ends where its
    /// memory does [default: 16GiB]
    #[arg(long, value_name = "BYTES", value_parser = parse_limit)]
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

/// A number of bytes, or one with a unit: `0`, `4096`, `512MiB`, `8G`.
fn parse_limit(text: &str) -> Result<u64, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err("not a unit of bytes; give KiB, MiB, GiB, kB, MB or GB".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "not a number of bytes".to_owned())?;
    number
        .checked_mul(unit)
        .ok_or_else(|| "give fewer than 2^64 bytes".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_number_of_bytes_with_or_without_a_unit() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("2 GiB", 2 << 30),
            ("3MB", 3_000_000),
            ("5m", 5 << 20),
        ] {
            assert_eq!(parse_limit(text), Ok(bytes), "{text}");
        }
        for wrong in ["", "x", "-1", "1.5", "1q", "99999999999TiB"] {
            assert!(parse_limit(wrong).is_err(), "{wrong}");
        }
    }

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
