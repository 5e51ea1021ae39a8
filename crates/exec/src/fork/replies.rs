//! Where do sub-queries leave what they find? Whatever is between them and the reader of the query, they
//! see this.

use std::sync::Arc;

use super::messages::{ChainId, ForkNode, SubQueryId};
use super::rejoin::Rejoin;
use crate::ExecError;
use crate::context::Context;
use crate::table::Table;

/// What became of rows that were handed over.
pub(super) enum Pushed {
    /// They are on their way.
    Taken,
    /// There is no room for them now.
    Full(Table),
    /// Nobody reads any more.
    Unread,
}

/// Has a sub-query go on.
pub(super) type Resume = Box<dyn FnOnce() + Send>;

/// The way to the reader of a chain, for its sub-queries: [`Inbox`](super::inbox::Inbox) in its own
/// process, [`Outbox`](super::outbox::Outbox) in another.
pub(super) trait Replies: Send + Sync {
    /// Sub-queries that set out here and have not ended, as far as it is known.
    fn under_way(&self) -> usize;

    /// A sub-query sets out.
    fn begin(&self);

    /// One that set out here has ended here.
    fn end(&self);

    /// Ends the query. Only the first error counts.
    fn fail(&self, error: ExecError);

    /// Hands rows over, if there is room for them.
    ///
    /// # Errors
    /// If they cannot be handed over at all.
    fn push(&self, table: Table, cx: &Context) -> Result<Pushed, ExecError>;

    /// Calls `resume` once there is room, or nobody reads any more; gives it back if that is so now.
    ///
    /// Who found rows that nobody has room for leaves its thread to others until then: the reader may wait
    /// for one of these.
    fn when_room(&self, resume: Resume) -> Option<Resume>;

    /// The chain, as messages name it that come to its reader.
    fn chain(self: Arc<Self>, node: &Arc<ForkNode>, cx: &Context) -> ChainId;

    /// One that set out here goes on as a message by this id: it ends where it is read.
    fn leave(&self, id: SubQueryId);

    /// One begins that joins what others find with the rows that stayed here: it is woken when nobody reads any
    /// more.
    fn attend(&self, rejoin: &Arc<Rejoin>);

    /// False once nobody reads any more.
    fn is_read(&self) -> bool;
}
