//! Which albums and photos are there, by whom, and who is on them?

use super::graph::Tie;
use super::pace::Clock;
use super::posts::{Liked, created, sent_with};
use super::random::{Purpose, Random};
use super::society::{Society, degrees, middle};
use super::statements::Statements;
use super::vocabulary::*;
use super::words::COUNTRIES;

/// Photos of an album: uniform from none to this, 19.6 in the mean of those with any.
const MOST_PHOTOS: u32 = 39;
/// Users on a photo: uniform from none to this, as far as its author has friends.
const MOST_TAGGED: u32 = 9;
/// A photo of an album is one second later than the one before, shown at an hour in a second.
const PHOTO_MS: f64 = 1. / 3.6;
/// Tuples of a photo with its share of its album's.
pub(super) const TUPLES_A_PHOTO: f64 = 14.05;

/// An album that is being filled.
#[derive(Debug, Clone, Copy)]
struct Album {
    number: u64,
    author: u32,
    begin_ms: u64,
    photos: u32,
    shown: u32,
}

#[derive(Debug)]
pub(super) struct Photos {
    clock: Clock,
    random: Random,
    tuples: u64,
    albums: u64,
    photos: u64,
    /// Milliseconds between photos of an album: less where the rate needs it.
    photo_ms: f64,
    album: Option<Album>,
    /// Of the album's author.
    ties: Vec<(u32, Tie)>,
}

impl Photos {
    pub(super) fn new(society: &Society, clock: Clock) -> Self {
        let pause = 1000. * TUPLES_A_PHOTO / clock.tuples_a_second();
        Self {
            clock,
            random: Random::of(society.seed, Purpose::Photos, 0),
            tuples: 0,
            albums: 0,
            photos: 0,
            photo_ms: PHOTO_MS.min(pause / 2.),
            album: None,
            ties: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn next_ms(&self, now_ms: u64) -> u64 {
        match self.album {
            Some(album) => album.begin_ms + (f64::from(album.shown + 1) * self.photo_ms) as u64,
            None => self.clock.time_of(self.tuples).max(now_ms),
        }
    }

    /// Makes the next album or photo; returns the photo, which can be liked from now on.
    pub(super) fn make(
        &mut self,
        society: &Society,
        now_ms: u64,
        out: &mut Statements,
    ) -> Option<Liked> {
        let photo = match self.album {
            Some(album) => Some(self.photo(society, album, now_ms, out)),
            None => {
                self.album(society, now_ms, out);
                None
            }
        };
        self.tuples += out.len() as u64;
        self.album = self.album.filter(|album| album.shown < album.photos);
        photo
    }

    fn album(&mut self, society: &Society, now_ms: u64, out: &mut Statements) {
        self.albums += 1;
        let author = society.active_user(&mut self.random);
        society.ties(author, &mut self.ties);
        let album = Album {
            number: self.albums,
            author,
            begin_ms: now_ms,
            photos: self.random.between(0, MOST_PHOTOS),
            shown: 0,
        };
        self.album = Some(album);
        let country = self.random.one_of_countries();
        let iri = out.iri(Kind::Album, album.number);
        out.name(iri, TYPE, CLASS_GALLERY);
        out.text(iri, TITLE, |text| {
            text.push_str("Album ");
            text.push_str(COUNTRIES[country].0);
        });
        out.time(iri, CREATED, created(now_ms));
        let user = out.iri(Kind::User, u64::from(author));
        out.link(user, CREATOR_OF, iri);
    }

    fn photo(
        &mut self,
        society: &Society,
        album: Album,
        now_ms: u64,
        out: &mut Statements,
    ) -> Liked {
        self.photos += 1;
        let number = self.photos;
        if let Some(album) = &mut self.album {
            album.shown += 1;
        }
        let random = &mut self.random;
        let country = random.one_of_countries();
        let (latitude, longitude) = middle(country);
        let photo = out.iri(Kind::Photo, number);
        out.name(photo, TYPE, CLASS_PHOTO);
        out.name(photo, TYPE, CLASS_ITEM);
        out.word(photo, LOCATION, COUNTRIES[country].0);
        out.coordinate(photo, LATITUDE, latitude + degrees(random, -1, 1));
        out.coordinate(photo, LONGITUDE, longitude + degrees(random, -1, 1));
        sent_with(random, society, album.author, photo, 1., out);
        let seconds = created(album.begin_ms) + u64::from(album.shown) + 1;
        debug_assert!(now_ms >= album.begin_ms, "photos follow their album");
        out.time(photo, CREATED, seconds);
        let iri = out.iri(Kind::Album, album.number);
        out.link(iri, CONTAINER_OF, photo);
        let tagged = random.between(0, MOST_TAGGED) as usize;
        let tagged = random.choose(tagged, &mut self.ties);
        for &(user, _) in &self.ties[..tagged] {
            let user = out.iri(Kind::User, u64::from(user));
            out.link(photo, USERTAG, user);
        }
        Liked {
            number,
            author: album.author,
        }
    }
}

impl Random {
    /// Where a photo was taken: not where users live, but anywhere.
    fn one_of_countries(&mut self) -> usize {
        self.below(COUNTRIES.len() as u32) as usize
    }
}
