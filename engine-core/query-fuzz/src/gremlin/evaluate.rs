//! Evaluates a traversal step by step over lists of traversers, as TinkerPop describes it.

use super::ast::{By, Pick, Predicate, Repeat, Step, Traversal};
use crate::graph::{Edge, Graph, Node};
use crate::value::{Val, compare, equals, group_by, order};
use crate::{Budget, Stop};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A traverser.
#[derive(Clone, Debug)]
struct Traverser {
    object: Val,
    path: Vec<Val>,
    labels: BTreeMap<String, Val>,
    sack: Val,
}

impl Traverser {
    fn new(object: Val) -> Self {
        Self { path: vec![object.clone()], object, labels: BTreeMap::new(), sack: Val::Null }
    }

    fn with_sack(self, sack: &Val) -> Self {
        Self { sack: sack.clone(), ..self }
    }

    fn at(&self, object: Val) -> Self {
        let mut next = self.clone();
        next.path.push(object.clone());
        next.object = object;
        next
    }
}

/// Runs a traversal, changes the graph, and returns its results as rows of one column.
///
/// # Errors
///
/// The traversal has no defined answer, or takes too many steps.
pub fn run(traversal: &Traversal, graph: &mut Graph) -> Result<Vec<Vec<Val>>, Stop> {
    let mut rest = &traversal.steps[..];
    let (mut sack, mut merge) = (Val::Null, None);
    if let Some(Step::WithSack(number, operator)) = rest.first() {
        (sack, merge) = (Val::Int(*number), *operator);
        rest = &rest[1..];
    }
    let mut sides: BTreeMap<&str, Vec<Val>> = BTreeMap::new();
    let mut writes = Writer { graph };
    let mut traversers = match rest.first() {
        Some(Step::AddV(label)) => {
            rest = &rest[1..];
            vec![Traverser::new(writes.add_vertex(label))]
        }
        Some(Step::V(_) | Step::E) => vec![],
        _ => return Err(Stop::Wrong("no start".to_owned())),
    };
    let budget = Budget::default();
    let mut start = true;
    for (index, step) in rest.iter().enumerate() {
        if writes.step(step, &mut traversers)? {
            start = false;
            continue;
        }
        let walker = Walker { graph: writes.graph, budget: &budget };
        budget.rows(traversers.len())?;
        traversers = match step {
            Step::Barrier => merged(merge, traversal.reads_paths(), traversers)?,
            Step::Aggregate(key) => {
                let objects = traversers.iter().map(|traverser| traverser.object.clone());
                sides.entry(key).or_default().extend(objects);
                traversers
            }
            Step::WhereIn(within, key) => {
                let side = sides.get(key.as_str()).ok_or_else(|| Stop::Wrong(step.to_string()))?;
                let is_in = |object: &Val| side.iter().any(|other| equals(object, other) == Some(true));
                traversers.into_iter().filter(|traverser| is_in(&traverser.object) == *within).collect()
            }
            Step::Cap(key) => {
                let side = sides.remove(key.as_str()).ok_or_else(|| Stop::Wrong(step.to_string()))?;
                vec![Traverser::new(Val::List(side))]
            }
            Step::V(ids) if start && traversers.is_empty() => {
                walker.vertices(ids).map(|object| Traverser::new(object).with_sack(&sack)).collect()
            }
            Step::E if start && traversers.is_empty() => {
                let edges = walker.graph.live_edges().map(|(edge, _)| Val::Edge(edge));
                edges.map(|edge| Traverser::new(edge).with_sack(&sack)).collect()
            }
            step => walker.step(step, index.checked_sub(1).map(|before| &rest[before]), traversers)?,
        };
        start = false;
    }
    Ok(traversers.into_iter().map(|traverser| vec![traverser.object]).collect())
}

/// Runs the steps that write.
struct Writer<'a> {
    graph: &'a mut Graph,
}

impl Writer<'_> {
    fn add_vertex(&mut self, label: &str) -> Val {
        let labels = BTreeSet::from([label.to_owned()]);
        self.graph.nodes.push(Some(Node { id: String::new(), labels, properties: BTreeMap::new() }));
        Val::Node(self.graph.nodes.len() - 1)
    }

    /// Runs the step; returns whether it is one that writes.
    fn step(&mut self, step: &Step, traversers: &mut Vec<Traverser>) -> Result<bool, Stop> {
        match step {
            Step::Property(_, key, value) => {
                for traverser in traversers.iter() {
                    let of = &traverser.object;
                    crate::cypher::evaluate::set_property(self.graph, of, key, value.clone());
                }
            }
            // No traverser asks for the other vertex, so it need not exist.
            Step::AddE(..) if traversers.is_empty() => {}
            Step::AddE(label, to, id) => {
                let other = self.graph.live_nodes().find(|(_, node)| node.id == *id).map(|(index, _)| index);
                let other = other.ok_or_else(|| Stop::Wrong(format!("no vertex {id}")))?;
                for traverser in traversers.iter_mut() {
                    let Val::Node(here) = traverser.object else { return Err(Stop::Wrong("addE".into())) };
                    let (source, target) = if *to { (here, other) } else { (other, here) };
                    let (id, kind, properties) = (String::new(), label.clone(), BTreeMap::new());
                    self.graph.edges.push(Some(Edge { id, source, target, kind, properties }));
                    *traverser = traverser.at(Val::Edge(self.graph.edges.len() - 1));
                }
            }
            Step::Drop => {
                for traverser in std::mem::take(traversers) {
                    match traverser.object {
                        Val::Node(node) => self.graph.detach_delete(node),
                        Val::Edge(edge) => self.graph.edges[edge] = None,
                        _ => return Err(Stop::Wrong("drop".into())),
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Computes a step over a string or a number.
fn scalar(step: &str, object: &Val) -> Result<Val, Stop> {
    Ok(match (step, object) {
        ("toUpper()", Val::Str(text)) => Val::Str(text.to_uppercase()),
        ("toLower()", Val::Str(text)) => Val::Str(text.to_lowercase()),
        ("reverse()", Val::Str(text)) => Val::Str(text.chars().rev().collect()),
        ("concat('x', null)", Val::Str(text)) => Val::Str(format!("{text}x")),
        ("replace('a', 'bb')", Val::Str(text)) => Val::Str(text.replace('a', "bb")),
        ("substring(1, -1)", Val::Str(text)) => {
            let kept = text.chars().count().saturating_sub(2);
            Val::Str(text.chars().skip(1).take(kept).collect())
        }
        ("length()", Val::Str(text)) => Val::Int(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)),
        ("asString()", Val::Str(_)) | ("asNumber()", Val::Int(_)) => object.clone(),
        ("asString()", Val::Int(number)) => Val::Str(number.to_string()),
        ("math('_ * 2 - 1')", Val::Int(_)) => Val::Float(object.number().unwrap_or_default() * 2.0 - 1.0),
        _ => return Err(Stop::Wrong(format!("{step} of {object:?}"))),
    })
}

/// Runs the steps that read.
struct Walker<'a> {
    graph: &'a Graph,
    budget: &'a Budget,
}

impl Walker<'_> {
    fn vertices<'a>(&'a self, ids: &'a [String]) -> impl Iterator<Item = Val> + 'a {
        let all = self.graph.live_nodes();
        all.filter(|(_, node)| ids.is_empty() || ids.contains(&node.id)).map(|(index, _)| Val::Node(index))
    }

    fn traversal(
        &self,
        traversal: &Traversal,
        mut traversers: Vec<Traverser>,
    ) -> Result<Vec<Traverser>, Stop> {
        for (index, step) in traversal.steps.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| &traversal.steps[before]);
            traversers = self.step(step, before, traversers)?;
        }
        Ok(traversers)
    }

    fn passes(&self, test: &Traversal, traverser: &Traverser) -> Result<bool, Stop> {
        Ok(!self.traversal(test, vec![traverser.clone()])?.is_empty())
    }

    /// Keeps the traversers that pass a test.
    fn keep(
        traversers: Vec<Traverser>,
        test: impl Fn(&Traverser) -> Result<bool, Stop>,
    ) -> Result<Vec<Traverser>, Stop> {
        let mut kept = vec![];
        for traverser in traversers {
            if test(&traverser)? {
                kept.push(traverser);
            }
        }
        Ok(kept)
    }

    /// Replaces each traverser by those at other objects.
    fn go(
        &self,
        traversers: Vec<Traverser>,
        to: impl Fn(&Val) -> Result<Vec<Val>, Stop>,
    ) -> Result<Vec<Traverser>, Stop> {
        let mut out = vec![];
        for traverser in traversers {
            out.extend(to(&traverser.object)?.into_iter().map(|object| traverser.at(object)));
            self.budget.rows(out.len())?;
        }
        Ok(out)
    }

    fn step(&self, step: &Step, before: Option<&Step>, all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
        self.budget.rows(all.len())?;
        match step {
            Step::HasLabel(_) | Step::Has(..) | Step::HasKey(..) | Step::HasId(_) => {
                Self::keep(all, |traverser| self.has(step, &traverser.object))
            }
            Step::Move(name, labels) => self.go(all, |object| self.neighbours(object, name, labels)),
            Step::End(name) => self.go(all, |object| self.ends(object, name)),
            Step::Values(key) => self.go(all, |object| {
                element(object)?;
                let value = self.graph.property(object, key);
                Ok(if value.is_null() { vec![] } else { vec![value] })
            }),
            Step::Id => self.go(all, |object| Ok(vec![self.id(object)?])),
            Step::Label => self.go(all, |object| match object {
                Val::Edge(edge) => {
                    Ok(self.graph.edge(*edge).into_iter().map(|edge| Val::Str(edge.kind.clone())).collect())
                }
                _ => Err(Stop::Wrong("label() of a vertex".to_owned())),
            }),
            Step::Scalar(text) => self.go(all, |object| Ok(vec![scalar(text, object)?])),
            Step::Constant(value) => self.go(all, |_| Ok(vec![value.clone()])),
            Step::Is(predicate) => Self::keep(all, |traverser| holds(predicate, &traverser.object)),
            Step::Test("not", test) => Self::keep(all, |traverser| Ok(!self.passes(test, traverser)?)),
            Step::Test(_, test) => Self::keep(all, |traverser| self.passes(test, traverser)),
            Step::Connect(name, tests) => Self::keep(all, |traverser| {
                let results: Result<Vec<bool>, Stop> =
                    tests.iter().map(|test| self.passes(test, traverser)).collect();
                let results = results?;
                Ok(if *name == "and" { results.iter().all(|r| *r) } else { results.iter().any(|r| *r) })
            }),
            Step::WhereSame(same, label) => Self::keep(all, |traverser| {
                let other = traverser.labels.get(label).ok_or_else(|| Stop::Wrong("no label".to_owned()))?;
                Ok((equals(&traverser.object, other) == Some(true)) == *same)
            }),
            Step::PathTest(simple) => Self::keep(all, |traverser| {
                let distinct = group_by(traverser.path.iter().map(|object| (vec![object.clone()], ())));
                Ok((distinct.len() == traverser.path.len()) == *simple)
            }),
            Step::Path => Ok(all
                .into_iter()
                .map(|traverser| {
                    let path = Val::Path(traverser.path.clone());
                    traverser.at(path)
                })
                .collect()),
            Step::As(label) => Ok(all
                .into_iter()
                .map(|mut traverser| {
                    traverser.labels.insert(label.clone(), traverser.object.clone());
                    traverser
                })
                .collect()),
            Step::Select(labels) => select(labels, all),
            Step::Unfold => self.go(all, |object| {
                Ok(match object {
                    Val::List(items) => items.clone(),
                    Val::Map(_) | Val::Path(_) => return Err(Stop::Wrong("unfold".to_owned())),
                    other => vec![other.clone()],
                })
            }),
            Step::Dedup(_) | Step::Order(_) | Step::Range(..) | Step::Slice(..) => {
                self.over_stream(step, before, all)
            }
            Step::Reduce(name) => reduce(name, all),
            Step::Group(..) | Step::GroupCount(_) | Step::Project(_) => self.maps(step, all),
            Step::Branch(..) | Step::Nested(..) | Step::Choose(..) | Step::Options(..) => {
                self.branches(step, all)
            }
            Step::Repeat(repeat) => self.repeat(repeat, all),
            Step::ToSack(operator, by) => {
                let mut out = vec![];
                for mut traverser in all {
                    let other = match by {
                        Ok(key) => self.by(&By::Key(key.clone()), &traverser)?,
                        Err(number) => Some(Val::Int(*number)),
                    };
                    if let Some(other) = other {
                        traverser.sack = operate(operator, &traverser.sack, other)?;
                        out.push(traverser);
                    }
                }
                Ok(out)
            }
            Step::Sack => Ok(all
                .into_iter()
                .map(|traverser| {
                    let sack = traverser.sack.clone();
                    traverser.at(sack)
                })
                .collect()),
            Step::WithSack(..) | Step::Barrier | Step::Aggregate(_) | Step::WhereIn(..) | Step::Cap(_) => {
                Err(Stop::Wrong(step.to_string()))
            }
            Step::V(_) | Step::E | Step::AddV(_) | Step::AddE(..) | Step::Property(..) | Step::Drop => {
                Err(Stop::Wrong(format!("{step} in the middle")))
            }
        }
    }

    fn id(&self, object: &Val) -> Result<Val, Stop> {
        match self.graph.id(object) {
            Val::Null => Err(Stop::Wrong("id() of a value".to_owned())),
            id => Ok(id),
        }
    }

    fn has(&self, step: &Step, object: &Val) -> Result<bool, Stop> {
        element(object)?;
        match step {
            Step::HasLabel(labels) => Ok(match object {
                Val::Node(node) => self
                    .graph
                    .node(*node)
                    .is_some_and(|node| labels.iter().any(|label| node.labels.contains(label))),
                Val::Edge(edge) => self.graph.edge(*edge).is_some_and(|edge| labels.contains(&edge.kind)),
                _ => false,
            }),
            Step::Has(key, predicate) => {
                let value = self.graph.property(object, key);
                Ok(!value.is_null() && holds(predicate, &value)?)
            }
            Step::HasKey(key, wanted) => Ok(self.graph.property(object, key).is_null() != *wanted),
            Step::HasId(id) => Ok(matches!(self.id(object)?, Val::Str(own) if own == *id)),
            _ => Err(Stop::Wrong(step.to_string())),
        }
    }

    fn neighbours(&self, object: &Val, name: &str, labels: &[String]) -> Result<Vec<Val>, Stop> {
        let Val::Node(here) = object else { return Err(Stop::Wrong(format!("{name}() of {object:?}"))) };
        let mut found = vec![];
        for (index, edge) in self.graph.live_edges() {
            self.budget.step()?;
            if !labels.is_empty() && !labels.contains(&edge.kind) {
                continue;
            }
            let edges = name.ends_with('E');
            if edge.source == *here && !name.starts_with("in") {
                found.push(if edges { Val::Edge(index) } else { Val::Node(edge.target) });
            }
            if edge.target == *here && !name.starts_with("out") {
                found.push(if edges { Val::Edge(index) } else { Val::Node(edge.source) });
            }
        }
        Ok(found)
    }

    fn ends(&self, object: &Val, name: &str) -> Result<Vec<Val>, Stop> {
        let edge = match object {
            Val::Edge(edge) => self.graph.edge(*edge),
            _ => None,
        };
        let Some(edge) = edge else { return Err(Stop::Wrong(format!("{name}() of {object:?}"))) };
        let (source, target) = (Val::Node(edge.source), Val::Node(edge.target));
        Ok(match name {
            "outV" => vec![source],
            "inV" => vec![target],
            _ => vec![source, target],
        })
    }

    /// Evaluates a `by()`; `None` if it has no result.
    fn by(&self, by: &By, traverser: &Traverser) -> Result<Option<Val>, Stop> {
        Ok(match by {
            By::Object => Some(traverser.object.clone()),
            By::Key(key) => {
                element(&traverser.object)?;
                Some(self.graph.property(&traverser.object, key)).filter(|value| !value.is_null())
            }
            By::Id => Some(self.id(&traverser.object)?),
            By::Traversal(traversal) => {
                let found = self.traversal(traversal, vec![traverser.clone()])?;
                found.into_iter().next().map(|traverser| traverser.object)
            }
        })
    }

    fn over_stream(
        &self,
        step: &Step,
        before: Option<&Step>,
        all: Vec<Traverser>,
    ) -> Result<Vec<Traverser>, Stop> {
        let sliced = |from: usize, to: usize, all: Vec<Traverser>| {
            if !matches!(before, Some(Step::Order(_) | Step::Range(..) | Step::Slice(..))) {
                return Err(Stop::Wrong("a slice without an order".to_owned()));
            }
            Ok(all.into_iter().take(to).skip(from).collect())
        };
        match step {
            Step::Dedup(key) => {
                let by = key.clone().map_or(By::Object, By::Key);
                let mut keyed = vec![];
                for traverser in all {
                    if let Some(key) = self.by(&by, &traverser)? {
                        keyed.push((vec![key], traverser));
                    }
                }
                Ok(group_by(keyed).into_values().filter_map(|group| group.into_iter().next()).collect())
            }
            Step::Order(keys) => {
                let mut keyed = vec![];
                'all: for traverser in all {
                    let mut values = vec![];
                    for (by, _) in keys {
                        match self.by(by, &traverser)? {
                            Some(value) => values.push(value),
                            None => continue 'all,
                        }
                    }
                    keyed.push((values, traverser));
                }
                keyed.sort_by(|(a, _), (b, _)| {
                    let by = a.iter().zip(b).zip(keys).map(|((a, b), (_, down))| {
                        let by = gremlin_order(a, b);
                        if *down { by.reverse() } else { by }
                    });
                    by.fold(Ordering::Equal, Ordering::then)
                });
                Ok(keyed.into_iter().map(|(_, traverser)| traverser).collect())
            }
            Step::Range(from, to) => sliced(*from, *to, all),
            Step::Slice("limit", count) => sliced(0, *count, all),
            Step::Slice("skip", count) => sliced(*count, usize::MAX, all),
            Step::Slice(_, count) => sliced(all.len().saturating_sub(*count), usize::MAX, all),
            _ => Err(Stop::Wrong(step.to_string())),
        }
    }

    fn maps(&self, step: &Step, all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
        let (key, value) = match step {
            Step::Group(key, value) => (key, Some(value)),
            Step::GroupCount(key) => (key, None),
            Step::Project(entries) => {
                let mut out = vec![];
                for traverser in all {
                    let mut map = vec![];
                    for (name, by) in entries {
                        if let Some(value) = self.by(by, &traverser)? {
                            map.push((Val::Str(name.clone()), value));
                        }
                    }
                    out.push(traverser.at(Val::Map(map)));
                }
                return Ok(out);
            }
            _ => return Err(Stop::Wrong(step.to_string())),
        };
        let mut keyed = vec![];
        for traverser in all {
            if let Some(key) = self.by(key, &traverser)? {
                keyed.push((vec![key], traverser));
            }
        }
        let mut map = vec![];
        for (key, group) in group_by(keyed) {
            let Some(key) = key.0.into_iter().next() else { continue };
            let value = match value {
                None => integer(group.len()),
                Some(By::Traversal(traversal)) => {
                    let found = self.traversal(traversal, group)?;
                    match found.into_iter().next() {
                        Some(traverser) => traverser.object,
                        None => return Err(Stop::Wrong("a group without a value".to_owned())),
                    }
                }
                Some(by) => {
                    let mut values = vec![];
                    for traverser in &group {
                        values.extend(self.by(by, traverser)?);
                    }
                    Val::List(values)
                }
            };
            map.push((key, value));
        }
        Ok(vec![Traverser::new(Val::Map(map))])
    }

    fn branches(&self, step: &Step, all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
        let mut out = vec![];
        if all.is_empty() {
            // TinkerPop runs no branch then, not even one that reduces.
            return Ok(out);
        }
        match step {
            Step::Branch("union", branches) => {
                for branch in branches {
                    out.extend(self.traversal(branch, all.clone())?);
                }
            }
            Step::Branch(_, branches) => {
                for traverser in all {
                    for branch in branches {
                        let found = self.traversal(branch, vec![traverser.clone()])?;
                        if !found.is_empty() {
                            // Path and labels inside a branch end with it.
                            out.extend(found.into_iter().map(|end| traverser.at(end.object)));
                            break;
                        }
                    }
                }
            }
            Step::Nested(name, inner) => {
                for traverser in all {
                    let found = self.traversal(inner, vec![traverser.clone()])?;
                    if found.is_empty() && *name == "optional" {
                        out.push(traverser);
                    } else {
                        out.extend(found);
                    }
                }
            }
            Step::Options(key, options) => {
                // As in 3.8: the first option that matches runs, and a traverser without one passes. Each option sees all
                // traversers that chose it.
                let mut chosen: Vec<Vec<Traverser>> = vec![vec![]; options.len() + 1];
                for traverser in all {
                    let choice = self.by(&By::Key(key.clone()), &traverser)?;
                    let option = picked(options, choice.as_ref())?.unwrap_or(options.len());
                    chosen[option].push(traverser);
                }
                out.extend(chosen.pop().unwrap_or_default());
                for ((_, option), traversers) in options.iter().zip(chosen) {
                    if !traversers.is_empty() {
                        out.extend(self.traversal(option, traversers)?);
                    }
                }
            }
            Step::Choose(test, then, otherwise) => {
                let (mut yes, mut no) = (vec![], vec![]);
                for traverser in all {
                    let chosen = if self.passes(test, &traverser)? { &mut yes } else { &mut no };
                    chosen.push(traverser);
                }
                for (branch, chosen) in [(then, yes), (otherwise, no)] {
                    // A branch that nobody chose does not run, not even to count nobody.
                    if !chosen.is_empty() {
                        out.extend(self.traversal(branch, chosen)?);
                    }
                }
            }
            _ => return Err(Stop::Wrong(step.to_string())),
        }
        self.budget.rows(out.len())?;
        Ok(out)
    }

    /// Follows TinkerPop's `RepeatStep`, one traverser after the other.
    fn repeat(&self, repeat: &Repeat, all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
        let mut out = vec![];
        let mut waiting: Vec<(Traverser, usize)> = all.into_iter().map(|traverser| (traverser, 0)).collect();
        let ends = |traverser: &Traverser, loops: usize| -> Result<bool, Stop> {
            let until = match &repeat.until {
                Some(until) => self.passes(until, traverser)?,
                None => false,
            };
            Ok(until || loops >= repeat.bound)
        };
        let emits = |traverser: &Traverser| match &repeat.emit {
            Some(emit) => self.passes(emit, traverser),
            None => Ok(false),
        };
        while let Some((traverser, loops)) = waiting.pop() {
            self.budget.rows(waiting.len() + out.len())?;
            if repeat.until_first && ends(&traverser, loops)? {
                out.push(traverser);
                continue;
            }
            if repeat.emit_first && emits(&traverser)? {
                out.push(traverser.clone());
            }
            for end in self.traversal(&repeat.body, vec![traverser])? {
                if !repeat.until_first && ends(&end, loops + 1)? {
                    out.push(end);
                    continue;
                }
                if !repeat.emit_first && emits(&end)? {
                    out.push(end.clone());
                }
                waiting.push((end, loops + 1));
            }
        }
        Ok(out)
    }
}

/// Returns the option that runs for a choice.
fn picked(options: &[(Pick, Traversal)], choice: Option<&Val>) -> Result<Option<usize>, Stop> {
    let first = |wanted: fn(&Pick) -> bool| options.iter().position(|(pick, _)| wanted(pick));
    let Some(choice) = choice else { return Ok(first(|pick| matches!(pick, Pick::Unproductive))) };
    for (index, (pick, _)) in options.iter().enumerate() {
        let matches = match pick {
            Pick::Value(value) => equals(choice, value) == Some(true),
            Pick::Test(test) => holds(test, choice)?,
            Pick::None | Pick::Unproductive => false,
        };
        if matches {
            return Ok(Some(index));
        }
    }
    Ok(first(|pick| matches!(pick, Pick::None)))
}

/// Merges the sacks of traversers that nothing else tells apart. As many traversers as before go on.
fn merged(merge: Option<&str>, by_path: bool, traversers: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
    let Some(operator) = merge else { return Ok(traversers) };
    let state = |traverser: &Traverser| {
        let labels =
            traverser.labels.iter().flat_map(|(label, object)| [Val::Str(label.clone()), object.clone()]);
        let path = if by_path { traverser.path.clone() } else { vec![] };
        let parts = [vec![traverser.object.clone()], labels.collect(), path];
        parts.map(Val::List).to_vec()
    };
    let mut out = vec![];
    for group in
        group_by(traversers.into_iter().map(|traverser| (state(&traverser), traverser))).into_values()
    {
        let mut sacks = group.iter().map(|traverser| traverser.sack.clone());
        let first = sacks.next().unwrap_or(Val::Null);
        let sack = sacks.try_fold(first, |sack, other| operate(operator, &sack, other))?;
        out.extend(group.into_iter().map(|traverser| traverser.with_sack(&sack)));
    }
    Ok(out)
}

/// Joins a sack with a value.
fn operate(operator: &str, sack: &Val, other: Val) -> Result<Val, Stop> {
    let (Val::Int(a), Val::Int(b)) = (sack, &other) else {
        return Err(Stop::Wrong(format!("{operator} of {sack:?} and {other:?}")));
    };
    Ok(Val::Int(match operator {
        "sum" => a + b,
        "minus" => a - b,
        "mult" => a * b,
        "min" => *a.min(b),
        "max" => *a.max(b),
        _ => *b,
    }))
}

fn element(object: &Val) -> Result<(), Stop> {
    match object {
        Val::Node(_) | Val::Edge(_) => Ok(()),
        other => Err(Stop::Wrong(format!("properties of {other:?}"))),
    }
}

fn select(labels: &[String], all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
    let mut out = vec![];
    for traverser in all {
        let found: Option<Vec<(Val, Val)>> = labels
            .iter()
            .map(|label| Some((Val::Str(label.clone()), traverser.labels.get(label)?.clone())))
            .collect();
        let entries = found.ok_or_else(|| Stop::Wrong("no label".to_owned()))?;
        out.push(match entries.as_slice() {
            [(_, value)] => traverser.at(value.clone()),
            _ => traverser.at(Val::Map(entries)),
        });
    }
    Ok(out)
}

fn integer(number: usize) -> Val {
    Val::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn reduce(name: &str, all: Vec<Traverser>) -> Result<Vec<Traverser>, Stop> {
    let objects: Vec<Val> = all.into_iter().map(|traverser| traverser.object).collect();
    let one = |value: Val| Ok(vec![Traverser::new(value)]);
    match name {
        "count" => return one(integer(objects.len())),
        "fold" => return one(Val::List(objects)),
        _ => {}
    }
    if objects.is_empty() {
        return Ok(vec![]);
    }
    match name {
        "min" | "max" => {
            let texts = objects.iter().all(|object| matches!(object, Val::Str(_)));
            if !texts && objects.iter().any(|object| object.number().is_none()) {
                return Err(Stop::Wrong(format!("{name}() of several types")));
            }
            let found = objects.into_iter();
            let found = if name == "min" { found.min_by(order) } else { found.max_by(order) };
            one(found.unwrap_or(Val::Null))
        }
        _ => {
            let numbers: Option<Vec<f64>> = objects.iter().map(Val::number).collect();
            let numbers = numbers.ok_or_else(|| Stop::Wrong(format!("{name}() of no numbers")))?;
            let sum: f64 = numbers.iter().sum();
            #[allow(clippy::cast_precision_loss, reason = "few values")]
            one(Val::Float(if name == "mean" { sum / numbers.len() as f64 } else { sum }))
        }
    }
}

/// Gremlin's order of types differs from openCypher's.
fn gremlin_order(a: &Val, b: &Val) -> Ordering {
    let rank = |value: &Val| match value {
        Val::Null => 0,
        Val::Bool(_) => 1,
        Val::Int(_) | Val::Float(_) => 2,
        _ => 3,
    };
    rank(a).cmp(&rank(b)).then_with(|| order(a, b))
}

/// Whether a predicate holds. The generator compares only values of one type.
fn holds(predicate: &Predicate, value: &Val) -> Result<bool, Stop> {
    let ordered = |other: &Val| {
        compare(value, other).ok_or_else(|| Stop::Wrong(format!("{value:?} compared with {other:?}")))
    };
    Ok(match predicate {
        Predicate::Compare("eq", other) => equals(value, other) == Some(true),
        Predicate::Compare("neq", other) => equals(value, other) != Some(true),
        Predicate::Compare("gt", other) => ordered(other)?.is_gt(),
        Predicate::Compare("gte", other) => ordered(other)?.is_ge(),
        Predicate::Compare("lt", other) => ordered(other)?.is_lt(),
        Predicate::Compare("lte", other) => ordered(other)?.is_le(),
        Predicate::Compare(name, other) => match (value, other) {
            (Val::Str(value), Val::Str(other)) if *name == "startingWith" => value.starts_with(other),
            (Val::Str(value), Val::Str(other)) => value.contains(other.as_str()),
            _ => return Err(Stop::Wrong(format!("{name} of {value:?}"))),
        },
        Predicate::Range("between", from, to) => ordered(from)?.is_ge() && ordered(to)?.is_lt(),
        Predicate::Range("inside", from, to) => ordered(from)?.is_gt() && ordered(to)?.is_lt(),
        Predicate::Range(_, from, to) => ordered(from)?.is_lt() || ordered(to)?.is_gt(),
        Predicate::List(name, values) => {
            values.iter().any(|other| equals(value, other) == Some(true)) == (*name == "within")
        }
        Predicate::Both("and", a, b) => holds(a, value)? && holds(b, value)?,
        Predicate::Both(_, a, b) => holds(a, value)? || holds(b, value)?,
    })
}
