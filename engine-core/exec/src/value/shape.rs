//! What Gremlin makes of many traversers: the tree of their paths, the graph of their edges.

use super::error::Error;
use crate::{Context, Result};
use indexmap::{IndexMap, IndexSet};
use std::sync::Arc;
use tidegraph_types::{Edge, Gui, Map, Subgraph, Value};

/// Longest path in a tree. Values are compared, written and dropped by recursion.
const MAX_LEVELS: usize = 128;
/// Estimated bytes of an object in a tree, or of an element of a graph, while it is made.
const OBJECT_BYTES: usize = 160;

/// An object's place in a tree: what follows it.
#[derive(Default)]
struct Node(IndexMap<Value, Node>);

impl Node {
    fn into_value(self) -> Value {
        let entries = self.0.into_iter().map(|(object, node)| (object, node.into_value()));
        Value::Tree(Arc::new(Map::from_iter(entries)))
    }
}

fn items<'v>(name: &'static str, value: &'v Value) -> Result<&'v [Value]> {
    value.as_slice().ok_or_else(|| Error::of_type(name, "a list", value).into())
}

/// Makes the tree of a list of paths.
pub(crate) fn tree(ctx: &Context<'_>, name: &'static str, paths: &Value) -> Result<Value> {
    let mut root = Node::default();
    let mut objects = 0;
    for path in items(name, paths)? {
        let Value::Path(path) = path else { return Err(Error::of_type(name, "paths", path).into()) };
        if path.objects.len() > MAX_LEVELS {
            let length = Value::Long(i64::try_from(path.objects.len()).unwrap_or(i64::MAX));
            return Err(Error::argument(name, "has a path of more than 128 objects", &length).into());
        }
        objects += path.objects.len();
        ctx.spend(path.objects.len())?;
        ctx.memory.ensure(objects * OBJECT_BYTES)?;
        let mut at = &mut root;
        for object in &path.objects {
            at = at.0.entry(object.clone()).or_default();
        }
    }
    Ok(root.into_value())
}

/// Makes the graph of a list of edges.
pub(crate) fn graph(ctx: &Context<'_>, name: &'static str, edges: &Value) -> Result<Value> {
    let edges = items(name, edges)?;
    let mut ends: IndexSet<Gui> = IndexSet::new();
    let mut distinct: IndexMap<u64, Edge> = IndexMap::new();
    for item in edges {
        ctx.spend(1)?;
        let Some(edge) = item.as_edge() else { return Err(Error::of_type(name, "edges", item).into()) };
        ends.extend([edge.source, edge.target]);
        distinct.insert(edge.sid.0, edge);
        ctx.memory.ensure((ends.len() + distinct.len()) * OBJECT_BYTES)?;
    }
    Ok(Value::Graph(Arc::new(Subgraph {
        vertices: ends.into_iter().map(Value::Vertex).collect(),
        edges: distinct.into_values().map(Value::Edge).collect(),
    })))
}
