//! Which items of a group are still to be joined, and which of them is next?
//!
//! Items are kept by the variables that they mention, so that a row which gains a variable finds
//! those that it is now connected with: a group of many items is joined without looking at all of
//! them each time.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use crate::algebra::endpoint_variable;
use crate::block::Item;
use crate::patience::Patience;
use crate::physical::Var;
use crate::rows::Rows;
use crate::varset::VarSet;

/// The items of a group that are left, in the order of the text.
pub(crate) struct Pending<'p> {
    patience: &'p Patience<'p>,
    entries: Vec<Option<Item>>,
    left: usize,
    by_var: FxHashMap<Var, Vec<usize>>,
    /// The variables of rows whose items were found connected.
    seen: VarSet,
    /// Those that are explored.
    relations: BTreeSet<usize>,
    /// Those that are neither explored nor endpoints, and those of them that share a variable
    /// with the rows.
    others: BTreeSet<usize>,
    connected_others: BTreeSet<usize>,
    /// The same of endpoints.
    services: BTreeSet<usize>,
    connected_services: BTreeSet<usize>,
    /// The certain and possible variables of rows from which no relation could be explored.
    fruitless: Option<(VarSet, VarSet)>,
}

impl<'p> Pending<'p> {
    pub(crate) fn new(items: Vec<Item>, patience: &'p Patience<'p>) -> Self {
        let mut pending = Self {
            patience,
            left: items.len(),
            entries: Vec::with_capacity(items.len()),
            by_var: FxHashMap::default(),
            seen: VarSet::default(),
            relations: BTreeSet::new(),
            others: BTreeSet::new(),
            connected_others: BTreeSet::new(),
            services: BTreeSet::new(),
            connected_services: BTreeSet::new(),
            fruitless: None,
        };
        for (place, item) in items.into_iter().enumerate() {
            if patience.spend(1) {
                break;
            }
            for var in item.possible().iter() {
                pending.by_var.entry(var).or_default().push(place);
            }
            let kind = match &item {
                Item::Service(_) => &mut pending.services,
                item if is_relation(item) => &mut pending.relations,
                _ => &mut pending.others,
            };
            kind.insert(place);
            pending.entries.push(Some(item));
        }
        pending
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    fn item(&self, place: usize) -> Option<&Item> {
        self.entries.get(place).and_then(Option::as_ref)
    }

    fn take(&mut self, place: usize) -> Option<Item> {
        let kinds = [
            &mut self.relations,
            &mut self.others,
            &mut self.connected_others,
            &mut self.services,
            &mut self.connected_services,
        ];
        for kind in kinds {
            kind.remove(&place);
        }
        let item = self.entries.get_mut(place)?.take()?;
        self.left -= 1;
        Some(item)
    }

    /// Takes the item to join next, relations aside: connected ones first, endpoints last, and
    /// those that a variable holds once it is bound for certain, or nothing else is left.
    pub(crate) fn take_next(&mut self, rows: &Rows) -> Option<Item> {
        self.connect(&rows.possible);
        let ready = |places: &BTreeSet<usize>| {
            places.iter().copied().find(|place| {
                let awaited = self.item(*place).and_then(awaited);
                self.patience.spend(1) || awaited.is_none_or(|var| rows.certain.contains(var))
            })
        };
        let next = self.connected_others.first().copied();
        let next = next
            .or_else(|| ready(&self.connected_services))
            .or_else(|| self.others.first().copied())
            .or_else(|| ready(&self.services))
            .or_else(|| {
                let only_services = self.services.len() == self.left;
                self.services.first().copied().filter(|_| only_services)
            })?;
        self.take(next)
    }

    /// Notes which items share a variable with rows.
    fn connect(&mut self, possible: &VarSet) {
        if *possible == self.seen {
            return;
        }
        for var in possible.difference(&self.seen).iter() {
            for place in self.by_var.get(&var).into_iter().flatten() {
                if self.patience.spend(1) {
                    return;
                }
                if self.others.contains(place) {
                    self.connected_others.insert(*place);
                } else if self.services.contains(place) {
                    self.connected_services.insert(*place);
                }
            }
        }
        self.seen.clone_from(possible);
    }

    /// Takes the relations that can be explored from the rows; `may_begin` where rows without
    /// variables may be explored from any one of them.
    pub(crate) fn take_relations(&mut self, rows: &Rows, may_begin: bool) -> Option<Vec<Item>> {
        let is_as_before = |(certain, possible): &(VarSet, VarSet)| {
            *certain == rows.certain && *possible == rows.possible
        };
        if self.relations.is_empty() || self.fruitless.as_ref().is_some_and(is_as_before) {
            return None;
        }
        let chosen = self.connected_relations(rows, may_begin);
        if chosen.is_empty() {
            self.fruitless = Some((rows.certain.clone(), rows.possible.clone()));
            return None;
        }
        let places = chosen.into_iter();
        Some(places.filter_map(|place| self.take(place)).collect())
    }

    /// The relations that are connected with the rows, or with each other and so with the rows.
    fn connected_relations(&self, rows: &Rows, may_begin: bool) -> BTreeSet<usize> {
        let mut vars = rows.certain.clone();
        let mut chosen = BTreeSet::new();
        let mut gained = Vec::new();
        let mut choose = |place: usize, vars: &mut VarSet, gained: &mut Vec<Var>, begins: bool| {
            let Some(item) = self.item(place) else {
                return;
            };
            let possible = item.possible();
            let is_connected = possible.is_empty()
                || possible.intersects(vars)
                || (begins && may_begin && rows.possible.is_empty() && vars.is_empty());
            let is_uncertain = || {
                let shared = possible.intersection(&rows.possible);
                !shared.is_subset(&rows.certain)
            };
            if is_connected && !is_uncertain() && chosen.insert(place) {
                gained.extend(possible.iter().filter(|var| !vars.contains(*var)));
                vars.extend(&possible);
            }
        };
        for place in &self.relations {
            if self.patience.spend(1) {
                break;
            }
            choose(*place, &mut vars, &mut gained, true);
        }
        while let Some(var) = gained.pop() {
            for place in self.by_var.get(&var).into_iter().flatten() {
                if self.patience.spend(1) {
                    gained.clear();
                    break;
                }
                if self.relations.contains(place) {
                    choose(*place, &mut vars, &mut gained, false);
                }
            }
        }
        chosen
    }

    /// Takes all items but endpoints that wait for a variable which no relation left can bind, or
    /// which the rows may have.
    pub(crate) fn take_all_but_endpoints(&mut self, rows: &Rows) -> Vec<Item> {
        if self.patience.spend(self.entries.len()) {
            return Vec::new();
        }
        let mut bound = VarSet::default();
        for place in &self.relations {
            if let Some(item) = self.item(*place) {
                bound.extend(&item.possible());
            }
        }
        let stays = |item: &Item| {
            awaited(item).is_some_and(|var| rows.possible.contains(var) || !bound.contains(var))
        };
        let places = 0..self.entries.len();
        let taken: Vec<usize> = places
            .filter(|place| self.item(*place).is_some_and(|item| !stays(item)))
            .collect();
        let places = taken.into_iter();
        places.filter_map(|place| self.take(place)).collect()
    }
}

/// The variable that must be bound before an endpoint can be asked.
fn awaited(item: &Item) -> Option<Var> {
    match item {
        Item::Service(service) => endpoint_variable(service),
        _ => None,
    }
}

/// True of what is explored; inline data with undefined cells is not.
pub(crate) fn is_relation(item: &Item) -> bool {
    match item {
        Item::Quad(_) | Item::Path(_) | Item::Graphs(_) => true,
        Item::Values { rows, .. } => rows.iter().flatten().all(Option::is_some),
        Item::Union(_) | Item::Service(_) | Item::Apart(_) => false,
    }
}

/// Items connected by variables.
pub(crate) struct Component {
    pub(crate) items: Vec<Item>,
    pub(crate) vars: VarSet,
}

/// Splits items into connected ones; those without variables are one component too.
pub(crate) fn components(items: Vec<Item>, patience: &Patience<'_>) -> Vec<Component> {
    let mut links = Links::default();
    let mut variables = Vec::with_capacity(items.len());
    for item in &items {
        if patience.spend(1) {
            return Vec::new();
        }
        let vars = item.possible();
        links.add(&vars);
        variables.push(vars);
    }
    let mut items: Vec<_> = items.into_iter().zip(variables).map(Some).collect();
    let mut parts = Vec::new();
    for first in 0..items.len() {
        if links.find(first) != first {
            continue;
        }
        let mut part = Component {
            items: Vec::new(),
            vars: VarSet::default(),
        };
        let mut place = Some(first);
        while let Some(here) = place {
            if let Some((item, vars)) = items[here].take() {
                part.items.push(item);
                part.vars.extend(&vars);
            }
            place = links.next[here];
        }
        parts.push(part);
    }
    parts
}

/// Items, linked where they share a variable: each list of linked ones is known by its first.
#[derive(Default)]
struct Links {
    /// An earlier item of the same list, or the item itself.
    parent: Vec<usize>,
    next: Vec<Option<usize>>,
    /// The last item of the list, by its first.
    last: Vec<usize>,
    by_var: FxHashMap<Var, usize>,
    without_variables: Option<usize>,
}

impl Links {
    fn find(&mut self, mut item: usize) -> usize {
        while self.parent[item] != item {
            self.parent[item] = self.parent[self.parent[item]];
            item = self.parent[item];
        }
        item
    }

    /// Adds an item behind the lists that it is connected with, which become one.
    fn add(&mut self, vars: &VarSet) {
        let item = self.parent.len();
        self.parent.push(item);
        self.next.push(None);
        self.last.push(item);
        let mut others = Vec::new();
        if vars.is_empty() {
            others.extend(self.without_variables.replace(item));
        }
        for var in vars.iter() {
            others.extend(self.by_var.insert(var, item));
        }
        let mut lists: Vec<usize> = others.into_iter().map(|other| self.find(other)).collect();
        lists.push(item);
        lists.sort_unstable();
        lists.dedup();
        let first = lists[0];
        for list in &lists[1..] {
            let end = self.last[first];
            self.next[end] = Some(*list);
            self.last[first] = self.last[*list];
            self.parent[*list] = first;
        }
    }
}
