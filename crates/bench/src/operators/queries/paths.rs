//! Property paths, one form each.

use crate::operators::catalogue::DataSet::{Lubm, Watdiv};
use crate::operators::catalogue::Family::Path;
use crate::operators::catalogue::Query;

pub(super) const QUERIES: &[Query] = &[
    Query::new(
        Path,
        Lubm,
        "path sequence",
        "SELECT ?x ?u WHERE { ?x ub:advisor/ub:worksFor/ub:subOrganizationOf ?u }",
    ),
    // No one both works for and is a member of a department: no pair comes twice.
    Query::new(
        Path,
        Lubm,
        "path alternative",
        "SELECT ?x ?d WHERE { ?x ub:worksFor|ub:memberOf ?d }",
    ),
    Query::new(
        Path,
        Lubm,
        "path inverse",
        "SELECT ?a ?c WHERE { ?a ^ub:advisor/ub:takesCourse ?c }",
    ),
    Query::new(
        Path,
        Lubm,
        "path ?",
        "SELECT ?x ?y WHERE { ?x rdf:type ub:GraduateStudent . ?x ub:teachingAssistantOf? ?y }",
    ),
    Query::new(
        Path,
        Lubm,
        "path + over all",
        "SELECT ?x ?y WHERE { ?x ub:subOrganizationOf+ ?y }",
    ),
    Query::new(
        Path,
        Lubm,
        "path * to a constant",
        "SELECT ?x WHERE { ?x ub:subOrganizationOf* u0: }",
    ),
    Query::new(
        Path,
        Lubm,
        "path + within a join",
        "SELECT ?x ?n WHERE {
           ?x ub:memberOf/ub:subOrganizationOf+ u0: . ?x ub:name ?n }",
    ),
    // What is excluded may link a pair that something else links, too.
    Query::new(
        Path,
        Lubm,
        "path negated set",
        "SELECT ?x ?y WHERE {
           ?x !(rdf:type|ub:takesCourse|ub:name|ub:emailAddress|ub:telephone|ub:headOf|
                ub:mastersDegreeFrom|ub:doctoralDegreeFrom|ub:undergraduateDegreeFrom) ?y }",
    ),
    Query::new(
        Path,
        Watdiv,
        "path + from a constant",
        "SELECT ?x WHERE { wsdbm:User0 wsdbm:friendOf+ ?x }",
    ),
    Query::new(
        Path,
        Watdiv,
        "path * of an alternative",
        "SELECT ?x WHERE { wsdbm:User1 (wsdbm:friendOf|wsdbm:likes|^wsdbm:follows)* ?x }",
    ),
    Query::new(
        Path,
        Watdiv,
        "path + between constants",
        "ASK { wsdbm:User3 wsdbm:follows+ wsdbm:User77 }",
    ),
    Query::new(
        Path,
        Watdiv,
        "path + closure",
        "SELECT (COUNT(*) AS ?n) WHERE { ?x wsdbm:follows+ ?y }",
    ),
];
