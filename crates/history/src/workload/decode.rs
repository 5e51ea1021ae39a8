//! What does an answer say, and does it contradict itself?

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::learn::Sighting;
use super::names::{Family, key_of};
use crate::{Key, Value};

/// Why an answer cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// It is no JSON: it was cut, for example.
    #[error("the answer is no JSON")]
    Json(#[from] serde_json::Error),
    /// It has no solutions, or not in the form of SPARQL 1.1 Query Results JSON.
    #[error("the answer is no result of a SELECT")]
    Shape,
    /// A term is not of the workload.
    #[error("{variable} is {term:?}, which the workload never writes")]
    Term {
        /// Which column.
        variable: &'static str,
        /// What is there.
        term: String,
    },
}

/// What cannot be in any state of the data, however updates are ordered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Contradiction {
    /// Two updates counted the same items, or one item came twice.
    #[error("list {key} has {} and {} at position {position}", values[0], values[1])]
    TwoValues {
        /// Which list.
        key: Key,
        /// Where.
        position: u64,
        /// Two of its values there.
        values: [Value; 2],
    },
    /// Nothing is at a position, but something after it.
    #[error("list {key} has nothing at position {position}, but something after it")]
    Gap {
        /// Which list.
        key: Key,
        /// The first such position.
        position: u64,
    },
    /// An item has no position, or no value: a part of an update.
    #[error("list {key} has the item {item} without its {missing}")]
    PartialItem {
        /// Which list.
        key: Key,
        /// The IRI of the item.
        item: String,
        /// What it has not.
        missing: &'static str,
    },
    /// A register, counter or account has two numbers.
    #[error("{key} has {} and {}", numbers[0], numbers[1])]
    TwoNumbers {
        /// Which.
        key: Key,
        /// Two of its numbers.
        numbers: [i64; 2],
    },
}

/// What an answer says of lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListAnswer {
    /// The values of each list, by the order of the keys asked for, each list by position.
    pub lists: Vec<Vec<Value>>,
    /// What the updates that appended these values had read.
    pub sightings: Vec<Sighting>,
    /// What is wrong with the answer in itself.
    pub contradictions: Vec<Contradiction>,
}

/// What an answer says of registers, counters or accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberAnswer {
    /// The number of each, by the order of the keys asked for.
    pub numbers: Vec<Option<i64>>,
    /// What the updates that wrote these values had read.
    pub sightings: Vec<Sighting>,
    /// What is wrong with the answer in itself.
    pub contradictions: Vec<Contradiction>,
}

/// One solution.
struct Row<'j>(&'j Json);

impl<'j> Row<'j> {
    fn text(&self, variable: &str) -> Option<&'j str> {
        self.0.get(variable)?.get("value")?.as_str()
    }

    fn number<T: std::str::FromStr>(
        &self,
        variable: &'static str,
    ) -> Result<Option<T>, DecodeError> {
        let parse = |text: &str| text.parse().map_err(|_| wrong(variable, text));
        self.text(variable).map(parse).transpose()
    }

    /// The place, among those asked for, of the key of this row.
    fn place(
        &self,
        family: Family,
        places: &FxHashMap<Key, usize>,
    ) -> Result<(Key, usize), DecodeError> {
        let term = self.text("key").unwrap_or_default();
        let key = key_of(family, term).ok_or_else(|| wrong("key", term))?;
        let place = places.get(&key).ok_or_else(|| wrong("key", term))?;
        Ok((key, *place))
    }
}

fn wrong(variable: &'static str, term: &str) -> DecodeError {
    let term = term.to_owned();
    DecodeError::Term { variable, term }
}

fn rows(json: &Json) -> Result<impl Iterator<Item = Row<'_>>, DecodeError> {
    let bindings = json.pointer("/results/bindings").and_then(Json::as_array);
    Ok(bindings.ok_or(DecodeError::Shape)?.iter().map(Row))
}

fn places(keys: &[Key]) -> FxHashMap<Key, usize> {
    keys.iter().copied().zip(0..).collect()
}

/// Reads the answer to [`super::read_lists`] of these keys, in SPARQL 1.1 Query Results JSON. Costs its size, and sorting
/// each list.
///
/// # Errors
/// [`DecodeError`] for what is no such answer; an answer that no state of the data gives has
/// [`Contradiction`]s instead.
pub fn decode_lists(keys: &[Key], json: &str) -> Result<ListAnswer, DecodeError> {
    let json: Json = serde_json::from_str(json)?;
    let places = places(keys);
    let mut answer = ListAnswer::default();
    let mut lists: Vec<Vec<(u64, Value)>> = vec![Vec::new(); keys.len()];
    for row in rows(&json)? {
        let (key, place) = row.place(Family::List, &places)?;
        let value = row.number("value")?.map(Value);
        let at = row.number("at")?;
        if let (Some(value), Some(at)) = (value, at) {
            lists[place].push((at, value));
            answer.sightings.extend(sighting(value, row.text("saw"))?);
            continue;
        }
        answer.contradictions.push(Contradiction::PartialItem {
            key,
            item: row.text("item").unwrap_or_default().to_owned(),
            missing: if at.is_none() { "position" } else { "value" },
        });
    }
    for (key, mut list) in keys.iter().zip(lists) {
        list.sort_unstable();
        answer.contradictions.extend(first_disorder(*key, &list));
        let values = list.into_iter().map(|(_, value)| value);
        answer.lists.push(values.collect());
    }
    Ok(answer)
}

/// The first position that has not one value. What follows it is wrong for the same reason.
fn first_disorder(key: Key, list: &[(u64, Value)]) -> Option<Contradiction> {
    let (place, (at, value)) = list
        .iter()
        .enumerate()
        .find(|(place, (at, _))| *at != *place as u64)?;
    let position = place as u64;
    if *at > position {
        return Some(Contradiction::Gap { key, position });
    }
    let values = [list[place - 1].1, *value];
    Some(Contradiction::TwoValues {
        key,
        position: *at,
        values,
    })
}

/// Reads the answer to [`super::read_numbers`] of these keys, in SPARQL 1.1 Query Results JSON. Costs its size.
///
/// # Errors
/// [`DecodeError`] for what is no such answer.
pub fn decode_numbers(
    family: Family,
    keys: &[Key],
    json: &str,
) -> Result<NumberAnswer, DecodeError> {
    let json: Json = serde_json::from_str(json)?;
    let places = places(keys);
    let mut answer = NumberAnswer {
        numbers: vec![None; keys.len()],
        ..NumberAnswer::default()
    };
    for row in rows(&json)? {
        let (key, place) = row.place(family, &places)?;
        let Some(number) = row.number("value")? else {
            return Err(wrong("value", ""));
        };
        if let Some(other) = answer.numbers[place].replace(number) {
            let numbers = [other, number];
            let two = Contradiction::TwoNumbers { key, numbers };
            answer.contradictions.push(two);
        }
        if let Ok(value) = u64::try_from(number) {
            let sighting = sighting(Value(value), row.text("saw"))?;
            answer.sightings.extend(sighting);
        }
    }
    Ok(answer)
}

/// What an update noted of what it read: `3=12 6=-` is 12 of key 3 and nothing of key 6.
fn sighting(value: Value, saw: Option<&str>) -> Result<Option<Sighting>, DecodeError> {
    let Some(saw) = saw else { return Ok(None) };
    let one = |part: &str| {
        let (key, seen) = part.split_once('=')?;
        let seen = match seen {
            "-" => None,
            number => Some(number.parse().ok()?),
        };
        Some((Key(key.parse().ok()?), seen))
    };
    let seen: Option<Vec<_>> = saw.split(' ').map(one).collect();
    let seen = seen.ok_or_else(|| wrong("saw", saw))?;
    Ok(Some(Sighting { value, seen }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of rows of list 3: position and value, where there are.
    fn answer(rows: &[(Option<u64>, Option<u64>)]) -> ListAnswer {
        let term = |name: &str, number: &u64| {
            format!(r#","{name}":{{"type":"literal","value":"{number}"}}"#)
        };
        let row = |(at, value): &(Option<u64>, Option<u64>)| {
            format!(
                r#"{{"key":{{"type":"uri","value":"https://history.example/list/3"}}{}{}}}"#,
                at.iter().map(|at| term("at", at)).collect::<String>(),
                value.iter().map(|v| term("value", v)).collect::<String>(),
            )
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        let json = format!(r#"{{"results":{{"bindings":[{}]}}}}"#, rows.join(","));
        decode_lists(&[Key(3)], &json).unwrap()
    }

    #[test]
    fn a_list_is_ordered_by_position() {
        let two = answer(&[(Some(1), Some(8)), (Some(0), Some(9))]);
        assert_eq!(two.lists, [[Value(9), Value(8)]]);
        assert_eq!(two.contradictions, []);
    }

    #[test]
    fn what_no_state_shows_is_named() {
        let key = Key(3);
        let first = |rows: &[_]| answer(rows).contradictions.remove(0);
        let values = [Value(8), Value(9)];
        assert_eq!(
            first(&[(Some(0), Some(9)), (Some(0), Some(8))]),
            Contradiction::TwoValues {
                key,
                position: 0,
                values
            }
        );
        assert_eq!(
            first(&[(Some(0), Some(7)), (Some(2), Some(8))]),
            Contradiction::Gap { key, position: 1 }
        );
        for (row, missing) in [((None, Some(7)), "position"), ((Some(0), None), "value")] {
            let item = String::new();
            let partial = Contradiction::PartialItem { key, item, missing };
            assert_eq!(first(&[row]), partial);
        }
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        for (text, shape) in [("{\"results\":{\"bind", false), ("{}", true)] {
            let error = decode_lists(&[Key(3)], text).unwrap_err();
            assert_eq!(matches!(error, DecodeError::Shape), shape, "{error}");
        }
    }
}
