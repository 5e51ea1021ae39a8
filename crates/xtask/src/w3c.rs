//! Does docs/w3c.md say what the W3C suites recorded when they ran?
//!
//! The tests of `jindou-conformance` write the counts of each suite to `target/w3c`; the table is
//! made of those files and of nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::cargo;
use crate::summary::Summary;

const PAGE: &str = "docs/w3c.md";

/// The test program that records suites.
const PROGRAM: &str = "published";

const HEAD: &str = "\
# W3C test suites

What came of the W3C's suites when they last ran here. `cargo xtask w3c` makes this page of what the
tests in `crates/conformance` record, and `cargo xtask test` fails where it says anything else. A test
is skipped only for a reason that is given below.
";

/// What came of one suite under one heading.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: BTreeMap<String, u64>,
    notes: BTreeSet<String>,
}

/// All that was recorded.
#[derive(Debug, Default, PartialEq, Eq)]
struct Records {
    /// By heading and suite.
    counts: BTreeMap<(String, String), Counts>,
    /// The suites that there are.
    expected: BTreeSet<String>,
}

/// Removes what earlier runs recorded.
pub(crate) fn forget(root: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder(root)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).context("what the W3C suites recorded cannot be removed")
        }
        _ => Ok(()),
    }
}

/// Runs the suites and makes the page of what they record. Returns whether all passed.
pub(crate) fn renew(root: &Path) -> anyhow::Result<bool> {
    forget(root)?;
    let mut command = cargo(root);
    command.args(["test", "-p", "jindou-conformance", "--test", PROGRAM]);
    let passed = command.status().context("cannot start cargo")?.success();
    let Some(text) = page(root)? else {
        bail!("no suite has recorded anything: is the test data at ../shared/data/w3c?");
    };
    let path = root.join(PAGE);
    fs::create_dir_all(path.parent().context("the page lies in a folder")?)?;
    fs::write(&path, text).with_context(|| format!("{PAGE} cannot be written"))?;
    println!("wrote {PAGE}");
    Ok(passed)
}

/// Whether the page says what was recorded since [`forget`].
pub(crate) fn check(root: &Path, summary: &mut Summary) -> anyhow::Result<bool> {
    let Some(wanted) = page(root)? else {
        let what = format!("{PAGE} (the W3C suites did not run)");
        summary.skip(&what);
        return Ok(true);
    };
    let found = match fs::read_to_string(root.join(PAGE)) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.with_context(|| format!("{PAGE} cannot be read"))?,
    };
    let Some(difference) = difference(&found, &wanted) else {
        return Ok(true);
    };
    println!("{PAGE} does not say what the suites recorded; `cargo xtask w3c` renews it");
    println!("{difference}");
    Ok(false)
}

/// The first line in which two texts differ.
fn difference(found: &str, wanted: &str) -> Option<String> {
    if found == wanted {
        return None;
    }
    let (mut found, mut wanted) = (found.lines(), wanted.lines());
    let mut number = 0;
    loop {
        number += 1;
        match (found.next(), wanted.next()) {
            (None, None) => return Some("the ends of lines differ".to_owned()),
            (left, right) if left != right => {
                let text = |line: Option<&str>| line.unwrap_or("(nothing)").to_owned();
                let (left, right) = (text(left), text(right));
                return Some(format!("line {number} is\n{left}\nand should be\n{right}"));
            }
            _ => {}
        }
    }
}

fn folder(root: &Path) -> PathBuf {
    root.join("target/w3c")
}

/// The page, or nothing if the suites did not run.
fn page(root: &Path) -> anyhow::Result<Option<String>> {
    let entries = match fs::read_dir(folder(root)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries.context("what the W3C suites recorded cannot be read")?,
    };
    let mut records = Records::default();
    for entry in entries {
        let path = entry?.path();
        let text = fs::read_to_string(&path)?;
        records
            .add(&text)
            .with_context(|| format!("{} is malformed", path.display()))?;
    }
    records.complete()?;
    Ok(Some(records.page()))
}

impl Records {
    /// Takes one file in.
    fn add(&mut self, text: &str) -> anyhow::Result<()> {
        let (mut group, mut suite, mut counts) = (None, None, Counts::default());
        for line in text.lines() {
            let (name, value) = line.split_once('\t').context("a line of one field")?;
            match name {
                "expected" => drop(self.expected.insert(value.to_owned())),
                "group" => group = Some(value.to_owned()),
                "suite" => suite = Some(value.to_owned()),
                "passed" => counts.passed = value.parse()?,
                "failed" => counts.failed = value.parse()?,
                "skipped" => {
                    let (count, reason) = value.split_once('\t').context("a skip says why")?;
                    counts.skipped.insert(reason.to_owned(), count.parse()?);
                }
                "note" => drop(counts.notes.insert(value.to_owned())),
                other => bail!("the field {other} is not known"),
            }
        }
        match (group, suite) {
            (Some(group), Some(suite)) => drop(self.counts.insert((group, suite), counts)),
            (None, None) if counts == Counts::default() => {}
            _ => bail!("counts without a name"),
        }
        Ok(())
    }

    /// Refuses records that lack a suite.
    fn complete(&self) -> anyhow::Result<()> {
        let recorded: BTreeSet<&String> = self.counts.keys().map(|(_, suite)| suite).collect();
        let absent: Vec<&str> = self
            .expected
            .iter()
            .filter(|suite| !recorded.contains(suite))
            .map(String::as_str)
            .collect();
        if self.expected.is_empty() {
            bail!("the suites were not listed");
        }
        if !absent.is_empty() {
            bail!("no test has recorded {}", absent.join(", "));
        }
        Ok(())
    }

    fn page(&self) -> String {
        let mut groups: BTreeMap<&str, Counts> = BTreeMap::new();
        for ((group, _), counts) in &self.counts {
            groups.entry(group).or_default().merge(counts);
        }
        let mut page = HEAD.to_owned();
        page.push_str("\n| | passed | total | skipped | failed |\n|---|---:|---:|---:|---:|\n");
        for (group, counts) in &groups {
            line(&mut page, group, counts);
        }
        if groups.values().any(|counts| !counts.skipped.is_empty()) {
            page.push_str("\n## Skipped\n\n| | tests | reason |\n|---|---:|---|\n");
        }
        for (group, counts) in &groups {
            for (reason, count) in &counts.skipped {
                let reason = reason.replace('|', "\\|");
                writeln!(page, "| {group} | {count} | {reason} |").expect("a String takes all");
            }
        }
        if groups.values().any(|counts| !counts.notes.is_empty()) {
            page.push_str("\n## Notes\n\n");
        }
        for (group, counts) in &groups {
            for note in &counts.notes {
                writeln!(page, "- {group}: {note}.").expect("a String takes all");
            }
        }
        page.push_str("\n## Suite by suite\n");
        let mut last = None;
        for ((group, suite), counts) in &self.counts {
            if last != Some(group) {
                let columns = "passed | total | skipped | failed |\n|---|---:|---:|---:|---:|";
                writeln!(page, "\n### {group}\n\n| suite | {columns}").expect("a String takes all");
                last = Some(group);
            }
            line(&mut page, suite, counts);
        }
        page
    }
}

fn line(page: &mut String, name: &str, counts: &Counts) {
    let skipped: u64 = counts.skipped.values().sum();
    let (passed, failed) = (counts.passed, counts.failed);
    let total = passed + failed + skipped;
    writeln!(
        page,
        "| {name} | {passed} | {total} | {skipped} | {failed} |"
    )
    .expect("a String takes all");
}

impl Counts {
    fn merge(&mut self, other: &Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        for (reason, count) in &other.skipped {
            *self.skipped.entry(reason.clone()).or_default() += count;
        }
        self.notes.extend(other.notes.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "group\tQueries\nsuite\ta/one\npassed\t3\nfailed\t1\nskipped\t2\tno | luck\n";
    const TWO: &str = "group\tQueries\nsuite\ta/two\npassed\t4\nfailed\t0\nskipped\t1\tno | luck\n\
                       note\ta test is repaired\n";

    fn records(texts: &[&str]) -> Records {
        let mut records = Records::default();
        for text in texts {
            records.add(text).expect("it is well formed");
        }
        records
    }

    #[test]
    fn the_page_sums_up_groups_and_gives_each_reason_and_suite() {
        let page = records(&[ONE, TWO]).page();
        for expected in [
            "\n| Queries | 7 | 11 | 3 | 1 |\n",
            "\n| Queries | 3 | no \\| luck |\n",
            "\n- Queries: a test is repaired.\n",
            "\n### Queries\n",
            "\n| a/one | 3 | 6 | 2 | 1 |\n| a/two | 4 | 5 | 1 | 0 |\n",
        ] {
            assert!(page.contains(expected), "no {expected:?} in\n{page}");
        }
        assert_eq!(page, records(&[TWO, ONE]).page(), "in any order");
    }

    #[test]
    fn a_suite_that_nothing_recorded_is_named() {
        let listed = "expected\ta/one\nexpected\ta/two\n";
        assert!(records(&[ONE, TWO, listed]).complete().is_ok());
        let error = records(&[ONE, listed]).complete().expect_err("one lacks");
        assert_eq!(error.to_string(), "no test has recorded a/two");
        assert!(
            records(&[ONE, TWO]).complete().is_err(),
            "nothing is listed"
        );
    }

    #[test]
    fn files_that_are_malformed_are_refused() {
        for text in [
            "passed\t3\n",
            "group\ta\n",
            "mood\tgood\n",
            "skipped\t3\n",
            "x\n",
        ] {
            assert!(Records::default().add(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_page_that_says_something_else_fails_and_one_of_suites_that_did_not_run_is_skipped() {
        let root = std::env::temp_dir().join(format!("jindou-w3c-{}", std::process::id()));
        fs::create_dir_all(root.join("docs")).expect("a folder is made");
        let mut summary = Summary::default();
        assert!(check(&root, &mut summary).expect("nothing is there"));
        assert_eq!(summary.skipped.len(), 1);
        fs::create_dir_all(folder(&root)).expect("a folder is made");
        fs::write(folder(&root).join("suites.tsv"), "expected\ta/one\n").expect("written");
        assert!(check(&root, &mut summary).is_err(), "one is not recorded");
        fs::write(folder(&root).join("one.tsv"), ONE).expect("written");
        assert!(!check(&root, &mut summary).expect("there is no page"));
        let right = page(&root).expect("all is there").expect("they ran");
        for (text, holds) in [(right.replace("| 3 |", "| 4 |"), false), (right, true)] {
            fs::write(root.join(PAGE), text).expect("written");
            assert_eq!(check(&root, &mut summary).expect("all is there"), holds);
        }
        forget(&root).expect("it can be removed");
        assert!(page(&root).expect("nothing is there").is_none());
        forget(&root).expect("nothing is there");
        fs::remove_dir_all(root).expect("it is ours");
    }

    #[test]
    fn the_first_line_that_differs_is_told() {
        assert_eq!(difference("a\nb\n", "a\nb\n"), None);
        let told = difference("a\nb\n", "a\nc\n").expect("they differ");
        assert_eq!(told, "line 2 is\nb\nand should be\nc");
        assert!(
            difference("a\n", "a\nb\n")
                .expect("they differ")
                .contains("(nothing)")
        );
        assert!(difference("a", "a\n").is_some());
    }
}
