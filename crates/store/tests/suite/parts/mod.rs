//! Parts of stores: split from a whole one, and loaded by several nodes together.

mod common;
mod dealt_load;
mod split;
