//! Which program do checks run from outside? The command, as it is built from this tree.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::cargo;

/// Builds what `selection` has cargo build, and says where the command is.
pub(crate) fn build(root: &Path, selection: &[&str]) -> anyhow::Result<PathBuf> {
    let output = cargo(root)
        .arg("build")
        .args(selection)
        .args(["--bin", "jindou"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the command does not build");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut programs = text.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message["executable"].as_str()?))
    });
    programs
        .next_back()
        .context("cargo does not say where the command is")
}
