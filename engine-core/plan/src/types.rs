//! Types of values as the languages name them: openCypher for `IS :: TYPE` and `valueType()`, Gremlin for `P.typeOf()` and
//! `asNumber()`.

use std::fmt;

/// A set of types.
///
/// ```
/// use tidegraph_plan::{TypeTest, ValueType};
///
/// let test = TypeTest { any_of: vec![(ValueType::Integer, true), (ValueType::String, false)] };
/// assert_eq!(test.to_string(), "INTEGER | STRING NOT NULL");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TypeTest {
    /// The types, each with whether null belongs to it.
    pub any_of: Vec<(ValueType, bool)>,
}

/// A type without null.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum ValueType {
    /// No value at all.
    Nothing,
    /// Null only.
    Null,
    Boolean,
    String,
    Integer,
    Float,
    Date,
    LocalTime,
    ZonedTime,
    LocalDateTime,
    ZonedDateTime,
    Duration,
    Point,
    Node,
    Relationship,
    Map,
    Path,
    List(Box<TypeTest>),
    /// Anything that a property can hold.
    PropertyValue,
    Any,
}

/// A type of Gremlin's `GType`, and the two groups of types that steps tell apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "named as in the language")]
pub enum GremlinType {
    /// No value has it: decimals of any length are doubles.
    BigDecimal,
    /// No value has it: integers of any length are 64-bit integers.
    BigInt,
    /// No value has it.
    Binary,
    Boolean,
    Byte,
    /// No value has it.
    Char,
    DateTime,
    Double,
    Duration,
    Edge,
    Float,
    /// A graph of `subgraph()`.
    Graph,
    Int,
    List,
    Long,
    Map,
    Null,
    /// Any number.
    Number,
    Path,
    /// A property of a vertex, of an edge or of a property.
    Property,
    Set,
    Short,
    String,
    /// A tree of `tree()`, which is a map too.
    Tree,
    /// No value has it: ids are strings.
    Uuid,
    Vertex,
    VertexProperty,
    /// A list or a set; no type of the language.
    Collection,
    /// A vertex, an edge or a property; no type of the language.
    Element,
}

impl TypeTest {
    /// Makes the test for one type or null.
    #[must_use]
    pub fn or_null(kind: ValueType) -> Self {
        Self { any_of: vec![(kind, true)] }
    }
}

impl fmt::Display for TypeTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (kind, nullable)) in self.any_of.iter().enumerate() {
            write!(
                f,
                "{}{kind}{}",
                if at > 0 { " | " } else { "" },
                if *nullable { "" } else { " NOT NULL" }
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "NOTHING",
            Self::Null => "NULL",
            Self::Boolean => "BOOLEAN",
            Self::String => "STRING",
            Self::Integer => "INTEGER",
            Self::Float => "FLOAT",
            Self::Date => "DATE",
            Self::LocalTime => "LOCAL TIME",
            Self::ZonedTime => "ZONED TIME",
            Self::LocalDateTime => "LOCAL DATETIME",
            Self::ZonedDateTime => "ZONED DATETIME",
            Self::Duration => "DURATION",
            Self::Point => "POINT",
            Self::Node => "NODE",
            Self::Relationship => "RELATIONSHIP",
            Self::Map => "MAP",
            Self::Path => "PATH",
            Self::List(inner) => return write!(f, "LIST<{inner}>"),
            Self::PropertyValue => "PROPERTY VALUE",
            Self::Any => "ANY",
        })
    }
}
