//! Bytes -> a request or an answer. They may come from anywhere: nothing that they say is taken for
//! granted, and nothing is held but what is made of bytes that are there.

use std::borrow::Cow;

use jindou_model::{
    Cursor, Direction, IdRanges, Membership, Pattern, Precision, PredicateId, ShardId, TermId,
    TermKind, Unavailable,
};

use super::super::words::{
    Answer, AskedGraph, AskedList, AskedPattern, Call, Column, MOST_IDS, MOST_KEY_BYTES,
    MOST_LISTS, MOST_QUADS, MOST_RANGES, MOST_RANGES_ASKED, MOST_ROWS, MOST_SHARDS, Page,
    PageAsked, Place, Refusal, Request, RequestNumber, ServedId, Strings,
};
use super::{ANSWER, CallError, NO_RANGES, REQUEST, VERSION, answer, call, graph, kind};

/// The number of a request, if these are the first bytes of one of whatever version.
///
/// # Errors
/// [`CallError`].
pub(in super::super) fn number_of_request(bytes: &[u8]) -> Result<RequestNumber, CallError> {
    Rest::new(bytes).number(REQUEST, "request")
}

/// The number of the request that these bytes answer.
///
/// # Errors
/// [`CallError`].
pub(in super::super) fn number_of_answer(bytes: &[u8]) -> Result<RequestNumber, CallError> {
    Rest::new(bytes).number(ANSWER, "answer")
}

impl Request<'static> {
    /// The request that [`Request::encode`] made these bytes of.
    ///
    /// # Errors
    /// [`CallError`].
    pub(in super::super) fn decode(bytes: &[u8]) -> Result<Self, CallError> {
        let mut rest = Rest::new(bytes);
        let (number, kind) = rest.header(REQUEST, "request")?;
        let served = ServedId(rest.u64("the snapshot")?);
        let shards = rest.at_most("shards", MOST_SHARDS)?;
        let shards = (0..shards).map(|_| Ok(ShardId(rest.u32("the shards")?)));
        let shards = Cow::Owned(shards.collect::<Result<_, _>>()?);
        let rows = rest.at_most("rows", MOST_ROWS)?;
        let request = Self {
            number,
            served,
            shards,
            call: rest.call(kind, rows)?,
        };
        rest.end()?;
        Ok(request)
    }
}

impl Answer {
    /// The answer that [`Answer::encode`] made these bytes of.
    ///
    /// # Errors
    /// [`CallError`].
    pub(in super::super) fn decode(bytes: &[u8]) -> Result<Self, CallError> {
        let mut rest = Rest::new(bytes);
        let (_, kind) = rest.header(ANSWER, "answer")?;
        let answer = rest.answer(kind)?;
        rest.end()?;
        Ok(answer)
    }
}

/// What was not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    /// Bytes that there are in all.
    end: usize,
}

impl<'a> Rest<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let end = bytes.len();
        Self { bytes, end }
    }

    /// The place of what is read next.
    fn at(&self) -> usize {
        self.end - self.bytes.len()
    }

    /// So many bytes; `None` stands for more than there can be.
    fn take(&mut self, part: &'static str, count: Option<usize>) -> Result<&'a [u8], CallError> {
        let split = count.and_then(|count| self.bytes.split_at_checked(count));
        let (at, end) = (self.at(), self.end);
        let (taken, rest) = split.ok_or(CallError::Truncated { part, at, end })?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, part: &'static str) -> Result<[u8; N], CallError> {
        let taken = self.take(part, Some(N))?;
        Ok(taken.try_into().expect("as many bytes were taken"))
    }

    fn u32(&mut self, part: &'static str) -> Result<u32, CallError> {
        Ok(u32::from_le_bytes(self.array(part)?))
    }

    fn u64(&mut self, part: &'static str) -> Result<u64, CallError> {
        Ok(u64::from_le_bytes(self.array(part)?))
    }

    fn usize(&mut self, part: &'static str) -> Result<usize, CallError> {
        let (at, found) = (self.at(), self.u64(part)?);
        usize::try_from(found).map_err(|_| CallError::Unknown { part, at, found })
    }

    /// A count of something.
    fn at_most(&mut self, part: &'static str, most: usize) -> Result<usize, CallError> {
        let at = self.at();
        let found = self.u32(part)?;
        if found as usize > most {
            let (found, most) = (u64::from(found), most as u64);
            return Err(CallError::TooMany {
                part,
                at,
                found,
                most,
            });
        }
        Ok(found as usize)
    }

    /// One of a few numbers that stand for something.
    fn one_of<T>(
        &mut self,
        part: &'static str,
        known: impl FnOnce(u32) -> Option<T>,
    ) -> Result<T, CallError> {
        let at = self.at();
        let found = self.u32(part)?;
        let unknown = CallError::Unknown {
            part,
            at,
            found: found.into(),
        };
        known(found).ok_or(unknown)
    }

    fn bool(&mut self, part: &'static str) -> Result<bool, CallError> {
        self.one_of(part, |number| match number {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        })
    }

    fn number(
        &mut self,
        magic: [u8; 4],
        expected: &'static str,
    ) -> Result<RequestNumber, CallError> {
        let found = self.array("the header")?;
        if found != magic {
            return Err(CallError::NoMessage { expected, found });
        }
        self.take("the header", Some(size_of::<u32>()))?;
        Ok(RequestNumber(self.u64("the header")?))
    }

    /// Number and kind of a message of the known version.
    fn header(
        &mut self,
        magic: [u8; 4],
        expected: &'static str,
    ) -> Result<(RequestNumber, u32), CallError> {
        let version = self.bytes.get(magic.len()..magic.len() + size_of::<u32>());
        let number = self.number(magic, expected)?;
        let version = version.expect("it is there: what follows it was read");
        let found = u32::from_le_bytes(version.try_into().expect("four bytes were taken"));
        if found != VERSION {
            let known = VERSION;
            return Err(CallError::Version { found, known });
        }
        Ok((number, self.u32("the header")?))
    }

    fn end(&self) -> Result<(), CallError> {
        match self.bytes.len() {
            0 => Ok(()),
            bytes => Err(CallError::TooLong { bytes }),
        }
    }

    fn checked_id(&self, part: &'static str, at: usize, raw: u64) -> Result<TermId, CallError> {
        let id = TermId::from_raw(raw);
        // Ids of reserved kinds, too, are of none.
        match id.kind() == TermKind::None && !id.is_none() {
            true => Err(CallError::Id { part, at, id: raw }),
            false => Ok(id),
        }
    }

    fn id(&mut self, part: &'static str) -> Result<TermId, CallError> {
        let at = self.at();
        let raw = self.u64(part)?;
        self.checked_id(part, at, raw)
    }

    fn ids(&mut self, part: &'static str, count: usize) -> Result<Vec<TermId>, CallError> {
        let begin = self.at();
        let bytes = self.take(part, count.checked_mul(size_of::<u64>()))?;
        let (words, _) = bytes.as_chunks();
        // Its room is made at once, as all of its bytes are there.
        let mut ids = Vec::with_capacity(count);
        for (place, word) in words.iter().enumerate() {
            let at = begin + place * size_of::<u64>();
            ids.push(self.checked_id(part, at, u64::from_le_bytes(*word))?);
        }
        Ok(ids)
    }

    fn numbers(&mut self, part: &'static str, count: usize) -> Result<Vec<u64>, CallError> {
        let bytes = self.take(part, count.checked_mul(size_of::<u64>()))?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
    }

    fn rows(&mut self, count: usize) -> Result<Vec<u32>, CallError> {
        let bytes = self.take("the rows", count.checked_mul(size_of::<u32>()))?;
        let (words, _) = bytes.as_chunks();
        Ok(words.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    fn predicate(&mut self) -> Result<PredicateId, CallError> {
        Ok(PredicateId(self.u32("a predicate")?))
    }

    fn direction(&mut self) -> Result<Direction, CallError> {
        self.one_of("direction", |number| match number {
            0 => Some(Direction::Out),
            1 => Some(Direction::In),
            _ => None,
        })
    }

    fn membership(&mut self) -> Result<Membership, CallError> {
        let part = "kind of what is known of a vertex";
        match self.one_of(part, |n| (n <= kind::HAS).then_some(n))? {
            kind::TYPE => Ok(Membership::Type(self.id("the types")?)),
            _ => Ok(Membership::Has(self.predicate()?, self.direction()?)),
        }
    }

    fn precision(&mut self) -> Result<Precision, CallError> {
        let known = |number| (number <= kind::FILTER_OF).then_some(number);
        Ok(match self.one_of("precision", known)? {
            kind::EXACT => Precision::Exact,
            kind::FILTER => Precision::Filter,
            _ => Precision::FilterOf(self.membership()?),
        })
    }

    fn graph(&mut self, rows: Option<usize>) -> Result<AskedGraph<'static>, CallError> {
        // A call without rows has no graph of each.
        let most = rows.map_or(graph::UNION, |_| graph::EACH);
        let part = "kind of graph";
        Ok(match self.one_of(part, |n| (n <= most).then_some(n))? {
            graph::DEFAULT => AskedGraph::Default,
            graph::ONE => AskedGraph::One(self.id("the graphs")?),
            graph::SOME => {
                let count = self.at_most("graphs", u32::MAX as usize)?;
                AskedGraph::Some(Cow::Owned(self.ids("the graphs", count)?))
            }
            graph::NAMED => AskedGraph::Named,
            graph::UNION => AskedGraph::Union,
            _ => AskedGraph::Each(Cow::Owned(
                self.ids("the graphs", rows.unwrap_or_default())?,
            )),
        })
    }

    fn list(&mut self, rows: usize) -> Result<AskedList<'static>, CallError> {
        Ok(AskedList {
            predicate: self.predicate()?,
            direction: self.direction()?,
            keys: Cow::Owned(self.ids("the keys", rows)?),
        })
    }

    fn ranges(&mut self, most: usize) -> Result<Option<IdRanges>, CallError> {
        if self.bytes.starts_with(&NO_RANGES.to_le_bytes()) {
            self.take("the ranges", Some(size_of::<u32>()))?;
            return Ok(None);
        }
        let count = self.at_most("ranges", most)?;
        let begin = self.at();
        let bytes = self.take("the ranges", count.checked_mul(2 * size_of::<u64>()))?;
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<u64> = words.collect();
        let mut ranges = IdRanges::new();
        let mut before = None;
        for (place, range) in words.chunks_exact(2).enumerate() {
            let (first, end) = (range[0], range[1]);
            if first >= end || before.is_some_and(|before| first <= before) {
                let at = begin + place * 2 * size_of::<u64>();
                return Err(CallError::Range { at, first, end });
            }
            ranges.push(TermId::from_raw(first), TermId::from_raw(end));
            before = Some(end);
        }
        Ok(Some(ranges))
    }

    fn pattern(&mut self, predicates: usize) -> Result<AskedPattern<'static>, CallError> {
        let mut ends = [None; 2];
        for end in &mut ends {
            if self.bool("whether an end is known")? {
                *end = Some(self.id("the pattern")?);
            }
        }
        let predicate = match self.bool("whether the predicate is known")? {
            true => Some(self.predicate()?),
            false => None,
        };
        let [subject, object] = ends;
        let pattern = Pattern {
            subject,
            predicate,
            object,
        };
        let predicates = (0..predicates).map(|_| self.predicate());
        Ok(AskedPattern {
            pattern,
            predicates: predicates.collect::<Result<_, _>>()?,
        })
    }

    fn place(&mut self, most_kind: u32) -> Result<Option<(u32, Place)>, CallError> {
        let part = "kind of place";
        let kind = self.one_of(part, |n| (n <= most_kind).then_some(n))?;
        if kind == kind::END {
            return Ok(None);
        }
        let turn = self.u32("the place")?;
        let place = match kind {
            kind::START => Place::Start,
            kind::AFTER => Place::After(self.u64("the place")?),
            _ => Place::At(self.id("the place")?, self.usize("the place")?),
        };
        Ok(Some((turn, place)))
    }

    fn page_asked(&mut self) -> Result<PageAsked, CallError> {
        let place = self.place(kind::AT)?;
        let (turn, from) = place.expect("the end is no place to go on from");
        Ok(PageAsked {
            turn,
            from,
            most: self.at_most("quads", MOST_QUADS)?,
        })
    }

    fn call(&mut self, kind: u32, rows: usize) -> Result<Call<'static>, CallError> {
        if !(call::MEMBERS..=call::CANDIDATES).contains(&kind) {
            return Err(self.unknown_kind("call", kind));
        }
        let has_rows = matches!(kind, call::EXPAND..);
        let fitting = match kind {
            call::PLACES => rows == 1,
            _ => has_rows || rows == 0,
        };
        if !fitting {
            let part = "calls of this kind";
            return Err(CallError::Rows { part, rows });
        }
        match kind {
            call::MEMBERS => self.members(),
            call::EXPAND => self.expand(rows),
            call::PLACES => Ok(Call::Places {
                graph: self.graph(Some(rows))?,
                list: self.list(rows)?,
            }),
            call::CONTAINS => Ok(Call::Contains {
                graph: self.graph(Some(rows))?,
                list: self.list(rows)?,
                to: Cow::Owned(self.ids("the other ends", rows)?),
            }),
            call::DEGREES => Ok(Call::Degrees {
                graph: self.graph(Some(rows))?,
                list: self.list(rows)?,
                allowed: self.ranges(MOST_RANGES_ASKED)?,
            }),
            call::GRAPHS_OF => Ok(Call::GraphsOf {
                list: self.list(rows)?,
                to: Cow::Owned(self.ids("the other ends", rows)?),
            }),
            call::MATCHES => Ok(Call::Matches {
                pattern: self.pattern(rows)?,
                graph: self.graph(None)?,
                page: self.page_asked()?,
            }),
            call::QUADS => Ok(Call::Quads {
                pattern: self.pattern(rows)?,
                page: self.page_asked()?,
            }),
            call::KEYS => Ok(Call::Keys {
                ids: Cow::Owned(self.ids("the ids", rows)?),
                from_byte: self.u64("the first byte")?,
                most_bytes: self.at_most("bytes of keys", MOST_KEY_BYTES)?,
            }),
            _ => {
                let mut are_literals = Vec::with_capacity(rows);
                let at = self.at();
                for (place, kind) in self.take("kinds of keys", Some(rows))?.iter().enumerate() {
                    are_literals.push(match kind {
                        0 => false,
                        1 => true,
                        _ => {
                            return Err(CallError::Unknown {
                                part: "kind of key",
                                at: at + place,
                                found: (*kind).into(),
                            });
                        }
                    });
                }
                let hashes = self.numbers("the hashes", rows)?;
                Ok(Call::Candidates {
                    hashes,
                    are_literals,
                })
            }
        }
    }

    /// That the kind of the message, which was read last of its first bytes, is none.
    fn unknown_kind(&self, part: &'static str, kind: u32) -> CallError {
        CallError::Unknown {
            part,
            at: super::NUMBER.end,
            found: kind.into(),
        }
    }

    fn members(&mut self) -> Result<Call<'static>, CallError> {
        let graph = self.graph(None)?;
        let count = self.at_most("traits", MOST_ROWS)?;
        let mut memberships = Vec::new();
        for _ in 0..count {
            memberships.push(self.membership()?);
        }
        Ok(Call::Members {
            graph,
            memberships: Cow::Owned(memberships),
            precision: self.precision()?,
            within: self.ranges(MOST_RANGES_ASKED)?,
            from_range: self.u64("the first range")?,
        })
    }

    fn expand(&mut self, rows: usize) -> Result<Call<'static>, CallError> {
        let graph = self.graph(Some(rows))?;
        let count = self.at_most("lists", MOST_LISTS)?;
        if count == 0 && rows > 0 {
            let part = "no lists";
            return Err(CallError::Rows { part, rows });
        }
        let mut lists = Vec::new();
        for _ in 0..count {
            lists.push(self.list(rows)?);
        }
        Ok(Call::Expand {
            graph,
            lists,
            offset: self.usize("the offset")?,
            allowed: self.ranges(MOST_RANGES_ASKED)?,
            budget: self.at_most("ids", MOST_IDS)?,
        })
    }

    fn rows_and_ids(&mut self) -> Result<(Vec<u32>, Vec<TermId>), CallError> {
        let count = self.at_most("ids", u32::MAX as usize)?;
        Ok((self.rows(count)?, self.ids("the ids", count)?))
    }

    fn answer(&mut self, kind: u32) -> Result<Answer, CallError> {
        Ok(match kind {
            answer::MEMBERS => Answer::Members {
                is_cut: self.bool("whether ranges follow")?,
                ids: self.ranges(MOST_RANGES)?,
            },
            answer::EXPANDED => {
                let cursor = Cursor {
                    key: self.usize("the cursor")?,
                    offset: self.usize("the cursor")?,
                };
                let (rows, ids) = self.rows_and_ids()?;
                Answer::Expanded { rows, ids, cursor }
            }
            answer::PLACES => Answer::Places(self.u64("the places")?),
            answer::CONTAINED => {
                let count = self.at_most("rows", MOST_ROWS)?;
                Answer::Contained(self.rows(count)?)
            }
            answer::DEGREES => {
                let count = self.at_most("rows", MOST_ROWS)?;
                Answer::Degrees(self.numbers("the degrees", count)?)
            }
            answer::GRAPHS_OF => {
                let done = self.at_most("rows", MOST_ROWS)?;
                let (rows, graphs) = self.rows_and_ids()?;
                Answer::GraphsOf { rows, graphs, done }
            }
            answer::PAGE => Answer::Page(self.page()?),
            answer::KEYS => {
                let rest = self.u64("the rest of the last key")?;
                let count = self.at_most("rows", MOST_ROWS)?;
                let keys = self.strings(count)?;
                Answer::Keys { keys, rest }
            }
            answer::CANDIDATES => {
                let done = self.at_most("rows", MOST_ROWS)?;
                let (rows, ids) = self.rows_and_ids()?;
                Answer::Candidates { rows, ids, done }
            }
            answer::NOT_NOW => Answer::Unavailable(Unavailable::NotNow),
            answer::GONE => Answer::Unavailable(Unavailable::Gone),
            answer::NEVER => {
                Answer::Unavailable(Unavailable::Never(ShardId(self.u32("the shard")?)))
            }
            answer::REFUSED => Answer::Refused(self.one_of("reason", |number| match number {
                1 => Some(Refusal::Malformed),
                2 => Some(Refusal::NotServed),
                3 => Some(Refusal::Broken),
                _ => None,
            })?),
            _ => return Err(self.unknown_kind("answer", kind)),
        })
    }

    fn strings(&mut self, count: usize) -> Result<Strings, CallError> {
        let lengths = self.rows(count)?;
        let mut strings = Strings::default();
        for length in lengths {
            strings.push(self.take("the keys", Some(length as usize))?);
        }
        Ok(strings)
    }

    fn page(&mut self) -> Result<Page, CallError> {
        let count = self.at_most("quads", u32::MAX as usize)?;
        let page = Page {
            count,
            next: self.place(kind::END)?,
            subjects: self.id_column("the subjects", count)?,
            predicates: match self.is_each()? {
                false => Column::Same(self.predicate()?),
                true => {
                    let rows = self.rows(count)?;
                    Column::Each(rows.into_iter().map(PredicateId).collect())
                }
            },
            objects: self.id_column("the objects", count)?,
            graphs: self.id_column("the graphs", count)?,
        };
        // No quad is there twice, so that no more quads are visited than there are bytes.
        let is_one = matches!(
            (
                &page.subjects,
                &page.predicates,
                &page.objects,
                &page.graphs
            ),
            (
                Column::Same(_),
                Column::Same(_),
                Column::Same(_),
                Column::Same(_)
            )
        );
        if is_one && count > 1 {
            let (part, rows) = ("equal quads", count);
            return Err(CallError::Rows { part, rows });
        }
        Ok(page)
    }

    fn is_each(&mut self) -> Result<bool, CallError> {
        let known = |number| (number <= kind::EACH).then_some(number == kind::EACH);
        self.one_of("kind of column", known)
    }

    fn id_column(&mut self, part: &'static str, count: usize) -> Result<Column<TermId>, CallError> {
        Ok(match self.is_each()? {
            false => Column::Same(self.id(part)?),
            true => Column::Each(self.ids(part, count)?),
        })
    }
}
