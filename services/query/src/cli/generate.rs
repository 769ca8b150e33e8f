//! `tidegraph generate`: the benchmark graphs as files, the same bytes for the same seed.

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use tidegraph_load::Dialect;
use tidegraph_load::generate::{self, Graph, Spec};

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Golden entities with their partners, devices, cookies, addresses, accounts and households.
    Identity,
    /// Profiles that follow each other (R-MAT).
    Social,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// Gremlin CSV.
    GremlinCsv,
    /// openCypher CSV.
    OpencypherCsv,
}

/// Flags of `generate`.
#[derive(Args, Debug)]
pub struct Generate {
    /// Which graph.
    #[arg(value_enum)]
    kind: Kind,
    /// Golden entities (identity), or the exponent of the number of profiles (social).
    #[arg(long)]
    scale: u64,
    /// Seed of everything random.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Format of the files.
    #[arg(long, value_enum, default_value_t = Format::GremlinCsv)]
    format: Format,
    /// Compress the files with gzip.
    #[arg(long)]
    gzip: bool,
    /// Folder to write to; made if it is not there.
    #[arg(long, default_value = ".")]
    out: PathBuf,
}

impl Generate {
    /// Writes the files.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let graph = match self.kind {
            Kind::Identity => Graph::Identity,
            Kind::Social => Graph::Social,
        };
        let dialect = match self.format {
            Format::GremlinCsv => Dialect::Gremlin,
            Format::OpencypherCsv => Dialect::OpenCypher,
        };
        anyhow::ensure!(
            graph == Graph::Identity || (1..=30).contains(&self.scale),
            "the social graph has 2^scale profiles: --scale must be between 1 and 30, not {}",
            self.scale
        );
        let spec = Spec { graph, scale: self.scale, seed: self.seed };
        let bar = ProgressBar::new(spec.steps());
        bar.set_style(ProgressStyle::with_template("{bar:30} {percent}% {per_sec} {eta} left")?);
        let files =
            generate::files::write(&spec, dialect, self.gzip, &self.out, |done, _| bar.set_position(done))?;
        bar.finish_and_clear();
        for file in files {
            println!("{} {} rows", file.path.display(), file.rows);
        }
        Ok(ExitCode::SUCCESS)
    }
}
