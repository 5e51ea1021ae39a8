//! How are the keys of many terms read and looked up together?

use jindou_exec::{KeyKind, Keys};
use jindou_model::{TermId, TermKind};
use jindou_store::{Snapshot, TermKey, TermsDecoder};

/// Adds the keys of `ids` to `keys` until these hold `most_bytes`, and gives how many it added.
pub(crate) fn push_keys(
    snapshot: &Snapshot,
    ids: &[TermId],
    most_bytes: usize,
    keys: &mut Keys,
) -> usize {
    let base = snapshot.base();
    let mut reader = Reader {
        snapshot,
        is_part: base.node_part().is_some(),
        vertices: base.vertex_tables().decoder(),
        literals: base.literal_tables().decoder(),
    };
    for (done, id) in ids.iter().enumerate() {
        if done > 0 && keys.bytes() >= most_bytes {
            return done;
        }
        keys.push_with(|key| reader.push(*id, key));
    }
    ids.len()
}

/// Reads the keys of many terms.
struct Reader<'a> {
    snapshot: &'a Snapshot,
    /// It is the part of a node.
    is_part: bool,
    vertices: TermsDecoder<'a>,
    literals: TermsDecoder<'a>,
}

impl Reader<'_> {
    fn push(&mut self, id: TermId, key: &mut Vec<u8>) -> KeyKind {
        if let Some(appended) = self.snapshot.appended_key(id) {
            key.extend_from_slice(appended);
        } else {
            let pushed = match id.kind() {
                TermKind::Vertex => self.vertices.push(id.number(), key),
                TermKind::Literal => self.literals.push(id.number(), key),
                _ => {
                    self.snapshot.base().push_key(id, key);
                    Ok(())
                }
            };
            match pushed {
                // The names that every node knows are in no table of a part.
                Err(_) if self.is_part => self.snapshot.base().push_key(id, key),
                pushed => pushed.expect("the term is in the dictionary"),
            }
        }
        KeyKind::of(id)
    }
}

/// Appends the id of each of `keys` to `ids`.
pub(crate) fn lookup_keys(snapshot: &Snapshot, keys: &Keys, ids: &mut Vec<Option<TermId>>) {
    let terms = keys.iter().filter(|(_, kind)| *kind != KeyKind::None);
    let terms: Vec<TermKey<'_>> = terms.map(term_key).collect();
    let mut found = snapshot.find_keys(&terms).into_iter();
    ids.extend(keys.iter().map(|(_, kind)| match kind {
        KeyKind::None => None,
        KeyKind::Node | KeyKind::Literal => found.next().flatten(),
    }));
}

fn term_key((bytes, kind): (&[u8], KeyKind)) -> TermKey<'_> {
    TermKey::new(bytes, kind == KeyKind::Literal)
}
