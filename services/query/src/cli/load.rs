//! `tidegraph load`: submits files to a running service and shows the progress of the load.
//!
//! The command has the rights of the person who runs it: it finds the files and detects their format with them. The
//! service reads the files with its own rights and by its own rules (`--load-from`), for every caller: otherwise each
//! client would have the rights of its process.

use super::client::{Client, Endpoint};
use anyhow::{Context, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tidegraph_load::Dialect;
use tidegraph_load::source::{Access, Allowed, Source};

/// Value of `--format` that detects the format from the first line of each file.
const AUTO: &str = "auto";

/// The values of `--format`, with their help.
fn formats() -> Vec<PossibleValue> {
    let auto = PossibleValue::new(AUTO).help("Detect the format from the first line of each file");
    let dialects =
        Dialect::all().map(|dialect| PossibleValue::new(dialect.name()).help(format!("{dialect:?} CSV")));
    std::iter::once(auto).chain(dialects).collect()
}

/// Flags of `load`.
#[derive(Args, Debug)]
pub struct Load {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Format of the files.
    #[arg(long, value_parser = PossibleValuesParser::new(formats()), default_value = AUTO)]
    format: String,
    /// Report a bad row and continue, instead of stopping at it.
    #[arg(long)]
    keep_going: bool,
    /// Load an empty field as an empty string, instead of as no value.
    #[arg(long)]
    allow_empty_strings: bool,
    /// Replace the old value of a single-cardinality property, instead of rejecting the new one.
    #[arg(long)]
    update_single: bool,
    /// AWS region of s3:// sources.
    #[arg(long)]
    region: Option<String>,
    /// Files or folders on the machine of the service, or s3:// URLs, in places that the service was allowed with
    /// --load-from or in its drop folder. All become visible together.
    #[arg(required = true)]
    files: Vec<String>,
}

impl Load {
    /// Submits the load and waits for its end. The exit code says whether it completed.
    ///
    /// # Errors
    ///
    /// If a file does not exist, the formats of the files differ or cannot be detected, or the service refuses the
    /// load.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let client = self.endpoint.connect()?;
        let sources = self.files.iter().map(|file| source(file)).collect::<anyhow::Result<Vec<_>>>()?;
        let format = if self.format == AUTO { self.detect()? } else { &self.format };
        let mut body = json!({
            "source": sources,
            "format": format,
            "mode": "NEW",
            "failOnError": !self.keep_going,
            "queueRequest": true,
            "updateSingleCardinalityProperties": self.update_single,
            "parserConfiguration": { "allowEmptyStrings": self.allow_empty_strings },
        });
        if let Some(region) = &self.region {
            body["region"] = json!(region);
        }
        let answer = client.post("/loader", &body, "application/json")?;
        let id = answer["payload"]["loadId"]
            .as_str()
            .context("the answer of the service has no load id")?
            .to_owned();
        follow(&client, &id)
    }

    /// Returns the format of all files, detected from their first lines.
    fn detect(&self) -> anyhow::Result<&'static str> {
        let mut found: Option<(&'static str, &String)> = None;
        for file in &self.files {
            if file.contains("://") {
                bail!("the format of {file} cannot be detected from here: give --format");
            }
            let source = Source::open(file, &Access::to(&Allowed::everything()))?;
            let format = source.detect(&tidegraph_load::Options::default())?.name();
            match found {
                Some((other, before)) if other != format => {
                    bail!(
                        "{before} has the format {other} and {file} the format {format}: load them one after the other"
                    );
                }
                _ => found = Some((format, file)),
            }
        }
        Ok(found.map_or("csv", |(format, _)| format))
    }
}

#[expect(clippy::disallowed_methods, reason = "a command names files of its user")]
fn source(file: &str) -> anyhow::Result<String> {
    if file.contains("://") {
        return Ok(file.to_owned());
    }
    let path = std::fs::canonicalize(file).with_context(|| format!("cannot find {file}"))?;
    Ok(format!("file://{}", path.display()))
}

fn follow(client: &Client, id: &str) -> anyhow::Result<ExitCode> {
    let bar = ProgressBar::new(0);
    let style = "{bar:30} {bytes}/{total_bytes} {binary_bytes_per_sec} {msg} {eta} left";
    bar.set_style(ProgressStyle::with_template(style)?);
    loop {
        let status = client.get(&format!("/loader/{id}?details=true&errors=true&errorsPerPage=20"))?;
        let payload = &status["payload"];
        let overall = &payload["overallStatus"];
        let own = &overall["tidegraph"];
        let number = |value: &Value| value.as_u64().unwrap_or(0);
        bar.set_length(number(&own["bytesTotal"]));
        bar.set_position(number(&own["bytesRead"]));
        bar.set_message(format!("{} records", number(&overall["totalRecords"])));
        let state = overall["status"].as_str().unwrap_or_default();
        if matches!(
            state,
            "LOAD_NOT_STARTED" | "LOAD_IN_QUEUE" | "LOAD_IN_PROGRESS" | "LOAD_CANCEL_IN_PROGRESS"
        ) {
            #[allow(
                clippy::disallowed_methods,
                reason = "a command that waits for a service; nothing to simulate"
            )]
            std::thread::sleep(Duration::from_millis(100));
            continue;
        }
        bar.finish_and_clear();
        println!(
            "{state} {id}: {} records (labels and property values), {} duplicates, {} rejected, {} s",
            number(&overall["totalRecords"]),
            number(&overall["totalDuplicates"]),
            number(&overall["parsingErrors"])
                + number(&overall["datatypeMismatchErrors"])
                + number(&overall["insertErrors"]),
            number(&overall["totalTimeSpent"]),
        );
        if let Some(message) = own["message"].as_str() {
            eprintln!("{message}");
        }
        for error in payload["errors"]["errorLogs"].as_array().into_iter().flatten() {
            eprintln!("{error}");
        }
        return Ok(if state == "LOAD_COMPLETED" { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
}
