//! The traversals that the generator draws: a subset of Gremlin, its text, and smaller versions of a traversal.

use crate::graph::literal;
use crate::value::Val;
use std::fmt;

/// A traversal: the whole request, or one inside a step.
#[derive(Clone, Debug, Default)]
pub struct Traversal {
    /// Steps in order.
    pub steps: Vec<Step>,
}

/// A step.
#[derive(Clone, Debug)]
pub enum Step {
    /// `V(ids)`
    V(Vec<String>),
    /// `E()`
    E,
    /// `hasLabel(labels)`
    HasLabel(Vec<String>),
    /// `has(key, predicate)`
    Has(String, Predicate),
    /// `has(key)`, `hasNot(key)`
    HasKey(String, bool),
    /// `hasId(id)`
    HasId(String),
    /// `out`, `in`, `both`, `outE`, `inE`, `bothE` with labels
    Move(&'static str, Vec<String>),
    /// `inV`, `outV`, `bothV`
    End(&'static str),
    /// `values(key)`
    Values(String),
    /// `id()`
    Id,
    /// `label()` of edges
    Label,
    /// A step over a string or a number, as text.
    Scalar(&'static str),
    /// `is(predicate)`
    Is(Predicate),
    /// `not(…)`, `where(…)`, `filter(…)`
    Test(&'static str, Traversal),
    /// `and(…)`, `or(…)`
    Connect(&'static str, Vec<Traversal>),
    /// `dedup()`, with `by(key)`
    Dedup(Option<String>),
    /// `order()`; `true` is descending. The keys order all objects that differ.
    Order(Vec<(By, bool)>),
    /// `range(from, to)`
    Range(usize, usize),
    /// `limit(count)`, `skip(count)`, `tail(count)`
    Slice(&'static str, usize),
    /// `count`, `sum`, `min`, `max`, `mean`, `fold`
    Reduce(&'static str),
    /// `unfold()`
    Unfold,
    /// `group().by(key).by(value)`
    Group(By, By),
    /// `groupCount().by(key)`
    GroupCount(By),
    /// `project(names).by(…)`
    Project(Vec<(String, By)>),
    /// `as(label)`
    As(String),
    /// `select(labels)`
    Select(Vec<String>),
    /// `where(eq(label))`, or `where(neq(label))`
    WhereSame(bool, String),
    /// `union(…)`, `coalesce(…)`
    Branch(&'static str, Vec<Traversal>),
    /// `optional(…)`, `local(…)`
    Nested(&'static str, Traversal),
    /// `choose(condition, then, otherwise)`
    Choose(Traversal, Traversal, Traversal),
    /// `choose(values(key)).option(pick, traversal)…`
    Options(String, Vec<(Pick, Traversal)>),
    /// `withSack(number)`, before the first step; with an operator that merges sacks
    WithSack(i64, Option<&'static str>),
    /// `barrier()`
    Barrier,
    /// `aggregate(key)`, in the traversal itself
    Aggregate(String),
    /// `where(within(key))`, or `where(without(key))`
    WhereIn(bool, String),
    /// `cap(key)`
    Cap(String),
    /// `sack(operator).by(key)`, or `by(constant(number))`
    ToSack(&'static str, Result<String, i64>),
    /// `sack()`
    Sack,
    /// `path()`
    Path,
    /// `simplePath()`, `cyclicPath()`
    PathTest(bool),
    /// `repeat(…)`
    Repeat(Box<Repeat>),
    /// `constant(value)`
    Constant(Val),
    /// `addV(label)`
    AddV(String),
    /// `addE(label).to(V(id))`, or `from`
    AddE(String, bool, String),
    /// `property(single, key, value)`, for an edge without `single`
    Property(bool, String, Val),
    /// `drop()`
    Drop,
}

/// A loop.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The body.
    pub body: Traversal,
    /// `times`, or the bound of `until(or(…, loops().is(gte(bound))))`
    pub bound: usize,
    /// `until`
    pub until: Option<Traversal>,
    /// Whether `times` or `until` stands before the body.
    pub until_first: bool,
    /// `emit`; an empty traversal emits everything.
    pub emit: Option<Traversal>,
    /// Whether `emit` stands before the body.
    pub emit_first: bool,
}

/// When an option of `choose` runs.
#[derive(Clone, Debug)]
pub enum Pick {
    /// The choice has this value.
    Value(Val),
    /// The predicate holds for the choice.
    Test(Predicate),
    /// No other option matches.
    None,
    /// There is no choice.
    Unproductive,
}

/// What a `by()` computes.
#[derive(Clone, Debug)]
pub enum By {
    /// `by()`
    Object,
    /// `by(key)`
    Key(String),
    /// `by(id)`
    Id,
    /// `by(…)`
    Traversal(Traversal),
}

/// A predicate.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// `eq`, `neq`, `gt`, `gte`, `lt`, `lte`, `startingWith`, `containing`
    Compare(&'static str, Val),
    /// `between`, `inside`, `outside`
    Range(&'static str, Val, Val),
    /// `within`, `without`
    List(&'static str, Vec<Val>),
    /// `and`, `or` of two
    Both(&'static str, Box<Predicate>, Box<Predicate>),
}

impl Traversal {
    /// Makes a traversal.
    #[must_use]
    pub fn new(steps: Vec<Step>) -> Self {
        Self { steps }
    }

    /// Whether the traversal changes the graph.
    #[must_use]
    pub fn writes(&self) -> bool {
        let writes =
            |step: &Step| matches!(step, Step::AddV(_) | Step::AddE(..) | Step::Property(..) | Step::Drop);
        self.steps.iter().any(writes)
    }

    /// Whether lists of the answer have no defined order: those of `fold`, `group` and `cap`.
    #[must_use]
    pub fn has_bags(&self) -> bool {
        let text = self.to_string();
        ["fold()", "group()", "cap("].iter().any(|bag| text.contains(bag))
    }

    /// Whether a step reads paths, so that traversers with other paths are not equal.
    #[must_use]
    pub fn reads_paths(&self) -> bool {
        let text = self.to_string();
        ["path()", "simplePath()", "cyclicPath()"].iter().any(|step| text.contains(step))
    }

    /// Whether the traversers of the answer are ordered.
    #[must_use]
    pub fn is_ordered(&self) -> bool {
        let keeps = |step: &Step| {
            matches!(step, Step::Range(..) | Step::Slice(..) | Step::Id | Step::Has(..) | Step::Values(_))
        };
        let last = self.steps.iter().rposition(|step| !keeps(step));
        last.is_some_and(|last| matches!(self.steps[last], Step::Order(_)))
    }

    /// Returns traversals that are a little smaller. Some of them are not valid.
    #[must_use]
    pub fn smaller(&self) -> Vec<Self> {
        let mut out = vec![];
        for index in (0..self.steps.len()).rev() {
            let mut steps = self.steps.clone();
            steps.remove(index);
            out.push(Self { steps });
            for step in smaller_step(&self.steps[index]) {
                let mut steps = self.steps.clone();
                steps[index] = step;
                out.push(Self { steps });
            }
            // The body in place of the step.
            let inner = match &self.steps[index] {
                Step::Nested(_, inner) | Step::Choose(_, inner, _) => vec![inner],
                Step::Branch(_, inner) => inner.iter().collect(),
                Step::Repeat(repeat) => vec![&repeat.body],
                _ => vec![],
            };
            for inner in inner {
                let mut steps = self.steps.clone();
                steps.splice(index..=index, inner.steps.iter().cloned());
                out.push(Self { steps });
            }
        }
        out
    }
}

fn smaller_step(step: &Step) -> Vec<Step> {
    let each = |inner: &[Traversal], make: &dyn Fn(Vec<Traversal>) -> Step| {
        let mut out = vec![];
        for index in 0..inner.len() {
            if inner.len() > 1 {
                let mut inner = inner.to_vec();
                inner.remove(index);
                out.push(make(inner));
            }
            for smaller in inner[index].smaller() {
                let mut inner = inner.to_vec();
                inner[index] = smaller;
                out.push(make(inner));
            }
        }
        out
    };
    match step {
        Step::Test(name, inner) => inner.smaller().into_iter().map(|t| Step::Test(name, t)).collect(),
        Step::Nested(name, inner) => inner.smaller().into_iter().map(|t| Step::Nested(name, t)).collect(),
        Step::Connect(name, inner) => each(inner, &|inner| Step::Connect(name, inner)),
        Step::Branch(name, inner) => each(inner, &|inner| Step::Branch(name, inner)),
        Step::Choose(a, b, c) => {
            let all = [a.clone(), b.clone(), c.clone()];
            let same = each(&all, &|inner| match &inner[..] {
                [a, b, c] => Step::Choose(a.clone(), b.clone(), c.clone()),
                _ => step.clone(),
            });
            same.into_iter().filter(|other| other.to_string() != step.to_string()).collect()
        }
        Step::Options(key, options) => {
            let mut out = vec![];
            for index in 0..options.len() {
                if options.len() > 1 {
                    let mut options = options.clone();
                    options.remove(index);
                    out.push(Step::Options(key.clone(), options));
                }
                for smaller in options[index].1.smaller() {
                    let mut options = options.clone();
                    options[index].1 = smaller;
                    out.push(Step::Options(key.clone(), options));
                }
            }
            out
        }
        Step::Move(name, labels) if !labels.is_empty() => vec![Step::Move(name, vec![])],
        Step::Repeat(repeat) => {
            let mut out = vec![];
            let mut with = |change: &dyn Fn(&mut Repeat)| {
                let mut repeat = repeat.clone();
                change(&mut repeat);
                out.push(Step::Repeat(repeat));
            };
            if repeat.until.is_some() {
                with(&|repeat| repeat.until = None);
            }
            if repeat.emit.is_some() {
                with(&|repeat| repeat.emit = None);
            }
            if repeat.bound > 1 {
                with(&|repeat| repeat.bound -= 1);
            }
            for body in repeat.body.smaller() {
                with(&|repeat| repeat.body = body.clone());
            }
            out
        }
        Step::Project(entries) if entries.len() > 1 => {
            entries.iter().map(|entry| Step::Project(vec![entry.clone()])).collect()
        }
        Step::Select(names) if names.len() > 1 => {
            names.iter().map(|name| Step::Select(vec![name.clone()])).collect()
        }
        _ => vec![],
    }
}

fn quoted(names: &[String]) -> String {
    names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
}

fn nested(traversals: &[Traversal]) -> String {
    traversals.iter().map(|traversal| format!("__{traversal}")).collect::<Vec<_>>().join(", ")
}

/// Writes an inner traversal; an empty one is `identity()`.
fn inner(traversal: &Traversal) -> String {
    if traversal.steps.is_empty() { "__.identity()".to_owned() } else { format!("__{traversal}") }
}

impl fmt::Display for Traversal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps.is_empty() {
            return f.write_str(".identity()");
        }
        self.steps.iter().try_for_each(|step| write!(f, ".{step}"))
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Object => Ok(()),
            Self::Key(key) => write!(f, "'{key}'"),
            Self::Id => f.write_str("T.id"),
            Self::Traversal(traversal) => f.write_str(&inner(traversal)),
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Compare(name @ ("startingWith" | "containing"), value) => {
                write!(f, "TextP.{name}({})", literal(value))
            }
            Self::Compare(name, value) => write!(f, "P.{name}({})", literal(value)),
            Self::Range(name, a, b) => write!(f, "P.{name}({}, {})", literal(a), literal(b)),
            Self::List(name, values) => {
                let values: Vec<String> = values.iter().map(literal).collect();
                write!(f, "P.{name}({})", values.join(", "))
            }
            Self::Both(name, a, b) => write!(f, "{a}.{name}({b})"),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V(ids) => write!(f, "V({})", quoted(ids)),
            Self::E => f.write_str("E()"),
            Self::HasLabel(labels) => write!(f, "hasLabel({})", quoted(labels)),
            Self::Has(key, predicate) => write!(f, "has('{key}', {predicate})"),
            Self::HasKey(key, has) => write!(f, "{}('{key}')", if *has { "has" } else { "hasNot" }),
            Self::HasId(id) => write!(f, "hasId('{id}')"),
            Self::Move(name, labels) => write!(f, "{name}({})", quoted(labels)),
            Self::End(name) | Self::Reduce(name) => write!(f, "{name}()"),
            Self::Values(key) => write!(f, "values('{key}')"),
            Self::Id => f.write_str("id()"),
            Self::Label => f.write_str("label()"),
            Self::Scalar(text) => f.write_str(text),
            Self::Is(predicate) => write!(f, "is({predicate})"),
            Self::Test(name, traversal) | Self::Nested(name, traversal) => {
                write!(f, "{name}({})", inner(traversal))
            }
            Self::Connect(name, all) | Self::Branch(name, all) => write!(f, "{name}({})", nested(all)),
            Self::Dedup(None) => f.write_str("dedup()"),
            Self::Dedup(Some(key)) => write!(f, "dedup().by('{key}')"),
            Self::Order(keys) => {
                f.write_str("order()")?;
                keys.iter().try_for_each(|(by, down)| {
                    let way = if *down { "desc" } else { "asc" };
                    match by {
                        By::Object => write!(f, ".by({way})"),
                        by => write!(f, ".by({by}, {way})"),
                    }
                })
            }
            Self::Range(from, to) => write!(f, "range({from}, {to})"),
            Self::Slice(name, count) => write!(f, "{name}({count})"),
            Self::Unfold => f.write_str("unfold()"),
            Self::Group(key, By::Object) => write!(f, "group().by({key})"),
            Self::Group(key, value) => write!(f, "group().by({key}).by({value})"),
            Self::GroupCount(key) => write!(f, "groupCount().by({key})"),
            Self::Project(entries) => {
                let names: Vec<String> = entries.iter().map(|(name, _)| name.clone()).collect();
                write!(f, "project({})", quoted(&names))?;
                entries.iter().try_for_each(|(_, by)| write!(f, ".by({by})"))
            }
            Self::As(label) => write!(f, "as('{label}')"),
            Self::Select(labels) => write!(f, "select({})", quoted(labels)),
            Self::WhereSame(same, label) => {
                write!(f, "where(P.{}('{label}'))", if *same { "eq" } else { "neq" })
            }
            Self::Choose(test, then, otherwise) => {
                write!(f, "choose({}, {}, {})", inner(test), inner(then), inner(otherwise))
            }
            Self::Options(key, options) => {
                write!(f, "choose(__.values('{key}'))")?;
                options.iter().try_for_each(|(pick, traversal)| match pick {
                    Pick::Value(value) => write!(f, ".option({}, {})", literal(value), inner(traversal)),
                    Pick::Test(test) => write!(f, ".option({test}, {})", inner(traversal)),
                    Pick::None => write!(f, ".option(Pick.none, {})", inner(traversal)),
                    Pick::Unproductive => write!(f, ".option(Pick.unproductive, {})", inner(traversal)),
                })
            }
            Self::WithSack(number, None) => write!(f, "withSack({number})"),
            Self::WithSack(number, Some(merge)) => write!(f, "withSack({number}, {merge})"),
            Self::Barrier => f.write_str("barrier()"),
            Self::Aggregate(key) => write!(f, "aggregate('{key}')"),
            Self::WhereIn(within, key) => {
                write!(f, "where(P.{}('{key}'))", if *within { "within" } else { "without" })
            }
            Self::Cap(key) => write!(f, "cap('{key}')"),
            Self::ToSack(operator, Ok(key)) => write!(f, "sack({operator}).by('{key}')"),
            Self::ToSack(operator, Err(number)) => write!(f, "sack({operator}).by(__.constant({number}))"),
            Self::Sack => f.write_str("sack()"),
            Self::Path => f.write_str("path()"),
            Self::PathTest(simple) => f.write_str(if *simple { "simplePath()" } else { "cyclicPath()" }),
            Self::Repeat(repeat) => repeat.fmt(f),
            Self::Constant(value) => write!(f, "constant({})", literal(value)),
            Self::AddV(label) => write!(f, "addV('{label}')"),
            Self::AddE(label, to, id) => {
                write!(f, "addE('{label}').{}(__.V('{id}'))", if *to { "to" } else { "from" })
            }
            Self::Property(single, key, value) => {
                let single = if *single { "single, " } else { "" };
                write!(f, "property({single}'{key}', {})", literal(value))
            }
            Self::Drop => f.write_str("drop()"),
        }
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let until = match &self.until {
            None => format!("times({})", self.bound),
            Some(until) => format!("until(__.or({}, __.loops().is(P.gte({}))))", inner(until), self.bound),
        };
        let emit = match &self.emit {
            None => None,
            Some(emit) if emit.steps.is_empty() => Some("emit()".to_owned()),
            Some(emit) => Some(format!("emit({})", inner(emit))),
        };
        let body = format!("repeat({})", inner(&self.body));
        let before = [self.until_first.then(|| until.clone()), emit.clone().filter(|_| self.emit_first)];
        let after = [(!self.until_first).then_some(until), emit.filter(|_| !self.emit_first)];
        let parts: Vec<String> =
            before.into_iter().flatten().chain([body]).chain(after.into_iter().flatten()).collect();
        f.write_str(&parts.join("."))
    }
}
