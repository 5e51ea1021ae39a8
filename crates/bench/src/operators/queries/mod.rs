//! The texts of the queries, by what they are heavy in.

mod filters;
mod forms;
mod grouping;
mod joins;
mod nesting;
mod paths;
mod scans;

use super::catalogue::Query;

/// All of them, in the order in which they are printed.
pub(super) const ALL: [&[Query]; 7] = [
    scans::QUERIES,
    joins::QUERIES,
    nesting::QUERIES,
    filters::QUERIES,
    grouping::QUERIES,
    paths::QUERIES,
    forms::QUERIES,
];

pub(super) const LUBM_PREFIXES: &str = "\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>
PREFIX u0: <http://www.University0.edu>
PREFIX d0: <http://www.Department0.University0.edu>
";

pub(super) const WATDIV_PREFIXES: &str = "\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX wsdbm: <http://db.uwaterloo.ca/~galuc/wsdbm/>
PREFIX foaf: <http://xmlns.com/foaf/>
PREFIX dc: <http://purl.org/dc/terms/>
PREFIX gr: <http://purl.org/goodrelations/>
PREFIX rev: <http://purl.org/stuff/rev#>
PREFIX og: <http://ogp.me/ns#>
PREFIX sorg: <http://schema.org/>
";

pub(super) const SSB_PREFIXES: &str = "\
PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>
PREFIX s: <http://example.org/ssb/schema#>
PREFIX x: <http://example.org/ssb/extra#>
";
