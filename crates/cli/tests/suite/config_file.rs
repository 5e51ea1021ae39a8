//! Do the command line, the environment and a file give options in this order of weight?

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a server says that ends at its start, with this file.
#[track_caller]
fn says(folder: &Path, file: &str, arguments: &[&str], variables: &[(&str, &str)]) -> String {
    std::fs::write(folder.join("jindou.toml"), file).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command.current_dir(folder).arg("serve").args(arguments);
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    assert!(
        !output.status.success(),
        "{file} {arguments:?} {variables:?}"
    );
    String::from_utf8(output.stderr).unwrap()
}

const CONFIG: [&str; 2] = ["--config", "jindou.toml"];

#[test]
fn what_is_wrong_in_a_file_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    for (file, said) in [
        (
            "# first\nbindd = \":0\"",
            "jindou.toml, line 2, column 1: `jindou serve` has no option bindd; did you mean bind?",
        ),
        (
            "xyz = 1",
            "line 1, column 1: `jindou serve` has no option xyz\n",
        ),
        (
            "timeout = \"1s\"",
            "has no option timeout; did you mean query-timeout?",
        ),
        ("config = \"other.toml\"", "has no option config"),
        ("help = true", "has no option help"),
        ("bind = \":0\"\nbind = \":1\"", "line 2, column 1: "),
        ("max-rows = ", "line 1, column 12: "),
        (
            "read-only = \"yes\"",
            "line 1, column 13: read-only is true or false",
        ),
        ("bind = [\":0\"]", "line 1, column 8: bind has one value"),
        (
            "bind = true",
            "line 1, column 8: bind takes a string or a number",
        ),
        (
            "allow-load = [[1]]",
            "line 1, column 15: allow-load takes strings or numbers",
        ),
        (
            "[bind]\nx = 1",
            "line 2, column 1: `jindou serve` has no option bind-x",
        ),
        (
            "[tls]\nkey = \"k\"\n[a]\n[tls.b]\n",
            "the following required arguments were not provided:\n  --tls-certificate",
        ),
        (
            "tls-key = \"k\"\n[tls]\nkey = \"k\"",
            "line 3, column 1: tls-key is given twice",
        ),
        (
            "\"é\".x = 1",
            "line 1, column 5: `jindou serve` has no option é-x",
        ),
        (
            "  query-timeout = \"soon\"",
            "line 1, column 3: invalid value 'soon' for '--query-timeout <TIME>'",
        ),
        (
            "fsync = \"sometimes\"",
            "line 1, column 1: invalid value 'sometimes' for '--fsync <WHEN>' [possible values: always, never]",
        ),
        ("heavy-queries = 0", "give a whole number from 1 on"),
        (
            "max-rows = -1",
            "line 1, column 1: invalid value '-1' for '--max-rows <N>'",
        ),
        (
            "anonymous = \"read\"",
            "were not provided:\n  --credentials <FILE>",
        ),
    ] {
        let told = says(folder.path(), file, &CONFIG, &[]);
        assert!(told.contains(said), "{file}: {told}");
    }
    let said = says(folder.path(), "", &["--config", "none.toml"], &[]);
    assert!(said.contains("--config none.toml: No such file"), "{said}");
}

#[test]
fn what_is_wrong_in_a_variable_is_told_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    for (variable, value, said) in [
        (
            "JINDOU_QUERY_TIMEOUT",
            "soon",
            "invalid value 'soon' for 'JINDOU_QUERY_TIMEOUT (--query-timeout <TIME>)': not a time",
        ),
        (
            "JINDOU_FSYNC",
            "sometimes",
            "invalid value 'sometimes' for 'JINDOU_FSYNC (--fsync <WHEN>)'",
        ),
        (
            "JINDOU_READ_ONLY",
            "perhaps",
            "invalid value 'perhaps' for 'JINDOU_READ_ONLY (--read-only)'",
        ),
        (
            "JINDOU_CORS_ORIGIN",
            "https://a.example,x y",
            "invalid value 'x y' for 'JINDOU_CORS_ORIGIN (--cors-origin <ORIGIN>)'",
        ),
    ] {
        let told = says(folder.path(), "", &[], &[(variable, value)]);
        assert!(told.contains(said), "{variable}: {told}");
    }
    // The command line goes before, and then it is that which is wrong.
    let both = [("JINDOU_QUERY_TIMEOUT", "soon")];
    let told = says(folder.path(), "", &["--query-timeout", "late"], &both);
    assert!(
        told.contains("invalid value 'late' for '--query-timeout <TIME>'"),
        "{told}"
    );
    let misspelt = [("JINDOU_ALLOW_LOD", "x"), ("JINDOU_ALLOW_LOAD", "no/1")];
    let told = says(folder.path(), "", &[], &misspelt);
    let warning = "warning: JINDOU_ALLOW_LOD names no option; did you mean JINDOU_ALLOW_LOAD?";
    assert!(told.starts_with(warning), "{told}");
}

#[test]
fn a_source_goes_before_those_of_less_weight() {
    let folder = tempfile::tempdir().unwrap();
    // All but the last of those that are named would be loaded.
    let file = "credentials = \"of-file\"\nallow-load = [\"no/1\", \"no/2\"]\nport = 0x10";
    let by_variable = ("JINDOU_CONFIG", "jindou.toml");
    for (arguments, variables, said) in [
        (&CONFIG[..], &[][..], "--allow-load no/1"),
        (&["--config=jindou.toml"], &[], "--allow-load no/1"),
        (&[], &[by_variable], "--allow-load no/1"),
        (
            &[],
            &[by_variable, ("JINDOU_ALLOW_LOAD", "no/3,no/4")],
            "--allow-load no/3",
        ),
        (
            &[],
            &[
                by_variable,
                ("JINDOU_ALLOW_LOAD", ""),
                ("JINDOU_READ_ONLY", ""),
            ],
            "--allow-load no/1",
        ),
        (
            &["--allow-load", "no/5"],
            &[by_variable, ("JINDOU_ALLOW_LOAD", "no/3,no/4")],
            "--allow-load no/5",
        ),
        (
            &["--allow-load=web"],
            &[by_variable],
            "--credentials: of-file",
        ),
        (
            &["--allow-load", "web"],
            &[by_variable, ("JINDOU_CREDENTIALS", "of-variable")],
            "--credentials: of-variable",
        ),
        (
            &[
                "--allow-load",
                "web",
                "--credentials",
                "of-line",
                "--",
                "--x",
            ],
            &[by_variable, ("JINDOU_CREDENTIALS", "of-variable")],
            "--credentials: of-line",
        ),
        (
            &["--allow-load", "web"],
            &[("JINDOU_CONFIG", "none.toml")],
            "--config none.toml",
        ),
        (
            &["--config", "jindou.toml", "--allow-load", "web"],
            &[("JINDOU_CONFIG", "none.toml")],
            "--credentials: of-file",
        ),
    ] {
        let told = says(folder.path(), file, arguments, variables);
        assert!(told.contains(said), "{arguments:?} {variables:?}: {told}");
    }
    // What holds between options holds whichever source gives them.
    let told = says(folder.path(), "", &CONFIG, &[("JINDOU_ANONYMOUS", "read")]);
    assert!(told.contains("--credentials <FILE>"), "{told}");
    let certificate = "tls-certificate = \"c.pem\"";
    let told = says(folder.path(), certificate, &CONFIG, &[]);
    assert!(told.contains("--tls-key <FILE>"), "{told}");
    let key = [("JINDOU_TLS_KEY", "k.pem")];
    let told = says(folder.path(), certificate, &CONFIG, &key);
    assert!(told.contains("c.pem: No such file"), "{told}");
}

#[test]
fn a_server_is_started_by_its_file_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = "\
        bind = \"127.0.0.1:0\"\nread-only = false\nunion-default-graph = true\n\
        allow-service = [\"http://a.example/\", \"http://b.example/\"]\n\
        query-timeout = 2.5\nmax-rows = 1_000\n";
    std::fs::write(folder.path().join("jindou.toml"), file).unwrap();
    let serving_with = |arguments: &[&str], variables: &[(&str, String)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
        let command = command.current_dir(folder.path()).args(arguments);
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        let found = lines.find(|line| line.starts_with("serving at "));
        child.kill().unwrap();
        child.wait().unwrap();
        found.expect("it serves")
    };
    let serving = |arguments: &[&str]| serving_with(arguments, &[]);
    let line = serving(&["serve", "--config", "jindou.toml"]);
    assert!(line.contains("http://127.0.0.1:"), "{line}");
    // The environment has more weight than the file, also where each gives a part of the address.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port().to_string();
    drop(free);
    let line = serving_with(
        &["serve", "--config", "jindou.toml"],
        &[("JINDOU_PORT", port.clone())],
    );
    assert!(
        line.contains(&format!("http://127.0.0.1:{port}/")),
        "{line}"
    );
    // The port of a file is part of its address, which the command line has given.
    let file = format!("{file}port = 1\n");
    std::fs::write(folder.path().join("jindou.toml"), file).unwrap();
    let line = serving(&["serve", "--config", "jindou.toml", "--bind", "[::1]:0"]);
    assert!(
        line.contains("http://[::1]:") && !line.contains(":1/"),
        "{line}"
    );
    // Nor is a file looked at by who asks for help.
    let mut help = Command::new(env!("CARGO_BIN_EXE_jindou"));
    help.args(["serve", "--config", "none.toml", "--help"]);
    assert!(help.output().unwrap().status.success());
}
