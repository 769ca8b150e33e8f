//! `tidegraph-node restart-log`: starts a new log from checkpoints, after the brokers lost the old one.

use crate::admin::Init;
use crate::connect::{objects, objects_of};
use anyhow::{Context, bail, ensure};
use clap::Args;
use serde_json::json;
use tidegraph_fleet::restart::LostLog;

/// Flags of `restart-log`.
#[derive(Args, Debug)]
pub struct RestartLog {
    #[command(flatten)]
    init: Init,
    /// Continue although writes after this version are lost, or there in part. Without the flag the command says which
    /// version it is, and changes nothing.
    #[arg(long, value_name = "VERSION")]
    accept_loss: Option<u64>,
}

impl RestartLog {
    pub fn run(self) -> anyhow::Result<()> {
        let map = self.init.open_map()?;
        let graph = self.init.graph_in(&*map)?;
        let url = self.init.objects.as_deref().context("--objects is needed: where the checkpoints are")?;
        let log = self.init.log_location()?;
        ensure!(
            log.is_new()?,
            "the topic of the log has messages, so the log is not lost: start the nodes, which go on with it"
        );
        let Some(lost) = LostLog::find(&*objects_of(&objects(url)?, &graph)?, &graph)? else {
            bail!("{url} has no checkpoint of graph {:?}: `init` creates an empty graph", graph.name);
        };
        let (complete, end) = (lost.complete(&graph), lost.end());
        let without: Vec<_> = lost.without(&graph).iter().map(|partition| partition.0).collect();
        if self.accept_loss != Some(complete.0) {
            let empty = match without.len() {
                0 => String::new(),
                some => format!(" {some} partitions have no checkpoint and will be empty: {without:?}."),
            };
            bail!(
                "the checkpoints have everything up to version {complete}, parts of what was written up to version {end}, \
                 and nothing of what was written later.{empty} To go on without the rest, give --accept-loss {complete}"
            );
        }
        let backend = log.backend(graph.sharding()?)?;
        let (first, last) = lost.restart(&graph, &*map, &*backend, self.init.copies())?;
        let text = json!({
            "complete": complete.0,
            "partial": end.0,
            "first": first.0,
            "last": last.0,
            "damagedCheckpoints": lost.damaged,
            "partitionsWithoutCheckpoint": without,
        });
        #[allow(clippy::print_stdout)] // The output of the command.
        {
            println!("{text:#}");
        }
        Ok(())
    }
}
