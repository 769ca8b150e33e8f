//! Compares every APL method with the simple graph, at one version (STO-1; STO-2: edges are expanded from both ends;
//! STO-3: scans that indexes answer).

use crate::graph::Graph;
use std::collections::{BTreeMap, BTreeSet};
use tidegraph_apl::{
    Apl, At, Cursor, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, Expand, Expansion, OneOf, Projection,
    PropertyCell, PropertyPredicate, ScanCursor, ScannedValues, Test, VertexRead, VertexRows, VertexScan,
};
use tidegraph_storage::Store;
use tidegraph_types::element::generated_edge_id;
use tidegraph_types::{Cardinality, Direction, Edge, Epoch, Gui, Str, Token, Value, Version};

pub fn at(version: Version) -> At {
    At { version, epoch: Epoch(0) }
}

type Properties = BTreeMap<Token, (Cardinality, Vec<Value>)>;

fn grouped(cells: &[PropertyCell]) -> Properties {
    let mut properties = Properties::new();
    let mut last = None;
    for cell in cells {
        if last != Some(cell.key) {
            assert!(!properties.contains_key(&cell.key), "values of one key stand together: {cells:?}");
        }
        last = Some(cell.key);
        let (cardinality, values) = properties.entry(cell.key).or_default();
        *cardinality = cell.cardinality;
        values.push(cell.value.clone());
    }
    properties
}

fn exact(properties: &Properties) -> String {
    // `Debug` distinguishes the widths of numbers, which equivalence does not.
    format!("{properties:?}")
}

/// Compares everything, in pages of `page` rows.
pub fn everything(store: &Store, version: Version, graph: &Graph, ids: &[Str], edge_ids: &[Str], page: u32) {
    resolve(store, version, graph, ids, edge_ids);
    let mut guis: Vec<Gui> = graph.vertices.keys().copied().collect();
    guis.push(Gui(12_345));
    vertices(store, version, graph, &guis);
    edges(store, version, graph);
    for direction in [Direction::Out, Direction::In, Direction::Both] {
        for loops_once in [false, true] {
            for labels in
                [None, Some(vec![]), Some(vec![Token(100)]), Some(vec![Token(101), Token(102), Token(7)])]
            {
                let request =
                    Expand { direction, labels, max_rows: page, loops_once, neighbours_only: false };
                expand(store, version, graph, &guis, &request);
            }
        }
    }
    scans(store, version, graph, page);
}

fn resolve(store: &Store, version: Version, graph: &Graph, ids: &[Str], edge_ids: &[Str]) {
    let mut found = Vec::new();
    store.resolve_vertices(at(version), ids, &mut found).unwrap();
    let expected: Vec<_> = ids.iter().map(|id| graph.vertex_of(id)).collect();
    assert_eq!(found, expected, "vertices of ids at {version}");

    let mut asked = edge_ids.to_vec();
    let mut expected: Vec<Option<Edge>> = edge_ids.iter().map(|id| graph.edge_of(id)).collect();
    for edge in graph.edges.values() {
        asked.push(generated_edge_id(edge.edge.source, edge.edge.sid));
        expected.push(edge.id.is_none().then_some(edge.edge));
    }
    let mut found = Vec::new();
    store.resolve_edges(at(version), &asked, &mut found).unwrap();
    assert_eq!(found, expected, "edges of ids at {version}");

    let pairs: Vec<_> = ids.iter().map(|id| (id.clone(), 0)).collect();
    let mut placed = Vec::new();
    store.place(at(version), &pairs, &mut placed).unwrap();
    for (id, (gui, salt)) in ids.iter().zip(placed) {
        assert_eq!(store.config().hasher.salted(id, salt), gui);
        match graph.vertex_of(id) {
            Some(there) => assert_eq!(gui, there, "an id that is there keeps its place"),
            None => assert!(!graph.vertices.contains_key(&gui), "a new id gets a free place"),
        }
    }
}

fn vertices(store: &Store, version: Version, graph: &Graph, guis: &[Gui]) {
    let mut rows = VertexRows::default();
    let read = VertexRead { ids: true, labels: true, properties: Projection::All, meta: false };
    store.vertices(at(version), &read, guis, &mut rows).unwrap();
    for (row, gui) in guis.iter().enumerate() {
        let expected = graph.vertices.get(gui);
        assert_eq!(rows.present[row], expected.is_some(), "{gui} at {version}");
        let expected = expected.cloned().unwrap_or_default();
        assert_eq!(rows.ids[row], expected.id);
        assert_eq!(rows.labels_of(row), expected.labels, "labels of {gui} at {version}");
        assert_eq!(
            exact(&grouped(rows.cells_of(row))),
            exact(&expected.properties),
            "properties of {gui} at {version}"
        );
    }
    assert!(rows.meta.is_empty(), "it was not asked for");
    meta_properties(store, version, graph, guis);
    let keys = vec![Token(201), Token(203)];
    let read = VertexRead { properties: Projection::Keys(keys.clone()), ..VertexRead::default() };
    rows.clear();
    store.vertices(at(version), &read, guis, &mut rows).unwrap();
    assert!(rows.ids.is_empty() && rows.label_ends.is_empty());
    for (row, gui) in guis.iter().enumerate() {
        let mut expected = graph.vertices.get(gui).cloned().unwrap_or_default().properties;
        expected.retain(|key, _| keys.contains(key));
        assert_eq!(exact(&grouped(rows.cells_of(row))), exact(&expected));
    }
    rows.clear();
    let read = VertexRead { labels: true, ..VertexRead::default() };
    store.vertices(at(version), &read, guis, &mut rows).unwrap();
    for (row, gui) in guis.iter().enumerate() {
        assert_eq!(rows.present[row], graph.vertices.contains_key(gui));
        assert_eq!(rows.labels_of(row), graph.vertices.get(gui).map_or(&[][..], |v| &v.labels));
    }
}

/// Reads all keys and some keys into an answer that already has rows.
fn meta_properties(store: &Store, version: Version, graph: &Graph, guis: &[Gui]) {
    let some = Projection::Keys(vec![Token(204), Token(200), Token(9999)]);
    for properties in [Projection::All, some] {
        let mut rows = VertexRows::default();
        let read = VertexRead { properties, meta: true, ..VertexRead::default() };
        store.vertices(at(version), &read, &guis[..1], &mut rows).unwrap();
        store.vertices(at(version), &read, guis, &mut rows).unwrap();
        assert!(rows.meta.is_sorted_by_key(|meta| meta.cell));
        let mut found = 0;
        for (row, gui) in guis[..1].iter().chain(guis).enumerate() {
            let first = rows.first_cell_of(row);
            let mut before: BTreeMap<Token, usize> = BTreeMap::new();
            for (number, cell) in rows.cells_of(row).iter().enumerate() {
                let index = before.entry(cell.key).or_default();
                let expected = &graph.vertices[gui].meta[&cell.key][*index];
                let meta = rows.meta_of(first + number..first + number + 1);
                let meta: Vec<(Token, Value)> = meta.iter().map(|m| (m.key, m.value.clone())).collect();
                assert_eq!(
                    format!("{meta:?}"),
                    format!("{expected:?}"),
                    "{} of {:?} of {gui} at {version}",
                    cell.key,
                    cell.value
                );
                *index += 1;
                found += meta.len();
            }
        }
        assert_eq!(found, rows.meta.len(), "none is of anything else");
    }
}

fn edges(store: &Store, version: Version, graph: &Graph) {
    let mut asked: Vec<Edge> = graph.edges.values().map(|edge| edge.edge).collect();
    if let Some(edge) = asked.first().copied() {
        asked.push(Edge { sid: tidegraph_types::Sid(1 << 50), ..edge });
    }
    let mut rows = EdgeRows::default();
    let read = EdgeRead { ids: true, properties: Projection::All };
    store.edges(at(version), &read, &asked, &mut rows).unwrap();
    for (row, edge) in asked.iter().enumerate() {
        let expected = graph.edges.get(&edge.sid);
        assert_eq!(rows.present[row], expected.is_some(), "{edge:?} at {version}");
        let Some(expected) = expected else {
            assert_eq!((rows.ids[row].as_str(), rows.cells_of(row)), ("", &[][..]));
            continue;
        };
        let id = expected.id.clone().unwrap_or_else(|| generated_edge_id(edge.source, edge.sid));
        assert_eq!(rows.ids[row], id);
        let found: BTreeMap<Token, Value> =
            rows.cells_of(row).iter().map(|cell| (cell.key, cell.value.clone())).collect();
        assert_eq!(format!("{found:?}"), format!("{:?}", expected.properties), "{edge:?} at {version}");
    }
}

fn expand(store: &Store, version: Version, graph: &Graph, guis: &[Gui], request: &Expand) {
    let mut cursor = Cursor::default();
    let mut found: Vec<BTreeSet<_>> = vec![BTreeSet::new(); guis.len()];
    let mut last_row = 0;
    loop {
        let mut out = Expansion::default();
        let next = store.expand(at(version), request, guis, cursor, &mut out).unwrap();
        let mut bare = Expansion::default();
        let request = Expand { neighbours_only: true, ..request.clone() };
        assert_eq!(store.expand(at(version), &request, guis, cursor, &mut bare).unwrap(), next);
        assert_eq!((&bare.row, &bare.neighbour), (&out.row, &out.neighbour), "{request:?} at {version}");
        assert!(bare.sid.is_empty() && bare.label.is_empty() && bare.outgoing.is_empty());
        for index in 0..out.len() {
            let row = out.row[index];
            assert!(row >= last_row, "rows come in order of the frontier");
            last_row = row;
            let entry = (out.neighbour[index], out.sid[index], out.label[index], out.outgoing[index]);
            assert!(found[row as usize].insert(entry), "{entry:?} came twice at {version}");
        }
        match next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    let mut degrees = Vec::new();
    store.degrees(at(version), request, guis, &mut degrees).unwrap();
    for (row, gui) in guis.iter().enumerate() {
        let expected = graph.expand(*gui, request.direction, request.labels.as_deref(), request.loops_once);
        assert_eq!(found[row], expected, "{request:?} of {gui} at {version}");
        assert_eq!(degrees[row], expected.len() as u64, "degree, {request:?} of {gui} at {version}");
    }
}

fn scan_vertices(store: &Store, version: Version, scan: &VertexScan) -> BTreeSet<Gui> {
    let (mut found, mut cursor) = (BTreeSet::new(), ScanCursor::default());
    loop {
        let mut out = Vec::new();
        let next = store.scan_vertices(at(version), scan, cursor, &mut out).unwrap();
        assert!(out.len() <= scan.max_rows as usize);
        for gui in out {
            assert!(found.insert(gui), "{gui} came twice");
        }
        match next {
            Some(next) => cursor = next,
            None => return found,
        }
    }
}

/// Scans with the values of all keys that the model knows, and of one key that no vertex has.
fn scan_values(store: &Store, graph: &Graph, version: Version, scan: &VertexScan) -> BTreeSet<Gui> {
    let keys: BTreeSet<Token> = graph.vertices.values().flat_map(|v| v.properties.keys().copied()).collect();
    let keys: Vec<Token> = keys.into_iter().chain([Token(9999)]).collect();
    let (mut found, mut cursor) = (BTreeSet::new(), ScanCursor::default());
    loop {
        let mut out = ScannedValues::default();
        out.begin(keys.len());
        let next = store.scan_values(at(version), scan, &keys, cursor, &mut out).unwrap();
        assert!(out.vertices.len() <= scan.max_rows as usize);
        for (row, gui) in out.vertices.iter().enumerate() {
            assert!(found.insert(*gui), "{gui} came twice");
            let vertex = graph.vertices.get(gui).unwrap();
            for (key, column) in keys.iter().zip(&out.columns) {
                assert_eq!(column.len(), out.vertices.len());
                let values = vertex.properties.get(key).map_or(&[][..], |property| &property.1);
                let expected = match values {
                    [] => Value::Null,
                    [one] => one.clone(),
                    several => Value::Set(several.to_vec().into()),
                };
                assert_eq!(column.get(row), Some(expected), "{key} of {gui} at {version}");
            }
        }
        match next {
            Some(next) => cursor = next,
            None => return found,
        }
    }
}

fn count_vertices(store: &Store, version: Version, scan: &VertexScan) -> u64 {
    let (mut count, mut cursor) = (0, Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = store.count_vertices(at(version), scan, from, &mut count).unwrap();
    }
    count
}

fn scan_edges(store: &Store, version: Version, scan: &EdgeScan) -> BTreeSet<Edge> {
    let (mut found, mut cursor) = (BTreeSet::new(), ScanCursor::default());
    loop {
        let (mut out, mut columns, mut again) = (Vec::new(), EdgeRuns::default(), Vec::new());
        let next = store.scan_edge_rows(at(version), scan, cursor, &mut out).unwrap();
        assert_eq!(store.scan_edges(at(version), scan, cursor, &mut columns).unwrap(), next);
        columns.append_to(&mut again);
        assert_eq!(again, out, "columns and rows of {scan:?} at {version}");
        for edge in out {
            assert!(found.insert(edge), "{edge:?} came twice");
        }
        match next {
            Some(next) => cursor = next,
            None => return found,
        }
    }
}

fn scans(store: &Store, version: Version, graph: &Graph, max_rows: u32) {
    let groups: [Vec<Vec<Token>>; 5] = [
        vec![],
        vec![vec![Token(1)]],
        vec![vec![Token(1), Token(2)]],
        vec![vec![Token(1), Token(2)], vec![Token(3)]],
        vec![vec![Token(99)]],
    ];
    let tests = [
        None,
        Some(Test::Exists),
        Some(Test::Range { low: Some((Value::Long(3), true)), high: None }),
        Some(Test::Equals(Value::Double(2.0))),
        Some(Test::Within(OneOf::new(vec![Value::Long(1), Value::string("t1"), Value::Long(5)]))),
        Some(Test::StartsWith("a text".to_owned())),
    ];
    for labels in &groups {
        for test in &tests {
            let predicates: Vec<_> =
                test.iter().map(|test| PropertyPredicate::any(Token(201), test.clone())).collect();
            let scan = VertexScan { labels: labels.clone(), predicates: predicates.clone(), max_rows };
            let expected: BTreeSet<Gui> = graph
                .vertices
                .iter()
                .filter(|(_, vertex)| labels.iter().all(|g| g.iter().any(|l| vertex.labels.contains(l))))
                .filter(|(_, vertex)| {
                    predicates.iter().all(|p| {
                        vertex.properties.get(&p.key).is_some_and(|v| v.1.iter().any(|v| p.test.passes(v)))
                    })
                })
                .map(|(gui, _)| *gui)
                .collect();
            assert_eq!(scan_vertices(store, version, &scan), expected, "{scan:?} at {version}");
            assert_eq!(scan_values(store, graph, version, &scan), expected, "{scan:?} at {version}");
            assert_eq!(count_vertices(store, version, &scan), expected.len() as u64, "{scan:?} at {version}");
        }
    }
    for labels in [None, Some(vec![Token(100), Token(101)])] {
        for test in &tests {
            let predicates: Vec<_> =
                test.iter().map(|test| PropertyPredicate::any(Token(201), test.clone())).collect();
            let scan = EdgeScan { labels: labels.clone(), predicates: predicates.clone(), max_rows };
            let expected: BTreeSet<Edge> = graph
                .edges
                .values()
                .filter(|edge| labels.as_ref().is_none_or(|labels| labels.contains(&edge.edge.label)))
                .filter(|edge| {
                    predicates.iter().all(|p| edge.properties.get(&p.key).is_some_and(|v| p.test.passes(v)))
                })
                .map(|edge| edge.edge)
                .collect();
            assert_eq!(scan_edges(store, version, &scan), expected, "{scan:?} at {version}");
        }
    }
}

/// Compares counts of the newest state.
pub fn counts(store: &Store, graph: &Graph) {
    let statistics = store.statistics();
    assert_eq!(statistics.vertices, graph.vertices.len() as u64);
    assert_eq!(statistics.edges, graph.edges.len() as u64);
    let mut by_label: BTreeMap<Token, u64> = BTreeMap::new();
    graph.vertices.values().flat_map(|v| &v.labels).for_each(|l| *by_label.entry(*l).or_default() += 1);
    assert_eq!(statistics.vertices_by_label, by_label.into_iter().collect::<Vec<_>>());
    let mut by_label: BTreeMap<Token, u64> = BTreeMap::new();
    graph.edges.values().for_each(|e| *by_label.entry(e.edge.label).or_default() += 1);
    assert_eq!(statistics.edges_by_label, by_label.into_iter().collect::<Vec<_>>());
}
