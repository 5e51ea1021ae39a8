//! Where do statements go on their way into a stream, and who counts what they take?

use jindou_ingest::QuadSink;
use oxrdf::QuadRef;

use super::super::tuples::Tuples;
use crate::EngineError;
use crate::document::Ledger;

/// Bytes that are reserved at once.
const GRANULE_BYTES: u64 = 64 << 10;

/// Gathers statements as tuples, whose bytes are counted.
pub(super) struct Gathered<'a> {
    pub(super) tuples: &'a mut Tuples,
    ledger: &'a Ledger,
}

impl<'a> Gathered<'a> {
    pub(super) fn new(tuples: &'a mut Tuples, ledger: &'a Ledger) -> Self {
        Self { tuples, ledger }
    }

    pub(super) fn add(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        let before = self.tuples.size() / GRANULE_BYTES;
        self.tuples.push(0, quad);
        let granules = self.tuples.size() / GRANULE_BYTES - before;
        match granules {
            0 => Ok(()),
            more => self.ledger.hold(more * GRANULE_BYTES),
        }
    }
}

impl QuadSink for Gathered<'_> {
    type Error = EngineError;

    fn quad(&mut self, quad: QuadRef<'_>) -> Result<(), EngineError> {
        self.add(quad)
    }
}
