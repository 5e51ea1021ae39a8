//! Which plots does the measurement by rate give?

use super::sweep_report::{SweepPoint, SweepQuery, SweepReport};
use crate::percentiles::Percentiles;
use crate::plot::{Axis, Chart, Series};
use crate::table::thousands;

/// The paper's rate, at which the distributions of all queries are compared.
const USUAL_RATE: u32 = 133_500;

/// The plots, each with the name of its file.
pub(super) fn of(report: &SweepReport) -> Vec<(String, Chart)> {
    let mut plots = vec![
        (
            "evaluation-by-rate".to_owned(),
            by_rate(report, "Evaluation by rate", |query| &query.evaluation),
        ),
        (
            "result-by-rate".to_owned(),
            by_rate(
                report,
                "From the end of a window to its result, by rate",
                |query| &query.result,
            ),
        ),
    ];
    let distance = |point: &&SweepPoint| point.rate.abs_diff(USUAL_RATE);
    if let Some(usual) = report.points.iter().min_by_key(distance) {
        plots.push(("cdf".to_owned(), of_rate(report, usual)));
    }
    for (number, name) in names(report).into_iter().enumerate() {
        plots.push((format!("cdf-{name}"), of_query(report, number, name)));
    }
    plots
}

fn names(report: &SweepReport) -> Vec<&str> {
    let first = report.points.first().into_iter();
    let queries = first.flat_map(|point| &point.queries);
    queries.map(|query| query.name.as_str()).collect()
}

fn setting(report: &SweepReport) -> String {
    format!(
        "LSBench, {} stored triples, windows of {} ms by {} ms, one thread of {}",
        thousands(report.stored),
        report.range_ms,
        report.step_ms,
        report.machine.cpu,
    )
}

/// Median and 99th percentile of each query by rate.
fn by_rate(
    report: &SweepReport,
    title: &str,
    times: impl Fn(&SweepQuery) -> &Percentiles,
) -> Chart {
    let mut series = Vec::new();
    for (colour, name) in names(report).into_iter().enumerate() {
        let line = |figure: fn(&Percentiles) -> f64| -> Vec<(f64, f64)> {
            let of_rate = |point: &SweepPoint| {
                let query = point.queries.iter().find(|query| query.name == name)?;
                Some((f64::from(point.rate), figure(times(query))))
            };
            report.points.iter().filter_map(of_rate).collect()
        };
        series.push(Series {
            name: format!("{name}, median"),
            points: line(|times| times.median_us),
            colour,
            is_dashed: false,
        });
        series.push(Series {
            name: format!("{name}, p99"),
            points: line(|times| times.p99_us),
            colour,
            is_dashed: true,
        });
    }
    let rates = report.points.iter().map(|point| f64::from(point.rate));
    Chart {
        title: title.to_owned(),
        subtitle: setting(report),
        x: Axis::log("rate of all streams, tuples/s").with_marks(rates),
        y: Axis::log("time, \u{b5}s"),
        series,
    }
}

/// The distributions of all queries at one rate.
fn of_rate(report: &SweepReport, point: &SweepPoint) -> Chart {
    let queries = point.queries.iter().enumerate();
    Chart {
        title: format!(
            "Evaluations at {} tuples/s",
            thousands(u64::from(point.rate))
        ),
        subtitle: setting(report),
        x: Axis::log("time of an evaluation, \u{b5}s"),
        y: Axis::linear("evaluations that take no longer, %"),
        series: queries
            .map(|(colour, query)| Series {
                name: query.name.clone(),
                points: query.evaluation.points(),
                colour,
                is_dashed: false,
            })
            .collect(),
    }
}

/// The distributions of one query at all rates.
fn of_query(report: &SweepReport, number: usize, name: &str) -> Chart {
    let of_rate = |(colour, point): (usize, &SweepPoint)| {
        let query = point.queries.get(number)?;
        Some(Series {
            name: format!("{} tuples/s", thousands(u64::from(point.rate))),
            points: query.evaluation.points(),
            colour,
            is_dashed: false,
        })
    };
    Chart {
        title: format!("{name}: evaluations by rate"),
        subtitle: setting(report),
        x: Axis::log("time of an evaluation, \u{b5}s"),
        y: Axis::linear("evaluations that take no longer, %"),
        series: report
            .points
            .iter()
            .enumerate()
            .filter_map(of_rate)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Options, sweep};

    #[test]
    fn a_sweep_has_each_query_at_each_rate_in_figures_and_plots() {
        let options = Options {
            users: 200,
            seconds: 3,
            ..Options::new()
        };
        let report = sweep::measure(&options, &[20_000, 40_000], |_| {}).unwrap();
        for point in &report.points {
            let names: Vec<&str> = point.queries.iter().map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["L1", "L2", "L3", "L4", "L5", "L6"]);
            assert_eq!(point.streams.len(), 5);
            for query in &point.queries {
                assert!(query.failures == 0 && query.rows_each > 0.0, "{query:?}");
                assert!(
                    query.result.median_us >= query.evaluation.median_us,
                    "{query:?}"
                );
            }
        }
        let folder = tempfile::tempdir().unwrap();
        let paths = sweep::write_plots(&report, folder.path()).unwrap();
        assert_eq!(paths.len(), 3 + 6);
        let text = std::fs::read_to_string(&paths[0]).unwrap();
        assert!(text.contains("L6, p99") && text.contains("40k"), "{text}");
        let json = serde_json::to_string(&report).unwrap();
        let read: sweep::SweepReport = serde_json::from_str(&json).unwrap();
        assert_eq!(read.points.len(), report.points.len());
        assert!(report.to_string().contains("postlike"));
    }
}
