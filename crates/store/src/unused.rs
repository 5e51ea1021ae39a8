//! Which terms has no quad any more?
//!
//! A merge asks this of the terms that came since the last one, and of the ends of the edges that it
//! takes out. What is found is forgotten (see `Snapshot::forget`): the strings go with a later merge.

use std::ops::ControlFlow;

use jindou_model::{Direction, Pattern, PredicateId, TermId, TermKind};
use rustc_hash::FxHashSet;

use crate::delta::Snapshot;
use crate::layer::LayerKind;

/// The terms of a snapshot that nothing in it uses, of those that came since its base, or that edges
/// of `merged` predicates had which went since.
///
/// Costs a walk over what was added, and some lookups for each end of an edge that went.
pub(crate) fn unused_terms(snapshot: &Snapshot, merged: &[PredicateId]) -> Vec<TermId> {
    let mut unused = unused_new(snapshot);
    let mut candidates: FxHashSet<TermId> = FxHashSet::default();
    for kind in LayerKind::ALL {
        for predicate in merged {
            let delta = snapshot.delta.layers[kind as usize].segment(*predicate, Direction::Out);
            for (subject, object) in delta.iter().flat_map(|delta| delta.removed.iter()) {
                candidates.extend([subject, object].map(TermId::from_raw));
            }
        }
    }
    let removed = snapshot.delta.named.removed.iter();
    candidates.extend(removed.map(|quad| TermId::from_raw(quad.0)));
    unused.extend(unused_of(snapshot, candidates.into_iter()));
    unused.sort_unstable();
    unused
}

/// Those of some terms that nothing in a snapshot uses, of the ones that its base has.
pub(crate) fn unused_of(
    snapshot: &Snapshot,
    candidates: impl Iterator<Item = TermId>,
) -> impl Iterator<Item = TermId> {
    let old = candidates.filter(|id| is_of_base(snapshot, *id));
    old.filter(|id| snapshot.is_living(*id) && !is_used(snapshot, *id))
}

fn is_of_base(snapshot: &Snapshot, id: TermId) -> bool {
    let known = snapshot.base().term_counts();
    match id.kind() {
        TermKind::Vertex => id.number() < known.vertices,
        TermKind::Literal => id.number() < known.literals,
        _ => false,
    }
}

/// The terms that came since the base and that no quad has.
fn unused_new(snapshot: &Snapshot) -> Vec<TermId> {
    let (base, known) = (snapshot.base().term_counts(), snapshot.known_terms());
    let mut used = [
        vec![false; (known.numbers - base.numbers) as usize],
        vec![false; (known.literals - base.literals) as usize],
    ];
    let mut note = |id: TermId| {
        let (list, first) = match id.kind() {
            TermKind::Vertex => (&mut used[0], base.numbers),
            TermKind::Literal => (&mut used[1], base.literals),
            _ => return,
        };
        if let Some(place) = id.number().checked_sub(first) {
            list[place as usize] = true;
        }
    };
    for_each_new_use(snapshot, None, &mut note);
    let vertices = snapshot.appended_vertices().map(TermId::vertex);
    let literals = (base.literals..known.literals).map(TermId::literal);
    let is_used = |id: &TermId| match id.kind() {
        TermKind::Vertex => used[0][(id.number() - base.numbers) as usize],
        _ => used[1][(id.number() - base.literals) as usize],
    };
    let unused = vertices.chain(literals).filter(|id| !is_used(id));
    unused.filter(|id| snapshot.is_living(*id)).collect()
}

/// Calls `note` with each term that something added since the base uses, or since an earlier
/// snapshot of the same base.
pub(crate) fn for_each_new_use(
    snapshot: &Snapshot,
    since: Option<&Snapshot>,
    note: &mut dyn FnMut(TermId),
) {
    for kind in LayerKind::ALL {
        let before = since.map(|since| &since.delta.layers[kind as usize]);
        snapshot.delta.layers[kind as usize].for_each_added(before, &mut |(subject, object)| {
            note(TermId::from_raw(subject));
            note(TermId::from_raw(object));
        });
    }
    let before = since.map(|since| &since.delta.named);
    (snapshot.delta.named).for_each_added_graph(before, &mut |graph| note(TermId::from_raw(graph)));
    let first = since.map_or(snapshot.base().term_counts(), Snapshot::known_terms);
    for number in first.predicates..snapshot.known_terms().predicates {
        note(snapshot.predicate_term(PredicateId(number as u32)));
    }
    snapshot.declared_graphs().for_each(note);
}

/// True if a quad has the term, or it names a predicate or a graph.
fn is_used(snapshot: &Snapshot, id: TermId) -> bool {
    let has = |subject, object| {
        let pattern = Pattern {
            subject,
            predicate: None,
            object,
        };
        LayerKind::ALL.into_iter().any(|kind| {
            let mut stop = |_, _, _, _| ControlFlow::Break(());
            let flow = snapshot.layer(kind).for_each_match(&pattern, &mut stop);
            flow.is_break()
        })
    };
    let is_named = || snapshot.predicate_of_term(id).is_some() || snapshot.has_graph(id);
    let is_vertex = id.kind() == TermKind::Vertex;
    (is_vertex && (has(Some(id), None) || is_named())) || has(None, Some(id))
}
