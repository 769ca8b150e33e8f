//! What a procedure is called, takes and yields.

use crate::TypeTest;
use std::fmt;
use tidegraph_types::{Str, Value};

/// What a procedure is called, takes and yields.
///
/// ```
/// use tidegraph_plan::{Signature, TypeTest, ValueType};
///
/// let signature = Signature::new("geo.cities")
///     .argument("country", TypeTest::or_null(ValueType::String))
///     .optional("limit", TypeTest::or_null(ValueType::Integer), 10)
///     .column("city", TypeTest::or_null(ValueType::String));
/// let text = "geo.cities(country :: STRING, limit = 10 :: INTEGER) :: (city :: STRING)";
/// assert_eq!(signature.to_string(), text);
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Signature {
    /// The name, with its dots. A call may write it in upper or lower case.
    pub name: Str,
    /// What it does, in a sentence.
    pub description: Str,
    /// The arguments; those with a default value are the last.
    pub arguments: Vec<Argument>,
    /// The columns that it yields. A procedure without columns yields no rows: a call keeps the rows before it.
    pub columns: Vec<Field>,
}

/// A column: its name and the types of its values.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// The name.
    pub name: Str,
    /// The types.
    pub types: TypeTest,
}

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub struct Argument {
    /// Its name and types. An integer is converted if the argument takes floats only.
    pub field: Field,
    /// The value if a call leaves it out; `None`: a call may not.
    pub default: Option<Value>,
}

impl Signature {
    /// Makes the signature of a procedure that takes and yields nothing.
    #[must_use]
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into(), description: Str::default(), arguments: vec![], columns: vec![] }
    }

    /// Sets what it does, in a sentence, for `SHOW PROCEDURES`.
    #[must_use]
    pub fn describe(mut self, description: impl Into<Str>) -> Self {
        self.description = description.into();
        self
    }

    /// Adds an argument that each call has to give.
    #[must_use]
    pub fn argument(mut self, name: impl Into<Str>, types: TypeTest) -> Self {
        self.arguments.push(Argument { field: Field { name: name.into(), types }, default: None });
        self
    }

    /// Adds an argument that a call may leave out.
    #[must_use]
    pub fn optional(mut self, name: impl Into<Str>, types: TypeTest, default: impl Into<Value>) -> Self {
        let field = Field { name: name.into(), types };
        self.arguments.push(Argument { field, default: Some(default.into()) });
        self
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, name: impl Into<Str>, types: TypeTest) -> Self {
        self.columns.push(Field { name: name.into(), types });
        self
    }

    /// Returns the number of arguments that each call has to give.
    #[must_use]
    pub fn required(&self) -> usize {
        self.arguments.iter().filter(|argument| argument.default.is_none()).count()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (at, Argument { field, default }) in self.arguments.iter().enumerate() {
            write!(f, "{}{}", if at > 0 { ", " } else { "" }, field.name)?;
            if let Some(default) = default {
                write!(f, " = {}", default.for_message())?;
            }
            write!(f, " :: {}", field.types)?;
        }
        f.write_str(") :: (")?;
        for (at, Field { name, types }) in self.columns.iter().enumerate() {
            write!(f, "{}{name} :: {types}", if at > 0 { ", " } else { "" })?;
        }
        f.write_str(")")
    }
}
