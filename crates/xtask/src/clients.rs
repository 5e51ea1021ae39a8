//! Do the clients that people use get in? Their own programs are run, against servers of the command
//! that is built from this tree. Apart from the other checks: they have to be fetched.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::checks::{install, print_summary};
use crate::program;
use crate::summary::Summary;

/// Where the clients' scripts are.
const SCRIPTS: &str = "tests/clients";
/// The longest that one script may take.
const MOST_TIME: Duration = Duration::from_secs(300);

/// Programs of one language.
struct Language {
    name: &'static str,
    /// Programs it needs, with the packages of Debian that have them.
    tools: &'static [(&'static str, &'static str)],
    /// What fetches the clients, run in the language's folder one after the other.
    fetch: &'static [&'static [&'static str]],
    /// What builds the scripts.
    build: &'static [&'static [&'static str]],
    /// What runs a script, whose name is put in the place of `{}`.
    run: &'static [&'static str],
    scripts: &'static [&'static str],
}

const LANGUAGES: [Language; 4] = [
    Language {
        name: "python",
        tools: &[("python3", "python3-venv")],
        fetch: &[
            &["python3", "-m", "venv", "venv"],
            &[
                "venv/bin/pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--requirement",
                "requirements.txt",
            ],
        ],
        build: &[],
        run: &["venv/bin/python", "-W", "ignore", "{}.py"],
        scripts: &["sparqlwrapper_client", "rdflib_client", "columns_client"],
    },
    Language {
        name: "node",
        tools: &[("node", "nodejs"), ("npm", "npm")],
        fetch: &[&["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]],
        build: &[],
        run: &["node", "{}.js"],
        scripts: &[
            "comunica_client",
            "fetch_sparql_endpoint_client",
            "sparql_http_client",
        ],
    },
    // Those of pages; their scripts say what held as those of node do.
    Language {
        name: "browser",
        tools: &[("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")],
        fetch: &[
            &["chromium", "--version"],
            &["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        ],
        build: &[],
        run: &["node", "{}.js"],
        scripts: &["yasgui_client"],
    },
    Language {
        name: "java",
        tools: &[("javac", "default-jdk-headless"), ("mvn", "maven")],
        fetch: &[&[
            "mvn",
            "--quiet",
            "--batch-mode",
            "dependency:build-classpath",
            "-Dmdep.outputFile=classpath",
            "-Dmdep.regenerateFile=true",
        ]],
        build: &[&[
            "sh",
            "-c",
            "javac -d classes -cp \"$(cat classpath)\" clients/*.java",
        ]],
        run: &[
            "sh",
            "-c",
            "exec java -cp \"classes:$(cat classpath)\" clients.{} \"$@\"",
            "java",
        ],
        scripts: &["Jena", "Rdf4j"],
    },
];

/// Builds the command and runs all clients against it; returns whether all held.
pub(crate) fn run(root: &Path) -> anyhow::Result<bool> {
    let program = program::build(root, &["-p", "jindou"])?;
    let target = program.ancestors().nth(2);
    let work = target
        .context("cargo built into no folder")?
        .join("clients");
    let mut summary = Summary::default();
    for language in &LANGUAGES {
        println!("== {}", language.name);
        let folder = work.join(language.name);
        copy(&root.join(SCRIPTS).join(language.name), &folder)?;
        if let Err(reason) = language.fetch(&folder) {
            let what = format!("the clients of {} ({reason})", language.name);
            println!("SKIPPED: {what}");
            summary.skip(&what);
            continue;
        }
        if let Err(reason) = run_all(language.build, &folder) {
            println!("{reason}");
            summary.failed += 1;
            summary.failures.push(format!("{} (build)", language.name));
            continue;
        }
        for script in language.scripts {
            println!("== {}: {script}", language.name);
            language.test(script, &folder, &program, &mut summary)?;
        }
    }
    print_summary(&summary, &[]);
    Ok(summary.held())
}

impl Language {
    /// Fetches the clients; says why that cannot be done here.
    fn fetch(&self, folder: &Path) -> Result<(), String> {
        for (program, package) in self.tools {
            install(program, package);
        }
        run_all(self.fetch, folder)
    }

    /// Runs a script against two servers of its own, with stores that are empty.
    fn test(
        &self,
        script: &str,
        folder: &Path,
        program: &Path,
        summary: &mut Summary,
    ) -> anyhow::Result<()> {
        let server = Server::start(program, &folder.join("store"))?;
        let other = Server::start(program, &folder.join("other-store"))?;
        let line: Vec<_> = self
            .run
            .iter()
            .map(|part| part.replace("{}", script))
            .collect();
        let mut command = Command::new(at(&line[0], folder));
        command.args(&line[1..]).args([&server.url, &other.url]);
        let (ok, mut failed) = outcome(command.current_dir(folder), MOST_TIME)?;
        summary.passed += ok;
        if ok == 0 && failed.is_empty() {
            failed.push("it checked nothing".to_owned());
        }
        summary.failed += failed.len() as u64;
        let named = |what: String| format!("{} {script}: {what}", self.name);
        summary.failures.extend(failed.into_iter().map(named));
        Ok(())
    }
}

/// Runs a script, and shows what it prints; gives how many checks held, and the names of those that did
/// not.
pub(crate) fn outcome(command: &mut Command, most: Duration) -> anyhow::Result<(u64, Vec<String>)> {
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start a client")?;
    let lines = lines(
        child
            .stdout
            .take()
            .context("a client's output is not piped")?,
    );
    let end = Instant::now() + most;
    let (mut ok, mut failed) = (0, Vec::new());
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                println!("{line}");
                ok += u64::from(line.starts_with("ok "));
                failed.extend(line.strip_prefix("FAILED ").map(str::to_owned));
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                child.kill().context("cannot end a client")?;
                failed.push(format!("it took longer than {most:?}"));
                break;
            }
        }
    }
    let status = child.wait().context("cannot wait for a client")?;
    if !status.success() && failed.is_empty() {
        failed.push(format!("it ended with {status}"));
    }
    Ok((ok, failed))
}

/// The lines of a pipe, read by a thread.
fn lines(pipe: impl Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            // Read on where nobody listens any more: a pipe that is full would stop the program.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// A server of a store that is removed with it.
struct Server {
    child: Child,
    url: String,
    store: PathBuf,
}

impl Server {
    fn start(program: &Path, store: &Path) -> anyhow::Result<Self> {
        remove(store)?;
        let mut child = Command::new(program)
            .args(["serve", "--bind", "127.0.0.1:0", "--allow-service", "any"])
            .args(["--fsync", "never"])
            .arg("--location")
            .arg(store)
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start the server")?;
        let said = lines(
            child
                .stderr
                .take()
                .context("the server's output is not piped")?,
        );
        let address = said.iter().find_map(|line| {
            let (_, rest) = line.split_once("http://")?;
            Some(rest.split('/').next()?.to_owned())
        });
        let address = address.context("the server ended and did not say its address")?;
        Ok(Self {
            child,
            url: format!("http://{address}"),
            store: store.to_owned(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The store is not needed any more, and what is left of it is removed by the next run.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.store);
    }
}

/// Runs commands one after the other; says which did not do.
pub(crate) fn run_all(commands: &[&[&str]], folder: &Path) -> Result<(), String> {
    for command in commands {
        let line = command.join(" ");
        let status = Command::new(at(command[0], folder))
            .args(&command[1..])
            .current_dir(folder)
            .status()
            .map_err(|error| format!("{line}: {error}"))?;
        if !status.success() {
            return Err(format!("{line}: {status}"));
        }
    }
    Ok(())
}

/// A program by its name, or one of a folder.
pub(crate) fn at(program: &str, folder: &Path) -> PathBuf {
    match program.contains('/') {
        true => folder.join(program),
        false => program.into(),
    }
}

/// Copies the files of a folder into another, and leaves there what was fetched.
pub(crate) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    let entries = fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?;
    for entry in entries {
        let entry = entry.context("cannot read a folder")?;
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &copied)?;
        } else {
            fs::copy(&path, &copied).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}

fn remove(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}
