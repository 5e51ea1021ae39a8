//! Which node knows a term? The one that is asked for its hash has it once, whoever has seen it.

use jindou_dictionary::Interner;
use jindou_partition::ShardMap;

use super::failed::Failed;
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

    pub(super) fn len(&self) -> usize {
        self.owner.len()
    }

    /// What the owners say of each string, by node and place, by the own numbers.
    pub(super) fn by_number(&self, said: &[Vec<u32>]) -> Vec<u32> {
        let places = self.owner.iter().zip(&self.place);
        let said = places.map(|(owner, place)| said[usize::from(*owner)][*place as usize]);
        said.collect()
    }
}

struct Dealing<'a> {
    map: &'a ShardMap,
    from: &'a Interner,
    sent: Sent,
    counts: Vec<u32>,
    owned: Owned,
}

/// Sends each string to the node that is asked for its hash.
pub(super) fn deal(
    peers: &Peers<'_>,
    map: &ShardMap,
    from: &Interner,
) -> Result<(Sent, Owned), Failed> {
    let mut dealing = Dealing {
        map,
        from,
        sent: Sent {
            owner: Vec::with_capacity(from.len()),
            place: Vec::with_capacity(from.len()),
        },
        counts: vec![0; peers.nodes],
        owned: Owned {
            strings: Interner::new(),
            sent_by: vec![Vec::new(); peers.nodes],
        },
    };
    peers.in_steps(1, &mut dealing)?;
    Ok((dealing.sent, dealing.owned))
}

impl Stream for Dealing<'_> {
    fn fill(&mut self, _: u32, out: &mut Outbox) -> Result<bool, Failed> {
        for number in self.sent.len()..self.from.len() {
            let number = number as u32;
            let hash = self.from.hash_of(number);
            let owner = self.map.holder(self.map.shards().of_hash(hash)).0 as usize;
            push_string(out.to(owner), self.from.get(number));
            // As many nodes as a load may have fit.
            self.sent.owner.push(owner as u16);
            self.sent.place.push(self.counts[owner]);
            self.counts[owner] += 1;
            if out.is_full(owner) {
                return Ok(self.sent.len() == self.from.len());
            }
        }
        Ok(true)
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
