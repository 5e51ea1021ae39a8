//! What becomes of links that cannot be used, or of which there are two?

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jindou_exec::{ForkSettings, MessageLimits, SpillLimits};
use jindou_fabric::Region;
use jindou_fabric::process::{ProcessFabric, ProcessOptions};
use jindou_fabric::remote::{Fabric, Registration};
use jindou_model::{Direction, PredicateId};
use jindou_store::{ArrayLayout, KeysLayout, LayerKind, PartLayout, SegmentLayout};

use super::*;
use crate::hello::HelloError;
use crate::one_sided::{Offered, Publication, segment_name};

/// Only a test that hangs waits for it.
const LONG: Duration = Duration::from_secs(60);
/// Enough to be shared.
const REGION_BYTES: usize = 1 << 20;

/// What a node offers of its only shard: one segment of three keys, with a neighbour each.
struct OfShard {
    publication: Publication,
    registration: Registration,
    _region: Region,
}

impl OfShard {
    fn new(fabric: &ProcessFabric) -> Self {
        let region = fabric.allocate(REGION_BYTES).unwrap().finish();
        let registration = fabric.register(&region).unwrap();
        let neighbours = ArrayLayout {
            offset: 0,
            width: 8,
            len: 3,
            base: 0,
        };
        let keys = PartLayout {
            first: 1,
            last: 3,
            row: 0,
            len: 3,
            stride_bits: 0,
            keys: KeysLayout::Dense,
        };
        let layout = SegmentLayout {
            region: region.id(),
            address: 0,
            region_bytes: REGION_BYTES as u64,
            domain: vec![keys],
            offsets: None,
            neighbours,
            hole: None,
        };
        let name = segment_name(LayerKind::Default, PredicateId(1), Direction::Out);
        let publication = Publication {
            segments: [(name, layout)].into_iter().collect(),
            memories: [(region.id().0, registration.key().clone())].into(),
        };
        Self {
            publication,
            registration,
            _region: region,
        }
    }
}

/// Two nodes with a shard each, and listeners at their addresses.
fn list() -> (PeerList, [TcpListener; 2]) {
    let listeners = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let nodes = listeners.iter().enumerate().map(|(number, listener)| {
        let address = listener.local_addr().unwrap();
        format!("[[node]]\nname = \"n{number}\"\naddress = \"{address}\"\n")
    });
    let text = format!("shards = 2\n{}", nodes.collect::<String>());
    (PeerList::parse(&text).unwrap(), listeners)
}

fn fabric(node: u32) -> Arc<ProcessFabric> {
    ProcessFabric::new(&ProcessOptions::new(NodeId(node))).unwrap()
}

fn start(
    peers: &PeerList,
    fabric: Arc<ProcessFabric>,
    offered: Offered,
    listener: TcpListener,
) -> Arc<Member> {
    let here = fabric.node();
    let options = MemberOptions {
        peers: peers.clone(),
        here,
        secret: None,
        version: "0".to_owned(),
        reads_one_sided: true,
        settings: ForkSettings::default(),
        threads: 1,
        starts: ThreadStarts::new(|_| Arc::new(|| ())),
        dealt_terms_bytes: 0,
        forks: ForkMessages {
            limits: MessageLimits::default(),
            memory_bytes: 1 << 20,
            spill: SpillLimits::off(),
            memory_pool: None,
        },
        stands_in: true,
        link: LinkOptions::default(),
        mail: MailLimits::default(),
        meet_within: LONG,
    };
    let base = OwnBase {
        tags: [1, 1].into(),
        shards: vec![(ShardId(here.0), Arc::new(offered))],
    };
    let graphs = Arc::new(NoGraphs) as Arc<dyn MemberGraphs>;
    let member = Member::new(options, fabric, ("one".to_owned(), base, graphs), None);
    member.meet(listener).unwrap();
    member
}

/// No snapshot.
struct NoGraphs;

impl MemberGraphs for NoGraphs {
    fn at(&self, _: SnapshotNumber, _: Duration) -> Result<Arc<OwnGraph>, Unavailable> {
        Err(Unavailable::Gone)
    }
}

fn presence(member: &Member, node: u32) -> Presence {
    member.status().swap_remove(node as usize).presence
}

#[track_caller]
fn wait_until(member: &Member, node: u32, is_so: impl Fn(&Presence) -> bool) {
    let begun = Instant::now();
    loop {
        let presence = presence(member, node);
        if is_so(&presence) {
            return;
        }
        assert!(begun.elapsed() < LONG, "{presence:?}");
        thread::yield_now();
    }
}

#[test]
fn a_slow_handshake_does_not_take_the_place_of_a_newer_link() {
    let mut newest = 0;
    // The first one connects, the second one, too, and is joined; then the first one is, at last.
    for number in [1, 2, 2] {
        assert!(note_connected(&mut newest, number).is_ok());
    }
    let late = note_connected(&mut newest, 1);
    assert!(matches!(late, Err(JoinError::Superseded)), "{late:?}");
    assert_eq!(newest, 2);
}

#[test]
fn a_node_whose_memory_cannot_be_opened_is_away_for_that_reason() {
    for withdraws in [0, 1] {
        let (peers, listeners) = list();
        let members: Vec<_> = (0..)
            .zip(listeners)
            .map(|(node, listener)| {
                let fabric = fabric(node);
                let OfShard {
                    publication,
                    registration,
                    _region,
                } = OfShard::new(&fabric);
                let registrations = match node == withdraws {
                    true => {
                        drop(registration);
                        Vec::new()
                    }
                    false => vec![registration],
                };
                let offered = Offered::of_parts(publication, registrations);
                (start(&peers, fabric, offered, listener), _region)
            })
            .collect();
        let reader = &members[1 - withdraws as usize].0;
        wait_until(reader, withdraws, |presence| match presence {
            Presence::Away(reason) => reason.starts_with("its memory cannot be read: "),
            _ => false,
        });
        assert!(!reader.wait_for_all(Duration::ZERO));
    }
}

/// Only one of both connects, and it does so when it has lost the link, too.
#[test]
fn a_link_that_either_node_alone_lost_is_lost_to_both_and_made_anew() {
    for loser in [0, 1] {
        let (peers, listeners) = list();
        let members = [0, 1]
            .map(|node| fabric(node as u32))
            .into_iter()
            .zip(listeners);
        let members: Vec<_> = members
            .map(|(fabric, listener)| {
                let OfShard {
                    publication,
                    registration,
                    _region,
                } = OfShard::new(&fabric);
                let offered = Offered::of_parts(publication, vec![registration]);
                (start(&peers, fabric, offered, listener), _region)
            })
            .collect();
        let (here, there) = (&members[loser].0, &members[1 - loser].0);
        let nodes = [here, there].map(|member| member.here());
        assert!(here.wait_for_all(LONG) && there.wait_for_all(LONG));
        let links = [here.link(nodes[1]), there.link(nodes[0])].map(Option::unwrap);
        // The test holds the link: its rings are not left, so only the connection tells the peer.
        here.lost(nodes[1], links[0].number, "a message that no node sends");
        let is_new = |member: &Member, node, before: &PeerLink| {
            let link = member.link(node);
            link.is_some_and(|link| link.number != before.number)
        };
        let begun = Instant::now();
        while !(is_new(here, nodes[1], &links[0]) && is_new(there, nodes[0], &links[1])) {
            assert!(begun.elapsed() < LONG, "node {loser} lost the other one");
            thread::yield_now();
        }
    }
}

#[test]
fn only_who_proved_to_be_a_node_says_why_it_is_away() {
    let (peers, [listener, _]) = list();
    let fabric = fabric(0);
    let OfShard {
        publication,
        registration,
        _region,
    } = OfShard::new(&fabric);
    let offered = Offered::of_parts(publication, vec![registration]);
    let member = start(&peers, fabric, offered, listener);
    let before = presence(&member, 1);
    let of_anybody = HelloError::OtherSecret { node: NodeId(1) };
    member.was_not_met(&of_anybody.into());
    assert_eq!(presence(&member, 1), before);
    let of_a_node = HelloError::OtherPeers {
        name: "n1".to_owned(),
    };
    let said = of_a_node.to_string();
    member.was_not_met(&of_a_node.into());
    assert_eq!(presence(&member, 1), Presence::Away(said));
}
