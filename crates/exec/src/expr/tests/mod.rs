//! Tests of expressions: against tables from the specifications, against another engine, and
//! of each fast way against the plain one.

mod aggregates;
mod filters;
mod limits;
mod measure;
mod oracle;
mod ordering;
mod references;
mod specification;
pub(super) mod support;
