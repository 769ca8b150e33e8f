//! Commands: `CREATE INDEX …`, `DROP CONSTRAINT …`, `SHOW INDEXES`, `TERMINATE TRANSACTIONS …` …

use super::Parser;
use crate::ast::{Clause, ClauseKind, ExprKind, Place, Projection, Query, SingleQuery};
use crate::command::{Command, Show, TERMINATED_COLUMNS, TransactionCommand};
use crate::fault::{Fault, Result};
use crate::lower;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::Plan;
use tidegraph_types::Str;

/// Kinds of indexes that other databases have.
const OTHER_INDEXES: &[&str] = &["TEXT", "POINT", "FULLTEXT", "LOOKUP", "VECTOR", "BTREE"];

impl Parser<'_> {
    /// Parses a command. `None`: the text does not begin like one.
    pub(super) fn command(&mut self) -> Result<Option<Command>> {
        let command = if self.accept_keyword(Keyword::Create) {
            self.schema_create()?
        } else if self.accept_word("DROP") {
            self.schema_drop()?
        } else if self.accept_word("SHOW") {
            self.show()?
        } else if self.accept_word("TERMINATE") {
            self.terminate()?
        } else {
            None
        };
        if command.is_some() {
            self.accept(TokenKind::Semicolon);
            if self.peek() != TokenKind::End {
                return Err(self.unexpected("the end of the command"));
            }
        }
        Ok(command)
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect_word(&mut self, word: &str) -> Result<()> {
        if self.accept_word(word) { Ok(()) } else { Err(self.unexpected(word)) }
    }

    fn unsupported(&self, name: impl Into<String>) -> Fault {
        Fault::unsupported(self.place().0, name)
    }

    fn schema_create(&mut self) -> Result<Option<Command>> {
        if self.peek_at(1) == TokenKind::Equal {
            // The word is the variable of a path.
            return Ok(None);
        }
        if let Some(kind) = OTHER_INDEXES.iter().find(|kind| self.at_word(kind)) {
            return match self.peek_at(1) {
                TokenKind::Word => Err(self.unsupported(format!("{kind} INDEX"))),
                _ => Ok(None),
            };
        }
        if self.at_word("RANGE") && self.peek_at(1) == TokenKind::Word {
            self.at += 1;
            self.expect_word("INDEX")?;
        } else if self.accept_word("INDEX") {
        } else if self.accept_word("CONSTRAINT") {
            return self.create_constraint().map(Some);
        } else {
            return Ok(None);
        }
        if self.peek() == TokenKind::Keyword(Keyword::On) {
            return Err(self.unsupported("CREATE INDEX ON (write CREATE INDEX FOR (n:Label) ON (n.key))"));
        }
        let (name, if_not_exists) = self.name_and_condition()?;
        let (variable, label) = self.schema_vertex()?;
        self.expect_keyword(Keyword::On)?;
        if self.at_word("EACH") {
            return Err(self.unsupported("FULLTEXT INDEX"));
        }
        self.expect(TokenKind::LeftParen, "'('")?;
        let key = self.schema_property(&variable)?;
        if self.peek() == TokenKind::Comma {
            return Err(self.unsupported("composite index"));
        }
        self.expect(TokenKind::RightParen, "')'")?;
        self.refuse_options()?;
        Ok(Some(Command::Create { name, label, key, unique: false, if_not_exists }))
    }

    fn create_constraint(&mut self) -> Result<Command> {
        if self.peek() == TokenKind::Keyword(Keyword::On) {
            let name = "CREATE CONSTRAINT ON (write CREATE CONSTRAINT FOR (n:Label) REQUIRE n.key IS UNIQUE)";
            return Err(self.unsupported(name));
        }
        let (name, if_not_exists) = self.name_and_condition()?;
        let (variable, label) = self.schema_vertex()?;
        self.expect_word("REQUIRE")?;
        let bracket = self.accept(TokenKind::LeftParen);
        let key = self.schema_property(&variable)?;
        if bracket {
            if self.peek() == TokenKind::Comma {
                return Err(self.unsupported("composite constraint"));
            }
            self.expect(TokenKind::RightParen, "')'")?;
        }
        self.expect_keyword(Keyword::Is)?;
        match self.peek() {
            TokenKind::Keyword(Keyword::Not) => return Err(self.unsupported("property existence constraint")),
            TokenKind::Colon => return Err(self.unsupported("property type constraint")),
            _ => {}
        }
        self.accept_word("NODE");
        if self.at_word("KEY") {
            return Err(self.unsupported("node key constraint"));
        }
        self.expect_word("UNIQUE")?;
        self.refuse_options()?;
        Ok(Command::Create { name, label, key, unique: true, if_not_exists })
    }

    /// `[name] [IF NOT EXISTS]`
    fn name_and_condition(&mut self) -> Result<(Option<Str>, bool)> {
        let name = if self.at_word("FOR") || self.at_word("IF") { None } else { Some(self.schema_entry()?) };
        let condition = self.accept_word("IF");
        if condition {
            self.expect_keyword(Keyword::Not)?;
            self.expect_keyword(Keyword::Exists)?;
        }
        Ok((name, condition))
    }

    /// The name of an index or constraint.
    fn schema_entry(&mut self) -> Result<Str> {
        if self.peek() == TokenKind::Dollar {
            return Err(self.unsupported("parameter as a name"));
        }
        self.schema_name("a name")
    }

    /// `FOR (n:Label)`: the variable and the label.
    fn schema_vertex(&mut self) -> Result<(Str, Str)> {
        self.expect_word("FOR")?;
        self.expect(TokenKind::LeftParen, "'('")?;
        if self.peek() == TokenKind::RightParen {
            return Err(self.unsupported("index or constraint over relationships"));
        }
        let variable = self.variable()?.text;
        self.expect(TokenKind::Colon, "':' and a label")?;
        let label = self.schema_name("a label")?;
        if matches!(self.peek(), TokenKind::Colon | TokenKind::Bar | TokenKind::Ampersand) {
            return Err(self.unsupported("index or constraint over several labels"));
        }
        self.expect(TokenKind::RightParen, "')'")?;
        Ok((variable, label))
    }

    /// `n.key`
    fn schema_property(&mut self, variable: &Str) -> Result<Str> {
        let place = self.place();
        let name = self.variable()?.text;
        if name != *variable {
            return Err(Fault::syntax(place.0, format!("variable `{name}` is not defined")));
        }
        self.expect(TokenKind::Dot, "'.' and a property key")?;
        self.schema_name("a property key")
    }

    fn refuse_options(&self) -> Result<()> {
        if self.at_word("OPTIONS") { Err(self.unsupported("OPTIONS")) } else { Ok(()) }
    }

    fn schema_drop(&mut self) -> Result<Option<Command>> {
        let unique = if self.accept_word("INDEX") {
            false
        } else if self.accept_word("CONSTRAINT") {
            true
        } else {
            return Ok(None);
        };
        if self.peek() == TokenKind::Keyword(Keyword::On) {
            return Err(self.unsupported("DROP … ON (write the name)"));
        }
        let name = self.schema_entry()?;
        let if_exists = self.accept_word("IF");
        if if_exists {
            self.expect_keyword(Keyword::Exists)?;
        }
        Ok(Some(Command::Drop { name, unique, if_exists }))
    }

    fn show(&mut self) -> Result<Option<Command>> {
        let start = self.at - 1;
        self.accept_keyword(Keyword::All);
        let names = [
            ("INDEXES", Show::Indexes),
            ("INDEX", Show::Indexes),
            ("CONSTRAINTS", Show::Constraints),
            ("CONSTRAINT", Show::Constraints),
            ("PROCEDURES", Show::Procedures),
            ("PROCEDURE", Show::Procedures),
            ("FUNCTIONS", Show::Functions),
            ("FUNCTION", Show::Functions),
            ("DATABASES", Show::Databases),
            ("DATABASE", Show::Databases),
            ("TRANSACTIONS", Show::Transactions(None)),
            ("TRANSACTION", Show::Transactions(None)),
        ];
        for kind in ["BUILT", "RANGE", "UNIQUE", "UNIQUENESS"] {
            let is_kind = matches!(self.peek_at(1), TokenKind::Word | TokenKind::Keyword(Keyword::In));
            if self.at_word(kind) && is_kind {
                self.at += 1;
                self.accept_keyword(Keyword::In);
                break;
            }
        }
        let Some((_, what)) = names.into_iter().find(|(name, _)| self.accept_word(name)) else {
            return Ok(None);
        };
        let what = match what {
            Show::Transactions(_) if !self.ends_ids() => Show::Transactions(Some(self.transaction_ids(&[])?)),
            other => other,
        };
        let columns = if self.at_word("YIELD") { what.columns() } else { what.brief_columns() };
        let over_rows = self.over_rows(columns)?;
        if matches!(what, Show::Transactions(_)) && self.transactions_ahead() {
            return self.composed(start).map(Some);
        }
        Ok(Some(Command::Show { what, over_rows }))
    }

    fn terminate(&mut self) -> Result<Option<Command>> {
        let start = self.at - 1;
        if !self.accept_word("TRANSACTIONS") && !self.accept_word("TRANSACTION") {
            return Ok(None);
        }
        if self.ends_ids() {
            return Err(self.unexpected("the id of a transaction"));
        }
        let ids = self.transaction_ids(&[])?;
        let over_rows = self.over_rows(TERMINATED_COLUMNS)?;
        if self.transactions_ahead() {
            return self.composed(start).map(Some);
        }
        Ok(Some(Command::Terminate { ids, over_rows }))
    }

    /// Whether another command about transactions follows.
    fn transactions_ahead(&self) -> bool {
        self.at_word("SHOW") || self.at_word("TERMINATE")
    }

    /// `SHOW TRANSACTIONS YIELD … TERMINATE TRANSACTIONS … YIELD … RETURN …`, from the token `start` on. Each command sees
    /// the names that those before it yield.
    fn composed(&mut self, start: usize) -> Result<Command> {
        self.at = start;
        let (mut parts, mut names): (Vec<TransactionCommand>, Vec<Str>) = (vec![], vec![]);
        loop {
            let terminates = self.accept_word("TERMINATE");
            if !terminates {
                self.expect_word("SHOW")?;
            }
            if !self.accept_word("TRANSACTION") {
                self.expect_word("TRANSACTIONS")?;
            }
            let ids = match self.ends_ids() {
                true if terminates => return Err(self.unexpected("the id of a transaction")),
                true => None,
                false => Some(self.transaction_ids(&names)?),
            };
            let place = self.place();
            self.expect_word("YIELD")?;
            let mut yielded = self.projection()?;
            let all = Show::Transactions(None);
            let columns = if terminates { TERMINATED_COLUMNS } else { all.columns() };
            let yields = yielded_columns(&mut yielded, columns, &mut names, place)?;
            yielded.predicate = self.where_clause()?;
            let mut clauses = vec![Clause { kind: ClauseKind::With(Box::new(yielded)), place }];
            let (ends, place) = (!self.transactions_ahead(), self.place());
            let returns = ends && self.accept_keyword(Keyword::Return);
            let last = if returns { self.projection()? } else { Projection::star() };
            clauses.push(Clause { kind: ClauseKind::Return(Box::new(last)), place });
            let over_rows = self.plan_over(clauses, &borrowed(&names), place)?;
            names = over_rows.columns.iter().map(|column| column.name.clone()).collect();
            parts.push(TransactionCommand { terminates, ids, yields, over_rows });
            if ends {
                return Ok(Command::Composed(parts));
            }
        }
    }

    /// Whether no ids of transactions follow.
    fn ends_ids(&self) -> bool {
        self.at_word("YIELD")
            || matches!(
                self.peek(),
                TokenKind::Keyword(Keyword::Where) | TokenKind::Semicolon | TokenKind::End
            )
    }

    /// Ids of transactions: expressions over these names.
    fn transaction_ids(&mut self, names: &[Str]) -> Result<Box<Plan>> {
        let place = self.place();
        let items = self.list_of(Self::item)?;
        let ids = ClauseKind::Return(Box::new(Projection { star: false, items, ..Projection::star() }));
        self.plan_over(vec![Clause { kind: ids, place }], &borrowed(names), place)
    }

    /// A plan over the rows of a command; `None` if no clause follows it.
    fn over_rows(&mut self, columns: &[&str]) -> Result<Option<Box<Plan>>> {
        let place = self.place();
        let clauses = self.show_clauses(place)?;
        if clauses.is_empty() { Ok(None) } else { self.plan_over(clauses, columns, place).map(Some) }
    }

    fn plan_over(&self, clauses: Vec<Clause>, columns: &[&str], place: Place) -> Result<Box<Plan>> {
        let query = Query { parts: vec![SingleQuery { clauses, place }], union_all: false, timeout: None };
        lower::batches::over_rows(&query, columns, self.limits).map(Box::new)
    }

    /// `YIELD … WHERE … RETURN …`, or `WHERE …`; empty if there is neither.
    fn show_clauses(&mut self, place: Place) -> Result<Vec<Clause>> {
        let yields = self.accept_word("YIELD");
        let star = Projection::star();
        if !yields {
            let Some(predicate) = self.where_clause()? else { return Ok(vec![]) };
            let with = ClauseKind::With(Box::new(Projection { predicate: Some(predicate), ..star.clone() }));
            let all = ClauseKind::Return(Box::new(star));
            return Ok(vec![Clause { kind: with, place }, Clause { kind: all, place }]);
        }
        let mut yielded = self.projection()?;
        yielded.predicate = self.where_clause()?;
        let mut clauses = vec![Clause { kind: ClauseKind::With(Box::new(yielded)), place }];
        let place = self.place();
        let last = if self.accept_keyword(Keyword::Return) { self.projection()? } else { star };
        clauses.push(Clause { kind: ClauseKind::Return(Box::new(last)), place });
        Ok(clauses)
    }
}

/// Replaces the items of a YIELD by `*`, and returns the positions of the columns that they name. Adds their new names.
fn yielded_columns(
    yielded: &mut Projection,
    columns: &[&str],
    names: &mut Vec<Str>,
    place: Place,
) -> Result<Vec<usize>> {
    let mut found: Vec<(usize, Str, Place)> = vec![];
    if yielded.star {
        found.extend(columns.iter().enumerate().map(|(at, name)| (at, Str::from(*name), place)));
    }
    for item in &yielded.items {
        let place = item.expr.place;
        let ExprKind::Variable(name) = &item.expr.kind else {
            return Err(Fault::syntax(place.0, "YIELD of several commands takes names of columns"));
        };
        let Some(at) = columns.iter().position(|column| *column == &**name) else {
            return Err(Fault::syntax(place.0, format!("variable `{name}` is not defined")));
        };
        found.push((at, item.alias.as_ref().map_or_else(|| name.clone(), |alias| alias.text.clone()), place));
    }
    (yielded.star, yielded.items) = (true, vec![]);
    let add = |(at, name, place): (usize, Str, Place)| {
        if names.contains(&name) {
            return Err(Fault::syntax(place.0, format!("variable `{name}` is already declared")));
        }
        names.push(name);
        Ok(at)
    };
    found.into_iter().map(add).collect()
}

fn borrowed(names: &[Str]) -> Vec<&str> {
    names.iter().map(|name| &**name).collect()
}
