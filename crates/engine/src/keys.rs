//! How are the keys of many terms read and looked up together?

use jindou_dictionary::Decoder;
use jindou_exec::{KeyKind, KeyPart, Keys};
use jindou_model::{ShardId, TermId, TermKind};
use jindou_store::Snapshot;

/// Ids whose blocks of the dictionary are asked for together.
const AT_ONCE: usize = 32;

/// Adds the keys of `ids` to `keys`, or `part` of them at least, until these hold `most_bytes`, and
/// gives how many it added.
pub(crate) fn push_keys(
    snapshot: &Snapshot,
    ids: &[TermId],
    part: KeyPart,
    most_bytes: usize,
    keys: &mut Keys,
) -> usize {
    let base = snapshot.base();
    let mut reader = Reader {
        snapshot,
        vertices: base.vertex_table().decoder(),
        literals: base.literal_table().decoder(),
    };
    let mut done = 0;
    for ids in ids.chunks(AT_ONCE) {
        if part == KeyPart::Whole {
            reader.fetch(ids);
        }
        for id in ids {
            if done > 0 && keys.bytes() >= most_bytes {
                return done;
            }
            keys.push_with(|key| match part {
                KeyPart::Whole => reader.push(*id, key),
                KeyPart::End => reader.push_end(*id, key),
            });
            done += 1;
        }
    }
    done
}

/// Reads the keys of many terms.
struct Reader<'a> {
    snapshot: &'a Snapshot,
    vertices: Decoder<'a>,
    literals: Decoder<'a>,
}

impl Reader<'_> {
    /// Asks for the blocks of these terms.
    fn fetch(&self, ids: &[TermId]) {
        let of = |kind| {
            let ids = ids.iter().filter(move |id| id.kind() == kind);
            ids.map(|id| id.local())
        };
        self.vertices.fetch(of(TermKind::Vertex));
        self.literals.fetch(of(TermKind::Literal));
    }

    fn push(&mut self, id: TermId, key: &mut Vec<u8>) -> KeyKind {
        if let Some(appended) = self.snapshot.appended_key(id) {
            key.extend_from_slice(appended);
        } else {
            let pushed = match id.kind() {
                TermKind::Vertex => self.vertices.push(id.local(), key),
                TermKind::Literal => self.literals.push(id.local(), key),
                _ => {
                    self.snapshot.base().push_key(id, key);
                    Ok(())
                }
            };
            pushed.expect("the term is in the dictionary");
        }
        kind_of(id)
    }

    fn push_end(&mut self, id: TermId, key: &mut Vec<u8>) -> KeyKind {
        if id.kind() != TermKind::Literal {
            return kind_of(id);
        }
        let end = match self.snapshot.appended_key(id) {
            Some(_) => None,
            None => self.snapshot.base().literal_end(id.local()),
        };
        match end {
            Some(end) => {
                key.extend_from_slice(end);
                KeyKind::Literal
            }
            None => self.push(id, key),
        }
    }
}

fn kind_of(id: TermId) -> KeyKind {
    match id.kind() {
        TermKind::Literal => KeyKind::Literal,
        _ => KeyKind::Node,
    }
}

/// Appends the id of each of `keys` to `ids`.
pub(crate) fn lookup_keys(snapshot: &Snapshot, keys: &Keys, ids: &mut Vec<Option<TermId>>) {
    let literals = keys.iter().filter(|(_, kind)| *kind == KeyKind::Literal);
    let literals: Vec<&[u8]> = literals.map(|(key, _)| key).collect();
    let mut found = Vec::new();
    snapshot
        .base()
        .literal_table()
        .lookup_batch(&literals, &mut found);
    let mut found = found.into_iter();
    ids.extend(keys.iter().map(|(key, kind)| match kind {
        KeyKind::None => None,
        KeyKind::Node => snapshot.find_node(key),
        KeyKind::Literal => match found.next().flatten() {
            Some(local) => Some(TermId::literal(ShardId(0), local)),
            None => snapshot.find_literal(key),
        },
    }));
}
