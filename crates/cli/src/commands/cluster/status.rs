//! `jindou cluster status`: how are the nodes of a running cluster, by what each says of itself and of the others?

use std::collections::BTreeMap;
use std::thread;

use anyhow::bail;
use jindou_bench::table::{Table, thousands};
use jindou_engine::printable;
use jindou_server::cluster_told::{ClusterTold, NodeTold, is_in_sync, leader};
use serde_json::{Value, json};

use crate::cluster_args::{StatusArguments, StatusFormat};
use crate::commands::stream::{Asking, Client};
use crate::output;
use crate::stream_args::ServerArguments;

/// Nodes that are asked at once.
const ASKED_AT_ONCE: usize = 32;

/// # Errors
/// A cluster whose nodes are not all there, or whose copies are not all in sync; a file of certificates that cannot be
/// used.
pub(crate) fn run(arguments: &StatusArguments) -> anyhow::Result<()> {
    let answers = ask_all(arguments)?;
    let rows = rows(&answers);
    let wrong = wrong(&rows, &answers);
    match arguments.format {
        StatusFormat::Text => output::print(&table(&rows).to_string())?,
        StatusFormat::Json => {
            let nodes: Vec<Value> = rows.iter().map(Row::json).collect();
            let all = json!({ "is_whole": wrong.is_empty(), "wrong": wrong, "nodes": nodes });
            output::print(&format!("{all:#}\n"))?;
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("; "));
    }
    Ok(())
}

/// What came of asking a server how its cluster is.
struct Answer {
    url: String,
    told: Result<ClusterTold, String>,
}

/// Asks the servers that were named, and those that the lists of these name.
fn ask_all(arguments: &StatusArguments) -> anyhow::Result<Vec<Answer>> {
    let mut answers: Vec<Answer> = Vec::new();
    let mut next = arguments.urls.clone();
    next.dedup();
    while !next.is_empty() {
        for urls in next.chunks(ASKED_AT_ONCE) {
            answers.extend(ask(urls, arguments)?);
        }
        next = not_asked(&answers);
    }
    Ok(answers)
}

fn ask(urls: &[String], arguments: &StatusArguments) -> anyhow::Result<Vec<Answer>> {
    let ask_one = |url: &String| {
        let server = ServerArguments {
            url: Some(url.clone()),
            identity: arguments.identity.clone(),
        };
        let asking = Asking {
            limit: Some(arguments.timeout),
            ..Asking::default()
        };
        // What is wrong with the options is wrong for all.
        let client = Client::asking(&server, asking)?;
        let told = client.get("/cluster").map_err(|error| reason(&error, url));
        let told = told.and_then(|told| {
            let told = serde_json::from_value(told);
            told.map_err(|_| "it answers what no node does".to_owned())
        });
        let url = url.clone();
        anyhow::Ok(Answer { url, told })
    };
    thread::scope(|scope| {
        let asked: Vec<_> = urls
            .iter()
            .map(|url| scope.spawn(move || ask_one(url)))
            .collect();
        let answers = asked.into_iter().map(|one| match one.join() {
            Ok(answer) => answer,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        answers.collect()
    })
}

/// An error of asking a server, without where that is, which is beside it.
fn reason(error: &anyhow::Error, url: &str) -> String {
    let said = error.to_string();
    let said = said.strip_prefix(url).unwrap_or(&said);
    let said = said.strip_prefix("/cluster").unwrap_or(said);
    let said = said.trim_start_matches(':').trim();
    said.strip_suffix("; is a server there?")
        .unwrap_or(said)
        .to_owned()
}

/// Servers of nodes that did not answer yet under any URL.
fn not_asked(answers: &[Answer]) -> Vec<String> {
    let told = || {
        answers
            .iter()
            .filter_map(|answer| answer.told.as_ref().ok())
    };
    let mut next = Vec::new();
    for node in told().flat_map(|told| &told.nodes) {
        let Some(http) = node.http.as_deref().map(|http| http.trim_end_matches('/')) else {
            continue;
        };
        let has_answered = told().any(|told| told.node == node.name);
        let was_asked = answers.iter().any(|answer| answer.url == http);
        if !has_answered && !was_asked && !next.iter().any(|one| one == http) {
            next.push(http.to_owned());
        }
    }
    next
}

/// A node, or a server that is none.
#[derive(Debug, Default, PartialEq, Eq)]
struct Row {
    /// None of a server that is not known to be a node.
    name: Option<String>,
    address: Option<String>,
    http: Option<String>,
    state: State,
    /// Why it did not answer.
    reason: Option<String>,
    /// Of the other nodes that answered, those that see it, and those that do not, with the reasons of these.
    seen_by: Vec<String>,
    unseen_by: Vec<(String, String)>,
    shards: Option<u64>,
    role: Role,
    snapshot: Option<u64>,
    /// None where nobody knows.
    in_sync: Option<bool>,
    lag: Option<u64>,
}

/// Whether a node answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    Here,
    #[default]
    Away,
    /// Nobody knows where its HTTP server is.
    NotAsked,
}

/// What a node does for the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    Leads,
    Follows,
    Behind,
    #[default]
    None,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Away => "away",
            Self::NotAsked => "not asked",
        }
    }
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Leads => "leads",
            Self::Follows => "follows",
            Self::Behind => "behind",
            Self::None => "none",
        }
    }
}

fn rows(answers: &[Answer]) -> Vec<Row> {
    let told: Vec<&ClusterTold> = answers
        .iter()
        .filter_map(|one| one.told.as_ref().ok())
        .collect();
    // In the order of the lists, which are the same.
    let mut listed: Vec<&NodeTold> = Vec::new();
    for node in told.iter().flat_map(|told| &told.nodes) {
        if !listed.iter().any(|one| one.name == node.name) {
            listed.push(node);
        }
    }
    let mut rows: Vec<Row> = listed
        .iter()
        .map(|node| row(node, answers, &told))
        .collect();
    let latest = latest(&told);
    for row in &mut rows {
        let lag = |snapshot: u64| latest.map(|latest| latest.saturating_sub(snapshot));
        row.lag = row.snapshot.and_then(lag);
    }
    // What no list has did not answer, or is of another kind.
    let of_none = answers.iter().filter(|answer| match &answer.told {
        Ok(told) => !listed.iter().any(|node| node.name == told.node),
        Err(_) => !rows
            .iter()
            .any(|row| row.http.as_deref() == Some(&answer.url)),
    });
    let of_none: Vec<Row> = of_none
        .map(|answer| Row {
            http: Some(answer.url.clone()),
            reason: Some(match &answer.told {
                Ok(_) => "it is in no list of nodes".to_owned(),
                Err(reason) => reason.clone(),
            }),
            ..Row::default()
        })
        .collect();
    rows.extend(of_none);
    rows
}

fn row(node: &NodeTold, answers: &[Answer], told: &[&ClusterTold]) -> Row {
    let listed = node.http.as_deref().map(|http| http.trim_end_matches('/'));
    let own = answers.iter().find_map(|answer| {
        let told = answer
            .told
            .as_ref()
            .ok()
            .filter(|told| told.node == node.name);
        told.map(|told| (&answer.url, told))
    });
    let failed = answers.iter().find_map(|answer| {
        let reason = answer.told.as_ref().err();
        reason.filter(|_| Some(&*answer.url) == listed)
    });
    let (mut seen_by, mut unseen_by) = (Vec::new(), Vec::new());
    for other in told.iter().filter(|other| other.node != node.name) {
        let seen = other.nodes.iter().find(|one| one.name == node.name);
        match seen.filter(|seen| seen.state == "away") {
            None => seen_by.push(other.node.clone()),
            Some(seen) => {
                let reason = seen.reason.clone().unwrap_or_default();
                unseen_by.push((other.node.clone(), reason));
            }
        }
    }
    let (state, reason) = match (own, failed) {
        (Some(_), _) => (State::Here, None),
        (None, Some(reason)) => (State::Away, Some(reason.clone())),
        (None, None) => {
            let reason = "nothing says where its HTTP server is".to_owned();
            (State::NotAsked, Some(reason))
        }
    };
    let stands = match own {
        Some((_, own)) => stands(own, told),
        None => stands_by_leader(&node.name, told),
    };
    Row {
        name: Some(node.name.clone()),
        address: Some(node.address.clone()),
        http: listed.or(own.map(|(url, _)| &**url)).map(str::to_owned),
        state,
        reason,
        seen_by,
        unseen_by,
        shards: Some(node.shards),
        role: stands.0,
        snapshot: stands.1,
        in_sync: stands.2,
        lag: None,
    }
}

/// Role, last transaction and whether it is in sync, of a node that answered.
fn stands(own: &ClusterTold, told: &[&ClusterTold]) -> (Role, Option<u64>, Option<bool>) {
    let in_sync = is_in_sync(own, told);
    let role = match &own.copy {
        None => Role::None,
        Some(_) if leader(told) == Some(&own.node) && own.leads() => Role::Leads,
        Some(_) if in_sync => Role::Follows,
        Some(_) => Role::Behind,
    };
    (role, own.snapshot, Some(in_sync))
}

/// The same of one that did not, as the node that leads has it.
fn stands_by_leader(name: &str, told: &[&ClusterTold]) -> (Role, Option<u64>, Option<bool>) {
    let leads = leader(told);
    if leads == Some(name) {
        return (Role::Leads, None, Some(true));
    }
    let leading = told
        .iter()
        .find(|one| one.leads() && Some(&*one.node) == leads);
    let followers = leading.and_then(|one| one.copy.as_ref()?.followers.as_ref());
    let mut followers = followers.into_iter().flatten();
    match followers.find(|follower| follower.name == name) {
        None => (Role::None, None, None),
        Some(follower) => {
            let role = match (follower.is_awaited, follower.snapshot) {
                (true, _) => Role::Follows,
                (false, Some(_)) => Role::Behind,
                (false, None) => Role::None,
            };
            (role, follower.snapshot, Some(follower.is_awaited))
        }
    }
}

/// The last transaction that there is: the leader's, or the last that any node has.
fn latest(told: &[&ClusterTold]) -> Option<u64> {
    let leads = leader(told);
    let leading = told.iter().find(|one| Some(&*one.node) == leads);
    let of_leader = leading.and_then(|one| one.snapshot);
    of_leader.or_else(|| told.iter().filter_map(|one| one.snapshot).max())
}

/// What is not as it should be.
fn wrong(rows: &[Row], answers: &[Answer]) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in rows {
        let name = row
            .name
            .as_ref()
            .or(row.http.as_ref())
            .cloned()
            .unwrap_or_default();
        if row.state == State::Away {
            let reason = row.reason.as_deref().unwrap_or_default();
            wrong.push(format!("{name} is away: {reason}"));
            continue;
        }
        if let [(other, reason), ..] = &row.unseen_by[..] {
            let others = match row.unseen_by.len() - 1 {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            wrong.push(format!("{name} is away for {other}{others}: {reason}"));
        }
        if row.in_sync == Some(false) {
            wrong.push(match row.lag {
                Some(lag) if lag > 0 => {
                    format!("{name} is not in sync, {} behind", transactions(lag))
                }
                _ => format!("{name} is not in sync"),
            });
        }
    }
    let told: Vec<&ClusterTold> = answers
        .iter()
        .filter_map(|one| one.told.as_ref().ok())
        .collect();
    let is_written = told.iter().any(|told| told.copy.is_some());
    if is_written && leader(&told).is_none() {
        wrong.push("no node leads".to_owned());
    }
    wrong
}

fn transactions(count: u64) -> String {
    match count {
        1 => "1 transaction".to_owned(),
        count => format!("{} transactions", thousands(count)),
    }
}

impl Row {
    fn json(&self) -> Value {
        let unseen: BTreeMap<_, _> = self
            .unseen_by
            .iter()
            .map(|(name, why)| (name, why))
            .collect();
        json!({
            "name": self.name,
            "address": self.address,
            "http": self.http,
            "state": self.state.name().replace(' ', "_"),
            "reason": self.reason,
            "seen_by": self.seen_by,
            "unseen_by": unseen,
            "shards": self.shards,
            "role": self.role.name(),
            "snapshot": self.snapshot,
            "in_sync": self.in_sync,
            "lag": self.lag,
        })
    }

    fn cells(&self) -> Vec<String> {
        let text = |text: &Option<String>| {
            let text = text.as_deref().unwrap_or("-");
            printable(text).into_owned()
        };
        let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), thousands);
        let seen = match (self.seen_by.len(), self.unseen_by.len()) {
            (0, 0) => "-".to_owned(),
            (seen, unseen) => format!("{seen} of {}", seen + unseen),
        };
        let in_sync = match self.in_sync {
            Some(true) => "yes",
            Some(false) => "no",
            None => "-",
        };
        vec![
            text(&self.name),
            text(&self.address),
            text(&self.http),
            self.state.name().to_owned(),
            seen,
            number(self.shards),
            self.role.name().to_owned(),
            number(self.snapshot),
            in_sync.to_owned(),
            number(self.lag),
        ]
    }
}

fn table(rows: &[Row]) -> Table {
    let headings = [
        "node", "address", "http", "state", "seen by", "shards", "role", "snapshot", "in sync",
        "lag",
    ];
    let has_reasons = rows.iter().any(|row| row.reason.is_some());
    let more = has_reasons.then_some("reason");
    let mut table = Table::new(headings.into_iter().chain(more)).of_words();
    for row in rows {
        let reason = row.reason.as_deref().unwrap_or_default();
        let reason = has_reasons.then(|| printable(reason).into_owned());
        table.row(row.cells().into_iter().chain(reason));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(url: &str, text: &str) -> Answer {
        let url = url.to_owned();
        let told = serde_json::from_str(text).map_err(|error| error.to_string());
        assert!(told.is_ok(), "{told:?}");
        Answer { url, told }
    }

    fn failed(url: &str, reason: &str) -> Answer {
        let (url, told) = (url.to_owned(), Err(reason.to_owned()));
        Answer { url, told }
    }

    /// Nodes a, b and c; c has no HTTP server in the list.
    fn list(states: [&str; 3]) -> String {
        let node = |name: &str, http: &str, state: &str| {
            let reason = match state {
                "away" => r#","reason":"no route to host""#,
                _ => "",
            };
            format!(
                r#"{{"name":"{name}","address":"{name}:1","http":{http},"shards":2,"state":"{state}"{reason}}}"#
            )
        };
        let [a, b, c] = states;
        let (a, b) = (
            node("a", "\"http://a:1/\"", a),
            node("b", "\"http://b:1\"", b),
        );
        format!("[{a},{b},{}]", node("c", "null", c))
    }

    fn leads(states: [&str; 3], c_awaited: bool) -> String {
        let followers = format!(
            r#"[{{"name":"b","is_awaited":true,"snapshot":9}},{{"name":"c","is_awaited":{c_awaited},"snapshot":4}}]"#
        );
        let sync = if c_awaited {
            r#""a","b","c""#
        } else {
            r#""a","b""#
        };
        let copy =
            format!(r#"{{"leader":"a","term":1,"in_sync":[{sync}],"followers":{followers}}}"#);
        format!(
            r#"{{"node":"a","snapshot":9,"copy":{copy},"nodes":{}}}"#,
            list(states)
        )
    }

    fn follows(name: &str, snapshot: u64, states: [&str; 3]) -> String {
        let copy = r#"{"leader":"a","is_led":true,"term":1,"in_sync":["a","b","c"]}"#;
        format!(
            r#"{{"node":"{name}","snapshot":{snapshot},"copy":{copy},"nodes":{}}}"#,
            list(states)
        )
    }

    #[test]
    fn a_whole_cluster_is_told_of_in_a_table() {
        let here = answer("http://x:1", &leads(["here", "tcp", "tcp"], true));
        assert_eq!(not_asked(std::slice::from_ref(&here)), ["http://b:1"]);
        let answers = [
            here,
            answer("http://b:1", &follows("b", 9, ["tcp", "here", "tcp"])),
        ];
        assert_eq!(not_asked(&answers), [""; 0]);
        let rows = rows(&answers);
        assert_eq!(wrong(&rows, &answers), [""; 0]);
        let text = table(&rows).to_string();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                "node  address  http        state      seen by  shards  role     snapshot  in sync  lag  reason",
                "a     a:1      http://a:1  here       1 of 1   2       leads    9         yes      0",
                "b     b:1      http://b:1  here       1 of 1   2       follows  9         yes      0",
                "c     c:1      -           not asked  2 of 2   2       follows  4         yes      5    nothing says where its HTTP server is",
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let a = || answer("http://a:1", &leads(["here", "away", "tcp"], false));
        let answers = [a(), failed("http://b:1", "Connection refused")];
        let rows = rows(&answers);
        assert_eq!(rows[1].state, State::Away);
        assert_eq!(rows[1].reason.as_deref(), Some("Connection refused"));
        assert_eq!(
            rows[1].unseen_by,
            [("a".to_owned(), "no route to host".to_owned())]
        );
        assert_eq!((rows[2].role, rows[2].lag), (Role::Behind, Some(5)));
        assert_eq!(
            wrong(&rows, &answers),
            [
                "b is away: Connection refused",
                "c is not in sync, 5 transactions behind"
            ]
        );
        let told = rows[1].json();
        assert_eq!(told["unseen_by"]["a"], "no route to host");
        assert_eq!(told["state"], "away");
    }

    #[test]
    fn a_node_that_answers_and_is_away_for_others_is_named() {
        let answers = [
            answer("http://a:1", &leads(["here", "away", "tcp"], true)),
            answer("http://b:1", &follows("b", 9, ["tcp", "here", "tcp"])),
        ];
        let rows = rows(&answers);
        assert_eq!(
            wrong(&rows, &answers),
            ["b is away for a: no route to host"]
        );
    }

    #[test]
    fn servers_that_are_no_nodes_and_a_cluster_without_a_leader_are_told_of() {
        let alone = follows("b", 9, ["away", "here", "away"])
            .replace("\"is_led\":true", "\"is_led\":false");
        let answers = [
            answer("http://b:1", &alone),
            failed("http://z:1", "no node"),
        ];
        let rows = rows(&answers);
        let row = rows.last().expect("there are some");
        assert_eq!((row.name.as_ref(), row.state), (None, State::Away));
        let wrong = wrong(&rows, &answers);
        assert!(
            wrong.contains(&"http://z:1 is away: no node".to_owned()),
            "{wrong:?}"
        );
        assert!(wrong.contains(&"no node leads".to_owned()), "{wrong:?}");
        assert!(wrong.contains(&"b is not in sync".to_owned()), "{wrong:?}");
    }

    #[test]
    fn a_store_that_is_only_read_has_no_roles() {
        let read = |name: &str, states| {
            let list = list(states);
            format!(r#"{{"node":"{name}","snapshot":3,"copy":null,"nodes":{list}}}"#)
        };
        let answers = [
            answer("http://a:1", &read("a", ["here", "tcp", "tcp"])),
            answer("http://b:1", &read("b", ["tcp", "here", "tcp"])),
        ];
        let rows = rows(&answers);
        assert_eq!(wrong(&rows, &answers), [""; 0]);
        assert_eq!(
            (rows[0].role, rows[0].in_sync, rows[2].in_sync),
            (Role::None, Some(true), None)
        );
    }
}
