//! Which ids have these types and predicates, changes included?

use jindou_model::{
    Direction, Edge, IdRanges, Membership, Precision, PredicateId, SortedSet, TermId,
};
use parking_lot::RwLock;
use rustc_hash::FxHashMap;

use super::segment::SegmentDelta;
use super::view::LayerView;

/// Sets kept at most; all are dropped when there are more.
const MOST_SETS: usize = 512;
/// Sets of more ranges are not kept.
const MOST_RANGES: usize = 1 << 20;
/// So few ranges are searched in no time: there is nothing to gain by joining them.
const FEW_RANGES: usize = 2;

/// Sets that were asked for again after a change keep what they were made from, so that the next one
/// costs what changed since; so many at most, as this keeps versions of the changes alive.
const MOST_FOLLOWED: usize = 64;

/// Sets of ids asked for, with the versions of the changes they were made from.
#[derive(Default)]
pub(crate) struct SetCache {
    /// By what they are for.
    sets: [RwLock<Sets>; 3],
}

#[derive(Default)]
struct Sets {
    by_traits: FxHashMap<Box<[Membership]>, Kept>,
    /// How many of them have their `origin`.
    followed: usize,
}

/// What a kept set is for; of the last, the trait that is known follows those that are asked for.
#[derive(Clone, Copy)]
enum Purpose {
    Filter,
    Exact,
    FilterOf,
}

/// A set that was asked for.
struct Kept {
    /// The version of each of the traits' changes.
    versions: Box<[u64]>,
    set: Option<IdRanges>,
    /// These changes themselves, if the set is followed.
    origin: Option<Box<[Origin]>>,
}

/// The changes of one trait that a set was made from: what came and what went.
enum Origin {
    Edges([SortedSet<Edge>; 2]),
    Keys([SortedSet<u64>; 2]),
}

impl Origin {
    /// Appends all ids of which the trait changed.
    fn push_all(&self, asked: Membership, ids: &mut Vec<u64>) {
        match (self, asked) {
            (Self::Edges(sets), Membership::Type(class)) => {
                let mut push = |id: u64| ids.push(id);
                sets.iter()
                    .for_each(|set| for_each_of(set, class, &mut push));
            }
            (Self::Edges(_), Membership::Has(..)) => {}
            (Self::Keys(sets), _) => sets.iter().for_each(|set| ids.extend(set.iter())),
        }
    }
}

/// What changed for one trait.
struct Touched<'a> {
    asked: Membership,
    delta: &'a SegmentDelta,
}

impl Touched<'_> {
    /// Calls `visit` with each id that gained the trait, in order.
    fn for_each_gained(&self, visit: &mut dyn FnMut(u64)) {
        match self.asked {
            Membership::Type(class) => for_each_of(&self.delta.added, class, visit),
            Membership::Has(..) => self.delta.gained.iter().for_each(visit),
        }
    }

    fn for_each_lost(&self, visit: &mut dyn FnMut(u64)) {
        match self.asked {
            Membership::Type(class) => for_each_of(&self.delta.removed, class, visit),
            Membership::Has(..) => self.delta.lost.iter().for_each(visit),
        }
    }

    fn lost(&self, id: TermId) -> bool {
        match self.asked {
            Membership::Type(class) => self.delta.removed.contains((class.raw(), id.raw())),
            Membership::Has(..) => self.delta.lost.contains(id.raw()),
        }
    }

    fn gained(&self, id: TermId) -> bool {
        match self.asked {
            Membership::Type(class) => self.delta.added.contains((class.raw(), id.raw())),
            Membership::Has(..) => self.delta.gained.contains(id.raw()),
        }
    }

    fn origin(&self) -> Origin {
        let delta = self.delta;
        match self.asked {
            Membership::Type(_) => Origin::Edges([delta.added.clone(), delta.removed.clone()]),
            Membership::Has(..) => Origin::Keys([delta.gained.clone(), delta.lost.clone()]),
        }
    }

    /// Appends the ids of which the trait may have changed since.
    fn push_changed(&self, since: &Origin, ids: &mut Vec<u64>) {
        let delta = self.delta;
        match (self.asked, since) {
            (Membership::Type(class), Origin::Edges([added, removed])) => {
                let changes = [
                    delta.added.changes_since(added),
                    delta.removed.changes_since(removed),
                ];
                let of_class = changes.iter().flatten().filter(|c| c.0.0 == class.raw());
                ids.extend(of_class.map(|change| change.0.1));
            }
            (Membership::Has(..), Origin::Keys([gained, lost])) => {
                let changes = [
                    delta.gained.changes_since(gained),
                    delta.lost.changes_since(lost),
                ];
                ids.extend(changes.iter().flatten().map(|change| change.0));
            }
            _ => unreachable!("a trait's changes are of one kind"),
        }
    }

    /// Numbers of ids that gained and lost the trait.
    fn counts(&self) -> (usize, usize) {
        let of_class = |set: &SortedSet<(u64, u64)>, class: TermId| {
            set.rank_by(|edge| edge.0 <= class.raw()) - set.rank_by(|edge| edge.0 < class.raw())
        };
        match self.asked {
            Membership::Type(class) => (
                of_class(&self.delta.added, class),
                of_class(&self.delta.removed, class),
            ),
            Membership::Has(..) => (self.delta.gained.len(), self.delta.lost.len()),
        }
    }
}

fn for_each_of(set: &SortedSet<(u64, u64)>, key: TermId, visit: &mut dyn FnMut(u64)) {
    let key = key.raw();
    let range = set.rank_by(|edge| edge.0 < key)..set.rank_by(|edge| edge.0 <= key);
    for (_, id) in set.slices(range).flatten() {
        visit(*id);
    }
}

impl<'a> LayerView<'a> {
    /// The changes of a trait's segment, of other traits perhaps.
    fn touched(self, asked: Membership) -> Option<Touched<'a>> {
        let (predicate, direction) = match asked {
            // The edges of a class are those of its key, incoming.
            Membership::Type(_) => (PredicateId::TYPE, Direction::In),
            Membership::Has(predicate, direction) => (predicate, direction),
        };
        let delta = self.delta.segment(predicate, direction)?;
        Some(Touched { asked, delta })
    }

    fn has_changed(self, asked: Membership) -> bool {
        self.trait_changes(asked) != (0, 0)
    }

    /// Ids that gained and lost a trait since the bulk load.
    pub(super) fn trait_changes(self, asked: Membership) -> (usize, usize) {
        self.touched(asked)
            .map_or((0, 0), |touched| touched.counts())
    }

    /// True if the vertex, or any other term, has the trait.
    #[must_use]
    pub fn is_member(self, id: TermId, asked: Membership) -> bool {
        match self.touched(asked) {
            Some(touched) if touched.gained(id) => true,
            Some(touched) if touched.lost(id) => false,
            _ => self.base.has_trait(id, asked),
        }
    }

    /// The ids that have all of `traits`, literals too where these allow them, and lie in
    /// `within` where that is given; `None` if that is no short list and `exact` is not asked for.
    /// Types are always honoured.
    ///
    /// Costs as [`crate::Layer::ids_with`] where that is short; else that, and the ids that gained or
    /// lost one of these traits, the first time after a change of them.
    #[must_use]
    pub fn ids_with(
        self,
        traits: &[Membership],
        exact: bool,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        let version = |asked: &Membership| self.touched(*asked).map_or(0, |t| t.delta.version);
        let is_unchanged = traits.iter().all(|asked| version(asked) == 0);
        if is_unchanged && self.base.clusters().is_short(traits) {
            return self.base.ids_with(traits, exact, within);
        }
        let purpose = match exact {
            true => Purpose::Exact,
            false => Purpose::Filter,
        };
        let set = self.kept_set(traits, purpose, || self.make_set(traits, exact));
        match within {
            Some(within) => set.map(|set| set.within(within)),
            None => set,
        }
    }

    /// The ids that have all of `traits`, as precisely as is asked for.
    pub(super) fn members(
        self,
        traits: &[Membership],
        precision: Precision,
        within: Option<&IdRanges>,
    ) -> Option<IdRanges> {
        let set = self.ids_with(traits, precision.is_exact(), within)?;
        let Precision::FilterOf(known) = precision else {
            return Some(set);
        };
        let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
        let key = || traits.iter().copied().chain([known]);
        // While these change it would be joined again and again.
        let is_worth_it = set.ranges().len() > FEW_RANGES
            && within.is_none()
            && traits.iter().any(is_type)
            && !key().any(|asked| self.has_changed(asked));
        if !is_worth_it {
            return Some(set);
        }
        let key: Vec<Membership> = key().collect();
        self.kept_set(&key, Purpose::FilterOf, || self.joined(set, known))
    }

    /// A set of vertices in fewer ranges, for ids that have a trait: joined where nothing between two
    /// of them has it. New vertices of a type lie among those of other types, but mostly there are
    /// few types from which the edges of a predicate come.
    fn joined(self, set: IdRanges, known: Membership) -> Option<IdRanges> {
        Some(match self.ids_with(&[known], false, None) {
            Some(others) => set.joined_but_for(&others).with_bitmap(),
            None => set,
        })
    }

    /// The whole set, which is kept until one of the traits changes again.
    fn kept_set(
        self,
        traits: &[Membership],
        purpose: Purpose,
        make: impl FnOnce() -> Option<IdRanges>,
    ) -> Option<IdRanges> {
        let version = |asked: &Membership| self.touched(*asked).map_or(0, |t| t.delta.version);
        let versions = traits.iter().map(version);
        let sets = &self.sets.sets[purpose as usize];
        let mut is_asked_again = false;
        let mut followed = None;
        if let Some(kept) = sets.read().by_traits.get(traits) {
            if kept.versions.iter().copied().eq(versions.clone()) {
                return kept.set.clone();
            }
            is_asked_again = true;
            followed = kept
                .set
                .as_ref()
                .zip(kept.origin.as_ref())
                .map(|(set, origin)| {
                    let mut ids = Vec::new();
                    self.push_changed(traits, origin, &mut ids);
                    (set.clone(), ids)
                });
        }
        let set = match followed {
            Some((set, ids)) => Some(self.followed(&set, traits, ids)),
            None => make(),
        };
        let ranges = set.as_ref().map_or(0, |set| set.ranges().len());
        if ranges > MOST_RANGES {
            return set;
        }
        let mut sets = sets.write();
        if sets.by_traits.len() >= MOST_SETS {
            *sets = Sets::default();
        }
        let was_followed = |kept: &Kept| kept.origin.is_some();
        let was_followed = sets.by_traits.get(traits).is_some_and(was_followed);
        let may_follow = was_followed || sets.followed < MOST_FOLLOWED;
        // One that was joined has more than those with all traits.
        let is_exact = !matches!(purpose, Purpose::FilterOf);
        let origin = (is_asked_again && may_follow && is_exact).then(|| self.origin(traits));
        sets.followed += usize::from(origin.is_some());
        sets.followed -= usize::from(was_followed);
        let kept = Kept {
            versions: versions.collect(),
            set: set.clone(),
            origin,
        };
        sets.by_traits.insert(traits.into(), kept);
        set
    }

    /// The changes of all traits.
    fn origin(self, traits: &[Membership]) -> Box<[Origin]> {
        let of_trait = |asked: &Membership| match (self.touched(*asked), asked) {
            (Some(touched), _) => touched.origin(),
            (None, Membership::Type(_)) => Origin::Edges(Default::default()),
            (None, Membership::Has(..)) => Origin::Keys(Default::default()),
        };
        traits.iter().map(of_trait).collect()
    }

    /// Appends the ids of which one of the traits may have changed since.
    fn push_changed(self, traits: &[Membership], since: &[Origin], ids: &mut Vec<u64>) {
        for (asked, since) in traits.iter().zip(since) {
            match self.touched(*asked) {
                Some(touched) => touched.push_changed(since, ids),
                // A snapshot from before the first change.
                None => since.push_all(*asked, ids),
            }
        }
    }

    /// A set that was made of other changes, with those of `ids` that have all traits and without the
    /// others.
    fn followed(self, set: &IdRanges, traits: &[Membership], mut ids: Vec<u64>) -> IdRanges {
        ids.sort_unstable();
        ids.dedup();
        let has_all = |id: &u64| {
            let id = TermId::from_raw(*id);
            traits.iter().all(|asked| self.is_member(id, *asked))
        };
        let (gained, lost): (Vec<u64>, Vec<u64>) = ids.into_iter().partition(has_all);
        set.without(&lost).with(&gained).with_bitmap()
    }

    fn make_set(self, traits: &[Membership], exact: bool) -> Option<IdRanges> {
        if !traits.iter().any(|asked| self.has_changed(*asked)) {
            let set = self.base.ids_with(traits, exact, None);
            return set.map(IdRanges::with_bitmap);
        }
        if exact || self.base.clusters().are_few(traits) {
            return Some(self.changed_set(traits));
        }
        let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
        let types: Vec<Membership> = traits.iter().copied().filter(is_type).collect();
        (!types.is_empty()).then(|| self.changed_set(&types))
    }

    fn changed_set(self, traits: &[Membership]) -> IdRanges {
        let touched: Vec<Touched<'_>> = traits.iter().filter_map(|t| self.touched(*t)).collect();
        let all = self.base.ids_with(traits, true, None);
        let all = all.expect("an exact set is always made");
        let (mut gained, mut lost) = (Vec::new(), Vec::new());
        for one in &touched {
            one.for_each_gained(&mut |id| gained.push(id));
            one.for_each_lost(&mut |id| lost.push(id));
        }
        // Those of one trait are in order, and all are members.
        if let [_, _, ..] = traits {
            for list in [&mut gained, &mut lost] {
                list.sort_unstable();
                list.dedup();
            }
            for asked in traits {
                gained.retain(|id| self.is_member(TermId::from_raw(*id), *asked));
            }
        }
        all.without(&lost).with(&gained).with_bitmap()
    }
}
