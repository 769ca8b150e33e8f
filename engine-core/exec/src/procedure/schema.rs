//! What a graph consists of: its labels, its keys, and `neptune.graph.pg_schema()`, which also says the properties of
//! elements with each label, and the labels that edges connect.
//!
//! Labels and keys come from the planner's statistics. Types of values and connections come from elements of each
//! label, at most [`VERTICES`] and [`EDGES`] of them, so that the time does not grow with the graph.

use crate::view::ScanState;
use crate::{Context, Error, Result};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegraph_apl::{
    EdgeRead, EdgeRows, Projection, PropertyCell, PropertyPredicate, Statistics, Test, VertexRead,
    VertexRows, VertexScan,
};
use tidegraph_types::{
    Cardinality, Edge, EdgeData, ElementIds, Gui, GuiHasher, IndexDefinition, Map, PropertyData, Sid, Str,
    Temporal, Token, Value, VertexData,
};

/// Number of vertices of a label whose values are read.
const VERTICES: usize = 1_000;
/// Number of edges of a label whose ends are read; values are read of the first [`VERTICES`] of them.
const EDGES: usize = 100_000;
/// Number of elements to read at a time.
const ROWS: u32 = 1_000;

/// Names of the types of the values of each key.
type Types = BTreeMap<Str, BTreeSet<&'static str>>;

fn statistics(ctx: &Context<'_>) -> Result<Arc<Statistics>> {
    match ctx.statistics {
        Some(source) => Ok(source.statistics(ctx.view.at())?),
        None => Err(Error::Plan("this request has no statistics of the graph".to_owned())),
    }
}

/// Returns the labels that some vertex has.
pub(super) fn labels(ctx: &Context<'_>) -> Result<Vec<Str>> {
    Ok(by_name(&statistics(ctx)?.vertices_by_label, ctx).into_iter().map(|(name, _)| name).collect())
}

/// Returns the labels that some edge has.
pub(super) fn edge_labels(ctx: &Context<'_>) -> Result<Vec<Str>> {
    Ok(by_name(&statistics(ctx)?.edges_by_label, ctx).into_iter().map(|(name, _)| name).collect())
}

/// Returns the keys that the statistics know, in the order of their names.
pub(super) fn property_keys(ctx: &Context<'_>) -> Result<Vec<Str>> {
    let statistics = statistics(ctx)?;
    let sets = statistics.sets.iter().chain(&statistics.edge_sets).filter(|set| set.elements > 0);
    let keys: BTreeSet<Str> =
        sets.flat_map(|set| &set.keys).map(|key| ctx.view.catalog().name(key.key)).collect();
    Ok(keys.into_iter().collect())
}

/// Returns the schema as one map.
pub(super) fn pg_schema(ctx: &Context<'_>) -> Result<Value> {
    let statistics = statistics(ctx)?;
    let vertex_labels = by_name(&statistics.vertices_by_label, ctx);
    let edge_labels = by_name(&statistics.edges_by_label, ctx);

    let mut vertex_details = Map::new();
    for (name, label) in &vertex_labels {
        vertex_details.insert(name.clone().into(), details(vertex_types(*label, &statistics, ctx)?));
    }
    let mut edge_details = Map::new();
    let mut triples = vec![];
    for (name, label) in &edge_labels {
        let found = EdgesOfLabel::read(*label, ctx)?;
        edge_details.insert(name.clone().into(), details(found.types));
        triples.extend(found.ends.into_iter().map(|(from, to)| {
            let entries = [("~type", name.clone()), ("~from", from), ("~to", to)];
            Value::map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
        }));
    }
    let names =
        |labels: Vec<(Str, Token)>| Value::list(labels.into_iter().map(|(name, _)| name.into()).collect());
    let entries = [
        ("nodeLabels", names(vertex_labels)),
        ("edgeLabels", names(edge_labels)),
        ("nodeLabelDetails", Value::map(vertex_details)),
        ("edgeLabelDetails", Value::map(edge_details)),
        ("labelTriples", Value::list(triples)),
    ];
    Ok(Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect()))
}

/// Returns a row for each index.
pub(super) fn indexes(ctx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let Some(source) = ctx.statistics else {
        return Err(Error::Plan("this request has no indexes of the graph".to_owned()));
    };
    let mut indexes = source.indexes()?;
    indexes.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    let name = |token| Value::list(vec![ctx.view.catalog().name(token).into()]);
    let row = |(index, complete): (IndexDefinition, bool)| {
        vec![
            index.name.into(),
            if complete && !index.unchecked { "ONLINE" } else { "BUILDING" }.into(),
            if index.unique { "UNIQUE" } else { "NONUNIQUE" }.into(),
            "RANGE".into(),
            "NODE".into(),
            name(index.label),
            name(index.key),
        ]
    };
    Ok(indexes.into_iter().map(row).collect())
}

/// Returns a row for each label and each property of vertices with it.
pub(super) fn node_types(ctx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let statistics = statistics(ctx)?;
    let mut rows = vec![];
    for (name, label) in by_name(&statistics.vertices_by_label, ctx) {
        let first = || vec![Value::string(format!(":`{name}`")), Value::list(vec![name.clone().into()])];
        add_type_rows(vertex_types(label, &statistics, ctx)?, first, &mut rows);
    }
    Ok(rows)
}

/// Returns a row for each label and each property of edges with it.
pub(super) fn edge_types(ctx: &Context<'_>) -> Result<Vec<Vec<Value>>> {
    let statistics = statistics(ctx)?;
    let mut rows = vec![];
    for (name, label) in by_name(&statistics.edges_by_label, ctx) {
        let first = || vec![Value::string(format!(":`{name}`"))];
        add_type_rows(EdgesOfLabel::read(label, ctx)?.types, first, &mut rows);
    }
    Ok(rows)
}

/// Adds a row for each key; or one without a key if there are none. Whether all elements have a key is not known, so that
/// none is mandatory.
fn add_type_rows(types: Types, first: impl Fn() -> Vec<Value>, rows: &mut Vec<Vec<Value>>) {
    if types.is_empty() {
        let mut row = first();
        row.extend([Value::Null, Value::Null, false.into()]);
        rows.push(row);
    }
    for (key, names) in types {
        let names = Value::list(names.into_iter().map(Value::from).collect());
        let mut row = first();
        row.extend([key.into(), names, false.into()]);
        rows.push(row);
    }
}

/// Returns a list of vertices, one for each label, and a list of the edges between them, which exist in the answer only.
pub(super) fn visualization(ctx: &Context<'_>) -> Result<Vec<Value>> {
    let statistics = statistics(ctx)?;
    // No id of a user begins with a blank in practice; a clash would only concern how a client draws the answer.
    let gui = |label: &Str| GuiHasher::default().gui(&format!(" label {label}"));
    let text = |key: &'static str, value: Value| PropertyData {
        key: key.into(),
        cardinality: Cardinality::Single,
        values: SmallVec::from_iter([value]),
        meta: vec![],
    };
    let vertex = |(label, _): &(Str, Token)| {
        Value::VertexData(Arc::new(VertexData {
            gui: gui(label),
            id: label.clone(),
            ids: ElementIds::Strings,
            labels: vec![label.clone()],
            properties: vec![text("name", label.clone().into())],
        }))
    };
    let vertices = by_name(&statistics.vertices_by_label, ctx).iter().map(vertex).collect();
    let mut edges = vec![];
    for (name, label) in by_name(&statistics.edges_by_label, ctx) {
        for (from, to) in EdgesOfLabel::read(label, ctx)?.ends {
            let edge = Edge { sid: Sid(edges.len() as u64), source: gui(&from), target: gui(&to), label };
            edges.push(Value::EdgeData(Arc::new(EdgeData {
                edge,
                id: Str::from(format!("{from}-{name}-{to}")),
                ids: ElementIds::Strings,
                label: name.clone(),
                source_id: from.clone(),
                target_id: to.clone(),
                source_labels: vec![from],
                target_labels: vec![to],
                properties: vec![("name".into(), name.clone().into())],
            })));
        }
    }
    Ok(vec![Value::list(vertices), Value::list(edges)])
}

/// Returns the labels that some element has, in the order of their names.
fn by_name(counts: &[(Token, u64)], ctx: &Context<'_>) -> Vec<(Str, Token)> {
    let catalog = ctx.view.catalog();
    let there = counts.iter().filter(|(_, count)| *count > 0);
    let mut named: Vec<(Str, Token)> = there.map(|(token, _)| (catalog.name(*token), *token)).collect();
    named.sort_unstable();
    named
}

/// Writes the types of keys as `{properties: {key: {datatypes: [type]}}}`.
fn details(types: Types) -> Value {
    let one = |entries: [(&str, Value); 1]| {
        Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect())
    };
    let of_key = |names: BTreeSet<&str>| {
        one([("datatypes", Value::list(names.into_iter().map(Value::from).collect()))])
    };
    let properties = types.into_iter().map(|(key, names)| (key.into(), of_key(names))).collect();
    one([("properties", Value::map(properties))])
}

fn add_types(cells: &[PropertyCell], ctx: &Context<'_>, types: &mut Types) {
    for cell in cells {
        types.entry(ctx.view.catalog().name(cell.key)).or_default().insert(type_name(&cell.value));
    }
}

/// Returns the name that Neptune has for the type of a stored value.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "Boolean",
        Value::Byte(_) => "Byte",
        Value::Short(_) => "Short",
        Value::Int(_) => "Int",
        Value::Long(_) => "Long",
        Value::Float(_) => "Float",
        Value::Double(_) => "Double",
        Value::DateTime(_) | Value::Temporal(Temporal::DateTime(_)) => "DateTime",
        Value::Temporal(Temporal::Date(_)) => "Date",
        Value::Temporal(Temporal::LocalTime(_)) => "LocalTime",
        Value::Temporal(Temporal::Time(_)) => "Time",
        Value::Temporal(Temporal::LocalDateTime(_)) => "LocalDateTime",
        Value::Temporal(Temporal::Duration(_)) => "Duration",
        Value::Point(_) => "Point",
        Value::Uuid(_) => "UUID",
        Value::List(_) => "List",
        Value::String(_) => "String",
        other => other.type_name(),
    }
}

fn vertex_types(label: Token, statistics: &Statistics, ctx: &Context<'_>) -> Result<Types> {
    let mut types = Types::new();
    let scan = VertexScan { labels: vec![vec![label]], predicates: vec![], max_rows: ROWS };
    add_vertex_types(&scan, VERTICES, Projection::All, ctx, &mut types)?;
    // Keys so rare that none of those vertices has them.
    let of_label = statistics.sets.iter().filter(|set| set.labels.contains(&label));
    let keys: BTreeSet<Token> = of_label.flat_map(|set| set.keys.iter().map(|key| key.key)).collect();
    for key in keys {
        if !types.contains_key(&ctx.view.catalog().name(key)) {
            let predicates = vec![PropertyPredicate { key, test: Test::Exists, sole: false }];
            let scan = VertexScan { predicates, ..scan.clone() };
            add_vertex_types(&scan, 1, Projection::Keys(vec![key]), ctx, &mut types)?;
        }
    }
    Ok(types)
}

/// Adds the types of properties of about as many vertices as are wanted.
fn add_vertex_types(
    scan: &VertexScan,
    wanted: usize,
    properties: Projection,
    ctx: &Context<'_>,
    types: &mut Types,
) -> Result<()> {
    let read = VertexRead { properties, ..VertexRead::default() };
    let (mut state, mut read_so_far, mut more) = (ScanState::default(), 0, true);
    while more && read_so_far < wanted {
        ctx.check()?;
        let (mut vertices, mut rows) = (vec![], VertexRows::default());
        more = ctx.view.scan_vertices(scan, &mut state, &mut vertices)?;
        ctx.view.vertices(&read, &vertices, &mut rows)?;
        add_types(&rows.cells, ctx, types);
        read_so_far += vertices.len();
    }
    Ok(())
}

/// What the edges of one label have and connect.
#[derive(Default)]
struct EdgesOfLabel {
    types: Types,
    /// Labels of sources and targets.
    ends: BTreeSet<(Str, Str)>,
}

impl EdgesOfLabel {
    fn read(label: Token, ctx: &Context<'_>) -> Result<Self> {
        let mut found = Self::default();
        let (mut state, mut read_so_far, mut more) = (ScanState::default(), 0, true);
        while more && read_so_far < EDGES {
            ctx.check()?;
            let mut edges = vec![];
            more = ctx.view.scan_edges(Some(&[label]), ROWS, &mut state, &mut edges)?;
            if read_so_far < VERTICES {
                let read = EdgeRead { ids: false, properties: Projection::All };
                let mut rows = EdgeRows::default();
                ctx.view.edges(&read, &edges, &mut rows)?;
                add_types(&rows.cells, ctx, &mut found.types);
            }
            found.add_ends(&edges, ctx)?;
            read_so_far += edges.len();
        }
        Ok(found)
    }

    fn add_ends(&mut self, edges: &[Edge], ctx: &Context<'_>) -> Result<()> {
        let labels = |of: fn(&Edge) -> Gui| {
            let read = VertexRead { labels: true, ..VertexRead::default() };
            let frontier: Vec<Gui> = edges.iter().map(of).collect();
            let mut rows = VertexRows::default();
            ctx.view.vertices(&read, &frontier, &mut rows).map(|()| rows)
        };
        let (sources, targets) = (labels(|edge| edge.source)?, labels(|edge| edge.target)?);
        let mut pairs: BTreeSet<(Token, Token)> = BTreeSet::new();
        for row in 0..edges.len() {
            for from in sources.labels_of(row) {
                pairs.extend(targets.labels_of(row).iter().map(|to| (*from, *to)));
            }
        }
        let catalog = ctx.view.catalog();
        self.ends.extend(pairs.into_iter().map(|(from, to)| (catalog.name(from), catalog.name(to))));
        Ok(())
    }
}
