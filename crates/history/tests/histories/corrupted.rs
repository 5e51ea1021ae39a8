//! Does any serial history pass, and no history of which one read was changed?

use jindou_history::workload::Mix;
use jindou_history::{Kind, Level, Operation, Random, Value};
use proptest::prelude::*;

use crate::simulated::{Fault, Game, Played, play};
use crate::{LEVELS, report, report_played};

/// One operation at a time, each heard of.
fn serial(seed: u64, mix: Mix) -> Played {
    let mut game = Game::new(seed, Fault::Nothing);
    game.mix = mix;
    game.clients = 1;
    game.operations = 60;
    game.unknown_per_mille = 0;
    game.failed_per_mille = 100;
    play(&game)
}

/// Changes one read of a list; false if there is none.
fn corrupt_list(history: &mut [Operation], random: &mut Random) -> bool {
    let next_values: Vec<Value> = history
        .iter()
        .flat_map(|operation| operation.appends().iter().map(|(_, value)| *value))
        .collect();
    let mut lists: Vec<&mut Vec<Value>> = history
        .iter_mut()
        .filter(|operation| operation.is_done())
        .filter_map(|operation| match &mut operation.kind {
            Kind::Read { lists, .. }
            | Kind::ReadAppend {
                lists: Some(lists), ..
            } => Some(lists),
            _ => None,
        })
        .flatten()
        .collect();
    if lists.is_empty() {
        return false;
    }
    let place = random.below(lists.len() as u64) as usize;
    let list = &mut *lists[place];
    let before = list.clone();
    let at = random.below(list.len() as u64) as usize;
    match random.below(6) {
        0 if !list.is_empty() => drop(list.remove(at)),
        1 => list.truncate(at),
        2 if at > 0 => list.swap(at - 1, at),
        3 if !list.is_empty() => list.insert(at, list[at]),
        4 => list.push(Value(1_000_000)),
        _ => {
            let value = next_values.get(random.below(next_values.len() as u64) as usize);
            list.extend(value);
        }
    }
    *list != before
}

/// Changes one read of a register; false if there is none.
fn corrupt_register(history: &mut [Operation], random: &mut Random) -> bool {
    let mut written: Vec<Option<Value>> = history
        .iter()
        .flat_map(|operation| operation.writes().iter().map(|(_, value)| Some(*value)))
        .collect();
    written.push(None);
    let mut read: Vec<&mut Option<Value>> = history
        .iter_mut()
        .filter(|operation| operation.is_done())
        .filter_map(|operation| match &mut operation.kind {
            Kind::ReadRegister { values, .. }
            | Kind::ReadWrite {
                values: Some(values),
                ..
            } => Some(values),
            _ => None,
        })
        .flatten()
        .collect();
    if read.is_empty() {
        return false;
    }
    let place = random.below(read.len() as u64) as usize;
    let before = *read[place];
    *read[place] = written[random.below(written.len() as u64) as usize];
    *read[place] != before
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_serial_history_passes_at_all_levels(seed in any::<u64>(), numbers in any::<bool>()) {
        for mix in [Mix::LISTS, Mix::REGISTERS] {
            let mut played = serial(seed, mix);
            if !numbers {
                played = played.without_numbers();
            }
            for level in LEVELS {
                let report = report_played(&played, level, numbers);
                prop_assert!(report.is_clean(), "seed {seed}: {report}");
            }
        }
    }

    #[test]
    fn a_list_that_was_read_otherwise_is_found_without_numbers(
        seed in any::<u64>(), change in any::<u64>(),
    ) {
        let mut played = serial(seed, Mix::LISTS).without_numbers();
        let before = played.history.clone();
        prop_assume!(corrupt_list(&mut played.history, &mut Random::new(change)));
        let report = report(&played.history, Level::StrictSerializable);
        let changed = before.iter().zip(&played.history).find(|(a, b)| a != b);
        prop_assert!(!report.is_clean(), "seed {seed}, change {change}: {changed:?}");
    }

    #[test]
    fn a_register_that_was_read_otherwise_is_found_by_numbers(
        seed in any::<u64>(), change in any::<u64>(),
    ) {
        let mut played = serial(seed, Mix::REGISTERS);
        prop_assume!(corrupt_register(&mut played.history, &mut Random::new(change)));
        let report = report(&played.history, Level::StrictSerializable);
        prop_assert!(!report.is_clean(), "seed {seed}, change {change}");
    }
}
