//! Tokens to syntax tree: recursive descent over gremlin-lang of TinkerPop 3.7 and 3.8.
//!
//! What the grammar accepts is accepted here, also where the compiler will refuse it as not supported yet. Nesting is
//! limited ([`MAX_DEPTH`]) and so is the number of steps ([`MAX_STEPS`]), because everything that walks a tree or a plan
//! does so recursively: no text can exhaust the stack.

use crate::ast::{Arg, ArgKind, Predicate, Request, Step};
use crate::error::Failure;
use crate::lexer::{Kind, Lexer, Token, shorten};
use crate::names;
use jiff::Timestamp;
use tidegraph_types::{Str, Value};

/// How deep traversals, lists, maps and predicates may be nested.
pub const MAX_DEPTH: usize = 64;
/// How many steps a request may have, nested ones included.
pub const MAX_STEPS: usize = 2_000;
/// How many items `1..9` may stand for.
const MAX_RANGE: i64 = 10_000;

type Result<T> = std::result::Result<T, Failure>;

/// Parses one request.
pub(crate) fn parse(text: &str) -> Result<Request<'_>> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, ahead: None, depth: 0, steps: 0 };
    let request = parser.request()?;
    parser.end()?;
    Ok(request)
}

struct Parser<'t> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    ahead: Option<Token<'t>>,
    depth: usize,
    steps: usize,
}

impl<'t> Parser<'t> {
    // ---- tokens

    fn advance(&mut self) -> Result<Token<'t>> {
        let next = match self.ahead.take() {
            Some(token) => token,
            None => self.lexer.next()?,
        };
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn peek(&mut self) -> Result<&Kind<'t>> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().map_or(&Kind::End, |t| &t.kind))
    }

    fn is_sign(&self, sign: char) -> bool {
        self.token.kind == Kind::Sign(sign)
    }

    fn accept(&mut self, sign: char) -> Result<bool> {
        let found = self.is_sign(sign);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    fn expect(&mut self, sign: char) -> Result<()> {
        if self.accept(sign)? { Ok(()) } else { Err(self.expected(&format!("\"{sign}\""))) }
    }

    fn expected(&self, what: &str) -> Failure {
        Failure::syntax(self.token.at, format!("expected {what}, found {}", self.token.kind.describe()))
    }

    fn name(&mut self, what: &str) -> Result<(usize, &'t str)> {
        match self.token.kind {
            Kind::Name(name) => {
                let at = self.advance()?.at;
                Ok((at, name))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(Failure::syntax(self.token.at, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    // ---- requests

    fn request(&mut self) -> Result<Request<'t>> {
        match self.name("\"g\"")? {
            (_, "g") => {}
            (at, other) => {
                return Err(Failure::syntax(at, format!("expected \"g\", found \"{}\"", shorten(other))));
            }
        }
        self.after_g()
    }

    /// What follows `g`.
    fn after_g(&mut self) -> Result<Request<'t>> {
        let (mut configuration, mut steps, mut terminal) = (vec![], vec![], None);
        if !self.is_sign('.') {
            return Err(match self.token.kind {
                Kind::End | Kind::Sign(';') => Failure::unsupported(self.token.at, "g without a step"),
                _ => self.expected("\".\""),
            });
        }
        while self.accept('.')? {
            let (at, name) = self.name("a step")?;
            if terminal.is_some() {
                return Err(Failure::syntax(at, format!("{name}() follows the end of the traversal")));
            }
            if steps.is_empty() && names::is_configuring(name) {
                let args = if name.ends_with("trategies") { self.strategies()? } else { self.args(name)? };
                configuration.push(Step { at, name, args });
            } else if steps.is_empty() && name == "tx" {
                return Err(Failure::unsupported(at, "tx()"));
            } else if !steps.is_empty() && names::is_terminal(name) {
                let args = self.args(name)?;
                terminal = Some(Step { at, name, args });
            } else if steps.is_empty() && !names::is_spawning(name) {
                return Err(if names::is_step(name) {
                    Failure::syntax(at, format!("{name}() cannot follow g"))
                } else {
                    unknown_step(at, name)
                });
            } else {
                steps.push(self.step(at, name)?);
            }
        }
        if steps.is_empty() {
            return Err(Failure::unsupported(self.token.at, "g without a step"));
        }
        Ok(Request { configuration, steps, terminal })
    }

    /// What may follow a request.
    fn end(&mut self) -> Result<()> {
        if self.accept(';')? && self.token.kind != Kind::End {
            return Err(Failure::unsupported(self.token.at, "several statements"));
        }
        match self.token.kind {
            Kind::End => Ok(()),
            Kind::Name("g") => Err(Failure::unsupported(self.token.at, "several statements")),
            _ => Err(self.expected("\".\" or the end of the text")),
        }
    }

    /// Arguments of `withStrategies`, which the compiler refuses: read over with their parentheses balanced.
    fn strategies(&mut self) -> Result<Vec<Arg<'t>>> {
        let mut open = 0_usize;
        loop {
            match self.token.kind {
                Kind::Sign('(') => open += 1,
                Kind::Sign(')') if open <= 1 => {
                    self.advance()?;
                    return Ok(vec![]);
                }
                Kind::Sign(')') => open -= 1,
                Kind::End => return Err(self.expected("\")\"")),
                _ if open == 0 => return Err(self.expected("\"(\"")),
                _ => {}
            }
            self.advance()?;
        }
    }

    // ---- steps

    fn step(&mut self, at: usize, name: &'t str) -> Result<Step<'t>> {
        if !names::is_step(name) && name != "io" {
            return Err(unknown_step(at, name));
        }
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Failure::syntax(at, format!("more than {MAX_STEPS} steps")));
        }
        let args = self.args(name)?;
        Ok(Step { at, name, args })
    }

    /// The rest of a chain of steps whose first is given.
    fn chain(&mut self, first: Step<'t>) -> Result<Vec<Step<'t>>> {
        let mut steps = vec![first];
        while self.accept('.')? {
            let (at, name) = self.name("a step")?;
            steps.push(self.step(at, name)?);
        }
        Ok(steps)
    }

    /// `(` arguments `)`
    fn args(&mut self, name: &str) -> Result<Vec<Arg<'t>>> {
        if !self.is_sign('(') {
            return Err(self.expected(&format!("\"(\" after {}", shorten(name))));
        }
        self.advance()?;
        self.list(')')
    }

    /// Arguments up to and with `close`.
    fn list(&mut self, close: char) -> Result<Vec<Arg<'t>>> {
        self.nested(|p| {
            let mut items = vec![];
            if p.accept(close)? {
                return Ok(items);
            }
            loop {
                items.push(p.arg()?);
                if p.accept(close)? {
                    return Ok(items);
                }
                if !p.accept(',')? {
                    return Err(p.expected(&format!("\",\" or \"{close}\"")));
                }
            }
        })
    }

    // ---- arguments

    fn arg(&mut self) -> Result<Arg<'t>> {
        let at = self.token.at;
        let kind = match &self.token.kind {
            Kind::Text(_) => {
                let Kind::Text(text) = self.advance()?.kind else { return Err(self.expected("a string")) };
                if self.is_sign('.') && *self.peek()? == Kind::Sign('.') {
                    return Err(Failure::unsupported(at, "a range of strings"));
                }
                ArgKind::Text(Str::from(text))
            }
            Kind::Number(_) => {
                let Kind::Number(value) = self.advance()?.kind else { return Err(self.expected("a number")) };
                if self.is_sign('.') && *self.peek()? == Kind::Sign('.') {
                    self.range(at, &value)?
                } else {
                    ArgKind::Value(value)
                }
            }
            Kind::Sign('[') => {
                self.advance()?;
                self.list_or_map()?
            }
            Kind::Sign('{') => {
                self.advance()?;
                ArgKind::Set(self.list('}')?)
            }
            Kind::Name(name) => {
                let name = *name;
                self.advance()?;
                return self.named(at, name);
            }
            Kind::Sign(_) | Kind::End => return Err(self.expected("an argument")),
        };
        Ok(Arg { at, kind })
    }

    /// `low..high`; the lower bound is read, the dots are not.
    fn range(&mut self, at: usize, low: &Value) -> Result<ArgKind<'t>> {
        self.advance()?;
        self.advance()?;
        let high = match &self.token.kind {
            Kind::Number(value) => value.as_i64(),
            _ => None,
        };
        let (Some(low), Some(high)) = (low.as_i64(), high) else {
            return Err(self.expected("an integer"));
        };
        self.advance()?;
        if low.abs_diff(high) >= MAX_RANGE.unsigned_abs() {
            return Err(Failure::unsupported(at, format!("a range of more than {MAX_RANGE} items")));
        }
        let item = |i: i64| {
            let value = i32::try_from(i).map_or(Value::Long(i), Value::Int);
            Arg { at, kind: ArgKind::Value(value) }
        };
        Ok(ArgKind::List(if low <= high {
            (low..=high).map(item).collect()
        } else {
            (high..=low).rev().map(item).collect()
        }))
    }

    /// After `[`: a list, or a map if a colon follows the first item.
    fn list_or_map(&mut self) -> Result<ArgKind<'t>> {
        self.nested(|p| {
            if p.accept(':')? {
                p.expect(']')?;
                return Ok(ArgKind::Map(vec![]));
            }
            if p.accept(']')? {
                return Ok(ArgKind::List(vec![]));
            }
            let first = p.map_key()?;
            if p.accept(':')? {
                let mut entries = vec![(first, p.arg()?)];
                while p.accept(',')? {
                    let key = p.map_key()?;
                    p.expect(':')?;
                    entries.push((key, p.arg()?));
                }
                p.expect(']')?;
                return Ok(ArgKind::Map(entries));
            }
            let mut items = vec![first];
            while p.accept(',')? {
                items.push(p.arg()?);
            }
            p.expect(']')?;
            Ok(ArgKind::List(items))
        })
    }

    /// A key of a map, or the first item of a list: a bare name before a colon is a string, unless it is a token.
    fn map_key(&mut self) -> Result<Arg<'t>> {
        let at = self.token.at;
        if let Kind::Name(name) = self.token.kind
            && *self.peek()? == Kind::Sign(':')
        {
            self.advance()?;
            let token = matches!(
                name,
                "id" | "label"
                    | "key"
                    | "value"
                    | "IN"
                    | "OUT"
                    | "BOTH"
                    | "from"
                    | "to"
                    | "onCreate"
                    | "onMatch"
            );
            let kind = if token { ArgKind::Constant(name) } else { ArgKind::Text(Str::from(name)) };
            return Ok(Arg { at, kind });
        }
        if self.accept('(')? {
            let key = self.nested(Self::arg)?;
            self.expect(')')?;
            return Ok(key);
        }
        self.arg()
    }

    /// An argument that begins with a name, which is read.
    fn named(&mut self, at: usize, name: &'t str) -> Result<Arg<'t>> {
        let kind = match name {
            "true" => ArgKind::Value(Value::Bool(true)),
            "false" => ArgKind::Value(Value::Bool(false)),
            "null" => ArgKind::Value(Value::Null),
            "__" => {
                self.expect('.')?;
                let (at, name) = self.name("a step")?;
                ArgKind::Traversal(self.anonymous(at, name)?)
            }
            "g" if self.is_sign('.') => {
                // A whole traversal as an argument: read, so that its own errors are found, then refused.
                self.nested(Self::after_g)?;
                ArgKind::Other("a traversal of g as an argument".into())
            }
            "new" => {
                let (at, class) = self.name("Vertex")?;
                if !matches!(class, "Vertex" | "ReferenceVertex") {
                    return Err(Failure::syntax(
                        at,
                        format!("expected Vertex, found \"{}\"", shorten(class)),
                    ));
                }
                return self.named(at, class);
            }
            "Vertex" | "ReferenceVertex" if self.is_sign('(') => {
                let mut args = self.args(name)?;
                if !(1..=2).contains(&args.len()) {
                    return Err(Failure::syntax(at, format!("{name}() takes an id and a label")));
                }
                ArgKind::Vertex(Box::new(args.swap_remove(0)))
            }
            "datetime" | "DateTime" if self.is_sign('(') => self.datetime(at)?,
            "UUID" if self.is_sign('(') => {
                self.args(name)?;
                ArgKind::Other("UUID()".into())
            }
            "single" | "set" | "list" if self.is_sign('(') => self.cardinality(at, name)?,
            "P" | "TextP" if self.is_sign('.') => {
                self.advance()?;
                let (at, name) = self.name("a predicate")?;
                let first = self.predicate(at, name)?;
                ArgKind::Predicate(self.connected(first)?)
            }
            _ if names::is_enum(name) && self.is_sign('.') => {
                self.advance()?;
                if name == "VertexProperty" {
                    self.name("Cardinality")?;
                    self.expect('.')?;
                }
                let (_, constant) = self.name("a constant")?;
                if matches!(name, "Cardinality" | "VertexProperty") && self.is_sign('(') {
                    self.cardinality(at, constant)?
                } else if matches!(name, "GType" | "IO" | "PageRank" | "PeerPressure" | "ShortestPath")
                    || name == "ConnectedComponent"
                {
                    ArgKind::Other(format!("{name}.{}", shorten(constant)).into())
                } else {
                    self.constant(at, name, constant)?
                }
            }
            _ if names::predicate(name).is_some() && self.is_sign('(') => {
                let first = self.predicate(at, name)?;
                ArgKind::Predicate(self.connected(first)?)
            }
            _ if self.is_sign('(') => return self.call(at, name),
            _ if names::is_constant(name) => ArgKind::Constant(name),
            _ if names::is_step(name) || names::predicate(name).is_some() => {
                return Err(self.expected(&format!("\"(\" after {name}")));
            }
            _ => ArgKind::Variable(name),
        };
        Ok(Arg { at, kind })
    }

    fn constant(&self, at: usize, owner: &str, constant: &'t str) -> Result<ArgKind<'t>> {
        let of_options = matches!(constant, "tokens" | "none" | "ids" | "labels" | "keys" | "values" | "all")
            || matches!(constant, "indexer" | "list" | "map");
        if (owner == "WithOptions" && of_options) || (owner != "WithOptions" && names::is_constant(constant))
        {
            Ok(ArgKind::Constant(constant))
        } else {
            Err(Failure::syntax(at, format!("{owner} has no constant {}", shorten(constant))))
        }
    }

    /// `single(value)`; the name is read.
    fn cardinality(&mut self, at: usize, name: &'t str) -> Result<ArgKind<'t>> {
        let mut args = self.args(name)?;
        match (args.pop(), args.is_empty()) {
            (Some(value), true) if matches!(name, "single" | "set" | "list") => {
                Ok(ArgKind::Cardinality(name, Box::new(value)))
            }
            _ => Err(Failure::syntax(at, format!("{}() takes one value", shorten(name)))),
        }
    }

    /// A traversal that begins with this step, or `not(predicate)`.
    fn call(&mut self, at: usize, name: &'t str) -> Result<Arg<'t>> {
        let mut first = self.step(at, name)?;
        if name == "not"
            && first.args.len() == 1
            && matches!(first.args[0].kind, ArgKind::Predicate(_))
            && let Some(Arg { kind: ArgKind::Predicate(p), .. }) = first.args.pop()
        {
            let kind = ArgKind::Predicate(self.connected(Predicate::Not(Box::new(p)))?);
            return Ok(Arg { at, kind });
        }
        Ok(Arg { at, kind: ArgKind::Traversal(self.chain(first)?) })
    }

    fn anonymous(&mut self, at: usize, name: &'t str) -> Result<Vec<Step<'t>>> {
        let first = self.step(at, name)?;
        self.chain(first)
    }

    // ---- predicates

    fn predicate(&mut self, at: usize, name: &'t str) -> Result<Predicate<'t>> {
        let arity = names::predicate(name);
        let args = if arity.is_some() || name == "not" {
            self.args(name)?
        } else {
            return Err(Failure::syntax(at, format!("unknown predicate {}", shorten(name))));
        };
        if name == "not" {
            return match <[Arg<'t>; 1]>::try_from(args) {
                Ok([Arg { kind: ArgKind::Predicate(p), .. }]) => Ok(Predicate::Not(Box::new(p))),
                _ => Err(Failure::syntax(at, "P.not() takes a predicate".into())),
            };
        }
        if let Some(Some(wanted)) = arity
            && args.len() != wanted
        {
            return Err(Failure::syntax(
                at,
                format!(
                    "{name}() takes {wanted} argument{}, not {}",
                    if wanted == 1 { "" } else { "s" },
                    args.len()
                ),
            ));
        }
        Ok(Predicate::Test(name, args))
    }

    /// `.and(…)`, `.or(…)`, `.negate()` after a predicate.
    fn connected(&mut self, mut left: Predicate<'t>) -> Result<Predicate<'t>> {
        let mut links = 0;
        while self.accept('.')? {
            let (at, name) = self.name("and, or or negate")?;
            // Each link is a level of the tree.
            links += 1;
            if links + self.depth > MAX_DEPTH {
                return Err(Failure::syntax(at, format!("nested deeper than {MAX_DEPTH} levels")));
            }
            let mut args = self.args(name)?;
            let right = args.pop();
            let no_more = args.is_empty();
            left = match (name, right) {
                ("negate", None) => Predicate::Not(Box::new(left)),
                ("and" | "or", Some(Arg { kind: ArgKind::Predicate(right), .. })) if no_more => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    if name == "and" { Predicate::And(left, right) } else { Predicate::Or(left, right) }
                }
                ("and" | "or", _) => {
                    return Err(Failure::syntax(at, format!("{name}() of a predicate takes a predicate")));
                }
                _ => {
                    let name = shorten(name);
                    return Err(Failure::syntax(at, format!("expected and, or or negate, found \"{name}\"")));
                }
            };
        }
        Ok(left)
    }

    // ---- dates

    fn datetime(&mut self, at: usize) -> Result<ArgKind<'t>> {
        let args = self.args("datetime")?;
        match args.as_slice() {
            [] => Ok(ArgKind::Now),
            [Arg { kind: ArgKind::Text(text), at }] => match timestamp(text) {
                Some(time) => Ok(ArgKind::Value(Value::DateTime(time))),
                None => Err(Failure::syntax(*at, format!("invalid date '{}'", shorten(text)))),
            },
            [Arg { kind: ArgKind::Variable(name), .. }] => Ok(ArgKind::Variable(name)),
            _ => Err(Failure::syntax(at, "datetime() takes an ISO 8601 string".into())),
        }
    }
}

fn unknown_step(at: usize, name: &str) -> Failure {
    Failure::syntax(at, format!("unknown step {}()", shorten(name)))
}

/// An ISO 8601 date, with or without time and offset; UTC where there is none.
fn timestamp(text: &str) -> Option<Timestamp> {
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let civil = text
        .parse::<jiff::civil::DateTime>()
        .or_else(|_| text.parse::<jiff::civil::Date>().map(|date| date.at(0, 0, 0, 0)))
        .ok()?;
    // A text with an offset that the first attempt refused, or with a zone, must not lose it here.
    let after_date = text.get(10..).unwrap_or("");
    if after_date.contains(['Z', 'z', '+', '-', '[']) {
        return None;
    }
    civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}
