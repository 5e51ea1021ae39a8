//! Basic graph patterns: stars, chains and cycles.

use crate::operators::catalogue::DataSet::{Lubm, Ssb, Watdiv};
use crate::operators::catalogue::Family::{Chain, Cyclic, Star};
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        Star,
        Lubm,
        "star of 6 at a type",
        "SELECT ?x ?name ?mail ?d ?a ?u WHERE {
           ?x rdf:type ub:GraduateStudent ; ub:name ?name ; ub:emailAddress ?mail ;
              ub:memberOf ?d ; ub:advisor ?a ; ub:undergraduateDegreeFrom ?u }",
    ),
    Query::new(
        Star,
        Ssb,
        "star of 6 columns",
        "SELECT ?lo ?c ?p ?su ?d ?r ?q WHERE {
           ?lo s:lo_custkey ?c ; s:lo_partkey ?p ; s:lo_suppkey ?su ; s:lo_orderdate ?d ;
               s:lo_revenue ?r ; s:lo_quantity ?q }",
    ),
    Query::new(
        Star,
        Ssb,
        "star with constants",
        "SELECT ?lo ?r ?d WHERE {
           ?lo s:lo_discount 5 ; s:lo_tax 3 ; s:lo_revenue ?r ; s:lo_orderdate ?d }",
    ),
    Query::new(
        Star,
        Watdiv,
        "star of products of lists",
        "SELECT ?v0 WHERE {
           ?v0 wsdbm:likes ?v1 ; wsdbm:friendOf ?v2 ; dc:Location ?v3 ; foaf:age ?v4 ;
               wsdbm:gender ?v5 ; foaf:givenName ?v6 }",
    ),
    Query::new(
        Chain,
        Lubm,
        "chain of 3 over all",
        "SELECT ?x ?a ?d ?u WHERE {
           ?x ub:advisor ?a . ?a ub:worksFor ?d . ?d ub:subOrganizationOf ?u }",
    ),
    Query::new(
        Chain,
        Lubm,
        "chain of 4 from a constant",
        "SELECT ?d ?x ?p ?n WHERE {
           ?d ub:subOrganizationOf u0: . ?x ub:worksFor ?d .
           ?p ub:publicationAuthor ?x . ?p ub:name ?n }",
    ),
    Query::new(
        Chain,
        Watdiv,
        "chain of 3 that grows",
        "SELECT ?a ?b ?c ?g WHERE {
           ?a wsdbm:follows ?b . ?b wsdbm:likes ?c . ?c wsdbm:hasGenre ?g }",
    ),
    Query::new(
        Chain,
        Ssb,
        "snowflake",
        "SELECT ?lo ?cn ?y WHERE {
           ?lo s:lo_suppkey ?su ; s:lo_custkey ?c ; s:lo_orderdate ?d .
           ?su s:s_region \"ASIA\" . ?c s:c_nation ?cn . ?d s:d_year ?y }",
    ),
    Query::new(
        Cyclic,
        Lubm,
        "triangle of advisor and course",
        "SELECT ?x ?a ?c WHERE {
           ?x ub:advisor ?a . ?a ub:teacherOf ?c . ?x ub:takesCourse ?c }",
    ),
    Query::new(
        Cyclic,
        Lubm,
        "triangle of degree and department",
        "SELECT ?x ?u ?d WHERE {
           ?x ub:undergraduateDegreeFrom ?u . ?x ub:memberOf ?d . ?d ub:subOrganizationOf ?u .
           ?x rdf:type ub:GraduateStudent }",
    ),
    Query::new(
        Cyclic,
        Lubm,
        "square of department and course",
        "SELECT ?x ?d ?a ?c WHERE {
           ?x ub:memberOf ?d . ?a ub:worksFor ?d . ?a ub:teacherOf ?c . ?x ub:takesCourse ?c }",
    ),
    Query::new(
        Cyclic,
        Watdiv,
        "triangle of friends",
        "SELECT ?a ?b ?c WHERE {
           ?a wsdbm:friendOf ?b . ?b wsdbm:friendOf ?c . ?c wsdbm:friendOf ?a }",
    ),
    Query::new(
        Cyclic,
        Watdiv,
        "square of friends and likes",
        "SELECT ?a ?b ?c ?p WHERE {
           ?a wsdbm:friendOf ?b . ?b wsdbm:likes ?p . ?c wsdbm:likes ?p .
           ?a wsdbm:friendOf ?c }",
    ),
];
