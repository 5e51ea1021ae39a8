//! Do the steps of plans of real queries come back as they went, and is everything else refused?
//!
//! The queries are those of the golden plans. `JINDOU_SEED` sets the seed of the changed bytes,
//! `JINDOU_CASES` how many are changed.

use std::path::Path;

use crate::common::Toy;
use jindou_plan::physical::{Outcome, Plan, PlannedStep, Step};
use jindou_plan::{PlanWireError, decode_steps, encode_steps, plan};

/// The plans of the golden queries, as the steps of one that looks for a row of each.
fn golden() -> Vec<(Vec<PlannedStep>, Plan)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let read = |path: &Path| std::fs::read_to_string(path).expect("a file of the folder");
    let toy = Toy::parse(&read(&folder.join("university.toy")));
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder of plans")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rq"))
        .collect();
    paths.sort();
    let planned = paths.iter().map(|path| {
        let plan = plan(&read(path), None, None, &toy).expect("a plan");
        let step = Step::ExistsGiven {
            node: Box::new(plan.root.clone()),
            all_bound: None,
            given: Vec::new(),
            outcome: Outcome::Keep,
        };
        let (rows, id) = (1.0, 0);
        (vec![PlannedStep { step, rows, id }], plan)
    });
    planned.collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

#[test]
fn golden_plans_come_back_as_they_went() {
    let all = golden();
    assert!(all.len() > 50);
    for (steps, plan) in &all {
        let bytes = encode_steps(steps, plan.sizes(), plan.stack()).expect("it is a plan");
        let decoded = decode_steps(&bytes).expect("they are steps");
        assert!(*decoded == **steps, "{:?}", plan.root);
        assert_eq!(decoded.sizes(), plan.sizes());
    }
}

#[test]
fn no_part_of_steps_is_taken_for_the_whole() {
    for (steps, plan) in golden() {
        let bytes = encode_steps(&steps, plan.sizes(), plan.stack()).expect("it is a plan");
        for end in 0..bytes.len() {
            assert!(
                decode_steps(&bytes[..end]).is_err(),
                "the first {end} bytes"
            );
        }
    }
}

#[test]
fn changed_bytes_are_other_steps_or_refused() {
    let seed = setting("JINDOU_SEED", 1);
    let cases = setting("JINDOU_CASES", 20);
    println!("JINDOU_SEED={seed} JINDOU_CASES={cases}");
    let mut random = seed;
    let mut next = move || {
        // SplitMix64.
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    };
    let (mut refused, mut read) = (0, 0);
    for (steps, plan) in golden() {
        let bytes = encode_steps(&steps, plan.sizes(), plan.stack()).expect("it is a plan");
        for _ in 0..cases {
            let mut changed = bytes.clone();
            for _ in 0..=next() % 4 {
                let place = next() as usize % changed.len();
                changed[place] = next() as u8;
            }
            match decode_steps(&changed) {
                Err(PlanWireError::NoStack(error)) => panic!("{error}"),
                Err(_) => refused += 1,
                Ok(decoded) => {
                    // What was read can be written, and is the same again: NaN is not equal to itself.
                    let sizes = decoded.sizes();
                    let again = encode_steps(&decoded, sizes, decoded.stack());
                    let again = decode_steps(&again.expect("they are steps"));
                    let again = again.expect("they are steps");
                    assert_eq!(format!("{:?}", &again[..]), format!("{:?}", &decoded[..]));
                    read += 1;
                }
            }
        }
    }
    println!("{refused} refused, {read} read");
    assert!(refused > 0 && read > 0);
}
