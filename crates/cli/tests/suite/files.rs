//! What is in the files that `query --output` and `dump` write, and what is left of those that
//! they could not write, and of a store that `load` could not make?

use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const DATA: &str = "\
<http://e/a> <http://e/p> <http://e/b> .\n\
<http://e/a> <http://e/n> \"Zo\\u00EB \\\"Z\\\"\\n\"@nl .\n\
<http://e/a> <http://e/n> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/T> <http://e/g> .\n\
<http://e/a> <http://e/n> \"plain\" <http://e/g> .\n";

/// A folder with a store of these quads.
fn store() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.nq"), DATA).unwrap();
    run(folder.path(), &["load", "--location", "store", "data.nq"]);
    folder
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

#[track_caller]
fn run(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = output(folder, arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}");
    output.stdout
}

#[track_caller]
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = output(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

/// The lines of a text in N-Quads, sorted.
fn lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_dump_holds_the_store_in_every_format_and_compression() {
    let folder = store();
    let path = folder.path();
    // One line is written otherwise than it was read: the character itself for its escape.
    let expected = lines(DATA.replace("\\u00EB", "ë").as_bytes());
    let all = ["dump", "--location", "store"];
    assert_eq!(lines(&run(path, &all)), expected);
    for file in [
        "d.nq",
        "d.nq.gz",
        "d.nq.zst",
        "d.trig",
        "d.trig.gz",
        "d.jsonld",
    ] {
        run(path, &[&all[..], &["--output", file]].concat());
        let again = format!("again-{file}");
        run(path, &["load", "--location", &again, file]);
        assert_eq!(
            lines(&run(path, &["dump", "--location", &again])),
            expected,
            "{file}"
        );
    }
    let begin = |file: &str| std::fs::read(path.join(file)).unwrap()[..2].to_vec();
    assert_eq!(begin("d.nq.gz"), [0x1f, 0x8b]);
    assert_eq!(begin("d.nq.zst"), [0x28, 0xb5]);
    run(path, &[&all[..], &["-o", "d.parquet"]].concat());
    assert_eq!(begin("d.parquet"), *b"PA");
    run(path, &[&all[..], &["-o", "d.arrows"]].concat());
    assert_eq!(begin("d.arrows"), [0xff, 0xff]);
    assert!(names(path).iter().all(|name| !name.ends_with(".partial")));
}

#[test]
fn one_graph_can_be_dumped_with_or_without_its_name() {
    let folder = store();
    let dump = |rest: &[&str]| {
        let all = [&["dump", "--location", "store"], rest].concat();
        lines(&run(folder.path(), &all))
    };
    let named = dump(&["--graph", "http://e/g"]);
    assert_eq!(named.len(), 2);
    assert!(named.iter().all(|line| line.ends_with(" <http://e/g> .")));
    let bare = dump(&["--graph", "http://e/g", "--format", "nt"]);
    let without: Vec<String> = named
        .iter()
        .map(|line| line.replace(" <http://e/g>", ""))
        .collect();
    assert_eq!(bare, without);
    assert_eq!(dump(&["--default-graph"]).len(), 3);
    assert_eq!(dump(&["--default-graph", "--format", "nt"]).len(), 3);
    for format in ["ttl", "rdf", "n3"] {
        assert!(!dump(&["--default-graph", "--format", format]).is_empty());
    }
}

#[test]
fn a_dump_that_cannot_be_is_refused_and_leaves_nothing() {
    let folder = store();
    let path = folder.path();
    let dump = |rest: &[&str], parts: &[&str]| {
        let all = [&["dump", "--location", "store"], rest].concat();
        refused(path, &all, parts);
    };
    let before = names(path);
    dump(
        &["-o", "d.nt"],
        &["2 quads in named graphs", "--default-graph"],
    );
    dump(&["-o", "d.foo"], &[".foo", "--format"]);
    dump(&["-o", "d.nq.bz2"], &[".gz or .zst"]);
    dump(&["-o", "d.parquet.gz"], &["parquet", "drop .gz"]);
    dump(&["-o", "d.arrow"], &[".arrows"]);
    dump(&["-o", "no/such/d.nq"], &["no/such/d.nq"]);
    dump(&["--graph", "http://e/none"], &["no graph <http://e/none>"]);
    assert_eq!(names(path), before);
    // What was there before stays when the new file cannot be written.
    std::fs::write(
        path.join("odd.nt"),
        "<http://e/s> <http://e/> \"no local name\" .\n",
    )
    .unwrap();
    run(path, &["load", "--location", "odd", "odd.nt"]);
    std::fs::write(path.join("d.rdf"), "before").unwrap();
    refused(
        path,
        &["dump", "--location", "odd", "-o", "d.rdf"],
        &["rdf"],
    );
    assert_eq!(std::fs::read(path.join("d.rdf")).unwrap(), b"before");
    assert!(names(path).iter().all(|name| !name.ends_with(".partial")));
}

#[test]
fn a_query_writes_the_format_that_its_output_is_named_after() {
    let folder = store();
    let path = folder.path();
    let query = |text: &str, rest: &[&str]| {
        let all = [&["query", "--location", "store", "--query", text], rest].concat();
        run(path, &all)
    };
    let select = "SELECT ?s { ?s <http://e/p> ?o }";
    let read = |file: &str| std::fs::read(path.join(file)).unwrap();
    assert!(query(select, &["--output", "r.csv"]).is_empty());
    assert_eq!(read("r.csv"), b"s\r\nhttp://e/a\r\n");
    query(select, &["--output", "r.tsv.zst"]);
    assert_eq!(
        zstd::decode_all(&read("r.tsv.zst")[..]).unwrap(),
        b"?s\n<http://e/a>\n"
    );
    query(select, &["--output", "r.parquet"]);
    let parquet = read("r.parquet");
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    query(select, &["--output", "r.bin", "--results-format", "arrow"]);
    assert_eq!(query(select, &["--results-format", "arrow"]), read("r.bin"));
    let construct = "CONSTRUCT WHERE { ?s <http://e/p> ?o }";
    let line = b"<http://e/a> <http://e/p> <http://e/b> .\n";
    query(construct, &["--output", "r.nq"]);
    assert_eq!(read("r.nq"), line);
    for file in ["r.ttl", "r.rdf", "r.jsonld", "r.trig", "r.n3"] {
        query(construct, &["--output", file]);
        let again = "CONSTRUCT WHERE { ?s ?p ?o }";
        let (name, format) = match file {
            "r.n3" => (file, "turtle"),
            "r.rdf" => (file, "rdfxml"),
            file => (file, file.trim_start_matches("r.")),
        };
        let all = [
            "query", "--data", name, "--format", format, "--query", again,
        ];
        assert_eq!(run(path, &all), line, "{file}");
    }
    query(construct, &["--output", "r.parquet"]);
    assert_ne!(read("r.parquet"), parquet, "the file was replaced");
    let ask = |rest: &[&str], parts: &[&str]| {
        let all = [&["query", "--location", "store", "--query", "ASK {}"], rest].concat();
        refused(path, &all, parts);
    };
    ask(&["-o", "ask.parquet"], &["true or false"]);
    ask(&["-o", "ask.arrow"], &[".arrows"]);
    assert!(!path.join("ask.parquet").exists());
}

#[cfg(unix)]
#[test]
fn an_interrupted_query_leaves_the_file_as_it_was() {
    use std::process::Stdio;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut data = String::new();
    for n in 0..400 {
        data.push_str(&format!("<http://e/s{n}> <http://e/p> <http://e/o> .\n"));
    }
    std::fs::write(path.join("data.nt"), data).unwrap();
    run(path, &["load", "--location", "store", "data.nt"]);
    std::fs::write(path.join("r.csv"), "before").unwrap();
    // Ten billion rows: it does not end by itself.
    let text = "SELECT * { ?a ?p ?b . ?c ?q ?d . ?e ?r ?f . ?g ?s ?h }";
    let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .current_dir(path)
        .args([
            "query",
            "--location",
            "store",
            "--query",
            text,
            "-o",
            "r.csv",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let is_partial = |name: &String| name.ends_with(".partial");
    while !names(path).iter().any(is_partial) {
        assert!(
            child.try_wait().unwrap().is_none(),
            "the query ended by itself"
        );
        std::thread::yield_now();
    }
    let id = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &id])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"));
    assert_eq!(std::fs::read(path.join("r.csv")).unwrap(), b"before");
    assert!(!names(path).iter().any(is_partial));
}

#[test]
fn a_load_that_fails_leaves_the_place_of_a_new_store_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(
        path.join("good.nt"),
        "<http://e/a> <http://e/p> <http://e/b> .\n",
    )
    .unwrap();
    std::fs::write(path.join("bad.nt"), "<http://e/a> <http://e/p> .\n").unwrap();
    std::fs::create_dir(path.join("empty")).unwrap();
    std::fs::create_dir(path.join("other")).unwrap();
    std::fs::write(path.join("other/things"), "").unwrap();
    let before = ["bad.nt", "empty", "good.nt", "other"];
    for location in ["new", "far/away/new", "empty"] {
        let load = ["load", "--location", location];
        for (files, part) in [
            (&["absent.nt"][..], "absent.nt"),
            (&["good.nt", "absent.nt"], "absent.nt"),
            (&["good.nt", "other"], "other"),
            (&["good.nt", "bad.nt"], "bad.nt"),
        ] {
            refused(path, &[&load, files].concat(), &[part]);
            assert_eq!(names(path), before, "{location}: {files:?}");
            assert!(names(&path.join("empty")).is_empty(), "{files:?}");
        }
    }
    refused(
        path,
        &["load", "--location", "other", "good.nt"],
        &["other"],
    );
    assert_eq!(names(&path.join("other")), ["things"]);
    // What failed is in nobody's way.
    run(path, &["load", "--location", "far/away/new", "good.nt"]);
    run(path, &["load", "--location", "empty", "good.nt"]);
    let loaded = run(path, &["dump", "--location", "empty"]);
    assert_eq!(lines(&loaded).len(), 1);
    // A store that is there stays.
    refused(
        path,
        &["load", "--location", "empty", "absent.nt"],
        &["absent.nt"],
    );
    assert_eq!(run(path, &["dump", "--location", "empty"]), loaded);
}

#[test]
fn an_update_prints_what_it_changed() {
    let folder = store();
    let update = "INSERT DATA { <http://e/a> <http://e/p> <http://e/b> , <http://e/c> } ;
                  CLEAR GRAPH <http://e/g> ; DELETE DATA { <http://e/a> <http://e/p> <http://e/d> }";
    let update = [
        "update",
        "--location",
        "store",
        "--return-delta",
        "-u",
        update,
    ];
    let patch = String::from_utf8(run(folder.path(), &update)).unwrap();
    let mut lines: Vec<&str> = patch.lines().collect();
    lines[1..3].sort_unstable();
    let expected = [
        "TX .",
        "D <http://e/a> <http://e/n> \"plain\" <http://e/g> .",
        "D <http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/T> <http://e/g> .",
        "A <http://e/a> <http://e/p> <http://e/c> .",
        "TC .",
    ];
    assert_eq!(lines, expected);
}

/// What a load of these names said, and the objects that it stored.
fn loaded(folder: &Path, names: &[&str]) -> (String, Vec<String>) {
    let _absent = std::fs::remove_dir_all(folder.join("new"));
    let output = output(folder, &[&["load", "--location", "new"], names].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{names:?}: {said}");
    let ask = "SELECT ?o { ?s ?p ?o } ORDER BY ?o";
    let query = [
        "query",
        "--location",
        "new",
        "--results-format",
        "tsv",
        "--query",
        ask,
    ];
    let rows = String::from_utf8(run(folder, &query)).unwrap();
    (said, rows.lines().skip(1).map(str::to_owned).collect())
}

#[test]
fn folders_and_patterns_stand_for_the_files_in_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir_all(folder.join("data/inner")).unwrap();
    let triple = |object: &str| format!("<http://e/s> <http://e/p> \"{object}\" .\n");
    for (name, object) in [
        ("data/b.nt", "b"),
        ("data/a.ttl", "a"),
        ("data/inner/c.nq", "c"),
        ("data/notes.md", "no triple"),
        ("data/[x].nt", "x"),
    ] {
        std::fs::write(folder.join(name), triple(object)).unwrap();
    }
    let quoted = |objects: &[&str]| -> Vec<String> {
        objects
            .iter()
            .map(|object| format!("\"{object}\""))
            .collect()
    };
    let (said, objects) = loaded(folder, &["data"]);
    assert_eq!(objects, quoted(&["a", "b", "c", "x"]));
    assert!(said.contains("left out: data/notes.md"), "{said}");
    assert_eq!(loaded(folder, &["data/*.nt"]).1, quoted(&["b", "x"]));
    assert_eq!(
        loaded(folder, &["data/**/*.n?"]).1,
        quoted(&["b", "c", "x"])
    );
    // A file that is there is no pattern.
    assert_eq!(
        loaded(folder, &["data/[x].nt", "data/a.ttl"]).1,
        quoted(&["a", "x"])
    );
    std::fs::create_dir(folder.join("empty")).unwrap();
    for (name, said) in [
        ("empty", "no file whose ending tells a format"),
        ("data/*.trig", "no file whose ending tells a format"),
        ("data/*.md", "no file whose ending tells a format"),
        ("data/***.nt", "no pattern"),
    ] {
        refused(folder, &["load", "--location", "none", name], &[name, said]);
    }
}

#[test]
fn a_load_says_what_it_left_out_what_is_odd_and_what_is_misnamed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let bad = "<http://e/s> <http://e/p> \"not closed .\n".repeat(6);
    let odd = "<http://e/s> <http://e/p> <http://e/[x]>, \"y\"@zh-classical .\n";
    std::fs::write(
        folder.join("x.owl"),
        format!("@prefix e: <http://e/> .\n{bad}{odd}"),
    )
    .unwrap();
    let (said, objects) = loaded(folder, &["--lenient", "x.owl"]);
    assert_eq!(objects, ["<http://e/[x]>", "\"y\"@zh-classical"]);
    for part in [
        "x.owl: read as Turtle",
        "left out: x.owl:2:",
        "6 errors in all: 6 of strings",
        "1 statements with IRIs that RFC 3987 refuses, 1 with language tags that RFC 5646 refuses",
    ] {
        assert!(said.contains(part), "{part:?} is not in {said}");
    }
    // Such terms can be asked for, by the same text or by their characters, and removed.
    let ask = |pattern: &str| {
        let query = format!("ASK {{ {pattern} }}");
        let answer = run(
            folder,
            &[
                "query",
                "--location",
                "new",
                "--results-format",
                "tsv",
                "--query",
                &query,
            ],
        );
        String::from_utf8(answer).unwrap().contains("true")
    };
    for pattern in [
        "?s ?p <http://e/[x]>",
        "?s ?p ?o FILTER(?o = <http://e/[x]>)",
        "?s ?p ?o FILTER(STR(?o) = 'http://e/[x]')",
        "?s ?p 'y'@zh-classical",
        "?s ?p ?o FILTER(LANG(?o) = 'zh-classical')",
    ] {
        assert!(ask(pattern), "{pattern}");
    }
    let update = "DELETE DATA { <http://e/s> <http://e/p> <http://e/[x]> }";
    run(folder, &["update", "--location", "new", "--update", update]);
    assert!(!ask("?s ?p <http://e/[x]>"));
    refused(
        folder,
        &["load", "--location", "strict", "x.owl"],
        &["x.owl:2:"],
    );
}

#[test]
fn a_dump_in_parquet_loads_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let data = "\
<http://e/a> <http://e/p> <http://e/b> .\n\
<http://e/a> <http://e/p> <http://e/\u{fc}\u{1f600}> <http://e/g> .\n\
_:x <http://e/p> _:x _:x .\n\
<http://e/a> <http://e/p> _:x <http://e/h> .\n\
<http://e/a> <http://e/p> \"\" .\n\
<http://e/a> <http://e/p> \"a\\\"b\\\\c\\n\\r\\t\\u0000\u{1f600}\" .\n\
<http://e/a> <http://e/p> \"x\"@en-gb .\n\
<http://e/a> <http://e/p> \"01\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n\
<http://e/a> <http://e/p> \"1\"^^<http://www.w3.org/2001/XMLSchema#integer> <http://e/g> .\n\
<http://e/a> <http://e/p> \"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> .\n\
<http://e/a> <http://e/p> \"true\"^^<http://www.w3.org/2001/XMLSchema#boolean> .\n\
<http://e/a> <http://e/p> \"2020-01-01T00:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n\
<http://e/a> <http://e/p> \"_:x\"^^<http://e/t> .\n";
    let many: String = (0..10_000)
        .map(|n| format!("<http://e/s{n}> <http://e/q> \"{n}\" .\n"))
        .collect();
    std::fs::write(folder.join("data.nq"), data.to_owned() + &many).unwrap();
    let dumped = |store: &str| {
        // Labels of blank nodes are another load's.
        let text = run(folder, &["dump", "--location", store, "--format", "nq"]);
        let words = |line: String| {
            let word = |word: &str| match word.starts_with("_:f") {
                true => "_:x".to_owned(),
                false => word.to_owned(),
            };
            let words: Vec<String> = line.split(' ').map(word).collect();
            words.join(" ")
        };
        let mut found: Vec<String> = lines(&text).into_iter().map(words).collect();
        found.sort();
        found
    };
    run(folder, &["load", "--location", "first", "data.nq"]);
    run(
        folder,
        &["dump", "--location", "first", "--output", "dump.parquet"],
    );
    run(folder, &["load", "--location", "second", "dump.parquet"]);
    let (first, second) = (dumped("first"), dumped("second"));
    assert_eq!(first.len(), 10_013);
    assert!(
        first == second,
        "{:?}",
        first.iter().zip(&second).find(|(a, b)| a != b)
    );
    // One graph has no names of graphs.
    let one = [
        "dump",
        "--location",
        "first",
        "--default-graph",
        "--output",
        "one.parquet",
    ];
    run(folder, &one);
    run(folder, &["load", "--location", "third", "one.parquet"]);
    assert_eq!(dumped("third").len(), 10_000 + 9);
    // Rows of a query are no graph.
    let select = "SELECT ?s { ?s ?p ?o } LIMIT 1";
    run(
        folder,
        &[
            "query",
            "--location",
            "first",
            "--query",
            select,
            "--output",
            "rows.parquet",
        ],
    );
    refused(
        folder,
        &["load", "--location", "none", "rows.parquet"],
        &["rows.parquet", "subject"],
    );
    std::fs::write(folder.join("text.parquet"), "PAR1 but no more").unwrap();
    refused(
        folder,
        &["load", "--location", "none", "text.parquet"],
        &["no Parquet file"],
    );
}

#[test]
fn contexts_are_given_as_files() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let document = r#"{"@context": "http://c/x=y", "@id": "http://e/a", "p": "o"}"#;
    std::fs::write(folder.join("a.jsonld"), document).unwrap();
    std::fs::write(
        folder.join("c.json"),
        r#"{"@context": {"p": "http://e/p"}}"#,
    )
    .unwrap();
    let load = ["load", "--location", "none", "a.jsonld"];
    refused(folder, &load, &["--context http://c/x=y=FILE"]);
    let (_, objects) = loaded(folder, &["--context", "http://c/x=y=c.json", "a.jsonld"]);
    assert_eq!(objects, ["\"o\""]);
    let wrong = ["load", "--location", "none", "a.jsonld", "--context"];
    refused(
        folder,
        &[&wrong[..], &["http://c/=missing"]].concat(),
        &["missing"],
    );
    std::fs::write(folder.join("no.json"), "{}").unwrap();
    refused(
        folder,
        &[&wrong[..], &["http://c/=no.json"]].concat(),
        &["no.json", "@context"],
    );
}

/// What is in the files of a store, by their names.
fn stored_files(folder: &Path) -> std::collections::BTreeMap<String, Vec<u8>> {
    let file = |name: String| {
        let bytes = std::fs::read(folder.join(&name)).unwrap();
        (name, bytes)
    };
    names(folder).into_iter().map(file).collect()
}

#[test]
fn a_small_load_into_a_large_store_writes_what_it_brings() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let triples = |numbers: std::ops::Range<usize>| -> String {
        let triple = |n: usize| format!("<http://e/s{n}> <http://e/p{}> \"{n}\" .\n", n % 10);
        numbers.map(triple).collect()
    };
    std::fs::write(folder.join("large.nt"), triples(0..200_000)).unwrap();
    run(folder, &["load", "--location", "store", "large.nt"]);
    let before = stored_files(&folder.join("store"));
    std::fs::write(folder.join("small.nt"), triples(200_000..200_010)).unwrap();
    run(folder, &["load", "--location", "store", "small.nt"]);
    let after = stored_files(&folder.join("store"));
    assert_eq!(before.len(), after.len());
    let mut changed = 0;
    for (name, bytes) in &after {
        let old = &before[name];
        assert_eq!(old.len(), bytes.len(), "{name}");
        // The log has its room from the first on.
        let differs = old.iter().zip(bytes).filter(|(a, b)| a != b).count();
        assert!(differs == 0 || name.starts_with("log-"), "{name}");
        changed += differs;
    }
    let whole: usize = after.values().map(Vec::len).sum();
    assert!((200..4096).contains(&changed), "{changed} of {whole} bytes");
    let count = [
        "query",
        "--location",
        "store",
        "--results-format",
        "tsv",
        "--query",
    ];
    let count = run(
        folder,
        &[&count[..], &["SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"]].concat(),
    );
    assert!(String::from_utf8(count).unwrap().contains("200010"));
}

#[test]
fn a_load_with_little_memory_makes_the_same_store_and_refuses_what_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for n in 0..80_000 {
        let graph = if n % 5 == 0 { " <http://e/g>" } else { "" };
        text += &format!(
            "<http://example.org/person/number/{}> <http://e/p{}> \"the name {n}\"{graph} .\n",
            n / 3,
            n % 3
        );
    }
    std::fs::write(folder.path().join("data.nq"), text).unwrap();
    let load = |location: &'static str, more: &[&'static str]| {
        let mut arguments = vec!["load", "--location", location, "--threads", "1"];
        arguments.extend_from_slice(more);
        arguments.push("data.nq");
        arguments
    };
    run(folder.path(), &load("free", &[]));
    let bounded = load("bounded", &["--memory", "48MiB"]);
    run(folder.path(), &bounded);
    assert_eq!(
        names(&folder.path().join("bounded")),
        names(&folder.path().join("free"))
    );
    let dump = |location| run(folder.path(), &["dump", "--location", location]);
    assert!(dump("bounded") == dump("free"), "in the same order, too");
    run(folder.path(), &["verify", "--location", "bounded"]);
    refused(folder.path(), &bounded, &["--memory", "has data already"]);
    let small = load("small", &["--memory", "2MiB"]);
    refused(folder.path(), &small, &["50331648 bytes of memory"]);
    assert!(!folder.path().join("small").exists());
}
