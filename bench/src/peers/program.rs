//! Peers that are programs: a client that speaks the peer's usual protocol, and its servers if it has any: one, or
//! those of a cluster.
//!
//! `scripts/peers.mjs` installs them and writes a file of commands, which `TIDEGRAPH_PEERS` names. The client reads one
//! JSON object per line from standard input and answers each with one line on standard output
//! (`scripts/peers/java/common/Driver.java` lists the commands). All programs end when their standard input is closed,
//! and are killed when the value is dropped, so no process outlives a run, even one that is killed.

use super::Kind;
use crate::driver::Outcome;
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The commands of a peer: each is a program and its first arguments.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Commands {
    /// The reason why the peer cannot run, if it cannot.
    missing: Option<String>,
    #[serde(default)]
    server: Vec<String>,
    /// The further servers of a cluster.
    #[serde(default)]
    others: Vec<Vec<String>>,
    #[serde(default)]
    client: Vec<String>,
    #[serde(default)]
    prepare: Vec<String>,
    #[serde(default)]
    import: Vec<String>,
}

impl Commands {
    fn of(kind: Kind) -> anyhow::Result<Self> {
        let path = std::env::var_os("TIDEGRAPH_PEERS")
            .context("TIDEGRAPH_PEERS is not set: run `npm run bench`, which installs the peers")?;
        let text = std::fs::read_to_string(&path).with_context(|| path.to_string_lossy().into_owned())?;
        let mut all: BTreeMap<String, Self> = serde_json::from_str(&text)?;
        let commands = all.remove(kind.name()).context("it was not installed")?;
        match commands.missing {
            Some(reason) => bail!("{reason}"),
            None => Ok(commands),
        }
    }
}

fn command(parts: &[String]) -> anyhow::Result<Command> {
    let (program, arguments) = parts.split_first().context("no command for this")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// A child process whose standard input is kept open. It ends when this value is dropped.
struct Held {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    log: PathBuf,
}

impl Held {
    fn spawn(mut command: Command, log: PathBuf) -> anyhow::Result<Self> {
        let errors = File::create(&log)?;
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors)
            .spawn()
            .with_context(|| format!("cannot run {:?}", command.get_program()))?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { input: child.stdin.take(), child, output, log })
    }

    /// Reads a line from standard output. Fails with the end of the log if the process has ended.
    fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            let log = std::fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            bail!("it ended: {}", lines[lines.len().saturating_sub(5)..].join(" / "));
        }
        Ok(line)
    }

    /// Waits until a server prints its address.
    fn address(&mut self) -> anyhow::Result<String> {
        let line = self.line()?;
        let address = line.trim().strip_prefix("listening on ");
        Ok(address.with_context(|| format!("not an address: {line:?}"))?.to_owned())
    }
}

fn serve(parts: &[String], folder: &TempDir, number: usize) -> anyhow::Result<Held> {
    let mut server = command(parts)?;
    server.arg(folder.path());
    Held::spawn(server, folder.path().join(format!("server-{number}.log")))
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Deserialize)]
struct About {
    peer: String,
    driver: String,
    note: String,
}

/// Result of a load.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Loaded {
    /// Duration in seconds.
    pub seconds: f64,
    /// Number of vertices after the load.
    pub vertices: u64,
    /// Number of edges after the load.
    pub edges: u64,
}

impl Loaded {
    /// Checks that the load neither lost nor created elements.
    pub fn expect(&self, vertices: u64, edges: u64) -> anyhow::Result<()> {
        anyhow::ensure!(
            (self.vertices, self.edges) == (vertices, edges),
            "it loaded {} vertices and {} edges, not {vertices} and {edges}",
            self.vertices,
            self.edges
        );
        Ok(())
    }
}

#[derive(Deserialize)]
struct Ran {
    calls: u64,
    seconds: f64,
    p50: f64,
    p99: f64,
    p999: f64,
    failed: Option<String>,
}

/// A question with its parameters.
pub type Asked = (&'static str, serde_json::Map<String, Json>);

/// A running peer.
pub struct Program {
    // Dropped before the servers, because it is connected to them.
    client: Held,
    servers: Vec<Held>,
    address: Option<String>,
    about: About,
    _folder: TempDir,
}

impl Program {
    /// Starts an empty peer.
    pub fn start(kind: Kind) -> anyhow::Result<Self> {
        Self::run_in(kind, tempfile::Builder::new().prefix("tidegraph-peer").tempdir()?)
    }

    /// Imports files with the peer's offline importer, then starts the peer over the result. Converting the files for
    /// the importer is not timed.
    #[allow(clippy::disallowed_methods, reason = "this measures the world")]
    pub fn import(kind: Kind, csv: &Path) -> anyhow::Result<(Self, Loaded)> {
        let commands = Commands::of(kind)?;
        let folder = tempfile::Builder::new().prefix("tidegraph-peer").tempdir()?;
        let prepared = tempfile::tempdir()?;
        let conf = folder.path().join("conf");
        std::fs::create_dir(&conf)?;
        let finish = |mut command: Command| -> anyhow::Result<()> {
            let log = folder.path().join("import.log");
            let file = File::create(&log)?;
            let status = command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).status()?;
            let text = || std::fs::read_to_string(&log).unwrap_or_default();
            anyhow::ensure!(status.success(), "the importer failed: {}", text());
            Ok(())
        };
        let mut prepare = command(&commands.prepare)?;
        prepare.arg(csv).arg(prepared.path());
        finish(prepare)?;
        let start = std::time::Instant::now();
        let mut import = command(&commands.import)?;
        import.arg(prepared.path()).env("NEO4J_HOME", folder.path()).env("NEO4J_CONF", &conf);
        finish(import)?;
        let mut this = Self::run_in(kind, folder)?;
        let mut loaded = this.load(Path::new(""))?;
        loaded.seconds = start.elapsed().as_secs_f64();
        Ok((this, loaded))
    }

    /// Starts a peer's client alone, connected to another server that speaks its protocol.
    pub fn client(kind: Kind, address: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tidegraph-peer").tempdir()?;
        let mut client = command(&Commands::of(kind)?.client)?;
        client.arg(address);
        Self::connected(client, vec![], None, folder)
    }

    fn run_in(kind: Kind, folder: TempDir) -> anyhow::Result<Self> {
        let commands = Commands::of(kind)?;
        let mut client = command(&commands.client)?;
        let (mut servers, mut address) = (vec![], None);
        if commands.server.is_empty() {
            client.arg(folder.path());
        } else {
            let mut server = serve(&commands.server, &folder, 1)?;
            client.arg(address.insert(server.address()?));
            servers.push(server);
            // They join the first server at the same time.
            for (other, number) in commands.others.iter().zip(2..) {
                servers.push(serve(other, &folder, number)?);
            }
            for other in &mut servers[1..] {
                other.address()?;
            }
        }
        Self::connected(client, servers, address, folder)
    }

    fn connected(
        client: Command,
        servers: Vec<Held>,
        address: Option<String>,
        folder: TempDir,
    ) -> anyhow::Result<Self> {
        let mut client = Held::spawn(client, folder.path().join("client.log"))?;
        let about = serde_json::from_value(ask(&mut client, &json!({"op": "hello"}))?)?;
        Ok(Self { client, servers, address, about, _folder: folder })
    }

    /// Returns the address of the server that clients ask, if it has one.
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Returns the name with the version.
    pub fn name(&self) -> &str {
        &self.about.peer
    }

    /// Describes the client and what a reader has to know.
    pub fn description(&self) -> String {
        format!("{}; {}", self.about.driver, self.about.note)
    }

    /// Loads a folder of Gremlin CSV through the client.
    pub fn load(&mut self, csv: &Path) -> anyhow::Result<Loaded> {
        Ok(serde_json::from_value(ask(&mut self.client, &json!({"op": "load", "folder": csv}))?)?)
    }

    /// Sets the number of threads for one query.
    pub fn use_threads(&mut self, threads: usize) -> anyhow::Result<()> {
        ask(&mut self.client, &json!({"op": "threads", "threads": threads})).map(drop)
    }

    /// Returns the answers in the common notation, sorted.
    pub fn rows(
        &mut self,
        text: &str,
        parameters: &serde_json::Map<String, Json>,
    ) -> anyhow::Result<Vec<String>> {
        let answer = ask(&mut self.client, &json!({"op": "rows", "text": text, "parameters": parameters}))?;
        let mut rows: Vec<String> = serde_json::from_value(answer["rows"].clone())?;
        rows.sort_unstable();
        Ok(rows)
    }

    /// Keeps clients busy for a time with the questions in turn.
    pub fn run(&mut self, asked: &[Asked], clients: usize, length: Duration) -> anyhow::Result<Outcome> {
        let mut texts: Vec<&str> = vec![];
        let calls: Vec<Json> = asked
            .iter()
            .map(|(text, parameters)| {
                let at = texts.iter().position(|t| t == text).unwrap_or_else(|| {
                    texts.push(text);
                    texts.len() - 1
                });
                json!([at, parameters])
            })
            .collect();
        let before = self.cpu_seconds();
        let ms = u64::try_from(length.as_millis())?;
        let command = json!({"op": "run", "texts": texts, "calls": calls, "clients": clients, "ms": ms});
        let ran = serde_json::from_value(ask(&mut self.client, &command)?)?;
        self.outcome(ran, before)
    }

    /// Returns the result of a round, with the processor time that the servers used since its start.
    fn outcome(&self, ran: Ran, before: Option<f64>) -> anyhow::Result<Outcome> {
        if let Some(error) = ran.failed {
            bail!("{error}");
        }
        let cpu = self
            .cpu_seconds()
            .zip(before)
            .map(|(after, before)| (after - before) * 1e6 / ran.calls.max(1) as f64);
        Ok(Outcome {
            rate: ran.calls as f64 / ran.seconds,
            quantiles_us: Some([ran.p50, ran.p99, ran.p999]),
            server_cpu_us: cpu,
        })
    }

    /// Inserts the records of the ycsb workload with the numbers of a range.
    pub fn fill(&mut self, from: u64, to: u64) -> anyhow::Result<()> {
        ask(&mut self.client, &json!({"op": "fill", "from": from, "to": to})).map(drop)
    }

    /// Keeps clients busy with the mix of the ycsb workload over the records of a range. Returns the range that exists
    /// afterwards.
    pub fn mix(
        &mut self,
        (gone, next): (u64, u64),
        clients: usize,
        length: Duration,
        seed: u64,
    ) -> anyhow::Result<(Outcome, (u64, u64))> {
        let ms = u64::try_from(length.as_millis())?;
        let command =
            json!({"op": "mix", "gone": gone, "next": next, "clients": clients, "ms": ms, "seed": seed});
        let before = self.cpu_seconds();
        let answer = ask(&mut self.client, &command)?;
        let range = (answer["gone"].as_u64(), answer["next"].as_u64());
        let (Some(gone), Some(next)) = range else {
            bail!("the client does not report the range of records")
        };
        Ok((self.outcome(serde_json::from_value(answer)?, before)?, (gone, next)))
    }

    /// Returns the processor time of all servers, without that of the client: a cluster of Tidegraph is counted in the
    /// same way.
    pub fn cpu_seconds(&self) -> Option<f64> {
        if self.servers.is_empty() {
            return None;
        }
        self.servers.iter().map(|server| crate::machine::cpu_seconds(server.child.id())).sum()
    }
}

fn ask(client: &mut Held, command: &Json) -> anyhow::Result<Json> {
    let input = client.input.as_mut().context("the input is closed")?;
    writeln!(input, "{command}")?;
    input.flush()?;
    let answer: Json = serde_json::from_str(&client.line()?)?;
    match answer["error"].as_str() {
        Some(error) => bail!("{error}"),
        None => Ok(answer),
    }
}
