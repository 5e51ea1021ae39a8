//! What do the Linked Stream Benchmark's social graph and streams look like, for any number of
//! users and at any rate?
//!
//! LSBench (Le-Phuoc, Dao-Tran, Pham, Boncz, Eiter, Fink: "Linked Stream Data Processing Engines:
//! Facts and Figures", ISWC 2012) has a stored graph of people, accounts, friendships and groups,
//! and five [`Stream`]s. [`Lsbench`] makes data with the same predicates, IRIs and shapes as that of
//! the benchmark's own generator for 1,000 users; it does not repeat that data. Rates are those of
//! that data ([`Rates::given`]) or of the evaluation of Wukong+S ([`Rates::PAPER`]).
//!
//! ```
//! use jindou_datagen::lsbench::{Load, Lsbench, Pace, Rates, Stream};
//!
//! let data = Lsbench::new(1000, 7);
//! let mut stored = Vec::new();
//! data.write_stored(&mut stored)?;
//!
//! let load = Load { rates: Rates::PAPER, pace: Pace::Even, duration_ms: 100 };
//! let mut streams = data.streams(&load, &Stream::ALL)?;
//! let mut tuples = 0;
//! while let Some(event) = streams.next_event() {
//!     for tuple in event.tuples() {
//!         assert!(event.time_ms < 100 && tuple.predicate.starts_with("http://"));
//!         tuples += 1;
//!     }
//! }
//! assert!((13_000..13_700).contains(&tuples));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What was measured
//! In the given data, which shows an hour of ten days in each second; what is made here is within a
//! few percent of it, as `tests/lsbench/shapes.rs` checks, unless this says otherwise.
//!
//! **Stored graph**: 102.4 statements a user. Friends: mean 19.2, standard deviation 6.0, from 2
//! to 35, symmetric; of two friends of a user, 6.3 % are friends themselves; 28 % of friends are of
//! one country, and users of a country have neighbouring numbers. Each pair of friends has a
//! friendship with two members, one of whom asked; 0.9 % of those asked declined and are no friends,
//! and as many approved later. Each user has the channels (`forum`) `2u` and `2u + 1` and is their
//! only subscriber. 1 to 9 interests, mean 3.55, of 34. 39 groups for 1,000 users, with 2 to 98
//! members, mean 48.7, and two channels from `2n + 3` on that only groups subscribe to.
//!
//! **Posts**: 64,561 tuples, 269 a second; 4,787 posts of 12.8 tuples and 357 comments of 9.3, so
//! 13.49 tuples a post. A user has 4.8 posts (standard deviation 3.2; 6.8 % have none). 99.7 % are on
//! their author's first channel, the others on one of a group. 14.5 % are by an author of the last
//! second. Tags: 1 to 9 a post, mean 3.4; 36 % of posts are about a country (its name's words,
//! `region`, `article` and a digit), the others about one of the author's interests or an album of
//! music; so 564 tags, of which `region` and `article` are on 36 % of posts, `album` on 13 %, `Adam`
//! on 13 %, the median on 7 posts, and 83 on one. Two posts of a user have 0.75 tags in common in the
//! mean, two posts of anybody 0.37. A comment is by a friend of the post's author, half of them
//! within 22.5 s; 4.6 % of posts have comments, 1.6 in the mean.
//!
//! **Photos**: 260,627 tuples, 1,086 a second; 970 albums with 0 to 39 photos, uniform, a photo
//! 0.28 ms after the other; 13.8 tuples a photo. On a photo there are 0 to 9 users, uniform, friends of
//! its author. GPS: 41,805 tuples, 174 a second, five a position; 40 users are ever tracked, at up to
//! 7 a time, 50 positions in a row, 16.7 ms apart.
//!
//! **Likes**: 19,392 of posts and 83,637 of photos. A photo has 0 to 9, uniform, mean 4.5, a post
//! as many but for friends who came after it, mean 4.05. They come uniformly within the second after
//! what they like; 99 % are by friends of its author, the others by those who were refused; nobody
//! likes twice. At the paper's rates there are 116 likes for each post and 10.5 for each photo, while
//! an author has 19 friends: friends like as often as before, and the others are strangers. So
//! **L5 and L6 find about as many results for each photo and post as in the given data, at any rate**
//! (a mean window has 2.0 results of L6 for each post in it, 0.5 of L5 for each photo, 0.12 of L4 for each
//! post).
//!
//! **Times**: in days of 24 s, of which the first 12 s have everything ([`Pace::Daily`]), and ten
//! times as much on the ninth day as on the first, as users join: this is not repeated, rates stay
//! what they are in the mean.
//!
//! What differs: ids count up in the order of time, where the given ones are in the order of users;
//! names, titles and contents are random words of our own lists; friends of one country are 21 %; 420 different tags;
//! where there are few users for the rate, posts by one user within a second are as many as chance
//! brings.

mod gps;
mod graph;
mod likes;
mod pace;
mod photos;
mod posts;
mod prose;
mod random;
mod society;
mod statements;
mod static_graph;
mod stored_reader;
mod streams;
mod vocabulary;
mod words;

use std::io::{self, Write};

use crate::DatagenError;
use society::Society;

pub use pace::{Pace, Rates};
pub use statements::{Object, Statements, Tuple};
pub use static_graph::StoredGraph;
pub use stored_reader::StoredReader;
pub use streams::{Event, Load, STORED_GRAPH_IRI, Stream, Streams};

/// A data set: how many users, from which seed. The same ones always give the same data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lsbench {
    /// How many users, from 1 on.
    pub users: u32,
    /// Seed of everything that is random.
    pub seed: u64,
}

impl Lsbench {
    /// Users `0..users`.
    pub const fn new(users: u32, seed: u64) -> Self {
        Self { users, seed }
    }

    /// The stored graph, block by block. Holds one block, whatever the number of users.
    ///
    /// # Errors
    /// [`DatagenError::NoUsers`] without users.
    pub fn stored(&self) -> Result<StoredGraph, DatagenError> {
        Ok(StoredGraph::new(self.society()?))
    }

    /// The stored graph as N-Triples, made as it is read. Holds one block, whatever the number of users.
    ///
    /// # Errors
    /// [`DatagenError::NoUsers`] without users.
    pub fn stored_reader(&self) -> Result<StoredReader, DatagenError> {
        Ok(StoredReader::new(self.stored()?))
    }

    /// Writes the stored graph as N-Triples, about 13 kB a user; returns the number of statements.
    ///
    /// # Errors
    /// What `out` reports, and `InvalidInput` around the error of [`Lsbench::stored`].
    pub fn write_stored(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut stored = self
            .stored()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let (mut text, mut statements) = (String::new(), 0);
        while let Some(block) = stored.next_block() {
            text.clear();
            block.push_lines(&mut text);
            out.write_all(text.as_bytes())?;
            statements += block.len() as u64;
        }
        Ok(statements)
    }

    /// Who knows a user, in ascending order. Costs about 300 hashes.
    ///
    /// # Errors
    /// [`DatagenError::NoUsers`] without users.
    pub fn friends(&self, user: u32) -> Result<Vec<u32>, DatagenError> {
        let mut ties = Vec::new();
        self.society()?.ties(user, &mut ties);
        let mut friends: Vec<u32> = ties
            .into_iter()
            .filter_map(|(friend, tie)| tie.is_friends().then_some(friend))
            .collect();
        friends.sort_unstable();
        Ok(friends)
    }

    /// The events of these streams in the order of time. Each stream is the same, whichever others
    /// are asked for.
    ///
    /// # Errors
    /// [`DatagenError::NoUsers`] without users, [`DatagenError::NoRate`] for what is no rate.
    pub fn streams(&self, load: &Load, streams: &[Stream]) -> Result<Streams, DatagenError> {
        load.rates.check()?;
        Ok(Streams::new(self.society()?, load, streams))
    }

    fn society(&self) -> Result<Society, DatagenError> {
        match self.users {
            0 => Err(DatagenError::NoUsers),
            users => Ok(Society::new(users, self.seed)),
        }
    }
}
