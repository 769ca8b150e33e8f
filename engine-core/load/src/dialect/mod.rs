//! CSV dialects: everything in which the file formats differ.
//!
//! A dialect is one file of this folder, which implements [`Rules`], and one entry of [`DIALECTS`]. The rest of the
//! crate asks the rules and never compares dialects. `docs/formats/gremlin-csv.md` and
//! `docs/formats/opencypher-csv.md` describe the two formats from a user's side.

mod gremlin;
mod opencypher;

use crate::convert::Type;
use crate::header::{ColumnTable, FileKind, Role, Wrong};
use crate::options::Options;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::hash::{Hash, Hasher};

/// All dialects, in the order in which a header is tried.
static DIALECTS: [&dyn Rules; 2] = [&gremlin::Gremlin, &opencypher::OpenCypher];

/// The CSV dialect of a file.
///
/// Serialised as its [`name`](Dialect::name).
#[derive(Clone, Copy)]
pub struct Dialect(&'static dyn Rules);

/// The rules of a dialect.
pub(crate) trait Rules: Sync {
    /// Name in the loader API and in stored plans: `csv`.
    fn name(&self) -> &'static str;

    /// Name on the command line: `gremlin-csv`.
    fn format_name(&self) -> &'static str;

    /// Name in stored jobs: `GremlinCsv`.
    fn job_name(&self) -> &'static str;

    /// Name in messages: `Gremlin`.
    fn title(&self) -> &'static str;

    /// Name in messages, with article and id column: `a Gremlin (~id)`.
    fn title_with_id(&self) -> &'static str;

    /// Whether a file with this column is of the dialect, whatever its other columns are.
    fn is_told_by(&self, column: &str) -> bool;

    /// Whether `column` is a system column of the dialect. A file of another dialect that has it is refused.
    fn is_system_column(&self, column: &str) -> bool;

    /// Tells vertex files from edge files by the header.
    fn kind(&self, columns: &[&str]) -> FileKind;

    /// Returns the role of a system column; `None` if the column is a property or another dialect's.
    fn system_column(
        &self,
        table: &mut ColumnTable,
        text: &str,
        kind: FileKind,
    ) -> Result<Option<Role>, Wrong>;

    /// Returns the role of a property column.
    fn property_column(&self, table: &mut ColumnTable, text: &str, kind: FileKind) -> Result<Role, Wrong>;

    /// Checks that the header has the columns that it must have, and none that it must not have.
    fn check_columns(&self, table: &ColumnTable, kind: FileKind, options: &Options) -> Result<(), Wrong>;

    /// Whether `""` in an id or label column is an empty text. Otherwise it is absent, like a blank field.
    fn quoted_empty_is_text(&self) -> bool;

    /// Label of a new vertex without labels, if it gets one.
    fn default_label(&self) -> Option<&'static str>;

    /// Returns how many duplicates the loader API counts for a row of an element that exists already. `statements` is
    /// how many labels and values the row has, an edge counted as one.
    fn duplicates(&self, statements: u64) -> u64;

    /// Returns what happens if a row has another value for a single-cardinality property than its element. `update` is
    /// the user's `updateSingleCardinalityProperties`.
    fn on_conflict(&self, update: bool) -> OnConflict;

    /// Whether only the first row of a load with an edge id counts. Otherwise later rows are merged into the edge.
    fn first_edge_row_wins(&self) -> bool;

    /// System columns of generated files, in the order id, source, target, label.
    fn generated_columns(&self, kind: FileKind) -> &'static [&'static str];

    /// Header of a property column of generated files. `list` tells that a field holds several values, which semicolons
    /// separate; a dialect without arrays reads them as one text.
    fn generated_property(&self, key: &str, value_type: Type, kind: FileKind, list: bool) -> String;
}

/// What happens to a row whose value contradicts that of its element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnConflict {
    /// The row is refused.
    Refuse,
    /// The row's value replaces the old one.
    Replace,
    /// The old value stays; the rest of the row is applied.
    Keep,
}

impl Dialect {
    /// Gremlin: `~id,~label,name:String`.
    pub const GREMLIN: Self = Self(&gremlin::Gremlin);
    /// openCypher: `:ID,:LABEL,name:String`.
    pub const OPENCYPHER: Self = Self(&opencypher::OpenCypher);

    /// Returns all dialects.
    pub fn all() -> impl Iterator<Item = Self> {
        DIALECTS.into_iter().map(Self)
    }

    /// Returns the dialect whose [`name`](Self::name) or [`format_name`](Self::format_name) is `name`.
    ///
    /// ```
    /// use tidegraph_load::Dialect;
    ///
    /// assert_eq!(Dialect::named("csv"), Some(Dialect::GREMLIN));
    /// assert_eq!(Dialect::named("opencypher-csv"), Some(Dialect::OPENCYPHER));
    /// assert_eq!(Dialect::named("parquet"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|dialect| [dialect.name(), dialect.format_name()].contains(&name))
    }

    /// Returns the dialect whose [`job_name`](Self::job_name) is `name`.
    #[must_use]
    pub fn with_job_name(name: &str) -> Option<Self> {
        Self::all().find(|dialect| dialect.job_name() == name)
    }

    /// Tells the dialect from the columns of a header; `None` if no column tells it.
    ///
    /// ```
    /// use tidegraph_load::Dialect;
    ///
    /// assert_eq!(Dialect::detect(["name:String", "~id"]), Some(Dialect::GREMLIN));
    /// assert_eq!(Dialect::detect(["id", "name"]), None);
    /// ```
    #[must_use]
    pub fn detect<'a>(columns: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        columns.into_iter().find_map(|column| Self::all().find(|dialect| dialect.0.is_told_by(column)))
    }

    /// Returns its name in the loader API: `csv` or `opencypher`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns its name on the command line: `gremlin-csv` or `opencypher-csv`.
    #[must_use]
    pub fn format_name(self) -> &'static str {
        self.0.format_name()
    }

    /// Returns its name in stored jobs: `GremlinCsv` or `OpenCypherCsv`.
    #[must_use]
    pub fn job_name(self) -> &'static str {
        self.0.job_name()
    }

    pub(crate) fn rules(self) -> &'static dyn Rules {
        self.0
    }

    /// Returns the other dialect of which `column` is a system column.
    pub(crate) fn other_with(self, column: &str) -> Option<Self> {
        Self::all().find(|other| *other != self && other.0.is_system_column(column))
    }

    /// Says that a header is of no dialect.
    pub(crate) fn not_detected() -> String {
        let titles: Vec<_> = DIALECTS.iter().map(|rules| rules.title_with_id()).collect();
        format!("neither {} header", titles.join(" nor "))
    }
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Dialect {}

impl Hash for Dialect {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl fmt::Debug for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.title())
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Dialect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Dialect {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| de::Error::custom(format!("{name:?} is not a CSV dialect")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_are_told_apart() {
        assert_eq!(Dialect::detect(["name:string", "~id"]), Some(Dialect::GREMLIN));
        assert_eq!(Dialect::detect(["name:ID(x)"]), Some(Dialect::OPENCYPHER));
        assert_eq!(Dialect::detect([":START_ID", ":END_ID"]), Some(Dialect::OPENCYPHER));
        assert_eq!(Dialect::detect(["id", "name:string"]), None);
        assert_eq!(Dialect::not_detected(), "neither a Gremlin (~id) nor an openCypher (:ID) header");
    }

    #[test]
    fn names_are_unique_and_read_back() {
        for dialect in Dialect::all() {
            assert_eq!(Dialect::named(dialect.name()), Some(dialect));
            assert_eq!(Dialect::named(dialect.format_name()), Some(dialect));
            assert_eq!(Dialect::with_job_name(dialect.job_name()), Some(dialect));
            let json = serde_json::to_string(&dialect).unwrap();
            assert_eq!(json, format!("{:?}", dialect.name()));
            assert_eq!(serde_json::from_str::<Dialect>(&json).unwrap(), dialect);
        }
        let error = serde_json::from_str::<Dialect>("\"parquet\"").unwrap_err();
        assert_eq!(error.to_string(), "\"parquet\" is not a CSV dialect");
    }
}
