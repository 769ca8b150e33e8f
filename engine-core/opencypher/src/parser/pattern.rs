//! Patterns: paths of vertices and edges, in MATCH, CREATE, MERGE and inside expressions.

use super::Parser;
use crate::ast::{EdgePattern, NodePattern, PathPattern, Properties};
use crate::fault::{Fault, Result};
use crate::literal;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::{Length, Shortest};
use tidegraph_types::{Direction, Str};

impl Parser<'_> {
    /// `p = (a)-[r]->(b)`, `shortestPath(…)`.
    pub(super) fn path_pattern(&mut self) -> Result<PathPattern> {
        let place = self.place();
        let mut variable = None;
        if self.at_variable() && self.peek_at(1) == TokenKind::Equal {
            variable = Some(self.variable()?);
            self.expect(TokenKind::Equal, "'='")?;
        }
        let mut path = match self.shortest_ahead() {
            Some(shortest) => self.shortest_path(shortest)?,
            None => self.path_chain()?,
        };
        path.variable = variable;
        path.place = place;
        Ok(path)
    }

    /// Whether `shortestPath(` or `allShortestPaths(` comes next.
    pub(super) fn shortest_ahead(&self) -> Option<Shortest> {
        if self.peek_at(1) != TokenKind::LeftParen {
            return None;
        }
        if self.at_word("shortestPath") {
            Some(Shortest::One)
        } else if self.at_word("allShortestPaths") {
            Some(Shortest::All)
        } else {
            None
        }
    }

    /// `shortestPath((a)-[*]->(b))`; the name is next.
    pub(super) fn shortest_path(&mut self, shortest: Shortest) -> Result<PathPattern> {
        let place = self.place();
        self.at += 1;
        self.expect(TokenKind::LeftParen, "'('")?;
        let mut path = self.path_chain()?;
        self.expect(TokenKind::RightParen, "')'")?;
        path.shortest = Some(shortest);
        path.place = place;
        Ok(path)
    }

    /// `(a)-[r]->(b)`, perhaps in parentheses.
    pub(super) fn path_chain(&mut self) -> Result<PathPattern> {
        let place = self.place();
        if self.peek() == TokenKind::LeftParen && self.peek_at(1) == TokenKind::LeftParen {
            self.enter()?;
            self.at += 1;
            let path = self.path_chain()?;
            self.expect(TokenKind::RightParen, "')'")?;
            self.leave();
            if matches!(self.peek(), TokenKind::LeftBrace | TokenKind::Plus | TokenKind::Star) {
                return Err(Fault::unsupported(place.0, "quantified path pattern"));
            }
            return Ok(path);
        }
        let mut nodes = vec![self.node_pattern()?];
        let mut edges = vec![];
        while matches!(self.peek(), TokenKind::Minus | TokenKind::Less) {
            edges.push(self.edge_pattern()?);
            nodes.push(self.node_pattern()?);
        }
        Ok(PathPattern { variable: None, shortest: None, nodes, edges, place })
    }

    fn node_pattern(&mut self) -> Result<NodePattern> {
        self.limits.charge(size_of::<NodePattern>() + size_of::<EdgePattern>())?;
        let place = self.place();
        self.expect(TokenKind::LeftParen, "'(' of a node")?;
        // A keyword is tried too: the error then says that it is reserved.
        let named = match self.peek() {
            TokenKind::Keyword(keyword) => !matches!(keyword, Keyword::Where | Keyword::Is),
            _ => self.at_variable(),
        };
        let variable = if named { Some(self.variable()?) } else { None };
        let labels = if self.peek() == TokenKind::Colon { self.labels()? } else { vec![] };
        let properties = self.properties()?;
        if self.peek() == TokenKind::Keyword(Keyword::Where) {
            return Err(Fault::unsupported(self.place().0, "WHERE inside a node pattern"));
        }
        if self.peek() == TokenKind::Keyword(Keyword::Is) {
            return Err(Fault::unsupported(self.place().0, "label expression"));
        }
        self.expect(TokenKind::RightParen, "':', '{' or ')'")?;
        Ok(NodePattern { variable, labels, properties, place })
    }

    /// `:Label:Label`; the colon is next.
    pub(super) fn labels(&mut self) -> Result<Vec<Str>> {
        let mut labels = vec![];
        while self.accept(TokenKind::Colon) {
            if matches!(self.peek(), TokenKind::Exclamation | TokenKind::Percent | TokenKind::LeftParen) {
                return Err(Fault::unsupported(self.place().0, "label expression"));
            }
            labels.push(self.schema_name("a label")?);
            if self.peek() == TokenKind::Ampersand
                || (self.peek() == TokenKind::Bar && self.in_node_pattern())
            {
                return Err(Fault::unsupported(self.place().0, "label expression"));
            }
        }
        Ok(labels)
    }

    /// Whether the bar after a label joins labels of a node pattern. In `[x IN list WHERE x:Label | x]` it does not.
    fn in_node_pattern(&self) -> bool {
        // In `(n:A|B)` and `(:A|B {…})`, only names and colons stand between the parenthesis and the bar.
        let before = self.tokens.get(..self.at).unwrap_or_default();
        let mut back = before.iter().rev().map(|t| t.kind);
        back.find(|k| {
            !matches!(k, TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_) | TokenKind::Colon)
        }) == Some(TokenKind::LeftParen)
    }

    fn properties(&mut self) -> Result<Properties> {
        match self.peek() {
            TokenKind::LeftBrace => Ok(Properties::Map(self.map_entries()?)),
            TokenKind::Dollar => {
                let place = self.place();
                Ok(Properties::Parameter(self.parameter()?, place))
            }
            _ => Ok(Properties::None),
        }
    }

    fn edge_pattern(&mut self) -> Result<EdgePattern> {
        let place = self.place();
        let left = self.accept(TokenKind::Less);
        self.expect(TokenKind::Minus, "'-'")?;
        let mut edge = EdgePattern {
            variable: None,
            types: vec![],
            properties: Properties::None,
            direction: Direction::Both,
            length: None,
            place,
        };
        if self.accept(TokenKind::LeftBracket) {
            if self.at_variable() {
                edge.variable = Some(self.variable()?);
            }
            if self.peek() == TokenKind::Colon {
                edge.types = self.types()?;
            }
            if self.peek() == TokenKind::Star {
                edge.length = Some(self.length()?);
            }
            edge.properties = self.properties()?;
            if self.peek() == TokenKind::Keyword(Keyword::Where) {
                return Err(Fault::unsupported(self.place().0, "WHERE inside a relationship pattern"));
            }
            self.expect(TokenKind::RightBracket, "':', '*', '{' or ']'")?;
        }
        self.expect(TokenKind::Minus, "'-'")?;
        let right = self.accept(TokenKind::Greater);
        edge.direction = match (left, right) {
            (true, false) => Direction::In,
            (false, true) => Direction::Out,
            _ => Direction::Both,
        };
        if matches!(self.peek(), TokenKind::LeftBrace | TokenKind::Plus | TokenKind::Star) {
            return Err(Fault::unsupported(self.place().0, "quantified relationship"));
        }
        Ok(edge)
    }

    /// `:A|B|:C`; the colon is next.
    fn types(&mut self) -> Result<Vec<Str>> {
        self.expect(TokenKind::Colon, "':'")?;
        let mut types = vec![];
        loop {
            if matches!(self.peek(), TokenKind::Exclamation | TokenKind::Percent | TokenKind::LeftParen) {
                return Err(Fault::unsupported(self.place().0, "label expression"));
            }
            types.push(self.schema_name("a relationship type")?);
            if self.peek() == TokenKind::Ampersand {
                return Err(Fault::unsupported(self.place().0, "label expression"));
            }
            if !self.accept(TokenKind::Bar) {
                return Ok(types);
            }
            self.accept(TokenKind::Colon);
        }
    }

    /// `*`, `*n`, `*n..`, `*..m`, `*n..m`; the star is next.
    fn length(&mut self) -> Result<Length> {
        self.expect(TokenKind::Star, "'*'")?;
        let low = self.length_bound()?;
        if self.accept(TokenKind::DotDot) {
            return Ok(Length { min: low.unwrap_or(1), max: self.length_bound()? });
        }
        Ok(low.map_or(Length { min: 1, max: None }, |n| Length { min: n, max: Some(n) }))
    }

    fn length_bound(&mut self) -> Result<Option<u32>> {
        let token = self.token();
        if !self.accept(TokenKind::Integer) {
            return Ok(None);
        }
        let value = literal::integer(self.slice(token), false, token.start)?;
        u32::try_from(value)
            .map(Some)
            .map_err(|_| Fault::syntax(token.start, format!("path length {value} is too large")))
    }

    /// Whether the `(` at this distance in tokens starts a pattern with at least one edge instead of an expression in
    /// parentheses.
    pub(super) fn edge_chain_ahead(&self, from: usize) -> bool {
        let node = match self.peek_at(from + 1) {
            TokenKind::RightParen | TokenKind::Colon | TokenKind::LeftBrace => true,
            TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_) => {
                matches!(
                    self.peek_at(from + 2),
                    TokenKind::RightParen | TokenKind::Colon | TokenKind::LeftBrace
                )
            }
            _ => false,
        };
        let Some(mut next) = node.then(|| self.after_bracket(from)).flatten() else { return false };
        if self.peek_at(next) == TokenKind::Less {
            next += 1;
        }
        if self.peek_at(next) != TokenKind::Minus {
            return false;
        }
        next += 1;
        if self.peek_at(next) == TokenKind::LeftBracket {
            match self.after_bracket(next) {
                Some(after) => next = after,
                None => return false,
            }
        }
        if self.peek_at(next) != TokenKind::Minus {
            return false;
        }
        next += 1;
        if self.peek_at(next) == TokenKind::Greater {
            next += 1;
        }
        self.peek_at(next) == TokenKind::LeftParen
    }
}
