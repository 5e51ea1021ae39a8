//! What can be wrong with an event, beside its syntax?

/// Why an event of a stream is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The time of events is the value of a predicate, which this one does not have.
    #[error("no statement has the predicate <{predicate}>, which says the time of an event")]
    NoTime {
        /// Its IRI.
        predicate: String,
    },
    /// The predicate has more than one value.
    #[error("<{predicate}>, which says the time of an event, has more than one value")]
    Times {
        /// Its IRI.
        predicate: String,
    },
    /// The value is no time.
    #[error(
        "<{predicate}> says {value}, which is no time: a time is an xsd:dateTime, or an xsd:integer \
         or xsd:long of milliseconds since 1970"
    )]
    NoTimeValue {
        /// The IRI of the predicate.
        predicate: String,
        /// The value, as in N-Triples.
        value: String,
    },
    /// The time is too far ahead of the clock.
    #[error(
        "the time {time_ms} is {} ms ahead of the clock, which says {now_ms}, and the stream takes what is \
         up to {most_ms} ms ahead (max_ahead_ms)",
        time_ms.saturating_sub(*now_ms)
    )]
    Ahead {
        /// The time of the event.
        time_ms: i64,
        /// That of the clock.
        now_ms: i64,
        /// How far ahead it may be.
        most_ms: u64,
    },
    /// A line has no time, or nothing else.
    #[error("a line has a time in milliseconds, a tab, and a statement")]
    NoLine,
    /// A JSON value is no object.
    #[error("an event is a JSON object")]
    NoObject,
    /// The text is no JSON.
    #[error("no JSON: {reason}")]
    NoJson {
        /// Why not.
        reason: String,
    },
    /// Plain JSON came to a stream without a context.
    #[error(
        "plain JSON says nothing without a context, and neither the event nor the definition of the \
         stream has one"
    )]
    NoContext,
    /// No member of a JSON object became a statement.
    #[error("it has members, but gives no statement: the context maps none of them to an IRI")]
    NoStatement,
    /// A version is announced that has no messages.
    #[error(
        "the version {version:?} has no messages; those that have are \"1.1-messages\", \
         \"1.2-basic-messages\" and \"1.2-messages\""
    )]
    Version {
        /// What it is called.
        version: String,
    },
    /// A directive of RDF Messages is not what it should be.
    #[error("{directive} is followed by {wanted}")]
    Directive {
        /// Its word.
        directive: &'static str,
        /// What should follow.
        wanted: &'static str,
    },
    /// A patch takes a statement away.
    #[error(
        "D takes a statement away, and a window is never changed by that; send what comes, by A"
    )]
    Delete,
    /// A row of a patch begins with no code, or has not the form of its code.
    #[error("a row of RDF Patch is {wanted}")]
    Row {
        /// What it may be.
        wanted: &'static str,
    },
    /// A transaction of a patch begins within another, or is not there.
    #[error("{what}")]
    Transaction {
        /// What is wrong.
        what: &'static str,
    },
}
