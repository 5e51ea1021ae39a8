//! How many tuples a second does each stream have, and how are they spread over time?

use crate::DatagenError;

/// Tuples a second of each stream, in the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Posts and comments.
    pub post: f64,
    /// Likes of posts. There are none where there are no posts.
    pub post_like: f64,
    /// Albums and photos.
    pub photo: f64,
    /// Likes of photos. There are none where there are no photos.
    pub photo_like: f64,
    /// Positions of users.
    pub gps: f64,
}

/// The highest rate of a stream.
const MOST_TUPLES_A_SECOND: f64 = 1e8;

/// Ten days, of which the last one ends with its active half.
const GIVEN_SECONDS: f64 = 240.;
const GIVEN_USERS: f64 = 1000.;

impl Rates {
    /// Table 1 of the paper on Wukong+S (SOSP 2017): 133,500 tuples a second, however many users
    /// there are.
    pub const PAPER: Self = Self {
        post: 10_000.,
        post_like: 86_000.,
        photo: 10_000.,
        photo_like: 7_500.,
        gps: 20_000.,
    };

    /// Those of the given data: 1,958 tuples a second for 1,000 users, and as many for each user
    /// where there are more or fewer.
    pub fn given(users: u32) -> Self {
        Self {
            post: 64_561.,
            post_like: 19_392.,
            photo: 260_627.,
            photo_like: 83_637.,
            gps: 41_805.,
        }
        .times(f64::from(users) / GIVEN_USERS / GIVEN_SECONDS)
    }

    /// So many times as much of each.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self {
            post: self.post * factor,
            post_like: self.post_like * factor,
            photo: self.photo * factor,
            photo_like: self.photo_like * factor,
            gps: self.gps * factor,
        }
    }

    /// Of all streams together.
    pub fn total(&self) -> f64 {
        self.all().iter().sum()
    }

    fn all(&self) -> [f64; 5] {
        [
            self.post,
            self.post_like,
            self.photo,
            self.photo_like,
            self.gps,
        ]
    }

    /// # Errors
    /// [`DatagenError::NoRate`] for what is no rate, or too high.
    pub(super) fn check(&self) -> Result<(), DatagenError> {
        match self
            .all()
            .into_iter()
            .find(|rate| !(0. ..=MOST_TUPLES_A_SECOND).contains(rate))
        {
            None => Ok(()),
            Some(rate) => Err(DatagenError::NoRate {
                rate: rate.to_string(),
            }),
        }
    }
}

/// How a stream's tuples are spread over time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Pace {
    /// As evenly as events allow, as for a measurement.
    #[default]
    Even,
    /// In days of 24 s, as in the given data: twice the rate in the first 12 s, then nothing.
    Daily,
}

const DAY_MS: u64 = 24_000;
const ACTIVE_MS: u64 = DAY_MS / 2;

/// When which tuple of a stream is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    tuples_a_second: f64,
    pace: Pace,
}

impl Clock {
    pub(super) fn new(tuples_a_second: f64, pace: Pace) -> Self {
        let tuples_a_second = match pace {
            Pace::Even => tuples_a_second,
            Pace::Daily => 2. * tuples_a_second,
        };
        Self {
            tuples_a_second,
            pace,
        }
    }

    /// While there are tuples.
    pub(super) fn tuples_a_second(&self) -> f64 {
        self.tuples_a_second
    }

    /// The millisecond in which the tuple after so many is due; never, if none is.
    #[inline]
    pub(super) fn time_of(&self, tuples: u64) -> u64 {
        if self.tuples_a_second == 0. {
            return u64::MAX;
        }
        let active = (tuples as f64 * 1000. / self.tuples_a_second) as u64;
        match self.pace {
            Pace::Even => active,
            Pace::Daily => active / ACTIVE_MS * DAY_MS + active % ACTIVE_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_rates_are_those_of_its_table() {
        assert_eq!(Rates::PAPER.total(), 133_500.);
        assert!((Rates::given(1000).total() - 1_958.4).abs() < 0.1);
    }

    #[test]
    fn nights_have_no_tuples() {
        let clock = Clock::new(1000., Pace::Daily);
        for tuples in 0..100_000 {
            assert!(clock.time_of(tuples) % DAY_MS < ACTIVE_MS, "{tuples}");
        }
        assert_eq!(clock.time_of(24_000), DAY_MS);
        assert_eq!(Clock::new(0., Pace::Even).time_of(0), u64::MAX);
    }
}
