//! Commands: texts without a plan, which the engine executes itself.

use crate::deadline::Deadline;
use crate::query::{Answer, Query};
use crate::{Database, Error};
use tidegraph_exec::view::Counters;
use tidegraph_opencypher::{Command, Show, TERMINATED_COLUMNS};
use tidegraph_plan::{Plan, Procedure, Procedures, Signature, TypeTest, ValueType};
use tidegraph_storage::IndexState;
use tidegraph_types::{IndexDefinition, Str, Value};

impl Database {
    /// Runs a command.
    pub(crate) fn run_command(
        &self,
        command: &Command,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        if command.writes() {
            self.backend.catch_up()?;
        }
        match command {
            Command::Create { name, label, key, unique, if_not_exists } => {
                self.create_index(name.as_ref(), [label, key], *unique, *if_not_exists, deadline)
            }
            Command::Drop { name, unique, if_exists } => self.drop_index(name, *unique, *if_exists, deadline),
            Command::Show { what, over_rows } => {
                let rows = match what {
                    Show::Indexes => self.show_indexes()?,
                    Show::Constraints => self.show_constraints()?,
                    Show::Procedures => show_procedures(&self.options.procedures),
                    Show::Functions => show_functions(),
                    Show::Databases => show_databases(),
                    Show::Transactions(ids) => self.show_transactions(ids.as_deref(), query, deadline)?,
                };
                self.over_rows(over_rows.as_deref(), what.brief_columns(), rows, query, deadline)
            }
            Command::Composed(parts) => self.run_composed(parts, query, deadline),
            Command::Terminate { ids, over_rows } => {
                let rows = self.terminate_transactions(ids, query, deadline)?;
                self.over_rows(over_rows.as_deref(), TERMINATED_COLUMNS, rows, query, deadline)
            }
        }
    }

    /// Runs the YIELD, WHERE and RETURN of a command over its rows. Without them the answer has the first columns.
    fn over_rows(
        &self,
        plan: Option<&Plan>,
        columns: &[&str],
        mut rows: Vec<Vec<Value>>,
        query: &Query<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<Answer, Error> {
        if let Some(plan) = plan {
            let planned = self.planned_part(plan.clone(), false, query, deadline)?;
            let rows: Vec<Value> = rows.into_iter().map(Value::list).collect();
            return self.run_part(&planned, &rows, query, deadline);
        }
        rows.iter_mut().for_each(|row| row.truncate(columns.len()));
        Ok(Answer {
            columns: columns.iter().map(|name| Str::from(*name)).collect(),
            rows,
            version: self.backend.snapshot(None)?.at.version,
            wrote: false,
            counters: Counters::default(),
            repeated: false,
        })
    }

    fn show_indexes(&self) -> Result<Vec<Vec<Value>>, Error> {
        self.show(|index| {
            let definition = &index.definition;
            let owner = if definition.unique { text(&definition.name) } else { Value::Null };
            let state = if index.complete && !definition.unchecked { "ONLINE" } else { "BUILDING" };
            let [label, key] = self.over(definition);
            Some(vec![text(&definition.name), text(state), text("RANGE"), text("NODE"), label, key, owner])
        })
    }

    fn show_constraints(&self) -> Result<Vec<Vec<Value>>, Error> {
        self.show(|index| {
            let definition = &index.definition;
            let [label, key] = self.over(definition);
            let name = text(&definition.name);
            definition.unique.then(|| vec![name.clone(), text("UNIQUENESS"), text("NODE"), label, key, name])
        })
    }

    /// Returns label and key of an index, as lists.
    fn over(&self, definition: &IndexDefinition) -> [Value; 2] {
        [definition.label, definition.key]
            .map(|token| Value::list(vec![text(&self.backend.catalog().name(token))]))
    }

    fn show(&self, row: impl Fn(&IndexState) -> Option<Vec<Value>>) -> Result<Vec<Vec<Value>>, Error> {
        let mut indexes = self.backend.indexes()?;
        indexes.sort_by(|a, b| a.definition.name.cmp(&b.definition.name));
        Ok(indexes.iter().filter_map(row).collect())
    }
}

/// Adds the procedures that need to know the languages: `dbms.functions()`. One of the program with that name stays.
pub(crate) fn with_language_procedures(procedures: Procedures) -> Procedures {
    let text = || TypeTest::or_null(ValueType::String);
    let signature = Signature::new("dbms.functions")
        .describe("Lists the functions.")
        .column("name", text())
        .column("signature", text())
        .column("category", text())
        .column("description", text())
        .column("aggregating", TypeTest::or_null(ValueType::Boolean));
    let list = Procedure::new(signature, |_, rows| {
        show_functions().into_iter().try_for_each(|row| match <[Value; 4]>::try_from(row) {
            Ok([name, category, aggregating, signature]) => {
                let kind = category.as_str().unwrap_or_default();
                let description = Value::string(format!("{kind} function of openCypher."));
                rows.add(vec![name, signature, category, description, aggregating])
            }
            Err(_) => rows.check(),
        })
    });
    procedures.clone().with(list).unwrap_or(procedures)
}

fn show_procedures(procedures: &Procedures) -> Vec<Vec<Value>> {
    let row = |procedure: &Procedure| {
        let signature = procedure.signature();
        let line = text(&signature.to_string());
        vec![text(&signature.name), text(&signature.description), text("READ"), line]
    };
    procedures.iter().map(row).collect()
}

fn show_functions() -> Vec<Vec<Value>> {
    let mut all: Vec<(&str, &str)> = tidegraph_opencypher::functions().collect();
    all.sort_unstable();
    let row = |(name, category): (&str, &str)| {
        let aggregates = category == "Aggregating";
        vec![text(name), text(category), Value::Bool(aggregates), text(&format!("{name}()"))]
    };
    all.into_iter().map(row).collect()
}

/// A process has one graph, which clients of Neo4j know by the name of its default database.
fn show_databases() -> Vec<Vec<Value>> {
    let yes = Value::Bool(true);
    vec![vec![text("neo4j"), text("standard"), text("read-write"), text("online"), yes.clone(), yes]]
}

fn text(text: &str) -> Value {
    Value::string(text)
}
