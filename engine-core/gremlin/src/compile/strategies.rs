//! `withStrategies` and `withoutStrategies`.
//!
//! A strategy that restricts what a traversal sees is a rewrite of its steps, before they are compiled: each step that comes
//! to vertices or edges gets a filter. What the rewrite does not know is refused, because it could show what it must not.
//! Strategies of TinkerPop that only make traversals faster have no effect here, where the optimiser does what they do.
//!
//! **Invariant.** With a `SubgraphStrategy` or a `PartitionStrategy`, no step comes to an element that was not tested.

use super::{Result, element_id, wrong_arguments};
use crate::ast::{Arg, ArgKind, Predicate, SourceCall, Step, StepName};
use crate::compile::step::moves;
use crate::fault::Fault;
use crate::names::PredicateName;
use tidegraph_plan::GremlinType;
use tidegraph_types::{Str, Value};

/// Strategies of TinkerPop that change no answer.
const WITHOUT_EFFECT: &[&str] = &[
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
    "CountStrategy",
    "EarlyLimitStrategy",
    "FilterRankingStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "RepeatUnrollStrategy",
    "StandardVerificationStrategy",
    "VertexProgramRestrictionStrategy",
];
/// Strategies that `withStrategies` takes, and `withoutStrategies` removes.
const WITH_EFFECT: &[&str] = &[
    "ConnectiveStrategy",
    "EdgeLabelVerificationStrategy",
    "ElementIdStrategy",
    "OptionsStrategy",
    "PartitionStrategy",
    "ProductiveByStrategy",
    "ReadOnlyStrategy",
    "ReferenceElementStrategy",
    "ReservedKeysVerificationStrategy",
    "SeedStrategy",
    "SubgraphStrategy",
];
/// Strategies that `withoutStrategies` may name, although none of them is ever applied.
const NEVER_APPLIED: &[&str] = &["EventStrategy", "SackStrategy", "SideEffectStrategy"];
/// The strategy that runs a traversal on a computer for the whole graph. Every traversal may have the steps of computers.
const COMPUTER: &str = "VertexProgramStrategy";
/// Largest number of steps of a statement, with those that strategies add.
const MAX_STEPS: usize = 2_000;

/// The elements that a traversal sees.
#[derive(Default)]
struct Seen<'t> {
    /// Tests of vertices and of edges.
    vertices: Option<Vec<Step<'t>>>,
    edges: Option<Vec<Step<'t>>>,
    /// The test of properties of vertices. As in TinkerPop, `has` steps see all properties.
    properties: Option<Vec<Step<'t>>>,
    /// Key and value that new elements get; `None`: it may make none.
    written: Option<(Str, Arg<'t>)>,
}

/// The strategies of a statement.
#[derive(Default)]
pub(super) struct Strategies<'t> {
    seen: Vec<Seen<'t>>,
    read_only: bool,
    edge_labels: bool,
    reserved_keys: Vec<Str>,
    /// Every `by()` has a value, a null where its child has none, but for these keys.
    pub(super) productive_by: Option<Vec<Str>>,
    /// The seed of random numbers.
    pub(super) seed: Option<u64>,
    /// Whether elements of the answer have no properties.
    pub(super) references: bool,
    /// The property that stands for the id of elements.
    id_key: Option<Str>,
    /// Whether `and()` and `or()` between steps have no operands, because no strategy takes the steps beside them for such.
    without_infix: bool,
    steps: usize,
}

impl<'t> Strategies<'t> {
    /// Reads the calls on `g`.
    pub(super) fn of(calls: &[Step<'t, SourceCall>]) -> Result<Self> {
        let mut strategies = Self::default();
        for call in calls {
            for arg in &call.args {
                let ArgKind::Strategy(name, settings) = &arg.kind else { continue };
                if *name == COMPUTER && call.name == SourceCall::WithStrategies && restricts_computers(calls)
                {
                    let message = "the traversal source does not allow the use of a graph computer";
                    return Err(Fault::syntax(arg.at, message.into()));
                }
                if WITHOUT_EFFECT.contains(name) {
                    continue;
                }
                if *name == COMPUTER {
                    accept_computer(settings)?;
                    continue;
                }
                if call.name == SourceCall::WithoutStrategies && NEVER_APPLIED.contains(name) {
                    continue;
                }
                if !WITH_EFFECT.contains(name) {
                    let name = crate::lexer::shorten(name);
                    return Err(Fault::unsupported(arg.at, format!("the strategy {name}")));
                }
                if call.name == SourceCall::WithoutStrategies {
                    strategies.remove(name);
                } else {
                    strategies.add(arg.at, name, settings)?;
                }
            }
        }
        Ok(strategies)
    }

    fn remove(&mut self, name: &str) {
        match name {
            "ReadOnlyStrategy" => self.read_only = false,
            "ConnectiveStrategy" => self.without_infix = true,
            "OptionsStrategy" => {}
            "SeedStrategy" => self.seed = None,
            "ReferenceElementStrategy" => self.references = false,
            "ElementIdStrategy" => self.id_key = None,
            "ProductiveByStrategy" => self.productive_by = None,
            "EdgeLabelVerificationStrategy" => self.edge_labels = false,
            "ReservedKeysVerificationStrategy" => self.reserved_keys.clear(),
            "PartitionStrategy" => self.seen.retain(|seen| seen.written.is_none()),
            _ => self.seen.retain(|seen| seen.written.is_some()),
        }
    }

    fn add(&mut self, at: usize, name: &str, settings: &[(&'t str, Arg<'t>)]) -> Result<()> {
        let wrong = |key: &str, expected: &str| {
            Fault::syntax(at, format!("{name} needs {expected} as {}", crate::lexer::shorten(key)))
        };
        let is_true = |key: &str, otherwise: bool| match settings.iter().find(|(k, _)| *k == key) {
            None => Ok(otherwise),
            Some((_, Arg { kind: ArgKind::Value(Value::Bool(value)), .. })) => Ok(*value),
            Some(_) => Err(wrong(key, "true or false")),
        };
        let known: &[&str] = match name {
            "SubgraphStrategy" => &[
                "vertices",
                "edges",
                "vertexProperties",
                "checkAdjacentVertices",
                // So gremlin-python 3.7 names it.
                "checkAdjacentProperties",
            ],
            "PartitionStrategy" => {
                &["partitionKey", "writePartition", "readPartitions", "includeMetaProperties"]
            }
            "EdgeLabelVerificationStrategy" => &["throwException", "logWarning"],
            "ProductiveByStrategy" => &["productiveKeys"],
            "SeedStrategy" => &["seed"],
            "ElementIdStrategy" => &["idPropertyKey"],
            "ReservedKeysVerificationStrategy" => &["throwException", "logWarning", "keys"],
            _ => &[],
        };
        if let Some((key, value)) =
            settings.iter().find(|(key, _)| !known.contains(key) && name != "OptionsStrategy")
        {
            let key = crate::lexer::shorten(key);
            return Err(Fault::unsupported(value.at, format!("{key} of {name}")));
        }
        let setting = |key: &str| settings.iter().find(|(k, _)| *k == key).map(|(_, value)| value);
        match name {
            "ReadOnlyStrategy" => self.read_only = true,
            "ConnectiveStrategy" => self.without_infix = false,
            "ReferenceElementStrategy" => self.references = true,
            "ElementIdStrategy" => match setting("idPropertyKey") {
                None => self.id_key = Some(element_id::DEFAULT_KEY.into()),
                Some(Arg { kind: ArgKind::Text(key), .. }) => self.id_key = Some(key.clone()),
                Some(_) => return Err(wrong("idPropertyKey", "a key")),
            },
            "SeedStrategy" => match setting("seed").map(|seed| &seed.kind) {
                Some(ArgKind::Value(value)) if value.as_i64().is_some() => {
                    self.seed = value.as_i64().map(i64::cast_unsigned);
                }
                _ => return Err(wrong("seed", "an integer")),
            },
            "ProductiveByStrategy" => {
                self.productive_by = Some(match setting("productiveKeys") {
                    None => vec![],
                    Some(Arg { kind: ArgKind::List(keys) | ArgKind::Set(keys), .. }) => {
                        keys.iter().filter_map(Arg::text).cloned().collect()
                    }
                    Some(_) => return Err(wrong("productiveKeys", "a list of keys")),
                });
            }
            "EdgeLabelVerificationStrategy" => self.edge_labels |= is_true("throwException", false)?,
            "ReservedKeysVerificationStrategy" if is_true("throwException", false)? => {
                match setting("keys") {
                    None => self.reserved_keys.extend(["id".into(), "label".into()]),
                    Some(Arg { kind: ArgKind::List(keys) | ArgKind::Set(keys), .. }) => {
                        self.reserved_keys.extend(keys.iter().filter_map(Arg::text).cloned());
                    }
                    Some(_) => return Err(wrong("keys", "a list of keys")),
                }
            }
            "SubgraphStrategy" => {
                let steps = |key: &str| match setting(key) {
                    None => Ok(None),
                    Some(Arg { kind: ArgKind::Traversal(steps), .. }) => Ok(Some(steps.clone())),
                    Some(_) => Err(wrong(key, "a traversal")),
                };
                let (vertices, mut edges) = (steps("vertices")?, steps("edges")?);
                let properties = steps("vertexProperties")?.map(|test| vec![of_vertex_properties(at, &test)]);
                let checks_ends =
                    is_true("checkAdjacentVertices", true)? && is_true("checkAdjacentProperties", true)?;
                if let Some(test) = vertices.as_ref().filter(|_| checks_ends) {
                    let end = |name| {
                        let inner = vec![Step { at, name, args: vec![] }, filter(at, test)];
                        Arg { at, kind: ArgKind::Traversal(inner) }
                    };
                    let ends = vec![end(StepName::InV), end(StepName::OutV)];
                    let both = Step { at, name: StepName::And, args: ends };
                    edges = Some(edges.iter().map(|test| filter(at, test)).chain([both]).collect());
                }
                self.seen.push(Seen { vertices, edges, properties, written: None });
            }
            "PartitionStrategy" if is_true("includeMetaProperties", false)? => {
                return Err(Fault::unsupported(at, "includeMetaProperties of PartitionStrategy"));
            }
            "PartitionStrategy" => {
                let Some(key) = setting("partitionKey").and_then(Arg::text) else {
                    return Err(wrong("partitionKey", "a key"));
                };
                let read = match setting("readPartitions") {
                    Some(Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }) => items.clone(),
                    _ => return Err(wrong("readPartitions", "a list of partitions")),
                };
                let within = ArgKind::Predicate(Predicate::Test(PredicateName::Within, read));
                let args = vec![Arg { at, kind: ArgKind::Text(key.clone()) }, Arg { at, kind: within }];
                let test = vec![Step { at, name: StepName::Has, args }];
                let Some(partition) = setting("writePartition") else {
                    return Err(wrong("writePartition", "a partition"));
                };
                let written = Some((key.clone(), partition.clone()));
                self.seen.push(Seen {
                    vertices: Some(test.clone()),
                    edges: Some(test),
                    properties: None,
                    written,
                });
            }
            _ => {}
        }
        Ok(())
    }

    /// Returns the steps as the strategies allow them; `None`: as they are.
    pub(super) fn apply(&mut self, steps: &[Step<'t>]) -> Result<Option<Vec<Step<'t>>>> {
        self.verify(steps)?;
        let mut rewritten = self.without_infix.then(|| without_infix(steps));
        if let Some(key) = &self.id_key {
            rewritten = Some(element_id::rewritten(rewritten.as_deref().unwrap_or(steps), key));
        }
        for seen in std::mem::take(&mut self.seen) {
            let before = rewritten.as_deref().unwrap_or(steps);
            rewritten = Some(self.rewrite(&seen, before)?);
        }
        Ok(rewritten)
    }

    /// Refuses steps that a strategy does not allow.
    fn verify(&self, steps: &[Step<'_>]) -> Result<()> {
        for step in steps {
            let writes = matches!(
                step.name,
                StepName::AddV
                    | StepName::AddE
                    | StepName::MergeV
                    | StepName::MergeE
                    | StepName::Property
                    | StepName::Drop
                    | StepName::Read
            );
            if self.read_only && writes {
                let message = format!(
                    "The provided traversal has a mutating step and thus is not read only: {}()",
                    step.name
                );
                return Err(Fault::syntax(step.at, message));
            }
            let walks = matches!(
                step.name,
                StepName::Out
                    | StepName::In
                    | StepName::Both
                    | StepName::OutE
                    | StepName::InE
                    | StepName::BothE
            );
            if self.edge_labels && walks && step.args.is_empty() {
                let message =
                    format!("{}() without a label, which EdgeLabelVerificationStrategy requires", step.name);
                return Err(Fault::syntax(step.at, message));
            }
            if self.references && step.name == StepName::Subgraph {
                return Err(Fault::unsupported(step.at, "subgraph() with ReferenceElementStrategy"));
            }
            if let (StepName::Property, Some(key)) = (step.name, step.args.iter().find_map(Arg::text))
                && self.reserved_keys.contains(key)
            {
                let message = format!(
                    "property() with the key '{key}', which ReservedKeysVerificationStrategy reserves"
                );
                return Err(Fault::syntax(step.at, message));
            }
            step.args.iter().filter_map(Arg::steps).try_for_each(|steps| self.verify(steps))?;
        }
        Ok(())
    }

    fn rewrite(&mut self, seen: &Seen<'t>, steps: &[Step<'t>]) -> Result<Vec<Step<'t>>> {
        let mut out: Vec<Step<'t>> = vec![];
        // The test of the elements of the last step, which comes after the modulators of that step.
        let mut pending: Option<&Vec<Step<'t>>> = None;
        for step in steps {
            let stays = step.name.properties().has
                || matches!(step.name, StepName::Property | StepName::From | StepName::To if !moves(step));
            if !stays && let Some(test) = pending.take() {
                out.push(filter(step.at, test));
            }
            let step = Step { args: self.children(seen, &step.args)?, ..step.clone() };
            let (at, name) = (step.at, step.name);
            let refused = || Err(Fault::unsupported(at, format!("{name}() with this strategy")));
            let (edge, end) = match name {
                StepName::Out => (StepName::OutE, StepName::InV),
                StepName::In => (StepName::InE, StepName::OutV),
                _ => (StepName::BothE, StepName::OtherV),
            };
            match name {
                StepName::V
                | StepName::InV
                | StepName::OutV
                | StepName::BothV
                | StepName::OtherV
                | StepName::ToV => {
                    out.push(step);
                    pending = seen.vertices.as_ref();
                }
                StepName::E | StepName::OutE | StepName::InE | StepName::BothE | StepName::ToE => {
                    out.push(step);
                    pending = seen.edges.as_ref();
                }
                StepName::Out | StepName::In | StepName::Both => match &seen.edges {
                    None => {
                        out.push(step);
                        pending = seen.vertices.as_ref();
                    }
                    Some(test) => {
                        out.push(Step { name: edge, ..step });
                        out.push(filter(at, test));
                        out.push(Step { at, name: end, args: vec![] });
                        pending = seen.vertices.as_ref();
                    }
                },
                StepName::AddV | StepName::AddE => {
                    out.push(step);
                    match &seen.written {
                        Some((key, value)) => {
                            let args = vec![Arg { at, kind: ArgKind::Text(key.clone()) }, value.clone()];
                            out.push(Step { at, name: StepName::Property, args });
                        }
                        // What is made outside of the subgraph is made, and does not go on.
                        None if name == StepName::AddV => pending = seen.vertices.as_ref(),
                        None => pending = seen.edges.as_ref(),
                    }
                }
                StepName::To if moves(&step) => return refused(),
                StepName::MergeV | StepName::MergeE => match &seen.written {
                    Some(written) => {
                        let Some(step) = merged_into(step, written) else { return refused() };
                        out.push(step);
                    }
                    // As in TinkerPop it looks in the whole graph, for an id is taken there as well.
                    None => out.push(step),
                },
                StepName::Properties if seen.properties.is_some() => {
                    out.push(step);
                    pending = seen.properties.as_ref();
                }
                StepName::Values if let Some(test) = &seen.properties => {
                    out.push(Step { name: StepName::Properties, ..step });
                    out.push(filter(at, test));
                    out.push(Step { at, name: StepName::Value, args: vec![] });
                }
                StepName::By if let Some(test) = &seen.properties => {
                    out.push(by_visible(step, test));
                }
                StepName::ValueMap | StepName::PropertyMap | StepName::ElementMap
                    if seen.properties.is_some() =>
                {
                    return refused();
                }
                // They come to elements that no test has seen.
                StepName::Call
                | StepName::ConnectedComponent
                | StepName::Element
                | StepName::Io
                | StepName::PageRank
                | StepName::PeerPressure
                | StepName::ShortestPath
                | StepName::Subgraph => return refused(),
                // Properties may be written to an element of another partition, and in another one.
                StepName::Property if step.args.first().is_some_and(|arg| arg.steps().is_some()) => {
                    return refused();
                }
                _ => out.push(step),
            }
            self.steps += 1;
        }
        if let (Some(test), Some(last)) = (pending, steps.last()) {
            out.push(filter(last.at, test));
        }
        self.steps += out.iter().map(count).sum::<usize>();
        match steps.first() {
            Some(first) if self.steps > MAX_STEPS => {
                Err(Fault::syntax(first.at, format!("more than {MAX_STEPS} steps with those of strategies")))
            }
            _ => Ok(out),
        }
    }

    /// Rewrites the traversals in arguments.
    fn children(&mut self, seen: &Seen<'t>, args: &[Arg<'t>]) -> Result<Vec<Arg<'t>>> {
        let child = |arg: &Arg<'t>| -> Result<Arg<'t>> {
            let kind = match &arg.kind {
                ArgKind::Traversal(steps) => ArgKind::Traversal(self.rewrite(seen, steps)?),
                ArgKind::List(items) => ArgKind::List(self.children(seen, items)?),
                ArgKind::Set(items) => ArgKind::Set(self.children(seen, items)?),
                ArgKind::Map(entries) => {
                    let mut rewritten = vec![];
                    for (key, value) in entries {
                        let value = self.children(seen, std::slice::from_ref(value))?;
                        rewritten.extend(value.into_iter().map(|value| (key.clone(), value)));
                    }
                    ArgKind::Map(rewritten)
                }
                other => other.clone(),
            };
            Ok(Arg { at: arg.at, kind })
        };
        args.iter().map(child).collect()
    }
}

/// Adds the property of a partition to the map of a merge. `None`: the map is not written in the text.
fn merged_into<'t>(mut step: Step<'t>, (key, value): &(Str, Arg<'t>)) -> Option<Step<'t>> {
    let at = step.at;
    let entry = (Arg { at, kind: ArgKind::Text(key.clone()) }, value.clone());
    let [map] = step.args.as_mut_slice() else { return None };
    match &mut map.kind {
        ArgKind::Map(entries) => entries.push(entry),
        ArgKind::Value(Value::Null) => map.kind = ArgKind::Map(vec![entry]),
        _ => return None,
    }
    Some(step)
}

/// A test of properties that only those of vertices must pass.
fn of_vertex_properties<'t>(at: usize, test: &[Step<'t>]) -> Step<'t> {
    let kind = Arg { at, kind: ArgKind::Type(GremlinType::VertexProperty) };
    let is_one = ArgKind::Predicate(Predicate::Test(PredicateName::TypeOf, vec![kind]));
    let is_one = Step { at, name: StepName::Is, args: vec![Arg { at, kind: is_one }] };
    let is_other = ArgKind::Traversal(vec![is_one]);
    let is_other = Step { at, name: StepName::Not, args: vec![Arg { at, kind: is_other }] };
    let either = [vec![is_other], test.to_vec()].map(|steps| Arg { at, kind: ArgKind::Traversal(steps) });
    Step { at, name: StepName::Or, args: either.into() }
}

/// `by(key)` of the properties that pass a test.
fn by_visible<'t>(mut step: Step<'t>, test: &[Step<'t>]) -> Step<'t> {
    let at = step.at;
    if let Some(key) = step.args.first_mut().filter(|arg| arg.text().is_some()) {
        let properties = Step { at, name: StepName::Properties, args: vec![key.clone()] };
        let value = Step { at, name: StepName::Value, args: vec![] };
        key.kind = ArgKind::Traversal(vec![properties, filter(at, test), value]);
    }
    step
}

/// `filter(…)`
fn filter<'t>(at: usize, test: &[Step<'t>]) -> Step<'t> {
    Step { at, name: StepName::Filter, args: vec![Arg { at, kind: ArgKind::Traversal(test.to_vec()) }] }
}

/// Returns the number of steps of a step with its children.
fn count(step: &Step<'_>) -> usize {
    1 + step.args.iter().filter_map(Arg::steps).flatten().map(count).sum::<usize>()
}

/// Replaces `and()` and `or()` without operands by what they are alone: a filter that all traversers pass, and one that none does.
fn without_infix<'t>(steps: &[Step<'t>]) -> Vec<Step<'t>> {
    let replaced = |step: &Step<'t>| {
        let args = step.args.iter().map(|arg| match &arg.kind {
            ArgKind::Traversal(steps) => Arg { at: arg.at, kind: ArgKind::Traversal(without_infix(steps)) },
            _ => arg.clone(),
        });
        let name = match step.name {
            StepName::And if step.args.is_empty() => StepName::Identity,
            StepName::Or if step.args.is_empty() => StepName::Discard,
            name => name,
        };
        Step { at: step.at, name, args: args.collect() }
    };
    steps.iter().map(replaced).collect()
}

/// Refuses settings of [`COMPUTER`] that change the answer.
fn accept_computer(settings: &[(&str, Arg<'_>)]) -> Result<()> {
    match settings.iter().find(|(name, _)| !matches!(*name, "graphComputer" | "workers")) {
        Some((name, value)) => {
            let name = crate::lexer::shorten(name);
            Err(Fault::unsupported(value.at, format!("{name} of {COMPUTER}")))
        }
        None => Ok(()),
    }
}

/// Whether a strategy forbids [`COMPUTER`].
fn restricts_computers(calls: &[Step<'_, SourceCall>]) -> bool {
    let of = |call: SourceCall, strategy: &str| {
        let named = |arg: &Arg<'_>| matches!(arg.kind, ArgKind::Strategy(name, _) if name == strategy);
        calls.iter().any(|step| step.name == call && step.args.iter().any(named))
    };
    of(SourceCall::WithStrategies, "VertexProgramRestrictionStrategy")
        && !of(SourceCall::WithoutStrategies, "VertexProgramRestrictionStrategy")
}

/// Checks that a call has strategies as arguments.
pub(super) fn check(call: &Step<'_, SourceCall>) -> Result<()> {
    let only = call.args.iter().all(|arg| matches!(arg.kind, ArgKind::Strategy(..)));
    if only { Ok(()) } else { Err(wrong_arguments(call)) }
}
