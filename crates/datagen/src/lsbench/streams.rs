//! In which order do the streams' events come?

use super::gps::Gps;
use super::likes::Likes;
use super::pace::{Clock, Pace, Rates};
use super::photos::{Photos, TUPLES_A_PHOTO};
use super::posts::{Posts, TUPLES_A_POST};
use super::society::Society;
use super::statements::{Statements, Tuple};
use super::vocabulary::Kind;
use crate::numbers::push_number;

/// The stored graph in queries of ours, as [`Stream::iri`] is the streams'.
pub const STORED_GRAPH_IRI: &str = "http://example.org/lsbench/static";

/// One of the five streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stream {
    /// Posts, and comments on them.
    Post,
    /// Likes of posts.
    PostLike,
    /// Albums, their photos, and who is on them.
    Photo,
    /// Likes of photos.
    PhotoLike,
    /// Positions of users: the one stream of timing data, which is kept only while windows need it.
    Gps,
}

impl Stream {
    /// Every one. Events of the same time come in this order.
    pub const ALL: [Stream; 5] = [
        Stream::Post,
        Stream::PostLike,
        Stream::Photo,
        Stream::PhotoLike,
        Stream::Gps,
    ];

    /// Its name in files and queries.
    pub const fn name(self) -> &'static str {
        match self {
            Stream::Post => "post",
            Stream::PostLike => "postlike",
            Stream::Photo => "photo",
            Stream::PhotoLike => "photolike",
            Stream::Gps => "gps",
        }
    }

    /// Its IRI in definitions and queries of ours: the benchmark has names only.
    pub fn iri(self) -> String {
        format!("http://example.org/lsbench/{}", self.name())
    }

    /// Whether its tuples are timing data.
    pub const fn is_timing(self) -> bool {
        matches!(self, Stream::Gps)
    }
}

/// Tuples of one stream and one time that belong together: a post with all that is said about it.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    /// Which stream it is of.
    pub stream: Stream,
    /// Milliseconds since the streams began.
    pub time_ms: u64,
    /// The tuples, at least one.
    pub statements: &'a Statements,
}

impl<'a> Event<'a> {
    /// Its tuples, in order.
    pub fn tuples(&self) -> impl ExactSizeIterator<Item = Tuple<'a>> + Clone + use<'a> {
        self.statements.iter()
    }

    /// Appends a line for each tuple: the time, a tab and the statement in N-Triples.
    pub fn push_lines(&self, out: &mut String) {
        for tuple in self.tuples() {
            push_number(out, self.time_ms);
            out.push('\t');
            tuple.push_to(out);
            out.push('\n');
        }
    }
}

/// What streams there are to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Tuples a second.
    pub rates: Rates,
    /// How they are spread over time.
    pub pace: Pace,
    /// The streams end before this time; never, at `u64::MAX`.
    pub duration_ms: u64,
}

/// The events of some streams, in the order of time. See [`Lsbench::streams`](super::Lsbench::streams).
///
/// Keeps what a second of posts and photos and 45 s of posts take, see [`Streams::kept`].
#[derive(Debug)]
pub struct Streams {
    society: Society,
    duration_ms: u64,
    wanted: [bool; 5],
    now_ms: u64,
    posts: Option<Posts>,
    post_likes: Option<Likes>,
    photos: Option<Photos>,
    photo_likes: Option<Likes>,
    gps: Option<Gps>,
    event: Statements,
}

impl Streams {
    pub(super) fn new(society: Society, load: &Load, streams: &[Stream]) -> Self {
        let wanted = Stream::ALL.map(|stream| streams.contains(&stream));
        let [post, post_like, photo, photo_like, gps] = wanted;
        let clock = |rate| Clock::new(rate, load.pace);
        let rates = load.rates;
        Self {
            posts: (post || post_like).then(|| Posts::new(&society, clock(rates.post))),
            post_likes: post_like.then(|| {
                let posts = clock(rates.post).tuples_a_second() / TUPLES_A_POST;
                Likes::new(&society, clock(rates.post_like), Kind::Post, posts)
            }),
            photos: (photo || photo_like).then(|| Photos::new(&society, clock(rates.photo))),
            photo_likes: photo_like.then(|| {
                let photos = clock(rates.photo).tuples_a_second() / TUPLES_A_PHOTO;
                Likes::new(&society, clock(rates.photo_like), Kind::Photo, photos)
            }),
            gps: gps.then(|| Gps::new(&society, clock(rates.gps))),
            society,
            duration_ms: load.duration_ms,
            wanted,
            now_ms: 0,
            event: Statements::default(),
        }
    }

    /// The next event; none after the end.
    pub fn next_event(&mut self) -> Option<Event<'_>> {
        loop {
            let (stream, time_ms) = self.next_due();
            if time_ms >= self.duration_ms {
                return None;
            }
            assert!(time_ms >= self.now_ms, "time does not go back");
            self.now_ms = time_ms;
            self.event.clear();
            self.make(stream);
            if self.wanted[stream as usize] {
                break Some(Event {
                    stream,
                    time_ms,
                    statements: &self.event,
                });
            }
        }
    }

    /// How many posts, photos, likes to come and tracked users are kept. At the paper's rates, it is
    /// about 40,000 after 45 s, and then stays.
    pub fn kept(&self) -> usize {
        let likes = [&self.post_likes, &self.photo_likes];
        let likes = likes.into_iter().flatten().map(Likes::kept);
        self.posts.as_ref().map_or(0, Posts::kept)
            + likes.sum::<usize>()
            + self.gps.as_ref().map_or(0, Gps::kept)
    }

    #[inline]
    fn next_due(&self) -> (Stream, u64) {
        let likes = |likes: &Option<Likes>| {
            likes
                .as_ref()
                .map_or(u64::MAX, |likes| likes.next_ms(self.now_ms))
        };
        let times = [
            self.posts.as_ref().map_or(u64::MAX, Posts::next_ms),
            likes(&self.post_likes),
            self.photos
                .as_ref()
                .map_or(u64::MAX, |photos| photos.next_ms(self.now_ms)),
            likes(&self.photo_likes),
            self.gps.as_ref().map_or(u64::MAX, Gps::next_ms),
        ];
        let mut first = 0;
        for at in 1..times.len() {
            if times[at] < times[first] {
                first = at;
            }
        }
        (Stream::ALL[first], times[first])
    }

    fn make(&mut self, stream: Stream) {
        let (society, now_ms, out) = (&self.society, self.now_ms, &mut self.event);
        match stream {
            Stream::Post => {
                let posts = self.posts.as_mut().expect("what is due is there");
                let post = posts.make(society, now_ms, out);
                if let (Some(likes), Some(post)) = (&mut self.post_likes, post) {
                    likes.announce(society, now_ms, post);
                }
            }
            Stream::Photo => {
                let photos = self.photos.as_mut().expect("what is due is there");
                let photo = photos.make(society, now_ms, out);
                if let (Some(likes), Some(photo)) = (&mut self.photo_likes, photo) {
                    likes.announce(society, now_ms, photo);
                }
            }
            Stream::PostLike => {
                let likes = self.post_likes.as_mut().expect("what is due is there");
                likes.make(society, now_ms, out);
            }
            Stream::PhotoLike => {
                let likes = self.photo_likes.as_mut().expect("what is due is there");
                likes.make(society, now_ms, out);
            }
            Stream::Gps => {
                let gps = self.gps.as_mut().expect("what is due is there");
                gps.make(society, now_ms, out);
            }
        }
    }
}
