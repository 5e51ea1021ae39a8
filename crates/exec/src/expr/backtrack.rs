//! What does a pattern with back-references match?
//!
//! Such patterns cannot be matched in linear time (the problem is NP-complete), so they have an
//! engine of their own, which tries one way after the other. The number of steps and the memory
//! that it may take are bounded, the memory is counted, and it looks at the query's limits between
//! steps: no crate does these, nor takes a group that matched nothing for the empty string, as XPath
//! does.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look};

use super::{Context, ExprError};
use crate::terms::HeldBytes;

/// The most instructions of a program: a counted repetition is written out.
pub(super) const INSTRUCTIONS: usize = 1 << 16;
/// Bytes of a program while it is compiled, beyond those of its texts and classes.
pub(super) const COMPILING_BYTES: usize = 2 * INSTRUCTIONS * size_of::<Instruction>();
/// The most steps that a text may take, those of all its matches together: a second or less.
const STEPS: u64 = 1 << 27;
/// Steps between two looks at the query's limits.
const POLLED_STEPS: u64 = 1 << 14;
/// The most memory for ways that are left to be tried.
const STACK_BYTES: usize = 64 << 20;
/// Ways for which there is room at first.
const FIRST_WAYS: usize = 256;
/// Bytes of text that are compared in one step.
const BYTES_PER_STEP: usize = 16;

/// How letters and lines are taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modes {
    /// The flag `s`.
    pub(super) dot_matches_all: bool,
    /// The flag `m`.
    pub(super) lines: bool,
    /// The flag `i`.
    pub(super) any_case: bool,
}

/// What a group of a rewritten pattern stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// The capturing group of this number.
    Capture(u32),
    /// A back-reference to the group of this number.
    Reference(u32),
}

/// Why a pattern was not compiled.
#[derive(Debug)]
pub(super) enum Uncompiled {
    /// It is malformed.
    Invalid,
    /// Its program would have more than [`INSTRUCTIONS`].
    TooLong,
}

/// A program that matches a pattern.
#[derive(Debug)]
pub(super) struct Program {
    code: Vec<Instruction>,
    /// Literal texts, one behind the other.
    texts: Vec<u8>,
    classes: Vec<CharacterClass>,
    /// Places of the text that are remembered: two for each capturing group, the match itself being
    /// group 0, then two for each loop: where its body begins, and whether it is repeated.
    places: u32,
    captures: u32,
    any_case: bool,
    /// It only matches where the text begins.
    anchored: bool,
}

#[derive(Clone, Copy, Debug)]
enum Instruction {
    /// The text from and before these bytes of [`Program::texts`].
    Text(u32, u32),
    Class(u32),
    Look(Look),
    /// What a group matched.
    Reference(u32),
    /// Remembers where it is.
    Mark(u32),
    /// Remembers that it was nowhere.
    Clear(u32),
    /// After the body of the loop that has this place and the next one: where that matched nothing,
    /// it goes on there the first time, and fails if the body is repeated.
    Repeated(u32, u32),
    Jump(u32),
    /// Goes on at the first, and if that fails at the second.
    Fork(u32, u32),
    Matched,
}

#[derive(Debug)]
struct CharacterClass {
    ascii: u128,
    ranges: Box<[(char, char)]>,
}

impl CharacterClass {
    fn new(class: &ClassUnicode) -> Self {
        let ranges: Box<[_]> = class.iter().map(|r| (r.start(), r.end())).collect();
        let mut ascii = 0;
        for (first, last) in ranges.iter().take_while(|(first, _)| first.is_ascii()) {
            for character in *first..=(*last).min('\x7f') {
                ascii |= 1_u128 << u32::from(character);
            }
        }
        Self { ascii, ranges }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ranges)
    }

    fn has(&self, character: char) -> bool {
        if character.is_ascii() {
            return self.ascii >> u32::from(character) & 1 == 1;
        }
        let behind = self
            .ranges
            .partition_point(|(first, _)| *first <= character);
        behind > 0 && character <= self.ranges[behind - 1].1
    }
}

impl Program {
    /// Compiles a pattern of the `regex` crate in which each back-reference is a group of one
    /// character; `groups` says of each group in turn what it stands for.
    pub(super) fn compile(
        pattern: &str,
        groups: &[Group],
        modes: Modes,
        nesting: u32,
    ) -> Result<Self, Uncompiled> {
        let hir = ParserBuilder::new()
            .dot_matches_new_line(modes.dot_matches_all)
            .multi_line(modes.lines)
            .case_insensitive(modes.any_case)
            .nest_limit(nesting)
            .build()
            .parse(pattern)
            .map_err(|_| Uncompiled::Invalid)?;
        let mut parts = Parts {
            groups,
            texts: Vec::new(),
            classes: Vec::new(),
            loops: 0,
        };
        let root = parts.node(&hir)?;
        let captures = groups
            .iter()
            .filter(|group| matches!(group, Group::Capture(_)));
        let captures = captures.count() as u32;
        let mut emitter = Emitter {
            code: Vec::new(),
            first_loop: 2 * (captures + 1),
        };
        emitter.push(Instruction::Mark(0))?;
        emitter.emit(&root)?;
        emitter.push(Instruction::Mark(1))?;
        emitter.push(Instruction::Matched)?;
        Ok(Self {
            code: emitter.code,
            texts: parts.texts,
            classes: parts.classes,
            places: emitter.first_loop + 2 * parts.loops,
            captures,
            any_case: modes.any_case,
            anchored: hir.properties().look_set_prefix().contains(Look::Start),
        })
    }

    /// How many capturing groups the pattern has.
    pub(super) fn captures(&self) -> usize {
        self.captures as usize
    }

    /// Bytes that each thread takes to match it, without those of ways that are left to be tried.
    pub(super) fn matching_bytes(&self) -> usize {
        self.places as usize * size_of::<usize>()
    }

    /// Bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        let classes: usize = self.classes.iter().map(CharacterClass::bytes).sum();
        self.code.capacity() * size_of::<Instruction>() + self.texts.capacity() + classes
    }
}

/// A pattern of which a program is made, with texts and classes by number, so that a counted
/// repetition repeats no more than instructions.
enum Node {
    Empty,
    Text(u32, u32),
    Class(u32),
    Look(Look),
    Reference(u32),
    Capture(u32, Box<Self>),
    Repeat {
        body: Box<Self>,
        least: u32,
        most: Option<u32>,
        greedy: bool,
        /// Its number among the loops.
        number: u32,
    },
    Sequence(Vec<Self>),
    Choice(Vec<Self>),
}

impl Node {
    /// True unless it always matches a character at least.
    fn may_be_empty(&self) -> bool {
        match self {
            Self::Empty | Self::Look(_) | Self::Reference(_) => true,
            Self::Text(..) | Self::Class(_) => false,
            Self::Capture(_, body) => body.may_be_empty(),
            Self::Repeat { body, least, .. } => *least == 0 || body.may_be_empty(),
            Self::Sequence(parts) => parts.iter().all(Self::may_be_empty),
            Self::Choice(parts) => parts.iter().any(Self::may_be_empty),
        }
    }
}

/// Makes nodes.
struct Parts<'a> {
    groups: &'a [Group],
    texts: Vec<u8>,
    classes: Vec<CharacterClass>,
    loops: u32,
}

impl Parts<'_> {
    fn node(&mut self, hir: &Hir) -> Result<Node, Uncompiled> {
        Ok(match hir.kind() {
            HirKind::Empty => Node::Empty,
            HirKind::Literal(text) => {
                let from = self.texts.len() as u32;
                self.texts.extend_from_slice(&text.0);
                Node::Text(from, self.texts.len() as u32)
            }
            HirKind::Class(Class::Unicode(class)) => {
                self.classes.push(CharacterClass::new(class));
                Node::Class(self.classes.len() as u32 - 1)
            }
            // Patterns match characters, not bytes.
            HirKind::Class(Class::Bytes(_)) => return Err(Uncompiled::Invalid),
            HirKind::Look(look @ (Look::Start | Look::End | Look::StartLF | Look::EndLF)) => {
                Node::Look(*look)
            }
            // XPath has no others.
            HirKind::Look(_) => return Err(Uncompiled::Invalid),
            HirKind::Capture(capture) => {
                let number = capture.index as usize - 1;
                match self.groups.get(number).ok_or(Uncompiled::Invalid)? {
                    Group::Reference(group) => Node::Reference(*group),
                    Group::Capture(group) => {
                        let body = self.node(&capture.sub)?;
                        Node::Capture(*group, Box::new(body))
                    }
                }
            }
            HirKind::Repetition(repetition) => {
                self.loops += 1;
                Node::Repeat {
                    number: self.loops - 1,
                    body: Box::new(self.node(&repetition.sub)?),
                    least: repetition.min,
                    most: repetition.max,
                    greedy: repetition.greedy,
                }
            }
            HirKind::Concat(parts) => Node::Sequence(self.nodes(parts)?),
            HirKind::Alternation(parts) => Node::Choice(self.nodes(parts)?),
        })
    }

    fn nodes(&mut self, parts: &[Hir]) -> Result<Vec<Node>, Uncompiled> {
        parts.iter().map(|part| self.node(part)).collect()
    }
}

/// Makes instructions.
struct Emitter {
    code: Vec<Instruction>,
    /// The place of the loop with number 0.
    first_loop: u32,
}

impl Emitter {
    fn push(&mut self, instruction: Instruction) -> Result<u32, Uncompiled> {
        if self.code.len() >= INSTRUCTIONS {
            return Err(Uncompiled::TooLong);
        }
        self.code.push(instruction);
        Ok(self.next() - 1)
    }

    fn next(&self) -> u32 {
        self.code.len() as u32
    }

    fn emit(&mut self, node: &Node) -> Result<(), Uncompiled> {
        match node {
            Node::Empty => {}
            Node::Text(from, to) => {
                self.push(Instruction::Text(*from, *to))?;
            }
            Node::Class(class) => {
                self.push(Instruction::Class(*class))?;
            }
            Node::Look(look) => {
                self.push(Instruction::Look(*look))?;
            }
            Node::Reference(group) => {
                self.push(Instruction::Reference(*group))?;
            }
            Node::Capture(group, body) => {
                self.push(Instruction::Mark(2 * group))?;
                self.emit(body)?;
                self.push(Instruction::Mark(2 * group + 1))?;
            }
            Node::Sequence(parts) => {
                for part in parts {
                    self.emit(part)?;
                }
            }
            Node::Choice(parts) => self.choice(parts)?,
            Node::Repeat {
                body,
                least,
                most,
                greedy,
                number,
            } => match most {
                None => {
                    for _ in 1..*least {
                        self.emit(body)?;
                    }
                    self.repeat(body, *least == 0, *greedy, self.first_loop + 2 * number)?;
                }
                Some(most) => {
                    for _ in 0..*least {
                        self.emit(body)?;
                    }
                    self.options(body, most - least, *greedy)?;
                }
            },
        }
        Ok(())
    }

    /// One of several, the first that fits.
    fn choice(&mut self, parts: &[Node]) -> Result<(), Uncompiled> {
        let mut jumps = Vec::with_capacity(parts.len());
        for (number, part) in parts.iter().enumerate() {
            if number + 1 == parts.len() {
                self.emit(part)?;
                break;
            }
            let fork = self.push(Instruction::Fork(0, 0))?;
            self.emit(part)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            self.code[fork as usize] = Instruction::Fork(fork + 1, self.next());
        }
        for jump in jumps {
            self.code[jump as usize] = Instruction::Jump(self.next());
        }
        Ok(())
    }

    /// Once or more often, or not at all if it is `optional`.
    fn repeat(
        &mut self,
        body: &Node,
        optional: bool,
        greedy: bool,
        place: u32,
    ) -> Result<(), Uncompiled> {
        let entry = match optional {
            true => Some(self.push(Instruction::Fork(0, 0))?),
            false => None,
        };
        // A body that matches nothing would be repeated for ever.
        let is_checked = body.may_be_empty();
        if is_checked {
            self.push(Instruction::Mark(place))?;
            self.push(Instruction::Clear(place + 1))?;
        }
        let first = self.next();
        self.emit(body)?;
        let end = if is_checked {
            let check = self.push(Instruction::Repeated(0, 0))?;
            let end = self.next() + 4;
            self.code[check as usize] = Instruction::Repeated(place, end);
            self.push(fork_to(check + 2, end, greedy))?;
            self.push(Instruction::Mark(place))?;
            self.push(Instruction::Mark(place + 1))?;
            self.push(Instruction::Jump(first))?;
            end
        } else {
            let end = self.next() + 1;
            self.push(fork_to(first, end, greedy))?;
            end
        };
        if let Some(entry) = entry {
            self.code[entry as usize] = fork_to(entry + 1, end, greedy);
        }
        Ok(())
    }

    /// So often at most, and not at all if need be.
    fn options(&mut self, body: &Node, most: u32, greedy: bool) -> Result<(), Uncompiled> {
        let mut forks = Vec::new();
        for _ in 0..most {
            forks.push(self.push(Instruction::Fork(0, 0))?);
            self.emit(body)?;
        }
        let end = self.next();
        for fork in forks {
            self.code[fork as usize] = fork_to(fork + 1, end, greedy);
        }
        Ok(())
    }
}

/// Prefers the body of a loop if it is greedy, what comes after it if not.
fn fork_to(body: u32, end: u32, greedy: bool) -> Instruction {
    match greedy {
        true => Instruction::Fork(body, end),
        false => Instruction::Fork(end, body),
    }
}

/// Matches one text.
pub(super) struct Matcher<'a> {
    program: &'a Program,
    text: &'a str,
    cx: &'a Context,
    places: Vec<usize>,
    ways: Vec<Way>,
    held: Option<HeldBytes>,
    steps: u64,
    polled_at: u64,
}

/// What to do once a way has failed.
#[derive(Clone, Copy)]
enum Way {
    /// Go on at this instruction and this place of the text.
    Branch(u32, usize),
    /// Remember this place again.
    Undo(u32, usize),
}

/// The place of what was not matched.
const NOWHERE: usize = usize::MAX;

impl<'a> Matcher<'a> {
    pub(super) fn new(program: &'a Program, text: &'a str, cx: &'a Context) -> Self {
        Self {
            program,
            text,
            cx,
            places: vec![NOWHERE; program.places as usize],
            ways: Vec::new(),
            held: None,
            steps: 0,
            polled_at: 0,
        }
    }

    /// Finds the first match that begins at `from` or later: where it begins and ends.
    ///
    /// # Errors
    /// [`ExprError::Refused`] if it takes more than [`STEPS`] or [`STACK_BYTES`], and as
    /// [`Context::poll`].
    pub(super) fn find(&mut self, from: usize) -> Result<Option<(usize, usize)>, ExprError> {
        // The rows of a query that is refused are not used: none of them is to take as long again.
        if self.cx.refusal().is_some() {
            return Err(ExprError::Refused);
        }
        self.count(self.places.len() / BYTES_PER_STEP)?;
        // Of the last match; one that fails leaves none.
        self.places.fill(NOWHERE);
        self.ways.clear();
        let mut start = from;
        loop {
            if self.program.anchored && start > 0 {
                return Ok(None);
            }
            if self.run(start)? {
                return Ok(Some((self.places[0], self.places[1])));
            }
            match self.text[start..].chars().next() {
                Some(next) => start += next.len_utf8(),
                None => return Ok(None),
            }
        }
    }

    /// What a group of the last match matched, if anything.
    pub(super) fn group(&self, group: usize) -> Option<&'a str> {
        let (from, to) = (self.places[2 * group], self.places[2 * group + 1]);
        (from != NOWHERE && to != NOWHERE).then(|| &self.text[from..to])
    }

    /// Tries to match from `start` on.
    fn run(&mut self, start: usize) -> Result<bool, ExprError> {
        let (mut next, mut at) = (0, start);
        loop {
            self.count(1)?;
            let went_on = match self.program.code[next as usize] {
                Instruction::Matched => return Ok(true),
                Instruction::Text(from, to) => {
                    let text = &self.program.texts[from as usize..to as usize];
                    self.count(text.len() / BYTES_PER_STEP)?;
                    let fits = self.text.as_bytes()[at..].starts_with(text);
                    fits.then_some((next + 1, at + text.len()))
                }
                Instruction::Class(class) => {
                    let class = &self.program.classes[class as usize];
                    let character = self.text[at..].chars().next();
                    let fitting = character.filter(|character| class.has(*character));
                    fitting.map(|character| (next + 1, at + character.len_utf8()))
                }
                Instruction::Look(look) => self.looks(look, at).then_some((next + 1, at)),
                Instruction::Reference(group) => {
                    let end = self.after_reference(group as usize, at)?;
                    end.map(|end| (next + 1, end))
                }
                Instruction::Mark(place) => {
                    self.remember(place, at)?;
                    Some((next + 1, at))
                }
                Instruction::Clear(place) => {
                    self.remember(place, NOWHERE)?;
                    Some((next + 1, at))
                }
                Instruction::Repeated(place, end) => {
                    let is_first = self.places[place as usize + 1] == NOWHERE;
                    match self.places[place as usize] == at {
                        false => Some((next + 1, at)),
                        true => is_first.then_some((end, at)),
                    }
                }
                Instruction::Jump(to) => Some((to, at)),
                Instruction::Fork(first, second) => {
                    self.push(Way::Branch(second, at))?;
                    Some((first, at))
                }
            };
            match went_on.or_else(|| self.go_back()) {
                Some(way) => (next, at) = way,
                None => return Ok(false),
            }
        }
    }

    /// The last way that was not tried.
    fn go_back(&mut self) -> Option<(u32, usize)> {
        loop {
            match self.ways.pop()? {
                Way::Branch(next, at) => return Some((next, at)),
                Way::Undo(place, old) => self.places[place as usize] = old,
            }
        }
    }

    fn remember(&mut self, place: u32, at: usize) -> Result<(), ExprError> {
        let old = std::mem::replace(&mut self.places[place as usize], at);
        self.push(Way::Undo(place, old))
    }

    fn looks(&self, look: Look, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        match look {
            Look::Start => at == 0,
            Look::End => at == bytes.len(),
            Look::StartLF => at == 0 || bytes[at - 1] == b'\n',
            Look::EndLF => at == bytes.len() || bytes[at] == b'\n',
            other => unreachable!("{other:?} is not compiled"),
        }
    }

    /// Where the text ends that a group matched, if it is at `at` too. A group that matched nothing
    /// stands for the empty string (XQuery and XPath Functions 3.1, section 5.6.1).
    fn after_reference(&mut self, group: usize, at: usize) -> Result<Option<usize>, ExprError> {
        let Some(matched) = self.group(group) else {
            return Ok(Some(at));
        };
        let rest = &self.text[at..];
        if !self.program.any_case {
            self.count(matched.len() / BYTES_PER_STEP)?;
            return Ok(rest.starts_with(matched).then(|| at + matched.len()));
        }
        self.count(matched.len())?;
        let mut characters = rest.chars();
        for wanted in matched.chars() {
            match characters.next() {
                Some(found) if is_same_letter(wanted, found) => {}
                _ => return Ok(None),
            }
        }
        Ok(Some(self.text.len() - characters.as_str().len()))
    }

    fn push(&mut self, way: Way) -> Result<(), ExprError> {
        if self.ways.len() == self.ways.capacity() {
            self.grow()?;
        }
        self.ways.push(way);
        Ok(())
    }

    #[cold]
    fn grow(&mut self) -> Result<(), ExprError> {
        let room = FIRST_WAYS.max(2 * self.ways.capacity());
        let bytes = room * size_of::<Way>();
        if bytes > STACK_BYTES {
            let reason = format!(
                "matching a pattern with back-references took more than {STACK_BYTES} bytes"
            );
            return Err(self.cx.refuse(reason));
        }
        // Both are there while one is copied.
        self.held = self.cx.hold_text(bytes + bytes / 2)?;
        self.ways.reserve_exact(room - self.ways.len());
        Ok(())
    }

    fn count(&mut self, steps: usize) -> Result<(), ExprError> {
        self.steps += steps as u64;
        if self.steps - self.polled_at < POLLED_STEPS {
            return Ok(());
        }
        self.look_at_limits()
    }

    #[cold]
    fn look_at_limits(&mut self) -> Result<(), ExprError> {
        self.polled_at = self.steps;
        if self.steps > STEPS {
            let reason =
                format!("matching a pattern with back-references took more than {STEPS} steps");
            return Err(self.cx.refuse(reason));
        }
        self.cx.poll()
    }
}

/// True of a character and its variants in other cases.
fn is_same_letter(left: char, right: char) -> bool {
    if left == right {
        return true;
    }
    if left.is_ascii() && right.is_ascii() {
        return left.eq_ignore_ascii_case(&right);
    }
    let mut variants = ClassUnicode::new([ClassUnicodeRange::new(left, left)]);
    variants.case_fold_simple();
    let mut ranges = variants.iter();
    ranges.any(|range| (range.start()..=range.end()).contains(&right))
}
