//! Compiles every traversal of TinkerPop's Gherkin features, if `GREMLIN_FEATURES` names a directory that holds them
//! (the `gremlin-test` jar on Maven Central, unpacked). None may be a syntax error that the official grammar accepts.

use std::collections::BTreeMap;
use std::path::Path;
use tidegraph_gremlin::{FrontEndError, compile};

fn traversals(directory: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).expect("a directory of features") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            traversals(&path, found);
        } else if path.extension().is_some_and(|e| e == "feature") {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let text: String =
                text.lines().filter(|l| !l.trim_start().starts_with('#')).map(|l| format!("{l}\n")).collect();
            found.extend(text.split("\"\"\"").skip(1).step_by(2).map(|t| t.trim().to_owned()));
        }
    }
}

#[test]
fn official_features_parse() {
    let Ok(directory) = std::env::var("GREMLIN_FEATURES") else { return };
    let mut texts = vec![];
    traversals(Path::new(&directory), &mut texts);
    let (mut compiled, mut unsupported, mut wrong) = (0, BTreeMap::<String, u32>::new(), vec![]);
    for text in &texts {
        match compile(text) {
            Ok(_) => compiled += 1,
            Err(FrontEndError::Unsupported { name, .. }) => *unsupported.entry(name).or_default() += 1,
            Err(error) => wrong.push(format!("{error}\n    {text}")),
        }
    }
    let refused: u32 = unsupported.values().sum();
    println!("{} traversals: {compiled} compile, {refused} are not supported yet", texts.len());
    let mut by_count: Vec<_> = unsupported.into_iter().collect();
    by_count.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), name.clone()));
    for (name, count) in by_count {
        println!("{count:5} {name}");
    }
    println!("{} syntax errors\n{}", wrong.len(), wrong.join("\n"));
}
