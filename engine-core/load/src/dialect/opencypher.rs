//! The openCypher dialect: `:ID,:LABEL,name:String`.

use super::{OnConflict, Rules};
use crate::convert::Type;
use crate::header::{ColumnTable, FileKind, Role, Wrong, common_type, split_name, unknown_type, wrong};
use crate::options::Options;
use tidegraph_types::{Cardinality, Str};

pub(super) struct OpenCypher;

/// A system column: `name:ID(space)`.
struct SystemColumn<'a> {
    name: Str,
    word: &'a str,
    space: Option<Str>,
}

impl<'a> SystemColumn<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (name, spec) = split_name(text);
        let spec = spec?;
        let (word, space) = match spec.strip_suffix(')').and_then(|spec| spec.split_once('(')) {
            Some((word, space)) => (word, Some(Str::from(space))),
            None => (spec, None),
        };
        is_system_word(word).then_some(Self { name, word, space })
    }
}

fn is_system_word(word: &str) -> bool {
    matches!(word, "ID" | "START_ID" | "END_ID" | "LABEL" | "TYPE")
}

impl Rules for OpenCypher {
    fn name(&self) -> &'static str {
        "opencypher"
    }

    fn format_name(&self) -> &'static str {
        "opencypher-csv"
    }

    fn job_name(&self) -> &'static str {
        "OpenCypherCsv"
    }

    fn title(&self) -> &'static str {
        "openCypher"
    }

    fn title_with_id(&self) -> &'static str {
        "an openCypher (:ID)"
    }

    fn is_told_by(&self, column: &str) -> bool {
        let Some((_, spec)) = column.rsplit_once(':') else { return false };
        is_system_word(spec.split('(').next().unwrap_or(spec))
    }

    fn is_system_column(&self, column: &str) -> bool {
        SystemColumn::parse(column).is_some()
    }

    fn kind(&self, columns: &[&str]) -> FileKind {
        let edges = columns
            .iter()
            .filter_map(|column| SystemColumn::parse(column))
            .any(|column| matches!(column.word, "START_ID" | "END_ID" | "TYPE"));
        if edges { FileKind::Edges } else { FileKind::Vertices }
    }

    fn system_column(
        &self,
        table: &mut ColumnTable,
        text: &str,
        kind: FileKind,
    ) -> Result<Option<Role>, Wrong> {
        let Some(SystemColumn { name, word, space }) = SystemColumn::parse(text) else {
            if text.starts_with(':') {
                let known = ":ID, :LABEL, :START_ID, :END_ID and :TYPE";
                return Err(wrong(text, format!("not a system column; those are {known}")));
            }
            return Ok(None);
        };
        if word != "ID" && !name.is_empty() {
            return Err(wrong(text, format!("only :ID can be stored as a property, :{word} cannot")));
        }
        let has_no_space = matches!(word, "LABEL" | "TYPE") || (word == "ID" && kind == FileKind::Edges);
        if space.is_some() && has_no_space {
            return Err(wrong(text, "this column has no id space"));
        }
        Ok(Some(match word {
            "ID" if name.is_empty() => Role::Id { space, property: None },
            "ID" if kind == FileKind::Edges => {
                return Err(wrong(text, "the id of a relationship cannot be stored as a property"));
            }
            "ID" => Role::Id { space, property: Some(table.add_name(text, name)?) },
            "START_ID" => Role::From { space },
            "END_ID" => Role::To { space },
            "LABEL" if kind == FileKind::Edges => {
                let reason = "a relationship has :TYPE, not :LABEL; one file cannot hold both kinds";
                return Err(wrong(text, reason));
            }
            _ => Role::Label,
        }))
    }

    fn property_column(&self, table: &mut ColumnTable, text: &str, _: FileKind) -> Result<Role, Wrong> {
        let (name, spec) = split_name(text);
        let spec = spec.unwrap_or("string");
        if spec.ends_with("[]") {
            return Err(wrong(text, "the openCypher format has no arrays"));
        }
        let value_type = match spec.to_ascii_lowercase().as_str() {
            // Documented: kept as text, unchecked.
            "char" | "point" => Type::String,
            "date" | "localdate" => Type::Date,
            "localtime" => Type::LocalTime,
            "time" => Type::Time,
            "localdatetime" => Type::LocalDateTime,
            "zoneddatetime" => Type::ZonedDateTime,
            "duration" => Type::Duration,
            other => common_type(other).ok_or_else(|| unknown_type(text, spec))?,
        };
        let name = table.add_name(text, name)?;
        Ok(Role::Property { name, kind: value_type, array: false, cardinality: Cardinality::Single })
    }

    fn check_columns(&self, table: &ColumnTable, kind: FileKind, options: &Options) -> Result<(), Wrong> {
        let id = |role: &Role| matches!(role, Role::Id { .. });
        if kind == FileKind::Vertices {
            return table.require(":ID", id);
        }
        table.require(":START_ID", |role| matches!(role, Role::From { .. }))?;
        table.require(":END_ID", |role| matches!(role, Role::To { .. }))?;
        if options.user_provided_edge_ids {
            let required = table.require(":ID", id);
            required.map_err(|w| Wrong { reason: w.reason + ", which userProvidedEdgeIds asks for", ..w })
        } else if table.has(id) {
            Err(wrong(":ID", "this column must not be there when userProvidedEdgeIds is false"))
        } else {
            Ok(())
        }
    }

    fn quoted_empty_is_text(&self) -> bool {
        false
    }

    fn default_label(&self) -> Option<&'static str> {
        None
    }

    /// Counts the row, whatever it has.
    fn duplicates(&self, _statements: u64) -> u64 {
        1
    }

    fn on_conflict(&self, _update: bool) -> OnConflict {
        OnConflict::Keep
    }

    fn first_edge_row_wins(&self) -> bool {
        true
    }

    fn generated_columns(&self, kind: FileKind) -> &'static [&'static str] {
        match kind {
            FileKind::Vertices => &[":ID", ":LABEL"],
            FileKind::Edges => &[":ID", ":START_ID", ":END_ID", ":TYPE"],
        }
    }

    fn generated_property(&self, key: &str, value_type: Type, _: FileKind, list: bool) -> String {
        let value_type = if list { Type::String } else { value_type };
        format!("{key}:{}", value_type.column_name())
    }
}
