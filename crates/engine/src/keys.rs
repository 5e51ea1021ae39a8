//! How are the keys of many terms read and looked up together?

use jindou_exec::{KeyKind, Keys};
use jindou_model::{ShardId, TermId, TermKind};
use jindou_store::Snapshot;

/// Adds the keys of `ids` to `keys` until these hold `most_bytes`, and gives how many it added.
pub(crate) fn push_keys(
    snapshot: &Snapshot,
    ids: &[TermId],
    most_bytes: usize,
    keys: &mut Keys,
) -> usize {
    let base = snapshot.base();
    let mut vertices = base.vertex_table().decoder();
    let mut literals = base.literal_table().decoder();
    for (done, id) in ids.iter().enumerate() {
        if done > 0 && keys.bytes() >= most_bytes {
            return done;
        }
        let kind = match id.kind() {
            TermKind::Literal => KeyKind::Literal,
            _ => KeyKind::Node,
        };
        if let Some(key) = snapshot.appended_key(*id) {
            keys.push(key, kind);
            continue;
        }
        let found = match id.kind() {
            TermKind::Vertex => vertices.get(id.local()),
            TermKind::Literal => literals.get(id.local()),
            _ => {
                keys.push_with(|key| {
                    base.push_key(*id, key);
                    kind
                });
                continue;
            }
        };
        keys.push(found.expect("the term is in the dictionary"), kind);
    }
    ids.len()
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
