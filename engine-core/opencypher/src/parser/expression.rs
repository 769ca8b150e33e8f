//! Operators of expressions, by precedence climbing. From weak to strong: OR, XOR, AND, NOT, comparisons, predicates
//! (IN, STARTS WITH, IS NULL …), `+ -`, `* / %`, `^`, signs, then `.key`, `[…]` and `:Label`.

use super::Parser;
use crate::ast::{Expr, ExprKind, Literal, MapItem, Place};
use crate::fault::Result;
use crate::literal;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::{Arithmetic, Comparison};
use tidegraph_types::Str;

const OR: u8 = 1;
const XOR: u8 = 2;
const AND: u8 = 3;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const SUM: u8 = 7;
const PRODUCT: u8 = 8;
const POWER: u8 = 9;
const SIGN: u8 = 10;

impl Parser<'_> {
    /// Any expression.
    pub(super) fn expression(&mut self) -> Result<Expr> {
        self.binary(OR)
    }

    /// An expression of operators that bind at least as strongly as `weakest`.
    fn binary(&mut self, weakest: u8) -> Result<Expr> {
        self.enter()?;
        let mut left = self.prefix(weakest)?;
        loop {
            let place = self.place();
            let strength = self.strength();
            if strength < weakest {
                break;
            }
            left = match strength {
                OR | AND => self.junction(left, strength, place)?,
                XOR => {
                    self.at += 1;
                    let right = self.binary(XOR + 1)?;
                    self.node(ExprKind::Xor(Box::new(left), Box::new(right)), place)?
                }
                COMPARISON => self.comparison(left, place)?,
                PREDICATE => self.predicate(left, place)?,
                _ => {
                    let operator = match self.advance().kind {
                        TokenKind::Plus => Arithmetic::Add,
                        TokenKind::Minus => Arithmetic::Subtract,
                        TokenKind::Star => Arithmetic::Multiply,
                        TokenKind::Slash => Arithmetic::Divide,
                        TokenKind::Percent => Arithmetic::Modulo,
                        _ => Arithmetic::Power,
                    };
                    let right = self.binary(strength + 1)?;
                    self.node(ExprKind::Arithmetic(operator, Box::new(left), Box::new(right)), place)?
                }
            };
        }
        self.leave();
        Ok(left)
    }

    /// Returns the binding strength of the next token as a binary operator; 0 if it is not one.
    fn strength(&self) -> u8 {
        match self.peek() {
            TokenKind::Keyword(keyword) => match keyword {
                Keyword::Or => OR,
                Keyword::Xor => XOR,
                Keyword::And => AND,
                Keyword::In | Keyword::Starts | Keyword::Ends | Keyword::Contains | Keyword::Is => PREDICATE,
                _ => 0,
            },
            TokenKind::Matches => PREDICATE,
            TokenKind::Colon if self.peek_at(1) == TokenKind::Colon => PREDICATE,
            TokenKind::Plus | TokenKind::Minus => SUM,
            TokenKind::Star | TokenKind::Slash | TokenKind::Percent => PRODUCT,
            TokenKind::Caret => POWER,
            kind if comparison(kind).is_some() => COMPARISON,
            _ => 0,
        }
    }

    /// Parses `a OR b OR c` or `a AND b AND c` into one flat list, so that a long condition does not nest.
    fn junction(&mut self, left: Expr, strength: u8, place: Place) -> Result<Expr> {
        let keyword = TokenKind::Keyword(if strength == OR { Keyword::Or } else { Keyword::And });
        let mut all = vec![left];
        while self.accept(keyword) {
            all.push(self.binary(strength + 1)?);
        }
        self.node(if strength == OR { ExprKind::Or(all) } else { ExprKind::And(all) }, place)
    }

    fn comparison(&mut self, left: Expr, place: Place) -> Result<Expr> {
        let mut rest = vec![];
        while let Some(operator) = comparison(self.peek()) {
            self.at += 1;
            rest.push((operator, self.binary(COMPARISON + 1)?));
        }
        self.node(ExprKind::Comparison(Box::new(left), rest), place)
    }

    fn predicate(&mut self, left: Expr, place: Place) -> Result<Expr> {
        let left = Box::new(left);
        let token = self.advance().kind;
        let make = match token {
            TokenKind::Colon => {
                self.at += 1;
                let test = Box::new(self.type_test()?);
                return self.node(ExprKind::IsType(left, test, false), place);
            }
            TokenKind::Keyword(Keyword::Is) => return self.is_predicate(left, place),
            TokenKind::Keyword(Keyword::Starts) => {
                self.expect_keyword(Keyword::With)?;
                ExprKind::StartsWith
            }
            TokenKind::Keyword(Keyword::Ends) => {
                self.expect_keyword(Keyword::With)?;
                ExprKind::EndsWith
            }
            TokenKind::Keyword(Keyword::Contains) => ExprKind::Contains,
            TokenKind::Keyword(Keyword::In) => ExprKind::In,
            _ => ExprKind::Matches,
        };
        let right = Box::new(self.binary(PREDICATE + 1)?);
        self.node(make(left, right), place)
    }

    /// `IS NULL`, `IS NOT NULL`, `IS :: TYPE`, `IS NFC NORMALIZED`, `IS Label`; IS is taken.
    fn is_predicate(&mut self, left: Box<Expr>, place: Place) -> Result<Expr> {
        let not = self.accept_keyword(Keyword::Not);
        if self.accept_keyword(Keyword::Null) {
            return self.node(ExprKind::IsNull(left, not), place);
        }
        let typed =
            self.at_word("TYPED") || (self.peek() == TokenKind::Colon && self.peek_at(1) == TokenKind::Colon);
        if typed {
            self.at += if self.peek() == TokenKind::Colon { 2 } else { 1 };
            let test = Box::new(self.type_test()?);
            return self.node(ExprKind::IsType(left, test, not), place);
        }
        let form = self.normal_form();
        if form.is_some() || self.at_word("NORMALIZED") {
            self.at += usize::from(form.is_some());
            self.expect_word("NORMALIZED")?;
            let form = form.unwrap_or(Str::new_static("NFC"));
            return self.node(ExprKind::IsNormalized(left, form, not), place);
        }
        if not {
            return Err(self.unexpected("NULL, '::' or NORMALIZED"));
        }
        self.at -= 1;
        if !matches!(self.peek_at(1), TokenKind::Word | TokenKind::Quoted) {
            self.at += 1;
            return Err(self.unexpected("NULL, NOT NULL, '::' or NORMALIZED"));
        }
        let labels = self.label_test("a label")?;
        let place = left.place;
        self.node(ExprKind::HasLabels(left, labels), place)
    }

    /// A condition that lacks its left side, which is given: `> 3`, `IS NULL`, `STARTS WITH 'a'`. `None`: the next tokens
    /// are something else.
    pub(super) fn test_of(&mut self, left: Expr) -> Result<Option<Expr>> {
        let place = self.place();
        match self.strength() {
            COMPARISON => self.comparison(left, place).map(Some),
            // A variable may have the name CONTAINS, STARTS or ENDS.
            PREDICATE if !self.at_variable() || !self.ends_value(1) => self.predicate(left, place).map(Some),
            _ => Ok(None),
        }
    }

    /// Whether the token at this distance ends the value of a WHEN.
    fn ends_value(&self, ahead: usize) -> bool {
        matches!(self.peek_at(ahead), TokenKind::Comma | TokenKind::Keyword(Keyword::Then))
    }

    fn prefix(&mut self, weakest: u8) -> Result<Expr> {
        let place = self.place();
        match self.peek() {
            TokenKind::Keyword(Keyword::Not) if weakest <= NOT => {
                self.at += 1;
                let operand = self.binary(NOT)?;
                self.node(ExprKind::Not(Box::new(operand)), place)
            }
            TokenKind::Minus => {
                self.at += 1;
                let token = self.token();
                let after = self.peek_at(1);
                // The sign belongs to the number, because the smallest integer has no positive counterpart. (What
                // follows may bind stronger than the sign only where a number makes no sense: `-1.key`, `-1[0]`.)
                if !matches!(after, TokenKind::Dot | TokenKind::LeftBracket | TokenKind::Colon) {
                    if self.accept(TokenKind::Integer) {
                        let value = literal::integer(self.slice(token), true, token.start)?;
                        return self.node(ExprKind::Literal(Literal::Integer(value)), place);
                    }
                    if self.accept(TokenKind::Float) {
                        let value = literal::float(self.slice(token), true, token.start)?;
                        return self.node(ExprKind::Literal(Literal::Float(value)), place);
                    }
                }
                let operand = self.binary(SIGN)?;
                self.node(ExprKind::Negate(Box::new(operand)), place)
            }
            TokenKind::Plus => {
                self.at += 1;
                self.binary(SIGN)
            }
            _ => self.postfix_expression(),
        }
    }

    /// An atom with its postfix operators: `.key`, `[index]`, `[from..to]`, `:Label`.
    pub(super) fn postfix_expression(&mut self) -> Result<Expr> {
        let mut base = self.atom()?;
        loop {
            let place = self.place();
            base = match self.peek() {
                TokenKind::Dot => {
                    self.at += 1;
                    let key = self.schema_name("a property key")?;
                    let place = base.place;
                    self.node(ExprKind::Property(Box::new(base), key), place)?
                }
                TokenKind::LeftBracket => {
                    self.at += 1;
                    let kind = self.subscript(base)?;
                    self.node(kind, place)?
                }
                TokenKind::Colon if self.peek_at(1) != TokenKind::Colon => {
                    let labels = self.label_test("a label")?;
                    let place = base.place;
                    self.node(ExprKind::HasLabels(Box::new(base), labels), place)?
                }
                TokenKind::LeftBrace if matches!(base.kind, ExprKind::Variable(_)) => {
                    self.map_projection(base)?
                }
                _ => return Ok(base),
            };
        }
    }

    /// `{.*, .key, key: value, variable}` after `base`.
    fn map_projection(&mut self, base: Expr) -> Result<Expr> {
        self.expect(TokenKind::LeftBrace, "'{'")?;
        let mut items = vec![];
        while !self.accept(TokenKind::RightBrace) {
            if !items.is_empty() {
                self.expect(TokenKind::Comma, "',' or '}'")?;
            }
            items.push(self.map_item(&base)?);
        }
        let place = base.place;
        self.node(ExprKind::MapProjection(Box::new(base), items), place)
    }

    fn map_item(&mut self, base: &Expr) -> Result<MapItem> {
        let place = self.place();
        if self.accept(TokenKind::Dot) {
            if self.accept(TokenKind::Star) {
                return Ok(MapItem::All);
            }
            let key = self.schema_name("a property key or '*'")?;
            let value = self.node(ExprKind::Property(Box::new(base.clone()), key.clone()), place)?;
            return Ok(MapItem::Entry(key, value));
        }
        if self.peek_at(1) == TokenKind::Colon {
            let key = self.schema_name("a key, '.' or '}'")?;
            self.expect(TokenKind::Colon, "':'")?;
            return Ok(MapItem::Entry(key, self.bracketed(false, Self::expression)?));
        }
        let name = self.variable()?;
        let value = self.node(ExprKind::Variable(name.text.clone()), place)?;
        Ok(MapItem::Entry(name.text, value))
    }

    /// An index or a slice of `base`; the opening bracket is taken.
    fn subscript(&mut self, base: Expr) -> Result<ExprKind> {
        self.bracketed(false, |parser| parser.subscript_inside(base))
    }

    fn subscript_inside(&mut self, base: Expr) -> Result<ExprKind> {
        let base = Box::new(base);
        let first = if self.peek() == TokenKind::DotDot { None } else { Some(Box::new(self.expression()?)) };
        if !self.accept(TokenKind::DotDot) {
            self.expect(TokenKind::RightBracket, "']' or '..'")?;
            let index = first.map_or_else(|| Err(self.unexpected("an index")), Ok)?;
            return Ok(ExprKind::Index(base, index));
        }
        let last =
            if self.peek() == TokenKind::RightBracket { None } else { Some(Box::new(self.expression()?)) };
        self.expect(TokenKind::RightBracket, "']'")?;
        Ok(ExprKind::Slice(base, first, last))
    }
}

fn comparison(kind: TokenKind) -> Option<Comparison> {
    Some(match kind {
        TokenKind::Equal => Comparison::Equal,
        TokenKind::NotEqual => Comparison::NotEqual,
        TokenKind::Less => Comparison::Less,
        TokenKind::LessOrEqual => Comparison::LessOrEqual,
        TokenKind::Greater => Comparison::Greater,
        TokenKind::GreaterOrEqual => Comparison::GreaterOrEqual,
        _ => return None,
    })
}
