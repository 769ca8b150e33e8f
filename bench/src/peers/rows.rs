//! Answers in a notation that all peers share, so that they can be compared as multisets of text.
//!
//! A vertex is `id:label{key=value,…}` with its keys in order, a map `{key=value,…}`, a list `[a,b]`, a point in
//! time its milliseconds; columns are divided by `|`. `scripts/peers/java/common/Rows.java` and `kuzu_peer.py` write
//! the same. Floats are those of sums of halves, whose shortest forms are the same in all libraries.

use std::collections::BTreeMap;
use tidegraph_types::Value;

/// Returns the rows as a sorted list of text.
pub fn notation(rows: &[Vec<Value>]) -> Vec<String> {
    let mut all: Vec<String> =
        rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join("|")).collect();
    all.sort_unstable();
    all
}

fn value(of: &Value) -> String {
    match of {
        Value::Null | Value::Unbound => "null".to_owned(),
        Value::Bool(b) => b.to_string(),
        Value::String(s) => s.to_string(),
        Value::Double(d) => format!("{d:?}"),
        Value::DateTime(t) => t.as_millisecond().to_string(),
        Value::List(values) | Value::Set(values) => {
            format!("[{}]", values.iter().map(value).collect::<Vec<_>>().join(","))
        }
        Value::Map(entries) => map(entries.iter().map(|(k, v)| (key(k), value(v)))),
        Value::VertexData(data) => format!(
            "{}:{}{}",
            data.id,
            data.labels.first().map_or("", |l| l.as_str()),
            map(data
                .properties
                .iter()
                .map(|p| (p.key.to_string(), p.values.first().map_or_else(String::new, value))))
        ),
        other => other.as_i64().map_or_else(|| format!("{other:?}"), |n| n.to_string()),
    }
}

fn key(of: &Value) -> String {
    match of {
        Value::Symbol(symbol) => symbol.as_str().to_owned(),
        other => value(other),
    }
}

fn map(entries: impl Iterator<Item = (String, String)>) -> String {
    let sorted: BTreeMap<String, String> = entries.collect();
    let text: Vec<String> = sorted.into_iter().map(|(k, v)| format!("{k}={v}")).collect();
    format!("{{{}}}", text.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegraph_types::{Map, Symbol};

    #[test]
    fn keys_and_rows_are_in_order() {
        let mut entries = Map::new();
        entries.insert(Value::Symbol(Symbol::Label), Value::from("Partner"));
        entries.insert(Value::Symbol(Symbol::Id), Value::from("par-1"));
        let rows = vec![vec![Value::Long(7), Value::Bool(true)], vec![Value::map(entries), Value::Null]];
        assert_eq!(notation(&rows), ["7|true", "{id=par-1,label=Partner}|null"]);
    }
}
