//! Do the texts of the workload do what they are to do, by an engine that is not ours?

use jindou_history::sums::{SumKind, SumOperation, check_accounts, check_counters};
use jindou_history::workload::{
    Contradiction, Family, Mix, Workload, WorkloadConfig, append, decode_lists, decode_numbers,
    increment, learn, read_lists, read_numbers, setup, transfer,
};
use jindou_history::{Check, Key, Kind, Level, Operation, Outcome, Random, Value, check};
use oxigraph::model::Quad;
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;

const KEYS: u32 = 12;

fn store(family: Family, balance: u32) -> Store {
    let store = Store::new().unwrap();
    update(&store, &setup(family, KEYS, balance));
    store
}

fn update(store: &Store, text: &str) {
    let parsed = SparqlEvaluator::new().parse_update(text);
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}: {text}"));
    parsed.on_store(store).execute().unwrap();
}

fn query(store: &Store, text: &str) -> String {
    let parsed = SparqlEvaluator::new().parse_query(text);
    let parsed = parsed.unwrap_or_else(|error| panic!("{error}: {text}"));
    let QueryResults::Solutions(solutions) = parsed.on_store(store).execute().unwrap() else {
        panic!("it is a SELECT: {text}");
    };
    let serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Json);
    let variables = solutions.variables().to_vec();
    let mut writer = serializer
        .serialize_solutions_to_writer(Vec::new(), variables)
        .unwrap();
    for solution in solutions {
        writer.serialize(&solution.unwrap()).unwrap();
    }
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

fn keys(range: std::ops::Range<u32>) -> Vec<Key> {
    range.map(Key).collect()
}

fn config(mix: Mix) -> WorkloadConfig {
    WorkloadConfig {
        keys: 6,
        writes_per_key: 9,
        keys_per_operation: 4,
        mix,
    }
}

/// What one client hears that asks one request after the other; and how many updates tell what they read.
fn record(seed: u64, mix: Mix, store: &Store) -> (Vec<Operation>, usize) {
    let mut workload = Workload::new(seed, config(mix));
    let mut requests: Vec<_> = (0..150).map(|_| workload.request()).collect();
    requests.extend(workload.finals());
    let (mut history, mut sightings) = (Vec::new(), Vec::new());
    for (time, request) in (0..).map(|n| n * 10).zip(requests) {
        let kind = match request.is_update() {
            true => {
                update(store, &request.text());
                request.into_kind()
            }
            false => {
                let answer = query(store, &request.text());
                let answered = request.answered(&answer).unwrap();
                assert_eq!(answered.contradictions, [], "seed {seed}: {answer}");
                sightings.extend(answered.sightings);
                answered.kind
            }
        };
        history.push(Operation {
            client: 0,
            begun: time,
            ended: Some(time + 5),
            kind,
            outcome: Outcome::Done { snapshot: None },
        });
    }
    let learned = match mix == Mix::LISTS {
        true => learn(&mut history, &sightings, &[]),
        false => learn(&mut history, &[], &sightings),
    };
    (history, learned)
}

#[test]
fn what_one_client_hears_is_serial_and_its_updates_tell_what_they_read() {
    for seed in 0..4 {
        for (mix, family) in [
            (Mix::LISTS, Family::List),
            (Mix::REGISTERS, Family::Register),
        ] {
            let (history, learned) = record(seed, mix, &store(family, 0));
            let updates = history.iter().filter(|operation| {
                matches!(
                    operation.kind,
                    Kind::ReadAppend { .. } | Kind::ReadWrite { .. }
                )
            });
            let updates = updates.count();
            match family {
                Family::List => assert_eq!(learned, updates, "seed {seed}"),
                // What was replaced before anybody read it tells nothing.
                _ => assert!(learned > updates / 4, "seed {seed}: {learned} of {updates}"),
            }
            let mut wanted = Check::new(Level::StrictSerializable);
            wanted.finals_from = history.iter().map(|o| o.begun).max();
            wanted.finals_from = wanted.finals_from.map(|at| at - 10);
            let report = check(&history, &wanted).unwrap();
            assert!(
                report.is_clean(),
                "seed {seed}: {}",
                report.explain(&history)
            );
        }
    }
}

#[test]
fn several_values_of_one_append_follow_each_other_in_all_graphs() {
    let store = store(Family::List, 0);
    let lists = keys(0..4);
    let appends = |first: u64| -> Vec<(Key, Value)> {
        let places = (first..first + 8).zip(lists.iter().cycle());
        places.map(|(value, key)| (*key, Value(value))).collect()
    };
    update(&store, &append(&appends(0)));
    update(&store, &append(&appends(8)));
    let answer = decode_lists(&lists, &query(&store, &read_lists(&lists))).unwrap();
    assert_eq!(answer.contradictions, []);
    for (key, list) in (0..).zip(&answer.lists) {
        assert_eq!(*list, [0, 4, 8, 12].map(|value| Value(value + key)));
    }
}

/// The quads of both, as if each had not seen the other's update.
fn union(one: &Store, other: &Store) -> Store {
    let union = Store::new().unwrap();
    for quad in one.iter().chain(other.iter()) {
        let quad: Quad = quad.unwrap();
        union.insert(&quad).unwrap();
    }
    union
}

#[test]
fn updates_that_do_not_see_each_other_give_two_values_at_one_position() {
    let (one, other) = (store(Family::List, 0), store(Family::List, 0));
    for key in keys(0..3) {
        update(&one, &append(&[(key, Value(1))]));
        update(&other, &append(&[(key, Value(2))]));
        let both = union(&one, &other);
        let answer = decode_lists(&[key], &query(&both, &read_lists(&[key]))).unwrap();
        let values = [Value(1), Value(2)];
        let position = 0;
        let two = Contradiction::TwoValues {
            key,
            position,
            values,
        };
        assert_eq!(answer.contradictions, [two]);
    }
}

#[test]
fn each_quad_of_an_append_that_is_missing_shows() {
    let whole = store(Family::List, 0);
    let key = Key(2);
    update(&whole, &append(&[(key, Value(1))]));
    let before: Vec<Quad> = whole.iter().map(Result::unwrap).collect();
    update(&whole, &append(&[(key, Value(2))]));
    update(&whole, &append(&[(key, Value(3))]));
    let intact = decode_lists(&[key], &query(&whole, &read_lists(&[key]))).unwrap();
    assert_eq!(intact.lists, [[Value(1), Value(2), Value(3)]]);
    let added: Vec<Quad> = whole.iter().map(Result::unwrap).collect();
    for quad in added.iter().filter(|quad| !before.contains(quad)) {
        let store = union(&whole, &Store::new().unwrap());
        store.remove(quad).unwrap();
        let answer = decode_lists(&[key], &query(&store, &read_lists(&[key]))).unwrap();
        let shows = answer != intact
            && (!answer.contradictions.is_empty() || answer.lists[0] == [Value(1), Value(2)]);
        assert!(shows, "without {quad}: {answer:?}");
    }
}

#[test]
fn counters_add_up_and_accounts_keep_their_total() {
    let all = keys(0..KEYS);
    for seed in 0..3 {
        let (counters, accounts) = (store(Family::Counter, 0), store(Family::Account, 10));
        let mut random = Random::new(seed);
        let mut added = Vec::new();
        for time in 0..20 {
            let key = |random: &mut Random| random.below(u64::from(KEYS)) as u32;
            let (one, other) = (key(&mut random), key(&mut random));
            let other = if one == other {
                (one + 1) % KEYS
            } else {
                other
            };
            let by = vec![(Key(one), 1), (Key(other), 1 + random.below(9) as u32)];
            update(&counters, &increment(&by));
            update(&accounts, &transfer(Key(one), Key(other), by[1].1));
            added.push(SumOperation {
                begun: time,
                ended: Some(time),
                kind: SumKind::Increment { by },
                outcome: Outcome::Done { snapshot: None },
            });
        }
        let numbers = |store: &Store, family| -> Vec<i64> {
            let answer = query(store, &read_numbers(family, &all));
            let answer = decode_numbers(family, &all, &answer).unwrap();
            assert_eq!(answer.contradictions, [], "seed {seed}");
            answer.numbers.into_iter().map(Option::unwrap).collect()
        };
        let balances = numbers(&accounts, Family::Account);
        let balances: Vec<(Key, i64)> = all.iter().copied().zip(balances).collect();
        assert_eq!(check_accounts(&balances, 120), [], "seed {seed}");
        let sums = numbers(&counters, Family::Counter);
        let read = SumKind::Read {
            keys: all.clone(),
            sums,
        };
        added.push(SumOperation {
            begun: 1000,
            ended: Some(1001),
            kind: read,
            outcome: Outcome::Done { snapshot: None },
        });
        assert_eq!(check_counters(&added, true, None), [], "seed {seed}");
    }
}
