//! Streams and continuous queries come back when a store is opened again.

use std::collections::BTreeMap;
use std::sync::Arc;

use jindou_stream::StreamDefinition;
use serde::{Deserialize, Serialize};

use super::catalogue::{Names, Paused, add_stream};
use super::stream::Stream;
use crate::{Database, EngineError};

/// What a store's directory has of streams, as JSON.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lasting {
    version: u32,
    streams: BTreeMap<String, StreamDefinition>,
    queries: BTreeMap<String, LastingQuery>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastingQuery {
    text: String,
    #[serde(default)]
    paused: bool,
}

/// Raised with every change that a build before cannot read.
const VERSION: u32 = 1;

impl Database {
    /// That streams and queries may be changed: asked before their names are locked, which merges do
    /// while they hold the writer's lock.
    ///
    /// # Errors
    /// [`EngineError::ReadOnly`].
    pub(super) fn check_names_writable(&self) -> Result<(), EngineError> {
        self.inner().writer.lock().check_opened_to_write()
    }

    /// Writes all streams and queries to the store's directory, if there is one.
    ///
    /// # Errors
    /// What the operating system says.
    pub(super) fn keep_names(&self, names: &Names) -> Result<(), EngineError> {
        let inner = self.inner();
        let Some(directory) = &inner.directory else {
            return Ok(());
        };
        let made = |stream: &Arc<Stream>| names.queries.values().any(|query| query.makes(stream));
        let streams = names.streams.iter().filter(|(_, stream)| !made(stream));
        let queries = names.queries.iter().map(|(name, query)| {
            let query = LastingQuery {
                text: query.text.clone(),
                paused: query.is_paused(),
            };
            (name.clone(), query)
        });
        let lasting = Lasting {
            version: VERSION,
            streams: streams
                .map(|(name, stream)| (name.clone(), stream.definition.clone()))
                .collect(),
            queries: queries.collect(),
        };
        let text =
            serde_json::to_string_pretty(&lasting).map_err(|error| EngineError::InvalidQuery {
                message: error.to_string(),
            })?;
        Ok(directory.write_streams(&text)?)
    }

    /// Makes the streams and registers the queries that the store's directory has.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`]; what is wrong with a query, which a build before took.
    pub(crate) fn restore_streams(self) -> Result<Self, EngineError> {
        let Some(directory) = &self.inner().directory else {
            return Ok(self);
        };
        let Some(text) = directory.read_streams()? else {
            return Ok(self);
        };
        let corrupt = |reason: String| EngineError::Corrupt {
            path: directory.path().join("STREAMS"),
            reason,
        };
        let lasting: Lasting =
            serde_json::from_str(&text).map_err(|error| corrupt(error.to_string()))?;
        if lasting.version != VERSION {
            return Err(corrupt(format!(
                "it has version {}, not {VERSION}",
                lasting.version
            )));
        }
        let mut names = self.inner().streams.names.write();
        for (name, definition) in lasting.streams {
            add_stream(&name, definition, &mut names)?;
        }
        let mut left: Vec<(String, LastingQuery)> = lasting.queries.into_iter().collect();
        // Some read streams that others make.
        while !left.is_empty() {
            let before = left.len();
            let mut failed = None;
            left.retain(|(name, query)| {
                let paused = Paused(query.paused);
                match self.add_query(name, &query.text, paused, &mut names) {
                    Ok(added) => {
                        // Nobody else knows the database yet.
                        added.iter().for_each(|query| query.begin());
                        false
                    }
                    Err(error) => {
                        failed = Some(error);
                        true
                    }
                }
            });
            if let Some(error) = failed.filter(|_| left.len() == before) {
                let (name, _) = &left[0];
                return Err(corrupt(format!("continuous query {name}: {error}")));
            }
        }
        drop(names);
        Ok(self)
    }
}
