//! Computes the data that expressions need of the elements in slots. One walk over the expressions finds them, and one
//! call for each slot reads them.
//!
//! The rule that must never break: where `eval` and `record` read an element through a slot, they use no more than
//! [`of_element`] says for that expression. Anything else was not read and would seem absent.

use super::error::Error;
use super::signature;
use smallvec::SmallVec;
use tidegraph_plan::{Expr, Function, Slot};
use tidegraph_types::{Str, Value};

/// What to read of the elements in one slot.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Need {
    /// The user's ids.
    pub ids: bool,
    /// Labels (of vertices; an edge's handle carries its own).
    pub labels: bool,
    /// All properties.
    pub all: bool,
    /// Properties of these keys.
    pub keys: SmallVec<[Str; 2]>,
    /// Ids and labels of the vertices at both ends of edges.
    pub ends: bool,
}

impl Need {
    fn key(key: &Str) -> Self {
        Self { keys: SmallVec::from_iter([key.clone()]), ..Self::default() }
    }

    fn everything() -> Self {
        Self { all: true, ..Self::default() }
    }

    pub fn merge(&mut self, other: Self) {
        self.ids |= other.ids;
        self.labels |= other.labels;
        self.all |= other.all;
        self.ends |= other.ends;
        for key in other.keys {
            if !self.keys.contains(&key) {
                self.keys.push(key);
            }
        }
    }
}

/// The needs of a set of expressions.
#[derive(Default)]
pub(crate) struct Needs<'e> {
    /// The needs of the elements in slots.
    pub slots: SmallVec<[(Slot, Need); 2]>,
    /// Cheap expressions whose values are elements to read; lists of elements if the flag is set.
    pub others: Vec<(&'e Expr, bool)>,
    /// The needs of all elements that are not in slots, together.
    by_value: Need,
    /// Whether a function may read more of such elements.
    reads_more: bool,
}

impl<'e> Needs<'e> {
    /// Adds a need of the element in a slot, if the expression is a slot.
    pub fn of_slot(&mut self, expr: &'e Expr, need: Need) {
        if let Expr::Slot(_) = expr {
            self.need(expr, need, &[]);
        }
    }

    /// Returns what is used of elements that are not in slots; `None` if that is unknown.
    pub fn by_value(&self) -> Option<&Need> {
        (!self.reads_more).then_some(&self.by_value)
    }

    /// Walks an expression; refuses calls with a wrong number of arguments.
    pub fn add(&mut self, expr: &'e Expr) -> Result<(), Error> {
        self.walk(expr, &mut vec![])
    }

    /// Walks an expression. `locals` holds the variables of the comprehensions around it, each with its list.
    fn walk(&mut self, expr: &'e Expr, locals: &mut Vec<(Slot, &'e Expr)>) -> Result<(), Error> {
        if let Some((base, need)) = of_element(expr) {
            self.need(base, need, locals);
        }
        match expr {
            // Short cut for the most common shapes: `children` makes a list.
            Expr::Literal(_)
            | Expr::Parameter(_)
            | Expr::Slot(_)
            | Expr::Register(_)
            | Expr::IsBound(_)
            | Expr::Unused(..) => Ok(()),
            Expr::Property(base, _) => self.walk(base, locals),
            Expr::Compare(_, a, b) => {
                self.walk(a, locals)?;
                self.walk(b, locals)
            }
            Expr::And(all) => all.iter().try_for_each(|e| self.walk(e, locals)),
            Expr::Call(function, args) => {
                signature::check(*function, args.len())?;
                self.reads_more |= !reads_as_said(*function);
                args.iter().try_for_each(|e| self.walk(e, locals))
            }
            Expr::Comprehension { variable, list, filter, map } => {
                self.walk(list, locals)?;
                locals.push((*variable, list));
                let inner = filter.iter().chain(map).try_for_each(|e| self.walk(e, locals));
                locals.pop();
                inner
            }
            Expr::Quantified { variable, list, predicate, .. } => {
                self.walk(list, locals)?;
                locals.push((*variable, list));
                let inner = self.walk(predicate, locals);
                locals.pop();
                inner
            }
            Expr::Reduce { accumulator, start, variable, list, step } => {
                self.walk(start, locals)?;
                self.walk(list, locals)?;
                locals.push((*variable, list));
                locals.push((*accumulator, start));
                let inner = self.walk(step, locals);
                locals.truncate(locals.len() - 2);
                inner
            }
            other => other.children().into_iter().try_for_each(|e| self.walk(e, locals)),
        }
    }

    fn need(&mut self, base: &'e Expr, need: Need, locals: &[(Slot, &'e Expr)]) {
        if let Expr::Slot(slot) = base {
            if let Some((_, list)) = locals.iter().rev().find(|(local, _)| local == slot) {
                self.by_value.merge(need);
                self.other(list, true, locals);
            } else if let Some((_, known)) = self.slots.iter_mut().find(|(known, _)| known == slot) {
                known.merge(need);
            } else {
                self.slots.push((*slot, need));
            }
        } else {
            self.by_value.merge(need);
            self.other(base, false, locals);
        }
    }

    fn other(&mut self, expr: &'e Expr, items: bool, locals: &[(Slot, &'e Expr)]) {
        let mut local = false;
        expr.for_each_slot(&mut |slot| local |= locals.iter().any(|(l, _)| *l == slot));
        if !local && is_cheap(expr) && !self.others.iter().any(|(known, _)| std::ptr::eq(*known, expr)) {
            self.others.push((expr, items));
        }
    }
}

/// Whether all elements that an expression reads are in slots from which another expression reads, too, and there are any.
pub(crate) fn reads_same_elements(other: &Expr, expr: &Expr) -> bool {
    let (mut of_other, mut needs) = (Needs::default(), Needs::default());
    // A wrong call is refused by its evaluation.
    if of_other.add(other).is_err() || needs.add(expr).is_err() {
        return false;
    }
    let is_read = |slot: &Slot| of_other.slots.iter().any(|(read, _)| read == slot);
    !needs.slots.is_empty() && needs.others.is_empty() && needs.slots.iter().all(|(slot, _)| is_read(slot))
}

/// Whether a function reads of elements only what [`of_element`] says, whatever its arguments are.
fn reads_as_said(function: Function) -> bool {
    matches!(
        function,
        Function::Id
            | Function::Labels
            | Function::Type
            | Function::StartNode
            | Function::EndNode
            | Function::Nodes
            | Function::Relationships
            | Function::Head
            | Function::Last
            | Function::Size
            | Function::Length
            | Function::Coalesce
            | Function::ToInteger
            | Function::ToFloat
            | Function::Floor
            | Function::Ceil
            | Function::Abs
    )
}

/// Whether an expression is cheap enough to compute twice, the first time to know which elements to read.
fn is_cheap(expr: &Expr) -> bool {
    match expr {
        Expr::Slot(_) | Expr::Literal(_) | Expr::Parameter(_) => true,
        Expr::Index(..) | Expr::Property(..) | Expr::Slice(..) | Expr::List(_) => {
            expr.children().into_iter().all(is_cheap)
        }
        Expr::Call(function, args) => {
            matches!(
                function,
                Function::StartNode
                    | Function::EndNode
                    | Function::OtherNode
                    | Function::Nodes
                    | Function::Relationships
                    | Function::Head
                    | Function::Last
                    | Function::ListTail
                    | Function::Reverse
                    | Function::MapGet
                    | Function::Coalesce
            ) && args.iter().all(is_cheap)
        }
        _ => false,
    }
}

/// Returns the expression's element, and what the expression needs of it.
pub(crate) fn of_element(expr: &Expr) -> Option<(&Expr, Need)> {
    Some(match expr {
        Expr::Property(base, key) => (base, Need::key(key)),
        Expr::Index(base, index) => match &**index {
            Expr::Literal(Value::String(key)) => (base, Need::key(key)),
            // A position in a list, not a property.
            Expr::Literal(_) => return None,
            _ => (base, Need::everything()),
        },
        Expr::HasLabels(base, _) | Expr::HasAnyLabel(base, _) => {
            (base, Need { labels: true, ..Need::default() })
        }
        Expr::Call(function, args) => {
            let base = args.first()?;
            let need = match function {
                Function::Id => Need { ids: true, ..Need::default() },
                Function::Labels | Function::Label => Need { labels: true, ..Need::default() },
                Function::Keys | Function::PropertyMap => Need::everything(),
                Function::PropertyValues | Function::Properties | Function::GremlinPropertyMap => {
                    keys(&args[1..])
                }
                Function::ValueMap => {
                    let tokens = args.get(1) != Some(&Expr::Literal(Value::Bool(false)));
                    Need { ids: tokens, labels: tokens, ..keys(args.get(2..).unwrap_or_default()) }
                }
                Function::ElementMap => Need { ids: true, labels: true, ends: true, ..keys(&args[1..]) },
                Function::AsText => Need { ids: true, ends: true, ..Need::default() },
                Function::HasProperty => match args.get(1) {
                    Some(Expr::Literal(Value::String(key))) => Need::key(key),
                    _ => Need::everything(),
                },
                _ => return None,
            };
            (base, need)
        }
        _ => return None,
    })
}

/// Returns the need for literal keys; for all properties if there are no keys or one is computed.
fn keys(args: &[Expr]) -> Need {
    let mut need = Need::default();
    for arg in args {
        match arg {
            Expr::Literal(Value::String(key)) => need.keys.push(key.clone()),
            _ => return Need::everything(),
        }
    }
    if need.keys.is_empty() { Need::everything() } else { need }
}
