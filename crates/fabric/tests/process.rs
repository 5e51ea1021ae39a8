//! Do processes keep the contract of a fabric, with mapped memory and without, and what becomes of
//! those who use one that is killed?
//!
//! Without UCX the tests of its messages are skipped, and say so: `apt install libucx0`.

#![cfg(target_os = "linux")]

#[path = "process/altered.rs"]
mod altered;
#[path = "contract/mod.rs"]
mod contract;
#[path = "process/processes.rs"]
mod processes;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use contract::Cluster;
use jindou_fabric::FabricError;
use jindou_fabric::process::{ProcessFabric, ProcessOptions, UcxOptions};
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};

/// What carries messages between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Ucx,
    Connection,
}

fn new(node: u32, maps_memory: bool, carrier: Carrier) -> Result<Arc<ProcessFabric>, FabricError> {
    ProcessFabric::new(&ProcessOptions {
        maps_memory,
        ucx: (carrier == Carrier::Ucx).then(UcxOptions::default),
        ..ProcessOptions::new(NodeId(node))
    })
}

/// Both ends of a connection.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

fn join(one: &ProcessFabric, other: &ProcessFabric, carrier: Carrier) -> Result<(), FabricError> {
    let (mine, yours) = (one.address(), other.address());
    if carrier == Carrier::Ucx {
        one.connect_by_ucx(other.node(), &yours)?;
        return other.connect_by_ucx(one.node(), &mine);
    }
    let (here, there) = connection();
    one.connect(other.node(), &yours, here)?;
    other.connect(one.node(), &mine, there)
}

/// Nodes of this process, each with a context of its own, connected with each other.
fn fabrics(
    nodes: usize,
    maps_memory: bool,
    carrier: Carrier,
) -> Result<Vec<Arc<ProcessFabric>>, FabricError> {
    if carrier == Carrier::Connection {
        return ProcessFabric::connected(nodes as u32, maps_memory);
    }
    let new = |node| new(node, maps_memory, carrier);
    let fabrics: Vec<_> = (0..nodes as u32).map(new).collect::<Result<_, _>>()?;
    for (place, one) in fabrics.iter().enumerate() {
        for other in &fabrics[..place] {
            join(one, other, carrier)?;
            assert_eq!(one.is_neighbour(other.node()), maps_memory);
            assert_eq!(other.is_neighbour(one.node()), maps_memory);
        }
    }
    Ok(fabrics)
}

/// True, and says why, if UCX is not there. Whatever else is wrong fails the test.
fn is_without_ucx() -> bool {
    match new(0, false, Carrier::Ucx) {
        Err(error @ FabricError::Unavailable { .. }) => {
            println!("SKIPPED: {error}");
            true
        }
        Err(error) => panic!("{error}"),
        Ok(_) => false,
    }
}

fn keep_the_contract(maps_memory: bool, carrier: Carrier) {
    if carrier == Carrier::Ucx && is_without_ucx() {
        return;
    }
    contract::all(&|nodes| {
        let fabrics = fabrics(nodes, maps_memory, carrier).unwrap();
        let killable = fabrics.clone();
        let as_fabric = |fabric| fabric as Arc<dyn Fabric>;
        Cluster {
            fabrics: fabrics.into_iter().map(as_fabric).collect(),
            kill: Box::new(move |node| killable[node.0 as usize].close()),
            has_threads: true,
            outlives_itself: true,
        }
    });
}

#[test]
fn neighbours_keep_the_contract() {
    keep_the_contract(true, Carrier::Connection);
}

#[test]
fn neighbours_with_messages_by_ucx_keep_the_contract() {
    keep_the_contract(true, Carrier::Ucx);
}

#[test]
fn nodes_far_from_each_other_keep_the_contract() {
    keep_the_contract(false, Carrier::Connection);
}

#[test]
fn nodes_far_from_each_other_with_messages_by_ucx_keep_the_contract() {
    keep_the_contract(false, Carrier::Ucx);
}

#[test]
fn nodes_that_close_right_after_connecting_end_nobody() {
    let carriers: &[Carrier] = match is_without_ucx() {
        true => &[Carrier::Connection],
        false => &[Carrier::Connection, Carrier::Ucx],
    };
    for round in 0..60 {
        let carrier = carriers[round % carriers.len()];
        let mut fabrics = fabrics(3, true, carrier).unwrap();
        fabrics.rotate_left(round % 3);
    }
}

#[test]
fn damaged_addresses_are_refused() {
    let fabrics = fabrics(2, true, Carrier::Connection).unwrap();
    let address = fabrics[1].address();
    for place in 0..address.len() {
        let mut damaged = address.clone();
        damaged[place] ^= 0x10;
        let refused = fabrics[0].connect(NodeId(1), &damaged, connection().0);
        assert!(
            matches!(refused, Err(FabricError::Malformed(_))),
            "{refused:?}"
        );
    }
    let other = fabrics[0].connect(NodeId(2), &address, connection().0);
    assert!(matches!(other, Err(FabricError::Malformed(_))), "{other:?}");
}

#[test]
fn a_connection_that_carries_nonsense_loses_its_peer() {
    let new = |node| new(node, false, Carrier::Connection).unwrap();
    let (one, other) = (new(0), new(1));
    let (here, mut there) = connection();
    one.connect(NodeId(1), &other.address(), here).unwrap();
    there.write_all(&[0xff; 4096]).unwrap();
    let limit = || Interrupt::at(one.now() + Duration::from_secs(60));
    let probed = one.probe(NodeId(1), &limit());
    assert_eq!(probed, Err(FabricError::PeerLost(NodeId(1))));
    // The same peer over a sound connection.
    join(&one, &other, Carrier::Connection).unwrap();
    assert_eq!(one.probe(NodeId(1), &limit()), Ok(()));
}

#[test]
fn a_peer_that_says_nothing_is_lost() {
    let one = ProcessFabric::new(&ProcessOptions {
        maps_memory: false,
        connect_within: Duration::from_millis(100),
        ..ProcessOptions::new(NodeId(0))
    })
    .unwrap();
    let other = new(1, false, Carrier::Connection).unwrap();
    // Nobody reads the other end.
    let (here, _there) = connection();
    one.connect(NodeId(1), &other.address(), here).unwrap();
    let limit = Interrupt::at(one.now() + Duration::from_secs(60));
    let probed = one.probe(NodeId(1), &limit);
    assert_eq!(probed, Err(FabricError::PeerLost(NodeId(1))));
}

#[test]
fn peers_made_without_ucx_are_not_connected_by_it() {
    let new = |node| new(node, true, Carrier::Connection).unwrap();
    let (one, other) = (new(0), new(1));
    let refused = one.connect_by_ucx(NodeId(1), &other.address());
    assert!(
        matches!(refused, Err(FabricError::Unsupported(_))),
        "{refused:?}"
    );
}

#[test]
fn without_the_library_the_error_says_what_to_install() {
    let missing = ProcessFabric::new(&ProcessOptions {
        ucx: Some(UcxOptions {
            library: "libucp-that-is-not-there.so.0".to_owned(),
            ..UcxOptions::default()
        }),
        ..ProcessOptions::new(NodeId(0))
    });
    let error = missing.err().unwrap();
    assert!(
        matches!(error, FabricError::Unavailable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("libucx0"), "{error}");
}
