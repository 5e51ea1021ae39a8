//! What does the log of slow queries say?
//!
//! As text, each line has the same fields in the same order, `name=value`, each a word but for the last one, the
//! text of the query in quotes. `-` stands for what is not known.

use std::io::Write;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use crate::log::{Line, Log, LogFormat, push_escaped, push_word};
use crate::metrics::Ending;
use crate::queries::Running;

/// Which queries and updates are slow, and where they are noted.
#[derive(Clone, Debug)]
pub struct SlowQueries {
    /// Those that take as long, or longer.
    pub from: Duration,
    /// Where each is a line.
    pub log: Log,
}

/// One line.
struct Slow {
    query: Arc<Running>,
    ended_at: SystemTime,
    elapsed: Duration,
    ending: Ending,
    rows: u64,
}

impl SlowQueries {
    /// Notes a query that has ended, if it was slow. Rows are those that it gave, or the quads it changed.
    pub(crate) fn ended(&self, query: &Arc<Running>, ending: Ending, elapsed: Duration, rows: u64) {
        if elapsed >= self.from {
            self.log.push(Slow {
                query: Arc::clone(query),
                ended_at: SystemTime::now(),
                elapsed,
                ending,
                rows,
            });
        }
    }
}

impl Line for Slow {
    fn write(&self, format: LogFormat, out: &mut Vec<u8>) {
        let at = DateTime::<Utc>::from(self.ended_at);
        let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let (query, seconds) = (&self.query, self.elapsed.as_secs_f64());
        let (text, text_bytes) = query.text();
        let address = query.address().map(|address| address.ip());
        if format == LogFormat::Json {
            let line = json!({
                "time": at,
                "seconds": seconds,
                "rows": self.rows,
                "status": self.ending.name(),
                "kind": query.kind(),
                "client": address.map(|address: IpAddr| address.to_string()),
                "user": query.user(),
                "id": query.id.to_string(),
                "query": text,
                "query_bytes": text_bytes,
            });
            return writeln!(out, "{line}").expect("a Vec takes all");
        }
        let (kind, status, rows) = (query.kind(), self.ending.name(), self.rows);
        write!(
            out,
            "time={at} seconds={seconds:.6} rows={rows} kind={kind} status={status} id={} client=",
            query.id
        )
        .expect("a Vec takes all");
        match address {
            Some(address) => write!(out, "{address}").expect("a Vec takes all"),
            None => out.push(b'-'),
        }
        out.extend(b" user=");
        push_word(query.user().unwrap_or("-"), out);
        write!(out, " query_bytes={text_bytes} query=\"").expect("a Vec takes all");
        push_escaped(text, out);
        out.extend(b"\"\n");
    }
}
