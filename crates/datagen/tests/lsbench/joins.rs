//! The continuous queries L1 to L6, joined naively over one window of each stream.

use std::collections::HashMap;

use jindou_datagen::lsbench::Stream;

use crate::data::{Data, Row, Stored, pairs, window};

/// Rows of the last second before a time.
fn last_second(data: &Data, stream: Stream, to_ms: u64) -> &[Row] {
    window(data.stream(stream), to_ms.saturating_sub(1000), to_ms)
}

/// Results of L1 to L3, which ask about one user, over `[to - 1 s, to)`.
pub(crate) fn about_user(data: &Data, stored: &Stored, to_ms: u64, user: u32) -> [u64; 3] {
    let posts = last_second(data, Stream::Post, to_ms);
    let gps = last_second(data, Stream::Gps, to_ms);
    [
        l1(posts, gps, user),
        l2(posts, stored, user),
        l3(posts, stored, user),
    ]
}

/// Results of L4 to L6, which ask about all users, over `[to - 1 s, to)`.
pub(crate) fn about_all(data: &Data, stored: &Stored, to_ms: u64) -> [u64; 3] {
    let of = |stream| last_second(data, stream, to_ms);
    let posts = of(Stream::Post);
    [
        l4(posts),
        l5(of(Stream::Photo), of(Stream::PhotoLike), stored),
        l6(posts, of(Stream::PostLike), stored),
    ]
}

fn l1(posts: &[Row], gps: &[Row], user: u32) -> u64 {
    let user = format!("<http://www.ins.cwi.nl/sib/user/u{user}>");
    let rows = posts.iter().chain(gps).filter(|row| row.subject == user);
    rows.count() as u64
}

fn person(number: u32) -> String {
    format!("<http://www.ins.cwi.nl/sib/person/p{number}>")
}

fn l2(posts: &[Row], stored: &Stored, number: u32) -> u64 {
    let users = &stored.users_of[person(number).as_str()];
    let by_them = pairs(posts, "creator_of").filter(|(user, _)| users.contains(user));
    by_them.count() as u64
}

fn l3(posts: &[Row], stored: &Stored, number: u32) -> u64 {
    let user = stored.users_of[person(number).as_str()][0];
    let by_friends = pairs(posts, "creator_of").filter(|(friend, _)| stored.knows(user, friend));
    by_friends.count() as u64
}

fn l4(posts: &[Row]) -> u64 {
    let mut tags: HashMap<_, Vec<_>> = HashMap::new();
    for (post, tag) in pairs(posts, "hashtag") {
        let tags = tags.entry(post).or_default();
        if !tags.contains(&tag) {
            tags.push(tag);
        }
    }
    let mut by_user: HashMap<_, Vec<_>> = HashMap::new();
    for (user, post) in pairs(posts, "creator_of") {
        by_user.entry(user).or_default().push(post);
    }
    let mut results = 0;
    for posts in by_user.values() {
        for post in posts {
            for other in posts.iter().filter(|other| *other != post) {
                let (Some(own), Some(others)) = (tags.get(post), tags.get(other)) else {
                    continue;
                };
                results += own.iter().filter(|tag| others.contains(tag)).count() as u64;
            }
        }
    }
    results
}

fn l5(photos: &[Row], likes: &[Row], stored: &Stored) -> u64 {
    let mut tagged: HashMap<_, Vec<_>> = HashMap::new();
    for (photo, user) in pairs(photos, "usertag") {
        tagged.entry(photo).or_default().push(user);
    }
    let results = pairs(likes, "like").filter_map(|(liker, photo)| {
        let tagged = tagged.get(photo)?.iter();
        Some(tagged.filter(|user| stored.knows(user, liker)).count() as u64)
    });
    results.sum()
}

fn l6(posts: &[Row], likes: &[Row], stored: &Stored) -> u64 {
    let mut channels: HashMap<_, Vec<_>> = HashMap::new();
    for (channel, post) in pairs(posts, "container_of") {
        channels.entry(post).or_default().push(channel);
    }
    let mut results = 0;
    for (friend, post) in pairs(likes, "like") {
        for channel in channels.get(post).into_iter().flatten() {
            let subscribers = stored.subscribers.get(channel).into_iter().flatten();
            results += subscribers
                .filter(|user| stored.knows(user, friend))
                .count() as u64;
        }
    }
    results
}
