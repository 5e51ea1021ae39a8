//! What is there before the streams begin: stored graph, streams and queries?

use jindou_datagen::lsbench::{Lsbench, STORED_GRAPH_IRI, Stream};
use jindou_engine::ingest::{Format, Progress, Source};
use jindou_engine::{Database, LoadOptions, Predicates, StreamDefinition};
use oxrdf::NamedNode;

use super::Options;
use super::queries::Query;
use crate::BenchError;

/// Loads the social graph, which is made as it is read.
pub(super) fn load(database: &Database, data: &Lsbench) -> Result<(), BenchError> {
    let text = data.stored_reader()?;
    let source = Source::reader("static.nt", text).with_format(Format::NTriples);
    let options = LoadOptions {
        graph: Some(NamedNode::new_unchecked(STORED_GRAPH_IRI)),
        ..LoadOptions::default()
    };
    database.load(vec![source], &options, &Progress::default())?;
    Ok(())
}

/// What a stream of the benchmark is: positions are timing data, everything else is stored as well.
pub(super) fn definition(stream: Stream) -> StreamDefinition {
    let mut definition = StreamDefinition::new(stream.iri());
    if !stream.is_timing() {
        definition.timeless = Some(Predicates::ALL);
    }
    definition
}

/// Makes the five streams.
pub(super) fn create_streams(database: &Database) -> Result<(), BenchError> {
    for stream in Stream::ALL {
        database.create_stream(stream.name(), definition(stream))?;
    }
    Ok(())
}

/// The name of the query of a class with this number.
pub(super) fn name(query: &Query, number: u32) -> String {
    format!("{}_{number}", query.name)
}

/// Where the query with this number starts: at users that are far from each other.
pub(super) fn user(number: u32, users: u32) -> u32 {
    number.wrapping_mul(2_654_435_761) % users
}

/// Registers so many queries of a class, which start at users of their own.
pub(super) fn register(
    database: &Database,
    query: &Query,
    many: u32,
    options: &Options,
) -> Result<(), BenchError> {
    for number in 0..many {
        let user = user(number, options.users);
        let text = query.text(options.range_ms, options.step_ms, user);
        database.register(&name(query, number), &text)?;
    }
    Ok(())
}
