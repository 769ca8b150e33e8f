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

    /// `IN 4 CONCURRENT TRANSACTIONS OF 1000 ROWS ON ERROR CONTINUE REPORT STATUS AS s`
    fn batches(&mut self) -> Result<Batches> {
        let place = self.place();
        self.at += 1;
        let begins = |parser: &Self| parser.at_word("CONCURRENT") || parser.at_word("TRANSACTIONS");
        let concurrency = if begins(self) { None } else { Some(self.expression()?) };
        if !self.accept_word("CONCURRENT") && concurrency.is_some() {
            return Err(self.unexpected("CONCURRENT"));
        }
        self.expect_word("TRANSACTIONS")?;
        let on_error = OnError::Fail;
        let mut batches = Batches { concurrency, size: None, retry: None, on_error, status: None, place };
        loop {
            if self.accept_word("OF") {
                batches.size = Some(self.expression()?);
                self.expect_one_of(&["ROWS", "ROW"])?;
            } else if self.accept_keyword(Keyword::On) {
                self.expect_word("ERROR")?;
                self.on_error(&mut batches)?;
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

    /// `CONTINUE`, `BREAK` or `FAIL`, or `RETRY FOR 5 SECONDS THEN CONTINUE`
    fn on_error(&mut self, batches: &mut Batches) -> Result<()> {
        if self.accept_word("RETRY") {
            batches.retry = Some(None);
            if self.accept_word("FOR") {
                batches.retry = Some(Some(self.expression()?));
                self.expect_one_of(&["SECONDS", "SECOND", "SECS", "SEC"])?;
            }
            if !self.accept_keyword(Keyword::Then) {
                return Ok(());
            }
        }
        batches.on_error = if self.accept_word("CONTINUE") {
            OnError::Continue
        } else if self.accept_word("BREAK") {
            OnError::Break
        } else if self.accept_word("FAIL") {
            OnError::Fail
        } else {
            return Err(self.unexpected("CONTINUE, BREAK or FAIL"));
        };
        Ok(())
    }

    /// Reads one of several words of the same meaning.
    fn expect_one_of(&mut self, words: &[&str]) -> Result<()> {
        let found = words.iter().any(|word| self.accept_word(word));
        if found { Ok(()) } else { Err(self.unexpected(words.first().copied().unwrap_or_default())) }
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
