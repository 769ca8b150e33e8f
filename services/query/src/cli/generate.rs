//! `tidegraph generate`: writes a generated graph to files. The same seed gives the same bytes on every machine.

use anyhow::Context;
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use tidegraph_load::Dialect;
use tidegraph_load::generate::{self, Graph, Spec};

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Kind {
    /// Golden entities with their partners, devices, cookies, IP addresses, accounts and households.
    Identity,
    /// Profiles that are friends of each other (R-MAT).
    Social,
    /// Persons who know each other, forums, posts, comments, likes, tags and places, with the schema of LSQB.
    Network,
    /// The network with properties, companies and universities, for the reads of LDBC SNB Interactive.
    Snb,
}

/// The values of `--format`, with their help.
fn formats() -> Vec<PossibleValue> {
    let value = |dialect: Dialect| PossibleValue::new(dialect.format_name()).help(format!("{dialect:?} CSV"));
    Dialect::all().map(value).collect()
}

/// Flags of `generate`.
#[derive(Args, Debug)]
pub struct Generate {
    /// Graph to generate.
    #[arg(value_enum)]
    kind: Kind,
    /// Number of golden entities (identity), or exponent of the number of profiles (social: 2^SCALE), or number of persons (network, snb).
    #[arg(long)]
    scale: u64,
    /// Seed of the random numbers.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Format of the files.
    #[arg(long, value_parser = PossibleValuesParser::new(formats()), default_value = Dialect::GREMLIN.format_name())]
    format: String,
    /// Compress the files with gzip.
    #[arg(long)]
    gzip: bool,
    /// Folder for the files; created if it does not exist.
    #[arg(long, default_value = ".")]
    out: PathBuf,
}

impl Generate {
    /// Writes the files.
    ///
    /// # Errors
    ///
    /// If the scale of a social graph is not 1 to 30, the scale of a network is too large, or a file cannot be written.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let graph = match self.kind {
            Kind::Identity => Graph::Identity,
            Kind::Social => Graph::Social,
            Kind::Network => Graph::Network,
            Kind::Snb => Graph::Snb,
        };
        let dialect = Dialect::named(&self.format).context("the format is one of the possible values")?;
        anyhow::ensure!(
            graph != Graph::Social || (1..=30).contains(&self.scale),
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
