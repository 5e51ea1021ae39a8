//! Whole queries within queries, graphs as results, and everything at once.

use crate::operators::catalogue::DataSet::{Lubm, Ssb, Watdiv};
use crate::operators::catalogue::Family::{Construct, Export, Subquery};
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        Subquery,
        Lubm,
        "groups joined",
        "SELECT ?a ?c ?n WHERE {
           { SELECT ?c (COUNT(*) AS ?n) WHERE { ?x ub:takesCourse ?c } GROUP BY ?c }
           ?a ub:teacherOf ?c FILTER(?n > 40) }",
    ),
    Query::new(
        Subquery,
        Lubm,
        "distinct joined",
        "SELECT ?a ?m WHERE {
           { SELECT DISTINCT ?a WHERE { ?x ub:advisor ?a } } ?a ub:emailAddress ?m }",
    ),
    Query::new(
        Subquery,
        Ssb,
        "largest joined",
        "SELECT ?lo ?r ?name WHERE {
           { SELECT ?lo ?r WHERE { ?lo s:lo_revenue ?r } ORDER BY DESC(?r) ?lo LIMIT 100 }
           ?lo s:lo_custkey ?c . ?c s:c_name ?name }",
    ),
    Query::new(
        Subquery,
        Ssb,
        "largest of each group",
        "SELECT ?c ?lo ?m WHERE {
           { SELECT ?c (MAX(?r) AS ?m)
             WHERE { ?l s:lo_custkey ?c ; s:lo_revenue ?r } GROUP BY ?c }
           ?lo s:lo_custkey ?c ; s:lo_revenue ?m }",
    ),
    Query::new(
        Construct,
        Lubm,
        "construct one a row",
        "CONSTRUCT { ?c ub:hasStudent ?x } WHERE { ?x ub:takesCourse ?c }",
    ),
    Query::new(
        Construct,
        Lubm,
        "construct three a row",
        "CONSTRUCT { ?x ub:label ?n . ?x ub:in ?d . ?d ub:has ?x }
         WHERE { ?x ub:memberOf ?d ; ub:name ?n }",
    ),
    Query::new(
        Construct,
        Lubm,
        "construct with repeats",
        "CONSTRUCT { ?d ub:teaches ?c } WHERE { ?x ub:memberOf ?d ; ub:takesCourse ?c }",
    ),
    Query::new(
        Export,
        Lubm,
        "export rows, lubm",
        "SELECT * WHERE { ?s ?p ?o }",
    ),
    Query::new(
        Export,
        Lubm,
        "export graph, lubm",
        "CONSTRUCT WHERE { ?s ?p ?o }",
    ),
    Query::new(
        Export,
        Watdiv,
        "export rows, watdiv",
        "SELECT * WHERE { ?s ?p ?o }",
    ),
    Query::new(
        Export,
        Ssb,
        "export rows, ssb",
        "SELECT * WHERE { ?s ?p ?o }",
    ),
    Query::new(
        Export,
        Ssb,
        "export graph, ssb",
        "CONSTRUCT WHERE { ?s ?p ?o }",
    ),
];
