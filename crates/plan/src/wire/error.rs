//! Why are these bytes no steps of a plan?

use crate::stack::NoStack;

/// What is wrong with bytes that should be steps of a plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanWireError {
    /// They begin with something else.
    #[error("these are no steps: they begin with the bytes {found:02x?}")]
    NoSteps {
        /// With what.
        found: [u8; 8],
    },
    /// They were written by another version.
    #[error("the steps are of version {found}, and version {known} is known")]
    Version {
        /// Theirs.
        found: u32,
        /// The only one that is read.
        known: u32,
    },
    /// They end too early.
    #[error("the steps end at byte {end}, before their own end")]
    Truncated {
        /// Bytes that there are.
        end: usize,
    },
    /// They go on after the end.
    #[error("{bytes} bytes follow the steps")]
    TooLong {
        /// How many.
        bytes: usize,
    },
    /// They say that there is more of something than any plan has, or than there are bytes for.
    #[error("there are {most} {part} at most, and these steps say {found}")]
    TooMany {
        /// Of what.
        part: &'static str,
        /// How many.
        found: u64,
        /// How many there may be.
        most: u32,
    },
    /// They are nested deeper than they say.
    #[error("the steps are nested deeper than the {levels} levels that they say")]
    TooDeep {
        /// What they say.
        levels: usize,
    },
    /// A variable, constant or step has a number that none has.
    #[error("number {found} of {most} {part}")]
    Number {
        /// Of what.
        part: &'static str,
        /// The number.
        found: u64,
        /// How many there are.
        most: u64,
    },
    /// They are no steps in the format of their version.
    #[error("the steps are malformed: {reason}")]
    Malformed {
        /// What the format says of them.
        reason: String,
    },
    /// A step is not as the executor may expect.
    #[error("a step with {what}")]
    Shape {
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is no memory for the stack that reading or writing them needs.
    #[error(transparent)]
    NoStack(#[from] NoStack),
}
