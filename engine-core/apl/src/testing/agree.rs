//! Sends the same requests to two implementations and compares their answers.

use super::TestGraph;
use crate::{
    Apl, At, CellMeta, Cursor, EdgePlace, EdgeRead, EdgeRows, EdgeRuns, EdgeScan, EndCounts, Expand,
    Expansion, ExpansionRow, GroupItem, Grouping, Groups, LookUp, LookedUp, OneOf, Projection, PropertyCell,
    PropertyPredicate, Reservoir, Sample, ScanCursor, ScannedValues, Test, TopEdges, TopVertices, VertexRead,
    VertexRows, VertexScan, Weight,
};
use std::collections::BTreeSet;
use std::fmt::Debug;
use tidegraph_types::{Direction, Edge, Gui, Str, Token, Value};

fn same<T: PartialEq + Debug>(what: impl FnOnce() -> String, expected: &T, found: &T) {
    assert!(expected == found, "{}: expected {expected:?}, found {found:?}", what());
}

fn ok<T>(what: &str, answer: Result<T, crate::Error>) -> T {
    match answer {
        Ok(answer) => answer,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Sends every request at a version to both implementations and compares the answers. Shows APL-1 if storage has
/// applied later versions too: an answer that mixed in a later version would differ.
///
/// # Panics
///
/// If answers differ; the message contains the request.
pub fn agree(expected: &dyn Apl, found: &dyn Apl, at: At, graph: &TestGraph) {
    let both = Both { expected, found, at, graph };
    both.ids();
    both.elements();
    both.expansions();
    both.some_edges();
    both.vertex_scans();
    both.digests();
    both.edge_scans();
    both.counts();
}

struct Both<'a> {
    expected: &'a dyn Apl,
    found: &'a dyn Apl,
    at: At,
    graph: &'a TestGraph,
}

/// The data of a row, in an order that does not depend on storage.
type Row = (bool, Option<Str>, Vec<Token>, Vec<(PropertyCell, Vec<CellMeta>)>);

impl Both<'_> {
    fn each<T: PartialEq + Debug>(&self, what: &str, ask: impl Fn(&dyn Apl) -> Result<T, crate::Error>) {
        same(|| what.into(), &ok(what, ask(self.expected)), &ok(what, ask(self.found)));
    }

    fn ids(&self) {
        let (at, graph) = (self.at, self.graph);
        self.each("resolve_vertices", |apl| {
            let mut out = Vec::new();
            apl.resolve_vertices(at, &graph.ids, &mut out).map(|()| out)
        });
        self.each("resolve_edges", |apl| {
            let mut out = Vec::new();
            apl.resolve_edges(at, &graph.edge_ids, &mut out).map(|()| out)
        });
        let mut ids = graph.ids.clone();
        ids.extend(["nobody has this id".into(), graph.ids[0].clone()]);
        for (properties, places) in [
            (None, true),
            (Some(Projection::All), true),
            (Some(Projection::Keys(vec![TestGraph::KEYS[1]])), false),
        ] {
            let read =
                properties.map(|properties| VertexRead { ids: true, labels: true, properties, meta: true });
            let wish = LookUp { read, places };
            self.each(&format!("look_up {wish:?}"), |apl| {
                let mut out = LookedUp::default();
                apl.look_up(at, &ids, &wish, &mut out)?;
                let rows: Vec<Row> = (0..out.rows.present.len()).map(|row| vertex(&out.rows, row)).collect();
                Ok((out.found, out.places, rows))
            });
        }
        let places: Vec<(Str, u64)> = graph.ids.iter().map(|id| (id.clone(), 0)).collect();
        self.each("place", |apl| {
            let mut out = Vec::new();
            apl.place(at, &places, &mut out).map(|()| out)
        });
        let places: Vec<EdgePlace> = graph
            .edges
            .iter()
            .zip(&graph.edge_ids)
            .flat_map(|(edge, id)| {
                let of = |id| EdgePlace { source: edge.source, sid: edge.sid, id };
                [of(None), of(Some(id.clone()))]
            })
            .collect();
        self.each("find_edges", |apl| {
            let mut out = Vec::new();
            apl.find_edges(at, &places, &mut out).map(|()| out)
        });
    }

    fn elements(&self) {
        let (at, graph) = (self.at, self.graph);
        let projections =
            [Projection::None, Projection::All, Projection::Keys(vec![TestGraph::KEYS[1], Token(99)])];
        for properties in projections {
            for (ids, labels, meta) in [(true, false, true), (false, true, false), (true, true, true)] {
                let read = VertexRead { ids, labels, properties: properties.clone(), meta };
                self.each(&format!("vertices {read:?}"), |apl| {
                    let mut out = VertexRows::default();
                    // The answer already contains a row.
                    apl.vertices(at, &read, &graph.guis[..1], &mut out)?;
                    apl.vertices(at, &read, &graph.guis, &mut out)?;
                    Ok((0..out.present.len()).map(|row| vertex(&out, row)).collect::<Vec<_>>())
                });
                let read = EdgeRead { ids, properties: properties.clone() };
                self.each(&format!("edges {read:?}"), |apl| {
                    let mut out = EdgeRows::default();
                    apl.edges(at, &read, &graph.edges[..1], &mut out)?;
                    apl.edges(at, &read, &graph.edges, &mut out)?;
                    let row = |row: usize| {
                        let mut cells = out.cells_of(row).to_vec();
                        cells.sort_by_key(|cell| cell.key);
                        (out.present[row], out.ids.get(row).cloned(), cells)
                    };
                    Ok((0..out.present.len()).map(row).collect::<Vec<_>>())
                });
            }
        }
    }

    fn requests() -> Vec<Expand> {
        let mut requests = Vec::new();
        for direction in [Direction::Out, Direction::In, Direction::Both] {
            for labels in [None, Some(vec![TestGraph::EDGE_LABELS[1]]), Some(vec![])] {
                for (loops_once, neighbours_only) in [(false, false), (true, false), (true, true)] {
                    let labels = labels.clone();
                    requests.push(Expand { direction, labels, max_rows: 1, loops_once, neighbours_only });
                }
            }
        }
        requests
    }

    fn expansions(&self) {
        let (at, graph) = (self.at, self.graph);
        for request in Self::requests() {
            self.each(&format!("degrees {request:?}"), |apl| {
                let mut out = Vec::new();
                apl.degrees(at, &request, &graph.guis, &mut out).map(|()| out)
            });
            let whole = Expand { max_rows: u32::MAX, ..request.clone() };
            let all = sorted(rows_of(self.expected, at, &whole, &graph.guis));
            for max_rows in [3, 50, 4096, u32::MAX] {
                let request = Expand { max_rows, ..request.clone() };
                let found = rows_of(self.found, at, &request, &graph.guis);
                assert!(found.is_sorted_by_key(|row| row.row), "{request:?}: rows out of order");
                same(|| format!("{request:?}"), &all, &sorted(found));
            }
        }
    }

    fn some_edges(&self) {
        let (at, graph) = (self.at, self.graph);
        for request in Self::requests().into_iter().filter(|request| !request.neighbours_only) {
            let whole = Expand { max_rows: u32::MAX, ..request.clone() };
            let all = rows_of(self.expected, at, &whole, &graph.guis);
            for count in [0, 2, 100_000] {
                let mut out = Expansion::default();
                let what = format!("a sample of {count} of {request:?}");
                ok(
                    &what,
                    self.found.sample_edges(at, &request, Sample { count, seed: 3 }, &graph.guis, &mut out),
                );
                let taken: Vec<ExpansionRow> = (0..out.len()).map(|index| out.at(index)).collect();
                assert!(taken.iter().all(|row| all.contains(row)), "{what}: an edge that is not there");
                for row in 0..graph.guis.len() as u32 {
                    let of = |rows: &[ExpansionRow]| rows.iter().filter(|r| r.row == row).count();
                    same(|| format!("{what}, row {row}"), &of(&all).min(count as usize), &of(&taken));
                }
            }
            for (descending, count, each) in [(false, 2, true), (true, 3, false)] {
                let top = TopEdges { key: TestGraph::KEYS[0], descending, count, each };
                let expected = self.best(self.expected, &whole, &top);
                for max_rows in [7, 1000] {
                    let request = Expand { max_rows, ..request.clone() };
                    same(
                        || format!("{top:?} of {request:?}"),
                        &expected,
                        &self.best(self.found, &request, &top),
                    );
                }
            }
        }
    }

    /// Returns the values of the best edges. Which of several equal edges are answered does not matter.
    fn best(&self, apl: &dyn Apl, request: &Expand, top: &TopEdges) -> Vec<(u32, Value)> {
        let (at, frontier) = (self.at, &self.graph.guis);
        let (mut cursor, mut all) = (Some(Cursor::default()), Expansion::default());
        while let Some(from) = cursor {
            cursor = ok("top_edges", apl.top_edges(at, request, top, frontier, from, &mut all));
        }
        let mut rows: Vec<ExpansionRow> = (0..all.len()).map(|index| all.at(index)).collect();
        rows.sort_by_key(|row| row.row);
        let mut sorted = Expansion::default();
        rows.into_iter().for_each(|row| sorted.append(row));
        let edges: Vec<Edge> = (0..sorted.len()).map(|index| sorted.edge(index, frontier)).collect();
        let read = EdgeRead { ids: false, properties: Projection::Keys(vec![top.key]) };
        let mut values = EdgeRows::default();
        ok("edges", self.expected.edges(at, &read, &edges, &mut values));
        let mut best = top.best();
        for index in 0..sorted.len() {
            let value = values.cells_of(index).first().map_or(Value::Null, |cell| cell.value.clone());
            let row = sorted.row[index];
            best.offer(row, value.clone(), || (if top.each { row } else { 0 }, value));
        }
        best.finish()
    }

    fn scans() -> Vec<VertexScan> {
        let [a, b, c] = TestGraph::LABELS;
        let labels = [vec![], vec![vec![a]], vec![vec![a, b], vec![c]], vec![vec![Token(77)]]];
        let range = Test::Range { low: Some((Value::Long(5), true)), high: Some((Value::Long(30), false)) };
        let any = |test| vec![PropertyPredicate::any(TestGraph::KEYS[0], test)];
        let predicates = [
            vec![],
            any(Test::Equals(Value::Long(7))),
            any(Test::Within(OneOf::new(vec![Value::Long(7), Value::string("text 1")]))),
            any(Test::StartsWith("text".into())),
            any(range),
            any(Test::Exists),
        ];
        let mut scans = Vec::new();
        for labels in labels {
            for predicates in &predicates {
                scans.push(VertexScan {
                    labels: labels.clone(),
                    predicates: predicates.clone(),
                    max_rows: 1,
                });
            }
        }
        scans
    }

    fn vertex_scans(&self) {
        let at = self.at;
        for scan in Self::scans() {
            let whole = VertexScan { max_rows: 1_000_000, ..scan.clone() };
            let all = scanned(self.expected, at, &whole);
            for max_rows in [2, 64, 1_000_000] {
                let scan = VertexScan { max_rows, ..scan.clone() };
                same(|| format!("{scan:?}"), &all, &scanned(self.found, at, &scan));
            }
            self.each(&format!("count of {scan:?}"), |apl| {
                let (mut count, mut cursor) = (0, Some(ScanCursor::default()));
                while let Some(from) = cursor {
                    cursor = apl.count_vertices(at, &scan, from, &mut count)?;
                }
                Ok(count)
            });
            let mut sample = Reservoir::new(Sample { count: 5, seed: 11 });
            let mut cursor = Some(ScanCursor::default());
            while let Some(from) = cursor {
                cursor = ok("sample_vertices", self.found.sample_vertices(at, &scan, from, &mut sample));
            }
            let taken: BTreeSet<Gui> = sample.items.iter().copied().collect();
            same(|| format!("sample of {scan:?}"), &all.len().min(5), &taken.len());
            assert!(taken.iter().all(|gui| all.binary_search(gui).is_ok()), "sample of {scan:?}: {taken:?}");
            let scan = VertexScan { max_rows: 9, ..scan };
            self.each(&format!("values of {scan:?}"), |apl| {
                let keys = [TestGraph::KEYS[1], TestGraph::KEYS[0]];
                let (mut out, mut cursor) = (ScannedValues::default(), Some(ScanCursor::default()));
                out.begin(keys.len());
                while let Some(from) = cursor {
                    cursor = apl.scan_values(at, &scan, &keys, from, &mut out)?;
                }
                let values =
                    |row: usize| out.columns.iter().map(|column| column.get(row)).collect::<Vec<_>>();
                let mut rows: Vec<_> =
                    out.vertices.iter().enumerate().map(|(row, gui)| (*gui, values(row))).collect();
                rows.sort_by_key(|(gui, _)| *gui);
                Ok(rows)
            });
        }
    }

    fn groupings() -> Vec<Grouping> {
        let [first, second, _] = TestGraph::KEYS;
        let numbers = vec![GroupItem::Rows, GroupItem::Values(first)];
        let sums =
            vec![GroupItem::Sum(first), GroupItem::Min(first), GroupItem::Max(second), GroupItem::Rows];
        let of = |keys, items: &Vec<GroupItem>, weight| Grouping { keys, items: items.clone(), weight };
        let mut all = vec![
            of(vec![], &sums, Weight::default()),
            of(vec![second], &sums, Weight::default()),
            of(vec![second, first], &numbers, Weight::default()),
        ];
        let directions = [Direction::Out, Direction::In, Direction::Both];
        for first in directions {
            for second in directions {
                let step = |direction| Expand { loops_once: true, ..Expand::all(direction) };
                let labelled = Expand { labels: Some(TestGraph::EDGE_LABELS[..2].into()), ..step(second) };
                for distinct in [false, true] {
                    let steps = vec![step(first), labelled.clone()];
                    all.push(of(vec![TestGraph::KEYS[0]], &numbers, Weight { steps, distinct }));
                }
            }
        }
        all
    }

    fn digests(&self) {
        let at = self.at;
        for scan in Self::scans().into_iter().step_by(5) {
            for grouping in Self::groupings() {
                self.each(&format!("{grouping:?} of {scan:?}"), |apl| {
                    let (mut out, mut cursor) = (Groups::default(), Some(ScanCursor::default()));
                    while let Some(from) = cursor {
                        cursor = apl.group_vertices(at, &scan, &grouping, from, &mut out)?;
                    }
                    let row = |at: usize| {
                        let columns = out.keys.iter().chain(&out.items);
                        Value::list(columns.map(|column| column[at].clone()).collect())
                    };
                    let mut rows: Vec<Value> = (0..out.len()).map(row).collect();
                    rows.sort_by(tidegraph_types::order::order);
                    Ok(rows)
                });
            }
            let [first, second, _] = TestGraph::KEYS;
            for (order, count) in [(vec![(first, true)], 3), (vec![(second, false), (first, true)], 9)] {
                let top = TopVertices { order, count };
                self.each(&format!("{top:?} of {scan:?}"), |apl| {
                    let keys = [first, second];
                    let (mut out, mut cursor) = (ScannedValues::default(), Some(ScanCursor::default()));
                    out.begin(keys.len());
                    while let Some(from) = cursor {
                        cursor = apl.top_vertices(at, &scan, &keys, &top, from, &mut out)?;
                    }
                    // Which of several equal vertices are answered does not matter.
                    top.select(&keys, &mut out);
                    let keys = top.order.iter().map(|(key, _)| usize::from(*key != first));
                    Ok(keys.map(|column| out.columns[column].clone()).collect::<Vec<_>>())
                });
            }
            for request in Self::requests() {
                self.each(&format!("ends of {request:?} of {scan:?}"), |apl| {
                    let (mut out, mut cursor) = (EndCounts::default(), Some(ScanCursor::default()));
                    while let Some(from) = cursor {
                        cursor = apl.count_ends(at, &scan, &request, from, &mut out)?;
                    }
                    let ends = out.ends.iter().zip(&out.edges).zip(&out.loops);
                    let mut ends: Vec<(Gui, u64, u64)> = ends.map(|((end, n), l)| (*end, *n, *l)).collect();
                    ends.sort_unstable();
                    Ok(ends)
                });
            }
        }
    }

    fn edge_scans(&self) {
        let at = self.at;
        for labels in [None, Some(vec![TestGraph::EDGE_LABELS[0]]), Some(vec![])] {
            for predicates in [vec![], vec![PropertyPredicate::any(TestGraph::KEYS[2], Test::Exists)]] {
                for max_rows in [5, 1_000_000] {
                    let scan = EdgeScan { labels: labels.clone(), predicates: predicates.clone(), max_rows };
                    self.each(&format!("{scan:?}"), |apl| {
                        let (mut out, mut cursor) = (EdgeRuns::default(), Some(ScanCursor::default()));
                        let mut edges = Vec::new();
                        while let Some(from) = cursor {
                            out.clear();
                            cursor = apl.scan_edges(at, &scan, from, &mut out)?;
                            out.append_to(&mut edges);
                        }
                        edges.sort_by_key(|edge| edge.sid);
                        Ok(edges)
                    });
                }
            }
        }
    }

    fn counts(&self) {
        let at = self.at;
        self.each("statistics", |apl| {
            let mut all = apl.statistics();
            all.vertices_by_label.sort_unstable();
            all.edges_by_label.sort_unstable();
            Ok((all.vertices, all.edges, all.vertices_by_label, all.edges_by_label))
        });
        self.each("unique_keys", |apl| {
            let mut keys = apl.unique_keys(at)?;
            keys.sort_unstable();
            Ok(keys)
        });
    }
}

fn vertex(rows: &VertexRows, row: usize) -> Row {
    let mut labels = rows.labels_of(row).to_vec();
    labels.sort_unstable();
    let first = rows.first_cell_of(row);
    let cell = |(number, cell): (usize, &PropertyCell)| {
        let number = first + number;
        let meta = rows.meta_of(number..number + 1).iter().map(|meta| CellMeta { cell: 0, ..meta.clone() });
        (cell.clone(), meta.collect())
    };
    let mut cells: Vec<(PropertyCell, Vec<CellMeta>)> =
        rows.cells_of(row).iter().enumerate().map(cell).collect();
    // Values of one key stay in their order.
    cells.sort_by_key(|(cell, _)| cell.key);
    (rows.present[row], rows.ids.get(row).cloned(), labels, cells)
}

fn rows_of(apl: &dyn Apl, at: At, request: &Expand, frontier: &[Gui]) -> Vec<ExpansionRow> {
    let (mut rows, mut cursor) = (Vec::new(), Some(Cursor::default()));
    let mut out = Expansion::default();
    while let Some(from) = cursor {
        out.clear();
        cursor = ok("expand", apl.expand(at, request, frontier, from, &mut out));
        // Columns that need not be filled are ignored.
        rows.extend((0..out.len()).map(|index| match request.neighbours_only {
            true => {
                let (row, neighbour) = (out.row[index], out.neighbour[index]);
                let (sid, label) = (tidegraph_types::Sid(0), Token(0));
                ExpansionRow { row, neighbour, sid, label, outgoing: true }
            }
            false => out.at(index),
        }));
        assert!(cursor.is_none_or(|next| next != from), "{request:?} makes no progress at {from:?}");
    }
    rows
}

fn sorted(mut rows: Vec<ExpansionRow>) -> Vec<ExpansionRow> {
    rows.sort_by_key(|row| (row.row, row.neighbour, row.sid, row.outgoing));
    rows
}

fn scanned(apl: &dyn Apl, at: At, scan: &VertexScan) -> Vec<Gui> {
    let (mut found, mut cursor) = (Vec::new(), Some(ScanCursor::default()));
    while let Some(from) = cursor {
        cursor = ok("scan_vertices", apl.scan_vertices(at, scan, from, &mut found));
    }
    found.sort_unstable();
    found
}
