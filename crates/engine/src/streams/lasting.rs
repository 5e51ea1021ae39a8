//! Streams and continuous queries come back when a store is opened again: from the log of streams, or
//! from the text in which versions before that log kept their names.

use std::collections::BTreeMap;

use jindou_store::SideLog;
use jindou_stream::StreamDefinition;
use serde::Deserialize;

use super::catalogue::{Paused, add_stream, check_definition};
use crate::{Database, EngineError};

/// What a store's directory had of streams before they had a log, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lasting {
    version: u32,
    streams: BTreeMap<String, StreamDefinition>,
    queries: BTreeMap<String, LastingQuery>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LastingQuery {
    text: String,
    #[serde(default)]
    paused: bool,
}

/// The only one there was.
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

    /// Makes the streams and queries what they were when the store was open last.
    ///
    /// # Errors
    /// [`EngineError::Corrupt`]; what is wrong with a query, which a build before took.
    pub(crate) fn restore_streams(self) -> Result<Self, EngineError> {
        let Some(directory) = &self.inner().directory else {
            return Ok(self);
        };
        if SideLog::is_in(directory) {
            self.recover_streams()?;
            // The log was made of it, and has gone on since.
            directory.remove_streams()?;
            return Ok(self);
        }
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
        for (name, definition) in lasting.streams {
            check_definition(&name, &definition)?;
            let mut names = self.inner().streams.names.write();
            let number = names.last_number + 1;
            add_stream(&name, number, definition, &mut names)?;
        }
        self.register_all(lasting.queries)
            .map_err(|(name, error)| corrupt(format!("continuous query {name}: {error}")))?;
        Ok(self)
    }

    /// Registers queries of which some read streams that others make.
    fn register_all(
        &self,
        queries: BTreeMap<String, LastingQuery>,
    ) -> Result<(), (String, EngineError)> {
        let mut left: Vec<(String, LastingQuery)> = queries.into_iter().collect();
        while !left.is_empty() {
            let before = left.len();
            let mut failed = None;
            left.retain(|(name, query)| {
                let number = self.inner().streams.names.read().last_number + 1;
                let named = (number, &**name, &*query.text);
                let added = self.add_query(named, Paused(query.paused));
                let begun = added.and_then(|added| {
                    // Nobody else knows the database yet.
                    let mut added = added.iter();
                    added.try_for_each(|query| self.inner().begin_query(query))
                });
                let error = begun.err();
                let is_left = error.is_some();
                failed = error.map(|error| (name.clone(), error)).or(failed.take());
                is_left
            });
            if let Some(failed) = failed.filter(|_| left.len() == before) {
                return Err(failed);
            }
        }
        Ok(())
    }
}
