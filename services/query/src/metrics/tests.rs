//! The events against the rules of CloudWatch's specification, and what they say against what was recorded.

use super::event::lines;
use super::recorder::{BUCKETS, Before, Buckets, LogRecorder, Measure};
use super::selection::{Dimension, Dimensions, NAMESPACE, SELECTED, WrongDimension};
use super::{PrometheusBuilder, beside};
use metrics::{HistogramFn, Key, counter, gauge, histogram, with_local_recorder};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegraph_platform::metric::{self, OpenConnection, Protocol, Queries, QueryOutcome};

/// The units of the specification.
const UNITS: [&str; 27] = [
    "Seconds",
    "Microseconds",
    "Milliseconds",
    "Bytes",
    "Kilobytes",
    "Megabytes",
    "Gigabytes",
    "Terabytes",
    "Bits",
    "Kilobits",
    "Megabits",
    "Gigabits",
    "Terabits",
    "Percent",
    "Count",
    "Bytes/Second",
    "Kilobytes/Second",
    "Megabytes/Second",
    "Gigabytes/Second",
    "Terabytes/Second",
    "Bits/Second",
    "Kilobits/Second",
    "Megabits/Second",
    "Gigabits/Second",
    "Terabits/Second",
    "Count/Second",
    "None",
];

/// The longest line that a write to a pipe never mixes with those of others (`PIPE_BUF`).
const PIPE_BUF: usize = 4096;

fn dimensions() -> Dimensions {
    let all = ["Deployment=people", "service=worker"].map(|text| text.parse().unwrap());
    Dimensions::new(all.to_vec()).unwrap()
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|name| (1..=255).contains(&name.len()))
}

/// Checks the target of a metric: a number, or at most 100 numbers with their counts.
fn check_values(target: &Value) {
    if target.is_number() {
        return;
    }
    let target = target.as_object().unwrap_or_else(|| panic!("{target} is no target of a metric"));
    assert_eq!(target.keys().collect::<Vec<_>>(), ["Values", "Counts"]);
    let list = |name: &str| target[name].as_array().unwrap().clone();
    let (values, counts) = (list("Values"), list("Counts"));
    assert!((1..=100).contains(&values.len()), "{} values", values.len());
    assert_eq!(values.len(), counts.len());
    assert!(values.iter().all(Value::is_f64), "{values:?}");
    assert!(counts.iter().all(|count| count.as_u64().is_some_and(|count| count > 0)), "{counts:?}");
}

/// Checks a line by the rules of the specification, and returns its object.
fn check(line: &str) -> Value {
    assert!(line.ends_with('\n') && line.matches('\n').count() == 1, "{line:?} is not one line");
    assert!(line.len() <= PIPE_BUF, "{} bytes", line.len());
    let event: Value = serde_json::from_str(line).unwrap();
    let about = event["_aws"].as_object().unwrap();
    assert!(about["Timestamp"].as_i64().is_some_and(|milliseconds| milliseconds > 1_500_000_000_000));
    for directive in about["CloudWatchMetrics"].as_array().unwrap() {
        assert!(is_name(&directive["Namespace"]));
        let sets = directive["Dimensions"].as_array().unwrap();
        assert!(!sets.is_empty());
        for set in sets {
            let set = set.as_array().unwrap();
            assert!(set.len() <= 30);
            for name in set {
                assert!(is_name(name), "{name}");
                let target = event[name.as_str().unwrap()].as_str().unwrap();
                assert!((1..=1024).contains(&target.len()), "{target:?}");
            }
        }
        let definitions = directive["Metrics"].as_array().unwrap();
        assert!((1..=100).contains(&definitions.len()));
        for definition in definitions {
            assert!(is_name(&definition["Name"]), "{definition}");
            assert!(UNITS.contains(&definition["Unit"].as_str().unwrap()), "{definition}");
            check_values(&event[definition["Name"].as_str().unwrap()]);
        }
    }
    event
}

/// Returns the metrics of the next events, by their names and the values of their last dimensions.
fn take(recorder: &LogRecorder, before: &mut Before) -> BTreeMap<String, Value> {
    let lines = lines(recorder.take(before), &dimensions(), 1_700_000_000_000);
    let mut metrics = BTreeMap::new();
    for event in lines.iter().map(|line| check(line)) {
        let directive = &event["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], NAMESPACE);
        let names = directive["Dimensions"][0].as_array().unwrap();
        assert_eq!(names[..2], [json!("Deployment"), json!("service")]);
        assert_eq!((&event["Deployment"], &event["service"]), (&json!("people"), &json!("worker")));
        let own: Vec<_> =
            names[2..].iter().map(|name| event[name.as_str().unwrap()].as_str().unwrap()).collect();
        for definition in directive["Metrics"].as_array().unwrap() {
            let name = definition["Name"].as_str().unwrap();
            let key = [&[name], own.as_slice()].concat().join(" ");
            assert_eq!(metrics.insert(key, event[name].clone()), None, "{name} is in one event");
        }
    }
    metrics
}

fn counts(values: &Value) -> u64 {
    values["Counts"].as_array().unwrap().iter().map(|count| count.as_u64().unwrap()).sum()
}

#[test]
fn every_selected_metric_is_in_events_that_keep_the_rules() {
    let (recorder, mut before) = (LogRecorder::new(), Before::default());
    let open = with_local_recorder(&recorder, || {
        for (status, count) in [(200, 3), (204, 1), (404, 2), (503, 1)] {
            for _ in 0..count {
                metric::http_request("people", "/openCypher".to_owned(), status, Duration::from_millis(2));
            }
        }
        let queries = Queries::new();
        queries.ended(QueryOutcome::Answered, Duration::from_micros(30));
        queries.ended(QueryOutcome::Answered, Duration::from_millis(250));
        queries.ended(QueryOutcome::Refused, Duration::ZERO);
        metric::query_slots(7, 2);
        metric::query_memory(1 << 20, 1 << 30, 5);
        metric::unauthenticated(Protocol::Bolt);
        // Not selected.
        metric::health("people", 12, 34, 56, true);
        [Protocol::Bolt, Protocol::Bolt, Protocol::WebSocket].map(OpenConnection::new)
    });
    let mut metrics = take(&recorder, &mut before);
    let seconds = metrics.remove("tidegraph_query_duration_seconds").unwrap();
    assert_eq!(counts(&seconds), 3);
    let expected = [
        ("tidegraph_authentication_failures_total", json!(1)),
        ("tidegraph_connections bolt", json!(2.0)),
        ("tidegraph_connections websocket", json!(1.0)),
        ("tidegraph_http_requests_total 2xx", json!(4)),
        ("tidegraph_http_requests_total 4xx", json!(2)),
        ("tidegraph_http_requests_total 5xx", json!(1)),
        ("tidegraph_queries_running", json!(7.0)),
        ("tidegraph_queries_total answered", json!(2)),
        ("tidegraph_queries_total failed", json!(0)),
        ("tidegraph_queries_total refused", json!(1)),
        ("tidegraph_queries_total unavailable", json!(0)),
        ("tidegraph_queries_waiting", json!(2.0)),
        ("tidegraph_query_memory_bytes", json!(1_048_576.0)),
        ("tidegraph_query_memory_limit_bytes", json!(1_073_741_824.0)),
        ("tidegraph_query_memory_refusals_total", json!(5)),
    ];
    assert_eq!(metrics, expected.map(|(name, value)| (name.to_owned(), value)).into());
    for selected in SELECTED {
        let is_written = |name: &String| name.split(' ').next() == Some(selected.name);
        let is_histogram = selected.name == metric::QUERY_SECONDS;
        assert!(is_histogram || metrics.keys().any(is_written), "{}", selected.name);
    }
    with_local_recorder(&recorder, || drop(open));
    assert_eq!(take(&recorder, &mut before)["tidegraph_connections bolt"], json!(0.0));
}

#[test]
fn counters_say_what_they_grew_and_histograms_start_anew() {
    let (recorder, mut before) = (LogRecorder::new(), Before::default());
    assert_eq!(take(&recorder, &mut before), BTreeMap::new());
    let record = |refusals: u64, took: Option<Duration>| {
        with_local_recorder(&recorder, || {
            metric::query_memory(0, 100, refusals);
            if let Some(took) = took {
                Queries::new().ended(QueryOutcome::Answered, took);
            }
        });
    };
    let mut seen = Vec::new();
    for (refusals, took) in [(2, Some(Duration::from_secs(1))), (2, None), (9, Some(Duration::from_secs(3)))]
    {
        record(refusals, took);
        let metrics = take(&recorder, &mut before);
        seen.push((
            metrics["tidegraph_query_memory_refusals_total"].as_u64().unwrap(),
            metrics.get("tidegraph_queries_total answered").and_then(Value::as_u64),
            metrics.get("tidegraph_query_duration_seconds").map(counts),
            metrics["tidegraph_query_memory_limit_bytes"].as_f64().unwrap(),
        ));
    }
    assert_eq!(seen, [(2, Some(1), Some(1), 100.0), (0, Some(0), None, 100.0), (7, Some(1), Some(1), 100.0)]);
}

#[test]
fn series_that_differ_in_other_labels_are_added_up() {
    let (recorder, mut before) = (LogRecorder::new(), Before::default());
    with_local_recorder(&recorder, || {
        for (graph, path, status) in
            [("a", "/gremlin", "200"), ("b", "/gremlin", "200"), ("b", "/status", "201"), ("b", "/x", "404")]
        {
            counter!(metric::HTTP_REQUESTS, "graph" => graph, "path" => path, "status" => status)
                .increment(1);
        }
        counter!("tidegraph_of_no_selection").increment(1);
        gauge!("tidegraph_of_no_selection").set(1.0);
        histogram!("tidegraph_of_no_selection").record(1.0);
        gauge!(metric::QUERY_MEMORY).set(f64::NAN);
    });
    let classes = [("2xx", 3), ("4xx", 1)];
    let expected = classes.map(|(class, count)| (format!("{} {class}", metric::HTTP_REQUESTS), json!(count)));
    assert_eq!(take(&recorder, &mut before), expected.into());
}

#[test]
fn a_histogram_has_at_most_100_values_that_are_near_those_recorded() {
    let buckets = Buckets::default();
    let recorder = LogRecorder::new();
    let mut values = Vec::new();
    let mut value = 0.000_01;
    while value < 120.0 {
        values.push(value);
        value *= 1.01;
    }
    with_local_recorder(&recorder, || {
        for value in &values {
            histogram!(metric::QUERY_SECONDS).record(*value);
            buckets.record(*value);
        }
    });
    assert!(values.len() > BUCKETS * 10);
    let metrics = take(&recorder, &mut Before::default());
    let written = &metrics[metric::QUERY_SECONDS];
    assert_eq!(counts(written), values.len() as u64);
    // In the order of the values: each stands for as many of those recorded as its count says.
    let list = |name: &str| written[name].as_array().unwrap().clone();
    let mut recorded = values.iter();
    for (near, count) in list("Values").iter().zip(list("Counts")) {
        let near = near.as_f64().unwrap();
        for value in recorded.by_ref().take(count.as_u64().unwrap() as usize) {
            assert!((near / value).ln().abs() < 0.09, "{near} stands for {value}");
        }
    }
    assert_eq!(recorded.next(), None);
}

#[test]
fn values_out_of_bounds_are_in_the_outermost_buckets() {
    let recorder = LogRecorder::new();
    with_local_recorder(&recorder, || {
        for value in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, 1e9, f64::INFINITY] {
            histogram!(metric::QUERY_SECONDS).record(value);
        }
    });
    let snapshot = recorder.take(&mut Before::default());
    let expected = Measure::Values((vec![0.000_01, 120.0], vec![4, 2]));
    assert_eq!(snapshot.get(&Key::from_name(metric::QUERY_SECONDS)), Some(&expected));
}

#[test]
fn both_recorders_get_everything() {
    let prometheus = PrometheusBuilder::new().build_recorder();
    let (handle, log) = (prometheus.handle(), LogRecorder::new());
    with_local_recorder(&beside(prometheus, log.clone()), || {
        metric::unauthenticated(Protocol::Http1);
        metric::plan_remade("made");
    });
    let text = handle.render();
    assert!(text.contains("tidegraph_authentication_failures_total{protocol=\"http/1.1\"} 1"), "{text}");
    assert!(text.contains("tidegraph_plans_remade_total{outcome=\"made\"} 1"), "{text}");
    let metrics = take(&log, &mut Before::default());
    assert_eq!(metrics, [(metric::UNAUTHENTICATED.to_owned(), json!(1))].into());
}

#[test]
fn wrong_dimensions_are_refused_by_name() {
    let parse = |text: &str| text.parse::<Dimension>();
    let long = "x".repeat(256);
    assert_eq!(parse("Deployment=a=b c"), Ok(Dimension { name: "Deployment".into(), value: "a=b c".into() }));
    assert_eq!(parse("Deployment"), Err(WrongDimension::Form("Deployment".into())));
    for name in ["", " ", ":x", "größe", &long] {
        assert_eq!(parse(&format!("{name}=x")), Err(WrongDimension::Name(name.into())));
    }
    for name in ["_aws", "class", "outcome", "protocol", metric::CONNECTIONS] {
        assert_eq!(parse(&format!("{name}=x")), Err(WrongDimension::Used(name.into())));
    }
    let long = "x".repeat(1025);
    for value in ["", " ", "a\nb", "größe", &long] {
        let wrong = WrongDimension::Value { name: "a".into(), value: value.into() };
        assert_eq!(parse(&format!("a={value}")), Err(wrong));
    }
    let named = |name: String| Dimension { name, value: "x".into() };
    let twice = ["a", "b", "a"].map(|name| named(name.into()));
    assert_eq!(Dimensions::new(twice.into()), Err(WrongDimension::Twice("a".into())));
    let many = |count: usize| Dimensions::new((0..count).map(|index| named(index.to_string())).collect());
    assert!(many(29).is_ok());
    assert_eq!(many(30), Err(WrongDimension::TooMany(30)));
}
