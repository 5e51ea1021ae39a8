//! Who sends tuples, and was it sent before: what do the headers `Producer` and `Sequence` say?

use hyper::header::HeaderMap;
use jindou_engine::Producer;

use crate::error::Refusal;

const PRODUCER: &str = "producer";
const SEQUENCE: &str = "sequence";
/// The longest name of a producer.
const MOST_NAME_BYTES: usize = 200;

/// A producer, and the number of what it sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sender {
    name: String,
    sequence: u64,
}

impl Sender {
    /// What headers say; `None` if they say nothing.
    pub(crate) fn of(headers: &HeaderMap) -> Result<Option<Self>, Refusal> {
        let (name, sequence) = (headers.get(PRODUCER), headers.get(SEQUENCE));
        let (Some(name), Some(sequence)) = (name, sequence) else {
            return match (name, sequence) {
                (None, None) => Ok(None),
                _ => Err(Refusal::bad_request(
                    "the headers Producer and Sequence come together",
                )),
            };
        };
        let name = name.to_str().ok();
        let name = name.filter(|name| (1..=MOST_NAME_BYTES).contains(&name.len()));
        let name = name.ok_or_else(|| {
            Refusal::bad_request(format!(
                "the header Producer has 1 to {MOST_NAME_BYTES} visible characters of ASCII"
            ))
        })?;
        let sequence = sequence.to_str().ok().and_then(|text| text.parse().ok());
        let sequence = sequence.ok_or_else(|| {
            Refusal::bad_request("the header Sequence is a whole number from 0 on, below 2^64")
        })?;
        let name = name.to_owned();
        Ok(Some(Self { name, sequence }))
    }

    pub(crate) fn producer(&self) -> Producer<'_> {
        Producer {
            name: &self.name,
            sequence: self.sequence,
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;

    fn of(fields: &[(&'static str, &'static str)]) -> Result<Option<Sender>, ()> {
        let fields = fields
            .iter()
            .map(|(name, value)| ((*name).try_into().unwrap(), HeaderValue::from_static(value)));
        Sender::of(&HeaderMap::from_iter(fields)).map_err(|_| ())
    }

    #[test]
    fn both_headers_come_or_none() {
        assert_eq!(of(&[]), Ok(None));
        let sender = of(&[(PRODUCER, "a b"), (SEQUENCE, "18446744073709551615")]);
        let sender = sender.unwrap().unwrap();
        assert_eq!(sender.producer().name, "a b");
        assert_eq!(sender.producer().sequence, u64::MAX);
        assert!(of(&[(PRODUCER, "a")]).is_err() && of(&[(SEQUENCE, "1")]).is_err());
        for wrong in ["", "-1", "1.5", "18446744073709551616"] {
            assert!(
                of(&[(PRODUCER, "a"), (SEQUENCE, wrong)]).is_err(),
                "{wrong}"
            );
        }
        assert!(of(&[(PRODUCER, ""), (SEQUENCE, "1")]).is_err());
    }
}
