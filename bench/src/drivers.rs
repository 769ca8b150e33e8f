//! The drivers workload: reads of the identity graph through one driver, against Tidegraph and against the server
//! that the driver was made for, in turn.
//!
//! Gremlin's reads go over WebSocket beside Gremlin Server, openCypher's over Bolt beside Neo4j. Each is measured
//! twice: with the driver of that project for Java, as applications have it, and with the clients of this program.
//! All of them share the machine with the servers, and the driver takes more of it than a fast server leaves; so each
//! rate has the operations for each core that the server used beside it.
//!
//! Answers through the driver are compared before anything is timed. A question whose answers differ has no figure.

use super::Flags;
use super::bolt::BoltConnection;
use super::clients::{Call, ServiceProcess};
use super::driver::{self, Outcome, median};
use super::identity::{Graph, read};
use super::peers::program::{Asked, Program};
use super::peers::{Kind, missing, texts, wanted};
use super::report::{Figure, Report};
use super::websocket::WebSocketConnection;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use std::time::Duration;

/// Number of different calls in a round.
const CALLS: usize = 5_000;
/// Number of calls whose answers are compared.
const COMPARED: usize = 20;
/// Numbers of clients.
const CLIENTS: [usize; 3] = [1, 16, 32];

/// A question in the texts of both servers.
#[derive(Clone, Copy)]
struct Question {
    name: &'static str,
    ours: &'static str,
    theirs: &'static str,
}

impl Question {
    /// Returns the questions for a kind of server that the run asks for.
    fn all(kind: Kind, flags: &Flags) -> Vec<Self> {
        let names: &[&str] = match kind {
            Kind::Gremlin => &["point read", "SR1", "SR2", "SR3", "SR4", "SR5"],
            _ => &["point read", "SR1", "SR2", "SR3"],
        };
        let names = names.iter().copied().filter(|name| flags.wants(name));
        names.filter_map(|name| Self::of(kind, name)).collect()
    }

    fn of(kind: Kind, name: &'static str) -> Option<Self> {
        let ours = if kind == Kind::Gremlin { read(name)?.text } else { texts::over_bolt(name)? };
        Some(Self { name, ours, theirs: texts::text(kind, name, ours)? })
    }

    /// Makes calls with one of the two texts.
    fn calls<'a>(
        self,
        kind: Kind,
        graph: &'a Graph,
        text: &'static str,
    ) -> impl Fn(&mut ChaCha8Rng) -> Vec<Call> + Sync + use<'a> {
        move |random| {
            let parameters = read(self.name).map(|read| read.parameters(graph, random)).unwrap_or_default();
            let call = if kind == Kind::Gremlin { Call::gremlin } else { Call::cypher };
            vec![call(text, parameters)]
        }
    }

    fn asked(self, kind: Kind, graph: &Graph, text: &'static str, count: usize, seed: u64) -> Vec<Asked> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let calls = self.calls(kind, graph, text);
        let calls = std::iter::repeat_with(|| calls(&mut random)).take(count).flatten();
        calls.map(|call| (text, call.json_parameters())).collect()
    }
}

/// The same driver twice: connected to Tidegraph, and to the server that it was made for.
struct Pair<'a> {
    kind: Kind,
    graph: &'a Graph,
    service: &'a ServiceProcess,
    ours: Program,
    theirs: Program,
}

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let graph = Graph::load(flags.scale(26_000, 500), flags.seed, report)?;
    let (service, _directory) = graph.serve(flags)?;
    let (kinds, named) = wanted(flags, &[Kind::Gremlin, Kind::Neo4j])?;
    for kind in kinds {
        match Pair::start(kind, &graph, &service) {
            Ok(pair) => pair.run(flags, report)?,
            Err(error) => missing(report, kind, &error, named)?,
        }
    }
    Ok(())
}

impl<'a> Pair<'a> {
    fn start(kind: Kind, graph: &'a Graph, service: &'a ServiceProcess) -> anyhow::Result<Self> {
        let files = graph.files.path();
        let (theirs, loaded) = if kind == Kind::Neo4j {
            Program::import(kind, files)?
        } else {
            let mut program = Program::start(kind)?;
            let loaded = program.load(files)?;
            (program, loaded)
        };
        let status = graph.database.status();
        loaded.expect(status.vertices, status.edges)?;
        Ok(Self { kind, graph, service, ours: Program::client(kind, &service.address)?, theirs })
    }

    fn run(mut self, flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
        let (name, about) = (self.theirs.name().to_owned(), self.theirs.description());
        report.parameter(&format!("peer {}", self.kind.name()), about);
        let mut questions = Question::all(self.kind, flags);
        let mut same = vec![];
        for question in &questions {
            let difference = self.difference(*question, flags.seed)?;
            if let Some(difference) = &difference {
                eprintln!("{name}: {} is not timed: {difference}", question.name);
                report.parameter(&format!("{name}, {}", question.name), format!("not timed: {difference}"));
            }
            same.push(difference.is_none());
        }
        let mut same = same.into_iter();
        questions.retain(|_| same.next().unwrap_or_default());
        self.warm(flags, report, &questions)?;
        let clients = if flags.quick { &CLIENTS[2..] } else { &CLIENTS[..] };
        for question in questions {
            for &clients in clients {
                self.with_driver(flags, report, question, clients)?;
                self.with_own_client(flags, report, question, clients)?;
            }
        }
        Ok(())
    }

    /// Returns how the answers differ, or `None` if they are equal.
    fn difference(&mut self, question: Question, seed: u64) -> anyhow::Result<Option<String>> {
        let Question { ours, theirs, .. } = question;
        for (_, parameters) in question.asked(self.kind, self.graph, ours, COMPARED, seed ^ 0xc0de) {
            let (a, b) = (self.ours.rows(ours, &parameters)?, self.theirs.rows(theirs, &parameters)?);
            if a != b {
                let first = a.iter().zip(&b).find(|(a, b)| a != b);
                let (a, b) = (a.len(), b.len());
                return Ok(Some(format!(
                    "{b} rows, ours are {a}; first difference {first:?}, for {parameters:?}"
                )));
            }
        }
        Ok(None)
    }

    /// Warms up both processes of the driver and the server: each is on a JVM of its own but ours.
    fn warm(&mut self, flags: &Flags, report: &mut Report, questions: &[Question]) -> anyhow::Result<()> {
        let seconds: u64 = if flags.quick { 6 } else { 120 };
        let Ok(count) = u32::try_from(questions.len().max(1)) else { return Ok(()) };
        let each = Duration::from_secs(seconds) / count;
        eprintln!("warming up {} and the driver beside it for {seconds} s each", self.theirs.name());
        report.parameter(&format!("{}, warm-up, of each driver", self.theirs.name()), format!("{seconds} s"));
        for question in questions {
            let asked = |text| question.asked(self.kind, self.graph, text, CALLS, 1 << 40);
            self.theirs.run(&asked(question.theirs), 16, each)?;
            self.ours.run(&asked(question.ours), 16, each)?;
        }
        Ok(())
    }

    fn with_driver(
        &mut self,
        flags: &Flags,
        report: &mut Report,
        question: Question,
        clients: usize,
    ) -> anyhow::Result<()> {
        let (mut ours, mut theirs) = (vec![], vec![]);
        for round in 0..flags.rounds() as u64 {
            let asked = |text| question.asked(self.kind, self.graph, text, CALLS, round);
            let (of_ours, of_theirs) = (asked(question.ours), asked(question.theirs));
            theirs.push(self.theirs.run(&of_theirs, clients, flags.round())?);
            let before = self.service.cpu_seconds();
            let outcome = self.ours.run(&of_ours, clients, flags.round())?;
            let seconds = flags.round().as_secs_f64();
            ours.push(with_cpu(outcome, before, self.service.cpu_seconds(), outcome.rate * seconds));
        }
        self.report(report, question.name, "the project's driver for Java", clients, &ours, &theirs);
        Ok(())
    }

    fn with_own_client(
        &mut self,
        flags: &Flags,
        report: &mut Report,
        question: Question,
        clients: usize,
    ) -> anyhow::Result<()> {
        let Some(peer) = self.theirs.address().map(str::to_owned) else { return Ok(()) };
        let (mut ours, mut theirs) = (vec![], vec![]);
        for round in 0..flags.rounds() as u64 {
            let before = self.theirs.cpu_seconds();
            let ran = self.own_round(flags, question, question.theirs, &peer, clients, round)?;
            theirs.push(with_cpu(ran.outcome(), before, self.theirs.cpu_seconds(), ran.calls as f64));
            let before = self.service.cpu_seconds();
            let ran =
                self.own_round(flags, question, question.ours, &self.service.address, clients, round)?;
            ours.push(with_cpu(ran.outcome(), before, self.service.cpu_seconds(), ran.calls as f64));
        }
        self.report(report, question.name, "the benchmark's client", clients, &ours, &theirs);
        Ok(())
    }

    fn own_round(
        &self,
        flags: &Flags,
        question: Question,
        text: &'static str,
        address: &str,
        clients: usize,
        round: u64,
    ) -> anyhow::Result<driver::Round> {
        let next = question.calls(self.kind, self.graph, text);
        let ran = if self.kind == Kind::Gremlin {
            driver::over(clients, flags.round(), round, &next, || WebSocketConnection::open(address))?
        } else {
            driver::over(clients, flags.round(), round, &next, || BoltConnection::open(address))?
        };
        match &ran.error {
            Some(error) => anyhow::bail!("{address}: a call ended in an error: {error}"),
            None => Ok(ran),
        }
    }

    fn report(
        &self,
        report: &mut Report,
        question: &str,
        driver: &str,
        clients: usize,
        ours: &[Outcome],
        theirs: &[Outcome],
    ) {
        let protocol = if self.kind == Kind::Gremlin { "WebSocket" } else { "Bolt" };
        let name = format!("{question} over {protocol}, {driver}, {clients} client{}", plural(clients));
        let of =
            |outcomes: &[Outcome], of: fn(&Outcome) -> Option<f64>| median(outcomes.iter().filter_map(of));
        let a_core = |outcome: &Outcome| outcome.server_cpu_us.map(|us| 1e6 / us);
        let is_pointed = clients == 32 && question != "point read";
        if let (Some(a), Some(b)) = (of(ours, |o| Some(o.rate)), of(theirs, |o| Some(o.rate))) {
            let figure = Figure::rate(name.clone(), "op/s", a).beside(self.theirs.name(), b);
            let is_target = self.kind == Kind::Gremlin && is_pointed;
            report.add(if is_target { figure.target(10.0 * b) } else { figure });
        }
        if let (Some(a), Some(b)) = (of(ours, a_core), of(theirs, a_core)) {
            let figure = Figure::rate(format!("{name}, operations a core of the server"), "op/s", a)
                .beside(self.theirs.name(), b);
            let is_target = self.kind == Kind::Neo4j && clients == 32;
            report.add(if is_target { figure.target(3.0 * b) } else { figure });
        }
        let p50 = |o: &Outcome| o.quantiles_us.map(|q| q[0]);
        if let (1, Some(a), Some(b)) = (clients, of(ours, p50), of(theirs, p50)) {
            report.add(Figure::cost(format!("{name}, p50"), "us", a).beside(self.theirs.name(), b));
        }
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Adds the processor time of the server for each call. The system counts it in steps of 10 ms, so a short round may
/// have taken none.
fn with_cpu(outcome: Outcome, before: Option<f64>, after: Option<f64>, calls: f64) -> Outcome {
    let seconds = after.zip(before).map(|(after, before)| (after - before).max(0.01));
    Outcome { server_cpu_us: seconds.map(|seconds| seconds * 1e6 / calls.max(1.0)), ..outcome }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_question_has_a_text_for_both_servers() {
        for (kind, names) in [
            (Kind::Gremlin, &["point read", "SR1", "SR2", "SR3", "SR4", "SR5"][..]),
            (Kind::Neo4j, &["point read", "SR1", "SR2", "SR3"][..]),
        ] {
            for &name in names {
                assert!(Question::of(kind, name).is_some(), "{kind:?} {name}");
            }
        }
    }

    #[test]
    fn processor_time_is_divided_by_the_calls() {
        let outcome = Outcome { rate: 100.0, quantiles_us: None, server_cpu_us: None };
        assert_eq!(with_cpu(outcome, Some(1.0), Some(1.5), 1_000.0).server_cpu_us, Some(500.0));
        assert_eq!(with_cpu(outcome, Some(1.0), Some(1.0), 1_000.0).server_cpu_us, Some(10.0));
        assert_eq!(with_cpu(outcome, None, Some(1.0), 1_000.0).server_cpu_us, None);
    }
}
