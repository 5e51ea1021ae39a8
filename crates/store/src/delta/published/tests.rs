use jindou_model::{IdQuad, SnapshotNumber, TermId, TermKind};
use oxrdf::{GraphName, Literal, NamedNode, Quad, Term};
use proptest::prelude::*;

use super::*;
use crate::bulk::{BulkSink, build};
use crate::layout::tests::{RemoteReader, assert_reads_alike};
use crate::{Changes, FoldRule};

const SUBJECTS: u64 = 60;

fn node(text: &str, number: u64) -> NamedNode {
    NamedNode::new_unchecked(format!("http://e/{text}{number}"))
}

/// `p0` has one object for each subject, `p1` some, `p2` values held in their ids, `p3` none, and all
/// are in both layers.
fn loaded() -> Snapshot {
    let mut sink = BulkSink::new();
    let mut quad = |s: u64, p: u64, o: Term, g: GraphName| {
        let quad = Quad::new(node("s", s), node("p", p), o, g);
        sink.quad(quad.as_ref()).unwrap();
    };
    for subject in 0..SUBJECTS {
        for graph in [GraphName::DefaultGraph, node("g", subject % 3).into()] {
            quad(
                subject,
                0,
                node("o", subject * 7 % 11).into(),
                graph.clone(),
            );
            for number in 0..subject % 4 {
                let object = node("o", subject * number % 40);
                quad(subject, 1, object.into(), graph.clone());
            }
            if subject % 3 == 0 {
                let value = Literal::from(subject as i64 * 1000);
                quad(subject, 2, value.into(), graph.clone());
            }
        }
    }
    let base = build(vec![sink], 1).unwrap();
    Snapshot::of_base(base, 1, SnapshotNumber(1))
}

/// One change: is it an addition, of which subject, predicate and object, and in which graph?
type Step = (bool, u64, u64, u64, u64);

fn id_quad(snapshot: &mut Snapshot, (_, s, p, o, g): Step) -> IdQuad {
    let vertex = |snapshot: &mut Snapshot, node: NamedNode| {
        snapshot.intern_node(node.as_str().as_bytes()).unwrap()
    };
    let object = match p {
        2 => TermId::new(TermKind::Integer, o * 1000),
        _ => vertex(snapshot, node("o", o)),
    };
    IdQuad {
        subject: vertex(snapshot, node("s", s)),
        predicate: snapshot.intern_predicate(node("p", p).as_str()).unwrap(),
        object,
        graph: match g {
            0 => TermId::NONE,
            _ => vertex(snapshot, node("g", g)),
        },
    }
}

fn apply(snapshot: &mut Snapshot, steps: &[Step]) {
    let mut changes = Changes::default();
    for step in steps {
        let quad = id_quad(snapshot, *step);
        match step.0 {
            true => changes.add.push(quad),
            false => changes.remove.push(quad),
        }
    }
    snapshot.apply(&changes);
}

/// Everything that may be a key.
fn all_keys(snapshot: &Snapshot) -> Vec<TermId> {
    let vertices = (0..snapshot.vertex_count()).map(TermId::vertex);
    let values = (0..SUBJECTS + 20).map(|n| TermId::new(TermKind::Integer, n * 1000));
    vertices.chain(values).collect()
}

/// Reads all segments of a snapshot from bytes alone and compares.
fn compare(snapshot: &Snapshot) {
    let keys = all_keys(snapshot);
    for kind in LayerKind::ALL {
        let layer = snapshot.layer(kind);
        for number in 1..snapshot.predicate_count() as u32 {
            for direction in [Direction::Out, Direction::In] {
                let predicate = PredicateId(number);
                let published = snapshot.published(kind, predicate, direction);
                let lists = keys.iter().map(|key| {
                    let list = layer.neighbours(predicate, direction, *key);
                    let ids = (0..list.len()).map(|index| list.get(index));
                    (*key, ids.collect::<Vec<TermId>>())
                });
                let Some(published) = published else {
                    for (_, list) in lists {
                        assert!(list.is_empty());
                    }
                    continue;
                };
                let (layout, region) = (published.layout(), published.region());
                let mut reader = RemoteReader::new(layout, &region);
                for (key, list) in lists {
                    reader.reads = 0;
                    assert_eq!(reader.expand(key), list);
                    assert!(reader.reads <= 1 + usize::from(layout.offsets.is_some()));
                    if let Some(to) = list.first() {
                        assert!(reader.contains(key, *to));
                    }
                }
                assert_reads_alike(published.segment(), layout, &region);
            }
        }
    }
}

/// Steps that mostly touch what is there.
fn step() -> impl Strategy<Value = Step> {
    (
        any::<bool>(),
        0..SUBJECTS + 10,
        0..4_u64,
        0..45_u64,
        0..4_u64,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn bytes_of_what_is_published_say_what_the_snapshot_says(
        rounds in proptest::collection::vec(
            (proptest::collection::vec(step(), 0..80), 0..4_u8), 1..5),
    ) {
        let mut snapshot = loaded();
        compare(&snapshot);
        let mut before = Vec::new();
        for (steps, fold) in rounds {
            before.push(snapshot.clone());
            apply(&mut snapshot, &steps);
            let all = FoldRule { least: 1, whole_share: usize::MAX, ..FoldRule::default() };
            let some = FoldRule { least: 1, whole_share: 1, ..FoldRule::default() };
            match fold {
                0 => snapshot.read_through(snapshot.fold(all)),
                1 => snapshot.read_through(snapshot.fold(some)),
                _ => {}
            }
            compare(&snapshot);
        }
        // Those of older snapshots stay as they are.
        before.iter().for_each(compare);
    }
}

#[test]
fn what_was_published_once_is_there_until_something_changes() {
    let mut snapshot = loaded();
    let (kind, out) = (LayerKind::Default, Direction::Out);
    let predicate = |snapshot: &Snapshot, number| {
        let id = snapshot.find_predicate(node("p", number).as_str());
        id.expect("it was loaded")
    };
    let [first, second] = [0, 1].map(|number| predicate(&snapshot, number));
    let base = |snapshot: &Snapshot, of| snapshot.base().layer(kind).layout(of, out).unwrap();
    apply(&mut snapshot, &[(true, 1, 0, 44, 0)]);
    // One predicate changed, and the other is the base's.
    let changed = snapshot.published(kind, first, out).unwrap();
    assert_ne!(*changed.layout(), base(&snapshot, first));
    let same = snapshot.published(kind, second, out).unwrap();
    assert_eq!(*same.layout(), base(&snapshot, second));
    // Of that version it is made once, whatever else changes.
    apply(&mut snapshot, &[(true, 1, 1, 44, 0)]);
    let again = snapshot.published(kind, first, out).unwrap();
    assert!(Arc::ptr_eq(&changed, &again));
    let before = snapshot.clone();
    apply(&mut snapshot, &[(true, 2, 0, 44, 0)]);
    let next = snapshot.published(kind, first, out).unwrap();
    assert_ne!(next.layout().region, changed.layout().region);
    let again = before.published(kind, first, out).unwrap();
    assert!(Arc::ptr_eq(&changed, &again));
    // Whoever has it reads on when nobody else does.
    drop((snapshot, before, again));
    assert_reads_alike(changed.segment(), changed.layout(), &changed.region());
}

#[test]
fn lists_that_were_all_written_out_are_published_as_they_are() {
    let mut snapshot = loaded();
    let predicate = snapshot.find_predicate(node("p", 1).as_str()).unwrap();
    let steps: Vec<Step> = (0..SUBJECTS).map(|s| (true, s, 1, 44, 0)).collect();
    apply(&mut snapshot, &steps);
    let (kind, out) = (LayerKind::Default, Direction::Out);
    let rule = FoldRule {
        least: 1,
        ..FoldRule::default()
    };
    snapshot.read_through(snapshot.fold(rule));
    let bytes = snapshot.delta_bytes();
    let first = snapshot.published(kind, predicate, out).unwrap();
    let second = snapshot.published(kind, predicate, out).unwrap();
    assert_eq!(first.layout(), second.layout());
    assert_eq!(snapshot.delta_bytes(), bytes, "nothing is held twice");
    compare(&snapshot);
}
