//! Of which kinds are the texts of all terms? Each node says so of those whose range it sorts.

use super::failed::Failed;
use super::peers::Peers;
use super::wire::{push_number, word};
use crate::kind_column::{KeyKinds, KindBuilder, KindColumn};

/// Words of kinds that are put into a message together.
const WORDS_AT_ONCE: usize = 512;

/// The kinds of the strings of all nodes' ranges, one after the other, given the keys of this one's in order.
pub(super) fn share<'s>(
    peers: &Peers<'_>,
    kinds: KeyKinds,
    keys: impl Iterator<Item = &'s [u8]>,
) -> Result<KindColumn, Failed> {
    let mut own = KindBuilder::new(kinds);
    keys.for_each(|key| own.push_key(key));
    let mut left = own.pieces(WORDS_AT_ONCE);
    let mut write = |out: &mut Vec<u8>| match left.next() {
        Some((terms, words)) => {
            push_number(out, terms as u64);
            push_number(out, words.len() as u64);
            out.extend_from_slice(bytemuck::cast_slice(words));
            false
        }
        None => true,
    };
    let mut of_nodes: Vec<_> = (0..peers.nodes).map(|_| KindBuilder::new(kinds)).collect();
    peers.to_all(&mut write, &mut |node, reader| {
        while !reader.is_empty() {
            let terms = reader.narrow()? as usize;
            let count = reader.narrow()? as usize;
            let words = reader.bytes(count.saturating_mul(size_of::<u64>()))?;
            let words: Vec<u64> = words.chunks(size_of::<u64>()).map(word).collect();
            match of_nodes[node].extend(terms, &words) {
                true => {}
                false => return Err(Failed::malformed()),
            }
        }
        Ok(())
    })?;
    let mut all = KindBuilder::new(kinds);
    for (terms, words) in of_nodes.iter().flat_map(|node| node.pieces(WORDS_AT_ONCE)) {
        let is_known = all.extend(terms, words);
        assert!(is_known, "codes are those of kinds");
    }
    Ok(all.finish())
}
