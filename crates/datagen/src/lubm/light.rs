//! Which queries make up the mixed light load, and with which constants?
//!
//! Six classes of query, each with one constant drawn at random among the entities that the
//! data really holds, mixed by weights that are the reciprocals of their latencies in the
//! papers.

use super::Lubm;
use super::queries::query;
use super::random::JavaRandom;
use super::render::Names;
use super::statement::{Entity, Nowhere};
use super::vocabulary::Class;
use super::walk::{
    Department, MAX_ASSISTANT_PROFESSORS, MAX_DEPARTMENTS, MAX_GRADUATE_COURSES, Walk,
};
use crate::DatagenError;

/// Stands for the constant in [`LightClass::template`]. The template is a query by itself: left
/// as it is, it asks for every value of the constant.
pub const CONSTANT: &str = "$constant";

/// A class of light queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LightClass {
    /// The graduate students who take a graduate course.
    A1,
    /// The publications of an assistant professor.
    A2,
    /// The graduate students of a department.
    A3,
    /// q4 with its department varied.
    L4,
    /// q5 with its department varied.
    L5,
    /// q6 with its university varied.
    L6,
}

impl LightClass {
    /// Every class.
    pub const ALL: [LightClass; 6] = [
        LightClass::A1,
        LightClass::A2,
        LightClass::A3,
        LightClass::L4,
        LightClass::L5,
        LightClass::L6,
    ];

    /// The class's name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            LightClass::A1 => "A1",
            LightClass::A2 => "A2",
            LightClass::A3 => "A3",
            LightClass::L4 => "L4",
            LightClass::L5 => "L5",
            LightClass::L6 => "L6",
        }
    }

    /// Its share of the load, out of the sum of all weights (86).
    pub const fn weight(self) -> u32 {
        match self {
            LightClass::A1 | LightClass::A2 | LightClass::L5 => 25,
            LightClass::A3 => 3,
            LightClass::L4 => 6,
            LightClass::L6 => 2,
        }
    }

    /// The query, with [`CONSTANT`] where the constant goes (once).
    pub const fn template(self) -> &'static str {
        match self {
            LightClass::A1 => query!(
                "SELECT ?X WHERE {\n  ?X ub:takesCourse $constant .\n  \
                 ?X rdf:type ub:GraduateStudent .\n}\n"
            ),
            LightClass::A2 => query!(
                "SELECT ?X WHERE {\n  ?X ub:publicationAuthor $constant .\n  \
                 ?X rdf:type ub:Publication .\n}\n"
            ),
            LightClass::A3 => query!(
                "SELECT ?X WHERE {\n  ?X ub:memberOf $constant .\n  \
                 ?X rdf:type ub:GraduateStudent .\n}\n"
            ),
            LightClass::L4 => query!(
                "SELECT ?X ?Y1 ?Y2 ?Y3 WHERE {\n  ?X ub:worksFor $constant .\n  \
                 ?X rdf:type ub:FullProfessor .\n  ?X ub:name ?Y1 .\n  \
                 ?X ub:emailAddress ?Y2 .\n  ?X ub:telephone ?Y3 .\n}\n"
            ),
            LightClass::L5 => query!(
                "SELECT ?X WHERE {\n  ?X ub:subOrganizationOf $constant .\n  \
                 ?X rdf:type ub:ResearchGroup .\n}\n"
            ),
            LightClass::L6 => query!(
                "SELECT ?X ?Y WHERE {\n  ?Y ub:subOrganizationOf $constant .\n  \
                 ?Y rdf:type ub:Department .\n  ?X ub:worksFor ?Y .\n  \
                 ?X rdf:type ub:FullProfessor .\n}\n"
            ),
        }
    }

    /// The query about this IRI.
    pub fn text(self, constant_iri: &str) -> String {
        self.template()
            .replacen(CONSTANT, &format!("<{constant_iri}>"), 1)
    }
}

/// One query of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LightQuery {
    /// Its class.
    pub class: LightClass,
    /// The IRI drawn for it.
    pub constant: String,
    /// The whole text.
    pub text: String,
}

/// An endless, reproducible sequence of light queries.
///
/// Constants are uniform over all entities of their kind. What a university holds is found by
/// walking it, about a millisecond each, when it is first drawn, and is then kept: at most
/// 1.2 kB a university. Draw queries before the time that is measured.
///
/// ```
/// use jindou_datagen::lubm::LightLoad;
///
/// let queries: Vec<_> = LightLoad::new(1, 7)?.take(100).collect();
/// assert!(queries.iter().all(|q| q.text.contains(&q.constant)));
/// # Ok::<(), jindou_datagen::DatagenError>(())
/// ```
pub struct LightLoad {
    data: Lubm,
    random: JavaRandom,
    names: Names,
    /// The departments of each university walked so far.
    walked: Vec<Option<Box<[Department]>>>,
}

impl LightLoad {
    /// A load for the data of [`Lubm::new`] with this many universities and seed 0; `seed` is
    /// the load's own, of which the low 48 bits count.
    ///
    /// # Errors
    /// As [`LightLoad::over`].
    pub fn new(universities: u32, seed: u64) -> Result<Self, DatagenError> {
        Self::over(Lubm::new(universities, 0), seed)
    }

    /// A load for this data.
    ///
    /// # Errors
    /// [`DatagenError::NoUniversities`] where there is nothing to draw from,
    /// [`DatagenError::TooManyUniversities`] where the data is refused.
    pub fn over(data: Lubm, seed: u64) -> Result<Self, DatagenError> {
        let range = data.indices()?;
        if range.is_empty() {
            return Err(DatagenError::NoUniversities);
        }
        Ok(Self {
            walked: vec![None; range.len()],
            data,
            random: JavaRandom::new(seed),
            names: Names::default(),
        })
    }

    /// A query of a class drawn by weight.
    pub fn draw(&mut self) -> LightQuery {
        self.draw_by(&LightClass::ALL.map(LightClass::weight))
    }

    /// A query of a class drawn by these weights, in the order of [`LightClass::ALL`].
    ///
    /// # Panics
    /// If their sum is zero, or over [`u32::MAX`].
    pub fn draw_by(&mut self, weights: &[u32; LightClass::ALL.len()]) -> LightQuery {
        let mut left = self.random.below(weights.iter().sum());
        for (class, weight) in LightClass::ALL.into_iter().zip(weights) {
            if left < *weight {
                return self.draw_of(class);
            }
            left -= weight;
        }
        unreachable!("a number below the sum of weights falls into one of them")
    }

    /// A query of this class.
    pub fn draw_of(&mut self, class: LightClass) -> LightQuery {
        let constant = match class {
            LightClass::A1 => self.member(Class::GraduateCourse, MAX_GRADUATE_COURSES),
            LightClass::A2 => self.member(Class::AssistantProfessor, MAX_ASSISTANT_PROFESSORS),
            LightClass::A3 | LightClass::L4 | LightClass::L5 => self.department(),
            LightClass::L6 => self.university(),
        };
        LightQuery {
            class,
            text: class.text(&constant),
            constant,
        }
    }

    fn university(&mut self) -> String {
        let n = self.data.first + self.random.below(self.data.universities);
        self.iri(Entity::University(n))
    }

    fn department(&mut self) -> String {
        let (university, number, _) = self.draw_department();
        self.names.department(university, number);
        self.iri(Entity::Department)
    }

    /// `most` bounds the number of such members in any department. Draws that meet no member
    /// are repeated: this makes every member of every department equally probable.
    fn member(&mut self, class: Class, most: u32) -> String {
        loop {
            let (university, number, department) = self.draw_department();
            let held = match class {
                Class::GraduateCourse => department.graduate_courses,
                Class::AssistantProfessor => department.faculty[2],
                other => unreachable!("no light query has a constant of class {other:?}"),
            };
            assert!(
                held <= most,
                "a department holds {held} {class:?}, bound {most}"
            );
            let n = self.random.below(most);
            if n < held {
                self.names.department(university, number);
                return self.iri(Entity::Member(class, n));
            }
        }
    }

    /// Uniform over all departments: university and number, and what it holds.
    fn draw_department(&mut self) -> (u32, u32, Department) {
        loop {
            let at = self.random.below(self.data.universities);
            let number = self.random.below(MAX_DEPARTMENTS);
            let university = self.data.first + at;
            let departments =
                self.walked[at as usize].get_or_insert_with(|| departments(&self.data, university));
            if let Some(department) = departments.get(number as usize) {
                return (university, number, *department);
            }
        }
    }

    fn iri(&self, entity: Entity) -> String {
        let mut iri = String::new();
        self.names.push_iri(&mut iri, entity);
        iri
    }
}

impl Iterator for LightLoad {
    type Item = LightQuery;

    fn next(&mut self) -> Option<LightQuery> {
        Some(self.draw())
    }
}

/// What each department of a university holds. Costs a walk without rendering.
fn departments(data: &Lubm, university: u32) -> Box<[Department]> {
    let mut walk = Walk::new(data, university);
    std::iter::from_fn(|| walk.next_department(&mut Nowhere)).collect()
}
