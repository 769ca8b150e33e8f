//! The reviewed list of scenarios that fail. Each line is `NAME :: reason`; lines that begin with `#` are comments.

use std::collections::BTreeMap;

/// Returns the reasons by name.
pub fn list() -> BTreeMap<&'static str, &'static str> {
    let lines = include_str!("expected_failures.txt").lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.rsplit_once(" :: ").unwrap_or_else(|| panic!("no reason: {line}")))
        .collect()
}
