//! Parses feature files into scenarios: prepends backgrounds and expands outlines.
//!
//! It parses the part of Gherkin that the TCK uses. No crate fits: `gherkin`, the maintained one, refuses a
//! table cell with a backslash before any character except `n`, `|` and `\`, and the TCK is full of `'\''`.

use std::path::Path;

/// A step with its attachments.
#[derive(Clone, Debug, Default)]
pub struct Step {
    /// Text without the keyword.
    pub text: String,
    /// Text between `"""`.
    pub doc: String,
    /// Rows of cells.
    pub table: Vec<Vec<String>>,
}

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// `FILE [NUMBER] TITLE`, with ` #N` appended for the Nth example of an outline.
    pub name: String,
    pub steps: Vec<Step>,
}

/// State of the parser between lines.
#[derive(Default)]
struct Outline {
    title: String,
    tags: String,
    steps: Vec<Step>,
    /// One table for each `Examples:`.
    examples: Vec<Vec<Vec<String>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Section {
    Head,
    Background,
    Scenario,
    Examples,
}

/// Reads all scenarios of the feature files below a folder, in the order of their paths.
pub fn read_folder(folder: &Path) -> Vec<Scenario> {
    let mut files = vec![];
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "feature") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
        .iter()
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let stem = path.file_stem().expect("a name").to_string_lossy();
            read(&stem, &text)
        })
        .collect()
}

/// Reads the scenarios of one feature file.
pub fn read(file: &str, text: &str) -> Vec<Scenario> {
    let mut section = Section::Head;
    let mut background = vec![];
    let mut outlines: Vec<Outline> = vec![];
    let mut tags = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        let steps = match outlines.last_mut() {
            Some(outline) if section != Section::Background => &mut outline.steps,
            _ => &mut background,
        };
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        } else if trimmed.starts_with("\"\"\"") {
            let indent = line.len() - line.trim_start().len();
            let doc: Vec<&str> = lines
                .by_ref()
                .take_while(|line| !line.trim_start().starts_with("\"\"\""))
                .map(|line| &line[indent.min(line.len() - line.trim_start().len())..])
                .collect();
            steps.last_mut().expect("a step before a text").doc = doc.join("\n");
        } else if trimmed.starts_with('|') {
            let table = match section {
                Section::Examples => outlines.last_mut().and_then(|o| o.examples.last_mut()),
                _ => steps.last_mut().map(|step| &mut step.table),
            };
            table.expect("a table belongs to something").push(cells(trimmed));
        } else if trimmed.starts_with('@') {
            tags = trimmed.into();
        } else if trimmed.starts_with("Feature:") {
            section = Section::Head;
        } else if trimmed.starts_with("Background:") {
            section = Section::Background;
        } else if let Some(title) =
            trimmed.strip_prefix("Scenario:").or_else(|| trimmed.strip_prefix("Scenario Outline:"))
        {
            section = Section::Scenario;
            let (title, tags) = (title.trim().to_owned(), std::mem::take(&mut tags));
            outlines.push(Outline { title, tags, ..Outline::default() });
        } else if trimmed.starts_with("Examples:") {
            section = Section::Examples;
            outlines.last_mut().expect("examples belong to an outline").examples.push(vec![]);
        } else if let Some((_, text)) = trimmed
            .split_once(' ')
            .filter(|(keyword, _)| matches!(*keyword, "Given" | "When" | "Then" | "And" | "But"))
        {
            steps.push(Step { text: text.trim().into(), ..Step::default() });
        } else {
            assert!(section == Section::Head, "{file}: what is this line? {line}");
        }
    }
    let wanted = outlines.into_iter().filter(|outline| !outline.tags.contains("@ignore"));
    wanted.flat_map(|outline| expand(file, &background, outline)).collect()
}

fn expand(file: &str, background: &[Step], outline: Outline) -> Vec<Scenario> {
    let steps: Vec<Step> = background.iter().chain(&outline.steps).cloned().collect();
    let name = format!("{file} {}", outline.title);
    if outline.examples.is_empty() {
        return vec![Scenario { name, steps }];
    }
    let mut scenarios = vec![];
    for table in &outline.examples {
        let (header, rows) = table.split_first().expect("a header");
        for row in rows {
            let fill = |text: &String| {
                header
                    .iter()
                    .zip(row)
                    .fold(text.clone(), |text, (key, cell)| text.replace(&format!("<{key}>"), cell))
            };
            let steps = steps.iter().map(|step| Step {
                text: fill(&step.text),
                doc: fill(&step.doc),
                table: step.table.iter().map(|row| row.iter().map(fill).collect()).collect(),
            });
            let name = format!("{name} #{}", scenarios.len() + 1);
            scenarios.push(Scenario { name, steps: steps.collect() });
        }
    }
    scenarios
}

/// Splits a row such as `| a | b \| c |` into cells. A backslash escapes only `|`, `n` and itself.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![];
    let mut cell = String::new();
    let mut chars = line.chars().skip(1).peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('|', _) => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            ('\\', Some('n')) => {
                chars.next();
                cell.push('\n');
            }
            ('\\', Some(&escaped @ ('|' | '\\'))) => {
                chars.next();
                cell.push(escaped);
            }
            _ => cell.push(c),
        }
    }
    cells
}

#[test]
fn cells_are_unescaped() {
    assert_eq!(cells(r"| a \| b | '\'' | '\\\\' |  |"), ["a | b", r"'\''", r"'\\'", ""]);
}

#[test]
fn outlines_are_expanded() {
    let text = "Feature: F\n  Background:\n    Given an empty graph\n  Scenario Outline: [1] T\n    When executing query:\n      \"\"\"\n      RETURN\n        <x>\n      \"\"\"\n    Examples:\n      | x |\n      | 1 |\n      | 2 |\n";
    let scenarios = read("F", text);
    assert_eq!(scenarios.len(), 2);
    assert_eq!(scenarios[1].name, "F [1] T #2");
    assert_eq!(scenarios[1].steps[0].text, "an empty graph");
    assert_eq!(scenarios[1].steps[1].doc, "RETURN\n  2");
}
