//! Who likes what, and when?
//!
//! Acquaintances of the author like a post or photo, as many as was measured, at times that are
//! uniform over the second after it. Where the stream's rate asks for more likes than these, the
//! others are by users whom the author does not know. So a post or photo has as many likes by
//! friends at each rate, and the joins of L5 and L6 find as many results for it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::graph::Tie;
use super::pace::Clock;
use super::posts::Liked;
use super::random::{Purpose, Random, hash};
use super::society::Society;
use super::statements::Statements;
use super::vocabulary::*;

/// How long after it was made something is liked, at most.
const LIKED_MS: u64 = 1000;
/// How far likes by acquaintances may be ahead of or behind what the rate asks for, in likes: photos
/// come by the album.
const POST_SLACK: u64 = 200;
const PHOTO_SLACK: u64 = 400;
/// With more than this part of all likes by acquaintances, strangers only like where chance left
/// something to do.
const NEARLY_ALL: f64 = 0.95;
/// More draws than that for somebody whom the author does not know are not worth it.
const STRANGER_DRAWS: u32 = 8;

/// Of how many posts or photos each number of acquaintances likes it, from none to nine.
pub(super) type LikesEach = [u32; 10];
pub(super) const POST_LIKES: LikesEach = [504, 537, 521, 588, 581, 532, 490, 422, 337, 275];
pub(super) const PHOTO_LIKES: LikesEach =
    [1795, 1813, 1850, 1874, 1898, 1846, 1946, 1967, 1805, 1755];

#[derive(Debug)]
struct Recent {
    time_ms: u64,
    liked: Liked,
    /// Strangers who liked it.
    strangers: u32,
}

#[derive(Debug)]
pub(super) struct Likes {
    clock: Clock,
    kind: Kind,
    likes_each: LikesEach,
    slack: u64,
    random: Random,
    made: u64,
    /// Whether acquaintances alone are never enough.
    needs_strangers: bool,
    /// Likes by acquaintances that are to come at a time, in the mean.
    usually_due: u64,
    /// Likes to come: time, what, and by whom.
    due: BinaryHeap<Reverse<(u64, u64, u32)>>,
    /// What can still be liked, in the order of time.
    recent: VecDeque<Recent>,
    ties: Vec<(u32, Tie)>,
    /// Whose ties these are.
    ties_of: Option<u32>,
}

impl Likes {
    /// Likes of posts or photos, of which `liked_a_second` come in a second.
    pub(super) fn new(society: &Society, clock: Clock, kind: Kind, liked_a_second: f64) -> Self {
        let (likes_each, purpose, slack) = match kind {
            Kind::Post => (POST_LIKES, Purpose::PostLikes, POST_SLACK),
            Kind::Photo => (PHOTO_LIKES, Purpose::PhotoLikes, PHOTO_SLACK),
            other => unreachable!("nobody likes a {other:?}"),
        };
        let likes: u32 = (0..).zip(likes_each).map(|(n, weight)| n * weight).sum();
        let mean = f64::from(likes) / f64::from(likes_each.iter().sum::<u32>());
        let by_friends = (liked_a_second * mean).min(clock.tuples_a_second());
        Self {
            needs_strangers: by_friends < NEARLY_ALL * clock.tuples_a_second(),
            usually_due: (by_friends * LIKED_MS as f64 / 2000.) as u64,
            clock,
            kind,
            likes_each,
            slack,
            random: Random::of(society.seed, purpose, 0),
            made: 0,
            due: BinaryHeap::new(),
            recent: VecDeque::new(),
            ties: Vec::new(),
            ties_of: None,
        }
    }

    pub(super) fn kept(&self) -> usize {
        self.due.len() + self.recent.len()
    }

    /// From now on this can be liked.
    pub(super) fn announce(&mut self, society: &Society, now_ms: u64, liked: Liked) {
        self.forget(now_ms);
        self.recent.push_back(Recent {
            time_ms: now_ms,
            liked,
            strangers: 0,
        });
        let wanted =
            (self.made + self.due.len() as u64).saturating_sub(self.usually_due + self.slack);
        if self.clock.time_of(wanted) > now_ms {
            return;
        }
        if self.ties_of != Some(liked.author) {
            society.ties(liked.author, &mut self.ties);
            self.ties_of = Some(liked.author);
        }
        let likes = self.random.weighted(self.likes_each.iter().copied());
        let likes = self.random.choose(likes, &mut self.ties);
        for &(user, _) in &self.ties[..likes] {
            let due_ms = now_ms + u64::from(self.random.between(0, LIKED_MS as u32));
            self.due.push(Reverse((due_ms, liked.number, user)));
        }
    }

    /// When the next like is, if nothing more is announced.
    pub(super) fn next_ms(&self, now_ms: u64) -> u64 {
        // Not before its time, and only if acquaintances are not about to like enough.
        let enough = self.made + self.due.len() as u64 + self.slack;
        let wanted = match self.needs_strangers {
            true => 0,
            false => enough.saturating_sub(self.usually_due),
        };
        let by_stranger = self.clock.time_of(self.made.max(wanted)).max(now_ms);
        let by_stranger = match self.recent.back() {
            Some(last) if by_stranger <= last.time_ms + LIKED_MS => by_stranger,
            _ => u64::MAX,
        };
        match self.due.peek() {
            Some(&Reverse((due_ms, ..))) => due_ms.min(by_stranger),
            None => by_stranger,
        }
    }

    pub(super) fn make(&mut self, society: &Society, now_ms: u64, out: &mut Statements) {
        let (number, user) = match self.due.peek() {
            Some(&Reverse((due_ms, number, user))) if due_ms <= now_ms => {
                self.due.pop();
                (number, user)
            }
            _ => self.by_stranger(society, now_ms),
        };
        self.made += 1;
        let user = out.iri(Kind::User, u64::from(user));
        let liked = out.iri(self.kind, number);
        out.link(user, LIKE, liked);
    }

    /// Strangers come in an order in which each comes once.
    fn by_stranger(&mut self, society: &Society, now_ms: u64) -> (u64, u32) {
        self.forget(now_ms);
        let at = self.random.below(self.recent.len() as u32) as usize;
        let Recent {
            liked, strangers, ..
        } = &mut self.recent[at];
        let users = u64::from(society.users());
        let first = hash(society.seed, Purpose::PostLikes, liked.number + 1) % users;
        let step = u64::from(society.graph.far_step());
        let mut user = 0;
        for _ in 0..STRANGER_DRAWS {
            user = ((first + u64::from(*strangers) * step) % users) as u32;
            *strangers = strangers.wrapping_add(1);
            if user != liked.author && society.graph.tie(user, liked.author).is_none() {
                break;
            }
        }
        (liked.number, user)
    }

    fn forget(&mut self, now_ms: u64) {
        let horizon = now_ms.saturating_sub(LIKED_MS);
        while self.recent.front().is_some_and(|r| r.time_ms < horizon) {
            self.recent.pop_front();
        }
    }
}
