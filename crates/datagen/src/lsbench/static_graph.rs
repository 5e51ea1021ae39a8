//! What is stored before the streams begin: people, their accounts, friendships and groups.

use super::graph::Tie;
use super::random::{Purpose, Random};
use super::society::{Society, degrees, middle, push_address};
use super::statements::{Span, Statements, push_padded};
use super::vocabulary::*;
use super::words::{FIRST_NAMES, INTERESTS, LAST_NAMES, MAIL_HOSTS};
use crate::numbers::push_number;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;
/// Everything happens in the first half of a day.
const ACTIVE: u32 = 12 * HOUR as u32;

/// Status, what names the partner of those who have one, and of how many of 1,000 users it is. The
/// others say nothing.
const STATUS: [(&str, Option<&str>, u32); 4] = [
    ("Single", None, 391),
    ("Engaged", Some(ENGAGED_WITH), 34),
    ("In a relationship", Some(IN_RELATIONSHIP_WITH), 32),
    ("Married", Some(MARRIED_WITH), 19),
];

/// The stored graph in blocks: one of each user, then one of each group. See
/// [`Lsbench::stored`](super::Lsbench::stored).
#[derive(Debug)]
pub struct StoredGraph {
    society: Society,
    next_user: u32,
    next_group: u64,
    friendships: u64,
    memberships: u64,
    block: Statements,
    ties: Vec<(u32, Tie)>,
    members: Vec<u32>,
    interests: Vec<u8>,
}

impl StoredGraph {
    pub(super) fn new(society: Society) -> Self {
        Self {
            society,
            next_user: 0,
            next_group: 1,
            friendships: 0,
            memberships: 0,
            block: Statements::default(),
            ties: Vec::new(),
            members: Vec::new(),
            interests: Vec::new(),
        }
    }

    /// How many blocks there are in all.
    pub fn blocks(&self) -> u64 {
        u64::from(self.society.users()) + self.society.groups()
    }

    /// The next block of statements, about 100.
    pub fn next_block(&mut self) -> Option<&Statements> {
        self.block.clear();
        if self.next_user < self.society.users() {
            let user = self.next_user;
            self.next_user += 1;
            self.person(user);
            self.account(user);
        } else if self.next_group <= self.society.groups() {
            let group = self.next_group;
            self.next_group += 1;
            self.group(group);
        } else {
            return None;
        }
        Some(&self.block)
    }

    fn person(&mut self, user: u32) {
        let Self { society, block, .. } = self;
        let mut random = Random::of(society.seed, Purpose::Person, (u64::from(user) << 1) | 1);
        let country = society.country(user);
        let name = society.country_name(user);
        let person = block.iri(Kind::Person, u64::from(user));
        let first_name = random.one_of(FIRST_NAMES);
        let last_name = random.one_of(LAST_NAMES);
        block.name(person, TYPE, CLASS_PERSON);
        block.word(person, FIRST_NAME, first_name);
        block.word(person, LAST_NAME, last_name);
        let resource = block.span(|text| {
            text.push_str(RESOURCE);
            text.push_str(name);
        });
        block.link(person, BASED_NEAR, resource);
        block.word(person, BASED_NEAR, name);
        let (latitude, longitude) = middle(country);
        block.coordinate(person, LATITUDE, latitude + degrees(&mut random, -3, 3));
        block.coordinate(person, LONGITUDE, longitude + degrees(&mut random, -3, 3));
        if random.chance(0.810) {
            let place = random.one_of(LAST_NAMES);
            block.text(person, ORGANIZATION, |text| {
                text.push_str(place);
                text.push_str(" University, ");
                text.push_str(name);
            });
            if random.chance(0.804) {
                let year = 1952 + random.below(66);
                block.typed(person, CLASS_YEAR, Some(XSD_DATE), |text| {
                    push_number(text, u64::from(year));
                });
            }
        }
        if random.chance(0.798) {
            let place = random.one_of(LAST_NAMES);
            block.text(person, WORK_AT, |text| {
                text.push_str(place);
                text.push_str(" Airlines");
            });
            let year = 1952 + random.below(66);
            block.typed(person, WORK_FROM, Some(XSD_DATE), |text| {
                push_number(text, u64::from(year));
            });
        }
        if random.chance(0.788) {
            let gender = if random.chance(0.51) {
                "male"
            } else {
                "female"
            };
            block.word(person, GENDER, gender);
        }
        if random.chance(0.807) {
            let (year, month, day) = (
                random.between(1940, 1995),
                random.between(1, 12),
                random.between(1, 28),
            );
            block.typed(person, BIRTHDAY, Some(XSD_DATE), |text| {
                push_padded(text, u64::from(year), 4);
                text.push('-');
                push_padded(text, u64::from(month), 2);
                text.push('-');
                push_padded(text, u64::from(day), 2);
            });
        }
        if random.chance(0.804) {
            let host = random.one_of(MAIL_HOSTS);
            block.text(person, EMAIL, |text| {
                text.push_str(first_name);
                push_number(text, u64::from(user));
                text.push('@');
                text.push_str(host);
            });
        }
        block.word(person, BROWSER, society.browser(user));
        block.text(person, IP_ADDRESS, |text| {
            push_address(&mut random, country, text);
        });
    }

    fn account(&mut self, user: u32) {
        let Self {
            society,
            block,
            ties,
            interests,
            friendships,
            ..
        } = self;
        let mut random = Random::of(society.seed, Purpose::Friendship, u64::from(user));
        society.ties(user, ties);
        let account = block.iri(Kind::User, u64::from(user));
        let person = block.iri(Kind::Person, u64::from(user));
        block.name(account, TYPE, CLASS_USER);
        block.name(account, TYPE, CLASS_SIOC_USER);
        block.link(account, ACCOUNT_OF, person);
        let walls = [0, 1].map(|n| block.iri(Kind::Forum, 2 * u64::from(user) + n));
        for predicate in [MODERATOR_OF, SUBSCRIBER_OF] {
            for wall in walls {
                block.link(account, predicate, wall);
            }
        }
        let mut left = random.below(1000);
        for (status, with, users) in STATUS {
            if left < users {
                block.word(account, USER_STATUS, status);
                let friend = ties.iter().find(|(_, tie)| tie.is_friends());
                if let (Some(with), Some(&(friend, _))) = (with, friend) {
                    let friend = block.iri(Kind::User, u64::from(friend));
                    block.link(account, with, friend);
                }
                break;
            }
            left -= users;
        }
        let joined = u64::from(random.below(9)) * DAY + u64::from(random.below(ACTIVE));
        block.time(account, DATE, joined);
        society.interests(user, interests);
        for &interest in &*interests {
            block.word(account, INTEREST, INTERESTS[usize::from(interest)].0);
        }
        for &(other, tie) in &*ties {
            let friend = block.iri(Kind::User, u64::from(other));
            if user < other {
                friendship(block, *friendships, [account, friend], tie, &mut random);
                *friendships += 1;
            }
            if tie.is_friends() {
                block.link(account, KNOWS, friend);
            }
        }
    }

    fn group(&mut self, number: u64) {
        let Self {
            society,
            block,
            members,
            memberships,
            ..
        } = self;
        let creator = society.group(number, members);
        let mut random = Random::of(society.seed, Purpose::Group, number << 32);
        let group = block.iri(Kind::Group, number);
        let user = block.iri(Kind::User, u64::from(creator));
        let country = society.country_name(creator);
        society.interests(creator, &mut self.interests);
        let interest = INTERESTS[usize::from(self.interests[0])].0;
        block.name(group, TYPE, CLASS_GROUP);
        block.name(group, TYPE, CLASS_USERGROUP);
        block.text(group, NAME, |text| {
            for part in ["Group for ", interest, " in ", country] {
                text.push_str(part);
            }
        });
        let channels = society
            .channels(number)
            .map(|channel| block.iri(Kind::Forum, channel));
        let created = u64::from(random.below(9)) * DAY + u64::from(random.below(ACTIVE));
        for channel in channels {
            block.link(group, SUBSCRIBER_OF, channel);
        }
        block.time(group, CREATED, created);
        block.link(user, CREATOR_OF, group);
        for channel in channels {
            block.link(user, MODERATOR_OF, channel);
        }
        for channel in channels {
            block.name(channel, TYPE, CLASS_FORUM);
            block.time(channel, CREATED, created);
        }
        block.word(group, TAG, country);
        block.word(group, TAG, interest);
        for &member in &*members {
            let member = block.iri(Kind::User, u64::from(member));
            let membership = block.iri(Kind::Membership, *memberships);
            *memberships += 1;
            block.link(group, HAS_MEMBER, member);
            block.link(membership, MEMBER_OF_MEMBERSHIP, member);
            block.link(membership, GROUP_OF_MEMBERSHIP, group);
            let added = created + u64::from(random.below(20)) * DAY;
            block.time(membership, ADDED, added);
        }
    }
}

fn friendship(
    block: &mut Statements,
    number: u64,
    members: [Span; 2],
    tie: Tie,
    random: &mut Random,
) {
    let friendship = block.iri(Kind::Friendship, number);
    for member in members {
        block.link(friendship, MEMB, member);
    }
    block.link(friendship, INITIATOR, members[random.below(2) as usize]);
    let mut time = 8 * DAY + u64::from(random.below(29)) * DAY + u64::from(random.below(ACTIVE));
    block.time(friendship, REQUESTED, time);
    let answers: &[&'static str] = match tie {
        Tie::Friends => &[APPROVED],
        Tie::Declined => &[DECLINED],
        Tie::Reapproved => &[DECLINED, REAPPROVED],
    };
    for answer in answers {
        time += u64::from(random.between(1, 7)) * DAY;
        block.time(friendship, answer, time);
    }
}
