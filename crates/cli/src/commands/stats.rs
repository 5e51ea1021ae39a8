//! `jindou stats`: what a store holds.

use anyhow::Context;
use jindou_bench::table::{Table, bytes, thousands};
use serde_json::Value;

use crate::args::StatsArguments;
use crate::{open, output};

/// # Errors
/// A folder that is no store.
pub(crate) fn run(arguments: &StatsArguments) -> anyhow::Result<()> {
    let statistics = open::stored(&arguments.location)?.statistics();
    let value = serde_json::to_value(&statistics).context("the statistics are no JSON")?;
    if arguments.json {
        let text = serde_json::to_string_pretty(&value).context("the statistics are no JSON")?;
        return output::print(&format!("{text}\n"));
    }
    let mut table = Table::new([arguments.location.display().to_string(), String::new()]);
    rows(&mut table, "", &value);
    output::print(&table.to_string())
}

/// One line a figure, in the order of the statistics' fields: `bytes.dictionary` is `bytes:
/// dictionary`, shown in the unit that fits.
fn rows(table: &mut Table, name: &str, value: &Value) {
    let readable = || name.replace('_', " ");
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() {
                    field.clone()
                } else {
                    format!("{name}: {field}")
                };
                rows(table, &name, value);
            }
        }
        Value::Number(number) => {
            let shown = match number.as_u64() {
                Some(count) if name.contains("bytes") => bytes(count),
                Some(count) => thousands(count),
                None => number.to_string(),
            };
            table.row([readable(), shown]);
        }
        Value::String(text) => table.row([readable(), text.clone()]),
        other => table.row([readable(), other.to_string()]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_line() {
        let mut table = Table::new(["store", ""]);
        let value = serde_json::json!({"triples": 1234567, "bytes": {"dictionary": 2048}});
        rows(&mut table, "", &value);
        assert_eq!(
            table.to_string(),
            "store\ntriples            1,234,567\nbytes: dictionary    2.0 KiB\n"
        );
    }
}
