//! Text in, plan out.

use crate::build::build;
use crate::error::PlanError;
use crate::parse::{on_fitting_stack, parse};
use crate::physical::{Dataset, Plan};
use crate::statistics::Statistics;

/// Parses and plans a query, without any cache.
///
/// `base` resolves relative IRIs; `dataset` replaces the query's own dataset clause. Costs tens
/// of microseconds for a small query.
///
/// # Errors
/// [`PlanError`]: what is wrong with the text, or what in it is not supported.
pub fn plan(
    text: &str,
    base: Option<&str>,
    dataset: Option<&Dataset>,
    statistics: &(dyn Statistics + Sync),
) -> Result<Plan, PlanError> {
    on_fitting_stack(text, || {
        let mut query = parse(text, base, None)?;
        if let Some(dataset) = dataset {
            query.dataset = Some(dataset.clone());
        }
        Ok(build(query, statistics))
    })
}
