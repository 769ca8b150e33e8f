//! Requests and answers are encoded and decoded without change.

use super::column::wide_to;
use super::request as r;
use super::{AnyAnswer, AnyRequest};
use crate::mutation::tests::{any_edge, any_gui, any_str, any_token, any_tokens};
use crate::value::tests::any_value;
use crate::{Error, Message, proto};
use proptest::option;
use proptest::prelude::*;
use tidegraph_apl::{
    At, CellMeta, Cursor, DegreeStatistics, Draw, EdgeCandidates, EdgePlace, EdgeRead, EdgeRows, EdgeRuns,
    EdgeScan, EndCounts, Expand, Expansion, GroupItem, Grouping, Groups, KeyStatistics, OneOf, Projection,
    PropertyCell, PropertyPredicate, Reservoir, Sample, ScanCursor, ScannedValues, SetKey, SetStatistics,
    Statistics, Test, TopEdges, TopVertices, VertexRead, VertexRows, VertexScan, Weight,
};
use tidegraph_types::{Cardinality, Direction, Epoch, Gui, PartitionId, Sid, Token, Value, Version};

fn vec<S: Strategy>(of: S) -> impl Strategy<Value = Vec<S::Value>> {
    prop::collection::vec(of, 0..4)
}

fn any_projection() -> impl Strategy<Value = Projection> {
    prop_oneof![Just(Projection::None), Just(Projection::All), any_tokens().prop_map(Projection::Keys)]
}

fn any_expand() -> impl Strategy<Value = Expand> {
    let direction = prop_oneof![Just(Direction::Out), Just(Direction::In), Just(Direction::Both)];
    (direction, option::of(any_tokens()), 1..=u32::MAX, any::<[bool; 2]>()).prop_map(
        |(direction, labels, max_rows, [loops_once, neighbours_only])| Expand {
            direction,
            labels,
            max_rows,
            loops_once,
            neighbours_only,
        },
    )
}

fn any_cursor() -> impl Strategy<Value = Cursor> {
    any::<(u32, u64)>().prop_map(|(row, offset)| Cursor { row, offset, replica: 0 })
}

fn any_scan_cursor() -> impl Strategy<Value = ScanCursor> {
    any::<(u16, u64, bool, u16)>().prop_map(|(partition, position, by_index, cover)| ScanCursor {
        partition,
        position,
        by_index,
        cover,
        replica: 0,
    })
}

fn any_scan() -> impl Strategy<Value = VertexScan> {
    (vec(any_tokens()), vec(any_predicate()), 1..=u32::MAX)
        .prop_map(|(labels, predicates, max_rows)| VertexScan { labels, predicates, max_rows })
}

fn any_reservoir() -> impl Strategy<Value = Reservoir<Gui>> {
    (any::<(u32, u64, u64)>(), vec(any_gui()), 0.0..1.0).prop_map(|((count, draw, skip), items, weight)| {
        Reservoir { count, items, draw: Draw(draw), weight, skip }
    })
}

fn any_predicate() -> impl Strategy<Value = PropertyPredicate> {
    let bound = || option::of((any_value(), any::<bool>()));
    let test = prop_oneof![
        Just(Test::Exists),
        any_value().prop_map(Test::Equals),
        vec(any_value()).prop_map(|values| Test::Within(OneOf::new(values))),
        (bound(), bound()).prop_map(|(low, high)| Test::Range { low, high }),
        any::<String>().prop_map(Test::StartsWith),
    ];
    (any_token(), test, any::<bool>()).prop_map(|(key, test, sole)| PropertyPredicate { key, test, sole })
}

fn any_grouping() -> impl Strategy<Value = Grouping> {
    let item = || {
        prop_oneof![
            Just(GroupItem::Rows),
            any_token().prop_map(GroupItem::Values),
            any_token().prop_map(GroupItem::Min),
            any_token().prop_map(GroupItem::Max),
        ]
    };
    let steps = prop_oneof![
        vec(any_expand()).prop_map(|steps| Weight { steps, distinct: false }),
        prop::collection::vec(any_expand(), 2).prop_map(|steps| Weight { steps, distinct: true }),
    ];
    let items = prop::collection::vec(item(), 1..4);
    (any_tokens(), items, option::of(any_token()), steps).prop_map(|(keys, mut items, sum, weight)| {
        let sums = sum.filter(|_| weight.steps.is_empty());
        items.extend(sums.map(GroupItem::Sum));
        Grouping { keys, items, weight }
    })
}

fn any_request() -> impl Strategy<Value = AnyRequest> {
    let ids = || vec(any_str());
    let guis = || vec(any_gui());
    prop_oneof![
        ids().prop_map(|ids| r::ResolveVertices { ids }.into()),
        ids().prop_map(|ids| r::ResolveEdges { ids }.into()),
        ids().prop_map(|ids| r::EdgeCandidates { ids }.into()),
        vec((any_str(), any::<u64>())).prop_map(|ids| r::Place { ids }.into()),
        vec((any_gui(), any::<u64>(), option::of(any_str()))).prop_map(|places| {
            let place = |(source, sid, id)| EdgePlace { source, sid: Sid(sid), id };
            r::FindEdges { places: places.into_iter().map(place).collect() }.into()
        }),
        (any::<(bool, bool, bool)>(), any_projection(), guis()).prop_map(
            |((ids, labels, meta), properties, frontier)| {
                r::Vertices { read: VertexRead { ids, labels, properties, meta }, frontier }.into()
            }
        ),
        (any::<bool>(), any_projection(), vec(any_edge())).prop_map(|(ids, properties, frontier)| {
            r::Edges { read: EdgeRead { ids, properties }, frontier }.into()
        }),
        (any_expand(), guis(), any_cursor()).prop_map(|(expand, frontier, from)| r::Expand {
            expand,
            frontier,
            from
        }
        .into()),
        (any_expand(), guis()).prop_map(|(expand, frontier)| r::Degrees { expand, frontier }.into()),
        (any_expand(), any::<(u32, u64)>(), guis()).prop_map(|(expand, (count, seed), frontier)| {
            let expand = Expand { max_rows: u32::MAX, ..expand };
            r::SampleEdges { expand, sample: Sample { count, seed }, frontier }.into()
        }),
        (any_expand(), any_token(), any::<(bool, u32, bool)>(), guis(), any_cursor()).prop_map(
            |(expand, key, (descending, count, each), frontier, from)| {
                let top = TopEdges { key, descending, count, each };
                r::TopEdges { expand, top, frontier, from }.into()
            }
        ),
        (any_scan(), any_scan_cursor()).prop_map(|(scan, from)| r::ScanVertices { scan, from }.into()),
        (any_scan(), prop::collection::vec(any_token(), 1..4), any_scan_cursor())
            .prop_map(|(scan, keys, from)| r::ScanValues { scan, keys, from }.into()),
        (any_scan(), any_scan_cursor()).prop_map(|(scan, from)| r::CountVertices { scan, from }.into()),
        (any_scan(), any_scan_cursor(), any_reservoir()).prop_map(|(scan, from, sample)| r::SampleVertices {
            scan,
            from,
            sample
        }
        .into()),
        (option::of(any_tokens()), vec(any_predicate()), 1..=u32::MAX, any_scan_cursor()).prop_map(
            |(labels, predicates, max_rows, from)| {
                r::ScanEdges { scan: EdgeScan { labels, predicates, max_rows }, from }.into()
            }
        ),
        (any_scan(), any_grouping(), any_scan_cursor()).prop_map(|(scan, grouping, from)| r::GroupVertices {
            scan,
            grouping,
            from
        }
        .into()),
        (any_scan(), any_expand(), any_scan_cursor()).prop_map(|(scan, expand, from)| r::CountEnds {
            scan,
            expand,
            from
        }
        .into()),
        (
            any_scan(),
            prop::collection::vec((any_token(), any::<bool>()), 1..4),
            any::<u32>(),
            any_scan_cursor()
        )
            .prop_map(|(scan, order, count, from)| {
                let keys = order.iter().map(|(key, _)| *key).collect();
                let scan = r::ScanValues { scan, keys, from };
                r::TopVertices { scan, top: TopVertices { order, count } }.into()
            }),
        Just(r::Statistics.into()),
        Just(r::UniqueKeys.into()),
    ]
}

/// Returns a column of rows of different length, as the ends of the rows and the items.
fn ragged<T>(rows: Vec<Vec<T>>) -> (Vec<u32>, Vec<T>) {
    let mut items = Vec::new();
    let mut ends = Vec::new();
    for row in rows {
        items.extend(row);
        ends.push(items.len() as u32);
    }
    (ends, items)
}

fn any_cell() -> impl Strategy<Value = PropertyCell> {
    let cardinality = prop_oneof![Just(Cardinality::Single), Just(Cardinality::Set), Just(Cardinality::List)];
    (any_token(), cardinality, any_value()).prop_map(|(key, cardinality, value)| PropertyCell {
        key,
        cardinality,
        value,
    })
}

fn any_vertex_rows() -> impl Strategy<Value = VertexRows> {
    let row = (any::<bool>(), any_str(), any_tokens(), vec(any_cell()));
    let meta = vec((any::<u32>(), any_token(), any_value()));
    (vec(row), any::<(bool, bool, bool)>(), meta).prop_map(
        |(rows, (with_ids, with_labels, with_cells), meta)| {
            let mut out = VertexRows { present: rows.iter().map(|r| r.0).collect(), ..VertexRows::default() };
            if with_ids {
                out.ids = rows.iter().map(|r| r.1.clone()).collect();
            }
            if with_labels {
                (out.label_ends, out.labels) = ragged(rows.iter().map(|r| r.2.clone()).collect());
            }
            if with_cells {
                (out.cell_ends, out.cells) = ragged(rows.into_iter().map(|r| r.3).collect());
            }
            if let Some(cells) = std::num::NonZeroU32::new(out.cells.len() as u32) {
                out.meta = meta
                    .into_iter()
                    .map(|(cell, key, value)| CellMeta { cell: cell % cells, key, value })
                    .collect();
                out.meta.sort_by_key(|meta| meta.cell);
            }
            out
        },
    )
}

fn any_edge_rows() -> impl Strategy<Value = EdgeRows> {
    any_vertex_rows().prop_map(|r| EdgeRows {
        present: r.present,
        ids: r.ids,
        cell_ends: r.cell_ends,
        cells: r.cells,
    })
}

fn any_expansion() -> impl Strategy<Value = Expansion> {
    let rows = vec((any::<u32>(), any_gui(), any::<u64>(), any_token(), any::<bool>()));
    (rows, any::<bool>()).prop_map(|(rows, neighbours_only)| {
        let mut out = Expansion::default();
        for (row, neighbour, sid, label, outgoing) in rows {
            out.push(row, neighbour, Sid(sid), label, outgoing);
        }
        if neighbours_only {
            (out.sid, out.label, out.outgoing) = Default::default();
        }
        out
    })
}

fn any_scanned_values() -> impl Strategy<Value = ScannedValues> {
    let several = || prop::collection::vec(any_value(), 2..4).prop_map(|all| Value::Set(all.into()));
    let row = (any_gui(), prop_oneof![Just(Value::Null), any_value(), several()], any_value());
    vec(row).prop_map(|rows| ScannedValues {
        vertices: rows.iter().map(|row| row.0).collect(),
        columns: vec![
            rows.iter().map(|row| row.1.clone()).collect::<Vec<_>>().into(),
            rows.iter().map(|row| row.2.clone()).collect::<Vec<_>>().into(),
        ],
    })
}

fn any_sets() -> impl Strategy<Value = Vec<SetStatistics>> {
    let bounds = option::of((-1e9..1e9, -1e9..1e9));
    let key = (any_token(), bounds).prop_map(|(key, bounds)| SetKey { key, bounds });
    vec((any_tokens(), any::<u64>(), vec(key)).prop_map(|(labels, elements, keys)| SetStatistics {
        labels,
        elements,
        keys,
    }))
}

fn any_degrees() -> impl Strategy<Value = Vec<DegreeStatistics>> {
    let one = (option::of(any_token()), any_token(), any::<(bool, u64, u64)>(), vec(any::<u64>()));
    vec(one.prop_map(|(vertex_label, edge_label, (outgoing, vertices, edges), histogram)| DegreeStatistics {
        vertex_label,
        edge_label,
        outgoing,
        vertices,
        edges,
        histogram,
    }))
}

fn any_answer() -> impl Strategy<Value = AnyAnswer> {
    use tidegraph_apl::Error;
    let versions = || any::<(u64, u64)>().prop_map(|(a, b)| (Version(a), Version(b)));
    let counts = || vec((any_token(), any::<u64>()));
    prop_oneof![
        versions().prop_map(|(applied, asked)| AnyAnswer::Failed(Error::Behind { applied, asked })),
        versions().prop_map(|(oldest, asked)| AnyAnswer::Failed(Error::TooOld { oldest, asked })),
        any::<String>().prop_map(|reason| AnyAnswer::Failed(Error::Unavailable(reason))),
        any::<String>().prop_map(|reason| AnyAnswer::Failed(Error::Corrupt(reason))),
        any::<(u16, u64)>().prop_map(|(partition, epoch)| {
            AnyAnswer::Failed(Error::NotHere { partition: PartitionId(partition), epoch: Epoch(epoch) })
        }),
        any::<(u64, u64)>().prop_map(|(held, asked)| {
            AnyAnswer::Failed(Error::WrongEpoch { held: Epoch(held), asked: Epoch(asked) })
        }),
        any::<(u64, u64)>().prop_map(|(bytes, limit)| AnyAnswer::Failed(Error::TooLarge { bytes, limit })),
        any::<bool>().prop_map(|late| AnyAnswer::Failed(if late {
            Error::Overdue
        } else {
            Error::Cancelled
        })),
        vec(option::of(any_edge())).prop_map(AnyAnswer::FindEdges),
        vec((any_token(), any_token())).prop_map(AnyAnswer::UniqueKeys),
        vec(vec((any_gui(), any::<u64>()))).prop_map(|rows| {
            let (ends, items) = ragged(rows);
            let (source, sid) = items.into_iter().map(|(gui, sid)| (gui, Sid(sid))).unzip();
            AnyAnswer::EdgeCandidates(EdgeCandidates { ends, source, sid })
        }),
        vec(option::of(any_gui())).prop_map(AnyAnswer::ResolveVertices),
        vec(option::of(any_edge())).prop_map(AnyAnswer::ResolveEdges),
        vec((any_gui(), any::<u64>())).prop_map(AnyAnswer::Place),
        any_vertex_rows().prop_map(AnyAnswer::Vertices),
        any_edge_rows().prop_map(AnyAnswer::Edges),
        (any_expansion(), option::of(any_cursor())).prop_map(AnyAnswer::Expand),
        vec(any::<u64>()).prop_map(AnyAnswer::Degrees),
        (any::<u64>(), option::of(any_scan_cursor())).prop_map(AnyAnswer::CountVertices),
        (any_reservoir(), option::of(any_scan_cursor())).prop_map(AnyAnswer::SampleVertices),
        any_expansion().prop_map(AnyAnswer::SampleEdges),
        (any_expansion(), option::of(any_cursor())).prop_map(AnyAnswer::TopEdges),
        (vec(any_gui()), option::of(any_scan_cursor())).prop_map(AnyAnswer::ScanVertices),
        (any_scanned_values(), option::of(any_scan_cursor())).prop_map(AnyAnswer::ScanValues),
        (any_scanned_values(), option::of(any_scan_cursor())).prop_map(AnyAnswer::TopVertices),
        (any_scanned_values(), any::<bool>(), option::of(any_scan_cursor())).prop_map(
            |(found, has_keys, next)| {
                let mut items: Vec<Vec<Value>> =
                    found.columns.iter().map(|column| column.values().into_owned()).collect();
                let keys = if has_keys { vec![items.remove(0)] } else { vec![] };
                AnyAnswer::GroupVertices((Groups::of_columns(keys, items), next))
            }
        ),
        (vec((any_gui(), any::<u64>(), 0..3_u64)), option::of(any_scan_cursor())).prop_map(|(rows, next)| {
            let (mut ends, mut edges, mut loops) = (vec![], vec![], vec![]);
            for (end, count, of_loops) in rows {
                ends.push(end);
                edges.push(count);
                loops.push(of_loops);
            }
            AnyAnswer::CountEnds((EndCounts::of_columns(ends, edges, loops), next))
        }),
        (vec(any_edge()), option::of(any_scan_cursor())).prop_map(|(edges, next)| {
            let mut runs = EdgeRuns::default();
            edges.into_iter().for_each(|edge| runs.push(edge));
            AnyAnswer::ScanEdges((runs, next))
        }),
        (
            any::<(u64, u64)>(),
            counts(),
            counts(),
            vec(any::<(u32, u32, u64, u64)>()),
            any_sets(),
            any_degrees()
        )
            .prop_map(
                |((vertices, edges), vertices_by_label, edges_by_label, keys, sets, degrees)| {
                    let key = |(label, key, values, distinct)| KeyStatistics {
                        label: Token(label),
                        key: Token(key),
                        values,
                        distinct,
                    };
                    let keys = keys.into_iter().map(key).collect();
                    let distinct = vertices_by_label.clone();
                    AnyAnswer::Statistics(Statistics {
                        vertices,
                        edges,
                        vertices_by_label,
                        edges_by_label,
                        keys,
                        edge_sets: sets.iter().take(2).cloned().collect(),
                        sets,
                        distinct,
                        degrees,
                    })
                }
            ),
    ]
}

#[test]
fn kinds_of_a_newer_version_are_errors() {
    assert!(matches!(AnyRequest::decode(proto::AplRequest::default()), Err(Error::UnknownKind { .. })));
    assert!(matches!(AnyAnswer::decode(proto::AplAnswer::default()), Err(Error::UnknownKind { .. })));
    // A predicate with an unknown test must not accept everything.
    let scan = proto::ScanVerticesRequest {
        predicates: vec![proto::PropertyPredicate::default()],
        max_rows: 1,
        ..Default::default()
    };
    let kind = Some(proto::apl_request::Kind::ScanVertices(scan));
    let request = proto::AplRequest { kind, ..Default::default() };
    assert!(matches!(AnyRequest::decode(request), Err(Error::UnknownKind { message: "PropertyPredicate" })));
}

#[test]
fn columns_that_do_not_fit_are_errors() {
    use proto::apl_answer::Kind;
    let is_misaligned = |kind| {
        let decoded = AnyAnswer::decode(proto::AplAnswer { kind: Some(kind) });
        assert!(matches!(decoded, Err(Error::Misaligned { .. })), "{decoded:?}");
    };
    let rows = |label_ends: Vec<u32>, labels| {
        Kind::Vertices(proto::VertexRows { present: vec![true; 2], label_ends, labels, ..Default::default() })
    };
    is_misaligned(rows(vec![1], vec![7]));
    is_misaligned(rows(vec![2, 1], vec![7]));
    is_misaligned(rows(vec![1, 5], vec![7, 8]));
    is_misaligned(rows(vec![], vec![7]));
    let meta =
        |cell| proto::CellMeta { cell, key: 1, value: Some(crate::value::encode(&Value::Int(1)).unwrap()) };
    let of_cells = |meta| {
        let cells = proto::PropertyCells {
            keys: vec![1, 2],
            cardinalities: vec![0, 0],
            values: vec![crate::value::encode(&Value::Int(1)).unwrap(); 2],
            ..Default::default()
        };
        let (cell_ends, cells) = (vec![2], Some(cells));
        Kind::Vertices(proto::VertexRows {
            present: vec![true],
            cell_ends,
            cells,
            meta,
            ..Default::default()
        })
    };
    is_misaligned(of_cells(vec![meta(2)]));
    is_misaligned(of_cells(vec![meta(1), meta(0)]));
    let numbers = |bytes: Vec<u8>| Some(proto::NumberColumn { plain: bytes.into(), ..Default::default() });
    let wide = |numbers: &[u64]| wide_to(numbers, |n| *n);
    is_misaligned(Kind::Expand(proto::Expansion { row: numbers(vec![1, 0, 0, 0]), ..Default::default() }));
    is_misaligned(Kind::Expand(proto::Expansion { neighbour: vec![1; 9].into(), ..Default::default() }));
    is_misaligned(Kind::EdgeCandidates(proto::EdgeCandidates { ends: vec![1], ..Default::default() }));
    is_misaligned(Kind::UniqueKeys(proto::UniqueKeys { labels: vec![1], keys: vec![] }));
    for (ends, sids) in
        [(vec![1, 2], vec![5]), (vec![0, 2], vec![5, 6]), (vec![2, 1], vec![5, 6]), (vec![], vec![])]
    {
        let (sources, labels) = (vec![1, 2], vec![3, 3]);
        let targets = wide(&vec![4; sids.len().max(1)]);
        let sids = wide(&sids);
        is_misaligned(Kind::ScanEdges(proto::ScannedEdges {
            sources,
            labels,
            ends,
            targets,
            sids,
            next: None,
        }));
    }
    let ends = || proto::EndCounts { ends: wide(&[1, 2]), edges: vec![1, 1], ..Default::default() };
    is_misaligned(Kind::CountEnds(proto::EndCounts { edges: vec![1], ..ends() }));
    is_misaligned(Kind::CountEnds(proto::EndCounts { loop_rows: vec![1], ..ends() }));
    is_misaligned(Kind::CountEnds(proto::EndCounts { loop_rows: vec![2], loops: vec![1], ..ends() }));
    let column = |ends| proto::ValueColumn { ends, ..Default::default() };
    let (keys, items) = (vec![column(vec![0])], vec![column(vec![0, 0])]);
    is_misaligned(Kind::GroupVertices(proto::VertexGroups { keys, items, next: None }));
    let columns = vec![column(vec![0])];
    is_misaligned(Kind::ScanValues(proto::ScannedValues { guis: wide(&[1, 2]), columns, next: None }));
    let columns = vec![column(vec![1])];
    is_misaligned(Kind::ScanValues(proto::ScannedValues { guis: wide(&[1]), columns, next: None }));
    is_misaligned(Kind::Expand(proto::Expansion {
        row: numbers(vec![1, 0, 0, 0]),
        neighbour: wide(&[2]),
        sid: wide(&[3]),
        ..Default::default()
    }));
    is_misaligned(Kind::ResolveEdges(proto::EdgeHandles { found: vec![true], edges: vec![] }));
    is_misaligned(Kind::ResolveVertices(proto::VertexHandles { found: vec![true], guis: wide(&[]) }));
}

#[test]
fn a_request_for_no_rows_is_refused() {
    let scan = r::ScanVertices { scan: VertexScan::default(), from: ScanCursor::default() };
    let message = AnyRequest::from(scan).encode(At::default()).unwrap();
    assert!(matches!(AnyRequest::decode(message), Err(Error::OutOfRange { field: "max_rows", .. })));
}

#[test]
fn what_cannot_be_made_is_refused() {
    let scan = || VertexScan { max_rows: 1, ..VertexScan::default() };
    let decoded = |items: Vec<GroupItem>, steps: usize, distinct| {
        let weight = Weight { steps: vec![Expand::all(Direction::Out); steps], distinct };
        let grouping = Grouping { keys: vec![], items, weight };
        let request = r::GroupVertices { scan: scan(), grouping, from: ScanCursor::default() };
        AnyRequest::decode(AnyRequest::from(request).encode(At::default()).unwrap())
    };
    assert!(decoded(vec![GroupItem::Rows], 2, true).is_ok());
    assert!(matches!(decoded(vec![], 0, false), Err(Error::Missing { field: "items", .. })));
    assert!(matches!(decoded(vec![GroupItem::Rows], 3, true), Err(Error::Invalid { .. })));
    assert!(matches!(decoded(vec![GroupItem::Sum(Token(1))], 1, false), Err(Error::Invalid { .. })));
    let of_scan = r::ScanValues { scan: scan(), keys: vec![Token(1)], from: ScanCursor::default() };
    let top = TopVertices { order: vec![(Token(2), false)], count: 1 };
    let message = AnyRequest::from(r::TopVertices { scan: of_scan, top }).encode(At::default()).unwrap();
    assert!(matches!(AnyRequest::decode(message), Err(Error::Invalid { .. })), "a key that is not read");
}

proptest! {
    #[test]
    fn any_request_comes_back(request in any_request(), version in any::<u64>(), epoch in any::<u64>()) {
        let at = At { version: Version(version), epoch: Epoch(epoch) };
        let bytes = request.encode(at).unwrap().encode_to_vec();
        let back = AnyRequest::decode(proto::AplRequest::decode(bytes.as_slice()).unwrap()).unwrap();
        // Debug text, because values of different width are equal.
        prop_assert_eq!(format!("{back:?}"), format!("{:?}", (at, request)));
    }

    #[test]
    fn any_answer_comes_back(answer in any_answer()) {
        let bytes = answer.encode().unwrap().encode_to_vec();
        let back = AnyAnswer::decode(proto::AplAnswer::decode(bytes.as_slice()).unwrap()).unwrap();
        prop_assert_eq!(format!("{back:?}"), format!("{answer:?}"));
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        if let Ok(message) = proto::AplRequest::decode(bytes.as_slice()) {
            let _ = AnyRequest::decode(message);
        }
        if let Ok(message) = proto::AplAnswer::decode(bytes.as_slice()) {
            let _ = AnyAnswer::decode(message);
        }
    }
}
