//! Tokens, the lexer's result. A token holds its kind and its place, never its text.

/// The kind and place of a piece of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    /// Byte offset of its first character.
    pub start: u32,
    /// Byte offset after its last character.
    pub end: u32,
}

/// Kinds of tokens. Character sequences that may be one or several operators (`<-`, `-->`) are separate tokens, which
/// the parser joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
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
    /// Text that the lexer cannot read. It stops here; the parser reports the fault when it arrives.
    Bad,
    End,
}

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// Reserved words. Words that matter only at the start of a clause (CALL, FOREACH …) are plain words.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(crate) enum Keyword { $($name,)* }

        impl Keyword {
            /// Returns the keyword with this spelling, in upper or lower case.
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

            /// Returns the name in capitals.
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
    /// Whether the keyword may name a variable: it has no other meaning where a variable may stand.
    pub(crate) fn may_be_variable(self) -> bool {
        matches!(
            self,
            Self::All
                | Self::Asc
                | Self::Ascending
                | Self::By
                | Self::Contains
                | Self::Desc
                | Self::Descending
                | Self::End
                | Self::Ends
                | Self::Exists
                | Self::Limit
                | Self::On
                | Self::Order
                | Self::Skip
                | Self::Starts
        )
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
