//! Computes expressions row by row, over a batch whose elements were read before.
//!
//! Values are borrowed from literals, parameters, columns and properties where possible, so that common tests of a row
//! copy nothing. The local variables of comprehensions are frames on the stack; each points to the one around it.

use super::compare::{compare, equals};
use super::error::Error;
use super::property;
use super::record::{self, Record};
use super::{Prepared, arithmetic, call, list, point, signature, size, temporal, types};
use crate::Result;
use smallvec::SmallVec;
use std::borrow::Cow;
use tidegraph_plan::{Arithmetic, Expr, Function, Quantifier, Slot};
use tidegraph_types::{Map, Value};

/// A local variable, with a link to the ones around it.
pub(crate) struct Frame<'l> {
    slot: Slot,
    value: &'l Value,
    outer: Scope<'l>,
}

/// The innermost local variable, if any.
pub(crate) type Scope<'l> = Option<&'l Frame<'l>>;

/// A null to borrow.
static NULL: Value = Value::Null;
/// An unbound value to borrow.
static UNBOUND: Value = Value::Unbound;

fn local<'l>(slot: Slot, mut scope: Scope<'l>) -> Option<&'l Value> {
    while let Some(frame) = scope {
        if frame.slot == slot {
            return Some(frame.value);
        }
        scope = frame.outer;
    }
    None
}

fn truth_value(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::Bool)
}

/// Returns the three-valued truth of a value. A value that is neither boolean nor null is an error of `operation`.
pub(crate) fn truth(value: &Value, operation: &'static str) -> Result<Option<bool>, Error> {
    match value {
        Value::Bool(v) => Ok(Some(*v)),
        Value::Null | Value::Unbound => Ok(None),
        other => Err(Error::of_type(operation, "a boolean", other)),
    }
}

impl Prepared<'_, '_> {
    /// Computes an expression in a row.
    pub(crate) fn value<'s>(
        &'s self,
        expr: &'s Expr,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Cow<'s, Value>> {
        Ok(match expr {
            Expr::Literal(value) => Cow::Borrowed(value),
            Expr::Parameter(name) => match self.ctx.parameters.get(name) {
                Some(value) => Cow::Borrowed(value),
                None => return Err(Error::MissingParameter(name.clone()).into()),
            },
            Expr::Slot(slot) => self.slot(*slot, row, scope),
            Expr::Register(register) => Cow::Owned(self.ctx.registers.get(*register)),
            Expr::Property(base, key) => {
                if let Expr::Slot(slot) = &**base
                    && let Some(record) = self.record(*slot, row, scope)
                {
                    let token = self.elements.token(key);
                    return Ok(match token.and_then(|token| record.single(token)) {
                        Some(value) => Cow::Borrowed(value),
                        None => Cow::Owned(record.read(self.ctx, key, token)?),
                    });
                }
                Cow::Owned(self.property(base, key, row, scope)?)
            }
            Expr::Index(base, index) => Cow::Owned(self.index(base, index, row, scope)?),
            Expr::Slice(base, from, to) => {
                let base = self.value(base, row, scope)?;
                let bound = |bound: &'s Option<Box<Expr>>| {
                    bound.as_deref().map(|bound| self.value(bound, row, scope)).transpose()
                };
                let (from, to) = (bound(from)?, bound(to)?);
                let Some(items) = list::slice(&base, from.as_deref(), to.as_deref())? else {
                    return Ok(Cow::Borrowed(&NULL));
                };
                self.ctx.memory.ensure(size_of_val(items))?;
                Cow::Owned(self.account(Value::list(items.to_vec()))?)
            }
            Expr::And(_)
            | Expr::Or(_)
            | Expr::Xor(..)
            | Expr::Not(_)
            | Expr::Compare(..)
            | Expr::In(..)
            | Expr::Unused(..) => Cow::Owned(truth_value(self.truth(expr, row, scope)?)),
            Expr::IsNull(inner) => Cow::Owned(Value::Bool(self.value(inner, row, scope)?.is_null())),
            Expr::IsType(inner, test) => {
                let value = self.value(inner, row, scope)?;
                Cow::Owned(Value::Bool(types::has_type(self.ctx, &value, test)?))
            }
            Expr::IsBound(slot) => {
                Cow::Owned(Value::Bool(!matches!(&*self.slot(*slot, row, scope), Value::Unbound)))
            }
            Expr::Arithmetic(operator, a, b) => {
                let (a, b) = (self.value(a, row, scope)?, self.value(b, row, scope)?);
                if *operator == Arithmetic::Add {
                    let bytes = size::joined_bytes(&a, &b);
                    self.ctx.spend(bytes / 16)?;
                    self.ctx.memory.ensure(bytes)?;
                }
                Cow::Owned(self.account(arithmetic::apply(*operator, &a, &b)?)?)
            }
            Expr::Negate(inner) => Cow::Owned(arithmetic::negate(&*self.value(inner, row, scope)?)?),
            Expr::HasLabels(base, labels) => {
                Cow::Owned(self.with_element(base, row, scope, |subject| match subject {
                    Subject::Element(record) => {
                        record.check(self.ctx, "labels")?;
                        Ok(Value::Bool(record.has_labels(&self.elements, labels, false)))
                    }
                    Subject::Other(value) if value.is_null() => Ok(Value::Null),
                    Subject::Other(value) => {
                        Err(Error::of_type("a label test", "a vertex or edge", value).into())
                    }
                })?)
            }
            Expr::HasAnyLabel(base, labels) => {
                Cow::Owned(self.with_element(base, row, scope, |subject| match subject {
                    Subject::Element(record) => {
                        Ok(Value::Bool(record.has_labels(&self.elements, labels, true)))
                    }
                    // The label of a property is its key.
                    Subject::Other(Value::Property(property)) => {
                        Ok(Value::Bool(labels.contains(&property.key)))
                    }
                    Subject::Other(_) => Ok(Value::Bool(false)),
                })?)
            }
            Expr::List(items) => {
                let items: Result<Vec<Value>> = items.iter().map(|e| self.owned(e, row, scope)).collect();
                Cow::Owned(self.account(Value::list(items?))?)
            }
            Expr::Map(entries) => {
                let mut map = Map::with_capacity(entries.len());
                for (key, entry) in entries {
                    let value = self.owned(entry, row, scope)?;
                    map.insert(Value::String(key.clone()), value);
                }
                Cow::Owned(self.account(Value::map(map))?)
            }
            Expr::Case { branches, otherwise } => {
                for (condition, result) in branches {
                    if self.truth(condition, row, scope)? == Some(true) {
                        return self.value(result, row, scope);
                    }
                }
                return self.value(otherwise, row, scope);
            }
            Expr::Comprehension { variable, list, filter, map } => Cow::Owned(self.comprehension(
                (*variable, list),
                filter.as_deref(),
                map.as_deref(),
                row,
                scope,
            )?),
            Expr::Quantified { quantifier, variable, list, predicate } => {
                Cow::Owned(self.quantified(*quantifier, (*variable, list), predicate, row, scope)?)
            }
            Expr::Reduce { accumulator, start, variable, list, step } => {
                Cow::Owned(self.reduce((*accumulator, start), (*variable, list), step, row, scope)?)
            }
            Expr::Call(function, args) => match (function, args.as_slice()) {
                (Function::StartNode | Function::EndNode, [Expr::Slot(slot)]) => {
                    match self.slot(*slot, row, scope).as_edge() {
                        Some(edge) if *function == Function::StartNode => {
                            Cow::Owned(Value::Vertex(edge.source))
                        }
                        Some(edge) => Cow::Owned(Value::Vertex(edge.target)),
                        None => Cow::Owned(self.call(*function, args, row, scope)?),
                    }
                }
                (Function::Coalesce, args) => {
                    for arg in args {
                        let value = self.value(arg, row, scope)?;
                        if !value.is_null() {
                            return Ok(value);
                        }
                    }
                    Cow::Borrowed(&NULL)
                }
                _ => Cow::Owned(self.call(*function, args, row, scope)?),
            },
        })
    }

    fn owned<'s>(&'s self, expr: &'s Expr, row: usize, scope: Scope<'s>) -> Result<Value> {
        Ok(self.value(expr, row, scope)?.into_owned())
    }

    /// Returns the value of a slot, of a local variable or of the batch.
    fn slot<'s>(&'s self, slot: Slot, row: usize, scope: Scope<'s>) -> Cow<'s, Value> {
        if let Some(value) = local(slot, scope) {
            return Cow::Borrowed(value);
        }
        match self.batch.column(slot).map(|column| &**column) {
            None => Cow::Borrowed(&UNBOUND),
            Some(crate::Column::Values(values)) => {
                values.get(row).map_or(Cow::Borrowed(&UNBOUND), Cow::Borrowed)
            }
            Some(crate::Column::Constant(value, _)) => Cow::Borrowed(value),
            Some(column) => Cow::Owned(column.get(row)),
        }
    }

    /// Returns the element in a slot of the batch, if there is one.
    fn record<'s>(&'s self, slot: Slot, row: usize, scope: Scope<'s>) -> Option<Record<'s>> {
        if local(slot, scope).is_some() { None } else { self.elements.in_slot(self.batch, slot, row) }
    }

    /// Returns the three-valued truth of an expression.
    pub(crate) fn truth<'s>(&'s self, expr: &'s Expr, row: usize, scope: Scope<'s>) -> Result<Option<bool>> {
        match expr {
            Expr::And(all) => self.junction(all, false, "AND", row, scope),
            Expr::Or(all) => self.junction(all, true, "OR", row, scope),
            Expr::Xor(a, b) => {
                let a = truth(&*self.value(a, row, scope)?, "XOR")?;
                let b = truth(&*self.value(b, row, scope)?, "XOR")?;
                Ok(a.zip(b).map(|(a, b)| a != b))
            }
            Expr::Not(inner) => Ok(truth(&*self.value(inner, row, scope)?, "NOT")?.map(|v| !v)),
            Expr::Compare(comparison, a, b) => {
                let (a, b) = (self.value(a, row, scope)?, self.value(b, row, scope)?);
                compare(self.ctx, *comparison, &a, &b)
            }
            Expr::In(item, items) => {
                if let Expr::List(items) = &**items {
                    return self.is_among(item, items, row, scope);
                }
                let (item, items) = (self.value(item, row, scope)?, self.value(items, row, scope)?);
                match self.members.contains(self.ctx, &item, &items)? {
                    None => list::contains(self.ctx, &item, &items),
                    known => Ok(known),
                }
            }
            Expr::Unused(edge, others) => self.is_unused(*edge, others, row, scope).map(Some),
            other => Ok(truth(&*self.value(other, row, scope)?, "a condition")?),
        }
    }

    /// Computes `item IN [a, b]` without making the list.
    fn is_among<'s>(
        &'s self,
        item: &'s Expr,
        items: &'s [Expr],
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Option<bool>> {
        let item = self.value(item, row, scope)?;
        let mut found = Some(false);
        for other in items {
            self.ctx.spend(1)?;
            // An item after the one that is found may still be an error.
            let other = self.value(other, row, scope)?;
            match (found, equals(self.ctx, &item, &other)?) {
                (Some(true), _) | (_, Some(false)) => {}
                (_, same) => found = same,
            }
        }
        Ok(found)
    }

    /// Whether an edge is none of the edges, and in none of the lists of edges, in other slots.
    fn is_unused(&self, edge: Slot, others: &[Slot], row: usize, scope: Scope<'_>) -> Result<bool> {
        let edge_of = |slot: Slot| match self.batch.column(slot) {
            Some(column) if local(slot, scope).is_none() => column.edge(row),
            _ => self.slot(slot, row, scope).as_edge(),
        };
        let Some(edge) = edge_of(edge) else { return Ok(true) };
        for other in others {
            self.ctx.spend(1)?;
            let same = match edge_of(*other) {
                Some(other) => other.sid == edge.sid,
                None => {
                    let list = self.slot(*other, row, scope);
                    let edges = list.as_slice().unwrap_or_default();
                    self.ctx.spend(edges.len())?;
                    edges.iter().any(|item| item.as_edge().is_some_and(|other| other.sid == edge.sid))
                }
            };
            if same {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Computes AND or OR: the first `decisive` value decides; otherwise an unknown value makes the result unknown.
    fn junction<'s>(
        &'s self,
        all: &'s [Expr],
        decisive: bool,
        name: &'static str,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Option<bool>> {
        let mut known = Some(!decisive);
        for expr in all {
            let part = match expr {
                Expr::And(_) | Expr::Or(_) | Expr::Xor(..) | Expr::Not(_) | Expr::Compare(..) => {
                    self.truth(expr, row, scope)?
                }
                other => truth(&*self.value(other, row, scope)?, name)?,
            };
            if part == Some(decisive) {
                return Ok(part);
            }
            if part.is_none() {
                known = None;
            }
        }
        Ok(known)
    }

    /// Calls `use_it` with the value of `base`: an element with its data, or any other value.
    fn with_element<'s, R>(
        &'s self,
        base: &'s Expr,
        row: usize,
        scope: Scope<'s>,
        use_it: impl Fn(Subject<'_>) -> Result<R>,
    ) -> Result<R> {
        if let Expr::Slot(slot) = base
            && let Some(record) = self.record(*slot, row, scope)
        {
            return use_it(Subject::Element(record));
        }
        let value = self.value(base, row, scope)?;
        match self.elements.with(&value, |record| use_it(Subject::Element(record))) {
            Some(result) => result,
            None => use_it(Subject::Other(&value)),
        }
    }

    fn property<'s>(
        &'s self,
        base: &'s Expr,
        key: &tidegraph_types::Str,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Value> {
        self.with_element(base, row, scope, |subject| match subject {
            Subject::Element(record) => record.read(self.ctx, key, self.elements.token(key)),
            Subject::Other(Value::Map(map)) => {
                Ok(map.get(&Value::String(key.clone())).cloned().unwrap_or(Value::Null))
            }
            Subject::Other(Value::Property(property)) => property::value(&self.elements, property, key),
            Subject::Other(value) if value.is_null() => Ok(Value::Null),
            Subject::Other(value @ (Value::DateTime(_) | Value::Temporal(_))) => {
                Ok(temporal::component(value, key)?)
            }
            Subject::Other(Value::Point(point)) => Ok(point::component(point, key)?),
            Subject::Other(value) => {
                Err(Error::of_type(format!(".{key}"), "a vertex, edge, map, point or temporal value", value)
                    .into())
            }
        })
    }

    fn index<'s>(&'s self, base: &'s Expr, index: &'s Expr, row: usize, scope: Scope<'s>) -> Result<Value> {
        let index = self.value(index, row, scope)?;
        self.with_element(base, row, scope, |subject| match (subject, &*index) {
            (Subject::Element(_), index) if index.is_null() => Ok(Value::Null),
            (Subject::Element(record), Value::String(key)) => {
                record.read(self.ctx, key, self.elements.token(key))
            }
            (Subject::Element(_), other) => {
                Err(Error::of_type("the index of an element", "a string", other).into())
            }
            (Subject::Other(Value::Property(property)), Value::String(key)) => {
                property::value(&self.elements, property, key)
            }
            (Subject::Other(value), index) => Ok(list::index(value, index)?),
        })
    }

    /// Returns the items of a comprehension's list; `None` if it is null.
    fn items<'s>(
        &'s self,
        operation: &'static str,
        list: &'s Expr,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Option<Cow<'s, Value>>> {
        let value = self.value(list, row, scope)?;
        if value.is_null() {
            return Ok(None);
        }
        match value.as_slice() {
            None => Err(Error::of_type(operation, "a list", &value).into()),
            Some(items) => {
                if items.len() > 1
                    && matches!(items[0], Value::Vertex(_) | Value::Edge(_) | Value::Property(_))
                {
                    self.elements.warm(std::iter::once(&*value), true)?;
                }
                Ok(Some(value))
            }
        }
    }

    fn comprehension<'s>(
        &'s self,
        (variable, list): (Slot, &'s Expr),
        filter: Option<&'s Expr>,
        map: Option<&'s Expr>,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Value> {
        let Some(list) = self.items("a list comprehension", list, row, scope)? else {
            return Ok(Value::Null);
        };
        let mut results: Vec<Value> = vec![];
        let mut kept = self.charged.get();
        for item in list.as_slice().unwrap_or_default() {
            self.ctx.spend(1)?;
            // What the last item needed beside its result is not needed any more.
            self.release_to(kept);
            let frame = Frame { slot: variable, value: item, outer: scope };
            if let Some(filter) = filter
                && self.truth(filter, row, Some(&frame))? != Some(true)
            {
                continue;
            }
            let result = match map {
                Some(map) => self.owned(map, row, Some(&frame))?,
                None => item.clone(),
            };
            self.release_to(kept);
            self.charge_item(&result, results.last())?;
            kept = self.charged.get();
            results.push(result);
        }
        self.release_to(kept);
        Ok(Value::list(results))
    }

    fn quantified<'s>(
        &'s self,
        quantifier: Quantifier,
        (variable, list): (Slot, &'s Expr),
        predicate: &'s Expr,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Value> {
        let Some(list) = self.items("a quantifier", list, row, scope)? else {
            return Ok(Value::Null);
        };
        let (mut satisfied, mut unknown) = (0_u32, false);
        let before = self.charged.get();
        for item in list.as_slice().unwrap_or_default() {
            self.ctx.spend(1)?;
            self.release_to(before);
            let frame = Frame { slot: variable, value: item, outer: scope };
            let decided = match self.truth(predicate, row, Some(&frame))? {
                Some(true) => {
                    satisfied += 1;
                    match quantifier {
                        Quantifier::Any => Some(true),
                        Quantifier::None => Some(false),
                        Quantifier::Single if satisfied > 1 => Some(false),
                        _ => None,
                    }
                }
                Some(false) if quantifier == Quantifier::All => Some(false),
                Some(false) => None,
                None => {
                    unknown = true;
                    None
                }
            };
            if let Some(decided) = decided {
                return Ok(Value::Bool(decided));
            }
        }
        Ok(if unknown {
            Value::Null
        } else {
            Value::Bool(match quantifier {
                Quantifier::All | Quantifier::None => true,
                Quantifier::Any => false,
                Quantifier::Single => satisfied == 1,
            })
        })
    }

    fn reduce<'s>(
        &'s self,
        (accumulator, start): (Slot, &'s Expr),
        (variable, list): (Slot, &'s Expr),
        step: &'s Expr,
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Value> {
        let mut result = self.owned(start, row, scope)?;
        let Some(list) = self.items("reduce()", list, row, scope)? else {
            return Ok(Value::Null);
        };
        let before = self.charged.get();
        for item in list.as_slice().unwrap_or_default() {
            self.ctx.spend(1)?;
            let next = {
                let outer = Frame { slot: accumulator, value: &result, outer: scope };
                let inner = Frame { slot: variable, value: item, outer: Some(&outer) };
                self.owned(step, row, Some(&inner))?
            };
            // The values of earlier steps are not needed any more.
            self.release_to(before);
            result = self.account(next)?;
        }
        Ok(result)
    }

    fn call<'s>(
        &'s self,
        function: Function,
        args: &'s [Expr],
        row: usize,
        scope: Scope<'s>,
    ) -> Result<Value> {
        let name = signature::name(function);
        if is_element_function(function)
            && let Some((base, rest)) = args.split_first()
        {
            let mut keys: SmallVec<[Value; 4]> = SmallVec::new();
            for arg in rest {
                keys.push(self.owned(arg, row, scope)?);
            }
            let value = self.with_element(base, row, scope, |subject| match subject {
                Subject::Element(record) => {
                    // Id and type belong to the handle, which outlives the element.
                    if !matches!(function, Function::Id | Function::Type) {
                        record.check(self.ctx, name)?;
                    }
                    record.call(&self.elements, function, name, &keys)
                }
                Subject::Other(value) => record::call_other(&self.elements, function, name, value, &keys),
            })?;
            return self.account(value);
        }
        let mut values = Vec::with_capacity(args.len());
        for arg in args {
            values.push(self.owned(arg, row, scope)?);
        }
        self.ctx.spend(size::steps(function, &values))?;
        self.ctx.memory.ensure(size::result_bytes(function, &values))?;
        self.account(call::call(self.ctx, function, name, values)?)
    }
}

/// An element with its data, or any other value.
enum Subject<'e> {
    Element(Record<'e>),
    Other(&'e Value),
}

/// Whether a function reads the element that is its first argument.
fn is_element_function(function: Function) -> bool {
    matches!(
        function,
        Function::Id
            | Function::Labels
            | Function::Type
            | Function::Label
            | Function::Keys
            | Function::PropertyMap
            | Function::PropertyValues
            | Function::Properties
            | Function::ValueMap
            | Function::ElementMap
            | Function::GremlinPropertyMap
            | Function::AsText
            | Function::HasProperty
    )
}
