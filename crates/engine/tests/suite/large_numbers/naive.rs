//! What are the sum, the product and the order of two decimals, reckoned by hand?

use std::cmp::Ordering;

/// `digits / 10^scale`, the digits from the last one to the first.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    negative: bool,
    digits: Vec<u8>,
    scale: usize,
}

impl Naive {
    pub(crate) fn parse(text: &str) -> Self {
        let unsigned = text.trim_start_matches(['+', '-']);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        Self {
            negative: text.starts_with('-'),
            digits: digits.map(|digit| digit - b'0').rev().collect(),
            scale: fraction.len(),
        }
    }

    fn is_zero(&self) -> bool {
        self.digits.iter().all(|digit| *digit == 0)
    }

    /// Both with the same scale and as many digits.
    fn aligned(&self, other: &Self) -> (Vec<u8>, Vec<u8>) {
        let scale = self.scale.max(other.scale);
        let shifted = |number: &Self| {
            let mut digits = vec![0; scale - number.scale];
            digits.extend(&number.digits);
            digits
        };
        let (mut left, mut right) = (shifted(self), shifted(other));
        let length = left.len().max(right.len());
        left.resize(length, 0);
        right.resize(length, 0);
        (left, right)
    }

    pub(crate) fn negated(&self) -> Self {
        Self {
            negative: !self.negative,
            ..self.clone()
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let difference = self.plus(&other.negated());
        match (difference.is_zero(), difference.negative) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (left, right) = self.aligned(other);
        let scale = self.scale.max(other.scale);
        if self.negative == other.negative {
            let mut digits = Vec::new();
            let mut carry = 0;
            for (left, right) in left.iter().zip(&right) {
                digits.push((left + right + carry) % 10);
                carry = (left + right + carry) / 10;
            }
            digits.push(carry);
            return Self {
                negative: self.negative,
                digits,
                scale,
            };
        }
        let is_less = left.iter().rev().lt(right.iter().rev());
        let (greater, lesser) = if is_less {
            (right, left)
        } else {
            (left, right)
        };
        let mut digits = Vec::new();
        let mut borrowed = 0;
        for (greater, lesser) in greater.iter().zip(&lesser) {
            let taken = lesser + borrowed;
            borrowed = u8::from(taken > *greater);
            digits.push(greater + 10 * borrowed - taken);
        }
        Self {
            negative: self.negative != is_less,
            digits,
            scale,
        }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        let mut sums = vec![0_u32; self.digits.len() + other.digits.len() + 1];
        for (place, left) in self.digits.iter().enumerate() {
            for (other_place, right) in other.digits.iter().enumerate() {
                sums[place + other_place] += u32::from(left * right);
            }
        }
        let mut digits = Vec::new();
        let mut carry = 0;
        for sum in sums {
            digits.push(((sum + carry) % 10) as u8);
            carry = (sum + carry) / 10;
        }
        assert_eq!(carry, 0, "a product has no more digits than its factors");
        Self {
            negative: self.negative != other.negative,
            digits,
            scale: self.scale + other.scale,
        }
    }

    /// The canonical lexical form.
    pub(crate) fn text(&self) -> String {
        let mut digits = self.digits.clone();
        digits.resize(digits.len().max(self.scale + 1), 0);
        let mut text: String = digits.iter().rev().map(|d| char::from(b'0' + d)).collect();
        text.insert(text.len() - self.scale, '.');
        let text = text.trim_end_matches('0').trim_end_matches('.');
        let text = text.trim_start_matches('0');
        let sign = if self.negative && !self.is_zero() {
            "-"
        } else {
            ""
        };
        match text {
            "" => "0".to_owned(),
            text if text.starts_with('.') => format!("{sign}0{text}"),
            text => format!("{sign}{text}"),
        }
    }
}
