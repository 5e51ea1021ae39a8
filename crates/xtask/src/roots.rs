//! Where may unsafe code be? Only in a few crates; the root files of all others forbid it.

use std::fs;

use anyhow::Context;

use crate::arrows::short_name;
use crate::metadata::Package;

/// Remote memory, the layout of segments, the accelerator's interface, the Python bindings, the
/// allocator of tests.
const MAY_BE_UNSAFE: &[&str] = &["fabric", "store", "gpu", "python", "counting"];

const FORBIDDEN: &str = "#![forbid(unsafe_code)]";

/// Says which root files lack the line that forbids unsafe code.
///
/// # Errors
/// A root file that cannot be read.
pub(crate) fn violations(packages: &[Package]) -> anyhow::Result<Vec<String>> {
    let mut wrong = Vec::new();
    for package in packages {
        if MAY_BE_UNSAFE.contains(&short_name(&package.name)) {
            continue;
        }
        for root in &package.roots {
            let text = fs::read_to_string(root)
                .with_context(|| format!("cannot read {}", root.display()))?;
            if !forbids_unsafe(&text) {
                wrong.push(format!("{} does not say {FORBIDDEN}", root.display()));
            }
        }
    }
    Ok(wrong)
}

fn forbids_unsafe(text: &str) -> bool {
    text.lines().any(|line| line.trim_end() == FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attribute_counts_and_a_comment_about_it_does_not() {
        assert!(forbids_unsafe(
            "//! Header\n\n#![forbid(unsafe_code)]\nmod a;\n"
        ));
        assert!(!forbids_unsafe(
            "//! Header\n// #![forbid(unsafe_code)]\nmod a;\n"
        ));
        assert!(!forbids_unsafe("#![deny(unsafe_code)]\n"));
    }
}
