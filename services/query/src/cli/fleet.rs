//! `tidegraph fleet`: plans moves of replicas and carries them out. The steps are those of [`Rebalance`], which the
//! state machines on AWS use too.

mod split;

use super::map::MapArgs;
use anyhow::{Context, bail};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tidegraph_cluster::{
    Acquired, Advanced, Goal, Move, NodeId, NodeState, Plan, Rebalance, Stage, takeover_wait,
};
use tidegraph_platform::{Clock, Random, RealClock, RealRandom, chain};

/// Time that this process may rely on the lease after a renewal.
const LEASE: Duration = Duration::from_secs(15);
/// Largest number of rows in a table of moves.
const MOST_ROWS: usize = 40;

/// Plans moves of replicas and carries them out.
#[derive(Args, Debug)]
pub struct FleetCommand {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show the moves of a plan and change nothing.
    Plan(PlanArgs),
    /// Restore missing replicas on nodes that are up.
    Heal(Heal),
    /// Move replicas to nodes that were added.
    Add(Add),
    /// Move all replicas away from a node. It answers queries until other nodes hold its replicas, and may be stopped
    /// then.
    Drain(Drain),
    /// Raise the number of partitions while the graph is read and written. May be stopped at any time; the same command
    /// goes on.
    Split(split::Split),
}

/// Flags of the commands that move replicas.
#[derive(Args, Debug)]
struct MoveArgs {
    #[command(flatten)]
    map: MapArgs,
    /// Show the moves and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Largest number of moves at the same time. With few nodes, --restores-per-node is the limit.
    #[arg(long, default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=256))]
    moves: u16,
    /// Largest number of restores on one node at the same time.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    restores_per_node: u16,
    /// Time limit in seconds. The next run of the command resumes moves that are unfinished by then.
    #[arg(long, default_value_t = 3600)]
    timeout_s: u64,
    /// Milliseconds between two reads of the partition map.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(100..=5000))]
    look_ms: u64,
    /// Print only the result, as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum GoalArg {
    /// Restore missing replicas and empty the nodes that leave.
    Repair,
    /// Also spread the replicas evenly over all nodes.
    Balance,
}

#[derive(Args, Debug)]
struct PlanArgs {
    #[command(flatten)]
    map: MapArgs,
    /// Goal of the plan.
    #[arg(long, value_enum, default_value = "balance")]
    goal: GoalArg,
    /// Accepted for symmetry with the other commands: a plan changes nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan with all its moves as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct Heal {
    #[command(flatten)]
    args: MoveArgs,
    /// First declare nodes lost that send no heartbeat for this many milliseconds. 0 leaves that to the sequencer.
    #[arg(long, default_value_t = 5000, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    silence_ms: u64,
}

#[derive(Args, Debug)]
struct Add {
    /// Node to wait for, or draining node that is to stay.
    node: Option<String>,
    #[command(flatten)]
    args: MoveArgs,
}

#[derive(Args, Debug)]
struct Drain {
    /// Node to empty.
    node: String,
    #[command(flatten)]
    args: MoveArgs,
}

impl FleetCommand {
    /// Runs the command.
    ///
    /// # Errors
    ///
    /// If the partition map cannot be read or changed, another process rebalances the graph, the time limit passes, or
    /// there are too few nodes for all replicas.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Command::Plan(plan) => plan.run(),
            Command::Heal(Heal { args, silence_ms }) => {
                let run = Run::new(args)?;
                let silence = Duration::from_millis(silence_ms);
                run.with_lease(|| {
                    run.find_lost(silence)?;
                    run.to_end(Goal::Repair, None)
                })
            }
            Command::Add(Add { node, args }) => {
                let run = Run::new(args)?;
                let node = node.as_deref().map(NodeId::new).transpose()?;
                run.with_lease(|| {
                    if let Some(node) = &node {
                        run.wait_for(node)?;
                    }
                    run.to_end(Goal::Balance, None)
                })
            }
            Command::Split(split) => split.run(),
            Command::Drain(Drain { node, args }) => {
                let run = Run::new(args)?;
                let node = NodeId::new(&node)?;
                run.with_lease(|| {
                    // First, so that an unknown node is reported at once.
                    run.rebalance.node_state(&node)?;
                    run.to_end(Goal::Repair, Some(&node))
                })
            }
        }
    }
}

/// Opens the partition map that the flags name.
fn open(map: &MapArgs, clock: &Arc<dyn Clock>) -> anyhow::Result<Rebalance> {
    Ok(Rebalance::new(map.table().open(clock)?, &map.graph))
}

impl PlanArgs {
    fn run(self) -> anyhow::Result<ExitCode> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let goal = match self.goal {
            GoalArg::Repair => Goal::Repair,
            GoalArg::Balance => Goal::Balance,
        };
        let plan = open(&self.map, &clock)?.fleet()?.plan(goal);
        if self.json {
            let json = json!({ "goal": goal, "moves": plan.moves, "restores": plan.restores(), "bytes": plan.bytes(),
                "coming": plan.coming.len(), "short": plan.short });
            println!("{json:#}");
        } else {
            println!("{}", table(&plan));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A running command.
struct Run {
    args: MoveArgs,
    clock: Arc<dyn Clock>,
    rebalance: Rebalance,
    holder: String,
    end: Duration,
}

impl Run {
    fn new(args: MoveArgs) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(RealClock::new());
        let rebalance = open(&args.map, &clock)?;
        // Unique among all processes.
        let holder = format!("tidegraph-fleet-{:016x}", RealRandom.next_u64());
        let end = clock.now() + Duration::from_secs(args.timeout_s);
        Ok(Self { args, clock, rebalance, holder, end })
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(self.args.look_ms)
    }

    fn say(&self, text: &str) {
        if !self.args.json {
            // If the reader of the output has gone, the work continues.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
    }

    /// Does some work while this process holds the lease for rebalancing.
    fn with_lease(&self, work: impl FnOnce() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
        if self.args.dry_run {
            return work();
        }
        self.acquire()?;
        let done = work();
        if let Err(error) = self.rebalance.release(&self.holder) {
            tracing::warn!(%error, "the lease could not be released; it expires by itself");
        }
        done
    }

    /// Takes the lease. Fails if another process renews it; takes it over from a process that does not renew it any
    /// more.
    fn acquire(&self) -> anyhow::Result<()> {
        let mut seen = None;
        loop {
            let now = self.clock.now();
            let theirs = match self.rebalance.acquire(&self.holder, LEASE, None)? {
                Acquired::Ours(_) => return Ok(()),
                Acquired::Theirs(lease) => lease,
            };
            match &seen {
                None => {
                    self.say(&format!(
                        "{} holds the lease for rebalancing this graph; waiting to see whether it still runs",
                        theirs.holder
                    ));
                    seen = Some((theirs, now));
                }
                Some((before, _)) if *before != theirs => {
                    bail!("{} is rebalancing this graph: wait for it to end, or stop it", theirs.holder)
                }
                Some((before, since)) if now - *since > takeover_wait(before) => {
                    match self.rebalance.acquire(&self.holder, LEASE, Some(before))? {
                        Acquired::Ours(_) => return Ok(()),
                        Acquired::Theirs(lease) => bail!(
                            "{} is rebalancing this graph: wait for it to end, or stop it",
                            lease.holder
                        ),
                    }
                }
                Some(_) => {}
            }
            self.pause("the lease was not released")?;
        }
    }

    /// Waits until the next read of the map. `what` is the reason to report when the time limit passes.
    fn pause(&self, what: &str) -> anyhow::Result<()> {
        if self.clock.now() > self.end {
            bail!("the time limit of {} s passed: {what}", self.args.timeout_s);
        }
        self.clock.sleep(self.poll_interval());
        Ok(())
    }

    fn renew(&self) -> anyhow::Result<()> {
        self.rebalance
            .renew(&self.holder)
            .context("the lease was lost: another process may be rebalancing this graph")
    }

    /// Declares nodes lost that send no heartbeat for a time.
    fn find_lost(&self, silence: Duration) -> anyhow::Result<()> {
        if silence.is_zero() || self.args.dry_run {
            return Ok(());
        }
        let before = self.rebalance.heartbeat_snapshot()?;
        let begun = self.clock.now();
        while self.clock.now() - begun < silence {
            self.clock.sleep(self.poll_interval().min(silence));
            self.renew()?;
        }
        for node in self.rebalance.mark_lost(&before)? {
            self.say(&format!(
                "node {node} sent no heartbeat for {} ms and is declared lost",
                silence.as_millis()
            ));
        }
        Ok(())
    }

    /// Waits until a node is up. A draining node stops draining.
    fn wait_for(&self, node: &NodeId) -> anyhow::Result<()> {
        if self.args.dry_run {
            return Ok(());
        }
        loop {
            let state = match self.rebalance.keep(node) {
                Ok(NodeState::Up) => return Ok(()),
                Ok(state) => state.to_string(),
                Err(tidegraph_cluster::Error::NotFound { .. }) => "not in the map".into(),
                Err(error) => return Err(error.into()),
            };
            self.renew()?;
            self.pause(&format!("node {node} is {state} instead of up"))?;
        }
    }

    /// Plans and takes the next step of each move. Returns the plan and a line about the progress, which is empty when
    /// nothing is left to do.
    fn round(
        &self,
        goal: Goal,
        drain: Option<&NodeId>,
        progress: &mut Progress,
    ) -> anyhow::Result<(Plan, String)> {
        self.renew()?;
        if let Some(node) = drain {
            self.rebalance.drain(node)?;
        }
        let plan = self.rebalance.plan(goal)?;
        if progress.planned.is_none() {
            self.say(&table(&plan));
            progress.planned = Some(plan.restores());
        }
        if plan.is_empty() && plan.coming.is_empty() {
            return Ok((plan, String::new()));
        }
        let next = plan.next(usize::from(self.args.moves), usize::from(self.args.restores_per_node));
        let next: Vec<Move> = next.into_iter().cloned().collect();
        let advanced = self.rebalance.advance(&next)?;
        progress.count(&plan, &advanced);
        let line = progress_line(&plan, &advanced);
        if line != progress.line {
            self.say(&line);
            progress.line.clone_from(&line);
        }
        Ok((plan, line))
    }

    /// Plans and carries out moves until nothing is left to do.
    fn to_end(&self, goal: Goal, drain: Option<&NodeId>) -> anyhow::Result<ExitCode> {
        if self.args.dry_run {
            let plan = self.rebalance.fleet()?.planned(goal, drain);
            println!("{}", table(&plan));
            return Ok(ExitCode::SUCCESS);
        }
        let begun = self.clock.now();
        let mut progress = Progress::default();
        let plan = loop {
            match self.round(goal, drain, &mut progress) {
                Ok((plan, line)) if line.is_empty() => break plan,
                Ok((_, line)) => self.pause(&line)?,
                // The map cannot be reached at the moment, or other processes keep changing it.
                Err(error) if may_pass(&error) => {
                    let reason = chain(error.as_ref()).to_string();
                    tracing::warn!("the step failed and is retried: {reason}");
                    self.pause(&reason)?;
                }
                Err(error) => return Err(error),
            }
        };
        let whole = self.rebalance.verify()?;
        let planned = progress.planned.unwrap_or_default();
        let seconds = (self.clock.now() - begun).as_secs_f64();
        let bytes = plan.replica_bytes.saturating_mul(progress.restored as u64);
        if self.args.json {
            let ideal = plan.replica_bytes.saturating_mul(planned as u64);
            println!(
                "{}",
                json!({ "restored": progress.restored, "planned": planned, "bytes": bytes, "idealBytes": ideal,
                    "dropped": progress.dropped, "seconds": seconds, "short": plan.short, "partitions": whole.partitions,
                    "whole": whole.whole, "dark": whole.dark })
            );
        }
        self.say(&format!(
            "{} replicas restored ({planned} planned), about {} MiB, {} dropped, in {seconds:.1} s; {} of {} partitions have all their replicas",
            progress.restored,
            bytes >> 20,
            progress.dropped,
            whole.whole,
            whole.partitions
        ));
        if plan.short > 0 {
            bail!(
                "{} replicas are missing and there are too few nodes for them: start more nodes",
                plan.short
            );
        }
        if let Some(node) = drain {
            self.say(&format!("node {node} holds no replicas and may be stopped"));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a retry may succeed.
fn may_pass(error: &anyhow::Error) -> bool {
    let of_map = error.downcast_ref::<tidegraph_cluster::Error>();
    of_map.is_some_and(|error| error.will_pass() || matches!(error, tidegraph_cluster::Error::Stale { .. }))
}

/// Progress of a run.
#[derive(Default)]
struct Progress {
    /// Number of replicas that the first plan restores.
    planned: Option<usize>,
    restored: usize,
    dropped: usize,
    line: String,
}

impl Progress {
    fn count(&mut self, plan: &Plan, advanced: &[Advanced]) {
        let was = |of: &Move| plan.moves.iter().any(|one| one == of && !one.is_begun && one.to.is_some());
        let is_new = |one: &&Advanced| one.stage == Stage::Restoring && was(&one.of);
        self.restored += advanced.iter().filter(is_new).count();
        let is_dropped = |one: &&Advanced| one.stage == Stage::Done && one.of.from.is_some();
        self.dropped += advanced.iter().filter(is_dropped).count();
    }
}

/// Describes the progress in a line.
fn progress_line(plan: &Plan, advanced: &[Advanced]) -> String {
    let count = |stage: &dyn Fn(&Stage) -> bool| advanced.iter().filter(|one| stage(&one.stage)).count();
    let mut parts = vec![format!("{} moves left", plan.moves.len())];
    let mut say = |count: usize, what: &str| {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    };
    say(count(&|stage| *stage == Stage::Restoring), "restore");
    say(count(&|stage| *stage == Stage::CatchingUp), "catch up");
    say(count(&|stage| *stage == Stage::Waits), "wait for others");
    say(count(&|stage| *stage == Stage::Leaving), "leave");
    say(plan.coming.len(), "start without a move");
    for one in advanced {
        if let Stage::Void { reason } = &one.stage {
            parts.push(format!("partition {} is planned again: {reason}", one.of.partition));
        }
    }
    parts.join(", ")
}

/// The moves of a plan as a table.
fn table(plan: &Plan) -> String {
    if plan.moves.is_empty() {
        return match (plan.coming.len(), plan.short) {
            (0, 0) => "no moves are needed".into(),
            (0, short) => {
                format!("no moves are possible: {short} replicas are missing and there are too few nodes")
            }
            (coming, _) => format!("no moves are needed; {coming} replicas start without a move"),
        };
    }
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table.add_row(["partition", "to", "from", "state"]);
    let name = |node: &Option<NodeId>| node.as_ref().map_or("-".to_owned(), ToString::to_string);
    for one in plan.moves.iter().take(MOST_ROWS) {
        let state = if one.is_begun { "begun" } else { "" };
        table.add_row([one.partition.to_string(), name(&one.to), name(&one.from), state.to_owned()]);
    }
    let more = plan.moves.len().saturating_sub(MOST_ROWS);
    let more = if more > 0 { format!("\n… and {more} more") } else { String::new() };
    format!(
        "{table}{more}\n{} moves, {} replicas to restore, about {} MiB",
        plan.moves.len(),
        plan.restores(),
        plan.bytes() >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::PartitionId;

    fn one(partition: u16, to: Option<&str>, from: Option<&str>, is_begun: bool) -> Move {
        let node = |name: Option<&str>| name.map(|name| NodeId::new(name).unwrap());
        Move { partition: PartitionId(partition), to: node(to), from: node(from), is_begun, others: 2 }
    }

    #[test]
    fn a_plan_is_a_table() {
        let moves = vec![one(3, Some("b"), Some("a"), true), one(4, None, Some("c"), false)];
        let plan = Plan { moves, replica_bytes: 3 << 20, ..Plan::default() };
        let shown = table(&plan);
        let row = |n: usize| shown.lines().nth(n).unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        assert_eq!((row(1), row(2)), (vec!["3", "b", "a", "begun"], vec!["4", "-", "c"]));
        assert!(shown.ends_with("2 moves, 0 replicas to restore, about 0 MiB"), "{shown}");
        let many = Plan { moves: vec![one(0, Some("b"), None, false); 50], ..plan };
        assert!(table(&many).contains("and 10 more") && table(&many).contains("about 150 MiB"));
        assert_eq!(table(&Plan::default()), "no moves are needed");
        assert!(table(&Plan { short: 3, ..Plan::default() }).contains("3 replicas are missing"));
    }

    #[test]
    fn the_progress_counts_moves_by_stage() {
        let of = one(1, Some("b"), Some("a"), false);
        let plan = Plan { moves: vec![of.clone(); 3], ..Plan::default() };
        let stages = [Stage::Restoring, Stage::Leaving, Stage::Void { reason: "node b is gone".into() }];
        let advanced: Vec<_> = stages.into_iter().map(|stage| Advanced { of: of.clone(), stage }).collect();
        let line = progress_line(&plan, &advanced);
        assert_eq!(line, "3 moves left, 1 restore, 1 leave, partition 1 is planned again: node b is gone");
        let mut progress = Progress::default();
        progress.count(&plan, &advanced);
        assert_eq!((progress.restored, progress.dropped), (1, 0));
    }
}
