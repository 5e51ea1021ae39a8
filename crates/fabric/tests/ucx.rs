//! Does UCX keep the contract of a fabric, by shared memory and by TCP, and what becomes of those who
//! use a process that is killed?
//!
//! Without the library these tests are skipped, and say so: `apt install libucx0`.

#![cfg(target_os = "linux")]

#[path = "contract/mod.rs"]
mod contract;
#[path = "ucx/processes.rs"]
mod processes;

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use contract::Cluster;
use jindou_fabric::FabricError;
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};
use jindou_fabric::ucx::{Transport, UcxFabric, UcxOptions};

/// What carries messages between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Ucx,
    Connection,
}

fn new(node: u32, transports: &[Transport]) -> Result<Arc<UcxFabric>, FabricError> {
    UcxFabric::new(&UcxOptions {
        transports: transports.to_vec(),
        ..UcxOptions::new(NodeId(node))
    })
}

/// Both ends of a connection.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

fn join(one: &UcxFabric, other: &UcxFabric, carrier: Carrier) -> Result<(), FabricError> {
    let (mine, yours) = (one.address(), other.address());
    if carrier == Carrier::Ucx {
        one.connect(other.node(), &yours)?;
        return other.connect(one.node(), &mine);
    }
    let (here, there) = connection();
    one.connect_over(other.node(), &yours, here)?;
    other.connect_over(one.node(), &mine, there)
}

/// Nodes of this process, each with a context of its own, connected with each other.
fn fabrics(
    nodes: usize,
    transports: &[Transport],
    carrier: Carrier,
) -> Result<Vec<Arc<UcxFabric>>, FabricError> {
    let new = |node| new(node, transports);
    let fabrics: Vec<_> = (0..nodes as u32).map(new).collect::<Result<_, _>>()?;
    for (place, one) in fabrics.iter().enumerate() {
        for other in &fabrics[..place] {
            join(one, other, carrier)?;
            let is_neighbour = transports.contains(&Transport::SharedMemory);
            assert_eq!(one.is_neighbour(other.node()), is_neighbour);
            assert_eq!(other.is_neighbour(one.node()), is_neighbour);
        }
    }
    Ok(fabrics)
}

/// True, and says why, if the library is not there. Whatever else is wrong fails the test.
fn is_skipped() -> bool {
    match UcxFabric::new(&UcxOptions::new(NodeId(0))) {
        Err(error @ FabricError::Unavailable { .. }) => {
            println!("SKIPPED: {error}");
            true
        }
        Err(error) => panic!("{error}"),
        Ok(_) => false,
    }
}

const NEAR: [Transport; 2] = [Transport::SharedMemory, Transport::Tcp];
const FAR: [Transport; 1] = [Transport::Tcp];

fn keep_the_contract(transports: &[Transport], carrier: Carrier) {
    if is_skipped() {
        return;
    }
    contract::all(&|nodes| {
        let fabrics = fabrics(nodes, transports, carrier).unwrap();
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
    keep_the_contract(&[Transport::SharedMemory], Carrier::Connection);
}

#[test]
fn neighbours_with_messages_by_ucx_keep_the_contract() {
    keep_the_contract(&NEAR, Carrier::Ucx);
}

#[test]
fn nodes_far_from_each_other_keep_the_contract() {
    keep_the_contract(&[], Carrier::Connection);
}

#[test]
fn nodes_far_from_each_other_with_messages_by_ucx_keep_the_contract() {
    keep_the_contract(&FAR, Carrier::Ucx);
}

#[test]
fn nodes_that_close_right_after_connecting_end_nobody() {
    if is_skipped() {
        return;
    }
    for round in 0..60 {
        let carrier = [Carrier::Ucx, Carrier::Connection][round % 2];
        let mut fabrics = fabrics(3, &NEAR, carrier).unwrap();
        fabrics.rotate_left(round % 3);
    }
}

#[test]
fn damaged_addresses_are_refused() {
    if is_skipped() {
        return;
    }
    let fabrics = fabrics(2, &FAR, Carrier::Connection).unwrap();
    let address = fabrics[1].address();
    for place in 0..address.len() {
        let mut damaged = address.clone();
        damaged[place] ^= 0x10;
        let refused = fabrics[0].connect(NodeId(1), &damaged);
        assert!(
            matches!(refused, Err(FabricError::Malformed(_))),
            "{refused:?}"
        );
    }
    let other = fabrics[0].connect(NodeId(2), &address);
    assert!(matches!(other, Err(FabricError::Malformed(_))), "{other:?}");
}

#[test]
fn a_connection_that_carries_nonsense_loses_its_peer() {
    if is_skipped() {
        return;
    }
    let (one, other) = (new(0, &FAR).unwrap(), new(1, &FAR).unwrap());
    let (here, mut there) = connection();
    one.connect_over(NodeId(1), &other.address(), here).unwrap();
    there.write_all(&[0xff; 4096]).unwrap();
    let limit = || Interrupt::at(one.now() + std::time::Duration::from_secs(60));
    let probed = one.probe(NodeId(1), &limit());
    assert_eq!(probed, Err(FabricError::PeerLost(NodeId(1))));
    // The same peer over a sound connection.
    join(&one, &other, Carrier::Connection).unwrap();
    assert_eq!(one.probe(NodeId(1), &limit()), Ok(()));
}

#[test]
fn shared_memory_alone_carries_no_messages() {
    if is_skipped() {
        return;
    }
    let near = [Transport::SharedMemory];
    let (one, other) = (new(0, &near).unwrap(), new(1, &near).unwrap());
    let refused = one.connect(NodeId(1), &other.address());
    assert!(
        matches!(refused, Err(FabricError::Unsupported(_))),
        "{refused:?}"
    );
}

#[test]
fn without_the_library_the_error_says_what_to_install() {
    let missing = UcxFabric::new(&UcxOptions {
        library: "libucp-that-is-not-there.so.0".to_owned(),
        ..UcxOptions::new(NodeId(0))
    });
    let error = missing.err().unwrap();
    assert!(
        matches!(error, FabricError::Unavailable { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("libucx0"), "{error}");
}
