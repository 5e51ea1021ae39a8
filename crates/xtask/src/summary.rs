//! How many tests passed, failed and were skipped, by what `cargo test` printed?

/// A test that cannot run here prints this and why, and passes.
const SKIPPED: &str = "SKIPPED: ";
const RESULT: &str = "test result: ";
/// What a program of tests prints before the output of tests that passed, and of those that failed.
const SUCCESSES: &str = "successes:";
const FAILURES: &str = "failures:";
/// What comes before the output of a test.
const OUTPUT_OF: &str = "---- ";
/// So many lines of what a failing test prints are repeated: it says first what is wrong, and a
/// backtrace may be long.
const LINES_OF_A_TEST: usize = 40;

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
    /// The first lines of what each failing test printed.
    pub(crate) output: Vec<String>,
    part: Part,
    /// Lines of the failing test that is read.
    lines: usize,
}

/// What part of the output of a program is read.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
enum Part {
    #[default]
    Tests,
    Successes,
    Failures,
}

impl Summary {
    /// Takes one line in; false if it is of a test that passed, and nobody needs to see it.
    pub(crate) fn line(&mut self, line: &str) -> bool {
        self.part = match line {
            SUCCESSES => Part::Successes,
            FAILURES => Part::Failures,
            _ if line.starts_with(RESULT) => Part::Tests,
            _ => self.part,
        };
        if self.part == Part::Failures {
            if line.starts_with(OUTPUT_OF) {
                self.lines = 0;
            }
            self.lines += 1;
            if self.lines <= LINES_OF_A_TEST {
                self.output.push(line.to_owned());
            }
        }
        self.count(line);
        self.part != Part::Successes
    }

    fn count(&mut self, line: &str) {
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

    /// Whether something was checked, and all of it held: a run that skips everything says nothing.
    pub(crate) fn held(&self) -> bool {
        self.passed > 0 && self.failed == 0
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
    fn what_failing_tests_print_is_shown_and_kept_for_the_end() {
        let mut summary = Summary::default();
        let mut shown = Vec::new();
        let long: Vec<String> = (0..100).map(|number| format!("  at {number}")).collect();
        let before = [
            "test a ... ok",
            "test b ... FAILED",
            "successes:",
            "---- a stdout ----",
            "SKIPPED: half of a (no data)",
            "thread panicked",
            "successes:",
            "    a",
            "failures:",
            "---- b stdout ----",
            "it is wrong",
        ];
        let after = [
            "failures:",
            "    b",
            "test result: FAILED. 1 passed; 1 failed",
        ];
        let long = long.iter().map(String::as_str);
        for line in before.into_iter().chain(long).chain(after) {
            if summary.line(line) {
                shown.push(line.to_owned());
            }
        }
        assert!(shown.contains(&"it is wrong".to_owned()), "{shown:?}");
        assert!(!shown.contains(&"thread panicked".to_owned()), "{shown:?}");
        assert!(summary.output.contains(&"it is wrong".to_owned()));
        assert!(!summary.output.contains(&"thread panicked".to_owned()));
        assert!(summary.output.len() < 50, "{}", summary.output.len());
        assert_eq!(summary.skipped, ["half of a (no data)"]);
        assert_eq!((summary.passed, summary.failed), (1, 1));
    }

    #[test]
    fn nothing_holds_where_everything_was_skipped() {
        let mut summary = Summary::default();
        summary.skip("all of it");
        assert!(!summary.held());
        summary.passed = 1;
        assert!(summary.held());
        summary.failed = 1;
        assert!(!summary.held());
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
