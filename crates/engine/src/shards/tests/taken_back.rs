//! Lists whose memory was taken back while somebody was about to read them.

use jindou_cluster::ReadCounts;
use jindou_fabric::process::ProcessFabric;
use jindou_fabric::remote::Fabric;

use super::*;

/// The shards of a graph, of which the second half is to be read from another node that does not offer it any more.
fn taken_back(seed: u64) -> (Pair, Sharded, Arc<ReadCounts>) {
    let pair = pair(seed);
    let one = &pair.one;
    // What is mapped stays readable, though it was taken back: these nodes map nothing.
    let fabrics = ProcessFabric::connected(2, false).unwrap();
    let here = Arc::clone(&fabrics[0]) as Arc<dyn Fabric>;
    let shards = Shards::new(4).unwrap();
    let all = shards.all().collect();
    let allocate = |_, bytes| fabrics[1].allocate(bytes);
    let cut = one.snapshot.cut_base(shards, &all, &allocate).unwrap();
    let counts: Arc<ReadCounts> = Arc::default();
    let mut reader = OneSided::new(shards, &here, &counts);
    for (shard, part) in &cut.shards[2..] {
        let offered = Offered::of(part, &*fabrics[1]).unwrap();
        let place = (*shard, NodeId(1));
        reader
            .attach(place, offered.publication(), Arc::clone(&fabrics[1]) as _)
            .unwrap();
    }
    let cut = cut.at(&one.snapshot).unwrap();
    let source = |snapshot: &Snapshot| {
        let snapshot = snapshot.clone();
        Arc::new(StoredGraph { snapshot }) as Arc<dyn GraphSource>
    };
    let rows = cut.shards.iter().map(|(_, part)| Some(source(part)));
    let catalogue = Arc::clone(one) as Arc<dyn jindou_exec::Catalogue>;
    let sharded = Sharded::new(shards, catalogue, source(&cut.shared), rows.collect());
    let changes = Arc::clone(one) as Arc<dyn ChangedLists>;
    let sharded = sharded.with_reader(Arc::new(reader), changes);
    (pair, sharded, counts)
}

#[test]
fn lists_that_were_taken_back_are_asked_for() {
    let mut reads = 0;
    for seed in seeds() {
        for call in 0..4 {
            let (pair, sharded, counts) = taken_back(seed);
            let note = format!("{}, call {call}", pair.note);
            for round in 0..2 {
                let before = counts.sum();
                for list in pair.lists() {
                    for graph in [GraphRef::Default, GraphRef::Named] {
                        compare((&pair, &sharded), call, graph, &list, &note);
                    }
                }
                let since = counts.sum().since(before).reads;
                reads += since;
                // It is tried once.
                assert!(round == 0 || since == 0, "{note}: {since}");
            }
        }
    }
    assert!(reads > 0);
}

fn compare(
    (pair, sharded): (&Pair, &Sharded),
    call: u32,
    graph: GraphRef<'_>,
    list: &Lists<'_>,
    note: &str,
) {
    let both: [&dyn GraphSource; 2] = [&*pair.one, sharded];
    match call {
        0 => {
            let [expected, found] = both.map(|source| {
                let mut cursor = Cursor::default();
                let (mut rows, mut out) = (Vec::new(), Vec::new());
                while cursor.key < list.keys.len() {
                    let budget = out.len() + 7;
                    let lists = std::slice::from_ref(list);
                    source
                        .expand(graph, lists, &mut cursor, None, budget, &mut rows, &mut out)
                        .unwrap();
                }
                let mut pairs: Vec<_> = rows.into_iter().zip(out).collect();
                pairs.sort_unstable();
                pairs
            });
            assert_eq!(found, expected, "{note}");
        }
        1 => {
            let to: Vec<TermId> = list.keys.iter().rev().copied().collect();
            let [expected, found] = both.map(|source| {
                let mut rows = Vec::new();
                source.contains(graph, list, &to, &mut rows).unwrap();
                rows
            });
            assert_eq!(found, expected, "{note}");
        }
        2 => {
            let [expected, found] = both.map(|source| {
                let mut degrees = Vec::new();
                source.degrees(graph, list, None, &mut degrees).unwrap();
                degrees
            });
            assert_eq!(found, expected, "{note}");
        }
        _ => {
            for key in list.keys {
                let one = Lists {
                    keys: std::slice::from_ref(key),
                    ..*list
                };
                let [expected, found] = both.map(|source| source.places(graph, &one).unwrap());
                assert!(found >= expected, "{note}: {found} {expected}");
            }
        }
    }
}
