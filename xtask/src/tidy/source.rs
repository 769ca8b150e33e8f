//! Rules about single files: their length, the module header of Rust files, forbidden words, and registries in lock
//! files.

use super::{Complaint, Tree};

const MAX_LINES: usize = 800;

/// Extensions of source files, whose length is limited.
const SOURCES: &[&str] = &["rs", "ts", "mjs", "js", "py", "sh", "proto"];

/// Words for unfinished work and for paths of one machine. They are written in two parts, so that this file passes.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("to", "do!"), "unfinished work"),
    (concat!("FIX", "ME"), "unfinished work"),
    (concat!("XX", "X"), "unfinished work"),
];

/// Checks every file.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        if is_lock(path) {
            complaints.extend(registry_hosts(path, text));
            continue;
        }
        let extension = extension(path);
        let generated = path.contains("/generated/");
        if SOURCES.contains(&extension) && !generated {
            let lines = text.lines().count();
            if lines > MAX_LINES {
                complaints.push(Complaint::new(
                    path,
                    0,
                    format!("has {lines} lines; split it before {MAX_LINES}"),
                ));
            }
        }
        if extension == "rs" && !text.starts_with("//!") {
            complaints.push(Complaint::new(path, 1, "does not begin with `//!` and what the module is for"));
        }
        // Data from elsewhere is kept unchanged.
        if extension != "csv" {
            complaints.extend(forbidden_words(path, text));
        }
    }
    complaints
}

fn extension(path: &str) -> &str {
    path.rsplit('/').next().and_then(|name| name.rsplit_once('.')).map_or("", |(_, extension)| extension)
}

fn is_lock(path: &str) -> bool {
    path.ends_with("package-lock.json") || path.ends_with("Cargo.lock")
}

fn forbidden_words<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Complaint> + 'a {
    text.lines().enumerate().flat_map(move |(index, line)| {
        FORBIDDEN.iter().filter(|(word, _)| stands_alone(line, word)).map(move |(word, reason)| {
            Complaint::new(path, index + 1, format!("`{word}` is {reason} and must not stay"))
        })
    })
}

/// Whether a line contains a word without a letter or digit directly before or after it.
fn stands_alone(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let joined = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let starts_with_letter = word.starts_with(|c: char| c.is_ascii_alphanumeric());
        let ends_with_letter = word.ends_with(|c: char| c.is_ascii_alphanumeric());
        !(starts_with_letter && joined(line[..at].chars().next_back())
            || ends_with_letter && joined(line[at + word.len()..].chars().next()))
    })
}

/// Complains about registries other than the public ones in a lock file. Other machines cannot install from them.
fn registry_hosts<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Complaint> + 'a {
    text.lines().enumerate().filter_map(move |(index, line)| {
        let rest = line.split_once("://")?.1;
        let allowed = ["registry.npmjs.org/", "github.com/rust-lang/crates.io-index"];
        let is_address = line.trim_start().starts_with("\"resolved\"") || line.starts_with("source = ");
        (is_address && !allowed.iter().any(|host| rest.starts_with(host)))
            .then(|| Complaint::new(path, index + 1, "names a registry that is not the public one"))
    })
}
