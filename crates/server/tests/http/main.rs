//! Does the server keep the SPARQL 1.1 Protocol and its own promises, seen from a socket?

mod access;
mod bodies;
mod brokers;
mod client;
mod clients;
mod columns;
mod events;
mod federation;
mod graph_store;
mod hostile;
mod limits;
mod logs;
mod page;
mod prefixes;
mod protocol;
mod queries;
mod result_columns;
mod streams;
mod tls;
mod updates;
mod websocket;
