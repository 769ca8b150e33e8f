//! The bytes of every request and every answer, as an earlier build wrote them.

use super::request as r;
use super::{AnyAnswer, AnyRequest};
use crate::Message;
use tidegraph_apl::{
    At, CellMeta, Cursor, DegreeStatistics, Draw, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns,
    EdgeScan, EndCounts, Expand, Expansion, GroupItem, Grouping, Groups, KeyStatistics, OneOf, Projection,
    PropertyCell, PropertyPredicate, Reservoir, Sample, ScanCursor, ScannedValues, SetKey, SetStatistics,
    Statistics, Test, TopEdges, TopVertices, VertexRead, VertexRows, VertexScan, Weight,
};
use tidegraph_types::{
    Cardinality, Direction, Edge, Epoch, Gui, PartitionId, Sid, Str, Token, Value, Version,
};

const GOLDEN: &str = include_str!("../../../../contracts/golden/apl-v1.json");

fn ids() -> Vec<Str> {
    vec!["ada".into(), "".into(), "zoë".into()]
}

fn edge(n: u64) -> Edge {
    Edge { sid: Sid(n), source: Gui(n + 1), target: Gui(u64::MAX - n), label: Token(3) }
}

fn expand() -> Expand {
    Expand {
        direction: Direction::Both,
        labels: Some(vec![Token(4), Token(300)]),
        max_rows: 1000,
        loops_once: true,
        neighbours_only: false,
    }
}

fn scan() -> VertexScan {
    let tests = [
        Test::Exists,
        Test::Equals(Value::Long(-7)),
        Test::Within(OneOf::new(vec![Value::string("x"), Value::Bool(true)])),
        Test::Range { low: Some((Value::Double(0.5), true)), high: None },
        Test::StartsWith("pre".into()),
    ];
    let predicate = |(n, test)| PropertyPredicate { key: Token(n), test, sole: n == 1 };
    VertexScan {
        labels: vec![vec![Token(1), Token(2)], vec![]],
        predicates: (0..).zip(tests).map(predicate).collect(),
        max_rows: 64,
    }
}

fn scan_cursor() -> ScanCursor {
    ScanCursor { partition: 5, position: 1 << 40, by_index: true, cover: 2, replica: 0 }
}

fn cursor() -> Cursor {
    Cursor { row: 9, offset: 1 << 33, replica: 0 }
}

fn reservoir() -> Reservoir<Gui> {
    Reservoir { count: 3, items: vec![Gui(8), Gui(9)], draw: Draw(77), weight: 0.25, skip: 11 }
}

fn cells() -> Vec<PropertyCell> {
    let cell = |key, cardinality, value| PropertyCell { key: Token(key), cardinality, value };
    vec![
        cell(1, Cardinality::Single, Value::Int(5)),
        cell(2, Cardinality::Set, Value::string("text")),
        cell(2, Cardinality::List, Value::Double(2.5)),
    ]
}

fn expansion() -> Expansion {
    let mut rows = Expansion::default();
    for n in 0..5 {
        rows.push(n as u32 / 3, Gui(n), Sid(n * 7), Token(1), n % 2 == 0);
    }
    rows
}

fn requests() -> Vec<(&'static str, AnyRequest)> {
    let guis = || vec![Gui(1), Gui(u64::MAX)];
    let read = VertexRead {
        ids: true,
        labels: true,
        properties: Projection::Keys(vec![Token(1), Token(2)]),
        meta: true,
    };
    let place = |id: Option<&str>| EdgePlace { source: Gui(4), sid: Sid(5), id: id.map(Str::from) };
    let edge_scan = EdgeScan { labels: Some(vec![Token(1)]), predicates: scan().predicates, max_rows: 9 };
    let top = TopEdges { key: Token(8), descending: true, count: 5, each: true };
    let (frontier, from) = (guis(), scan_cursor());
    let key = Token(6);
    let values = r::ScanValues { scan: scan(), keys: vec![key, Token(7)], from };
    let first = TopVertices { order: vec![(Token(7), true), (key, false)], count: 300 };
    let sums = Grouping {
        keys: vec![Token(7)],
        items: vec![GroupItem::Sum(key), GroupItem::Min(key), GroupItem::Max(key)],
        weight: Weight::default(),
    };
    let steps = Grouping {
        keys: vec![],
        items: vec![GroupItem::Rows, GroupItem::Values(key)],
        weight: Weight { steps: vec![expand(), Expand::all(Direction::In)], distinct: true },
    };
    let edges = vec![edge(1), edge(2)];
    vec![
        ("ResolveVertices", r::ResolveVertices { ids: ids() }.into()),
        ("ResolveEdges", r::ResolveEdges { ids: ids() }.into()),
        ("Place", r::Place { ids: vec![("a".into(), 0), ("b".into(), 300)] }.into()),
        ("Vertices", r::Vertices { read, frontier: guis() }.into()),
        (
            "Edges",
            r::Edges { read: EdgeRead { ids: true, properties: Projection::All }, frontier: edges }.into(),
        ),
        ("Expand", r::Expand { expand: expand(), frontier: guis(), from: cursor() }.into()),
        ("Degrees", r::Degrees { expand: expand(), frontier: guis() }.into()),
        ("ScanVertices", r::ScanVertices { scan: scan(), from }.into()),
        ("ScanValues", r::ScanValues { scan: scan(), keys: vec![Token(6)], from }.into()),
        ("ScanEdges", r::ScanEdges { scan: edge_scan, from }.into()),
        ("Statistics", r::Statistics.into()),
        ("CountVertices", r::CountVertices { scan: scan(), from }.into()),
        ("SampleVertices", r::SampleVertices { scan: scan(), from, sample: reservoir() }.into()),
        (
            "SampleEdges",
            r::SampleEdges { expand: expand(), sample: Sample { count: 4, seed: 99 }, frontier: guis() }
                .into(),
        ),
        ("TopEdges", r::TopEdges { expand: expand(), top, frontier, from: cursor() }.into()),
        ("EdgeCandidates", r::EdgeCandidates { ids: ids() }.into()),
        ("FindEdges", r::FindEdges { places: vec![place(Some("e")), place(None)] }.into()),
        ("UniqueKeys", r::UniqueKeys.into()),
        ("GroupVertices", r::GroupVertices { scan: scan(), grouping: sums, from }.into()),
        ("GroupVertices by steps", r::GroupVertices { scan: scan(), grouping: steps, from }.into()),
        ("CountEnds", r::CountEnds { scan: scan(), expand: expand(), from }.into()),
        ("TopVertices", r::TopVertices { scan: values, top: first }.into()),
    ]
}

fn answers() -> Vec<(&'static str, AnyAnswer)> {
    use tidegraph_apl::Error as Apl;
    let vertices = VertexRows {
        present: vec![true, false],
        ids: vec!["a".into(), Str::default()],
        label_ends: vec![2, 2],
        labels: vec![Token(1), Token(9)],
        cell_ends: vec![3, 3],
        cells: cells(),
        meta: vec![CellMeta { cell: 1, key: Token(5), value: Value::Bool(false) }],
    };
    let edges = EdgeRows {
        present: vec![true, true],
        ids: vec!["e".into(), "f".into()],
        cell_ends: vec![1, 3],
        cells: cells(),
    };
    let mut runs = EdgeRuns::default();
    [edge(1), Edge { sid: Sid(8), ..edge(1) }, edge(2)].into_iter().for_each(|edge| runs.push(edge));
    let scanned = ScannedValues {
        vertices: vec![Gui(1), Gui(2)],
        columns: vec![
            vec![Value::Null, Value::Long(3)].into(),
            vec![Value::string("x"), Value::Set(vec![Value::Long(1), Value::string("y")].into())].into(),
        ],
    };
    let statistics = Statistics {
        vertices: 10,
        edges: 20,
        vertices_by_label: vec![(Token(1), 7)],
        edges_by_label: vec![(Token(2), 20)],
        keys: vec![KeyStatistics { label: Token(1), key: Token(3), values: 6, distinct: 5 }],
        sets: vec![SetStatistics {
            labels: vec![Token(1)],
            elements: 7,
            keys: vec![
                SetKey { key: Token(3), bounds: Some((-1.5, 9.0)) },
                SetKey { key: Token(4), bounds: None },
            ],
        }],
        edge_sets: vec![SetStatistics {
            labels: Vec::new(),
            elements: 12,
            keys: vec![SetKey { key: Token(4), bounds: Some((0.0, 1.0)) }],
        }],
        distinct: vec![(Token(3), 5)],
        degrees: vec![DegreeStatistics {
            vertex_label: Some(Token(1)),
            edge_label: Token(2),
            outgoing: true,
            vertices: 7,
            edges: 20,
            histogram: vec![1, 0, 6],
        }],
    };
    let candidates =
        EdgeCandidates { ends: vec![1, 1, 2], source: vec![Gui(1), Gui(2)], sid: vec![Sid(3), Sid(4)] };
    let groups = Groups::of_columns(
        vec![vec![Value::Null, Value::string("x")]],
        vec![vec![Value::Long(3), Value::Long(300)], vec![Value::Double(0.5), Value::Null]],
    );
    let first = ScannedValues { vertices: vec![Gui(3)], columns: vec![vec![Value::Long(4)].into()] };
    let ends = EndCounts::of_columns(vec![Gui(1), Gui(u64::MAX)], vec![300, 2], vec![0, 1]);
    let neighbours = Expansion { row: vec![0, 0], neighbour: vec![Gui(1), Gui(2)], ..Expansion::default() };
    vec![
        ("Behind", AnyAnswer::Failed(Apl::Behind { applied: Version(4), asked: Version(5) })),
        ("TooOld", AnyAnswer::Failed(Apl::TooOld { oldest: Version(4), asked: Version(3) })),
        ("Unavailable", AnyAnswer::Failed(Apl::Unavailable("because".into()))),
        ("Corrupt", AnyAnswer::Failed(Apl::Corrupt("because".into()))),
        ("NotHere", AnyAnswer::Failed(Apl::NotHere { partition: PartitionId(7), epoch: Epoch(8) })),
        ("WrongEpoch", AnyAnswer::Failed(Apl::WrongEpoch { held: Epoch(7), asked: Epoch(8) })),
        ("Cancelled", AnyAnswer::Failed(Apl::Cancelled)),
        ("Overdue", AnyAnswer::Failed(Apl::Overdue)),
        ("TooLarge", AnyAnswer::Failed(Apl::TooLarge { bytes: 10, limit: 9 })),
        ("ResolveVertices", AnyAnswer::ResolveVertices(vec![Some(Gui(6)), None])),
        ("ResolveEdges", AnyAnswer::ResolveEdges(vec![Some(edge(1)), None])),
        ("Place", AnyAnswer::Place(vec![(Gui(1), 0), (Gui(2), 300)])),
        ("Vertices", AnyAnswer::Vertices(vertices)),
        ("Edges", AnyAnswer::Edges(edges)),
        ("Expand", AnyAnswer::Expand((expansion(), Some(cursor())))),
        ("Expand of neighbours", AnyAnswer::Expand((neighbours, None))),
        ("Degrees", AnyAnswer::Degrees(vec![0, 5, 1 << 40])),
        ("ScanVertices", AnyAnswer::ScanVertices((vec![Gui(1)], Some(scan_cursor())))),
        ("ScanValues", AnyAnswer::ScanValues((scanned, Some(scan_cursor())))),
        ("ScanEdges", AnyAnswer::ScanEdges((runs, None))),
        ("Statistics", AnyAnswer::Statistics(statistics)),
        ("CountVertices", AnyAnswer::CountVertices((17, Some(scan_cursor())))),
        ("SampleVertices", AnyAnswer::SampleVertices((reservoir(), None))),
        ("SampleEdges", AnyAnswer::SampleEdges(expansion())),
        ("TopEdges", AnyAnswer::TopEdges((expansion(), Some(cursor())))),
        ("EdgeCandidates", AnyAnswer::EdgeCandidates(candidates)),
        ("FindEdges", AnyAnswer::FindEdges(vec![Some(edge(2)), None])),
        ("UniqueKeys", AnyAnswer::UniqueKeys(vec![(Token(1), Token(2))])),
        ("GroupVertices", AnyAnswer::GroupVertices((groups, Some(scan_cursor())))),
        ("CountEnds", AnyAnswer::CountEnds((ends, None))),
        ("TopVertices", AnyAnswer::TopVertices((first, None))),
    ]
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn bytes_are_those_of_the_golden_file() {
    let at = At { version: Version(1234), epoch: Epoch(5) };
    let entry = |name: &str, bytes: Vec<u8>| serde_json::json!({ "name": name, "bytes": hex(&bytes) });
    let requests: Vec<_> = requests()
        .iter()
        .map(|(name, request)| entry(name, request.encode(at).unwrap().encode_to_vec()))
        .collect();
    let answers: Vec<_> = answers()
        .iter()
        .map(|(name, answer)| entry(name, answer.encode().unwrap().encode_to_vec()))
        .collect();
    let found = serde_json::json!({ "requests": requests, "answers": answers });
    let golden: serde_json::Value = serde_json::from_str(GOLDEN).unwrap();
    assert_eq!(found, golden);
}
