//! Runs one scenario: builds its graph and parameters, runs its traversal, and checks the result.

use super::graphs::{Graphs, data_folder};
use super::notation::{literal, same, same_bag, show, tree, value};
use gherkin::{Scenario, Step};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tidegraph_engine::{Database, Error, GremlinVersion, Language, Parameters, Query};
use tidegraph_types::{ErrorCode, Value};

/// The outcome of a scenario.
pub enum Outcome {
    /// The result is the expected one.
    Passed,
    /// Refused as unsupported; the text names the feature.
    Unsupported(String),
    /// Not run: a text sent over the wire cannot express it, or its data is not available.
    LeftOut(String),
    /// Any other failure.
    Failed(String),
}

/// Time limit of one traversal. TinkerPop's take milliseconds.
const TIMEOUT: Duration = Duration::from_secs(120);

/// State that the steps of a scenario have set so far.
#[derive(Default)]
struct World {
    version: Option<GremlinVersion>,
    graph: Option<Arc<Database>>,
    /// Values contain vertices and edges as they were when the parameter was defined.
    parameters: Vec<(String, Result<Value, String>)>,
    /// Parameters that stand for a predicate, as text.
    predicates: Vec<(String, String)>,
    /// Calls on `g` that the traversal gets.
    side_effects: String,
    traversal: String,
    result: Vec<Value>,
    error: Option<Error>,
}

/// Runs a scenario. A panic counts as a failure of this scenario only.
pub fn run(scenario: &Scenario, graphs: &mut Graphs) -> Outcome {
    let older = scenario.tags.iter().any(|tag| tag == "gremlin-3.7").then_some(GremlinVersion::V3_7);
    let mut world = World { version: graphs.version.or(older), ..World::default() };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        scenario.steps.iter().try_for_each(|step| world.step(step, graphs)).err()
    }));
    match outcome {
        Ok(None) => Outcome::Passed,
        Ok(Some(Outcome::Failed(why))) => Outcome::Failed(format!("{why}\n      {}", world.traversal.trim())),
        Ok(Some(outcome)) => outcome,
        Err(_) => Outcome::Failed(format!("a panic\n      {}", world.traversal.trim())),
    }
}

/// Returns the text between the first and the last quotation mark.
fn quoted(text: &str) -> String {
    let inner =
        text.split_once('"').and_then(|(_, rest)| rest.rsplit_once('"')).map_or("", |(inner, _)| inner);
    inner.replace("\\\"", "\"")
}

/// Returns the refusal without its position in the text.
fn refusal(error: &Error) -> Outcome {
    let text = error.to_string();
    let name = text.rsplit_once(" at ").map_or(text.as_str(), |(name, _)| name);
    Outcome::Unsupported(name.trim_start_matches("not supported yet: ").to_owned())
}

impl World {
    fn step(&mut self, step: &Step, graphs: &mut Graphs) -> Result<(), Outcome> {
        let text = step.value.as_str();
        if let Some(name) = text.strip_prefix("the ").and_then(|rest| rest.strip_suffix(" graph")) {
            let graph = graphs.get(name);
            self.graph =
                Some(graph.ok_or_else(|| Outcome::LeftOut(format!("data of {name} is not at hand")))?);
        } else if text == "an unsupported test" {
            return Err(Outcome::LeftOut("TinkerPop does not run it either".into()));
        } else if text == "the graph initializer of" {
            let text = step.docstring.clone().unwrap_or_default();
            match self.ask(&text) {
                Ok(_) => {}
                Err(Ok(error)) if error.code() == ErrorCode::UnsupportedOperation => {
                    return Err(refusal(&error));
                }
                Err(Ok(error)) => return Err(Outcome::Failed(format!("initializer: {error}\n{text}"))),
                Err(Err(outcome)) => return Err(outcome),
            }
        } else if let Some(rest) = text.strip_prefix("using the side effect ") {
            let key = rest.split(' ').next().unwrap_or_default();
            let value = value(&quoted(rest), self.graph()?).map_err(Outcome::LeftOut)?;
            let written = literal(&value);
            // What cannot be written is bound.
            let name = format!("side_effect_{key}");
            self.side_effects +=
                &format!(".withSideEffect(\"{key}\", {})", written.as_ref().unwrap_or(&name));
            if written.is_none() {
                self.parameters.push((name, Ok(value)));
            }
        } else if let Some(rest) = text.strip_prefix("using the parameter ") {
            let name = rest.split(' ').next().unwrap_or_default();
            let value = value(&quoted(rest), self.graph()?);
            match rest
                .strip_prefix(name)
                .and_then(|of| of.strip_prefix(" of "))
                .and_then(|of| of.split_once('('))
            {
                Some((predicate, _)) => {
                    let operand = value.ok().as_ref().and_then(literal);
                    let operand = operand.ok_or_else(|| Outcome::Failed(format!("no operand: {rest}")))?;
                    self.predicates.push((name.to_owned(), format!("{predicate}({operand})")));
                }
                None => self.parameters.push((name.to_owned(), value)),
            }
        } else if text == "the traversal of" {
            // As TinkerPop's own runners do, the path of a file becomes that of this machine.
            let folder = format!("io(\"{}/", data_folder().display());
            let text = step.docstring.clone().unwrap_or_default().replace("io(\"data/", &folder);
            self.traversal = text.replacen('g', &format!("g{}", self.side_effects), 1);
        } else if text == "iterated to list" || text == "iterated next" {
            self.iterate(text == "iterated next")?;
        } else {
            self.check(text, step)?;
        }
        Ok(())
    }

    fn iterate(&mut self, next: bool) -> Result<(), Outcome> {
        match self.ask(&self.traversal) {
            Ok(values) => self.result = values,
            Err(Ok(error)) if error.code() == ErrorCode::UnsupportedOperation => return Err(refusal(&error)),
            Err(Ok(error)) => self.error = Some(error),
            Err(Err(outcome)) => return Err(outcome),
        }
        if next {
            // If the first result has items, the items are checked.
            self.result = match self.result.first() {
                Some(Value::List(items) | Value::Set(items)) => items.to_vec(),
                Some(Value::Path(path)) => path.objects.clone(),
                Some(other) => vec![other.clone()],
                None => vec![],
            };
        }
        Ok(())
    }

    fn graph(&self) -> Result<&Database, Outcome> {
        self.graph.as_deref().ok_or_else(|| Outcome::Failed("no graph is given".into()))
    }

    /// Runs a text with the parameters that it names. They are bound, or written into the
    /// text where the engine takes no variable.
    fn ask(&self, text: &str) -> Result<Vec<Value>, Result<Error, Outcome>> {
        let graph = self.graph().map_err(Err)?;
        let mut text = text.to_owned();
        for (name, predicate) in &self.predicates {
            text = replaced(&text, name, predicate).unwrap_or(text);
        }
        let text = text.as_str();
        let mut parameters = Parameters::default();
        for (name, value) in &self.parameters {
            if replaced(text, name, "").is_none() {
                continue;
            }
            let value = value.clone().map_err(|why| {
                Err(if why.starts_with("a ") { Outcome::LeftOut(why) } else { Outcome::Failed(why) })
            })?;
            parameters.insert(name.as_str().into(), value);
        }
        let bindable = parameters.values().all(|v| !literal(v).is_some_and(|text| text.contains("Merge.")));
        let first = if bindable { Some(self.query(graph, text, &parameters)) } else { None };
        match first {
            Some(Err(error)) if error.code() == ErrorCode::UnsupportedOperation && !parameters.is_empty() => {
            }
            Some(answer) => return answer.map_err(Ok),
            None => {}
        }
        let mut written = text.to_owned();
        let mut bound = Parameters::default();
        for (name, value) in &parameters {
            match literal(value) {
                Some(literal) => written = replaced(&written, name, &literal).unwrap_or(written),
                None => {
                    bound.insert(name.clone(), value.clone());
                }
            }
        }
        self.query(graph, &written, &bound).map_err(Ok)
    }

    fn query(&self, graph: &Database, text: &str, parameters: &Parameters) -> Result<Vec<Value>, Error> {
        let query = Query {
            timeout: Some(TIMEOUT),
            gremlin_version: self.version,
            ..Query::new(Language::Gremlin, text, parameters)
        };
        Ok(graph.query(&query)?.rows.into_iter().flatten().collect())
    }

    fn check(&self, text: &str, step: &Step) -> Result<(), Outcome> {
        if text.starts_with("the traversal will raise an error") {
            // The engine has its own messages, so the check is only that the error is no internal one.
            return match &self.error {
                None => Err(self.wrong("an error was expected")),
                Some(error) if error.code() == ErrorCode::Internal => {
                    Err(self.wrong("a clean error was expected"))
                }
                Some(_) => Ok(()),
            };
        }
        if let Some(error) = &self.error {
            return Err(Outcome::Failed(format!("{}: {error}", error.code())));
        }
        if let Some(rest) = text.strip_prefix("the result should have a count of ") {
            let count: usize =
                rest.trim().parse().map_err(|_| Outcome::Failed(format!("no count: {rest}")))?;
            // TinkerPop's runners count the entries of a map, so this does too.
            let actual = match self.result.as_slice() {
                [Value::Map(map)] if count != 1 => map.len(),
                values => values.len(),
            };
            return if actual == count {
                Ok(())
            } else {
                Err(self.wrong(&format!("{count} results expected")))
            };
        }
        if let Some(rest) = text.strip_prefix("the graph should return ") {
            let count: usize = rest.split(' ').next().unwrap_or_default().parse().unwrap_or(usize::MAX);
            let traversal = quoted(rest);
            return match self.ask(&traversal) {
                Ok(values) if values.len() == count => Ok(()),
                Ok(values) => {
                    Err(Outcome::Failed(format!("{count} expected, {} found by {traversal}", values.len())))
                }
                Err(Ok(error)) if error.code() == ErrorCode::UnsupportedOperation => Err(refusal(&error)),
                Err(Ok(error)) => Err(Outcome::Failed(format!("{error}: {traversal}"))),
                Err(Err(outcome)) => Err(outcome),
            };
        }
        match text {
            "the result should be empty" => {
                if self.result.is_empty() {
                    Ok(())
                } else {
                    Err(self.wrong("no result expected"))
                }
            }
            "the result should be ordered" => {
                let expected = self.expected(step)?;
                let holds = expected.len() == self.result.len()
                    && expected.iter().zip(&self.result).all(|(a, b)| same(a, b));
                self.holds(holds, &expected)
            }
            "the result should be unordered" => {
                let expected = self.expected(step)?;
                self.holds(same_bag(&expected, &self.result), &expected)
            }
            "the result should be of" => {
                let expected = self.expected(step)?;
                let holds = self.result.iter().all(|value| expected.iter().any(|e| same(e, value)));
                self.holds(holds, &expected)
            }
            "the result should be a tree with a structure of" => {
                let structure = step.docstring.as_deref().unwrap_or_default();
                let expected = vec![tree(structure, self.graph()?).map_err(Outcome::Failed)?];
                self.holds(same_bag(&expected, &self.result), &expected)
            }
            "the result should be a subgraph with the following" => {
                let expected = self.expected(step)?;
                let head = step.table.iter().flat_map(|table| &table.rows).next().and_then(|row| row.first());
                let holds = match (self.result.as_slice(), head.map(|cell| cell.trim())) {
                    ([Value::Graph(graph)], Some("edges")) => same_bag(&expected, &graph.edges),
                    ([Value::Graph(graph)], Some("vertices")) => same_bag(&expected, &graph.vertices),
                    _ => false,
                };
                self.holds(holds, &expected)
            }
            _ if text.starts_with("nothing should happen because") => Ok(()),
            _ => Err(Outcome::Failed(format!("a step that this test does not know: {text}"))),
        }
    }

    fn expected(&self, step: &Step) -> Result<Vec<Value>, Outcome> {
        let graph = self.graph()?;
        let rows = step.table.iter().flat_map(|table| table.rows.iter().skip(1));
        let expected = rows.map(|row| value(row.first().map_or("", |cell| cell.trim()), graph));
        // In the texts of 3.7 a number with a point and without a type is a decimal. Here it is a double, in each version.
        let is_exact = self.result.iter().any(|value| matches!(value, Value::Big(_)));
        let is_older = self.version == Some(GremlinVersion::V3_7);
        let expected = expected.map(|value| match value {
            Ok(Value::Big(number)) if is_older && !is_exact => Ok(Value::Double(number.to_f64())),
            value => value.map_err(Outcome::Failed),
        });
        expected.collect()
    }

    fn holds(&self, holds: bool, expected: &[Value]) -> Result<(), Outcome> {
        let expected: Vec<String> = expected.iter().map(show).collect();
        if holds { Ok(()) } else { Err(self.wrong(&format!("expected {}", expected.join(" ; ")))) }
    }

    fn wrong(&self, what: &str) -> Outcome {
        let found = match &self.error {
            Some(error) => format!("{}: {error}", error.code()),
            None => self.result.iter().map(show).collect::<Vec<_>>().join(" ; "),
        };
        Outcome::Failed(format!("{what}\n    found    {found}"))
    }
}

/// Replaces a variable in the text. Returns `None` if the text does not name it.
fn replaced(text: &str, name: &str, by: &str) -> Option<String> {
    let (mut out, mut found, mut quote) = (String::new(), false, None);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let taken = if quote.is_none() && word > 0 {
            if &rest[..word] == name && !out.ends_with('.') {
                found = true;
                out.push_str(by);
            } else {
                out.push_str(&rest[..word]);
            }
            word
        } else {
            if quote == Some(c) {
                quote = None;
            } else if quote.is_none() && (c == '"' || c == '\'') {
                quote = Some(c);
            }
            out.push(c);
            c.len_utf8()
        };
        rest = &rest[taken..];
    }
    found.then_some(out)
}
