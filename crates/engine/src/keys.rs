//! How are the keys of many terms read and looked up together?

use jindou_exec::{KeyKind, Keys};
use jindou_model::{ShardId, TermId, TermKind};
use jindou_store::Base;

/// Adds the keys of `ids` to `keys` until these hold `most_bytes`, and gives how many it added;
/// `appended` has those that are not the base's.
pub(crate) fn push_keys<'a>(
    base: &Base,
    appended: impl Fn(TermId) -> Option<&'a [u8]>,
    ids: &[TermId],
    most_bytes: usize,
    keys: &mut Keys,
) -> usize {
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
        if let Some(key) = appended(*id) {
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

/// Appends the id of each of `keys` to `ids`: that of the base, or what `otherwise` says.
pub(crate) fn lookup_keys(
    base: &Base,
    otherwise: impl Fn(&[u8], bool) -> Option<TermId>,
    keys: &Keys,
    ids: &mut Vec<Option<TermId>>,
) {
    let literals = keys.iter().filter(|(_, kind)| *kind == KeyKind::Literal);
    let literals: Vec<&[u8]> = literals.map(|(key, _)| key).collect();
    let mut found = Vec::new();
    base.literal_table().lookup_batch(&literals, &mut found);
    let mut found = found.into_iter();
    ids.extend(keys.iter().map(|(key, kind)| match kind {
        KeyKind::None => None,
        KeyKind::Node => otherwise(key, false),
        KeyKind::Literal => match found.next().flatten() {
            Some(local) => Some(TermId::literal(ShardId(0), local)),
            None => otherwise(key, true),
        },
    }));
}
