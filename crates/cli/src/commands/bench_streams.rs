//! `jindou bench lsbench`, `citybench` and `ingest`: how fast are streams and continuous queries?

use anyhow::bail;
use jindou_bench::lsbench::{self, costs, mix, served, sweep};
use jindou_bench::{citybench, ingest};
use jindou_engine::KeepSolutions;

use super::bench::{note, print_report};
use crate::bench_stream_args::{
    CitybenchArguments, CostPart, IngestBenchArguments, Keep, LsbenchBenchArguments,
};

/// # Errors
/// What keeps the figures from being taken.
pub(crate) fn lsbench(arguments: &LsbenchBenchArguments) -> anyhow::Result<()> {
    let options = lsbench::Options {
        users: arguments.users.get(),
        seconds: arguments.seconds.get(),
        rate: arguments.rate,
        selective: arguments.selective,
        range_ms: arguments.range.get(),
        step_ms: arguments.step.get(),
        keep: match arguments.keep {
            Keep::ByCost => KeepSolutions::ByCost,
            Keep::Always => KeepSolutions::Always,
            Keep::Never => KeepSolutions::Never,
        },
        one_shot: arguments.one_shot,
        most_queries: arguments.most_queries,
        only: arguments.only.clone(),
    };
    if arguments.mix {
        let report = mix::measure(&options, note)?;
        return print_report(&report, arguments.json.as_deref());
    }
    if arguments.costs {
        return costs(&options, arguments);
    }
    if arguments.served {
        let report = served::measure(&options, arguments.readers, note)?;
        print_report(&report, arguments.json.as_deref())?;
        return none_failed([("the queries", report.failures)].into_iter());
    }
    if arguments.sweep {
        return sweep(&options, arguments);
    }
    let report = lsbench::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    none_failed(
        report
            .queries
            .iter()
            .map(|query| (&*query.name, query.failures)),
    )
}

fn costs(options: &lsbench::Options, arguments: &LsbenchBenchArguments) -> anyhow::Result<()> {
    let parts: Vec<costs::Part> = arguments.part.iter().map(|part| (*part).into()).collect();
    let wanted = |part| parts.is_empty() || parts.contains(&part);
    let report = costs::measure(options, wanted, &arguments.location, note)?;
    print_report(&report, arguments.json.as_deref())?;
    none_failed(
        report
            .settings
            .iter()
            .map(|setting| (&*setting.name, setting.failures())),
    )
}

impl From<CostPart> for costs::Part {
    fn from(part: CostPart) -> Self {
        match part {
            CostPart::Settings => Self::Settings,
            CostPart::Streams => Self::Streams,
            CostPart::Staleness => Self::Staleness,
            CostPart::Snapshots => Self::Snapshots,
            CostPart::Threads => Self::Threads,
        }
    }
}

fn sweep(options: &lsbench::Options, arguments: &LsbenchBenchArguments) -> anyhow::Result<()> {
    let report = sweep::measure(options, &arguments.rates, note)?;
    print_report(&report, arguments.json.as_deref())?;
    if let Some(folder) = &arguments.plots {
        for path in sweep::write_plots(&report, folder)? {
            note(&path.display().to_string());
        }
    }
    let queries = report.points.iter().flat_map(|point| &point.queries);
    none_failed(queries.map(|query| (&*query.name, query.failures)))
}

/// # Errors
/// The first query of which evaluations failed.
fn none_failed<'q>(mut queries: impl Iterator<Item = (&'q str, u64)>) -> anyhow::Result<()> {
    match queries.find(|(_, failures)| *failures > 0) {
        None => Ok(()),
        Some((name, failures)) => bail!("{failures} evaluations of {name} failed"),
    }
}

/// # Errors
/// What keeps the figures from being taken.
pub(crate) fn citybench(arguments: &CitybenchArguments) -> anyhow::Result<()> {
    let options = citybench::Options {
        seconds: arguments.seconds.get().into(),
        only: arguments.only.clone(),
        ..citybench::Options::new(&arguments.data)
    };
    let report = citybench::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())?;
    none_failed(
        report
            .queries
            .iter()
            .map(|query| (&*query.name, query.failures)),
    )
}

/// # Errors
/// What keeps the figures from being taken.
pub(crate) fn ingest(arguments: IngestBenchArguments) -> anyhow::Result<()> {
    let mut options = ingest::Options::new(arguments.seconds);
    options.only = arguments.only;
    if let Some(seconds) = arguments.stream_seconds {
        options.stream_seconds = seconds.get().into();
    }
    if let Some(threads) = arguments.threads {
        options.threads = threads.get();
    }
    options.rate = arguments.rate.map(f64::from);
    options.push_ms = arguments.push_ms.into();
    options.http = arguments.http;
    options.location = arguments.location;
    let report = ingest::measure(&options, note)?;
    print_report(&report, arguments.json.as_deref())
}
