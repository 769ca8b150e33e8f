//! The vocabulary of gremlin-lang: a table for each kind of word.
//!
//! A table row gives a word's variant, its spelling and its properties. The parser turns text into variants; everything
//! after it matches on variants. A new step is a row of [`StepName`]; the compiler's match over all steps
//! (`compile/step.rs`) then fails to compile until it has an arm for the step.
//!
//! A step that the compiler has no function for is refused as "not supported yet". A name that has no row in the table
//! is not a step.

mod constant;
mod step;

pub use constant::Constant;
pub(crate) use constant::Pop;
pub use step::StepName;
pub(crate) use step::{Children, End, Local, NewObject, Reduction};

/// Defines an enum of words from a table of variants, spellings and properties. Rows are sorted by spelling, because
/// the lookup is a binary search; a test checks that.
macro_rules! words {
    ($(#[$doc:meta])* pub enum $Name:ident: $Properties:ty {
        $($Variant:ident = $text:literal => $properties:expr,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum $Name {
            $(#[doc = concat!("`", $text, "`")] $Variant,)*
        }

        impl $Name {
            const ALL: &[Self] = &[$(Self::$Variant),*];
            const TEXTS: &[&str] = &[$($text),*];
            #[allow(dead_code, reason = "some tables have no properties")]
            const PROPERTIES: &[$Properties] = &[$($properties),*];

            /// Returns the word that is spelled like this, if there is one.
            #[must_use]
            pub fn of(text: &str) -> Option<Self> {
                Self::TEXTS.binary_search(&text).ok().map(|index| Self::ALL[index])
            }

            /// Returns the spelling.
            #[must_use]
            pub const fn text(self) -> &'static str {
                Self::TEXTS[self as usize]
            }

            /// Returns the properties that the table gives the word.
            #[allow(dead_code, reason = "some tables have no properties")]
            pub(crate) const fn properties(self) -> &'static $Properties {
                &Self::PROPERTIES[self as usize]
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.text())
            }
        }

        #[cfg(test)]
        #[test]
        fn rows_are_sorted_by_spelling() {
            assert!($Name::TEXTS.is_sorted());
            assert!($Name::ALL.iter().all(|word| $Name::of(word.text()) == Some(*word)));
        }
    };
}
use words;

pub use predicate::PredicateName;
pub use source::SourceCall;
pub use terminal::Terminal;

mod predicate {
    /// Number of operands that a predicate takes; `None`: any number.
    type Operands = Option<usize>;

    super::words! {
        /// Tests of `P` and `TextP`.
        pub enum PredicateName: Operands {
            Between = "between" => Some(2),
            Containing = "containing" => Some(1),
            EndingWith = "endingWith" => Some(1),
            Eq = "eq" => Some(1),
            Gt = "gt" => Some(1),
            Gte = "gte" => Some(1),
            Inside = "inside" => Some(2),
            Lt = "lt" => Some(1),
            Lte = "lte" => Some(1),
            Neq = "neq" => Some(1),
            NotContaining = "notContaining" => Some(1),
            NotEndingWith = "notEndingWith" => Some(1),
            NotRegex = "notRegex" => Some(1),
            NotStartingWith = "notStartingWith" => Some(1),
            Outside = "outside" => Some(2),
            Regex = "regex" => Some(1),
            StartingWith = "startingWith" => Some(1),
            TypeOf = "typeOf" => Some(1),
            Within = "within" => None,
            Without = "without" => None,
        }
    }
}

mod source {
    /// How the arguments of a call on `g` are written.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Arguments {
        /// In the same form as the arguments of a step.
        OfStep,
        /// Names of strategies, with their settings.
        Strategies,
    }
    use Arguments::{OfStep, Strategies};

    super::words! {
        /// Calls on `g` that configure the source.
        pub enum SourceCall: Arguments {
            With = "with" => OfStep,
            WithBulk = "withBulk" => OfStep,
            WithPath = "withPath" => OfStep,
            WithSack = "withSack" => OfStep,
            WithSideEffect = "withSideEffect" => OfStep,
            WithStrategies = "withStrategies" => Strategies,
            WithoutStrategies = "withoutStrategies" => Strategies,
        }
    }
}
pub(crate) use source::Arguments;

mod terminal {
    super::words! {
        /// Calls that end a traversal.
        pub enum Terminal: () {
            Explain = "explain" => (),
            HasNext = "hasNext" => (),
            Iterate = "iterate" => (),
            Next = "next" => (),
            ToBulkSet = "toBulkSet" => (),
            ToList = "toList" => (),
            ToSet = "toSet" => (),
            ToString = "toString" => (),
            TryNext = "tryNext" => (),
        }
    }
}

mod owner {
    /// What follows the name of an enum and a dot.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Members {
        /// Constants.
        Constants,
        /// `single`, `set`, `list`: constants, or calls with a value as their argument.
        Cardinalities,
        /// The enum `Cardinality`, a dot, and then one of `Cardinalities`.
        CardinalityEnum,
        /// Options of `with()`.
        Options,
        /// Types.
        Types,
        /// Names of files' formats and of options of `io()`, which are strings.
        Files,
        /// Constants that the compiler has no use for.
        Unsupported,
    }
    use Members::{Cardinalities, CardinalityEnum, Constants, Files, Options, Types, Unsupported};

    super::words! {
        /// Enums whose name may precede their constants.
        pub enum EnumName: Members {
            Barrier = "Barrier" => Constants,
            Cardinality = "Cardinality" => Cardinalities,
            Column = "Column" => Constants,
            ConnectedComponent = "ConnectedComponent" => Unsupported,
            Dt = "DT" => Constants,
            Direction = "Direction" => Constants,
            GType = "GType" => Types,
            Io = "IO" => Files,
            Merge = "Merge" => Constants,
            N = "N" => Types,
            Operator = "Operator" => Constants,
            Order = "Order" => Constants,
            PageRank = "PageRank" => Unsupported,
            PeerPressure = "PeerPressure" => Unsupported,
            Pick = "Pick" => Constants,
            Pop = "Pop" => Constants,
            Scope = "Scope" => Constants,
            ShortestPath = "ShortestPath" => Unsupported,
            T = "T" => Constants,
            VertexProperty = "VertexProperty" => CardinalityEnum,
            WithOptions = "WithOptions" => Options,
        }
    }
}
pub(crate) use owner::{EnumName, Members};

mod kind {
    use tidegraph_plan::GremlinType as T;

    super::words! {
        /// Types as `GType` names them, as `N` names numbers, and as `P.typeOf()` takes them in a string.
        pub enum TypeName: T {
            BigDecimal = "BIGDECIMAL" => T::BigDecimal,
            BigInt = "BIGINT" => T::BigInt,
            Binary = "BINARY" => T::Binary,
            Boolean = "BOOLEAN" => T::Boolean,
            Byte = "BYTE" => T::Byte,
            BigDecimalClass = "BigDecimal" => T::BigDecimal,
            BigIntegerClass = "BigInteger" => T::BigInt,
            BooleanClass = "Boolean" => T::Boolean,
            ByteClass = "Byte" => T::Byte,
            Char = "CHAR" => T::Char,
            CharacterClass = "Character" => T::Char,
            DateTime = "DATETIME" => T::DateTime,
            Double = "DOUBLE" => T::Double,
            Duration = "DURATION" => T::Duration,
            DoubleClass = "Double" => T::Double,
            DurationClass = "Duration" => T::Duration,
            Edge = "EDGE" => T::Edge,
            EdgeClass = "Edge" => T::Edge,
            Float = "FLOAT" => T::Float,
            FloatClass = "Float" => T::Float,
            Graph = "GRAPH" => T::Graph,
            Int = "INT" => T::Int,
            IntegerClass = "Integer" => T::Int,
            List = "LIST" => T::List,
            Long = "LONG" => T::Long,
            ListClass = "List" => T::List,
            LongClass = "Long" => T::Long,
            Map = "MAP" => T::Map,
            MapClass = "Map" => T::Map,
            Null = "NULL" => T::Null,
            Number = "NUMBER" => T::Number,
            NumberClass = "Number" => T::Number,
            OffsetDateTimeClass = "OffsetDateTime" => T::DateTime,
            Path = "PATH" => T::Path,
            Property = "PROPERTY" => T::Property,
            PathClass = "Path" => T::Path,
            PropertyClass = "Property" => T::Property,
            Set = "SET" => T::Set,
            Short = "SHORT" => T::Short,
            String = "STRING" => T::String,
            SetClass = "Set" => T::Set,
            ShortClass = "Short" => T::Short,
            StringClass = "String" => T::String,
            Tree = "TREE" => T::Tree,
            Uuid = "UUID" => T::Uuid,
            Vertex = "VERTEX" => T::Vertex,
            VertexProperty = "VPROPERTY" => T::VertexProperty,
            VertexClass = "Vertex" => T::Vertex,
            VertexPropertyClass = "VertexProperty" => T::VertexProperty,
            NBigDecimal = "bigDecimal" => T::BigDecimal,
            NBigInt = "bigInt" => T::BigInt,
            NByte = "byte" => T::Byte,
            NDouble = "double" => T::Double,
            NFloat = "float" => T::Float,
            NInt = "int" => T::Int,
            NLong = "long" => T::Long,
            NShort = "short" => T::Short,
        }
    }
}
pub(crate) use kind::TypeName;
