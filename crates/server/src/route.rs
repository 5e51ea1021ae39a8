//! What is a request about?
//!
//! A path is parsed here, once a request: what it needs ([`crate::access::needed`]), which methods it takes
//! and who answers it are all decided by the [`Route`] that comes of that, so that they cannot read one path
//! in two ways.

use crate::cluster;
use crate::graph_store;
use crate::prefixes;
use crate::streams::Endpoint;

/// The list of queries under way; a query's id may follow.
pub(crate) const QUERIES: &str = "/queries";

const READ: &str = "GET, HEAD, OPTIONS";
/// Of endpoints of SPARQL, each of which takes queries and updates.
const SPARQL: &str = "GET, HEAD, POST, OPTIONS";
const RUNNING: &str = "GET, HEAD, DELETE, OPTIONS";

/// What a path names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The page to try queries, which is an endpoint of SPARQL, too.
    Home,
    /// Another endpoint of SPARQL.
    Sparql,
    Health,
    Metrics,
    /// The page of streams.
    Live,
    /// The nodes of the cluster.
    Cluster,
    Prefixes,
    /// The graph store, or a graph that is named by its own URL.
    Store,
    /// The list of queries under way.
    Queries,
    /// One of them, by what stands for its id.
    Query(String),
    /// Streams and continuous queries.
    Streams(Endpoint),
    Nothing,
}

impl Route {
    /// What a path names. One slash at the end of an endpoint without parts says nothing.
    pub(crate) fn of(path: &str) -> Self {
        if let Some(endpoint) = Endpoint::of(path) {
            return Self::Streams(endpoint);
        }
        if let Some(name) = below(path, QUERIES) {
            return match name {
                "" => Self::Queries,
                name => Self::Query(name.to_owned()),
            };
        }
        if below(path, graph_store::STORE).is_some() {
            return Self::Store;
        }
        match path.strip_suffix('/').unwrap_or(path) {
            "" => Self::Home,
            "/query" | "/sparql" | "/update" => Self::Sparql,
            "/health" => Self::Health,
            "/metrics" => Self::Metrics,
            "/live" => Self::Live,
            cluster::CLUSTER => Self::Cluster,
            prefixes::PREFIXES => Self::Prefixes,
            _ => Self::Nothing,
        }
    }

    /// The methods that it takes, as the header `Allow` has them.
    pub(crate) fn methods(&self) -> &'static str {
        match self {
            Self::Home | Self::Sparql => SPARQL,
            Self::Health | Self::Metrics | Self::Live | Self::Cluster | Self::Queries => READ,
            Self::Prefixes => prefixes::METHODS,
            Self::Store => graph_store::METHODS,
            Self::Query(_) => RUNNING,
            Self::Streams(endpoint) => endpoint.methods(),
            Self::Nothing => "",
        }
    }

    /// Whether it is about what others ask.
    pub(crate) fn is_about_queries(&self) -> bool {
        matches!(self, Self::Queries | Self::Query(_))
    }
}

/// What follows a name and a slash in a path: nothing where neither does.
fn below<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(name)?;
    match rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_one_thing() {
        let query = |name: &str| Route::Query(name.to_owned());
        for (paths, route) in [
            ("/", Route::Home),
            ("/query /query/ /sparql /update/", Route::Sparql),
            ("/health /health/", Route::Health),
            ("/metrics /metrics/", Route::Metrics),
            ("/live", Route::Live),
            ("/cluster /cluster/", Route::Cluster),
            ("/prefixes /prefixes/", Route::Prefixes),
            ("/store /store/ /store/a/b /store//", Route::Store),
            ("/queries /queries/", Route::Queries),
            ("/queries/1", query("1")),
            ("/queries//", query("/")),
            ("/queries///", query("//")),
            ("/queries/1/", query("1/")),
            ("/streams/", Route::Streams(Endpoint::Streams)),
            (
                "// /query// /queriesx /stores /stor /prefixes/a /streams/a/ /metrics//",
                Route::Nothing,
            ),
        ] {
            for path in paths.split(' ') {
                assert_eq!(Route::of(path), route, "{path}");
            }
        }
    }
}
