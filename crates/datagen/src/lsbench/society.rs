//! Who are the users, and which groups are they in? Computed from a user's number when asked for.

use super::graph::{Graph, Tie};
use super::random::{Purpose, Random, fraction, hash};
use super::words::{BROWSERS, COUNTRIES, INTERESTS, INTERESTS_PER_USER};
use crate::numbers::push_number;

/// Users of a country have neighbouring numbers, in rounds of so many.
const ROUND: u32 = 1000;
/// Groups of a round of users.
const GROUPS_A_ROUND: u64 = 39;
const GROUP_MEMBERS: (u32, u32) = (2, 98);
/// How much more and less active than the mean users are: uniform between.
const ACTIVITY_SPREAD: f64 = 0.82;
/// More draws than that for an active user are not worth it.
const ACTIVITY_DRAWS: u32 = 16;

/// All users of a data set. Takes about a kilobyte, however many there are.
#[derive(Debug, Clone)]
pub(super) struct Society {
    pub(super) graph: Graph,
    pub(super) seed: u64,
    /// Position in [`COUNTRIES`] of the users of each round.
    countries: Box<[u8]>,
}

impl Society {
    pub(super) fn new(users: u32, seed: u64) -> Self {
        let countries: Box<[u8]> = COUNTRIES
            .iter()
            .enumerate()
            .flat_map(|(at, &(_, users))| std::iter::repeat_n(at as u8, users as usize))
            .collect();
        assert_eq!(countries.len(), ROUND as usize, "countries fill a round");
        Self {
            graph: Graph::new(users, seed),
            seed,
            countries,
        }
    }

    pub(super) fn users(&self) -> u32 {
        self.graph.users()
    }

    /// Position in [`COUNTRIES`]. Neighbours by number are mostly in one country; which part of a
    /// round is whose differs between small data sets only by the table's order.
    pub(super) fn country(&self, user: u32) -> usize {
        // Spread over a round, so that a few users are of many countries, too.
        let round = ROUND.min(self.users());
        usize::from(
            self.countries
                [(u64::from(user % round) * u64::from(ROUND) / u64::from(round)) as usize],
        )
    }

    pub(super) fn country_name(&self, user: u32) -> &'static str {
        COUNTRIES[self.country(user)].0
    }

    pub(super) fn browser(&self, user: u32) -> &'static str {
        let mut random = Random::of(self.seed, Purpose::Person, u64::from(user) << 1);
        BROWSERS[random.weighted(BROWSERS.iter().map(|&(_, weight)| weight))].0
    }

    /// Replaces `interests` by a user's, as positions in [`INTERESTS`].
    pub(super) fn interests(&self, user: u32, interests: &mut Vec<u8>) {
        interests.clear();
        let mut random = Random::of(self.seed, Purpose::Interests, u64::from(user));
        let count = 1 + random.weighted(INTERESTS_PER_USER.iter().copied());
        while interests.len() < count {
            let interest = random.weighted(INTERESTS.iter().map(|&(_, weight)| weight)) as u8;
            if !interests.contains(&interest) {
                interests.push(interest);
            }
        }
    }

    /// A user, more often one who is more active.
    pub(super) fn active_user(&self, random: &mut Random) -> u32 {
        for _ in 0..ACTIVITY_DRAWS {
            let user = random.below(self.users());
            let bits = hash(self.seed, Purpose::Activity, u64::from(user));
            let activity = 1. + ACTIVITY_SPREAD * (2. * fraction(bits) - 1.);
            if random.chance(activity / (1. + ACTIVITY_SPREAD)) {
                return user;
            }
        }
        random.below(self.users())
    }

    /// How many groups there are. They are numbered from 1 on.
    pub(super) fn groups(&self) -> u64 {
        u64::from(self.users()) * GROUPS_A_ROUND / u64::from(ROUND)
    }

    /// The two channels of a group.
    pub(super) fn channels(&self, group: u64) -> [u64; 2] {
        let first = 2 * u64::from(self.users()) + 1 + 2 * group;
        [first, first + 1]
    }

    /// Who made a group. Replaces `members` by its members: the friends of who made it, and others
    /// at random where it is larger.
    pub(super) fn group(&self, group: u64, members: &mut Vec<u32>) -> u32 {
        let mut random = Random::of(self.seed, Purpose::Group, group);
        let creator = random.below(self.users());
        let size = random
            .between(GROUP_MEMBERS.0, GROUP_MEMBERS.1)
            .min(self.users()) as usize;
        let mut ties = Vec::new();
        self.graph.ties(creator, &mut ties);
        ties.retain(|&(_, tie)| tie.is_friends());
        let friends = random.choose(size, &mut ties);
        members.clear();
        members.extend(ties[..friends].iter().map(|&(friend, _)| friend));
        while members.len() < size {
            let user = random.below(self.users());
            if !members.contains(&user) {
                members.push(user);
            }
        }
        creator
    }

    /// Replaces `ties` by a user's ties, refused ones included.
    pub(super) fn ties(&self, user: u32, ties: &mut Vec<(u32, Tie)>) {
        self.graph.ties(user, ties);
    }
}

/// The middle of a country, made up, in units of 10^-12 degrees: latitude and longitude.
pub(super) fn middle(country: usize) -> (i64, i64) {
    let mut random = Random::of(0, Purpose::Place, country as u64);
    (
        degrees(&mut random, -35, 60),
        degrees(&mut random, -120, 150),
    )
}

/// Uniform between two whole degrees.
pub(super) fn degrees(random: &mut Random, low: i64, high: i64) -> i64 {
    (low as f64 * 1e12 + random.fraction() * (high - low) as f64 * 1e12) as i64
}

/// Appends an address in the block of a country.
pub(super) fn push_address(random: &mut Random, country: usize, out: &mut String) {
    push_number(out, 1 + country as u64);
    for part in [random.below(256), 8 * random.below(32), random.below(24)] {
        out.push('.');
        push_number(out, u64::from(part));
    }
}
