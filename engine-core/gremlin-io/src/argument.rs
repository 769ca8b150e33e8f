//! What a driver may put into a request: values, and the parts of a traversal.

use tidegraph_types::{Map, Str, Value};

/// An argument of a request or of a step.
#[derive(Clone, PartialEq, Debug)]
pub enum Argument {
    /// A value without parts: null, a boolean, a number, a text, a point in time.
    Value(Value),
    /// A list.
    List(Vec<Argument>),
    /// A set.
    Set(Vec<Argument>),
    /// Keys and values, in order.
    Map(Vec<(Argument, Argument)>),
    /// An anonymous traversal, or the traversal that a request asks for.
    Bytecode(Bytecode),
    /// `P` or `TextP`.
    Predicate(Predicate),
    /// A constant of an enum: its owner and its name.
    Constant(ConstantOwner, Str),
    /// A vertex, of which only the id matters.
    Element(Box<Argument>),
    /// An edge, of which only the id matters.
    Edge(Box<Argument>),
    /// A value with the name that its client gave it.
    Binding(Str, Box<Argument>),
    /// A strategy: its name without packages, and its configuration.
    Strategy(Str, Vec<(Argument, Argument)>),
    /// The name of a class, without packages.
    Class(Str),
    /// Code, which is never evaluated.
    Lambda,
}

/// A traversal as its steps.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Bytecode {
    /// Calls that configure the source.
    pub sources: Vec<Instruction>,
    /// Steps.
    pub steps: Vec<Instruction>,
}

/// A call or a step: its name and its arguments.
#[derive(Clone, PartialEq, Debug)]
pub struct Instruction {
    /// The name, as the client sent it.
    pub name: Str,
    /// The arguments.
    pub arguments: Vec<Argument>,
}

/// A predicate: its name, as the client sent it, and its operands.
#[derive(Clone, PartialEq, Debug)]
pub struct Predicate {
    /// Whether it is of `TextP`.
    pub is_of_text: bool,
    /// The name.
    pub name: Str,
    /// The operands. Those of `and`, `or` and `not` are predicates.
    pub operands: Vec<Argument>,
}

macro_rules! owners {
    ($($Variant:ident: $text:literal, $graphson:literal, $code:literal;)*) => {
        /// An enum of Gremlin.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum ConstantOwner {
            $(#[doc = concat!("`", $text, "`")] $Variant,)*
        }

        impl ConstantOwner {
            /// Returns the enum's name in gremlin-lang.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$Variant => $text,)* }
            }

            /// Returns the enum of a tag of GraphSON.
            pub(crate) fn of_tag(tag: &str) -> Option<Self> {
                match tag { $($graphson => Some(Self::$Variant),)* _ => None }
            }

            /// Returns the enum of a type code of GraphBinary.
            pub(crate) const fn of_code(code: u8) -> Option<Self> {
                match code { $($code => Some(Self::$Variant),)* _ => None }
            }
        }
    };
}

owners! {
    Barrier: "Barrier", "g:Barrier", 0x13;
    Cardinality: "Cardinality", "g:Cardinality", 0x16;
    Column: "Column", "g:Column", 0x17;
    Direction: "Direction", "g:Direction", 0x18;
    Operator: "Operator", "g:Operator", 0x19;
    Order: "Order", "g:Order", 0x1A;
    Pick: "Pick", "g:Pick", 0x1B;
    Pop: "Pop", "g:Pop", 0x1C;
    Scope: "Scope", "g:Scope", 0x1F;
    T: "T", "g:T", 0x20;
    Merge: "Merge", "g:Merge", 0x2E;
    Dt: "DT", "g:DT", 0x2F;
    GType: "GType", "g:GType", 0x30;
}

impl Argument {
    /// Returns the value if the argument has no parts of a traversal in it.
    ///
    /// # Errors
    ///
    /// The name of the first part that is not a value.
    pub fn to_value(&self) -> Result<Value, &'static str> {
        let all = |items: &[Self]| items.iter().map(Self::to_value).collect::<Result<Vec<_>, _>>();
        Ok(match self {
            Self::Value(value) => value.clone(),
            Self::List(items) => Value::list(all(items)?),
            Self::Set(items) => Value::Set(all(items)?.into()),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, value)| Ok((key.to_value()?, value.to_value()?)));
                Value::map(entries.collect::<Result<Map, _>>()?)
            }
            Self::Element(id) | Self::Edge(id) => id.to_value()?,
            Self::Binding(_, value) => value.to_value()?,
            Self::Bytecode(_) => return Err("a traversal"),
            Self::Predicate(_) => return Err("a predicate"),
            Self::Constant(..) => return Err("a constant"),
            Self::Strategy(..) => return Err("a strategy"),
            Self::Class(_) => return Err("a class"),
            Self::Lambda => return Err("code"),
        })
    }

    /// Returns the text if the argument is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&Str> {
        match self {
            Self::Value(Value::String(text)) => Some(text),
            _ => None,
        }
    }

    /// Names the argument for a message.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Value(value) => value.for_message().to_string(),
            Self::List(_) => "a list".to_owned(),
            Self::Set(_) => "a set".to_owned(),
            Self::Map(_) => "a map".to_owned(),
            other => other.to_value().err().unwrap_or("a value").to_owned(),
        }
    }
}
