//! How long would this JSON-LD document take its parser?
//!
//! The parser reads a document whole and then works on it in one go, which nobody can stop. It
//! copies all terms in scope for each node with a `@context` and for each value of a term with a
//! context of its own, hands each value on from object to object within it, and copies the names
//! that a value belongs to. So a document of some 100 KB could take it hours. What it would do is
//! counted here from what is read, in steps of one to two nanoseconds. Where it depends on more than
//! the count can follow, as on which values have which term, the most is taken.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Steps that each document may take,
const FREE_STEPS: u64 = 2_000_000_000;

/// and for each of its bytes.
const STEPS_PER_BYTE: u64 = 500;

/// For each term in scope when a context comes into force.
const COPY_STEPS: u64 = 400;

/// For each word of a context that is processed.
const PROCESS_STEPS: u64 = 1000;

/// For each value or key, and each object around it.
const NEST_STEPS: u64 = 150;

/// So many bytes of a text within a context cost what a term costs.
const TERM_BYTES: u64 = 256;

/// What a term in scope takes in memory, or the error that it must not be overridden.
const TERM_MEMORY_BYTES: u64 = 256;

/// The steps that the parser may take for some documents of JSON-LD together.
///
/// By itself each document has some that are free. Where many come in one request, as a line each,
/// they would add up: these have them but once.
#[derive(Debug)]
pub struct JsonSteps {
    all: u64,
    left: AtomicU64,
}

impl JsonSteps {
    /// As many as a single document of so many bytes may take.
    #[must_use]
    pub fn of_bytes(bytes: usize) -> Self {
        let all = FREE_STEPS.saturating_add(STEPS_PER_BYTE.saturating_mul(bytes as u64));
        Self {
            all,
            left: AtomicU64::new(all),
        }
    }

    pub(crate) fn take(&self, steps: u64) {
        let less = |left: u64| Some(left.saturating_sub(steps));
        let _ = self.left.fetch_update(Relaxed, Relaxed, less);
    }
}

/// Follows a document from its first value.
#[derive(Default)]
pub(crate) struct Cost {
    /// Of the arrays and objects that are open, outside of contexts.
    levels: Vec<Level>,
    objects: u64,
    copying: u64,
    nesting: u64,
    naming: u64,
    /// Of the terms with contexts, the words of the largest of these and the contexts in one.
    scoped_words: u64,
    scoped_contexts: u64,
    context: Context,
    has_protected: bool,
    /// Memory for terms: the most at once, and what the parser keeps.
    most_held: u64,
    kept: u64,
}

/// An array or object. What is active includes what those around it have.
#[derive(Default, Clone, Copy)]
struct Level {
    is_object: bool,
    /// The terms of active contexts.
    terms: u64,
    /// The length of active names.
    names: u64,
    /// Of them, the longest text and the latest key of the object itself.
    own_text: u64,
    own_key: u64,
    /// Within it so far.
    copies: u64,
    values: u64,
    /// Whether it is, or is part of, a value of a term with a context; so its next value.
    is_scoped: bool,
    next_is_scoped: bool,
    /// Terms of the contexts that the parser holds at once down to here.
    held: u64,
}

/// The context that is being read, with those in it.
#[derive(Default)]
struct Context {
    /// How many contexts of terms lie in one another here, itself included.
    depth: u64,
    terms: u64,
    words: u64,
    contexts: u64,
    names: u64,
    has_scoped: bool,
    /// Of the definition that is being read.
    scoped_words: u64,
    scoped_contexts: u64,
}

/// Adds what may be more than a number can hold: too much is too much.
fn add(total: &mut u64, steps: u64) {
    *total = total.saturating_add(steps);
}

impl Cost {
    fn top(&mut self) -> Option<&mut Level> {
        self.levels.last_mut()
    }

    /// A value, or a key, wherever it stands.
    pub(crate) fn word(&mut self) {
        add(&mut self.nesting, NEST_STEPS * self.objects);
    }

    /// A value outside of contexts.
    pub(crate) fn value(&mut self) {
        let Some(top) = self.levels.last_mut() else {
            return;
        };
        top.values += 1;
        add(&mut self.naming, top.names);
        if top.next_is_scoped {
            self.copy_scoped(1);
        }
    }

    /// An array or object begins, in a context or not.
    pub(crate) fn open(&mut self, is_object: bool) {
        self.objects += u64::from(is_object);
        if self.context.depth > 0 {
            return;
        }
        let around = self.levels.last().copied().unwrap_or_default();
        self.levels.push(Level {
            is_object,
            own_text: 0,
            own_key: 0,
            copies: 0,
            values: 0,
            is_scoped: around.next_is_scoped,
            ..around
        });
    }

    /// An array or object outside of contexts ends.
    pub(crate) fn close(&mut self, is_object: bool) {
        self.objects -= u64::from(is_object);
        if self.context.depth > 0 {
            return;
        }
        let Some(closed) = self.levels.pop() else {
            return;
        };
        if let Some(top) = self.top() {
            add(&mut top.copies, closed.copies);
            top.values += closed.values;
        }
    }

    /// A key outside of contexts, and whether it is a term with a context.
    pub(crate) fn key(&mut self, bytes: usize, is_scoped: bool) {
        let Some(top) = self.top() else {
            return;
        };
        let bytes = bytes as u64;
        top.names = top.names - top.own_key + bytes;
        top.own_key = bytes;
        top.next_is_scoped = top.is_scoped || is_scoped;
        if is_scoped {
            // It may be the type of a node.
            self.copy_scoped(2);
        }
    }

    /// A text outside of contexts: whether it may be an IRI, and is a term with a context.
    pub(crate) fn text(&mut self, bytes: usize, is_name: bool, is_scoped: bool) {
        if is_scoped {
            // It may be the type of a node, for which the terms around are kept, too.
            self.copy_scoped(2);
        }
        let Some(top) = self.levels.last_mut().filter(|top| top.is_object) else {
            return;
        };
        let more = (bytes as u64).saturating_sub(top.own_text);
        if is_name && more > 0 {
            top.names += more;
            top.own_text += more;
            add(&mut self.naming, more.saturating_mul(top.values));
        }
    }

    /// The key `@context` outside of contexts: one comes into force, if only an empty one.
    pub(crate) fn context_key(&mut self) {
        self.copy(1);
    }

    /// A context begins that is not an element of an array of contexts.
    pub(crate) fn open_context(&mut self) {
        let context = &mut self.context;
        context.depth += 1;
        if context.depth == 2 {
            context.scoped_words = 0;
            context.scoped_contexts = 0;
        }
    }

    /// A term has a context of its own, if only an empty one.
    pub(crate) fn define_scoped(&mut self) {
        self.context.has_scoped = true;
    }

    /// One of the contexts of an array, which may be null.
    pub(crate) fn element(&mut self) {
        self.context.contexts += 1;
        self.context.scoped_contexts += 1;
    }

    /// A value within a context; whether it is but part of how a term is defined.
    pub(crate) fn context_word(&mut self, is_part: bool) {
        let context = &mut self.context;
        context.words += 1;
        context.scoped_words += 1;
        if !is_part || context.depth > 1 {
            context.terms += context.depth;
        }
    }

    /// A key or text within a context.
    pub(crate) fn context_text(&mut self, bytes: usize) {
        self.context.terms += self.context.depth * (bytes as u64 / TERM_BYTES);
    }

    /// A context forbids that its terms are overridden.
    pub(crate) fn protect(&mut self) {
        self.has_protected = true;
    }

    /// The length of the longest IRI that the terms of a context may stand for.
    pub(crate) fn context_names(&mut self, bytes: u64) {
        self.context.names += bytes;
    }

    /// A context ends that began with [`open_context`](Self::open_context).
    pub(crate) fn close_context(&mut self) {
        let context = &mut self.context;
        context.depth -= 1;
        context.contexts += 1;
        if context.depth > 0 {
            // Those within the context of a term, not itself.
            context.scoped_contexts += u64::from(context.depth > 1);
            self.scoped_words = self.scoped_words.max(context.scoped_words);
            self.scoped_contexts = self.scoped_contexts.max(context.scoped_contexts);
            return;
        }
        let context = std::mem::take(&mut self.context);
        let Some(top) = self.levels.last_mut() else {
            return;
        };
        top.terms += context.terms;
        top.names += context.names;
        add(&mut self.copying, PROCESS_STEPS * context.words);
        // It counts for what stands in front of it, too.
        add(
            &mut self.copying,
            (COPY_STEPS * context.terms).saturating_mul(top.copies),
        );
        add(&mut self.naming, context.names.saturating_mul(top.values));
        let (copies, values, terms) = (context.contexts, top.values, top.terms);
        if context.has_scoped {
            self.copy_scoped(values);
        }
        if self.has_protected {
            add(
                &mut self.kept,
                copies
                    .saturating_mul(terms)
                    .saturating_mul(TERM_MEMORY_BYTES),
            );
        }
        // One is counted with the key.
        self.copy(copies.saturating_sub(1));
    }

    /// All terms in scope are copied, `times` times.
    fn copy(&mut self, times: u64) {
        let around = self
            .levels
            .len()
            .checked_sub(2)
            .map(|at| self.levels[at].held);
        let Some(top) = self.levels.last_mut() else {
            return;
        };
        add(&mut top.copies, times);
        add(
            &mut self.copying,
            (COPY_STEPS * top.terms).saturating_mul(times),
        );
        top.held = top.held.max(around.unwrap_or(0) + 2 * top.terms);
        self.most_held = self.most_held.max(top.held);
    }

    /// Contexts of terms come into force.
    fn copy_scoped(&mut self, times: u64) {
        add(
            &mut self.copying,
            (PROCESS_STEPS * self.scoped_words).saturating_mul(times),
        );
        self.copy(times.saturating_mul(1 + self.scoped_contexts));
    }

    /// What the terms in scope take in memory, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let held = self.most_held.saturating_mul(TERM_MEMORY_BYTES);
        self.kept.saturating_add(held)
    }

    /// The steps of what was read so far.
    pub(crate) fn steps(&self) -> u64 {
        let steps = self.copying.saturating_add(self.nesting);
        steps.saturating_add(self.naming)
    }

    /// Whether the document takes too much for the bytes that were read of it, or for what is left to
    /// the documents that share their steps.
    ///
    /// # Errors
    /// The bound, and what it is broken by.
    pub(crate) fn check(&self, read: u64, shared: Option<&JsonSteps>) -> Result<(), String> {
        let limit = match shared {
            Some(shared) => shared.left.load(Relaxed),
            None => FREE_STEPS + STEPS_PER_BYTE * read,
        };
        if self.steps() <= limit {
            return Ok(());
        }
        let most = self.copying.max(self.nesting).max(self.naming);
        let what = if most == self.copying {
            "copies of the terms in scope, one for each node with a @context and each value of a \
             term with a @context"
        } else if most == self.nesting {
            "values deep within other objects"
        } else {
            "long IRIs and keys, once for each value that belongs to them"
        };
        Err(match shared {
            Some(shared) => format!(
                "the JSON of one request would take its parser more than {} steps, the last of them \
                 for {what}; send fewer objects in one request, or give many the same @context",
                shared.all
            ),
            None => format!(
                "the document would take its parser more than {limit} steps, most of them for {what}"
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_that_share_their_steps_have_the_free_ones_once() {
        let shared = JsonSteps::of_bytes(10);
        let cost = Cost {
            copying: FREE_STEPS / 2 + 5_000,
            ..Cost::default()
        };
        for _ in 0..2 {
            assert_eq!(cost.check(10, None), Ok(()));
            shared.take(cost.steps());
        }
        let reason = cost.check(10, Some(&shared)).expect_err("they are used up");
        assert!(reason.contains("more than 2000005000 steps"), "{reason}");
        assert_eq!(cost.check(10, None), Ok(()));
    }
}
