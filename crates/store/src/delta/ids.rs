//! Which ids have these types and predicates, changes included?

use jindou_model::{Direction, IdRanges, Membership, Precision, PredicateId, SortedSet, TermId};
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

/// Sets of ids asked for, with the versions of the changes they were made from.
#[derive(Default)]
pub(crate) struct SetCache {
    /// By what they are for.
    sets: [RwLock<FxHashMap<Box<[Membership]>, Versioned>>; 3],
}

/// What a kept set is for; of the last, the trait that is known follows those that are asked for.
#[derive(Clone, Copy)]
enum Purpose {
    Filter,
    Exact,
    FilterOf,
}

/// The version of each of the traits' changes, and the set.
type Versioned = (Box<[u64]>, Option<IdRanges>);

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
        let is_type = |asked: &Membership| matches!(asked, Membership::Type(_));
        match precision {
            Precision::FilterOf(known)
                if set.ranges().len() > FEW_RANGES
                    && within.is_none()
                    && traits.iter().any(is_type) =>
            {
                let key: Vec<Membership> = traits.iter().copied().chain([known]).collect();
                self.kept_set(&key, Purpose::FilterOf, || self.joined(set, known))
            }
            _ => Some(set),
        }
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
        if let Some((of, set)) = sets.read().get(traits)
            && of.iter().copied().eq(versions.clone())
        {
            return set.clone();
        }
        let versions = versions.collect();
        let set = make();
        let ranges = set.as_ref().map_or(0, |set| set.ranges().len());
        if ranges <= MOST_RANGES {
            let mut sets = sets.write();
            if sets.len() >= MOST_SETS {
                sets.clear();
            }
            sets.insert(traits.into(), (versions, set.clone()));
        }
        set
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
