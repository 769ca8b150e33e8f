//! Every error code that a client can see has a page, every page has a code, and the page gives the code's HTTP status.
//!
//! `engine-core/types/tests/error_table.rs` compares `contracts/errors.json` with the codes of the Rust code.

use super::{Complaint, Tree};
use serde_json::Value;
use std::collections::BTreeSet;

const TABLE: &str = "contracts/errors.json";
const PAGES: &str = "docs/errors/";
const INDEX: &str = "docs/errors/README.md";

/// Compares `contracts/errors.json` with `docs/errors/`.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(text) = tree.text(TABLE) else {
        return vec![Complaint::new(TABLE, 0, "is missing; it lists the error codes")];
    };
    let table: Value = match serde_json::from_str(text) {
        Ok(table) => table,
        Err(error) => return vec![Complaint::new(TABLE, error.line(), format!("is not JSON: {error}"))],
    };
    let mut complaints = Vec::new();
    let mut expected = BTreeSet::from([INDEX.to_owned()]);
    let index = tree.text(INDEX).unwrap_or_default();
    for row in table["errors"].as_array().into_iter().flatten() {
        let code = row["code"].as_str().unwrap_or_default();
        let page = format!("{PAGES}{code}.md");
        if row["docs"].as_str() != Some(&page) {
            complaints.push(Complaint::new(TABLE, 0, format!("the page of {code} is not {page}")));
        }
        match tree.text(&page) {
            None => complaints.push(Complaint::new(&page, 0, "is missing; every error code has a page")),
            Some(text) => {
                let status = format!("HTTP {}", row["httpStatus"]);
                if !text.starts_with(&format!("# {code}\n")) || !text.contains(&status) {
                    complaints.push(Complaint::new(
                        &page,
                        0,
                        format!("does not open with {code} and {status}"),
                    ));
                }
            }
        }
        if !index.contains(&format!("({code}.md)")) {
            complaints.push(Complaint::new(INDEX, 0, format!("does not list {code}")));
        }
        expected.insert(page);
    }
    let pages = tree.texts().map(|(path, _)| path).filter(|path| path.starts_with(PAGES));
    for path in pages.filter(|path| !expected.contains(*path)) {
        complaints.push(Complaint::new(path, 0, format!("no code of {TABLE} has this page")));
    }
    complaints
}
