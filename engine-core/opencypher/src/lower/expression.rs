//! Expressions: trees to `plan::Expr`, with the checks of types that need no data.

use super::types::Types;
use super::{Lowering, Origin, Typed, aggregate};
use crate::ast::{Expr as Tree, ExprKind, Literal, MapItem, Name};
use crate::fault::{Fault, Result};
use crate::parser::MAX_HEIGHT;
use tidegraph_plan::{Arithmetic, Comparison, Expr, Function, Quantifier, Slot};
use tidegraph_types::{Map, Str, Value};

/// The property key that means an element's id.
pub(super) const ID_KEY: &str = "~id";

impl<'a> Lowering<'a> {
    /// Lowers an expression whose type does not matter.
    pub(super) fn value(&mut self, tree: &'a Tree) -> Result<Expr> {
        Ok(self.expr(tree)?.expr)
    }

    /// Lowers an expression.
    pub(super) fn expr(&mut self, tree: &'a Tree) -> Result<Typed> {
        self.limits.charge(size_of::<Expr>())?;
        self.limits.spend(self.replacements.len())?;
        if let Some(found) = self.replaced(tree) {
            return Ok(found);
        }
        let offset = tree.place.0;
        let typed = |expr, types| Ok(Typed::new(expr, types));
        match &tree.kind {
            ExprKind::Literal(literal) => {
                let (value, types) = match literal {
                    Literal::Null => (Value::Null, Types::ANY),
                    Literal::Bool(v) => (Value::Bool(*v), Types::BOOL),
                    Literal::Integer(v) => (Value::Long(*v), Types::INTEGER),
                    Literal::Float(v) => (Value::Double(*v), Types::FLOAT),
                    Literal::String(v) => (Value::String(v.clone()), Types::STRING),
                };
                typed(Expr::Literal(value), types)
            }
            ExprKind::Parameter(name) => typed(Expr::Parameter(name.clone()), Types::DATA),
            ExprKind::Variable(name) if self.find(name).is_none() && constant(name).is_some() => {
                typed(Expr::literal(constant(name).unwrap_or_default()), Types::FLOAT)
            }
            ExprKind::Variable(name) => {
                let (slot, types) = self.resolve(name, offset)?;
                typed(Expr::Slot(slot), types)
            }
            ExprKind::Property(base, key) => self.property(base, key),
            ExprKind::Index(base, index) => {
                let base_value = self.expr(base)?;
                expect(&base_value, Types::LIST | Types::MAP | Types::ELEMENT, base, "[…]")?;
                let index = self.value(index)?;
                let types = if base_value.types == Types::DATA { Types::DATA } else { Types::ANY };
                typed(Expr::Index(Box::new(base_value.expr), Box::new(index)), types)
            }
            ExprKind::Slice(base, from, to) => {
                let base_value = self.expr(base)?;
                expect(&base_value, Types::LIST, base, "[…]")?;
                let from = from.as_ref().map(|e| self.value(e).map(Box::new)).transpose()?;
                let to = to.as_ref().map(|e| self.value(e).map(Box::new)).transpose()?;
                typed(Expr::Slice(Box::new(base_value.expr), from, to), Types::LIST)
            }
            ExprKind::HasLabels(base, labels) => {
                let base_value = self.expr(base)?;
                expect(&base_value, Types::ELEMENT, base, "a label predicate")?;
                let Typed { expr, types } = base_value;
                if is_cheap(&expr) {
                    return typed(self.label_test(&expr, types, labels)?, Types::BOOL);
                }
                let slot = self.slot();
                let test = self.label_test(&Expr::Slot(slot), types, labels)?;
                typed(self.with_local(slot, expr, test), Types::BOOL)
            }
            ExprKind::And(all) => typed(Expr::And(self.booleans(all)?), Types::BOOL),
            ExprKind::Or(all) => typed(Expr::Or(self.booleans(all)?), Types::BOOL),
            ExprKind::Xor(a, b) => {
                let (a, b) = (self.boolean(a)?, self.boolean(b)?);
                typed(Expr::Xor(Box::new(a), Box::new(b)), Types::BOOL)
            }
            ExprKind::Not(operand) => {
                let operand = self.boolean(operand)?;
                typed(not(operand), Types::BOOL)
            }
            ExprKind::IsNull(operand, negated) => {
                let is_null = Expr::IsNull(Box::new(self.value(operand)?));
                typed(if *negated { not(is_null) } else { is_null }, Types::BOOL)
            }
            ExprKind::IsType(operand, test, negated) => {
                let is_type = Expr::IsType(Box::new(self.value(operand)?), test.clone());
                typed(if *negated { not(is_type) } else { is_type }, Types::BOOL)
            }
            ExprKind::IsNormalized(operand, form, negated) => {
                let args = vec![self.value(operand)?, Expr::literal(form.clone())];
                let is_normalized = Expr::Call(Function::IsNormalized, args);
                typed(if *negated { not(is_normalized) } else { is_normalized }, Types::BOOL)
            }
            ExprKind::Condition(condition) => typed(self.boolean(condition)?, Types::BOOL),
            ExprKind::Negate(operand) => {
                let value = self.expr(operand)?;
                expect(&value, Types::NUMBER, operand, "'-'")?;
                typed(Expr::Negate(Box::new(value.expr)), Types::NUMBER)
            }
            ExprKind::Arithmetic(operator, a, b) => {
                let (left, right) = (self.expr(a)?, self.expr(b)?);
                if *operator != Arithmetic::Add {
                    expect(&left, Types::NUMBER | Types::TIME, a, "arithmetic")?;
                    expect(&right, Types::NUMBER | Types::TIME, b, "arithmetic")?;
                }
                let types = if left.types.within(Types::NUMBER) && right.types.within(Types::NUMBER) {
                    Types::NUMBER
                } else {
                    Types::ANY
                };
                typed(Expr::Arithmetic(*operator, Box::new(left.expr), Box::new(right.expr)), types)
            }
            ExprKind::Comparison(first, rest) => typed(self.comparison(first, rest)?, Types::BOOL),
            ExprKind::In(item, list) => {
                let item = self.value(item)?;
                let list_value = self.expr(list)?;
                expect(&list_value, Types::LIST, list, "IN")?;
                typed(Expr::In(Box::new(item), Box::new(list_value.expr)), Types::BOOL)
            }
            ExprKind::StartsWith(a, b) => self.text_test(Function::StartsWith, a, b),
            ExprKind::EndsWith(a, b) => self.text_test(Function::EndsWith, a, b),
            ExprKind::Contains(a, b) => self.text_test(Function::Contains, a, b),
            ExprKind::Matches(a, b) => self.text_test(Function::MatchesWhole, a, b),
            ExprKind::List(items) => {
                let items = items.iter().map(|e| self.value(e)).collect::<Result<Vec<_>>>()?;
                typed(list(items), Types::LIST)
            }
            ExprKind::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(key, e)| Ok((key.clone(), self.value(e)?)))
                    .collect::<Result<Vec<_>>>()?;
                typed(map(entries), Types::MAP)
            }
            ExprKind::MapProjection(base, items) => self.map_projection(base, items),
            ExprKind::Case { subject, branches, otherwise } => {
                self.case(subject.as_deref(), branches, otherwise.as_deref())
            }
            ExprKind::Comprehension { variable, list, filter, map } => {
                let (filter, map) = (filter.as_deref(), map.as_deref());
                if !filter.iter().chain(&map).any(|tree| has_subquery(tree)) {
                    return self.comprehension(variable, list, filter, map);
                }
                match self.without_rows(|this| this.comprehension(variable, list, filter, map))? {
                    Some(found) => Ok(found),
                    None => self.comprehension_of_rows(variable, list, filter, map),
                }
            }
            ExprKind::Quantified { quantifier, variable, list, predicate } => {
                if !has_subquery(predicate) {
                    return self.quantified(*quantifier, variable, list, predicate);
                }
                match self.without_rows(|this| this.quantified(*quantifier, variable, list, predicate))? {
                    Some(found) => Ok(found),
                    None => self.quantified_rows(*quantifier, variable, list, predicate),
                }
            }
            ExprKind::Reduce { accumulator, start, variable, list, step } => {
                let start = Box::new(self.value(start)?);
                let (list, item) = self.iterated(list, "reduce()")?;
                let (accumulator, mark) = self.local(&accumulator.text, Types::ANY);
                let (variable, _) = self.local(&variable.text, item);
                let step = Box::new(self.value(step)?);
                self.scope.truncate(mark);
                typed(Expr::Reduce { accumulator, start, variable, list: Box::new(list), step }, Types::ANY)
            }
            ExprKind::Call { name, distinct, args } => self.call(tree, name, *distinct, args),
            ExprKind::CountRows => Err(aggregate::not_allowed(tree)),
            ExprKind::Pattern(path) if path.shortest.is_some() => self.shortest_path(path),
            ExprKind::Pattern(_) => {
                let message =
                    "unexpected pattern, expected a value (a pattern is a predicate of WHERE and exists())";
                Err(Fault::syntax(offset, message))
            }
            ExprKind::PatternComprehension { pattern, filter, map } => {
                self.pattern_comprehension(pattern, filter.as_deref(), map)
            }
            ExprKind::Exists(query) => self.exists(query),
            ExprKind::Count(query) => self.count(query),
            ExprKind::Collect(query) => self.collect(query, offset),
        }
    }

    fn comprehension(
        &mut self,
        variable: &'a Name,
        list: &'a Tree,
        filter: Option<&'a Tree>,
        map: Option<&'a Tree>,
    ) -> Result<Typed> {
        let (list, item) = self.iterated(list, "a list comprehension")?;
        let (slot, mark) = self.local(&variable.text, item);
        let filter = filter.map(|e| self.boolean(e).map(Box::new)).transpose()?;
        let map = map.map(|e| self.value(e).map(Box::new)).transpose()?;
        self.scope.truncate(mark);
        let list = Box::new(list);
        Ok(Typed::new(Expr::Comprehension { variable: slot, list, filter, map }, Types::LIST))
    }

    fn quantified(
        &mut self,
        quantifier: Quantifier,
        variable: &'a Name,
        list: &'a Tree,
        predicate: &'a Tree,
    ) -> Result<Typed> {
        let (list, item) = self.iterated(list, "a quantifier")?;
        let (variable, mark) = self.local(&variable.text, item);
        let predicate = Box::new(self.boolean(predicate)?);
        self.scope.truncate(mark);
        let list = Box::new(list);
        Ok(Typed::new(Expr::Quantified { quantifier, variable, list, predicate }, Types::BOOL))
    }

    /// Tries to lower a comprehension whose subqueries are the same for all its items. `None`: a subquery uses the
    /// variable. Inside a try no other begins, so that the time does not double with each level of nesting.
    fn without_rows(&mut self, lower: impl FnOnce(&mut Self) -> Result<Typed>) -> Result<Option<Typed>> {
        if self.trying {
            return Ok(None);
        }
        let scope = self.scope.clone();
        let pending = std::mem::take(&mut self.pending);
        let replacements = self.replacements.clone();
        let (level, outer, hint, operators) = (self.level, self.outer, self.hint, self.operators);
        self.limits.spend(scope.len() + replacements.len())?;
        self.trying = true;
        self.crossed.set(false);
        let result = lower(self);
        self.trying = false;
        match result {
            Ok(found) => {
                let added = std::mem::replace(&mut self.pending, pending);
                self.pending.extend(added);
                Ok(Some(found))
            }
            Err(_) if self.crossed.get() => {
                (self.scope, self.pending, self.replacements) = (scope, pending, replacements);
                (self.level, self.outer, self.hint, self.operators) = (level, outer, hint, operators);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    /// Lowers an expression where a truth value is expected, which may be a pattern.
    pub(super) fn boolean(&mut self, tree: &'a Tree) -> Result<Expr> {
        if let ExprKind::Pattern(path) = &tree.kind
            && path.shortest.is_none()
        {
            return self.pattern_predicate(path);
        }
        let value = self.expr(tree)?;
        if !value.types.meets(Types::BOOL) {
            let message = format!("found {}, expected a boolean", value.types.describe());
            return Err(Fault::syntax(tree.place.0, message));
        }
        Ok(value.expr)
    }

    fn booleans(&mut self, all: &'a [Tree]) -> Result<Vec<Expr>> {
        all.iter().map(|tree| self.boolean(tree)).collect()
    }

    /// Returns the slot of an expression that was computed before.
    fn replaced(&self, tree: &Tree) -> Option<Typed> {
        let found = self.replacements.iter().find(|r| r.tree == tree)?;
        // A name in it may have another meaning here: that of a comprehension's variable or an alias.
        let other_meaning = |tree: &Tree| match &tree.kind {
            ExprKind::Variable(name) => self.find(name).is_some_and(|v| v.origin != Origin::Clause),
            _ => false,
        };
        (!tree.any(&other_meaning)).then(|| Typed::new(Expr::Slot(found.slot), found.types))
    }

    fn property(&mut self, base: &'a Tree, key: &Str) -> Result<Typed> {
        let value = self.expr(base)?;
        expect(&value, Types::ELEMENT | Types::MAP | Types::TIME | Types::POINT, base, "a property")?;
        let types = if value.types == Types::DATA || value.types.within(Types::ELEMENT) {
            Types::DATA
        } else {
            Types::ANY
        };
        if key == ID_KEY && value.types.within(Types::ELEMENT) {
            return Ok(Typed::new(id_of(value.expr), Types::STRING));
        }
        Ok(Typed::new(Expr::Property(Box::new(value.expr), key.clone()), types))
    }

    fn text_test(&mut self, function: Function, a: &'a Tree, b: &'a Tree) -> Result<Typed> {
        let args = vec![self.value(a)?, self.value(b)?];
        Ok(Typed::new(Expr::Call(function, args), Types::BOOL))
    }

    /// `a < b <= c` as a conjunction; `b` is computed once.
    fn comparison(&mut self, first: &'a Tree, rest: &'a [(Comparison, Tree)]) -> Result<Expr> {
        let mut left = self.value(first)?;
        if let [(operator, right)] = rest {
            let right = self.value(right)?;
            return Ok(Expr::compare(*operator, left, right));
        }
        let mut all = Vec::with_capacity(rest.len());
        let mut shared: Vec<(Slot, Expr)> = vec![];
        for (i, (operator, right)) in rest.iter().enumerate() {
            let place = right.place;
            let mut right = self.value(right)?;
            if i + 1 < rest.len() && !is_cheap(&right) {
                // Each operand that is computed once nests what follows.
                if shared.len() == usize::from(MAX_HEIGHT) {
                    let message =
                        format!("expression is too long, expected at most {MAX_HEIGHT} operators in a row");
                    return Err(Fault::syntax(place.0, message));
                }
                let slot = self.slot();
                shared.push((slot, std::mem::replace(&mut right, Expr::Slot(slot))));
            }
            all.push(Expr::compare(*operator, left, right.clone()));
            left = right;
        }
        let mut result = Expr::And(all);
        while let Some((slot, value)) = shared.pop() {
            result = self.with_local(slot, value, result);
        }
        Ok(result)
    }

    /// Binds a local slot to `value` inside `body`, as a reduction over one item.
    pub(super) fn with_local(&mut self, slot: Slot, value: Expr, body: Expr) -> Expr {
        Expr::Reduce {
            accumulator: slot,
            start: Box::new(value),
            variable: self.slot(),
            list: Box::new(Expr::Literal(Value::list(vec![Value::Null]))),
            step: Box::new(body),
        }
    }

    fn case(
        &mut self,
        subject: Option<&'a Tree>,
        branches: &'a [(Tree, Tree)],
        otherwise: Option<&'a Tree>,
    ) -> Result<Typed> {
        let mut shared = None;
        let has_tests = branches.iter().any(|(when, _)| matches!(when.kind, ExprKind::Condition(_)));
        let mark = self.scope.len();
        let subject = match subject {
            None => None,
            Some(tree) => {
                let value = self.value(tree)?;
                if has_tests {
                    let (slot, _) = self.local("", Types::ANY);
                    shared = Some((slot, value));
                    Some(Expr::Slot(slot))
                } else if is_cheap(&value) {
                    Some(value)
                } else {
                    let slot = self.slot();
                    shared = Some((slot, value));
                    Some(Expr::Slot(slot))
                }
            }
        };
        let branches = branches
            .iter()
            .map(|(condition, result)| {
                let condition = match &subject {
                    Some(_) if matches!(condition.kind, ExprKind::Condition(_)) => self.boolean(condition)?,
                    Some(subject) => {
                        Expr::compare(Comparison::Equal, subject.clone(), self.value(condition)?)
                    }
                    None => self.boolean(condition)?,
                };
                Ok((condition, self.value(result)?))
            })
            .collect::<Result<Vec<_>>>()?;
        let otherwise = match otherwise {
            Some(tree) => self.value(tree)?,
            None => Expr::Literal(Value::Null),
        };
        self.scope.truncate(mark);
        let mut case = Expr::Case { branches, otherwise: Box::new(otherwise) };
        if let Some((slot, value)) = shared {
            case = self.with_local(slot, value, case);
        }
        Ok(Typed::new(case, Types::ANY))
    }

    /// `base{.*, key: value}`: null if the base is null.
    fn map_projection(&mut self, base: &'a Tree, items: &'a [MapItem]) -> Result<Typed> {
        let value = self.expr(base)?;
        expect(&value, Types::ELEMENT | Types::MAP, base, "a map projection")?;
        let base = value.expr;
        let mut parts: Vec<Expr> = vec![];
        let mut entries: Vec<(Str, Expr)> = vec![];
        for item in items {
            match item {
                MapItem::All => {
                    if !entries.is_empty() {
                        parts.push(map(std::mem::take(&mut entries)));
                    }
                    parts.push(Expr::Call(Function::PropertyMap, vec![base.clone()]));
                }
                MapItem::Entry(key, tree) => entries.push((key.clone(), self.value(tree)?)),
            }
        }
        if !entries.is_empty() || parts.is_empty() {
            parts.push(map(entries));
        }
        let all =
            if parts.len() == 1 { parts.swap_remove(0) } else { Expr::Call(Function::MergeMaps, parts) };
        let is_null = Expr::IsNull(Box::new(base));
        let branches = vec![(is_null, Expr::Literal(Value::Null))];
        Ok(Typed::new(Expr::Case { branches, otherwise: Box::new(all) }, Types::MAP))
    }

    /// Lowers a list to iterate over, and returns the types of its items.
    fn iterated(&mut self, tree: &'a Tree, by: &str) -> Result<(Expr, Types)> {
        let value = self.expr(tree)?;
        expect(&value, Types::LIST, tree, by)?;
        let item = item_types(&value);
        Ok((value.expr, item))
    }

    /// Declares the variable of a comprehension. Returns its slot and the scope's length to restore at the end.
    pub(super) fn local(&mut self, name: &'a str, types: Types) -> (Slot, usize) {
        let mark = self.scope.len();
        let slot = self.slot();
        self.declare(name, slot, types, Origin::Local(self.level));
        (slot, mark)
    }
}

/// Refuses a value that certainly has none of the types.
pub(super) fn expect(value: &Typed, types: Types, tree: &Tree, by: &str) -> Result<()> {
    if value.types.meets(types) {
        return Ok(());
    }
    let message = format!("found {}, expected {} for {by}", value.types.describe(), types.describe());
    Err(Fault::syntax(tree.place.0, message))
}

/// Returns the types that items of a list may have. Items of a parameter or a constant are never elements.
pub(super) fn item_types(list: &Typed) -> Types {
    match &list.expr {
        Expr::Literal(Value::List(items)) if !items.is_empty() => {
            items.iter().map(literal_types).fold(literal_types(&items[0]), |all, types| all | types)
        }
        Expr::Literal(_) => Types::DATA,
        _ if list.types == Types::DATA => Types::DATA,
        _ => Types::ANY,
    }
}

fn literal_types(value: &Value) -> Types {
    match value {
        Value::Bool(_) => Types::BOOL,
        Value::Long(_) => Types::INTEGER,
        Value::Double(_) => Types::FLOAT,
        Value::String(_) => Types::STRING,
        Value::List(_) => Types::LIST,
        Value::Map(_) => Types::MAP,
        _ => Types::DATA,
    }
}

pub(super) fn not(operand: Expr) -> Expr {
    Expr::Not(Box::new(operand))
}

/// Returns the float that a word means if no variable has this name.
fn constant(name: &str) -> Option<f64> {
    ["inf", "infinity"]
        .iter()
        .any(|word| name.eq_ignore_ascii_case(word))
        .then_some(f64::INFINITY)
        .or_else(|| name.eq_ignore_ascii_case("nan").then_some(f64::NAN))
}

/// Whether an expression contains a pattern or a subquery.
fn has_subquery(tree: &Tree) -> bool {
    tree.any(&|tree| {
        matches!(
            tree.kind,
            ExprKind::Pattern(_)
                | ExprKind::PatternComprehension { .. }
                | ExprKind::Exists(_)
                | ExprKind::Count(_)
                | ExprKind::Collect(_)
        )
    })
}

/// Returns the id of an element.
pub(super) fn id_of(element: Expr) -> Expr {
    Expr::Call(Function::Id, vec![element])
}

/// Whether the expression is cheap and gives the same value twice.
fn is_cheap(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Parameter(_) | Expr::Slot(_) => true,
        Expr::Property(base, _) => matches!(**base, Expr::Slot(_)),
        _ => false,
    }
}

/// Makes a list. A list of constants becomes a constant, so that it is not built for each row.
fn list(items: Vec<Expr>) -> Expr {
    if !items.iter().all(|e| matches!(e, Expr::Literal(_))) {
        return Expr::List(items);
    }
    let constant = |e| if let Expr::Literal(value) = e { Some(value) } else { None };
    Expr::Literal(Value::list(items.into_iter().filter_map(constant).collect()))
}

/// Makes a map. A map of constants becomes a constant. The later of two entries with the same key wins.
fn map(entries: Vec<(Str, Expr)>) -> Expr {
    if !entries.iter().all(|(_, e)| matches!(e, Expr::Literal(_))) {
        return Expr::Map(entries);
    }
    let mut constant = Map::with_capacity(entries.len());
    for (key, value) in entries {
        if let Expr::Literal(value) = value {
            constant.insert(Value::String(key), value);
        }
    }
    Expr::Literal(Value::map(constant))
}
