//! How does a statement look, as a line of N-Triples and as a borrowed RDF triple?

use oxrdf::{LiteralRef, NamedNodeRef, TermRef, TripleRef};

use super::statement::{Entity, Object, Sink};
use super::vocabulary::{Class, Predicate};

const TELEPHONE: &str = "xxx-xxx-xxxx";

/// The names under one department.
#[derive(Default)]
pub(super) struct Names {
    /// `http://www.Department{d}.University{u}.edu`.
    department_iri: String,
    department: u32,
}

/// Where a department's host name starts in its IRI.
const HOST_START: usize = "http://www.".len();

impl Names {
    pub(super) fn department(&mut self, university: u32, department: u32) {
        self.department = department;
        self.department_iri.clear();
        self.department_iri.push_str("http://www.Department");
        push_number(&mut self.department_iri, department);
        self.department_iri.push_str(".University");
        push_number(&mut self.department_iri, university);
        self.department_iri.push_str(".edu");
    }

    /// Appends the entity's IRI.
    #[inline]
    pub(super) fn push_iri(&self, out: &mut String, entity: Entity) {
        match entity {
            Entity::University(n) => {
                out.push_str("http://www.University");
                push_number(out, n);
                out.push_str(".edu");
            }
            Entity::Department => out.push_str(&self.department_iri),
            Entity::Member(class, n) => self.push_member(out, class, n),
            Entity::Publication((class, author), n) => {
                self.push_member(out, class, author);
                out.push_str("/Publication");
                push_number(out, n);
            }
        }
    }

    #[inline]
    fn push_member(&self, out: &mut String, class: Class, n: u32) {
        out.push_str(&self.department_iri);
        out.push('/');
        push_numbered(out, class, n);
    }

    /// Appends the text of a literal. It never holds a character that N-Triples escapes.
    #[inline]
    fn push_literal(&self, out: &mut String, object: Literal) {
        match object {
            Literal::Name(Entity::University(n)) => push_numbered(out, Class::University, n),
            Literal::Name(Entity::Department) => {
                push_numbered(out, Class::Department, self.department);
            }
            Literal::Name(Entity::Member(class, n)) => push_numbered(out, class, n),
            Literal::Name(Entity::Publication(_, n)) => push_numbered(out, Class::Publication, n),
            Literal::Email(class, n) => {
                push_numbered(out, class, n);
                out.push('@');
                out.push_str(&self.department_iri[HOST_START..]);
            }
            Literal::Telephone => out.push_str(TELEPHONE),
            Literal::Research(n) => {
                out.push_str("Research");
                push_number(out, n);
            }
        }
    }
}

/// The objects that are literals.
#[derive(Clone, Copy)]
enum Literal {
    Name(Entity),
    Email(Class, u32),
    Telephone,
    Research(u32),
}

/// The objects, told apart by kind of RDF term.
enum Form {
    Class(Class),
    Iri(Entity),
    Literal(Literal),
}

#[inline]
fn form(object: Object) -> Form {
    match object {
        Object::Class(class) => Form::Class(class),
        Object::Entity(entity) => Form::Iri(entity),
        Object::Name(entity) => Form::Literal(Literal::Name(entity)),
        Object::Email(class, n) => Form::Literal(Literal::Email(class, n)),
        Object::Telephone => Form::Literal(Literal::Telephone),
        Object::Research(n) => Form::Literal(Literal::Research(n)),
    }
}

#[inline]
fn push_numbered(out: &mut String, class: Class, n: u32) {
    out.push_str(class.local_name());
    push_number(out, n);
}

/// Appends a number in decimal. Faster than formatting: numbers are most of what varies.
#[inline]
fn push_number(out: &mut String, n: u32) {
    if n >= 10 {
        push_number_of_digits(out, n);
    } else {
        out.push(char::from(b'0' + n as u8));
    }
}

fn push_number_of_digits(out: &mut String, mut n: u32) {
    let mut digits = [0_u8; 10];
    let mut at = digits.len();
    while n > 0 {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    out.push_str(std::str::from_utf8(&digits[at..]).expect("decimal digits are ASCII"));
}

/// Renders lines of N-Triples into `text`; the caller empties it between departments.
#[derive(Default)]
pub(super) struct TextSink {
    names: Names,
    /// `<IRI> ` of the current subject.
    subject: String,
    pub(super) text: String,
}

impl TextSink {
    pub(super) fn appending_to(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Sink for TextSink {
    fn department(&mut self, university: u32, department: u32) {
        self.names.department(university, department);
    }

    #[inline]
    fn subject(&mut self, entity: Entity) {
        self.subject.clear();
        self.subject.push('<');
        self.names.push_iri(&mut self.subject, entity);
        self.subject.push_str("> ");
    }

    #[inline]
    fn property(&mut self, predicate: Predicate, object: Object) {
        let text = &mut self.text;
        text.push_str(&self.subject);
        text.push('<');
        text.push_str(predicate.iri());
        match form(object) {
            Form::Class(class) => {
                text.push_str("> <");
                text.push_str(class.iri());
                text.push_str("> .\n");
            }
            Form::Iri(entity) => {
                text.push_str("> <");
                self.names.push_iri(text, entity);
                text.push_str("> .\n");
            }
            Form::Literal(literal) => {
                text.push_str("> \"");
                self.names.push_literal(text, literal);
                text.push_str("\" .\n");
            }
        }
    }

    #[inline]
    fn university_type(&mut self, n: u32) {
        self.text.push('<');
        self.names.push_iri(&mut self.text, Entity::University(n));
        self.text.push_str("> <");
        self.text.push_str(Predicate::Type.iri());
        self.text.push_str("> <");
        self.text.push_str(Class::University.iri());
        self.text.push_str("> .\n");
    }
}

/// Hands each statement to a closure as a triple that borrows reused buffers.
pub(super) struct TripleSink<F> {
    names: Names,
    subject: String,
    object: String,
    take: F,
}

impl<F: FnMut(TripleRef<'_>)> TripleSink<F> {
    pub(super) fn new(take: F) -> Self {
        Self {
            names: Names::default(),
            subject: String::new(),
            object: String::new(),
            take,
        }
    }
}

impl<F: FnMut(TripleRef<'_>)> Sink for TripleSink<F> {
    fn department(&mut self, university: u32, department: u32) {
        self.names.department(university, department);
    }

    fn subject(&mut self, entity: Entity) {
        self.subject.clear();
        self.names.push_iri(&mut self.subject, entity);
    }

    fn property(&mut self, predicate: Predicate, object: Object) {
        self.object.clear();
        let object: TermRef<'_> = match form(object) {
            Form::Class(class) => NamedNodeRef::new_unchecked(class.iri()).into(),
            Form::Iri(entity) => {
                self.names.push_iri(&mut self.object, entity);
                NamedNodeRef::new_unchecked(&self.object).into()
            }
            Form::Literal(literal) => {
                self.names.push_literal(&mut self.object, literal);
                LiteralRef::new_simple_literal(&self.object).into()
            }
        };
        (self.take)(TripleRef::new(
            NamedNodeRef::new_unchecked(&self.subject),
            NamedNodeRef::new_unchecked(predicate.iri()),
            object,
        ));
    }

    fn university_type(&mut self, n: u32) {
        self.object.clear();
        self.names.push_iri(&mut self.object, Entity::University(n));
        (self.take)(TripleRef::new(
            NamedNodeRef::new_unchecked(&self.object),
            NamedNodeRef::new_unchecked(Predicate::Type.iri()),
            NamedNodeRef::new_unchecked(Class::University.iri()),
        ));
    }
}
