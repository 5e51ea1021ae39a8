//! What is a query of the operator benchmark, and which are there?

use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::queries;

/// What a query is heavy in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Family {
    /// Rows and counts of one triple pattern, by what it leaves open.
    Scan,
    /// Joins on one subject.
    Star,
    /// Joins from object to subject.
    Chain,
    /// Triangles and squares.
    Cyclic,
    /// OPTIONAL.
    Optional,
    /// MINUS.
    Minus,
    /// EXISTS and NOT EXISTS.
    Exists,
    /// UNION.
    Union,
    /// VALUES and BIND.
    Values,
    /// Filters on numbers.
    FilterNumber,
    /// Filters on dates.
    FilterDate,
    /// Filters on languages.
    FilterLanguage,
    /// Regular expressions and functions of strings.
    FilterString,
    /// DISTINCT.
    Distinct,
    /// GROUP BY with each aggregate.
    Group,
    /// ORDER BY with and without LIMIT.
    Order,
    /// Property paths of each form.
    Path,
    /// Subqueries.
    Subquery,
    /// CONSTRUCT.
    Construct,
    /// All triples, as rows and as a graph.
    Export,
    /// The thirteen queries of the Star Schema Benchmark.
    Ssb,
}

impl Family {
    /// All, in the order in which they are printed.
    pub const ALL: [Self; 21] = [
        Self::Scan,
        Self::Star,
        Self::Chain,
        Self::Cyclic,
        Self::Optional,
        Self::Minus,
        Self::Exists,
        Self::Union,
        Self::Values,
        Self::FilterNumber,
        Self::FilterDate,
        Self::FilterLanguage,
        Self::FilterString,
        Self::Distinct,
        Self::Group,
        Self::Order,
        Self::Path,
        Self::Subquery,
        Self::Construct,
        Self::Export,
        Self::Ssb,
    ];

    /// Its name on the command line and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scan => "scan",
            Self::Star => "star",
            Self::Chain => "chain",
            Self::Cyclic => "cyclic",
            Self::Optional => "optional",
            Self::Minus => "minus",
            Self::Exists => "exists",
            Self::Union => "union",
            Self::Values => "values",
            Self::FilterNumber => "filter-number",
            Self::FilterDate => "filter-date",
            Self::FilterLanguage => "filter-language",
            Self::FilterString => "filter-string",
            Self::Distinct => "distinct",
            Self::Group => "group",
            Self::Order => "order",
            Self::Path => "path",
            Self::Subquery => "subquery",
            Self::Construct => "construct",
            Self::Export => "export",
            Self::Ssb => "ssb",
        }
    }
}

impl Display for Family {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Family {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|family| family.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such family; there are {names}")
        })
    }
}

/// What a query is asked of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataSet {
    /// The Lehigh University Benchmark, generated.
    Lubm,
    /// WatDiv, scale 1.
    Watdiv,
    /// The Star Schema Benchmark as RDF, with dates, times and labels in several languages added.
    Ssb,
}

impl DataSet {
    /// All, in the order in which they are measured.
    pub const ALL: [Self; 3] = [Self::Lubm, Self::Watdiv, Self::Ssb];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lubm => "lubm",
            Self::Watdiv => "watdiv",
            Self::Ssb => "ssb",
        }
    }

    /// The prefixes that its queries are written with.
    #[must_use]
    pub const fn prefixes(self) -> &'static str {
        match self {
            Self::Lubm => queries::LUBM_PREFIXES,
            Self::Watdiv => queries::WATDIV_PREFIXES,
            Self::Ssb => queries::SSB_PREFIXES,
        }
    }
}

impl FromStr for DataSet {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|data| data.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such data set; there are {names}")
        })
    }
}

/// What two right answers of a query have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// The same rows, in any order.
    Rows,
    /// The same rows in the same order.
    Sequence,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Its name, of which there is one.
    pub name: Cow<'static, str>,
    /// What it is heavy in.
    pub family: Family,
    /// What it is asked of.
    pub data: DataSet,
    /// What is compared.
    pub check: Check,
    /// Its text; the data set's prefixes come before it.
    pub text: Cow<'static, str>,
}

impl Query {
    pub(super) const fn new(
        family: Family,
        data: DataSet,
        name: &'static str,
        text: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            family,
            data,
            check: Check::Rows,
            text: Cow::Borrowed(text),
        }
    }

    /// A query whose rows come in one order only.
    pub(super) const fn in_order(
        family: Family,
        data: DataSet,
        name: &'static str,
        text: &'static str,
    ) -> Self {
        Self {
            name: Cow::Borrowed(name),
            family,
            data,
            check: Check::Sequence,
            text: Cow::Borrowed(text),
        }
    }

    /// The whole text, prefixes included.
    #[must_use]
    pub fn full_text(&self) -> String {
        format!("{}{}", self.data.prefixes(), self.text)
    }
}

/// The queries that this program holds: all but those of [`Family::Ssb`], which come with the
/// data.
pub fn held() -> impl Iterator<Item = &'static Query> {
    queries::ALL.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_unique_and_families_read_back() {
        let mut seen = HashSet::new();
        for query in held() {
            assert!(seen.insert(&query.name), "{} is there twice", query.name);
        }
        for family in Family::ALL {
            assert_eq!(family.name().parse(), Ok(family));
        }
        assert!("joins".parse::<Family>().is_err());
    }

    #[test]
    fn every_family_has_queries() {
        for family in Family::ALL {
            let held = held().filter(|query| query.family == family).count();
            assert_eq!(held == 0, family == Family::Ssb, "{family}");
        }
    }

    #[test]
    fn every_query_is_accepted_by_the_engine() {
        let database = jindou_engine::Database::new();
        for query in held() {
            if let Err(error) = database.explain(&query.full_text()) {
                panic!("{}: {error}", query.name);
            }
        }
    }
}
