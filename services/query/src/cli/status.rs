//! `tidegraph status`: prints the status of a running service.

use super::client::{Client, Endpoint};
use anyhow::bail;
use clap::Args;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;
use tidegraph_platform::{Clock, RealClock, chain};

/// Flags of `status`.
#[derive(Args, Debug)]
pub struct Status {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Print the answer of the service as JSON.
    #[arg(long)]
    json: bool,
    /// Refresh the status until Ctrl-C, and show the nodes of a fleet too.
    #[arg(long, conflicts_with = "json")]
    watch: bool,
    /// Seconds between two refreshes of --watch.
    #[arg(long, default_value_t = 1.0)]
    every: f64,
}

impl Status {
    /// Prints the status once, or with --watch until the process is stopped. Exit code 2 says that the service is not
    /// healthy.
    ///
    /// # Errors
    ///
    /// If the service does not answer (without --watch), or --every is below 0.1 seconds.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.endpoint.connect()?;
        if self.watch {
            return self.keep_watching(&client);
        }
        let status = client.get("/status")?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&status)?);
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", own(&status));
        Ok(if status["status"] == "healthy" { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }

    fn keep_watching(&self, client: &Client) -> anyhow::Result<ExitCode> {
        if !self.every.is_finite() || self.every < 0.1 {
            bail!("--every is {}: give at least 0.1 seconds", self.every);
        }
        let clock = RealClock::new();
        let mut out = std::io::stdout();
        loop {
            let page = match client.get("/status") {
                // A service that is one process has no fleet; its own status is all there is.
                Ok(status) => match client.get("/fleet/status") {
                    Ok(fleet) => format!("{}\n\n{}\n\n{}", own(&status), nodes(&fleet), partitions(&fleet)),
                    Err(_) => own(&status),
                },
                Err(error) => chain(error.as_ref()).to_string(),
            };
            // A terminal shows each refresh in place of the last one; other outputs get them in a row.
            let clear = if out.is_terminal() { "\x1b[2J\x1b[H" } else { "" };
            if writeln!(out, "{clear}{page}").is_err() {
                // The reader of the output has gone.
                return Ok(ExitCode::SUCCESS);
            }
            clock.sleep(Duration::from_secs_f64(self.every));
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".into(),
        other => other.to_string(),
    }
}

fn borderless_table() -> comfy_table::Table {
    let mut table = comfy_table::Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table
}

/// The service's own status as a table.
fn own(status: &Value) -> String {
    let mut table = borderless_table();
    for name in ["status", "startTime", "dbEngineVersion"] {
        table.add_row([name.to_owned(), text(&status[name])]);
    }
    if let Some(own) = status["tidegraph"].as_object() {
        for (name, value) in own {
            table.add_row([name.clone(), text(value)]);
        }
    }
    table.to_string()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The nodes of a fleet as a table: the version of each node, and how far it is behind the newest.
fn nodes(fleet: &Value) -> String {
    let version = |node: &Value| node["says"]["logVersion"].as_u64();
    let newest = list(&fleet["nodes"]).iter().filter_map(version).max().unwrap_or_default();
    let mut table = borderless_table();
    table.add_row([
        "node",
        "zone",
        "state",
        "endpoint",
        "replicas",
        "version",
        "behind",
        "map epoch",
        "memory",
        "error",
    ]);
    for node in list(&fleet["nodes"]) {
        let said = &node["says"];
        let replicas = list(&said["replicas"]);
        let ready = replicas.iter().filter(|replica| replica["ready"] == true).count();
        let memory: u64 = replicas.iter().filter_map(|replica| replica["memoryBytes"].as_u64()).sum();
        let behind = version(node).map(|version| (newest - version).to_string());
        let error = [&said["error"], &said["logError"]].into_iter().find(|error| error.is_string());
        table.add_row([
            text(&node["id"]),
            text(&node["zone"]),
            text(&node["state"]),
            text(&node["endpoint"]),
            format!("{ready}/{}", replicas.len()),
            text(&said["logVersion"]),
            behind.unwrap_or_else(|| "-".into()),
            text(&said["mapEpoch"]),
            format!("{} MiB", memory >> 20),
            error.map_or_else(String::new, text),
        ]);
    }
    table.to_string()
}

/// The partitions and the nodes of their replicas as a table.
fn partitions(fleet: &Value) -> String {
    let mut table = borderless_table();
    table.add_row(["partition", "replicas"]);
    for partition in list(&fleet["partitions"]) {
        let replicas = list(&partition["replicas"])
            .iter()
            .map(|replica| match replica["state"].as_str() {
                Some("serving") => text(&replica["node"]),
                state => format!("{} ({})", text(&replica["node"]), state.unwrap_or("-")),
            })
            .collect::<Vec<_>>();
        table.add_row([text(&partition["partition"]), replicas.join(", ")]);
    }
    format!("map epoch {}\n{table}", text(&fleet["mapEpoch"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_fleet_is_shown_with_the_lag_of_its_nodes() {
        let fleet = json!({
            "mapEpoch": 9,
            "nodes": [
                { "id": "a", "zone": "z", "state": "up", "endpoint": "h:1",
                  "says": { "logVersion": 40, "mapEpoch": 9, "replicas": [{ "ready": true, "memoryBytes": 3 << 20 }] } },
                { "id": "b", "zone": "z", "state": "up", "endpoint": "h:2",
                  "says": { "logVersion": 30, "mapEpoch": 8, "replicas": [{ "ready": false, "memoryBytes": 0 }] } },
                { "id": "c", "zone": "z", "state": "gone", "endpoint": "h:3", "says": null },
            ],
            "partitions": [{ "partition": 0, "replicas": [{ "node": "a", "state": "serving" }, { "node": "b", "state": "restoring" }] }],
        });
        let shown = nodes(&fleet);
        let row = |name: &str| -> Vec<String> {
            let line = shown.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(row("a ")[4..7], ["1/1", "40", "0"]);
        assert_eq!(row("b ")[4..7], ["0/1", "30", "10"]);
        assert_eq!(row("c ")[2..7], ["gone", "h:3", "0/0", "-", "-"]);
        assert!(partitions(&fleet).contains("a, b (restoring)"));
    }
}
