//! Which variables are in scope, and which labels are taken?
//!
//! Variables in scope are a list in the order of the text, in which a group's begin somewhere.
//! What is joined to the group around it stays there; what is not in scope there (MINUS, EXISTS,
//! all of a nested SELECT but its columns) is taken away from the end. For each variable the list
//! knows its last place, so that each step costs the same however many groups and variables there
//! are.

use rustc_hash::FxHashMap;

use crate::memory::{Memory, Parsed};
use crate::tree::{Span, Variable};

/// No place.
const NOWHERE: u32 = u32::MAX;

/// A variable that has been seen.
#[derive(Debug)]
struct Known {
    /// Its last place in the list.
    last: u32,
    /// Which set of each kind it was last put in.
    stamps: [u32; 2],
}

#[derive(Debug)]
struct Visible<'t> {
    variable: Variable<'t>,
    number: u32,
    /// The place before this one.
    before: u32,
}

/// Where a label is.
#[derive(Debug)]
struct Label {
    id: u32,
    /// The pattern it belongs to.
    block: u32,
    span: Span,
}

/// What is in scope.
#[derive(Debug, Default)]
pub(crate) struct Scope<'t> {
    numbers: FxHashMap<&'t str, u32>,
    known: Vec<Known>,
    visible: Vec<Visible<'t>>,
    /// Where the variables of the innermost group begin.
    start: u32,
    stamps: [u32; 2],
    labels: FxHashMap<&'t str, Label>,
    /// Those of the template that is being read, if one is.
    template: Option<FxHashMap<&'t str, u32>>,
    /// The basic graph pattern that labels belong to.
    pub(crate) block: u32,
    blocks: u32,
    ids: u32,
    #[cfg(test)]
    pub(crate) steps: u64,
}

/// A kind of set of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// Columns of SELECT or VALUES.
    Columns,
    /// What columns may use where solutions are grouped.
    Grouped,
}

/// What a scope was before a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outer {
    start: u32,
    block: u32,
}

impl<'t> Scope<'t> {
    fn number(&mut self, name: &'t str, memory: &mut Memory<'_>) -> Parsed<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = length(&self.known);
        memory.place(&mut self.numbers)?;
        self.numbers.insert(name, number);
        let known = Known {
            last: NOWHERE,
            stamps: [0; 2],
        };
        memory.push(&mut self.known, known)?;
        Ok(number)
    }

    /// Begins a group.
    pub(crate) fn enter(&mut self) -> Outer {
        let outer = Outer {
            start: self.start,
            block: self.block,
        };
        self.start = length(&self.visible);
        self.next_block();
        outer
    }

    /// Ends a group; its variables are in scope in the group around it.
    pub(crate) fn leave(&mut self, outer: Outer) {
        self.start = outer.start;
        self.block = outer.block;
    }

    /// Ends a group whose variables are not in scope in the group around it.
    pub(crate) fn hide(&mut self, outer: Outer) {
        self.truncate(self.start);
        self.leave(outer);
    }

    /// Takes away what was in scope in the group.
    pub(crate) fn clear(&mut self) {
        self.truncate(self.start);
    }

    fn truncate(&mut self, start: u32) {
        for visible in self.visible.drain(start as usize..).rev() {
            self.known[visible.number as usize].last = visible.before;
            #[cfg(test)]
            {
                self.steps += 1;
            }
        }
    }

    /// Notes a variable in scope.
    #[inline]
    pub(crate) fn see(&mut self, variable: Variable<'t>, memory: &mut Memory<'_>) -> Parsed<()> {
        let number = self.number(variable.name, memory)?;
        let before = self.known[number as usize].last;
        if before != NOWHERE && before >= self.start {
            return Ok(());
        }
        self.known[number as usize].last = length(&self.visible);
        let visible = Visible {
            variable,
            number,
            before,
        };
        memory.push(&mut self.visible, visible)
    }

    /// Where a variable is in scope in the group, if it is.
    pub(crate) fn seen(&self, name: &str) -> Option<Span> {
        let number = *self.numbers.get(name)?;
        let last = self.known[number as usize].last;
        let visible = self.visible.get(last as usize)?;
        (last >= self.start).then_some(visible.variable.span)
    }

    /// The variables in scope in the group, each once, in the order of the text.
    pub(crate) fn all(&mut self, memory: &mut Memory<'_>) -> Parsed<Vec<Variable<'t>>> {
        self.stamps[0] += 1;
        let mut all = Vec::new();
        for visible in &self.visible[self.start as usize..] {
            #[cfg(test)]
            {
                self.steps += 1;
            }
            let known = &mut self.known[visible.number as usize];
            if known.stamps[0] != self.stamps[0] {
                known.stamps[0] = self.stamps[0];
                memory.push(&mut all, visible.variable)?;
            }
        }
        Ok(all)
    }

    /// Begins a set of variables of a kind, of which one is known at a time.
    pub(crate) fn begin_set(&mut self, kind: Set) {
        self.stamps[kind as usize] += 1;
    }

    /// Puts a variable in the set of a kind; false if it is there.
    pub(crate) fn put(
        &mut self,
        kind: Set,
        name: &'t str,
        memory: &mut Memory<'_>,
    ) -> Parsed<bool> {
        let number = self.number(name, memory)?;
        let stamp = self.stamps[kind as usize];
        let known = &mut self.known[number as usize].stamps[kind as usize];
        let is_new = *known != stamp;
        *known = stamp;
        Ok(is_new)
    }

    /// Whether a variable is in the set of a kind.
    pub(crate) fn is_in(&self, kind: Set, name: &str) -> bool {
        let number = self.numbers.get(name);
        number.is_some_and(|number| {
            self.known[*number as usize].stamps[kind as usize] == self.stamps[kind as usize]
        })
    }

    /// Begins a new basic graph pattern.
    pub(crate) fn next_block(&mut self) {
        self.blocks += 1;
        self.block = self.blocks;
    }

    /// Begins a template, whose labels are its own.
    pub(crate) fn begin_template(&mut self) {
        self.template = Some(FxHashMap::default());
    }

    /// Ends it.
    pub(crate) fn end_template(&mut self) {
        self.template = None;
    }

    /// The number of a blank node without label.
    pub(crate) fn fresh(&mut self) -> u32 {
        self.ids += 1;
        self.ids
    }

    /// The number of a labelled blank node, or where the label was in another pattern.
    pub(crate) fn label(
        &mut self,
        label: &'t str,
        span: Span,
        memory: &mut Memory<'_>,
    ) -> Parsed<Result<u32, Span>> {
        if let Some(template) = &mut self.template {
            if let Some(id) = template.get(label) {
                return Ok(Ok(*id));
            }
            self.ids += 1;
            memory.place(template)?;
            template.insert(label, self.ids);
            return Ok(Ok(self.ids));
        }
        if let Some(known) = self.labels.get(label) {
            return Ok(match known.block == self.block {
                true => Ok(known.id),
                false => Err(known.span),
            });
        }
        memory.place(&mut self.labels)?;
        let id = self.fresh();
        let block = self.block;
        self.labels.insert(label, Label { id, block, span });
        Ok(Ok(id))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "texts have fewer bytes than u32 numbers"
)]
fn length<T>(list: &[T]) -> u32 {
    list.len() as u32
}
