//! `tidegraph status`.

use super::client::Endpoint;
use clap::Args;
use std::process::ExitCode;

/// Flags of `status`.
#[derive(Args, Debug)]
pub struct Status {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Print the answer as it came.
    #[arg(long)]
    json: bool,
}

impl Status {
    /// Asks once and prints.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let status = self.endpoint.connect()?.get("/status")?;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&status)?);
            return Ok(ExitCode::SUCCESS);
        }
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        let text = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        for name in ["status", "startTime", "dbEngineVersion"] {
            table.add_row([name.to_owned(), text(&status[name])]);
        }
        if let Some(own) = status["tidegraph"].as_object() {
            for (name, value) in own {
                table.add_row([name.clone(), text(value)]);
            }
        }
        println!("{table}");
        Ok(if status["status"] == "healthy" { ExitCode::SUCCESS } else { ExitCode::from(2) })
    }
}
