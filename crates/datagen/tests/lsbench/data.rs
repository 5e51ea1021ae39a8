//! A data set in memory, from lines, so that given and generated data are read alike.

use std::collections::{HashMap, HashSet};

use jindou_datagen::lsbench::{Load, Lsbench, Stream};

/// A statement, its terms as they are written. Stored ones have no time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) time_ms: u64,
    pub(crate) subject: String,
    /// The local name.
    pub(crate) predicate: String,
    pub(crate) object: String,
}

impl Row {
    pub(crate) fn parse(line: &str) -> Self {
        let (time, statement) = line.split_once('\t').unwrap_or(("0", line));
        let statement = statement.strip_suffix(" .").expect("a statement ends");
        let mut terms = statement.splitn(3, ' ');
        let mut term = || terms.next().expect("three terms").to_owned();
        let (subject, predicate, object) = (term(), term(), term());
        let local = predicate.rfind(['/', '#']).expect("an IRI") + 1;
        Self {
            time_ms: time.parse().expect("a time"),
            subject,
            predicate: predicate[local..predicate.len() - 1].to_owned(),
            object,
        }
    }
}

pub(crate) struct Data {
    pub(crate) stored: Vec<Row>,
    /// In the order of [`Stream::ALL`].
    pub(crate) streams: [Vec<Row>; 5],
}

impl Data {
    pub(crate) fn generate(data: Lsbench, load: &Load) -> Self {
        let mut stored = Vec::new();
        data.write_stored(&mut stored).expect("writing to memory");
        let stored = String::from_utf8(stored).expect("N-Triples are UTF-8");
        let mut streams: [Vec<Row>; 5] = Default::default();
        let mut events = data.streams(load, &Stream::ALL).expect("a load");
        let mut text = String::new();
        while let Some(event) = events.next_event() {
            text.clear();
            event.push_lines(&mut text);
            streams[event.stream as usize].extend(text.lines().map(Row::parse));
        }
        Self {
            stored: stored.lines().map(Row::parse).collect(),
            streams,
        }
    }

    pub(crate) fn stream(&self, stream: Stream) -> &[Row] {
        &self.streams[stream as usize]
    }
}

/// Rows of a window, `[from, to)`.
pub(crate) fn window(rows: &[Row], from_ms: u64, to_ms: u64) -> &[Row] {
    let from = rows.partition_point(|row| row.time_ms < from_ms);
    let to = rows.partition_point(|row| row.time_ms < to_ms);
    &rows[from..to]
}

/// Subject and object of the rows of a predicate.
pub(crate) fn pairs<'a>(
    rows: &'a [Row],
    predicate: &'static str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    rows.iter()
        .filter(move |row| row.predicate == predicate)
        .map(|row| (row.subject.as_str(), row.object.as_str()))
}

/// What the queries ask of the stored graph.
pub(crate) struct Stored<'a> {
    pub(crate) users_of: HashMap<&'a str, Vec<&'a str>>,
    pub(crate) friends: HashMap<&'a str, HashSet<&'a str>>,
    pub(crate) subscribers: HashMap<&'a str, Vec<&'a str>>,
}

impl<'a> Stored<'a> {
    pub(crate) fn new(rows: &'a [Row]) -> Self {
        let mut users_of: HashMap<_, Vec<_>> = HashMap::new();
        for (user, person) in pairs(rows, "account_of") {
            users_of.entry(person).or_default().push(user);
        }
        let mut friends: HashMap<_, HashSet<_>> = HashMap::new();
        for (user, friend) in pairs(rows, "knows") {
            friends.entry(user).or_default().insert(friend);
        }
        let mut subscribers: HashMap<_, Vec<_>> = HashMap::new();
        for (user, channel) in pairs(rows, "subscriber_of") {
            subscribers.entry(channel).or_default().push(user);
        }
        Self {
            users_of,
            friends,
            subscribers,
        }
    }

    pub(crate) fn knows(&self, user: &str, friend: &str) -> bool {
        self.friends
            .get(user)
            .is_some_and(|friends| friends.contains(friend))
    }
}
