//! Which queries put patterns, groups and solution modifiers together in every way?
//!
//! A variable's name tells what it can be, so that joins keep to a domain: `x` and `q` nodes, `g`
//! graphs, `n` numbers, `s` strings, `l` strings with a language, `d` dates, `f` booleans, `a`
//! anything. Numbers from 10 on are for computed variables, `k…` for aggregates, see [`Column`].
//!
//! Bold queries put anything anywhere, and are compared with the definitions; others keep to what
//! [`crate::common_ground`] tells.

use crate::common_ground::common_ground;
use crate::path::Path;
use crate::query::{Element, Expression, Form, Group, Item, Node, Pattern, Query};
use crate::random::Random;
use crate::random_data::{self, CLASSES, Domain, GRAPHS, Profile, VERTICES, iri};
use crate::random_expression::{Expressions, Variable, variable};
use oxrdf::Term;
use oxrdf::vocab::rdf;

/// How the values of a column compare, told by the variable's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Straight from the data: as written.
    Exact,
    /// Computed: type and value.
    Value,
    /// MIN or MAX: value, since equal numbers of different types may stand for each other.
    ValueOfAnyType,
    /// GROUP_CONCAT: the parts in any order.
    Parts,
    /// SAMPLE: whether there is a value.
    Presence,
}

impl Column {
    /// Of the variable with this name.
    pub fn of(name: &str) -> Self {
        match name.get(..2) {
            Some("km") => Self::ValueOfAnyType,
            Some("kg") => Self::Parts,
            Some("ka") => Self::Presence,
            Some("kn") => Self::Value,
            _ if name.len() > 2 => Self::Value,
            _ => Self::Exact,
        }
    }
}

/// The domain of the variable with this name.
pub fn domain_of(name: &str) -> Domain {
    match name.as_bytes() {
        [b'n', ..] | [b'k', b'n', ..] => Domain::Number,
        [b's', ..] => Domain::String,
        [b'l', ..] => Domain::Language,
        [b'd', ..] => Domain::Date,
        [b'f', ..] => Domain::Boolean,
        [b'x' | b'q' | b'g', ..] => Domain::Node,
        _ => Domain::Any,
    }
}

/// A random query over the vocabulary of [`crate::random_data`].
pub fn query(random: &mut Random, profile: Profile) -> Query {
    let query = Generator::new(random, profile, false).query();
    assert!(
        common_ground(&query.pattern),
        "the generator left the common ground:\n{query}"
    );
    query
}

/// A random query that need not keep to the common ground: [`crate::reference`] answers it. The
/// data has no blank nodes and no other spellings.
pub fn bold_query(random: &mut Random, profile: Profile) -> Query {
    assert!(
        !profile.blanks && !profile.other_spellings,
        "its values can be written in VALUES"
    );
    Generator::new(random, profile, true).query()
}
struct Generator<'a> {
    random: &'a mut Random,
    profile: Profile,
    /// Whether it leaves the common ground.
    bold: bool,
    computed: usize,
    blanks: usize,
    paths: usize,
    /// OPTIONALs around.
    optionals: usize,
    /// Variables of the GRAPHs around.
    graph_variables: Vec<String>,
    /// GRAPHs around.
    graphs: usize,
    /// EXISTS around.
    exists: usize,
}

fn note(scope: &mut Vec<Variable>, name: &str, certain: bool) {
    match scope.iter_mut().find(|known| known.name == name) {
        Some(known) => known.certain |= certain,
        None => scope.push(Variable {
            name: name.to_owned(),
            domain: domain_of(name),
            certain,
        }),
    }
}

impl<'a> Generator<'a> {
    fn new(random: &'a mut Random, profile: Profile, bold: bool) -> Self {
        Self {
            random,
            profile,
            bold,
            computed: 10,
            blanks: 0,
            paths: 0,
            optionals: 0,
            graph_variables: Vec::new(),
            graphs: 0,
            exists: 0,
        }
    }

    fn query(&mut self) -> Query {
        let depth = if self.bold {
            self.random.between(2, 3)
        } else {
            2
        };
        let (pattern, scope) = self.group(depth, &[]);
        let mut query = Query {
            form: Form::Ask,
            from: Vec::new(),
            from_named: Vec::new(),
            pattern,
            group_by: Vec::new(),
            having: None,
            order_by: Vec::new(),
            limit: None,
            offset: None,
        };
        if self.profile.graphs && self.random.chance(12) {
            let count = if self.bold { self.random.below(4) } else { 1 };
            query.from = (0..count).map(|_| self.graph_name()).collect();
            for _ in 0..self.random.below(3) {
                let name = self.graph_name();
                if !query.from_named.contains(&name) {
                    query.from_named.push(name);
                }
            }
        }
        match self.random.below(20) {
            0 | 1 => {}
            2 | 3 if !scope.is_empty() => query.form = Form::Construct(self.template(&scope)),
            4..=8 if !scope.is_empty() => self.aggregation(&mut query, &scope),
            _ => self.selection(&mut query, &scope),
        }
        query
    }

    fn expressions<'b>(&'b mut self, variables: &'b [Variable]) -> Expressions<'b> {
        Expressions {
            random: self.random,
            profile: self.profile,
            variables,
        }
    }

    fn graph_name(&mut self) -> Term {
        if self.random.chance(6) {
            return iri("g9").into();
        }
        iri(self.random.name(&GRAPHS)).into()
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.computed += 1;
        format!("{prefix}{}", self.computed)
    }

    // Patterns.

    /// A group and the variables in scope after it. `outer` are those in scope around it.
    fn group(&mut self, depth: usize, outer: &[Variable]) -> (Group, Vec<Variable>) {
        let mut scope: Vec<Variable> = Vec::new();
        let mut elements = Vec::new();
        if !(self.bold && self.random.chance(35)) {
            elements.push(Element::Triples(self.triples(&mut scope, outer)));
        }
        let more = self
            .random
            .below(if depth == 2 || self.bold { 4 } else { 3 });
        for _ in 0..more {
            let element = self.element(depth, &mut scope, outer);
            elements.extend(element);
        }
        (Group(elements), scope)
    }

    fn element(
        &mut self,
        depth: usize,
        scope: &mut Vec<Variable>,
        outer: &[Variable],
    ) -> Vec<Element> {
        match self.random.below(23) {
            16 | 17
                if depth > 0
                    && self.exists == 0
                    && (self.bold || self.optionals == 0 && self.graph_variables.is_empty()) =>
            {
                let (group, _) = self.group(depth - 1, scope);
                vec![Element::Minus(group)]
            }
            18 | 19 if depth > 0 && (self.bold || self.graphs == 0) => {
                let (query, inner) = self.subquery(depth - 1, scope);
                for variable in inner {
                    note(scope, &variable.name, variable.certain);
                }
                vec![Element::Subquery(Box::new(query))]
            }
            20..=22 if self.bold || self.exists == 0 => self.path(scope, outer),
            0..=3 => vec![self.filter(depth, scope, outer)],
            4..=6 if depth > 0 => {
                self.optionals += 1;
                let (group, inner) = self.group(depth - 1, scope);
                self.optionals -= 1;
                for variable in inner {
                    note(scope, &variable.name, false);
                }
                vec![Element::Optional(group)]
            }
            7 | 8 if depth > 0 => vec![self.union(depth, scope)],
            9 | 10 if depth > 0 && self.profile.graphs => vec![self.graph(depth, scope)],
            11 if depth > 0 => {
                let (group, inner) = self.group(depth - 1, scope);
                for variable in inner {
                    note(scope, &variable.name, variable.certain);
                }
                vec![Element::Nested(group)]
            }
            12 => vec![self.values(scope)],
            13 | 14 => self.bind(depth, scope),
            _ => vec![Element::Triples(self.triples(scope, outer))],
        }
    }

    fn filter(&mut self, depth: usize, scope: &[Variable], outer: &[Variable]) -> Element {
        let mut usable = scope.to_vec();
        // A variable of the group around has a value only in the condition of an OPTIONAL. That of
        // a GRAPH around is left out.
        if self.random.chance(15) {
            usable.extend(
                outer
                    .iter()
                    .filter(|known| self.bold || !self.graph_variables.contains(&known.name))
                    .cloned(),
            );
        }
        if depth > 0 && self.random.chance(30) {
            let exists = self.exists(depth - 1, scope);
            let condition = match self.random.below(6) {
                0..=2 => exists,
                3 => Expression::Unary("!", Box::new(exists)),
                4 => {
                    let other = self.expressions(&usable).boolean(1);
                    Expression::Binary("&&", Box::new(other), Box::new(exists))
                }
                _ => {
                    let other = self.expressions(&usable).boolean(1);
                    Expression::Binary("||", Box::new(other), Box::new(exists))
                }
            };
            return Element::Filter(condition);
        }
        Element::Filter(self.expressions(&usable).boolean(2))
    }

    /// EXISTS or NOT EXISTS of a group that shares variables with the solutions in `scope`.
    fn exists(&mut self, depth: usize, scope: &[Variable]) -> Expression {
        let around: Vec<Variable> = scope
            .iter()
            .filter(|known| !self.graph_variables.contains(&known.name))
            .cloned()
            .collect();
        self.exists += 1;
        let (mut group, inner) = self.group(depth, &around);
        // The values of the current solution are seen everywhere inside.
        if self.random.chance(30) {
            let mut usable = inner;
            usable.extend(around);
            let condition = self.expressions(&usable).boolean(1);
            group.0.push(Element::Filter(condition));
        }
        self.exists -= 1;
        Expression::Exists(self.random.chance(40), group)
    }

    /// A nested SELECT and the variables that it shows.
    fn subquery(&mut self, depth: usize, outer: &[Variable]) -> (Query, Vec<Variable>) {
        let (pattern, inner) = self.group(depth, outer);
        let mut query = Query {
            form: Form::Ask,
            from: Vec::new(),
            from_named: Vec::new(),
            pattern,
            group_by: Vec::new(),
            having: None,
            order_by: Vec::new(),
            limit: None,
            offset: None,
        };
        let plain = |name: &str| Item {
            variable: name.to_owned(),
            expression: None,
        };
        let mut items: Vec<Item> = Vec::new();
        let mut shown: Vec<Variable> = Vec::new();
        for known in &inner {
            if self.random.chance(50) {
                items.push(plain(&known.name));
                shown.push(known.clone());
            }
        }
        if self.random.chance(10) {
            items.push(plain("x9"));
        }
        let name = self.fresh("kn");
        let count = Item {
            variable: name.clone(),
            expression: Some(Expression::Aggregate("COUNT", false, None)),
        };
        let counted = Variable {
            domain: domain_of(&name),
            name,
            certain: true,
        };
        let mut distinct = false;
        match self.random.below(10) {
            // Grouped by what is shown.
            0..=2 => {
                query.group_by = shown.iter().map(|v| (variable(&v.name), None)).collect();
                items.retain(|item| item.variable != "x9");
                items.push(count);
                shown.push(counted);
                if depth > 0 && !self.bold && self.random.chance(25) {
                    query.having = Some(self.exists(depth - 1, &shown));
                }
            }
            // A count of some of the rows.
            3 | 4 => {
                if items.is_empty() {
                    items.push(plain("x0"));
                }
                if self.random.chance(60) {
                    query.limit = Some(self.random.below(6));
                }
                if query.limit.is_none() || self.random.chance(30) {
                    query.offset = Some(self.random.below(4));
                }
                query.form = Form::Select {
                    distinct: self.random.chance(30),
                    items,
                };
                let whole = Query {
                    form: Form::Select {
                        distinct: false,
                        items: vec![count],
                    },
                    pattern: Group(vec![Element::Subquery(Box::new(query))]),
                    from: Vec::new(),
                    from_named: Vec::new(),
                    group_by: Vec::new(),
                    having: None,
                    order_by: Vec::new(),
                    limit: None,
                    offset: None,
                };
                return (whole, vec![counted]);
            }
            5..=7 => distinct = true,
            _ => (),
        }
        if items.is_empty() {
            items.push(plain("x0"));
        }
        query.form = Form::Select { distinct, items };
        (query, shown)
    }

    fn union(&mut self, depth: usize, scope: &mut Vec<Variable>) -> Element {
        let count = self.random.between(2, 3);
        let mut branches = Vec::new();
        let mut scopes = Vec::new();
        for _ in 0..count {
            let (group, inner) = self.group(depth - 1, scope);
            branches.push(group);
            scopes.push(inner);
        }
        for inner in &scopes {
            for variable in inner {
                let everywhere = scopes.iter().all(|other| {
                    other
                        .iter()
                        .any(|known| known.name == variable.name && known.certain)
                });
                note(scope, &variable.name, everywhere);
            }
        }
        Element::Union(branches)
    }

    fn graph(&mut self, depth: usize, scope: &mut Vec<Variable>) -> Element {
        let free: Vec<_> = ["g0", "g1"]
            .into_iter()
            .filter(|name| !self.graph_variables.iter().any(|used| used == name))
            .collect();
        if self.random.chance(40) || free.is_empty() {
            let name = self.graph_name();
            self.graphs += 1;
            let (group, inner) = self.group(depth - 1, scope);
            self.graphs -= 1;
            for variable in inner {
                note(scope, &variable.name, variable.certain);
            }
            return Element::Graph(Node::Term(name), group);
        }
        let name = (*self.random.pick(&free)).to_owned();
        self.graph_variables.push(name.clone());
        let around: Vec<_> = scope
            .iter()
            .filter(|variable| self.bold || variable.name != name)
            .cloned()
            .collect();
        self.graphs += 1;
        let (group, inner) = self.group(depth - 1, &around);
        self.graphs -= 1;
        self.graph_variables.pop();
        for variable in inner {
            note(scope, &variable.name, variable.certain);
        }
        note(scope, &name, true);
        Element::Graph(Node::Variable(name), group)
    }

    fn values(&mut self, scope: &mut Vec<Variable>) -> Element {
        let mut names: Vec<String> = Vec::new();
        for _ in 0..self.random.between(1, 2) {
            let known = scope
                .iter()
                .filter(|variable| Column::of(&variable.name) == Column::Exact)
                .map(|variable| variable.name.clone())
                .collect::<Vec<_>>();
            let name = if known.is_empty() || self.random.chance(30) {
                (self.random.name(&["x0", "x1", "n0", "s0", "a0"])).to_owned()
            } else {
                self.random.pick(&known).clone()
            };
            if !names.contains(&name) && (self.bold || !self.graph_variables.contains(&name)) {
                names.push(name);
            }
        }
        if names.is_empty() {
            names.push("x0".to_owned());
        }
        let profile = Profile {
            blanks: false,
            ..self.profile
        };
        let rows: Vec<Vec<Option<Term>>> = (0..self.random.between(0, 4))
            .map(|_| {
                names
                    .iter()
                    .map(|name| {
                        if self.random.chance(20) {
                            return None;
                        }
                        Some(if name.starts_with('g') {
                            self.graph_name()
                        } else {
                            random_data::term(self.random, domain_of(name), profile)
                        })
                    })
                    .collect()
            })
            .collect();
        for (index, name) in names.iter().enumerate() {
            note(scope, name, rows.iter().all(|row| row[index].is_some()));
        }
        Element::Values(names, rows)
    }

    fn bind(&mut self, depth: usize, scope: &mut Vec<Variable>) -> Vec<Element> {
        let (prefix, expression) = if depth > 0 && self.random.chance(15) {
            ("f", self.exists(depth - 1, scope))
        } else {
            let choice = self.random.below(4);
            let mut expressions = self.expressions(scope);
            match choice {
                0 => ("n", expressions.computed_number()),
                1 => ("s", expressions.string(2)),
                2 => ("f", expressions.computed_boolean()),
                _ => ("x", expressions.node()),
            }
        };
        let name = self.fresh(prefix);
        note(scope, &name, false);
        let mut elements = vec![Element::Bind(expression, name.clone())];
        // What was computed is looked up in the data.
        if self.random.chance(30) {
            let domain = domain_of(&name);
            let subject = self.node_variable(scope, &[]);
            elements.push(Element::Triples(vec![Pattern {
                subject: Node::Variable(subject.clone()),
                predicate: Node::Term(random_data::predicate(self.random, domain).into()),
                object: Node::Variable(name),
            }]));
            note(scope, &subject, true);
        }
        elements
    }

    /// One to four triple patterns: a star, a chain, a cycle, or any.
    fn triples(&mut self, scope: &mut Vec<Variable>, outer: &[Variable]) -> Vec<Pattern> {
        let count = *self.random.pick(&[1, 1, 1, 2, 2, 2, 3, 3, 4]);
        let shape = self.random.below(4);
        let first = self.subject(scope, outer);
        let mut current = first.clone();
        let mut patterns: Vec<Pattern> = Vec::new();
        for index in 0..count {
            let mut pattern = self.pattern(current.clone(), scope, outer);
            match shape {
                // A star keeps its subject.
                0 => {}
                // A chain goes on from its object; a cycle ends where it began.
                1 | 2 => {
                    if index > 0 && index + 1 == count && shape == 2 {
                        pattern.object = first.clone();
                        pattern.predicate = self.node_predicate();
                    } else if matches!(&pattern.object, Node::Term(Term::Literal(_)))
                        || matches!(&pattern.object, Node::Variable(name)
                            if domain_of(name) != Domain::Node)
                    {
                        pattern.predicate = self.node_predicate();
                        pattern.object = Node::Variable(self.node_variable(scope, outer));
                    }
                    current = pattern.object.clone();
                }
                _ => current = self.subject(scope, outer),
            }
            for node in [&pattern.subject, &pattern.predicate, &pattern.object] {
                if let Node::Variable(name) = node {
                    note(scope, name, true);
                }
            }
            patterns.push(pattern);
        }
        patterns
    }

    /// A path, behind triple patterns that may share its ends.
    fn path(&mut self, scope: &mut Vec<Variable>, outer: &[Variable]) -> Vec<Element> {
        self.paths += 1;
        let patterns = self.triples(scope, outer);
        let path = if self.bold {
            let depth = self.random.between(1, 3);
            Path::random(self.random, depth)
        } else {
            Path::random_sequence(self.random, 3)
        };
        let ends: Vec<Node> = patterns
            .iter()
            .flat_map(|pattern| [&pattern.subject, &pattern.object])
            .filter(|end| !matches!(end, Node::Blank(_)))
            .cloned()
            .collect();
        let end = |this: &mut Self, is_subject: bool| {
            if !ends.is_empty() && this.random.chance(60) {
                let end = this.random.pick(&ends).clone();
                if !is_subject || !matches!(end, Node::Term(Term::Literal(_))) {
                    return end;
                }
            }
            if (this.bold || !path.is_nullable()) && this.random.chance(30) {
                return this.vertex();
            }
            Node::Variable(format!("a{}", this.random.below(2)))
        };
        let (subject, object) = (end(self, true), end(self, false));
        for node in [&subject, &object] {
            if let Node::Variable(name) = node {
                note(scope, name, true);
            }
        }
        vec![
            Element::Triples(patterns),
            Element::Path(subject, path, object),
        ]
    }

    fn node_predicate(&mut self) -> Node {
        Node::Term(random_data::predicate(self.random, Domain::Node).into())
    }

    fn node_variable(&mut self, scope: &[Variable], outer: &[Variable]) -> String {
        let known: Vec<_> = scope
            .iter()
            .chain(outer)
            .filter(|variable| variable.name.starts_with('x'))
            .collect();
        if !known.is_empty() && self.random.chance(55) {
            return self.random.pick(&known).name.clone();
        }
        format!("x{}", self.random.below(4))
    }

    fn fresh_blank(&mut self) -> Node {
        if self.exists > 0 {
            // spargebra reads some conditions twice, and then takes a label in them for another use
            // of it outside.
            return Node::Variable(self.fresh("x"));
        }
        self.blanks += 1;
        Node::Blank(format!("k{}", self.blanks))
    }

    fn vertex(&mut self) -> Node {
        let name = if self.random.chance(8) {
            "absent"
        } else {
            self.random.name(&VERTICES)
        };
        Node::Term(iri(name).into())
    }

    fn subject(&mut self, scope: &[Variable], outer: &[Variable]) -> Node {
        match self.random.below(100) {
            0..=9 => self.vertex(),
            10..=14 => self.fresh_blank(),
            15..=19 => Node::Variable(format!("a{}", self.random.below(2))),
            20..=23 => Node::Variable("q0".to_owned()),
            24..=26 if self.bold && self.profile.graphs => Node::Variable("g0".to_owned()),
            _ => Node::Variable(self.node_variable(scope, outer)),
        }
    }

    fn pattern(&mut self, subject: Node, scope: &[Variable], outer: &[Variable]) -> Pattern {
        let pick = self.random.below(100);
        let (predicate, object) = if pick < 12 {
            let object = if self.random.chance(75) {
                Node::Variable(format!("a{}", self.random.below(2)))
            } else {
                let profile = Profile {
                    blanks: false,
                    ..self.profile
                };
                Node::Term(random_data::term(self.random, Domain::Any, profile))
            };
            let name = format!("q{}", self.random.below(2));
            (Node::Variable(name), object)
        } else if pick < 24 && self.profile.types {
            let object = if self.random.chance(80) {
                Node::Term(iri(self.random.name(&CLASSES)).into())
            } else {
                Node::Variable(self.node_variable(scope, outer))
            };
            (Node::Term(rdf::TYPE.into_owned().into()), object)
        } else {
            let domain = *self.random.pick(&[
                Domain::Node,
                Domain::Node,
                Domain::Node,
                Domain::Node,
                Domain::Number,
                Domain::Number,
                Domain::String,
                Domain::Language,
                Domain::Date,
                Domain::Boolean,
                Domain::Any,
            ]);
            let predicate = if self.random.chance(3) {
                iri("nowhere")
            } else {
                random_data::predicate(self.random, domain)
            };
            (
                Node::Term(predicate.into()),
                self.object(domain, scope, outer),
            )
        };
        Pattern {
            subject,
            predicate,
            object,
        }
    }

    fn object(&mut self, domain: Domain, scope: &[Variable], outer: &[Variable]) -> Node {
        if self.random.chance(12) {
            if domain == Domain::Node {
                return self.vertex();
            }
            let profile = Profile {
                blanks: false,
                ..self.profile
            };
            return Node::Term(random_data::term(self.random, domain, profile));
        }
        if self.random.chance(4) {
            return self.fresh_blank();
        }
        if self.bold && self.profile.graphs && domain == Domain::Node && self.random.chance(4) {
            return Node::Variable(self.random.name(&["g0", "g1"]).to_owned());
        }
        let letter = match domain {
            Domain::Node => return Node::Variable(self.node_variable(scope, outer)),
            Domain::Number => 'n',
            Domain::String => 's',
            Domain::Language => 'l',
            Domain::Date => 'd',
            Domain::Boolean => 'f',
            Domain::Any => 'a',
        };
        Node::Variable(format!("{letter}{}", self.random.below(2)))
    }

    // Forms and modifiers.

    fn template(&mut self, scope: &[Variable]) -> Vec<Pattern> {
        let names: Vec<_> = scope.iter().map(|known| known.name.clone()).collect();
        (0..self.random.between(1, 3))
            .map(|_| {
                let pick = self.random.below(10);
                let subject = match pick {
                    0 => Node::Blank("t0".to_owned()),
                    1 => self.vertex(),
                    _ => Node::Variable(self.random.pick(&names).clone()),
                };
                let predicate = if names.iter().any(|name| name == "q0") && pick == 3 {
                    Node::Variable("q0".to_owned())
                } else {
                    self.node_predicate()
                };
                let object = match self.random.below(10) {
                    0 => Node::Blank("t0".to_owned()),
                    1 => Node::Blank("t1".to_owned()),
                    2 => self.vertex(),
                    _ => Node::Variable(self.random.pick(&names).clone()),
                };
                Pattern {
                    subject,
                    predicate,
                    object,
                }
            })
            .collect()
    }

    fn selection(&mut self, query: &mut Query, scope: &[Variable]) {
        let mut items: Vec<Item> = Vec::new();
        let mut projected: Vec<String> = Vec::new();
        if self.random.chance(20) {
            projected.extend(scope.iter().map(|known| known.name.clone()));
        } else {
            for known in scope {
                if self.random.chance(60) {
                    projected.push(known.name.clone());
                }
            }
            if projected.is_empty() || self.random.chance(4) {
                projected.push("x9".to_owned());
            }
            items.extend(projected.iter().map(|name| Item {
                variable: name.clone(),
                expression: None,
            }));
            if self.random.chance(25) {
                let choice = self.random.below(3);
                let mut expressions = self.expressions(scope);
                let (prefix, expression) = match choice {
                    0 => ("n", expressions.computed_number()),
                    1 => ("s", expressions.string(2)),
                    _ => ("f", expressions.computed_boolean()),
                };
                let name = self.fresh(prefix);
                projected.push(name.clone());
                items.push(Item {
                    variable: name,
                    expression: Some(expression),
                });
            }
        }
        query.form = Form::Select {
            distinct: self.random.chance(30),
            items,
        };
        self.modifiers(query, &projected);
    }

    fn aggregation(&mut self, query: &mut Query, scope: &[Variable]) {
        let mut items: Vec<Item> = Vec::new();
        let mut projected = Vec::new();
        for _ in 0..self.random.below(3) {
            let known = self.random.pick(scope);
            if projected.contains(&known.name) {
                continue;
            }
            query.group_by.push((variable(&known.name), None));
            projected.push(known.name.clone());
            items.push(Item {
                variable: known.name.clone(),
                expression: None,
            });
        }
        if self.random.chance(15) {
            let mut expression = self.expressions(scope).computed_number();
            // spargebra does not let `(?a AS ?b)` be projected.
            if let Expression::Variable(_) = expression {
                expression = Expression::Unary("-", Box::new(expression));
            }
            let name = self.fresh("n");
            query.group_by.push((expression, Some(name.clone())));
            projected.push(name.clone());
            items.push(Item {
                variable: name,
                expression: None,
            });
        }
        for _ in 0..self.random.between(1, 3) {
            let (prefix, expression) = self.aggregate(scope);
            let name = self.fresh(prefix);
            if prefix == "kn" || prefix == "km" {
                projected.push(name.clone());
            }
            items.push(Item {
                variable: name,
                expression: Some(expression),
            });
        }
        if self.bold && self.random.chance(20) {
            let (prefix, aggregate) = self.aggregate(scope);
            let bound = Expression::Term(oxrdf::Literal::from(1).into());
            if prefix == "kn" {
                let operator = self.random.name(&["<", ">", "="]);
                query.having = Some(Expression::Binary(
                    operator,
                    Box::new(aggregate),
                    Box::new(bound),
                ));
            }
        } else if self.random.chance(25) {
            let count = Expression::Aggregate("COUNT", false, None);
            let bound = Expression::Term(oxrdf::Literal::from(1).into());
            query.having = Some(Expression::Binary(">", Box::new(count), Box::new(bound)));
        }
        query.form = Form::Select {
            distinct: false,
            items,
        };
        self.modifiers(query, &projected);
    }

    /// An aggregate and the prefix of the variable that says how its values compare.
    fn aggregate(&mut self, scope: &[Variable]) -> (&'static str, Expression) {
        let certain_only = self.random.chance(85);
        let usable: Vec<_> = scope
            .iter()
            .filter(|known| known.certain || !certain_only)
            .cloned()
            .collect();
        let of = |domains: &[Domain]| -> Vec<&Variable> {
            usable
                .iter()
                .filter(|known| domains.contains(&known.domain))
                .collect()
        };
        // The oracle counts solutions as distinct that differ in a blank node of a pattern only.
        let countable = self.bold
            || self.blanks == 0 && self.paths == 0 && scope.iter().all(|known| known.certain);
        let count_all = (
            "kn",
            Expression::Aggregate("COUNT", countable && self.random.chance(40), None),
        );
        // The oracle sums distinct values, not distinct terms.
        let all = [
            Domain::Node,
            Domain::String,
            Domain::Language,
            Domain::Number,
            Domain::Date,
            Domain::Boolean,
            Domain::Any,
        ];
        let spelt_once: &[Domain] = if self.profile.other_spellings {
            &all[..3]
        } else {
            &all
        };
        let (name, prefix, domains): (_, _, &[Domain]) = match self.random.below(8) {
            0 => return count_all,
            1 | 2 => ("COUNT", "kn", &all),
            3 => ("SUM", "kn", &[Domain::Number]),
            4 => ("AVG", "kn", &[Domain::Number]),
            5 => (
                self.random.name(&["MIN", "MAX"]),
                "km",
                &[Domain::Number, Domain::String, Domain::Date],
            ),
            6 => ("SAMPLE", "ka", &all),
            _ => ("GROUP_CONCAT", "kg", &[Domain::String]),
        };
        let candidates = of(domains);
        if candidates.is_empty() {
            return count_all;
        }
        let known = *self.random.pick(&candidates);
        let distinct = self.random.chance(30)
            && (name == "COUNT" || (name != "SAMPLE" && spelt_once.contains(&known.domain)));
        if self.bold && self.random.chance(30) {
            let usable = usable.clone();
            let mut expressions = self.expressions(&usable);
            let inner = match name {
                "SUM" | "AVG" => expressions.computed_number(),
                "SAMPLE" => return count_all,
                "GROUP_CONCAT" => expressions.string(2),
                "MIN" | "MAX" => match known.domain {
                    Domain::Number => expressions.computed_number(),
                    _ => return count_all,
                },
                // The oracle has no value for a count of what is an error somewhere.
                _ => return count_all,
            };
            return (
                prefix,
                Expression::Aggregate(name, distinct, Some(Box::new(inner))),
            );
        }
        let inner = Box::new(variable(&known.name));
        (prefix, Expression::Aggregate(name, distinct, Some(inner)))
    }

    fn modifiers(&mut self, query: &mut Query, projected: &[String]) {
        if !projected.is_empty() && self.random.chance(35) {
            for _ in 0..self.random.between(1, 2) {
                let name = self.random.pick(projected);
                query
                    .order_by
                    .push((variable(name), self.random.chance(40)));
            }
        }
        if self.random.chance(18) {
            query.limit = Some(self.random.below(8));
        }
        if self.random.chance(12) {
            query.offset = Some(self.random.below(5));
        }
    }
}
