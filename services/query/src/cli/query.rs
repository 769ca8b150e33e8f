//! `tidegraph query`: runs one query, or an interactive session with history on a terminal.

use super::client::{Client, Endpoint};
use anyhow::Context;
use clap::{Args, ValueEnum};
use rustyline::error::ReadlineError;
use serde_json::{Map, Value, json};
use std::io::{IsTerminal, Read, Write};
use std::process::ExitCode;

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Language {
    /// openCypher.
    Cypher,
    /// Gremlin.
    Gremlin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table.
    Table,
    /// One JSON array.
    Json,
    /// Comma-separated values.
    Csv,
}

/// Flags of `query`.
#[derive(Args, Debug)]
pub struct Query {
    #[command(flatten)]
    endpoint: Endpoint,
    /// Language of the query. Without it: Gremlin if the text begins with `g.`, else openCypher.
    #[arg(long, value_enum)]
    language: Option<Language>,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Query parameter as NAME=JSON. Repeat the flag for more parameters.
    #[arg(long = "param", value_name = "NAME=JSON", value_parser = parameter)]
    parameters: Vec<(String, Value)>,
    /// Query to run. Without it: the query on standard input, or an interactive session on a terminal.
    text: Option<String>,
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not NAME=JSON"))?;
    // A bare word is text, so that users need no quotes within quotes.
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok((name.to_owned(), value))
}

const HELP: &str = "\
A query ends with a semicolon or an empty line. Traversals begin with g.
:cypher :gremlin :auto     set the language of the next queries
:table :json :csv          set the format of the output
:param NAME JSON           set a parameter
:help :quit";

impl Query {
    /// Runs the query or the session.
    ///
    /// # Errors
    ///
    /// If the service cannot be reached or refuses the one query. A session prints errors of queries and continues.
    pub fn run(mut self) -> anyhow::Result<ExitCode> {
        let client = self.endpoint.connect()?;
        match self.text.take() {
            Some(text) => self.once(&client, &text)?,
            None if std::io::stdin().is_terminal() => self.session(&client)?,
            None => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
                self.once(&client, &text)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn once(&self, client: &Client, text: &str) -> anyhow::Result<()> {
        let (columns, rows) = self.ask(client, text)?;
        print(self.format, &columns, &rows)
    }

    fn ask(&self, client: &Client, text: &str) -> anyhow::Result<(Vec<String>, Vec<Vec<Value>>)> {
        let text = text.trim().trim_end_matches(';');
        let parameters: Map<String, Value> = self.parameters.iter().cloned().collect();
        let language = self.language.unwrap_or(if text.starts_with("g.") {
            Language::Gremlin
        } else {
            Language::Cypher
        });
        match language {
            Language::Cypher => {
                let answer = client.post(
                    "/openCypher",
                    &json!({"query": text, "parameters": parameters}),
                    "application/json",
                )?;
                let rows = answer["results"].as_array().cloned().unwrap_or_default();
                let columns: Vec<String> = rows
                    .first()
                    .and_then(Value::as_object)
                    .map(|r| r.keys().cloned().collect())
                    .unwrap_or_default();
                let cells =
                    |row: Value| columns.iter().map(|c| row.get(c).cloned().unwrap_or(Value::Null)).collect();
                let rows = rows.into_iter().map(cells).collect();
                Ok((columns, rows))
            }
            Language::Gremlin => {
                let body = json!({"gremlin": text, "bindings": parameters});
                let answer = client.post("/gremlin", &body, "application/json;types=false")?;
                let values = answer["result"]["data"].as_array().cloned().unwrap_or_default();
                Ok((vec!["result".to_owned()], values.into_iter().map(|v| vec![v]).collect()))
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the home directory holds the history of the prompt")]
    fn session(&mut self, client: &Client) -> anyhow::Result<()> {
        let mut editor = rustyline::DefaultEditor::new()?;
        let history =
            std::env::var_os("HOME").map(|home| std::path::Path::new(&home).join(".tidegraph_history"));
        if let Some(path) = &history
            && path.exists()
            && let Err(error) = editor.load_history(path)
        {
            eprintln!("the history in {} cannot be read: {error}", path.display());
        }
        println!("Tidegraph. Type :help for the commands.");
        let mut text = String::new();
        loop {
            let prompt = if text.is_empty() { "tidegraph> " } else { "         > " };
            let line = match editor.readline(prompt) {
                Ok(line) => line,
                Err(ReadlineError::Interrupted) => {
                    text.clear();
                    continue;
                }
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(error.into()),
            };
            let word = line.trim();
            if text.is_empty() && word.starts_with(':') {
                if matches!(word, ":quit" | ":exit" | ":q") {
                    break;
                }
                self.command(word);
                continue;
            }
            text.push_str(&line);
            text.push('\n');
            let ends = word.is_empty() || word.ends_with(';');
            if ends && !text.trim().is_empty() {
                editor.add_history_entry(text.trim())?;
                if let Err(error) = self.once(client, &text) {
                    eprintln!("{}", tidegraph_platform::chain(error.as_ref()));
                }
                text.clear();
            } else if word.is_empty() {
                text.clear();
            }
        }
        if let Some(path) = &history
            && let Err(error) = editor.save_history(path)
        {
            eprintln!("the history cannot be written to {}: {error}", path.display());
        }
        Ok(())
    }

    fn command(&mut self, word: &str) {
        match word {
            ":cypher" => self.language = Some(Language::Cypher),
            ":gremlin" => self.language = Some(Language::Gremlin),
            ":auto" => self.language = None,
            ":table" => self.format = Format::Table,
            ":json" => self.format = Format::Json,
            ":csv" => self.format = Format::Csv,
            _ => {
                let set =
                    word.strip_prefix(":param ").and_then(|rest| rest.trim().split_once(char::is_whitespace));
                match set.map(|(name, value)| parameter(&format!("{name}={}", value.trim()))) {
                    Some(Ok((name, value))) => {
                        self.parameters.retain(|(other, _)| *other != name);
                        self.parameters.push((name, value));
                    }
                    _ => println!("{HELP}"),
                }
            }
        }
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn print(format: Format, columns: &[String], rows: &[Vec<Value>]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    match format {
        Format::Json => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|row| Value::Object(columns.iter().cloned().zip(row.iter().cloned()).collect()))
                .collect();
            writeln!(out, "{}", serde_json::to_string_pretty(&rows)?)?;
        }
        Format::Csv => {
            let mut writer = csv::Writer::from_writer(out);
            // An answer without rows does not name its columns; a record of none would be written as `""`.
            if !columns.is_empty() {
                writer.write_record(columns)?;
            }
            for row in rows {
                writer.write_record(row.iter().map(cell))?;
            }
            writer.flush()?;
        }
        Format::Table => {
            let mut table = comfy_table::Table::new();
            table.load_preset(comfy_table::presets::UTF8_FULL_CONDENSED);
            table.set_content_arrangement(comfy_table::ContentArrangement::Dynamic);
            table.set_header(columns);
            for row in rows {
                table.add_row(row.iter().map(cell));
            }
            if !rows.is_empty() {
                writeln!(out, "{table}")?;
            }
            writeln!(out, "{} row(s)", rows.len())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_json_or_bare_words() {
        assert_eq!(parameter("n=1"), Ok(("n".into(), json!(1))));
        assert_eq!(parameter("n=a b"), Ok(("n".into(), json!("a b"))));
        assert_eq!(parameter("n=\"1\""), Ok(("n".into(), json!("1"))));
        assert!(parameter("n").is_err());
    }
}
