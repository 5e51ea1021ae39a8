//! Do shells, man, and what watches over servers get what they ask the command for?

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

fn jindou(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_jindou"));
    command
        .args(arguments)
        .env_remove("JINDOU_USER")
        .env_remove("JINDOU_TOKEN");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The commands that `--help` names.
fn commands() -> Vec<String> {
    let help = text(&jindou(&["--help"]).stdout);
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn shells_complete_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let made = jindou(&["completions", shell]);
        assert!(made.status.success(), "{shell}");
        let script = text(&made.stdout);
        for command in commands() {
            assert!(script.contains(&command), "{shell} does not know {command}");
        }
        assert!(script.contains("location"), "{shell}");
    }
    let wrong = jindou(&["completions", "cmd"]);
    assert!(!wrong.status.success());
    assert!(
        text(&wrong.stderr).contains("bash"),
        "{}",
        text(&wrong.stderr)
    );
}

#[test]
fn bash_completes_what_it_was_told() {
    let script = jindou(&["completions", "bash"]).stdout;
    let ask = "\nCOMP_WORDS=(jindou ser) COMP_CWORD=1\n_jindou jindou ser jindou\nprintf '%s\\n' \"${COMPREPLY[@]}\"";
    let asked = [&script[..], ask.as_bytes()].concat();
    let bash = Command::new("bash").arg("-c").arg(text(&asked)).output();
    let Ok(bash) = bash else {
        eprintln!("SKIPPED: completions in bash (bash is not installed)");
        return;
    };
    assert!(bash.status.success(), "{}", text(&bash.stderr));
    assert_eq!(text(&bash.stdout).trim(), "serve");
}

#[test]
fn the_manual_has_a_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    assert!(
        jindou(&["manual", pages.to_str().unwrap()])
            .status
            .success()
    );
    let page = |name: &str| {
        fs::read_to_string(pages.join(name)).unwrap_or_else(|_| panic!("no page {name}"))
    };
    assert!(page("jindou.1").contains("jindou\\-serve(1)"));
    let names = commands();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(
            page(&format!("jindou-{name}.1")).starts_with(".ie"),
            "{name}"
        );
    }
    assert!(page("jindou-serve.1").contains("\\-\\-location"));
    assert!(
        !pages.join("jindou-bench-child.1").exists(),
        "what is hidden has no page"
    );
}

#[test]
fn a_manual_that_cannot_be_written_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let failed = jindou(&["manual", file.to_str().unwrap()]);
    assert!(!failed.status.success());
    let said = text(&failed.stderr);
    assert!(said.contains(file.to_str().unwrap()), "{said}");
}

struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn new(options: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_jindou"))
            .args(["serve", "--bind", "127.0.0.1:0"])
            .args(options)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = lines.find_map(|line| {
            let line = line.unwrap();
            let rest = line.strip_prefix("serving at ")?;
            Some(rest.split('/').take(3).collect::<Vec<_>>().join("/"))
        });
        Self {
            child,
            url: url.expect("it serves"),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn credentials(folder: &Path) -> String {
    let mut made = Command::new(env!("CARGO_BIN_EXE_jindou"))
        .args(["hash-password", "--name", "ann", "--role", "read"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    made.stdin.take().unwrap().write_all(b"secret\n").unwrap();
    let line = made.wait_with_output().unwrap().stdout;
    let file = folder.join("credentials");
    fs::write(&file, line).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn a_server_that_is_well_is_found_so_by_anybody() {
    let folder = tempfile::tempdir().unwrap();
    for options in [&[][..], &["--credentials", &credentials(folder.path())]] {
        let served = Served::new(options);
        let health = jindou(&["health", "--url", &served.url]);
        assert!(health.status.success(), "{}", text(&health.stderr));
        assert_eq!(text(&health.stdout), "{\"status\":\"ok\"}\n");
    }
}

#[test]
fn a_server_that_is_not_well_fails_with_its_reasons() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let read = stream.read(&mut request).unwrap();
        let body = r#"{"status":"failing","reasons":["store: no space left on the device"]}"#;
        let head = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: application/json";
        write!(
            stream,
            "{head}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        text(&request[..read])
    });
    let health = jindou(&["health", "--url", &url]);
    assert!(answers.join().unwrap().starts_with("GET /health "));
    assert_eq!(health.status.code(), Some(1));
    let said = text(&health.stderr);
    assert!(said.contains("no space left on the device"), "{said}");
}

#[test]
fn a_server_that_never_answers_is_not_well() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // It is connected to, and then nothing comes.
    for timeout in [&[][..], &["--timeout", "100ms"]] {
        let health = jindou(&[&["health", "--url", &url], timeout].concat());
        assert_eq!(health.status.code(), Some(1));
        let said = text(&health.stderr);
        assert!(said.contains("timeout"), "{said}");
    }
    let wrong = jindou(&["health", "--timeout", "0"]);
    let said = text(&wrong.stderr);
    assert!(said.contains("give more than 0 seconds"), "{said}");
}

#[test]
fn no_server_is_a_server_that_is_not_well() {
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let health = jindou(&["health", "--url", &format!("http://127.0.0.1:{port}")]);
    assert_eq!(health.status.code(), Some(1));
    let said = text(&health.stderr);
    assert!(said.contains("is a server there?"), "{said}");
}
