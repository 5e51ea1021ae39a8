//! Which quads does the block of an INSERT DATA or DELETE DATA say?

/// The data of an INSERT DATA or DELETE DATA, as its text.
#[derive(Clone, Debug, PartialEq)]
pub struct DataBlock<'t> {
    text: &'t str,
}
