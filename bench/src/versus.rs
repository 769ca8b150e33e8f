//! Asks Tidegraph and every peer the same question in turn, round by round, so that all run under the same load of the
//! machine.

use super::Flags;
use super::clients::ServiceProcess;
use super::driver::{self, Outcome, Round, median};
use super::peers::{Peers, Question};
use super::report::{Figure, Report};
use tidegraph_engine::Database;

/// The databases that answer a question.
pub struct Databases<'a> {
    /// Flags of the run.
    pub flags: &'a Flags,
    /// A database in this process; `None` for questions that are only asked over the network.
    pub database: Option<&'a Database>,
    /// A service over the network.
    pub service: &'a ServiceProcess,
    /// The peers.
    pub peers: &'a mut Peers,
    /// Whether the 99th percentiles of a single client are reported too.
    pub tails: bool,
}

struct PeerRounds {
    label: String,
    beside_embedded: bool,
    outcomes: Vec<Outcome>,
}

impl Databases<'_> {
    /// Measures one question with a number of clients. `seed` is that of the first round.
    pub fn ask(
        &mut self,
        report: &mut Report,
        metric: &str,
        question: &Question,
        clients: usize,
        seed: u64,
    ) -> anyhow::Result<()> {
        let length = self.flags.round();
        let (mut embedded, mut network, mut cpu) = (vec![], vec![], vec![]);
        let mut theirs: Vec<PeerRounds> = vec![];
        for round in 0..self.flags.rounds() as u64 {
            let seed = seed + round;
            if let Some(database) = self.database {
                embedded.push(driver::embedded(database, clients, length, seed, question.next)?);
            }
            let before = self.service.cpu_seconds();
            let ours = driver::network(&self.service.address, clients, length, seed, question.next)?;
            if let (Some(after), Some(before)) = (self.service.cpu_seconds(), before) {
                cpu.push((after - before) * 1e6 / ours.calls.max(1) as f64);
            }
            network.push(ours);
            for peer in self.peers.each() {
                // This peer allows one writing client only.
                let able = clients == 1 || !question.writes || peer.writes_together();
                let outcome = if able { peer.round(report, question, clients, length, seed) } else { None };
                let Some(outcome) = outcome else { continue };
                let known = theirs.iter().position(|t| t.label == peer.label);
                let at = known.unwrap_or_else(|| {
                    let (label, beside_embedded) = (peer.label.clone(), peer.beside_embedded());
                    theirs.push(PeerRounds { label, beside_embedded, outcomes: vec![] });
                    theirs.len() - 1
                });
                theirs[at].outcomes.push(outcome);
            }
        }
        self.report(
            report,
            &format!("{metric}, {clients} client{}", if clients == 1 { "" } else { "s" }),
            [embedded, network],
            &cpu,
            &theirs,
            clients,
        )
    }

    fn report(
        &self,
        report: &mut Report,
        metric: &str,
        [embedded, network]: [Vec<Round>; 2],
        cpu: &[f64],
        theirs: &[PeerRounds],
        clients: usize,
    ) -> anyhow::Result<()> {
        if !embedded.is_empty() {
            let ours = driver::figure(format!("{metric}, embedded"), &embedded)?;
            beside(report, &ours, theirs.iter().filter(|t| t.beside_embedded), |o| Some(o.rate));
        }
        let ours = driver::figure(format!("{metric}, network"), &network)?;
        let quantiles = [("p50", ours.p50, 0), ("p99", ours.p99.filter(|_| self.tails), 1)];
        beside(report, &ours, theirs.iter(), |o| Some(o.rate));
        for (name, value, at) in quantiles {
            if let Some(value) = value.filter(|_| clients == 1) {
                let ours = Figure::cost(format!("{metric}, network, {name}"), "us", value);
                beside(report, &ours, theirs.iter(), |o| o.quantiles_us.map(|q| q[at]));
            }
        }
        if let Some(cpu) = median(cpu.iter().copied()) {
            let ours = Figure::cost(format!("{metric}, processor time of the server"), "us/op", cpu);
            beside(report, &ours, theirs.iter(), |o| o.server_cpu_us);
        }
        Ok(())
    }
}

/// Reports a figure beside each peer that has one, or a single figure without a peer.
fn beside<'a>(
    report: &mut Report,
    ours: &Figure,
    theirs: impl Iterator<Item = &'a PeerRounds>,
    of: impl Fn(&Outcome) -> Option<f64>,
) {
    let mut alone = true;
    for peer in theirs {
        if let Some(value) = median(peer.outcomes.iter().filter_map(&of)) {
            report.add(ours.clone().beside(&peer.label, value));
            alone = false;
        }
    }
    if alone {
        report.add(ours.clone());
    }
}
