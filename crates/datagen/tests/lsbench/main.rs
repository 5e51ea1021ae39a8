//! Is the generated social graph, and are its streams, what was asked for?

mod data;
mod joins;
mod shapes;

use std::collections::HashSet;

use jindou_datagen::DatagenError;
use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};
use oxrdf::Triple;

use crate::data::{Data, Stored, pairs};

fn even(rates: Rates, seconds: u64) -> Load {
    Load {
        rates,
        pace: Pace::Even,
        duration_ms: seconds * 1000,
    }
}

/// Lines of these streams.
fn lines(data: Lsbench, load: &Load, streams: &[Stream]) -> String {
    let mut events = data.streams(load, streams).expect("a load");
    let mut text = String::new();
    while let Some(event) = events.next_event() {
        event.push_lines(&mut text);
    }
    text
}

fn stored_text(data: Lsbench) -> String {
    let mut text = Vec::new();
    data.write_stored(&mut text).expect("writing to memory");
    String::from_utf8(text).expect("N-Triples are UTF-8")
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[test]
fn the_same_arguments_give_the_same_text_on_every_machine() {
    let data = Lsbench::new(300, 5);
    let stored = stored_text(data);
    let streams = lines(data, &even(Rates::PAPER, 1), &Stream::ALL);
    assert_eq!(
        (stored.len(), hash(&stored), streams.len(), hash(&streams)),
        (
            3_832_033,
            9_342_828_795_261_923_452,
            17_246_068,
            5_351_189_073_302_723_463
        )
    );
    assert_ne!(stored, stored_text(Lsbench::new(300, 6)));
    let other = lines(Lsbench::new(300, 6), &even(Rates::PAPER, 1), &Stream::ALL);
    assert_ne!(streams, other);
}

#[test]
fn lines_are_n_triples_and_say_what_the_triples_say() {
    let data = Lsbench::new(40, 1);
    let stored: Vec<Triple> = oxttl::NTriplesParser::new()
        .for_slice(&stored_text(data))
        .collect::<Result<_, _>>()
        .expect("the stored graph is N-Triples");
    let mut blocks = data.stored().unwrap();
    let mut all = Vec::new();
    while let Some(block) = blocks.next_block() {
        all.extend(block.iter().map(|tuple| tuple.triple().into_owned()));
    }
    assert!(stored == all);

    let mut events = data.streams(&even(Rates::PAPER, 1), &Stream::ALL).unwrap();
    let mut text = String::new();
    while let Some(event) = events.next_event() {
        text.clear();
        event.push_lines(&mut text);
        let mut lines = text.lines();
        for tuple in event.tuples() {
            let (time, statement) = lines.next().unwrap().split_once('\t').unwrap();
            assert_eq!(time.parse(), Ok(event.time_ms));
            let parsed = oxttl::NTriplesParser::new().for_slice(statement).next();
            assert_eq!(parsed.unwrap().unwrap(), tuple.triple().into_owned());
        }
        assert_eq!(lines.next(), None);
    }
}

#[test]
fn times_do_not_go_back_and_events_of_one_time_come_in_the_order_of_streams() {
    for (seed, pace) in [(1, Pace::Even), (2, Pace::Daily)] {
        for rates in [Rates::PAPER, Rates::PAPER.times(8.), Rates::given(1000)] {
            let load = Load {
                rates,
                pace,
                duration_ms: 3_000_000_000 / rates.total() as u64,
            };
            let mut events = Lsbench::new(1000, seed)
                .streams(&load, &Stream::ALL)
                .unwrap();
            let mut last = (0, Stream::Post);
            while let Some(event) = events.next_event() {
                assert!(!event.statements.is_empty());
                assert!(event.time_ms < load.duration_ms);
                assert!(
                    event.time_ms >= last.0,
                    "{last:?}, then {} {:?}; seed {seed}",
                    event.time_ms,
                    event.stream
                );
                last = (event.time_ms, event.stream);
            }
        }
    }
}

#[test]
fn rates_are_within_2_percent_of_those_asked_for() {
    for (users, load) in [
        (1000, even(Rates::PAPER, 5)),
        (30, even(Rates::PAPER, 5)),
        (1_000_000, even(Rates::PAPER, 5)),
        (1000, even(Rates::PAPER.times(0.1), 20)),
        (1000, even(Rates::PAPER.times(4.), 3)),
        (3000, even(Rates::given(3000), 120)),
        (
            1000,
            Load {
                rates: Rates::given(1000).times(2.),
                pace: Pace::Daily,
                duration_ms: 240_000,
            },
        ),
    ] {
        let mut tuples = [0; 5];
        let mut events = Lsbench::new(users, 3).streams(&load, &Stream::ALL).unwrap();
        while let Some(event) = events.next_event() {
            tuples[event.stream as usize] += event.statements.len() as u64;
        }
        let Rates {
            post,
            post_like,
            photo,
            photo_like,
            gps,
        } = load.rates;
        let wanted = [post, post_like, photo, photo_like, gps];
        for ((stream, tuples), wanted) in Stream::ALL.iter().zip(tuples).zip(wanted) {
            let wanted = wanted * load.duration_ms as f64 / 1000.;
            let off = (tuples as f64 / wanted - 1.).abs();
            assert!(
                off < 0.02,
                "{stream:?}: {tuples} of {wanted}, {users} users, {load:?}"
            );
        }
    }
}

#[test]
fn a_stream_is_the_same_alone_and_beside_others() {
    let (data, load) = (Lsbench::new(500, 9), even(Rates::PAPER, 1));
    let mut together: [String; 5] = Default::default();
    let mut events = data.streams(&load, &Stream::ALL).unwrap();
    while let Some(event) = events.next_event() {
        event.push_lines(&mut together[event.stream as usize]);
    }
    for stream in Stream::ALL {
        let alone = lines(data, &load, &[stream]);
        assert!(alone == together[stream as usize], "{stream:?}");
    }
}

#[test]
fn a_longer_stream_begins_with_the_shorter_one() {
    let data = Lsbench::new(500, 9);
    let short = lines(data, &even(Rates::PAPER, 1), &Stream::ALL);
    let long = lines(data, &even(Rates::PAPER, 2), &Stream::ALL);
    assert!(long.starts_with(&short));
}

#[test]
fn each_query_finds_results_at_the_papers_rates() {
    // The users that the queries' texts name, where there are so many.
    for (users, about, friend) in [(1000, 410, 31), (100, 41, 31)] {
        let load = even(Rates::PAPER, 4);
        let data = Data::generate(Lsbench::new(users, 0), &load);
        let stored = Stored::new(&data.stored);
        let mut sums = [0; 6];
        for to_ms in (1000..=4000).step_by(500) {
            let [l1, l2, _] = joins::about_user(&data, &stored, to_ms, about);
            let [_, _, l3] = joins::about_user(&data, &stored, to_ms, friend);
            let [l4, l5, l6] = joins::about_all(&data, &stored, to_ms);
            for (sum, results) in sums.iter_mut().zip([l1, l2, l3, l4, l5, l6]) {
                *sum += results;
            }
        }
        for (at, sum) in sums.iter().enumerate() {
            assert!(*sum > 0, "L{} of {users} users: {sums:?}", at + 1);
        }
    }
}

/// Results of L4 to L6 in a mean window, for each post, photo and post.
fn results_each(users: u32, rates: Rates, windows: std::ops::Range<u64>) -> [f64; 3] {
    let data = Data::generate(Lsbench::new(users, 4), &even(rates, windows.end));
    let stored = Stored::new(&data.stored);
    let (mut results, mut posts, mut photos) = ([0; 3], 0, 0);
    for second in windows {
        let to_ms = 1000 * (second + 1);
        let found = joins::about_all(&data, &stored, to_ms);
        for (sum, found) in results.iter_mut().zip(found) {
            *sum += found;
        }
        let count = |stream, predicate| {
            let rows = data::window(data.stream(stream), to_ms - 1000, to_ms);
            pairs(rows, predicate).count()
        };
        posts += count(Stream::Post, "hashtag") * 10 / 34;
        photos += count(Stream::Photo, "location");
    }
    let each = |results: u64, of: usize| results as f64 / of as f64;
    [
        each(results[0], posts),
        each(results[1], photos),
        each(results[2], posts),
    ]
}

#[test]
fn results_for_each_post_and_photo_do_not_depend_on_the_rate() {
    let given = results_each(10_000, Rates::given(10_000), 1..21);
    let paper = results_each(10_000, Rates::PAPER, 1..7);
    for ((query, given), paper) in ["L4", "L5", "L6"].iter().zip(given).zip(paper) {
        let ratio = paper / given;
        println!("{query}: {given:.3} at the data's rate, {paper:.3} at the paper's");
        assert!(
            (0.7..1.4).contains(&ratio),
            "{query}: {given} at the data's rate, {paper} at the paper's"
        );
    }
}

#[test]
fn what_is_liked_was_made_in_the_last_second_and_nobody_likes_twice() {
    let data = Data::generate(Lsbench::new(1000, 2), &even(Rates::PAPER, 3));
    for (made, liked, predicate) in [
        (Stream::Post, Stream::PostLike, "title"),
        (Stream::Photo, Stream::PhotoLike, "location"),
    ] {
        let times: std::collections::HashMap<_, _> = data
            .stream(made)
            .iter()
            .filter(|row| row.predicate == predicate)
            .map(|row| (row.subject.as_str(), row.time_ms))
            .collect();
        let mut likes = HashSet::new();
        for like in data.stream(liked) {
            let delay = like.time_ms.checked_sub(times[like.object.as_str()]);
            assert!(delay.is_some_and(|ms| ms <= 1000), "{like:?}: {delay:?}");
            assert!(likes.insert((&like.subject, &like.object)), "{like:?}");
        }
    }
}

#[test]
fn what_is_kept_does_not_grow_with_time() {
    let rates = Rates::PAPER.times(0.1);
    let mut streams = Lsbench::new(2000, 1)
        .streams(&even(rates, 400), &Stream::ALL)
        .unwrap();
    let mut most = [0; 4];
    while let Some(event) = streams.next_event() {
        let quarter = (event.time_ms / 100_000) as usize;
        most[quarter] = streams.kept().max(most[quarter]);
    }
    // 45 s of posts, a second of posts and photos, half a second of likes, who is tracked.
    assert!(most[0] < 45 * 76 + 800, "{most:?}");
    for later in &most[1..] {
        assert!(*later < most[0] * 11 / 10, "{most:?}");
    }
}

#[test]
fn friends_are_those_of_the_stored_graph() {
    let data = Lsbench::new(700, 3);
    let rows: Vec<_> = stored_text(data).lines().map(data::Row::parse).collect();
    let stored = Stored::new(&rows);
    for user in 0..700 {
        let iri = |user| format!("<http://www.ins.cwi.nl/sib/user/u{user}>");
        let friends = data.friends(user).unwrap();
        let found = stored.friends.get(iri(user).as_str());
        assert_eq!(friends.len(), found.map_or(0, HashSet::len), "user {user}");
        for friend in friends {
            assert!(stored.knows(&iri(user), &iri(friend)), "{user} {friend}");
            assert!(stored.knows(&iri(friend), &iri(user)), "{friend} {user}");
        }
    }
}

#[test]
fn few_users_have_streams_as_well() {
    for users in [1, 2, 3, 5, 26] {
        let data = Lsbench::new(users, 1);
        assert!(stored_text(data).lines().count() >= 20 * users as usize);
        let streams = lines(data, &even(Rates::PAPER, 1), &Stream::ALL);
        let count = streams.lines().count();
        assert!((130_000..136_000).contains(&count), "{users}: {count}");
    }
}

#[test]
fn no_users_and_no_rates_are_refused() {
    let nobody = Lsbench::new(0, 0);
    assert_eq!(nobody.stored().err(), Some(DatagenError::NoUsers));
    assert_eq!(nobody.friends(0).err(), Some(DatagenError::NoUsers));
    assert!(nobody.write_stored(&mut Vec::new()).is_err());
    let load = even(Rates::PAPER, 1);
    let refused = nobody.streams(&load, &Stream::ALL).err();
    assert_eq!(refused, Some(DatagenError::NoUsers));
    for rate in [-1., f64::NAN, f64::INFINITY, 2e8] {
        let load = even(
            Rates {
                gps: rate,
                ..Rates::PAPER
            },
            1,
        );
        let refused = Lsbench::new(1, 0).streams(&load, &Stream::ALL).err();
        assert!(
            matches!(refused, Some(DatagenError::NoRate { .. })),
            "{rate}: {refused:?}"
        );
    }
    let silent = even(Rates::PAPER.times(0.), 1);
    assert_eq!(lines(Lsbench::new(5, 0), &silent, &Stream::ALL), "");
}
