//! Is what comes to an endpoint of SPARQL a query or an update?
//!
//! Every endpoint takes both: clients that know one address send both to it. What a POST is, its media
//! type says, or which parameter its form has; what comes by GET is a query.

use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use jindou_engine::Reservation;

use crate::error::Refusal;
use crate::protocol::{Parameters, UpdateParameters, names, without_mark};
use crate::service::{Service, content_type, media_type};

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Operation {
    Query(Parameters),
    Update(UpdateParameters),
}

impl Operation {
    /// What the parameters of a URL and of a form say together.
    pub(crate) fn of_form(encoded: &str, form: &str) -> Result<Self, Refusal> {
        if names(encoded, "update") || names(form, "update") {
            let mut update = UpdateParameters::default();
            update.add(encoded)?;
            update.add(form)?;
            return Ok(Self::Update(update));
        }
        let mut query = Parameters::default();
        query.add(encoded)?;
        query.add(form)?;
        match query.query {
            Some(_) => Ok(Self::Query(query)),
            None => Err(Refusal::bad_request(
                "the parameter query is missing, or update for an update",
            )),
        }
    }

    /// The query of a URL.
    pub(crate) fn of_url(encoded: &str) -> Result<Self, Refusal> {
        if names(encoded, "update") {
            let message = "an update is sent by POST, as the parameter update of a form or as \
                           application/sparql-update";
            return Err(Refusal {
                allow: Some("POST, OPTIONS"),
                ..Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message)
            });
        }
        let mut query = Parameters::default();
        query.add(encoded)?;
        match query.query {
            Some(_) => Ok(Self::Query(query)),
            None => Err(Refusal::bad_request("the parameter query is missing")),
        }
    }

    /// The same with its text, which is a body.
    pub(crate) fn with_text(mut self, text: String) -> Result<Self, Refusal> {
        match &mut self {
            Self::Query(parameters) => set_text(&mut parameters.query, text, "query")?,
            Self::Update(parameters) => set_text(&mut parameters.update, text, "update")?,
        }
        Ok(self)
    }
}

impl Service {
    /// Reads a POST; gives the reservation of what is kept of it, too.
    pub(crate) async fn receive_operation(
        &self,
        request: Request<Incoming>,
    ) -> Result<(Operation, Option<Reservation>), Refusal> {
        let encoded = request.uri().query().unwrap_or_default().to_owned();
        let kind = media_type(&content_type(request.headers())?);
        // What the URL says is looked at before anything is read.
        match Posted::of(&kind, &encoded)? {
            Posted::Form => {
                self.receive_form(request, |form| Operation::of_form(&encoded, form))
                    .await
            }
            Posted::Text(operation) => {
                let (text, memory) = self.receive_text(request).await?;
                Ok((operation.with_text(text)?, memory))
            }
        }
    }
}

/// What a POST is, by its head.
pub(crate) enum Posted {
    /// A form, whose parameters say what it is.
    Form,
    /// A text, with what the URL says of it.
    Text(Operation),
}

impl Posted {
    /// By its media type and the parameters of its URL.
    pub(crate) fn of(kind: &str, encoded: &str) -> Result<Self, Refusal> {
        match kind {
            "application/x-www-form-urlencoded" => Ok(Self::Form),
            "application/sparql-query" => {
                let mut query = Parameters::default();
                query.add(encoded)?;
                Ok(Self::Text(Operation::Query(query)))
            }
            "application/sparql-update" => {
                let mut update = UpdateParameters::default();
                update.add(encoded)?;
                Ok(Self::Text(Operation::Update(update)))
            }
            _ => Err(Refusal::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "a POST here is application/sparql-query, application/sparql-update or \
                 application/x-www-form-urlencoded",
            )),
        }
    }
}

/// Sets the text that is a body, which may not be in the URL, too.
fn set_text(place: &mut Option<String>, text: String, what: &str) -> Result<(), Refusal> {
    match place.replace(without_mark(text)) {
        None => Ok(()),
        Some(_) => Err(Refusal::bad_request(format!(
            "the {what} is given in the URL and in the body"
        ))),
    }
}

/// What is said of a text that is wrong, which was sent as a query.
pub(crate) fn refused_query(is_update: bool, refusal: Refusal) -> Refusal {
    match is_update && refusal.status == StatusCode::BAD_REQUEST {
        true => refusal.with_advice(
            "an update is sent as the parameter update, or as application/sparql-update",
        ),
        false => refusal,
    }
}

/// What is said of a text that is wrong, which was sent as an update.
pub(crate) fn refused_update(is_query: bool, refusal: Refusal) -> Refusal {
    match is_query && refusal.status == StatusCode::BAD_REQUEST {
        true => refusal.with_advice(
            "this is a query; it is sent as the parameter query, or as application/sparql-query",
        ),
        false => refusal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_what_its_parameters_say() {
        let of = |encoded, form| Operation::of_form(encoded, form);
        assert!(matches!(
            of("", "query=ASK+%7B%7D"),
            Ok(Operation::Query(_))
        ));
        assert!(matches!(
            of("query=a", "timeout=1"),
            Ok(Operation::Query(_))
        ));
        assert!(matches!(of("", "a=b&update=c"), Ok(Operation::Update(_))));
        assert!(matches!(
            of("update=c", "format=json"),
            Ok(Operation::Update(_))
        ));
        for (encoded, form) in [
            ("", ""),
            ("a=b", "c=d"),
            ("query=a", "update=b"),
            ("", "update=b&query=a"),
            ("update=a", "update=b"),
        ] {
            let refusal = of(encoded, form).expect_err(form);
            assert_eq!(refusal.status, StatusCode::BAD_REQUEST, "{encoded} {form}");
        }
        let refusal = Operation::of_url("update=CLEAR+ALL").expect_err("it is no POST");
        assert!(refusal.message.contains("POST"));
    }
}
