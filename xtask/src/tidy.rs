//! Rules of the repository that no other linter checks, modelled on the `tidy` of rust-analyzer and TigerBeetle.
//!
//! Flow: list the files that git tracks or would add, read them into a [`Tree`], ask `cargo metadata` for the edges
//! between our crates, then run every rule. A rule is a pure function of the tree and the edges, so a test can show
//! that it fails on a small repository with one defect.
//!
//! A rule must never depend on anything outside the repository, or on the order of the files.

mod edges;
mod errors;
mod invariants;
mod links;
mod source;
#[cfg(test)]
mod tests;

use edges::Edge;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;

/// A violation of a rule, with its place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Complaint {
    /// Path from the root of the repository.
    pub path: String,
    /// Line, counted from 1; 0 if the complaint is about the whole file.
    pub line: usize,
    /// What is wrong, and how to correct it.
    pub text: String,
}

impl Complaint {
    fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            write!(f, "{}: {}", self.path, self.text)
        } else {
            write!(f, "{}:{}: {}", self.path, self.line, self.text)
        }
    }
}

/// The contents of the repository's files, by path with `/`; `None` for a file that is not UTF-8.
#[derive(Clone, Debug, Default)]
pub struct Tree(BTreeMap<String, Option<String>>);

impl Tree {
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref()
    }

    fn has_file(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    fn has_folder(&self, path: &str) -> bool {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        path.is_empty() || self.0.keys().any(|file| file.starts_with(&prefix))
    }
}

/// Runs every rule over the repository at `root`, and returns the complaints in order of path and line.
///
/// # Errors
/// A message if `git` or `cargo metadata` cannot be run or fails.
pub fn check_repository(root: &Path) -> Result<Vec<Complaint>, String> {
    Ok(check(&read_tree(root)?, &edges::of_workspace(root)?))
}

fn check(tree: &Tree, edges: &[Edge]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    complaints.extend(edges::check(tree, edges));
    complaints.extend(source::check(tree));
    complaints.extend(errors::check(tree));
    complaints.extend(invariants::check(tree));
    complaints.extend(links::check(tree));
    complaints.sort();
    complaints
}

fn read_tree(root: &Path) -> Result<Tree, String> {
    let listing = run(root, "git", &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
    let mut files = BTreeMap::new();
    for name in listing.split('\0').filter(|name| !name.is_empty()) {
        // git still lists a file that was deleted but whose deletion is not committed.
        if let Ok(bytes) = std::fs::read(root.join(name)) {
            files.insert(name.to_owned(), String::from_utf8(bytes).ok());
        }
    }
    Ok(Tree(files))
}

fn run(root: &Path, program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root)
        .output()
        .map_err(|error| format!("cannot run {program}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{program} printed what is not UTF-8"))
}
