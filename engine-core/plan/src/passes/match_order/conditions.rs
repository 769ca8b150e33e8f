//! Conditions of a pattern as tests that a scan can make.

use crate::op::ScanTest;
use crate::{Comparison, Expr, Function, ScanCondition, Slot};
use tidegraph_types::{Str, Value};

/// A condition as a test that storage can make.
pub(in crate::passes) struct Tested {
    pub key: Str,
    pub test: ScanTest,
    /// `None`: a filter must follow. `Some`: the test is exact, so no filter need follow. `Some(true)`: the value that
    /// passes must also be the only one of its key, because several values are a list in openCypher, and a list passes
    /// no comparison with a scalar.
    pub exact: Option<bool>,
}

/// Returns a condition as a test of the vertex that a scan binds to `slot`.
pub(in crate::passes) fn test_of(conjunct: &Expr, slot: Slot) -> Option<Tested> {
    let tested = |key, test| Some(Tested { key, test, exact: Some(true) });
    match conjunct {
        Expr::Compare(comparison, a, b) => {
            let (key, operand, comparison) = match (key_of(a, slot), key_of(b, slot)) {
                (Some(key), None) => (key, operand(b)?, *comparison),
                (None, Some(key)) => (key, operand(a)?, mirrored(*comparison)),
                _ => return None,
            };
            let range = |low, high| tested(key.clone(), ScanTest::Range { low, high });
            match comparison {
                Comparison::Equal => tested(key, ScanTest::Equals(operand)),
                Comparison::NotEqual => Some(Tested { key, test: ScanTest::Exists, exact: None }),
                Comparison::Less => range(None, Some((operand, false))),
                Comparison::LessOrEqual => range(None, Some((operand, true))),
                Comparison::Greater => range(Some((operand, false)), None),
                Comparison::GreaterOrEqual => range(Some((operand, true)), None),
            }
        }
        Expr::In(a, b) => tested(key_of(a, slot)?, ScanTest::Within(operand(b)?)),
        Expr::Or(parts) => match alternatives(parts, slot) {
            Some((key, values)) => tested(key, ScanTest::Within(Expr::List(values))),
            None => implied(parts, slot),
        },
        Expr::Call(Function::StartsWith, args) => match &args[..] {
            [base, prefix] => tested(key_of(base, slot)?, ScanTest::StartsWith(operand(prefix)?)),
            _ => None,
        },
        Expr::Not(inner) => match &**inner {
            Expr::IsNull(base) => {
                Some(Tested { key: key_of(base, slot)?, test: ScanTest::Exists, exact: Some(false) })
            }
            _ => None,
        },
        _ => None,
    }
}

/// Returns the key and the operands of a disjunction of equalities with the same key.
fn alternatives(parts: &[Expr], slot: Slot) -> Option<(Str, Vec<Expr>)> {
    let (mut key, mut values) = (None, vec![]);
    for part in parts {
        let of = one_of(part, slot, &mut values)?;
        if key.get_or_insert_with(|| of.clone()) != &of {
            return None;
        }
    }
    Some((key?, values))
}

/// Returns a test that all parts of a disjunction imply: `(n.k = 1 AND a) OR (n.k = 2 AND b)` implies `n.k IN [1, 2]`.
fn implied(parts: &[Expr], slot: Slot) -> Option<Tested> {
    let (first, others) = parts.split_first()?;
    let of_part = |part: &Expr, wanted: &Str, values: &mut Vec<Expr>| {
        conjuncts(part).iter().any(|conjunct| {
            let before = values.len();
            let is_same = one_of(conjunct, slot, values).is_some_and(|key| key == *wanted);
            if !is_same {
                values.truncate(before);
            }
            is_same
        })
    };
    conjuncts(first).iter().find_map(|conjunct| {
        let mut values = vec![];
        let key = one_of(conjunct, slot, &mut values)?;
        let all = others.iter().all(|part| of_part(part, &key, &mut values));
        all.then(|| Tested { key, test: ScanTest::Within(Expr::List(values)), exact: None })
    })
}

fn conjuncts(part: &Expr) -> &[Expr] {
    match part {
        Expr::And(all) => all,
        one => std::slice::from_ref(one),
    }
}

fn key_of(expr: &Expr, slot: Slot) -> Option<Str> {
    match expr {
        // An id is not a property.
        Expr::Property(base, key) if **base == Expr::Slot(slot) && key != "~id" => Some(key.clone()),
        _ => None,
    }
}

/// Returns the key of an equality or of an `IN`, and appends the operands.
fn one_of(part: &Expr, slot: Slot, values: &mut Vec<Expr>) -> Option<Str> {
    match part {
        Expr::Compare(Comparison::Equal, a, b) => {
            let (key, value) = match (key_of(a, slot), key_of(b, slot)) {
                (Some(key), None) => (key, b),
                (None, Some(key)) => (key, a),
                _ => return None,
            };
            values.push(operand(value)?);
            Some(key)
        }
        Expr::In(a, b) => match &**b {
            Expr::List(items) => {
                for item in items {
                    values.push(operand(item)?);
                }
                key_of(a, slot)
            }
            Expr::Literal(list) if is_operand(b) => {
                values.extend(list.as_slice()?.iter().cloned().map(Expr::Literal));
                key_of(a, slot)
            }
            _ => None,
        },
        _ => None,
    }
}

fn operand(expr: &Expr) -> Option<Expr> {
    is_operand(expr).then(|| expr.clone())
}

/// Whether a scan can take the expression as an operand. It computes the operand once for each input row, from
/// constants and bound slots.
pub(super) fn is_operand(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value) => {
            let scalar = |value: &Value| value.is_scalar() || value.is_null();
            scalar(value) || value.as_slice().is_some_and(|items| items.iter().all(scalar))
        }
        Expr::Parameter(_) | Expr::Slot(_) => true,
        Expr::Property(base, _) => match &**base {
            Expr::Slot(_) | Expr::Parameter(_) => true,
            Expr::Call(Function::StartNode | Function::EndNode, args) => matches!(args[..], [Expr::Slot(_)]),
            _ => false,
        },
        Expr::Index(base, index) => is_operand(base) && is_operand(index),
        Expr::Negate(inner) => is_operand(inner),
        Expr::Arithmetic(_, a, b) => is_operand(a) && is_operand(b),
        Expr::List(items) => items.iter().all(is_operand),
        _ => false,
    }
}

fn mirrored(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

/// Joins a lower and an upper bound of the same value into one range, which an index can read. Returns whether it did.
pub(super) fn join(there: &mut ScanCondition, new: &ScanCondition) -> bool {
    if there.key != new.key || !(there.sole && new.sole) {
        return false;
    }
    let (ScanTest::Range { low, high }, ScanTest::Range { low: new_low, high: new_high }) =
        (&mut there.test, &new.test)
    else {
        return false;
    };
    if (low.is_some() && new_low.is_some()) || (high.is_some() && new_high.is_some()) {
        return false;
    }
    *low = low.take().or_else(|| new_low.clone());
    *high = high.take().or_else(|| new_high.clone());
    there.condition = std::mem::replace(&mut there.condition, Expr::And(vec![])).and(new.condition.clone());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn equal(key: &str, value: i64) -> Expr {
        let property = Expr::Property(Box::new(Expr::Slot(Slot(0))), key.into());
        Expr::compare(Comparison::Equal, property, Expr::literal(value))
    }

    #[test]
    fn a_disjunction_implies_a_test_of_the_key_that_all_parts_compare() {
        let other = || Expr::Slot(Slot(1));
        let both =
            Expr::Or(vec![equal("a", 1).and(equal("b", 2)), other().and(equal("b", 3)), equal("b", 4)]);
        let found = test_of(&both, Slot(0)).unwrap();
        let values = [2, 3, 4].map(|value: i64| Expr::literal(value)).to_vec();
        assert_eq!((&*found.key, found.exact), ("b", None), "a filter must follow");
        assert_eq!(found.test, ScanTest::Within(Expr::List(values)));
        let plain = Expr::Or(vec![equal("a", 1), equal("a", 2)]);
        assert_eq!(test_of(&plain, Slot(0)).unwrap().exact, Some(true));
        for parts in [
            vec![],
            vec![equal("a", 1).and(equal("b", 2)), equal("c", 3)],
            vec![equal("a", 1).and(equal("b", 2)), other()],
        ] {
            assert!(test_of(&Expr::Or(parts), Slot(0)).is_none());
        }
    }
}
