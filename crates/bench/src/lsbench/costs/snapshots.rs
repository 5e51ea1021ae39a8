//! What memory do old snapshots take that readers hold?

use jindou_datagen::lsbench::Lsbench;
use jindou_engine::{Database, QueryResults};
use serde::{Deserialize, Serialize};

use super::super::feed::Feed;
use super::super::{BATCH_MS, Options, setup};
use crate::BenchError;
use crate::machine::Resident;

/// Snapshots held at most, beside the latest.
const MOST_HELD: u32 = 3;

/// Figures of so many readers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldSnapshots {
    /// Snapshots that readers hold beside the latest, from equal parts of the time on.
    pub held: u32,
    /// Bytes that the process has more at the end than at the beginning.
    pub grown_bytes: u64,
    /// What the latest snapshot takes of that, as the database says.
    pub data_bytes: u64,
}

pub(super) fn measure(data: &Lsbench, options: &Options) -> Result<Vec<HeldSnapshots>, BenchError> {
    let mut figures = Vec::new();
    for held in 0..=MOST_HELD {
        figures.push(of_readers(data, options, held)?);
    }
    Ok(figures)
}

fn of_readers(data: &Lsbench, options: &Options, held: u32) -> Result<HeldSnapshots, BenchError> {
    jindou_fabric::allocator::release_free_memory();
    let before = Resident::now()?.anonymous_bytes;
    let database = Database::new();
    setup::load(&database, data)?;
    setup::create_streams(&database)?;
    let mut feed = Feed::new(data, options, options.seconds)?;
    let batches = options.seconds * 1_000 / BATCH_MS;
    let apart = (batches / u64::from(MOST_HELD + 1)).max(1);
    let mut readers: Vec<QueryResults> = Vec::new();
    let mut number = 0;
    while let Some(mut batch) = feed.next_batch() {
        batch.push(&database)?;
        batch.complete(&database)?;
        number += 1;
        if number % apart == 0 && number < batches {
            // So nothing that a reader holds is what later ones read.
            database.compact()?;
            if (readers.len() as u32) < held {
                readers.push(database.query("SELECT * WHERE { ?s ?p ?o }")?);
            }
        }
    }
    database.compact()?;
    jindou_fabric::allocator::release_free_memory();
    let after = Resident::now()?.anonymous_bytes;
    let statistics = database.statistics();
    assert_eq!(readers.len() as u32, held, "each holds one");
    Ok(HeldSnapshots {
        held,
        grown_bytes: after.saturating_sub(before),
        data_bytes: statistics.total_bytes() + statistics.change_bytes,
    })
}
