//! Which seven queries does the literature run on this data?
//!
//! They are those of M. Atre et al., "Matrix 'Bit' loaded" (WWW 2010), as the papers on graph
//! exploration use them. No inference: classes are matched as stated. q1, q2, q3 and q7 are
//! heavy (they touch much of the graph), q4, q5 and q6 start from one constant and are light.

macro_rules! query {
    ($body:literal) => {
        concat!(
            "PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>\n",
            "PREFIX ub: <http://swat.cse.lehigh.edu/onto/univ-bench.owl#>\n",
            $body
        )
    };
}
pub(super) use query;

/// Name and text of each query.
///
/// With seed 0, q4 and q5 have 10 rows and q6 has 125, whatever the number of universities.
pub const QUERIES: [(&str, &str); 7] = [
    ("q1", Q1),
    ("q2", Q2),
    ("q3", Q3),
    ("q4", Q4),
    ("q5", Q5),
    ("q6", Q6),
    ("q7", Q7),
];

/// The names of the heavy queries: the other part of a mixed load, of equal weights.
pub const HEAVY: [&str; 4] = ["q1", "q2", "q3", "q7"];

const Q1: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
  ?Y rdf:type ub:University .
  ?X ub:undergraduateDegreeFrom ?Y .
  ?X rdf:type ub:GraduateStudent .
  ?X ub:memberOf ?Z .
  ?Z ub:subOrganizationOf ?Y .
  ?Z rdf:type ub:Department .
}
"
);

const Q2: &str = query!(
    "SELECT ?X ?Y WHERE {
  ?X rdf:type ub:Course .
  ?X ub:name ?Y .
}
"
);

const Q3: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
  ?X ub:undergraduateDegreeFrom ?Y .
  ?X rdf:type ub:UndergraduateStudent .
  ?X ub:memberOf ?Z .
  ?Z rdf:type ub:Department .
  ?Z ub:subOrganizationOf ?Y .
  ?Y rdf:type ub:University .
}
"
);

const Q4: &str = query!(
    "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {
  ?X ub:worksFor <http://www.Department0.University0.edu> .
  ?X rdf:type ub:FullProfessor .
  ?X ub:name ?Y1 .
  ?X ub:emailAddress ?Y2 .
  ?X ub:telephone ?Y3 .
}
"
);

const Q5: &str = query!(
    "SELECT ?X WHERE {
  ?X ub:subOrganizationOf <http://www.Department0.University0.edu> .
  ?X rdf:type ub:ResearchGroup .
}
"
);

const Q6: &str = query!(
    "SELECT ?X ?Y WHERE {
  ?Y ub:subOrganizationOf <http://www.University0.edu> .
  ?Y rdf:type ub:Department .
  ?X ub:worksFor ?Y .
  ?X rdf:type ub:FullProfessor .
}
"
);

const Q7: &str = query!(
    "SELECT ?X ?Y ?Z WHERE {
  ?Y rdf:type ub:FullProfessor .
  ?X ub:advisor ?Y .
  ?X rdf:type ub:UndergraduateStudent .
  ?X ub:takesCourse ?Z .
  ?Z rdf:type ub:Course .
  ?Y ub:teacherOf ?Z .
}
"
);
