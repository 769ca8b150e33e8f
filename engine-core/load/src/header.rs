//! Header rows: what each column of a file means.
//!
//! Both dialects end in one [`Header`]; everything after it is the same for both. A wrong header refuses the whole
//! file, so each finding names the column. The rules are told in `docs/formats/gremlin-csv.md` and
//! `docs/formats/opencypher-csv.md`.

use crate::convert::Type;
use crate::options::{Dialect, Options};
use tidegraph_types::{Cardinality, Str};

/// What a file holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Vertices (nodes).
    Vertices,
    /// Edges (relationships).
    Edges,
}

/// What one column is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// Id of the element, in an id space or not, stored as a property as well or not.
    Id {
        /// Id space.
        space: Option<Str>,
        /// Index of the property's name in [`Header::names`].
        property: Option<u32>,
    },
    /// Labels of a vertex, or the label of an edge.
    Label,
    /// Source vertex of an edge.
    From {
        /// Id space.
        space: Option<Str>,
    },
    /// Target vertex of an edge.
    To {
        /// Id space.
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
    /// What it is for.
    pub role: Role,
}

/// A header row, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The dialect.
    pub dialect: Dialect,
    /// Vertices or edges.
    pub kind: Kind,
    /// The columns in order.
    pub columns: Vec<Column>,
    /// Property keys; rows name them by index.
    pub names: Vec<Str>,
}

/// What is wrong with a header, and with which column of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Wrong {
    pub column: Option<Str>,
    pub reason: String,
}

fn wrong(column: &str, reason: impl Into<String>) -> Wrong {
    Wrong { column: Some(column.into()), reason: reason.into() }
}

/// Tells the dialect from the headers; `None` when they are of neither.
#[must_use]
pub fn detect<'a>(columns: impl IntoIterator<Item = &'a str>) -> Option<Dialect> {
    columns.into_iter().find_map(|column| {
        if column.starts_with('~') {
            return Some(Dialect::Gremlin);
        }
        let (_, kind) = column.rsplit_once(':')?;
        let kind = kind.split('(').next().unwrap_or(kind);
        matches!(kind, "ID" | "START_ID" | "END_ID" | "LABEL" | "TYPE").then_some(Dialect::OpenCypher)
    })
}

/// Reads a header row.
pub(crate) fn parse(dialect: Dialect, options: &Options, fields: &[&str]) -> Result<Header, Wrong> {
    for field in fields {
        if field.is_empty() {
            return Err(wrong("", "a column has no header"));
        }
        if let Some(c) = field.chars().find(|c| matches!(c, ' ' | ',' | '\r' | '\n')) {
            return Err(wrong(field, format!("{c:?} is not allowed in a header")));
        }
    }
    let mut builder = Builder { columns: Vec::new(), names: Vec::new() };
    let kind = match dialect {
        Dialect::Gremlin => gremlin(&mut builder, fields)?,
        Dialect::OpenCypher => opencypher(&mut builder, fields, options)?,
    };
    Ok(Header { dialect, kind, columns: builder.columns, names: builder.names })
}

struct Builder {
    columns: Vec<Column>,
    names: Vec<Str>,
}

impl Builder {
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

    fn name(&mut self, text: &str, name: Str) -> Result<u32, Wrong> {
        if name.is_empty() {
            return Err(wrong(text, "the property has no name"));
        }
        if self.names.contains(&name) {
            return Err(wrong(text, format!("the property {name:?} appears twice in the header")));
        }
        self.names.push(name);
        Ok(self.names.len() as u32 - 1)
    }

    fn has(&self, found: impl Fn(&Role) -> bool) -> bool {
        self.columns.iter().any(|c| found(&c.role))
    }

    fn require(&self, column: &str, found: impl Fn(&Role) -> bool) -> Result<(), Wrong> {
        if self.has(found) {
            return Ok(());
        }
        Err(Wrong { column: Some(column.into()), reason: format!("the column {column} is missing") })
    }
}

fn gremlin(builder: &mut Builder, fields: &[&str]) -> Result<Kind, Wrong> {
    let edges = fields.iter().any(|f| matches!(*f, "~from" | "~to"));
    let kind = if edges { Kind::Edges } else { Kind::Vertices };
    for field in fields {
        let role = match *field {
            "~id" => Role::Id { space: None, property: None },
            "~label" => Role::Label,
            "~from" => Role::From { space: None },
            "~to" => Role::To { space: None },
            other if other.starts_with('~') => {
                return Err(wrong(other, "not a system column; those are ~id, ~label, ~from and ~to"));
            }
            other if opencypher_word(other).is_some() => {
                return Err(wrong(
                    other,
                    "a column of the openCypher format, in a file of the Gremlin format",
                ));
            }
            other => gremlin_property(builder, other, kind)?,
        };
        builder.push(field, role)?;
    }
    builder.require("~id", |r| matches!(r, Role::Id { .. }))?;
    if edges {
        builder.require("~from", |r| matches!(r, Role::From { .. }))?;
        builder.require("~to", |r| matches!(r, Role::To { .. }))?;
    }
    Ok(kind)
}

fn gremlin_property(builder: &mut Builder, text: &str, kind: Kind) -> Result<Role, Wrong> {
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
                    return Err(wrong(
                        text,
                        format!("{word:?} is not a cardinality; those are single and set"),
                    ));
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
        (Kind::Edges, Some(Cardinality::Set)) => {
            return Err(wrong(text, "edge properties have one value, not a set"));
        }
        (Kind::Edges, _) if array => return Err(wrong(text, "edge properties have one value, not an array")),
        (Kind::Edges, _) => Cardinality::Single,
        (Kind::Vertices, Some(Cardinality::Single)) if array => {
            return Err(wrong(text, "an array contradicts the cardinality single"));
        }
        (Kind::Vertices, cardinality) => cardinality.unwrap_or(Cardinality::Set),
    };
    let name = builder.name(text, name)?;
    Ok(Role::Property { name, kind: value_type, array, cardinality })
}

/// Name, kind and id space of a system column of the openCypher format.
fn opencypher_word(field: &str) -> Option<(Str, String, Option<Str>)> {
    let (name, spec) = split_name(field);
    let spec = spec?;
    let (word, space) = match spec.strip_suffix(')').and_then(|s| s.split_once('(')) {
        Some((word, space)) => (word, Some(Str::from(space))),
        None => (spec, None),
    };
    matches!(word, "ID" | "START_ID" | "END_ID" | "LABEL" | "TYPE").then(|| (name, word.to_owned(), space))
}

fn opencypher(builder: &mut Builder, fields: &[&str], options: &Options) -> Result<Kind, Wrong> {
    let edges = fields
        .iter()
        .filter_map(|f| opencypher_word(f))
        .any(|(_, w, _)| matches!(w.as_str(), "START_ID" | "END_ID" | "TYPE"));
    let kind = if edges { Kind::Edges } else { Kind::Vertices };
    for field in fields {
        let role = match opencypher_word(field) {
            Some((name, word, space)) => opencypher_system(builder, field, kind, name, &word, space)?,
            None if field.starts_with(':') => {
                let known = ":ID, :LABEL, :START_ID, :END_ID and :TYPE";
                return Err(wrong(field, format!("not a system column; those are {known}")));
            }
            None if matches!(&*split_name(field).0, "~id" | "~label" | "~from" | "~to") => {
                return Err(wrong(
                    field,
                    "a column of the Gremlin format, in a file of the openCypher format",
                ));
            }
            None => opencypher_property(builder, field)?,
        };
        builder.push(field, role)?;
    }
    let id = |r: &Role| matches!(r, Role::Id { .. });
    if edges {
        builder.require(":START_ID", |r| matches!(r, Role::From { .. }))?;
        builder.require(":END_ID", |r| matches!(r, Role::To { .. }))?;
        if options.user_provided_edge_ids {
            builder
                .require(":ID", id)
                .map_err(|w| Wrong { reason: w.reason + ", which userProvidedEdgeIds asks for", ..w })?;
        } else if builder.has(id) {
            return Err(wrong(":ID", "this column must not be there when userProvidedEdgeIds is false"));
        }
    } else {
        builder.require(":ID", id)?;
    }
    Ok(kind)
}

fn opencypher_system(
    builder: &mut Builder,
    field: &str,
    kind: Kind,
    name: Str,
    word: &str,
    space: Option<Str>,
) -> Result<Role, Wrong> {
    if word != "ID" && !name.is_empty() {
        return Err(wrong(field, format!("only :ID can be stored as a property, :{word} cannot")));
    }
    if space.is_some() && (matches!(word, "LABEL" | "TYPE") || (word == "ID" && kind == Kind::Edges)) {
        return Err(wrong(field, "this column has no id space"));
    }
    Ok(match word {
        "ID" if name.is_empty() => Role::Id { space, property: None },
        "ID" if kind == Kind::Edges => {
            return Err(wrong(field, "the id of a relationship cannot be stored as a property"));
        }
        "ID" => Role::Id { space, property: Some(builder.name(field, name)?) },
        "START_ID" => Role::From { space },
        "END_ID" => Role::To { space },
        "LABEL" if kind == Kind::Edges => {
            return Err(wrong(
                field,
                "a relationship has :TYPE, not :LABEL; one file cannot hold both kinds",
            ));
        }
        _ => Role::Label,
    })
}

fn opencypher_property(builder: &mut Builder, text: &str) -> Result<Role, Wrong> {
    let (name, spec) = split_name(text);
    let spec = spec.unwrap_or("string");
    if spec.ends_with("[]") {
        return Err(wrong(text, "the openCypher format has no arrays"));
    }
    let value_type = match spec.to_ascii_lowercase().as_str() {
        // Kept as text, unchecked, as documented.
        "char" | "date" | "localdate" | "localdatetime" | "duration" | "point" => Type::String,
        other => common_type(other).ok_or_else(|| unknown_type(text, spec))?,
    };
    let name = builder.name(text, name)?;
    Ok(Role::Property { name, kind: value_type, array: false, cardinality: Cardinality::Single })
}

/// Splits at the last colon that no backslash escapes, and takes the backslashes from the name.
fn split_name(text: &str) -> (Str, Option<&str>) {
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

fn common_type(lower: &str) -> Option<Type> {
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

fn unknown_type(text: &str, name: &str) -> Wrong {
    wrong(text, format!("{name:?} is not a type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gremlin(text: &str) -> Result<Header, String> {
        let fields: Vec<_> = text.split(',').collect();
        parse(Dialect::Gremlin, &Options::default(), &fields)
            .map_err(|w| format!("{}: {}", w.column.unwrap(), w.reason))
    }

    fn cypher(text: &str, ids: bool) -> Result<Header, String> {
        let fields: Vec<_> = text.split(',').collect();
        let options = Options { user_provided_edge_ids: ids, ..Options::default() };
        parse(Dialect::OpenCypher, &options, &fields)
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
        assert_eq!(header.kind, Kind::Vertices);
        assert_eq!(property(&header, 1), ("name", Type::String, false, Cardinality::Set));
        assert_eq!(property(&header, 2), ("age", Type::Int, false, Cardinality::Single));
        assert_eq!(property(&header, 3), ("tags", Type::String, true, Cardinality::Set));
        assert_eq!(property(&header, 4), ("a:b", Type::DateTime, false, Cardinality::Set));
        assert_eq!(property(&header, 5), ("c", Type::Double, true, Cardinality::Set));
        assert_eq!(property(&header, 6), ("d", Type::Byte, true, Cardinality::Set));
        let header = gremlin("~id,~from,~to,~label,w:Double,x(y)z:Bool(single)").unwrap();
        assert_eq!(header.kind, Kind::Edges);
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
        assert_eq!(header.kind, Kind::Vertices);
        assert_eq!(header.columns[0].role, Role::Id { space: Some("person".into()), property: Some(0) });
        assert_eq!(property(&header, 1), ("age", Type::Int, false, Cardinality::Single));
        assert_eq!(property(&header, 2).1, Type::String);
        let header = cypher(":ID,:START_ID(person),:END_ID,:TYPE,w:Double", true).unwrap();
        assert_eq!(header.kind, Kind::Edges);
        assert_eq!(header.columns[1].role, Role::From { space: Some("person".into()) });
        assert_eq!(cypher(":START_ID,:END_ID,:TYPE", false).unwrap().kind, Kind::Edges);
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

    #[test]
    fn dialects_are_told_apart() {
        assert_eq!(detect(["name:string", "~id"]), Some(Dialect::Gremlin));
        assert_eq!(detect(["name:ID(x)"]), Some(Dialect::OpenCypher));
        assert_eq!(detect([":START_ID", ":END_ID"]), Some(Dialect::OpenCypher));
        assert_eq!(detect(["id", "name:string"]), None);
    }
}
