//! What do two members tell each other before they use each other's memory?

use std::net::TcpStream;
use std::sync::{Arc, Weak};

use jindou_exec::{ByClass, QueryClass};
use jindou_fabric::FabricError;
use jindou_fabric::remote::Fabric;
use jindou_fabric::ring::{Invitation, RingError};
use jindou_model::{NodeId, ShardId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::Member;
use super::bases::PeerBase;
use crate::Advert;
use crate::advert::AdvertError;
use crate::calls::{Link, LinkEnd, LinkError, Listening, OpenEnd};
use crate::hello::{Greeted, HelloError};
use crate::mail::{Mail, Postman};

/// What there is between this node and a peer.
pub(super) struct PeerLink {
    /// No other link of this member has it.
    pub(super) number: u64,
    /// By which state of the list the peer is there.
    pub(super) list: u64,
    /// What the peer told of its shards, the last first.
    pub(super) bases: Mutex<Vec<Arc<PeerBase>>>,
    /// What came of an advert that is not whole.
    pub(super) pieces: Mutex<Vec<u8>>,
    /// Its memory is read by loads.
    pub(super) is_mapped: bool,
    /// The peer is asked over it, for queries of each class.
    pub(super) calls: ByClass<Arc<Link>>,
    /// Sub-queries, and what they find.
    pub(super) mail: Arc<Mail>,
    /// The peer asks this node.
    _answering: ByClass<Listening>,
}

/// All that a link needs but for its mail, which is not opened before the member has the link: what comes may
/// be answered at once.
pub(super) struct Joined {
    pub(super) number: u64,
    /// By which state of the list the peer is there.
    list: u64,
    /// What the peer told of its shards, where it holds them by the same list,
    pub(super) theirs: Option<Advert>,
    /// and the number of what it was told.
    pub(super) told: u64,
    is_mapped: bool,
    calls: ByClass<Arc<Link>>,
    answering: ByClass<Listening>,
    mail: LinkEnd,
}

impl Joined {
    /// The link, of whose peer no base is open yet. Its messages come to the member from now on: these wait until it
    /// has the link.
    pub(super) fn open(self, member: &Arc<Member>) -> Result<PeerLink, LinkError> {
        let postman = Arc::new(AtDoor {
            member: Arc::downgrade(member),
            number: self.number,
        });
        Ok(PeerLink {
            number: self.number,
            list: self.list,
            bases: Mutex::default(),
            pieces: Mutex::default(),
            is_mapped: self.is_mapped,
            calls: self.calls,
            mail: Mail::start(self.mail, member.options.mail, postman)?,
            _answering: self.answering,
        })
    }
}

/// Why two members that know each other are not joined.
#[derive(Debug, thiserror::Error)]
pub(super) enum JoinError {
    #[error("it cannot be reached: {0}")]
    Connect(std::io::Error),
    #[error(transparent)]
    Hello(#[from] HelloError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Ring(#[from] RingError),
    #[error(transparent)]
    Fabric(#[from] FabricError),
    #[error(transparent)]
    Advert(#[from] AdvertError),
    #[error("its memory cannot be read: {0}")]
    Memory(FabricError),
    #[error("a newer connection with it took the place of this one")]
    Superseded,
    #[error("it has left the cluster")]
    HasLeft,
    #[error("it says what this version cannot read: {0}")]
    Malformed(&'static str),
}

/// As it travels: each side tells the other one.
#[derive(Serialize, Deserialize)]
struct Told {
    /// Of the fabric.
    address: Vec<u8>,
    /// To the rings in which it receives answers and requests, by class, and messages of sub-queries.
    answers: [Vec<u8>; 2],
    requests: [Vec<u8>; 2],
    mail: Vec<u8>,
    advert: Vec<u8>,
}

impl Told {
    fn read(bytes: &[u8]) -> Result<Self, JoinError> {
        match postcard::take_from_bytes(bytes) {
            Ok((told, [])) => Ok(told),
            _ => Err(JoinError::Malformed("what it tells of itself")),
        }
    }
}

/// The rings in which a member receives from a peer.
struct Ends {
    asking: ByClass<OpenEnd>,
    answering: ByClass<OpenEnd>,
    mail: OpenEnd,
}

impl Ends {
    fn new(member: &Member, peer: NodeId) -> Result<Self, RingError> {
        let open = || {
            let fabric = Arc::clone(&member.fabric) as Arc<dyn Fabric>;
            OpenEnd::new(fabric, peer, &member.options.link)
        };
        Ok(Self {
            asking: ByClass::try_new(|_| open())?,
            answering: ByClass::try_new(|_| open())?,
            mail: open()?,
        })
    }
}

/// Joins a member with a peer that it has met on `stream`, which carries messages of the fabric after that.
pub(super) fn join(
    member: &Arc<Member>,
    mut greeted: Greeted,
    stream: TcpStream,
    number: u64,
) -> Result<Joined, JoinError> {
    let peer = greeted.node;
    let ends = Ends::new(member, peer)?;
    let own = member.advert();
    let told = Told {
        address: member.fabric.address(),
        answers: invitations(&ends.asking),
        requests: invitations(&ends.answering),
        mail: ends.mail.invitation().to_bytes(),
        advert: own.to_bytes(),
    };
    let told = postcard::to_extend(&told, Vec::new()).expect("memory takes all that is written");
    let theirs = Told::read(&greeted.exchange(&stream, &told, member.options.meet_within)?)?;
    let advert = (greeted.list == member.list()).then(|| advert(member, peer, &theirs.advert));
    let (requests, answers) = (invited(&theirs.requests)?, invited(&theirs.answers)?);
    let mail = Invitation::from_bytes(&theirs.mail)?;
    member.connect((peer, number), &theirs.address, stream)?;
    let asking = joined(ends.asking, &requests)?;
    let answering = joined(ends.answering, &answers)?;
    let mail = ends.mail.join(&mail)?;
    Ok(Joined {
        number,
        list: greeted.list,
        theirs: advert.transpose()?,
        told: own.number,
        is_mapped: member.fabric.is_neighbour(peer),
        calls: asking.map(|_, end| Arc::new(Link::over(end, &member.counts))),
        answering: answering.try_map(|class, end| {
            let start = Arc::clone(member.options.starts.of(class));
            Listening::start_for((class, start), Arc::clone(&member.server), end)
        })?,
        mail,
    })
}

/// To the rings of open ends, by class.
fn invitations(ends: &ByClass<OpenEnd>) -> [Vec<u8>; 2] {
    QueryClass::ALL.map(|class| ends.of(class).invitation().to_bytes())
}

/// What a peer invites to, by class.
fn invited([light, heavy]: &[Vec<u8>; 2]) -> Result<ByClass<Invitation>, FabricError> {
    let invited = ByClass { light, heavy };
    invited.try_map(|_, bytes| Invitation::from_bytes(bytes))
}

fn joined(
    ends: ByClass<OpenEnd>,
    invitations: &ByClass<Invitation>,
) -> Result<ByClass<LinkEnd>, RingError> {
    ends.try_map(|class, end| end.join(invitations.of(class)))
}

/// What a peer says of its shards, which are those that it is to have.
pub(super) fn advert(member: &Member, peer: NodeId, bytes: &[u8]) -> Result<Advert, JoinError> {
    let advert = Advert::from_bytes(bytes, peer, member.map.shards())?;
    let told: Vec<ShardId> = advert.shards.iter().map(|(shard, _)| *shard).collect();
    if told != member.shards_of(peer).collect::<Vec<_>>() {
        return Err(JoinError::Malformed("shards that it does not hold"));
    }
    Ok(advert)
}

/// Takes what comes from a peer.
struct AtDoor {
    member: Weak<Member>,
    /// Of the link.
    number: u64,
}

impl Postman for AtDoor {
    fn received(&self, from: NodeId, message: Vec<u8>) -> Result<(), String> {
        match self.member.upgrade() {
            Some(member) => member.received((from, self.number), message),
            None => Ok(()),
        }
    }

    fn lost(&self, node: NodeId, reason: &str) {
        if let Some(member) = self.member.upgrade() {
            member.lost(node, self.number, reason);
        }
    }
}
