//! Which posts and comments are there, by whom, on which channel, with which tags?

use std::collections::VecDeque;

use super::graph::Tie;
use super::pace::Clock;
use super::prose::{COMMENT_BYTES, POST_BYTES, Prose};
use super::random::{Purpose, Random};
use super::society::{Society, push_address};
use super::statements::{Span, Statements};
use super::vocabulary::*;
use super::words::{AGENTS, BROWSERS, INTERESTS, TITLE_WORDS};

/// Posts that may still get comments, at most.
pub(super) const MOST_COMMENTED: usize = 65_536;
/// For how long a post gets comments: half of them come within 22.5 s.
const COMMENTED_MS: u64 = 45_000;
/// An author of this last time is likely to post again.
const SESSION_MS: u64 = 1000;
/// In so many cases the author is one of the last second's.
const SAME_AUTHOR: f64 = 0.165;
/// Tuples of a post with its share of comments.
pub(super) const TUPLES_A_POST: f64 = 13.49;

/// 357 comments beside 4,787 posts.
const COMMENTS: f64 = 0.0694;
/// So a post that has comments has 1.6 in the mean.
const SAME_POST_AGAIN: f64 = 0.38;
const REPLY_TO_COMMENT: f64 = 0.17;
const GROUP_POSTS: f64 = 0.0033;
const WITH_AGENT: f64 = 0.401;
const COMMENT_WITH_BROWSER: f64 = 0.952;

/// Of 1,000 posts: about the author's country, an artist, an album; and what albums are called.
const ABOUT_COUNTRY: u32 = 356;
const ABOUT_ARTIST: u32 = 300;
const ALBUMS_OF_ARTIST: u32 = 12;
const ALBUM_NAMES_ARTIST: f64 = 0.35;
const ALBUM_SAYS_SO: f64 = 0.42;

/// What is liked: a post or a photo.
#[derive(Debug, Clone, Copy)]
pub(super) struct Liked {
    pub(super) number: u64,
    pub(super) author: u32,
}

#[derive(Debug, Clone, Copy)]
struct Recent {
    time_ms: u64,
    post: Liked,
}

#[derive(Debug)]
pub(super) struct Posts {
    clock: Clock,
    random: Random,
    tuples: u64,
    posts: u64,
    comments: u64,
    same_author: f64,
    /// In the order of time.
    recent: VecDeque<Recent>,
    /// The last post that was commented, and the last comment.
    last_commented: Option<(Liked, u64)>,
    prose: Prose,
    interests: Vec<u8>,
    ties: Vec<(u32, Tie)>,
    members: Vec<u32>,
}

impl Posts {
    pub(super) fn new(society: &Society, clock: Clock) -> Self {
        // Where each user posts more than once in a while, that alone repeats authors.
        let by_chance = clock.tuples_a_second() / TUPLES_A_POST / f64::from(society.users());
        Self {
            clock,
            random: Random::of(society.seed, Purpose::Posts, 0),
            tuples: 0,
            posts: 0,
            comments: 0,
            same_author: (SAME_AUTHOR - by_chance).max(0.),
            recent: VecDeque::new(),
            last_commented: None,
            prose: Prose::new(society.seed),
            interests: Vec::new(),
            ties: Vec::new(),
            members: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn next_ms(&self) -> u64 {
        self.clock.time_of(self.tuples)
    }

    pub(super) fn kept(&self) -> usize {
        self.recent.len()
    }

    /// Makes the next post or comment; returns the post, which can be liked from now on.
    pub(super) fn make(
        &mut self,
        society: &Society,
        now_ms: u64,
        out: &mut Statements,
    ) -> Option<Liked> {
        let horizon = now_ms.saturating_sub(COMMENTED_MS);
        while self.recent.len() >= MOST_COMMENTED
            || self.recent.front().is_some_and(|r| r.time_ms < horizon)
        {
            self.recent.pop_front();
        }
        let is_comment = !self.recent.is_empty() && self.random.chance(COMMENTS);
        let post = if is_comment {
            self.comment(society, now_ms, out);
            None
        } else {
            let post = self.post(society, now_ms, out);
            self.recent.push_back(Recent {
                time_ms: now_ms,
                post,
            });
            Some(post)
        };
        self.tuples += out.len() as u64;
        post
    }

    fn author(&mut self, society: &Society, now_ms: u64) -> u32 {
        let since = now_ms.saturating_sub(SESSION_MS);
        let first = self.recent.partition_point(|r| r.time_ms < since);
        let session = (self.recent.len() - first) as u32;
        if session > 0 && self.random.chance(self.same_author) {
            let at = first + self.random.below(session) as usize;
            return self.recent[at].post.author;
        }
        society.active_user(&mut self.random)
    }

    fn post(&mut self, society: &Society, now_ms: u64, out: &mut Statements) -> Liked {
        let number = self.posts;
        self.posts += 1;
        let mut author = self.author(society, now_ms);
        let group = (society.groups() > 0 && self.random.chance(GROUP_POSTS)).then(|| {
            let group = 1 + (self.random.fraction() * society.groups() as f64) as u64;
            society.group(group, &mut self.members);
            author = self.members[self.random.below(self.members.len() as u32) as usize];
            society.channels(group)[0]
        });
        let channel = group.unwrap_or(2 * u64::from(author));

        let post = out.iri(Kind::Post, number);
        out.name(post, TYPE, CLASS_POST);
        out.name(post, TYPE, CLASS_SIOC_POST);
        out.word(post, TITLE, "null");
        out.time(post, CREATED, created(now_ms));
        if group.is_none() {
            self.sent_with(society, author, post, 1., out);
        }
        let Self { prose, random, .. } = self;
        out.text(post, CONTENT, |text| prose.push(random, &POST_BYTES, text));
        let channel = out.iri(Kind::Forum, channel);
        out.link(channel, CONTAINER_OF, post);
        let user = out.iri(Kind::User, u64::from(author));
        out.link(user, CREATOR_OF, post);
        self.tags(society, author, post, out);
        Liked { number, author }
    }

    fn sent_with(
        &mut self,
        society: &Society,
        user: u32,
        item: Span,
        browser: f64,
        out: &mut Statements,
    ) {
        let random = &mut self.random;
        sent_with(random, society, user, item, browser, out);
    }

    fn tags(&mut self, society: &Society, author: u32, post: Span, out: &mut Statements) {
        let random = &mut self.random;
        let about = random.below(1000);
        let mut tag = |word: &'static str| out.word(post, HASHTAG, word);
        if about < ABOUT_COUNTRY {
            let country = society.country_name(author);
            country
                .split('_')
                .filter(|word| !matches!(*word, "of" | "the" | "and"))
                .for_each(&mut tag);
            tag("region");
            tag("article");
            tag(["0", "1", "2", "3", "4"][random.below(5) as usize]);
            return;
        }
        society.interests(author, &mut self.interests);
        let interest = self.interests[random.below(self.interests.len() as u32) as usize];
        let artist = INTERESTS[usize::from(interest)].0;
        if about < ABOUT_COUNTRY + ABOUT_ARTIST {
            artist.split(' ').for_each(&mut tag);
            return;
        }
        let album = u64::from(random.below(ALBUMS_OF_ARTIST));
        let number = u64::from(interest) * u64::from(ALBUMS_OF_ARTIST) + album;
        let mut title = Random::of(0, Purpose::Title, number);
        for _ in 0..title.between(2, 3) {
            tag(title.one_of(TITLE_WORDS));
        }
        if title.chance(ALBUM_NAMES_ARTIST) {
            artist.split(' ').for_each(&mut tag);
        }
        if title.chance(ALBUM_SAYS_SO) {
            tag("album");
        }
    }

    fn comment(&mut self, society: &Society, now_ms: u64, out: &mut Statements) {
        let number = self.comments;
        self.comments += 1;
        let again = self
            .last_commented
            .filter(|_| self.random.chance(SAME_POST_AGAIN));
        let (on, reply_to) = match again {
            Some((on, last)) => (on, self.random.chance(REPLY_TO_COMMENT).then_some(last)),
            None => {
                let at = self.random.below(self.recent.len() as u32) as usize;
                (self.recent[at].post, None)
            }
        };
        self.last_commented = Some((on, number));
        society.ties(on.author, &mut self.ties);
        let author = match self.ties.len() as u32 {
            0 => on.author,
            ties => self.ties[self.random.below(ties) as usize].0,
        };

        let comment = out.iri(Kind::Comment, number);
        let post = out.iri(Kind::Post, on.number);
        out.name(comment, TYPE, CLASS_COMMENT);
        out.name(comment, TYPE, CLASS_ITEM);
        out.time(comment, CREATED, created(now_ms));
        let replied = match reply_to {
            Some(last) => out.iri(Kind::Comment, last),
            None => post,
        };
        out.link(comment, REPLY_OF, replied);
        self.sent_with(society, author, comment, COMMENT_WITH_BROWSER, out);
        let Self { prose, random, .. } = self;
        out.text(comment, CONTENT, |text| {
            prose.push(random, &COMMENT_BYTES, text);
        });
        out.link(post, CONTAINER_OF, comment);
        let user = out.iri(Kind::User, u64::from(author));
        out.link(user, CREATOR_OF, comment);
    }
}

/// When something was made that is seen at this time of the stream: the streams show an hour in a
/// second. In seconds.
pub(super) fn created(time_ms: u64) -> u64 {
    time_ms * 18 / 5
}

/// How an item was sent: by an agent perhaps, by a browser so probably, from where.
pub(super) fn sent_with(
    random: &mut Random,
    society: &Society,
    user: u32,
    item: Span,
    browser: f64,
    out: &mut Statements,
) {
    /// The others are sent by whatever is at hand.
    const OWN_BROWSER: f64 = 0.9;
    if random.chance(WITH_AGENT) {
        out.word(item, AGENT, random.one_of(AGENTS));
    }
    if !random.chance(browser) {
        return;
    }
    let browser = if random.chance(OWN_BROWSER) {
        society.browser(user)
    } else {
        BROWSERS[random.weighted(BROWSERS.iter().map(|&(_, weight)| weight))].0
    };
    out.word(item, BROWSER, browser);
    let country = society.country(user);
    out.text(item, IP_ADDRESS, |text| push_address(random, country, text));
}
