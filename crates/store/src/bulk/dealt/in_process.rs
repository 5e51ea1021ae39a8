//! Nodes that are threads of one process.

use std::sync::mpsc::{Receiver, Sender, channel};

use jindou_model::NodeId;
use parking_lot::Mutex;

use super::exchange::{Exchange, ExchangeError};

/// One of some nodes of one process, which exchange bytes through channels. When one is dropped, the exchanges of the
/// others fail.
pub struct InProcess {
    here: NodeId,
    ends: Mutex<Ends>,
}

/// What leads to each node and what comes from it.
struct Ends {
    to: Vec<Sender<Vec<u8>>>,
    from: Vec<Receiver<Vec<u8>>>,
}

#[derive(Debug, thiserror::Error)]
#[error("node {0} has left")]
struct HasLeft(NodeId);

impl InProcess {
    /// So many nodes, by number.
    #[must_use]
    pub fn nodes(count: u32) -> Vec<Self> {
        let mut ends: Vec<Ends> = (0..count)
            .map(|_| Ends {
                to: Vec::new(),
                from: Vec::new(),
            })
            .collect();
        for from in 0..count as usize {
            for to in 0..count as usize {
                let (sender, receiver) = channel();
                ends[from].to.push(sender);
                ends[to].from.push(receiver);
            }
        }
        let node = |(here, ends)| Self {
            here: NodeId(here),
            ends: Mutex::new(ends),
        };
        (0..).zip(ends).map(node).collect()
    }
}

impl Exchange for InProcess {
    fn nodes(&self) -> u32 {
        self.ends.lock().to.len() as u32
    }

    fn here(&self) -> NodeId {
        self.here
    }

    fn exchange(&self, to: &mut [Vec<u8>], got: &mut [Vec<u8>]) -> Result<(), ExchangeError> {
        let ends = self.ends.lock();
        assert_eq!(to.len(), ends.to.len(), "each node gets something");
        assert_eq!(got.len(), ends.from.len(), "each node sends something");
        for (sender, bytes) in ends.to.iter().zip(to) {
            // Of one that has left, nothing comes back, either.
            let _ = sender.send(std::mem::take(bytes));
        }
        for (node, (receiver, bytes)) in (0..).zip(ends.from.iter().zip(got)) {
            let left = |_| ExchangeError::new(HasLeft(NodeId(node)));
            *bytes = receiver.recv().map_err(left)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "InProcess({})", self.here)
    }
}
