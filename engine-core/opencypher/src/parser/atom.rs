//! Atoms of expressions: literals, variables, calls, brackets, CASE, comprehensions, subqueries.

use super::Parser;
use crate::ast::{Expr, ExprKind, Literal, Place};
use crate::fault::Result;
use crate::literal;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::{Comparison, Quantifier};
use tidegraph_types::Str;

const EXPRESSION: &str = "an expression";

impl Parser<'_> {
    pub(super) fn atom(&mut self) -> Result<Expr> {
        let token = self.token();
        let place = Place(token.start);
        let kind = match token.kind {
            TokenKind::Integer => {
                self.at += 1;
                ExprKind::Literal(Literal::Integer(literal::integer(self.slice(token), false, token.start)?))
            }
            TokenKind::Float => {
                self.at += 1;
                ExprKind::Literal(Literal::Float(literal::float(self.slice(token), false, token.start)?))
            }
            TokenKind::String => {
                self.at += 1;
                ExprKind::Literal(Literal::String(literal::string(self.slice(token), token.start)?))
            }
            TokenKind::Dollar => ExprKind::Parameter(self.parameter()?),
            TokenKind::LeftParen => return self.parenthesis(),
            TokenKind::LeftBracket => return self.bracket(),
            TokenKind::LeftBrace => ExprKind::Map(self.map_entries()?),
            TokenKind::Word | TokenKind::Quoted => return self.word_atom(),
            TokenKind::Keyword(keyword) => return self.keyword_atom(keyword),
            _ => return Err(self.unexpected(EXPRESSION)),
        };
        self.node(kind, place)
    }

    fn keyword_atom(&mut self, keyword: Keyword) -> Result<Expr> {
        let place = self.place();
        let literal = match keyword {
            Keyword::True => Literal::Bool(true),
            Keyword::False => Literal::Bool(false),
            Keyword::Null => Literal::Null,
            Keyword::Case => return self.case(),
            Keyword::All if self.peek_at(1) == TokenKind::LeftParen => {
                return self.quantified(Quantifier::All);
            }
            Keyword::Exists if self.peek_at(1) == TokenKind::LeftBrace => {
                return self.subquery(ExprKind::Exists);
            }
            Keyword::Exists if self.peek_at(1) == TokenKind::LeftParen => return self.call(),
            _ if keyword.may_be_variable() => return self.word_atom(),
            _ => return Err(self.unexpected(EXPRESSION)),
        };
        self.at += 1;
        self.node(ExprKind::Literal(literal), place)
    }

    /// A variable, a call, or a construct that starts like a call.
    fn word_atom(&mut self) -> Result<Expr> {
        let place = self.place();
        match self.peek_at(1) {
            TokenKind::LeftParen => {
                if let Some(shortest) = self.shortest_ahead() {
                    let (path, below) = self.measured(|p| p.shortest_path(shortest))?;
                    return self.node_over(ExprKind::Pattern(Box::new(path)), place, below);
                }
                if self.at_word("count") && self.peek_at(2) == TokenKind::Star {
                    self.at += 3;
                    self.expect(TokenKind::RightParen, "')'")?;
                    return self.node(ExprKind::CountRows, place);
                }
                for (word, quantifier) in
                    [("any", Quantifier::Any), ("none", Quantifier::None), ("single", Quantifier::Single)]
                {
                    if self.at_word(word) {
                        return self.quantified(quantifier);
                    }
                }
                if self.at_word("reduce") {
                    return self.reduce();
                }
                self.call()
            }
            TokenKind::LeftBrace if self.at_word("count") => self.subquery(ExprKind::Count),
            TokenKind::LeftBrace if self.at_word("collect") => self.subquery(ExprKind::Collect),
            TokenKind::Dot if self.qualified_call_ahead() => self.call(),
            _ => {
                let name = self.variable()?;
                self.node(ExprKind::Variable(name.text), place)
            }
        }
    }

    /// Whether `name.name.name(` comes next.
    fn qualified_call_ahead(&self) -> bool {
        let mut at = 0;
        while matches!(self.peek_at(at), TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_)) {
            match self.peek_at(at + 1) {
                TokenKind::Dot => at += 2,
                TokenKind::LeftParen => return true,
                _ => return false,
            }
        }
        false
    }

    fn call(&mut self) -> Result<Expr> {
        let place = self.place();
        let mut name = self.schema_name("a function")?;
        while self.accept(TokenKind::Dot) {
            name = Str::from(format!("{name}.{}", self.schema_name("a function")?));
        }
        self.expect(TokenKind::LeftParen, "'('")?;
        if name.eq_ignore_ascii_case("trim") {
            return self.bracketed(false, |parser| parser.trim(place));
        }
        let distinct = self.accept_keyword(Keyword::Distinct);
        let mut args = vec![];
        if self.peek() != TokenKind::RightParen {
            args = self.bracketed(false, |parser| {
                let first = parser.expression()?;
                let mut args = vec![first];
                while parser.accept(TokenKind::Comma) {
                    // The form of `normalize(text, NFC)` is a word.
                    args.push(match parser.normal_form() {
                        Some(form) if name.eq_ignore_ascii_case("normalize") => {
                            let place = parser.place();
                            parser.at += 1;
                            parser.node(ExprKind::Literal(Literal::String(form)), place)?
                        }
                        _ => parser.expression()?,
                    });
                }
                Ok(args)
            })?;
        }
        self.expect(TokenKind::RightParen, "',' or ')'")?;
        self.node(ExprKind::Call { name, distinct, args }, place)
    }

    /// The Unicode normal form whose name is next.
    pub(super) fn normal_form(&self) -> Option<Str> {
        ["NFC", "NFD", "NFKC", "NFKD"].into_iter().find(|form| self.at_word(form)).map(Str::new_static)
    }

    /// `trim(text)`, `trim(BOTH 'x' FROM text)`; the name and the parenthesis are taken.
    fn trim(&mut self, place: Place) -> Result<Expr> {
        let mut name = "trim";
        for (word, function) in [("BOTH", "trim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim")] {
            let given = self.at_word(word)
                && !matches!(self.peek_at(1), TokenKind::RightParen | TokenKind::Comma | TokenKind::Dot);
            if given {
                self.at += 1;
                name = function;
                break;
            }
        }
        let mut args = vec![];
        if self.accept_word("FROM") {
            args.push(self.expression()?);
        } else if self.peek() != TokenKind::RightParen {
            args = self.list_of(Self::expression)?;
            if args.len() == 1 && self.accept_word("FROM") {
                args.insert(0, self.expression()?);
            }
        }
        self.expect(TokenKind::RightParen, "',' or ')'")?;
        self.node(ExprKind::Call { name: Str::new_static(name), distinct: false, args }, place)
    }

    fn parenthesis(&mut self) -> Result<Expr> {
        let place = self.place();
        if self.edge_chain_ahead(0) {
            let (path, below) = self.measured(Self::path_chain)?;
            return self.node_over(ExprKind::Pattern(Box::new(path)), place, below);
        }
        self.at += 1;
        let inner = self.bracketed(false, Self::expression)?;
        self.expect(TokenKind::RightParen, "an operator or ')'")?;
        Ok(inner)
    }

    /// A list, a list comprehension or a pattern comprehension.
    fn bracket(&mut self) -> Result<Expr> {
        let place = self.place();
        let named = matches!(self.peek_at(1), TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_));
        if named && self.peek_at(2) == TokenKind::Equal && self.peek_at(3) == TokenKind::LeftParen {
            // `[p = (a)-->(b) | p]`; `[p = (1)]` is a list with a comparison.
            if self.edge_chain_ahead(3) {
                self.at += 1;
                return self.pattern_comprehension(place);
            }
        }
        self.at += 1;
        if named && self.peek_at(1) == TokenKind::Keyword(Keyword::In) && self.at_variable() {
            return self.comprehension(place);
        }
        if self.accept(TokenKind::RightBracket) {
            return self.node(ExprKind::List(vec![]), place);
        }
        if self.peek() == TokenKind::LeftParen && self.edge_chain_ahead(0) {
            return self.pattern_comprehension(place);
        }
        let items = self.bracketed(false, |parser| parser.list_of(Self::expression))?;
        self.expect(TokenKind::RightBracket, "',' or ']'")?;
        self.node(ExprKind::List(items), place)
    }

    /// `x IN list WHERE filter | map]`
    fn comprehension(&mut self, place: Place) -> Result<Expr> {
        let variable = self.variable()?;
        self.expect_keyword(Keyword::In)?;
        let list = Box::new(self.bracketed(true, Self::expression)?);
        let filter = self.bracketed(true, Self::where_clause)?.map(Box::new);
        let map = if self.accept(TokenKind::Bar) {
            Some(Box::new(self.bracketed(false, Self::expression)?))
        } else {
            None
        };
        self.expect(TokenKind::RightBracket, "WHERE, '|' or ']'")?;
        self.node(ExprKind::Comprehension { variable, list, filter, map }, place)
    }

    /// `(a)-->(b) WHERE filter | map]`; or a list that starts with a pattern.
    fn pattern_comprehension(&mut self, place: Place) -> Result<Expr> {
        let (pattern, below) = self.measured(Self::path_pattern)?;
        let filter = self.bracketed(true, Self::where_clause)?.map(Box::new);
        self.expect(TokenKind::Bar, if filter.is_some() { "'|'" } else { "WHERE or '|'" })?;
        let map = Box::new(self.bracketed(false, Self::expression)?);
        self.expect(TokenKind::RightBracket, "']'")?;
        self.node_over(
            ExprKind::PatternComprehension { pattern: Box::new(pattern), filter, map },
            place,
            below,
        )
    }

    /// `{key: value, …}`
    pub(super) fn map_entries(&mut self) -> Result<Vec<(Str, Expr)>> {
        self.expect(TokenKind::LeftBrace, "'{'")?;
        let mut entries = vec![];
        if self.accept(TokenKind::RightBrace) {
            return Ok(entries);
        }
        loop {
            let key = self.schema_name("a key or '}'")?;
            self.expect(TokenKind::Colon, "':'")?;
            entries.push((key, self.bracketed(false, Self::expression)?));
            if !self.accept(TokenKind::Comma) {
                self.expect(TokenKind::RightBrace, "',' or '}'")?;
                return Ok(entries);
            }
        }
    }

    fn case(&mut self) -> Result<Expr> {
        let place = self.place();
        self.at += 1;
        let subject = if self.peek() == TokenKind::Keyword(Keyword::When) {
            None
        } else {
            Some(Box::new(self.expression()?))
        };
        let mut branches = vec![];
        while self.accept_keyword(Keyword::When) {
            let condition = self.when(subject.is_some())?;
            self.expect_keyword(Keyword::Then)?;
            branches.push((condition, self.expression()?));
        }
        if branches.is_empty() {
            return Err(self.unexpected("WHEN"));
        }
        let otherwise =
            if self.accept_keyword(Keyword::Else) { Some(Box::new(self.expression()?)) } else { None };
        if !self.accept_keyword(Keyword::End) {
            return Err(self.unexpected(if otherwise.is_some() { "END" } else { "WHEN, ELSE or END" }));
        }
        self.node(ExprKind::Case { subject, branches, otherwise }, place)
    }

    /// What stands between WHEN and THEN. In a CASE with a subject that is a value, or several values and conditions over
    /// the subject (`WHEN > 3, IS NULL, 5`).
    fn when(&mut self, has_subject: bool) -> Result<Expr> {
        let place = self.place();
        if !has_subject {
            return self.expression();
        }
        let mut tests = vec![];
        let mut is_plain = true;
        loop {
            let place = self.place();
            let subject = self.node(ExprKind::Variable(Str::default()), place)?;
            if let Some(tested) = self.test_of(subject.clone())? {
                is_plain = false;
                tests.push(tested);
            } else {
                let value = self.expression()?;
                if is_plain && tests.is_empty() && self.peek() != TokenKind::Comma {
                    return Ok(value);
                }
                is_plain = false;
                let equal = ExprKind::Comparison(Box::new(subject), vec![(Comparison::Equal, value)]);
                tests.push(self.node(equal, place)?);
            }
            if !self.accept(TokenKind::Comma) {
                break;
            }
        }
        let test = match tests.len() {
            1 => tests.swap_remove(0),
            _ => self.node(ExprKind::Or(tests), place)?,
        };
        self.node(ExprKind::Condition(Box::new(test)), place)
    }

    /// `all(x IN list WHERE predicate)`; the name is next.
    fn quantified(&mut self, quantifier: Quantifier) -> Result<Expr> {
        let place = self.place();
        self.at += 1;
        self.expect(TokenKind::LeftParen, "'('")?;
        let variable = self.variable()?;
        self.expect_keyword(Keyword::In)?;
        let list = Box::new(self.bracketed(false, Self::expression)?);
        self.expect_keyword(Keyword::Where)?;
        let predicate = Box::new(self.bracketed(false, Self::expression)?);
        self.expect(TokenKind::RightParen, "an operator or ')'")?;
        self.node(ExprKind::Quantified { quantifier, variable, list, predicate }, place)
    }

    /// `reduce(accumulator = start, x IN list | step)`; the name is next.
    fn reduce(&mut self) -> Result<Expr> {
        let place = self.place();
        self.at += 1;
        self.expect(TokenKind::LeftParen, "'('")?;
        let accumulator = self.variable()?;
        self.expect(TokenKind::Equal, "'='")?;
        let start = Box::new(self.expression()?);
        self.expect(TokenKind::Comma, "','")?;
        let variable = self.variable()?;
        self.expect_keyword(Keyword::In)?;
        let list = Box::new(self.bracketed(true, Self::expression)?);
        self.expect(TokenKind::Bar, "'|'")?;
        let step = Box::new(self.bracketed(false, Self::expression)?);
        self.expect(TokenKind::RightParen, "an operator or ')'")?;
        self.node(ExprKind::Reduce { accumulator, start, variable, list, step }, place)
    }
}
