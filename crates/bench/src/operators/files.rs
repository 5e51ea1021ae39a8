//! Where are the three data sets, and how are they made ready?
//!
//! LUBM is generated. WatDiv and SSB are read packed from a folder and kept unpacked beside what
//! is generated, so that both engines read the same plain files. Neither has a typed date or a
//! language, so three statements about each order line are added to SSB: a day, a time, and a
//! label in one of [`LANGUAGES`].

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use jindou_datagen::lubm::Lubm;

use super::catalogue::{Check, DataSet, Family, Query};
use crate::BenchError;
use crate::data::{lubm_file, written_once};

/// Where the packed data sets are looked for unless told otherwise, relative to the current
/// folder.
pub const DEFAULT_SETS: &str = "../shared/data";

/// The languages of the labels that are added, by turns.
pub const LANGUAGES: [&str; 5] = ["en", "en-GB", "de", "fr", "zh"];

const WATDIV: &str = "watdiv/watdiv.1.nt.zst";
const SSB: &str = "ssb/ssb.sf0.01.nt.zst";
const SSB_QUERIES: &str = "ssb/queries_sparql";

/// The files to load for a data set; what is missing, if it is not there.
pub(crate) enum Found {
    Files(Vec<PathBuf>),
    Absent(PathBuf),
}

/// Makes a data set ready: `folder` keeps what is generated or unpacked, `sets` has the rest.
pub(crate) fn files(
    data: DataSet,
    universities: u32,
    folder: &Path,
    sets: &Path,
) -> Result<Found, BenchError> {
    let packed = match data {
        DataSet::Lubm => {
            let file = lubm_file(folder, Lubm::new(universities, 0))?;
            return Ok(Found::Files(vec![file.path]));
        }
        DataSet::Watdiv => sets.join(WATDIV),
        DataSet::Ssb => sets.join(SSB),
    };
    if !packed.is_file() {
        return Ok(Found::Absent(packed));
    }
    let plain = folder.join(packed.file_stem().expect("the file has a name"));
    written_once(&plain, |out| {
        zstd::stream::copy_decode(File::open(&packed)?, out)
    })?;
    let mut files = vec![plain];
    if data == DataSet::Ssb {
        let extra = files[0].with_extension("extra.nt");
        written_once(&extra, |out| {
            let lines = BufReader::with_capacity(1 << 20, File::open(&files[0])?).lines();
            let mut out = BufWriter::with_capacity(1 << 20, out);
            for line in lines {
                add_statements(&line?, &mut out)?;
            }
            out.flush()
        })?;
        files.push(extra);
    }
    Ok(Found::Files(files))
}

/// The queries that come with a data set, if it is there.
pub(super) fn queries(data: DataSet, sets: &Path) -> Result<Vec<Query>, BenchError> {
    let folder = sets.join(SSB_QUERIES);
    if data != DataSet::Ssb || !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut queries = Vec::new();
    for entry in fs::read_dir(&folder).map_err(BenchError::io(&folder))? {
        let path = entry.map_err(BenchError::io(&folder))?.path();
        let Some(name) = path.file_stem().filter(|_| ends_in_rq(&path)) else {
            continue;
        };
        let text = fs::read_to_string(&path).map_err(BenchError::io(&path))?;
        queries.push(Query {
            name: format!("SSB {}", name.to_string_lossy()).into(),
            family: Family::Ssb,
            data,
            // Some order by what leaves ties.
            check: Check::Rows,
            text: text.into(),
        });
    }
    queries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(queries)
}

fn ends_in_rq(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rq")
}

/// What is added for one line of SSB: a day for each day of commitment, a time and a label for
/// each day of order.
fn add_statements(line: &str, out: &mut impl Write) -> std::io::Result<()> {
    let mut parts = line.splitn(3, ' ');
    let (Some(subject), Some(predicate), Some(object)) = (parts.next(), parts.next(), parts.next())
    else {
        return Ok(());
    };
    let committed = predicate.ends_with("#lo_commitdate>");
    if !committed && !predicate.ends_with("#lo_orderdate>") {
        return Ok(());
    }
    let key = |text: &str| -> Option<String> {
        let end = text.find('>')?;
        Some(text[..end].rsplit('/').next()?.to_owned())
    };
    let wrong = || std::io::Error::new(std::io::ErrorKind::InvalidData, line.to_owned());
    let day = key(object).filter(|day| day.len() == 8).ok_or_else(wrong)?;
    let day = format!("{}-{}-{}", &day[..4], &day[4..6], &day[6..]);
    const EXTRA: &str = "http://example.org/ssb/extra#";
    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
    if committed {
        return writeln!(
            out,
            "{subject} <{EXTRA}committedOn> \"{day}\"^^<{XSD}date> ."
        );
    }
    let line_key = key(subject).ok_or_else(wrong)?;
    let (order, number) = line_key.split_once('-').ok_or_else(wrong)?;
    let (order, number): (u64, u64) = match (order.parse(), number.parse()) {
        (Ok(order), Ok(number)) => (order, number),
        _ => return Err(wrong()),
    };
    // Spread over the day, the same at every run.
    let second = (order * 7919 + number * 61) % 86_400;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let language = LANGUAGES[((order + number) % LANGUAGES.len() as u64) as usize];
    writeln!(
        out,
        "{subject} <{EXTRA}orderedAt> \"{day}T{hour:02}:{minute:02}:{second:02}Z\"^^<{XSD}dateTime> .\n\
         {subject} <{EXTRA}label> \"Order {order}, line {number}\"@{language} ."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_a_time_and_a_label_are_added_to_an_order_line() {
        let added = |line: &str| {
            let mut out = Vec::new();
            add_statements(line, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        let of = "<http://example.org/ssb/lineorder/3-2> <http://example.org/ssb/schema#";
        assert_eq!(
            added(&format!(
                "{of}lo_commitdate> <http://example.org/ssb/date/19960212> ."
            ))
            .unwrap(),
            "<http://example.org/ssb/lineorder/3-2> <http://example.org/ssb/extra#committedOn> \
             \"1996-02-12\"^^<http://www.w3.org/2001/XMLSchema#date> .\n"
        );
        let text = added(&format!(
            "{of}lo_orderdate> <http://example.org/ssb/date/19960102> ."
        ))
        .unwrap();
        assert!(text.contains("\"1996-01-02T06:37:59Z\"^^"), "{text}");
        assert!(text.ends_with("\"Order 3, line 2\"@en .\n"), "{text}");
        assert_eq!(added(&format!("{of}lo_tax> \"2\" .")).unwrap(), "");
        assert!(added(&format!("{of}lo_orderdate> <http://example.org/x> .")).is_err());
    }
}
