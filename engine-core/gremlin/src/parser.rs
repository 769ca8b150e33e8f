//! Tokens to syntax tree: recursive descent over gremlin-lang of TinkerPop 3.7 and 3.8.
//!
//! The parser accepts the whole grammar, even where the compiler refuses a part as not supported yet. It limits nesting
//! ([`MAX_DEPTH`]) and the number of steps ([`MAX_STEPS`]), because trees and plans are walked by recursion: no text
//! may exhaust the stack.

use crate::Version;
use crate::ast::{
    Arg, ArgKind, Constant, Predicate, PredicateName, Request, SourceCall, Step, StepName, Terminal,
};
use crate::fault::Fault;
use crate::lexer::{Lexer, Token, TokenKind, shorten};
use crate::names::{Arguments, EnumName, Members, TypeName};
use tidegraph_plan::Limits;
use tidegraph_types::temporal::parse_instant;
use tidegraph_types::{Str, Value};

/// Largest depth to which traversals, lists, maps and predicates nest.
pub const MAX_DEPTH: usize = 64;
/// Largest number of steps of a request, nested ones included.
pub const MAX_STEPS: usize = 2_000;
/// Largest number of items of a range such as `1..9`.
const MAX_RANGE: i64 = 10_000;

type Result<T> = std::result::Result<T, Fault>;

/// Parses a text: one statement or several, with semicolons between them or without.
pub(crate) fn parse<'t>(text: &'t str, version: Version, limits: &Limits<'_>) -> Result<Vec<Request<'t>>> {
    let mut lexer = Lexer::new(text);
    let token = lexer.next()?;
    let mut parser = Parser { lexer, token, ahead: None, depth: 0, steps: 0, version, limits };
    let mut statements = vec![parser.request()?];
    while parser.next_statement()? {
        statements.push(parser.request()?);
    }
    Ok(statements)
}

struct Parser<'t, 'l> {
    lexer: Lexer<'t>,
    token: Token<'t>,
    ahead: Option<Token<'t>>,
    depth: usize,
    steps: usize,
    version: Version,
    limits: &'l Limits<'l>,
}

impl<'t> Parser<'t, '_> {
    // ---- tokens

    fn advance(&mut self) -> Result<Token<'t>> {
        // Most tokens become an argument or a part of one.
        self.limits.charge(size_of::<Arg<'_>>())?;
        let next = match self.ahead.take() {
            Some(token) => token,
            None => self.lexer.next()?,
        };
        Ok(std::mem::replace(&mut self.token, next))
    }

    fn peek(&mut self) -> Result<&TokenKind<'t>> {
        if self.ahead.is_none() {
            self.ahead = Some(self.lexer.next()?);
        }
        Ok(self.ahead.as_ref().map_or(&TokenKind::End, |t| &t.kind))
    }

    fn is_sign(&self, sign: char) -> bool {
        self.token.kind == TokenKind::Sign(sign)
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

    fn expected(&self, what: &str) -> Fault {
        Fault::syntax(self.token.at, format!("expected {what}, found {}", self.token.kind.describe()))
    }

    fn name(&mut self, what: &str) -> Result<(usize, &'t str)> {
        match self.token.kind {
            TokenKind::Name(name) => {
                let at = self.advance()?.at;
                Ok((at, name))
            }
            _ => Err(self.expected(what)),
        }
    }

    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(Fault::syntax(self.token.at, format!("nested deeper than {MAX_DEPTH} levels")));
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
                return Err(Fault::syntax(at, format!("expected \"g\", found \"{}\"", shorten(other))));
            }
        }
        self.after_g()
    }

    /// Parses the calls after `g`.
    fn after_g(&mut self) -> Result<Request<'t>> {
        let (mut configuration, mut steps, mut terminal) = (vec![], vec![], None);
        if !self.is_sign('.') {
            return Err(match self.token.kind {
                TokenKind::End | TokenKind::Sign(';') => {
                    Fault::unsupported(self.token.at, "g without a step")
                }
                _ => self.expected("\".\""),
            });
        }
        while self.accept('.')? {
            let (at, name) = self.name("a step")?;
            if terminal.is_some() {
                return Err(Fault::syntax(at, format!("{name}() follows the end of the traversal")));
            }
            if !steps.is_empty() {
                match Terminal::of(name) {
                    Some(name) => terminal = Some(Step { at, name, args: self.args(name.text())? }),
                    None => steps.push(self.step(at, name)?),
                }
                continue;
            }
            match (SourceCall::of(name), StepName::of(name)) {
                (Some(call), _) => {
                    let args = match call.properties() {
                        Arguments::OfStep => self.args(name)?,
                        Arguments::Strategies => self.strategies()?,
                    };
                    configuration.push(Step { at, name: call, args });
                }
                (None, Some(step)) if step.properties().after_g => steps.push(self.step(at, name)?),
                (None, Some(_)) => return Err(Fault::syntax(at, format!("{name}() cannot follow g"))),
                (None, None) if name == "tx" => return Err(Fault::unsupported(at, "tx()")),
                (None, None) => return Err(unknown_step(at, name)),
            }
        }
        if steps.is_empty() {
            return Err(Fault::unsupported(self.token.at, "g without a step"));
        }
        Ok(Request { configuration, steps, terminal })
    }

    /// After a statement: whether another one follows. Otherwise the text ends here.
    fn next_statement(&mut self) -> Result<bool> {
        let mut is_ended = false;
        while self.accept(';')? {
            is_ended = true;
        }
        match self.token.kind {
            TokenKind::End => Ok(false),
            TokenKind::Name("g") => Ok(true),
            _ if is_ended => Err(self.expected("\"g\" or the end of the text")),
            _ => Err(self.expected("\".\" or the end of the text")),
        }
    }

    /// The arguments of `withStrategies`: names, or `new Name(key: value, …)`.
    fn strategies(&mut self) -> Result<Vec<Arg<'t>>> {
        self.expect('(')?;
        self.nested(|p| {
            let mut strategies = vec![];
            while !p.accept(')')? {
                let (mut at, mut name) = p.name("a strategy")?;
                if name == "new" {
                    (at, name) = p.name("a strategy")?;
                }
                let mut settings = vec![];
                if p.accept('(')? {
                    while !p.accept(')')? {
                        let (_, key) = p.name("a setting of the strategy")?;
                        p.expect(':')?;
                        settings.push((key, p.arg()?));
                        if !p.accept(',')? && !p.is_sign(')') {
                            return Err(p.expected("\",\" or \")\""));
                        }
                    }
                }
                strategies.push(Arg { at, kind: ArgKind::Strategy(name, settings) });
                if !p.accept(',')? && !p.is_sign(')') {
                    return Err(p.expected("\",\" or \")\""));
                }
            }
            Ok(strategies)
        })
    }

    // ---- steps

    fn step(&mut self, at: usize, name: &'t str) -> Result<Step<'t>> {
        let name = StepName::of(name).ok_or_else(|| unknown_step(at, name))?;
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(Fault::syntax(at, format!("more than {MAX_STEPS} steps")));
        }
        let args = self.args(name.text())?;
        Ok(Step { at, name, args })
    }

    /// Parses the steps that follow `first`.
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

    /// Arguments up to `close`, which is taken too.
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
                // As Neptune does, a comma after the last argument is taken.
                if close == ')' && p.accept(close)? {
                    return Ok(items);
                }
            }
        })
    }

    // ---- arguments

    fn arg(&mut self) -> Result<Arg<'t>> {
        let at = self.token.at;
        let kind = match &self.token.kind {
            TokenKind::Text(_) => {
                let TokenKind::Text(text) = self.advance()?.kind else {
                    return Err(self.expected("a string"));
                };
                if self.is_sign('.') && *self.peek()? == TokenKind::Sign('.') {
                    return Err(Fault::unsupported(at, "a range of strings"));
                }
                ArgKind::Text(Str::from(text))
            }
            TokenKind::Number(_) => {
                let TokenKind::Number(value) = self.advance()?.kind else {
                    return Err(self.expected("a number"));
                };
                if self.is_sign('.') && *self.peek()? == TokenKind::Sign('.') {
                    self.range(at, &value)?
                } else {
                    ArgKind::Value(value)
                }
            }
            TokenKind::Sign('[') => {
                self.advance()?;
                self.list_or_map()?
            }
            TokenKind::Sign('{') => {
                self.advance()?;
                ArgKind::Set(self.list('}')?)
            }
            TokenKind::Name(name) => {
                let name = *name;
                self.advance()?;
                return self.named(at, name);
            }
            TokenKind::Sign(_) | TokenKind::End => return Err(self.expected("an argument")),
        };
        Ok(Arg { at, kind })
    }

    /// `low..high`; the lower bound has been taken, the dots have not.
    fn range(&mut self, at: usize, low: &Value) -> Result<ArgKind<'t>> {
        self.advance()?;
        self.advance()?;
        let high = match &self.token.kind {
            TokenKind::Number(value) => value.as_i64(),
            _ => None,
        };
        let (Some(low), Some(high)) = (low.as_i64(), high) else {
            return Err(self.expected("an integer"));
        };
        self.advance()?;
        if low.abs_diff(high) >= MAX_RANGE.unsigned_abs() {
            return Err(Fault::unsupported(at, format!("a range of more than {MAX_RANGE} items")));
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

    /// A key of a map, or the first item of a list. A name before a colon is a string, in 3.7 unless it is a
    /// token such as `id`.
    fn map_key(&mut self) -> Result<Arg<'t>> {
        let at = self.token.at;
        if let TokenKind::Name(name) = self.token.kind
            && *self.peek()? == TokenKind::Sign(':')
        {
            self.advance()?;
            let constant = Constant::of(name).filter(|constant| constant.properties().map_key);
            let kind = match constant.filter(|_| self.version.bare_keys_are_constants()) {
                Some(constant) => ArgKind::Constant(constant),
                None => ArgKind::Text(Str::from(name)),
            };
            return Ok(Arg { at, kind });
        }
        if self.accept('(')? {
            let key = self.nested(Self::arg)?;
            self.expect(')')?;
            return Ok(key);
        }
        self.arg()
    }

    /// An argument whose first token, a name, has been taken.
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
                // A traversal of `g` as an argument is refused, but its own errors are reported first.
                self.nested(Self::after_g)?;
                ArgKind::Other("a traversal of g as an argument".into())
            }
            "new" => {
                let (at, class) = self.name("Vertex")?;
                if !matches!(class, "Vertex" | "ReferenceVertex") {
                    return Err(Fault::syntax(at, format!("expected Vertex, found \"{}\"", shorten(class))));
                }
                return self.named(at, class);
            }
            "Edge" | "ReferenceEdge" | "Vertex" | "ReferenceVertex" if self.is_sign('(') => {
                let mut args = self.args(name)?;
                if !(1..=2).contains(&args.len()) {
                    return Err(Fault::syntax(at, format!("{name}() takes an id and a label")));
                }
                let id = Box::new(args.swap_remove(0));
                if name.ends_with("Edge") { ArgKind::Edge(id) } else { ArgKind::Vertex(id) }
            }
            "datetime" | "DateTime" if self.is_sign('(') => self.datetime(at)?,
            "UUID" if self.is_sign('(') => {
                let args = self.args(name)?;
                match args.as_slice() {
                    [Arg { kind: ArgKind::Text(text), at }] => match text.parse() {
                        Ok(uuid) => ArgKind::Value(Value::Uuid(uuid)),
                        Err(_) => {
                            return Err(Fault::syntax(*at, format!("invalid UUID '{}'", shorten(text))));
                        }
                    },
                    [] => ArgKind::RandomUuid,
                    _ => return Err(Fault::syntax(at, "UUID() takes a string".into())),
                }
            }
            "single" | "set" | "list" if self.is_sign('(') => self.cardinality(at, name)?,
            "P" | "TextP" if self.is_sign('.') => {
                self.advance()?;
                let (at, name) = self.name("a predicate")?;
                let first = self.predicate(at, name)?;
                ArgKind::Predicate(self.connected(first)?)
            }
            _ if self.is_sign('.')
                && let Some(owner) = EnumName::of(name) =>
            {
                self.member(at, owner)?
            }
            _ if self.is_sign('(') && PredicateName::of(name).is_some() => {
                let first = self.predicate(at, name)?;
                ArgKind::Predicate(self.connected(first)?)
            }
            _ if self.is_sign('(') => return self.call(at, name),
            _ => match (bare(name), StepName::of(name), PredicateName::of(name)) {
                (Some(constant), ..) => ArgKind::Constant(constant),
                // `io` is not reserved.
                (None, None | Some(StepName::Io), None) => ArgKind::Variable(name),
                _ => return Err(self.expected(&format!("\"(\" after {name}"))),
            },
        };
        Ok(Arg { at, kind })
    }

    /// A constant of an enum; the enum's name has been read.
    fn member(&mut self, at: usize, owner: EnumName) -> Result<ArgKind<'t>> {
        self.advance()?;
        let members = *owner.properties();
        if members == Members::CardinalityEnum {
            self.name("Cardinality")?;
            self.expect('.')?;
        }
        let (_, name) = self.name("a constant")?;
        let constant = match members {
            Members::Types => {
                let found = TypeName::of(name).map(|name| ArgKind::Type(*name.properties()));
                return found
                    .ok_or_else(|| Fault::syntax(at, format!("{owner} has no constant {}", shorten(name))));
            }
            Members::Files => {
                let text = match name {
                    "graphml" | "graphson" | "gryo" => name.to_owned(),
                    "reader" | "registry" | "writer" => format!("~tinkerpop.io.{name}"),
                    _ => return Err(Fault::syntax(at, format!("{owner} has no constant {}", shorten(name)))),
                };
                return Ok(ArgKind::Text(text.into()));
            }
            Members::Unsupported => return Ok(ArgKind::Other(format!("{owner}.{}", shorten(name)).into())),
            Members::Cardinalities | Members::CardinalityEnum if self.is_sign('(') => {
                return self.cardinality(at, name);
            }
            Members::Options => Constant::of(name).filter(|constant| constant.properties().with_option),
            Members::Constants | Members::Cardinalities | Members::CardinalityEnum => bare(name),
        };
        constant
            .map(ArgKind::Constant)
            .ok_or_else(|| Fault::syntax(at, format!("{owner} has no constant {}", shorten(name))))
    }

    /// `single(value)`; the name has been read.
    fn cardinality(&mut self, at: usize, name: &'t str) -> Result<ArgKind<'t>> {
        let mut args = self.args(name)?;
        let cardinality = Constant::of(name).and_then(|constant| constant.properties().cardinality);
        match (cardinality, args.pop(), args.is_empty()) {
            (Some(cardinality), Some(value), true) => Ok(ArgKind::Cardinality(cardinality, Box::new(value))),
            _ => Err(Fault::syntax(at, format!("{}() takes one value", shorten(name)))),
        }
    }

    /// A traversal that begins with this step, or `not(predicate)`.
    fn call(&mut self, at: usize, name: &'t str) -> Result<Arg<'t>> {
        let mut first = self.step(at, name)?;
        if first.name == StepName::Not
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
        if name == "not" {
            return match <[Arg<'t>; 1]>::try_from(self.args(name)?) {
                Ok([Arg { kind: ArgKind::Predicate(p), .. }]) => Ok(Predicate::Not(Box::new(p))),
                _ => Err(Fault::syntax(at, "P.not() takes a predicate".into())),
            };
        }
        let Some(predicate) = PredicateName::of(name) else {
            return Err(Fault::syntax(at, format!("unknown predicate {}", shorten(name))));
        };
        let args = self.args(name)?;
        match *predicate.properties() {
            Some(wanted) if args.len() != wanted => {
                let (s, given) = (if wanted == 1 { "" } else { "s" }, args.len());
                Err(Fault::syntax(at, format!("{name}() takes {wanted} argument{s}, not {given}")))
            }
            _ => Ok(Predicate::Test(predicate, args)),
        }
    }

    /// `.and(…)`, `.or(…)`, `.negate()` after a predicate.
    fn connected(&mut self, mut left: Predicate<'t>) -> Result<Predicate<'t>> {
        let mut links = 0;
        while self.accept('.')? {
            let (at, name) = self.name("and, or or negate")?;
            // Each connective adds a level to the tree.
            links += 1;
            if links + self.depth > MAX_DEPTH {
                return Err(Fault::syntax(at, format!("nested deeper than {MAX_DEPTH} levels")));
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
                    return Err(Fault::syntax(at, format!("{name}() of a predicate takes a predicate")));
                }
                _ => {
                    let name = shorten(name);
                    return Err(Fault::syntax(at, format!("expected and, or or negate, found \"{name}\"")));
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
            [Arg { kind: ArgKind::Text(text), at }] => match parse_instant(text) {
                Some(time) => Ok(ArgKind::Value(Value::DateTime(time))),
                None => Err(Fault::syntax(*at, format!("invalid date '{}'", shorten(text)))),
            },
            [Arg { kind: ArgKind::Variable(name), .. }] => Ok(ArgKind::Variable(name)),
            _ => Err(Fault::syntax(at, "datetime() takes an ISO 8601 string".into())),
        }
    }
}

/// Returns the constant that a name is without its enum.
fn bare(name: &str) -> Option<Constant> {
    Constant::of(name).filter(|constant| constant.properties().bare)
}

fn unknown_step(at: usize, name: &str) -> Fault {
    Fault::syntax(at, format!("unknown step {}()", shorten(name)))
}
