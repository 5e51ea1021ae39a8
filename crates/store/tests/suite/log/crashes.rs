//! Random appends, syncs, crashes and faults beside a list: nothing acknowledged is ever lost.

use std::collections::BTreeMap;

use jindou_store::StoreError;
use jindou_store::log::{Log, Ticket};
use proptest::prelude::*;

use super::disk::{Disk, Fault, Random};
use super::{Groups, create, create_unsynced, open, read};

#[derive(Clone, Debug)]
enum Step {
    Append(Vec<u16>),
    Abandon(Vec<u16>),
    Sync,
    NextFile,
    Checkpoint,
    Close,
    Kill,
    PowerLoss(u64),
    Arm(u64, Fault, u64),
}

fn sizes() -> impl Strategy<Value = Vec<u16>> {
    let size = prop_oneof![6 => 0..60_u16, 2 => 0..900_u16, 1 => 0..5000_u16];
    prop_oneof![3 => prop::collection::vec(size.clone(), 1), 1 => prop::collection::vec(size, 1..5)]
}

fn fault() -> impl Strategy<Value = Fault> {
    let part = prop_oneof![Just(0_u8), Just(255), any::<u8>()];
    prop_oneof![
        part.clone().prop_map(Fault::Full),
        part.clone().prop_map(Fault::Write),
        Just(Fault::Sync),
        part.prop_map(Fault::Die),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => sizes().prop_map(Step::Append),
        2 => sizes().prop_map(Step::Abandon),
        6 => Just(Step::Sync),
        1 => Just(Step::NextFile),
        1 => Just(Step::Checkpoint),
        1 => Just(Step::Close),
        2 => Just(Step::Kill),
        3 => any::<u64>().prop_map(Step::PowerLoss),
        2 => (0..12_u64, fault(), any::<u64>()).prop_map(|(n, fault, seed)| Step::Arm(n, fault, seed)),
    ];
    prop::collection::vec(step, 1..60)
}

/// A log, and what must and may be in it.
struct Beside {
    disk: Disk,
    log: Option<Log>,
    first: u64,
    /// From file `first` on.
    groups: Groups,
    acknowledged: usize,
    ticket: Option<Ticket>,
    /// A group whose commit failed as the process died: it may be there.
    undecided: Option<Vec<Vec<u8>>>,
    random: Random,
}

impl Beside {
    fn new() -> Self {
        let disk = Disk::default();
        let log = Some(create(&disk));
        Self {
            disk,
            log,
            first: 1,
            groups: Vec::new(),
            acknowledged: 0,
            ticket: None,
            undecided: None,
            random: Random(1),
        }
    }

    fn payloads(&mut self, sizes: &[u16]) -> Vec<Vec<u8>> {
        let random = &mut self.random;
        sizes
            .iter()
            // Zeros too: they must not be taken for space that was never written.
            .map(|&size| match random.below(4) {
                0 => vec![0; usize::from(size)],
                _ => (0..size).map(|_| random.next() as u8).collect(),
            })
            .collect()
    }

    fn step(&mut self, step: &Step) {
        let Some(log) = self.log.take() else {
            return self.reopen(matches!(step, Step::PowerLoss(_)).then_some(step));
        };
        let failed = match step {
            Step::Append(sizes) => self.append(&log, sizes),
            Step::Abandon(sizes) => self.abandon(&log, sizes),
            Step::Sync => self.sync(&log),
            Step::NextFile => log.start_next_file().map(drop),
            Step::Checkpoint => self.checkpoint(&log),
            Step::Close => {
                let closed = log.close();
                if closed.is_ok() {
                    self.acknowledged = self.groups.len();
                }
                return self.reopen(None);
            }
            Step::Kill | Step::PowerLoss(_) => {
                drop(log);
                return self.reopen(Some(step));
            }
            Step::Arm(after, fault, seed) => {
                self.disk.arm(*after, *fault, *seed);
                Ok(())
            }
        };
        match failed {
            Ok(()) | Err(StoreError::DiskFull { .. }) => self.log = Some(log),
            Err(StoreError::LogFailed { .. }) => {
                // It stays failed.
                assert!(matches!(
                    log.append(b"x"),
                    Err(StoreError::LogFailed { .. })
                ));
                assert!(log.start_next_file().is_err());
                // What a sync for another reason made durable before is acknowledged.
                if let Some(ticket) = self.ticket
                    && log.sync(ticket).is_ok()
                {
                    self.acknowledged = self.groups.len();
                }
            }
            // The removal of files that a checkpoint covers is only tried.
            Err(StoreError::Io { .. }) if matches!(step, Step::Checkpoint) => self.log = Some(log),
            Err(other) => panic!("{other}"),
        }
    }

    fn append(&mut self, log: &Log, sizes: &[u16]) -> Result<(), StoreError> {
        let payloads = self.payloads(sizes);
        let (last, parts) = payloads.split_last().unwrap();
        let appended = log
            .group()
            .and_then(|group| {
                parts
                    .iter()
                    .try_fold(group, |group, part| group.append(part))
            })
            .and_then(|group| group.commit(last));
        match appended {
            Ok(ticket) => {
                self.ticket = Some(ticket);
                self.groups.push(payloads);
                Ok(())
            }
            Err(error) => {
                if matches!(error, StoreError::LogFailed { .. }) {
                    self.undecided = Some(payloads);
                }
                Err(error)
            }
        }
    }

    fn abandon(&mut self, log: &Log, sizes: &[u16]) -> Result<(), StoreError> {
        let payloads = self.payloads(sizes);
        let group = log.group()?;
        let group = payloads
            .iter()
            .try_fold(group, |group, part| group.append(part))?;
        drop(group);
        Ok(())
    }

    fn sync(&mut self, log: &Log) -> Result<(), StoreError> {
        if let Some(ticket) = self.ticket {
            log.sync(ticket)?;
            self.acknowledged = self.groups.len();
        }
        Ok(())
    }

    fn checkpoint(&mut self, log: &Log) -> Result<(), StoreError> {
        let next = log.start_next_file()?;
        // The checkpoint itself would now be written, synced, and name `next`.
        self.first = next;
        self.groups.clear();
        self.acknowledged = 0;
        self.ticket = None;
        log.remove_before(next)
    }

    fn reopen(&mut self, how: Option<&Step>) {
        self.disk = match how {
            Some(Step::PowerLoss(seed)) => self.disk.after_power_loss(*seed),
            Some(Step::Kill) => self.disk.after_kill(),
            // The same process; what is armed stays armed, unless all is dead.
            _ => self.disk.after_failure(),
        };
        let shown = read(&self.disk, self.first);
        let (log, recovered, groups) = match open(&self.disk, self.first) {
            Ok(opened) => opened,
            // A fault hit the opening; nothing may be lost by that.
            Err(
                StoreError::Io { .. } | StoreError::LogFailed { .. } | StoreError::DiskFull { .. },
            ) if self.disk.had_fault() => {
                return;
            }
            Err(other) => panic!("{other}"),
        };
        // Of a disk that was not altered for it.
        let (read, shown) = shown.expect("what can be opened can be read");
        assert_eq!((read, &shown), (recovered, &groups));
        let mut possible = self.groups.clone();
        possible.extend(self.undecided.take());
        assert!(
            groups.len() >= self.acknowledged,
            "{} of {} acknowledged groups are there",
            groups.len(),
            self.acknowledged
        );
        assert!(
            possible.starts_with(&groups),
            "some other group is there: {groups:?} of {possible:?}"
        );
        if !matches!(how, Some(Step::PowerLoss(_))) {
            assert!(groups.len() >= self.groups.len(), "a kill loses nothing");
        }
        // Whatever was found once is acknowledged by that.
        self.acknowledged = groups.len();
        self.groups = groups;
        self.ticket = None;
        assert!(recovered.bytes <= log.bytes());
        self.log = Some(log);
    }
}

fn run(steps: &[Step]) {
    let mut beside = Beside::new();
    for step in steps {
        beside.step(step);
    }
    beside.step(&Step::Kill);
    beside.step(&Step::PowerLoss(7));
    beside.step(&Step::Kill);
}

proptest! {
    #![proptest_config(crate::cases(1500))]

    #[test]
    fn without_syncs_a_stopped_machine_leaves_a_beginning(sizes in prop::collection::vec(0..900_usize, 1..40), seed in any::<u64>()) {
        let disk = Disk::default();
        let log = create_unsynced(&disk);
        let mut groups = Groups::new();
        let mut in_last_file = 0;
        for size in sizes {
            let files = log.files().len();
            groups.push(vec![vec![size as u8; size], vec![1]]);
            let group = log.group().unwrap().append(&groups[groups.len() - 1][0]).unwrap();
            log.sync(group.commit(&[1]).unwrap()).unwrap();
            in_last_file = if log.files().len() > files { 1 } else { in_last_file + 1 };
        }
        prop_assert_eq!(&open(&disk.after_kill(), 1).unwrap().2, &groups);
        let (_, _, found) = open(&disk.after_power_loss(seed), 1).unwrap();
        prop_assert!(groups.starts_with(&found));
        prop_assert!(found.len() >= groups.len() - in_last_file);
    }

    #[test]
    fn what_was_acknowledged_is_there_after_any_crash(steps in steps()) {
        run(&steps);
    }
}

#[test]
fn a_checkpoint_removes_whole_files_and_what_is_behind_it_stays() {
    let disk = Disk::default();
    let log = create(&disk);
    let mut starts = BTreeMap::new();
    for number in 0..40_u8 {
        let ticket = log.append(&[number; 300]).unwrap();
        log.sync(ticket).unwrap();
        if number % 10 == 9 {
            starts.insert(log.start_next_file().unwrap(), number + 1);
        }
    }
    assert_eq!(
        log.start_next_file().unwrap(),
        *starts.keys().last().unwrap()
    );
    for (&file, &start) in &starts {
        let before = log.bytes();
        log.remove_before(file).unwrap();
        assert_eq!(log.files()[0].number, file);
        assert!(log.bytes() < before);
        let (_, _, groups) = open(&disk.after_kill(), file).unwrap();
        let expected: Groups = (start..40).map(|n| vec![vec![n; 300]]).collect();
        assert_eq!(groups, expected);
    }
}

/// The length of the only file.
fn length(disk: &Disk) -> usize {
    let contents = disk.contents();
    assert_eq!(contents.len(), 1);
    contents[0].1.len()
}

#[test]
fn what_a_refused_group_took_of_a_full_disk_is_given_back() {
    for (seed, after) in (0..12).enumerate() {
        let disk = Disk::default();
        let log = create(&disk);
        let kept = b"before".to_vec();
        log.sync(log.append(&kept).unwrap()).unwrap();
        let before = length(&disk);
        let big = vec![7; 80 << 10];
        disk.arm(after, Fault::Full(100), seed as u64);
        // Of several records, so that some are whole and synced, and the file has grown by steps.
        let refused = (0..4).try_fold(log.group().unwrap(), |group, _| group.append(&big));
        let refused = refused.and_then(|group| group.commit(&big).map(drop));
        assert_eq!(refused.is_err(), disk.had_fault(), "after {after} changes");
        let Err(error) = refused else { continue };
        assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
        assert_eq!(length(&disk), before, "after {after} changes");
        for seed in 0..20 {
            let found = open(&disk.after_power_loss(seed), 1);
            let (_, _, groups) = found.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
            assert_eq!(groups, [[kept.clone()]]);
        }
        // It takes more, and what it took is told from what was cut off.
        let later = b"later".to_vec();
        log.sync(log.append(&later).unwrap()).unwrap();
        let (_, groups) = read(&disk.after_kill(), 1).unwrap();
        assert_eq!(groups, [[kept], [later]]);
    }
}
