//! Is registered memory read and written as it is said to be?

use std::io::Write as _;
use std::sync::atomic::Ordering;

use jindou_fabric::remote::{Batch, MAX_SHARED_BYTES, MemoryKey};
use jindou_fabric::{FabricError, Region};

use super::{Case, Cluster, complete, open, pattern, read, region, soon};

pub(super) const CASES: &[Case] = &[
    ("nodes_have_their_numbers_and_time_goes_forward", 3, numbers),
    ("allocated_memory_is_zero", 1, zeros),
    ("bytes_of_a_region_are_read_from_any_place", 2, any_place),
    ("only_the_bytes_of_a_slice_are_registered", 2, slices),
    ("too_many_words_are_refused", 1, too_many),
    ("a_node_reads_and_writes_its_own_memory", 1, own),
    ("one_batch_reads_and_writes_many_memories", 3, many),
    ("large_transfers_arrive_whole", 2, large),
    ("writes_are_seen_by_the_owner_and_by_peers", 3, writes),
    ("a_compare_and_swap_has_one_winner", 3, winners),
    ("no_addition_is_lost", 3, additions),
    ("batches_in_flight_together_all_complete", 2, together),
    ("a_batch_of_nothing_completes", 2, nothing),
    ("an_outcome_is_given_once", 1, once),
    (
        "a_key_that_claims_more_than_there_is_reads_nothing",
        2,
        lies,
    ),
    ("regions_are_not_written", 2, read_only),
    ("what_is_no_longer_registered_is_not_reached", 2, stale),
    ("keys_are_not_used_again", 1, unique),
    ("a_file_that_lost_bytes_is_an_error", 2, damaged),
    ("what_is_mapped_stays_as_it_is", 2, mapped),
];

fn numbers(cluster: &Cluster) {
    for (node, fabric) in cluster.fabrics.iter().enumerate() {
        assert_eq!(fabric.node().0 as usize, node);
        assert!(fabric.now() <= fabric.now());
    }
}

fn zeros(cluster: &Cluster) {
    for length in [0, 1, 8, 4097, 3 << 20] {
        let fabric = cluster.fabric(0);
        // Memory that was used before is zeroed, too.
        drop(region(&*fabric, &vec![0xff; length]));
        let region = fabric.allocate(length).unwrap().finish();
        assert_eq!(region.len(), length);
        assert!(region.iter().all(|byte| *byte == 0));
    }
}

fn any_place(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern(100, 1);
    // As the fabric allocates it, and as it does not.
    for region in [region(&*there, &bytes), Region::copy_from(&bytes)] {
        let registration = there.register(&region).unwrap();
        assert_eq!(registration.key().node(), there.node());
        assert_eq!(registration.key().length(), 100);
        let memory = open(&*here, registration.key()).unwrap();
        let mut batch = Batch::new();
        let mut expected = Vec::new();
        for start in [0, 1, 7, 8, 9, 50, 99, 100] {
            for length in [0, 1, 3, 8, 17, 64] {
                let range = start..start + length;
                let Some(part) = bytes.get(range) else {
                    let outside = batch.read(&memory, start as u64, length);
                    assert!(matches!(outside, Err(FabricError::OutOfBounds { .. })));
                    continue;
                };
                expected.push((batch.read(&memory, start as u64, length).unwrap(), part));
            }
        }
        let completed = complete(&*here, batch).unwrap();
        for (answer, part) in expected {
            assert_eq!(completed.bytes(answer), part);
            assert!(completed.bytes(answer).as_ptr().addr().is_multiple_of(8));
        }
    }
}

fn slices(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern(64, 2);
    let slice = region(&*there, &bytes).slice(16..40);
    let registration = there.register(&slice).unwrap();
    assert_eq!(registration.key().length(), 24);
    let memory = open(&*here, registration.key()).unwrap();
    assert_eq!(read(&*here, &memory, 0, 24).unwrap(), bytes[16..40]);
    assert_eq!(read(&*here, &memory, 23, 1).unwrap(), bytes[39..40]);
}

fn mapped(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern(5_000, 3);
    let offered = region(&*there, &bytes);
    let registration = there.register(&offered.slice(8..4_999)).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let mapped = here.map(&memory).unwrap();
    // Whether it is mapped depends on the fabric, and what it is then does not.
    if let Some(mapped) = &mapped {
        assert_eq!(mapped[..], bytes[8..4_999]);
    }
    assert_eq!(
        mapped.is_some(),
        here.try_read(&memory, 0, &mut [0]).unwrap()
    );
    drop((registration, offered));
    if let Some(mapped) = mapped {
        assert_eq!(mapped[..], bytes[8..4_999]);
        assert!(here.map(&memory).is_err());
    }
    let (_words, registration) = there.share(2).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    assert!(here.map(&memory).unwrap().is_none());
}

fn too_many(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    for words in [MAX_SHARED_BYTES / 8 + 1, usize::MAX] {
        let refused = fabric.share(words).unwrap_err();
        assert!(matches!(refused, FabricError::Exhausted { .. }));
    }
    assert_eq!(fabric.share(0).unwrap().0.bytes(), 0);
}

fn own(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    let (words, registration) = fabric.share(2).unwrap();
    let memory = open(&*fabric, registration.key()).unwrap();
    let mut batch = Batch::new();
    let _ = batch.write(&memory, 8, &[7]).unwrap();
    complete(&*fabric, batch).unwrap();
    assert_eq!(words.words()[1].load(Ordering::SeqCst), 7);
    assert_eq!(
        read(&*fabric, &memory, 8, 1).unwrap(),
        7u64.to_ne_bytes()[..1]
    );
}

fn many(cluster: &Cluster) {
    let here = cluster.fabric(0);
    let mut batch = Batch::new();
    let (mut kept, mut answers, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..300 {
        let there = cluster.fabric(i % 3);
        let bytes = pattern(i, i);
        let registration = there.register(&region(&*there, &bytes)).unwrap();
        let memory = open(&*here, registration.key()).unwrap();
        answers.push((batch.read(&memory, 0, i).unwrap(), bytes));
        let (words, shared) = there.share(3).unwrap();
        let memory = open(&*here, shared.key()).unwrap();
        let _ = batch.write(&memory, 8, &[i as u64, !0]).unwrap();
        written.push((words, i as u64));
        kept.extend([registration, shared]);
    }
    let completed = complete(&*here, batch).unwrap();
    for (answer, bytes) in answers {
        assert_eq!(completed.bytes(answer), bytes);
    }
    for (words, i) in written {
        let found: Vec<u64> = words
            .words()
            .iter()
            .map(|w| w.load(Ordering::SeqCst))
            .collect();
        assert_eq!(found, [0, i, !0]);
    }
    // The buffers serve again, and hold nothing of before.
    let mut batch = completed.reuse();
    assert!(batch.is_empty());
    let (_words, shared) = here.share(1).unwrap();
    let memory = open(&*here, shared.key()).unwrap();
    let answer = batch.read(&memory, 0, 8).unwrap();
    assert_eq!(complete(&*here, batch).unwrap().word(answer), 0);
}

fn large(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern((5 << 20) + 3, 4);
    let registration = there.register(&region(&*there, &bytes)).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    assert_eq!(read(&*here, &memory, 0, bytes.len()).unwrap(), bytes);
    assert_eq!(
        read(&*here, &memory, 5, 3 << 20).unwrap(),
        bytes[5..5 + (3 << 20)]
    );

    let words: Vec<u64> = (0..(3 << 17) + 1).map(|i| i * 0x9e37_79b9).collect();
    let (shared, registration) = there.share(words.len() + 1).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let mut batch = Batch::new();
    let _ = batch.write(&memory, 8, &words).unwrap();
    complete(&*here, batch).unwrap();
    let found = shared.words()[1..]
        .iter()
        .map(|word| word.load(Ordering::SeqCst));
    assert!(found.eq(words.iter().copied()));
    let back = read(&*here, &memory, 8, words.len() * 8).unwrap();
    let expected = words.iter().flat_map(|word| word.to_ne_bytes());
    assert!(back.into_iter().eq(expected));
}

fn writes(cluster: &Cluster) {
    let (here, there, third) = (cluster.fabric(0), cluster.fabric(1), cluster.fabric(2));
    let (words, registration) = there.share(4).unwrap();
    assert!(
        words
            .words()
            .iter()
            .all(|word| word.load(Ordering::SeqCst) == 0)
    );
    assert_eq!((words.bytes(), registration.key().length()), (32, 32));
    let memory = open(&*here, registration.key()).unwrap();
    let mut batch = Batch::new();
    let _ = batch.write(&memory, 8, &[1, 2]).unwrap();
    complete(&*here, batch).unwrap();
    words.words()[3].store(9, Ordering::SeqCst);
    let memory = open(&*third, registration.key()).unwrap();
    let bytes = read(&*third, &memory, 0, 32).unwrap();
    let expected: Vec<u8> = [0u64, 1, 2, 9]
        .iter()
        .flat_map(|w| w.to_ne_bytes())
        .collect();
    assert_eq!(bytes, expected);
}

fn winners(cluster: &Cluster) {
    let (words, registration) = cluster.fabric(0).share(2).unwrap();
    let mut flights = Vec::new();
    for fabric in &cluster.fabrics {
        let memory = open(&**fabric, registration.key()).unwrap();
        for _ in 0..5 {
            let mut batch = Batch::new();
            let new = u64::from(fabric.node().0) + 1;
            let answer = batch.compare_and_swap(&memory, 8, 0, new).unwrap();
            flights.push((fabric, new, answer, fabric.start(batch)));
        }
    }
    let mut winners = Vec::new();
    let mut befores = Vec::new();
    for (fabric, new, answer, mut flight) in flights {
        let completed = flight.wait(&soon(&**fabric)).unwrap();
        match completed.word(answer) {
            0 => winners.push(new),
            before => befores.push(before),
        }
    }
    assert_eq!(winners.len(), 1);
    assert!(befores.iter().all(|before| *before == winners[0]));
    assert_eq!(words.words()[1].load(Ordering::SeqCst), winners[0]);
    assert_eq!(words.words()[0].load(Ordering::SeqCst), 0);
}

fn additions(cluster: &Cluster) {
    let (words, registration) = cluster.fabric(0).share(1).unwrap();
    words.words()[0].store(u64::MAX, Ordering::SeqCst);
    let mut flights = Vec::new();
    for fabric in &cluster.fabrics {
        let memory = open(&**fabric, registration.key()).unwrap();
        for by in 1..=10 {
            let mut batch = Batch::new();
            let answers = [
                batch.fetch_add(&memory, 0, by).unwrap(),
                batch.fetch_add(&memory, 0, by).unwrap(),
            ];
            flights.push((fabric, answers, fabric.start(batch)));
        }
    }
    let mut befores = Vec::new();
    for (fabric, answers, mut flight) in flights {
        let completed = flight.wait(&soon(&**fabric)).unwrap();
        befores.extend(answers.map(|answer| completed.word(answer)));
    }
    // Each came between two others.
    befores.sort_unstable();
    befores.dedup();
    assert_eq!(befores.len(), 60);
    assert_eq!(words.words()[0].load(Ordering::SeqCst), 3 * 2 * 55 - 1);
}

fn together(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let bytes = pattern(1 << 16, 3);
    let registration = there.register(&region(&*there, &bytes)).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let begin = |i: usize| {
        let mut batch = Batch::new();
        let answer = batch.read(&memory, i as u64 * 100, 100).unwrap();
        (i, answer, here.start(batch))
    };
    let mut flights: Vec<_> = (0..200).map(begin).collect();
    // Some are abandoned; those are no harm to others.
    flights.retain(|(i, ..)| i % 7 != 3);
    // The last ones first.
    while let Some((i, answer, mut flight)) = flights.pop() {
        let completed = flight.wait(&soon(&*here)).unwrap();
        assert_eq!(completed.bytes(answer), &bytes[i * 100..(i + 1) * 100]);
    }
}

fn nothing(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    complete(&*here, Batch::new()).unwrap();
    let registration = there.register(&region(&*there, &[])).unwrap();
    assert_eq!(registration.key().length(), 0);
    let memory = open(&*here, registration.key()).unwrap();
    assert_eq!(read(&*here, &memory, 0, 0).unwrap(), b"");
    let (_words, registration) = there.share(1).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let mut batch = Batch::new();
    let answer = batch.write(&memory, 8, &[]).unwrap();
    assert_eq!(complete(&*here, batch).unwrap().bytes(answer), b"");
}

fn once(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    let mut flight = fabric.start(Batch::new());
    assert!(flight.wait(&soon(&*fabric)).is_ok());
    assert!(matches!(
        flight.poll(),
        Some(Err(FabricError::Unsupported(_)))
    ));
    assert!(flight.wait(&soon(&*fabric)).is_err());
}

fn lies(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let registration = there.register(&region(&*there, &[1; 64])).unwrap();
    let mut bytes = registration.key().to_bytes();
    // The length follows the node.
    bytes[4..12].copy_from_slice(&(1u64 << 40).to_le_bytes());
    let key = MemoryKey::from_bytes(&bytes).unwrap();
    for (offset, length) in [(0, 65), (64, 1), (1 << 39, 8)] {
        let found = here
            .open(&key)
            .and_then(|memory| read(&*here, &memory, offset, length));
        assert!(
            matches!(
                found,
                Err(FabricError::OutOfBounds { .. } | FabricError::Malformed(_))
            ),
            "{found:?}"
        );
    }
}

fn read_only(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let region = region(&*there, &[1; 64]);
    let registration = there.register(&region).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    let refused = FabricError::ReadOnly(there.node());
    let mut batch = Batch::new();
    let _ = batch.write(&memory, 0, &[2]).unwrap();
    assert_eq!(complete(&*here, batch).unwrap_err(), refused);
    let mut batch = Batch::new();
    let _ = batch.fetch_add(&memory, 0, 1).unwrap();
    assert_eq!(complete(&*here, batch).unwrap_err(), refused);
    let mut batch = Batch::new();
    let _ = batch.compare_and_swap(&memory, 0, 0, 1).unwrap();
    assert_eq!(complete(&*here, batch).unwrap_err(), refused);
    assert!(region.iter().all(|byte| *byte == 1));
    // The fabric goes on.
    assert_eq!(read(&*here, &memory, 0, 8).unwrap(), [1; 8]);
}

fn stale(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let gone = FabricError::Unregistered(there.node());
    let region = region(&*there, &[1; 64]);
    let (registration, other) = (there.register(&region), there.register(&region).unwrap());
    let registration = registration.unwrap();
    let key = registration.key().clone();
    let memory = open(&*here, &key).unwrap();
    assert!(read(&*here, &memory, 0, 8).is_ok());
    drop(registration);
    assert_eq!(read(&*here, &memory, 0, 8).unwrap_err(), gone);
    let again = open(&*here, &key).and_then(|memory| read(&*here, &memory, 0, 8));
    assert_eq!(again.unwrap_err(), gone);
    // Another registration of the same bytes is none of its business.
    let memory = open(&*here, other.key()).unwrap();
    assert!(read(&*here, &memory, 0, 8).is_ok());

    let (words, registration) = there.share(8).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    drop(registration);
    let mut batch = Batch::new();
    let _ = batch.write(&memory, 0, &[1]).unwrap();
    assert_eq!(complete(&*here, batch).unwrap_err(), gone);
    let mut batch = Batch::new();
    let _ = batch.fetch_add(&memory, 0, 1).unwrap();
    assert_eq!(complete(&*here, batch).unwrap_err(), gone);
    assert_eq!(words.words()[0].load(Ordering::SeqCst), 0);
}

fn unique(cluster: &Cluster) {
    let fabric = cluster.fabric(0);
    let mut keys = Vec::new();
    for _ in 0..20 {
        let (_words, registration) = fabric.share(8).unwrap();
        keys.push(registration.key().to_bytes());
    }
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), 20);
}

fn damaged(cluster: &Cluster) {
    let (here, there) = (cluster.fabric(0), cluster.fabric(1));
    let mut file = tempfile::tempfile().unwrap();
    // The last byte tells that it is gone by not being zero.
    let bytes = vec![7; 20_000];
    file.write_all(&bytes).unwrap();
    let region = Region::map_file(&file).unwrap();
    let registration = there.register(&region).unwrap();
    let memory = open(&*here, registration.key()).unwrap();
    assert_eq!(read(&*here, &memory, 0, 20_000).unwrap(), bytes);
    file.set_len(5000).unwrap();
    let error = FabricError::Damaged(there.node());
    for offset in [0, 12_000] {
        assert_eq!(read(&*here, &memory, offset, 8000).unwrap_err(), error);
    }
}
