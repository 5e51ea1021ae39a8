//! Who sends tuples, and was it sent before: what do the headers `Producer` and `Sequence` say, or the
//! parameters of a socket that are called alike?

use hyper::header::HeaderMap;
use jindou_engine::Producer;

use crate::error::Refusal;
use crate::protocol;

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
        for field in [PRODUCER, SEQUENCE] {
            if headers.get_all(field).iter().nth(1).is_some() {
                let message = format!("the header {field} comes once");
                return Err(Refusal::bad_request(message));
            }
        }
        let (name, sequence) = (headers.get(PRODUCER), headers.get(SEQUENCE));
        let (Some(name), Some(sequence)) = (name, sequence) else {
            return match (name, sequence) {
                (None, None) => Ok(None),
                _ => Err(Refusal::bad_request(
                    "the headers Producer and Sequence come together",
                )),
            };
        };
        let name = name.to_str().ok().filter(|name| is_name(name));
        let name = name.ok_or_else(|| no_name("header Producer"))?;
        let sequence = sequence.to_str().ok().filter(|text| !text.starts_with('+'));
        let sequence = sequence.and_then(|text| text.parse().ok());
        let sequence = sequence.ok_or_else(|| {
            Refusal::bad_request("the header Sequence is a whole number from 0 on, below 2^64")
        })?;
        let name = name.to_owned();
        Ok(Some(Self { name, sequence }))
    }

    /// What the parameters of a socket say, for its first frame; `None` if they say nothing.
    pub(crate) fn of_parameters(parameters: &str) -> Result<Option<Self>, Refusal> {
        let name: Option<String> = protocol::number(parameters, PRODUCER, "a name")?;
        let what = "a whole number from 0 on, below 2^64";
        match (name, protocol::number(parameters, SEQUENCE, what)?) {
            (None, None) => Ok(None),
            (Some(name), Some(sequence)) if is_name(&name) => Ok(Some(Self { name, sequence })),
            (Some(_), Some(_)) => Err(no_name("parameter producer")),
            _ => Err(Refusal::bad_request(
                "the parameters producer and sequence come together",
            )),
        }
    }

    /// The same producer with its next number, if there is one.
    pub(crate) fn next(self) -> Option<Self> {
        let sequence = self.sequence.checked_add(1)?;
        Some(Self { sequence, ..self })
    }

    pub(crate) fn producer(&self) -> Producer<'_> {
        Producer {
            name: &self.name,
            sequence: self.sequence,
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_visible = name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    is_visible && (1..=MOST_NAME_BYTES).contains(&name.len())
}

fn no_name(place: &str) -> Refusal {
    Refusal::bad_request(format!(
        "the {place} has 1 to {MOST_NAME_BYTES} visible characters of ASCII"
    ))
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
        let twice = [(PRODUCER, "a"), (SEQUENCE, "1"), (PRODUCER, "b")];
        assert!(of(&twice).is_err());
        for wrong in ["", "-1", "+1", "1.5", "18446744073709551616"] {
            assert!(
                of(&[(PRODUCER, "a"), (SEQUENCE, wrong)]).is_err(),
                "{wrong}"
            );
        }
        assert!(of(&[(PRODUCER, ""), (SEQUENCE, "1")]).is_err());
    }

    #[test]
    fn both_parameters_come_or_none() {
        let of = |parameters| Sender::of_parameters(parameters).map_err(|refusal| refusal.message);
        assert_eq!(of("format=a"), Ok(None));
        let sender = of("producer=a%20b&sequence=18446744073709551614")
            .unwrap()
            .unwrap();
        let next = sender.next().unwrap();
        assert_eq!(
            (next.producer().name, next.producer().sequence),
            ("a b", u64::MAX)
        );
        assert_eq!(next.next(), None);
        for wrong in [
            "producer=a",
            "sequence=1",
            "producer=&sequence=1",
            "producer=a&sequence=-1",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
