//! Does the checker agree with trying all orders of a small history?

use std::collections::HashMap;

use jindou_history::{Key, Level, Operation, Value};

use crate::simulated::{Fault, Game, play};
use crate::{report_played, seeds};

/// True if what is left can follow, one operation after the other, each after those that ended before it began.
fn is_serial(left: &mut Vec<&Operation>, state: &HashMap<Key, Vec<Value>>) -> bool {
    if left.is_empty() {
        return true;
    }
    for place in 0..left.len() {
        let next = left[place];
        let waits = |other: &&Operation| other.ended.is_some_and(|ended| ended < next.begun);
        let shown = |key| state.get(&key).map_or(&[][..], Vec::as_slice);
        if left.iter().any(waits) || next.lists().any(|(key, list)| list != shown(key)) {
            continue;
        }
        let mut after = state.clone();
        for (key, value) in next.appends() {
            after.entry(*key).or_default().push(*value);
        }
        left.remove(place);
        let is_it = is_serial(left, &after);
        left.insert(place, next);
        if is_it {
            return true;
        }
    }
    false
}

#[test]
fn a_history_is_clean_exactly_if_some_order_of_its_operations_explains_it() {
    let faults = [
        Fault::Nothing,
        Fault::OldSnapshot,
        Fault::StaleReplica,
        Fault::LostWrite,
        Fault::TornWrite,
        Fault::UncheckedUpdate,
        Fault::WriteSkew,
    ];
    let mut serial = [0; 2];
    for seed in seeds(300) {
        for fault in faults {
            let mut game = Game::new(seed, fault);
            (game.keys, game.clients, game.operations) = (2, 4, 9);
            (game.unknown_per_mille, game.failed_per_mille) = (0, 0);
            let played = play(&game).without_numbers();
            let done = played
                .history
                .iter()
                .filter(|operation| operation.is_done());
            let expected = is_serial(&mut done.collect(), &HashMap::new());
            serial[usize::from(expected)] += 1;
            let report = report_played(&played, Level::StrictSerializable, false);
            let said = report.explain(&played.history);
            assert_eq!(
                report.is_clean(),
                expected,
                "seed {seed}, {fault:?}: {said}"
            );
        }
    }
    // Otherwise the comparison says little.
    assert!(serial.iter().all(|count| *count > 0), "{serial:?}");
    println!("{} not serial, {} serial", serial[0], serial[1]);
}
