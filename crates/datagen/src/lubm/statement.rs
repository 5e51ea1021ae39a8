//! How is a statement passed from the walk over a university to what renders it?
//!
//! The walk speaks of entities by kind and number; a [`Sink`] makes text or terms of them.
//! Every entity but a university belongs to the department last announced.

use super::vocabulary::{Class, Predicate};

/// Something with an IRI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entity {
    /// `http://www.University{n}.edu`.
    University(u32),
    /// The current department.
    Department,
    /// A person, course or group of the current department: its class and number.
    Member(Class, u32),
    /// A publication of a faculty member, and its number among that member's.
    Publication((Class, u32), u32),
}

/// What can stand in a statement's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Class(Class),
    Entity(Entity),
    /// The name of an entity, as a literal.
    Name(Entity),
    /// The e-mail address of a member of the current department.
    Email(Class, u32),
    Telephone,
    /// `Research{n}`.
    Research(u32),
}

/// Takes the statements of a walk, in order.
pub(super) trait Sink {
    /// All that follows is under this department.
    fn department(&mut self, university: u32, department: u32);
    /// The properties that follow are of this entity.
    fn subject(&mut self, entity: Entity);
    /// A statement about the current subject.
    fn property(&mut self, predicate: Predicate, object: Object);
    /// States that `University{n}` is a university, and leaves the current subject as it is.
    fn university_type(&mut self, n: u32);
}

/// Counts without rendering: the walk's shape is wanted, not its statements.
pub(super) struct Nowhere;

impl Sink for Nowhere {
    #[inline]
    fn department(&mut self, _: u32, _: u32) {}
    #[inline]
    fn subject(&mut self, _: Entity) {}
    #[inline]
    fn property(&mut self, _: Predicate, _: Object) {}
    #[inline]
    fn university_type(&mut self, _: u32) {}
}
