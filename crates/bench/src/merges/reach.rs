//! How does a client of the stream reach the store?

use std::net::SocketAddr;

use jindou_engine::Database;

use super::feed::Transaction;
use crate::http::{Connection, HttpError, query_request, update_request};
use crate::serving::{QUERY_PATH, UPDATE_PATH};
use crate::{BenchError, run};

/// By calls, or over a connection of its own.
pub(super) enum Reach<'d> {
    InProcess(&'d Database),
    Served(Box<Connection>, SocketAddr),
}

impl<'d> Reach<'d> {
    /// Over HTTP where it is said to which server.
    ///
    /// # Errors
    /// [`BenchError::Http`].
    pub(super) fn new(
        database: &'d Database,
        server: Option<SocketAddr>,
    ) -> Result<Self, BenchError> {
        Ok(match server {
            None => Self::InProcess(database),
            Some(address) => Self::Served(Box::new(Connection::open(address)?), address),
        })
    }

    /// Commits. What a server changed is known from the store only, in the end.
    ///
    /// # Errors
    /// [`BenchError::Engine`], [`BenchError::Http`]; [`BenchError::ChangesDiffer`].
    pub(super) fn update(&mut self, transaction: &Transaction) -> Result<(), BenchError> {
        match self {
            Self::InProcess(database) => {
                let report = database.update(&transaction.text)?;
                let expected = transaction.inserted + transaction.deleted;
                let found = report.inserted + report.deleted;
                match expected == found {
                    true => Ok(()),
                    false => Err(BenchError::ChangesDiffer { expected, found }),
                }
            }
            Self::Served(connection, host) => {
                connection.send(&update_request(*host, UPDATE_PATH, &transaction.text))?;
                let mut said = Vec::new();
                let answer = connection.receive(|piece| said.extend_from_slice(piece))?;
                match answer.status {
                    200..300 => Ok(()),
                    status => Err(HttpError::refused(status, &said).into()),
                }
            }
        }
    }

    /// How many rows a query gives.
    ///
    /// # Errors
    /// [`BenchError::Engine`], [`BenchError::Http`], [`BenchError::NotSolutions`].
    pub(super) fn rows(&mut self, query: &str) -> Result<u64, BenchError> {
        match self {
            Self::InProcess(database) => Ok(run::as_ids(database, query, 1)?.rows),
            Self::Served(connection, host) => {
                let request = query_request(*host, QUERY_PATH, query);
                let (_, lines) = connection.lines(&request)?;
                // The first one names the columns.
                Ok(lines.saturating_sub(1))
            }
        }
    }
}
