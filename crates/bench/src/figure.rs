//! How long does something take, or why is that not known? And how many times longer is it?

use std::fmt::{self, Display, Formatter};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::table::millis;
use crate::timing::Timing;

/// How long one engine takes for one query in one form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome")]
pub enum Figure {
    /// This long.
    Timed {
        /// The runs.
        timing: Timing,
    },
    /// More than this.
    GaveUp {
        /// The limit.
        limit_ms: f64,
    },
    /// It cannot do it.
    Failed {
        /// What it said.
        reason: String,
    },
}

impl Figure {
    /// A query was cut at this limit.
    #[must_use]
    pub fn gave_up(limit: Duration) -> Self {
        Self::GaveUp {
            limit_ms: limit.as_secs_f64() * 1e3,
        }
    }

    /// A query failed.
    #[must_use]
    pub fn failed(error: &BenchError) -> Self {
        Self::Failed {
            reason: error.to_string(),
        }
    }

    /// The median, or the limit that was met, in milliseconds.
    #[must_use]
    pub fn ms(&self) -> Option<f64> {
        match self {
            Self::Timed { timing } => Some(timing.median_ms),
            Self::GaveUp { limit_ms } => Some(*limit_ms),
            Self::Failed { .. } => None,
        }
    }

    fn is_cut(&self) -> bool {
        matches!(self, Self::GaveUp { .. })
    }
}

impl Display for Figure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timed { timing } => f.write_str(&millis(timing.median_ms)),
            Self::GaveUp { limit_ms } => write!(f, "> {} s", limit_ms / 1e3),
            Self::Failed { .. } => f.write_str("failed"),
        }
    }
}

/// How many times longer one thing takes than another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The quotient of the medians.
    pub value: f64,
    /// Whether the one that is divided was cut: the true ratio is higher.
    pub at_least: bool,
    /// Whether the one that it is divided by was cut: the true ratio is lower.
    pub at_most: bool,
}

impl Ratio {
    /// How many times longer `figure` is than `base`; `None` if either failed.
    #[must_use]
    pub fn of(figure: &Figure, base: &Figure) -> Option<Self> {
        Some(Self {
            value: figure.ms()? / base.ms()?,
            at_least: figure.is_cut(),
            at_most: base.is_cut(),
        })
    }

    /// The geometric mean, a bound where one of them is; `None` of none.
    #[must_use]
    pub fn mean(ratios: impl IntoIterator<Item = Self>) -> Option<Self> {
        let ratios: Vec<Self> = ratios.into_iter().collect();
        Some(Self {
            value: geometric_mean(ratios.iter().map(|ratio| ratio.value))?,
            at_least: ratios.iter().any(|ratio| ratio.at_least),
            at_most: ratios.iter().any(|ratio| ratio.at_most),
        })
    }

    /// Its text in a table, empty where there is none.
    #[must_use]
    pub fn cell(ratio: Option<Self>) -> String {
        ratio.map_or_else(String::new, |ratio| ratio.to_string())
    }
}

impl Display for Ratio {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sign = match (self.at_least, self.at_most) {
            (true, false) => "> ",
            (false, true) => "< ",
            (false, false) => "",
            (true, true) => return f.write_str("?"),
        };
        let digits = if self.value < 10.0 { 2 } else { 1 };
        write!(f, "{sign}{:.*}", digits, self.value)
    }
}

/// The geometric mean of positive values; `None` of none.
#[must_use]
pub fn geometric_mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0_u32);
    for value in values {
        sum += value.ln();
        count += 1;
    }
    (count > 0).then(|| (sum / f64::from(count)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(ms: u64) -> Figure {
        Figure::Timed {
            timing: Timing::of(vec![Duration::from_millis(ms)]),
        }
    }

    #[test]
    fn a_ratio_says_which_side_was_cut() {
        let cut = || Figure::gave_up(Duration::from_secs(20));
        let text = |figure, base| Ratio::cell(Ratio::of(&figure, &base));
        assert_eq!(text(timed(50), timed(2)), "25.0");
        assert_eq!(text(timed(50), timed(100)), "0.50");
        assert_eq!(text(cut(), timed(100)), "> 200.0");
        assert_eq!(text(timed(2000), cut()), "< 0.10");
        assert_eq!(text(cut(), cut()), "?");
        let failed = Figure::Failed {
            reason: "not today".to_owned(),
        };
        assert_eq!(text(failed, timed(1)), "");
    }

    #[test]
    fn a_mean_is_geometric_and_a_bound_where_a_part_is() {
        assert_eq!(geometric_mean(std::iter::empty()), None);
        let mean = geometric_mean([1.0, 4.0, 16.0].into_iter()).unwrap();
        assert!((mean - 4.0).abs() < 1e-12, "{mean}");
        let cut = Figure::gave_up(Duration::from_secs(2));
        let parts = [
            Ratio::of(&timed(10), &timed(1)),
            Ratio::of(&cut, &timed(200)),
        ];
        let mean = Ratio::mean(parts.into_iter().flatten()).unwrap();
        assert!((mean.value - 10.0).abs() < 1e-9 && mean.at_least && !mean.at_most);
    }
}
