//! Compares answers with expectations.

use super::notation::Expected;
use tidegraph_types::{EdgeData, Value, VertexData};

/// How rows and lists are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode {
    pub in_order: bool,
    pub ignore_list_order: bool,
    /// As [`Graph::is_plain`](super::Graph::is_plain).
    pub is_plain: bool,
}

/// Compares rows. The error shows both sides.
pub fn rows(expected: &[Vec<Expected>], found: &[Vec<Value>], mode: Mode) -> Result<(), String> {
    let same = |expected: &[Expected], found: &[Value]| {
        expected.len() == found.len() && expected.iter().zip(found).all(|(e, f)| matches(e, f, mode))
    };
    let equal = expected.len() == found.len()
        && if mode.in_order {
            expected.iter().zip(found).all(|(e, f)| same(e, f))
        } else {
            pair_up(expected, found, |e, f| same(e, f))
        };
    if equal {
        return Ok(());
    }
    let show = |row: &[Value]| row.iter().map(show).collect::<Vec<_>>().join(" | ");
    let found: Vec<String> = found.iter().take(20).map(|row| show(row)).collect();
    Err(format!("rows: {}\n      expected: {expected:?}", found.join("\n            ")))
}

/// Returns whether each item of one side can be paired with its own item of the other
/// side. `same` is an equivalence, so a greedy search is enough.
fn pair_up<A, B>(left: &[A], right: &[B], same: impl Fn(&A, &B) -> bool) -> bool {
    let mut free: Vec<&B> = right.iter().collect();
    left.len() == right.len()
        && left.iter().all(|a| match free.iter().position(|b| same(a, b)) {
            Some(at) => {
                free.swap_remove(at);
                true
            }
            None => false,
        })
}

fn matches(expected: &Expected, found: &Value, mode: Mode) -> bool {
    match (expected, found) {
        (Expected::Null, Value::Null) => true,
        (Expected::Bool(a), Value::Bool(b)) => a == b,
        (Expected::Float(a), Value::Double(_) | Value::Float(_)) => {
            found.as_f64().is_some_and(|b| *a == b || a.is_nan() && b.is_nan())
        }
        (Expected::Float(a), Value::String(b)) if mode.is_plain && !a.is_finite() => {
            b.parse::<f64>().is_ok_and(|b| *a == b || a.is_nan() && b.is_nan())
        }
        (Expected::Integer(a), _) => found.as_i64() == Some(*a),
        (Expected::String(a), Value::String(b)) => a == b,
        // The TCK writes temporal values as their text.
        (Expected::String(a), Value::DateTime(_) | Value::Temporal(_)) => *a == found.for_message(),
        (Expected::List(a), Value::List(b)) => {
            a.len() == b.len()
                && if mode.ignore_list_order {
                    pair_up(a, b, |a, b| matches(a, b, mode))
                } else {
                    a.iter().zip(b.iter()).all(|(a, b)| matches(a, b, mode))
                }
        }
        (Expected::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.iter().all(|(k, v)| {
                    b.get(&Value::string(k.as_str())).is_some_and(|found| matches(v, found, mode))
                })
        }
        (Expected::Node(..), Value::VertexData(data)) => node(expected, data, mode),
        (Expected::Edge(..), Value::EdgeData(data)) => edge(expected, data, mode),
        (Expected::Path(first, rest), Value::Path(found)) => path(first, rest, &found.objects, mode),
        (Expected::Path(first, rest), Value::List(found)) if mode.is_plain => path(first, rest, found, mode),
        _ => false,
    }
}

fn node(expected: &Expected, found: &VertexData, mode: Mode) -> bool {
    let Expected::Node(labels, properties) = expected else { return false };
    labels.len() == found.labels.len()
        && labels.iter().all(|label| found.labels.iter().any(|l| l == label))
        && properties.len() == found.properties.len()
        && properties.iter().all(|(key, value)| {
            let property = found.properties.iter().find(|p| p.key == **key);
            property.is_some_and(|p| p.values.len() == 1 && matches(value, &p.values[0], mode))
        })
}

fn edge(expected: &Expected, found: &EdgeData, mode: Mode) -> bool {
    let Expected::Edge(label, properties) = expected else { return false };
    found.label == **label
        && properties.len() == found.properties.len()
        && properties
            .iter()
            .all(|(key, value)| found.properties.iter().any(|(k, v)| *k == **key && matches(value, v, mode)))
}

fn path(first: &Expected, rest: &[(Expected, bool, Expected)], objects: &[Value], mode: Mode) -> bool {
    let Some((Value::VertexData(start), steps)) = objects.split_first() else { return false };
    let mut here = start;
    node(first, start, mode)
        && steps.len() == 2 * rest.len()
        && rest.iter().zip(steps.chunks_exact(2)).all(|((wanted_edge, forward, wanted), step)| {
            let [Value::EdgeData(data), Value::VertexData(next)] = step else { return false };
            let (from, to) = if *forward { (here, next) } else { (next, here) };
            let ends = data.source_id == from.id && data.target_id == to.id;
            here = next;
            ends && edge(wanted_edge, data, mode) && node(wanted, next, mode)
        })
}

/// Formats a value in the notation of the scenarios.
pub fn show(value: &Value) -> String {
    let list = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::Null => "null".into(),
        Value::String(text) => format!("'{text}'"),
        Value::List(items) => format!("[{}]", list(items)),
        Value::Map(map) => {
            let entries = map.iter().map(|(k, v)| format!("{}: {}", k.as_str().unwrap_or("?"), show(v)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::VertexData(data) => {
            let labels: String = data.labels.iter().map(|label| format!(":{label}")).collect();
            let properties = data.properties.iter().map(|p| format!("{}: {}", p.key, list(&p.values)));
            format!("({labels} {{{}}})", properties.collect::<Vec<_>>().join(", "))
        }
        Value::EdgeData(data) => {
            let properties = data.properties.iter().map(|(key, value)| format!("{key}: {}", show(value)));
            format!("[:{} {{{}}}]", data.label, properties.collect::<Vec<_>>().join(", "))
        }
        Value::Path(path) => format!("<{}>", list(&path.objects)),
        Value::Bool(v) => v.to_string(),
        other => match (other.as_i64(), other.as_f64()) {
            (Some(int), _) => int.to_string(),
            (None, Some(float)) => format!("{float:?}"),
            _ => format!("{other:?}"),
        },
    }
}
