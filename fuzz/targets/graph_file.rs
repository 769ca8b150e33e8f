//! Reads a file that holds a graph, in GraphSON or GraphML. The first byte chooses the format and the elements.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use tidegraph_load::graph_file::{GraphReader, Step};
use tidegraph_types::{Elements, GraphFormat};

/// Steps that are made with one file.
const STEPS: usize = 100_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, content)) = bytes.split_first() else { return };
    let format = if choice & 2 == 0 { GraphFormat::GraphSon } else { GraphFormat::GraphMl };
    let elements = if choice & 1 == 0 { Elements::Vertices } else { Elements::Edges };
    let Ok(mut reader) = GraphReader::new(Cursor::new(content.to_vec()), "graph", format, elements) else { return };
    let mut found = vec![];
    for _ in 0..STEPS {
        found.clear();
        match reader.step(&mut found) {
            Ok(Step::More) => {}
            Ok(Step::End) => break,
            Err(error) => {
                drop(error.to_string());
                assert_eq!(reader.step(&mut found).ok(), Some(Step::End), "an error ends the file");
                break;
            }
        }
        let is_vertex = elements == Elements::Vertices;
        assert!(found.iter().all(|element| element.ends.is_none() == is_vertex), "other elements than asked for");
        assert!(reader.held_bytes() > 0);
    }
});
