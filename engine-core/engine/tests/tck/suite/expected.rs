//! A reviewed list of scenarios that fail. Each line is `NAME :: reason`; lines that begin with `#` are comments.

use std::collections::BTreeMap;

/// Returns the reasons by name.
pub fn list(text: &str) -> BTreeMap<&str, &str> {
    let lines = text.lines();
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.rsplit_once(" :: ").unwrap_or_else(|| panic!("no reason: {line}")))
        .collect()
}
