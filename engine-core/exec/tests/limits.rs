//! Limits, interruption, parameters and errors of whole requests.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use support::plans::*;
use support::{Counting, Graph, execute, try_run};
use tidegraph_apl::At;
use tidegraph_exec::{
    Context, Error, Execution, Interrupt, Limits, NeverInterrupted, Parameters, Stop, View,
};
use tidegraph_plan::{Expr, MatchPattern, Op, Slot};
use tidegraph_types::{Direction, ErrorCode, Value};

/// Stops the request after this many checks.
struct After(AtomicU64, Stop);

impl Interrupt for After {
    fn check(&self) -> Result<(), Stop> {
        match self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            Ok(_) => Ok(()),
            Err(_) => Err(self.1),
        }
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

fn clique(size: usize) -> Graph {
    let mut g = Graph::new();
    for i in 0..size {
        g.vertex(&format!("v{i}"), &["V"], &[]);
    }
    for i in 0..size {
        for j in 0..size {
            g.edge(&format!("v{i}"), "E", &format!("v{j}"));
        }
    }
    g
}

fn numbers(count: i32) -> Op {
    let many: Vec<i32> = (0..count).collect();
    start().unwind(list(&many), 0)
}

/// Returns a plan for every operator that buffers.
fn greedy() -> Vec<Op> {
    let big = || numbers(50).unwind(list(&(0..1000).collect::<Vec<_>>()), 1);
    vec![
        big().sort(s(1), false),
        big().eager(),
        big().tail(50_000),
        big().distinct(vec![s(0), s(1)]),
        big().aggregate(vec![(2, s(0)), (3, s(1))], vec![]),
        big().aggregate(vec![], vec![item(2, tidegraph_plan::AggregateKind::Collect, vec![s(1)])]),
        numbers(50).union(vec![start().unwind(list(&(0..1000).collect::<Vec<_>>()), 1), start()]),
        big().create(2, None, &["V"], vec![]),
    ]
}

#[test]
fn whatever_buffers_is_stopped_at_the_memory_limit() {
    let g = Graph::new();
    let limits = Limits { memory_bytes: 300_000, ..Limits::default() };
    for op in greedy() {
        let plan = plan(op, &[]);
        let error = execute(&g, &plan, &Parameters::default(), limits, &NeverInterrupted).unwrap_err();
        assert!(error.to_string().contains("over its limit of 300000:"), "{error}");
        assert_eq!(error.code(), ErrorCode::QueryLimitExceeded);
        assert!(try_run(&g, &plan).is_ok());
    }
}

#[test]
fn memory_is_given_back_when_a_plan_has_ended() {
    let g = clique(4);
    let mut plans: Vec<Op> = greedy();
    plans.pop();
    plans.push(start().scan(0, &["V"]).var(0, Direction::Out, 1, Some(4), 1, 2));
    plans.push(start().scan(0, &["V"]).scan(1, &["V"]));
    for op in plans {
        let plan = plan(op, &[]);
        let view = View::new(&g, &g, At::default(), false);
        let (parameters, entropy) = (Parameters::default(), Counting::default());
        let time = jiff::Timestamp::UNIX_EPOCH;
        let ctx = Context::new(view, &parameters, Limits::default(), &NeverInterrupted, &entropy, time);
        let mut execution = Execution::new(&plan, ctx).unwrap();
        while execution.next_rows().unwrap().is_some() {}
        let used = execution.context().memory.used();
        // Memory of a distinct or a cached scan is held as long as the operator.
        assert!(used < 8_000_000 && execution.context().memory.peak() >= used, "{plan}");
        let lasting = plan.to_string().contains("distinct") || plan.to_string().contains("scan vertices $1");
        assert!(lasting || used == 0, "{used} bytes left after\n{plan}");
    }
}

const TOO_MANY_ROWS: &str =
    "the answer has more than 10 rows, its limit: filter or aggregate, limit the rows, or raise the limit";

#[test]
fn too_many_result_rows_are_refused() {
    let g = Graph::new();
    let limits = Limits { result_rows: 10, ..Limits::default() };
    let run =
        |rows| execute(&g, &plan(numbers(rows), &[0]), &Parameters::default(), limits, &NeverInterrupted);
    assert_eq!(run(10).unwrap().0.len(), 10);
    assert_eq!(run(11).unwrap_err().to_string(), TOO_MANY_ROWS);
}

/// Returns the bytes of rows with one column, without data that their values hold elsewhere.
fn row_bytes(rows: usize) -> u64 {
    (rows * (size_of::<Vec<Value>>() + size_of::<Value>())) as u64
}

#[test]
fn rows_of_the_answer_are_charged_though_no_operator_keeps_them() {
    let mut g = Graph::new();
    for i in 0..3_000 {
        g.vertex(&format!("v{i}"), &["V"], &[]);
    }
    let scan = || start().scan(0, &["V"]);
    let silent = plan(scan(), &[]);
    let constants = plan(scan().bind_let(1, Expr::Literal(7_i64.into())), &[1]);
    let vertices = plan(scan(), &[0]);
    let run = |plan, memory_bytes| {
        let limits = Limits { memory_bytes, ..Limits::default() };
        execute(&g, plan, &Parameters::default(), limits, &NeverInterrupted)
    };
    // The scan alone needs almost no memory.
    assert!(run(&silent, 20_000).is_ok());
    let needed = row_bytes(3_000);
    let (rows, summary) = run(&constants, needed).unwrap();
    assert_eq!((rows.len(), summary.peak_memory_bytes), (3_000, needed));
    assert_eq!(run(&constants, needed - 1).unwrap_err().code(), ErrorCode::QueryLimitExceeded);
    // The data of each vertex is charged too.
    let data = (3_000 * size_of::<tidegraph_types::VertexData>()) as u64;
    assert_eq!(run(&vertices, needed + data - 1).unwrap_err().code(), ErrorCode::QueryLimitExceeded);
    assert!(run(&vertices, 2 * (needed + data)).unwrap().1.peak_memory_bytes >= needed + data);
}

#[test]
fn data_of_elements_in_one_list_is_charged_before_all_of_it_is_read() {
    let mut g = Graph::new();
    for i in 0..40_000 {
        g.vertex(&format!("v{i}"), &[], &[]);
    }
    let op = start().scan(0, &[]);
    let op = op.aggregate(vec![], vec![item(1, tidegraph_plan::AggregateKind::Collect, vec![s(0)])]);
    let plan = plan(op, &[1]);
    // The limit has room for the list while it is collected and while the answer holds
    // it, but not for the data of its vertices.
    let limits = Limits { memory_bytes: 4_000_000, ..Limits::default() };
    let error = execute(&g, &plan, &Parameters::default(), limits, &NeverInterrupted).unwrap_err();
    let Error::Memory { held_bytes, asked_bytes, .. } = error else { panic!("{error}") };
    // The list fits. The request that fails is for one chunk of the vertices, not for all of them.
    let all = (40_000 * size_of::<tidegraph_types::VertexData>()) as u64;
    assert!(held_bytes > (40_000 * size_of::<Value>()) as u64, "{held_bytes}");
    assert!(asked_bytes < all / 2, "{asked_bytes} of {all}");
}

#[test]
fn a_long_query_is_stopped_wherever_it_is() {
    let g = clique(7);
    let scan = || start().scan(0, &["V"]);
    let forever = Op::Repeat {
        input: Box::new(scan()),
        body: Box::new(start().out(0, "", 1).bind_let(0, s(1)).distinct(vec![s(0), s(9)])),
        until: None,
        emit: None,
        times: None,
        times_before: false,
        loops: Slot(9),
    };
    let endless = [
        scan().var(0, Direction::Out, 1, None, 1, 2).count(3),
        forever,
        scan().scan(1, &[]).scan(2, &[]).scan(3, &[]).scan(4, &[]).scan(5, &[]).scan(6, &[]).count(7),
        scan().bind(start().var(0, Direction::Both, 1, None, 1, 2), 3, tidegraph_plan::BindKind::Count),
    ];
    for op in endless {
        for stop in [Stop::Cancelled, Stop::TimedOut { limit: Duration::from_secs(120) }] {
            let interrupt = After(AtomicU64::new(200), stop);
            let plan = plan(op.clone(), &[]);
            let error =
                execute(&g, &plan, &Parameters::default(), Limits::default(), &interrupt).unwrap_err();
            match stop {
                Stop::Cancelled => assert_eq!(error.code(), ErrorCode::Cancelled),
                Stop::TimedOut { .. } => {
                    assert_eq!(error.code(), ErrorCode::TimeLimitExceeded);
                    assert_eq!(error.to_string(), "the query ran longer than its limit of 120000 ms");
                }
            }
        }
    }
}

#[test]
fn parameters_are_used_and_missing_ones_named() {
    let g = Graph::new();
    let plan = plan(start().unwind(Expr::Parameter("xs".into()), 0).slice(None, None), &[0]);
    let parameters = Parameters::from_iter([("xs".into(), Value::list(vec![1.into(), 2.into()]))]);
    let (rows, _) = execute(&g, &plan, &parameters, Limits::default(), &NeverInterrupted).unwrap();
    assert_eq!(rows.len(), 2);
    let error = try_run(&g, &plan).unwrap_err();
    assert_eq!(error.code(), ErrorCode::MissingParameter);
    assert!(error.to_string().contains("xs"), "{error}");
}

#[test]
fn a_pattern_that_was_not_lowered_is_refused() {
    let op = Op::Match { input: Box::new(start()), pattern: MatchPattern::default() };
    let error = try_run(&Graph::new(), &plan(op, &[])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Internal);
}

#[test]
fn an_execution_can_move_to_another_thread() {
    fn is_send<T: Send>() {}
    is_send::<Execution<'static, 'static>>();
}
