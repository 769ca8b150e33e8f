//! `tidegraph-node doctor`: looks at this machine and at the daemon on it, and says what holds, what does not, and what to
//! do. It changes nothing. `tidegraph-doctor` of `@tidegraph/cdk` looks at the rest of a deployment on AWS.
//!
//! What it reads is the system's own: `/proc`, `/sys`, `chronyc`, the daemon's metrics and the map. So each part has a
//! function of texts, which tests call with texts of real machines.

mod clock;
mod daemon;
mod disk;
mod finding;

use crate::connect::MapArgs;
use anyhow::bail;
use clap::Args;
use finding::{Finding, Status};
use serde_json::json;
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegraph_fleet::NodeConfig;
use tidegraph_platform::{Clock, Disk, RealClock, RealDisk};

/// Most bytes of a file of the system that are read.
const MOST_BYTES: u64 = 1 << 20;

/// Flags of `doctor`.
#[derive(Args, Debug)]
pub struct Doctor {
    #[command(flatten)]
    map: MapArgs,
    /// Name of the node whose heartbeats are looked for in the map. Default: the map is not looked at.
    #[arg(long, env = "TIDEGRAPH_NODE")]
    node: Option<String>,
    /// Directory of the daemon's local data.
    #[arg(long, default_value = "/var/lib/tidegraph")]
    data: PathBuf,
    /// Address and port of the daemon's metrics.
    #[arg(long, default_value = "127.0.0.1:9600")]
    metrics: SocketAddr,
    /// The daemon's --least-free-bytes: with fewer free bytes it leaves the map.
    #[arg(long, default_value_t = NodeConfig::default().least_free_bytes)]
    least_free_bytes: u64,
    /// Print the findings as JSON.
    #[arg(long)]
    json: bool,
}

impl Doctor {
    /// Looks, prints what it found, and fails if a check failed.
    pub fn run(self) -> anyhow::Result<()> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let mut findings = disk::look(&self.data, self.least_free_bytes);
        findings.push(clock::look());
        findings.extend(daemon::look(self.metrics));
        findings.push(daemon::look_at_member(&self.map, self.node.as_deref(), &clock));
        let failed = findings.iter().filter(|finding| finding.status == Status::Failed).count();
        #[allow(clippy::print_stdout)] // The output of the command.
        if self.json {
            let checks: Vec<_> = findings.iter().map(Finding::as_json).collect();
            println!("{:#}", json!({ "release": env!("CARGO_PKG_VERSION"), "checks": checks }));
        } else {
            for finding in &findings {
                println!("{finding}");
            }
        }
        if failed > 0 {
            bail!("{failed} of {} checks failed", findings.len());
        }
        Ok(())
    }
}

/// Reads a file of the system, up to a limit.
fn read(path: impl AsRef<Path>) -> Result<String, String> {
    let path = path.as_ref();
    let file = RealDisk.open_read(path, 0).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Lists the names in a directory of the system.
fn names(dir: &Path) -> Result<Vec<String>, String> {
    #[expect(clippy::disallowed_methods, reason = "a command that looks at the system's own directories")]
    let entries =
        std::fs::read_dir(dir).map_err(|error| format!("cannot list {}: {error}", dir.display()))?;
    Ok(entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
