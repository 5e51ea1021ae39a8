//! How do steps of a plan leave their process, for another node that goes on with them?
//!
//! As one run of bytes, numbers of the header little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `JNDSTEPS` |
//! | 4 | version |
//! | 4 | the most operators, steps and expressions that are nested in each other |
//! | 4, 4 | variables and constants that the plan has |
//! | 4 | what the numbers of its steps and operators are below |
//! | | the steps, in the format of `postcard` |
//!
//! Who reads them takes nothing for granted: how deep they are nested is counted while they are read, on a
//! stack that fits what the header says; each number of a variable, constant or step is compared with the
//! header where it is read; lists have as many entries as there are bytes for. What the executor expects
//! beyond that is looked at in the end.

mod checked;
mod error;
pub(crate) mod fields;
mod shape;

use std::ops::Deref;

pub use error::PlanWireError;

use crate::levels;
use crate::physical::{Plan, PlannedStep};
use crate::stack::Stack;

/// What steps begin with.
const MAGIC: [u8; 8] = *b"JNDSTEPS";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// Bytes of the header.
const HEADER_BYTES: usize = 28;
/// Levels of a plan at most: more than any text of a query has, and a stack of 1 GiB.
const MOST_LEVELS: u32 = 1 << 17;
/// Variables and constants of a plan at most: each has a number of 16 bits.
const MOST_NAMED: u32 = 1 << u16::BITS;
/// Steps and operators of a plan at most: 16 bytes each are set aside where they are measured.
const MOST_IDS: u32 = 1 << 24;
/// Bytes in memory for each byte of steps, at most: a list of one operand is two bytes there, and here one
/// with room for four, of forty bytes each.
const BYTES_PER_BYTE: usize = 128;

/// The sizes of a plan, below which the numbers in its steps are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanSizes {
    /// Its variables.
    pub variables: usize,
    /// Its constants.
    pub constants: usize,
    /// What the numbers of its steps and operators are below.
    pub ids: u32,
}

impl Plan {
    /// Its sizes.
    #[must_use]
    pub fn sizes(&self) -> PlanSizes {
        PlanSizes {
            variables: self.variables.len(),
            constants: self.constants.len(),
            ids: self.ids,
        }
    }
}

/// Steps that were bytes. However deep they are nested, they can be dropped.
#[derive(Debug)]
pub struct DecodedSteps {
    steps: Vec<PlannedStep>,
    sizes: PlanSizes,
    stack: Stack,
}

impl DecodedSteps {
    /// The sizes of the plan that they are of.
    #[must_use]
    pub fn sizes(&self) -> PlanSizes {
        self.sizes
    }

    /// The stack for a recursion over them, or over what is made of them.
    #[must_use]
    pub fn stack(&self) -> Stack {
        self.stack
    }
}

impl Deref for DecodedSteps {
    type Target = [PlannedStep];

    fn deref(&self) -> &[PlannedStep] {
        &self.steps
    }
}

impl Drop for DecodedSteps {
    fn drop(&mut self) {
        if !self.stack.is_plain() {
            self.stack.drop(std::mem::take(&mut self.steps));
        }
    }
}

/// Steps as bytes; `stack` is the one for a recursion over their plan, of which `sizes` are.
///
/// # Errors
/// [`PlanWireError::NoStack`]; [`PlanWireError::TooMany`] for a plan that no reader would take.
pub fn encode_steps(
    steps: &[PlannedStep],
    sizes: PlanSizes,
    stack: Stack,
) -> Result<Vec<u8>, PlanWireError> {
    let variables = at_most("variables", sizes.variables as u64, MOST_NAMED)?;
    let constants = at_most("constants", sizes.constants as u64, MOST_NAMED)?;
    let ids = at_most("steps and operators", sizes.ids.into(), MOST_IDS)?;
    let written = stack.run(|| {
        let levels = levels::of_steps(steps) as u64;
        let written = postcard::to_allocvec(steps);
        (levels, written.expect("writing to memory never fails"))
    });
    let (levels, written) = written?;
    let levels = at_most("levels", levels, MOST_LEVELS)?;
    let mut bytes = Vec::with_capacity(HEADER_BYTES + written.len());
    bytes.extend_from_slice(&MAGIC);
    for number in [VERSION, levels, variables, constants, ids] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    debug_assert_eq!(bytes.len(), HEADER_BYTES);
    bytes.extend_from_slice(&written);
    Ok(bytes)
}

/// Bytes that the steps take in memory that are so many bytes as [`encode_steps`] writes them, at most.
#[must_use]
pub fn decoded_bytes(encoded_bytes: usize) -> usize {
    encoded_bytes.saturating_mul(BYTES_PER_BYTE)
}

/// The steps that [`encode_steps`] made these bytes of.
///
/// # Errors
/// What is wrong with the bytes, and [`PlanWireError::NoStack`].
pub fn decode_steps(bytes: &[u8]) -> Result<DecodedSteps, PlanWireError> {
    let (header, written) = header(bytes)?;
    let [levels, variables, constants, ids] = header;
    let sizes = PlanSizes {
        variables: at_most("variables", variables.into(), MOST_NAMED)? as usize,
        constants: at_most("constants", constants.into(), MOST_NAMED)? as usize,
        ids: at_most("steps and operators", ids.into(), MOST_IDS)?,
    };
    // Each level is a byte at least.
    let most = u32::try_from(written.len()).unwrap_or(u32::MAX);
    let levels = at_most("levels", levels.into(), MOST_LEVELS.min(most))? as usize;
    let stack = Stack::of_levels(levels);
    let steps = stack.run(|| {
        let steps = checked::read(written, sizes, levels)?;
        shape::check(&steps)?;
        Ok::<_, PlanWireError>(steps)
    })??;
    Ok(DecodedSteps {
        steps,
        sizes,
        stack,
    })
}

/// The numbers of the header behind the version, and what follows it.
fn header(bytes: &[u8]) -> Result<([u32; 4], &[u8]), PlanWireError> {
    let truncated = PlanWireError::Truncated { end: bytes.len() };
    let (header, written) = bytes.split_at_checked(HEADER_BYTES).ok_or(truncated)?;
    let (magic, numbers) = header.split_at(MAGIC.len());
    if magic != MAGIC {
        let found = magic.try_into().expect("it is as long");
        return Err(PlanWireError::NoSteps { found });
    }
    let (numbers, _) = numbers.as_chunks();
    let number = |place: usize| u32::from_le_bytes(numbers[place]);
    if number(0) != VERSION {
        return Err(PlanWireError::Version {
            found: number(0),
            known: VERSION,
        });
    }
    Ok(([number(1), number(2), number(3), number(4)], written))
}

fn at_most(part: &'static str, found: u64, most: u32) -> Result<u32, PlanWireError> {
    match u32::try_from(found) {
        Ok(count) if count <= most => Ok(count),
        _ => Err(PlanWireError::TooMany { part, found, most }),
    }
}

#[cfg(test)]
mod tests;
