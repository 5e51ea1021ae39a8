//! Random texts for tests: grammatical ones, and what mistakes make of them.

/// The same numbers on all machines.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    pub(crate) fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    pub(crate) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }
}

pub(crate) const VARIABLES: &[&str] = &[
    "?a", "?b", "$c", "?d", "?e1", "?\u{e9}", "?s", "?p", "?o", "?x",
];
const IRIS: &[&str] = &[
    "<http://e/a>",
    "<b>",
    "<#c>",
    "<>",
    "ex:d",
    "ex:e.f",
    "ex:",
    ":g",
    ":1-x",
    "ex:h\\,i",
    "ex:%20",
    "<http://e/\\u0061>",
    "<a,b>",
    "<A_(b)>",
];
const LITERALS: &[&str] = &[
    "1",
    "-2",
    "+3",
    "1.5",
    "-.5",
    "1e3",
    "1.E-2",
    "true",
    "false",
    "'s'",
    "\"t\"",
    "'x'@en",
    "'x'@en-GB",
    "'y'^^ex:t",
    "'z' ^^ <t>",
    "'''l'o''ng'''",
    "\"\"\"\n\"\"\"",
    "'\\t\\u0041'",
    "'>'",
    "''",
    "'# no comment'",
];

/// Writes grammatical texts of SPARQL 1.1, and of 1.2 if it may.
pub(crate) struct Writer<'r> {
    pub(crate) random: &'r mut Random,
    pub(crate) has_new: bool,
    out: Vec<String>,
    pub(crate) depth: usize,
    names: usize,
    labels: usize,
}

impl<'r> Writer<'r> {
    pub(crate) fn new(random: &'r mut Random, has_new: bool) -> Self {
        Self {
            random,
            has_new,
            out: Vec::new(),
            depth: 0,
            names: 0,
            labels: 0,
        }
    }

    pub(crate) fn put(&mut self, text: &str) {
        self.out.push(text.to_owned());
    }

    pub(crate) fn any(&mut self, choices: &[&str]) {
        let choice = self.random.of(choices);
        self.put(choice);
    }

    /// Calls `part` once or a few times more, with `between` between.
    pub(crate) fn several(&mut self, most: usize, between: &str, part: &mut dyn FnMut(&mut Self)) {
        for number in 0..=self.random.below(most) {
            if number > 0 && !between.is_empty() {
                self.put(between);
            }
            part(self);
        }
    }

    pub(crate) fn deeper(&mut self, part: &mut dyn FnMut(&mut Self)) {
        self.depth += 1;
        part(self);
        self.depth -= 1;
    }

    pub(crate) fn is_deep(&mut self) -> bool {
        self.depth > 4 || self.random.below(6) < self.depth
    }

    fn new_name(&mut self) {
        self.names += 1;
        let name = format!("?n{}", self.names);
        self.put(&name);
    }

    /// The tokens with white space between them, as little as possible where it is tight.
    pub(crate) fn text(&mut self) -> String {
        let mut text = String::new();
        let is_tight = self.random.one_in(3);
        for token in std::mem::take(&mut self.out) {
            let needs_space = text.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
                && token.starts_with(|c: char| c.is_alphanumeric() || "_:.-".contains(c));
            if needs_space || !is_tight || self.random.one_in(4) {
                let space = self.random.of(&[" ", " ", " ", "\n", "\t", " #c\n", "  "]);
                text.push_str(space);
            }
            text.push_str(&token);
        }
        text
    }

    pub(crate) fn query(&mut self) -> String {
        self.prologue();
        match self.random.below(8) {
            0..=3 => self.select(false),
            4 => {
                self.put("ASK");
                self.rest_of_query();
            }
            5 => {
                self.put("DESCRIBE");
                match self.random.one_in(2) {
                    true => self.put("*"),
                    false => self.several(2, "", &mut Self::name),
                }
                self.rest_of_query();
            }
            6 => {
                self.put("CONSTRUCT");
                self.put("{");
                if !self.random.one_in(6) {
                    self.triples(false);
                }
                self.put("}");
                self.rest_of_query();
            }
            _ => {
                self.put("CONSTRUCT");
                self.put("WHERE");
                self.put("{");
                self.triples(false);
                self.put("}");
                self.slice();
            }
        }
        if self.random.one_in(8) {
            self.values();
        }
        self.text()
    }

    pub(crate) fn prologue(&mut self) {
        self.put("PREFIX");
        self.put("ex:");
        self.put("<http://ex/>");
        self.put("prefix");
        self.put(":");
        self.put("<http://x/y#>");
        if self.random.one_in(4) {
            self.put("BASE");
            self.put("<deeper/>");
        }
        if self.has_new && self.random.one_in(4) {
            self.put("VERSION");
            self.put("'1.2'");
        }
    }

    fn rest_of_query(&mut self) {
        if self.random.one_in(6) {
            self.put("FROM");
            if self.random.one_in(2) {
                self.put("NAMED");
            }
            self.iri();
        }
        if self.random.one_in(2) {
            self.put("WHERE");
        }
        self.group();
        if self.random.one_in(5) {
            self.order();
        }
        self.slice();
    }

    fn order(&mut self) {
        self.put("ORDER");
        self.put("BY");
        self.several(2, "", &mut |writer| match writer.random.below(3) {
            0 => writer.variable(),
            1 => {
                writer.any(&["ASC", "DESC"]);
                writer.bracketed();
            }
            _ => writer.constraint(),
        });
    }

    fn slice(&mut self) {
        if self.random.one_in(4) {
            self.any(&["LIMIT", "limit"]);
            self.put("10");
        }
        if self.random.one_in(4) {
            self.put("OFFSET");
            self.put("5");
        }
    }

    fn select(&mut self, nested: bool) {
        self.any(&["SELECT", "select"]);
        if self.random.one_in(3) {
            self.any(&["DISTINCT", "REDUCED"]);
        }
        if self.random.one_in(3) {
            self.grouped();
            return;
        }
        match self.random.one_in(2) {
            true => self.put("*"),
            false => {
                let count = 1 + self.random.below(2);
                for variable in &VARIABLES[..count] {
                    match self.random.one_in(2) {
                        true => self.put(variable),
                        false => {
                            self.put("(");
                            self.expression();
                            self.put("AS");
                            self.new_name();
                            self.put(")");
                        }
                    }
                }
            }
        }
        match nested {
            true => self.group(),
            false => self.rest_of_query(),
        }
    }

    /// What follows SELECT where solutions are grouped by `?a`.
    fn grouped(&mut self) {
        self.put("?a");
        self.several(2, "", &mut |writer| {
            writer.put("(");
            writer.aggregate();
            writer.put("AS");
            writer.new_name();
            writer.put(")");
        });
        self.group();
        self.put("GROUP");
        self.put("BY");
        self.put("?a");
        if self.random.one_in(3) {
            self.put("(");
            self.expression();
            self.put("AS");
            self.new_name();
            self.put(")");
        }
        if self.random.one_in(3) {
            self.put("HAVING");
            self.put("(");
            self.aggregate();
            self.put(">");
            self.put("1");
            self.put(")");
        }
    }

    fn aggregate(&mut self) {
        match self.random.below(3) {
            0 => {
                self.put("COUNT");
                self.put("(");
                self.any(&["*", "?b", "DISTINCT ?b", "DISTINCT *"]);
            }
            1 => {
                self.any(&["SUM", "min", "MAX", "AVG", "SAMPLE"]);
                self.put("(");
                if self.random.one_in(3) {
                    self.put("DISTINCT");
                }
                self.expression();
            }
            _ => {
                self.put("GROUP_CONCAT");
                self.put("(");
                self.expression();
                if self.random.one_in(2) {
                    self.put(";");
                    self.put("SEPARATOR");
                    self.put("=");
                    self.put("', '");
                }
            }
        }
        self.put(")");
    }

    pub(crate) fn group(&mut self) {
        self.put("{");
        self.deeper(&mut |writer| {
            if writer.depth > 1 && writer.random.one_in(6) {
                writer.select(true);
                return;
            }
            let count = writer.random.below(4);
            for _ in 0..count {
                if writer.random.one_in(2) {
                    writer.triples(true);
                    if writer.random.one_in(2) {
                        writer.put(".");
                    }
                }
                writer.element();
                if writer.random.one_in(4) {
                    writer.put(".");
                }
            }
            if writer.random.one_in(2) {
                writer.triples(true);
            }
        });
        self.put("}");
    }

    fn element(&mut self) {
        if self.is_deep() {
            self.put("FILTER");
            return self.constraint();
        }
        match self.random.below(11) {
            0 | 1 => {
                self.any(&["FILTER", "filter"]);
                self.constraint();
            }
            2 => {
                self.put("OPTIONAL");
                self.group();
            }
            3 => {
                self.put("MINUS");
                self.group();
            }
            4 => {
                self.put("GRAPH");
                self.name();
                self.group();
            }
            5 => {
                self.put("SERVICE");
                if self.random.one_in(2) {
                    self.put("SILENT");
                }
                self.name();
                self.group();
            }
            6 | 7 => {
                self.put("BIND");
                self.put("(");
                self.expression();
                self.put("AS");
                self.new_name();
                self.put(")");
            }
            8 => self.values(),
            _ => self.several(2, "UNION", &mut Self::group),
        }
    }

    pub(crate) fn variable(&mut self) {
        self.any(VARIABLES);
    }

    pub(crate) fn iri(&mut self) {
        self.any(IRIS);
    }

    pub(crate) fn literal(&mut self) {
        self.any(LITERALS);
        if self.has_new && self.random.one_in(10) {
            self.put("'x'@en--ltr");
        }
    }

    fn name(&mut self) {
        match self.random.one_in(2) {
            true => self.variable(),
            false => self.iri(),
        }
    }

    pub(crate) fn triples(&mut self, has_paths: bool) {
        self.labels += 1;
        self.several(2, ".", &mut |writer| {
            let is_alone = writer.subject(has_paths);
            if !is_alone || writer.random.one_in(2) {
                writer.properties(has_paths);
            }
        });
        if self.random.one_in(3) {
            self.put(".");
        }
    }

    /// A subject; true if it may do without properties.
    fn subject(&mut self, has_paths: bool) -> bool {
        match self.random.below(if self.has_new { 9 } else { 7 }) {
            0..=2 => self.variable(),
            3 => self.iri(),
            4 => self.blank(),
            5 if !self.is_deep() => {
                self.brackets(has_paths);
                return true;
            }
            7 => {
                self.reified();
                return true;
            }
            8 => self.triple_term(),
            _ => self.literal(),
        }
        false
    }

    fn blank(&mut self) {
        let label = format!("_:b{}", self.labels);
        match self.random.below(3) {
            0 => self.put(&label),
            1 => self.put("[]"),
            _ => self.put("[ ]"),
        }
    }

    fn brackets(&mut self, has_paths: bool) {
        self.deeper(&mut |writer| match writer.random.one_in(2) {
            true => {
                writer.put("[");
                writer.properties(has_paths);
                writer.put("]");
            }
            false => {
                writer.put("(");
                writer.several(3, "", &mut |writer| writer.object(has_paths));
                writer.put(")");
            }
        });
    }

    fn reified(&mut self) {
        self.put("<<");
        self.name();
        self.name();
        match self.depth < 4 && self.random.one_in(4) {
            true => self.deeper(&mut Self::reified),
            false => self.literal(),
        }
        if self.random.one_in(3) {
            self.put("~");
            if self.random.one_in(2) {
                self.name();
            }
        }
        self.put(">>");
    }

    fn triple_term(&mut self) {
        self.put("<<(");
        self.name();
        self.name();
        match self.depth < 4 && self.random.one_in(4) {
            true => self.deeper(&mut Self::triple_term),
            false => self.literal(),
        }
        self.put(")>>");
    }

    fn properties(&mut self, has_paths: bool) {
        self.several(2, ";", &mut |writer| {
            let is_simple = !has_paths || writer.random.one_in(2);
            match is_simple {
                true if writer.random.one_in(3) => writer.put("a"),
                true => writer.name(),
                false => writer.path(),
            }
            writer.several(2, ",", &mut |writer| {
                writer.object(has_paths);
                if writer.has_new && is_simple && writer.random.one_in(6) {
                    writer.annotation(has_paths);
                }
            });
        });
        if self.random.one_in(4) {
            self.put(";");
        }
    }

    fn annotation(&mut self, has_paths: bool) {
        if self.random.one_in(2) {
            self.put("~");
            if self.random.one_in(2) {
                self.name();
            }
        }
        if self.depth < 4 && self.random.one_in(2) {
            self.put("{|");
            self.deeper(&mut |writer| writer.properties(has_paths));
            self.put("|}");
        }
    }

    fn object(&mut self, has_paths: bool) {
        match self.random.below(if self.has_new { 10 } else { 8 }) {
            0..=2 => self.variable(),
            3 | 4 => self.iri(),
            5 => self.blank(),
            6 if !self.is_deep() => self.brackets(has_paths),
            7 => self.any(&["()", "( )"]),
            8 => self.reified(),
            9 => self.triple_term(),
            _ => self.literal(),
        }
    }
}

/// What people and machines add to texts.
const ADDED: &[&str] = &[
    ".",
    ";",
    ",",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "<",
    ">",
    "'",
    "\"",
    "?",
    "?x",
    "ex:y",
    "a",
    "1",
    "-",
    "+",
    "*",
    "/",
    "|",
    "||",
    "&&",
    "!",
    "=",
    "^",
    "@en",
    "^^",
    "_:b",
    "()",
    "[]",
    "FILTER",
    "OPTIONAL",
    "SELECT",
    "AS",
    "AS ?z",
    "WHERE",
    "UNION",
    "BIND",
    "COUNT(*)",
    "GROUP BY ?a",
    "EXISTS",
    "NOT",
    "IN",
    "true",
    "TRUE",
    "#",
    "\n",
    " ",
    "\\",
    "%",
    "\u{e9}",
    ":",
    "<http://e/z>",
    "LIMIT 1",
    "VALUES ?v { 1 }",
    "DISTINCT",
    ".5",
    "e5",
    "''",
    "PREFIX",
    "UNDEF",
    "GRAPH",
];

/// A text with a few mistakes.
pub(crate) fn mutated(random: &mut Random, text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..=random.below(2) {
        let characters: Vec<(usize, char)> = text.char_indices().collect();
        if characters.is_empty() {
            return text;
        }
        let (at, c) = characters[random.below(characters.len())];
        match random.below(4) {
            0 => text.replace_range(at..at + c.len_utf8(), ""),
            1 => {
                let added = random.of(ADDED);
                text.insert_str(at, added);
            }
            2 => {
                let added = random.of(ADDED);
                text.replace_range(at..at + c.len_utf8(), added);
            }
            _ => {
                // A part of the text is moved or lost.
                let (to, _) = characters[random.below(characters.len())];
                let (from, to) = (at.min(to), at.max(to));
                let to = to.min(from + 30);
                if text.is_char_boundary(to) {
                    let part: String = text.drain(from..to).collect();
                    if random.one_in(2) && text.is_char_boundary(at.min(text.len())) {
                        let at = at.min(text.len());
                        text.insert_str(at, &part);
                    }
                }
            }
        }
    }
    text
}
