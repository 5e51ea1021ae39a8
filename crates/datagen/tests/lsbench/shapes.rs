//! Has the generated data the shapes of the given data?

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};

use crate::data::{Data, Row, Stored, pairs};
use crate::joins;

const USERS: u32 = 1000;
/// One of so many is asked about.
const SAMPLED_USERS: usize = 7;
/// Windows are compared up to this time: what the given data has.
const END_MS: u64 = 228_000;

fn given(folder: &Path) -> Data {
    let read = |name: &str| -> Vec<Row> {
        let file = File::open(folder.join(name)).expect("the given file opens");
        let lines = BufReader::new(zstd::Decoder::new(file).expect("it is compressed"));
        lines
            .lines()
            .map(|line| Row::parse(&line.expect("it is text")))
            .collect()
    };
    Data {
        stored: read("static.nt.zst"),
        streams: Stream::ALL.map(|stream| read(&format!("{}.tnt.zst", stream.name()))),
    }
}

/// Named figures of a data set.
type Figures = BTreeMap<String, f64>;

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    (mean, (square / values.len() as f64).sqrt())
}

/// Adds mean and standard deviation of how often each of `of` comes in `names`.
fn spread<'a>(
    figures: &mut Figures,
    what: &str,
    of: impl Iterator<Item = &'a str>,
    names: impl Iterator<Item = &'a str>,
) {
    let mut counts: HashMap<&str, f64> = of.map(|name| (name, 0.)).collect();
    for name in names {
        if let Some(count) = counts.get_mut(name) {
            *count += 1.;
        }
    }
    let (mean, deviation) = mean_and_deviation(&counts.into_values().collect::<Vec<_>>());
    figures.insert(format!("{what}, mean"), mean);
    figures.insert(format!("{what}, deviation"), deviation);
}

fn figures(data: &Data) -> Figures {
    let mut figures = Figures::new();
    let stored = Stored::new(&data.stored);
    let files = [("static", &data.stored[..])]
        .into_iter()
        .chain(Stream::ALL.map(|stream| (stream.name(), data.stream(stream))));
    for (name, rows) in files {
        figures.insert(format!("{name} rows"), rows.len() as f64);
        for row in rows {
            let key = format!("{name} {}", row.predicate);
            *figures.entry(key).or_default() += 1.;
        }
    }
    stored_figures(&mut figures, data, &stored);
    post_figures(&mut figures, data);
    photo_figures(&mut figures, data);
    for (what, made, likes, predicate) in [
        ("post", Stream::Post, Stream::PostLike, "title"),
        ("photo", Stream::Photo, Stream::PhotoLike, "location"),
    ] {
        like_figures(
            &mut figures,
            what,
            data.stream(made),
            data.stream(likes),
            predicate,
        );
    }
    let tracked: HashSet<_> = pairs(data.stream(Stream::Gps), "trackedAt")
        .map(|(user, _)| user)
        .collect();
    figures.insert("users tracked".to_owned(), tracked.len() as f64);
    result_figures(&mut figures, data, &stored);
    figures
}

/// Results in a mean window: of L1 to L3 for the mean of some users, whoever they are.
fn result_figures(figures: &mut Figures, data: &Data, stored: &Stored) {
    let (mut about_user, mut about_all) = ([0; 3], [0; 3]);
    for to_ms in (1000..=END_MS).step_by(1000) {
        for user in (0..USERS).step_by(SAMPLED_USERS) {
            let found = joins::about_user(data, stored, to_ms, user);
            for (sum, found) in about_user.iter_mut().zip(found) {
                *sum += found;
            }
        }
    }
    for to_ms in (100..=END_MS).step_by(100) {
        let found = joins::about_all(data, stored, to_ms);
        for (sum, found) in about_all.iter_mut().zip(found) {
            *sum += found;
        }
    }
    let sampled = USERS as usize / SAMPLED_USERS;
    let windows = END_MS / 1000;
    for (at, sum) in about_user.into_iter().enumerate() {
        let mean = sum as f64 / (windows as usize * sampled) as f64;
        figures.insert(format!("L{}, rows a window", at + 1), mean);
    }
    for (at, sum) in about_all.into_iter().enumerate() {
        let mean = sum as f64 / (10 * windows) as f64;
        figures.insert(format!("L{}, rows a window", at + 4), mean);
    }
}

fn stored_figures(figures: &mut Figures, data: &Data, stored: &Stored) {
    let users = || stored.users_of.values().flatten().copied();
    let befriended = pairs(&data.stored, "knows").map(|(user, _)| user);
    spread(figures, "friends", users(), befriended);
    let mut closed = Vec::new();
    for friends in stored.friends.values().filter(|friends| friends.len() > 1) {
        let known = |one: &&str| {
            friends
                .iter()
                .filter(|&other| stored.knows(one, other))
                .count()
        };
        let ties: usize = friends.iter().map(known).sum();
        closed.push(ties as f64 / (friends.len() * (friends.len() - 1)) as f64);
    }
    figures.insert("clustering".to_owned(), mean_and_deviation(&closed).0);
    let interested = pairs(&data.stored, "interest").map(|(user, _)| user);
    spread(figures, "interests", users(), interested);
}

fn post_figures(figures: &mut Figures, data: &Data) {
    let posts = data.stream(Stream::Post);
    let users = || pairs(&data.stored, "account_of").map(|(user, _)| user);
    let titled: HashSet<&str> = pairs(posts, "title").map(|(post, _)| post).collect();
    let by = || pairs(posts, "creator_of").filter(|(_, post)| titled.contains(post));
    spread(
        figures,
        "posts of a user",
        users(),
        by().map(|(user, _)| user),
    );
    let tagged = pairs(posts, "hashtag").map(|(post, _)| post);
    spread(figures, "tags", titled.iter().copied(), tagged);
    for tag in ["region", "album", "India", "0"] {
        let tag_text = format!("\"{tag}\"");
        let count = pairs(posts, "hashtag")
            .filter(|(_, t)| *t == tag_text)
            .count();
        figures.insert(format!("tag {tag}"), count as f64);
    }
    let tags: HashSet<_> = pairs(posts, "hashtag").map(|(_, tag)| tag).collect();
    figures.insert("different tags".to_owned(), tags.len() as f64);
    let (mut last, mut again) = (HashMap::new(), 0);
    for row in posts.iter().filter(|row| row.predicate == "creator_of") {
        if titled.contains(row.object.as_str()) {
            let before = last.insert(row.subject.as_str(), row.time_ms);
            again += u64::from(before.is_some_and(|before| row.time_ms - before <= 1000));
        }
    }
    let share = again as f64 / titled.len() as f64;
    figures.insert("authors of the last second".to_owned(), share);
    let bytes: Vec<f64> = pairs(posts, "content")
        .filter(|(post, _)| titled.contains(post))
        .map(|(_, content)| content.len() as f64)
        .collect();
    figures.insert("bytes of content".to_owned(), mean_and_deviation(&bytes).0);
}

fn photo_figures(figures: &mut Figures, data: &Data) {
    let rows = data.stream(Stream::Photo);
    let photos = pairs(rows, "location").map(|(photo, _)| photo);
    let tagged = pairs(rows, "usertag").map(|(photo, _)| photo);
    spread(figures, "users on a photo", photos, tagged);
    let albums = pairs(rows, "title").map(|(album, _)| album);
    let filled = pairs(rows, "container_of").map(|(album, _)| album);
    spread(figures, "photos of an album", albums, filled);
}

fn like_figures(figures: &mut Figures, what: &str, made: &[Row], likes: &[Row], predicate: &str) {
    let times: HashMap<&str, u64> = made
        .iter()
        .filter(|row| row.predicate == predicate)
        .map(|row| (row.subject.as_str(), row.time_ms))
        .collect();
    let liked = likes.iter().map(|row| row.object.as_str());
    spread(
        figures,
        &format!("likes of a {what}"),
        times.keys().copied(),
        liked,
    );
    let delays: Vec<f64> = likes
        .iter()
        .map(|row| (row.time_ms - times[row.object.as_str()]) as f64)
        .collect();
    let (mean, deviation) = mean_and_deviation(&delays);
    figures.insert(format!("delay of likes of a {what}, mean"), mean);
    figures.insert(format!("delay of likes of a {what}, deviation"), deviation);
}

/// How far a figure may be from the given one, in percent.
fn bound(figure: &str, given: f64) -> f64 {
    match figure {
        // 39 groups of very different sizes.
        "static has_member"
        | "static member_of_membership"
        | "static group_of_membership"
        | "static added" => 25.,
        // The given posts come in bursts as the network grows.
        "L4, rows a window" => 35.,
        "L5, rows a window" | "L6, rows a window" => 20.,
        // Of 143 users, a few of them tracked.
        "L1, rows a window" => 90.,
        "L2, rows a window" | "L3, rows a window" => 25.,
        "clustering" | "different tags" | "users tracked" => 30.,
        "authors of the last second" | "tag album" | "tag India" => 25.,
        "photos of an album, mean" | "posts of a user, deviation" => 12.,
        "photo creator_of" | "photo title" | "photo type" => 12.,
        // Of no importance, and few.
        _ if given < 500. && figure.contains(' ') && !figure.contains(',') => 40.,
        _ => 7.,
    }
}

#[test]
fn shapes_are_those_of_the_given_data() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/lsbench");
    if !folder.is_dir() {
        println!("SKIPPED: shapes of LSBench against the given data (…/shared/data is absent)");
        return;
    }
    let load = Load {
        rates: Rates::given(USERS),
        pace: Pace::Daily,
        duration_ms: 240_000,
    };
    let given = figures(&given(&folder));
    let ours = figures(&Data::generate(Lsbench::new(USERS, 0), &load));
    let mut off = Vec::new();
    for (figure, given) in &given {
        let ours = ours.get(figure).copied().unwrap_or_default();
        let percent = (ours / given - 1.) * 100.;
        println!("{figure}: {given:.3} given, {ours:.3} generated, {percent:+.1} %");
        if percent.abs() > bound(figure, *given) {
            off.push(format!("{figure}: {ours:.3} of {given:.3}"));
        }
    }
    for figure in ours.keys().filter(|figure| !given.contains_key(*figure)) {
        off.push(format!("{figure}: not in the given data"));
    }
    assert!(off.is_empty(), "{off:#?}");
}
