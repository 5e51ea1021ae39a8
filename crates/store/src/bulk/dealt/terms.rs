//! Which node knows a term? The one that is asked for its hash has it once, whoever has seen it.

use jindou_dictionary::Interner;
use jindou_model::{TermId, TermKind};
use jindou_partition::ShardMap;

use super::failed::Failed;
use super::joined::Seen;
use super::peers::{Outbox, Peers, Stream};
use super::wire::{Reader, push_string};

/// The strings of one kind that a node is asked for by their hashes.
pub(super) struct Owned {
    pub(super) strings: Interner,
    /// By node: the numbers of the strings that it has seen, in the order in which it sent them.
    pub(super) sent_by: Vec<Vec<u32>>,
}

/// Where the strings of one kind are that a node has seen, by its own numbers.
pub(super) struct Sent {
    /// The node that has it, and its place among those that were sent to that.
    owner: Vec<u16>,
    place: Vec<u32>,
    /// How many were sent to each node.
    counts: Vec<u32>,
}

impl Sent {
    /// Node and place of a string.
    #[inline]
    pub(super) fn at(&self, number: u32) -> (usize, u32) {
        (
            self.owner[number as usize].into(),
            self.place[number as usize],
        )
    }

    /// Node and place of each, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        self.owner.iter().copied().zip(self.place.iter().copied())
    }

    /// How many were sent to each node.
    pub(super) fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// What the owners say of each string, by node and place, by the own numbers.
    pub(super) fn by_number(&self, said: &[Vec<u32>]) -> Vec<u32> {
        let places = self.owner.iter().zip(&self.place);
        let said = places.map(|(owner, place)| said[usize::from(*owner)][*place as usize]);
        said.collect()
    }
}

/// How many terms of the dictionary there are at all nodes: ids that come from others are to be of these.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) vertices: u64,
    pub(super) literals: u64,
}

impl Extent {
    #[inline]
    pub(super) fn has(self, id: TermId) -> bool {
        match id.kind() {
            TermKind::Vertex => id.number() < self.vertices,
            TermKind::Literal => id.number() < self.literals,
            _ => id.is_inline(),
        }
    }
}

struct Dealing<'a> {
    from: &'a Seen,
    sent: Sent,
    owned: Owned,
}

/// Sends each string to the node that is asked for its hash.
pub(super) fn deal(
    peers: &Peers<'_>,
    map: &ShardMap,
    from: &Seen,
) -> Result<(Sent, Owned), Failed> {
    let shard = |hash| map.shards().of_hash(hash);
    // As many nodes as a load may have fit.
    let owner = from.hashes().map(|hash| map.holder(shard(hash)).0 as u16);
    let mut dealing = Dealing {
        from,
        sent: Sent {
            owner: owner.collect(),
            place: Vec::with_capacity(from.len()),
            counts: vec![0; peers.nodes],
        },
        owned: Owned {
            // Where nodes have read about as much, each is asked for about as many strings as it has seen.
            strings: Interner::with_capacity(from.len()),
            sent_by: vec![Vec::new(); peers.nodes],
        },
    };
    peers.in_steps(1, &mut dealing)?;
    Ok((dealing.sent, dealing.owned))
}

impl Stream for Dealing<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        let Sent {
            owner,
            place,
            counts,
        } = &mut self.sent;
        for number in place.len()..owner.len() {
            let owner = usize::from(owner[number]);
            push_string(out.to(owner), self.from.get(number as u32));
            place.push(counts[owner]);
            counts[owner] += 1;
            if out.is_full(owner) {
                break;
            }
        }
        Ok(place.len() == owner.len())
    }

    fn take(&mut self, _: u32, from: usize, bytes: &[u8]) -> Result<(), Failed> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let number = self.owned.strings.intern(reader.string()?)?;
            self.owned.sent_by[from].push(number);
        }
        Ok(())
    }
}
