//! Tokens: what the lexer makes of the text. A token holds its kind and its place, never its text.

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    /// Byte offset of its first character.
    pub start: u32,
    /// Byte offset after its last character.
    pub end: u32,
}

/// What a token is. Operators of several characters that could also stand for several operators (`<-`, `-->`) are
/// left apart for the parser.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Word,
    /// A name in backticks.
    Quoted,
    Keyword(Keyword),
    Integer,
    Float,
    String,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    Comma,
    Colon,
    Semicolon,
    Dollar,
    Dot,
    DotDot,
    Bar,
    Ampersand,
    Exclamation,
    Plus,
    PlusEqual,
    Minus,
    Star,
    Slash,
    Percent,
    Caret,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// `=~`
    Matches,
    /// What the lexer could not read; it stops there, and the parser reports it when it gets there.
    Bad,
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// Words with a meaning of their own. Those that only stand where a clause starts (CALL, FOREACH …) are plain words.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Keyword { $($name,)* }

        impl Keyword {
            /// The keyword that a word is, in any case.
            pub(crate) fn of(word: &[u8]) -> Option<Self> {
                let mut upper = [0u8; 10];
                let upper = upper.get_mut(..word.len())?;
                upper.copy_from_slice(word);
                upper.make_ascii_uppercase();
                Some(match &*upper {
                    $(text if text == $text.as_bytes() => Self::$name,)*
                    _ => return None,
                })
            }

            /// Its name, in capitals.
            pub(crate) fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

keywords! {
    All "ALL",
    And "AND",
    As "AS",
    Ascending "ASCENDING",
    Asc "ASC",
    By "BY",
    Case "CASE",
    Contains "CONTAINS",
    Create "CREATE",
    Delete "DELETE",
    Descending "DESCENDING",
    Desc "DESC",
    Detach "DETACH",
    Distinct "DISTINCT",
    Else "ELSE",
    End "END",
    Ends "ENDS",
    Exists "EXISTS",
    False "FALSE",
    In "IN",
    Is "IS",
    Limit "LIMIT",
    Match "MATCH",
    Merge "MERGE",
    Not "NOT",
    Null "NULL",
    On "ON",
    Optional "OPTIONAL",
    Or "OR",
    Order "ORDER",
    Remove "REMOVE",
    Return "RETURN",
    Set "SET",
    Skip "SKIP",
    Starts "STARTS",
    Then "THEN",
    True "TRUE",
    Union "UNION",
    Unwind "UNWIND",
    When "WHEN",
    Where "WHERE",
    With "WITH",
    Xor "XOR",
}

impl Keyword {
    /// Keywords that may also name a variable: where a variable may stand they have no other meaning.
    pub(crate) fn may_be_variable(self) -> bool {
        matches!(self, Self::End | Self::On)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_in_any_case() {
        assert_eq!(Keyword::of(b"mAtCh"), Some(Keyword::Match));
        assert_eq!(Keyword::of(b"DESCENDING"), Some(Keyword::Descending));
        assert_eq!(Keyword::of(b"matches"), None);
        assert_eq!(Keyword::of(b"descendings"), None);
        assert_eq!(Keyword::of(b""), None);
    }
}
