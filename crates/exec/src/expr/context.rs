//! What do the expressions of one query share?

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use jindou_model::TermId;
use oxiri::Iri;
use oxrdf::NamedNode;
use oxsdatatypes::DateTime;

use super::ExprError;
use super::pattern::{Pattern, PatternCache};
use super::value::push_hex;
use crate::terms::{HeldBytes, WaitsUntil};
use crate::{GraphSource, Terms};

/// The longest string that an expression may make, in bytes.
pub(super) const STRING_BYTES: usize = 1 << 26;

/// Bytes of text that are handled between two looks at the query's limits: milliseconds, where
/// they are matched slowly.
const POLLED_BYTES: u64 = 1 << 16;
/// Texts of fewer bytes are not counted: a batch of them takes no time.
const SHORT_BYTES: usize = 64;
/// Texts of this many bytes or more are counted while they are held: nested calls may hold hundreds.
const LONG_BYTES: usize = 1 << 16;

/// What all expressions of one query share; threads use one together.
pub struct Context {
    terms: Terms,
    /// The graph, where its windows are to be asked for times.
    source: Option<Arc<dyn GraphSource>>,
    now: OnceLock<DateTime>,
    base: Option<Iri<String>>,
    seed: u64,
    drawn: AtomicU64,
    patterns: Mutex<PatternCache>,
    refusal: OnceLock<String>,
    /// The query must end.
    over: AtomicBool,
    /// Bytes handled since the last look.
    handled: AtomicU64,
}

impl Context {
    /// A context in which `NOW()` is `now` (the time at which it is first asked for, if none is
    /// given: to read the clock costs as much as a light query), relative IRIs are resolved against `base`, and random
    /// numbers, UUIDs and blank nodes follow from `seed`, which no two queries should share.
    #[must_use]
    pub fn new(terms: Terms, now: Option<DateTime>, base: Option<&NamedNode>, seed: u64) -> Self {
        Self {
            terms,
            source: None,
            now: now.map_or_else(OnceLock::new, OnceLock::from),
            base: base.map(|base| Iri::parse_unchecked(base.as_str().to_owned())),
            seed,
            drawn: AtomicU64::new(0),
            patterns: Mutex::default(),
            refusal: OnceLock::new(),
            over: AtomicBool::new(false),
            handled: AtomicU64::new(0),
        }
    }

    /// Lets expressions ask, between rows too, whether the query must end, and so whoever waits for terms; each
    /// then has no value for the rest of its rows, which are not to be used.
    pub(crate) fn watch(&mut self, until: Arc<dyn WaitsUntil>) {
        self.terms.wait_by(until);
    }

    /// Lets expressions ask when triples came.
    pub(crate) fn set_source(&mut self, source: Arc<dyn GraphSource>) {
        self.source = Some(source);
    }

    /// When a triple came last of those in the query's windows.
    ///
    /// # Errors
    /// [`ExprError::Unbound`] where a part of it is, [`ExprError::Value`] if no window has it.
    pub(super) fn time_of(&self, triple: [TermId; 3]) -> Result<i64, ExprError> {
        if triple.contains(&TermId::NONE) {
            return Err(ExprError::Unbound);
        }
        let time = self.source.as_ref();
        let time = time.and_then(|source| source.time_of(triple));
        time.ok_or(ExprError::Value)
    }

    /// Counts bytes in the query's memory until the result is dropped.
    ///
    /// # Errors
    /// As [`Context::poll`]: also if the query may not hold as many.
    pub(super) fn hold(&self, bytes: usize) -> Result<HeldBytes, ExprError> {
        let held = self.terms.hold(bytes);
        self.poll()?;
        Ok(held)
    }

    /// [`Context::hold`] of a text, if it is long.
    ///
    /// # Errors
    /// As [`Context::hold`].
    pub(super) fn hold_text(&self, bytes: usize) -> Result<Option<HeldBytes>, ExprError> {
        match bytes < LONG_BYTES {
            true => Ok(None),
            false => self.hold(bytes).map(Some),
        }
    }

    /// Refuses a string that is too long, which `what` made or would make.
    ///
    /// # Errors
    /// [`ExprError::Refused`].
    pub(super) fn check_string(&self, bytes: usize, what: &str) -> Result<(), ExprError> {
        match bytes <= STRING_BYTES {
            true => Ok(()),
            false => Err(self.refuse(format!("{what} made more than {STRING_BYTES} bytes"))),
        }
    }

    /// True once it was seen that the query must end: rows so far are not to be trusted.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || self.terms.lost().is_some()
    }

    /// Looks whether the query must end.
    ///
    /// # Errors
    /// [`ExprError::Refused`] if it must.
    pub(crate) fn poll(&self) -> Result<(), ExprError> {
        if self.is_over() {
            return Err(ExprError::Refused);
        }
        match self.terms.is_over() {
            Some(true) => {
                self.over.store(true, Ordering::Relaxed);
                Err(ExprError::Refused)
            }
            Some(false) | None => Ok(()),
        }
    }

    /// Counts bytes of text that are handled, or made; looks at the query's limits after many.
    ///
    /// # Errors
    /// As [`Context::poll`].
    pub(super) fn count_text(&self, bytes: usize) -> Result<(), ExprError> {
        if bytes < SHORT_BYTES {
            return if self.is_over() {
                Err(ExprError::Refused)
            } else {
                Ok(())
            };
        }
        let handled = self.handled.fetch_add(bytes as u64, Ordering::Relaxed);
        if handled + (bytes as u64) < POLLED_BYTES {
            return Ok(());
        }
        self.handled.store(0, Ordering::Relaxed);
        self.poll()
    }

    /// The terms of the query.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Why the query cannot be answered, if an expression met something that this engine refuses
    /// (a pattern with features it lacks, a string that is too long). To be asked at the end of
    /// each step: the rows so far are then not to be trusted.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.get().map(String::as_str)
    }

    /// Notes a refusal (the first one stays) and gives the error for the expression.
    pub(super) fn refuse(&self, reason: String) -> ExprError {
        // A second refusal adds nothing to the first.
        let _first = self.refusal.set(reason);
        ExprError::Refused
    }

    /// What `NOW()` is: the same for all of the query.
    pub(crate) fn now(&self) -> DateTime {
        *self.now.get_or_init(DateTime::now)
    }

    /// From which random numbers, UUIDs and blank nodes follow.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// The base that relative IRIs are resolved against.
    pub(crate) fn base(&self) -> Option<&str> {
        self.base.as_ref().map(Iri::as_str)
    }

    /// Begins at this place of the query's random sequence: each node that has a part of the query has
    /// a place of its own.
    pub(crate) fn begin_at(&mut self, place: u64) {
        self.drawn = AtomicU64::new(place);
    }

    /// An absolute IRI, resolved against the base if it is relative.
    pub(super) fn resolve(&self, iri: &str) -> Result<String, ExprError> {
        let resolved = match &self.base {
            Some(base) => base.resolve(iri),
            None => Iri::parse(iri.to_owned()),
        };
        resolved.map(Iri::into_inner).map_err(|_| ExprError::Value)
    }

    /// A pattern that is not constant; compiled ones are kept, boundedly.
    pub(super) fn pattern(&self, text: &str, flags: &str) -> Result<Arc<Pattern>, ExprError> {
        // To match may take as long as to compile does, after which is looked.
        self.poll()?;
        let mut cache = self
            .patterns
            .lock()
            .expect("no thread panics while it holds the patterns");
        cache
            .get(text, flags, self)
            .map_err(|error| error.into_expr_error(self))
    }

    /// The next number of the query's random sequence.
    pub(super) fn random(&self) -> u64 {
        let step = self.drawn.fetch_add(1, Ordering::Relaxed);
        mix(self.seed ^ mix(step))
    }

    /// A number in 0..1.
    pub(super) fn random_unit(&self) -> f64 {
        // The 53 bits that a double has.
        (self.random() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random UUID (version 4), as RFC 4122 writes it.
    pub(crate) fn uuid(&self) -> String {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.random().to_be_bytes());
        bytes[8..].copy_from_slice(&self.random().to_be_bytes());
        bytes[6] = (bytes[6] & 0x0f) | 0x40;
        bytes[8] = (bytes[8] & 0x3f) | 0x80;
        let mut text = String::with_capacity(36);
        for (index, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
            if index > 0 {
                text.push('-');
            }
            push_hex(&mut text, &bytes[part]);
        }
        text
    }

    /// The label of a new blank node.
    pub(crate) fn fresh_label(&self) -> String {
        label(self.random(), self.random())
    }

    /// The label of the blank node that `text` names in this solution.
    pub(super) fn label_in_solution(&self, text: &str, solution: u64) -> String {
        // Two hashes of 64 bits, so that different names do not meet.
        let mut high = mix(self.seed ^ mix(solution ^ 0x9e37_79b9_7f4a_7c15));
        let mut low = mix(high ^ 0x6a09_e667_f3bc_c908);
        for chunk in text.as_bytes().chunks(7) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            // The length tells "a" from "a\0".
            word[7] = chunk.len() as u8;
            let word = u64::from_be_bytes(word);
            high = mix(high ^ word);
            low = mix(low.wrapping_add(word).rotate_left(29));
        }
        label(high, low)
    }
}

/// A place in a sequence of 2^63 that follows from two numbers, far from those of others.
pub(crate) fn sequence_place(first: u64, second: u64) -> u64 {
    mix(second ^ mix(first)) >> 1
}

fn label(high: u64, low: u64) -> String {
    format!("x{high:016x}{low:016x}")
}

/// The mixing function of SplitMix64 (Steele, Lea and Flood, 2014).
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
