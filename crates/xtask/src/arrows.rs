//! Which crate may depend on which? Only downwards, by the layers below.

use std::collections::{BTreeMap, BTreeSet};

use crate::metadata::Package;

/// Where a crate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Part of the product: it may depend on lower layers.
    Layer(u8),
    /// Serves development: it may depend on anything, and the product not on it.
    Development,
}

/// Short name and place of every crate; a package is named `jindou-` and that.
const PLACES: &[(&str, Place)] = &[
    ("model", Place::Layer(0)),
    ("fabric", Place::Layer(0)),
    ("syntax", Place::Layer(0)),
    ("dictionary", Place::Layer(1)),
    ("partition", Place::Layer(1)),
    ("replication", Place::Layer(1)),
    ("store", Place::Layer(1)),
    ("plan", Place::Layer(1)),
    ("exec", Place::Layer(2)),
    ("ingest", Place::Layer(2)),
    ("stream", Place::Layer(3)),
    ("cluster", Place::Layer(3)),
    ("gpu", Place::Layer(3)),
    ("engine", Place::Layer(4)),
    ("brokers", Place::Layer(5)),
    ("etcd", Place::Layer(5)),
    ("server", Place::Layer(5)),
    ("cli", Place::Layer(5)),
    ("python", Place::Layer(5)),
    ("counting", Place::Development),
    ("datagen", Place::Development),
    ("history", Place::Development),
    ("bench", Place::Development),
    ("conformance", Place::Development),
    ("sim", Place::Development),
    ("xtask", Place::Development),
];

/// Arrows allowed though they do not go down: (from, to).
const ALLOWED: &[(&str, &str)] = &[
    ("fabric", "model"),
    ("store", "dictionary"),
    ("store", "partition"),
    ("server", "brokers"),
    ("cli", "server"),
    ("cli", "etcd"),
    ("cli", "datagen"),
    ("cli", "bench"),
];

/// The name that the table of places uses.
pub(crate) fn short_name(package: &str) -> &str {
    match package {
        "jindou" => "cli",
        other => other.strip_prefix("jindou-").unwrap_or(other),
    }
}

fn place(package: &str) -> Option<Place> {
    let short = short_name(package);
    PLACES
        .iter()
        .find(|(name, _)| *name == short)
        .map(|&(_, place)| place)
}

/// Says what is wrong, one line for each wrong arrow; nothing if all is well.
pub(crate) fn violations(packages: &[Package]) -> Vec<String> {
    let mut wrong = Vec::new();
    for package in packages {
        let Some(from) = place(&package.name) else {
            wrong.push(format!("{} has no place among the layers", package.name));
            continue;
        };
        for needed in &package.needs {
            // A crate without a place is reported once, by itself.
            let Some(to) = place(needed) else { continue };
            wrong.extend(wrong_arrow((&package.name, from), (needed, to)));
        }
    }
    wrong.extend(test_cycles(packages));
    wrong
}

fn wrong_arrow((from, from_place): (&str, Place), (to, to_place): (&str, Place)) -> Option<String> {
    if ALLOWED.contains(&(short_name(from), short_name(to))) {
        return None;
    }
    match (from_place, to_place) {
        (Place::Development, _) => None,
        (Place::Layer(_), Place::Development) => Some(format!(
            "{from} depends on {to}, which serves development only"
        )),
        (Place::Layer(above), Place::Layer(below)) if below < above => None,
        (Place::Layer(at), Place::Layer(other)) => Some(format!(
            "{from} (layer {at}) depends on {to} (layer {other}), which is not below it"
        )),
    }
}

/// Tests may use any crate that is not built on the one tested: else two copies of its types
/// meet in one test, one built for testing and one not.
fn test_cycles(packages: &[Package]) -> Vec<String> {
    let needs: BTreeMap<&str, &BTreeSet<String>> = packages
        .iter()
        .map(|package| (package.name.as_str(), &package.needs))
        .collect();
    let mut wrong = Vec::new();
    for package in packages {
        for needed in &package.needs_in_tests {
            if reaches(&needs, needed, &package.name) {
                wrong.push(format!(
                    "the tests of {} depend on {needed}, which depends on {}",
                    package.name, package.name
                ));
            }
        }
    }
    wrong
}

fn reaches(needs: &BTreeMap<&str, &BTreeSet<String>>, from: &str, to: &str) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            let further = needs.get(name).into_iter().flat_map(|names| names.iter());
            open.extend(further.map(String::as_str));
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up packages: name, what it needs, what its tests need.
    fn packages(list: &[(&str, &[&str], &[&str])]) -> Vec<Package> {
        let set = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        list.iter()
            .map(|(name, needs, in_tests)| Package {
                name: name.to_string(),
                needs: set(needs),
                needs_in_tests: set(in_tests),
                roots: Vec::new(),
            })
            .collect()
    }

    fn arrow(from: &str, to: &str) -> Vec<String> {
        violations(&packages(&[(from, &[to], &[]), (to, &[], &[])]))
    }

    #[test]
    fn arrows_down_are_allowed() {
        for (from, to) in [
            ("jindou-plan", "jindou-model"),
            ("jindou-dictionary", "jindou-fabric"),
            ("jindou-engine", "jindou-gpu"),
            ("jindou", "jindou-model"),
            ("jindou-bench", "jindou-engine"),
            ("jindou-sim", "jindou-bench"),
        ] {
            assert_eq!(arrow(from, to), [""; 0], "{from} -> {to}");
        }
    }

    #[test]
    fn arrows_up_are_refused() {
        for (from, to) in [
            ("jindou-model", "jindou-store"),
            ("jindou-exec", "jindou-engine"),
            ("jindou-engine", "jindou-server"),
        ] {
            assert_eq!(arrow(from, to).len(), 1, "{from} -> {to}");
        }
    }

    #[test]
    fn arrows_inside_a_layer_are_refused_but_those_named() {
        for (from, to) in [
            ("jindou-fabric", "jindou-model"),
            ("jindou-store", "jindou-dictionary"),
            ("jindou-store", "jindou-partition"),
            ("jindou", "jindou-server"),
        ] {
            assert_eq!(arrow(from, to), [""; 0], "{from} -> {to}");
            assert_eq!(arrow(to, from).len(), 1, "{to} -> {from}");
        }
        assert_eq!(arrow("jindou-plan", "jindou-dictionary").len(), 1);
        assert_eq!(arrow("jindou-exec", "jindou-ingest").len(), 1);
    }

    #[test]
    fn the_product_depends_on_no_development_crate_but_the_commands_do_on_two() {
        assert_eq!(arrow("jindou", "jindou-datagen"), [""; 0]);
        assert_eq!(arrow("jindou", "jindou-bench"), [""; 0]);
        assert_eq!(arrow("jindou", "jindou-conformance").len(), 1);
        assert_eq!(arrow("jindou-engine", "jindou-datagen").len(), 1);
    }

    #[test]
    fn a_crate_without_a_place_is_reported_once() {
        let all = packages(&[
            ("jindou-new", &[], &[]),
            ("jindou-exec", &["jindou-new"], &[]),
        ]);
        assert_eq!(
            violations(&all),
            ["jindou-new has no place among the layers"]
        );
    }

    #[test]
    fn tests_may_use_crates_above_unless_those_are_built_on_the_crate() {
        let mut all = packages(&[
            ("jindou-model", &[], &["jindou-datagen"]),
            ("jindou-exec", &["jindou-model"], &[]),
            ("jindou-engine", &["jindou-exec"], &[]),
            ("jindou-datagen", &[], &[]),
        ]);
        assert_eq!(violations(&all), [""; 0]);
        all[0].needs_in_tests.insert("jindou-engine".to_owned());
        assert_eq!(
            violations(&all),
            ["the tests of jindou-model depend on jindou-engine, which depends on jindou-model"]
        );
    }
}
