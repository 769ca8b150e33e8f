//! Types after `IS ::`: `INTEGER NOT NULL`, `LIST<STRING | BOOLEAN>`.

use super::Parser;
use crate::fault::Result;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::{TypeTest, ValueType};

/// Words of types; the longest names of a prefix come first.
const NAMES: &[(&str, ValueType)] = &[
    ("NOTHING", ValueType::Nothing),
    ("NULL", ValueType::Null),
    ("BOOLEAN", ValueType::Boolean),
    ("BOOL", ValueType::Boolean),
    ("VARCHAR", ValueType::String),
    ("STRING", ValueType::String),
    ("SIGNED INTEGER", ValueType::Integer),
    ("INTEGER", ValueType::Integer),
    ("INT", ValueType::Integer),
    ("FLOAT", ValueType::Float),
    ("DATE", ValueType::Date),
    ("LOCAL TIME", ValueType::LocalTime),
    ("LOCAL DATETIME", ValueType::LocalDateTime),
    ("ZONED TIME", ValueType::ZonedTime),
    ("ZONED DATETIME", ValueType::ZonedDateTime),
    ("TIMESTAMP WITHOUT TIMEZONE", ValueType::LocalDateTime),
    ("TIMESTAMP WITHOUT TIME ZONE", ValueType::LocalDateTime),
    ("TIMESTAMP WITH TIMEZONE", ValueType::ZonedDateTime),
    ("TIMESTAMP WITH TIME ZONE", ValueType::ZonedDateTime),
    ("TIME WITHOUT TIMEZONE", ValueType::LocalTime),
    ("TIME WITHOUT TIME ZONE", ValueType::LocalTime),
    ("TIME WITH TIMEZONE", ValueType::ZonedTime),
    ("TIME WITH TIME ZONE", ValueType::ZonedTime),
    ("DURATION", ValueType::Duration),
    ("POINT", ValueType::Point),
    ("ANY NODE", ValueType::Node),
    ("NODE", ValueType::Node),
    ("ANY VERTEX", ValueType::Node),
    ("VERTEX", ValueType::Node),
    ("ANY RELATIONSHIP", ValueType::Relationship),
    ("RELATIONSHIP", ValueType::Relationship),
    ("ANY EDGE", ValueType::Relationship),
    ("EDGE", ValueType::Relationship),
    ("ANY MAP", ValueType::Map),
    ("MAP", ValueType::Map),
    ("PATHS", ValueType::Path),
    ("PATH", ValueType::Path),
    ("ANY PROPERTY VALUE", ValueType::PropertyValue),
    ("PROPERTY VALUE", ValueType::PropertyValue),
    ("ANY VALUE", ValueType::Any),
    ("ANY", ValueType::Any),
];

impl Parser<'_> {
    /// A type, or several joined by bars.
    pub(super) fn type_test(&mut self) -> Result<TypeTest> {
        self.enter()?;
        let mut any_of = vec![];
        loop {
            self.limits.charge(size_of::<(ValueType, bool)>())?;
            self.one_type(&mut any_of)?;
            if self.bar_ends || !self.accept(TokenKind::Bar) {
                break;
            }
        }
        self.leave();
        Ok(TypeTest { any_of })
    }

    fn one_type(&mut self, any_of: &mut Vec<(ValueType, bool)>) -> Result<()> {
        let kind = if self.accept_words("LIST") || self.accept_words("ARRAY") {
            ValueType::List(Box::new(self.inner_type()?))
        } else {
            let found = NAMES.iter().find(|(name, _)| self.accept_words(name));
            match found {
                // `ANY<INTEGER | FLOAT>` is the types inside.
                Some((_, ValueType::Any)) if self.peek() == TokenKind::Less => {
                    any_of.extend(self.inner_type()?.any_of);
                    return Ok(());
                }
                Some((_, kind)) => kind.clone(),
                None => return Err(self.unexpected("the name of a type such as INTEGER or LIST<STRING>")),
            }
        };
        any_of.push((kind, !self.accept_not_null()?));
        // `INTEGER LIST`
        let depth = self.depth;
        while self.at_word("LIST") || self.at_word("ARRAY") {
            self.limits.charge(size_of::<TypeTest>())?;
            self.enter()?;
            self.at += 1;
            let item = any_of.pop().into_iter().collect();
            let list = ValueType::List(Box::new(TypeTest { any_of: item }));
            any_of.push((list, !self.accept_not_null()?));
        }
        self.depth = depth;
        Ok(())
    }

    /// `NOT NULL` or `!`
    fn accept_not_null(&mut self) -> Result<bool> {
        if self.accept(TokenKind::Exclamation) {
            return Ok(true);
        }
        let found = self.peek() == TokenKind::Keyword(Keyword::Not)
            && self.peek_at(1) == TokenKind::Keyword(Keyword::Null);
        self.at += if found { 2 } else { 0 };
        Ok(found)
    }

    /// `<INTEGER | STRING>`
    fn inner_type(&mut self) -> Result<TypeTest> {
        self.expect(TokenKind::Less, "'<'")?;
        let inner = self.bracketed(false, Self::type_test)?;
        self.expect(TokenKind::Greater, "'|' or '>'")?;
        Ok(inner)
    }

    /// Takes several words if they come next.
    fn accept_words(&mut self, words: &str) -> bool {
        let mut count = 0;
        for word in words.split(' ') {
            let token = self.tokens.get(self.at + count).copied();
            let is_word = token.is_some_and(|token| {
                matches!(token.kind, TokenKind::Word | TokenKind::Keyword(_))
                    && self.slice(token).eq_ignore_ascii_case(word)
            });
            if !is_word {
                return false;
            }
            count += 1;
        }
        self.at += count;
        true
    }
}
