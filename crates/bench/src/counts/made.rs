//! Two graphs whose closures are large: people who know each other, and concepts that lie in each other.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::BenchError;
use crate::data::written_once;

/// People, each of whom knows some.
const PEOPLE: u64 = 20_000;
const KNOWN: u64 = 3;
/// Concepts, which form a tree, and children of each.
const CONCEPTS: u64 = 200_000;
const CHILDREN: u64 = 4;

/// The file of both, made once in `folder`.
pub(super) fn file(folder: &Path) -> Result<PathBuf, BenchError> {
    let path = folder.join("closures.nt");
    written_once(&path, |file| write(&mut BufWriter::new(file)))?;
    Ok(path)
}

fn write(out: &mut impl Write) -> io::Result<()> {
    for person in 0..PEOPLE {
        for number in 0..KNOWN {
            let other = mixed(person * KNOWN + number) % PEOPLE;
            writeln!(
                out,
                "<http://made/p{person}> <http://made/knows> <http://made/p{other}> ."
            )?;
        }
    }
    for concept in 1..CONCEPTS {
        // The first one is the deepest.
        let (narrow, broad) = (
            CONCEPTS - 1 - concept,
            CONCEPTS - 1 - (concept - 1) / CHILDREN,
        );
        writeln!(
            out,
            "<http://made/c{narrow}> <http://made/broader> <http://made/c{broad}> ."
        )?;
    }
    out.flush()
}

/// A number that looks random, the same each time.
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_concept_lies_in_the_last_one_by_a_few_steps() {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("there is room");
        let text = String::from_utf8(bytes).expect("it is text");
        let lines = text.lines().count() as u64;
        assert_eq!(lines, PEOPLE * KNOWN + CONCEPTS - 1);
        assert!(text.contains("<http://made/c0> <http://made/broader>"));
        let root = format!("<http://made/broader> <http://made/c{}> .", CONCEPTS - 1);
        assert_eq!(text.matches(&root).count() as u64, CHILDREN);
    }
}
