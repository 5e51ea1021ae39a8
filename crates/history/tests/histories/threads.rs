//! Do the histories of threads at one database pass?

use std::sync::Mutex;
use std::time::Instant;

use jindou_history::workload::{Mix, Workload, WorkloadConfig};
use jindou_history::{Operation, Outcome};

use crate::simulated::{Played, Versions};
use crate::{LEVELS, report_played, seeds};

const THREADS: u32 = 4;
const OPERATIONS_EACH: usize = 500;

fn record(seed: u64, mix: Mix) -> Played {
    let config = WorkloadConfig {
        keys: 6,
        writes_per_key: 30,
        keys_per_operation: 3,
        mix,
    };
    let workload = Mutex::new(Workload::new(seed, config));
    let (versions, history) = (Mutex::new(Versions::default()), Mutex::new(Vec::new()));
    let start = Instant::now();
    let now = || start.elapsed().as_nanos() as u64;
    let ask = |client: u32, request: jindou_history::workload::Request| {
        let begun = now();
        let (kind, number) = {
            let mut versions = versions.lock().unwrap();
            let kind = versions.read(request.kind(), versions.number);
            match request.is_update() {
                true => (kind, versions.commit(request.kind())),
                false => (kind, versions.number),
            }
        };
        let operation = Operation {
            client,
            begun,
            ended: Some(now()),
            kind,
            outcome: Outcome::Done {
                snapshot: Some(number),
            },
        };
        history.lock().unwrap().push(operation);
    };
    std::thread::scope(|scope| {
        for client in 0..THREADS {
            let (ask, workload) = (&ask, &workload);
            scope.spawn(move || {
                for _ in 0..OPERATIONS_EACH {
                    let request = workload.lock().unwrap().request();
                    ask(client, request);
                }
            });
        }
    });
    let finals_from = now();
    let finals = workload.lock().unwrap().finals();
    finals.into_iter().for_each(|request| ask(THREADS, request));
    Played {
        history: history.into_inner().unwrap(),
        finals_from,
    }
}

#[test]
fn what_threads_hear_of_a_locked_database_passes_at_all_levels() {
    for seed in seeds(3) {
        for mix in [Mix::LISTS, Mix::REGISTERS] {
            let played = record(seed, mix);
            for level in LEVELS {
                let report = report_played(&played, level, true);
                assert!(report.is_clean(), "seed {seed}: {report}");
            }
        }
    }
}
