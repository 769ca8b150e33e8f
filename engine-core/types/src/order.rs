//! Equality, comparison and ordering of values, as the languages define them.
//!
//! There are three relations, the third in two versions:
//! * [`equals`]: the languages' `=`; unknown if a value is null.
//! * [`compare`]: the languages' `<`; unknown if the types cannot be compared.
//! * [`order`]: the total order of ORDER BY; `Eq` and `Hash` agree with it. [`gremlin_order`] is the total order of
//!   Gremlin's `order()`, which ranks types differently.

use crate::temporal::{DATE_TIME_RANK, place};
use crate::{Path, Temporal, Value};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Evaluates `a = b` in three-valued logic; `None` is unknown.
#[must_use]
pub fn equals(a: &Value, b: &Value) -> Option<bool> {
    if a.is_null() || b.is_null() {
        return None;
    }
    if is_number(a) && is_number(b) {
        return Some(number_order(a, b) == Some(Ordering::Equal));
    }
    match (a, b) {
        (Value::List(x), Value::List(y)) => {
            if x.len() != y.len() {
                return Some(false);
            }
            all_equal(x.iter().zip(y.iter()))
        }
        (Value::Map(x), Value::Map(y)) => {
            if x.len() != y.len() || x.keys().any(|k| !y.contains_key(k)) {
                return Some(false);
            }
            all_equal(x.iter().map(|(k, v)| (v, &y[k])))
        }
        _ => Some(order(a, b) == Ordering::Equal),
    }
}

fn all_equal<'a>(pairs: impl Iterator<Item = (&'a Value, &'a Value)>) -> Option<bool> {
    let mut known = Some(true);
    for (x, y) in pairs {
        match equals(x, y) {
            Some(false) => return Some(false),
            Some(true) => {}
            None => known = None,
        }
    }
    known
}

/// Compares two values, as `<` and `>=` do; `None` if they cannot be compared (different types, null, NaN).
#[must_use]
pub fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    if is_number(a) && is_number(b) {
        return number_order(a, b);
    }
    match (a, b) {
        (Value::String(x), Value::String(y)) => Some(x.cmp(y)),
        (Value::Uuid(x), Value::Uuid(y)) => Some(x.cmp(y)),
        (Value::Bool(x), Value::Bool(y)) => Some(x.cmp(y)),
        (Value::DateTime(x), Value::DateTime(y)) => Some(x.cmp(y)),
        (Value::Temporal(x), Value::Temporal(y)) => x.compare(y),
        (Value::DateTime(_), Value::Temporal(_)) | (Value::Temporal(_), Value::DateTime(_)) => {
            Some(place(a)?.cmp(&place(b)?))
        }
        (Value::List(x), Value::List(y)) => {
            for (i, j) in x.iter().zip(y.iter()) {
                match compare(i, j) {
                    Some(Ordering::Equal) => {}
                    other => return other,
                }
            }
            Some(x.len().cmp(&y.len()))
        }
        _ => None,
    }
}

/// Whether the value is a number of any width.
#[must_use]
pub fn is_number(v: &Value) -> bool {
    matches!(
        v,
        Value::Byte(_)
            | Value::Short(_)
            | Value::Int(_)
            | Value::Long(_)
            | Value::Float(_)
            | Value::Double(_)
            | Value::Big(_)
    )
}

/// Compares numbers exactly, without rounding a 64-bit integer to a double; `None` if one is NaN.
fn number_order(a: &Value, b: &Value) -> Option<Ordering> {
    match (a, b) {
        (Value::Big(x), _) => return x.order(b),
        (_, Value::Big(y)) => return y.order(a).map(Ordering::reverse),
        _ => {}
    }
    match (a.as_i64(), b.as_i64()) {
        (Some(x), Some(y)) => Some(x.cmp(&y)),
        (Some(x), None) => b.as_f64().and_then(|y| int_float_order(x, y)),
        (None, Some(y)) => a.as_f64().and_then(|x| int_float_order(y, x)).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// The doubles whose whole part is an `i64`: from -2^63 on, below 2^63.
const INTEGERS: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;

fn int_float_order(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= INTEGERS.end {
        return Some(Ordering::Less);
    }
    if float < INTEGERS.start {
        return Some(Ordering::Greater);
    }
    let whole = float.trunc();
    Some(
        int.cmp(&(whole as i64))
            .then_with(|| 0.0_f64.partial_cmp(&(float - whole)).unwrap_or(Ordering::Equal)),
    )
}

/// Returns the rank of a type in openCypher's total order: maps first, numbers last, then null.
fn rank(v: &Value) -> u8 {
    match v {
        Value::Map(_) => 0,
        Value::Vertex(_) | Value::VertexData(_) => 1,
        Value::Edge(_) | Value::EdgeData(_) => 2,
        Value::List(_) => 3,
        Value::Set(_) => 4,
        Value::Path(_) => 5,
        Value::Property(_) => 6,
        Value::Entry(_) => 7,
        Value::Symbol(_) => 8,
        Value::DateTime(_) => DATE_TIME_RANK,
        Value::Temporal(temporal) => temporal.rank(),
        Value::Point(_) => 15,
        Value::String(_) => 16,
        Value::Bool(_) => 17,
        Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Big(_) => 18,
        Value::Null => 19,
        Value::Unbound => 20,
        // Types of Gremlin only.
        Value::Tree(_) => 21,
        Value::Graph(_) => 22,
        Value::Uuid(_) => 23,
    }
}

/// Returns the rank of a type in Gremlin's total order: null first, then scalars, elements, collections.
fn gremlin_rank(v: &Value) -> u8 {
    match v {
        Value::Unbound => 0,
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::DateTime(_) => 4,
        // Types that Gremlin does not know, behind its own.
        Value::Temporal(temporal) => match temporal.rank() {
            DATE_TIME_RANK => 4,
            rank => 6 + rank,
        },
        Value::Point(_) => 30,
        // A map's tokens are ordered by their names among its other keys.
        Value::String(_) | Value::Symbol(_) => 5,
        Value::Uuid(_) => 6,
        Value::Vertex(_) | Value::VertexData(_) => 7,
        Value::Edge(_) | Value::EdgeData(_) => 8,
        Value::Property(_) => 9,
        Value::Path(_) => 10,
        Value::Set(_) => 11,
        Value::List(_) => 12,
        Value::Map(_) => 13,
        Value::Entry(_) => 14,
        Value::Tree(_) => 40,
        Value::Graph(_) => 41,
        _ => 3,
    }
}

/// Compares two values in openCypher's total order: ascending, null last.
#[must_use]
pub fn order(a: &Value, b: &Value) -> Ordering {
    total::<false>(a, b)
}

/// Compares two values in Gremlin's total order: ascending, null first.
#[must_use]
pub fn gremlin_order(a: &Value, b: &Value) -> Ordering {
    total::<true>(a, b)
}

fn total<const GREMLIN: bool>(a: &Value, b: &Value) -> Ordering {
    let rank = if GREMLIN { gremlin_rank } else { rank };
    let by_rank = rank(a).cmp(&rank(b));
    if by_rank != Ordering::Equal {
        return by_rank;
    }
    let order = total::<GREMLIN>;
    let order_slices = slices::<GREMLIN>;
    match (a, b) {
        (Value::String(x), Value::String(y)) => x.cmp(y),
        (Value::Bool(x), Value::Bool(y)) => x.cmp(y),
        (Value::DateTime(x), Value::DateTime(y)) => x.cmp(y),
        (Value::Temporal(x), Value::Temporal(y)) => x.order(y),
        (Value::DateTime(_), Value::Temporal(_)) | (Value::Temporal(_), Value::DateTime(_)) => {
            place(a).cmp(&place(b))
        }
        (Value::Point(x), Value::Point(y)) => x.cmp(y),
        (Value::Uuid(x), Value::Uuid(y)) => x.cmp(y),
        (Value::Symbol(x), Value::Symbol(y)) => x.as_str().cmp(y.as_str()),
        (Value::String(x), Value::Symbol(y)) => x.as_str().cmp(y.as_str()),
        (Value::Symbol(x), Value::String(y)) => x.as_str().cmp(y.as_str()),
        (Value::List(x), Value::List(y)) | (Value::Set(x), Value::Set(y)) => order_slices(x, y),
        (Value::Graph(x), Value::Graph(y)) => {
            order_slices(&x.vertices, &y.vertices).then_with(|| order_slices(&x.edges, &y.edges))
        }
        (Value::Map(x), Value::Map(y)) | (Value::Tree(x), Value::Tree(y)) => {
            if std::sync::Arc::ptr_eq(x, y) {
                return Ordering::Equal;
            }
            let sorted = |m: &crate::Map| {
                let mut entries: Vec<(Value, Value)> =
                    m.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                entries.sort_by(|l, r| order(&l.0, &r.0));
                entries
            };
            let (x, y) = (sorted(x), sorted(y));
            for ((k1, v1), (k2, v2)) in x.iter().zip(&y) {
                let o = order(k1, k2).then_with(|| order(v1, v2));
                if o != Ordering::Equal {
                    return o;
                }
            }
            x.len().cmp(&y.len())
        }
        (Value::Path(x), Value::Path(y)) => order_slices(&x.objects, &y.objects),
        (Value::Property(x), Value::Property(y)) => {
            let by_owner = match (x.is_of_vertex(), y.is_of_vertex()) {
                (true, true) => order(&x.owner, &y.owner),
                (a, b) => b.cmp(&a),
            };
            let by_value = || x.key.cmp(&y.key).then_with(|| order(&x.value, &y.value));
            by_owner.then_with(by_value).then_with(|| x.nth.cmp(&y.nth))
        }
        (Value::Entry(x), Value::Entry(y)) => order(&x.0, &y.0).then_with(|| order(&x.1, &y.1)),
        (Value::Null, _) | (Value::Unbound, _) => Ordering::Equal,
        _ => match (a.as_vertex(), b.as_vertex(), a.as_edge(), b.as_edge()) {
            (Some(x), Some(y), _, _) => x.cmp(&y),
            (_, _, Some(x), Some(y)) => x.sid.cmp(&y.sid),
            _ => number_order(a, b).unwrap_or_else(|| {
                // Only NaN is left: after every number, equal to itself.
                let nan = |v: &Value| v.as_f64().is_some_and(f64::is_nan);
                nan(a).cmp(&nan(b))
            }),
        },
    }
}

fn slices<const GREMLIN: bool>(x: &[Value], y: &[Value]) -> Ordering {
    for (a, b) in x.iter().zip(y) {
        let o = total::<GREMLIN>(a, b);
        if o != Ordering::Equal {
            return o;
        }
    }
    x.len().cmp(&y.len())
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            // The two that grouping and map keys meet most.
            (Value::String(x), Value::String(y)) => x == y,
            (Value::Vertex(x), Value::Vertex(y)) => x == y,
            _ => order(self, other) == Ordering::Equal,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_class(self).hash(state);
        match self {
            Value::Null | Value::Unbound => {}
            Value::Bool(v) => v.hash(state),
            Value::String(v) => v.hash(state),
            Value::DateTime(v) => v.hash(state),
            Value::Temporal(temporal) => temporal.hash(state),
            Value::Point(point) => point.hash(state),
            Value::Uuid(uuid) => uuid.hash(state),
            Value::Symbol(v) => v.hash(state),
            Value::List(items) | Value::Set(items) => items.hash(state),
            Value::Graph(graph) => graph.hash(state),
            Value::Map(map) | Value::Tree(map) => {
                // Order of insertion must not matter.
                map.len().hash(state);
                let mut sum = 0_u64;
                for (k, v) in map.iter() {
                    let mut h = std::hash::DefaultHasher::new();
                    (k, v).hash(&mut h);
                    sum = sum.wrapping_add(h.finish());
                }
                sum.hash(state);
            }
            Value::Path(path) => path.hash(state),
            Value::Property(p) => {
                // Only properties of vertices have an identity. In Gremlin, other properties with the same key and
                // value are equal.
                if p.is_of_vertex() {
                    p.owner.hash(state);
                }
                p.key.hash(state);
                p.value.hash(state);
                p.nth.hash(state);
            }
            Value::Entry(entry) => {
                entry.0.hash(state);
                entry.1.hash(state);
            }
            other => {
                if let Some(gui) = other.as_vertex() {
                    gui.hash(state);
                } else if let Some(edge) = other.as_edge() {
                    edge.sid.hash(state);
                } else {
                    hash_number(other, state);
                }
            }
        }
    }
}

/// Returns a number for the type. Processes of two releases that work side by side compare hashes of values, so these
/// numbers never change, unlike those of [`rank`].
fn hash_class(v: &Value) -> u8 {
    match v {
        Value::Temporal(Temporal::DateTime(_)) => 15,
        Value::Temporal(Temporal::LocalDateTime(_)) => 16,
        Value::Temporal(Temporal::Date(_)) => 17,
        Value::Temporal(Temporal::Time(_)) => 18,
        Value::Temporal(Temporal::LocalTime(_)) => 19,
        Value::Temporal(Temporal::Duration(_)) => 20,
        Value::Point(_) => 21,
        Value::DateTime(_) => 9,
        Value::String(_) => 10,
        Value::Bool(_) => 11,
        Value::Byte(_)
        | Value::Short(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Float(_)
        | Value::Double(_)
        | Value::Big(_) => 12,
        Value::Null => 13,
        Value::Unbound => 14,
        // Below these the two agree.
        other => rank(other),
    }
}

/// Hashes a number so that equal numbers have equal hashes: whole numbers as integers, others by the bits of the
/// double.
fn hash_number<H: Hasher>(v: &Value, state: &mut H) {
    if let Value::Big(big) = v {
        big.hash_into(state);
    } else if let Some(int) = v.as_i64() {
        int.hash(state);
    } else if let Some(float) = v.as_f64() {
        if float.is_nan() {
            f64::NAN.to_bits().hash(state);
        } else if float.trunc() == float && INTEGERS.contains(&float) {
            (float as i64).hash(state);
        } else {
            float.to_bits().hash(state);
        }
    }
}

impl Hash for Path {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.objects.hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Big;
    use std::hash::BuildHasher;

    fn hash(v: &Value) -> u64 {
        std::hash::BuildHasherDefault::<std::hash::DefaultHasher>::default().hash_one(v)
    }

    #[test]
    fn numbers_of_all_widths_are_equal_by_value() {
        let ones = [
            Value::Byte(1),
            Value::Short(1),
            Value::Int(1),
            Value::Long(1),
            Value::Float(1.0),
            Value::Double(1.0),
        ];
        for a in &ones {
            for b in &ones {
                assert_eq!(equals(a, b), Some(true));
                assert_eq!(hash(a), hash(b));
            }
        }
    }

    /// Numbers of all widths around powers of two, where the widths round differently.
    fn numbers() -> Vec<Value> {
        let mut numbers: Vec<Value> =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.1, 9.21e18, -9.21e18, 1e300, 5e-324]
                .map(Value::Double)
                .to_vec();
        for text in ["0.1", "0.10", "-0.1", "1e300", "5e-324", "9223372036854775807.5", "0.10000000149011612"]
        {
            numbers.extend(Big::parse_decimal(text));
        }
        numbers.extend([0.1_f32, 16_777_217.0, -9.3e18, f32::MAX, f32::INFINITY].map(Value::Float));
        for power in (0..=63).chain([7, 15, 31]) {
            let two = 2.0_f64.powi(power);
            for float in
                [two, two.next_up(), two.next_down(), two + 0.5, -two, -two.next_up(), -two.next_down()]
            {
                numbers.extend([Value::Double(float), Value::Float(float as f32)]);
            }
            for off in -2..=2_i128 {
                for whole in [(1_i128 << power) + off, off - (1_i128 << power)] {
                    numbers.extend(i8::try_from(whole).map(Value::Byte));
                    numbers.extend(i16::try_from(whole).map(Value::Short));
                    numbers.extend(i32::try_from(whole).map(Value::Int));
                    numbers.extend(i64::try_from(whole).map(Value::Long));
                    numbers.extend(Big::parse_integer(&whole.to_string()));
                    numbers.extend(Big::parse_decimal(&format!("{whole}.0")));
                    numbers.extend(Big::parse_decimal(&format!("{whole}.5")));
                }
            }
        }
        numbers
    }

    #[test]
    fn equal_numbers_have_equal_hashes_and_order_is_total() {
        let mut numbers = numbers();
        let hashes: Vec<u64> = numbers.iter().map(hash).collect();
        for (a, hash_of_a) in numbers.iter().zip(&hashes) {
            for (b, hash_of_b) in numbers.iter().zip(&hashes) {
                assert_eq!(order(a, b), order(b, a).reverse(), "{a:?} {b:?}");
                assert_eq!(a == b, order(a, b) == Ordering::Equal, "{a:?} {b:?}");
                assert!(a != b || hash_of_a == hash_of_b, "{a:?} equals {b:?}, and their hashes differ");
            }
        }
        // Transitive: what is sorted is in order between all pairs, not only between neighbours.
        numbers.sort_by(order);
        for (at, a) in numbers.iter().enumerate() {
            assert!(numbers[at..].iter().all(|b| order(a, b) != Ordering::Greater), "{a:?}");
        }
    }

    #[test]
    fn large_integers_are_not_rounded() {
        let (a, b) = (Value::Long(9_007_199_254_740_993), Value::Double(9_007_199_254_740_992.0));
        assert_eq!(compare(&a, &b), Some(Ordering::Greater));
        assert_eq!(
            compare(&Value::Long(i64::MAX), &Value::Double(9_223_372_036_854_775_808.0)),
            Some(Ordering::Less)
        );
        assert_eq!(compare(&Value::Long(-1), &Value::Double(-1.5)), Some(Ordering::Greater));
    }

    #[test]
    fn null_and_nan() {
        assert_eq!(equals(&Value::Null, &Value::Null), None);
        assert_eq!(Value::Null, Value::Null);
        let nan = Value::Double(f64::NAN);
        assert_eq!(equals(&nan, &nan), Some(false));
        assert_eq!(nan, nan.clone());
        assert_eq!(compare(&nan, &Value::Long(1)), None);
        assert_eq!(equals(&Value::list(vec![Value::Null]), &Value::list(vec![Value::Null])), None);
        assert_eq!(
            equals(&Value::list(vec![1.into(), Value::Null]), &Value::list(vec![2.into(), Value::Null])),
            Some(false)
        );
    }

    #[test]
    fn maps_ignore_insertion_order() {
        let m = |pairs: &[(&str, i32)]| {
            Value::map(pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect())
        };
        let (a, b) = (m(&[("a", 1), ("b", 2)]), m(&[("b", 2), ("a", 1)]));
        assert_eq!(a, b);
        assert_eq!(hash(&a), hash(&b));
        assert_ne!(a, m(&[("a", 1), ("b", 3)]));
    }

    #[test]
    fn types_cannot_be_compared_but_can_be_ordered() {
        assert_eq!(compare(&1.into(), &"1".into()), None);
        assert_eq!(order(&"1".into(), &1.into()), Ordering::Less);
        assert_eq!(order(&Value::Null, &1.into()), Ordering::Greater);
    }
}
