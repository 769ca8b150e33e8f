//! What is known of a value before there is one: a set of types. Only what is certainly wrong is refused; the rest is
//! for the executor to see.

use std::ops::BitOr;

/// A set of types that a value may have. Null is always possible and not told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Types(u16);

impl Types {
    pub const NODE: Self = Self(1);
    pub const EDGE: Self = Self(2);
    pub const PATH: Self = Self(4);
    pub const LIST: Self = Self(8);
    pub const MAP: Self = Self(16);
    pub const BOOL: Self = Self(32);
    pub const INTEGER: Self = Self(64);
    pub const FLOAT: Self = Self(128);
    pub const STRING: Self = Self(256);
    pub const TIME: Self = Self(512);
    /// A node or a relationship.
    pub const ELEMENT: Self = Self(3);
    /// An integer or a float.
    pub const NUMBER: Self = Self(64 | 128);
    /// What comes from outside the graph (parameters) or is stored in it: no node, relationship or path.
    pub const DATA: Self = Self(1023 & !7);
    /// Anything.
    pub const ANY: Self = Self(1023);

    /// Whether a value could be of both.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether a value is of the other's types for sure.
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// The types in words.
    pub fn describe(self) -> String {
        const NAMES: [&str; 10] = [
            "a node",
            "a relationship",
            "a path",
            "a list",
            "a map",
            "a boolean",
            "an integer",
            "a float",
            "a string",
            "a datetime",
        ];
        if self == Self::DATA {
            return "a value".into();
        }
        let names: Vec<&str> = (0..10).filter(|i| self.0 & (1 << i) != 0).map(|i| NAMES[i]).collect();
        match names.split_last() {
            Some((last, [])) => (*last).into(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => "nothing".into(),
        }
    }
}

impl BitOr for Types {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_in_words() {
        assert_eq!(Types::NODE.describe(), "a node");
        assert_eq!((Types::ELEMENT | Types::PATH).describe(), "a node, a relationship or a path");
        assert_eq!(Types::DATA.describe(), "a value");
        assert!(Types::DATA.meets(Types::LIST) && !Types::DATA.meets(Types::ELEMENT));
        assert!(Types::NODE.within(Types::ELEMENT) && !Types::ANY.within(Types::ELEMENT));
    }
}
