//! Which bases do the nodes tell each other of, before and after merges?
//!
//! A node tells its peers of a base when they meet, and of each one that it has after that. Of each peer the last two
//! are read: one that has merged already is read by the base before until this node has merged, too.

use std::sync::Arc;

use jindou_fabric::FabricError;
use jindou_fabric::remote::Fabric;
use jindou_model::{NodeId, ShardId};
use parking_lot::{Mutex, MutexGuard};

use super::joining::{PeerLink, advert};
use super::{Member, OwnBase, user};
use crate::Advert;
use crate::advert::BaseTags;
use crate::hello::MOST_MESSAGE_BYTES;
use crate::one_sided::{Alike, Offered, Opened};

/// Bases of a peer that are read.
const MOST_BASES: usize = 2;

/// A base of a peer, ready to be read.
pub(super) struct PeerBase {
    number: u64,
    pub(super) tags: BaseTags,
    pub(super) shards: Vec<(ShardId, Opened)>,
}

impl PeerBase {
    /// Opens what a peer told of; what it told of `before`, and is still there, is not opened again.
    ///
    /// # Errors
    /// Those of [`Fabric::open`].
    pub(super) fn open(
        advert: &Advert,
        fabric: &dyn Fabric,
        before: Option<&Self>,
    ) -> Result<Arc<Self>, FabricError> {
        let open = |(place, (shard, publication)): (usize, &(ShardId, _))| {
            // Peers have the same shards for as long as they are linked.
            let before = before.map(|before| &before.shards[place].1);
            Ok((*shard, Opened::new(publication, fabric, before)?))
        };
        let shards = advert.shards.iter().enumerate().map(open);
        Ok(Arc::new(Self {
            number: advert.number,
            tags: Arc::clone(&advert.tags),
            shards: shards.collect::<Result<_, FabricError>>()?,
        }))
    }
}

/// Of which predicates bases of a peer are read where a base has these tags: of each one by itself, and of any.
pub(super) fn alike(tags: &BaseTags, bases: &[Arc<PeerBase>]) -> (Vec<Arc<Alike>>, Alike) {
    let each = bases.iter().map(|base| Alike::of(tags, &base.tags));
    let each: Vec<Alike> = each.collect();
    let any = each.iter().fold(Alike::none(), |any, one| any.or(one));
    (each.into_iter().map(Arc::new).collect(), any)
}

/// The shards of a base of this node, ready to be read as those of others are.
pub(super) struct OwnOpened {
    pub(super) tags: BaseTags,
    pub(super) shards: Vec<(ShardId, Opened)>,
    /// What offers them.
    _offered: OwnBase,
}

/// The base that peers are told of.
pub(super) struct OwnBases {
    state: Mutex<(u64, OwnBase)>,
    /// The one that was opened last.
    opened: Mutex<Option<(u64, Arc<OwnOpened>)>>,
    /// Held while pieces of an advert are sent, so that none of another one comes between.
    sending: Mutex<()>,
}

impl OwnBases {
    pub(super) fn new(base: OwnBase) -> Self {
        Self {
            state: Mutex::new((1, base)),
            opened: Mutex::default(),
            sending: Mutex::default(),
        }
    }

    /// What peers are told.
    pub(super) fn advert(&self) -> Advert {
        let state = self.state.lock();
        let (number, base) = &*state;
        let shards = base.shards.iter();
        Advert {
            number: *number,
            tags: Arc::clone(&base.tags),
            shards: shards
                .map(|(shard, offered)| (*shard, offered.publication().clone()))
                .collect(),
        }
    }

    /// Its shards, to be read by this node.
    ///
    /// # Errors
    /// Those of [`Fabric::open`].
    pub(super) fn opened(&self, fabric: &dyn Fabric) -> Result<Arc<OwnOpened>, FabricError> {
        let (number, base) = self.state.lock().clone();
        let mut last = self.opened.lock();
        if let Some((of, opened)) = &*last
            && *of == number
        {
            return Ok(Arc::clone(opened));
        }
        let open = |(shard, offered): &(ShardId, Arc<Offered>)| {
            Ok((*shard, Opened::new(offered.publication(), fabric, None)?))
        };
        let shards: Result<_, FabricError> = base.shards.iter().map(open).collect();
        let opened = Arc::new(OwnOpened {
            tags: Arc::clone(&base.tags),
            shards: shards?,
            _offered: base,
        });
        *last = Some((number, Arc::clone(&opened)));
        Ok(opened)
    }

    pub(super) fn tags(&self) -> BaseTags {
        Arc::clone(&self.state.lock().1.tags)
    }
}

impl Member {
    /// Tells the peers that this node has another base from now on, which they read in place of the ones before. What
    /// these have of regions that the new one lacks stays readable for as long as the caller keeps it.
    ///
    /// # Panics
    /// If the shards are not those of before.
    pub fn publish(&self, base: OwnBase) {
        {
            let mut state = self.bases.state.lock();
            let shards = |base: &OwnBase| {
                let shards = base.shards.iter().map(|(shard, _)| *shard);
                shards.collect::<Vec<_>>()
            };
            assert_eq!(
                shards(&base),
                shards(&state.1),
                "shards stay where they are"
            );
            *state = (state.0 + 1, base);
        }
        let links = self.links.lock();
        // It reads its own shards as those of others.
        self.look(&links);
        let links = links.clone();
        self.send_advert(links.iter().flatten());
    }

    /// Tells a peer of the base, unless it was told when it was met: another one came after that.
    pub(super) fn tell_again(&self, link: &Arc<PeerLink>, told: u64) {
        if self.bases.state.lock().0 > told {
            self.send_advert(std::iter::once(link));
        }
    }

    fn send_advert<'l>(&self, links: impl Iterator<Item = &'l Arc<PeerLink>>) {
        let _one = self.bases.sending.lock();
        let bytes = self.bases.advert().to_bytes();
        if bytes.len() as u64 > MOST_MESSAGE_BYTES {
            tracing::warn!("too much is to be told of the shards: other nodes ask for some");
            return;
        }
        for link in links {
            let mut pieces = user::of_advert(&bytes).into_iter();
            // One that is lost is told when it is met again.
            let _is_told = pieces.all(|piece| link.mail.send(piece));
        }
    }

    /// A piece of an advert came by the link of this number.
    ///
    /// # Errors
    /// Why the peer does not speak as it should.
    pub(super) fn received_advert(
        &self,
        (from, number): (NodeId, u64),
        piece: &[u8],
        is_last: bool,
    ) -> Result<(), String> {
        let links = self.links.lock();
        let link = links[from.0 as usize].clone();
        // Of a link that has ended nothing is read, and of one to a peer by another list nothing is known.
        let is_read = |link: &Arc<PeerLink>| link.number == number && link.list == self.list();
        let Some(link) = link.filter(is_read) else {
            return Ok(());
        };
        let mut pieces = link.pieces.lock();
        if (pieces.len() + piece.len()) as u64 > MOST_MESSAGE_BYTES {
            return Err("it tells more of its shards than a node may".to_owned());
        }
        pieces.extend_from_slice(piece);
        if !is_last {
            return Ok(());
        }
        let bytes = std::mem::take(&mut *pieces);
        drop(pieces);
        let advert = advert(self, from, &bytes).map_err(|error| error.to_string())?;
        self.read_base(links, &link, &advert)
    }

    fn read_base(
        &self,
        links: MutexGuard<'_, Vec<Option<Arc<PeerLink>>>>,
        link: &PeerLink,
        advert: &Advert,
    ) -> Result<(), String> {
        {
            let mut bases = link.bases.lock();
            let last = bases.first();
            if last.is_some_and(|last| last.number >= advert.number) {
                return Ok(());
            }
            match PeerBase::open(advert, &*self.fabric, last.map(|last| &**last)) {
                Ok(base) => {
                    bases.insert(0, base);
                    bases.truncate(MOST_BASES);
                }
                // It has another one by now, and tells of that.
                Err(FabricError::Unregistered(_)) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        self.look(&links);
        Ok(())
    }
}
