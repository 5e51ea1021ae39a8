//! What does a person see who makes, feeds and reads streams of a running server?

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// Rooms that are warm, each second.
const WARM: &str = "PREFIX : <http://e/>
SELECT ?sensor ?degrees
FROM STREAM readings [RANGE 1s STEP 1s]
WHERE { ?sensor :reads ?degrees FILTER(?degrees > 20) }
";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command
}

/// A server that listens, and its address.
fn serve(folder: &Path, bind: &str, options: &[&str]) -> (Child, String) {
    let serve = [&["serve", "--bind", bind], options].concat();
    let mut child = command(folder, &serve)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert_ne!(said.read_line(&mut line).unwrap(), 0, "it ended");
        if let Some((_, rest)) = line.split_once("http://") {
            break rest.split('/').next().unwrap().to_owned();
        }
    };
    // Nobody reads the rest, of which there is little.
    std::thread::spawn(move || said.read_to_string(&mut String::new()));
    (child, address)
}

/// A server that is ended with the test.
struct Serving {
    folder: TempDir,
    child: Child,
    url: String,
}

impl Serving {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (child, address) = serve(folder.path(), "127.0.0.1:0", options);
        Self {
            folder,
            child,
            url: format!("http://{address}"),
        }
    }

    /// Kills the server, and starts one at the same address.
    fn start_again(&mut self, options: &[&str]) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let address = self.url.strip_prefix("http://").unwrap();
        self.child = serve(self.folder.path(), address, options).0;
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// A command `jindou stream` about this server.
    fn stream(&self, arguments: &[&str]) -> Command {
        let all = [&["stream"], arguments, &["--url", &self.url]].concat();
        command(self.folder.path(), &all)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.stream(arguments).output().unwrap()
    }

    /// What it prints, on both outputs.
    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> (String, String) {
        let output = self.run(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments:?}: {said}");
        (String::from_utf8(output.stdout).unwrap(), said)
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    }

    /// With a stream and a query of it.
    fn with_query() -> Self {
        let server = Self::start();
        server.write("warm.rq", WARM.as_bytes());
        let iri = ["--iri", "http://e/readings"];
        server.succeeds(&[&["create", "readings"], &iri[..]].concat());
        server.succeeds(&["register", "warm", "warm.rq"]);
        server
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Readings of three seconds.
fn lines() -> String {
    let line = |(time, sensor, degrees): (i64, &str, i64)| {
        format!(
            "{time}\t<http://e/{sensor}> <http://e/reads> \
             \"{degrees}\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n"
        )
    };
    let readings = [
        (100, "a", 19),
        (200, "b", 21),
        (1100, "a", 22),
        (2900, "c", 25),
    ];
    readings.map(line).concat()
}

#[test]
fn a_replay_gives_results_to_who_watches() {
    let server = Serving::with_query();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(lines().as_bytes()).unwrap();
    server.write("readings.tsv.gz", &gzip.finish().unwrap());
    let watch = ["watch", "warm", "--after", "0", "--limit", "3"];
    let watcher = server
        .stream(&watch)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (_, said) = server.succeeds(&["replay", "readings", "readings.tsv.gz"]);
    assert!(said.starts_with("replayed 4 tuples in "), "{said}");
    assert!(said.ends_with(" s, 0 of them late\n"), "{said}");
    let seen = watcher.wait_with_output().unwrap();
    assert!(seen.status.success());
    let seen = String::from_utf8(seen.stdout).unwrap();
    let first = concat!(
        "instant 1000\n ?sensor | ?degrees\n---------+----------\n",
        " :b      | 21\n(1 row)\n",
    );
    assert!(seen.starts_with(first), "{seen}");
    for part in [
        "instant 2000\n",
        ":a      | 22",
        "instant 3000\n",
        ":c      | 25",
    ] {
        assert!(seen.contains(part), "{part:?} is not in {seen}");
    }
    let json = ["watch", "warm", "--after", "2", "--limit", "1", "--json"];
    let (line, _) = server.succeeds(&json);
    let result: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&result["instant"], &result["query"]),
        (&3000.into(), &"warm".into())
    );
    let (list, _) = server.succeeds(&["list"]);
    for part in ["readings", "http://e/readings", "warm", "3000"] {
        assert!(list.contains(part), "{part:?} is not in {list}");
    }
    let (list, _) = server.succeeds(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["streams"][0]["tuples"], 4);
    assert_eq!(list["continuous"][0]["rows"], 3);
}

#[test]
fn a_replay_is_paced_by_the_time_of_its_tuples() {
    let server = Serving::with_query();
    server.write(
        "readings.tsv.zst",
        &zstd::encode_all(lines().as_bytes(), 0).unwrap(),
    );
    let begun = std::time::Instant::now();
    let pace = ["--pace", "20", "--no-heartbeat"];
    server.succeeds(&[&["replay", "readings", "readings.tsv.zst"], &pace[..]].concat());
    // 2.8 s of them, twenty times as fast: no less, whatever the machine does.
    assert!(begun.elapsed() >= std::time::Duration::from_millis(140));
    let (list, _) = server.succeeds(&["list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["streams"][0]["stable_ms"], 2900);
    server.succeeds(&["heartbeat", "readings", "3000"]);
    let (line, _) = server.succeeds(&["watch", "warm", "--after", "2", "--limit", "1", "--json"]);
    assert!(line.contains("\"instant\":3000"), "{line}");
}

#[test]
fn tuples_are_pushed_as_lines_and_as_documents() {
    let server = Serving::with_query();
    server.write("lines.tsv", lines().as_bytes());
    let (report, _) = server.succeeds(&["push", "readings", "lines.tsv"]);
    assert_eq!(report, "4 accepted, 0 late\n");
    server.write("now.ttl", b"@prefix : <http://e/> . :d :reads 30 .");
    let (report, _) = server.succeeds(&["push", "readings", "now.ttl", "--time", "50"]);
    assert_eq!(report, "0 accepted, 1 late\n");
    let said = server.fails(&["push", "readings", "now.ttl"]);
    assert!(
        said.contains("has times of events, and none is given"),
        "{said}"
    );
}

#[test]
fn a_query_that_ends_ends_those_who_watch_it() {
    let server = Serving::with_query();
    let mut watcher = server.stream(&["watch", "warm", "--after", "0"]);
    let watcher = watcher.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watcher = watcher.spawn().unwrap();
    server.write("lines.tsv", lines().as_bytes());
    server.succeeds(&["replay", "readings", "lines.tsv"]);
    // It reads by now.
    let mut first = [0];
    watcher
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut first)
        .unwrap();
    let said = server.fails(&["drop", "readings"]);
    assert!(
        said.contains("the continuous query warm reads readings"),
        "{said}"
    );
    server.succeeds(&["unregister", "warm"]);
    let seen = watcher.wait_with_output().unwrap();
    assert!(seen.status.success());
    assert_eq!(
        String::from_utf8(seen.stderr).unwrap(),
        "the query warm was dropped\n"
    );
    server.succeeds(&["drop", "readings"]);
    let said = server.fails(&["drop", "readings"]);
    assert!(said.contains("there is no stream readings"), "{said}");
}

#[test]
fn who_watches_goes_on_when_the_server_is_there_again() {
    const STORE: [&str; 2] = ["--location", "store"];
    let mut server = Serving::start_with(&STORE);
    server.write("warm.rq", WARM.as_bytes());
    let create = [
        "create",
        "readings",
        "--iri",
        "http://e/readings",
        "--durable",
    ];
    server.succeeds(&create);
    server.succeeds(&["register", "warm", "warm.rq"]);
    server.write("lines.tsv", lines().as_bytes());
    server.succeeds(&["push", "readings", "lines.tsv"]);
    let watch = |more: &[&str]| {
        let arguments = [&["watch", "warm", "--after", "0", "--json"], more].concat();
        let mut watcher = server.stream(&arguments);
        let watcher = watcher.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut watcher = watcher.spawn().unwrap();
        let results = BufReader::new(watcher.stdout.take().unwrap());
        let notes = BufReader::new(watcher.stderr.take().unwrap());
        (watcher, results, notes)
    };
    let (mut stays, mut results, mut notes) = watch(&["--limit", "3"]);
    let (mut ends, mut others, mut reasons) = watch(&["--once"]);
    let sequence = |results: &mut dyn BufRead| {
        let mut line = String::new();
        results.read_line(&mut line).unwrap();
        let result: serde_json::Value = serde_json::from_str(&line).unwrap();
        result["sequence"].as_u64()
    };
    for results in [&mut results, &mut others] {
        assert_eq!([1, 2].map(|_| sequence(results)), [Some(1), Some(2)]);
    }
    server.start_again(&STORE);
    let mut said = String::new();
    notes.read_line(&mut said).unwrap();
    assert!(said.contains("connecting again until Ctrl-C"), "{said}");
    said.clear();
    notes.read_line(&mut said).unwrap();
    assert_eq!(said, "connected again\n");
    server.succeeds(&["heartbeat", "readings", "3000"]);
    assert_eq!(sequence(&mut results), Some(3));
    assert!(stays.wait().unwrap().success());
    assert_eq!(ends.wait().unwrap().code(), Some(1));
    said.clear();
    reasons.read_to_string(&mut said).unwrap();
    assert!(
        said.contains("--after 2 goes on once it is there again"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_said_in_its_place() {
    let server = Serving::with_query();
    server.write("wrong.rq", WARM.replace("FILTER", "FILTR").as_bytes());
    let said = server.fails(&["register", "wrong", "wrong.rq"]);
    let lines: Vec<&str> = said.lines().collect();
    let [first, line, caret] = &*lines else {
        panic!("{said}");
    };
    assert!(
        first.starts_with("error: wrong.rq, line 4, column "),
        "{first}"
    );
    assert!(line.contains("FILTR") && caret.trim() == "^", "{said}");
    server.write(
        "bad.tsv",
        b"1\t<http://e/a> <http://e/p> \"1\" .\nsoon\t<a> <b> <c> .\n",
    );
    let said = server.fails(&["replay", "readings", "bad.tsv"]);
    assert!(
        said.contains("bad.tsv: line 2: a line has a time"),
        "{said}"
    );
    let wrong = ["create", "x", "--iri", "http://e/x", "--time", "yesterday"];
    let said = server.fails(&wrong);
    assert!(said.contains("`event` or `arrival`"), "{said}");
    server.succeeds(&[
        "create",
        "now",
        "--iri",
        "http://e/now",
        "--time",
        "arrival",
    ]);
    let said = server.fails(&["replay", "now", "bad.tsv"]);
    assert!(said.contains("has times of arrival"), "{said}");
    let output = command(
        server.folder.path(),
        &["stream", "list", "--url", "http://127.0.0.1:1"],
    );
    let output = { output }.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is a server there?"), "{said}");
}

#[test]
fn what_is_refused_of_files_is_said_with_file_and_line() {
    let server = Serving::with_query();
    let good = "1000\t<http://e/a> <http://e/p> \"1\" .\n";
    let wrong = "1000\t<http://e/a> <http://e/p> .\n";
    let far = "99999999999999999\t<http://e/a> <http://e/p> \"1\" .\n";
    server.write("wrong.tsv", format!("{good}{wrong}").as_bytes());
    server.write("far.tsv", format!("{good}{far}").as_bytes());
    server.write("wrong.ttl", b"@prefix : <http://e/> .\n:a :p .\n");
    server.write("untold", b"1000 <http://e/a> <http://e/p> 1 .\n");
    let push = |file: &str| server.fails(&["push", "readings", file]);
    let said = push("wrong.tsv");
    assert!(
        said.starts_with("error: wrong.tsv, line 2, column 32: "),
        "{said}"
    );
    assert!(
        said.contains("\n  1000 <http://e/a> <http://e/p> .\n"),
        "{said}"
    );
    let said = push("far.tsv");
    assert!(
        said.starts_with("error: far.tsv, line 2: the time 9999"),
        "{said}"
    );
    let said = server.fails(&["push", "readings", "wrong.ttl", "--time", "1"]);
    assert!(
        said.starts_with("error: wrong.ttl, line 2, column "),
        "{said}"
    );
    let said = push("untold");
    assert!(
        said.contains("--format") && said.contains("untold, line 1: "),
        "{said}"
    );
    let said = server.fails(&["push", "absent", "wrong.tsv"]);
    assert_eq!(said, "error: there is no stream absent\n");

    // What is sent together comes from several files, and several parts come from one.
    server.write("begin.tsv", format!("{good}\n{good}").as_bytes());
    let replay = |files: &[&str]| server.fails(&[&["replay", "readings"], files].concat());
    let said = replay(&["begin.tsv", "wrong.tsv"]);
    assert!(said.starts_with("error: wrong.tsv: line 2: "), "{said}");
    assert!(
        said.ends_with("; no line was taken from line 1 of begin.tsv on\n"),
        "{said}"
    );
    let said = replay(&["begin.tsv", "far.tsv"]);
    assert!(
        said.starts_with("error: far.tsv: line 2: the time 9999"),
        "{said}"
    );
    let many = (1 << 20) / good.len() + 1;
    server.write("long.tsv", (good.repeat(many) + wrong).as_bytes());
    let said = replay(&["begin.tsv", "long.tsv"]);
    let place = format!("error: long.tsv: line {}: ", many + 1);
    assert!(said.starts_with(&place), "{said}");
    let from = (1 << 20) / good.len() - 1;
    let from = format!("; no line was taken from line {from} of long.tsv on\n");
    assert!(said.ends_with(&from), "{said}");
    let said = replay(&["."]);
    assert!(
        said.contains(".: cannot read the file: Is a directory"),
        "{said}"
    );
}

#[test]
fn files_are_decompressed_by_what_they_hold() {
    let server = Serving::with_query();
    server.write("plain.tsv.gz", lines().as_bytes());
    server.write(
        "zstd.tsv",
        &zstd::encode_all(lines().as_bytes(), 0).unwrap(),
    );
    let (report, _) = server.succeeds(&["push", "readings", "plain.tsv.gz"]);
    assert_eq!(report, "4 accepted, 0 late\n");
    let (_, said) = server.succeeds(&["replay", "readings", "zstd.tsv"]);
    assert!(said.starts_with("replayed 4 tuples in "), "{said}");
}

#[test]
fn times_in_seconds_are_pointed_out_where_all_tuples_are_late() {
    let server = Serving::with_query();
    let line = |time: &str| format!("{time}\t<http://e/a> <http://e/reads> \"1\" .\n");
    server.write("ms.tsv", line("1700000000000").as_bytes());
    let seconds = line("1700000000") + &line("1700000600");
    server.write("seconds.tsv", seconds.as_bytes());
    server.write("mixed.tsv", (seconds + &line("1700000000000")).as_bytes());
    server.write("late.tsv", line("1600000000000").as_bytes());
    server.write("doc.nt", b"<http://e/a> <http://e/reads> \"1\" .\n");
    let push = |arguments: &[&str]| server.succeeds(&[&["push", "readings"], arguments].concat());
    assert_eq!(push(&["ms.tsv"]).1, "");
    let (report, said) = push(&["seconds.tsv"]);
    assert_eq!(report, "0 accepted, 2 late\n");
    assert!(said.contains("look like seconds"), "{said}");
    let (_, said) = push(&["doc.nt", "--time", "1700000000"]);
    assert!(said.contains("look like seconds"), "{said}");
    // Some were in time; or they are late as milliseconds are.
    assert_eq!(
        push(&["mixed.tsv"]),
        ("1 accepted, 2 late\n".to_owned(), String::new())
    );
    assert_eq!(
        push(&["late.tsv"]),
        ("0 accepted, 1 late\n".to_owned(), String::new())
    );
    let (_, said) = server.succeeds(&["replay", "readings", "seconds.tsv"]);
    assert_eq!(said.matches("look like seconds").count(), 1, "{said}");
}

#[test]
fn a_file_that_is_too_large_is_refused_with_what_to_do() {
    let server = Serving::start_with(&["--max-body", "2MiB"]);
    server.succeeds(&["create", "readings", "--iri", "http://e/readings"]);
    server.write("large.tsv", &vec![b'\n'; 64 << 20]);
    let said = server.fails(&["push", "readings", "large.tsv"]);
    let expected = "error: the body is larger than the 2097152 bytes that --max-body sets; \
                    `jindou stream replay` sends files in parts\n";
    assert_eq!(said, expected);
    server.write("small.tsv", (lines() + &"\n".repeat(3 << 19)).as_bytes());
    let (report, _) = server.succeeds(&["push", "readings", "small.tsv"]);
    assert_eq!(report, "4 accepted, 0 late\n");
}

#[test]
fn a_name_is_no_address() {
    let server = Serving::with_query();
    for arguments in [
        ["drop", "readings?x=1#y"],
        ["unregister", "warm?a"],
        ["unregister", "warm/../warm"],
        ["heartbeat", "readings%20"],
        ["watch", "warm#"],
    ] {
        let output = server.run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("a name has"), "{said}");
    }
    let (list, _) = server.succeeds(&["list"]);
    assert!(list.contains("readings") && list.contains("warm"), "{list}");
}

#[test]
fn times_as_far_apart_as_can_be_are_paced() {
    let server = Serving::with_query();
    let tuple = "<http://e/a> <http://e/p> \"1\" .\n";
    let lines = format!("{}\t{tuple}{}\t{tuple}", i64::MIN, i64::MAX);
    server.write("far.tsv", lines.as_bytes());
    let output = server.run(&["replay", "readings", "far.tsv", "--pace", "1e300"]);
    let said = String::from_utf8(output.stderr).unwrap();
    // Whether a stream may have such times is the server's to say.
    assert!(
        !said.contains("panicked") && output.status.code() != Some(101),
        "{said}"
    );
}

#[test]
fn who_watches_a_subscription_sees_what_is_gone() {
    let server = Serving::with_query();
    server.write("all.rq", b"SELECT ?x ?y WHERE { ?x <http://e/p> ?y }");
    server.succeeds(&["register", "all", "all.rq"]);
    for text in [
        "INSERT DATA { <http://e/a> <http://e/p> 1 }",
        "DELETE DATA { <http://e/a> <http://e/p> 1 }",
    ] {
        let sent = ureq::post(format!("{}/update", server.url))
            .header("Content-Type", "application/sparql-update")
            .send(text);
        assert!(sent.unwrap().status().is_success());
    }
    let (seen, _) = server.succeeds(&["watch", "all", "--after", "0", "--limit", "3"]);
    assert!(seen.contains("\n <http://e/a> | 1\n"), "{seen}");
    assert!(seen.ends_with("\n- <http://e/a> | 1\n-(1 row)\n"), "{seen}");
    // By the prefixes of the store, as `jindou query` shows them.
    let table = ureq::put(format!("{}/prefixes", server.url))
        .header("Content-Type", "application/json")
        .send(r#"{"e": "http://e/"}"#);
    assert!(table.unwrap().status().is_success());
    let watch = ["watch", "all", "--after", "0", "--limit", "2"];
    let (short, _) = server.succeeds(&watch);
    assert!(short.contains("\n e:a | 1\n"), "{short}");
    let (whole, _) = server.succeeds(&[&watch[..], &["--full-iris"]].concat());
    assert!(whole.contains("\n <http://e/a> | 1\n"), "{whole}");
}
