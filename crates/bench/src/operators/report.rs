//! What does the measurement of operators tell, and how is it printed?

use std::fmt::{self, Display, Formatter, Write as _};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::catalogue::{DataSet, Family};
use super::engine::Read;
use crate::figure::{Figure, Ratio, geometric_mean};
use crate::machine::Machine;
use crate::table::{Table, millis, thousands};

/// All figures. `Display` is aligned tables, serde gives JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorReport {
    /// Where it was measured.
    pub machine: Machine,
    /// Version of this program.
    pub version: String,
    /// Whether the program was built with optimization; figures without it say little.
    pub optimized: bool,
    /// Universities of the LUBM data, whose seed is 0.
    pub universities: u32,
    /// Time for the timed runs of one query in one engine.
    pub budget_ms: f64,
    /// Time after which a query was given up.
    pub limit_ms: f64,
    /// What of results is read.
    pub read: Read,
    /// How many times as fast as the second engine is asked for, and named in the report where it is not so.
    pub wanted: f64,
    /// The engines; the first is ours.
    pub engines: Vec<String>,
    /// The data sets that were there.
    pub data: Vec<DataFigures>,
    /// Those that were not.
    pub skipped: Vec<Skipped>,
    /// The queries by family.
    pub queries: Vec<OperatorFigures>,
}

/// A data set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DataFigures {
    /// Which.
    pub data: DataSet,
    /// Its triples, each once.
    pub triples: u64,
    /// Time of the load in each engine.
    pub load_seconds: Vec<f64>,
    /// Whether the right answers on it are recorded and were compared.
    pub checked: bool,
}

/// A data set that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Which.
    pub data: DataSet,
    /// The file that was looked for.
    pub missing: PathBuf,
}

/// One query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OperatorFigures {
    /// Its name.
    pub name: String,
    /// What it is heavy in.
    pub family: Family,
    /// What it was asked of.
    pub data: DataSet,
    /// Rows of the first answer that came.
    pub rows: Option<u64>,
    /// And its hash.
    pub hash: Option<u64>,
    /// How long each engine takes.
    pub engines: Vec<Figure>,
    /// What is wrong: answers that differ, engines that failed.
    pub faults: Vec<String>,
}

impl OperatorFigures {
    /// How many times longer the second engine takes than the first.
    #[must_use]
    pub fn ratio(&self) -> Option<Ratio> {
        let [ours, theirs, ..] = &self.engines[..] else {
            return None;
        };
        Ratio::of(theirs, ours)
    }
}

impl OperatorReport {
    /// Whether every engine answered every query it had time for, and all the same.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.queries.iter().all(|query| query.faults.is_empty())
    }

    /// The text of the file of recorded answers: of queries that all engines answered alike.
    #[must_use]
    pub fn record(&self) -> String {
        let mut text = String::new();
        for data in &self.data {
            writeln!(text, "data\t{}\t{}", data.data.name(), data.triples).expect("text takes all");
        }
        for query in &self.queries {
            if let (Some(rows), Some(hash), true) =
                (query.rows, query.hash, query.faults.is_empty())
            {
                writeln!(text, "{}\t{rows}\t{hash:016x}", query.name).expect("text takes all");
            }
        }
        text
    }

    fn write_head(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "operators; jindou {} on {}", self.version, self.machine)?;
        if !self.optimized {
            writeln!(
                f,
                "This program was built without optimization: build with --release."
            )?;
        }
        for data in &self.data {
            let of = match data.data {
                DataSet::Lubm => format!(", {} universities, seed 0", self.universities),
                DataSet::Watdiv => ", scale 1".to_owned(),
                DataSet::Ssb => ", SF 0.01, with dates, times and labels added".to_owned(),
            };
            let loads = self.engines.iter().zip(&data.load_seconds);
            let loads: Vec<String> = loads
                .map(|(engine, seconds)| format!("{engine} {seconds:.1} s"))
                .collect();
            writeln!(
                f,
                "{}{of}: {} triples; loaded by {}{}",
                data.data.name(),
                thousands(data.triples),
                loads.join(", "),
                match data.checked {
                    true => "",
                    false => "; NOT CHECKED against recorded answers, which are of other data",
                }
            )?;
        }
        for skipped in &self.skipped {
            writeln!(
                f,
                "SKIPPED: {}, because {} is absent",
                skipped.data.name(),
                skipped.missing.display()
            )?;
        }
        Ok(())
    }

    fn write_queries(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nmilliseconds from a query's text to all of its result as {}, \
             median of warm runs within {} s\n",
            match self.read {
                Read::Text => "text (TSV, N-Triples)",
                Read::Ids => "ids",
            },
            self.budget_ms / 1e3
        )?;
        let beside = self.engines.len() > 1;
        let mut headings = vec!["query", "data", "family", "rows"];
        headings.extend(self.engines.iter().map(String::as_str));
        if beside {
            headings.push("ratio");
        }
        headings.push("");
        let mut table = Table::new(headings);
        for query in &self.queries {
            let mut row = vec![
                query.name.clone(),
                query.data.name().to_owned(),
                query.family.name().to_owned(),
                query.rows.map_or_else(String::new, thousands),
            ];
            row.extend(query.engines.iter().map(Figure::to_string));
            if beside {
                row.push(Ratio::cell(query.ratio()));
            }
            row.push(if query.faults.is_empty() { "" } else { "WRONG" }.to_owned());
            table.row(row);
        }
        write!(f, "{table}")
    }

    fn write_families(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let beside = self.engines.len() > 1;
        let mut headings = vec!["geometric mean".to_owned(), "queries".to_owned()];
        headings.extend(self.engines.iter().map(|name| format!("{name}, ms")));
        if beside {
            headings.extend(["ratio".to_owned(), "lowest ratio".to_owned()]);
        }
        let mut table = Table::new(headings);
        let families = Family::ALL.into_iter().map(Some);
        for family in families.chain([None]) {
            let queries: Vec<&OperatorFigures> = self
                .queries
                .iter()
                .filter(|query| family.is_none_or(|family| query.family == family))
                .collect();
            if queries.is_empty() {
                continue;
            }
            let mut row = vec![
                family.map_or("all", Family::name).to_owned(),
                queries.len().to_string(),
            ];
            for engine in 0..self.engines.len() {
                let times = queries.iter().filter_map(|q| q.engines[engine].ms());
                row.push(geometric_mean(times).map_or_else(String::new, millis));
            }
            if beside {
                let ratios = || queries.iter().filter_map(|query| query.ratio());
                row.push(Ratio::cell(Ratio::mean(ratios())));
                row.push(Ratio::cell(
                    ratios().min_by(|a, b| a.value.total_cmp(&b.value)),
                ));
            }
            table.row(row);
        }
        write!(f, "\n{table}")
    }

    /// The queries that are not as fast as asked for beside the other engine, slowest first.
    fn write_slow(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let below = |query: &&OperatorFigures| {
            let ratio = query.ratio();
            ratio.is_some_and(|ratio| ratio.value < self.wanted && !ratio.at_least)
        };
        let mut slow: Vec<_> = self.queries.iter().filter(below).collect();
        let value = |query: &OperatorFigures| query.ratio().map_or(0.0, |ratio| ratio.value);
        slow.sort_by(|a, b| value(a).total_cmp(&value(b)));
        let Some(other) = self.engines.get(1) else {
            return Ok(());
        };
        let slower = slow.iter().filter(|query| value(query) < 1.0).count();
        writeln!(
            f,
            "\n{slower} of {} queries slower than {other}, {} less than {} times as fast",
            self.queries.len(),
            slow.len(),
            self.wanted
        )?;
        for query in slow {
            writeln!(
                f,
                "  {:>6}  {} ({})",
                Ratio::cell(query.ratio()),
                query.name,
                query.family
            )?;
        }
        Ok(())
    }
}

impl Display for OperatorReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_head(f)?;
        if self.queries.is_empty() {
            return writeln!(f, "\nno query is so called, or its data is absent");
        }
        self.write_queries(f)?;
        self.write_families(f)?;
        self.write_slow(f)?;
        for query in &self.queries {
            for fault in &query.faults {
                writeln!(f, "WRONG: {}: {fault}", query.name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::timing::Timing;

    #[test]
    fn the_ratio_is_the_second_engine_s_time_in_ours() {
        let timed = |ms| Figure::Timed {
            timing: Timing::of(vec![Duration::from_millis(ms)]),
        };
        let mut query = OperatorFigures {
            name: "q".to_owned(),
            family: Family::Scan,
            data: DataSet::Lubm,
            rows: Some(1),
            hash: Some(2),
            engines: vec![timed(2), timed(50)],
            faults: Vec::new(),
        };
        assert_eq!(Ratio::cell(query.ratio()), "25.0");
        query.engines.pop();
        assert_eq!(query.ratio(), None);
    }
}
