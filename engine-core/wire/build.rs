//! Generates the message types from `contracts/proto`. protox compiles them, so no `protoc` has to be installed.

#![allow(clippy::disallowed_methods, reason = "a build script reads the schemas")]

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    // Cargo starts build scripts in the folder of their crate. A relative path is the same in every clone, which may
    // share what is built.
    let root = Path::new("../../contracts/proto");
    let dir = root.join("tidegraph/v1");
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&dir)?.map(|entry| entry.map(|e| e.path())).collect::<Result<_, _>>()?;
    files.retain(|path| path.extension().is_some_and(|e| e == "proto"));
    files.sort();
    for file in &files {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    let descriptors = protox::compile(&files, [root])?;
    // Long columns are slices of the message that arrived.
    let columns = [
        ".tidegraph.v1.NumberColumn",
        ".tidegraph.v1.PropertyCells",
        ".tidegraph.v1.ValueColumn",
        ".tidegraph.v1.ReadVerticesRequest",
        ".tidegraph.v1.ReadEdgesRequest",
        ".tidegraph.v1.ExpandRequest",
        ".tidegraph.v1.FindEdgesRequest",
        ".tidegraph.v1.VertexHandles",
        ".tidegraph.v1.EdgeCandidates",
        ".tidegraph.v1.Expansion",
        ".tidegraph.v1.ScannedVertices",
        ".tidegraph.v1.ScannedValues",
        ".tidegraph.v1.ScannedEdges",
        ".tidegraph.v1.EndCounts",
    ];
    prost_build::Config::new().bytes(columns).compile_fds(descriptors)?;
    Ok(())
}
