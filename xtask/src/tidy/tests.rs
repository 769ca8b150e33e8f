//! Tests that the repository follows all rules, and that each rule finds its defect in a small repository.

use super::*;

fn tree(files: &[(&str, &str)]) -> Tree {
    Tree(files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect())
}

fn said(complaints: &[Complaint]) -> String {
    complaints.iter().map(|complaint| format!("{complaint}\n")).collect()
}

#[test]
fn the_repository_is_tidy() {
    let complaints = check_repository(&crate::repository_root()).expect("the repository can be read");
    assert!(complaints.is_empty(), "\n{}", said(&complaints));
}

const METADATA: &str = r#"{"packages":[
  {"manifest_path":"/r/engine-core/types/Cargo.toml","dependencies":[{"name":"serde","path":null,"kind":null}]},
  {"manifest_path":"/r/engine-core/apl/Cargo.toml","dependencies":[
    {"name":"types","path":"/r/engine-core/types","kind":null},{"name":"types","path":"/r/engine-core/types","kind":"dev"},
    {"name":"platform","path":"/r/engine-core/platform","kind":"dev"}]},
  {"manifest_path":"/r/engine-core/platform/Cargo.toml","dependencies":[]}
]}"#;

fn architecture(rows: &str) -> Tree {
    tree(&[(
        "ARCHITECTURE.md",
        &format!(
            "# Map\n<!-- crate edges -->\n\n| crate | may use |\n|---|---|\n{rows}\n<!-- end of crate edges -->\n"
        ),
    )])
}

#[test]
fn a_table_that_lists_every_edge_passes() {
    let edges = edges::edges_from_json(METADATA);
    let rows = "| `types` | nothing |\n| `platform` | nothing |\n| `apl` | `types`, `platform` (tests) |";
    assert_eq!(said(&edges::check(&architecture(rows), &edges)), "");
}

#[test]
fn an_edge_that_is_not_listed_is_found() {
    let edges = edges::edges_from_json(METADATA);
    let rows = "| `types` | nothing |\n| `platform` | nothing |\n| `apl` | `platform` (tests) |";
    let complaints = said(&edges::check(&architecture(rows), &edges));
    assert_eq!(complaints, "ARCHITECTURE.md: crate `apl` uses `types`, and the table does not list it\n");
}

#[test]
fn a_listed_edge_or_crate_that_is_gone_is_found() {
    let edges = edges::edges_from_json(METADATA);
    let rows = "| `types` | nothing |\n| `platform` | `types` |\n| `apl` | `types`, `platform` (tests) |\n| `log` | nothing |";
    let complaints = said(&edges::check(&architecture(rows), &edges));
    assert!(
        complaints
            .contains("ARCHITECTURE.md:7: the table says that crate `platform` uses `types`: it is not so")
    );
    assert!(
        complaints.contains("ARCHITECTURE.md:9: the table says that there is a crate `log`: it is not so")
    );
}

#[test]
fn an_edge_for_tests_does_not_allow_one_for_the_crate() {
    let edges = edges::edges_from_json(&METADATA.replace(r#""kind":"dev""#, r#""kind":null"#));
    let rows = "| `types` | nothing |\n| `platform` | nothing |\n| `apl` | `types`, `platform` (tests) |";
    let complaints = said(&edges::check(&architecture(rows), &edges));
    assert!(
        complaints.contains("crate `apl` uses `platform`, and the table does not list it"),
        "{complaints}"
    );
}

#[test]
fn a_missing_table_is_found() {
    let complaints = said(&edges::check(&tree(&[("ARCHITECTURE.md", "# Map\n")]), &[]));
    assert!(complaints.contains("has no table between"), "{complaints}");
    let complaints = said(&edges::check(&tree(&[]), &[]));
    assert!(complaints.contains("is missing"), "{complaints}");
}

#[test]
fn a_long_file_is_found_unless_a_tool_made_it() {
    let long = format!("//! Long.\n{}", "\n".repeat(800));
    let complaints = said(&source::check(&tree(&[("a/src/lib.rs", &long), ("a/generated/b.ts", &long)])));
    assert_eq!(complaints, "a/src/lib.rs: has 801 lines; split it before 800\n");
}

#[test]
fn a_module_without_a_header_is_found() {
    let complaints = said(&source::check(&tree(&[("a/src/lib.rs", "fn main() {}\n")])));
    assert_eq!(complaints, "a/src/lib.rs:1: does not begin with `//!` and what the module is for\n");
}

#[test]
fn forbidden_words_are_found_where_they_stand_alone() {
    let word = concat!("FIX", "ME");
    let path = concat!("/wo", "rk/");
    let text = format!("first\n// {word}: later\nin {path}main\nPRE{word} is a name\n");
    let complaints = source::check(&tree(&[("docs/a.md", &text)]));
    assert_eq!(complaints.iter().map(|complaint| complaint.line).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn a_lock_file_that_names_another_registry_is_found() {
    let npm = "{\n\"resolved\": \"https://registry.npmjs.org/a/-/a.tgz\",\n\"resolved\": \"https://mirror.example/a.tgz\"\n}";
    let cargo = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n";
    let complaints = said(&source::check(&tree(&[("package-lock.json", npm), ("Cargo.lock", cargo)])));
    assert_eq!(complaints, "package-lock.json:3: names a registry that is not the public one\n");
}

fn with_error_table(page: &str, text: &str) -> String {
    let table = r#"{"errors":[{"code":"ThisException","kind":"invalid","httpStatus":400,"docs":"docs/errors/ThisException.md"}]}"#;
    let index = "[ThisException](ThisException.md)";
    said(&errors::check(&tree(&[
        ("contracts/errors.json", table),
        ("docs/errors/README.md", index),
        (page, text),
    ])))
}

#[test]
fn error_codes_and_their_pages_agree() {
    assert_eq!(with_error_table("docs/errors/ThisException.md", "# ThisException\n\nHTTP 400\n"), "");
}

#[test]
fn a_code_without_a_page_and_a_page_without_a_code_are_found() {
    let complaints = with_error_table("docs/errors/OtherException.md", "# OtherException\n");
    assert!(complaints.contains("docs/errors/ThisException.md: is missing"), "{complaints}");
    assert!(complaints.contains("docs/errors/OtherException.md: no code of"), "{complaints}");
}

#[test]
fn a_page_with_another_status_is_found() {
    let complaints = with_error_table("docs/errors/ThisException.md", "# ThisException\n\nHTTP 500\n");
    assert!(complaints.contains("does not open with ThisException and HTTP 400"), "{complaints}");
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = "# Page\n\n[good](../src/lib.rs) [folder](../src) [own](#page) [web](https://example.org)\n\n\
                ```\n[not](a-link.md)\n```\n[bad](missing.md) [heading](other.md#nowhere) [out](../../x)\n";
    let complaints = links::check(&tree(&[
        ("docs/page.md", page),
        ("docs/other.md", "## Some `code`\n"),
        ("src/lib.rs", ""),
    ]));
    let text = said(&complaints);
    assert_eq!(complaints.len(), 3, "{text}");
    assert!(text.contains("docs/page.md:8: the link to `missing.md` leads nowhere"), "{text}");
    assert!(text.contains("the link to `other.md#nowhere` leads to no heading of docs/other.md"), "{text}");
    assert!(text.contains("the link to `../../x` leaves the repository"), "{text}");
}

const INVARIANTS: &str = "# Map\n\n## Named invariants\n\n| name | what |\n|---|---|\n| LOG-1 | whole |\n| LOG-2 | found |\n\n## Next\n";

#[test]
fn invariants_that_are_named_in_code_pass() {
    let files = [
        ("ARCHITECTURE.md", INVARIANTS),
        ("engine-core/log/src/lib.rs", "// LOG-1: one frame.\n// In UTF-8.\n"),
        ("integration-tests/test/crash.test.ts", "/** LOG-2 */\n"),
    ];
    assert_eq!(said(&invariants::check(&tree(&files))), "");
}

#[test]
fn an_invariant_that_no_code_names_is_found() {
    let files = [
        ("ARCHITECTURE.md", INVARIANTS),
        ("engine-core/log/src/lib.rs", "// LOG-1\n"),
        ("docs/a.md", "LOG-2\n"),
    ];
    assert_eq!(
        said(&invariants::check(&tree(&files))),
        "ARCHITECTURE.md:8: invariant LOG-2 is named in no code and no test: name it where it is held\n"
    );
}

#[test]
fn an_invariant_that_the_table_lacks_is_found() {
    let files =
        [("ARCHITECTURE.md", INVARIANTS), ("engine-core/log/src/lib.rs", "// LOG-1, LOG-2\n// LOG-3\n")];
    assert_eq!(
        said(&invariants::check(&tree(&files))),
        "engine-core/log/src/lib.rs:2: LOG-3 is no invariant of ARCHITECTURE.md: name one, or add it to the table\n"
    );
}
