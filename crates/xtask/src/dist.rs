//! What is given to others? One static program with what belongs to it: completions for shells, pages of
//! the manual, the unit of systemd, as an archive and a package of Debian, with their checksums.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use crate::cargo;
use crate::metadata;

/// Shells, and what each calls its file.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "jindou"),
    ("zsh", "_jindou"),
    ("fish", "jindou.fish"),
];
/// What else an archive has, from the repository's root.
const DOCUMENTS: [&str; 6] = [
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "packaging/jindou.service",
    "packaging/jindou.sysusers",
    "packaging/default",
];

/// Builds all of it in `target/dist`; without archives for an image, which takes the program alone.
pub(crate) fn run(root: &Path, with_archives: bool) -> anyhow::Result<bool> {
    let target = format!("{}-unknown-linux-musl", std::env::consts::ARCH);
    check_tools(&target)?;
    let built = build(root, &target)?;
    let folder = built
        .ancestors()
        .nth(3)
        .context("cargo built into no folder")?
        .join("dist");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot empty target/dist")?;
    }
    fs::create_dir_all(folder.join("completions"))?;
    let program = folder.join("jindou");
    fs::copy(&built, &program).context("cannot copy the program")?;
    for (shell, file) in SHELLS {
        let script = output(Command::new(&program).args(["completions", shell]))?;
        fs::write(folder.join("completions").join(file), script)?;
    }
    output(Command::new(&program).arg("manual").arg(folder.join("man")))?;
    if with_archives {
        let archives = [
            Some(archive(root, &folder, &target)?),
            package(root, &folder, &target)?,
        ];
        let archives: Vec<PathBuf> = archives.into_iter().flatten().collect();
        checksums(&folder, &archives)?;
    }
    for entry in fs::read_dir(&folder)? {
        let entry = entry?;
        let bytes = entry.metadata()?.len();
        if entry.file_type()?.is_file() {
            println!(
                "{:>8} KiB  {}",
                bytes.div_ceil(1024),
                entry.path().display()
            );
        }
    }
    Ok(true)
}

/// # Errors
/// What is missing, and how to get it.
fn check_tools(target: &str) -> anyhow::Result<()> {
    let libraries =
        output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if !Path::new(String::from_utf8(libraries)?.trim()).is_dir() {
        bail!("the standard library for {target} is missing: rustup target add {target}");
    }
    let compiler = Command::new("musl-gcc").arg("--version").output();
    if !compiler.is_ok_and(|output| output.status.success()) {
        bail!("musl-gcc is missing: apt-get install musl-tools");
    }
    Ok(())
}

/// Builds the program, and says where it is.
fn build(root: &Path, target: &str) -> anyhow::Result<PathBuf> {
    let arguments = [
        "build",
        "--locked",
        "--profile",
        "dist",
        "-p",
        "jindou",
        "--target",
        target,
    ];
    let mut build = cargo(root);
    build.args(arguments);
    // The program's metrics name it.
    if let Some(commit) = commit(root) {
        build.env("JINDOU_COMMIT", commit);
    }
    let status = build.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the program was not built");
    }
    let folder = metadata::target_folder(root)?;
    Ok(folder.join(target).join("dist").join("jindou"))
}

/// The commit that is built, marked where files of it have changed since; none of sources without their
/// history.
fn commit(root: &Path) -> Option<String> {
    let ask = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(root);
        let output = git.stderr(Stdio::null()).output().ok()?;
        let said = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| said.trim().to_owned())
    };
    let commit = ask(&["rev-parse", "--short=12", "HEAD"])?;
    match ask(&["status", "--porcelain"])?.is_empty() {
        true => Some(commit),
        false => Some(format!("{commit}-dirty")),
    }
}

/// The same bytes from the same commit: names in order, nobody's user, the time of the commit.
fn archive(root: &Path, folder: &Path, target: &str) -> anyhow::Result<PathBuf> {
    let name = format!("jindou-{}-{target}", env!("CARGO_PKG_VERSION"));
    let inside = folder.join(&name);
    fs::create_dir_all(&inside)?;
    for document in DOCUMENTS {
        let file = Path::new(document)
            .file_name()
            .context("a document has a name")?;
        fs::copy(root.join(document), inside.join(file)).with_context(|| document.to_owned())?;
    }
    for part in ["jindou", "completions", "man"] {
        let to = inside.join(part);
        output(Command::new("cp").arg("-r").arg(folder.join(part)).arg(to))?;
    }
    let time = output(
        Command::new("git")
            .current_dir(root)
            .args(["log", "-1", "--format=%ct"]),
    );
    let time = time
        .ok()
        .and_then(|time| String::from_utf8(time).ok())
        .unwrap_or_default();
    let time = if time.trim().is_empty() {
        "0"
    } else {
        time.trim()
    };
    let archive = folder.join(format!("{name}.tar.gz"));
    pack(folder, &name, time, &archive)?;
    fs::remove_dir_all(&inside)?;
    Ok(archive)
}

/// Packs a folder inside another, with the same bytes whoever does so when.
fn pack(folder: &Path, name: &str, time: &str, archive: &Path) -> anyhow::Result<()> {
    let fixed = [
        "--sort=name",
        // Whatever the umask is.
        "--mode=u=rwX,go=rX",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--use-compress-program=gzip -n9",
    ];
    let mut tar = Command::new("tar");
    tar.args(fixed).arg(format!("--mtime=@{time}"));
    tar.arg("-C").arg(folder).arg("-cf").arg(archive).arg(name);
    output(&mut tar)?;
    Ok(())
}

/// The package of Debian, by cargo-deb where that is installed.
fn package(root: &Path, folder: &Path, target: &str) -> anyhow::Result<Option<PathBuf>> {
    let installed = cargo(root)
        .args(["deb", "--version"])
        .stderr(Stdio::null())
        .output();
    if !installed.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: the package of Debian (cargo install cargo-deb)");
        return Ok(None);
    }
    let mut deb = cargo(root);
    deb.args([
        "deb",
        "--no-build",
        "--no-strip",
        "--locked",
        "--profile",
        "dist",
        "-p",
        "jindou",
    ]);
    deb.args(["--target", target, "--output"]).arg(folder);
    output(&mut deb)?;
    let is_package = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "deb");
    let entries = fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
    let paths = entries.collect::<Result<Vec<_>, _>>()?;
    let made = paths.into_iter().find(is_package);
    made.context("cargo deb made no package").map(Some)
}

fn checksums(folder: &Path, files: &[PathBuf]) -> anyhow::Result<()> {
    let names = files.iter().filter_map(|file| file.file_name());
    let sums = output(Command::new("sha256sum").current_dir(folder).args(names))?;
    fs::write(folder.join("SHA256SUMS"), sums).context("cannot write the checksums")
}

/// What a command prints.
///
/// # Errors
/// Those of starting it, and its failure.
fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{command:?}: {}", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A folder in the system's for temporary files, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("jindou-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_archive_is_the_same_whatever_the_umask_was() {
        let folder = Folder::new("archive");
        let archives = [0o600, 0o664].map(|mode| {
            let (inside, archive) = (folder.0.join("a"), folder.0.join(format!("{mode}.tar.gz")));
            fs::create_dir_all(&inside).unwrap();
            fs::write(inside.join("text"), "text").unwrap();
            fs::write(inside.join("program"), "program").unwrap();
            let set = |path: &Path, mode| {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            };
            set(&inside.join("text"), mode);
            set(&inside.join("program"), mode | 0o100);
            set(&inside, mode | 0o100);
            pack(&folder.0, "a", "0", &archive).unwrap();
            archive
        });
        let list = output(Command::new("tar").arg("-tvf").arg(&archives[0])).unwrap();
        let list = String::from_utf8(list).unwrap();
        let modes: Vec<&str> = list.lines().map(|line| &line[..10]).collect();
        assert_eq!(modes, ["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"]);
        let [first, second] = archives.map(|archive| fs::read(archive).unwrap());
        assert!(first == second);
    }

    #[test]
    fn what_is_not_committed_is_not_named_as_its_commit() {
        let folder = Folder::new("commit");
        let git = |arguments: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
            output(git.args(arguments).current_dir(&folder.0)).unwrap()
        };
        git(&["init", "--quiet"]);
        fs::write(folder.0.join("a"), "a").unwrap();
        git(&["add", "a"]);
        git(&["commit", "--quiet", "-m", "a"]);
        let clean = commit(&folder.0).unwrap();
        assert_eq!(clean.len(), 12, "{clean}");
        fs::write(folder.0.join("a"), "b").unwrap();
        assert_eq!(commit(&folder.0).unwrap(), format!("{clean}-dirty"));
    }
}
