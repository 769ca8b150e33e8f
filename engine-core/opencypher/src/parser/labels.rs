//! Label tests: `:A:B`, `:A|B&!C`, `IS A`, `%`, `$(expression)`.

use super::Parser;
use crate::ast::{Label, LabelTest};
use crate::fault::{Fault, Result};
use crate::token::{Keyword, TokenKind};

impl Parser<'_> {
    /// Whether a label test comes next.
    pub(super) fn labels_ahead(&self) -> bool {
        match self.peek() {
            TokenKind::Colon => self.peek_at(1) != TokenKind::Colon,
            TokenKind::Keyword(Keyword::Is) => true,
            _ => false,
        }
    }

    /// `:A|B`, `IS A`; the colon or IS is next.
    pub(super) fn label_test(&mut self, expected: &str) -> Result<LabelTest> {
        self.at += 1;
        self.either_label(expected)
    }

    fn either_label(&mut self, expected: &str) -> Result<LabelTest> {
        self.enter()?;
        let mut parts = vec![self.both_labels(expected)?];
        while self.peek() == TokenKind::Bar && !self.bar_ends {
            self.at += 1;
            // `:A|:B`
            self.accept(TokenKind::Colon);
            parts.push(self.both_labels(expected)?);
        }
        self.leave();
        Ok(joined(parts, LabelTest::Or))
    }

    fn both_labels(&mut self, expected: &str) -> Result<LabelTest> {
        let mut parts = vec![self.one_label(expected)?];
        while self.peek() == TokenKind::Ampersand
            || (self.peek() == TokenKind::Colon && self.peek_at(1) != TokenKind::Colon)
        {
            self.at += 1;
            parts.push(self.one_label(expected)?);
        }
        Ok(joined(parts, LabelTest::And))
    }

    fn one_label(&mut self, expected: &str) -> Result<LabelTest> {
        self.limits.charge(size_of::<LabelTest>())?;
        match self.peek() {
            TokenKind::Exclamation => {
                self.enter()?;
                self.at += 1;
                let part = self.one_label(expected)?;
                self.leave();
                Ok(LabelTest::Not(Box::new(part)))
            }
            TokenKind::Percent => {
                self.at += 1;
                Ok(LabelTest::Any)
            }
            TokenKind::LeftParen => {
                self.at += 1;
                let inner = self.bracketed(false, |parser| parser.either_label(expected))?;
                self.expect(TokenKind::RightParen, "'|', '&' or ')'")?;
                Ok(inner)
            }
            TokenKind::Dollar => self.computed_label().map(LabelTest::Has),
            _ => Ok(LabelTest::Has(Label::Name(self.schema_name(expected)?))),
        }
    }

    /// `$(expression)`, `$all(expression)`, `$any(expression)`
    fn computed_label(&mut self) -> Result<Label> {
        let place = self.place();
        self.at += 1;
        let any = self.at_word("any");
        if any || self.peek() == TokenKind::Keyword(Keyword::All) {
            self.at += 1;
        }
        if self.peek() != TokenKind::LeftParen {
            return Err(Fault::syntax(place.0, "a parameter is no label, expected `$(` and an expression"));
        }
        self.at += 1;
        let (value, _) = self.measured(|parser| parser.bracketed(false, Self::expression))?;
        self.expect(TokenKind::RightParen, "an operator or ')'")?;
        Ok(Label::Computed(Box::new(value), any))
    }
}

fn joined(mut parts: Vec<LabelTest>, join: fn(Vec<LabelTest>) -> LabelTest) -> LabelTest {
    match parts.len() {
        1 => parts.swap_remove(0),
        _ => join(parts),
    }
}
