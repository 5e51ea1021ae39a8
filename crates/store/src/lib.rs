//! The neighbours of (vertex, predicate, direction): where is the graph, and what does it look like?
mod column;
mod domain;
mod error;
mod image;
mod segment;

pub use column::Column;
pub use domain::Domain;
pub use error::StoreError;
pub use segment::{Cursor, Segment};
