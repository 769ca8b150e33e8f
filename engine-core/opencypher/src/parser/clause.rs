//! Clauses: from the first keyword to the end of the request.

use super::Parser;
use crate::ast::{
    Call, Clause, ClauseKind, Expr, ExprKind, Item, Label, LabelTest, Name, Place, Projection, Query,
    RemoveItem, SetItem, SingleQuery, SortItem, Yield,
};
use crate::fault::{Fault, Result};
use crate::literal;
use crate::token::{Keyword, TokenKind};
use std::time::Duration;
use tidegraph_types::Str;

/// Words that start a clause of openCypher or a command of a dialect, none of them supported.
const UNSUPPORTED: &[&str] = &[
    "USE",
    "EXPLAIN",
    "PROFILE",
    "DROP",
    "SHOW",
    "LET",
    "FILTER",
    "INSERT",
    "START",
    "USING",
    "ALTER",
    "GRANT",
    "DENY",
    "REVOKE",
    "TERMINATE",
];

impl Parser<'_> {
    pub(super) fn query(&mut self) -> Result<Query> {
        let timeout = self.hints()?;
        let query = self.union()?;
        self.accept(TokenKind::Semicolon);
        if self.peek() != TokenKind::End {
            return Err(self.unexpected("a clause or the end of the query"));
        }
        Ok(Query { timeout, ..query })
    }

    /// Queries joined by UNION.
    pub(super) fn union(&mut self) -> Result<Query> {
        let mut parts = vec![self.single_query()?];
        let mut union_all = None;
        while self.peek() == TokenKind::Keyword(Keyword::Union) {
            let place = self.place();
            self.at += 1;
            let all = self.accept_keyword(Keyword::All);
            if !all {
                self.accept_keyword(Keyword::Distinct);
            }
            if *union_all.get_or_insert(all) != all {
                return Err(Fault::syntax(place.0, "UNION and UNION ALL cannot be mixed in one query"));
            }
            parts.push(self.single_query()?);
        }
        Ok(Query { parts, union_all: union_all.unwrap_or(false), timeout: None })
    }

    /// `USING QUERY:NAME value`, any number of times: Neptune's hints. Returns the time limit, if they have one; the
    /// others are about how the query runs.
    fn hints(&mut self) -> Result<Option<Duration>> {
        let mut timeout: Option<Duration> = None;
        while self.at_word("USING") {
            let using = self.advance();
            if !self.at_word("QUERY") {
                return Err(Fault::unsupported(using.start, "USING"));
            }
            self.at += 1;
            self.expect(TokenKind::Colon, "a colon after QUERY")?;
            let name = self.schema_name("the name of a hint")?;
            let value = self.token();
            match name.to_ascii_uppercase().as_str() {
                "TIMEOUTMILLISECONDS" => {
                    self.expect(TokenKind::Integer, "a number of milliseconds")?;
                    let Ok(millis) = self.slice(value).parse::<u64>() else {
                        let message = format!("{} is no number of milliseconds", self.slice(value));
                        return Err(Fault::syntax(value.start, message));
                    };
                    if millis > 0 {
                        let limit = Duration::from_millis(millis);
                        timeout = Some(timeout.map_or(limit, |before| before.min(limit)));
                    }
                }
                "PLANCACHE" | "ASSUMECONSISTENTDATATYPES" => {
                    self.expect(TokenKind::String, "a string")?;
                }
                _ => return Err(Fault::unsupported(using.start, format!("USING QUERY:{name}"))),
            }
        }
        Ok(timeout)
    }

    fn single_query(&mut self) -> Result<SingleQuery> {
        let place = self.place();
        let clauses = self.clauses()?;
        if clauses.is_empty() {
            return Err(self.unexpected("a clause such as MATCH, UNWIND, CREATE or RETURN"));
        }
        Ok(SingleQuery { clauses, place })
    }

    /// Parses clauses until something else follows.
    pub(super) fn clauses(&mut self) -> Result<Vec<Clause>> {
        let mut clauses = vec![];
        while let Some(clause) = self.clause()? {
            clauses.push(clause);
        }
        Ok(clauses)
    }

    fn clause(&mut self) -> Result<Option<Clause>> {
        let place = self.place();
        let TokenKind::Keyword(keyword) = self.peek() else { return self.clause_of_word() };
        let kind = match keyword {
            Keyword::Match => self.match_clause(false)?,
            Keyword::Optional => {
                self.at += 1;
                if self.accept_word("CALL") {
                    let kind = self.call_kind(true)?;
                    return Ok(Some(Clause { kind, place }));
                }
                self.match_clause(true)?
            }
            Keyword::Unwind => {
                self.at += 1;
                let list = self.expression()?;
                self.expect_keyword(Keyword::As)?;
                ClauseKind::Unwind { list, variable: self.variable()? }
            }
            Keyword::With => {
                self.at += 1;
                let mut projection = self.projection()?;
                projection.predicate = self.where_clause()?;
                ClauseKind::With(Box::new(projection))
            }
            Keyword::Return => {
                self.at += 1;
                ClauseKind::Return(Box::new(self.projection()?))
            }
            Keyword::Create => {
                self.at += 1;
                for word in ["INDEX", "CONSTRAINT", "UNIQUE", "DATABASE", "USER", "ROLE"] {
                    if self.at_word(word) {
                        return Err(Fault::unsupported(place.0, format!("CREATE {word}")));
                    }
                }
                ClauseKind::Create(self.list_of(Self::path_pattern)?)
            }
            Keyword::Merge => self.merge_clause()?,
            Keyword::Set => {
                self.at += 1;
                ClauseKind::Set(self.list_of(Self::set_item)?)
            }
            Keyword::Remove => {
                self.at += 1;
                ClauseKind::Remove(self.list_of(Self::remove_item)?)
            }
            Keyword::Delete | Keyword::Detach => {
                let detach = self.accept_keyword(Keyword::Detach);
                self.expect_keyword(Keyword::Delete)?;
                ClauseKind::Delete { detach, targets: self.list_of(Self::expression)? }
            }
            _ => return Ok(None),
        };
        Ok(Some(Clause { kind, place }))
    }

    /// Parses a clause whose first word is not a keyword.
    fn clause_of_word(&mut self) -> Result<Option<Clause>> {
        let place = self.place();
        if self.at_word("FOREACH") {
            self.at += 1;
            self.enter()?;
            self.expect(TokenKind::LeftParen, "'('")?;
            let variable = self.variable()?;
            self.expect_keyword(Keyword::In)?;
            let list = self.bracketed(true, Self::expression)?;
            self.expect(TokenKind::Bar, "'|'")?;
            let body = self.bracketed(false, Self::clauses)?;
            if body.is_empty() {
                return Err(self.unexpected("an updating clause such as SET"));
            }
            self.expect(TokenKind::RightParen, "an updating clause or ')'")?;
            self.leave();
            return Ok(Some(Clause { kind: ClauseKind::Foreach { variable, list, body }, place }));
        }
        if self.accept_word("CALL") {
            let kind = self.call_kind(false)?;
            return Ok(Some(Clause { kind, place }));
        }
        if self.accept_word("LOAD") {
            return Ok(Some(Clause { kind: self.load_csv()?, place }));
        }
        if self.accept_word("FINISH") {
            return Ok(Some(Clause { kind: ClauseKind::Finish, place }));
        }
        for word in UNSUPPORTED {
            if self.at_word(word) {
                return Err(Fault::unsupported(place.0, *word));
            }
        }
        Ok(None)
    }

    /// `CSV WITH HEADERS FROM url AS variable FIELDTERMINATOR ';'`, after LOAD.
    fn load_csv(&mut self) -> Result<ClauseKind> {
        if !self.accept_word("CSV") {
            return Err(self.unexpected("CSV"));
        }
        let headers = self.accept_keyword(Keyword::With);
        if headers && !self.accept_word("HEADERS") {
            return Err(self.unexpected("HEADERS"));
        }
        if !self.accept_word("FROM") {
            return Err(self.unexpected(if headers { "FROM" } else { "WITH HEADERS or FROM" }));
        }
        let url = self.expression()?;
        self.expect_keyword(Keyword::As)?;
        let variable = self.variable()?;
        let mut terminator = ',';
        if self.accept_word("FIELDTERMINATOR") {
            let token = self.expect(TokenKind::String, "a string")?;
            let text = literal::string(self.slice(token), token.start)?;
            let mut characters = text.chars();
            terminator = match (characters.next(), characters.next()) {
                (Some(one), None) if !matches!(one, '"' | '\n' | '\r') => one,
                _ => {
                    let message = "FIELDTERMINATOR takes one character that is no quote and no line end";
                    return Err(Fault::syntax(token.start, message));
                }
            };
        }
        Ok(ClauseKind::LoadCsv { headers, url, variable, terminator })
    }

    /// `procedure(args) YIELD column AS variable, … WHERE predicate`
    fn call_clause(&mut self, optional: bool) -> Result<Call> {
        let place = self.place();
        let mut text = self.schema_name("the name of a procedure")?;
        while self.accept(TokenKind::Dot) {
            text = Str::from(format!("{text}.{}", self.schema_name("the name of a procedure")?));
        }
        let mut args = None;
        if self.accept(TokenKind::LeftParen) {
            args = Some(vec![]);
            if !self.accept(TokenKind::RightParen) {
                args = Some(self.list_of(Self::expression)?);
                self.expect(TokenKind::RightParen, "',' or ')'")?;
            }
        }
        let mut yields = Yield::Omitted;
        let mut predicate = None;
        if self.at_word("YIELD") {
            self.at += 1;
            yields = if self.accept(TokenKind::Star) {
                Yield::All
            } else {
                Yield::Columns(self.list_of(Self::yielded)?)
            };
            predicate = self.where_clause()?;
        }
        Ok(Call { optional, name: Name { text, place }, args, yields, predicate })
    }

    /// A call of a procedure or of a subquery, after CALL.
    fn call_kind(&mut self, optional: bool) -> Result<ClauseKind> {
        Ok(if self.call_subquery_ahead() {
            ClauseKind::Subquery(Box::new(self.call_subquery(optional)?))
        } else {
            ClauseKind::Call(Box::new(self.call_clause(optional)?))
        })
    }

    /// `column`, `column AS variable`
    fn yielded(&mut self) -> Result<(Str, Name)> {
        let column = self.variable()?;
        let variable = if self.accept_keyword(Keyword::As) { self.variable()? } else { column.clone() };
        Ok((column.text, variable))
    }

    fn match_clause(&mut self, optional: bool) -> Result<ClauseKind> {
        self.expect_keyword(Keyword::Match)?;
        let repeats = self.match_mode()?;
        let mut patterns = self.list_of(Self::path_pattern)?;
        if repeats {
            patterns.iter_mut().try_for_each(|path| self.repeat_elements(path))?;
        }
        while self.at_word("USING") {
            self.match_hint()?;
        }
        Ok(ClauseKind::Match { optional, patterns, predicate: self.where_clause()? })
    }

    /// `DIFFERENT RELATIONSHIPS`, the default, or `REPEATABLE ELEMENTS` (`true`) after `MATCH`.
    fn match_mode(&mut self) -> Result<bool> {
        if self.peek_at(1) != TokenKind::Word {
            return Ok(false);
        }
        for (mode, [several, one], repeats) in [
            ("DIFFERENT", ["RELATIONSHIPS", "RELATIONSHIP"], false),
            ("REPEATABLE", ["ELEMENTS", "ELEMENT"], true),
        ] {
            if self.accept_word(mode) {
                // GQL's long form: `REPEATABLE ELEMENT BINDINGS`.
                return match self.accept_word(several) || self.accept_word(one) {
                    true => {
                        self.accept_word("BINDINGS");
                        Ok(repeats)
                    }
                    false => Err(self.unexpected(several)),
                };
            }
        }
        Ok(false)
    }

    /// `USING INDEX n:Label(key)`, `USING SCAN n:Label`, `USING JOIN ON n`: the planner chooses by its statistics instead.
    fn match_hint(&mut self) -> Result<()> {
        self.at += 1;
        if self.accept_word("JOIN") {
            self.expect_keyword(Keyword::On)?;
            self.list_of(Self::variable)?;
            return Ok(());
        }
        let scan = self.accept_word("SCAN");
        if !scan {
            for kind in ["TEXT", "RANGE", "POINT"] {
                if self.accept_word(kind) {
                    break;
                }
            }
            if !self.accept_word("INDEX") {
                return Err(self.unexpected("INDEX, SCAN or JOIN"));
            }
            self.accept_word("SEEK");
        }
        self.variable()?;
        self.expect(TokenKind::Colon, "':'")?;
        self.schema_name("a label")?;
        if !scan {
            self.expect(TokenKind::LeftParen, "'('")?;
            self.list_of(|parser| parser.schema_name("a property key"))?;
            self.expect(TokenKind::RightParen, "',' or ')'")?;
        }
        Ok(())
    }

    pub(super) fn where_clause(&mut self) -> Result<Option<Expr>> {
        if self.accept_keyword(Keyword::Where) { self.expression().map(Some) } else { Ok(None) }
    }

    pub(super) fn projection(&mut self) -> Result<Projection> {
        let distinct = self.accept_keyword(Keyword::Distinct);
        let star = self.accept(TokenKind::Star);
        let items = if star && !self.accept(TokenKind::Comma) { vec![] } else { self.list_of(Self::item)? };
        let mut order = vec![];
        if self.accept_keyword(Keyword::Order) {
            self.expect_keyword(Keyword::By)?;
            order = self.list_of(Self::sort_item)?;
        }
        let skip = if self.accept_keyword(Keyword::Skip) { Some(self.expression()?) } else { None };
        let limit = if self.accept_keyword(Keyword::Limit) { Some(self.expression()?) } else { None };
        Ok(Projection { distinct, star, items, order, skip, limit, predicate: None })
    }

    pub(super) fn item(&mut self) -> Result<Item> {
        let start = self.token().start as usize;
        let expr = self.expression()?;
        let end = self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(start, |t| t.end as usize);
        let alias = if self.accept_keyword(Keyword::As) { Some(self.variable()?) } else { None };
        // A column of a lone variable has the variable's name, without backticks.
        let text = match &expr.kind {
            ExprKind::Variable(name) => name.clone(),
            _ if alias.is_some() => Default::default(),
            _ => self.text.get(start..end).unwrap_or_default().into(),
        };
        Ok(Item { expr, alias, text })
    }

    fn sort_item(&mut self) -> Result<SortItem> {
        let expr = self.expression()?;
        let descending = self.accept_keyword(Keyword::Desc) || self.accept_keyword(Keyword::Descending);
        if !descending && !self.accept_keyword(Keyword::Asc) {
            self.accept_keyword(Keyword::Ascending);
        }
        Ok(SortItem { expr, descending })
    }

    fn merge_clause(&mut self) -> Result<ClauseKind> {
        self.expect_keyword(Keyword::Merge)?;
        let pattern = self.path_pattern()?;
        let (mut on_create, mut on_match) = (vec![], vec![]);
        while self.accept_keyword(Keyword::On) {
            let items = if self.accept_keyword(Keyword::Create) {
                &mut on_create
            } else if self.accept_keyword(Keyword::Match) {
                &mut on_match
            } else {
                return Err(self.unexpected("CREATE or MATCH"));
            };
            self.expect_keyword(Keyword::Set)?;
            items.append(&mut self.list_of(Self::set_item)?);
        }
        Ok(ClauseKind::Merge { pattern, on_create, on_match })
    }

    fn set_item(&mut self) -> Result<SetItem> {
        let start = self.place();
        let target = self.postfix_expression()?;
        match target.kind {
            ExprKind::Property(base, key) => {
                self.expect(TokenKind::Equal, "'='")?;
                Ok(SetItem::Property { base: *base, key, value: self.expression()? })
            }
            ExprKind::HasLabels(base, test) => {
                let labels = plain_labels(test, start)?;
                Ok(SetItem::Labels { variable: labelled(*base)?, labels })
            }
            ExprKind::Variable(text) => {
                let replace = match self.peek() {
                    TokenKind::Equal => true,
                    TokenKind::PlusEqual => false,
                    _ => return Err(self.unexpected("'=', '+=', '.' or ':'")),
                };
                self.at += 1;
                let variable = Name { text, place: start };
                Ok(SetItem::Map { variable, map: self.expression()?, replace })
            }
            ExprKind::Index(base, key) => {
                self.expect(TokenKind::Equal, "'='")?;
                Ok(SetItem::Computed { base: *base, key: *key, value: self.expression()? })
            }
            _ => Err(Fault::syntax(start.0, "cannot SET this, expected a property, a variable or labels")),
        }
    }

    fn remove_item(&mut self) -> Result<RemoveItem> {
        let start = self.place();
        let target = self.postfix_expression()?;
        match target.kind {
            ExprKind::Property(base, key) => Ok(RemoveItem::Property { base: *base, key }),
            ExprKind::HasLabels(base, test) => {
                let labels = plain_labels(test, start)?;
                Ok(RemoveItem::Labels { variable: labelled(*base)?, labels })
            }
            ExprKind::Index(base, key) => Ok(RemoveItem::Computed { base: *base, key: *key }),
            _ => Err(Fault::syntax(start.0, "cannot REMOVE this, expected a property or labels")),
        }
    }
}

/// Returns the labels that are set or removed.
fn plain_labels(test: LabelTest, place: Place) -> Result<Vec<Label>> {
    let labels = test.all().map(|labels| labels.into_iter().cloned().collect());
    labels.ok_or_else(|| {
        Fault::syntax(place.0, "only labels can be set and removed, expected no '|', '!' or '%'")
    })
}

/// Returns the variable whose labels are set or removed.
fn labelled(base: Expr) -> Result<Name> {
    match base.kind {
        ExprKind::Variable(text) => Ok(Name { text, place: base.place }),
        _ => Err(Fault::syntax(
            base.place.0,
            "labels are set on and removed from variables, expected one before ':'",
        )),
    }
}
