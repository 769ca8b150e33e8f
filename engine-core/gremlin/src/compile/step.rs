//! Dispatch of steps to the functions that translate them, and steps without a family.

use super::{Compiler, Cursor, Flow, Label, ObjectKind, Result, call, wrong_arguments};
use crate::ast::{Arg, ArgKind, Constant, Step, StepName};
use crate::fault::Fault;
use crate::names::NewObject;
use tidegraph_plan::{Comparison, Expr, Function, Op, Slot};
use tidegraph_types::{Direction, Value};

/// Whether the first argument is `local`.
pub(super) fn is_local(step: &Step<'_>) -> bool {
    step.args.first().and_then(Arg::constant) == Some(Constant::Local)
}

/// Whether a step makes a new object. The other steps test the current one, name it or act on it.
pub(super) fn moves(step: &Step<'_>) -> bool {
    match step.name.properties().object {
        NewObject::Never => false,
        NewObject::Always => true,
        NewObject::WithLocalScope => is_local(step),
        NewObject::WithoutKey => step.args.is_empty(),
        NewObject::WithDirection => matches!(
            step.args.first().and_then(Arg::constant),
            Some(Constant::InDirection | Constant::OutDirection | Constant::BothDirections)
        ),
    }
}

impl Compiler {
    /// Translates one step. Takes its modulators from the cursor.
    pub(super) fn step<'a, 't>(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'a, 't>,
        step: &'a Step<'t>,
        index: usize,
    ) -> Result<()> {
        let dest = cursor.dest_of(index);
        if let Some(local) = step.name.properties().local.filter(|_| is_local(step)) {
            return self.local_scope(flow, cursor, step, local, dest);
        }
        // No `_` arm, so that a new step does not compile without one.
        match step.name {
            StepName::V | StepName::E => self.elements(flow, cursor, step, dest),
            StepName::Inject => self.inject(flow, step, dest),
            StepName::Out => self.expand(flow, cursor, step, index, Some(Direction::Out), false),
            StepName::In => self.expand(flow, cursor, step, index, Some(Direction::In), false),
            StepName::Both => self.expand(flow, cursor, step, index, Some(Direction::Both), false),
            StepName::OutE => self.expand(flow, cursor, step, index, Some(Direction::Out), true),
            StepName::InE => self.expand(flow, cursor, step, index, Some(Direction::In), true),
            StepName::BothE => self.expand(flow, cursor, step, index, Some(Direction::Both), true),
            StepName::ToE => self.expand(flow, cursor, step, index, None, true),
            StepName::To if moves(step) => self.expand(flow, cursor, step, index, None, false),
            StepName::InV | StepName::OutV | StepName::BothV | StepName::OtherV | StepName::ToV => {
                self.ends(flow, step, dest)
            }
            StepName::Has
            | StepName::HasId
            | StepName::HasKey
            | StepName::HasLabel
            | StepName::HasNot
            | StepName::HasValue
            | StepName::Is
            | StepName::And
            | StepName::Or
            | StepName::Not
            | StepName::Filter
            | StepName::Where => self.filter_step(flow, cursor, step),
            StepName::Values => {
                self.property_values(flow, step, Function::PropertyValues, ObjectKind::Scalar, dest)
            }
            StepName::Properties => {
                self.property_values(flow, step, Function::Properties, ObjectKind::Property, dest)
            }
            StepName::ValueMap => self.value_map(flow, cursor, step, dest),
            StepName::ElementMap => self.element_map(flow, cursor, step, Function::ElementMap, dest),
            StepName::PropertyMap => self.element_map(flow, cursor, step, Function::GremlinPropertyMap, dest),
            StepName::Id | StepName::Label | StepName::Key | StepName::Value | StepName::Element => {
                self.function(flow, step, dest)
            }
            StepName::Loops => self.loops(flow, step, dest),
            StepName::Constant => self.constant(flow, step, dest),
            StepName::As => self.name(flow, cursor, step, index),
            StepName::Select => self.select(flow, cursor, step, dest),
            StepName::Project => self.project(flow, cursor, step, dest),
            StepName::Path | StepName::SimplePath | StepName::CyclicPath => {
                self.path_step(flow, cursor, step, dest)
            }
            StepName::Dedup => self.dedup(flow, cursor, step),
            StepName::Order => self.order(flow, cursor, step),
            StepName::Sample => self.sample(flow, cursor, step),
            StepName::Coin => {
                flow.cur(step)?;
                let test = self.coin(step)?;
                flow.filter(test);
                Ok(())
            }
            StepName::Limit | StepName::Range | StepName::Skip | StepName::Tail => self.slice(flow, step),
            StepName::Count
            | StepName::Sum
            | StepName::Min
            | StepName::Max
            | StepName::Mean
            | StepName::Fold => self.reduce(flow, step, dest),
            StepName::Group | StepName::GroupCount if !step.args.is_empty() => {
                self.group_side(flow, cursor, step)
            }
            StepName::Group | StepName::GroupCount => self.group(flow, cursor, step, dest),
            StepName::Aggregate | StepName::Store => self.aggregate(flow, cursor, step),
            StepName::Sack => self.sack(flow, cursor, step, dest),
            StepName::ShortestPath => self.shortest_path(flow, cursor, step, dest),
            StepName::Tree => self.tree(flow, cursor, step, dest),
            StepName::Subgraph => self.subgraph(flow, step),
            StepName::Cap => self.cap(flow, step, dest),
            StepName::Fail => self.fail(flow, step),
            StepName::TimeLimit => self.time_limit(flow, step),
            StepName::Unfold => self.unfold(flow, step, dest),
            StepName::Union => self.union(flow, step, dest),
            StepName::Branch => self.options(flow, cursor, step, false, dest),
            StepName::Choose => self.choose(flow, cursor, step, dest),
            StepName::Coalesce => self.coalesce(flow, step, dest),
            StepName::Optional => self.optional(flow, step, dest),
            StepName::Local | StepName::FlatMap | StepName::Map => self.nested(flow, step, dest),
            StepName::Repeat | StepName::Emit | StepName::Until | StepName::Times => {
                self.repeat(flow, cursor, index)
            }
            StepName::AddV => self.add_vertex(flow, cursor, step, dest),
            StepName::AddE => self.add_edge(flow, cursor, step, dest),
            StepName::MergeV => self.merge_vertex(flow, cursor, step, dest),
            StepName::MergeE => self.merge_edge(flow, cursor, step, dest),
            StepName::Property => self.set_properties(flow, cursor, index),
            StepName::Drop => self.drop_elements(flow, step),
            StepName::SideEffect => self.side_effect(flow, step),
            StepName::Identity | StepName::Barrier => self.nothing(flow, step),
            StepName::Discard | StepName::None if step.args.is_empty() => {
                flow.drop_rows();
                Ok(())
            }
            // Steps that write take options for providers, and there are none here.
            StepName::With if modulates_write(&cursor.steps[..index]) => Ok(()),
            StepName::With => Err(Fault::unsupported(step.at, "with() after this step")),
            StepName::By | StepName::From | StepName::To | StepName::Option => {
                Err(Fault::syntax(step.at, format!("{}() modulates no step here", step.name)))
            }
            StepName::All | StepName::Any | StepName::None => self.quantified(flow, step),
            StepName::AsString
            | StepName::LTrim
            | StepName::Length
            | StepName::RTrim
            | StepName::Replace
            | StepName::Split
            | StepName::Substring
            | StepName::ToLower
            | StepName::ToUpper
            | StepName::Trim => self.text_step(flow, step, dest),
            StepName::AsBool | StepName::AsDate | StepName::Reverse => self.function(flow, step, dest),
            StepName::Concat => self.concat(flow, step, dest),
            StepName::Format => self.format(flow, cursor, step, dest),
            StepName::Combine
            | StepName::Difference
            | StepName::Disjunct
            | StepName::Intersect
            | StepName::Merge
            | StepName::Product => self.list_step(flow, step, dest),
            StepName::Conjoin => self.conjoin(flow, step, dest),
            StepName::Index => self.index(flow, cursor, step, dest),
            StepName::AsNumber => self.as_number(flow, step, dest),
            StepName::DateAdd => self.date_add(flow, step, dest),
            StepName::DateDiff => self.date_diff(flow, step, dest),
            StepName::Math => self.math(flow, cursor, step, dest),
            StepName::Match => self.match_patterns(flow, step, dest),
            StepName::Call => self.service(flow, cursor, step, dest),
            StepName::ConnectedComponent | StepName::PageRank | StepName::PeerPressure => {
                self.analyze(flow, cursor, step, index)
            }
            StepName::Io => self.io(flow, cursor, step, index),
            StepName::Read | StepName::Write => {
                Err(Fault::syntax(step.at, format!("{}() without io()", step.name)))
            }
            // Not supported yet.
            StepName::Discard | StepName::Profile => {
                Err(Fault::unsupported(step.at, format!("{}()", step.name)))
            }
        }
    }

    fn nothing(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let is_barrier = step.name == StepName::Barrier;
        match step.args.as_slice() {
            [] if is_barrier => {
                if self.is_careful() {
                    // Later steps see what all traversers have collected.
                    flow.wrap(|input| Op::Eager { input });
                }
                if self.sack_merge.is_some() || self.one_bulk {
                    flow.cur(step)?;
                    self.merge_traversers(flow);
                }
                Ok(())
            }
            [] => Ok(()),
            [Arg { kind: ArgKind::Value(value), .. }]
                if is_barrier && value.as_i64().is_some() && self.sack_merge.is_none() && !self.one_bulk =>
            {
                Ok(())
            }
            [Arg { kind: ArgKind::Value(value), .. }] if is_barrier && value.as_i64().is_some() => {
                // How many traversers wait together would decide which of them merge.
                Err(Fault::unsupported(step.at, "barrier(size) that merges sacks or bulks"))
            }
            [Arg { kind: ArgKind::Constant(Constant::NormSack), .. }] if is_barrier => {
                flow.cur(step)?;
                self.norm_sack(flow);
                Ok(())
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Translates a step that applies a function to the current object.
    fn function(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let Some(function) = applied(step) else { return Err(wrong_arguments(step)) };
        let cur = flow.cur(step)?;
        let out = self.or_fresh(dest);
        flow.bind(out, call(function, vec![Expr::Slot(cur)]));
        flow.set_current(out, kind_of(function));
        Ok(())
    }

    /// `coin(p)`: true with probability `p`.
    pub(super) fn coin(&mut self, step: &Step<'_>) -> Result<Expr> {
        let chance = match step.args.as_slice() {
            [arg @ Arg { kind: ArgKind::Variable(_), .. }] => self.expr(arg)?,
            [arg @ Arg { kind: ArgKind::Value(value), .. }] if value.as_f64().is_some() => self.expr(arg)?,
            _ => return Err(wrong_arguments(step)),
        };
        // With a seed the numbers are those of Java, and so is the comparison.
        Ok(match self.place_of_draw(step) {
            Some(place) => {
                let drawn = call(Function::SeededRand, vec![Expr::literal(i64::from(place))]);
                Expr::compare(Comparison::LessOrEqual, drawn, chance)
            }
            None => Expr::compare(Comparison::Less, call(Function::Rand, vec![]), chance),
        })
    }

    /// Returns the place of a step that draws random numbers, which are its own, if the request has a seed.
    pub(super) fn place_of_draw(&self, step: &Step<'_>) -> Option<u32> {
        self.seed.map(|_| u32::try_from(step.at).unwrap_or(u32::MAX))
    }

    fn constant(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let [value] = step.args.as_slice() else { return Err(wrong_arguments(step)) };
        // As the first step of a branch of g.union(), it makes a traverser.
        let value = self.expr(value)?;
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.set_current(out, ObjectKind::Unknown);
        Ok(())
    }

    /// `fail(message)`: ends the request if a traverser arrives.
    fn fail(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let message = match step.args.as_slice() {
            [] => Expr::literal("fail() step triggered"),
            [Arg { kind: ArgKind::Text(message), .. }] => super::text(message),
            _ => return Err(wrong_arguments(step)),
        };
        flow.cur(step)?;
        self.fails = true;
        flow.filter(call(Function::RequireNotNull, vec![Expr::Literal(Value::Null), message]));
        Ok(())
    }

    /// `timeLimit(milliseconds)`
    fn time_limit(&mut self, flow: &mut Flow, step: &Step<'_>) -> Result<()> {
        let millis = match step.args.as_slice() {
            [Arg { kind: ArgKind::Value(value), .. }] => value.as_i64().and_then(|ms| u64::try_from(ms).ok()),
            _ => None,
        };
        let Some(millis) = millis else { return Err(wrong_arguments(step)) };
        flow.cur(step)?;
        flow.wrap(|input| Op::TimeLimit { input, millis });
        Ok(())
    }

    fn loops(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let value = loops(flow, step)?;
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    fn unfold(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        if !step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = Expr::Slot(flow.cur(step)?);
        let list = if flow.scope.kind == ObjectKind::List { cur } else { call(Function::Unfold, vec![cur]) };
        let out = self.or_fresh(dest);
        flow.wrap(|input| Op::Unwind { input, list, out });
        flow.scope.single = false;
        flow.set_current(out, ObjectKind::Unknown);
        Ok(())
    }

    /// `as(label…)`
    pub(super) fn name(
        &mut self,
        flow: &mut Flow,
        cursor: &Cursor<'_, '_>,
        step: &Step<'_>,
        index: usize,
    ) -> Result<()> {
        if step.args.is_empty() {
            return Err(wrong_arguments(step));
        }
        let cur = flow.cur(step)?;
        let names = self.texts(&step.args)?;
        for name in &names {
            let (count, global) = self.labels.get(name).copied().unwrap_or((2, None));
            let slot = if count == 1 && flow.scope.alias {
                cur
            } else {
                let slot = global.unwrap_or_else(|| self.fresh());
                self.labels.insert(name.clone(), (count, Some(slot)));
                flow.bind(slot, Expr::Slot(cur));
                slot
            };
            let label = Label { slot, certain: true, kind: flow.scope.kind };
            flow.scope.labels.retain(|(n, _)| n != name);
            flow.scope.labels.push((name.clone(), label));
        }
        if let Some(path) = self.path
            && index >= cursor.labelled
        {
            let mut args = vec![Expr::Slot(path)];
            args.extend(names.iter().map(super::text));
            flow.bind(path, call(Function::PathLabel, args));
        }
        Ok(())
    }

    /// Adds the current object to the path, with the labels of the `as()` steps that follow directly.
    pub(super) fn extend_path(&mut self, flow: &mut Flow, cursor: &mut Cursor<'_, '_>) {
        let (Some(path), Some(cur)) = (self.path, flow.scope.cur) else { return };
        let before = if std::mem::take(&mut flow.scope.path_ended) {
            Expr::Literal(tidegraph_types::Value::Unbound)
        } else {
            Expr::Slot(path)
        };
        let mut args = vec![before, Expr::Slot(cur)];
        let named = cursor.steps[cursor.next..].iter().take_while(|s| s.name == StepName::As);
        let mut count = 0;
        for step in named {
            count += 1;
            args.extend(step.args.iter().filter_map(Arg::text).map(super::text));
        }
        cursor.labelled = cursor.next + count;
        flow.bind(path, call(Function::PathAppend, args));
    }
}

/// Whether a modulator behind these steps belongs to one that writes.
fn modulates_write(before: &[Step<'_>]) -> bool {
    let modulated = before.iter().rfind(|step| {
        let is_modulator =
            matches!(step.name, StepName::With | StepName::From | StepName::To | StepName::Option);
        !is_modulator || moves(step)
    });
    modulated.is_some_and(|step| {
        matches!(
            step.name,
            StepName::AddV | StepName::AddE | StepName::MergeV | StepName::MergeE | StepName::Property
        )
    })
}

/// Returns the function that a step applies to the current object. `None`: it applies none, or has arguments.
pub(super) fn applied(step: &Step<'_>) -> Option<Function> {
    step.name.properties().function.filter(|_| step.args.is_empty())
}

/// Returns the kind of the objects that a function of [`applied`] makes.
pub(super) fn kind_of(function: Function) -> ObjectKind {
    // The owner of a property is a vertex, an edge or a property.
    match function {
        Function::PropertyOwner | Function::ReverseItems => ObjectKind::Unknown,
        _ => ObjectKind::Scalar,
    }
}

/// Returns `loops()` or `loops(name)` as an expression.
pub(super) fn loops(flow: &Flow, step: &Step<'_>) -> Result<Expr> {
    let found = match step.args.as_slice() {
        [] => flow.scope.loops.last(),
        [Arg { kind: ArgKind::Text(name), .. }] => {
            flow.scope.loops.iter().rev().find(|(n, _)| n.as_ref() == Some(name))
        }
        _ => return Err(wrong_arguments(step)),
    };
    match found {
        Some((_, slot)) => Ok(Expr::Slot(*slot)),
        None => Err(Fault::syntax(step.at, "loops() outside of a repeat() that it could count".into())),
    }
}
