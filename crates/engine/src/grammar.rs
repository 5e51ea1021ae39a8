//! What of a text is wrong that any database would say is? For whoever has none, and passes on what is right.

use jindou_plan::PlanError;

use crate::error::EngineError;

/// Whether a text follows its grammar.
#[derive(Debug)]
pub enum Grammar {
    /// It does. There may be more that is wrong with it.
    Right,
    /// It does not: a database says the same.
    Wrong(EngineError),
    /// A database may know more: what a prefix stands for that the text does not declare, or it has more memory.
    Unknown,
}

/// Parses the text of a query, with at most so much memory for its tree. Costs some ten nanoseconds for each token.
///
/// ```
/// use jindou_engine::{Grammar, check_query};
///
/// let Grammar::Wrong(error) = check_query("SELCT * {}", None, 1 << 20) else {
///     unreachable!("it is misspelt")
/// };
/// assert!(error.to_string().starts_with("line 1, column 1: "));
/// assert!(matches!(check_query("ASK { ?s ?p ?o }", None, 1 << 20), Grammar::Right));
/// ```
#[must_use]
pub fn check_query(text: &str, base: Option<&str>, most_bytes: usize) -> Grammar {
    Grammar::of(jindou_plan::check_query(text, base, most_bytes))
}

/// The same of an update.
#[must_use]
pub fn check_update(text: &str, base: Option<&str>, most_bytes: usize) -> Grammar {
    Grammar::of(jindou_plan::check_update(text, base, most_bytes))
}

impl Grammar {
    fn of(checked: Result<(), PlanError>) -> Self {
        match checked {
            Ok(()) => Self::Right,
            // The base is another one where a server has another name.
            Err(
                PlanError::MemoryRefused
                | PlanError::Interrupted
                | PlanError::NoStack(_)
                | PlanError::Base { .. },
            ) => Self::Unknown,
            Err(PlanError::Syntax { ref message, .. })
                if jindou_syntax::undeclared_prefix(message).is_some() =>
            {
                Self::Unknown
            }
            Err(error) => Self::Wrong(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use oxrdf::NamedNode;

    use super::*;
    use crate::{Database, QueryOptions, UpdateOptions};

    const BASE: &str = "http://e/query";
    const PLENTY: usize = 1 << 20;

    fn wrong(checked: Grammar, text: &str) -> String {
        match checked {
            Grammar::Wrong(error) => error.to_string(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_wrong_is_what_a_database_says() {
        let database = Database::new();
        let base = Some(NamedNode::new_unchecked(BASE));
        for text in [
            "SELCT * {}",
            "SELECT * {\n ?s ?p }",
            "SELECT ?a (1 AS ?a) {}",
            "ASK { <http://e/ a> ?p 1 }",
            "ASK { ?s ?p \"x }",
            "INSERT DATA { <a> <b> 1 }",
            "",
        ] {
            let options = QueryOptions {
                base: base.clone(),
                ..QueryOptions::default()
            };
            let said = database.query_with(text, options).expect_err(text);
            let checked = check_query(text, Some(BASE), PLENTY);
            assert_eq!(wrong(checked, text), said.to_string(), "{text}");
        }
        for text in ["INSERT DATA { <a> <b> }", "ASK {}", "DELETE { ?a } WHERE"] {
            let options = UpdateOptions {
                base: base.clone(),
                ..UpdateOptions::default()
            };
            let said = database.update_with(text, options).expect_err(text);
            let checked = check_update(text, Some(BASE), PLENTY);
            assert_eq!(wrong(checked, text), said.to_string(), "{text}");
        }
    }

    #[test]
    fn what_a_database_may_know_more_of_is_left_to_it() {
        for text in ["ASK { ?a foaf:knows ?b }", "SELECT (ex:f(1) AS ?a) {}"] {
            let checked = check_query(text, None, PLENTY);
            assert!(matches!(checked, Grammar::Unknown), "{text}: {checked:?}");
        }
        let checked = check_query("ASK { ?s ?p ?o }", None, 0);
        assert!(matches!(checked, Grammar::Unknown), "{checked:?}");
        let checked = check_update("CLEAR ALL", Some(BASE), PLENTY);
        assert!(matches!(checked, Grammar::Right), "{checked:?}");
    }
}
