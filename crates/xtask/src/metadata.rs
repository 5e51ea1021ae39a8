//! What does cargo say about the workspace's crates, their dependencies and root files?

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::Value;

/// A crate of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Workspace crates it is built with, itself or its build script.
    pub(crate) needs: BTreeSet<String>,
    /// Workspace crates that its tests, examples and benchmarks are built with.
    pub(crate) needs_in_tests: BTreeSet<String>,
    /// The root file of its library and of each of its programs.
    pub(crate) roots: Vec<PathBuf>,
}

/// Asks cargo. No network is used: dependencies are not resolved.
pub(crate) fn read(root: &Path) -> anyhow::Result<Vec<Package>> {
    parse(&ask(root)?)
}

/// Where cargo builds.
pub(crate) fn target_folder(root: &Path) -> anyhow::Result<PathBuf> {
    Ok(PathBuf::from(text(&ask(root)?, "target_directory")?))
}

fn ask(root: &Path) -> anyhow::Result<Value> {
    let output = crate::cargo(root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    serde_json::from_slice(&output.stdout).context("cargo metadata is not JSON")
}

/// Reads `cargo metadata --no-deps --format-version 1`.
pub(crate) fn parse(metadata: &Value) -> anyhow::Result<Vec<Package>> {
    let packages = array(metadata, "packages")?;
    let names: BTreeSet<&str> = packages
        .iter()
        .map(|package| text(package, "name"))
        .collect::<Result<_, _>>()?;
    packages
        .iter()
        .map(|package| parse_package(package, &names))
        .collect()
}

fn parse_package(package: &Value, workspace: &BTreeSet<&str>) -> anyhow::Result<Package> {
    let mut parsed = Package {
        name: text(package, "name")?.to_owned(),
        needs: BTreeSet::new(),
        needs_in_tests: BTreeSet::new(),
        roots: Vec::new(),
    };
    for dependency in array(package, "dependencies")? {
        let name = text(dependency, "name")?;
        // A registry may hold a crate of the same name: ours come by path.
        if !workspace.contains(name) || dependency["path"].is_null() {
            continue;
        }
        match dependency["kind"].as_str() {
            None | Some("build") => parsed.needs.insert(name.to_owned()),
            Some("dev") => parsed.needs_in_tests.insert(name.to_owned()),
            Some(other) => bail!("{}: unknown kind of dependency {other}", parsed.name),
        };
    }
    for target in array(package, "targets")? {
        let is_test = |kind: &Value| {
            matches!(
                kind.as_str(),
                Some("test" | "example" | "bench" | "custom-build")
            )
        };
        if !array(target, "kind")?.iter().any(is_test) {
            parsed.roots.push(PathBuf::from(text(target, "src_path")?));
        }
    }
    Ok(parsed)
}

fn array<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("cargo metadata has no list `{key}` where one is due"))
}

fn text<'a>(value: &'a Value, key: &str) -> anyhow::Result<&'a str> {
    value[key]
        .as_str()
        .with_context(|| format!("cargo metadata has no text `{key}` where one is due"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_of_dependency_and_of_target_are_told_apart() {
        let metadata = json!({ "packages": [
            {
                "name": "a",
                "dependencies": [
                    { "name": "b", "kind": null, "path": "/w/b" },
                    { "name": "c", "kind": "build", "path": "/w/c" },
                    { "name": "d", "kind": "dev", "path": "/w/d" },
                    { "name": "d", "kind": null },
                    { "name": "serde", "kind": null },
                ],
                "targets": [
                    { "kind": ["lib"], "src_path": "/w/a/src/lib.rs" },
                    { "kind": ["bin"], "src_path": "/w/a/src/bin/x.rs" },
                    { "kind": ["test"], "src_path": "/w/a/tests/t.rs" },
                    { "kind": ["custom-build"], "src_path": "/w/a/build.rs" },
                ],
            },
            { "name": "b", "dependencies": [], "targets": [] },
            { "name": "c", "dependencies": [], "targets": [] },
            { "name": "d", "dependencies": [], "targets": [] },
        ]});
        let packages = parse(&metadata).unwrap();
        assert_eq!(packages.len(), 4);
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        assert_eq!(
            packages[0],
            Package {
                name: "a".to_owned(),
                needs: set(&["b", "c"]),
                needs_in_tests: set(&["d"]),
                roots: vec!["/w/a/src/lib.rs".into(), "/w/a/src/bin/x.rs".into()],
            }
        );
    }

    #[test]
    fn metadata_of_another_shape_is_an_error() {
        assert!(parse(&json!({})).is_err());
        assert!(parse(&json!({ "packages": [{ "name": "a" }] })).is_err());
    }
}
