//! Header rows: what each column of a file means.
//!
//! Every dialect produces the same kind of [`Header`], which is all that readers of rows
//! need. A wrong header refuses the whole file, so each error names the column.

use crate::convert::Type;
use crate::dialect::Dialect;
use crate::options::Options;
use tidegraph_types::{Cardinality, Str};

/// What a file holds: vertices or edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FileKind {
    /// Vertices (nodes).
    Vertices,
    /// Edges (relationships).
    Edges,
}

/// What one column is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Id of the element.
    Id {
        /// Id space: a prefix that keeps equal ids of different files apart.
        space: Option<Str>,
        /// Index in [`Header::names`] of the property that the id is stored as, if it is.
        property: Option<u32>,
    },
    /// Labels of a vertex, or the label of an edge.
    Label,
    /// Source vertex of an edge.
    From {
        /// Id space: a prefix that keeps equal ids of different files apart.
        space: Option<Str>,
    },
    /// Target vertex of an edge.
    To {
        /// Id space: a prefix that keeps equal ids of different files apart.
        space: Option<Str>,
    },
    /// A property.
    Property {
        /// Index of its name in [`Header::names`].
        name: u32,
        /// Type of its values.
        kind: Type,
        /// Whether the field holds several values, between semicolons.
        array: bool,
        /// How many values the key may have.
        cardinality: Cardinality,
    },
}

/// One column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Column {
    /// The header as written.
    pub text: Str,
    /// What the column is for.
    pub role: Role,
}

/// A parsed header row.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The dialect.
    pub dialect: Dialect,
    /// Vertices or edges.
    pub kind: FileKind,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Property keys; rows name them by index.
    pub names: Vec<Str>,
}

/// What is wrong with a header, and with which column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub column: Option<Str>,
    pub reason: String,
}

pub(crate) fn wrong(column: &str, reason: impl Into<String>) -> Wrong {
    Wrong { column: Some(column.into()), reason: reason.into() }
}

pub(crate) fn unknown_type(column: &str, name: &str) -> Wrong {
    wrong(column, format!("{name:?} is not a type"))
}

/// Parses a header row.
pub(crate) fn parse(dialect: Dialect, options: &Options, fields: &[&str]) -> Result<Header, Wrong> {
    for field in fields {
        if field.is_empty() {
            return Err(wrong("", "a column has no header"));
        }
        if let Some(c) = field.chars().find(|c| matches!(c, ' ' | ',' | '\r' | '\n')) {
            return Err(wrong(field, format!("{c:?} is not allowed in a header")));
        }
    }
    let rules = dialect.rules();
    let kind = rules.kind(fields);
    let mut table = ColumnTable { columns: Vec::new(), names: Vec::new() };
    for field in fields {
        let role = match rules.system_column(&mut table, field, kind)? {
            Some(role) => role,
            None => {
                if let Some(other) = dialect.other_with(field) {
                    let (other, this) = (other.rules().title(), rules.title());
                    let reason = format!("a column of the {other} format, in a file of the {this} format");
                    return Err(wrong(field, reason));
                }
                rules.property_column(&mut table, field, kind)?
            }
        };
        table.push(field, role)?;
    }
    rules.check_columns(&table, kind, options)?;
    Ok(Header { dialect, kind, columns: table.columns, names: table.names })
}

/// The columns of a header, while it is parsed.
pub(crate) struct ColumnTable {
    columns: Vec<Column>,
    names: Vec<Str>,
}

impl ColumnTable {
    /// Adds a column. Each system column may appear once.
    fn push(&mut self, text: &str, role: Role) -> Result<(), Wrong> {
        let twice = self.columns.iter().any(|c| {
            !matches!(c.role, Role::Property { .. })
                && std::mem::discriminant(&c.role) == std::mem::discriminant(&role)
        });
        if twice {
            return Err(wrong(text, "this column appears twice in the header"));
        }
        self.columns.push(Column { text: text.into(), role });
        Ok(())
    }

    /// Adds the name of a property and returns its index in [`Header::names`].
    pub fn add_name(&mut self, column: &str, name: Str) -> Result<u32, Wrong> {
        if name.is_empty() {
            return Err(wrong(column, "the property has no name"));
        }
        if self.names.contains(&name) {
            return Err(wrong(column, format!("the property {name:?} appears twice in the header")));
        }
        self.names.push(name);
        Ok(self.names.len() as u32 - 1)
    }

    /// Whether a column has a role that `matches`.
    pub fn has(&self, matches: impl Fn(&Role) -> bool) -> bool {
        self.columns.iter().any(|c| matches(&c.role))
    }

    /// Refuses a header in which no column has a role that `matches`.
    pub fn require(&self, column: &str, matches: impl Fn(&Role) -> bool) -> Result<(), Wrong> {
        if self.has(matches) {
            return Ok(());
        }
        Err(Wrong { column: Some(column.into()), reason: format!("the column {column} is missing") })
    }
}

/// Splits a column into name and type at the last colon that no backslash escapes; removes the backslashes from the
/// name.
pub(crate) fn split_name(text: &str) -> (Str, Option<&str>) {
    let colon = text
        .bytes()
        .enumerate()
        .rev()
        .find(|(i, b)| *b == b':' && (*i == 0 || text.as_bytes()[i - 1] != b'\\'));
    let (name, spec) = match colon {
        Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    if name.contains("\\:") { (name.replace("\\:", ":").into(), spec) } else { (name.into(), spec) }
}

/// Returns the type that both dialects call `lower`, which is in lower case.
pub(crate) fn common_type(lower: &str) -> Option<Type> {
    Some(match lower {
        "bool" | "boolean" => Type::Bool,
        "byte" => Type::Byte,
        "short" => Type::Short,
        "int" | "integer" => Type::Int,
        "long" => Type::Long,
        "float" => Type::Float,
        "double" => Type::Double,
        "string" => Type::String,
        "datetime" => Type::DateTime,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gremlin(text: &str) -> Result<Header, String> {
        let fields: Vec<_> = text.split(',').collect();
        parse(Dialect::GREMLIN, &Options::default(), &fields)
            .map_err(|w| format!("{}: {}", w.column.unwrap(), w.reason))
    }

    fn cypher(text: &str, ids: bool) -> Result<Header, String> {
        let fields: Vec<_> = text.split(',').collect();
        let options = Options { user_provided_edge_ids: ids, ..Options::default() };
        parse(Dialect::OPENCYPHER, &options, &fields)
            .map_err(|w| format!("{}: {}", w.column.unwrap(), w.reason))
    }

    fn property(header: &Header, index: usize) -> (&str, Type, bool, Cardinality) {
        match header.columns[index].role {
            Role::Property { name, kind, array, cardinality } => {
                (&header.names[name as usize], kind, array, cardinality)
            }
            ref other => panic!("{other:?}"),
        }
    }

    #[test]
    fn gremlin_columns() {
        let header =
            gremlin("~id,name,age:INT(single),tags:String[],a\\:b:Date,c:double(set)[],d:byte[](set)")
                .unwrap();
        assert_eq!(header.kind, FileKind::Vertices);
        assert_eq!(property(&header, 1), ("name", Type::String, false, Cardinality::Set));
        assert_eq!(property(&header, 2), ("age", Type::Int, false, Cardinality::Single));
        assert_eq!(property(&header, 3), ("tags", Type::String, true, Cardinality::Set));
        assert_eq!(property(&header, 4), ("a:b", Type::DateTime, false, Cardinality::Set));
        assert_eq!(property(&header, 5), ("c", Type::Double, true, Cardinality::Set));
        assert_eq!(property(&header, 6), ("d", Type::Byte, true, Cardinality::Set));
        let header = gremlin("~id,~from,~to,~label,w:Double,x(y)z:Bool(single)").unwrap();
        assert_eq!(header.kind, FileKind::Edges);
        assert_eq!(property(&header, 4).3, Cardinality::Single);
    }

    #[test]
    fn gremlin_refusals_name_the_column() {
        for (header, expected) in [
            ("~label,name", "~id: the column ~id is missing"),
            ("~id,~label,~id", "~id: this column appears twice in the header"),
            ("~id,a:int,a:string", "a:string: the property \"a\" appears twice in the header"),
            ("~id,~from", "~to: the column ~to is missing"),
            ("~id,~labels", "~labels: not a system column; those are ~id, ~label, ~from and ~to"),
            ("~id,a:decimal", "a:decimal: \"decimal\" is not a type"),
            ("~id,a:", "a:: \"\" is not a type"),
            ("~id,:int", ":int: the property has no name"),
            ("~id,a:int(list)", "a:int(list): \"list\" is not a cardinality; those are single and set"),
            ("~id,a:int(single)[]", "a:int(single)[]: an array contradicts the cardinality single"),
            ("~id,~from,~to,a:int[]", "a:int[]: edge properties have one value, not an array"),
            ("~id,~from,~to,a:int(set)", "a:int(set): edge properties have one value, not a set"),
            ("~id,:LABEL", ":LABEL: a column of the openCypher format, in a file of the Gremlin format"),
            (
                "~id,name:ID(x)",
                "name:ID(x): a column of the openCypher format, in a file of the Gremlin format",
            ),
            ("~id,first name", "first name: ' ' is not allowed in a header"),
            ("~id,", ": a column has no header"),
        ] {
            assert_eq!(gremlin(header).unwrap_err(), expected, "{header}");
        }
    }

    #[test]
    fn opencypher_columns() {
        let header = cypher("name:ID(person),age:int,born:Date,:LABEL", true).unwrap();
        assert_eq!(header.kind, FileKind::Vertices);
        assert_eq!(header.columns[0].role, Role::Id { space: Some("person".into()), property: Some(0) });
        assert_eq!(property(&header, 1), ("age", Type::Int, false, Cardinality::Single));
        assert_eq!(property(&header, 2).1, Type::Date);
        for (name, kind) in [
            ("char", Type::String),
            ("Point", Type::String),
            ("LocalDate", Type::Date),
            ("localTime", Type::LocalTime),
            ("Time", Type::Time),
            ("LocalDateTime", Type::LocalDateTime),
            ("ZonedDateTime", Type::ZonedDateTime),
            ("Duration", Type::Duration),
            ("DateTime", Type::DateTime),
        ] {
            let header = cypher(&format!(":ID,a:{name}"), true).unwrap();
            assert_eq!(property(&header, 1).1, kind, "{name}");
        }
        let header = cypher(":ID,:START_ID(person),:END_ID,:TYPE,w:Double", true).unwrap();
        assert_eq!(header.kind, FileKind::Edges);
        assert_eq!(header.columns[1].role, Role::From { space: Some("person".into()) });
        assert_eq!(cypher(":START_ID,:END_ID,:TYPE", false).unwrap().kind, FileKind::Edges);
    }

    #[test]
    fn opencypher_refusals_name_the_column() {
        for (header, ids, expected) in [
            (":LABEL,name", true, ":ID: the column :ID is missing"),
            (":START_ID,:END_ID", true, ":ID: the column :ID is missing, which userProvidedEdgeIds asks for"),
            (
                ":ID,:START_ID,:END_ID",
                false,
                ":ID: this column must not be there when userProvidedEdgeIds is false",
            ),
            (":ID,:TYPE", true, ":START_ID: the column :START_ID is missing"),
            (
                ":ID,:START_ID,:END_ID,:LABEL",
                true,
                ":LABEL: a relationship has :TYPE, not :LABEL; one file cannot hold both kinds",
            ),
            (":ID,a:ID", true, "a:ID: this column appears twice in the header"),
            (
                ":ID,~label",
                true,
                "~label: a column of the Gremlin format, in a file of the openCypher format",
            ),
            (
                ":ID,~from:string",
                true,
                "~from:string: a column of the Gremlin format, in a file of the openCypher format",
            ),
            (":ID,a:string[]", true, "a:string[]: the openCypher format has no arrays"),
            (
                ":ID,:IGNORE",
                true,
                ":IGNORE: not a system column; those are :ID, :LABEL, :START_ID, :END_ID and :TYPE",
            ),
        ] {
            assert_eq!(cypher(header, ids).unwrap_err(), expected, "{header}");
        }
    }
}
