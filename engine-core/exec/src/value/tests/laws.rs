//! Laws that hold for any expression and any values: evaluation never panics, and
//! comparisons and filters are coherent.

use super::*;
use proptest::prelude::*;
use tidegraph_plan::{Between, Function as F, Quantifier, TemporalType as T};
use tidegraph_types::point::{Crs, Point};
use tidegraph_types::temporal::{self, Duration, OffsetTime};
use tidegraph_types::{Edge, Gui, PropertyRef, Sid, Symbol, Temporal, Token};

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(0), Just(-1), -5_i64..5].prop_map(Value::Long),
        prop_oneof![Just(i32::MIN), Just(i32::MAX), -5_i32..5].prop_map(Value::Int),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(-0.0), Just(1e300), -3.0..3.0]
            .prop_map(Value::Double),
        prop_oneof![Just(f32::NAN), Just(f32::MAX), -3.0_f32..3.0].prop_map(Value::Float),
    ]
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        2 => Just(Value::Null),
        1 => Just(Value::Unbound),
        2 => any::<bool>().prop_map(Value::Bool),
        5 => number(),
        3 => prop_oneof![Just(""), Just("a"), Just("grün"), Just("2020-01-01"), Just("12"), Just("(")].prop_map(Value::from),
        1 => (0..4_u64).prop_map(|gui| Value::Vertex(Gui(gui))),
        1 => (0..3_u64, 0..3_u64).prop_map(|(source, target)| {
            Value::Edge(Edge { sid: Sid(7), source: Gui(source), target: Gui(target), label: Token(0) })
        }),
        1 => Just(Value::Symbol(Symbol::Id)),
        1 => (-400_000_000_000_i64..200_000_000_000).prop_map(|t| {
            Value::DateTime(Timestamp::from_second(t).unwrap_or(Timestamp::UNIX_EPOCH))
        }),
    ]
}

/// Temporal values, at the ends of their ranges too, and maps that name components.
fn times() -> impl Strategy<Value = Value> {
    let end = || prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-1), Just(0), -1000_i64..1000];
    let days = prop_oneof![Just(-4_371_587_i64), Just(2_932_896), -1000_i64..40_000];
    let nanos = prop_oneof![Just(0_i64), Just(86_399_999_999_999), 0..86_400_000_000_000_i64];
    let zone = prop::sample::select(vec!["Europe/Stockholm", "Pacific/Apia", "+18:00", "-18:00", "Z"]);
    let value = (0..8, days, nanos, zone, end(), end()).prop_map(|(kind, days, nanos, zone, a, b)| {
        let date = temporal::date_of_epoch_days(days).unwrap_or_default();
        let time = temporal::time_of_nanos(i128::from(nanos));
        let zone = temporal::parse_zone(zone).unwrap_or(jiff::tz::TimeZone::UTC);
        Value::Temporal(match kind {
            0 => Temporal::Date(date),
            1 => Temporal::LocalTime(time),
            2 => Temporal::Time(OffsetTime { time, offset: zone.to_offset(Timestamp::UNIX_EPOCH) }),
            3 => Temporal::LocalDateTime(date.to_datetime(time)),
            4 | 5 => match date.to_datetime(time).to_zoned(zone) {
                Ok(zoned) => return temporal::zoned(zoned),
                Err(_) => Temporal::Date(date),
            },
            6 => return Value::Point(Arc::new(Point::new(Crs::Wgs84, &[a as f64, 1.0]).unwrap())),
            _ => Temporal::Duration(Arc::new(Duration::new(a, b, a, i128::from(nanos)).unwrap_or_default())),
        })
    });
    let key = prop::sample::select(vec![
        "year",
        "month",
        "week",
        "dayOfWeek",
        "quarter",
        "dayOfQuarter",
        "ordinalDay",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "nanosecond",
        "epochSeconds",
        "epochMillis",
        "years",
        "months",
        "days",
        "seconds",
        "nanoseconds",
        "x",
        "y",
        "longitude",
        "latitude",
        "date",
        "time",
        "timezone",
        "day",
        "year",
    ]);
    let entry = (key, prop_oneof![4 => end().prop_map(Value::Long), 1 => Just(Value::Double(0.5))]);
    let map = prop::collection::vec(entry, 0..4).prop_map(|entries| {
        Value::map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
    });
    let text = prop::sample::select(vec![
        "2015-07-21T21:40:32.142+0100",
        "2015-W30-2",
        "P1Y-2DT3.5S",
        "21:40Z",
        "week",
        "millennium",
        "hour",
        "+01:00",
        "Europe/Stockholm",
    ]);
    prop_oneof![4 => value, 2 => map, 1 => text.prop_map(Value::from)]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![5 => scalar(), 3 => times()].prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::list),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|v| Value::Set(Arc::new(v))),
            prop::collection::vec((scalar(), inner.clone()), 0..4)
                .prop_map(|pairs| Value::map(pairs.into_iter().collect())),
            (inner.clone(), inner.clone()).prop_map(|pair| Value::Entry(Arc::new(pair))),
            (inner.clone(), inner.clone()).prop_map(|(owner, value)| {
                Value::Property(Arc::new(PropertyRef { owner, key: "k".into(), value, nth: 0 }))
            }),
            prop::collection::vec(inner, 0..4)
                .prop_map(|objects| Value::Path(Arc::new(Path { objects, labels: vec![vec!["a".into()]] }))),
        ]
    })
}

const FUNCTIONS: &[F] = &[
    F::Id,
    F::Labels,
    F::Type,
    F::Label,
    F::Keys,
    F::PropertyMap,
    F::PropertyValues,
    F::Properties,
    F::ValueMap,
    F::ElementMap,
    F::GremlinPropertyMap,
    F::PropertyKey,
    F::PropertyValue,
    F::StartNode,
    F::EndNode,
    F::OtherNode,
    F::HasProperty,
    F::RequireNotNull,
    F::Nodes,
    F::Relationships,
    F::Length,
    F::PathAppend,
    F::PathLabel,
    F::PathIsSimple,
    F::PathIsSimpleOrCycle,
    F::PathPart,
    F::MakeTree,
    F::MakeGraph,
    F::MakePath,
    F::PathSelectAll,
    F::MapGet,
    F::MapKeys,
    F::MapValues,
    F::MakeMap,
    F::Unfold,
    F::StartsWith,
    F::EndsWith,
    F::Contains,
    F::Regex,
    F::MatchesWhole,
    F::CountLocal,
    F::SumLocal,
    F::MinLocal,
    F::MaxLocal,
    F::MeanLocal,
    F::DedupLocal,
    F::RangeLocal,
    F::TailLocal,
    F::OrderLocal,
    F::Coalesce,
    F::Size,
    F::Head,
    F::Last,
    F::ListTail,
    F::Reverse,
    F::Range,
    F::ToInteger,
    F::ToFloat,
    F::ToText,
    F::ToBoolean,
    F::Abs,
    F::Ceil,
    F::Floor,
    F::Round,
    F::Sign,
    F::Sqrt,
    F::Exp,
    F::Log,
    F::Log10,
    F::Sin,
    F::Cos,
    F::Tan,
    F::Asin,
    F::Acos,
    F::Atan,
    F::Atan2,
    F::Degrees,
    F::Radians,
    F::Pi,
    F::Euler,
    F::Rand,
    F::Substring,
    F::Left,
    F::Right,
    F::Trim,
    F::LTrim,
    F::RTrim,
    F::ToLower,
    F::ToUpper,
    F::Replace,
    F::Split,
    F::Join,
    F::TextIndexOf,
    F::RemoveKey,
    F::MergeMaps,
    F::ToSet,
    F::Subtract,
    F::Intersect,
    F::SortBy,
    F::RandomUuid,
    F::MakeUuid,
    F::EpochMillis,
    F::Year,
    F::Month,
    F::Day,
    F::Timestamp,
    F::Temporal(T::Date),
    F::Temporal(T::LocalTime),
    F::Temporal(T::Time),
    F::Temporal(T::LocalDateTime),
    F::Temporal(T::DateTime),
    F::Temporal(T::Duration),
    F::Now(T::Time),
    F::Truncate(T::Date),
    F::Truncate(T::Time),
    F::Truncate(T::DateTime),
    F::Between(Between::Parts),
    F::Between(Between::Days),
    F::Between(Between::Seconds),
    F::FromEpoch,
    F::FromEpochMillis,
    F::Point,
    F::Distance,
    F::WithinBox,
];

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        6 => value().prop_map(Expr::Literal),
        4 => (0..6_u32).prop_map(slot),
        1 => Just(Expr::Parameter("p".into())),
        1 => Just(Expr::Parameter("missing".into())),
        1 => (0..6_u32).prop_map(|n| Expr::IsBound(Slot(n))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let many = || prop::collection::vec(inner.clone(), 0..4);
        let comparison = prop::sample::select(vec![
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::LessOrEqual,
            Comparison::Greater,
            Comparison::GreaterOrEqual,
        ]);
        let operator = prop::sample::select(vec![
            Arithmetic::Add,
            Arithmetic::Subtract,
            Arithmetic::Multiply,
            Arithmetic::Divide,
            Arithmetic::Modulo,
            Arithmetic::Power,
        ]);
        let quantifier = prop::sample::select(vec![
            Quantifier::All,
            Quantifier::Any,
            Quantifier::None,
            Quantifier::Single,
        ]);
        prop_oneof![
            boxed().prop_map(|base| Expr::Property(base, "age".into())),
            (boxed(), boxed()).prop_map(|(a, b)| Expr::Index(a, b)),
            (boxed(), prop::option::of(boxed()), prop::option::of(boxed()))
                .prop_map(|(a, b, c)| Expr::Slice(a, b, c)),
            many().prop_map(Expr::And),
            many().prop_map(Expr::Or),
            (boxed(), boxed()).prop_map(|(a, b)| Expr::Xor(a, b)),
            boxed().prop_map(Expr::Not),
            boxed().prop_map(Expr::IsNull),
            boxed().prop_map(Expr::Negate),
            (comparison, boxed(), boxed()).prop_map(|(c, a, b)| Expr::Compare(c, a, b)),
            (boxed(), boxed()).prop_map(|(a, b)| Expr::In(a, b)),
            (operator, boxed(), boxed()).prop_map(|(o, a, b)| Expr::Arithmetic(o, a, b)),
            boxed().prop_map(|a| Expr::HasLabels(a, vec!["Person".into()])),
            boxed().prop_map(|a| Expr::HasAnyLabel(a, vec!["Person".into()])),
            many().prop_map(Expr::List),
            many().prop_map(|all| Expr::Map(all.into_iter().map(|e| ("a".into(), e)).collect())),
            (boxed(), boxed(), boxed())
                .prop_map(|(a, b, c)| Expr::Case { branches: vec![(*a, *b)], otherwise: c }),
            (boxed(), prop::option::of(boxed()), prop::option::of(boxed())).prop_map(
                |(list, filter, map)| { Expr::Comprehension { variable: Slot(4), list, filter, map } }
            ),
            (quantifier, boxed(), boxed()).prop_map(|(quantifier, list, predicate)| {
                Expr::Quantified { quantifier, variable: Slot(4), list, predicate }
            }),
            (boxed(), boxed(), boxed()).prop_map(|(start, list, step)| Expr::Reduce {
                accumulator: Slot(5),
                start,
                variable: Slot(4),
                list,
                step,
            }),
            (prop::sample::select(FUNCTIONS), many()).prop_map(|(f, args)| Expr::Call(f, args)),
        ]
    })
}

fn sample() -> Graph {
    let mut graph = Graph::default();
    graph.edge((7, "e7"), (1, 2), "knows", &[("age", 3.into())]);
    graph.vertex(1, "anna", &["Person"], &[("age", 30.into())]);
    graph.vertex(2, "bert", &["Person", "Robot"], &[("age", 1.into()), ("age", 2.into())]);
    graph
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    /// Every expression gives a value or an error, the same by row and by column, and releases its memory.
    #[test]
    fn nothing_panics(expr in expr(), row in prop::collection::vec(value(), 4)) {
        let _ = eval_in(&sample(), &row, &expr);
    }

    /// No function panics when it is called with a valid number of arguments.
    #[test]
    fn no_function_panics(args in prop::collection::vec(value(), 3), at in 0..FUNCTIONS.len()) {
        for count in 0..=args.len() {
            let literals = args[..count].iter().cloned().map(Expr::Literal).collect();
            let _ = eval_in(&sample(), &[], &Expr::Call(FUNCTIONS[at], literals));
        }
    }

    /// A filter keeps exactly the rows in which the predicate is true.
    #[test]
    fn filters_agree_with_values(
        rows in prop::collection::vec(scalar(), 1..8),
        comparison in prop::sample::select(vec![Comparison::Equal, Comparison::NotEqual, Comparison::Less, Comparison::GreaterOrEqual]),
        constant in scalar(),
        flip in any::<bool>(),
    ) {
        let value = property(Expr::Map(vec![("age".into(), slot(0))]), "age");
        let side = if flip { (e(constant), value) } else { (value, e(constant)) };
        let test = cmp(comparison, side.0, side.1);
        with_context(&sample(), |ctx| {
            let mut batch = Batch::unbound(rows.len(), 1);
            batch.set(Slot(0), Column::from_values(rows));
            let prepared = Evaluator::prepare(&[&test], &batch, ctx).expect("prepares");
            let kept = prepared.eval_filter(0).expect("computes");
            for row in 0..batch.len {
                let value = prepared.eval(0, row).expect("computes");
                assert_eq!(kept.contains(&(row as u32)), matches!(value, Value::Bool(true)));
            }
        });
    }

    /// `=` is symmetric, `<` and `>` mirror each other, `<>` is the opposite of `=`,
    /// and `<=` holds when `<` or `=` does.
    #[test]
    fn comparisons_are_coherent(a in value(), b in value()) {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        let compare = |comparison, a: &Value, b: &Value| {
            with_context(&Graph::default(), |ctx| {
                crate::value::compare::compare(ctx, comparison, a, b).expect("nothing stops it")
            })
        };
        prop_assert_eq!(compare(Equal, &a, &b), compare(Equal, &b, &a));
        prop_assert_eq!(compare(NotEqual, &a, &b), compare(Equal, &a, &b).map(|equal| !equal));
        prop_assert_eq!(compare(Less, &a, &b), compare(Greater, &b, &a));
        prop_assert_eq!(compare(LessOrEqual, &a, &b), compare(GreaterOrEqual, &b, &a));
        if compare(Less, &a, &b) == Some(true) {
            prop_assert_eq!(compare(LessOrEqual, &a, &b), Some(true));
            prop_assert_ne!(compare(Equal, &a, &b), Some(true));
            prop_assert_eq!(compare(Greater, &a, &b), Some(false));
        }
    }
}
