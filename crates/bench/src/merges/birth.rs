//! What becomes of vertices whose types come one transaction after everything else?
//!
//! All of LUBM is committed to an empty store, a thousand statements at a time: what a transaction says
//! of its vertices is everything but their types, which the next one says. The store that the background
//! has merged from these is compared with a fresh load.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::mem;
use std::time::Instant;

use jindou_datagen::lubm::{Lubm, QUERIES};
use jindou_engine::Database;
use oxrdf::vocab::rdf;

use super::compare::compare;
use super::report::Birth;
use super::stream::{BEYOND_IDLE, sizes};
use super::{Options, StoreFolder, check_held, settle};
use crate::data::DataFile;
use crate::operators::Check;
use crate::{BenchError, data, run};

/// Statements of a transaction.
const STATEMENTS: usize = 1_000;

/// # Errors
/// Any [`BenchError`].
pub(super) fn measure(options: &Options, note: &mut impl FnMut(&str)) -> Result<Birth, BenchError> {
    note("generating");
    let universities = options.universities;
    let file = data::lubm_file(&options.folder, Lubm::new(universities, 0))?;
    let folder = StoreFolder::new(&options.folder, "merges-birth");
    note("committing");
    let database = Database::open_or_create(folder.path(), options.config())?;
    let (transactions, took) = run::once(|| commit(&database, &file))?;
    note("waiting for the background");
    let begin = Instant::now();
    let has_settled = settle(&database, options.merge.idle + BEYOND_IDLE).is_at_rest;
    let settle_seconds = begin.elapsed().as_secs_f64();
    check_held(&database, "once all was typed", file.counts.distinct())?;
    note("loading afresh");
    let fresh_folder = StoreFolder::new(&options.folder, "merges-birth-fresh");
    let (fresh, _) = fresh_folder.load_lubm(&file, options.config())?;
    let way = ("once all was typed", Check::Rows);
    Ok(Birth {
        universities,
        transactions,
        seconds: took.as_secs_f64(),
        has_settled,
        settle_seconds,
        triples: file.counts.distinct(),
        fresh: sizes(&fresh, &fresh_folder)?,
        typed: sizes(&database, &folder)?,
        queries: compare(&fresh, &database, way, &QUERIES, options.runs, note)?,
    })
}

/// Commits all statements, and gives the number of transactions.
fn commit(database: &Database, file: &DataFile) -> Result<u64, BenchError> {
    let reader = File::open(&file.path).map_err(BenchError::io(&file.path))?;
    let of_type = format!(" <{}> ", rdf::TYPE.as_str());
    let (mut now, mut later, mut due) = (String::new(), String::new(), String::new());
    let (mut statements, mut transactions) = (0, 0);
    let mut commit = |text: &mut String| {
        database.update(&format!("INSERT DATA {{\n{text}}}"))?;
        text.clear();
        transactions += 1;
        Ok::<(), BenchError>(())
    };
    for line in BufReader::new(reader).lines() {
        let line = line.map_err(BenchError::io(&file.path))?;
        let text = if line.contains(&of_type) {
            &mut later
        } else {
            &mut now
        };
        text.push_str(&line);
        text.push('\n');
        statements += 1;
        if statements % STATEMENTS == 0 {
            now.push_str(&due);
            due = mem::take(&mut later);
            commit(&mut now)?;
        }
    }
    now.push_str(&due);
    commit(&mut now)?;
    commit(&mut later)?;
    Ok(transactions)
}
