//! Code or a test names every invariant of the table in `ARCHITECTURE.md`, and the table has every invariant that code
//! or a test names.
//!
//! A name is one or more capital letters or digits, a hyphen and a number, as in `LOG-1`. A name such as `UTF-8`, whose
//! first part is in no row of the table, is not an invariant.

use super::{Complaint, Tree};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Named invariants";

pub(super) fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(page) = tree.text(PAGE) else { return Vec::new() };
    let listed = listed(page);
    let families: BTreeSet<&str> = listed.keys().filter_map(|name| Some(name.split_once('-')?.0)).collect();
    let mut found = BTreeSet::new();
    let mut complaints = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| is_code(path)) {
        for (index, line) in text.lines().enumerate() {
            for name in names(line)
                .filter(|name| name.split_once('-').is_some_and(|(family, _)| families.contains(family)))
            {
                if !listed.contains_key(name) {
                    let what = format!("{name} is no invariant of {PAGE}: name one, or add it to the table");
                    complaints.push(Complaint::new(path, index + 1, what));
                }
                found.insert(name.to_owned());
            }
        }
    }
    for (name, line) in listed.iter().filter(|(name, _)| !found.contains(**name)) {
        let what = format!("invariant {name} is named in no code and no test: name it where it is held");
        complaints.push(Complaint::new(PAGE, *line, what));
    }
    complaints
}

/// Returns the names in the table, with the line of each.
fn listed(page: &str) -> BTreeMap<&str, usize> {
    let lines = page.lines().enumerate().skip_while(|(_, line)| *line != HEADING).skip(1);
    lines
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter_map(|(index, line)| {
            let name = line.strip_prefix("| ")?.split(" |").next()?;
            (names(name).next() == Some(name)).then_some((name, index + 1))
        })
        .collect()
}

/// Whether a file is code or a test. This rule and its tests are not, because their examples would count as uses.
fn is_code(path: &str) -> bool {
    let is_ours = ["bench/", "engine-core/", "integration-tests/", "services/", "xtask/"]
        .iter()
        .any(|folder| path.starts_with(folder));
    is_ours
        && !path.starts_with("xtask/src/tidy/invariants")
        && !path.starts_with("xtask/src/tidy/tests")
        && [".rs", ".ts", ".mjs"].iter().any(|end| path.ends_with(end))
}

/// Returns the words of a line that have the form of a name.
fn names(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').filter(|word| {
        word.split_once('-').is_some_and(|(family, number)| {
            !family.is_empty()
                && family.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
                && family.bytes().any(|b| b.is_ascii_uppercase())
                && !number.is_empty()
                && number.bytes().all(|b| b.is_ascii_digit())
        })
    })
}
