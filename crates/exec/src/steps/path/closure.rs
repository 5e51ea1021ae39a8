//! What is reached by a path from every term at which it may begin, found once for all?
//!
//! A *place* is a term in a state of the path's automaton; edges lead from place to place, and those that may end the
//! path have their term as an answer. Places on a cycle reach the same answers, so these are found for the strongly
//! connected components of the places (Tarjan 1972), in an order in which none leads to a later one (Purdom 1970). How
//! many answers each component has is counted for some hundred answers at a time, as bitmaps that go from component to
//! component against the edges; which these are is found by following the components.

use std::sync::Arc;

use jindou_model::{Cursor, TermId};
use rustc_hash::FxHashMap;

use super::automaton::Automaton;
use super::view::{Starts, View};
use crate::ExecError;
use crate::context::Context;

/// No place, no component, or no answer.
const NONE: u32 = u32::MAX;
/// Terms that begin together while places are found.
const BEGUN_AT_ONCE: usize = 4096;
/// Places visited between two checks of the time limit.
const PLACES_AT_ONCE: usize = 1 << 16;
/// Bytes of answers that are kept for later rows.
const KEPT_BYTES: usize = 64 << 20;
const WORDS: usize = 8;
/// Answers that are counted together.
const BLOCK: usize = WORDS * u64::BITS as usize;

/// All places that are reached, with the answers of each component.
pub(super) struct Closure {
    /// All terms met, numbered.
    numbers: FxHashMap<TermId, u32>,
    /// By the number of a term: the component of its place in the first state, if edges lead from there.
    components: Vec<u32>,
    /// By component: answers at which its edges end.
    answers: Lists,
    /// By component: those to which its edges lead.
    next: Lists,
    /// By answer: the number of the term, and the term.
    terms: Vec<(u32, TermId)>,
    sizes: Option<Sizes>,
    kept: KeptAnswers,
    walk: Walk,
    is_nullable: bool,
    charged: usize,
}

/// How many answers there are from each component.
struct Sizes {
    by_component: Vec<u64>,
    /// By the number of a term: a bit for one that reaches itself.
    loops: Vec<u64>,
}

/// Answers that were listed, by component.
#[derive(Default)]
struct KeptAnswers {
    lists: FxHashMap<u32, Arc<[TermId]>>,
    bytes: usize,
}

/// Where a walk over the components has been.
#[derive(Default)]
struct Walk {
    number: u32,
    components: Vec<u32>,
    answers: Vec<u32>,
}

/// A list for each of some numbers.
#[derive(Default)]
struct Lists {
    /// Where each begins, and one more.
    offsets: Vec<u32>,
    items: Vec<u32>,
}

impl Lists {
    fn get(&self, number: u32) -> &[u32] {
        let [begin, end] = [0, 1].map(|more| self.offsets[number as usize + more] as usize);
        &self.items[begin..end]
    }

    /// Ends the list that is being made.
    fn end(&mut self) {
        self.offsets.push(self.items.len() as u32);
    }

    /// By item: the numbers of the lists that have it.
    fn inverted(&self, items: usize) -> Self {
        let lists = 0..self.offsets.len() as u32 - 1;
        let pairs =
            lists.flat_map(|number| self.get(number).iter().map(move |item| (*item, number)));
        Self::of_pairs(items, pairs)
    }

    /// The second numbers of pairs by their first ones, which are below `count`.
    fn of_pairs(count: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut offsets = vec![0_u32; count + 1];
        for (number, _) in pairs.clone() {
            offsets[number as usize + 1] += 1;
        }
        for number in 0..count {
            offsets[number + 1] += offsets[number];
        }
        let mut at = offsets.clone();
        let mut items = vec![0; offsets[count] as usize];
        for (number, item) in pairs {
            let place = &mut at[number as usize];
            items[*place as usize] = item;
            *place += 1;
        }
        Self { offsets, items }
    }

    fn bytes(&self) -> usize {
        (self.offsets.capacity() + self.items.capacity()) * size_of::<u32>()
    }
}

/// An edge from a place.
#[derive(Clone, Copy)]
struct Edge {
    from: u32,
    /// The number of the term to which it leads.
    term: u32,
    /// The place there, if the path can go on.
    to: u32,
    /// The path may end there.
    accepts: bool,
}

/// Places and edges that are being found.
struct Places<'a> {
    automaton: &'a Automaton,
    numbers: FxHashMap<TermId, u32>,
    terms: Vec<TermId>,
    /// By state and number of a term: its place.
    places: Vec<Vec<u32>>,
    count: u32,
    edges: Vec<Edge>,
    /// By state: places that were not left yet, with their terms.
    waiting: Vec<Vec<(u32, TermId)>>,
    charged: usize,
}

impl<'a> Places<'a> {
    fn new(automaton: &'a Automaton) -> Self {
        let states = automaton.states.len();
        Self {
            automaton,
            numbers: FxHashMap::default(),
            terms: Vec::new(),
            places: vec![Vec::new(); states],
            count: 0,
            edges: Vec::new(),
            waiting: vec![Vec::new(); states],
            charged: 0,
        }
    }

    /// Finds all that is reached; false if that would take more than `most_bytes`.
    fn find(
        &mut self,
        begins: &Starts,
        view: &View,
        most_bytes: usize,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let (mut taken, mut terms) = (0, Vec::new());
        loop {
            terms.clear();
            begins.copy(taken, BEGUN_AT_ONCE, &mut terms);
            if terms.is_empty() {
                return Ok(true);
            }
            taken += terms.len();
            for term in &terms {
                let number = self.number(*term);
                self.arrive(0, number, *term);
            }
            while let Some(state) = self.waiting.iter().position(|places| !places.is_empty()) {
                if !self.leave(state, view, most_bytes, cx)? {
                    return Ok(false);
                }
            }
        }
    }

    /// Follows the edges of all places that wait in a state.
    fn leave(
        &mut self,
        state: usize,
        view: &View,
        most_bytes: usize,
        cx: &Context,
    ) -> Result<bool, ExecError> {
        let (places, keys): (Vec<u32>, Vec<TermId>) =
            std::mem::take(&mut self.waiting[state]).into_iter().unzip();
        let automaton = self.automaton;
        let (mut rows, mut found) = (Vec::new(), Vec::new());
        for step in &automaton.states[state] {
            let mut cursor = Cursor::default();
            while cursor.key < keys.len() {
                cx.check()?;
                rows.clear();
                found.clear();
                view.follow(&step.edge, &keys, &mut cursor, &mut rows, &mut found, cx)?;
                for (row, id) in rows.iter().zip(&found) {
                    let term = self.number(*id);
                    for target in &step.targets {
                        let to = self.arrive(target.state, term, *id);
                        self.edges.push(Edge {
                            from: places[*row as usize],
                            term,
                            to,
                            accepts: target.accepts,
                        });
                    }
                }
                if !self.charge(most_bytes, cx)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn number(&mut self, term: TermId) -> u32 {
        let next = self.terms.len() as u32;
        let number = *self.numbers.entry(term).or_insert(next);
        if number == next {
            self.terms.push(term);
        }
        number
    }

    /// The place of a term in a state, which waits to be left if it is new; [`NONE`] where nothing follows.
    fn arrive(&mut self, state: usize, number: u32, term: TermId) -> u32 {
        if self.automaton.states[state].is_empty() {
            return NONE;
        }
        let places = &mut self.places[state];
        if places.len() <= number as usize {
            places.resize(number as usize + 1, NONE);
        }
        let place = &mut places[number as usize];
        if *place == NONE {
            *place = self.count;
            self.count += 1;
            self.waiting[state].push((*place, term));
        }
        *place
    }

    /// Books what it holds, and will until the components are known; false if that is more than it may, or if there are
    /// more numbers than there is room for.
    fn charge(&mut self, most_bytes: usize, cx: &Context) -> Result<bool, ExecError> {
        const EDGE_BYTES: usize = size_of::<Edge>() + 4 * size_of::<u32>();
        const PLACE_BYTES: usize = 12 * size_of::<u32>();
        let terms = size_of::<TermId>() + size_of::<(TermId, u32)>() + 2 + 6 * size_of::<u32>();
        let places: usize = self.places.iter().map(Vec::capacity).sum();
        let bytes = self.terms.capacity() * terms
            + places * size_of::<u32>()
            + self.count as usize * PLACE_BYTES
            + self.edges.capacity() * EDGE_BYTES;
        // What counting the answers takes then.
        let later = self.count as usize * (size_of::<[u64; WORDS]>() + 2 * size_of::<u64>())
            + self.edges.len() * 2 * size_of::<u32>();
        if bytes + later > most_bytes || self.edges.len() > (NONE / 2) as usize {
            return Ok(false);
        }
        if bytes > self.charged {
            cx.charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(true)
    }
}

/// The component of each place, and how many there are; none leads to a later one.
fn components(
    edges: &Lists,
    to: impl Fn(u32) -> u32,
    cx: &Context,
) -> Result<(Vec<u32>, u32), ExecError> {
    let count = edges.offsets.len() - 1;
    let (mut component, mut components) = (vec![NONE; count], 0);
    // The order in which places were met, counted from 1, and the least that is known to be reached.
    let (mut low, mut met) = (vec![0_u32; count], 0);
    // Places of components that are not complete, and those on the way with the next edge of each.
    let (mut open, mut way): (Vec<u32>, Vec<(u32, u32, u32)>) = (Vec::new(), Vec::new());
    let mut work = 0_usize;
    for root in 0..count as u32 {
        if low[root as usize] != 0 {
            continue;
        }
        met += 1;
        low[root as usize] = met;
        open.push(root);
        way.push((root, met, edges.offsets[root as usize]));
        while let Some((place, order, next)) = way.last_mut() {
            work += 1;
            if work.is_multiple_of(PLACES_AT_ONCE) {
                cx.check()?;
            }
            let (place, order) = (*place as usize, *order);
            if *next < edges.offsets[place + 1] {
                let to = to(edges.items[*next as usize]);
                *next += 1;
                if to == NONE || component[to as usize] != NONE {
                    continue;
                }
                let known = low[to as usize];
                if known != 0 {
                    low[place] = low[place].min(known);
                    continue;
                }
                met += 1;
                low[to as usize] = met;
                open.push(to);
                way.push((to, met, edges.offsets[to as usize]));
                continue;
            }
            way.pop();
            if low[place] == order {
                while let Some(last) = open.pop() {
                    component[last as usize] = components;
                    if last as usize == place {
                        break;
                    }
                }
                components += 1;
            }
            if let Some((before, ..)) = way.last() {
                let before = *before as usize;
                low[before] = low[before].min(low[place]);
            }
        }
    }
    Ok((component, components))
}

impl Closure {
    /// Finds what is reached from all terms at which the path may begin with an edge; `None` if that would take more
    /// than `most_bytes`.
    pub(super) fn find(
        automaton: &Automaton,
        view: &View,
        most_bytes: usize,
        cx: &Context,
    ) -> Result<Option<Self>, ExecError> {
        let begins = view.begins(automaton, cx)?;
        let bytes = begins.bytes();
        cx.charge(bytes)?;
        let mut places = Places::new(automaton);
        let is_whole = places.find(&begins, view, most_bytes, cx);
        drop(begins);
        cx.release(bytes);
        if !is_whole? {
            cx.release(places.charged);
            return Ok(None);
        }
        Self::of_places(places, cx).map(Some)
    }

    fn of_places(places: Places<'_>, cx: &Context) -> Result<Self, ExecError> {
        let Places {
            automaton,
            numbers,
            terms,
            places,
            count,
            edges,
            mut charged,
            ..
        } = places;
        let numbered = (0_u32..).zip(&edges);
        let from = Lists::of_pairs(
            count as usize,
            numbered.map(|(number, edge)| (edge.from, number)),
        );
        let (component, count) = components(&from, |edge| edges[edge as usize].to, cx)?;
        let by_component = Lists::of_pairs(count as usize, component.iter().copied().zip(0..));
        let (mut answers, mut next) = (Lists::default(), Lists::default());
        let mut answer_of = vec![NONE; terms.len()];
        let mut answer_terms = Vec::new();
        // The component that last had a term for an answer, or another for the next one.
        let (mut answered, mut followed) = (vec![NONE; terms.len()], vec![NONE; count as usize]);
        answers.end();
        next.end();
        for own in 0..count {
            if (own as usize).is_multiple_of(PLACES_AT_ONCE) {
                cx.check()?;
            }
            let of_place = |place: &u32| from.get(*place);
            for edge in by_component.get(own).iter().flat_map(of_place) {
                let edge = &edges[*edge as usize];
                let term = edge.term as usize;
                if edge.accepts && std::mem::replace(&mut answered[term], own) != own {
                    if answer_of[term] == NONE {
                        answer_of[term] = answer_terms.len() as u32;
                        answer_terms.push((edge.term, terms[term]));
                    }
                    answers.items.push(answer_of[term]);
                }
                if edge.to != NONE {
                    let to = component[edge.to as usize];
                    if to != own && std::mem::replace(&mut followed[to as usize], own) != own {
                        next.items.push(to);
                    }
                }
            }
            answers.end();
            next.end();
        }
        let of_place = |place: u32| match place {
            NONE => NONE,
            place if from.get(place).is_empty() => NONE,
            place => component[place as usize],
        };
        let first = places.first().map_or(&[][..], Vec::as_slice);
        let mut components: Vec<u32> = first.iter().map(|place| of_place(*place)).collect();
        components.resize(terms.len(), NONE);
        let walk = Walk {
            number: 0,
            components: vec![0; count as usize],
            answers: vec![0; answer_terms.len()],
        };
        let closure = Self {
            numbers,
            components,
            answers,
            next,
            terms: answer_terms,
            sizes: None,
            kept: KeptAnswers::default(),
            walk,
            is_nullable: automaton.is_nullable,
            charged: 0,
        };
        let bytes = closure.fixed_bytes();
        if bytes > charged {
            cx.charge(bytes - charged)?;
            charged = bytes;
        }
        cx.release(charged - bytes);
        Ok(Self {
            charged: bytes,
            ..closure
        })
    }

    fn fixed_bytes(&self) -> usize {
        let words =
            self.components.capacity() + self.walk.components.len() + self.walk.answers.len();
        self.numbers.capacity() * (size_of::<(TermId, u32)>() + 1)
            + words * size_of::<u32>()
            + self.answers.bytes()
            + self.next.bytes()
            + self.terms.capacity() * size_of::<(u32, TermId)>()
    }

    /// The number of a term and its component; `None` of one from which no edge of the path leads.
    fn start(&self, term: TermId) -> Option<(u32, u32)> {
        let number = *self.numbers.get(&term)?;
        let component = self.components[number as usize];
        (component != NONE).then_some((number, component))
    }

    /// True if an edge of the path leads from a term, which then is one of the graph.
    pub(super) fn begins_at(&self, term: TermId) -> bool {
        self.start(term).is_some()
    }

    /// Number of terms from which an edge of the path leads.
    pub(super) fn begins(&self) -> u64 {
        self.components
            .iter()
            .filter(|component| **component != NONE)
            .count() as u64
    }

    /// Number of answers from all these terms together, each of which is an answer itself if the path need not have an
    /// edge.
    pub(super) fn count_all(&mut self, cx: &Context) -> Result<u64, ExecError> {
        self.make_sizes(cx)?;
        let numbered = (0_u32..).zip(&self.components);
        let begun = numbered.filter(|(_, component)| **component != NONE);
        Ok(begun
            .map(|(number, component)| self.size(number, *component))
            .sum())
    }

    /// Number of answers from a term; the same holds for it if an edge leads from it.
    pub(super) fn count(&mut self, term: TermId, cx: &Context) -> Result<u64, ExecError> {
        self.make_sizes(cx)?;
        let start = self.start(term);
        Ok(start.map_or(0, |(number, component)| self.size(number, component)))
    }

    fn size(&self, number: u32, component: u32) -> u64 {
        let sizes = self.sizes.as_ref().expect("they were made");
        let (word, bit) = (number as usize / 64, number % 64);
        let is_more = self.is_nullable && sizes.loops[word] & 1 << bit == 0;
        sizes.by_component[component as usize] + u64::from(is_more)
    }

    /// What is reached from a term over an edge at least, each once.
    pub(super) fn answers(
        &mut self,
        term: TermId,
        cx: &Context,
    ) -> Result<Arc<[TermId]>, ExecError> {
        let Some((_, component)) = self.start(term) else {
            return Ok(Arc::from([]));
        };
        if let Some(known) = self.kept.lists.get(&component) {
            return Ok(Arc::clone(known));
        }
        let list: Arc<[TermId]> = self.walk(component, cx)?.into();
        let bytes = size_of_val(&*list) + size_of::<(u32, Arc<[TermId]>)>();
        if self.kept.bytes + bytes > KEPT_BYTES.min((cx.memory_bytes() / 8) as usize) {
            cx.release(self.kept.bytes);
            self.kept = KeptAnswers::default();
        }
        cx.charge(bytes)?;
        self.kept.bytes += bytes;
        self.kept.lists.insert(component, Arc::clone(&list));
        Ok(list)
    }

    /// Collects the answers of a component and of all to which it leads.
    fn walk(&mut self, component: u32, cx: &Context) -> Result<Vec<TermId>, ExecError> {
        let walk = &mut self.walk;
        if walk.number == u32::MAX {
            walk.components.fill(0);
            walk.answers.fill(0);
            walk.number = 0;
        }
        walk.number += 1;
        let mut found = Vec::new();
        let mut waiting = vec![component];
        walk.components[component as usize] = walk.number;
        let mut passed = 0_usize;
        while let Some(component) = waiting.pop() {
            passed += 1;
            if passed.is_multiple_of(PLACES_AT_ONCE) {
                cx.check()?;
            }
            for answer in self.answers.get(component) {
                let seen = &mut walk.answers[*answer as usize];
                if std::mem::replace(seen, walk.number) != walk.number {
                    found.push(self.terms[*answer as usize].1);
                }
            }
            for next in self.next.get(component) {
                let seen = &mut walk.components[*next as usize];
                if std::mem::replace(seen, walk.number) != walk.number {
                    waiting.push(*next);
                }
            }
        }
        Ok(found)
    }

    /// Counts the answers of each component, a block of these at a time.
    fn make_sizes(&mut self, cx: &Context) -> Result<(), ExecError> {
        if self.sizes.is_some() {
            return Ok(());
        }
        let count = self.next.offsets.len() - 1;
        let inverted = self.answers.bytes() + self.next.bytes();
        let offsets = (count + self.terms.len()) * size_of::<u32>();
        let sizes = count * size_of::<u64>() + self.components.len() / 8 + 8;
        cx.charge(sizes)?;
        self.charged += sizes;
        let mut meanwhile = inverted + offsets + count * size_of::<[u64; WORDS]>();
        cx.charge(meanwhile)?;
        let mut made = Sizes {
            by_component: vec![0; count],
            loops: vec![0; self.components.len().div_ceil(64)],
        };
        let ends = self.answers.inverted(self.terms.len());
        let before = self.next.inverted(count);
        let mut block = Block {
            masks: vec![[0; WORDS]; count],
            waiting: vec![0; count.div_ceil(64)],
            passed: Vec::new(),
        };
        for first in (0..self.terms.len()).step_by(BLOCK) {
            cx.check()?;
            let answers = first..self.terms.len().min(first + BLOCK);
            for answer in answers.clone() {
                for component in ends.get(answer as u32) {
                    block.add(*component, answer - first);
                }
            }
            block.spread(&before, &mut made.by_component);
            for answer in answers {
                let number = self.terms[answer].0;
                let component = self.components[number as usize];
                if component != NONE && block.has(component, answer - first) {
                    made.loops[number as usize / 64] |= 1 << (number % 64);
                }
            }
            block.clear();
            let passed = block.passed.capacity() * size_of::<u32>();
            if first == 0 {
                cx.charge(passed)?;
                meanwhile += passed;
            }
        }
        cx.release(meanwhile);
        self.sizes = Some(made);
        Ok(())
    }

    /// Ends it and gives back what it has booked.
    pub(super) fn release(self, cx: &Context) {
        cx.release(self.charged + self.kept.bytes);
    }
}

/// Some answers on their way through the components.
struct Block {
    /// By component: those that are reached from it.
    masks: Vec<[u64; WORDS]>,
    /// A bit for each component to which some came.
    waiting: Vec<u64>,
    /// Components with some.
    passed: Vec<u32>,
}

impl Block {
    fn add(&mut self, component: u32, answer: usize) {
        self.masks[component as usize][answer / 64] |= 1 << (answer % 64);
        self.waiting[component as usize / 64] |= 1 << (component % 64);
    }

    fn has(&self, component: u32, answer: usize) -> bool {
        self.masks[component as usize][answer / 64] & 1 << (answer % 64) != 0
    }

    /// Hands on what each component reaches to those before it, of which all are later, and counts it.
    fn spread(&mut self, before: &Lists, sizes: &mut [u64]) {
        for word in 0..self.waiting.len() {
            while self.waiting[word] != 0 {
                let bit = self.waiting[word].trailing_zeros();
                self.waiting[word] &= self.waiting[word] - 1;
                let component = word as u32 * 64 + bit;
                let mask = self.masks[component as usize];
                let count: u32 = mask.iter().map(|word| word.count_ones()).sum();
                sizes[component as usize] += u64::from(count);
                self.passed.push(component);
                for other in before.get(component) {
                    debug_assert!(*other > component, "none leads to a later one");
                    let words = self.masks[*other as usize].iter_mut().zip(mask);
                    words.for_each(|(word, more)| *word |= more);
                    self.waiting[*other as usize / 64] |= 1 << (other % 64);
                }
            }
        }
    }

    fn clear(&mut self) {
        for component in self.passed.drain(..) {
            self.masks[component as usize] = [0; WORDS];
        }
    }
}
