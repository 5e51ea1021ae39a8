//! Who knows whom? A symmetric graph that is computed where it is asked for, and never held.
//!
//! Users stand on two circles: on the first in the order of their numbers, which is also that of
//! their countries, on the second in an order that leaves none of the first's neighbours together.
//! Two users who are near each other on a circle know each other with a probability that falls with
//! the distance and rises with how sociable both are. So friends of friends are friends more often
//! than by chance, however many users there are.

use super::random::{Purpose, fraction, hash};

/// Up to a distance on a circle, the probability of a tie between two users of mean sociability.
struct Band {
    reach: u32,
    probability: f64,
}

const NEAR: [Band; 2] = [
    Band {
        reach: 9,
        probability: 0.074,
    },
    Band {
        reach: 99,
        probability: 0.033,
    },
];
const FAR: [Band; 1] = [Band {
    reach: 40,
    probability: 0.15,
}];

/// Sociability is uniform between one less this and one more this.
const SOCIABILITY_SPREAD: f64 = 0.38;

/// Of 65,536 asked to be a friend, how many declined, and of these, how many approved later.
const DECLINED: u64 = 1_186;
const REAPPROVED_OF_DECLINED: u64 = 34_079;

/// What is between two users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tie {
    /// They know each other.
    Friends,
    /// One had declined, and approved later.
    Reapproved,
    /// One asked, the other declined.
    Declined,
}

impl Tie {
    fn of(bits: u64) -> Self {
        if bits & 0xffff >= DECLINED {
            Tie::Friends
        } else if (bits >> 16) & 0xffff < REAPPROVED_OF_DECLINED {
            Tie::Reapproved
        } else {
            Tie::Declined
        }
    }

    pub(super) fn is_friends(self) -> bool {
        self != Tie::Declined
    }
}

/// One of the circles: its next user is `step` users further.
#[derive(Debug, Clone, Copy)]
struct Circle {
    purpose: Purpose,
    bands: &'static [Band],
    step: u32,
    /// The inverse of `step` modulo the number of users.
    inverse: u32,
}

impl std::fmt::Debug for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Purpose({})", *self as u8)
    }
}

impl std::fmt::Debug for Band {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} up to {}", self.probability, self.reach)
    }
}

/// The graph of some users.
#[derive(Debug, Clone)]
pub(super) struct Graph {
    users: u32,
    seed: u64,
    circles: [Circle; 2],
}

impl Graph {
    pub(super) fn new(users: u32, seed: u64) -> Self {
        assert!(users > 0, "a graph of no users");
        let far_step = coprime_near(users, u64::from(users) * 618_033_989 / 1_000_000_000);
        let circle = |purpose, bands, step| Circle {
            purpose,
            bands,
            step: step % users,
            inverse: inverse(step, users),
        };
        Self {
            users,
            seed,
            circles: [
                circle(Purpose::NearTie, &NEAR, 1),
                circle(Purpose::FarTie, &FAR, far_step),
            ],
        }
    }

    pub(super) fn users(&self) -> u32 {
        self.users
    }

    /// A number that has no divisor in common with the number of users: steps of this length reach
    /// each user once.
    pub(super) fn far_step(&self) -> u32 {
        self.circles[1].step
    }

    /// Replaces `ties` by those of a user, in no order that means anything. Costs about 300 hashes.
    pub(super) fn ties(&self, user: u32, ties: &mut Vec<(u32, Tie)>) {
        ties.clear();
        let own = self.sociability(user);
        for (number, circle) in self.circles.iter().enumerate() {
            let (mut from, mut shift) = (1, 0);
            for band in circle.bands {
                for distance in from..=self.reach(band) {
                    shift = self.plus(shift, circle.step);
                    let (next, previous) = (self.plus(user, shift), self.minus(user, shift));
                    for (first, other) in [(user, next), (previous, previous)] {
                        let bits = self.bits(circle, first, distance);
                        // Cheap and mostly decisive: the other's sociability has a bound.
                        let most = band.probability * own * (1. + SOCIABILITY_SPREAD);
                        if fraction(bits) >= most
                            || fraction(bits) >= band.probability * own * self.sociability(other)
                        {
                            continue;
                        }
                        let is_repeated = number > 0
                            && self.circles[..number]
                                .iter()
                                .any(|earlier| self.tie_on(earlier, user, other).is_some());
                        if !is_repeated {
                            ties.push((other, Tie::of(bits)));
                        }
                    }
                }
                from = band.reach + 1;
            }
        }
    }

    /// What is between two users, if anything is.
    pub(super) fn tie(&self, a: u32, b: u32) -> Option<Tie> {
        self.circles
            .iter()
            .find_map(|circle| self.tie_on(circle, a, b))
    }

    fn tie_on(&self, circle: &Circle, a: u32, b: u32) -> Option<Tie> {
        let ahead = self.times(self.minus(b, a), circle.inverse);
        let behind = self.users - ahead;
        let (first, distance) = if ahead <= behind {
            (a, ahead)
        } else {
            (b, behind)
        };
        if distance == 0 {
            return None;
        }
        let band = circle
            .bands
            .iter()
            .find(|band| distance <= self.reach(band))?;
        let bits = self.bits(circle, first, distance);
        let probability = band.probability * self.sociability(a) * self.sociability(b);
        (fraction(bits) < probability).then(|| Tie::of(bits))
    }

    /// A band reaches less than half of the circle, so that no two users are neighbours both ways.
    fn reach(&self, band: &Band) -> u32 {
        band.reach.min((self.users - 1) / 2)
    }

    fn bits(&self, circle: &Circle, first: u32, distance: u32) -> u64 {
        let pair = (u64::from(first) << 32) | u64::from(distance);
        hash(self.seed, circle.purpose, pair)
    }

    fn sociability(&self, user: u32) -> f64 {
        let bits = hash(self.seed, Purpose::Sociability, u64::from(user));
        1. + SOCIABILITY_SPREAD * (2. * fraction(bits) - 1.)
    }

    fn plus(&self, a: u32, b: u32) -> u32 {
        let sum = u64::from(a) + u64::from(b);
        let users = u64::from(self.users);
        (if sum >= users { sum - users } else { sum }) as u32
    }

    fn minus(&self, a: u32, b: u32) -> u32 {
        self.plus(a, self.users - b)
    }

    fn times(&self, a: u32, b: u32) -> u32 {
        (u64::from(a) * u64::from(b) % u64::from(self.users)) as u32
    }
}

fn coprime_near(n: u32, from: u64) -> u32 {
    (from.max(1) as u32..)
        .find(|&c| gcd(c, n) == 1)
        .expect("n + 1 has no divisor in common with n")
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The number that `a` is multiplied with to be 1 modulo `n`; they have no divisor in common.
fn inverse(a: u32, n: u32) -> u32 {
    let (mut r, mut next_r) = (i64::from(n), i64::from(a % n));
    let (mut t, mut next_t) = (0_i64, 1_i64);
    while next_r != 0 {
        let quotient = r / next_r;
        (t, next_t) = (next_t, t - quotient * next_t);
        (r, next_r) = (next_r, r - quotient * next_r);
    }
    t.rem_euclid(i64::from(n)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_are_symmetric_and_those_that_are_asked_for_singly() {
        for (users, seed) in [(1, 0), (2, 1), (3, 1), (4, 2), (10, 3), (200, 4), (1000, 5)] {
            let graph = Graph::new(users, seed);
            let all: Vec<_> = (0..users)
                .map(|user| {
                    let mut ties = Vec::new();
                    graph.ties(user, &mut ties);
                    ties.sort_unstable_by_key(|&(other, _)| other);
                    ties
                })
                .collect();
            for user in 0..users {
                let singly: Vec<_> = (0..users)
                    .filter_map(|other| Some((other, graph.tie(user, other)?)))
                    .collect();
                assert_eq!(all[user as usize], singly, "{users} users, user {user}");
                for &(other, tie) in &singly {
                    assert_ne!(other, user);
                    assert_eq!(graph.tie(other, user), Some(tie), "{users} users");
                }
            }
        }
    }

    #[test]
    fn a_number_times_its_inverse_is_one() {
        for n in [2, 3, 10, 1000, 999_983, 1 << 31, u32::MAX] {
            let step = coprime_near(n, u64::from(n) * 618_033_989 / 1_000_000_000);
            let product = u64::from(step) * u64::from(inverse(step, n)) % u64::from(n);
            assert_eq!(product, 1, "{n}");
        }
    }
}
