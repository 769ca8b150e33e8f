//! `ElementIdStrategy`: a property stands for the id of each element.
//!
//! The strategy rewrites the steps that name ids, as TinkerPop's does: `V`, `E`, `hasId`, `has(T.id, …)`, `id`, and the
//! `property` steps of a new element. A new element without an id gets one, which is the same for all elements that the step
//! makes. Tokens in `by()` and the maps of `mergeV` and `mergeE` name the real id.

use crate::ast::{Arg, ArgKind, Constant, Predicate, Step, StepName};
use crate::names::PredicateName;
use tidegraph_types::Str;

/// The property that stands for the id unless the strategy names one.
pub(super) const DEFAULT_KEY: &str = "__id";

/// Rewrites the steps of a traversal, and those in its arguments. `key`: the property that stands for the id.
pub(super) fn rewritten<'t>(steps: &[Step<'t>], key: &Str) -> Vec<Step<'t>> {
    let mut out = vec![];
    for (index, step) in steps.iter().enumerate() {
        let at = step.at;
        let args: Vec<Arg<'t>> = step.args.iter().map(|arg| in_arg(arg, key)).collect();
        let step = Step { at, name: step.name, args };
        match step.name {
            StepName::V | StepName::E if names_ids(&step.args) => {
                let ids = flat(step.args);
                out.push(Step { at, name: step.name, args: vec![] });
                out.push(has(at, key, ids));
            }
            StepName::HasId => out.push(has(at, key, flat(step.args))),
            StepName::Id if step.args.is_empty() => {
                out.push(Step { at, name: StepName::Values, args: vec![text(at, key)] });
            }
            StepName::AddV | StepName::AddE => {
                out.push(step);
                if !has_id(&steps[index + 1..], key) {
                    out.push(new_id(at, key));
                }
            }
            StepName::Has | StepName::Property => {
                let is_id = |arg: &Arg<'_>| arg.constant() == Some(Constant::Id);
                let renamed = |arg: Arg<'t>| if is_id(&arg) { text(arg.at, key) } else { arg };
                out.push(Step { args: step.args.into_iter().map(renamed).collect(), ..step });
            }
            _ => out.push(step),
        }
    }
    out
}

fn in_arg<'t>(arg: &Arg<'t>, key: &Str) -> Arg<'t> {
    let all = |items: &[Arg<'t>]| items.iter().map(|item| in_arg(item, key)).collect();
    let kind = match &arg.kind {
        ArgKind::Traversal(steps) => ArgKind::Traversal(rewritten(steps, key)),
        ArgKind::List(items) => ArgKind::List(all(items)),
        ArgKind::Set(items) => ArgKind::Set(all(items)),
        ArgKind::Map(entries) => {
            let entry = |(name, value): &(Arg<'t>, Arg<'t>)| (name.clone(), in_arg(value, key));
            ArgKind::Map(entries.iter().map(entry).collect())
        }
        other => other.clone(),
    };
    Arg { at: arg.at, kind }
}

/// Whether arguments of `V` and `E` are ids. An element is looked up by its real id.
fn names_ids(args: &[Arg<'_>]) -> bool {
    args.first().is_some_and(|first| !matches!(first.kind, ArgKind::Vertex(_) | ArgKind::Edge(_)))
}

/// Returns the items of one list, or the arguments as they are.
fn flat(args: Vec<Arg<'_>>) -> Vec<Arg<'_>> {
    match args.as_slice() {
        [Arg { kind: ArgKind::List(items) | ArgKind::Set(items), .. }] => items.clone(),
        _ => args,
    }
}

/// `has(key, predicate)` or `has(key, within(values))`
fn has<'t>(at: usize, key: &Str, mut args: Vec<Arg<'t>>) -> Step<'t> {
    let test = match args.as_slice() {
        [Arg { kind: ArgKind::Predicate(_), .. }] => args.remove(0),
        _ => Arg { at, kind: ArgKind::Predicate(Predicate::Test(PredicateName::Within, args)) },
    };
    Step { at, name: StepName::Has, args: vec![text(at, key), test] }
}

/// Whether one of the `property` steps that follow a new element gives it an id.
fn has_id(after: &[Step<'_>], key: &Str) -> bool {
    let own = after.iter().take_while(|step| {
        matches!(step.name, StepName::Property | StepName::From | StepName::To | StepName::With)
    });
    let gives = |arg: &Arg<'_>| arg.constant() == Some(Constant::Id) || arg.text() == Some(key);
    own.filter(|step| step.name == StepName::Property).any(|step| step.args.iter().take(2).any(gives))
}

/// `property(key, constant(UUID()).asString())`
fn new_id<'t>(at: usize, key: &Str) -> Step<'t> {
    let uuid = vec![Arg { at, kind: ArgKind::RandomUuid }];
    let made = vec![
        Step { at, name: StepName::Constant, args: uuid },
        Step { at, name: StepName::AsString, args: vec![] },
    ];
    let made = Arg { at, kind: ArgKind::Traversal(made) };
    Step { at, name: StepName::Property, args: vec![text(at, key), made] }
}

fn text<'t>(at: usize, key: &Str) -> Arg<'t> {
    Arg { at, kind: ArgKind::Text(key.clone()) }
}
