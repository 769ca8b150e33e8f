//! PostgreSQL as a peer: the same graph in tables, and the same questions as prepared SQL under pgbench.
//!
//! It uses the server that is installed on the machine (`initdb`, `pg_ctl`, `psql`, `pgbench`). The server refuses to
//! run as root; it then runs as the user `postgres`. Its data is in a temporary directory, and it stops when the value
//! is dropped.

use crate::clients::Call;
use anyhow::{Context, bail};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use tidegraph_engine::Database;
use tidegraph_types::Value;

/// A running server with the graph.
pub struct Postgres {
    directory: TempDir,
    bin: PathBuf,
    as_user: Option<&'static str>,
    round: Duration,
    scripts: Vec<(&'static str, String)>,
    /// Numbers in the tables by Tidegraph's ids.
    numbers: HashMap<Value, usize>,
}

const SCHEMA: &str = "
CREATE UNLOGGED TABLE v (id int PRIMARY KEY, label text, type text, age int, props jsonb);
CREATE UNLOGGED TABLE e (src int, dst int, label text, props jsonb);";
const INDEXES: &str = "
CREATE INDEX ON e (src, label); CREATE INDEX ON e (dst, label); VACUUM ANALYZE v; VACUUM ANALYZE e;";

/// SQL of the identity reads; `:s` is a random start, `:t` a partner type.
fn identity_scripts(
    ges: i64,
    devices: &str,
    first_device: i64,
    vertices: i64,
) -> Vec<(&'static str, String)> {
    let _ = (vertices, devices);
    let ge = format!("\\set s random(1, {ges})\n");
    let dev = format!(
        "\\set d random({first_device}, {})\n",
        first_device + devices.parse::<i64>().unwrap_or(1) - 1
    );
    let types = crate::identity::PARTNER_TYPES.map(|t| format!("'{t}'")).join(",");
    let ge_type = format!("{ge}\\set t random(1, 17)\n");
    vec![
        (
            "SR1",
            format!(
                "{ge}SELECT v.id, v.label, v.type FROM e JOIN v ON v.id = e.dst WHERE e.src = :s AND e.label = 'HAS_PARTNER';\n"
            ),
        ),
        (
            "SR2",
            format!(
                "{ge_type}SELECT s.* FROM e JOIN v p ON p.id = e.dst JOIN e e2 ON e2.src = p.id JOIN v s ON s.id = e2.dst \
                 WHERE e.src = :s AND e.label = 'HAS_PARTNER' AND p.type = (ARRAY[{types}])[:t];\n"
            ),
        ),
        (
            "SR3",
            format!(
                "{ge}WITH n AS (SELECT v.id, v.label FROM e JOIN v ON v.id = e.dst WHERE e.src = :s \
                 UNION ALL SELECT v.id, v.label FROM e JOIN v ON v.id = e.src WHERE e.dst = :s) \
                 SELECT DISTINCT s.* FROM (SELECT e.dst AS id FROM n JOIN e ON e.src = n.id WHERE n.label = 'Partner' \
                 UNION SELECT id FROM n WHERE label <> 'Partner') x JOIN v s ON s.id = x.id;\n"
            ),
        ),
        (
            "SR4",
            format!(
                "{dev}WITH o AS (SELECT v.id, v.label FROM e JOIN v ON v.id = e.src WHERE e.dst = :d AND e.label IN ('HAS_DEVICE','PROVIDED_DEVICE')), \
                 g AS (SELECT id FROM o WHERE label = 'GoldenEntity' UNION ALL SELECT e.src FROM o JOIN e ON e.dst = o.id WHERE o.label <> 'GoldenEntity'), \
                 n AS (SELECT v.id, v.label FROM g JOIN e ON e.src = g.id JOIN v ON v.id = e.dst \
                 UNION ALL SELECT v.id, v.label FROM o JOIN e ON e.src = o.id JOIN v ON v.id = e.dst WHERE o.label <> 'GoldenEntity') \
                 SELECT s.* FROM (SELECT e.dst AS id FROM n JOIN e ON e.src = n.id WHERE n.label = 'Partner' \
                 UNION ALL SELECT id FROM n WHERE label <> 'Partner') x JOIN v s ON s.id = x.id WHERE s.label <> 'Household';\n"
            ),
        ),
        (
            "SR5",
            format!(
                "{dev}WITH o AS (SELECT e.src AS id FROM e WHERE e.dst = :d AND e.label IN ('HAS_DEVICE','PROVIDED_DEVICE')), \
                 b AS (SELECT e.dst AS id FROM o JOIN e ON e.src = o.id WHERE e.label IN ('HAS_PARTNER','HAS_DEVICE','PROVIDED_DEVICE') \
                 UNION ALL SELECT e.src FROM o JOIN e ON e.dst = o.id WHERE e.label IN ('HAS_PARTNER','HAS_DEVICE','PROVIDED_DEVICE')), \
                 c AS (SELECT v.id FROM b JOIN v ON v.id = b.id WHERE v.label NOT IN ('Partner','GoldenEntity') \
                 UNION ALL SELECT e.dst FROM b JOIN v ON v.id = b.id JOIN e ON e.src = b.id WHERE v.label IN ('Partner','GoldenEntity') AND e.label IN ('PROVIDED_DEVICE','HAS_DEVICE','HAS_PARTNER')), \
                 d AS (SELECT v.id FROM c JOIN v ON v.id = c.id WHERE v.label <> 'Partner' \
                 UNION ALL SELECT e.dst FROM c JOIN v ON v.id = c.id JOIN e ON e.src = c.id WHERE v.label = 'Partner' AND e.label = 'PROVIDED_DEVICE') \
                 SELECT DISTINCT s.* FROM d JOIN v s ON s.id = d.id;\n"
            ),
        ),
    ]
}

fn social_scripts(vertices: i64) -> Vec<(&'static str, String)> {
    let start = format!("\\set s random(1, {vertices})\n");
    let hops = "SELECT dst FROM e WHERE src = :s UNION SELECT b.dst FROM e a JOIN e b ON b.src = a.dst WHERE a.src = :s";
    vec![
        ("single read", format!("{start}SELECT * FROM v WHERE id = :s;\n")),
        ("neighbours of neighbours, ids", format!("{start}{hops};\n")),
        (
            "neighbours of neighbours, profiles",
            format!("{start}SELECT v.* FROM ({hops}) x JOIN v ON v.id = x.dst;\n"),
        ),
        ("ages of all", "SELECT age, count(*) FROM v GROUP BY age;\n".to_owned()),
    ]
}

impl Postgres {
    /// Starts a server with the identity graph.
    pub fn start(database: &Database, round: Duration) -> anyhow::Result<Self> {
        let mut this = Self::cluster(round)?;
        // Golden entities first, then devices, so that each kind of start is a range of numbers.
        let groups = [
            "MATCH (n:GoldenEntity) RETURN id(n) AS id, n",
            "MATCH (n:Device) RETURN id(n) AS id, n",
            "MATCH (n) WHERE NOT (n:GoldenEntity OR n:Device) RETURN id(n) AS id, n",
        ];
        let counts = this.fill(database, &groups)?;
        this.scripts =
            identity_scripts(counts[0], &counts[1].to_string(), counts[0] + 1, counts.iter().sum());
        Ok(this)
    }

    /// Starts a server with the social graph.
    pub fn start_social(database: &Database, round: Duration) -> anyhow::Result<Self> {
        let mut this = Self::cluster(round)?;
        let counts = this.fill(database, &["MATCH (n) RETURN id(n) AS id, n"])?;
        this.scripts = social_scripts(counts[0]);
        Ok(this)
    }

    /// Returns whether the peer can answer a question.
    pub fn has(&self, name: &str) -> bool {
        self.scripts.iter().any(|(n, _)| *n == name)
    }

    fn cluster(round: Duration) -> anyhow::Result<Self> {
        let bin = std::fs::read_dir("/usr/lib/postgresql")
            .ok()
            .and_then(|dir| dir.filter_map(Result::ok).map(|e| e.path().join("bin")).max())
            .context("there is no /usr/lib/postgresql: install the server")?;
        let root = Command::new("id").arg("-u").output()?.stdout.starts_with(b"0\n");
        let directory = tempfile::Builder::new().prefix("tidegraph-pg").tempdir()?;
        let this = Self {
            directory,
            bin,
            as_user: root.then_some("postgres"),
            round,
            scripts: vec![],
            numbers: HashMap::new(),
        };
        if let Some(user) = this.as_user {
            let status = Command::new("chown").arg(user).arg(this.directory.path()).status()?;
            anyhow::ensure!(status.success(), "the user {user} does not exist");
        }
        let data = this.directory.path().join("data");
        this.run("initdb", &["-A", "trust", "--no-sync", "-D", path(&data)])?;
        let socket = format!(
            "-k {} -c listen_addresses='' -c shared_buffers=1GB -c synchronous_commit=on",
            path(this.directory.path())
        );
        this.run(
            "pg_ctl",
            &[
                "-D",
                path(&data),
                "-w",
                "-l",
                path(&this.directory.path().join("server.log")),
                "-o",
                &socket,
                "start",
            ],
        )?;
        Ok(this)
    }

    fn command(&self, program: &str) -> Command {
        let program = self.bin.join(program);
        match self.as_user {
            None => Command::new(program),
            Some(user) => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", user, "--regid", user, "--clear-groups"]).arg(program);
                command
            }
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        // The child of pg_ctl would keep a pipe open, so the output goes to a file.
        let log = self.directory.path().join(format!("{program}.out"));
        let file = std::fs::File::create(&log)?;
        let status = self
            .command(program)
            .args(arguments)
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone()?)
            .stderr(file)
            .status()
            .with_context(|| format!("cannot run {program}"))?;
        let output = std::fs::read_to_string(&log)?;
        if !status.success() {
            bail!("{program} failed: {output}");
        }
        Ok(output)
    }

    fn sql(&self, text: &str) -> anyhow::Result<String> {
        let file = self.directory.path().join("script.sql");
        std::fs::write(&file, text)?;
        let socket = path(self.directory.path()).to_owned();
        self.run(
            "psql",
            &["-qAt", "-v", "ON_ERROR_STOP=1", "-h", &socket, "-d", "postgres", "-f", path(&file)],
        )
    }

    /// Copies the graph and returns the number of vertices in each group.
    fn fill(&mut self, database: &Database, groups: &[&'static str]) -> anyhow::Result<Vec<i64>> {
        let mut numbers = HashMap::new();
        let mut vertices = String::new();
        let mut counts = vec![];
        for group in groups {
            let mut rows = Call::cypher(group, vec![]).embedded(database)?;
            rows.sort_by(|a, b| tidegraph_types::order::order(&a[0], &b[0]));
            counts.push(i64::try_from(rows.len())?);
            for row in rows {
                let number = numbers.len() + 1;
                let Value::VertexData(data) = &row[1] else { bail!("no vertex: {:?}", row[1]) };
                numbers.insert(row[0].clone(), number);
                let one =
                    |key: &str| data.properties.iter().find(|p| p.key == key).map(|p| p.values[0].clone());
                let null = || "\\N".to_owned();
                let kind = one("type").and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_else(null);
                let age = one("age").and_then(|v| v.as_i64()).map_or_else(null, |v| v.to_string());
                let json = serde_json::to_value(tidegraph_query::json::plain::Plain(&row[1]))?["~properties"]
                    .to_string();
                let json = json.replace('\\', "\\\\");
                writeln!(
                    vertices,
                    "{number}\t{}\t{kind}\t{age}\t{json}",
                    data.labels.first().map_or("", |l| l.as_str())
                )?;
            }
        }
        let rows =
            Call::cypher("MATCH (a)-[e]->(b) RETURN id(a), id(b), type(e)", vec![]).embedded(database)?;
        let mut edges = String::new();
        for row in rows {
            writeln!(
                edges,
                "{}\t{}\t{}\t{{}}",
                numbers[&row[0]],
                numbers[&row[1]],
                row[2].as_str().unwrap_or_default()
            )?;
        }
        let (v, e) = (self.directory.path().join("v.tsv"), self.directory.path().join("e.tsv"));
        std::fs::write(&v, vertices)?;
        std::fs::write(&e, edges)?;
        self.sql(&format!(
            "{SCHEMA}\n\\copy v from '{}'\n\\copy e from '{}'\n{INDEXES}",
            path(&v),
            path(&e)
        ))?;
        self.numbers = numbers;
        Ok(counts)
    }

    /// Returns the number of rows for the starts of Tidegraph's calls.
    pub fn counts(&self, name: &str, calls: &[Call]) -> anyhow::Result<Vec<usize>> {
        let (_, script) =
            self.scripts.iter().find(|(n, _)| *n == name).with_context(|| format!("no SQL for {name}"))?;
        let sql: String = script.lines().filter(|l| !l.starts_with("\\set")).collect();
        let mut text = String::new();
        for call in calls {
            for (parameter, value) in &call.parameters {
                let (variable, number) = match *parameter {
                    "dev" => ("d", self.numbers.get(value).copied()),
                    "T1" => {
                        let at =
                            crate::identity::PARTNER_TYPES.iter().position(|t| Some(*t) == value.as_str());
                        ("t", at.map(|at| at + 1))
                    }
                    _ => ("s", self.numbers.get(value).copied()),
                };
                writeln!(
                    text,
                    "\\set {variable} {}",
                    number.with_context(|| format!("no number for {value:?}"))?
                )?;
            }
            writeln!(text, "SELECT count(*) FROM ({}) AS answer;", sql.trim_end_matches(';'))?;
        }
        let output = self.sql(&text)?;
        output.split_whitespace().map(|n| Ok(n.parse()?)).collect()
    }

    /// Measures answers per second.
    pub fn rate(&self, name: &str, clients: usize) -> anyhow::Result<f64> {
        let (_, script) =
            self.scripts.iter().find(|(n, _)| *n == name).with_context(|| format!("no SQL for {name}"))?;
        let file = self.directory.path().join("bench.sql");
        std::fs::write(&file, script)?;
        let (clients, seconds) = (clients.to_string(), self.round.as_secs().max(1).to_string());
        let threads = clients.parse::<usize>().unwrap_or(1).min(2).to_string();
        let socket = path(self.directory.path()).to_owned();
        let output = self.run(
            "pgbench",
            &[
                "-n",
                "-M",
                "prepared",
                "-c",
                &clients,
                "-j",
                &threads,
                "-T",
                &seconds,
                "-f",
                path(&file),
                "-h",
                &socket,
                "postgres",
            ],
        )?;
        let line = output
            .lines()
            .find(|l| l.starts_with("tps = "))
            .with_context(|| format!("no rate in {output}"))?;
        Ok(line.split(' ').nth(2).context("no rate")?.parse()?)
    }
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap_or_default()
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let data = self.directory.path().join("data");
        if let Err(error) = self.run("pg_ctl", &["-D", path(&data), "-m", "immediate", "stop"]) {
            eprintln!("PostgreSQL could not be stopped: {error:#}");
        }
    }
}
