//! Subqueries: `CALL (a) { … } IN TRANSACTIONS`, `EXISTS { … }`, `COUNT { … }`, `COLLECT { … }`.

use super::Parser;
use crate::ast::{Batches, Clause, ClauseKind, Expr, ExprKind, Imports, Place, Query, SingleQuery, Subquery};
use crate::fault::{Fault, Result};
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::OnError;

impl Parser<'_> {
    /// Whether a subquery follows `CALL`.
    pub(super) fn call_subquery_ahead(&self) -> bool {
        matches!(self.peek(), TokenKind::LeftBrace | TokenKind::LeftParen)
    }

    /// `(a, b) { … } IN TRANSACTIONS …`, after `CALL`.
    pub(super) fn call_subquery(&mut self, optional: bool) -> Result<Subquery> {
        self.enter()?;
        let imports = if self.accept(TokenKind::LeftParen) { Some(self.imports()?) } else { None };
        self.expect(TokenKind::LeftBrace, "'{'")?;
        let (query, _) = self.measured(|parser| parser.bracketed(false, Self::union))?;
        self.expect(TokenKind::RightBrace, "a clause or '}'")?;
        self.leave();
        let batches =
            if self.peek() == TokenKind::Keyword(Keyword::In) { Some(self.batches()?) } else { None };
        Ok(Subquery { optional, imports, query, batches })
    }

    fn imports(&mut self) -> Result<Imports> {
        let imports = match self.peek() {
            TokenKind::Star => {
                self.at += 1;
                Imports::All
            }
            TokenKind::RightParen => Imports::Names(vec![]),
            _ => Imports::Names(self.list_of(Self::variable)?),
        };
        self.expect(TokenKind::RightParen, "',' or ')'")?;
        Ok(imports)
    }

    /// `IN TRANSACTIONS OF 1000 ROWS ON ERROR CONTINUE REPORT STATUS AS s`
    fn batches(&mut self) -> Result<Batches> {
        let place = self.place();
        self.at += 1;
        if self.peek() != TokenKind::Word || self.at_word("CONCURRENT") {
            return Err(Fault::unsupported(place.0, "IN CONCURRENT TRANSACTIONS"));
        }
        if !self.at_word("TRANSACTIONS") {
            return Err(Fault::unsupported(place.0, "IN CONCURRENT TRANSACTIONS"));
        }
        self.at += 1;
        let mut batches = Batches { size: None, on_error: OnError::Fail, status: None, place };
        loop {
            if self.at_word("OF") {
                self.at += 1;
                batches.size = Some(self.expression()?);
                if !self.at_word("ROWS") && !self.at_word("ROW") {
                    return Err(self.unexpected("ROWS"));
                }
                self.at += 1;
            } else if self.accept_keyword(Keyword::On) {
                self.expect_word("ERROR")?;
                batches.on_error = if self.accept_word("CONTINUE") {
                    OnError::Continue
                } else if self.accept_word("BREAK") {
                    OnError::Break
                } else if self.accept_word("FAIL") {
                    OnError::Fail
                } else if self.at_word("RETRY") {
                    return Err(Fault::unsupported(self.place().0, "ON ERROR RETRY"));
                } else {
                    return Err(self.unexpected("CONTINUE, BREAK or FAIL"));
                };
            } else if self.accept_word("REPORT") {
                self.expect_word("STATUS")?;
                self.expect_keyword(Keyword::As)?;
                batches.status = Some(self.variable()?);
            } else {
                break;
            }
        }
        if batches.status.is_some() && batches.on_error == OnError::Fail {
            let message = "REPORT STATUS needs ON ERROR CONTINUE or ON ERROR BREAK";
            return Err(Fault::syntax(place.0, message));
        }
        Ok(batches)
    }

    /// `EXISTS { … }`, `COUNT { … }`: a query, or a bare pattern; `COLLECT { … }`. The word is next.
    pub(super) fn subquery(&mut self, make: fn(Box<Query>) -> ExprKind) -> Result<Expr> {
        let place = self.place();
        self.enter()?;
        self.at += 1;
        self.expect(TokenKind::LeftBrace, "'{'")?;
        let (query, below) = self.measured(|parser| parser.bracketed(false, Self::braced))?;
        self.expect(TokenKind::RightBrace, "a clause or '}'")?;
        self.leave();
        self.node_over(make(Box::new(query)), place, below)
    }

    fn braced(&mut self) -> Result<Query> {
        let is_pattern = match self.peek() {
            TokenKind::LeftParen => true,
            // `p = (a)-->(b)`
            TokenKind::Word | TokenKind::Quoted => {
                self.peek_at(1) == TokenKind::Equal || self.shortest_ahead().is_some()
            }
            TokenKind::RightBrace => return Err(self.unexpected("a pattern or MATCH")),
            _ => false,
        };
        if !is_pattern {
            return self.union();
        }
        let place = self.place();
        let patterns = self.list_of(Self::path_pattern)?;
        let predicate = self.where_clause()?;
        let clause = Clause { kind: ClauseKind::Match { optional: false, patterns, predicate }, place };
        Ok(query_of(vec![clause], place))
    }
}

fn query_of(clauses: Vec<Clause>, place: Place) -> Query {
    Query { parts: vec![SingleQuery { clauses, place }], union_all: false, timeout: None }
}
