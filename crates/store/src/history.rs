//! Who made the transactions of a store? Whether two copies have the same ones up to a number follows from that.
//!
//! Each time that a process begins to write a store by itself that is or was a copy of a cluster, a *run* begins: a
//! random number, and the first snapshot that it may make. A copy that applies the transactions of another one has the
//! runs of that. So where the last run of a copy is one of another's, both have the same transactions up to where the
//! next run of the other begins. `HISTORY` has the runs, and goes with each copy of the folder.

use jindou_model::SnapshotNumber;

use crate::StoreError;
use crate::directory::{Directory, StoreFile};
use crate::identity::random;
use crate::text_file::TextFile;

/// What it is called while it is written.
pub(crate) const UNFINISHED: &str = "HISTORY.new";
const FILE: TextFile = TextFile {
    name: "HISTORY",
    head: "jindou history 1",
};
/// The line of [`Begun`].
const BEGUN: &str = "begun ";
/// The line of what is given up.
const MOST: &str = "most ";
/// Runs that are kept: the last ones.
const MOST_RUNS: usize = 10_000;

/// Transactions that one process made one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// No other one has it. It is odd where the process led copies of the store: what it made then, clients were told of
    /// when all copies in sync had it.
    pub id: u64,
    /// The first snapshot that it made, or would have made.
    pub first: SnapshotNumber,
}

impl Begun {
    fn read(line: &str) -> Option<Self> {
        let (digest, number) = line.split_once(' ')?;
        Some(Self {
            number: SnapshotNumber(number.parse().ok()?),
            digest: u64::from_str_radix(digest, 16).ok()?,
        })
    }
}

/// The runs of a store, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    runs: Vec<Run>,
    begun: Option<Begun>,
    /// The last snapshot that the store is to have.
    most: Option<SnapshotNumber>,
}

/// What a store was before its first run. Who made that is not known, so a copy from before is known by what it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Begun {
    /// The snapshot.
    pub number: SnapshotNumber,
    /// A digest of what it holds.
    pub digest: u64,
}

impl History {
    /// Those of a store; `None` of one that has never been a copy of a cluster.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the file is not as it was written; what the operating system says.
    pub fn read(directory: &Directory) -> Result<Option<Self>, StoreError> {
        let Some(lines) = FILE.read(directory)? else {
            return Ok(None);
        };
        let mut lines = &lines[..];
        let mut stripped = |head: &str| {
            let (first, rest) = lines.split_first()?;
            let value = first.strip_prefix(head)?;
            lines = rest;
            Some(value)
        };
        let (most, begun) = (stripped(MOST), stripped(BEGUN));
        let most = most.map(|number| match number.parse() {
            Ok(number) => Ok(SnapshotNumber(number)),
            Err(_) => Err(FILE.corrupt(directory, "it does not say what is given up")),
        });
        let run = |line: &String| {
            let (id, first) = line.split_once(' ')?;
            Some(Run {
                id: u64::from_str_radix(id, 16).ok()?,
                first: SnapshotNumber(first.parse().ok()?),
            })
        };
        let runs: Option<Vec<Run>> = lines.iter().map(run).collect();
        let runs = runs.ok_or_else(|| FILE.corrupt(directory, "a line has no run"))?;
        let begun = begun.map(|line| {
            let begun = Begun::read(line);
            begun.ok_or_else(|| FILE.corrupt(directory, "it does not say how it began"))
        });
        Ok(Some(Self {
            runs,
            begun: begun.transpose()?,
            most: most.transpose()?,
        }))
    }

    /// Replaces what the store has. It is lasting when this returns.
    ///
    /// # Errors
    /// What the operating system says; what was there before stays.
    pub fn write(&self, directory: &Directory) -> Result<(), StoreError> {
        let most = self.most.map(|number| format!("{MOST}{}", number.0));
        let begun = self
            .begun
            .map(|begun| format!("{BEGUN}{:016x} {}", begun.digest, begun.number.0));
        let line = |run: &Run| format!("{:016x} {}", run.id, run.first.0);
        FILE.write(
            directory,
            (most.into_iter().chain(begun)).chain(self.runs.iter().map(line)),
        )
    }

    /// The same, and a run that begins with this snapshot, of a process that leads copies of the store or is alone with it.
    /// Runs that would begin later made nothing.
    #[must_use]
    pub fn with_run(&self, first: SnapshotNumber, leads: bool) -> Self {
        let made = self.runs.iter().filter(|run| run.first <= first);
        let mut runs: Vec<Run> = made.copied().collect();
        runs.drain(..(runs.len() + 1).saturating_sub(MOST_RUNS));
        runs.push(Run {
            id: random() & !1 | u64::from(leads),
            first,
        });
        Self { runs, ..*self }
    }

    /// The same, of a store that gives up all after this snapshot when it is opened next: nobody was told of it, and
    /// another copy, which goes on, does not have it.
    #[must_use]
    pub fn giving_up(&self, after: SnapshotNumber) -> Self {
        Self {
            most: Some(after),
            ..self.clone()
        }
    }

    /// Whether all after a snapshot was made by processes that led copies of the store.
    #[must_use]
    pub fn was_led_after(&self, number: SnapshotNumber) -> bool {
        let after = SnapshotNumber(number.0 + 1);
        let mut ends = self.runs.iter().skip(1).map(|run| run.first);
        let mut runs = self.runs.iter().map(|run| (run, ends.next()));
        let is_before = |end: Option<SnapshotNumber>| end.is_some_and(|end| end <= after);
        self.run_of(after).is_some() && runs.all(|(run, end)| is_before(end) || run.id & 1 == 1)
    }

    /// The same once that was given up.
    pub(crate) fn given_up(&self) -> Self {
        let most = self.most();
        let made = self.runs.iter().filter(|run| run.first <= most);
        Self {
            runs: made.copied().collect(),
            begun: self.begun,
            most: None,
        }
    }

    /// The last snapshot that the store is to have.
    pub(crate) fn most(&self) -> SnapshotNumber {
        self.most.unwrap_or(SnapshotNumber(u64::MAX))
    }

    /// The same, of a store that was this before its first run.
    #[must_use]
    pub fn with_begun(self, begun: Begun) -> Self {
        Self {
            begun: Some(begun),
            ..self
        }
    }

    /// What the store was before its first run, where that is known.
    #[must_use]
    pub fn begun(&self) -> Option<Begun> {
        self.begun
    }

    /// Its runs.
    #[must_use]
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The history of these runs.
    #[must_use]
    pub fn of(runs: Vec<Run>) -> Self {
        Self {
            runs,
            begun: None,
            most: None,
        }
    }

    /// The run that made a snapshot, if it is known.
    #[must_use]
    pub fn run_of(&self, number: SnapshotNumber) -> Option<Run> {
        let mut runs = self.runs.iter().rev();
        runs.find(|run| run.first <= number).copied()
    }

    /// True if a copy whose last transaction made the snapshot `number`, in the run `last`, has no transaction
    /// that a store of this history, which is at that snapshot or a later one, does not have.
    #[must_use]
    pub fn leads_from(&self, number: SnapshotNumber, last: Option<Run>) -> bool {
        self.run_of(number) == last
    }

    /// The file, if there is one.
    pub(crate) fn file(directory: &Directory) -> Result<Option<StoreFile>, StoreError> {
        FILE.file(directory)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_told_by_who_made_their_last_transaction() {
        let number = SnapshotNumber;
        let none = History::default();
        assert!(none.leads_from(number(5), None));
        let first = none.with_run(number(6), true);
        // A copy from before the run, and one that was written by nobody known.
        assert!(first.leads_from(number(5), none.run_of(number(5))));
        assert!(!first.leads_from(number(6), none.run_of(number(6))));
        let (one, other) = (
            first.with_run(number(9), true),
            first.with_run(number(9), true),
        );
        for at in 6..9 {
            assert!(one.leads_from(number(at), first.run_of(number(at))));
            assert!(one.leads_from(number(at), other.run_of(number(at))));
        }
        assert!(one.leads_from(number(10), one.run_of(number(10))));
        assert!(!one.leads_from(number(10), other.run_of(number(10))));
        // It went on in the run that the other one has ended.
        assert!(!one.leads_from(number(9), first.run_of(number(9))));
    }

    #[test]
    fn what_a_process_made_alone_is_told_from_what_one_made_that_led() {
        let number = SnapshotNumber;
        assert!(!History::default().was_led_after(number(3)));
        let led = History::default().with_run(number(5), true);
        assert!(led.was_led_after(number(5)) && !led.was_led_after(number(3)));
        let alone = led.with_run(number(8), false);
        assert!(!alone.was_led_after(number(5)) && !alone.was_led_after(number(9)));
        let again = alone.with_run(number(11), true);
        assert!(again.was_led_after(number(10)) && !again.was_led_after(number(9)));
    }

    #[test]
    fn what_is_given_up_goes_with_the_runs_that_made_it() {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("it is new");
        let number = SnapshotNumber;
        let first = History::default().with_run(number(5), true);
        let giving = first.with_run(number(9), true).giving_up(number(7));
        giving.write(&directory).expect("there is room");
        let read = History::read(&directory).expect("it is whole");
        let read = read.expect("it was written");
        assert_eq!((read.most(), read.given_up()), (number(7), first));
    }

    #[test]
    fn a_history_comes_back_as_it_was_written_and_is_bounded() {
        let folder = tempfile::tempdir().expect("there is room");
        let directory = Directory::create(&folder.path().join("store")).expect("it is new");
        let read = || History::read(&directory).expect("it is whole");
        assert_eq!(read(), None);
        let mut history = History::default();
        for first in 1..=MOST_RUNS as u64 + 3 {
            history = history.with_run(SnapshotNumber(first), true);
        }
        assert_eq!(history.runs().len(), MOST_RUNS);
        history.write(&directory).expect("there is room");
        assert_eq!(read(), Some(history.clone()));
        let begun = Begun {
            number: SnapshotNumber(7),
            digest: u64::MAX - 5,
        };
        let history = history.with_begun(begun);
        history.write(&directory).expect("there is room");
        assert_eq!(read(), Some(history.clone()));
        assert_eq!(
            history.with_run(SnapshotNumber(9), true).begun(),
            Some(begun)
        );
    }
}
