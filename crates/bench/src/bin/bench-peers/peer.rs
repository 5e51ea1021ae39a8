//! The other engine: how is it loaded and asked?

use std::ffi::OsString;
use std::hint::black_box;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use jindou_bench::BenchError;
use jindou_bench::child::ChildReport;
use jindou_bench::machine::Memory;
use jindou_bench::run::Outcome;
use jindou_bench::running::end_with_input;
use oxigraph::io::RdfFormat;
use oxigraph::sparql::results::{QueryResultsFormat, QueryResultsSerializer};
use oxigraph::sparql::{QueryResults, SparqlEvaluator};
use oxigraph::store::Store;

const LOAD: &str = "load-oxigraph";

/// What a child is told to load the file into this engine.
pub(crate) fn load_arguments(file: &Path, threads: usize) -> Vec<OsString> {
    vec![LOAD.into(), file.into(), threads.to_string().into()]
}

/// The child's side of [`load_arguments`]; `Ok(false)` if it was told something else.
pub(crate) fn child(arguments: &[OsString]) -> anyhow::Result<bool> {
    let [task, file, threads] = arguments else {
        return Ok(false);
    };
    if task != LOAD {
        return Ok(false);
    }
    let threads = threads.to_string_lossy().parse()?;
    end_with_input(|| ());
    let start = Instant::now();
    let store = load(Path::new(file), threads)?;
    let report = ChildReport {
        seconds: start.elapsed().as_secs_f64(),
        memory: Memory::of_this_process()?,
        triples: store.len()? as u64,
        footprint_bytes: 0,
        text_bytes: 0,
    };
    println!("{}", serde_json::to_string(&report)?);
    Ok(true)
}

/// A store in memory with the file's triples, loaded by its bulk loader, which is its fastest
/// way, on this many threads.
pub(crate) fn load(file: &Path, threads: usize) -> anyhow::Result<Store> {
    let store = Store::new()?;
    let mut loader = store.bulk_loader().with_num_threads(threads);
    loader.parallel_load_from_file(RdfFormat::NTriples, file)?;
    loader.commit()?;
    Ok(store)
}

/// Runs a query and looks at every row as its interface gives them: terms, decoded.
pub(crate) fn rows(store: &Store, text: &str) -> Result<Outcome, BenchError> {
    let mut rows = 0;
    let QueryResults::Solutions(solutions) = execute(store, text)? else {
        return Err(not_solutions(text));
    };
    for solution in solutions {
        black_box(solution.map_err(|e| failed(&e))?.values());
        rows += 1;
    }
    Ok(Outcome {
        rows,
        text_bytes: 0,
    })
}

/// Runs a query and writes every row as TSV by its own serializer, to where bytes are only
/// counted. Rows are not counted.
pub(crate) fn tsv(store: &Store, text: &str) -> Result<u64, BenchError> {
    let QueryResults::Solutions(solutions) = execute(store, text)? else {
        return Err(not_solutions(text));
    };
    let mut serializer = QueryResultsSerializer::from_format(QueryResultsFormat::Tsv)
        .serialize_solutions_to_writer(Counted(0), solutions.variables().to_vec())
        .map_err(|e| failed(&e))?;
    for solution in solutions {
        let solution = solution.map_err(|e| failed(&e))?;
        serializer.serialize(&solution).map_err(|e| failed(&e))?;
    }
    Ok(serializer.finish().map_err(|e| failed(&e))?.0)
}

fn execute(store: &Store, text: &str) -> Result<QueryResults<'static>, BenchError> {
    let query = SparqlEvaluator::new()
        .parse_query(text)
        .map_err(|e| failed(&e))?;
    query.on_store(store).execute().map_err(|e| failed(&e))
}

fn not_solutions(text: &str) -> BenchError {
    BenchError::NotSolutions {
        query: text.to_owned(),
    }
}

pub(crate) fn failed(error: &dyn std::fmt::Display) -> BenchError {
    BenchError::Peer {
        reason: error.to_string(),
    }
}

/// Counts the bytes written to it and throws them away.
pub(crate) struct Counted(pub(crate) u64);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += black_box(bytes).len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
