//! The Gremlin dialect: `~id,~label,name:String`.

use super::{OnConflict, Rules};
use crate::convert::Type;
use crate::header::{ColumnTable, FileKind, Role, Wrong, common_type, split_name, unknown_type, wrong};
use crate::options::Options;
use crate::rows::DEFAULT_LABEL;
use tidegraph_types::Cardinality;

pub(super) struct Gremlin;

impl Rules for Gremlin {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn format_name(&self) -> &'static str {
        "gremlin-csv"
    }

    fn job_name(&self) -> &'static str {
        "GremlinCsv"
    }

    fn title(&self) -> &'static str {
        "Gremlin"
    }

    fn title_with_id(&self) -> &'static str {
        "a Gremlin (~id)"
    }

    fn is_told_by(&self, column: &str) -> bool {
        column.starts_with('~')
    }

    fn is_system_column(&self, column: &str) -> bool {
        matches!(&*split_name(column).0, "~id" | "~label" | "~from" | "~to")
    }

    fn kind(&self, columns: &[&str]) -> FileKind {
        let edges = columns.iter().any(|column| matches!(*column, "~from" | "~to"));
        if edges { FileKind::Edges } else { FileKind::Vertices }
    }

    fn system_column(&self, _: &mut ColumnTable, text: &str, _: FileKind) -> Result<Option<Role>, Wrong> {
        Ok(Some(match text {
            "~id" => Role::Id { space: None, property: None },
            "~label" => Role::Label,
            "~from" => Role::From { space: None },
            "~to" => Role::To { space: None },
            other if other.starts_with('~') => {
                return Err(wrong(other, "not a system column; those are ~id, ~label, ~from and ~to"));
            }
            _ => return Ok(None),
        }))
    }

    fn property_column(&self, table: &mut ColumnTable, text: &str, kind: FileKind) -> Result<Role, Wrong> {
        let (name, spec) = split_name(text);
        let (mut array, mut cardinality, mut type_name) = (false, None, spec.unwrap_or("string"));
        // `type(set)[]` is the documented order; `type[](set)` is read as well.
        for _ in 0..2 {
            if let Some(rest) = type_name.strip_suffix("[]").filter(|_| !array) {
                (array, type_name) = (true, rest);
            } else if let Some(rest) = type_name.strip_suffix(')').filter(|_| cardinality.is_none()) {
                let Some((rest, word)) = rest.rsplit_once('(') else {
                    return Err(wrong(text, "\")\" without \"(\""));
                };
                cardinality = Some(match word.to_ascii_lowercase().as_str() {
                    "single" => Cardinality::Single,
                    "set" => Cardinality::Set,
                    _ => {
                        let reason = format!("{word:?} is not a cardinality; those are single and set");
                        return Err(wrong(text, reason));
                    }
                });
                type_name = rest;
            }
        }
        let value_type = match type_name.to_ascii_lowercase().as_str() {
            "date" => Type::DateTime,
            other => common_type(other).ok_or_else(|| unknown_type(text, type_name))?,
        };
        let cardinality = match (kind, cardinality) {
            (FileKind::Edges, Some(Cardinality::Set)) => {
                return Err(wrong(text, "edge properties have one value, not a set"));
            }
            (FileKind::Edges, _) if array => {
                return Err(wrong(text, "edge properties have one value, not an array"));
            }
            (FileKind::Edges, _) => Cardinality::Single,
            (FileKind::Vertices, Some(Cardinality::Single)) if array => {
                return Err(wrong(text, "an array contradicts the cardinality single"));
            }
            (FileKind::Vertices, cardinality) => cardinality.unwrap_or(Cardinality::Set),
        };
        let name = table.add_name(text, name)?;
        Ok(Role::Property { name, kind: value_type, array, cardinality })
    }

    fn check_columns(&self, table: &ColumnTable, kind: FileKind, _: &Options) -> Result<(), Wrong> {
        table.require("~id", |role| matches!(role, Role::Id { .. }))?;
        if kind == FileKind::Edges {
            table.require("~from", |role| matches!(role, Role::From { .. }))?;
            table.require("~to", |role| matches!(role, Role::To { .. }))?;
        }
        Ok(())
    }

    fn quoted_empty_is_text(&self) -> bool {
        true
    }

    fn default_label(&self) -> Option<&'static str> {
        Some(DEFAULT_LABEL)
    }

    fn duplicates(&self, statements: u64) -> u64 {
        statements
    }

    fn on_conflict(&self, update: bool) -> OnConflict {
        if update { OnConflict::Replace } else { OnConflict::Refuse }
    }

    fn first_edge_row_wins(&self) -> bool {
        false
    }

    fn generated_columns(&self, kind: FileKind) -> &'static [&'static str] {
        match kind {
            FileKind::Vertices => &["~id", "~label"],
            FileKind::Edges => &["~id", "~from", "~to", "~label"],
        }
    }

    fn generated_property(&self, key: &str, value_type: Type, kind: FileKind, list: bool) -> String {
        let values = match kind {
            _ if list => "[]",
            FileKind::Vertices => "(single)",
            FileKind::Edges => "",
        };
        format!("{key}:{}{values}", value_type.column_name())
    }
}
