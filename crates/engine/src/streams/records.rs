//! What the log of streams says, as bytes.
//!
//! Streams and queries have numbers there, which no other of the same store ever had: so a record that
//! comes after its stream was dropped is about no other one of the same name. The bytes are checked by
//! the log; reading them never panics all the same, whatever they are.

use std::borrow::Cow;

use jindou_stream::{Position, SinkDefinition, StreamDefinition};

use super::answer::Answer;
use super::bytes::{BadRecord, Input, put_bytes, put_number, put_option, put_signed};
use super::result_log::HeldTuples;
use super::sinks::Delivered;
use super::tuples::Tuples;

/// One thing that was done, or in a state, one that is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Record<'a> {
    CreateStream {
        stream: u64,
        name: &'a str,
        definition: Cow<'a, StreamDefinition>,
    },
    DropStream {
        stream: u64,
    },
    /// The stream that it makes, if it makes one, has the same number.
    Register {
        query: u64,
        name: &'a str,
        text: &'a str,
        is_paused: bool,
    },
    Unregister {
        query: u64,
    },
    Pause {
        query: u64,
        is_paused: bool,
        last_ms: Option<i64>,
    },
    Begin {
        query: u64,
        last_ms: Option<i64>,
        begins: Cow<'a, [i64]>,
    },
    Push(Push<'a>),
    Heartbeat {
        stream: u64,
        time_ms: i64,
    },
    /// The next transaction, of this snapshot, stores facts: they are in the graph if it is.
    Intent {
        stream: u64,
        facts: Facts,
        snapshot: u64,
    },
    Result(ResultRecord<'a>),
    CreateSink {
        query: u64,
        sink: u64,
        name: &'a str,
        definition: Cow<'a, SinkDefinition>,
        delivered: Delivered,
    },
    DropSink {
        query: u64,
        sink: u64,
    },
    Delivered {
        query: u64,
        sink: u64,
        delivered: Delivered,
    },
    /// All that the source of a stream has noted, in the place of what it noted before.
    Notes {
        stream: u64,
        notes: Cow<'a, [u8]>,
    },
    /// What a transaction said where this is a copy of a store: records, each behind its length.
    Said {
        snapshot: u64,
        records: Cow<'a, [u8]>,
    },
    // Of a state only.
    StreamState {
        stream: u64,
        position: Position,
        /// Tuples, absorbed, unread, batches.
        counts: [u64; 4],
    },
    Producer {
        stream: u64,
        producer: &'a str,
        sequence: u64,
    },
    Tuples {
        stream: u64,
        kind: TuplesKind,
        tuples: Cow<'a, Tuples>,
    },
    QueryState {
        query: u64,
        last_ms: Option<i64>,
        sequence: u64,
        empty: u32,
        before: Option<Cow<'a, Answer>>,
    },
}

/// Tuples that came together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Push<'a> {
    pub(super) stream: u64,
    /// Whose it is, and the numbers that they gave it.
    pub(super) producers: Vec<(&'a str, u64)>,
    /// Batches before this one had been taken.
    pub(super) first_open: Option<i64>,
    /// What those that came late are called.
    pub(super) late: u64,
    /// What their source notes with them.
    pub(super) notes: &'a [u8],
    pub(super) tuples: Cow<'a, Tuples>,
}

/// Which facts a transaction stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Facts {
    /// Those of the batch that begins at a time.
    Batch(i64),
    /// Those of all batches from one that begins at a time to another one.
    Batches(i64, i64),
    /// Those that came late in a push, by what it calls them.
    Late(u64),
}

/// What tuples of a state are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuplesKind {
    /// They wait for their batch to be complete.
    Open,
    /// Windows have them, and the graph their facts.
    Absorbed,
    /// They came late, and their facts are not in the graph yet.
    Late(u64),
}

/// What was found at an instant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ResultRecord<'a> {
    pub(super) query: u64,
    pub(super) instant_ms: i64,
    pub(super) sequence: u64,
    /// Of each window by its number.
    pub(super) windows: Cow<'a, [HeldTuples]>,
    pub(super) snapshot: u64,
    pub(super) empty: u32,
    /// All that was found then, of which ISTREAM and DSTREAM give a part; in a state, what was given.
    pub(super) is_given: bool,
    pub(super) answer: Result<Cow<'a, Answer>, Cow<'a, str>>,
}

const CREATE_STREAM: u8 = 1;
const DROP_STREAM: u8 = 2;
const REGISTER: u8 = 3;
const UNREGISTER: u8 = 4;
const PAUSE: u8 = 5;
const BEGIN: u8 = 6;
const PUSH: u8 = 7;
const HEARTBEAT: u8 = 8;
const INTENT: u8 = 9;
const RESULT: u8 = 10;
const STREAM_STATE: u8 = 11;
const PRODUCER: u8 = 12;
const TUPLES: u8 = 13;
const QUERY_STATE: u8 = 14;
const CREATE_SINK: u8 = 15;
const DROP_SINK: u8 = 16;
const DELIVERED: u8 = 17;
/// A push with notes of its source; one without has none of their bytes.
const NOTED_PUSH: u8 = 18;
const NOTES: u8 = 19;
pub(super) const SAID: u8 = 20;

impl Record<'_> {
    /// Appends its bytes.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::CreateStream {
                stream,
                name,
                definition,
            } => {
                put_head(out, CREATE_STREAM, *stream);
                put_bytes(out, name.as_bytes());
                let text = serde_json::to_vec(definition).expect("a definition is plain data");
                put_bytes(out, &text);
            }
            Self::DropStream { stream } => put_head(out, DROP_STREAM, *stream),
            Self::Register {
                query,
                name,
                text,
                is_paused,
            } => {
                put_head(out, REGISTER, *query);
                put_bytes(out, name.as_bytes());
                put_bytes(out, text.as_bytes());
                out.push(u8::from(*is_paused));
            }
            Self::Unregister { query } => put_head(out, UNREGISTER, *query),
            Self::Pause {
                query,
                is_paused,
                last_ms,
            } => {
                put_head(out, PAUSE, *query);
                out.push(u8::from(*is_paused));
                put_option(out, *last_ms);
            }
            Self::Begin {
                query,
                last_ms,
                begins,
            } => {
                put_head(out, BEGIN, *query);
                put_option(out, *last_ms);
                put_number(out, begins.len() as u64);
                begins.iter().for_each(|begin| put_signed(out, *begin));
            }
            Self::Push(push) => push.encode(out),
            Self::Heartbeat { stream, time_ms } => {
                put_head(out, HEARTBEAT, *stream);
                put_signed(out, *time_ms);
            }
            Self::Intent {
                stream,
                facts,
                snapshot,
            } => {
                put_head(out, INTENT, *stream);
                match facts {
                    Facts::Batch(begin_ms) => {
                        out.push(0);
                        put_signed(out, *begin_ms);
                    }
                    Facts::Batches(first_ms, last_ms) => {
                        out.push(2);
                        put_signed(out, *first_ms);
                        put_signed(out, *last_ms);
                    }
                    Facts::Late(late) => {
                        out.push(1);
                        put_number(out, *late);
                    }
                }
                put_number(out, *snapshot);
            }
            Self::Result(result) => result.encode(out),
            Self::CreateSink {
                query,
                sink,
                name,
                definition,
                delivered,
            } => {
                put_head(out, CREATE_SINK, *query);
                put_number(out, *sink);
                put_bytes(out, name.as_bytes());
                let text = serde_json::to_vec(definition).expect("a definition is plain data");
                put_bytes(out, &text);
                put_delivered(out, *delivered);
            }
            Self::DropSink { query, sink } => {
                put_head(out, DROP_SINK, *query);
                put_number(out, *sink);
            }
            Self::Delivered {
                query,
                sink,
                delivered,
            } => {
                put_head(out, DELIVERED, *query);
                put_number(out, *sink);
                put_delivered(out, *delivered);
            }
            Self::Notes { stream, notes } => {
                put_head(out, NOTES, *stream);
                put_bytes(out, notes);
            }
            Self::Said { snapshot, records } => {
                put_head(out, SAID, *snapshot);
                put_bytes(out, records);
            }
            Self::StreamState { .. }
            | Self::Producer { .. }
            | Self::Tuples { .. }
            | Self::QueryState { .. } => self.encode_of_state(out),
        }
    }

    fn encode_of_state(&self, out: &mut Vec<u8>) {
        match self {
            Self::StreamState {
                stream,
                position,
                counts,
            } => {
                put_head(out, STREAM_STATE, *stream);
                put_option(out, position.watermark_ms);
                put_option(out, position.first_open);
                put_option(out, position.begin_ms);
                put_number(out, position.late);
                counts.iter().for_each(|count| put_number(out, *count));
            }
            Self::Producer {
                stream,
                producer,
                sequence,
            } => {
                put_head(out, PRODUCER, *stream);
                put_bytes(out, producer.as_bytes());
                put_number(out, *sequence);
            }
            Self::Tuples {
                stream,
                kind,
                tuples,
            } => {
                put_head(out, TUPLES, *stream);
                match kind {
                    TuplesKind::Open => out.push(0),
                    TuplesKind::Absorbed => out.push(1),
                    TuplesKind::Late(late) => {
                        out.push(2);
                        put_number(out, *late);
                    }
                }
                tuples.encode(out);
            }
            Self::QueryState {
                query,
                last_ms,
                sequence,
                empty,
                before,
            } => {
                put_head(out, QUERY_STATE, *query);
                put_option(out, *last_ms);
                put_number(out, *sequence);
                put_number(out, u64::from(*empty));
                out.push(u8::from(before.is_some()));
                if let Some(before) = before {
                    before.encode(out);
                }
            }
            other => unreachable!("{other:?} is not only of a state"),
        }
    }
}

fn put_delivered(out: &mut Vec<u8>, delivered: Delivered) {
    put_number(out, delivered.sequence);
    put_number(out, delivered.missed);
}

fn take_delivered(input: &mut Input<'_>) -> Result<Delivered, BadRecord> {
    Ok(Delivered {
        sequence: input.number()?,
        missed: input.number()?,
    })
}

fn put_head(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    put_number(out, number);
}

impl Push<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self.notes {
            [] => put_head(out, PUSH, self.stream),
            notes => {
                put_head(out, NOTED_PUSH, self.stream);
                put_bytes(out, notes);
            }
        }
        put_number(out, self.producers.len() as u64);
        for (producer, sequence) in &self.producers {
            put_bytes(out, producer.as_bytes());
            put_number(out, *sequence);
        }
        put_option(out, self.first_open);
        put_number(out, self.late);
        self.tuples.encode(out);
    }

    fn decode<'a>(
        stream: u64,
        notes: &'a [u8],
        input: &mut Input<'a>,
    ) -> Result<Push<'a>, BadRecord> {
        Ok(Push {
            stream,
            producers: {
                let count = input.count()?;
                let producers = (0..count).map(|_| Ok((input.text()?, input.number()?)));
                producers.collect::<Result<_, _>>()?
            },
            first_open: input.option()?,
            late: input.number()?,
            notes,
            tuples: Cow::Owned(Tuples::decode(input)?),
        })
    }
}

impl ResultRecord<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        put_head(out, RESULT, self.query);
        put_signed(out, self.instant_ms);
        put_number(out, self.sequence);
        put_number(out, self.windows.len() as u64);
        for held in &*self.windows {
            put_signed(out, held.from_ms);
            put_signed(out, held.until_ms);
        }
        put_number(out, self.snapshot);
        put_number(out, u64::from(self.empty));
        let has_numbers = self.windows.iter().any(|held| held.numbers.is_some());
        out.push(u8::from(self.is_given) | if has_numbers { HAS_NUMBERS } else { 0 });
        if has_numbers {
            self.put_numbers(out);
        }
        out.push(u8::from(self.answer.is_ok()));
        match &self.answer {
            Ok(answer) => answer.encode(out),
            Err(error) => put_bytes(out, error.as_bytes()),
        }
    }

    fn put_numbers(&self, out: &mut Vec<u8>) {
        for held in &*self.windows {
            out.push(u8::from(held.numbers.is_some()));
            if let Some((first, last)) = held.numbers {
                put_number(out, first);
                put_number(out, last);
            }
        }
    }

    fn decode<'a>(query: u64, input: &mut Input<'a>) -> Result<ResultRecord<'a>, BadRecord> {
        let (instant_ms, sequence) = (input.signed()?, input.number()?);
        let windows = input.count()?;
        let windows = (0..windows).map(|_| {
            Ok(HeldTuples {
                from_ms: input.signed()?,
                until_ms: input.signed()?,
                numbers: None,
            })
        });
        let mut windows: Vec<HeldTuples> = windows.collect::<Result<_, _>>()?;
        let (snapshot, empty) = (input.number()?, small(input.number()?)?);
        let flags = input.byte()?;
        if flags > 1 | HAS_NUMBERS {
            return Err(BadRecord("a result has flags that nobody knows"));
        }
        if flags & HAS_NUMBERS != 0 {
            take_numbers(input, &mut windows)?;
        }
        Ok(ResultRecord {
            query,
            instant_ms,
            sequence,
            windows: windows.into(),
            snapshot,
            empty,
            is_given: flags & 1 != 0,
            answer: match input.flag()? {
                true => Ok(Cow::Owned(Answer::decode(input)?)),
                false => Err(input.text()?.into()),
            },
        })
    }
}

fn take_numbers(input: &mut Input<'_>, windows: &mut [HeldTuples]) -> Result<(), BadRecord> {
    for held in windows {
        held.numbers = match input.flag()? {
            true => Some((input.number()?, input.number()?)),
            false => None,
        };
    }
    Ok(())
}

/// Set beside whether a result is what was given, where windows of it have numbers of tuples.
const HAS_NUMBERS: u8 = 2;

fn small(number: u64) -> Result<u32, BadRecord> {
    u32::try_from(number).map_err(|_| BadRecord("a number is too large"))
}

impl<'a> Record<'a> {
    /// Reads what [`Record::encode`] writes.
    ///
    /// # Errors
    /// [`BadRecord`] for anything else.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, BadRecord> {
        let mut input = Input(bytes);
        let kind = input.byte()?;
        let number = input.number()?;
        let record = match kind {
            STREAM_STATE..=QUERY_STATE => Self::decode_of_state(kind, number, &mut input)?,
            _ => Self::decode_done(kind, number, &mut input)?,
        };
        input.end()?;
        Ok(record)
    }

    fn decode_done(kind: u8, number: u64, input: &mut Input<'a>) -> Result<Self, BadRecord> {
        let (stream, query) = (number, number);
        Ok(match kind {
            CREATE_STREAM => Self::CreateStream {
                stream,
                name: input.text()?,
                definition: {
                    let definition = serde_json::from_slice(input.bytes()?);
                    let bad = |_| BadRecord("a definition of a stream makes no sense");
                    Cow::Owned(definition.map_err(bad)?)
                },
            },
            DROP_STREAM => Self::DropStream { stream },
            REGISTER => Self::Register {
                query,
                name: input.text()?,
                text: input.text()?,
                is_paused: input.flag()?,
            },
            UNREGISTER => Self::Unregister { query },
            PAUSE => Self::Pause {
                query,
                is_paused: input.flag()?,
                last_ms: input.option()?,
            },
            BEGIN => Self::Begin {
                query,
                last_ms: input.option()?,
                begins: {
                    let count = input.count()?;
                    let begins = (0..count).map(|_| input.signed());
                    Cow::Owned(begins.collect::<Result<_, _>>()?)
                },
            },
            PUSH => Self::Push(Push::decode(stream, &[], input)?),
            NOTED_PUSH => {
                let notes = input.bytes()?;
                Self::Push(Push::decode(stream, notes, input)?)
            }
            NOTES => Self::Notes {
                stream,
                notes: Cow::Borrowed(input.bytes()?),
            },
            SAID => Self::Said {
                snapshot: stream,
                records: Cow::Borrowed(input.bytes()?),
            },
            HEARTBEAT => Self::Heartbeat {
                stream,
                time_ms: input.signed()?,
            },
            INTENT => Self::Intent {
                stream,
                facts: match input.byte()? {
                    0 => Facts::Batch(input.signed()?),
                    1 => Facts::Late(input.number()?),
                    2 => Facts::Batches(input.signed()?, input.signed()?),
                    _ => return Err(BadRecord("facts are of no known kind")),
                },
                snapshot: input.number()?,
            },
            RESULT => Self::Result(ResultRecord::decode(query, input)?),
            CREATE_SINK => Self::CreateSink {
                query,
                sink: input.number()?,
                name: input.text()?,
                definition: {
                    let definition = serde_json::from_slice(input.bytes()?);
                    let bad = |_| BadRecord("a definition of a sink makes no sense");
                    Cow::Owned(definition.map_err(bad)?)
                },
                delivered: take_delivered(input)?,
            },
            DROP_SINK => Self::DropSink {
                query,
                sink: input.number()?,
            },
            DELIVERED => Self::Delivered {
                query,
                sink: input.number()?,
                delivered: take_delivered(input)?,
            },
            _ => return Err(BadRecord("its kind is not known")),
        })
    }

    fn decode_of_state(kind: u8, number: u64, input: &mut Input<'a>) -> Result<Self, BadRecord> {
        let (stream, query) = (number, number);
        Ok(match kind {
            STREAM_STATE => Self::StreamState {
                stream,
                position: Position {
                    watermark_ms: input.option()?,
                    first_open: input.option()?,
                    begin_ms: input.option()?,
                    late: input.number()?,
                },
                counts: {
                    let mut counts = [0; 4];
                    for count in &mut counts {
                        *count = input.number()?;
                    }
                    counts
                },
            },
            PRODUCER => Self::Producer {
                stream,
                producer: input.text()?,
                sequence: input.number()?,
            },
            TUPLES => Self::Tuples {
                stream,
                kind: match input.byte()? {
                    0 => TuplesKind::Open,
                    1 => TuplesKind::Absorbed,
                    2 => TuplesKind::Late(input.number()?),
                    _ => return Err(BadRecord("tuples are of no known kind")),
                },
                tuples: Cow::Owned(Tuples::decode(input)?),
            },
            QUERY_STATE => Self::QueryState {
                query,
                last_ms: input.option()?,
                sequence: input.number()?,
                empty: small(input.number()?)?,
                before: match input.flag()? {
                    true => Some(Cow::Owned(Answer::decode(input)?)),
                    false => None,
                },
            },
            _ => return Err(BadRecord("its kind is not known")),
        })
    }
}
