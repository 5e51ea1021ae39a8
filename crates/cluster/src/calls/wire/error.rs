//! Why are these bytes no request, or no answer to one?

/// What is wrong with bytes that should be a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(in super::super) enum CallError {
    /// They begin with something else.
    #[error("this is no {expected}: it begins with the bytes {found:02x?}")]
    NoMessage {
        /// What they should be.
        expected: &'static str,
        /// With what they begin.
        found: [u8; 4],
    },
    /// They were written by another version.
    #[error("the message is of version {found}, and version {known} is known")]
    Version {
        /// Theirs.
        found: u32,
        /// The only one that is read.
        known: u32,
    },
    /// They end too early.
    #[error("the message ends at byte {end}, before the end of {part}, which begins at byte {at}")]
    Truncated {
        /// What was to be read.
        part: &'static str,
        /// Where that begins.
        at: usize,
        /// Bytes that there are.
        end: usize,
    },
    /// They go on after the end.
    #[error("{bytes} bytes follow the message")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// They say that there is more of something than any message has.
    #[error("a message has {most} {part} at most, and at byte {at} this one says {found}")]
    TooMany {
        /// Of what.
        part: &'static str,
        /// Where it says so.
        at: usize,
        /// How many.
        found: u64,
        /// How many there may be.
        most: u64,
    },
    /// A number stands for something that nobody knows.
    #[error("byte {at}: {found} is no {part}")]
    Unknown {
        /// What it should stand for.
        part: &'static str,
        /// Where it is.
        at: usize,
        /// The number.
        found: u64,
    },
    /// No term has this id.
    #[error("byte {at}: no term has the id {id:#018x}, one of {part}")]
    Id {
        /// Which ids it is among.
        part: &'static str,
        /// Where it is.
        at: usize,
        /// All of its 64 bits.
        id: u64,
    },
    /// A range of ids is empty, or does not lie after the one before.
    #[error(
        "byte {at}: the range from {first:#x} to {end:#x} is none, or not after the one before"
    )]
    Range {
        /// Where it is.
        at: usize,
        /// Its first id.
        first: u64,
        /// Its end.
        end: u64,
    },
    /// There are not as many of something as rows, or rows of it are none that were asked for, or
    /// not in order.
    #[error("{part} do not fit the {rows} rows")]
    Rows {
        /// Of what.
        part: &'static str,
        /// How many rows there are.
        rows: usize,
    },
    /// It answers another call.
    #[error("the answer is of kind {found}, which answers another call")]
    OtherCall {
        /// Its kind.
        found: u32,
    },
}
