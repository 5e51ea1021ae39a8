//! Does UCX keep the contract of a fabric, by shared memory and by TCP, and what becomes of those who
//! use a process that is killed?
//!
//! Without the library these tests are skipped, and say so: `apt install libucx0`.

#![cfg(target_os = "linux")]

#[path = "contract/mod.rs"]
mod contract;
#[path = "ucx/processes.rs"]
mod processes;

use std::sync::Arc;

use contract::Cluster;
use jindou_fabric::FabricError;
use jindou_fabric::remote::{Fabric, NodeId};
use jindou_fabric::ucx::{Transport, UcxFabric, UcxOptions};

/// Nodes of this process, each with a context of its own, connected with each other.
fn fabrics(nodes: usize, transports: &[Transport]) -> Result<Vec<Arc<UcxFabric>>, FabricError> {
    let new = |node| {
        UcxFabric::new(&UcxOptions {
            transports: transports.to_vec(),
            ..UcxOptions::new(NodeId(node))
        })
    };
    let fabrics: Vec<_> = (0..nodes as u32).map(new).collect::<Result<_, _>>()?;
    for one in &fabrics {
        for other in fabrics.iter().filter(|other| other.node() != one.node()) {
            one.connect(other.node(), &other.address())?;
            let is_neighbour = transports.contains(&Transport::SharedMemory);
            assert_eq!(one.is_neighbour(other.node()), is_neighbour);
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

fn keep_the_contract(transports: &[Transport]) {
    if is_skipped() {
        return;
    }
    contract::all(&|nodes| {
        let fabrics = fabrics(nodes, transports).unwrap();
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
    keep_the_contract(&[Transport::SharedMemory, Transport::Tcp]);
}

#[test]
fn nodes_that_only_tcp_joins_keep_the_contract() {
    keep_the_contract(&[Transport::Tcp]);
}

#[test]
fn nodes_that_close_right_after_connecting_end_nobody() {
    if is_skipped() {
        return;
    }
    for round in 0..60 {
        let mut fabrics = fabrics(3, &[Transport::SharedMemory, Transport::Tcp]).unwrap();
        fabrics.rotate_left(round % 3);
    }
}

#[test]
fn damaged_addresses_are_refused() {
    if is_skipped() {
        return;
    }
    let fabrics = fabrics(2, &[Transport::Tcp]).unwrap();
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
fn shared_memory_alone_is_refused() {
    let refused = UcxFabric::new(&UcxOptions {
        transports: vec![Transport::SharedMemory],
        ..UcxOptions::new(NodeId(0))
    });
    let error = refused.err().unwrap();
    let is_typed = matches!(
        error,
        FabricError::Unsupported(_) | FabricError::Unavailable { .. }
    );
    assert!(is_typed, "{error:?}");
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
