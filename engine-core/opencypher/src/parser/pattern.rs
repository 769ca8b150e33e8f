//! Patterns: paths of vertices and edges, in MATCH, CREATE, MERGE and inside expressions.

use super::Parser;
use crate::ast::{Choice, EdgePattern, Name, NodePattern, PathMode, PathPattern, Place, Properties};
use crate::fault::{Fault, Result};
use crate::literal;
use crate::token::{Keyword, TokenKind};
use tidegraph_plan::{Length, Shortest};
use tidegraph_types::Direction;

impl Parser<'_> {
    /// `p = (a)-[r]->(b)`, `shortestPath(…)`.
    pub(super) fn path_pattern(&mut self) -> Result<PathPattern> {
        let place = self.place();
        let mut variable = None;
        if self.at_variable() && self.peek_at(1) == TokenKind::Equal {
            variable = Some(self.variable()?);
            self.expect(TokenKind::Equal, "'='")?;
        }
        let shortest = self.shortest_ahead();
        let selector = self.selector()?;
        let mode = self.path_mode()?;
        let path = match (shortest, selector) {
            (Some(shortest), None) => self.shortest_path(shortest)?,
            (_, None) => self.path_chain()?,
            (_, Some(choice)) => {
                let mut path = self.path_chain()?;
                path.selector = true;
                if let Some(edge) = path.edges.iter().find(|edge| edge.length.is_some() && !edge.quantified) {
                    let message = "a relationship of variable length behind SHORTEST or ANY is not allowed, expected \
                                   a quantifier, such as -[r]->{1,3}";
                    return Err(Fault::syntax(edge.place.0, message));
                }
                let [edge @ EdgePattern { quantified: true, .. }] = &mut path.edges[..] else {
                    path.picks = Some(choice);
                    return with_head(path, variable, mode, place);
                };
                // The search for a shortest path knows neither conditions of modes nor least lengths.
                let is_tested = mode.and_then(PathMode::test).is_some();
                let is_search = edge.group.is_none() && edge.length.is_some_and(|length| length.min <= 1);
                match choice {
                    Choice { count: 1, groups } if is_search && !is_tested => {
                        path.shortest = Some(if groups { Shortest::All } else { Shortest::One });
                    }
                    _ => {
                        self.wrap_in_group(edge)?;
                        path.choice = Some(choice);
                    }
                }
                path
            }
        };
        with_head(path, variable, mode, place)
    }

    /// `ANY SHORTEST`, `SHORTEST 2 PATHS`, `ALL SHORTEST`, `SHORTEST 2 GROUPS`, `ANY 2` before a pattern.
    fn selector(&mut self) -> Result<Option<Choice>> {
        let is_all = self.peek() == TokenKind::Keyword(Keyword::All);
        let is_any = self.at_word("ANY");
        let words = usize::from(is_all || is_any);
        let next = self.tokens.get(self.at + words).copied();
        let is_shortest = next.is_some_and(|token| {
            token.kind == TokenKind::Word && self.slice(token).eq_ignore_ascii_case("SHORTEST")
        });
        let ends = self.peek_at(words + usize::from(is_shortest));
        let is_selector = (is_shortest || is_any)
            && matches!(
                ends,
                TokenKind::LeftParen | TokenKind::Integer | TokenKind::Dollar | TokenKind::Word
            );
        if !is_selector {
            return Ok(None);
        }
        self.at += words + usize::from(is_shortest);
        let token = self.token();
        let count = if self.accept(TokenKind::Integer) {
            let count = literal::integer(self.slice(token), false, token.start)?;
            match u32::try_from(count) {
                Ok(count @ 1..) => count,
                _ => {
                    let message = format!("a selector takes a number from 1 to {}, not {count}", u32::MAX);
                    return Err(Fault::syntax(token.start, message));
                }
            }
        } else {
            1
        };
        for word in ["PATHS", "PATH"] {
            if self.accept_word(word) {
                break;
            }
        }
        let groups = is_shortest && (self.accept_word("GROUPS") || self.accept_word("GROUP"));
        Ok(Some(Choice { count, groups: groups || is_all }))
    }

    /// Makes a path of a clause with `REPEATABLE ELEMENTS`. Its quantifiers need a bound unless something else ends the
    /// search: a mode without repeated relationships, or the first arrival at each node.
    pub(super) fn repeat_elements(&self, path: &mut PathPattern) -> Result<()> {
        path.repeats = true;
        if path.mode.is_some_and(PathMode::is_trail) {
            return Ok(());
        }
        if path.shortest.is_some() && !path.selector {
            let message = "shortestPath() under REPEATABLE ELEMENTS is not allowed, expected ANY SHORTEST";
            return Err(Fault::syntax(path.place.0, message));
        }
        if let Some(which) = path.shortest.take() {
            path.choice = Some(Choice { count: 1, groups: which == Shortest::All });
        }
        let first_arrivals = path.choice.is_some_and(|choice| choice.count == 1) && path.filter.is_none();
        for edge in path.edges.iter_mut().filter(|edge| edge.length.is_some()) {
            let is_step = edge.group.as_ref().is_none_or(|group| group.edges.len() == 1);
            let ends = edge
                .length
                .is_some_and(|Length { min, max }| max.is_some() || first_arrivals && is_step && min <= 1);
            if !ends {
                let message = "a quantifier without an upper bound under REPEATABLE ELEMENTS is not allowed, \
                               expected an upper bound, or TRAIL, ACYCLIC, SIMPLE, ANY SHORTEST or ALL SHORTEST";
                return Err(Fault::syntax(edge.place.0, message));
            }
            self.wrap_in_group(edge)?;
            if let Some(group) = &mut edge.group {
                group.repeats = true;
            }
        }
        Ok(())
    }

    /// `WALK`, `TRAIL`, `ACYCLIC`, `SIMPLE`, perhaps with `PATHS`, before a pattern.
    fn path_mode(&mut self) -> Result<Option<PathMode>> {
        let has_noun = matches!(self.peek_at(1), TokenKind::Word) && self.peek_at(2) == TokenKind::LeftParen;
        if !has_noun && self.peek_at(1) != TokenKind::LeftParen {
            return Ok(None);
        }
        let mode = if self.at_word("WALK") {
            PathMode::Walk
        } else if self.at_word("TRAIL") {
            PathMode::Trail
        } else if self.at_word("ACYCLIC") {
            PathMode::Acyclic
        } else if self.at_word("SIMPLE") {
            PathMode::Simple
        } else {
            return Ok(None);
        };
        self.at += 1;
        if has_noun && !self.accept_word("PATHS") && !self.accept_word("PATH") {
            return Err(self.unexpected("'(', PATH or PATHS"));
        }
        Ok(Some(mode))
    }

    /// Turns a quantified relationship into the quantified path pattern that means the same.
    fn wrap_in_group(&self, edge: &mut EdgePattern) -> Result<()> {
        if edge.group.is_some() {
            return Ok(());
        }
        let place = edge.place;
        let nodes = vec![self.anonymous_node(place)?, self.anonymous_node(place)?];
        let inner = EdgePattern { length: None, quantified: false, ..edge.clone() };
        let group = PathPattern { nodes, edges: vec![inner], ..empty_path(place) };
        let length = edge.length.unwrap_or(Length { min: 1, max: Some(1) });
        *edge = quantified(group, length, place)?;
        Ok(())
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

    /// `(a)-[r]->(b)`, perhaps in parentheses, with quantified path patterns.
    pub(super) fn path_chain(&mut self) -> Result<PathPattern> {
        let place = self.place();
        let mut path = empty_path(place);
        loop {
            let misses_node = path.nodes.len() == path.edges.len();
            if self.group_ahead() {
                let place = self.place();
                let group = self.parenthesized()?;
                let Some(length) = self.quantifier()? else {
                    let next =
                        matches!(self.peek(), TokenKind::LeftParen | TokenKind::Minus | TokenKind::Less);
                    if path.nodes.is_empty() && !next {
                        return Ok(group);
                    }
                    let construct = "parenthesized path pattern without quantifier beside other patterns";
                    return Err(Fault::unsupported(place.0, construct));
                };
                if misses_node {
                    path.nodes.push(self.anonymous_node(place)?);
                }
                path.edges.push(quantified(group, length, place)?);
            } else if path.nodes.is_empty() || (misses_node && self.peek() == TokenKind::LeftParen) {
                path.nodes.push(self.node_pattern()?);
                while matches!(self.peek(), TokenKind::Minus | TokenKind::Less) {
                    path.edges.push(self.edge_pattern()?);
                    path.nodes.push(self.node_pattern()?);
                }
            } else {
                break;
            }
        }
        if path.nodes.len() == path.edges.len() {
            path.nodes.push(self.anonymous_node(self.place())?);
        }
        Ok(path)
    }

    /// Whether a path in parentheses comes next.
    fn group_ahead(&self) -> bool {
        let is_name = matches!(self.peek_at(1), TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_));
        self.peek() == TokenKind::LeftParen
            && (self.peek_at(1) == TokenKind::LeftParen || (is_name && self.peek_at(2) == TokenKind::Equal))
    }

    /// `((a)-[r]->(b) WHERE a.x < b.x)`
    fn parenthesized(&mut self) -> Result<PathPattern> {
        self.enter()?;
        self.expect(TokenKind::LeftParen, "'('")?;
        let mut name = None;
        if self.peek() != TokenKind::LeftParen {
            name = Some(self.variable()?);
            self.expect(TokenKind::Equal, "'='")?;
        }
        let mut path = self.path_chain()?;
        if let (Some(_), Some(inner)) = (&name, &path.variable) {
            let message = format!("path `{}` has a name outside of its parentheses already", inner.text);
            return Err(Fault::syntax(inner.place.0, message));
        }
        path.variable = name.or(path.variable);
        let place = self.place();
        if let Some(filter) = self.bracketed(false, Self::where_clause)? {
            if path.filter.is_some() {
                return Err(Fault::syntax(place.0, "a second WHERE for the same path pattern"));
            }
            path.filter = Some(Box::new(filter));
        }
        self.expect(TokenKind::RightParen, "WHERE or ')'")?;
        self.leave();
        Ok(path)
    }

    fn anonymous_node(&self, place: Place) -> Result<NodePattern> {
        self.limits.charge(size_of::<NodePattern>() + size_of::<EdgePattern>())?;
        Ok(NodePattern { variable: None, labels: None, properties: Properties::None, filter: None, place })
    }

    fn node_pattern(&mut self) -> Result<NodePattern> {
        self.bracketed(false, Self::node_pattern_inside)
    }

    fn node_pattern_inside(&mut self) -> Result<NodePattern> {
        self.limits.charge(size_of::<NodePattern>() + size_of::<EdgePattern>())?;
        let place = self.place();
        self.expect(TokenKind::LeftParen, "'(' of a node")?;
        // A keyword is tried too: the error then says that it is reserved.
        let named = match self.peek() {
            TokenKind::Keyword(keyword) => !matches!(keyword, Keyword::Where | Keyword::Is),
            _ => self.at_variable(),
        };
        let variable = if named { Some(self.variable()?) } else { None };
        let labels = if self.labels_ahead() { Some(self.label_test("a label")?) } else { None };
        let properties = self.properties()?;
        let filter = self.where_clause()?.map(Box::new);
        self.expect(TokenKind::RightParen, "':', '{' or ')'")?;
        Ok(NodePattern { variable, labels, properties, filter, place })
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
        self.bracketed(false, Self::edge_pattern_inside)
    }

    fn edge_pattern_inside(&mut self) -> Result<EdgePattern> {
        let place = self.place();
        let left = self.accept(TokenKind::Less);
        self.expect(TokenKind::Minus, "'-'")?;
        let mut edge = EdgePattern {
            variable: None,
            types: None,
            properties: Properties::None,
            filter: None,
            direction: Direction::Both,
            length: None,
            quantified: false,
            group: None,
            place,
        };
        if self.accept(TokenKind::LeftBracket) {
            if self.at_variable() {
                edge.variable = Some(self.variable()?);
            }
            if self.labels_ahead() {
                edge.types = Some(self.label_test("a relationship type")?);
            }
            if self.peek() == TokenKind::Star {
                edge.length = Some(self.length()?);
            }
            edge.properties = self.properties()?;
            edge.filter = self.where_clause()?.map(Box::new);
            self.expect(TokenKind::RightBracket, "':', '*', '{' or ']'")?;
        }
        self.expect(TokenKind::Minus, "'-'")?;
        let right = self.accept(TokenKind::Greater);
        edge.direction = match (left, right) {
            (true, false) => Direction::In,
            (false, true) => Direction::Out,
            _ => Direction::Both,
        };
        if let Some(length) = self.quantifier()? {
            if edge.length.is_some() {
                let message = "a relationship has its length in brackets or after the arrow, not both";
                return Err(Fault::syntax(place.0, message));
            }
            edge.length = Some(length);
            edge.quantified = true;
        }
        Ok(edge)
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

    /// `+`, `*`, `{n}`, `{m,n}`, `{m,}`, `{,n}` after a relationship or a path in parentheses.
    fn quantifier(&mut self) -> Result<Option<Length>> {
        if self.accept(TokenKind::Plus) {
            return Ok(Some(Length { min: 1, max: None }));
        }
        if self.accept(TokenKind::Star) {
            return Ok(Some(Length { min: 0, max: None }));
        }
        let place = self.place();
        if !self.accept(TokenKind::LeftBrace) {
            return Ok(None);
        }
        let low = self.length_bound()?;
        let length = if self.accept(TokenKind::Comma) {
            Length { min: low.unwrap_or(0), max: self.length_bound()? }
        } else {
            let Some(exact) = low else { return Err(self.unexpected("a number of repetitions or ','")) };
            Length { min: exact, max: Some(exact) }
        };
        self.expect(TokenKind::RightBrace, "'}'")?;
        if length.max.is_some_and(|max| max < length.min || max == 0) {
            let message = "a quantifier takes an upper bound of at least 1, and of at least its lower bound";
            return Err(Fault::syntax(place.0, message));
        }
        Ok(Some(length))
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
            TokenKind::Keyword(Keyword::Where | Keyword::Is) => true,
            TokenKind::Word | TokenKind::Quoted | TokenKind::Keyword(_) => {
                matches!(
                    self.peek_at(from + 2),
                    TokenKind::RightParen
                        | TokenKind::Colon
                        | TokenKind::LeftBrace
                        | TokenKind::Keyword(Keyword::Where | Keyword::Is)
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
            // `(a)-->+(b)`; without the arrow's head, `+` may be a sign.
            next = match self.peek_at(next) {
                TokenKind::Plus | TokenKind::Star => next + 1,
                TokenKind::LeftBrace => self.after_bracket(next).unwrap_or(next),
                _ => next,
            };
        }
        self.peek_at(next) == TokenKind::LeftParen
    }
}

/// Adds what stands before a path.
fn with_head(
    mut path: PathPattern,
    variable: Option<Name>,
    mode: Option<PathMode>,
    place: Place,
) -> Result<PathPattern> {
    match (variable, &path.variable) {
        (Some(_), Some(inner)) => {
            let message = format!("path `{}` has a name outside of its parentheses already", inner.text);
            return Err(Fault::syntax(inner.place.0, message));
        }
        (None, inner) => path.named_inside = inner.is_some(),
        (outer, None) => path.variable = outer,
    }
    path.mode = mode;
    path.place = place;
    Ok(path)
}

fn empty_path(place: Place) -> PathPattern {
    let (nodes, edges) = (vec![], vec![]);
    let (variable, shortest, choice, picks, mode, filter) = (None, None, None, None, None, None);
    let (named_inside, repeats, selector) = (false, false, false);
    PathPattern {
        variable,
        named_inside,
        repeats,
        shortest,
        choice,
        picks,
        mode,
        selector,
        nodes,
        edges,
        filter,
        place,
    }
}

/// Makes a quantified path pattern.
fn quantified(group: PathPattern, length: Length, place: Place) -> Result<EdgePattern> {
    if group.edges.is_empty() {
        return Err(Fault::syntax(place.0, "a quantified path pattern needs at least one relationship"));
    }
    if let Some(inner) = group.edges.iter().find(|edge| edge.length.is_some()) {
        let message = match inner {
            EdgePattern { quantified: true, .. } => {
                "a quantifier inside a quantified path pattern is not allowed"
            }
            _ => "a relationship of variable length inside a quantified path pattern is not allowed",
        };
        return Err(Fault::syntax(inner.place.0, message));
    }
    Ok(EdgePattern {
        variable: None,
        types: None,
        properties: Properties::None,
        filter: None,
        direction: Direction::Both,
        length: Some(length),
        quantified: true,
        group: Some(Box::new(group)),
        place,
    })
}
