//! Random batches, merges, forgets and windows against the oracle.
//!
//! A failure prints its seed. `JINDOU_WINDOW_SEED=7 JINDOU_WINDOW_SEEDS=1` replays the one of seed 7,
//! and `JINDOU_WINDOW_SEEDS=5000 cargo test -p jindou-store window` runs more of them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use jindou_model::{
    Cursor, Direction, IdRanges, Lists, Membership, Pattern, Precision, PredicateId, TermId,
    TermKind,
};

use super::super::{Bounds, Merge, Ring, RingOptions, Run, StreamTuple, Window};
use super::oracle::{Oracle, Stream};

const SEEDS: u64 = 60;
const STEPS: usize = 60;
const PREDICATES: u64 = 4;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}

/// Says which seed failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "failed with JINDOU_WINDOW_SEED={} JINDOU_WINDOW_SEEDS=1",
                self.0
            );
        }
    }
}

/// How wide ids and times of a seed lie.
struct Shape {
    ids: u64,
    id_step: u64,
    kinds: bool,
    time_step: u64,
}

impl Shape {
    fn new(random: &mut Random) -> Self {
        Self {
            ids: [3, 20, 300][random.below(3) as usize],
            id_step: [1, 1, 1000, 1 << 40][random.below(4) as usize],
            kinds: random.chance(2),
            time_step: [1, 1, 300, 1 << 34][random.below(4) as usize],
        }
    }

    fn id(&self, random: &mut Random) -> TermId {
        let number = 5 + random.below(self.ids) * self.id_step;
        let kind = match random.below(6) {
            0 if self.kinds => TermKind::Literal,
            1 if self.kinds => TermKind::Integer,
            2 if self.kinds => TermKind::Date,
            _ => TermKind::Vertex,
        };
        TermId::new(kind, number)
    }

    /// Mostly one that tuples may have; sometimes one that no tuple has.
    fn asked(&self, random: &mut Random) -> TermId {
        match random.below(12) {
            0 => TermId::NONE,
            1 => TermId::from_raw(u64::MAX),
            2 => TermId::vertex(random.below(9)),
            _ => self.id(random),
        }
    }

    fn predicate(random: &mut Random) -> PredicateId {
        PredicateId(random.below(PREDICATES) as u32)
    }
}

/// One stream, its ring, and a merge that may be under way.
struct Fed {
    stream: Stream,
    ring: Ring,
    now_ms: i64,
    merge: Option<Merge>,
}

impl Fed {
    fn new(random: &mut Random) -> Self {
        let longest_run_ms = [u64::MAX, u64::MAX, 50][random.below(3) as usize];
        Self {
            stream: Stream::default(),
            ring: Ring::new(RingOptions { longest_run_ms }),
            now_ms: -50,
            merge: None,
        }
    }

    fn append(&mut self, shape: &Shape, random: &mut Random) {
        let size = [0, 1, 5, 30, 300][random.below(5) as usize];
        let mut batch = Vec::new();
        for _ in 0..size {
            let tuple = StreamTuple {
                time_ms: self.now_ms,
                subject: shape.id(random),
                predicate: Shape::predicate(random),
                object: shape.id(random),
            };
            batch.push(tuple);
            // The same again, at the same time or later.
            if random.chance(4) {
                batch.push(tuple);
            }
            self.now_ms +=
                (random.below(3).saturating_sub(1) * random.below(2) * shape.time_step) as i64;
            if random.chance(6) {
                batch.push(StreamTuple {
                    time_ms: self.now_ms,
                    ..tuple
                });
            }
            if random.chance(6)
                && let Some(old) = self.stream.tuples.last()
            {
                batch.push(StreamTuple {
                    time_ms: self.now_ms,
                    ..*old
                });
            }
        }
        if random.chance(3) {
            self.now_ms += (random.below(40) * shape.time_step) as i64;
        }
        self.stream.tuples.extend(&batch);
        for index in (1..batch.len()).rev() {
            batch.swap(index, random.below(index as u64 + 1) as usize);
        }
        let run = Run::from_batch(&batch).expect("ids of terms");
        self.ring.append(run).expect("in order");
    }

    fn step(&mut self, shape: &Shape, random: &mut Random) {
        match random.below(8) {
            0..4 => self.append(shape, random),
            4 => self.merge = self.ring.merge_due(),
            5 => {
                if let Some(merge) = self.merge.take() {
                    // One that came too late is of no use.
                    let _ = self.ring.apply(merge.execute());
                }
            }
            6 => {
                while let Some(merge) = self.ring.merge_due() {
                    assert!(self.ring.apply(merge.execute()));
                }
            }
            _ if random.chance(3) => {
                let time_ms = self.any_time(random);
                self.ring.forget_before(time_ms);
                self.stream.kept_from_ms = self.stream.kept_from_ms.max(time_ms);
            }
            _ => {}
        }
    }

    fn any_time(&self, random: &mut Random) -> i64 {
        match random.below(16) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => {
                let span = self.now_ms.abs_diff(-50) + 3;
                -51 + random.below(span) as i64
            }
        }
    }

    fn bounds(&self, random: &mut Random) -> Bounds {
        let times = [self.any_time(random), self.any_time(random)];
        if random.chance(8) {
            return Bounds {
                from_ms: times[0],
                until_ms: times[1],
            };
        }
        Bounds {
            from_ms: times[0].min(times[1]),
            until_ms: times[0].max(times[1]),
        }
    }
}

fn environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |number| number.parse().expect("a number"))
}

#[test]
fn windows_agree_with_a_list_that_is_read_from_scratch() {
    let first = environment("JINDOU_WINDOW_SEED", 0);
    let seeds = environment("JINDOU_WINDOW_SEEDS", SEEDS);
    for seed in first..first + seeds {
        let _named = Seed(seed);
        let random = &mut Random(seed);
        let shape = Shape::new(random);
        let mut streams = [Fed::new(random), Fed::new(random)];
        for _ in 0..STEPS {
            let stream = random.below(2) as usize;
            streams[stream].step(&shape, random);
            if random.chance(3) {
                check(&streams, &shape, random);
                check_terms(&streams[stream]);
            }
        }
    }
}

/// Terms of all that is kept are there; none is there that never came.
fn check_terms(fed: &Fed) {
    let terms = |tuple: &StreamTuple| [tuple.subject, tuple.object];
    let ever: BTreeSet<TermId> = fed.stream.tuples.iter().flat_map(terms).collect();
    let kept = fed.stream.tuples.iter();
    let kept = kept.filter(|tuple| tuple.time_ms >= fed.stream.kept_from_ms);
    let kept: BTreeSet<TermId> = kept.flat_map(terms).collect();
    let mut found = BTreeSet::new();
    fed.ring.snapshot().for_each_term(&mut |term| {
        found.insert(term);
    });
    assert!(kept.is_subset(&found) && found.is_subset(&ever));
}

fn check(streams: &[Fed], shape: &Shape, random: &mut Random) {
    let count = 1 + random.below(2) as usize;
    let asked: Vec<(&Fed, Bounds)> = streams[..count]
        .iter()
        .map(|fed| (fed, fed.bounds(random)))
        .collect();
    let window = Window::new(
        asked
            .iter()
            .map(|(fed, bounds)| (fed.ring.snapshot(), *bounds)),
    );
    let oracle = Oracle::new(asked.iter().map(|(fed, bounds)| (&fed.stream, *bounds)));
    let case = Case {
        window: &window,
        oracle: &oracle,
        shape,
    };
    for _ in 0..6 {
        case.expand(random);
        case.contains(random);
        case.retain(random);
        case.degrees(random);
        case.members(random);
        case.matches(random);
        case.catalogue(random);
        case.times(random);
    }
}

/// A window and what it should be.
struct Case<'a> {
    window: &'a Window,
    oracle: &'a Oracle,
    shape: &'a Shape,
}

impl Case<'_> {
    fn direction(random: &mut Random) -> Direction {
        [Direction::Out, Direction::In][random.below(2) as usize]
    }

    fn keys(&self, count: usize, random: &mut Random) -> Vec<TermId> {
        let mut keys: Vec<TermId> = (0..count).map(|_| self.shape.asked(random)).collect();
        match random.below(3) {
            0 => keys.sort_unstable(),
            1 if count > 0 => {
                let one = keys[0];
                keys.fill(one);
            }
            _ => {}
        }
        keys
    }

    fn allowed(&self, random: &mut Random) -> Option<IdRanges> {
        if random.chance(2) {
            return None;
        }
        let ids: BTreeSet<TermId> = (0..self.shape.ids).map(|_| self.shape.id(random)).collect();
        let mut allowed = IdRanges::new();
        allowed.extend_sorted(ids.into_iter().map(TermId::raw));
        Some(allowed)
    }

    fn expand(&self, random: &mut Random) {
        let count = [0, 1, 1, 7, 300][random.below(5) as usize];
        let several = 1 + [0, 0, 1, 2][random.below(4) as usize];
        let keys: Vec<Vec<TermId>> = (0..several).map(|_| self.keys(count, random)).collect();
        let lists: Vec<Lists<'_>> = keys
            .iter()
            .map(|keys| Lists {
                predicate: Shape::predicate(random),
                direction: Self::direction(random),
                keys,
            })
            .collect();
        let allowed = self.allowed(random);
        let budget = [1, 2, 10, 100_000][random.below(4) as usize];
        let mut cursor = Cursor::default();
        let mut found: Vec<(u32, TermId)> = Vec::new();
        while cursor.key < count {
            let before = cursor;
            let (mut rows, mut out) = (Vec::new(), Vec::new());
            self.window.expand(
                &lists,
                &mut cursor,
                allowed.as_ref(),
                budget,
                &mut rows,
                &mut out,
            );
            assert_eq!(rows.len(), out.len());
            assert!(
                (cursor.key, cursor.offset) > (before.key, before.offset),
                "it goes on"
            );
            assert!(out.len() <= budget);
            found.extend(rows.into_iter().zip(out));
        }
        assert_eq!(
            found,
            self.oracle.expand(&lists, allowed.as_ref()),
            "{lists:?}"
        );
        if let ([list], 1) = (lists.as_slice(), count) {
            self.pieces(list, random);
        }
    }

    /// The places of one list, shared out.
    fn pieces(&self, list: &Lists<'_>, random: &mut Random) {
        let places = self.window.places(list) as usize;
        let (mut begin, mut found) = (0, Vec::new());
        while begin < places {
            let end = places.min(begin + 1 + random.below(9) as usize);
            let mut cursor = Cursor {
                key: 0,
                offset: begin,
            };
            while cursor.key == 0 && cursor.offset < end {
                let budget = found.len() + end - cursor.offset;
                let lists = std::slice::from_ref(list);
                self.window.expand(
                    lists,
                    &mut cursor,
                    None,
                    budget,
                    &mut Vec::new(),
                    &mut found,
                );
            }
            begin = end;
        }
        let all = self.oracle.expand(std::slice::from_ref(list), None);
        assert_eq!(found, all.into_iter().map(|(_, id)| id).collect::<Vec<_>>());
    }

    fn contains(&self, random: &mut Random) {
        let keys = self.keys([1, 600][random.below(2) as usize], random);
        let list = Lists {
            predicate: Shape::predicate(random),
            direction: Self::direction(random),
            keys: &keys,
        };
        let mut to = self.keys(keys.len(), random);
        let neighbours = self.oracle.expand(&[list], None);
        for (row, id) in neighbours.iter().filter(|_| random.chance(3)) {
            to[*row as usize] = *id;
        }
        let mut rows = Vec::new();
        self.window.contains(&list, &to, &mut rows);
        let is_there = |row: &u32| neighbours.binary_search(&(*row, to[*row as usize])).is_ok();
        assert_eq!(
            rows,
            (0..keys.len() as u32).filter(is_there).collect::<Vec<_>>()
        );
    }

    fn retain(&self, random: &mut Random) {
        let keys = self.keys([1, 600][random.below(2) as usize], random);
        let list = Lists {
            predicate: Shape::predicate(random),
            direction: Self::direction(random),
            keys: &keys,
        };
        let neighbours = self.oracle.expand(&[list], None);
        let mut given: BTreeSet<(u32, TermId)> = BTreeSet::new();
        let (some, many) = (1 + random.below(4), random.below(6 * keys.len() as u64));
        given.extend(neighbours.iter().filter(|_| random.chance(some)));
        given.extend((0..many).map(|_| {
            let row = random.below(keys.len() as u64) as u32;
            (row, self.keys(1, random)[0])
        }));
        let (mut rows, mut found) = given.iter().copied().unzip();
        self.window.retain(&list, &mut rows, &mut found);
        let kept = neighbours.into_iter().filter(|pair| given.contains(pair));
        assert_eq!(
            rows.into_iter().zip(found).collect::<Vec<_>>(),
            kept.collect::<Vec<_>>()
        );
    }

    fn degrees(&self, random: &mut Random) {
        let keys = self.keys([1, 40][random.below(2) as usize], random);
        let list = Lists {
            predicate: Shape::predicate(random),
            direction: Self::direction(random),
            keys: &keys,
        };
        let allowed = self.allowed(random);
        let mut found = Vec::new();
        self.window.degrees(&list, allowed.as_ref(), &mut found);
        let mut degrees = vec![0; keys.len()];
        for (row, _) in self.oracle.expand(&[list], allowed.as_ref()) {
            degrees[row as usize] += 1;
        }
        assert_eq!(found, degrees);
    }

    fn members(&self, random: &mut Random) {
        let mut asked = Vec::new();
        for _ in 0..1 + random.below(3) {
            asked.push(match random.chance(2) {
                true => Membership::Type(self.shape.asked(random)),
                false => Membership::Has(Shape::predicate(random), Self::direction(random)),
            });
        }
        let within = self.allowed(random);
        let mut ids: BTreeSet<TermId> = BTreeSet::new();
        for (s, _, o) in &self.oracle.triples {
            ids.extend([*s, *o]);
        }
        let members = ids.iter().copied().filter(|id| {
            asked
                .iter()
                .all(|membership| self.oracle.has(*membership, *id))
                && within.as_ref().is_none_or(|within| within.contains(*id))
        });
        let members: Vec<TermId> = members.collect();
        let list = |ranges: &IdRanges| {
            let mut list = Vec::new();
            ranges.copy(0, usize::MAX, &mut list);
            list
        };
        let exact = self
            .window
            .members(&asked, Precision::Exact, within.as_ref());
        assert_eq!(
            list(&exact.expect("an exact set is always made")),
            members,
            "{asked:?}"
        );
        let Some(filter) = self
            .window
            .members(&asked, Precision::Filter, within.as_ref())
        else {
            let has_type = asked
                .iter()
                .any(|asked| matches!(asked, Membership::Type(_)));
            assert!(!has_type, "types are always honoured");
            return;
        };
        assert!(members.iter().all(|id| filter.contains(*id)));
        for asked in asked
            .iter()
            .filter(|asked| matches!(asked, Membership::Type(_)))
        {
            assert!(list(&filter).iter().all(|id| self.oracle.has(*asked, *id)));
        }
    }

    fn matches(&self, random: &mut Random) {
        let some = self.oracle.triples.iter().nth(random.below(50) as usize);
        let (s, p, o) = some.copied().unwrap_or((
            self.shape.asked(random),
            Shape::predicate(random),
            self.shape.asked(random),
        ));
        let known = random.below(8);
        let pattern = Pattern {
            subject: (known & 1 != 0).then_some(s),
            predicate: (known & 2 != 0).then_some(p),
            object: (known & 4 != 0).then_some(o),
        };
        let expected = self.oracle.matches(&pattern);
        let stop = random.below(20) as usize;
        let mut found = Vec::new();
        let flow = self.window.for_each_match(&pattern, &mut |s, p, o, _| {
            found.push((s, p, o));
            ControlFlow::Continue(())
        });
        assert!(flow.is_continue());
        assert_eq!(found.len(), expected.len(), "each once");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
        let mut visited = 0;
        let flow = self.window.for_each_match(&pattern, &mut |_, _, _, _| {
            visited += 1;
            match visited > stop {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        assert_eq!(visited, expected.len().min(stop + 1));
        assert_eq!(flow.is_break(), expected.len() > stop);
    }

    fn times(&self, random: &mut Random) {
        let (s, p, o) = match self.oracle.times.iter().nth(random.below(50) as usize) {
            Some((triple, _)) if !random.chance(4) => *triple,
            _ => (
                self.shape.asked(random),
                Shape::predicate(random),
                self.shape.asked(random),
            ),
        };
        let expected = self.oracle.times.get(&(s, p, o)).copied();
        assert_eq!(self.window.time_of(s, p, o), expected, "{s:?} {p:?} {o:?}");
    }

    fn catalogue(&self, random: &mut Random) {
        let mut predicates = Vec::new();
        self.window.predicates(&mut predicates);
        assert!(predicates.is_sorted_by(|a, b| a < b));
        for number in 0..=PREDICATES {
            let predicate = PredicateId(number as u32);
            let of_predicate = self
                .oracle
                .triples
                .iter()
                .filter(|triple| triple.1 == predicate);
            let count = of_predicate.count() as u64;
            assert!(count == 0 || predicates.contains(&predicate));
            let edges = self.window.edges(predicate);
            assert!(edges.is_none_or(|edges| edges == count));
            for direction in [Direction::Out, Direction::In] {
                let counts = self.window.counts(predicate, direction);
                assert!(edges.is_none_or(|edges| edges == counts.triples));
                assert!(counts.keys <= counts.triples && (count == 0 || counts.keys > 0));
            }
        }
        let (key, direction) = (self.shape.asked(random), Self::direction(random));
        let mut of_key = Vec::new();
        self.window.predicates_of(key, direction, &mut of_key);
        assert_eq!(of_key, self.oracle.predicates_of(key, direction));
    }
}
