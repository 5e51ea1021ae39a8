//! In which order are a university's statements made, and which random draw decides what?
//!
//! The order of draws is that of the benchmark's generator (UBA 1.7), so that seed 0 gives
//! the data on which the literature reports its answers, statement for statement.

use super::counts::Counts;
use super::random::JavaRandom;
use super::statement::{Entity, Object, Sink};
use super::vocabulary::{Class, Predicate};
use super::{DEGREE_POOL, Lubm};

/// How many courses of each level a department could offer: bounds a draw, nothing else.
const COURSE_POOL: u32 = 100;
const RESEARCH_TOPICS: u32 = 30;

/// A rank of the faculty; ranges have both ends included.
struct Rank {
    class: Class,
    members: (u32, u32),
    publications_each: (u32, u32),
}

const RANKS: [Rank; 4] = [
    Rank {
        class: Class::FullProfessor,
        members: (7, MAX_FULL),
        publications_each: (15, 20),
    },
    Rank {
        class: Class::AssociateProfessor,
        members: (10, MAX_ASSOCIATE),
        publications_each: (10, 18),
    },
    Rank {
        class: Class::AssistantProfessor,
        members: (8, MAX_ASSISTANT_PROFESSORS),
        publications_each: (5, 10),
    },
    Rank {
        class: Class::Lecturer,
        members: (5, MAX_LECTURERS),
        publications_each: (0, 5),
    },
];
const PROFESSOR_RANKS: usize = 3;
const MAX_FULL: u32 = 10;
const MAX_ASSOCIATE: u32 = 14;
const MAX_LECTURERS: u32 = 7;

/// The most departments a university has.
pub(super) const MAX_DEPARTMENTS: u32 = 25;
/// The most assistant professors a department has.
pub(super) const MAX_ASSISTANT_PROFESSORS: u32 = 11;
/// The most graduate courses a department has: two for each of its faculty.
pub(super) const MAX_GRADUATE_COURSES: u32 =
    2 * (MAX_FULL + MAX_ASSOCIATE + MAX_ASSISTANT_PROFESSORS + MAX_LECTURERS);

/// How many of what a department has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Department {
    /// Full, associate and assistant professors, and lecturers.
    pub faculty: [u32; 4],
    /// Undergraduate students.
    pub undergraduates: u32,
    /// Graduate students.
    pub graduates: u32,
    /// Graduate students who assist in teaching.
    pub teaching_assistants: u32,
    /// Graduate students who assist in research.
    pub research_assistants: u32,
    /// Research groups.
    pub research_groups: u32,
    /// Courses for undergraduates.
    pub courses: u32,
    /// Courses for graduates.
    pub graduate_courses: u32,
    /// Publications, each by one member of the faculty and perhaps graduates.
    pub publications: u32,
}

/// One university, walked department by department.
///
/// Holds what one department needs: a few tens of kilobytes.
pub(super) struct Walk {
    random: JavaRandom,
    university: u32,
    departments: u32,
    next: u32,
    counts: Counts,
    /// Author and number of each publication of the current department.
    publications: Vec<((Class, u32), u32)>,
    /// (publication, graduate student) for each co-author.
    coauthors: Vec<(u32, u32)>,
    taken: Vec<u32>,
    picked: Vec<u32>,
}

impl Walk {
    pub(super) fn new(data: &Lubm, university: u32) -> Self {
        let mut random = JavaRandom::new(data.random_seed(university));
        let departments = random.between(15, MAX_DEPARTMENTS);
        Self {
            random,
            university,
            departments,
            next: 0,
            counts: Counts::default(),
            publications: Vec::new(),
            coauthors: Vec::new(),
            taken: Vec::new(),
            picked: Vec::new(),
        }
    }

    /// What has been counted so far.
    pub(super) fn into_counts(self) -> Counts {
        self.counts
    }

    /// Makes the statements of the next department, or `None` after the last one.
    pub(super) fn next_department(&mut self, sink: &mut impl Sink) -> Option<Department> {
        if self.next == self.departments {
            return None;
        }
        let number = self.next;
        self.next += 1;
        sink.department(self.university, number);
        self.publications.clear();
        self.coauthors.clear();

        let mut department = self.draw_sizes();
        let chair = self.random.below(department.faculty[0]);
        if number == 0 {
            self.university_itself(sink);
        }
        self.subject(sink, Entity::Department, Class::Department);
        self.property(sink, Predicate::Name, Object::Name(Entity::Department));
        let university = Entity::University(self.university);
        self.property(
            sink,
            Predicate::SubOrganizationOf,
            Object::Entity(university),
        );
        self.counts.add_type(Class::University);
        sink.university_type(self.university);

        for (
            rank,
            Rank {
                class,
                publications_each,
                ..
            },
        ) in RANKS.into_iter().enumerate()
        {
            for n in 0..department.faculty[rank] {
                let heads = rank == 0 && n == chair;
                self.faculty_member(sink, &mut department, (class, n), rank, heads);
                for paper in 0..self
                    .random
                    .between(publications_each.0, publications_each.1)
                {
                    self.publications.push(((class, n), paper));
                }
            }
        }
        department.publications = self.publications.len() as u32;
        for n in 0..department.undergraduates {
            self.undergraduate(sink, &department, n);
        }
        for n in 0..department.graduates {
            self.graduate(sink, &department, n);
        }
        for n in 0..department.research_groups {
            let group = Entity::Member(Class::ResearchGroup, n);
            self.subject(sink, group, Class::ResearchGroup);
            let part_of = Object::Entity(Entity::Department);
            self.property(sink, Predicate::SubOrganizationOf, part_of);
        }
        self.publications(sink);
        for n in 0..department.courses {
            self.course(sink, Class::Course, n);
        }
        for n in 0..department.graduate_courses {
            self.course(sink, Class::GraduateCourse, n);
        }
        self.assistants(sink, &department);
        Some(department)
    }

    /// Courses and publications are counted later, as they are made.
    fn draw_sizes(&mut self) -> Department {
        let random = &mut self.random;
        let faculty = RANKS.map(|rank| random.between(rank.members.0, rank.members.1));
        let all: u32 = faculty.iter().sum();
        let undergraduates = random.between(8 * all, 14 * all);
        let graduates = random.between(3 * all, 4 * all);
        Department {
            faculty,
            undergraduates,
            graduates,
            teaching_assistants: random.between(graduates / 5, graduates / 4),
            research_assistants: random.between(graduates / 4, graduates / 3),
            research_groups: random.between(10, 20),
            ..Department::default()
        }
    }

    fn university_itself(&mut self, sink: &mut impl Sink) {
        let university = Entity::University(self.university);
        self.counts.note_generated(self.university);
        self.subject(sink, university, Class::University);
        self.property(sink, Predicate::Name, Object::Name(university));
    }

    fn faculty_member(
        &mut self,
        sink: &mut impl Sink,
        department: &mut Department,
        (class, n): (Class, u32),
        rank: usize,
        heads: bool,
    ) {
        let me = Entity::Member(class, n);
        self.subject(sink, me, class);
        self.property(sink, Predicate::Name, Object::Name(me));
        self.teach(sink, Class::Course, &mut department.courses);
        self.teach(
            sink,
            Class::GraduateCourse,
            &mut department.graduate_courses,
        );
        self.degree(sink, Predicate::UndergraduateDegreeFrom);
        self.degree(sink, Predicate::MastersDegreeFrom);
        self.degree(sink, Predicate::DoctoralDegreeFrom);
        self.property(
            sink,
            Predicate::WorksFor,
            Object::Entity(Entity::Department),
        );
        self.property(sink, Predicate::EmailAddress, Object::Email(class, n));
        self.property(sink, Predicate::Telephone, Object::Telephone);
        if rank < PROFESSOR_RANKS {
            let topic = self.random.below(RESEARCH_TOPICS);
            self.property(sink, Predicate::ResearchInterest, Object::Research(topic));
        }
        if heads {
            self.property(sink, Predicate::HeadOf, Object::Entity(Entity::Department));
        }
    }

    /// Gives the current subject the next one or two courses of a level.
    fn teach(&mut self, sink: &mut impl Sink, level: Class, courses: &mut u32) {
        for _ in 0..self.random.between(1, 2) {
            // The benchmark draws a course and then takes the next one in sequence: the draw
            // counts only for the state it leaves behind.
            let _ = self.random.below(COURSE_POOL - *courses);
            let course = Entity::Member(level, *courses);
            self.property(sink, Predicate::TeacherOf, Object::Entity(course));
            *courses += 1;
        }
    }

    fn degree(&mut self, sink: &mut impl Sink, predicate: Predicate) {
        let from = self.random.below(DEGREE_POOL);
        self.property(sink, predicate, Object::Entity(Entity::University(from)));
        self.counts.add_degree_target(from);
        sink.university_type(from);
    }

    fn student(&mut self, sink: &mut impl Sink, class: Class, n: u32) {
        let me = Entity::Member(class, n);
        self.subject(sink, me, class);
        self.property(sink, Predicate::Name, Object::Name(me));
        self.property(
            sink,
            Predicate::MemberOf,
            Object::Entity(Entity::Department),
        );
        self.property(sink, Predicate::EmailAddress, Object::Email(class, n));
        self.property(sink, Predicate::Telephone, Object::Telephone);
    }

    fn undergraduate(&mut self, sink: &mut impl Sink, department: &Department, n: u32) {
        self.student(sink, Class::UndergraduateStudent, n);
        let courses = self.random.between(2, 4);
        self.take_courses(sink, Class::Course, courses, department.courses);
        if self.random.below(5) == 0 {
            self.advisor(sink, department);
        }
    }

    fn graduate(&mut self, sink: &mut impl Sink, department: &Department, n: u32) {
        self.student(sink, Class::GraduateStudent, n);
        let courses = self.random.between(1, 3);
        self.take_courses(
            sink,
            Class::GraduateCourse,
            courses,
            department.graduate_courses,
        );
        self.degree(sink, Predicate::UndergraduateDegreeFrom);
        // Every graduate has an advisor, yet the benchmark draws for it: one chance in one.
        let _ = self.random.below(1);
        self.advisor(sink, department);
        let papers = self.random.between(0, 5);
        self.pick(papers, department.publications);
        self.coauthors
            .extend(self.picked.iter().map(|&paper| (paper, n)));
    }

    fn take_courses(&mut self, sink: &mut impl Sink, level: Class, count: u32, offered: u32) {
        self.pick(count, offered);
        for at in 0..self.picked.len() {
            let course = Entity::Member(level, self.picked[at]);
            self.property(sink, Predicate::TakesCourse, Object::Entity(course));
        }
    }

    fn advisor(&mut self, sink: &mut impl Sink, department: &Department) {
        let rank = self.random.below(PROFESSOR_RANKS as u32) as usize;
        let n = self.random.below(department.faculty[rank]);
        let advisor = Entity::Member(RANKS[rank].class, n);
        self.property(sink, Predicate::Advisor, Object::Entity(advisor));
    }

    fn publications(&mut self, sink: &mut impl Sink) {
        // Stable: the co-authors of a publication stay in the order of their numbers.
        self.coauthors.sort_by_key(|&(paper, _)| paper);
        let mut next = 0;
        for paper in 0..self.publications.len() {
            let (author, number) = self.publications[paper];
            let publication = Entity::Publication(author, number);
            self.subject(sink, publication, Class::Publication);
            self.property(sink, Predicate::Name, Object::Name(publication));
            let first = Entity::Member(author.0, author.1);
            self.property(sink, Predicate::PublicationAuthor, Object::Entity(first));
            while let Some(&(_, n)) = self.coauthors.get(next).filter(|c| c.0 as usize == paper) {
                let student = Entity::Member(Class::GraduateStudent, n);
                self.property(sink, Predicate::PublicationAuthor, Object::Entity(student));
                next += 1;
            }
        }
    }

    fn course(&mut self, sink: &mut impl Sink, level: Class, n: u32) {
        let course = Entity::Member(level, n);
        self.subject(sink, course, level);
        self.property(sink, Predicate::Name, Object::Name(course));
    }

    /// Different graduates assist; the first of them drawn teach, each in a different course.
    fn assistants(&mut self, sink: &mut impl Sink, department: &Department) {
        let teaching = department.teaching_assistants as usize;
        let all = department.teaching_assistants + department.research_assistants;
        self.pick(all, department.graduates);
        let students = std::mem::take(&mut self.picked);
        self.pick(department.teaching_assistants, department.courses);
        for (at, &n) in students.iter().enumerate() {
            let student = Entity::Member(Class::GraduateStudent, n);
            if at < teaching {
                self.subject(sink, student, Class::TeachingAssistant);
                let course = Entity::Member(Class::Course, self.picked[at]);
                self.property(sink, Predicate::TeachingAssistantOf, Object::Entity(course));
            } else {
                self.subject(sink, student, Class::ResearchAssistant);
            }
        }
    }

    /// Fills `picked` with `count` different values of `0..bound`.
    #[inline]
    fn pick(&mut self, count: u32, bound: u32) {
        self.random
            .distinct(count, bound, &mut self.taken, &mut self.picked);
    }

    #[inline]
    fn subject(&mut self, sink: &mut impl Sink, entity: Entity, class: Class) {
        self.counts.add_type(class);
        sink.subject(entity);
        sink.property(Predicate::Type, Object::Class(class));
    }

    #[inline]
    fn property(&mut self, sink: &mut impl Sink, predicate: Predicate, object: Object) {
        self.counts.add_property(predicate);
        sink.property(predicate, object);
    }
}
