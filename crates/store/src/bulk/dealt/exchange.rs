//! How do nodes that load together give each other bytes?

use std::error::Error;

use jindou_model::NodeId;

/// What connects nodes that load together: all make the same calls in the same order.
pub trait Exchange: Sync {
    /// How many nodes there are.
    fn nodes(&self) -> u32;

    /// Which of them is this one.
    fn here(&self) -> NodeId;

    /// Gives each node its bytes, by node, and puts what each has for this one into `got`, by node, in the place of what
    /// was there: the room of both is used again. Returns once all of it is here; what a node has for itself changes
    /// places. What `to` holds then is left open.
    ///
    /// # Errors
    /// If a node cannot be reached or makes no such call any more. Nothing is exchanged after that: the caller gives
    /// up, and what implements it must let the calls of the other nodes fail, too.
    fn exchange(&self, to: &mut [Vec<u8>], got: &mut [Vec<u8>]) -> Result<(), ExchangeError>;
}

/// Nodes that load together have lost each other.
#[derive(Debug, thiserror::Error)]
#[error("the nodes that load together cannot exchange what they have: {source}")]
pub struct ExchangeError {
    /// Why, and which node is lost.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

impl ExchangeError {
    /// That of such a cause.
    pub fn new(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self {
            source: source.into(),
        }
    }
}
