//! Graphs that workloads load: the files that `tidegraph generate` writes, as Gremlin CSV.

use std::path::Path;
use tidegraph_load::Dialect;
use tidegraph_load::generate::{Graph, Spec, files};

/// Writes the identity graph; `scale` is the number of golden entities.
pub fn identity(scale: u64, seed: u64, folder: &Path) -> anyhow::Result<()> {
    write(&Spec { graph: Graph::Identity, scale, seed }, folder)
}

/// Writes the social graph; it has 2^`scale` profiles.
pub fn social(scale: u64, seed: u64, folder: &Path) -> anyhow::Result<()> {
    write(&Spec { graph: Graph::Social, scale, seed }, folder)
}

/// Writes the network; `scale` is the number of persons.
pub fn network(scale: u64, seed: u64, folder: &Path) -> anyhow::Result<()> {
    write(&Spec { graph: Graph::Network, scale, seed }, folder)
}

/// Writes the network with properties; `scale` is the number of persons.
pub fn snb(scale: u64, seed: u64, folder: &Path) -> anyhow::Result<()> {
    write(&Spec { graph: Graph::Snb, scale, seed }, folder)
}

fn write(spec: &Spec, folder: &Path) -> anyhow::Result<()> {
    files::write(spec, Dialect::GREMLIN, false, folder, |_, _| ())?;
    Ok(())
}
