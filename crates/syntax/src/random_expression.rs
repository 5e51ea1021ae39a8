//! Random inline data, paths, expressions and operations, for tests.

use crate::random::{VARIABLES, Writer};

impl Writer<'_> {
    pub(crate) fn values(&mut self) {
        self.put("VALUES");
        if self.random.one_in(2) {
            self.put("?a");
            self.put("{");
            for _ in 0..self.random.below(3) {
                self.cell();
            }
            return self.put("}");
        }
        let width = self.random.below(3);
        self.put("(");
        for variable in &VARIABLES[..width] {
            self.put(variable);
        }
        self.put(")");
        self.put("{");
        for _ in 0..self.random.below(3) {
            self.put("(");
            for _ in 0..width {
                self.cell();
            }
            self.put(")");
        }
        self.put("}");
    }

    fn cell(&mut self) {
        match self.random.below(if self.has_new { 4 } else { 3 }) {
            0 => self.iri(),
            1 => self.literal(),
            2 => self.put("UNDEF"),
            _ => {
                self.put("<<(");
                self.iri();
                self.any(&["a", "ex:p"]);
                self.literal();
                self.put(")>>");
            }
        }
    }

    pub(crate) fn path(&mut self) {
        self.several(2, "|", &mut |writer| {
            writer.several(2, "/", &mut |writer| {
                if writer.random.one_in(4) {
                    writer.put("^");
                }
                match writer.random.below(6) {
                    0 => writer.put("a"),
                    1 => {
                        writer.put("!");
                        writer.any(&["a", "ex:p", "^ex:q", "(ex:p|^a)", "(^<r>)"]);
                    }
                    2 if writer.depth < 4 => {
                        writer.put("(");
                        writer.deeper(&mut Self::path);
                        writer.put(")");
                    }
                    _ => writer.iri(),
                }
                if writer.random.one_in(3) {
                    writer.any(&["*", "+", "?"]);
                }
            });
        });
    }

    pub(crate) fn bracketed(&mut self) {
        self.put("(");
        self.expression();
        self.put(")");
    }

    pub(crate) fn constraint(&mut self) {
        match self.random.below(4) {
            0 => self.call(),
            1 => self.function(),
            _ => self.bracketed(),
        }
    }

    fn function(&mut self) {
        self.iri();
        match self.random.one_in(4) {
            true => self.put("()"),
            false => {
                self.put("(");
                self.deeper(&mut |writer| writer.several(2, ",", &mut Self::expression));
                self.put(")");
            }
        }
    }

    pub(crate) fn expression(&mut self) {
        self.deeper(&mut |writer| {
            if writer.is_deep() {
                return writer.operand();
            }
            let operator = writer
                .random
                .of(&["||", "&&", "=", "<", ">=", "+", "-", "*", "/", "!="]);
            match writer.random.below(5) {
                0 => {
                    writer.operand();
                    writer.any(&["IN", "NOT IN", "in"]);
                    match writer.random.one_in(4) {
                        true => writer.put("()"),
                        false => {
                            writer.put("(");
                            writer.several(3, ",", &mut Self::expression);
                            writer.put(")");
                        }
                    }
                }
                1 => writer.operand(),
                _ => {
                    let is_comparison = matches!(operator, "=" | "<" | ">=" | "!=");
                    let most = if is_comparison { 1 } else { 3 };
                    writer.operand();
                    for _ in 0..=writer.random.below(most) {
                        writer.put(operator);
                        writer.operand();
                    }
                }
            }
        });
    }

    fn operand(&mut self) {
        if self.random.one_in(6) {
            self.any(&["!", "+", "-"]);
            if self.has_new && self.random.one_in(3) {
                self.put("! !");
            }
        }
        match self.random.below(8) {
            0..=2 => self.variable(),
            3 => self.literal(),
            4 => self.iri(),
            5 if !self.is_deep() => self.call(),
            6 if !self.is_deep() => self.bracketed(),
            7 if !self.is_deep() => self.function(),
            _ => self.variable(),
        }
    }

    fn call(&mut self) {
        const CALLS: &[(&str, usize)] = &[
            ("STR", 1),
            ("lang", 1),
            ("LANGMATCHES", 2),
            ("DATATYPE", 1),
            ("IRI", 1),
            ("uri", 1),
            ("BNODE", 1),
            ("ABS", 1),
            ("CEIL", 1),
            ("CONCAT", 2),
            ("COALESCE", 3),
            ("SUBSTR", 2),
            ("substr", 3),
            ("STRLEN", 1),
            ("REPLACE", 3),
            ("REPLACE", 4),
            ("UCASE", 1),
            ("ENCODE_FOR_URI", 1),
            ("CONTAINS", 2),
            ("STRSTARTS", 2),
            ("YEAR", 1),
            ("TZ", 1),
            ("MD5", 1),
            ("SHA256", 1),
            ("IF", 3),
            ("STRLANG", 2),
            ("STRDT", 2),
            ("sameTerm", 2),
            ("isIRI", 1),
            ("isLiteral", 1),
            ("REGEX", 2),
            ("regex", 3),
        ];
        const NEW: &[(&str, usize)] = &[
            ("TRIPLE", 3),
            ("SUBJECT", 1),
            ("isTRIPLE", 1),
            ("LANGDIR", 1),
            ("hasLANG", 1),
            ("hasLANGDIR", 1),
            ("STRLANGDIR", 3),
        ];
        match self.random.below(8) {
            0 => {
                self.any(&["EXISTS", "NOT EXISTS", "not exists"]);
                self.deeper(&mut Self::group);
                return;
            }
            1 => {
                self.put("BOUND");
                self.put("(");
                self.variable();
                return self.put(")");
            }
            2 => {
                self.any(&["NOW", "RAND", "UUID", "STRUUID", "BNODE"]);
                return self.put("()");
            }
            _ => (),
        }
        let calls = if self.has_new && self.random.one_in(3) {
            NEW
        } else {
            CALLS
        };
        let (name, count) = calls[self.random.below(calls.len())];
        self.put(name);
        self.put("(");
        for number in 0..count {
            if number > 0 {
                self.put(",");
            }
            self.expression();
        }
        self.put(")");
    }

    pub(crate) fn update(&mut self) -> String {
        self.prologue();
        self.several(2, ";", &mut Self::operation);
        if self.random.one_in(3) {
            self.put(";");
        }
        self.text()
    }

    fn operation(&mut self) {
        match self.random.below(8) {
            0 => {
                self.any(&["CLEAR", "DROP"]);
                if self.random.one_in(3) {
                    self.put("SILENT");
                }
                self.any(&["DEFAULT", "NAMED", "ALL", "GRAPH ex:g"]);
            }
            1 => {
                self.any(&["ADD", "MOVE", "COPY"]);
                self.any(&["DEFAULT", "ex:g", "GRAPH ex:h"]);
                self.put("TO");
                self.any(&["DEFAULT", "ex:g", "GRAPH ex:h"]);
            }
            2 => {
                self.any(&["LOAD", "LOAD SILENT"]);
                self.iri();
                if self.random.one_in(2) {
                    self.put("INTO GRAPH ex:g");
                }
            }
            3 => {
                self.put("INSERT DATA");
                self.put("{");
                self.any(&[
                    "ex:s ex:p 1, 'x'@en ; a ex:T .",
                    "[] ex:p (1 [ ex:q 2 ]) .",
                    "",
                    "GRAPH ex:g { ex:s a 'x'^^ex:t }",
                ]);
                self.put("}");
            }
            4 => {
                self.put("DELETE DATA");
                self.put("{");
                self.any(&["ex:s ex:p 1", "GRAPH ex:g { ex:s a :T . } ex:s ex:p ()"]);
                self.put("}");
            }
            5 => {
                self.put("DELETE WHERE");
                self.put("{");
                self.any(&[
                    "?s ?p ?o",
                    "GRAPH ?g { ?s ?p ?o . ?o a ex:T }",
                    "?s a 1, 2 ; ?p 3 .",
                ]);
                self.put("}");
            }
            _ => {
                if self.random.one_in(3) {
                    self.put("WITH");
                    self.iri();
                }
                let kind = self.random.below(3);
                if kind != 0 {
                    self.put("DELETE");
                    self.put("{");
                    self.any(&["?s ?p ?o", "", "GRAPH ?g { ?s ?p 1 }", "?s a ex:T ; ?p ()"]);
                    self.put("}");
                }
                if kind != 1 {
                    self.put("INSERT");
                    self.put("{");
                    self.triples(false);
                    self.put("}");
                }
                if self.random.one_in(3) {
                    self.put("USING");
                    self.iri();
                }
                self.put("WHERE");
                self.group();
            }
        }
    }
}
