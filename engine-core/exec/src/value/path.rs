//! Paths of openCypher (alternating vertices and edges) and of Gremlin (any objects, with labels).

use super::error::Error;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use tidegraph_types::{Edge, Path, Str, Value};

fn path<'a>(name: &'static str, value: &'a Value) -> Result<&'a Arc<Path>, Error> {
    match value {
        Value::Path(path) => Ok(path),
        other => Err(Error::of_type(name, "a path", other)),
    }
}

/// `nodes(path)`.
pub(crate) fn vertices(name: &'static str, value: &Value) -> Result<Value, Error> {
    let objects = &path(name, value)?.objects;
    Ok(Value::list(objects.iter().filter(|o| o.as_vertex().is_some()).cloned().collect()))
}

/// `relationships(path)`.
pub(crate) fn edges(name: &'static str, value: &Value) -> Result<Value, Error> {
    let objects = &path(name, value)?.objects;
    Ok(Value::list(objects.iter().filter(|o| o.as_edge().is_some()).cloned().collect()))
}

/// `length(path)`: its edges.
pub(crate) fn length(name: &'static str, value: &Value) -> Result<Value, Error> {
    let objects = &path(name, value)?.objects;
    Ok(Value::Long(objects.iter().filter(|o| o.as_edge().is_some()).count() as i64))
}

fn label(name: &'static str, value: &Value) -> Result<Str, Error> {
    match value {
        Value::String(text) => Ok(text.clone()),
        other => Err(Error::of_type(name, "labels that are strings", other)),
    }
}

/// Appends an object to a path. Arguments: path or unbound, object, labels.
pub(crate) fn append(name: &'static str, mut args: Vec<Value>) -> Result<Value, Error> {
    let labels = args.split_off(2).iter().map(|v| label(name, v)).collect::<Result<Vec<_>, _>>()?;
    let object = args.pop().unwrap_or_default();
    let mut longer = match args.pop().unwrap_or_default() {
        Value::Path(mut path) => {
            // Reserves room for the new object: a copy without it would be copied again.
            if Arc::get_mut(&mut path).is_none() {
                let mut objects = Vec::with_capacity(path.objects.len() + 1);
                objects.extend(path.objects.iter().cloned());
                path = Arc::new(Path { objects, labels: path.labels.clone() });
            }
            path
        }
        other if other.is_null() => Arc::default(),
        other => return Err(Error::of_type(name, "a path", &other)),
    };
    let inner = Arc::make_mut(&mut longer);
    if !labels.is_empty() || !inner.labels.is_empty() {
        inner.labels.resize(inner.objects.len(), vec![]);
        inner.labels.push(labels);
    }
    inner.objects.push(object);
    Ok(Value::Path(longer))
}

/// Adds labels to the last object of a path. Arguments: path, labels.
pub(crate) fn add_labels(name: &'static str, args: Vec<Value>) -> Result<Value, Error> {
    let mut labelled = Arc::clone(path(name, &args[0])?);
    let labels = args[1..].iter().map(|v| label(name, v)).collect::<Result<Vec<_>, _>>()?;
    drop(args);
    let inner = Arc::make_mut(&mut labelled);
    inner.labels.resize(inner.objects.len(), vec![]);
    if let Some(last) = inner.labels.last_mut() {
        for label in labels {
            if !last.contains(&label) {
                last.push(label);
            }
        }
    }
    Ok(Value::Path(labelled))
}

/// Whether a path holds no object twice; with `may_close` its last object may be its first.
pub(crate) fn is_simple(name: &'static str, value: &Value, may_close: bool) -> Result<Value, Error> {
    let mut objects = &path(name, value)?.objects[..];
    if let [first, others @ .., last] = objects
        && may_close
        && first == last
        && !others.is_empty()
    {
        objects = &objects[1..];
    }
    // Most paths are short: comparing is cheaper than hashing.
    let simple = if objects.len() <= 12 {
        objects.iter().enumerate().all(|(at, object)| !objects[..at].contains(object))
    } else {
        let mut seen = FxHashSet::default();
        objects.iter().all(|object| seen.insert(object))
    };
    Ok(Value::Bool(simple))
}

/// Returns all objects of a path that have a label.
pub(crate) fn select_all(name: &'static str, value: &Value, wanted: &Value) -> Result<Value, Error> {
    let wanted = label(name, wanted)?;
    if value.is_null() {
        return Ok(Value::list(vec![]));
    }
    let path = path(name, value)?;
    let labelled = path.objects.iter().zip(&path.labels).filter(|(_, labels)| labels.contains(&wanted));
    Ok(Value::list(labelled.map(|(object, _)| object.clone()).collect()))
}

/// Returns the part of a path between two labels, each of which may be null.
pub(crate) fn part(name: &'static str, value: &Value, from: &Value, to: &Value) -> Result<Value, Error> {
    let whole = path(name, value)?;
    let place = |wanted: &Value| {
        if wanted.is_null() {
            return Ok(None);
        }
        let text = label(name, wanted)?;
        match whole.labels.iter().rposition(|labels| labels.contains(&text)) {
            Some(index) => Ok(Some(index)),
            None => Err(Error::argument(name, "has a label that the path does not have", wanted)),
        }
    };
    let first = place(from)?.unwrap_or(0);
    let last = place(to)?.unwrap_or(whole.objects.len().saturating_sub(1));
    if first > last {
        return Err(Error::argument(name, "starts after the end of the path at the label", from));
    }
    let until = whole.objects.len().min(last + 1);
    let labels = whole.labels.get(first..until).map(<[_]>::to_vec).unwrap_or_default();
    Ok(Value::Path(Arc::new(Path { objects: whole.objects[first..until].to_vec(), labels })))
}

/// Makes a path from alternating vertices and edges or lists of edges; derives the vertices within a list.
pub(crate) fn make(name: &'static str, args: &[Value]) -> Result<Value, Error> {
    let mut objects: Vec<Value> = Vec::with_capacity(args.len());
    for arg in args {
        if arg.as_vertex().is_some() {
            // After a list of edges the path has the vertex already.
            if objects.last().is_none_or(|last| last.as_vertex().is_none()) {
                objects.push(arg.clone());
            }
        } else if arg.as_edge().is_some() {
            objects.push(arg.clone());
        } else if let Some(edges) = arg.as_slice() {
            walk(name, edges, &mut objects)?;
        } else {
            return Err(Error::of_type(name, "vertices, edges and lists of edges", arg));
        }
    }
    Ok(Value::Path(Arc::new(Path { objects, labels: vec![] })))
}

/// Appends edges and the vertices between them, from the path's last vertex on.
fn walk(name: &'static str, edges: &[Value], objects: &mut Vec<Value>) -> Result<(), Error> {
    let edges: Vec<Edge> = edges
        .iter()
        .map(|e| e.as_edge().ok_or_else(|| Error::of_type(name, "lists of edges only", e)))
        .collect::<Result<_, _>>()?;
    let Some(mut at) = objects.last().and_then(Value::as_vertex) else {
        return Err(Error::argument(name, "takes a vertex before each list", &Value::list(vec![])));
    };
    for edge in edges {
        let next = if edge.source == at {
            edge.target
        } else if edge.target == at {
            edge.source
        } else {
            return Err(Error::of_type(name, "edges that follow each other", &Value::Edge(edge)));
        };
        objects.push(Value::Edge(edge));
        objects.push(Value::Vertex(next));
        at = next;
    }
    Ok(())
}
