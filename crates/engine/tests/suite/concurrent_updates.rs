//! Updates beside each other: who waits for whom, and is the result that of one after another?

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use jindou_engine::{
    Config, Database, EngineError, MergePolicy, QueryResults, ServiceCall, ServiceCaller,
    ServiceError, ServiceNext, ServiceRows, UpdateOptions,
};
use oxrdf::{NamedNode, Term};

const PREFIX: &str = "PREFIX : <http://e/>";
/// Solutions of an endpoint that waits for the test's word.
const SEARCH: &str = "INSERT { :a :found ?n } WHERE { :a :n ?n SERVICE <http://e/> { ?s :q ?o } }";

/// Says that it was called, and ends the call once it is let go.
#[derive(Debug)]
struct Gate {
    called: Mutex<Sender<()>>,
    go_on: Arc<Mutex<Receiver<()>>>,
    calls: AtomicU64,
}

struct Waiting {
    go_on: Arc<Mutex<Receiver<()>>>,
    columns: usize,
    is_done: bool,
}

/// What is shorter may be executed again with the writer's lock.
const SHORT: Duration = Duration::from_millis(5);
/// Far longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

impl ServiceCaller for Gate {
    fn call(&self, call: &ServiceCall<'_>) -> Result<Box<dyn ServiceRows>, ServiceError> {
        self.calls.fetch_add(1, SeqCst);
        self.called
            .lock()
            .unwrap()
            .send(())
            .expect("the test waits");
        Ok(Box::new(Waiting {
            go_on: Arc::clone(&self.go_on),
            columns: call.variables.len(),
            is_done: false,
        }))
    }
}

impl ServiceRows for Waiting {
    fn next(&mut self, wait: Duration) -> Result<ServiceNext, ServiceError> {
        if self.is_done {
            return Ok(ServiceNext::End);
        }
        self.is_done = self.go_on.lock().unwrap().recv_timeout(wait).is_ok();
        let rows = match self.is_done {
            true => vec![vec![
                Some(Term::NamedNode(NamedNode::new_unchecked(
                    "http://e/x"
                )));
                self.columns
            ]],
            false => Vec::new(),
        };
        Ok(ServiceNext::Rows(rows))
    }

    fn received_bytes(&self) -> u64 {
        0
    }
}

struct Gated {
    database: Database,
    gate: Arc<Gate>,
    called: Receiver<()>,
    go_on: Sender<()>,
}

fn gated() -> Gated {
    let (called, seen) = channel();
    let (go_on, waits) = channel();
    let gate = Arc::new(Gate {
        called: Mutex::new(called),
        go_on: Arc::new(Mutex::new(waits)),
        calls: AtomicU64::new(0),
    });
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    config.service_caller = Some(Arc::clone(&gate) as _);
    Gated {
        database: Database::with_config(config),
        gate,
        called: seen,
        go_on,
    }
}

fn update(database: &Database, text: &str) -> Result<(u64, u64), EngineError> {
    let report = database.update(&format!("{PREFIX} {text}"))?;
    Ok((report.inserted, report.deleted))
}

fn values(database: &Database, subject_and_predicate: &str) -> BTreeSet<String> {
    let query = format!("{PREFIX} SELECT ?o {{ {subject_and_predicate} ?o }}");
    let QueryResults::Solutions(solutions) = database.query(&query).unwrap() else {
        panic!("SELECT gives solutions");
    };
    let value = |term: String| term.split('"').nth(1).expect("a literal").to_owned();
    solutions
        .map(|solution| value(solution.unwrap().get("o").unwrap().to_string()))
        .collect()
}

#[test]
fn a_search_holds_up_no_other_update_and_sees_what_they_changed() {
    let Gated {
        database,
        gate,
        called,
        go_on,
    } = gated();
    update(&database, "INSERT DATA { :a :n 1 }").unwrap();
    std::thread::scope(|scope| {
        let search = scope.spawn(|| update(&database, SEARCH));
        called.recv_timeout(LONG).expect("it searches");
        // The search waits: this commits.
        update(&database, "INSERT DATA { :a :n 2 . :new :p :newer }").unwrap();
        assert!(values(&database, ":a :found").is_empty());
        go_on.send(()).unwrap();
        // It lost, and searches again: perhaps with the lock, if it was that short, and then again
        // without it if it was not.
        while !search.is_finished() {
            if called.recv_timeout(Duration::from_millis(5)).is_ok() {
                go_on.send(()).unwrap();
            }
        }
        assert_eq!(search.join().unwrap().unwrap(), (2, 0));
    });
    assert!(gate.calls.load(SeqCst) >= 2, "it searched again");
    let both = ["1", "2"].map(str::to_owned).into();
    assert_eq!(values(&database, ":a :found"), both);
}

#[test]
fn a_search_that_always_loses_says_so_when_its_time_is_over() {
    let Gated {
        database,
        called,
        go_on,
        ..
    } = gated();
    update(&database, "INSERT DATA { :a :n 0 }").unwrap();
    std::thread::scope(|scope| {
        let search = scope.spawn(|| {
            let options = UpdateOptions {
                timeout: Some(Duration::from_millis(200)),
                ..UpdateOptions::default()
            };
            database.update_with(&format!("{PREFIX} {SEARCH}"), options)
        });
        for number in 1.. {
            if called.recv_timeout(Duration::from_millis(20)).is_ok() {
                // As many as make the search a long one.
                let begun = Instant::now();
                for step in 0.. {
                    let text = format!("INSERT DATA {{ :a :n {number}.{step} }}");
                    update(&database, &text).unwrap();
                    if begun.elapsed() > 2 * SHORT {
                        break;
                    }
                }
                go_on.send(()).unwrap();
            }
            if search.is_finished() {
                break;
            }
        }
        match search.join().unwrap() {
            Err(EngineError::Contended { executions }) => assert!(executions > 0),
            other => panic!("{other:?}"),
        }
    });
    assert!(values(&database, ":a :found").is_empty());
}

#[test]
fn counters_lose_no_increment() {
    const THREADS: u64 = 8;
    const TIMES: u64 = 25;
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    update(&database, "INSERT DATA { :c :n 0 }").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let step = "DELETE { ?c :n ?v } INSERT { ?c :n ?w } \
                                WHERE { ?c :n ?v BIND(?v + 1 AS ?w) }";
                    assert_eq!(update(&database, step).unwrap(), (1, 1));
                }
            });
        }
    });
    let sum = (THREADS * TIMES).to_string();
    assert_eq!(values(&database, ":c :n"), [sum].into());
}

#[test]
fn new_terms_of_searches_beside_each_other_keep_their_meaning() {
    let database = Database::new();
    update(&database, "INSERT DATA { :a :n 0 }").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let database = &database;
            scope.spawn(move || {
                for number in 0..20 {
                    let text = format!(
                        "INSERT {{ :t{thread} :p{thread} ?text . ?text2 :same [] }} \
                         WHERE {{ :a :n ?n BIND(CONCAT('{thread} ', '{number}') AS ?text) \
                         BIND(IRI(CONCAT('http://e/{thread}/', '{number}')) AS ?text2) }}"
                    );
                    assert_eq!(update(database, &text).unwrap(), (2, 0));
                }
            });
        }
    });
    for thread in 0..8 {
        let all: BTreeSet<String> = (0..20).map(|number| format!("{thread} {number}")).collect();
        assert_eq!(values(&database, &format!(":t{thread} :p{thread}")), all);
    }
    let blanks = format!("{PREFIX} SELECT DISTINCT ?b {{ ?s :same ?b }}");
    let QueryResults::Solutions(solutions) = database.query(&blanks).unwrap() else {
        panic!("SELECT gives solutions");
    };
    assert_eq!(solutions.count(), 8 * 20);
}

#[test]
fn transfers_beside_writers_of_other_things_keep_the_sum() {
    const ACCOUNTS: u64 = 6;
    const THREADS: u64 = 4;
    const TIMES: u64 = 25;
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    for account in 0..ACCOUNTS {
        let text = format!("INSERT DATA {{ :account{account} :balance 10 ; a :Account }}");
        update(&database, &text).unwrap();
    }
    std::thread::scope(|scope| {
        let database = &database;
        for thread in 0..THREADS {
            scope.spawn(move || {
                for number in 0..TIMES {
                    let from = (thread + number) % ACCOUNTS;
                    let to = (from + 1 + (thread * 7 + number) % (ACCOUNTS - 1)) % ACCOUNTS;
                    let text = format!(
                        "DELETE {{ ?from :balance ?a . ?to :balance ?b }} \
                         INSERT {{ ?from :balance ?less . ?to :balance ?more . [] :moved ?note }} \
                         WHERE {{ VALUES (?from ?to) {{ (:account{from} :account{to}) }} \
                         ?from :balance ?a . ?to :balance ?b FILTER(?a >= 4) \
                         BIND(?a - 4 AS ?less) BIND(?b + 4 AS ?more) \
                         BIND('{thread} {number}' AS ?note) }}"
                    );
                    let done = update(database, &text).unwrap();
                    assert!(matches!(done, (3, 2) | (0, 0)), "{done:?}");
                }
            });
            scope.spawn(move || {
                for number in 0..TIMES {
                    let text = format!(
                        "INSERT DATA {{ [] :seen{thread} :thing{number} , 'text {number}' }}"
                    );
                    assert_eq!(update(database, &text).unwrap(), (2, 0));
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..5 {
                database.compact().unwrap();
                database.fold().unwrap();
            }
        });
    });
    let mut sum = 0;
    for account in 0..ACCOUNTS {
        let balances = values(&database, &format!(":account{account} :balance"));
        assert_eq!(balances.len(), 1, "{balances:?}");
        let balance: i64 = balances.first().unwrap().parse().unwrap();
        assert!(balance >= 0, "{balance}");
        sum += balance;
    }
    assert_eq!(sum, 10 * ACCOUNTS as i64);
    for thread in 0..THREADS {
        let query =
            format!("{PREFIX} SELECT ?s {{ ?s :seen{thread} 'text 0' ; :seen{thread} ?o }}");
        let QueryResults::Solutions(solutions) = database.query(&query).unwrap() else {
            panic!("SELECT gives solutions");
        };
        assert_eq!(solutions.count(), 2, "a blank node for each request");
    }
}

#[test]
fn one_always_stays_where_each_leaves_only_while_another_stays() {
    const THREADS: u64 = 6;
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    let database = Database::with_config(config);
    for round in 0..20 {
        let all: String = (0..THREADS)
            .map(|n| format!(":d{n} :on{round} true . "))
            .collect();
        update(&database, &format!("INSERT DATA {{ {all} }}")).unwrap();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let database = &database;
                scope.spawn(move || {
                    let text = format!(
                        "DELETE {{ :d{thread} :on{round} true }} WHERE {{ \
                         :d{thread} :on{round} true . \
                         FILTER EXISTS {{ ?other :on{round} true FILTER(?other != :d{thread}) }} }}"
                    );
                    update(database, &text).unwrap();
                });
            }
        });
        let query = format!("{PREFIX} SELECT ?s {{ ?s :on{round} true }}");
        let QueryResults::Solutions(solutions) = database.query(&query).unwrap() else {
            panic!("SELECT gives solutions");
        };
        assert_eq!(solutions.count(), 1, "round {round}");
    }
}

#[test]
fn the_new_terms_of_a_long_request_stay_apart_while_others_add_theirs() {
    let database = Database::new();
    let mut expected = BTreeSet::new();
    // Of each round the vertices have sets of their own, for which numbers are set aside often.
    for round in 0..6 {
        let names: Vec<String> = (0..12_000)
            .map(|number| format!("r{round}n{number}"))
            .collect();
        let quad = |(number, name): (usize, &String)| match number % 3 {
            0 => format!(":{name} :title{round} \"{name}\" . "),
            _ => format!(":{name} :name{round} \"{name}\" . "),
        };
        let text: String = names.iter().enumerate().map(quad).collect();
        let is_done = AtomicBool::new(false);
        let others = std::thread::scope(|scope| {
            let others = scope.spawn(|| {
                let mut names = Vec::new();
                while names.is_empty() || !is_done.load(SeqCst) {
                    let some = (0..3).map(|n| format!("r{round}o{}x{n}", names.len()));
                    let some: Vec<String> = some.collect();
                    let quads = some
                        .iter()
                        .map(|name| format!(":{name} :title{round} \"{name}\" . "));
                    let quads: String = quads.collect();
                    update(&database, &format!("INSERT DATA {{ {quads} }}")).unwrap();
                    names.extend(some);
                }
                names
            });
            update(&database, &format!("INSERT DATA {{ {text} }}")).unwrap();
            is_done.store(true, SeqCst);
            others.join().unwrap()
        });
        expected.extend(names.into_iter().chain(others));
    }
    let query = format!("{PREFIX} SELECT ?s ?o {{ ?s ?p ?o }}");
    let QueryResults::Solutions(solutions) = database.query(&query).unwrap() else {
        panic!("SELECT gives solutions");
    };
    let mut found = BTreeSet::new();
    for solution in solutions {
        let solution = solution.unwrap();
        let name = |variable| solution.get(variable).unwrap().to_string();
        let value = name("o").trim_matches('"').to_owned();
        assert!(
            name("s").ends_with(&format!("{value}>")),
            "{} {value}",
            name("s")
        );
        found.insert(value);
    }
    assert_eq!(found, expected);
}
