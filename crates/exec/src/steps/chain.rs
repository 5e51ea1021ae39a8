//! How does a chain of any length run on a stack of bounded depth?
//!
//! An operator asks its input for the next table, and that asks its own: as many calls are nested
//! as the chain has operators, of which there may be thousands. So a long chain is cut into pieces,
//! each of which is fed with what the one before hands over, in a loop.

use jindou_plan::physical::NESTED_STEPS;

use super::feed::Feed;
use crate::ExecError;
use crate::context::Context;
use crate::operator::{Boxed, Operator};
use crate::table::Table;

/// A chain under construction: the pieces that are full, and where the next takes its tables.
#[derive(Default)]
pub(crate) struct Chain {
    pieces: Vec<Boxed>,
    feeds: Vec<Feed>,
    /// Operators of the piece that is not full yet.
    length: usize,
}

impl Chain {
    /// What the next operator of the chain reads, if `last` is the last one so far.
    pub(crate) fn input(&mut self, last: Boxed) -> Boxed {
        if self.length < NESTED_STEPS {
            self.length += 1;
            return last;
        }
        self.length = 1;
        self.pieces.push(last);
        let feed = Feed::default();
        self.feeds.push(feed.clone());
        Box::new(feed)
    }

    /// The whole chain, of which `last` is the end.
    pub(crate) fn end(mut self, last: Boxed) -> Boxed {
        if self.pieces.is_empty() {
            return last;
        }
        self.pieces.push(last);
        Box::new(Pieces {
            pieces: self.pieces,
            feeds: self.feeds,
            asked: 0,
        })
    }
}

/// The pieces of a chain, and what feeds each of them but the first.
struct Pieces {
    pieces: Vec<Boxed>,
    feeds: Vec<Feed>,
    /// The piece that is asked next: the last one that may have rows of what it was fed.
    asked: usize,
}

impl Operator for Pieces {
    fn produce(&mut self, cx: &Context) -> Result<Option<Table>, ExecError> {
        loop {
            let table = self.pieces[self.asked].next(cx)?;
            match (table, self.feeds.get(self.asked)) {
                (Some(table), Some(feed)) => {
                    feed.put(table);
                    self.asked += 1;
                }
                (Some(table), None) => return Ok(Some(table)),
                (None, _) if self.asked == 0 => return Ok(None),
                (None, _) => self.asked -= 1,
            }
        }
    }
}
