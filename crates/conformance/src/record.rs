//! Where do the counts of a W3C suite go, so that docs/w3c.md can be made of them?
//!
//! Each suite writes one small file to `target/w3c`; `cargo xtask w3c` runs the suites and makes
//! the table of the files, and `cargo xtask test` compares the table with the one in the tree.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What came of one suite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Tests whose outcome was the expected one.
    pub passed: usize,
    /// Tests whose outcome was another one.
    pub failed: usize,
    /// Tests that were not run or asked for something that is refused by name: how many for each
    /// reason.
    pub skipped: BTreeMap<String, usize>,
    /// What has to be known of tests that passed: each with its reason.
    pub notes: BTreeSet<String>,
}

impl Counts {
    /// Counts one more test that was skipped for `reason`.
    pub fn skip(&mut self, reason: impl Into<String>) {
        *self.skipped.entry(reason.into()).or_default() += 1;
    }
}

/// Records the counts of a suite for the table, over what an earlier run recorded of it.
///
/// `group` is the heading in the table (such as `SPARQL 1.1 update evaluation`), `suite` the path of
/// the suite in the W3C's repository (such as `sparql11/basic-update`); a suite may be in several
/// groups, with different tests. Call it before asserting that nothing failed, so that a failure is
/// in the table as well.
///
/// # Panics
/// When the file cannot be written: a table that lacks a suite would be wrong.
pub fn record(group: &str, suite: &str, counts: &Counts) {
    write(&folder(), group, suite, counts)
        .unwrap_or_else(|error| panic!("the counts of {suite} cannot be recorded: {error}"));
}

/// Records which suites there are, so that a table that lacks one is known to.
///
/// # Panics
/// When the file cannot be written.
pub fn record_suites(suites: &BTreeSet<String>) {
    let mut text = String::new();
    for suite in suites {
        text.push_str(&format!("expected\t{suite}\n"));
    }
    let folder = folder();
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.join("suites.tsv"), text))
        .unwrap_or_else(|error| panic!("the list of suites cannot be recorded: {error}"));
}

/// The folder of the counts.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/w3c")
}

/// Lines of fields parted by tabs: `group`, `suite`, `passed` and `failed` with their values,
/// `skipped` with a number and its reason, and `note` with its text.
fn write(folder: &Path, group: &str, suite: &str, counts: &Counts) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut text = format!(
        "group\t{group}\nsuite\t{suite}\npassed\t{}\nfailed\t{}\n",
        counts.passed, counts.failed
    );
    let plain = |text: &str| text.replace(['\n', '\t'], " ");
    for (reason, count) in &counts.skipped {
        text.push_str(&format!("skipped\t{count}\t{}\n", plain(reason)));
    }
    for note in &counts.notes {
        text.push_str(&format!("note\t{}\n", plain(note)));
    }
    let name = format!("{group}--{suite}.tsv").replace(['/', ' '], "-");
    fs::write(folder.join(name), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_holds_the_counts_and_each_reason_on_a_line() {
        let folder = std::env::temp_dir().join(format!("jindou-record-{}", std::process::id()));
        let mut counts = Counts {
            passed: 3,
            failed: 1,
            ..Counts::default()
        };
        counts.skip("needs\tan entailment\nregime");
        counts.skip("needs\tan entailment\nregime");
        counts.notes.insert("a dot was missing".to_owned());
        write(&folder, "All queries", "sparql11/bind", &counts).unwrap();
        let text = fs::read_to_string(folder.join("All-queries--sparql11-bind.tsv")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            text,
            "group\tAll queries\nsuite\tsparql11/bind\npassed\t3\nfailed\t1\n\
             skipped\t2\tneeds an entailment regime\nnote\ta dot was missing\n"
        );
    }
}
