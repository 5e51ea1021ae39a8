//! Do logical nodes in one process keep the contract of a fabric?

#[path = "contract/mod.rs"]
mod contract;

use std::sync::Arc;

use contract::Cluster;
use jindou_fabric::FabricError;
use jindou_fabric::local::LocalNetwork;
use jindou_fabric::remote::{Fabric, Interrupt, NodeId};

#[test]
fn logical_nodes_keep_the_contract() {
    contract::all(&|nodes| {
        let network = LocalNetwork::new(nodes as u32);
        let fabric = |node| network.fabric(node) as Arc<dyn Fabric>;
        let fabrics = (0..nodes as u32).map(fabric).collect();
        Cluster {
            fabrics,
            kill: Box::new(move |node| network.kill(node)),
            has_threads: true,
            outlives_itself: true,
        }
    });
}

#[test]
fn a_restarted_node_has_nothing_of_what_it_had() {
    let network = LocalNetwork::new(2);
    let here = network.fabric(0);
    let (_words, registration) = network.fabric(1).share(1).unwrap();
    let memory = here.open(registration.key()).unwrap();
    let again = network.restart(NodeId(1));
    let never = Interrupt::never();
    assert_eq!(here.probe(NodeId(1), &never), Ok(()));
    let stale = here.open(registration.key()).unwrap_err();
    assert_eq!(stale, FabricError::Unregistered(NodeId(1)));
    let mut batch = jindou_fabric::remote::Batch::new();
    let _ = batch.read(&memory, 0, 8).unwrap();
    let lost = here.complete(batch, &never).unwrap_err();
    assert_eq!(lost, FabricError::PeerLost(NodeId(1)));
    let (_words, registration) = again.share(1).unwrap();
    assert!(here.open(registration.key()).is_ok());
}
