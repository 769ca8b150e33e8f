//! Types of values as far as the text shows them. Lowering refuses only what is certainly wrong; the executor checks
//! the rest.

use std::ops::BitOr;

/// The set of types that a value may have. Null is always possible and has no bit.
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
    /// A point in time, a date, a time of day, or a duration.
    pub const TIME: Self = Self(512);
    pub const POINT: Self = Self(1024);
    /// A node or a relationship.
    pub const ELEMENT: Self = Self(3);
    /// An integer or a float.
    pub const NUMBER: Self = Self(64 | 128);
    /// A parameter or a stored value: no node, relationship or path.
    pub const DATA: Self = Self(2047 & !7);
    /// Anything.
    pub const ANY: Self = Self(2047);

    /// Whether some value has a type of both sets.
    pub fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether every value of these types is of the other set's types.
    pub fn within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Names the types for an error message.
    pub fn describe(self) -> String {
        const NAMES: [&str; 11] = [
            "a node",
            "a relationship",
            "a path",
            "a list",
            "a map",
            "a boolean",
            "an integer",
            "a float",
            "a string",
            "a temporal value",
            "a point",
        ];
        if self == Self::DATA {
            return "a value".into();
        }
        let names: Vec<&str> = (0..11).filter(|i| self.0 & (1 << i) != 0).map(|i| NAMES[i]).collect();
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
