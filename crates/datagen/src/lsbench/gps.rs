//! Which positions are there, of whom?

use super::pace::Clock;
use super::posts::created;
use super::random::{Purpose, Random};
use super::society::{Society, degrees, middle};
use super::statements::Statements;
use super::vocabulary::*;

/// Time between positions of a user: a minute, shown at an hour in a second.
const READ_MS: f64 = 1000. / 60.;
/// Positions of a user in a row: uniform up to this, 50 in the mean.
const MOST_READS: u32 = 99;
const TUPLES_A_READ: f64 = 5.;
/// Of 1,000 users, how many are ever tracked, and how many there are at least for each one who is
/// tracked at a time.
const TRACKED: f64 = 40.;
const TRACKED_EACH: f64 = 4.;

/// A user who is tracked.
#[derive(Debug, Clone, Copy)]
struct Session {
    user: u32,
    reads_left: u32,
    latitude: i64,
    longitude: i64,
}

#[derive(Debug)]
pub(super) struct Gps {
    clock: Clock,
    random: Random,
    reads: u64,
    /// Take turns.
    sessions: Vec<Session>,
    /// Users who are ever tracked.
    tracked: u32,
}

impl Gps {
    pub(super) fn new(society: &Society, clock: Clock) -> Self {
        let at_a_time = clock.tuples_a_second() / TUPLES_A_READ * READ_MS / 1000.;
        let at_a_time = at_a_time.round().max(1.);
        let tracked = (f64::from(society.users()) * TRACKED / 1000.).max(at_a_time * TRACKED_EACH);
        let nobody = Session {
            user: 0,
            reads_left: 0,
            latitude: 0,
            longitude: 0,
        };
        Self {
            clock,
            random: Random::of(society.seed, Purpose::Gps, 0),
            reads: 0,
            sessions: vec![nobody; at_a_time as usize],
            tracked: tracked.min(f64::from(society.users())) as u32,
        }
    }

    #[inline]
    pub(super) fn next_ms(&self) -> u64 {
        self.clock.time_of(self.reads * TUPLES_A_READ as u64)
    }

    pub(super) fn kept(&self) -> usize {
        self.sessions.len()
    }

    pub(super) fn make(&mut self, society: &Society, now_ms: u64, out: &mut Statements) {
        let number = self.reads;
        self.reads += 1;
        let random = &mut self.random;
        let turn = (number % self.sessions.len() as u64) as usize;
        let session = &mut self.sessions[turn];
        if session.reads_left == 0 {
            let tracked = u64::from(random.below(self.tracked));
            let step = u64::from(society.graph.far_step());
            let user = (tracked * step % u64::from(society.users())) as u32;
            let (latitude, longitude) = middle(society.country(user));
            *session = Session {
                user,
                reads_left: random.between(1, MOST_READS),
                latitude: latitude + degrees(random, -1, 1),
                longitude: longitude + degrees(random, -1, 1),
            };
        }
        session.reads_left -= 1;
        let session = *session;
        // Within half a kilometre of where it began.
        let mut nearby = || degrees(random, -1, 1) / 200;
        let read = out.iri(Kind::Gps, number);
        let user = out.iri(Kind::User, u64::from(session.user));
        out.link(user, TRACKED_AT, read);
        out.coordinate(read, LATITUDE, session.latitude + nearby());
        out.coordinate(read, LONGITUDE, session.longitude + nearby());
        out.time(read, TRACKED_TIME, created(now_ms));
        out.word(read, TRACKED_LOCATION, society.country_name(session.user));
        debug_assert_eq!(out.len() as f64, TUPLES_A_READ);
    }
}
