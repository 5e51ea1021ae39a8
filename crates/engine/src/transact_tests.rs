//! Searches that others overtake, one commit at a chosen moment: do they stand where they may, and
//! is the end that of one after another?

use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use jindou_plan::parse_update;
use jindou_store::Snapshot;
use parking_lot::Mutex;

use crate::deadline::Deadline;
use crate::transact::{Execution, Search};
use crate::update::Run;
use crate::{
    Config, Database, EngineError, MergePolicy, QueryResults, UpdateOptions, UpdateReport,
};
use jindou_ingest::ThreadStart;

const PREFIX: &str = "PREFIX : <http://e/>";
/// Far longer than others wait for a search.
const LONG: Duration = Duration::from_secs(10);

fn config() -> Config {
    Config {
        merge: MergePolicy::never(),
        ..Config::default()
    }
}

fn database() -> Database {
    Database::with_config(config())
}

fn update(database: &Database, text: &str) -> Result<UpdateReport, EngineError> {
    database.update(&format!("{PREFIX} {text}"))
}

/// How often a request was executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Executions {
    beside_others: u64,
    holding: u64,
}

/// What happens around the executions of a request.
struct Around<'a> {
    /// How long each of them takes, by the clock that they go by.
    took: Duration,
    /// Called with their number after each one that others may overtake.
    overtake: &'a (dyn Fn(u64) + Sync),
    /// What becomes of those for which others wait.
    holding: &'a (dyn Fn() -> Result<(), EngineError> + Sync),
}

/// Executes a request as if each execution took so long, and calls `overtake` after each one that
/// others may overtake.
fn search(
    database: &Database,
    text: &str,
    took: Duration,
    overtake: &(dyn Fn(u64) + Sync),
) -> (Result<UpdateReport, EngineError>, Executions) {
    let around = Around {
        took,
        overtake,
        holding: &|| Ok(()),
    };
    search_around(database, text, &around)
}

fn search_around(
    database: &Database,
    text: &str,
    around: &Around<'_>,
) -> (Result<UpdateReport, EngineError>, Executions) {
    let text = format!("{PREFIX} {text}");
    let parsed = parse_update(&text, None, None).unwrap();
    let documents: Vec<_> = parsed.operations.iter().map(|_| None).collect();
    let options = UpdateOptions::default();
    let executions = Mutex::new(Executions::default());
    let execute = |working: &mut Snapshot, deadline: &Deadline, execution: Execution| {
        let is_beside = execution.reads.is_some();
        let run = Run::new(database.inner(), &options, deadline, working).for_execution(execution);
        let done = run.execute_all(&parsed.operations, &documents)?;
        let count = {
            let mut count = executions.lock();
            match is_beside {
                true => count.beside_others += 1,
                false => count.holding += 1,
            }
            *count
        };
        match is_beside {
            true => (around.overtake)(count.beside_others),
            false => (around.holding)()?,
        }
        Ok(done)
    };
    let now = Cell::new(Instant::now());
    let clock = || {
        now.set(now.get() + around.took);
        now.get()
    };
    let search = Search {
        execute: &execute,
        is_long: false,
        documents: parsed.operations.len() as u64,
        brings: 0,
        clock: &clock,
    };
    let deadline = Deadline::new(Instant::now(), None, None);
    let report = database.search_and_transact(&deadline, &search);
    (report, executions.into_inner())
}

fn rows(database: &Database, query: &str) -> BTreeSet<String> {
    let QueryResults::Solutions(solutions) = database.query(query).unwrap() else {
        panic!("SELECT gives solutions");
    };
    let variables = solutions.variables().to_vec();
    solutions
        .map(|solution| {
            let solution = solution.unwrap();
            let terms = variables.iter().map(|name| solution.get(name));
            let terms: Vec<String> = terms
                .map(|term| term.map_or("-".to_owned(), |term| term.to_string()))
                .collect();
            terms.join(" ")
        })
        .collect()
}

/// All quads, and all named graphs.
fn contents(database: &Database) -> BTreeSet<String> {
    let quads = "SELECT ?s ?p ?o ?g { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } }";
    let mut all = rows(database, quads);
    all.extend(rows(database, "SELECT ?g { GRAPH ?g {} }"));
    all
}

const START: &str = "INSERT DATA { \
    :a :p 1 . :b :p 2 . :a :q 'x' . :a a :C . :b a :D . :a :next :b . :b :next :c . :sp :r :sp . \
    GRAPH :g { :a :p 3 . :b :q 4 } GRAPH :h { :c :p 5 } GRAPH :one { :a :p 6 } }; CREATE GRAPH :empty";

/// Requests that search, whose reads differ.
const SEARCHES: &[&str] = &[
    "INSERT { ?s :found ?o } WHERE { ?s :p ?o }",
    "INSERT { ?s :found ?t } WHERE { ?s :p ?o BIND(CONCAT('new ', STR(?o)) AS ?t) }",
    "INSERT { ?s :found ?t . ?t :of ?o } WHERE { ?s :p ?o BIND(IRI(CONCAT('http://e/', STR(?o))) AS ?t) }",
    "DELETE { ?s :p ?o } INSERT { ?s :p ?n } WHERE { ?s :p ?o BIND(?o + 1 AS ?n) }",
    "DELETE WHERE { ?s :p ?o }",
    "DELETE WHERE { :nobody :p ?o }",
    "INSERT { ?s :found ?o } WHERE { ?s ?p ?o }",
    "INSERT { :a :found ?p } WHERE { :a ?p ?o }",
    "INSERT { ?s a :Found } WHERE { ?s a :C }",
    "INSERT { ?s :found ?c } WHERE { ?s a ?c }",
    "INSERT { ?s :found 1 } WHERE { ?s a :Unheard }",
    "INSERT { ?s :found ?o } WHERE { ?s a :C ; :p ?o ; :q ?x }",
    "INSERT { ?s :found 1 } WHERE { ?s :p ?o FILTER NOT EXISTS { ?s :unheard ?x } }",
    "INSERT { ?s :found 1 } WHERE { ?s :p ?o FILTER EXISTS { ?s :next/:next ?x } }",
    "INSERT { ?s :found 1 } WHERE { ?s :p ?o MINUS { ?s :q ?x } }",
    "INSERT { ?s :found ?x } WHERE { ?s :p ?o OPTIONAL { ?s :q ?x } }",
    "INSERT { ?s :found ?o } WHERE { ?s :next+ ?o }",
    "INSERT { ?s :found ?o } WHERE { ?s :next* ?o }",
    "INSERT { ?s :found ?o } WHERE { ?s !(:p|:q) ?o }",
    "INSERT { :n :found ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s :p ?o } }",
    "INSERT { :n :found ?n } WHERE { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } }",
    "INSERT { :n :found ?n } WHERE { SELECT (COUNT(DISTINCT ?p) AS ?n) { ?s ?p ?o } }",
    "INSERT { GRAPH :found { ?s :p ?o } } WHERE { GRAPH :g { ?s :p ?o } }",
    "INSERT { ?s :found ?o } WHERE { GRAPH :g { ?s ?p ?o } }",
    "INSERT { ?g :found ?o } WHERE { GRAPH ?g { ?s :p ?o } }",
    "INSERT { ?g :found 1 } WHERE { GRAPH ?g { } }",
    "INSERT { :a :found 1 } WHERE { GRAPH :one { } }",
    "INSERT { :a :found 1 } WHERE { GRAPH :unheard { ?s ?p ?o } }",
    "INSERT { ?s :found ?o } USING :g USING :h WHERE { ?s :p ?o }",
    "DELETE DATA { GRAPH :one { :a :p 6 } }; INSERT { ?g :found 1 } WHERE { GRAPH ?g { } }",
    "DELETE DATA { GRAPH :one { :a :p 6 } }; INSERT { :a :found 1 } WHERE { GRAPH :one { } }",
    "DELETE { ?s :q ?t } WHERE { ?s :p ?o BIND(CONCAT('was ', STR(?o)) AS ?t) }",
    "DELETE { ?s :unheard ?o } WHERE { ?s :p ?o }",
    "DELETE DATA { :unheard :p 7 }; INSERT { ?s :found ?o } WHERE { ?s :q ?o }",
    "INSERT DATA { :a :p 1 }; DELETE { ?s :q ?o } WHERE { ?s :q ?o }",
    "COPY :g TO :h",
    "MOVE :h TO :unheard",
    "ADD DEFAULT TO :h",
    "CLEAR GRAPH :g; INSERT { ?s :found ?o } WHERE { ?s :q ?o }",
    "DROP SILENT GRAPH :unheard; INSERT { ?s :found ?o } WHERE { ?s :q ?o }",
    "DROP NAMED; INSERT { ?s :found ?o } WHERE { ?s :q ?o }",
    "CREATE SILENT GRAPH :one; INSERT { ?s :found ?o } WHERE { ?s :q ?o }",
    "INSERT DATA { :own :unheard :b }; INSERT { ?s :found ?o } WHERE { ?s :unheard ?o }",
    "INSERT { ?s :found ?o } WHERE { VALUES ?s { :a :unheard } ?s :q ?o }",
    "INSERT { ?sp :found 1 } WHERE { ?sp :r ?sp }",
    "INSERT DATA { :own :q :NewClass }; INSERT { ?s :found 1 } WHERE { ?s a :NewClass }",
    "INSERT DATA { :own :q :newgraph }; INSERT { ?s :found 1 } WHERE { GRAPH :newgraph { ?s ?p ?o } }",
];

/// What others commit meanwhile.
const OTHERS: &[&str] = &[
    "INSERT DATA { :b :p 9 }",
    "DELETE DATA { :a :p 1 }",
    "INSERT DATA { :b :q 'was 1' . :a :q 'was 1' }",
    "DELETE DATA { :a :q 'x' }",
    "INSERT DATA { :z a :C }",
    "INSERT DATA { :z a :D }",
    "INSERT DATA { :z a :Unheard ; :p 3 }",
    "INSERT DATA { :a :unheard 1 . :new :other 'new 1' , 'some other text' }",
    "INSERT DATA { :unheard :p 7 }",
    "INSERT DATA { :c :next :d }",
    "INSERT DATA { <http://e/1> :other <http://e/2> }",
    "INSERT DATA { GRAPH :g { :z :p 8 } }",
    "INSERT DATA { GRAPH :g { :z :other 8 } }",
    "INSERT DATA { GRAPH :h { :z :p 8 } }",
    "INSERT DATA { GRAPH :one { :z :other 8 } }",
    "DELETE DATA { GRAPH :one { :a :p 6 } }",
    "INSERT DATA { GRAPH :unheard { :z :other 8 } }",
    "CREATE GRAPH :unheard",
    "DROP GRAPH :empty",
    "CLEAR GRAPH :one",
    "CLEAR DEFAULT",
    "DROP ALL",
    "INSERT DATA { :found :other :found . :other :r :other }",
    "DELETE WHERE { ?s :next ?o }",
    "INSERT DATA { :before :other :between . :z a :NewClass }",
    "INSERT DATA { :before :other :between GRAPH :newgraph { :z :p 8 } }",
];

/// The contents after these requests, and what the one that `report` names said.
fn one_after_another(requests: [&str; 2], report: usize) -> (BTreeSet<String>, Option<[u64; 2]>) {
    let database = database();
    update(&database, START).unwrap();
    let reports = requests.map(|text| update(&database, text).ok());
    let report = reports[report]
        .as_ref()
        .map(|report| [report.inserted, report.deleted]);
    (contents(&database), report)
}

#[test]
fn a_search_that_is_overtaken_ends_as_one_after_another() {
    let mut stood = 0;
    for text in SEARCHES {
        for other in OTHERS {
            let database = database();
            update(&database, START).unwrap();
            let overtake = |execution| {
                if execution == 1 {
                    update(&database, other).unwrap();
                }
            };
            let (report, executions) = search(&database, text, LONG, &overtake);
            let report = report.ok().map(|report| [report.inserted, report.deleted]);
            let ended = (contents(&database), report);
            let after = one_after_another([other, text], 1);
            let before = one_after_another([text, other], 0);
            // What changes nothing, or fails, is as if it had come first.
            let is_first = ended == before && report.is_none_or(|changed| changed == [0, 0]);
            assert!(
                ended == after || is_first,
                "{text}\nbeside {other}: {executions:?}\n{ended:#?}\nnot {after:#?}"
            );
            assert_eq!(executions.holding, 0, "{text}\nbeside {other}");
            stood += u32::from(executions.beside_others == 1);
        }
    }
    let pairs = SEARCHES.len() * OTHERS.len();
    println!("{stood} of {pairs} searches stood where they were");
    assert!(stood as usize * 3 > pairs, "{stood} of {pairs} stood");
}

#[test]
fn a_long_search_commits_beside_writers_of_what_it_does_not_read() {
    for (text, other) in [
        (
            SEARCHES[0],
            "INSERT DATA { :a :other 1 ; a :C . :new :newer 'newest' }",
        ),
        (
            SEARCHES[1],
            "INSERT DATA { :a :other 'new 1' , 'new 7' , 'text' }",
        ),
        (
            SEARCHES[2],
            "INSERT DATA { :other <http://e/1> <http://e/2> }",
        ),
        (SEARCHES[3], "INSERT DATA { GRAPH :g { :a :p 7 } :a :q 8 }"),
        (
            "INSERT { ?s :found 1 } WHERE { ?s a :C }",
            "INSERT DATA { :z a :D , :New ; :p 1 }",
        ),
        (SEARCHES[16], "INSERT DATA { :z :p 1 }"),
        (
            SEARCHES[22],
            "INSERT DATA { :z :p 1 GRAPH :h { :z :p 1 } GRAPH :g { :z :q 1 } }",
        ),
        (
            SEARCHES[23],
            "INSERT DATA { GRAPH :h { :z :p 1 } GRAPH :newest { :z :p 1 } }",
        ),
        (
            "COPY :g TO :h",
            "INSERT DATA { GRAPH :one { :z :p 1 } :a :p 7 }",
        ),
        (
            "INSERT { ?s :found ?o } WHERE { ?s ?p ?o }",
            "INSERT DATA { GRAPH :h { :z :p 1 } }",
        ),
        ("DELETE WHERE { ?s :p ?o }", "INSERT DATA { :z :q 1 }"),
    ] {
        let database = database();
        update(&database, START).unwrap();
        let overtake = |_| {
            update(&database, other).unwrap();
        };
        let (report, executions) = search(&database, text, LONG, &overtake);
        report.unwrap_or_else(|error| panic!("{text}\nbeside {other}: {error}"));
        assert_eq!(executions.beside_others, 1, "{text}\nbeside {other}");
        assert_eq!(
            contents(&database),
            one_after_another([other, text], 1).0,
            "{text}\nbeside {other}"
        );
    }
}

#[test]
fn blank_nodes_of_those_that_overtake_each_other_are_different_nodes() {
    let database = database();
    update(&database, START).unwrap();
    let overtake = |_| {
        update(&database, "INSERT DATA { [] :other _:x . _:x :other [] }").unwrap();
        let (report, _) = search(
            &database,
            "INSERT { [] :third ?s } WHERE { ?s :q 'x' }",
            LONG,
            &|_| {},
        );
        report.unwrap();
    };
    let text = "INSERT DATA { [] :first [] }; INSERT { [] :second _:b } WHERE { ?s :p ?o }";
    let (report, executions) = search(&database, text, LONG, &overtake);
    assert_eq!(report.unwrap().inserted, 3);
    assert_eq!(executions.beside_others, 1);
    update(&database, "INSERT DATA { [] :last [] }").unwrap();
    let nodes = rows(
        &database,
        &format!(
            "{PREFIX} SELECT DISTINCT ?n {{ {{ ?n ?p ?o }} UNION {{ ?s ?p ?n }} FILTER(isBlank(?n)) }}"
        ),
    );
    assert_eq!(nodes.len(), 3 + 1 + 2 + 4 + 2, "{nodes:?}");
}

#[test]
fn what_was_moved_onto_other_commits_is_read_from_the_log_again() {
    let folder = tempfile::tempdir().unwrap();
    let location = folder.path().join("store");
    let stored = Database::open_or_create(&location, config()).unwrap();
    update(&stored, START).unwrap();
    let overtake = |_| {
        update(&stored, "INSERT DATA { :new :newer 'newest' , 'new 2' }").unwrap();
    };
    for text in [SEARCHES[1], SEARCHES[2], SEARCHES[22]] {
        let (report, executions) = search(&stored, text, LONG, &overtake);
        assert!(report.unwrap().inserted > 0, "{text}");
        assert_eq!(executions.beside_others, 1, "{text}");
    }
    let before = contents(&stored);
    drop(stored);
    let stored = Database::open(&location, config()).unwrap();
    assert_eq!(contents(&stored), before);
}

#[test]
fn a_large_change_is_moved_while_others_write() {
    const SUBJECTS: usize = 21_000;
    let database = database();
    let mut data = String::new();
    for number in 0..SUBJECTS {
        data.push_str(&format!(":s{number} :p {number} . "));
    }
    update(&database, &format!("INSERT DATA {{ {data} }}")).unwrap();
    let overtake = |_| {
        update(&database, "INSERT DATA { :new :other 'newest' }").unwrap();
    };
    let text = "INSERT { ?s :found ?t } WHERE { ?s :p ?o BIND(CONCAT('new ', STR(?o)) AS ?t) }";
    let (report, executions) = search(&database, text, LONG, &overtake);
    assert_eq!(report.unwrap().inserted, SUBJECTS as u64);
    assert_eq!(executions.beside_others, 1);
    let query = format!(
        "{PREFIX} SELECT ?s {{ ?s :p ?o ; :found ?t FILTER(?t = CONCAT('new ', STR(?o))) }}"
    );
    assert_eq!(rows(&database, &query).len(), SUBJECTS);
}

/// A request that reads what others write each time.
const CONTESTED: &str = "INSERT { ?s :found ?o } WHERE { ?s :p ?o }";

fn contested(took: Duration) -> (Result<UpdateReport, EngineError>, Executions) {
    let database = database();
    update(&database, START).unwrap();
    let overtake = |execution| {
        update(&database, &format!("INSERT DATA {{ :z :p {execution} }}")).unwrap();
    };
    search(&database, CONTESTED, took, &overtake)
}

#[test]
fn others_wait_in_the_end_for_a_search_that_ends_in_the_time_that_they_ever_wait() {
    let (report, executions) = contested(Duration::from_millis(700));
    assert!(report.unwrap().inserted > 2);
    assert_eq!(executions.holding, 1);
    assert_eq!(executions.beside_others, 5, "it loses some races first");
}

#[test]
fn others_never_wait_for_a_search_that_takes_longer() {
    let (report, executions) = contested(LONG);
    let Err(EngineError::Contended {
        executions: reported,
    }) = report
    else {
        panic!("{report:?}");
    };
    assert_eq!(executions.holding, 0);
    assert_eq!(executions.beside_others, reported);
}

#[test]
fn others_wait_in_vain_for_one_search_a_few_times_only() {
    let database = database();
    update(&database, START).unwrap();
    let around = Around {
        took: Duration::from_millis(700),
        overtake: &|execution| {
            update(&database, &format!("INSERT DATA {{ :z :p {execution} }}")).unwrap();
        },
        holding: &|| {
            Err(EngineError::Timeout {
                limit: Duration::from_secs(1),
            })
        },
    };
    let (report, executions) = search_around(&database, CONTESTED, &around);
    assert!(
        matches!(report, Err(EngineError::Contended { .. })),
        "{report:?}"
    );
    assert_eq!(executions.holding, 2);
    assert!(executions.beside_others > 10, "{executions:?}");
}

#[test]
fn lists_that_were_written_out_during_a_search_stay() {
    let database = database();
    update(&database, "INSERT DATA { :a :p 1, 2, 3 . :b :q 1, 2, 3 }").unwrap();
    let recent = || database.inner().graph.load().snapshot.recent_changes();
    assert_eq!(recent(), 6);
    let write_out = |_| {
        database.fold().unwrap();
    };
    let text = "INSERT { :a :r ?x } WHERE { :a :p ?x }";
    let (report, executions) = search(&database, text, LONG, &write_out);
    assert_eq!(report.unwrap().inserted, 3);
    assert_eq!((executions.beside_others, executions.holding), (1, 0));
    assert_eq!(
        recent(),
        3,
        "only what was inserted last is not written out"
    );
}

#[test]
fn a_merge_waits_for_a_search_while_few_changes_wait_for_it() {
    let database = Database::with_config(Config {
        merge: MergePolicy {
            changes: 10,
            idle_changes: 1,
            ..MergePolicy::default()
        },
        ..Config::default()
    });
    update(&database, "INSERT DATA { :a :p 1, 2, 3 }").unwrap();
    let is_due = || database.inner().due_merge(Duration::MAX, false).is_some();
    assert!(is_due());
    let text = "INSERT { :a :r ?x } WHERE { :a :p ?x }";
    let commit = |_| {
        assert!(!is_due(), "nothing else is done, but it searches");
        let more = "INSERT DATA { :b :q 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 }";
        update(&database, more).unwrap();
        assert!(!is_due(), "a few more changes can wait, too");
    };
    let (report, executions) = search(&database, text, LONG, &commit);
    assert_eq!(report.unwrap().inserted, 3);
    assert_eq!((executions.beside_others, executions.holding), (1, 0));
}

/// Threads of long work have a priority of their own here.
fn database_with_background() -> Database {
    Database::with_config(Config {
        update_start: Some(ThreadStart::new(|| {})),
        ..config()
    })
}

/// On which threads a request is executed, and whether as a trial, if a trial takes as long as it
/// may.
fn threads_of(database: &Database, is_long: bool) -> Vec<(String, bool)> {
    let text = format!("{PREFIX} INSERT {{ :a :p 1 }} WHERE {{}}");
    let parsed = parse_update(&text, None, None).unwrap();
    let options = UpdateOptions::default();
    let threads = Mutex::new(Vec::new());
    let execute = |working: &mut Snapshot, deadline: &Deadline, execution: Execution| {
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        threads.lock().push((thread, execution.is_trial));
        if execution.is_trial {
            loop {
                deadline.left()?;
            }
        }
        let run = Run::new(database.inner(), &options, deadline, working).for_execution(execution);
        run.execute_all(&parsed.operations, &[None])
    };
    let search = Search {
        execute: &execute,
        is_long,
        documents: 1,
        brings: 0,
        clock: &Instant::now,
    };
    let deadline = Deadline::never();
    let report = database.search_and_transact(&deadline, &search);
    assert_eq!(report.unwrap().inserted, 1);
    threads.into_inner()
}

#[test]
fn what_proves_long_is_begun_again_with_the_priority_of_long_work() {
    let own = std::thread::current().name().unwrap_or_default().to_owned();
    let apart = || ("long-work".to_owned(), false);
    let threads = threads_of(&database_with_background(), false);
    assert_eq!(threads, [(own.clone(), true), apart()]);
    assert_eq!(threads_of(&database_with_background(), true), [apart()]);
    assert_eq!(threads_of(&database(), false), [(own, false)]);
}

/// How often the clock is asked while a request that is known to be long commits, if others commit
/// each time: twice around its execution and around each move for which nobody waits.
fn overtaken(database: &Database, text: &str) -> (UpdateReport, u32) {
    let parsed = parse_update(text, None, None).unwrap();
    let documents: Vec<_> = parsed.operations.iter().map(|_| None).collect();
    let options = UpdateOptions::default();
    let execute = |working: &mut Snapshot, deadline: &Deadline, execution: Execution| {
        let run = Run::new(database.inner(), &options, deadline, working).for_execution(execution);
        run.execute_all(&parsed.operations, &documents)
    };
    let (now, overtaken) = (Cell::new(Instant::now()), Cell::new(0));
    let clock = || {
        overtaken.set(overtaken.get() + 1);
        let text = format!("INSERT DATA {{ :b :p {} }}", overtaken.get());
        update(database, &text).unwrap();
        now.set(now.get() + LONG);
        now.get()
    };
    let search = Search {
        execute: &execute,
        is_long: true,
        documents: 1,
        brings: 0,
        clock: &clock,
    };
    let report = database.search_and_transact(&Deadline::never(), &search);
    (report.unwrap(), overtaken.get())
}

#[test]
fn others_wait_at_last_for_a_long_insertion_that_they_overtake_each_time() {
    let database = database();
    let numbers: String = (0..20_001).map(|number| format!("{number} ,")).collect();
    let text = format!("{PREFIX} INSERT DATA {{ :a :p {numbers} :end }}");
    let (report, overtaken) = overtaken(&database, &text);
    assert_eq!((report.inserted, overtaken), (20_002, 10));
    assert_eq!(rows(&database, "SELECT ?o { ?s ?p ?o }").len(), 20_002);
    assert_eq!(rows(&database, "SELECT ?s ?o { ?s ?p ?o }").len(), 20_012);
}

#[test]
fn graphs_count_as_quads_do_in_what_others_wait_for() {
    let create = |count| -> String {
        let graphs = (0..count).map(|number| format!("CREATE SILENT GRAPH <a:{number}> ; "));
        graphs.collect()
    };
    // Few are moved while others wait.
    assert_eq!(overtaken(&database(), &create(100)).1, 2);
    let database = database();
    assert_eq!(overtaken(&database, &create(20_001)).1, 10);
    assert_eq!(rows(&database, "SELECT ?g { GRAPH ?g {} }").len(), 20_001);
    let number = || database.inner().graph.load().snapshot.number();
    let before = number();
    // None of them is new, so nothing has changed.
    database.update(&create(1_000)).unwrap();
    assert_eq!(number(), before);
}

#[test]
fn writers_never_wait_for_a_merge_that_nobody_begins() {
    let mut config = config();
    config.merge.changes = 20;
    // Few changes of a large predicate are due, too.
    config.merge.share_of_graph = u64::MAX;
    let database = Database::with_config(config);
    let triple = |number: usize| format!("<http://e/{number}> <http://e/p> {number} . ");
    let all: String = (0..20_000).map(triple).collect();
    update(&database, &format!("INSERT DATA {{ {all} }}")).unwrap();
    database.compact().unwrap();
    for number in 20_000..20_400 {
        let text = format!("INSERT DATA {{ {} }}", triple(number));
        let options = UpdateOptions {
            timeout: Some(Duration::from_secs(60)),
            ..UpdateOptions::default()
        };
        database.update_with(&text, options).unwrap();
    }
    assert!(database.statistics().changes < 200);
}
