//! Runs a scenario step by step, on a graph of its own.

use super::compare::{self, Mode};
use super::feature::{Scenario, Step};
use super::graph::Contents;
use super::notation::Expected;
use super::{Graph, Make, Refusal, Rows, procedures};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tidegraph_engine::Parameters;
use tidegraph_types::{ErrorCode, Value};

/// The outcome of a scenario.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    Passed,
    /// The scenario needs a feature that Tidegraph refuses as unsupported.
    Unsupported(String),
    Failed(String),
}

/// Runs a scenario. `graphs` is the folder of the named graphs.
pub fn run(scenario: &Scenario, graphs: &Path, make: &Make<'_>) -> Outcome {
    let result = catch_unwind(AssertUnwindSafe(|| {
        let mut run = Run::new(scenario, graphs, make)?;
        scenario.steps.iter().try_for_each(|step| run.step(step))
    }));
    match result {
        Ok(Ok(())) => Outcome::Passed,
        Ok(Err(outcome)) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?");
            Outcome::Failed(format!("panic: {text}"))
        }
    }
}

struct Run<'a> {
    graphs: &'a Path,
    graph: Box<dyn Graph>,
    parameters: Parameters,
    /// Text of the last query, for messages.
    text: String,
    /// Result of the last query, and the contents of the graph before it.
    last: Option<(Result<Rows, Refusal>, Contents)>,
}

type Done = Result<(), Outcome>;

fn failed(message: impl Into<String>) -> Done {
    Err(Outcome::Failed(message.into()))
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message } = refusal;
        if code == ErrorCode::UnsupportedOperation {
            // Without the position in the text, so that equal refusals can be counted.
            Self::Unsupported(message.rsplit_once(" at ").map_or(&*message, |(name, _)| name).to_owned())
        } else {
            Self::Failed(format!("{code}: {message}"))
        }
    }
}

impl<'a> Run<'a> {
    fn new(scenario: &Scenario, graphs: &'a Path, make: &Make<'_>) -> Result<Self, Outcome> {
        let procedures = procedures::of(&scenario.steps).map_err(Outcome::Failed)?;
        Ok(Self {
            graphs,
            graph: make(procedures),
            parameters: Parameters::default(),
            text: String::new(),
            last: None,
        })
    }

    fn ask(&self, text: &str, parameters: &Parameters) -> Result<Rows, Refusal> {
        self.graph.ask(text, parameters)
    }

    fn step(&mut self, step: &Step) -> Done {
        let text = step.text.as_str();
        match text {
            "an empty graph" | "any graph" => Ok(()),
            "having executed:" => {
                self.ask(&step.doc, &Parameters::default())?;
                Ok(())
            }
            "parameters are:" => {
                for row in &step.table {
                    self.parameters.insert(row[0].as_str().into(), self.expected(&row[1])?.to_value());
                }
                Ok(())
            }
            "executing query:" | "executing control query:" => {
                let before = Contents::of(&*self.graph)?;
                self.text.clone_from(&step.doc);
                self.last = Some((self.ask(&step.doc, &self.parameters), before));
                Ok(())
            }
            "the result should be empty" => {
                let answer = self.answer()?;
                self.explain(compare::rows(&[], &answer.rows, Mode::default()))
            }
            "no side effects" => self.side_effects(&BTreeMap::new()),
            "the side effects should be:" => {
                let wanted = step.table.iter().map(|row| (row[0].clone(), row[1].parse().expect("a count")));
                self.side_effects(&wanted.collect())
            }
            _ if text.starts_with("the result should be") => self.result(step),
            _ if text.contains(" should be raised at ") => self.error(text),
            // The graph was made with it.
            _ if procedures::is_about(step) => Ok(()),
            _ => match text.strip_prefix("the ").and_then(|text| text.strip_suffix(" graph")) {
                Some(name) => self.named_graph(name),
                None => failed(format!("what is this step? {text}")),
            },
        }
    }

    fn expected(&self, cell: &str) -> Result<Expected, Outcome> {
        Expected::parse(cell).map_err(|e| Outcome::Failed(format!("cell of a table: {e}")))
    }

    fn named_graph(&self, name: &str) -> Done {
        let path = self.graphs.join(name).join(format!("{name}.cypher"));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                self.ask(&text, &Parameters::default())?;
                Ok(())
            }
            Err(error) => failed(format!("{}: {error}", path.display())),
        }
    }

    fn last(&self) -> &(Result<Rows, Refusal>, Contents) {
        self.last.as_ref().expect("a query before what should be")
    }

    fn answer(&self) -> Result<&Rows, Outcome> {
        match &self.last().0 {
            Ok(answer) => Ok(answer),
            Err(error) => Err(match error.clone().into() {
                Outcome::Failed(message) => Outcome::Failed(format!("{message}\n{}", self.text)),
                other => other,
            }),
        }
    }

    fn explain(&self, result: Result<(), String>) -> Done {
        result.map_err(|message| Outcome::Failed(format!("{message}\n{}", self.text)))
    }

    fn result(&self, step: &Step) -> Done {
        let answer = self.answer()?;
        let mode = Mode {
            in_order: step.text.contains("in order"),
            ignore_list_order: step.text.contains("ignoring element order for lists"),
            is_plain: self.graph.is_plain(),
        };
        let (header, table) = step.table.split_first().expect("a header");
        let mut slots = vec![];
        let columns = answer.columns.as_ref().unwrap_or(header);
        for column in header {
            match columns.iter().position(|c| c == column) {
                Some(at) if header.len() == columns.len() => slots.push(at),
                _ => {
                    return failed(format!("columns {columns:?}, expected {header:?}\n{}", self.text));
                }
            }
        }
        let mut expected = vec![];
        for row in table {
            expected.push(row.iter().map(|cell| self.expected(cell)).collect::<Result<Vec<_>, _>>()?);
        }
        let found: Vec<Vec<Value>> =
            answer.rows.iter().map(|row| slots.iter().map(|&at| row[at].clone()).collect()).collect();
        self.explain(compare::rows(&expected, &found, mode))
    }

    /// Checks a step such as `a TypeError should be raised at runtime: InvalidArgumentValue`.
    /// Tidegraph's codes are coarser than the TCK's names, so it checks that the request is
    /// refused as invalid, and before it runs if the step says so.
    fn error(&self, wanted: &str) -> Done {
        let refusal = match &self.last().0 {
            Ok(answer) => {
                return failed(format!(
                    "no error, {} rows; expected: {wanted}\n{}",
                    answer.rows.len(),
                    self.text
                ));
            }
            Err(refusal) => refusal,
        };
        match refusal.code {
            ErrorCode::UnsupportedOperation => Err(refusal.clone().into()),
            code if !refusal.is_invalid() || wanted.contains("compile time") && !refusal.is_early() => {
                failed(format!("{code}: {}; expected: {wanted}\n{}", refusal.message, self.text))
            }
            _ => Ok(()),
        }
    }

    fn side_effects(&self, wanted: &BTreeMap<String, usize>) -> Done {
        let changes = Contents::of(&*self.graph)?.changes_since(&self.last().1);
        if changes == *wanted {
            Ok(())
        } else {
            failed(format!("side effects {changes:?}, expected {wanted:?}\n{}", self.text))
        }
    }
}
