//! What do posts and comments say? Random words, in lengths as they were measured.

use super::random::{Purpose, Random};
use super::words::WORDS;

/// Longer than any content by far, so that contents differ.
const PROSE_BYTES: usize = 1 << 16;

/// By so much contents are longer than drawn, as their last word is whole.
const MEAN_LEFT_OF_WORD: usize = 4;

/// Lengths in bytes at these quantiles, in percent; linear between them.
type Lengths = [(u32, u32); 8];

/// Mean 95, of posts.
pub(super) const POST_BYTES: Lengths = [
    (0, 3),
    (10, 41),
    (25, 60),
    (50, 87),
    (75, 121),
    (90, 140),
    (99, 268),
    (100, 295),
];
/// Mean 38, of comments.
pub(super) const COMMENT_BYTES: Lengths = [
    (0, 18),
    (10, 27),
    (25, 31),
    (50, 35),
    (75, 40),
    (90, 58),
    (99, 84),
    (100, 90),
];

/// A text that contents are parts of.
#[derive(Debug)]
pub(super) struct Prose(String);

impl Prose {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::of(seed, Purpose::Content, 0);
        let mut text = String::with_capacity(PROSE_BYTES + 32);
        while text.len() < PROSE_BYTES {
            text.push_str(random.one_of(WORDS));
            text.push(' ');
        }
        Self(text)
    }

    /// Appends whole words.
    pub(super) fn push(&self, random: &mut Random, lengths: &Lengths, out: &mut String) {
        let percent = random.fraction() * 100.;
        let upper = lengths
            .iter()
            .position(|&(quantile, _)| percent < f64::from(quantile))
            .expect("all is below 100 %");
        let ((low, from), (high, to)) = (lengths[upper - 1], lengths[upper]);
        let part = (percent - f64::from(low)) / f64::from(high - low);
        let bytes = f64::from(from) + part * f64::from(to - from);
        let end_of_starts = (PROSE_BYTES - 512) as u32;
        let start = self.word_after(random.below(end_of_starts) as usize);
        let end = self.word_after(start + (bytes as usize).saturating_sub(MEAN_LEFT_OF_WORD)) - 1;
        out.push_str(&self.0[start..end]);
    }

    /// Where the first word begins that begins after this byte.
    fn word_after(&self, at: usize) -> usize {
        let space = self.0[at..].find(' ').expect("the text ends with a space");
        at + space + 1
    }
}
