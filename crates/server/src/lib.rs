//! How does a program elsewhere query a database? By the SPARQL 1.1 Protocol over HTTP/1.1.
//!
//! | path | what |
//! |---|---|
//! | `/query`, `/update`, `/sparql`, `/` | queries and updates, at each of them: queries by GET, or by POST of a form with `query` or of `application/sparql-query`; updates by POST of a form with `update` or of `application/sparql-update`; GET of neither gives the service description, and at `/` a page for people to try queries |
//! | `/store?graph=IRI`, `/store?default`, `/store/...` | whole graphs, by the Graph Store Protocol: GET, HEAD, PUT, POST, DELETE; POST to `/store` makes a graph with a new name |
//! | `/store` | the whole dataset: GET and HEAD as TriG, N-Quads, JSON-LD or columns; PUT replaces it by TriG, N-Quads or JSON-LD, POST adds those to it |
//! | `/prefixes` | names and the beginnings of IRIs that they stand for, as JSON or Turtle: GET; PUT replaces them |
//! | `/queries` | queries and updates under way as JSON: GET |
//! | `/queries/{id}` | one of them, or why it failed: GET; DELETE ends it |
//! | `/streams` | streams as JSON: GET |
//! | `/streams/{name}` | one of them: PUT of its definition makes it, POST of tuples feeds it, GET tells how it is, DELETE drops it |
//! | `/streams/{name}/heartbeat?time=` | nothing before this time will come: POST |
//! | `/streams/{name}/late` | the last tuples that came late: GET |
//! | `/continuous` | continuous queries as JSON: GET |
//! | `/continuous/{name}` | one of them: PUT of its text registers it, GET tells how it is, DELETE drops it |
//! | `/continuous/{name}/pause`, `.../resume` | POST |
//! | `/continuous/{name}/sinks` | brokers that its results go to: GET |
//! | `/continuous/{name}/sinks/{sink}` | one of them: PUT of its definition makes it, GET tells how it is, DELETE drops it |
//! | `/continuous/{name}/results` | its results as server-sent events: GET |
//! | `/cluster` | the nodes of the cluster that the server is one of, and what goes between them, as JSON, or a page where `Accept` prefers `text/html`: GET |
//! | `/health` | 200, with the nodes of its cluster that are away if some are, or 503 and why where the store takes no changes or cannot merge them |
//! | `/metrics` | Prometheus text |
//!
//! Beside `query`, `default-graph-uri` and `named-graph-uri`, a query takes these parameters:
//!
//! - `timeout`: seconds, `1.5` or `1.5s`, or `250ms`; never more than the server's maximum. Zero
//!   is the server's default.
//! - `format` (or `output`, `results`): `json`, `xml`, `csv`, `tsv`, `table`; for graphs `ttl`,
//!   `nt`, `rdf`, `jsonld`, `trig`, `nq`, or a media type; goes before the `Accept` header. The first
//!   that the form of the query can be given in counts, and the header where there is none: clients
//!   send in these parameters what is of use to other servers, whatever the query is.
//! - `explain=true`: the plan as text, without running it.
//! - `union-default-graph=true`: the default graph of a query without a dataset clause is the union
//!   of all graphs, the stored default graph included; `false` is the stored one, whatever the
//!   server's settings say.
//! - `profile=true`: SELECT in JSON only; the profile is the document's last member, `"profile"`,
//!   a string. Anything else is refused with 400.
//!
//! A light query is answered by the thread that read its request, in one write, with its length.
//! One that proves long ([`ServerConfig::inline_budget`]) starts over on a thread of its own,
//! which nothing has seen yet, and its results are streamed. Only so many heavy queries compute at
//! once, on threads that run
//! only when a core is idle ([`ServerConfig::heavy_priority`]); more wait for their turn, and light ones wait for none of
//! them. A heavy query whose client does not read gives its turn away until it does.
//!
//! A query with `SERVICE` makes the server call other endpoints, which it does only as far as
//! [`ServerConfig::services`] allows, and never on the thread that read the request.
//!
//! A body may be compressed by gzip, zstd or br (`Content-Encoding`), and a document for the graph store by
//! gzip or zstd without a header; what counts is how long it is then: a document for the graph store may be as large as temporary files of the database may, any other
//! body as [`ServerConfig::max_body_bytes`]; 413 names the option that raises the limit.
//!
//! Where credentials are known ([`AccessPolicy::Known`]), a client says who it is by HTTP Basic or a Bearer token.
//! To read needs the role `read`, to change data or feed a stream `write`, all else `admin`; `/health` is open,
//! and who has the id of a query may end it with `read`.
//! 401 asks for credentials, 403 names the role that is missing, and 429 with `Retry-After` is for an address
//! with too many wrong tries or requests.
//!
//! What went wrong is a line of plain text, or a document of RFC 9457 where `Accept` names
//! `application/problem+json` (with `line`, `column` where it is known, and perhaps a `hint` about a text that
//! is wrong): 400 for a query that is wrong (`line 3, column 14: ...`), 501 for what the engine lacks, 504 when the time is up, 422 when the result has too many
//! rows, 409 when somebody ended the query, 403 for an endpoint that may not be called, 502 for one
//! that does not answer, 503 when the query needs too much memory or too large temporary files, 507
//! when the server's disk has no room for these, and 503 with `Retry-After` when
//! the server has too much to do, other queries have its memory, or it stops. Once results are under way an
//! error cuts the connection before the last chunk, so that no client takes a part for the whole;
//! `/queries/{id}` then says what it was. The id is in the header `Jindou-Query-Id` of each answer.
//! A client that goes away cancels its query; one that has only ended its sending side gets its
//! answer, and perhaps `100 Continue` before it, which is how it is told from one that is gone.
//!
//! An update takes `using-graph-uri`, `using-named-graph-uri`, `union-default-graph` (for its WHERE
//! clauses; what it changes is the stored default graph) and `timeout`. What changed the
//! database answers 204, or 201 where a graph was made, once it is on the device; the headers
//! `Jindou-Inserted`, `Jindou-Deleted` and `Jindou-Snapshot` say what was done. Until it is
//! written it can be ended as a query can, and has then changed nothing. Beside the statuses above:
//! 404 for a graph that is absent, 409 for CREATE of one that is there, 403 for a LOAD that the
//! settings do not allow, for a page of another origin, and for a server that is to read only, 400
//! with the line for RDF that is wrong, 415 for a format that is not read, 413 for too much of it,
//! and 503 while the store takes nothing, as when its disk is full.
//!
//! Tuples of a stream are `text/tab-separated-values`, lines of a time in milliseconds, a tab and a
//! statement; or a document of RDF, whose time is the parameter `time` unless the stream has times of
//! arrival. All of a request are taken or none: 200 with how many came in time and how many late, 400
//! for what is wrong, 404 for a stream that is not there, and 503 with `Retry-After` where its windows
//! have no room. Results of a continuous query are events `result` (or `error`, where one failed) with
//! the id `INSTANT:SEQUENCE`; the header `Last-Event-ID`, or the parameter `after` with a number, has
//! them go on after one that was seen. Their data is the object of SPARQL results with `query`,
//! `instant`, `windows`, `snapshot`, `sequence`, and `missed` where the client was too slow for some;
//! of CONSTRUCT it has `triples`, a string of N-Triples. An event `end` says that the query was
//! dropped. What makes, feeds or drops anything is allowed to whom updates are. Both are there as
//! WebSockets, too. docs/streams.md has all formats of tuples.
#![forbid(unsafe_code)]

mod access;
mod access_log;
mod admission;
mod apart;
mod body;
mod broker_metrics;
mod buckets;
mod choice;
mod cluster;
mod cluster_metrics;
pub mod cluster_told;
mod config;
mod connections;
mod credentials;
mod decode;
mod delta;
mod description;
mod elsewhere;
mod error;
mod events;
mod execute;
mod files;
mod graph_store;
mod heavy_texts;
mod log;
mod memory;
mod metered;
mod metrics;
mod metrics_now;
mod multipart;
mod operation;
mod origin;
mod pieces;
mod prefixes;
mod presence;
mod process_metrics;
mod protocol;
mod proxy;
mod queries;
mod receive;
mod reread;
mod respond;
mod result_columns;
mod result_request;
mod route;
mod sender;
mod server;
mod service;
mod sinks;
mod slow_queries;
mod spool;
mod stall;
mod stopping;
mod strain;
mod stream;
mod streams;
mod threads;
mod ticker;
mod tls;
mod tries;
mod update;
mod vocals;
mod watched;
mod websocket;
mod wire;

pub use config::{AccessPolicy, Cors, ServerConfig};
pub use credentials::{
    Credentials, CredentialsError, NoRole, Role, check_name, hash_password, new_token,
};
pub use error::ServerError;
pub use files::{read_bounded, room_for_connections};
pub use jindou_brokers::BrokerPolicy;
pub use log::{Log, LogFormat, LogTarget};
pub use memory::MemoryLimits;
pub use proxy::{NodeUrl, NodeUrlError, NodesFound, Proxy, ProxyConfig};
pub use reread::{Reread, RereadFiles};
pub use server::Server;
pub use slow_queries::SlowQueries;
pub use threads::{HeavyPriority, runtime};
pub use tls::{Tls, TlsError};
