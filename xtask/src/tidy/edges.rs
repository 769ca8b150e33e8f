//! HOUSE-1: the table of crates in `ARCHITECTURE.md` has exactly the dependencies that `cargo metadata` reports.
//!
//! The table is between two comments, `<!-- crate edges -->` and `<!-- end of crate edges -->`; its rows are
//! `| crate | may use |`. A crate is named by its folder, a service as `services/NAME`. `(tests)` marks a crate that
//! only tests use.

use super::{Complaint, Tree};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

const DOCUMENT: &str = "ARCHITECTURE.md";
const BEGIN: &str = "<!-- crate edges -->";
const END: &str = "<!-- end of crate edges -->";

/// A dependency between two crates of the repository.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edge {
    /// Folder of the crate that has the dependency.
    pub from: String,
    /// Folder of the crate that it uses. `None`: the edge only says that the crate `from` exists.
    pub to: Option<String>,
    /// Whether only the tests of `from` use the other crate.
    pub only_tests: bool,
}

/// Returns the edges that `cargo metadata` reports, and an edge without `to` for each crate.
///
/// # Errors
/// A message if `cargo metadata` cannot be run, fails, or prints something that is not its JSON.
pub fn of_workspace(root: &Path) -> Result<Vec<Edge>, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let text = super::run(root, &cargo, &["metadata", "--format-version", "1", "--no-deps", "--offline"])?;
    let metadata: Value =
        serde_json::from_str(&text).map_err(|error| format!("cargo metadata is not JSON: {error}"))?;
    from_metadata(&metadata)
}

fn from_metadata(metadata: &Value) -> Result<Vec<Edge>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata has no packages")?;
    let mut edges = BTreeSet::new();
    for package in packages {
        let manifest = package["manifest_path"].as_str().ok_or("a package has no manifest_path")?;
        let from = Path::new(manifest)
            .parent()
            .and_then(folder_name)
            .ok_or_else(|| format!("no folder in {manifest}"))?;
        edges.insert(Edge { from: from.clone(), to: None, only_tests: false });
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Only a crate of this repository has a path.
            let Some(to) = dependency["path"].as_str().and_then(|path| folder_name(Path::new(path))) else {
                continue;
            };
            let only_tests = dependency["kind"].as_str() == Some("dev");
            edges.insert(Edge { from: from.clone(), to: Some(to), only_tests });
        }
    }
    // An edge of the crate itself also covers its tests.
    let plain = |edge: &Edge| Edge { only_tests: false, ..edge.clone() };
    Ok(edges.iter().filter(|edge| !edge.only_tests || !edges.contains(&plain(edge))).cloned().collect())
}

/// Returns the name of a crate in the table: its folder, with `services/` before a service, which may have the name of
/// a crate.
fn folder_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let is_service = path.parent().and_then(Path::file_name).is_some_and(|parent| parent == "services");
    Some(if is_service { format!("services/{name}") } else { name.to_owned() })
}

/// Compares the table with the edges, in both directions.
pub fn check(tree: &Tree, edges: &[Edge]) -> Vec<Complaint> {
    let Some(text) = tree.text(DOCUMENT) else {
        return vec![Complaint::new(DOCUMENT, 0, "is missing; it lists which crate may use which")];
    };
    let listed = match table(text) {
        Ok(listed) => listed,
        Err(complaint) => return vec![complaint],
    };
    let mut complaints = Vec::new();
    for edge in edges {
        if !listed.iter().any(|(_, one)| one == edge) {
            complaints.push(Complaint::new(
                DOCUMENT,
                0,
                format!("{}, and the table does not list it", said(edge)),
            ));
        }
    }
    for (line, edge) in &listed {
        if !edges.contains(edge) {
            complaints.push(Complaint::new(
                DOCUMENT,
                *line,
                format!("the table says that {}: it is not so", said(edge)),
            ));
        }
    }
    complaints
}

fn said(edge: &Edge) -> String {
    match (&edge.to, edge.only_tests) {
        (None, _) => format!("there is a crate `{}`", edge.from),
        (Some(to), false) => format!("crate `{}` uses `{to}`", edge.from),
        (Some(to), true) => format!("crate `{}` uses `{to}` in its tests", edge.from),
    }
}

fn table(text: &str) -> Result<Vec<(usize, Edge)>, Complaint> {
    let mut listed = Vec::new();
    let mut inside = false;
    let mut rows = 0;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        match line.trim() {
            BEGIN => inside = true,
            END if inside => return Ok(listed),
            row if inside && row.starts_with('|') => {
                rows += 1;
                // Skips the header and the line of dashes below it.
                if rows > 2 {
                    listed.extend(row_edges(row, number)?.into_iter().map(|edge| (number, edge)));
                }
            }
            _ => {}
        }
    }
    Err(Complaint::new(DOCUMENT, 0, format!("has no table between `{BEGIN}` and `{END}`")))
}

fn row_edges(row: &str, number: usize) -> Result<Vec<Edge>, Complaint> {
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [from, uses, ..] = cells.as_slice() else {
        return Err(Complaint::new(DOCUMENT, number, "a row of the table has less than two cells"));
    };
    let from = from.trim_matches('`').to_owned();
    let mut edges = vec![Edge { from: from.clone(), to: None, only_tests: false }];
    for name in uses.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "nothing") {
        let (name, only_tests) = match name.strip_suffix("(tests)") {
            Some(name) => (name.trim(), true),
            None => (name, false),
        };
        edges.push(Edge { from: from.clone(), to: Some(name.trim_matches('`').to_owned()), only_tests });
    }
    Ok(edges)
}

#[cfg(test)]
pub fn edges_from_json(text: &str) -> Vec<Edge> {
    from_metadata(&serde_json::from_str(text).expect("test metadata is JSON"))
        .expect("test metadata is whole")
}
