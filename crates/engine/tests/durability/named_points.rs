//! Crashes at named points of merges by segment, checkpoints, updates and recoveries: what does a
//! reader find in that state, what does the next writer, and has any living term another id?
//!
//! A store lives through random updates, merges of all or some predicates, checkpoints, loads and
//! new numberings in one thread, with transactions that come while a merge writes its files. At each
//! point (see `watched`) the folder is copied as a kill of the process leaves it, or as a loss of
//! power may: nothing that is written later is in the copy. A reader opens the folder itself at that
//! moment, too, and some operations fail, after which the store goes on. What a state may hold is known quad by quad from a naive model, with the id of each
//! term. The store then goes on from one of these states, so that crashes follow one another.
//!
//! `JINDOU_CRASHES=5000 JINDOU_SEED=1 cargo test -p jindou-engine --test durability named_points`
//! checks more of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Config, Database, EngineError, LoadOptions, QueryResults};

use crate::contents::{Contents, check_ids, check_quads, contents};
use crate::random_requests::{Quad, Requests, half, large_document};
use crate::watched::{During, Outcome, Point, Watch};
use crate::{Random, environment, names};

/// One in so many operations that may fail does.
const FAILURES: u64 = 25;
/// Readers that are kept open.
const READERS: usize = 3;

/// How a state came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Crash {
    /// All that was asked of the operating system is there.
    Kill,
    /// What no sync has covered may be there or not.
    PowerLoss,
}

/// Which transactions a state may have.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    /// The last one that was acknowledged.
    last: usize,
    /// The next one has begun.
    has_next: bool,
}

/// A state of the folder at a point.
struct State {
    at: (Point, Crash),
    folder: PathBuf,
    acknowledged: Acknowledged,
}

/// A reader of the folder itself, opened at a point.
struct Reader {
    point: Point,
    database: Database,
    acknowledged: Acknowledged,
}

/// What happened, and what is to be checked once the request under way has ended.
struct Story {
    random: Random,
    requests: Requests,
    folder: PathBuf,
    /// After each transaction, loads and new numberings among them.
    past: Vec<Contents>,
    has_next: bool,
    states: Vec<State>,
    readers: Vec<Reader>,
    states_made: u64,
    visits: BTreeMap<Point, u64>,
    /// Where a state was taken at least once.
    seen: BTreeSet<(Point, Crash)>,
    /// Transactions that came while files were written.
    meanwhile: u64,
    /// Where operations failed, in the step under way, and how many did before.
    failures: Vec<Point>,
    failed: u64,
}

impl Story {
    fn acknowledged(&self) -> Acknowledged {
        Acknowledged {
            last: self.past.len() - 1,
            has_next: self.has_next,
        }
    }

    fn last(&self) -> &Contents {
        self.past.last().expect("it begins with a state")
    }

    fn state_folder(&mut self) -> PathBuf {
        self.states_made += 1;
        self.folder.join(format!("state-{}", self.states_made))
    }

    /// What to do at a point: seldom much where it is come to often.
    fn visit(
        &mut self,
        point: Point,
        location: &Path,
        database: Option<&Database>,
        watch: &Watch,
    ) -> Outcome {
        *self.visits.entry(point).or_default() += 1;
        if let Some(database) = database
            && point.takes_transactions()
            && self.random.below(3) == 0
        {
            self.update(database);
            self.meanwhile += 1;
        }
        let often = match point {
            Point::TransactionWritten | Point::TransactionSynced => 20,
            Point::BeforeUnlink | Point::BeforeUnlinkOnOpening => 12,
            _ => 5,
        };
        let acknowledged = self.acknowledged();
        for crash in [Crash::Kill, Crash::PowerLoss] {
            let at = (point, crash);
            let chosen = self.random.below(often) == 0;
            // Those that are come to seldom are not left to chance.
            if !chosen && self.seen.contains(&at) {
                continue;
            }
            self.seen.insert(at);
            let folder = self.state_folder();
            match crash {
                Crash::Kill => copy(location, &folder),
                Crash::PowerLoss => watch.lose_power(&mut self.random, &folder),
            }
            self.states.push(State {
                at,
                folder,
                acknowledged,
            });
        }
        if self.random.below(2 * often) == 0 {
            let database = Database::open_to_read(location, config())
                .unwrap_or_else(|error| panic!("a reader at {point:?}: {error}"));
            self.readers.push(Reader {
                point,
                database,
                acknowledged,
            });
        }
        if point.may_fail() && self.random.below(FAILURES) == 0 {
            self.failures.push(point);
            return Outcome::Refused;
        }
        Outcome::Done
    }

    fn update(&mut self, database: &Database) {
        let quads = self.last().quads.clone();
        let change = self.requests.next(&quads);
        let updated = database.update(&change.request);
        updated.unwrap_or_else(|error| panic!("{error}\n{}", change.request));
        let after = contents(database);
        check_quads(&after.quads, &change.quads, &change.request);
        check_ids(self.last(), &after, &change.request);
        self.past.push(after);
    }
}

fn config() -> Config {
    let mut config = crate::config();
    config.threads = 1;
    // Lists are written out when the test says so.
    config.merge.fold_idle = Duration::from_secs(3_600);
    config.merge.fold_changes = u64::MAX;
    config
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the folder is new");
    for name in names(from) {
        fs::copy(from.join(&name), to.join(&name)).expect("there is room");
    }
}

/// A configuration of a store in a state: its files are not really synced, which takes long.
fn unsynced(location: &Path) -> Config {
    let mut config = config();
    Watch::of(location).configure(&mut config);
    config
}

/// Which of the states that it may be in a database is in.
fn place(found: &Contents, past: &[Contents], acknowledged: Acknowledged, what: &str) -> usize {
    let last = acknowledged.last;
    let most = last + usize::from(acknowledged.has_next);
    let place = (last..=most).find(|place| past.get(*place) == Some(found));
    place.unwrap_or_else(|| {
        check_ids(&past[last], found, what);
        check_quads(&found.quads, &past[last].quads, what);
        panic!("{what}: terms have other ids than in {acknowledged:?}")
    })
}

/// All files of a store are needed.
fn check_no_leaks(location: &Path, what: &str) {
    let report = Database::verify(location).unwrap_or_else(|error| panic!("{what}: {error}"));
    let needed: BTreeSet<String> = report.files.into_iter().map(|file| file.name).collect();
    let text = fs::read_to_string(location.join("CURRENT")).expect("a store has it");
    let current: Vec<&str> = text.split(' ').collect();
    let number = |word: &str| word.parse::<u64>().expect("a number");
    let (generation, checkpoint) = (current[1], number(current[3]));
    for name in names(location) {
        let parts: Vec<&str> = name.trim_end_matches(".jnd").split('-').collect();
        let is_needed = match *parts.as_slice() {
            ["CURRENT" | "LOCK"] => true,
            ["log", of, file] => of == generation && number(file) > checkpoint,
            _ => needed.contains(&name),
        };
        assert!(is_needed, "{what}: {name} is left, and CURRENT is {text}");
    }
}

/// A reader, `verify` and a writer find the same, which is one of the states that there were; the
/// writer goes on. Gives the number of that state.
fn check_state(state: &State, past: &[Contents], requests: &mut Requests, seed: u64) -> usize {
    let State {
        at,
        folder,
        acknowledged,
    } = state;
    let what = format!("seed {seed}, {at:?}, {}", folder.display());
    let reader = Database::open_to_read(folder, config())
        .unwrap_or_else(|error| panic!("{what}, reader: {error}; {:?}", names(folder)));
    let shown = contents(&reader);
    let place = place(&shown, past, *acknowledged, &format!("{what}, reader"));
    Database::verify(folder).unwrap_or_else(|error| panic!("{what}, verify: {error}"));
    let writer = Database::open(folder, unsynced(folder))
        .unwrap_or_else(|error| panic!("{what}, writer: {error}; {:?}", names(folder)));
    let mut found = contents(&writer);
    assert!(found == shown, "{what}: a writer finds what a reader does");
    let choice = requests.random.next();
    for step in 0..choice % 4 {
        let change = requests.next(&found.quads);
        let what = format!("{what}, going on, {step}:\n{}", change.request);
        writer
            .update(&change.request)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        let merged = match step {
            1 => writer.compact().map(drop),
            _ => writer.compact_some(&half(choice)).map(drop),
        };
        merged.unwrap_or_else(|error| panic!("{what}: {error}"));
        let after = contents(&writer);
        check_quads(&after.quads, &change.quads, &what);
        check_ids(&found, &after, &what);
        found = after;
    }
    writer
        .checkpoint()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    check_no_leaks(folder, &what);
    assert!(contents(&writer) == found, "{what}, after a checkpoint");
    drop(writer);
    // Its files are gone, or others have their place; it has mapped what it needs.
    assert!(contents(&reader) == shown, "{what}, the reader, later");
    place
}

/// The number of states that were checked.
#[derive(Default)]
struct Checked {
    at: BTreeMap<(Point, Crash), u64>,
    /// While tables of terms were joined, and of those after terms had been forgotten.
    joins: u64,
    reclaims: u64,
    readers: u64,
    recoveries: u64,
}

impl Checked {
    fn states(&self) -> u64 {
        self.at.values().sum()
    }

    /// Whether there were states of both kinds at each point.
    fn has_all(&self) -> bool {
        let both = |point| [(point, Crash::Kill), (point, Crash::PowerLoss)];
        let mut all = Point::ALL.into_iter().flat_map(both);
        all.all(|at| self.at.contains_key(&at))
    }
}

/// One life of the store's process: opened, asked for this and that, and gone.
struct Life {
    seed: u64,
    location: PathBuf,
    database: Database,
    watch: Arc<Watch>,
    story: Arc<Mutex<Story>>,
    /// Open for longer, with the number of the state that they show.
    readers: Vec<(Database, usize)>,
    /// Where to go on from: a crash state, and the number of what it has.
    next: Option<(PathBuf, usize)>,
}

fn visitor(
    story: &Arc<Mutex<Story>>,
    location: &Path,
    database: Option<Database>,
    watch: &Arc<Watch>,
) -> crate::watched::Visitor {
    let (story, location) = (Arc::clone(story), location.to_owned());
    // Not counted, as the watch has the visitor.
    let (watch, thread) = (Arc::downgrade(watch), thread::current().id());
    Box::new(move |point| {
        // What the background does is modelled, and comes at no moment that a seed decides.
        if let (true, Some(watch)) = (thread::current().id() == thread, watch.upgrade()) {
            let mut story = story.lock().expect("no test panicked");
            return story.visit(point, &location, database.as_ref(), &watch);
        }
        Outcome::Done
    })
}

impl Life {
    fn open(seed: u64, location: PathBuf, story: &Arc<Mutex<Story>>) -> Self {
        let watch = Watch::of(&location);
        let mut config = config();
        watch.configure(&mut config);
        watch.begin(During::Opening);
        watch.visit(Some(visitor(story, &location, None, &watch)));
        let database = Database::open(&location, config)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}; {:?}", names(&location)));
        let found = contents(&database);
        let expected = story.lock().expect("no test panicked").last().clone();
        assert!(found == expected, "seed {seed}, opened");
        let all = visitor(story, &location, Some(database.clone()), &watch);
        watch.visit(Some(all));
        Self {
            seed,
            location,
            database,
            watch,
            story: Arc::clone(story),
            readers: Vec::new(),
            next: None,
        }
    }

    /// Whether what was asked for was done: else an operation failed on the way.
    fn is_done(&self, done: Result<(), EngineError>) -> bool {
        let failures = self.story(|story| story.failures.clone());
        match done {
            Ok(()) => true,
            Err(_) if !failures.is_empty() => false,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn story<T>(&self, work: impl FnOnce(&mut Story) -> T) -> T {
        work(&mut self.story.lock().expect("no test panicked"))
    }

    fn step(&mut self, random: &mut Random, checked: &mut Checked) {
        let (tables, current) = (self.tables(), self.current());
        match random.below(20) {
            0..=8 => self.update(),
            9..=11 => self.merge(None, random),
            12..=15 => self.merge(Some(random.next()), random),
            16 | 17 => self.checkpoint(),
            18 => drop(self.database.fold().expect("nothing failed")),
            _ => match random.below(3) {
                0 => self.renumber(),
                _ => self.load(),
            },
        }
        let is_join = !tables.is_subset(&self.tables());
        let failed = self.story(|story| {
            let failed = story.failures.len() as u64;
            story.failures.clear();
            story.failed += failed;
            failed
        });
        if failed == 0 && self.current() != current {
            let what = format!("seed {}, while it is open", self.seed);
            check_no_leaks(&self.location, &what);
        }
        self.settle(is_join, random, checked);
    }

    fn current(&self) -> Vec<u8> {
        fs::read(self.location.join("CURRENT")).expect("a store has it")
    }

    fn tables(&self) -> BTreeSet<String> {
        let names = names(&self.location).into_iter();
        names.filter(|name| name.starts_with("terms-")).collect()
    }

    fn update(&self) {
        self.watch.begin(During::Update);
        let change = self.story(|story| {
            story.has_next = true;
            let quads = story.last().quads.clone();
            story.requests.next(&quads)
        });
        let what = format!("seed {}: {}", self.seed, change.request);
        let updated = self.database.update(&change.request);
        updated.unwrap_or_else(|error| panic!("{what}: {error}"));
        let after = contents(&self.database);
        check_quads(&after.quads, &change.quads, &what);
        self.story(|story| check_ids(story.last(), &after, &what));
        self.came(after);
    }

    fn came(&self, after: Contents) {
        self.story(|story| {
            story.has_next = false;
            story.past.push(after);
        });
    }

    /// Nothing but what others did meanwhile has changed, and no id.
    fn check_unchanged(&self, what: &str) {
        let found = contents(&self.database);
        self.story(|story| {
            let what = format!("seed {}, {what}", self.seed);
            check_ids(story.last(), &found, &what);
            check_quads(&found.quads, &story.last().quads, &what);
            assert!(found == *story.last(), "{what}");
        });
    }

    /// A merge of all changed predicates, or of half of them, under a query that goes on.
    fn merge(&self, choice: Option<u64>, random: &mut Random) {
        let begun = (random.below(2) == 0).then(|| {
            let query = "SELECT * { ?s ?p ?o }";
            let results = self.database.query(query).expect("it is sound");
            let rows = self.database.quad_counts().triples;
            (results, rows as usize)
        });
        self.watch.begin(During::Merge);
        let merged = match choice {
            None => self.database.compact(),
            Some(choice) => self.database.compact_some(&half(choice)),
        };
        self.is_done(merged.map(drop));
        self.check_unchanged("merged");
        if let Some((QueryResults::Solutions(solutions), rows)) = begun {
            let found = solutions.map(|row| row.expect("its files are mapped"));
            assert_eq!(found.count(), rows, "seed {}", self.seed);
        }
    }

    fn checkpoint(&self) {
        self.watch.begin(During::Checkpoint);
        self.is_done(self.database.checkpoint());
        self.check_unchanged("after a checkpoint");
    }

    fn renumber(&self) {
        self.watch.begin(During::Replacing);
        self.story(|story| story.has_next = true);
        if !self.is_done(self.database.renumber_within(None)) {
            return self.not_replaced();
        }
        let after = contents(&self.database);
        self.story(|story| check_quads(&after.quads, &story.last().quads, "numbered anew"));
        self.came(after);
    }

    fn not_replaced(&self) {
        self.story(|story| story.has_next = false);
        self.check_unchanged("not replaced");
    }

    /// A load, of so little that it is a transaction or of more, with transactions meanwhile.
    fn load(&self) {
        let (new, is_first) = self.story(|story| {
            story.has_next = true;
            let count = [4, 40][story.requests.random.below(2) as usize];
            let new: Vec<Quad> = (0..count).map(|_| story.requests.quad()).collect();
            (new, story.past.len() == 1 && story.last().ids.is_empty())
        });
        self.watch.begin(match is_first {
            true => During::Replacing,
            false => During::Loading,
        });
        let line = |[s, p, o, g]: &Quad| format!("{s} {p} {o} {g} .\n");
        let text: String = new.iter().map(line).collect();
        let document = Source::bytes("document.nq", text).with_format(Format::NQuads);
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let loaded = self.database.load(vec![document], &options, &progress);
        if !self.is_done(loaded.map(drop)) {
            return self.not_replaced();
        }
        // Behind what others did meanwhile.
        let mut quads = self.story(|story| story.last().quads.clone());
        quads.extend(new);
        let after = contents(&self.database);
        check_quads(&after.quads, &quads, "loaded");
        self.story(|story| check_ids(story.last(), &after, "loaded"));
        self.came(after);
    }

    /// Checks the states and readers that points of the last step have left.
    fn settle(&mut self, is_join: bool, random: &mut Random, checked: &mut Checked) {
        let (states, readers, past, mut requests, has_forgotten) = self.story(|story| {
            (
                std::mem::take(&mut story.states),
                std::mem::take(&mut story.readers),
                story.past.clone(),
                story.requests.clone(),
                story.visits.contains_key(&Point::Forgetting),
            )
        });
        for reader in readers {
            let Reader {
                point,
                database,
                acknowledged,
            } = reader;
            let what = format!("seed {}, a reader at {point:?}", self.seed);
            let place = place(&contents(&database), &past, acknowledged, &what);
            checked.readers += 1;
            self.readers.push((database, place));
            if self.readers.len() > READERS {
                let place = random.below(READERS as u64) as usize;
                self.readers.swap_remove(place);
            }
        }
        for (reader, place) in &self.readers {
            let found = contents(reader);
            assert!(found == past[*place], "seed {}, an old reader", self.seed);
        }
        for state in states {
            let kept = (random.below(3) == 0).then(|| {
                let kept = state.folder.with_extension("kept");
                copy(&state.folder, &kept);
                kept
            });
            requests.random.next();
            let place = check_state(&state, &past, &mut requests, self.seed);
            fs::remove_dir_all(&state.folder).expect("it is there");
            *checked.at.entry(state.at).or_default() += 1;
            let joins = state.at.0 == Point::TableWritten && is_join;
            checked.joins += u64::from(joins);
            checked.reclaims += u64::from(joins && has_forgotten);
            if let Some(kept) = kept {
                self.leave(Some((kept, place)));
            }
        }
    }

    fn leave(&mut self, next: Option<(PathBuf, usize)>) {
        if let Some((folder, _)) = std::mem::replace(&mut self.next, next) {
            fs::remove_dir_all(folder).expect("it is there");
        }
    }

    /// Ends it, mostly in a crash, and gives where the store lies then.
    fn end(mut self, random: &mut Random) -> PathBuf {
        self.watch.visit(None);
        match random.below(4) {
            0 => self.leave(None),
            _ => {
                if let Some((next, place)) = self.next.take() {
                    fs::remove_dir_all(&self.location).expect("it is there");
                    // Transactions behind it never were.
                    self.story(|story| story.past.truncate(place + 1));
                    return next;
                }
            }
        }
        self.location
    }
}

fn live(
    seed: u64,
    (has_large, is_last): (bool, bool),
    crashes: u64,
    checked: &mut Checked,
) -> Visited {
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("there is room");
    let mut location = folder.path().join("store");
    let made = Database::open_or_create(&location, config()).expect("it can be made");
    if has_large {
        let (options, progress) = (LoadOptions::default(), Progress::default());
        let loaded = made.load(large_document(), &options, &progress);
        loaded.expect("the document is sound");
    }
    let begin = contents(&made);
    drop(made);
    let story = Story {
        random: Random(random.next()),
        requests: Requests {
            random: Random(random.next()),
            texts: 0,
            has_large,
        },
        folder: folder.path().to_owned(),
        past: vec![begin],
        has_next: false,
        states: Vec::new(),
        readers: Vec::new(),
        states_made: 0,
        visits: BTreeMap::new(),
        seen: BTreeSet::new(),
        meanwhile: 0,
        failures: Vec::new(),
        failed: 0,
    };
    let story = Arc::new(Mutex::new(story));
    let begun = checked.states();
    let mut lives = 0;
    while checked.states() - begun < crashes || (is_last && !checked.has_all() && lives < 60) {
        lives += 1;
        let mut life = Life::open(seed, location, &story);
        life.settle(false, &mut random, checked);
        for _ in 0..4 + random.below(16) {
            life.step(&mut random, checked);
        }
        location = life.end(&mut random);
        checked.recoveries += 1;
    }
    let story = story.lock().expect("no test panicked");
    Visited {
        points: story.visits.clone(),
        meanwhile: story.meanwhile,
        failed: story.failed,
    }
}

/// What the life of a store came to.
struct Visited {
    points: BTreeMap<Point, u64>,
    /// Transactions that came while files were written.
    meanwhile: u64,
    /// Operations that failed.
    failed: u64,
}

#[test]
fn at_each_named_point_a_crash_leaves_a_whole_store_with_the_ids_that_it_had() {
    const STORES: u64 = 4;
    let seed = environment("JINDOU_SEED", 1);
    let crashes = environment("JINDOU_CRASHES", 160);
    println!("seed {seed}, {crashes} crashes (JINDOU_SEED, JINDOU_CRASHES)");
    let (mut checked, mut meanwhile, mut failed) = (Checked::default(), 0, 0);
    for store in 0..STORES {
        // Each state of the one with large predicates takes longer.
        let (has_large, is_last) = (store == 0, store == STORES - 1);
        let crashes = crashes.div_ceil(STORES * if has_large { 2 } else { 1 });
        let visited = live(seed + store, (has_large, is_last), crashes, &mut checked);
        meanwhile += visited.meanwhile;
        failed += visited.failed;
        println!("seed {}: {:?}", seed + store, visited.points);
    }
    let Checked {
        joins,
        reclaims,
        readers,
        recoveries,
        ..
    } = checked;
    println!("{:?}", checked.at);
    println!(
        "{} states, {joins} in a join of tables, {reclaims} of these with forgotten terms; \
         {readers} readers, {meanwhile} transactions during merges, {failed} failures, \
         {recoveries} lives",
        checked.states()
    );
    assert!(checked.has_all(), "a point was not come to");
    if crashes >= 160 {
        assert!(joins > 0 && reclaims > 0 && readers > 0 && meanwhile > 0 && failed > 0);
    }
}
