//! What do the operations of an update say?

use crate::Error;
use crate::data::Blocks;
use crate::group::with_hint;
use crate::keywords::Keyword;
use crate::lexer::Kind;
use crate::memory::Parsed;
use crate::parser::{Aggregates, Parser};
use crate::patterns::{Blanks, TreeSink};
use crate::query::is_operation;
use crate::tree::{GraphTarget, Iri, Modify, Name, Operation, OperationKind, Quad, Term, Transfer};
use crate::triples::Frame;

impl<'t> Parser<'t, '_> {
    /// All operations of an update.
    pub(crate) fn update(&mut self) -> Parsed<Vec<Operation<'t>>> {
        let mut operations = Vec::new();
        let mut blocks = Blocks::default();
        loop {
            self.prologue()?;
            if self.is(Kind::End) {
                break;
            }
            if !is_operation(self.keyword) {
                let is_form = matches!(
                    self.keyword,
                    Keyword::Select | Keyword::Construct | Keyword::Describe | Keyword::Ask
                );
                if is_form && operations.is_empty() {
                    let span = self.token.span;
                    return Err(Box::new(Error::IsQuery { span }));
                }
                let fits = ["an operation such as INSERT or DELETE", "PREFIX", "BASE"];
                return Err(self.unexpected("an update", &fits));
            }
            let start = self.token.span.start;
            let base = self.base()?;
            let kind = self.operation(&mut blocks)?;
            let span = self.since(start);
            self.memory
                .push(&mut operations, Operation { span, base, kind })?;
            if !self.accept(Kind::Semicolon)? {
                if !self.is(Kind::End) {
                    let failure = self.unexpected("", &["';'", "the end of the update"]);
                    return Err(match is_operation(self.keyword) {
                        true => with_hint(failure, "a ';' separates operations"),
                        false => failure,
                    });
                }
                break;
            }
        }
        blocks.close(&self.names);
        Ok(operations)
    }

    fn operation(&mut self, blocks: &mut Blocks<'t>) -> Parsed<OperationKind<'t>> {
        let keyword = self.keyword;
        if keyword == Keyword::With {
            return self.modify_with();
        }
        self.advance()?;
        match keyword {
            Keyword::Insert => match self.accept_word(Keyword::Data)? {
                true => Ok(OperationKind::InsertData(self.data(blocks, true)?)),
                false => self.modify(None, true),
            },
            Keyword::Delete => match self.keyword {
                Keyword::Data => {
                    self.advance()?;
                    Ok(OperationKind::DeleteData(self.data(blocks, false)?))
                }
                Keyword::Where => {
                    self.advance()?;
                    Ok(OperationKind::DeleteWhere(
                        self.quads("DELETE WHERE", false)?,
                    ))
                }
                _ => self.modify(None, false),
            },
            Keyword::Load => {
                let silent = self.accept_word(Keyword::Silent)?;
                let source = self.iri("LOAD")?;
                let destination = match self.accept_word(Keyword::Into)? {
                    true => Some(self.graph_ref("LOAD")?),
                    false => None,
                };
                Ok(OperationKind::Load {
                    silent,
                    source,
                    destination,
                })
            }
            Keyword::Clear => {
                let silent = self.accept_word(Keyword::Silent)?;
                let target = self.graphs("CLEAR")?;
                Ok(OperationKind::Clear { silent, target })
            }
            Keyword::Drop => {
                let silent = self.accept_word(Keyword::Silent)?;
                let target = self.graphs("DROP")?;
                Ok(OperationKind::Drop { silent, target })
            }
            Keyword::Create => {
                let silent = self.accept_word(Keyword::Silent)?;
                let graph = self.graph_ref("CREATE")?;
                Ok(OperationKind::Create { silent, graph })
            }
            Keyword::Add => self.transfer(Transfer::Add, keyword),
            Keyword::Move => self.transfer(Transfer::Move, keyword),
            _ => self.transfer(Transfer::Copy, keyword),
        }
    }

    fn graph_ref(&mut self, what: &str) -> Parsed<Iri<'t>> {
        self.expect_word(Keyword::Graph, what)?;
        self.iri(what)
    }

    fn graphs(&mut self, what: &str) -> Parsed<GraphTarget<'t>> {
        let target = match self.keyword {
            Keyword::Graph => return Ok(GraphTarget::Graph(self.graph_ref(what)?)),
            Keyword::Default => GraphTarget::Default,
            Keyword::Named => GraphTarget::Named,
            Keyword::All => GraphTarget::All,
            _ => {
                let failure = self.unexpected(what, &["GRAPH", "DEFAULT", "NAMED", "ALL"]);
                return Err(match self.at_iri() {
                    true => with_hint(failure, "the name of a graph follows the word GRAPH"),
                    false => failure,
                });
            }
        };
        self.advance()?;
        Ok(target)
    }

    fn transfer(&mut self, transfer: Transfer, keyword: Keyword) -> Parsed<OperationKind<'t>> {
        let what = keyword.text();
        let silent = self.accept_word(Keyword::Silent)?;
        let from = self.graph_or_default(what)?;
        self.expect_word(Keyword::To, what)?;
        let to = self.graph_or_default(what)?;
        Ok(OperationKind::Transfer {
            transfer,
            silent,
            from,
            to,
        })
    }

    fn graph_or_default(&mut self, what: &str) -> Parsed<Option<Iri<'t>>> {
        if self.accept_word(Keyword::Default)? {
            return Ok(None);
        }
        if !self.accept_word(Keyword::Graph)? && !self.at_iri() {
            return Err(self.unexpected(what, &["DEFAULT", "GRAPH", "an IRI"]));
        }
        Ok(Some(self.iri(what)?))
    }

    fn modify_with(&mut self) -> Parsed<OperationKind<'t>> {
        self.advance()?;
        let with = self.iri("WITH")?;
        let inserts = match self.keyword {
            Keyword::Insert => true,
            Keyword::Delete => false,
            _ => return Err(self.unexpected("an update", &["DELETE", "INSERT"])),
        };
        self.advance()?;
        self.modify(Some(with), inserts)
    }

    /// DELETE and INSERT with a pattern, after the first of these words.
    fn modify(&mut self, with: Option<Iri<'t>>, inserts: bool) -> Parsed<OperationKind<'t>> {
        let mut delete = None;
        let mut insert = None;
        if inserts {
            insert = Some(self.quads("the template of INSERT", true)?);
        } else {
            delete = Some(self.quads("the template of DELETE", false)?);
            if self.accept_word(Keyword::Insert)? {
                insert = Some(self.quads("the template of INSERT", true)?);
            }
        }
        let using = self.dataset(Keyword::Using)?;
        if self.keyword != Keyword::Where {
            let fits: &[&str] = match (&using, &insert) {
                (Some(_), _) => &["USING", "WHERE"],
                (None, None) => &["INSERT", "USING", "WHERE"],
                (None, Some(_)) => &["USING", "WHERE"],
            };
            let failure = self.unexpected("an update", fits);
            return Err(match (inserts, failure.hint()) {
                (true, None) => with_hint(
                    failure,
                    "INSERT DATA { ... } adds triples without a WHERE clause",
                ),
                _ => failure,
            });
        }
        self.advance()?;
        self.aggregates = Aggregates::Refused("a graph pattern");
        let group = self.group("the WHERE clause", false)?;
        let modify = self.memory.boxed(Modify {
            with,
            delete,
            insert,
            using,
            group,
        })?;
        Ok(OperationKind::Modify(modify))
    }

    /// The quads of a template between braces.
    fn quads(&mut self, what: &'static str, has_blanks: bool) -> Parsed<Vec<Quad<'t>>> {
        let blanks = match has_blanks {
            true => Blanks::Allowed,
            false => Blanks::Refused(what),
        };
        let mut sink = TreeSink::<Name<'t>>::new(false, blanks);
        let mut quads = Vec::new();
        self.scope.begin_template();
        self.open(Kind::OpenBrace, what)?;
        // Only the template of INSERT may have blank nodes.
        self.inserts = has_blanks;
        self.quads_of(&mut sink, &mut quads, what)?;
        self.inserts = false;
        self.close(Kind::CloseBrace, what, &[])?;
        self.scope.end_template();
        self.memory.release(sink.triples);
        Ok(quads)
    }

    fn quads_of(
        &mut self,
        sink: &mut TreeSink<'t, Name<'t>>,
        quads: &mut Vec<Quad<'t>>,
        what: &'static str,
    ) -> Parsed<()> {
        let mut frames = Vec::new();
        loop {
            self.quad_triples(sink, &mut frames, quads, None)?;
            if self.is(Kind::CloseBrace) {
                self.memory.release(frames);
                return Ok(());
            }
            if self.keyword != Keyword::Graph {
                let fits = match self.text[..self.end as usize].ends_with(['.', '{', '}']) {
                    true => &["triples", "GRAPH", "'}'"][..],
                    false => &["'.'", "';'", "','", "GRAPH", "'}'"],
                };
                return Err(self.unexpected(what, fits));
            }
            self.advance()?;
            let graph = self.name("GRAPH")?;
            self.open(Kind::OpenBrace, "GRAPH")?;
            self.quad_triples(sink, &mut frames, quads, Some(&graph))?;
            let fits = match self.text[..self.end as usize].ends_with(['.', '{']) {
                true => &["triples"][..],
                false => &["'.'", "';'", "','"],
            };
            self.close(Kind::CloseBrace, what, fits)?;
            self.accept(Kind::Dot)?;
        }
    }

    fn quad_triples(
        &mut self,
        sink: &mut TreeSink<'t, Name<'t>>,
        frames: &mut Vec<Frame<Term<'t>, Name<'t>>>,
        quads: &mut Vec<Quad<'t>>,
        graph: Option<&Name<'t>>,
    ) -> Parsed<()> {
        while self.at_triples() {
            self.triples(sink, frames)?;
            for triple in sink.triples.drain(..) {
                let graph = match graph {
                    Some(graph) => Some(self.copy_name(graph)?),
                    None => None,
                };
                self.memory.push(quads, Quad { triple, graph })?;
            }
            if !self.accept(Kind::Dot)? {
                if self.at_triples() {
                    return Err(self.no_point());
                }
                break;
            }
        }
        Ok(())
    }
}
