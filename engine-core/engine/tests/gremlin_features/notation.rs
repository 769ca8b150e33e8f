//! TinkerPop's notation for values in scenarios: `d[1].i`, `v[marko]`, `e[a-knows->b].id`, `l[…]`, `m[{…}]` …
//!
//! Parameters that are ids have the type that the graph gives them. Tidegraph has no decimals and no integers of any size, so these are read as doubles and 64-bit integers.

use std::sync::Arc;
use tidegraph_engine::{Database, Language, Parameters, Query};
use tidegraph_types::{Big, Map, Path, PropertyRef, Symbol, Value};

/// The error says why a text has no value here: the scenario is left out, or is wrong.
pub type Result<T> = std::result::Result<T, String>;

/// Strings that stand for words of the language (`Merge.outV`) begin with this. They can be written but not bound.
const WORD: char = '\u{1}';

/// Parses a value, and looks up vertices and edges in the graph.
pub fn value(text: &str, graph: &Database) -> Result<Value> {
    let inside = |prefix: &str| {
        text.strip_prefix(prefix)
            .and_then(|rest| rest.strip_prefix('['))
            .and_then(|rest| rest.strip_suffix(']'))
    };
    match text {
        "null" => return Ok(Value::Null),
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        "d[NaN]" => return Ok(Value::Double(f64::NAN)),
        "d[Infinity]" => return Ok(Value::Double(f64::INFINITY)),
        "d[-Infinity]" => return Ok(Value::Double(f64::NEG_INFINITY)),
        _ => {}
    }
    if let Some((digits, kind)) = text.strip_prefix("d[").and_then(|rest| rest.split_once("].")) {
        return number(digits, kind).ok_or_else(|| format!("no number: {text}"));
    }
    for (suffix, name) in [("].id", 3), ("].sid", 4)] {
        if text.ends_with(suffix) && (text.starts_with("v[") || text.starts_with("e[")) {
            let ids = graph.status().gremlin.ids;
            let id = match value(&text[..text.len() - name], graph)? {
                Value::VertexData(data) => data.id.clone(),
                Value::EdgeData(data) => data.id.clone(),
                _ => return Err(format!("no element: {text}")),
            };
            return Ok(if name == 4 { Value::string(ids.shown(&id)) } else { ids.value(&id) });
        }
    }
    if let Some(text) = inside("str") {
        return Ok(Value::from(text));
    }
    if let Some(text) = inside("vp") {
        let (owner, value_text) = text.split_once("->").ok_or_else(|| format!("no property: {text}"))?;
        let (owner, key) = owner.rsplit_once('-').ok_or_else(|| format!("no property: {text}"))?;
        return Ok(Value::Property(Arc::new(PropertyRef {
            owner: value(&format!("v[{owner}]"), graph)?,
            key: key.into(),
            value: value(value_text, graph)?,
            nth: 0,
        })));
    }
    if let Some(name) = inside("v") {
        return vertex(name, graph);
    }
    if let Some(edge) = inside("e") {
        return self::edge(edge, graph);
    }
    if let Some(items) = inside("l") {
        return list(items, graph).map(Value::list);
    }
    if let Some(items) = inside("s") {
        return list(items, graph).map(|items| Value::Set(Arc::new(items)));
    }
    if let Some(items) = inside("p") {
        return Ok(Value::Path(Arc::new(Path { objects: list(items, graph)?, labels: vec![] })));
    }
    if let Some(text) = inside("dt") {
        return text.parse().map(Value::DateTime).map_err(|error| format!("{text}: {error}"));
    }
    if let Some(token) = inside("t") {
        return symbol(&[Symbol::Id, Symbol::Label, Symbol::Key, Symbol::Value], token);
    }
    if let Some(token) = inside("D") {
        let token = if token == "from" {
            "OUT"
        } else if token == "to" {
            "IN"
        } else {
            token
        };
        return symbol(&[Symbol::Out, Symbol::In], token);
    }
    if let Some(token) = inside("M") {
        return Ok(Value::string(format!("{WORD}Merge.{token}")));
    }
    if let Some(json) = inside("m") {
        let json = serde_json::from_str(json).map_err(|error| format!("{json}: {error}"))?;
        return from_json(&json, graph);
    }
    if text.starts_with("c[") && text.ends_with(']') {
        return Err("a lambda".into());
    }
    if let Some(text) = inside("uuid") {
        return text.parse().map(Value::Uuid).map_err(|error| format!("{text}: {error}"));
    }
    Ok(Value::from(text))
}

/// Parses a tree: each line has an object behind `|--`, indented by three spaces for each object before it.
pub fn tree(text: &str, graph: &Database) -> Result<Value> {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .filter_map(|line| line.split_once("|--"))
        .map(|(indent, rest)| (indent.len(), rest.trim()))
        .collect();
    branches(&lines, graph)
}

fn branches(lines: &[(usize, &str)], graph: &Database) -> Result<Value> {
    let mut map = Map::new();
    let mut rest = lines;
    while let Some(((indent, object), after)) = rest.split_first() {
        let below = after.iter().take_while(|(other, _)| other > indent).count();
        map.insert(value(object, graph)?, branches(&after[..below], graph)?);
        rest = &after[below..];
    }
    Ok(Value::Tree(Arc::new(map)))
}

fn number(digits: &str, kind: &str) -> Option<Value> {
    Some(match kind {
        "b" => Value::Byte(digits.parse().ok()?),
        "s" => Value::Short(digits.parse().ok()?),
        "i" => Value::Int(digits.parse().ok()?),
        "l" => Value::Long(digits.parse().ok()?),
        "n" => Big::parse_integer(digits)?,
        "f" => Value::Float(digits.parse().ok()?),
        "d" => Value::Double(digits.parse().ok()?),
        "m" => Big::parse_decimal(digits)?,
        _ => return None,
    })
}

fn symbol(symbols: &[Symbol], token: &str) -> Result<Value> {
    let found = symbols.iter().find(|symbol| symbol.as_str() == token);
    found.map(|symbol| Value::Symbol(*symbol)).ok_or_else(|| format!("no token: {token}"))
}

fn ask(graph: &Database, text: &str, parameters: &[(&str, &str)]) -> Option<Value> {
    let parameters: Parameters = parameters.iter().map(|(k, v)| ((*k).into(), Value::from(*v))).collect();
    let answer = graph.query(&Query::new(Language::OpenCypher, text, &parameters)).ok()?;
    answer.rows.into_iter().next()?.into_iter().next()
}

fn vertex(name: &str, graph: &Database) -> Result<Value> {
    ask(graph, "MATCH (n) WHERE n.name = $name RETURN n", &[("name", name)])
        .or_else(|| ask(graph, "MATCH (n) WHERE id(n) = $name RETURN n", &[("name", name)]))
        .map(|found| typed(found, graph))
        .ok_or_else(|| format!("no vertex is named {name}"))
}

/// Gives a vertex that openCypher found the type of id that Gremlin sees.
fn typed(mut found: Value, graph: &Database) -> Value {
    if let Value::VertexData(data) = &mut found {
        Arc::make_mut(data).ids = graph.status().gremlin.ids;
    }
    found
}

fn edge(text: &str, graph: &Database) -> Result<Value> {
    let (source, target) = text.split_once("->").ok_or_else(|| format!("no edge: {text}"))?;
    let (source, label) = source.rsplit_once('-').ok_or_else(|| format!("no edge: {text}"))?;
    let parameters = [("source", source), ("label", label), ("target", target)];
    ask(
        graph,
        "MATCH (a)-[r]->(b) WHERE a.name = $source AND b.name = $target AND type(r) = $label RETURN r",
        &parameters,
    )
    .ok_or_else(|| format!("no edge {text}"))
}

/// Parses items separated by commas outside brackets and quotes.
fn list(text: &str, graph: &Database) -> Result<Vec<Value>> {
    if text.is_empty() {
        return Ok(vec![]);
    }
    let (mut depth, mut quoted, mut start, mut items) = (0, false, 0, vec![]);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth -= 1,
            ',' if depth == 0 && !quoted => {
                items.push(value(text[start..at].trim(), graph)?);
                start = at + 1;
            }
            _ => {}
        }
    }
    items.push(value(text[start..].trim(), graph)?);
    Ok(items)
}

fn from_json(json: &serde_json::Value, graph: &Database) -> Result<Value> {
    Ok(match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(v) => Value::Bool(*v),
        serde_json::Value::Number(v) => match v.as_i64() {
            Some(int) => i32::try_from(int).map_or(Value::Long(int), Value::Int),
            None => Value::Double(v.as_f64().ok_or("no number")?),
        },
        serde_json::Value::String(text) => value(text, graph)?,
        serde_json::Value::Array(items) => {
            Value::list(items.iter().map(|item| from_json(item, graph)).collect::<Result<_>>()?)
        }
        serde_json::Value::Object(entries) => {
            let entry = |(key, item): (&String, _)| Ok((value(key, graph)?, from_json(item, graph)?));
            Value::map(entries.iter().map(entry).collect::<Result<Map>>()?)
        }
    })
}

/// Returns the value in the notation of gremlin-lang, or `None` if that has no notation for it.
pub fn literal(value: &Value) -> Option<String> {
    let all = |items: &[Value]| Some(items.iter().map(literal).collect::<Option<Vec<_>>>()?.join(", "));
    Some(match value {
        Value::Null => "null".into(),
        Value::Bool(v) => v.to_string(),
        Value::Byte(v) => format!("{v}B"),
        Value::Short(v) => format!("{v}S"),
        Value::Int(v) => v.to_string(),
        Value::Long(v) => format!("{v}L"),
        Value::Float(v) => format!("{v:?}F"),
        Value::Double(v) if v.is_nan() => "NaN".into(),
        Value::Double(v) if v.is_infinite() => if *v > 0.0 { "+Infinity" } else { "-Infinity" }.into(),
        Value::Double(v) => format!("{v:?}D"),
        Value::String(text) => match text.strip_prefix(WORD) {
            Some(word) => word.to_owned(),
            None => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        },
        Value::Uuid(uuid) => format!("UUID(\"{uuid}\")"),
        Value::Big(number) => match **number {
            Big::Integer(_) => format!("{number}N"),
            Big::Decimal(_) => format!("{number}M"),
        },
        Value::List(items) => format!("[{}]", all(items)?),
        Value::Set(items) => format!("{{{}}}", all(items)?),
        Value::Map(map) if map.is_empty() => "[:]".into(),
        Value::Map(map) => {
            let entries = map.iter().map(|(k, v)| Some(format!("({}): {}", literal(k)?, literal(v)?)));
            format!("[{}]", entries.collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Symbol(symbol @ (Symbol::Out | Symbol::In)) => format!("Direction.{}", symbol.as_str()),
        Value::Symbol(symbol) => format!("T.{}", symbol.as_str()),
        // A vertex at the end of an edge may be given by its id.
        Value::VertexData(data) => literal(&data.ids.value(&data.id))?,
        _ => return None,
    })
}

/// Returns whether a value of an answer is the expected one. Numbers must have the same
/// type; maps and sets may have any order.
pub fn same(expected: &Value, actual: &Value) -> bool {
    let ordered = |a: &[Value], b: &[Value]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b));
    match (expected, actual) {
        (Value::VertexData(a), Value::VertexData(b)) => a.id == b.id,
        (Value::EdgeData(a), Value::EdgeData(b)) => a.id == b.id,
        (Value::Property(a), Value::Property(b)) => {
            a.key == b.key && same(&a.value, &b.value) && same(&a.owner, &b.owner)
        }
        (Value::List(a), Value::List(b)) => ordered(a, b),
        (Value::Path(a), Value::Path(b)) => ordered(&a.objects, &b.objects),
        (Value::Set(a), Value::Set(b)) => same_bag(a, b),
        (Value::Map(a), Value::Map(b)) | (Value::Tree(a), Value::Tree(b)) => {
            a.len() == b.len()
                && a.iter().all(|(key, value)| b.iter().any(|(k, v)| same(key, k) && same(value, v)))
        }
        (Value::Map(a), Value::Entry(b)) => {
            a.len() == 1 && a.iter().all(|(key, value)| same(key, &b.0) && same(value, &b.1))
        }
        _ => expected.type_name() == actual.type_name() && expected == actual,
    }
}

/// Returns whether two lists hold the same values in any order.
pub fn same_bag(expected: &[Value], actual: &[Value]) -> bool {
    let mut rest: Vec<&Value> = actual.iter().collect();
    expected.len() == actual.len()
        && expected.iter().all(|value| {
            let found = rest.iter().position(|other| same(value, other));
            found.map(|at| rest.swap_remove(at)).is_some()
        })
}

/// Formats a value as short text with the types of its numbers.
pub fn show(value: &Value) -> String {
    let all = |items: &[Value]| items.iter().map(show).collect::<Vec<_>>().join(", ");
    match value {
        Value::List(items) => format!("l[{}]", all(items)),
        Value::Set(items) => format!("s[{}]", all(items)),
        Value::Path(path) => format!("p[{}]", all(&path.objects)),
        Value::Map(map) => {
            let entries: Vec<_> = map.iter().map(|(k, v)| format!("{}: {}", show(k), show(v))).collect();
            format!("m[{}]", entries.join(", "))
        }
        Value::Tree(map) => {
            let entries: Vec<_> = map.iter().map(|(k, v)| format!("{}: {}", show(k), show(v))).collect();
            format!("tree[{}]", entries.join(", "))
        }
        Value::Entry(entry) => format!("{}={}", show(&entry.0), show(&entry.1)),
        Value::VertexData(data) => format!("v[{}]", data.id),
        Value::EdgeData(data) => {
            format!("e[{}:{}-{}->{}]", data.id, data.source_id, data.label, data.target_id)
        }
        Value::Property(p) => format!("vp[{}-{}->{}]", show(&p.owner), p.key, show(&p.value)),
        other => format!("{other:?}"),
    }
}
