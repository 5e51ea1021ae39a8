use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::{Fabric, Registration};
use jindou_fabric::{Region, RegionId};
use jindou_store::{ArrayLayout, KeysLayout, PartLayout};

use super::*;

const SHARDS: Shards = match Shards::new(4) {
    Ok(shards) => shards,
    Err(_) => panic!("four is a power of two"),
};

fn array(offset: u64, width: u8, len: u64) -> ArrayLayout {
    let base = 7;
    ArrayLayout {
        offset,
        width,
        len,
        base,
    }
}

fn part(first: u64, row: u64, len: u64, keys: KeysLayout) -> PartLayout {
    let last = match &keys {
        KeysLayout::Dense => first + len - 1,
        _ => first + 40,
    };
    PartLayout {
        first,
        last,
        row,
        len,
        stride_bits: 0,
        keys,
    }
}

/// A segment of nine rows whose arrays fill 256 bytes.
fn segment(region: RegionId) -> SegmentLayout {
    SegmentLayout {
        region,
        address: 0,
        region_bytes: 256,
        domain: vec![
            part(100, 0, 3, KeysLayout::Dense),
            part(200, 3, 4, KeysLayout::Bitmap(array(0, 8, 2))),
            part(300, 7, 2, KeysLayout::Sorted(array(16, 4, 2))),
        ],
        offsets: Some(array(24, 2, 10)),
        neighbours: array(48, 8, 26),
        hole: Some(3),
    }
}

fn advert() -> (Advert, Registration) {
    let network = LocalNetwork::new(2);
    let region = Region::copy_from(&[0; 256]);
    let registration = network.fabric(1).register(&region).unwrap();
    let name =
        |predicate, direction| segment_name(LayerKind::Named, PredicateId(predicate), direction);
    let publication = Publication {
        segments: [
            (name(3, Direction::Out), segment(region.id())),
            (name(3, Direction::In), segment(region.id())),
            (name(1, Direction::Out), segment(region.id())),
        ]
        .into_iter()
        .collect(),
        memories: [(region.id().0, registration.key().clone())].into(),
    };
    let advert = Advert {
        number: 5,
        tags: [12, 0, u64::MAX].into(),
        shards: vec![
            (ShardId(1), publication),
            (ShardId(3), Publication::default()),
        ],
    };
    (advert, registration)
}

#[test]
fn an_advert_comes_back_as_it_was() {
    let (advert, _registration) = advert();
    let bytes = advert.to_bytes();
    let back = Advert::from_bytes(&bytes, NodeId(1), SHARDS).unwrap();
    assert_eq!((back.number, &back.tags), (advert.number, &advert.tags));
    assert_eq!(back.shards.len(), 2);
    for ((shard, found), (of, expected)) in back.shards.iter().zip(&advert.shards) {
        assert_eq!(shard, of);
        assert_eq!(found.segments, expected.segments);
        assert_eq!(found.memories, expected.memories);
    }
    assert_eq!(back.to_bytes(), bytes);
}

#[test]
fn an_advert_of_another_node_or_graph_is_refused() {
    let (advert, _registration) = advert();
    let bytes = advert.to_bytes();
    let refused = Advert::from_bytes(&bytes, NodeId(0), SHARDS).unwrap_err();
    assert_eq!(refused, AdvertError::Malformed("memory of another node"));
    let refused = Advert::from_bytes(&bytes, NodeId(1), Shards::ONE).unwrap_err();
    assert_eq!(refused, AdvertError::Malformed("there is no such shard"));
    let mut newer = bytes;
    newer[8] = 4;
    let refused = Advert::from_bytes(&newer, NodeId(1), SHARDS).unwrap_err();
    assert_eq!(refused, AdvertError::Version { found: 4 });
}

#[test]
fn arrays_outside_of_their_memory_are_refused() {
    let change: [fn(&mut SegmentLayout); 12] = [
        |layout| layout.region_bytes = 300,
        |layout| layout.region = RegionId(u64::MAX),
        |layout| layout.neighbours.len = 27,
        |layout| layout.neighbours.offset = u64::MAX - 3,
        |layout| layout.neighbours.width = 3,
        |layout| layout.offsets = Some(array(250, 2, 10)),
        |layout| layout.offsets = Some(array(24, 2, 9)),
        |layout| layout.offsets = Some(array(24, 2, 0)),
        |layout| layout.domain[0].len = 4,
        |layout| layout.domain[1].keys = KeysLayout::Bitmap(array(0, 8, 1)),
        |layout| layout.domain[2].stride_bits = 64,
        |layout| layout.domain.swap(0, 1),
    ];
    for (number, change) in change.into_iter().enumerate() {
        let (mut advert, _registration) = advert();
        let segments = &mut advert.shards[0].1.segments;
        let layout = segments.values_mut().next().unwrap();
        assert!(layout.is_sound());
        change(layout);
        let refused = Advert::from_bytes(&advert.to_bytes(), NodeId(1), SHARDS);
        let expected = AdvertError::Malformed("arrays outside of their memory");
        assert_eq!(refused.unwrap_err(), expected, "change {number}");
    }
}

#[test]
fn cut_and_changed_bytes_are_refused_or_sound() {
    let (advert, _registration) = advert();
    let bytes = advert.to_bytes();
    for end in 0..bytes.len() {
        assert!(
            Advert::from_bytes(&bytes[..end], NodeId(1), SHARDS).is_err(),
            "cut at {end}"
        );
    }
    for place in 0..bytes.len() {
        for flipped in [1, 0x10, 0x80, 0xff] {
            let mut bytes = bytes.clone();
            bytes[place] ^= flipped;
            if let Ok(read) = Advert::from_bytes(&bytes, NodeId(1), SHARDS) {
                let segments = read.shards.iter().flat_map(|(_, of)| of.segments.values());
                segments.for_each(|layout| assert!(layout.is_sound(), "{place} {flipped}"));
            }
        }
    }
}
