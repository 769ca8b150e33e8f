//! Steps over strings: those that apply a function to a string or, with local scope, to each item of a list; `concat`;
//! `format`.

use super::{Compiler, Cursor, Flow, ObjectKind, Result, call, is_null, not, text, wrong_arguments};
use crate::ast::{Arg, ArgKind, Step, StepName};
use crate::compile::by::By;
use crate::compile::filter::Subject;
use crate::compile::local::global;
use crate::compile::step::{applied, is_local};
use tidegraph_plan::{Comparison, Expr, Function, GremlinType, Slot};
use tidegraph_types::{Str, Value};

/// A piece of the string of `format()`.
enum Piece<'t> {
    Text(&'t str),
    /// `%{_}`: the value of the next `by()`.
    By,
    /// `%{name}`
    Variable(&'t str),
}

impl Compiler {
    /// `asString`, `length`, `toLower`, `toUpper`, `trim`, `lTrim`, `rTrim`, `replace`, `split`, `substring`
    pub(super) fn text_step(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let local = is_local(step);
        let plain = Step {
            at: step.at,
            name: step.name,
            args: if local { step.args[1..].to_vec() } else { global(step).to_vec() },
        };
        let cur = Expr::Slot(flow.cur(step)?);
        let value = if local {
            let item = self.fresh();
            let map = Box::new(self.text_function(&plain, Expr::Slot(item))?);
            let list = Box::new(cur.clone());
            let each = Expr::Comprehension { variable: item, list, filter: None, map: Some(map) };
            // A value that is no collection counts as one string.
            let is_list = call(Function::TypeOf(GremlinType::Collection), vec![cur.clone()]);
            let one = self.text_function(&plain, cur)?;
            Expr::Case { branches: vec![(is_list, each)], otherwise: Box::new(one) }
        } else {
            self.text_function(&plain, cur)?
        };
        let kind = match (local, step.name) {
            (true, _) => ObjectKind::Unknown,
            (false, StepName::Split) => ObjectKind::List,
            (false, _) => ObjectKind::Scalar,
        };
        let out = self.or_fresh(dest);
        flow.bind(out, value);
        flow.set_current(out, kind);
        Ok(())
    }

    /// Applies the function of a step, whose scope has been read, to a string.
    fn text_function(&mut self, step: &Step<'_>, subject: Expr) -> Result<Expr> {
        if let Some(function) = applied(step) {
            let subject = if step.name == StepName::AsString && !self.version.null_has_text() {
                let message = Expr::literal("Can't parse null as String");
                call(Function::RequireNotNull, vec![subject, message])
            } else {
                subject
            };
            return Ok(call(function, vec![subject]));
        }
        match (step.name, step.args.as_slice()) {
            (StepName::Replace, [from, to]) => {
                let (from, to) = (self.text_or_null(step, from)?, self.text_or_null(step, to)?);
                let known = |expr: &Expr| matches!(expr, Expr::Literal(value) if !value.is_null());
                if known(&from) && known(&to) {
                    return Ok(call(Function::Replace, vec![subject, from, to]));
                }
                // With a null nothing is replaced, but the subject must be a string.
                let nothing = || Expr::literal("");
                let same = call(Function::Replace, vec![subject.clone(), nothing(), nothing()]);
                let missing = Expr::Or(vec![is_null(from.clone()), is_null(to.clone())]);
                let replaced = call(Function::Replace, vec![subject, from, to]);
                Ok(Expr::Case { branches: vec![(missing, same)], otherwise: Box::new(replaced) })
            }
            (StepName::Split, [separator]) => {
                let separator = self.text_or_null(step, separator)?;
                let split = call(Function::SplitWhole, vec![subject.clone(), separator.clone()]);
                let may_be_empty = match &separator {
                    Expr::Literal(separator) => separator.as_str() == Some(""),
                    _ => true,
                };
                if !may_be_empty || !self.version.keeps_strings_split_by_nothing() {
                    return Ok(split);
                }
                // The characters between all characters, joined again.
                let is_empty = Expr::compare(Comparison::Equal, separator, Expr::literal(""));
                let whole = call(Function::Join, vec![split.clone(), Expr::literal("")]);
                let whole = Expr::Case {
                    branches: vec![(is_null(subject), Expr::Literal(Value::Null))],
                    otherwise: Box::new(Expr::List(vec![whole])),
                };
                Ok(Expr::Case { branches: vec![(is_empty, whole)], otherwise: Box::new(split) })
            }
            (StepName::Substring, [start]) => {
                let start = self.integer(start)?;
                Ok(call(Function::TextPart, vec![subject, start]))
            }
            (StepName::Substring, [start, end]) => {
                let (start, end) = (self.integer(start)?, self.integer(end)?);
                Ok(call(Function::TextPart, vec![subject, start, end]))
            }
            _ => Err(wrong_arguments(step)),
        }
    }

    /// Returns an argument that is a string, a null or a variable.
    fn text_or_null(&mut self, step: &Step<'_>, arg: &Arg<'_>) -> Result<Expr> {
        match &arg.kind {
            ArgKind::Text(_) | ArgKind::Value(Value::Null) | ArgKind::Variable(_) => self.expr(arg),
            _ => Err(wrong_arguments(step)),
        }
    }

    /// `concat(strings…)`, `concat(traversals…)`: of each traversal the first result counts.
    pub(super) fn concat(&mut self, flow: &mut Flow, step: &Step<'_>, dest: Option<Slot>) -> Result<()> {
        let object = Subject::current(flow, step)?;
        let mut parts = vec![object.expr.clone()];
        for arg in &step.args {
            parts.push(match arg.steps() {
                Some(steps) => self.child_value(flow, steps, object.clone())?.expr,
                None => self.text_or_null(step, arg)?,
            });
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::Concat, parts));
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    /// `format(string)`: a traverser for which one of the variables has no value is dropped.
    pub(super) fn format(
        &mut self,
        flow: &mut Flow,
        cursor: &mut Cursor<'_, '_>,
        step: &Step<'_>,
        dest: Option<Slot>,
    ) -> Result<()> {
        let [Arg { kind: ArgKind::Text(template), .. }] = step.args.as_slice() else {
            return Err(wrong_arguments(step));
        };
        let Subject { expr: object, kind, .. } = Subject::current(flow, step)?;
        let bys = self.bys(cursor.take_all(StepName::By))?;
        let mut parts = vec![Expr::literal("")];
        let mut used = 0;
        for piece in pieces(template) {
            let value = match piece {
                Piece::Text(piece) => {
                    parts.push(Expr::literal(piece));
                    continue;
                }
                Piece::By => {
                    let by = bys.get(used % bys.len().max(1)).unwrap_or(&By::Identity);
                    used += 1;
                    self.by_value(flow, by, object.clone(), kind)?.expr
                }
                Piece::Variable(name) => self.variable(flow, &object, kind, &name.into(), step.at)?,
            };
            let slot = self.slot_of(flow, value);
            flow.filter(not(is_null(Expr::Slot(slot))));
            parts.push(call(Function::AsText, vec![Expr::Slot(slot)]));
        }
        let out = self.or_fresh(dest);
        flow.bind(out, call(Function::Concat, parts));
        flow.set_current(out, ObjectKind::Scalar);
        Ok(())
    }

    /// Returns a variable of `format()`: a property of the current element, or else what `select()` finds.
    fn variable(
        &mut self,
        flow: &Flow,
        object: &Expr,
        kind: ObjectKind,
        name: &Str,
        at: usize,
    ) -> Result<Expr> {
        let (selected, ..) = self.labelled(flow, name, at)?;
        let values = call(Function::PropertyValues, vec![object.clone(), text(name)]);
        let property = call(Function::Head, vec![values]);
        let either = call(Function::Coalesce, vec![property, selected.clone()]);
        Ok(match kind {
            ObjectKind::Map | ObjectKind::List | ObjectKind::Scalar => selected,
            ObjectKind::Vertex | ObjectKind::Edge | ObjectKind::Property => either,
            ObjectKind::Unknown => {
                let is_element = call(Function::TypeOf(GremlinType::Element), vec![object.clone()]);
                Expr::Case { branches: vec![(is_element, either)], otherwise: Box::new(selected) }
            }
        })
    }
}

/// Takes the string of `format()` apart. A second percent sign before a variable makes it text.
fn pieces(template: &str) -> Vec<Piece<'_>> {
    let (mut pieces, mut from, mut at) = (vec![], 0, 0);
    while let Some(found) = template[at..].find("%{") {
        let start = at + found;
        at = start + 2;
        let Some(len) = template[at..].find('}') else { break };
        if template[..start].ends_with('%') {
            continue;
        }
        let name = &template[at..at + len];
        if start > from {
            pieces.push(Piece::Text(&template[from..start]));
        }
        pieces.push(if name == "_" { Piece::By } else { Piece::Variable(name) });
        at += len + 1;
        from = at;
    }
    if from < template.len() {
        pieces.push(Piece::Text(&template[from..]));
    }
    pieces
}
