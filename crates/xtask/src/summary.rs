//! How many tests passed, failed and were skipped, by what `cargo test` printed?

/// A test that cannot run here prints this and why, and passes.
const SKIPPED: &str = "SKIPPED: ";
const RESULT: &str = "test result: ";

/// Sums over the lines of `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
    /// The tests that failed, as they are called.
    pub(crate) failures: Vec<String>,
    /// What was skipped and why, each once.
    pub(crate) skipped: Vec<String>,
}

impl Summary {
    /// Takes one line in.
    pub(crate) fn line(&mut self, line: &str) {
        if let Some(result) = line.strip_prefix(RESULT) {
            self.passed += count(result, "passed");
            self.failed += count(result, "failed");
            self.ignored += count(result, "ignored");
        } else if let Some(test) = line.strip_prefix("test ")
            && let Some(name) = test.strip_suffix(" ... FAILED")
        {
            self.failures.push(name.to_owned());
        } else if let Some(start) = line.find(SKIPPED) {
            self.skip(&line[start + SKIPPED.len()..]);
        }
    }

    /// Notes something that could not run here.
    pub(crate) fn skip(&mut self, what: &str) {
        let what = what.trim();
        if !self.skipped.iter().any(|known| known == what) {
            self.skipped.push(what.to_owned());
        }
    }
}

/// The number before a word, in `ok. 3 passed; 0 failed; 1 ignored; ...`; 0 if it is not there.
fn count(result: &str, word: &str) -> u64 {
    let mut before = None;
    for part in result
        .split([' ', ';', '.'])
        .filter(|part| !part.is_empty())
    {
        if part == word {
            return before.unwrap_or(0);
        }
        before = part.parse().ok();
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_several_programs_add_up() {
        let mut summary = Summary::default();
        for line in [
            "running 3 tests",
            "test a ... ok",
            "test b::c ... FAILED",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "test result: FAILED. 10 passed; 2 failed; 0 ignored; 0 measured; 4 filtered out; \
             finished in 1.50s",
            "",
        ] {
            summary.line(line);
        }
        assert_eq!(
            (summary.passed, summary.failed, summary.ignored),
            (13, 2, 1)
        );
        assert_eq!(summary.failures, ["b::c"]);
    }

    #[test]
    fn skips_are_kept_once_each() {
        let mut summary = Summary::default();
        summary.line("SKIPPED: a (no data)");
        summary.line("test b ... SKIPPED: b (no device)");
        summary.line("SKIPPED: a (no data)");
        assert_eq!(summary.skipped, ["a (no data)", "b (no device)"]);
        assert_eq!(summary.passed, 0);
    }
}
