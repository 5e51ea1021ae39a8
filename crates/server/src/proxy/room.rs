//! How much of what clients send is held at once, and what becomes of that for which there is no room? It is passed
//! on as it comes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::StatusCode;
use hyper::body::{Body as _, Incoming};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::outgoing::Outgoing;
use crate::error::Refusal;

/// Bytes of one permit.
const GRANULE_BYTES: usize = 4 << 10;

/// The room for bodies.
pub(super) struct Holding {
    each_bytes: usize,
    all: Arc<Semaphore>,
    granules: usize,
    patience: Duration,
}

/// A part of it.
pub(super) type Room = OwnedSemaphorePermit;

/// The body of a request.
pub(super) enum Payload {
    /// It may be sent as often as it takes.
    Held(HeldBody),
    /// It is sent once.
    Passed(Outgoing),
}

/// A body that is held as a whole.
#[derive(Default)]
pub(super) struct HeldBody {
    pub(super) bytes: Bytes,
    _room: Option<Room>,
}

impl Holding {
    /// Of bodies of so many bytes each and so many together, from clients that pause no longer than that.
    pub(super) fn new(each_bytes: usize, all_bytes: usize, patience: Duration) -> Self {
        let granules = all_bytes
            .div_ceil(GRANULE_BYTES)
            .clamp(1, Semaphore::MAX_PERMITS.min(u32::MAX as usize));
        Self {
            each_bytes,
            all: Arc::new(Semaphore::new(granules)),
            granules,
            patience,
        }
    }

    /// Bytes that are held.
    pub(super) fn held_bytes(&self) -> usize {
        (self.granules - self.all.available_permits()) * GRANULE_BYTES
    }

    /// A body that is not held.
    pub(super) fn pass(&self, rest: Incoming) -> Payload {
        self.pass_after(VecDeque::new(), None, rest)
    }

    fn pass_after(&self, first: VecDeque<Bytes>, room: Option<Room>, rest: Incoming) -> Payload {
        Payload::Passed(Outgoing::passed((first, room), rest, self.patience))
    }

    /// Reads a body, if it is small enough and there is room for it.
    pub(super) async fn take(&self, mut body: Incoming) -> Result<Payload, Refusal> {
        if body.is_end_stream() {
            return Ok(Payload::Held(HeldBody::default()));
        }
        if body.size_hint().lower() > self.each_bytes as u64 {
            return Ok(self.pass(body));
        }
        let end = Instant::now() + self.patience;
        let (mut parts, mut bytes, mut room) = (VecDeque::new(), 0, None);
        while let Some(part) = next(&mut body, end).await? {
            bytes += part.len();
            parts.push_back(part);
            if bytes > self.each_bytes || !self.make_room(&mut room, bytes) {
                return Ok(self.pass_after(parts, room, body));
            }
        }
        let bytes = match parts.len() {
            1 => parts.pop_front().unwrap_or_default(),
            _ => {
                let mut whole = Vec::with_capacity(bytes);
                parts.iter().for_each(|part| whole.extend_from_slice(part));
                whole.into()
            }
        };
        Ok(Payload::Held(HeldBody { bytes, _room: room }))
    }

    /// Grows a part of the room to so many bytes, if that is there.
    fn make_room(&self, room: &mut Option<Room>, bytes: usize) -> bool {
        let has = room.as_ref().map_or(0, Room::num_permits);
        let more = bytes.div_ceil(GRANULE_BYTES).saturating_sub(has);
        let Ok(more) = u32::try_from(more) else {
            return false;
        };
        let Ok(more) = Arc::clone(&self.all).try_acquire_many_owned(more) else {
            return false;
        };
        match room {
            Some(room) => room.merge(more),
            None => *room = Some(more),
        }
        true
    }
}

impl HeldBody {
    /// What one request is sent of it, which is all.
    pub(super) fn outgoing(&self) -> Outgoing {
        Outgoing::Held(self.bytes.clone())
    }
}

/// The next bytes of a body, if they come before `end`.
async fn next(body: &mut Incoming, end: Instant) -> Result<Option<Bytes>, Refusal> {
    loop {
        let frame = timeout_at(end, body.frame()).await.map_err(|_| {
            let message = "the body took too long to arrive";
            Refusal::new(StatusCode::REQUEST_TIMEOUT, message)
        })?;
        let Some(frame) = frame else {
            return Ok(None);
        };
        let frame = frame.map_err(|_| Refusal::bad_request("the body ended early"))?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_to_its_bound_and_comes_back() {
        let holding = Holding::new(1 << 20, 3 * GRANULE_BYTES, Duration::ZERO);
        let (mut one, mut other) = (None, None);
        assert!(holding.make_room(&mut one, 1));
        assert!(holding.make_room(&mut one, GRANULE_BYTES));
        assert_eq!(holding.held_bytes(), GRANULE_BYTES);
        assert!(holding.make_room(&mut one, GRANULE_BYTES + 1));
        assert!(holding.make_room(&mut other, 1));
        assert!(!holding.make_room(&mut other, GRANULE_BYTES + 1));
        assert_eq!(holding.held_bytes(), 3 * GRANULE_BYTES);
        drop(one);
        assert!(holding.make_room(&mut other, 3 * GRANULE_BYTES));
        drop(other);
        assert_eq!(holding.held_bytes(), 0);
    }
}
