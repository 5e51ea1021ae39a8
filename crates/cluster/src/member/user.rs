//! Who else sends messages over the links of a member, and when do links begin and end for them?
//!
//! What happens to one node (a link with it begins, a message comes, the link ends) is told one after the other,
//! whatever threads it is met on, and of an older link nothing is told once a newer one has begun.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jindou_model::NodeId;
use parking_lot::Mutex;

use super::joining::JoinError;
use crate::mail::Mail;

/// What a message between members is about: its last byte.
const SUB_QUERY: u8 = 0;
const OF_USER: u8 = 1;
const OF_ADVERT: u8 = 2;
const END_OF_ADVERT: u8 = 3;

/// Bytes of a piece of an advert.
const ADVERT_PIECE_BYTES: usize = 8 << 20;

/// Somebody who uses the links of a member beside it.
pub trait LinkUser: Send + Sync {
    /// A link with a node has begun. It may send at once.
    fn joined(&self, node: NodeId);

    /// The link with a node has ended: what was sent over it may not have come.
    fn lost(&self, node: NodeId);

    /// Takes a message of a node, on the thread of the link, which receives nothing else meanwhile.
    ///
    /// # Errors
    /// Why the node does not speak as it should: then the link ends.
    fn received(&self, from: NodeId, message: Vec<u8>) -> Result<(), String>;

    /// A node that has no copy of the store asks for one, by a connection that both have greeted each other on, and that is
    /// used for nothing else. Called on a thread that nobody waits for.
    fn give_copy(&self, to: NodeId, stream: TcpStream);
}

/// A message between members.
pub(super) enum Letter {
    SubQuery(Vec<u8>),
    OfUser(Vec<u8>),
    /// A piece of an advert, and whether it is the last one.
    OfAdvert(Vec<u8>, bool),
}

/// A message of sub-queries as it travels.
pub(super) fn of_sub_query(mut message: Vec<u8>) -> Vec<u8> {
    message.push(SUB_QUERY);
    message
}

/// An advert as it travels over a link, of which another one is sent already.
pub(super) fn of_advert(advert: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = (advert.chunks(ADVERT_PIECE_BYTES))
        .map(|piece| [piece, &[OF_ADVERT]].concat())
        .collect();
    if let Some(kind) = pieces.last_mut().and_then(|last| last.last_mut()) {
        *kind = END_OF_ADVERT;
    }
    pieces
}

impl Letter {
    pub(super) fn read(mut bytes: Vec<u8>) -> Result<Self, String> {
        match bytes.pop() {
            Some(SUB_QUERY) => Ok(Self::SubQuery(bytes)),
            Some(OF_USER) => Ok(Self::OfUser(bytes)),
            Some(OF_ADVERT) => Ok(Self::OfAdvert(bytes, false)),
            Some(END_OF_ADVERT) => Ok(Self::OfAdvert(bytes, true)),
            _ => Err("it sends a message of no kind that is known".to_owned()),
        }
    }
}

/// The links as their user knows them.
pub(super) struct UserLinks {
    user: Option<Arc<dyn LinkUser>>,
    /// No link begins any more.
    is_closed: AtomicBool,
    /// By node.
    places: Box<[Place]>,
}

#[derive(Default)]
struct Place {
    /// The number of the link that the user was told of last, or 0. Held while it is told something.
    told: Mutex<u64>,
    /// By which it sends.
    mail: Mutex<Option<Arc<Mail>>>,
}

impl UserLinks {
    pub(super) fn new(user: Option<Arc<dyn LinkUser>>, nodes: usize) -> Self {
        Self {
            user,
            is_closed: AtomicBool::new(false),
            places: (0..nodes).map(|_| Place::default()).collect(),
        }
    }

    /// Who uses them.
    pub(super) fn user(&self) -> Option<Arc<dyn LinkUser>> {
        self.user.clone()
    }

    /// Has `open` open the link of this number with a node, and tells of it before anything that comes by it.
    pub(super) fn join<T>(
        &self,
        (node, number): (NodeId, u64),
        open: impl FnOnce() -> Result<(T, Arc<Mail>), JoinError>,
    ) -> Result<T, JoinError> {
        let place = &self.places[node.0 as usize];
        let mut told = place.told.lock();
        if self.is_closed.load(Ordering::SeqCst) {
            return Err(JoinError::Superseded);
        }
        let (opened, mail) = open()?;
        let Some(user) = &self.user else {
            return Ok(opened);
        };
        *place.mail.lock() = Some(mail);
        if std::mem::replace(&mut *told, number) != 0 {
            user.lost(node);
        }
        user.joined(node);
        Ok(opened)
    }

    /// Tells that the link of this number has ended.
    pub(super) fn end(&self, node: NodeId, number: u64) {
        let place = &self.places[node.0 as usize];
        let mut told = place.told.lock();
        if *told == number {
            *told = 0;
            *place.mail.lock() = None;
            if let Some(user) = &self.user {
                user.lost(node);
            }
        }
    }

    /// Hands on what came by the link of this number.
    pub(super) fn received(
        &self,
        (from, number): (NodeId, u64),
        message: Vec<u8>,
    ) -> Result<(), String> {
        let Some(user) = &self.user else {
            return Err("it sends transactions, and this node's store is only read".to_owned());
        };
        let told = self.places[from.0 as usize].told.lock();
        match *told == number {
            true => user.received(from, message),
            false => Ok(()),
        }
    }

    /// Sends a message of the user; false if there is no link.
    pub(super) fn send(&self, to: NodeId, mut message: Vec<u8>) -> bool {
        message.push(OF_USER);
        self.mail(to).is_some_and(|mail| mail.send(message))
    }

    /// The same before what waits.
    pub(super) fn send_ahead(&self, to: NodeId, mut message: Vec<u8>) -> bool {
        message.push(OF_USER);
        self.mail(to).is_some_and(|mail| mail.send_ahead(message))
    }

    fn mail(&self, to: NodeId) -> Option<Arc<Mail>> {
        let place = self.places.get(to.0 as usize)?;
        place.mail.lock().clone()
    }

    /// Tells that each link that there is has ended, and of none after that.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for (node, place) in (0..).map(NodeId).zip(&self.places) {
            let mut told = place.told.lock();
            let mail = place.mail.lock().take();
            if std::mem::take(&mut *told) != 0
                && let Some(user) = &self.user
            {
                user.lost(node);
            }
            drop(told);
            // The last of a mail waits for its thread, which may be about to tell of something.
            drop(mail);
        }
    }

    /// Lets go of all links, of which nothing is told any more.
    pub(super) fn forget(&self) {
        for place in &self.places {
            // The last of a mail waits for its thread, which may be about to tell of something.
            let mail = place.mail.lock().take();
            drop(mail);
        }
    }
}
