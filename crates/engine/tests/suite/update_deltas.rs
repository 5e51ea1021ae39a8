//! The quads that an update says it added and removed: are they the difference of what was there before
//! and what is there after it?

use std::collections::BTreeSet;

use jindou_engine::results::{QuadText, TermText, write_term};
use jindou_engine::{
    Config, Database, EngineError, GraphSelection, MergePolicy, UpdateDelta, UpdateOptions,
    UpdateReport,
};

const PREFIX: &str = "PREFIX : <http://e/>";

fn database_without_merges() -> Database {
    let mut config = Config::default();
    config.merge = MergePolicy::never();
    Database::with_config(config)
}

type Quads = BTreeSet<String>;

fn line(quad: QuadText<'_>) -> String {
    let mut out = Vec::new();
    let predicate = TermText::Iri(quad.predicate);
    let terms = [quad.subject, predicate, quad.object];
    for term in terms.into_iter().chain(quad.graph) {
        write_term(&mut out, term, false);
        out.push(b' ');
    }
    String::from_utf8(out).unwrap()
}

fn dump(database: &Database) -> Quads {
    let mut quads = Quads::new();
    let visit = |quad: QuadText<'_>| {
        assert!(quads.insert(line(quad)), "a quad is there once");
        Ok::<(), EngineError>(())
    };
    database.for_each_quad(&GraphSelection::All, visit).unwrap();
    quads
}

/// What a delta has, where each is once: added, removed.
fn sets(delta: &UpdateDelta) -> [Quads; 2] {
    let (mut added, mut removed) = (Quads::new(), Quads::new());
    let add = |quad: QuadText<'_>| {
        assert!(added.insert(line(quad)));
        Ok::<(), EngineError>(())
    };
    delta.for_each_added(0..usize::MAX, add).unwrap();
    let remove = |quad: QuadText<'_>| {
        assert!(removed.insert(line(quad)));
        Ok::<(), EngineError>(())
    };
    delta.for_each_removed(0..usize::MAX, remove).unwrap();
    assert_eq!(
        (added.len(), removed.len()),
        (delta.added(), delta.removed())
    );
    [added, removed]
}

fn update(database: &Database, text: &str) -> Result<UpdateReport, EngineError> {
    let options = UpdateOptions {
        return_delta: true,
        ..UpdateOptions::default()
    };
    database.update_with(&format!("{PREFIX} {text}"), options)
}

/// Updates, and checks the delta against dumps of everything.
fn check(database: &Database, text: &str) -> [usize; 2] {
    let before = dump(database);
    let delta = update(database, text).unwrap().delta.expect("asked for");
    let after = dump(database);
    let [added, removed] = sets(&delta);
    let expected: [Quads; 2] = [
        after.difference(&before).cloned().collect(),
        before.difference(&after).cloned().collect(),
    ];
    assert_eq!([added, removed], expected, "{text}");
    [delta.added(), delta.removed()]
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn quad(&mut self) -> String {
        let object = match self.below(3) {
            0 => format!(":n{}", self.below(5)),
            1 => self.below(5).to_string(),
            _ => format!("\"text {}\"@en", self.below(5)),
        };
        let predicate = match self.below(4) {
            0 => "a".to_owned(),
            number => format!(":p{number}"),
        };
        let triple = format!(":n{} {predicate} {object}", self.below(5));
        match self.below(3) {
            0 => triple,
            graph => format!("GRAPH :g{graph} {{ {triple} }}"),
        }
    }

    fn quads(&mut self) -> String {
        let many = 1 + self.below(12);
        let quads: Vec<String> = (0..many).map(|_| self.quad()).collect();
        let separated = quads.iter().map(|quad| match quad.starts_with('G') {
            true => quad.clone(),
            false => format!("{quad} ."),
        });
        separated.collect::<Vec<_>>().join(" ")
    }

    fn operation(&mut self) -> String {
        let (one, other) = (self.below(3), self.below(3));
        let graph = |number: u64| match number {
            0 => "DEFAULT".to_owned(),
            number => format!("GRAPH :g{number}"),
        };
        match self.below(12) {
            0..4 => format!("INSERT DATA {{ {} }}", self.quads()),
            4..8 => format!("DELETE DATA {{ {} }}", self.quads()),
            8 => {
                let text =
                    "DELETE { ?s :p1 ?o } INSERT { ?s :p2 ?o . _:b :of ?s } WHERE { ?s :p1 ?o }";
                text.to_owned()
            }
            9 => format!("COPY SILENT {} TO {}", graph(one), graph(other)),
            10 => format!("CLEAR SILENT {}", graph(one)),
            _ => format!(
                "DELETE {{ GRAPH ?g {{ ?s ?p :n{one} }} }} WHERE {{ GRAPH ?g {{ ?s ?p :n{one} }} }}"
            ),
        }
    }

    fn request(&mut self) -> String {
        let many = 1 + self.below(4);
        let operations: Vec<String> = (0..many).map(|_| self.operation()).collect();
        operations.join(" ; ")
    }
}

#[test]
fn deltas_of_random_updates_are_the_differences_of_dumps() {
    for seed in 0..6 {
        let database = database_without_merges();
        let mut random = Random(seed);
        let mut changed = 0;
        for round in 0..80 {
            let request = random.request();
            let [added, removed] = check(&database, &request);
            changed += usize::from(added + removed > 0);
            match round % 20 {
                5 => drop(database.compact().unwrap()),
                9 => drop(database.fold().unwrap()),
                13 => database.renumber_within(None).unwrap(),
                _ => {}
            }
        }
        assert!(changed > 40, "{changed}");
    }
}

#[test]
fn what_changes_and_changes_back_is_in_no_delta() {
    let database = Database::new();
    assert_eq!(
        check(&database, "INSERT DATA { :a :p 1 . GRAPH :g { :a :p 1 } }"),
        [2, 0]
    );
    for request in [
        "INSERT DATA { :a :p 1 }",
        "DELETE DATA { :a :p 2 }",
        "DELETE DATA { :a :p 1 } ; INSERT DATA { :a :p 1 }",
        "INSERT DATA { :b :p 1 } ; DELETE DATA { :b :p 1 }",
        "CLEAR GRAPH :g ; INSERT DATA { GRAPH :g { :a :p 1 } }",
        "CREATE GRAPH :empty",
        "",
    ] {
        assert_eq!(check(&database, request), [0, 0], "{request}");
    }
    assert_eq!(check(&database, "MOVE :g TO :h"), [1, 1]);
    assert_eq!(check(&database, "DROP ALL"), [0, 2]);
}

#[test]
fn no_delta_is_made_that_nobody_asks_for() {
    let database = Database::new();
    let report = database
        .update("INSERT DATA { <http://e/a> <http://e/p> 1 }")
        .unwrap();
    assert!(report.delta.is_none());
}

#[test]
fn a_loaded_document_is_added_with_its_blank_nodes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.trig");
    std::fs::write(
        &path,
        "_:a <http://e/p> _:b . <http://e/g> { _:a <http://e/p> \"x\\ny\" }",
    )
    .unwrap();
    let database = Database::new();
    let load = format!("LOAD <file://{}>", path.display());
    assert_eq!(check(&database, &load), [2, 0]);
    assert_eq!(
        check(&database, &load),
        [2, 0],
        "its blank nodes are new ones"
    );
    assert_eq!(check(&database, "INSERT DATA { _:x :p _:x }"), [1, 0]);
}

#[test]
fn deltas_of_writers_beside_each_other_lead_from_snapshot_to_snapshot() {
    let database = database_without_merges();
    let mut reports: Vec<UpdateReport> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let database = &database;
                scope.spawn(move || {
                    let mut random = Random(100 + writer);
                    let requests = (0..40).map(|_| random.request());
                    requests
                        .map(|request| update(database, &request).unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        for _ in 0..10 {
            database.compact().unwrap();
        }
        writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect()
    });
    // Of those of one number, all but one changed nothing.
    reports.sort_by_key(|report| report.snapshot);
    let mut quads = Quads::new();
    for report in &reports {
        let [added, removed] = sets(report.delta.as_ref().unwrap());
        for quad in &removed {
            assert!(quads.remove(quad), "{quad} was there");
        }
        for quad in added {
            assert!(quads.insert(quad), "it was not there");
        }
    }
    assert_eq!(quads, dump(&database));
}

#[test]
fn a_delta_beyond_the_memory_of_a_query_is_refused_before_anything_is_changed() {
    let mut config = Config::default();
    config.query_memory_bytes = 1 << 20;
    let database = Database::with_config(config);
    let many = 10_000;
    let quads: String = (0..many)
        .map(|number| format!(":s{number} :p {number} ."))
        .collect();
    let insert = format!("INSERT DATA {{ GRAPH :g {{ {quads} }} }}");
    let is_refused = |request: &str| {
        let number = database.snapshot_number();
        let refused = update(&database, request).unwrap_err();
        assert!(
            matches!(refused, EngineError::DeltaTooLarge { changes, .. } if changes == many),
            "{refused}"
        );
        assert!(
            refused.to_string().contains("nothing was changed"),
            "{refused}"
        );
        assert_eq!(database.snapshot_number(), number);
    };
    is_refused(&insert);
    assert_eq!(dump(&database).len(), 0);
    database.update(&format!("{PREFIX} {insert}")).unwrap();
    for request in ["CLEAR GRAPH :g", "DROP ALL"] {
        is_refused(request);
        assert_eq!(dump(&database).len() as u64, many);
    }
    assert_eq!(
        check(&database, "DELETE WHERE { GRAPH :g { :s7 ?p ?o } }"),
        [0, 1]
    );
}

#[test]
fn parts_of_a_delta_are_all_of_it() {
    let database = Database::new();
    let quads: String = (0..100)
        .map(|number| format!(":s{number} :p {number} ."))
        .collect();
    let delta = update(&database, &format!("INSERT DATA {{ {quads} }}"))
        .unwrap()
        .delta
        .unwrap();
    // What comes later does not change it, nor does a merge.
    database.update("CLEAR ALL").unwrap();
    database.renumber_within(None).unwrap();
    let mut seen = Quads::new();
    for begin in (0..delta.added()).step_by(7) {
        let visit = |quad: QuadText<'_>| {
            assert!(seen.insert(line(quad)));
            Ok::<(), EngineError>(())
        };
        delta.for_each_added(begin..begin + 7, visit).unwrap();
    }
    assert_eq!(seen, sets(&delta)[0]);
    assert_eq!(seen.len(), 100);
}
