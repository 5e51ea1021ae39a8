//! SERVICE: the left side's rows joined with what other endpoints answer.
//!
//! While the rows are few, their values of the shared variables are sent along, a batch of
//! distinct ones with each request; where there turn out to be many, everything that the endpoint
//! has is fetched. Either way the answers are kept and the rows stream past, as in any join.

use std::collections::VecDeque;
use std::sync::Arc;

use jindou_model::TermId;
use jindou_plan::physical::{Service, Slot, Var};
use oxrdf::Term;
use rustc_hash::FxHashMap;

use super::join::{Condition, JoinSide};
use super::service_fetch::{Ask, Fetch, Request};
use super::two_sided::TwoSided;
use crate::context::{Booked, Context};
use crate::operator::{Boxed, Operator};
use crate::rows::RowSet;
use crate::table::{Table, VarSet};
use crate::{ExecError, ServiceError};

/// Distinct rows of values sent with one request,
const ROWS_A_REQUEST: usize = 500;
/// as long as their text has fewer bytes than this,
const BYTES_A_REQUEST: usize = 256 << 10;
/// and with all requests to an endpoint: beyond, all that it has is fetched.
const MOST_SENT: usize = 32 * ROWS_A_REQUEST;

/// [`jindou_plan::physical::Operator::Service`].
pub(super) struct ServiceJoin {
    /// Until the join begins.
    begin: Option<Begin>,
    /// Rows whose endpoint is unbound, of a silent service: they are answered as they are.
    passing: Vec<Table>,
    join: Option<TwoSided<JoinSide>>,
    keep: VarSet,
}

/// What a join with a service is made of.
pub(super) struct Begin {
    pub(super) input: Boxed,
    pub(super) service: Arc<Service>,
    pub(super) keys: Vec<Var>,
    pub(super) loose: Vec<Var>,
    pub(super) send: Vec<Var>,
    /// Of a left join.
    pub(super) condition: Option<Condition>,
    pub(super) left: bool,
    /// The variables that the join looks at, and those wanted behind it.
    pub(super) inner: VarSet,
    pub(super) width: usize,
}

impl ServiceJoin {
    pub(super) fn new(begin: Begin, keep: VarSet) -> Self {
        Self {
            begin: Some(begin),
            passing: Vec::new(),
            join: None,
            keep,
        }
    }
}

impl Operator for ServiceJoin {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if let Some(begin) = self.begin.take() {
            self.join = begin.join(cx, &mut self.passing, &self.keep)?;
        }
        if let Some(mut table) = self.passing.pop() {
            table.retain_columns(&self.keep);
            return Ok(Some(table));
        }
        match &mut self.join {
            Some(join) => join.next(cx),
            None => Ok(None),
        }
    }
}

/// Rows of the left side, read before the endpoint is asked.
#[derive(Default)]
struct Left {
    tables: VecDeque<Table>,
    booked: Booked,
}

/// The distinct values that the left side has, by endpoint.
struct Values {
    /// The endpoint, then the variables to send.
    rows: RowSet,
    /// Endpoints in order of first sight, each with the numbers of its rows.
    endpoints: Vec<(TermId, Vec<usize>)>,
    by_endpoint: FxHashMap<TermId, usize>,
    booked: Booked,
}

impl Values {
    fn new(arity: usize) -> Self {
        Self {
            rows: RowSet::new(arity),
            endpoints: Vec::new(),
            by_endpoint: FxHashMap::default(),
            booked: Booked::default(),
        }
    }

    fn add(&mut self, values: &[TermId]) {
        let (number, new) = self.rows.insert(values);
        if !new {
            return;
        }
        let next = self.endpoints.len();
        let place = *self.by_endpoint.entry(values[0]).or_insert(next);
        if place == next {
            self.endpoints.push((values[0], Vec::new()));
        }
        self.endpoints[place].1.push(number);
    }

    fn book(&mut self, cx: &Context) -> Result<(), ExecError> {
        let bytes = self.rows.bytes() + self.rows.len() * size_of::<usize>();
        cx.book(&mut self.booked, bytes)
    }
}

impl Begin {
    /// Reads the left side as far as needed; `None` if there is nothing to ask for.
    fn join(
        mut self,
        cx: &Context,
        passing: &mut Vec<Table>,
        keep: &VarSet,
    ) -> Result<Option<TwoSided<JoinSide>>, ExecError> {
        let mut left = Left::default();
        let mut values = Values::new(1 + self.send.len());
        let ended = self.read(cx, &mut left, &mut values, passing)?;
        if left.tables.is_empty() {
            return Ok(None);
        }
        let asks = self.asks(cx, &values, ended)?;
        let fetch = Fetch::new(
            self.service,
            self.send,
            values.rows,
            asks,
            self.inner,
            self.width,
        )
        .booked(values.booked);
        let replay = Replay {
            left,
            rest: (!ended).then_some(self.input),
        };
        let side = JoinSide::new(&self.keys, &self.loose, self.condition, keep.clone());
        Ok(Some(TwoSided::new(
            Box::new(fetch),
            Box::new(replay),
            side,
            &self.keys,
            self.left,
            keep.clone(),
            cx,
        )))
    }

    /// Reads rows until there are no more, or it is clear that their values are not sent; true at
    /// the end.
    fn read(
        &mut self,
        cx: &Context,
        left: &mut Left,
        values: &mut Values,
        passing: &mut Vec<Table>,
    ) -> Result<bool, ExecError> {
        let mut row_values = Vec::new();
        loop {
            cx.check()?;
            let Some(table) = self.input.next(cx)? else {
                return Ok(true);
            };
            let table = self.with_endpoint(cx, table, left, passing)?;
            if table.rows() == 0 {
                continue;
            }
            for row in 0..table.rows() {
                row_values.clear();
                row_values.push(cx.slot(self.service.endpoint, &table, row));
                row_values.extend(self.send.iter().map(|var| table.value(*var, row)));
                values.add(&row_values);
            }
            values.book(cx)?;
            cx.book_more(&mut left.booked, table.bytes())?;
            left.tables.push_back(table);
            // All endpoints must be known before one is asked.
            let is_one = matches!(self.service.endpoint, Slot::Const(_));
            if is_one && (self.send.is_empty() || values.rows.len() > MOST_SENT) {
                return Ok(false);
            }
        }
    }

    /// The rows whose endpoint is bound; the others pass where the service is silent.
    fn with_endpoint(
        &self,
        cx: &Context,
        mut table: Table,
        left: &mut Left,
        passing: &mut Vec<Table>,
    ) -> Result<Table, ExecError> {
        let Slot::Var(var) = self.service.endpoint else {
            return Ok(table);
        };
        let (bound, unbound): (Vec<u32>, Vec<u32>) =
            (0..table.rows() as u32).partition(|row| !table.value(var, *row as usize).is_none());
        if unbound.is_empty() {
            return Ok(table);
        }
        if !self.service.silent {
            return Err(ExecError::Service {
                endpoint: format!("?{}", self.service.endpoint_name),
                source: ServiceError::Unbound,
            });
        }
        let unasked = table.gather(&unbound, &self.inner);
        cx.book_more(&mut left.booked, unasked.bytes())?;
        passing.push(unasked);
        table.retain_rows(&bound);
        Ok(table)
    }

    /// What to ask of whom.
    fn asks(&self, cx: &Context, values: &Values, ended: bool) -> Result<VecDeque<Ask>, ExecError> {
        let mut asks = VecDeque::new();
        for (endpoint, rows) in &values.endpoints {
            let everything = Ask {
                endpoint: *endpoint,
                requests: VecDeque::from([Request::Everything]),
            };
            let few = ended && !self.send.is_empty() && rows.len() <= MOST_SENT;
            let sent = if few {
                sendable(cx, values, rows)?
            } else {
                None
            };
            asks.push_back(match sent {
                None => everything,
                Some(rows) => Ask {
                    endpoint: *endpoint,
                    requests: requests(&rows, self.service.silent),
                },
            });
        }
        Ok(asks)
    }
}

/// The rows in as many requests as they need; one at least if the service is silent, as then an
/// endpoint that fails is answered otherwise than one that has nothing.
fn requests(rows: &[(usize, usize)], silent: bool) -> VecDeque<Request> {
    let mut requests = VecDeque::new();
    let mut batch = Vec::new();
    let mut bytes = 0;
    for (number, length) in rows {
        if batch.len() == ROWS_A_REQUEST || (bytes + length > BYTES_A_REQUEST && bytes > 0) {
            requests.push_back(Request::For(std::mem::take(&mut batch)));
            bytes = 0;
        }
        batch.push(*number);
        bytes += length;
    }
    if !batch.is_empty() || (silent && requests.is_empty()) {
        requests.push_back(Request::For(batch));
    }
    requests
}

/// The rows whose values can find anything elsewhere, each with about the bytes of its text;
/// `None` if a value cannot be written.
fn sendable(
    cx: &Context,
    values: &Values,
    rows: &[usize],
) -> Result<Option<Vec<(usize, usize)>>, ExecError> {
    let mut sent = Vec::with_capacity(rows.len());
    for rows in rows.chunks(ROWS_A_REQUEST) {
        let ids = rows
            .iter()
            .flat_map(|number| &values.rows.row(*number)[1..]);
        let ids: Vec<TermId> = ids.copied().collect();
        let mut terms = Vec::with_capacity(ids.len());
        let read = cx.terms().terms_of(&ids, &mut terms);
        read.map_err(|why| cx.without_term(why))?;
        let mut terms = terms.into_iter();
        for number in rows {
            let mut is_elsewhere = true;
            let mut length = 0;
            for term in terms.by_ref().take(values.rows.row(*number).len() - 1) {
                match term {
                    // No other place knows our blank nodes.
                    Some(Term::BlankNode(_)) => is_elsewhere = false,
                    Some(term) if can_be_written(&term) => length += text_bytes(&term),
                    _ => return Ok(None),
                }
            }
            if is_elsewhere {
                sent.push((*number, length));
            }
        }
    }
    Ok(Some(sent))
}

/// About the bytes that a term's text has.
fn text_bytes(term: &Term) -> usize {
    match term {
        Term::NamedNode(node) => node.as_str().len() + 3,
        Term::BlankNode(node) => node.as_str().len() + 3,
        Term::Literal(literal) => {
            let tail = literal.language().unwrap_or(literal.datatype().as_str());
            literal.value().len() + tail.len() + 7
        }
    }
}

/// True of terms that SPARQL can write: a lenient load takes IRIs that are none.
pub(crate) fn can_be_written(term: &Term) -> bool {
    let is_iri = |iri: &str| {
        !iri.chars()
            .any(|c| c <= ' ' || matches!(c, '<' | '>' | '"' | '{' | '}' | '|' | '^' | '`' | '\\'))
    };
    match term {
        Term::NamedNode(node) => is_iri(node.as_str()),
        Term::Literal(literal) => {
            let is_tag = |tag: &str| {
                tag.starts_with(|c: char| c.is_ascii_alphabetic())
                    && tag.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            };
            literal.language().is_none_or(is_tag) && is_iri(literal.datatype().as_str())
        }
        Term::BlankNode(_) => false,
    }
}

/// The rows that were read, then the others.
struct Replay {
    left: Left,
    rest: Option<Boxed>,
}

impl Operator for Replay {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        if let Some(table) = self.left.tables.pop_front() {
            return Ok(Some(table));
        }
        self.left.booked = Booked::default();
        match &mut self.rest {
            Some(rest) => rest.next(cx),
            None => Ok(None),
        }
    }
}

/// The IRI of an endpoint.
///
/// # Errors
/// That the dictionary does not tell; within that, that the term is no IRI.
pub(super) fn endpoint_iri(
    cx: &Context,
    id: TermId,
) -> Result<Result<String, (String, ServiceError)>, ExecError> {
    let no_endpoint = |text: String, what: &str| {
        let reason = format!("it is a {what}");
        Err((text, ServiceError::NoEndpoint { reason }))
    };
    let term = cx.terms().term(id);
    Ok(match term.map_err(|why| cx.without_term(why))? {
        Some(Term::NamedNode(node)) => Ok(node.into_string()),
        Some(Term::BlankNode(node)) => no_endpoint(node.to_string(), "blank node"),
        Some(Term::Literal(literal)) => no_endpoint(literal.to_string(), "literal"),
        None => unreachable!("rows without an endpoint were parted before"),
    })
}
