//! Tokens to syntax tree: recursive descent for clauses and patterns, precedence climbing for expressions.
//!
//! The grammar is that of openCypher 9 (in its last published form, where predicates such as IN bind weaker than
//! arithmetic). One token nearly always decides. Where it does not (is `(` a pattern or a parenthesis?), the parser
//! looks ahead to the matching bracket. It never backtracks, so that the time is linear except in nested brackets.
//!
//! **Invariant.** Nothing recurses without [`Parser::enter`]: deep input is an error, not a stack overflow.

mod atom;
mod clause;
mod command;
mod expression;
mod labels;
mod pattern;
mod subquery;
mod types;

use crate::ast::{Expr, ExprKind, Height, Place, Query};
use crate::command::Command;
use crate::fault::{Fault, Result};
use crate::lexer::{Tokens, tokenize};
use crate::literal;
use crate::token::{Keyword, Token, TokenKind};
use tidegraph_plan::Limits;
use tidegraph_types::Str;

/// Largest depth to which brackets, prefix operators and subqueries nest.
pub(crate) const MAX_DEPTH: u16 = 200;
/// Largest height of an expression; larger than `MAX_DEPTH` because `a + b + c` grows to the left.
pub(crate) const MAX_HEIGHT: u16 = 300;

/// Parses a whole request.
pub(crate) fn parse(text: &str, limits: &Limits<'_>) -> Result<Query> {
    if u32::try_from(text.len()).is_err() {
        return Err(Fault::syntax(0, "query text of 4 GB or more"));
    }
    let Tokens { tokens, fault } = tokenize(text, limits)?;
    let mut parser = Parser { text, tokens, fault, at: 0, depth: 0, tallest: 0, bar_ends: false, limits };
    parser.query()
}

/// Parses a command. `None`: the text does not begin like one.
pub(crate) fn parse_command(text: &str) -> Result<Option<Command>> {
    if u32::try_from(text.len()).is_err() {
        return Ok(None);
    }
    let limits = &Limits::none();
    let Tokens { tokens, fault } = tokenize(text, limits)?;
    let mut parser = Parser { text, tokens, fault, at: 0, depth: 0, tallest: 0, bar_ends: false, limits };
    parser.command()
}

pub(crate) struct Parser<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    /// Why the last token is `Bad`.
    fault: Option<Fault>,
    /// Index of the next token.
    at: usize,
    /// Open brackets, prefix operators and subqueries.
    depth: u16,
    /// Largest height of the expressions made since this was set to 0.
    tallest: u16,
    /// Whether a bar after a label ends an expression, as in `[x IN list WHERE x:Label | x]`.
    bar_ends: bool,
    limits: &'a Limits<'a>,
}

impl Parser<'_> {
    fn peek(&self) -> TokenKind {
        self.peek_at(0)
    }

    /// Returns the kind of the token at this distance, or of the last token beyond the end.
    fn peek_at(&self, ahead: usize) -> TokenKind {
        self.tokens.get(self.at + ahead).map_or(TokenKind::End, |t| t.kind)
    }

    fn token(&self) -> Token {
        self.tokens.get(self.at).or(self.tokens.last()).copied().unwrap_or(Token {
            kind: TokenKind::End,
            start: 0,
            end: 0,
        })
    }

    fn place(&self) -> Place {
        Place(self.token().start)
    }

    fn slice(&self, token: Token) -> &str {
        self.text.get(token.start as usize..token.end as usize).unwrap_or_default()
    }

    /// Takes the next token; the last token stays.
    fn advance(&mut self) -> Token {
        let token = self.token();
        if !matches!(token.kind, TokenKind::End | TokenKind::Bad) {
            self.at += 1;
        }
        token
    }

    fn accept(&mut self, kind: TokenKind) -> bool {
        let found = self.peek() == kind;
        if found {
            self.at += 1;
        }
        found
    }

    fn accept_keyword(&mut self, keyword: Keyword) -> bool {
        self.accept(TokenKind::Keyword(keyword))
    }

    fn expect(&mut self, kind: TokenKind, expected: &str) -> Result<Token> {
        let token = self.token();
        if self.accept(kind) { Ok(token) } else { Err(self.unexpected(expected)) }
    }

    fn expect_keyword(&mut self, keyword: Keyword) -> Result<()> {
        if self.accept_keyword(keyword) { Ok(()) } else { Err(self.unexpected(keyword.text())) }
    }

    /// Whether the next token is this word; it must be no keyword.
    fn at_word(&self, word: &str) -> bool {
        self.peek() == TokenKind::Word && self.slice(self.token()).eq_ignore_ascii_case(word)
    }

    /// Returns the error that the next token does not fit the grammar.
    fn unexpected(&mut self, expected: &str) -> Fault {
        let token = self.token();
        let found = match token.kind {
            TokenKind::Bad => {
                if let Some(fault) = self.fault.take() {
                    return fault;
                }
                "character".into()
            }
            TokenKind::End => "end of the query".into(),
            _ => format!("'{}'", literal::excerpt(self.slice(token))),
        };
        Fault::syntax(token.start, format!("unexpected {found}, expected {expected}"))
    }

    /// Counts one level of nesting. [`Self::leave`] ends the level; after an error it need not, because parsing ends.
    fn enter(&mut self) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let message = format!("query is nested too deeply, expected at most {MAX_DEPTH} levels");
            return Err(Fault::syntax(self.token().start, message));
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Makes an expression, or refuses it if it is too high. `below`: height of the parts that `for_each_child` skips.
    fn node_over(&mut self, kind: ExprKind, place: Place, below: u16) -> Result<Expr> {
        self.limits.charge(size_of::<Expr>())?;
        let mut expr = Expr { kind, place, height: Height(0) };
        let mut height = below;
        expr.for_each_child(&mut |child| height = height.max(child.height.0));
        expr.height = Height(height + 1);
        if expr.height.0 > MAX_HEIGHT {
            let message = format!("expression is too long, expected at most {MAX_HEIGHT} operators in a row");
            return Err(Fault::syntax(place.0, message));
        }
        self.tallest = self.tallest.max(expr.height.0);
        Ok(expr)
    }

    fn node(&mut self, kind: ExprKind, place: Place) -> Result<Expr> {
        self.node_over(kind, place, 0)
    }

    /// Runs a parser inside brackets, or before a bar that is no part of a label test (`bar_ends`).
    fn bracketed<T>(&mut self, bar_ends: bool, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let before = std::mem::replace(&mut self.bar_ends, bar_ends);
        let parsed = parse(self)?;
        self.bar_ends = before;
        Ok(parsed)
    }

    /// Runs a parser, and returns the largest height of the expressions that it made.
    fn measured<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<(T, u16)> {
        let before = std::mem::take(&mut self.tallest);
        let parsed = parse(self)?;
        let height = self.tallest;
        self.tallest = before.max(height);
        Ok((parsed, height))
    }

    /// Whether the next token may be a variable.
    fn at_variable(&self) -> bool {
        match self.peek() {
            TokenKind::Word | TokenKind::Quoted => true,
            TokenKind::Keyword(keyword) => keyword.may_be_variable(),
            _ => false,
        }
    }

    /// A variable's name.
    fn variable(&mut self) -> Result<crate::ast::Name> {
        let token = self.token();
        if !self.at_variable() {
            if let TokenKind::Keyword(keyword) = token.kind {
                let expected = format!("a variable ({} is a reserved word, use backticks)", keyword.text());
                return Err(self.unexpected(&expected));
            }
            return Err(self.unexpected("a variable"));
        }
        self.at += 1;
        Ok(crate::ast::Name { text: literal::name(self.slice(token)), place: Place(token.start) })
    }

    /// A label, relationship type or property key: any word, even a keyword.
    fn schema_name(&mut self, expected: &str) -> Result<Str> {
        let token = self.token();
        match token.kind {
            TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_) => {
                self.at += 1;
                Ok(literal::name(self.slice(token)))
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// The name of a parameter, after its `$`.
    fn parameter(&mut self) -> Result<Str> {
        let dollar = self.expect(TokenKind::Dollar, "a parameter")?;
        let token = self.token();
        let named = matches!(
            token.kind,
            TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_) | TokenKind::Integer
        );
        if !named || token.start != dollar.end {
            return Err(self.unexpected("the name of a parameter after '$'"));
        }
        self.at += 1;
        Ok(literal::name(self.slice(token)))
    }

    /// `item, item, …`
    fn list_of<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.accept(TokenKind::Comma) {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Returns the distance of the token after the bracket that closes the one at distance `from`; brackets of all
    /// kinds nest. `None`: the bracket is not closed.
    fn after_bracket(&self, from: usize) -> Option<usize> {
        let mut open = 0usize;
        for (i, token) in self.tokens.get(self.at + from..)?.iter().enumerate() {
            match token.kind {
                TokenKind::LeftParen | TokenKind::LeftBracket | TokenKind::LeftBrace => open += 1,
                TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightBrace => {
                    open = open.checked_sub(1)?;
                    if open == 0 {
                        return Some(from + i + 1);
                    }
                }
                _ => {}
            }
        }
        None
    }
}
