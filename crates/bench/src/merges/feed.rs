//! What does one client of the stream commit?
//!
//! Students and their teachers come in groups of five: four students with types, properties and edges
//! to old vertices, and a professor who is only the object of an edge at first, and described one
//! transaction later. One triple in twenty is a delete of what the client inserted some
//! transactions before.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::mem;

use jindou_datagen::lubm::UB;
use jindou_engine::Database;

use super::vertices::Vertices;
use crate::BenchError;

/// Triples that a transaction changes.
pub(super) const TRIPLES: usize = 1_000;
/// How many of them it deletes, once there are any to delete.
const DELETED: usize = TRIPLES / 20;
/// Transactions of a client after which its triples may be deleted.
const DELAY: usize = 8;
/// Triples of a group, those of the professor's description left out.
const GROUP: usize = 33;
/// Students of a group; the last one is a graduate.
const STUDENTS: u64 = 4;
/// Old vertices of a class that new ones have edges to, at most.
const MOST: usize = 10_000;

/// A department that no new vertex has an edge to.
pub(super) const LEFT_ALONE: &str = "http://www.Department1.University0.edu";

/// Old vertices.
pub(super) struct Places {
    departments: Vertices,
    courses: Vertices,
    professors: Vertices,
}

impl Places {
    /// Of a store that holds LUBM.
    ///
    /// # Errors
    /// As [`Vertices::of`].
    pub(super) fn of(database: &Database) -> Result<Self, BenchError> {
        let of = |class| Vertices::of(database, class, MOST);
        Ok(Self {
            departments: of("Department")?.without(LEFT_ALONE),
            courses: of("Course")?,
            professors: of("FullProfessor")?,
        })
    }
}

/// A request and what it changes.
pub(super) struct Transaction {
    pub(super) text: String,
    pub(super) inserted: u64,
    pub(super) deleted: u64,
}

/// The transactions of one client, one after another; those of others have other vertices.
pub(super) struct Feed<'p> {
    client: usize,
    places: &'p Places,
    groups: u64,
    /// The professors that the last transaction named only.
    named: Vec<u64>,
    /// What the next transactions delete, each an entry.
    inserted: VecDeque<Vec<String>>,
}

impl<'p> Feed<'p> {
    pub(super) fn new(client: usize, places: &'p Places) -> Self {
        Self {
            client,
            places,
            groups: 0,
            named: Vec::new(),
            inserted: VecDeque::new(),
        }
    }

    pub(super) fn next(&mut self) -> Transaction {
        let deleted = match self.inserted.len() < DELAY {
            true => Vec::new(),
            false => self.inserted.pop_front().unwrap_or_default(),
        };
        let lines = self.lines(TRIPLES - deleted.len());
        let kept = lines.iter().step_by(lines.len().div_ceil(DELETED));
        self.inserted.push_back(kept.cloned().collect());
        let mut text = format!(
            "PREFIX ub: <{UB}>\nPREFIX n: <http://example.org/stream/{}/>\n",
            self.client
        );
        if !deleted.is_empty() {
            writeln!(text, "DELETE DATA {{\n{}\n}} ;", deleted.join("\n"))
                .expect("a string takes any text");
        }
        write!(text, "INSERT DATA {{\n{}\n}}", lines.join("\n")).expect("a string takes any text");
        Transaction {
            text,
            inserted: lines.len() as u64,
            deleted: deleted.len() as u64,
        }
    }

    /// So many new triples: the descriptions that are due, whole groups, and courses of the last
    /// student for what is left.
    fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::with_capacity(count);
        for professor in mem::take(&mut self.named) {
            self.describe(professor, &mut lines);
        }
        while lines.len() + GROUP <= count {
            self.group(&mut lines);
        }
        let student = self.groups * STUDENTS - 1;
        for number in 2.. {
            if lines.len() == count {
                break;
            }
            lines.push(self.takes(student, number));
        }
        lines
    }

    fn group(&mut self, lines: &mut Vec<String>) {
        let group = self.groups;
        self.groups += 1;
        for student in group * STUDENTS..(group + 1) * STUDENTS {
            self.student(student, group, lines);
        }
        self.named.push(group);
    }

    /// A student; the first one of a group has the group's professor for an adviser, and takes the
    /// professor's course.
    fn student(&self, student: u64, group: u64, lines: &mut Vec<String>) {
        let is_first = student == group * STUDENTS;
        let is_graduate = student == group * STUDENTS + STUDENTS - 1;
        let department = self.places.departments.get(student);
        let class = match is_graduate {
            true => "GraduateStudent",
            false => "UndergraduateStudent",
        };
        let adviser = match is_first {
            true => format!("n:p{group}"),
            false => format!("<{}>", self.places.professors.get(student)),
        };
        lines.extend([
            format!("n:s{student} a ub:{class} ."),
            format!("n:s{student} ub:memberOf <{department}> ."),
            format!(
                "n:s{student} ub:name \"Student {student} of {}\" .",
                self.client
            ),
            format!(
                "n:s{student} ub:emailAddress \"s{student}@c{}.example\" .",
                self.client
            ),
            format!("n:s{student} ub:telephone \"xxx-xxx-xxxx\" ."),
            format!("n:s{student} ub:advisor {adviser} ."),
            self.takes(student, 0),
            self.takes(student, 1),
        ]);
        if is_graduate {
            let university = university_of(department);
            lines.push(format!(
                "n:s{student} ub:undergraduateDegreeFrom <{university}> ."
            ));
        }
    }

    fn takes(&self, student: u64, number: u64) -> String {
        let course = self.places.courses.get(course_of(student) + number);
        format!("n:s{student} ub:takesCourse <{course}> .")
    }

    fn describe(&self, professor: u64, lines: &mut Vec<String>) {
        let department = self.places.departments.get(professor);
        let course = self.places.courses.get(course_of(professor * STUDENTS));
        lines.extend([
            format!("n:p{professor} a ub:FullProfessor ."),
            format!("n:p{professor} ub:worksFor <{department}> ."),
            format!(
                "n:p{professor} ub:name \"Professor {professor} of {}\" .",
                self.client
            ),
            format!(
                "n:p{professor} ub:emailAddress \"p{professor}@c{}.example\" .",
                self.client
            ),
            format!("n:p{professor} ub:telephone \"xxx-xxx-xxxx\" ."),
            format!("n:p{professor} ub:teacherOf <{course}> ."),
            format!(
                "n:p{professor} ub:doctoralDegreeFrom <{}> .",
                university_of(department)
            ),
        ]);
    }
}

/// The first course of a student: all are taken, and neighbours take others.
fn course_of(student: u64) -> u64 {
    student.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

/// `http://www.University7.edu` of `http://www.Department3.University7.edu`.
fn university_of(department: &str) -> String {
    match department.split_once(".University") {
        Some((_, rest)) => format!("http://www.University{rest}"),
        None => department.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use jindou_datagen::lubm::Lubm;
    use jindou_engine::LoadOptions;
    use jindou_engine::ingest::{Format, Progress, Source};

    use super::*;

    #[test]
    fn every_triple_of_a_transaction_changes_something() {
        let mut text = String::new();
        Lubm::new(1, 0).append_university(0, &mut text);
        let database = Database::new();
        let source = Source::bytes("lubm", text).with_format(Format::NTriples);
        database
            .load(vec![source], &LoadOptions::default(), &Progress::default())
            .unwrap();
        let places = Places::of(&database).unwrap();
        let mut feeds = [Feed::new(0, &places), Feed::new(1, &places)];
        for number in 0..2 * DELAY {
            for feed in &mut feeds {
                let transaction = feed.next();
                let report = database.update(&transaction.text).unwrap();
                let named = (transaction.inserted, transaction.deleted);
                assert_eq!((report.inserted, report.deleted), named);
                assert_eq!(transaction.inserted + transaction.deleted, 1_000);
                assert_eq!(transaction.deleted > 0, number >= DELAY);
            }
        }
    }

    #[test]
    fn a_professor_is_named_one_transaction_before_it_is_described() {
        let mut text = String::new();
        Lubm::new(1, 0).append_university(0, &mut text);
        let database = Database::new();
        let source = Source::bytes("lubm", text).with_format(Format::NTriples);
        database
            .load(vec![source], &LoadOptions::default(), &Progress::default())
            .unwrap();
        let places = Places::of(&database).unwrap();
        let mut feed = Feed::new(0, &places);
        let [first, second] = [feed.next().text, feed.next().text];
        assert!(first.contains("ub:advisor n:p0 .") && !first.contains("n:p0 a"));
        assert!(second.contains("n:p0 a ub:FullProfessor ."));
        let university = university_of("http://www.Department3.University7.edu");
        assert_eq!(university, "http://www.University7.edu");
    }
}
