//! Is each mistake of a database found, by its name and at the levels that exclude it?

use jindou_history::workload::Mix;
use jindou_history::{AnomalyName, CycleClass, Level, Report};

use crate::simulated::{Fault, Game, play};
use crate::{LEVELS, report_played, seeds};

const BOTH: [Mix; 2] = [Mix::LISTS, Mix::REGISTERS];

/// The reports of games with one fault, with and without numbers, each with what to print.
fn reports(fault: Fault, mix: Mix, level: Level, numbers: bool) -> Vec<(Report, String)> {
    let report = |seed| {
        let mut game = Game::new(seed, fault);
        game.mix = mix;
        // Two operations must meet at one key by chance, which they may not in a short game.
        if matches!(fault, Fault::UncheckedUpdate | Fault::WriteSkew) {
            game.operations = 4000;
        }
        let mut played = play(&game);
        if !numbers {
            played = played.without_numbers();
        }
        let report = report_played(&played, level, numbers);
        let said = format!(
            "seed {seed}, numbers {numbers}\n{}",
            report.explain(&played.history)
        );
        (report, said)
    };
    seeds(20).map(report).collect()
}

fn all_clean(fault: Fault, mix: Mix, level: Level, numbers: bool) {
    for (report, said) in reports(fault, mix, level, numbers) {
        assert!(report.is_clean(), "{said}");
    }
}

fn all_have(fault: Fault, mix: Mix, level: Level, names: &[AnomalyName]) {
    for (report, said) in reports(fault, mix, level, false) {
        for name in names {
            assert!(report.has(*name), "{name} is missing: {said}");
        }
    }
}

#[test]
fn a_correct_database_passes_at_all_levels() {
    for mix in BOTH {
        for level in LEVELS {
            for numbers in [false, true] {
                all_clean(Fault::Nothing, mix, level, numbers);
            }
        }
    }
}

#[test]
fn old_snapshots_are_stale_reads_and_snapshot_isolation_allows_them() {
    for fault in [Fault::OldSnapshot, Fault::StaleReplica] {
        for mix in BOTH {
            all_clean(fault, mix, Level::SnapshotIsolation, false);
        }
        for level in &LEVELS[1..] {
            all_have(fault, Mix::LISTS, *level, &[AnomalyName::StaleRead]);
        }
        for (report, said) in reports(fault, Mix::LISTS, Level::SnapshotIsolation, true) {
            assert!(report.has(AnomalyName::NotMonotonic), "{said}");
            assert!(!report.has(AnomalyName::SnapshotRead), "{said}");
        }
    }
}

#[test]
fn old_values_of_registers_are_stale_reads_with_numbers_or_without() {
    for numbers in [false, true] {
        let level = Level::StrongSnapshotIsolation;
        for (report, said) in reports(Fault::OldSnapshot, Mix::REGISTERS, level, numbers) {
            assert!(report.has(AnomalyName::StaleRead), "{said}");
        }
    }
}

#[test]
fn an_acknowledged_write_that_is_not_made_is_lost() {
    for level in LEVELS {
        all_have(
            Fault::LostWrite,
            Mix::LISTS,
            level,
            &[AnomalyName::LostWrite],
        );
    }
}

#[test]
fn a_write_that_is_taken_back_after_it_was_read_is_an_aborted_read() {
    for mix in BOTH {
        for level in LEVELS {
            all_have(Fault::DirtyAbort, mix, level, &[AnomalyName::AbortedRead]);
        }
    }
}

#[test]
fn a_write_that_is_made_by_parts_gives_partial_and_intermediate_reads() {
    let names = [AnomalyName::PartialRead, AnomalyName::IntermediateRead];
    for level in LEVELS {
        all_have(Fault::TornWrite, Mix::LISTS, level, &names);
    }
}

#[test]
fn an_update_of_what_changed_since_it_was_read_is_a_lost_update() {
    let names = [
        AnomalyName::LostUpdate,
        AnomalyName::Cycle(CycleClass::GSingle),
    ];
    for level in LEVELS {
        all_have(Fault::UncheckedUpdate, Mix::LISTS, level, &names);
        all_have(Fault::UncheckedUpdate, Mix::REGISTERS, level, &names[..1]);
    }
}

#[test]
fn write_skew_passes_snapshot_isolation_and_is_no_serial_history() {
    for mix in BOTH {
        for level in &LEVELS[..2] {
            for numbers in [false, true] {
                all_clean(Fault::WriteSkew, mix, *level, numbers);
            }
        }
    }
    let g2 = AnomalyName::Cycle(CycleClass::G2);
    all_have(
        Fault::WriteSkew,
        Mix::LISTS,
        Level::StrictSerializable,
        &[g2],
    );
}

#[test]
fn numbers_show_a_write_that_was_lost_without_final_reads() {
    for (report, said) in reports(Fault::LostWrite, Mix::LISTS, Level::SnapshotIsolation, true) {
        assert!(report.has(AnomalyName::SnapshotRead), "{said}");
    }
}

#[test]
fn a_hundred_thousand_operations_have_edges_in_proportion() {
    let mut game = Game::new(1, Fault::Nothing);
    game.operations = 100_000;
    game.clients = 16;
    let played = play(&game);
    let report = report_played(&played, Level::StrictSerializable, true);
    assert!(report.is_clean(), "{report}");
    let sizes = report.sizes;
    assert!(sizes.operations > 100_000);
    // Two keys an operation, with three edges each; and real time, from each that just ended.
    assert!(sizes.data_edges < 8 * sizes.operations, "{sizes:?}");
    assert!(sizes.real_time_edges < 16 * sizes.operations, "{sizes:?}");
}
