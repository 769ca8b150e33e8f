//! Links between the pages of the repository have a target: the file exists, and the file has the heading.
//!
//! Web addresses are not checked, because the result must not depend on the web.

use super::{Complaint, Tree};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::BTreeSet;

/// Checks every link of every Markdown file.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        for (line, target) in targets(text) {
            if let Err(reason) = follow(tree, path, &target) {
                complaints.push(Complaint::new(path, line, format!("the link to `{target}` {reason}")));
            }
        }
    }
    complaints
}

fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let line = 1 + text[..range.start].matches('\n').count();
            found.push((line, dest_url.into_string()));
        }
    }
    found
}

fn follow(tree: &Tree, from: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let path = if file.is_empty() { from.to_owned() } else { resolve(from, file)? };
    if !tree.has_file(&path) && !tree.has_folder(&path) {
        return Err(format!("leads nowhere: there is no {path}"));
    }
    match (heading, tree.text(&path)) {
        (Some(heading), Some(text)) if path.ends_with(".md") && !headings(text).contains(heading) => {
            Err(format!("leads to no heading of {path}"))
        }
        _ => Ok(()),
    }
}

/// Returns the path, from the root of the repository, that a link in a file refers to.
fn resolve(from: &str, target: &str) -> Result<String, String> {
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut parts: Vec<&str> = if target.starts_with('/') {
        Vec::new()
    } else {
        folder.split('/').filter(|part| !part.is_empty()).collect()
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or("leaves the repository")?;
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join("/"))
}

/// Returns the anchors that GitHub makes from headings: lower case, no punctuation, dashes for spaces.
fn headings(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut current: Option<String> = None;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { .. }) => current = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                let title = current.take().unwrap_or_default();
                let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
                anchors.insert(kept.collect::<String>().to_lowercase().replace(' ', "-"));
            }
            Event::Text(piece) | Event::Code(piece) => {
                if let Some(title) = &mut current {
                    title.push_str(&piece);
                }
            }
            _ => {}
        }
    }
    anchors
}
