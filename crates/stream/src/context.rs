//! Is this the context of a stream's plain JSON, with all that it says in it?
//!
//! Contexts of JSON-LD may refer to others by their addresses, which are never fetched. What else is
//! wrong with a context is for the parser of JSON-LD to say.

use serde_json::Value;

use crate::definition::DefinitionError;

/// Refuses what is no context, and one that refers to what is elsewhere.
///
/// # Errors
/// [`DefinitionError::NoContext`], [`DefinitionError::RemoteContext`].
pub(crate) fn check_context(context: &Value) -> Result<(), DefinitionError> {
    match context {
        Value::Object(_) => check_part(context),
        Value::Array(parts) if !parts.is_empty() => parts.iter().try_for_each(check_part),
        Value::String(reference) => Err(remote(reference)),
        _ => Err(DefinitionError::NoContext),
    }
}

/// A context within an array, or within the definition of a term.
fn check_part(context: &Value) -> Result<(), DefinitionError> {
    let terms = match context {
        Value::Object(terms) => terms,
        Value::String(reference) => return Err(remote(reference)),
        // It takes back what contexts around it say.
        Value::Null => return Ok(()),
        _ => return Err(DefinitionError::NoContext),
    };
    for (term, definition) in terms {
        match (&**term, definition) {
            ("@import", Value::String(reference)) => return Err(remote(reference)),
            (_, Value::Object(members)) => match members.get("@context") {
                Some(Value::Array(parts)) => parts.iter().try_for_each(check_part)?,
                Some(scoped) => check_part(scoped)?,
                None => {}
            },
            _ => {}
        }
    }
    Ok(())
}

fn remote(reference: &str) -> DefinitionError {
    DefinitionError::RemoteContext {
        reference: reference.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_context_says_all_itself() {
        for context in [
            json!({ "p": "http://e/p" }),
            json!([{ "@vocab": "http://e/" }, null, { "p": { "@id": "http://e/p", "@context": {} } }]),
        ] {
            assert_eq!(check_context(&context), Ok(()), "{context}");
        }
        for context in [
            json!("http://elsewhere/c"),
            json!([{}, "http://elsewhere/c"]),
            json!({ "@import": "http://elsewhere/c" }),
            json!({ "p": { "@id": "http://e/p", "@context": "http://elsewhere/c" } }),
            json!({ "p": { "@context": [{ "q": { "@context": "http://elsewhere/c" } }] } }),
        ] {
            assert_eq!(check_context(&context), Err(remote("http://elsewhere/c")));
        }
        for context in [json!(1), json!([]), json!([7]), json!(true), Value::Null] {
            assert_eq!(check_context(&context), Err(DefinitionError::NoContext));
        }
    }
}
