//! Which classes and predicates does the data use, and what are their IRIs?

/// Namespace of the benchmark's ontology (`ub:`).
pub const UB: &str = "http://swat.cse.lehigh.edu/onto/univ-bench.owl#";

/// Declares an enum of ontology terms: the variant, its local name, and its IRI.
macro_rules! terms {
    ($(#[$doc:meta])* $name:ident, $count:ident { $($variant:ident => $namespace:tt $local:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "each variant is the ontology's term of that name")]
        pub enum $name { $($variant),+ }

        pub(super) const $count: usize = $name::ALL.len();

        impl $name {
            /// Every one, in declaration order.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The name after the namespace.
            pub const fn local_name(self) -> &'static str {
                match self { $($name::$variant => $local),+ }
            }

            /// The whole IRI.
            pub const fn iri(self) -> &'static str {
                match self { $($name::$variant => concat!(namespace!($namespace), $local)),+ }
            }
        }
    };
}

macro_rules! namespace {
    (ub) => {
        "http://swat.cse.lehigh.edu/onto/univ-bench.owl#"
    };
    (rdf) => {
        "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
    };
}

terms! {
    /// The classes that occur in the data.
    Class, CLASSES {
        University => ub "University",
        Department => ub "Department",
        FullProfessor => ub "FullProfessor",
        AssociateProfessor => ub "AssociateProfessor",
        AssistantProfessor => ub "AssistantProfessor",
        Lecturer => ub "Lecturer",
        UndergraduateStudent => ub "UndergraduateStudent",
        GraduateStudent => ub "GraduateStudent",
        TeachingAssistant => ub "TeachingAssistant",
        ResearchAssistant => ub "ResearchAssistant",
        Course => ub "Course",
        GraduateCourse => ub "GraduateCourse",
        Publication => ub "Publication",
        ResearchGroup => ub "ResearchGroup",
    }
}

terms! {
    /// The predicates that occur in the data.
    Predicate, PREDICATES {
        Type => rdf "type",
        Name => ub "name",
        SubOrganizationOf => ub "subOrganizationOf",
        TeacherOf => ub "teacherOf",
        UndergraduateDegreeFrom => ub "undergraduateDegreeFrom",
        MastersDegreeFrom => ub "mastersDegreeFrom",
        DoctoralDegreeFrom => ub "doctoralDegreeFrom",
        WorksFor => ub "worksFor",
        EmailAddress => ub "emailAddress",
        Telephone => ub "telephone",
        ResearchInterest => ub "researchInterest",
        HeadOf => ub "headOf",
        MemberOf => ub "memberOf",
        TakesCourse => ub "takesCourse",
        Advisor => ub "advisor",
        TeachingAssistantOf => ub "teachingAssistantOf",
        PublicationAuthor => ub "publicationAuthor",
    }
}
