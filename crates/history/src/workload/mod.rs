//! What is asked of an RDF store, so that its history says much?
//!
//! A list is a subject with one triple for each item, and an item is a subject of its own, at a position that the append
//! counts in its WHERE clause:
//!
//! ```turtle
//! <https://history.example/list/4> :item <https://history.example/list/4/0> .
//! <https://history.example/list/4/0> :at 0 ; :value 17 ; :saw "3=12 6=0" .
//! ```
//!
//! So an update that was made on what another one changed meanwhile leaves two values at one position, and one that
//! is there in part leaves a gap or an item without a value: [`Contradiction`]s, which show in one answer. `:saw` has the
//! lengths of the lists that the update read, as an update answers nothing: [`learn`] gives them to the history.
//! Subjects are of three kinds, with predicates of their own, one of them in named graphs: a store that deals them by kind and by order
//! has them, and what one operation touches, on several shards.

mod decode;
mod generate;
mod learn;
mod names;
mod texts;

pub use decode::{
    Contradiction, DecodeError, ListAnswer, NumberAnswer, decode_lists, decode_numbers,
};
pub use generate::{Answered, Mix, Request, Workload, WorkloadConfig};
pub use learn::{Sighting, learn};
pub use names::{Family, setup};
pub use texts::{
    append, increment, read_append, read_lists, read_numbers, read_write, transfer, write,
};
