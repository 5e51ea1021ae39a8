//! What endpoints answer to the queries of a SERVICE, as rows.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use jindou_model::TermId;
use jindou_plan::physical::{Service, Slot, Var};
use oxrdf::{BlankNode, Term};

use super::service::endpoint_iri;
use crate::context::{Booked, Context};
use crate::operator::Operator;
use crate::rows::RowSet;
use crate::service::{ServiceCall, ServiceNext, ServiceRows, Services};
use crate::table::{Table, VarSet};
use crate::{ExecError, ServiceError};

/// How long a call is waited for between two looks at whether the query goes on.
const WAIT: Duration = Duration::from_millis(20);

/// All that is asked of one endpoint.
pub(super) struct Ask {
    pub(super) endpoint: TermId,
    pub(super) requests: VecDeque<Request>,
}

/// One request.
pub(super) enum Request {
    /// For the rows of values with these numbers.
    For(Vec<usize>),
    /// For all solutions.
    Everything,
}

/// Why there are no more rows of an endpoint.
enum Failure {
    /// It failed, which a silent service does not mind.
    Service(ServiceError),
    /// The query met one of its own limits.
    Query(ExecError),
}

impl From<ServiceError> for Failure {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<ExecError> for Failure {
    fn from(error: ExecError) -> Self {
        Self::Query(error)
    }
}

/// The answers to all requests, one after the other.
pub(super) struct Fetch {
    asker: Asker,
    asks: VecDeque<Ask>,
    /// Of a service that is not silent.
    call: Option<(TermId, Call)>,
    /// Rows of a silent service, which count only once its endpoint has answered all requests.
    ready: VecDeque<(Table, Booked)>,
}

/// What is asked, and where rows go.
struct Asker {
    service: Arc<Service>,
    /// Places of the variables to send among the columns.
    sent: Vec<usize>,
    /// The endpoint and the values to send.
    values: RowSet,
    /// What the values take.
    booked: Booked,
    inner: VarSet,
    width: usize,
}

impl Fetch {
    pub(super) fn new(
        service: Arc<Service>,
        send: Vec<Var>,
        values: RowSet,
        asks: VecDeque<Ask>,
        inner: VarSet,
        width: usize,
    ) -> Self {
        let place = |var: &Var| {
            let place = service.columns.iter().position(|column| column == var);
            place.expect("what is sent is a column")
        };
        Self {
            asker: Asker {
                sent: send.iter().map(place).collect(),
                service,
                values,
                booked: Booked::default(),
                inner,
                width,
            },
            asks,
            call: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes over what is booked for the values.
    pub(super) fn booked(mut self, booked: Booked) -> Self {
        self.asker.booked = booked;
        self
    }

    /// The next rows of a service whose failure is the query's.
    fn next_loud(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            if let Some((endpoint, call)) = &mut self.call {
                let next = call.next(&self.asker, cx);
                match next.map_err(|failure| told(failure, *endpoint, cx))? {
                    Some(table) => return Ok(Some(table)),
                    None => self.call = None,
                }
            }
            let Some(ask) = self.asks.front_mut() else {
                return Ok(None);
            };
            let endpoint = ask.endpoint;
            match ask.requests.pop_front() {
                Some(request) => {
                    let call = self.asker.begin(endpoint, &request, cx);
                    let call = call.map_err(|failure| told(failure, endpoint, cx))?;
                    self.call = Some((endpoint, call));
                }
                None => {
                    self.asks.pop_front();
                }
            }
        }
    }

    /// The next rows of a silent service: where it fails, one that binds nothing.
    fn next_silent(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            if let Some((table, _paid)) = self.ready.pop_front() {
                return Ok(Some(table));
            }
            let Some(ask) = self.asks.pop_front() else {
                return Ok(None);
            };
            let endpoint = ask.endpoint;
            match self.asker.all(ask, cx) {
                Ok(tables) => self.ready = tables,
                Err(Failure::Query(error)) => return Err(error),
                Err(Failure::Service(_ignored)) => {
                    let mut nothing = Table::unit(self.asker.width);
                    self.asker.name(&mut nothing, endpoint);
                    self.ready.push_back((nothing, Booked::default()));
                }
            }
        }
    }
}

impl Operator for Fetch {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        cx.check()?;
        if self.asker.service.silent {
            self.next_silent(cx)
        } else {
            self.next_loud(cx)
        }
    }
}

fn told(failure: Failure, endpoint: TermId, cx: &Context) -> ExecError {
    let source = match failure {
        Failure::Query(error) => return error,
        Failure::Service(source) => source,
    };
    match endpoint_iri(cx, endpoint) {
        Ok(Ok(iri)) => ExecError::Service {
            endpoint: format!("<{iri}>"),
            source,
        },
        Ok(Err((endpoint, _))) => ExecError::Service { endpoint, source },
        Err(error) => error,
    }
}

impl Asker {
    /// All rows that one endpoint answers.
    fn all(&self, ask: Ask, cx: &Context) -> Result<VecDeque<(Table, Booked)>, Failure> {
        let mut tables = VecDeque::new();
        for request in ask.requests {
            let mut call = self.begin(ask.endpoint, &request, cx)?;
            while let Some(table) = call.next(self, cx)? {
                let mut booked = Booked::default();
                cx.book(&mut booked, table.bytes())?;
                tables.push_back((table, booked));
            }
        }
        Ok(tables)
    }

    fn begin(&self, endpoint: TermId, request: &Request, cx: &Context) -> Result<Call, Failure> {
        let iri = endpoint_iri(cx, endpoint).map_err(Failure::Query)?;
        let iri = iri.map_err(|(_, error)| error)?;
        let Services {
            caller,
            timeout,
            response_bytes,
        } = cx.services.as_ref().ok_or(ServiceError::NotAllowed)?;
        let left = cx.time_left();
        let of_query = left.is_some_and(|left| left <= *timeout);
        let query = self.text(request, cx)?;
        let rows = caller.call(&ServiceCall {
            endpoint: &iri,
            query: &query,
            variables: &self.service.query.names,
            timeout: left.map_or(*timeout, |left| left.min(*timeout)),
            response_bytes: *response_bytes,
        });
        Ok(Call {
            rows: rows.map_err(|error| call_failed(error, of_query, cx))?,
            endpoint,
            label: cx.expressions.fresh_label(),
            of_query,
            received: Booked::default(),
        })
    }

    fn text(&self, request: &Request, cx: &Context) -> Result<String, Failure> {
        let Request::For(numbers) = request else {
            return Ok(self.service.query.text());
        };
        let width = self.sent.len();
        let rows = numbers.iter().map(|number| &self.values.row(*number)[1..]);
        let ids: Vec<TermId> = rows.flatten().copied().collect();
        let mut terms = Vec::with_capacity(ids.len());
        let read = cx.terms().terms_of(&ids, &mut terms);
        read.map_err(|why| Failure::Query(cx.without_term(why)))?;
        let bound = |term: Option<Term>| term.expect("values that are sent are bound");
        let terms: Vec<Term> = terms.into_iter().map(bound).collect();
        let rows = (0..numbers.len()).map(|row| &terms[row * width..][..width]);
        Ok(self.service.query.text_for(&self.sent, rows))
    }

    /// Binds the variable of the endpoint to it in all rows; drops those that bind it to
    /// something else.
    fn name(&self, table: &mut Table, endpoint: TermId) {
        let Slot::Var(var) = self.service.endpoint else {
            return;
        };
        if table.get(var).is_some() {
            let fits = |row: &u32| {
                let value = table.value(var, *row as usize);
                value.is_none() || value == endpoint
            };
            let rows: Vec<u32> = (0..table.rows() as u32).filter(fits).collect();
            table.retain_rows(&rows);
        }
        table.set(var, vec![endpoint; table.rows()]);
    }

    /// Solutions as a table.
    fn table(
        &self,
        rows: &[Vec<Option<Term>>],
        call: &Call,
        cx: &Context,
    ) -> Result<Table, Failure> {
        let mut table = Table::with_rows(self.width, rows.len());
        for (place, var) in self.service.columns.iter().enumerate() {
            if self.service.certain.contains(var) && rows.iter().any(|row| row[place].is_none()) {
                let name = &self.service.query.names[place];
                let reason = format!("?{name} is unbound, where every solution binds it");
                return Err(ServiceError::Malformed { reason }.into());
            }
            if self.inner.contains(*var) {
                let own: Vec<Option<Term>> = rows.iter().map(|row| call.own(&row[place])).collect();
                let mut column = Vec::with_capacity(own.len());
                let terms = own.iter().map(|term| term.as_ref().map(Term::as_ref));
                let interned = cx.terms().intern_all(terms, &mut column);
                interned.map_err(|why| Failure::Query(cx.without_term(why)))?;
                table.set(*var, column);
            }
        }
        self.name(&mut table, call.endpoint);
        Ok(table)
    }
}

/// A call under way.
struct Call {
    rows: Box<dyn ServiceRows>,
    endpoint: TermId,
    /// What the labels of its blank nodes begin with here.
    label: String,
    /// It may take no more time than the query has left.
    of_query: bool,
    /// Bytes of the answer.
    received: Booked,
}

impl Call {
    /// The next rows; `None` at the end.
    fn next(&mut self, asker: &Asker, cx: &Context) -> Result<Option<Table>, Failure> {
        loop {
            cx.check()?;
            let next = self.rows.next(WAIT);
            let next = next.map_err(|error| call_failed(error, self.of_query, cx))?;
            let received = usize::try_from(self.rows.received_bytes()).unwrap_or(usize::MAX);
            cx.book(&mut self.received, received)?;
            match next {
                ServiceNext::Waiting => (),
                ServiceNext::End => return Ok(None),
                ServiceNext::Rows(rows) => return Ok(Some(asker.table(&rows, self, cx)?)),
            }
        }
    }

    /// A term of the answer. Its blank nodes are nobody else's: the same label is the same node within this
    /// answer only.
    fn own(&self, term: &Option<Term>) -> Option<Term> {
        match term {
            Some(Term::BlankNode(node)) => {
                let label = format!("{}_{}", self.label, node.as_str());
                Some(BlankNode::new_unchecked(label).into())
            }
            term => term.clone(),
        }
    }
}

/// A call that had no more time than the query ends the query.
fn call_failed(error: ServiceError, of_query: bool, cx: &Context) -> Failure {
    if of_query && matches!(error, ServiceError::Timeout { .. }) {
        return Failure::Query(cx.out_of_time());
    }
    // What was cancelled meanwhile did not fail by itself.
    match cx.check() {
        Ok(()) => Failure::Service(error),
        Err(ended) => Failure::Query(ended),
    }
}
