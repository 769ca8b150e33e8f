//! Tests of expressions, functions and aggregates, as tables of an expression and its value or error.

mod aggregates;
mod elements;
mod expressions;
mod graph;
mod gremlin;
mod interrupts;
mod laws;
mod numbers;
mod steps;
mod texts;

use crate::context::{Entropy, Limits, NeverInterrupted, Parameters};
use crate::value::Evaluator;
use crate::{Batch, Column, Context, View};
use graph::Graph;
use jiff::Timestamp;
use std::sync::Arc;
use tidegraph_apl::At;
use tidegraph_plan::{Arithmetic, Comparison, Expr, Function, Slot};
use tidegraph_types::{Map, Path, Str, Value};

/// A source of randomness that always returns the same bits.
struct Fixed;

impl Entropy for Fixed {
    fn random_u64(&self) -> u64 {
        1 << 63
    }
}

/// Start time of every request in these tests: 2026-11-21T12:00:00Z.
const NOW_SECOND: i64 = 1_795_262_400;

fn with_limits<R>(graph: &Graph, limits: Limits, test: impl FnOnce(&Context<'_>) -> R) -> R {
    let mut parameters = Parameters::new();
    parameters.insert(Str::from("p"), 7_i64.into());
    let view = View::new(&**graph, &**graph, At::default(), false);
    let now = Timestamp::from_second(NOW_SECOND).expect("in range");
    test(&Context::new(view, &parameters, limits, &NeverInterrupted, &Fixed, now))
}

fn with_context<R>(graph: &Graph, test: impl FnOnce(&Context<'_>) -> R) -> R {
    with_limits(graph, Limits { memory_bytes: 1 << 20, ..Limits::default() }, test)
}

/// Returns a batch of one row whose slots hold these values.
fn one_row(values: &[Value]) -> Batch {
    let mut batch = Batch::unbound(1, values.len());
    for (slot, value) in values.iter().enumerate() {
        batch.set(Slot(slot as u32), Column::from_values(vec![value.clone()]));
    }
    batch
}

fn outcome(result: crate::Result<Value>) -> Result<String, String> {
    result.map(|value| format!("{value:?}")).map_err(|error| error.to_string())
}

/// Evaluates an expression over one row, and over two equal rows as a column. Both results must agree.
fn eval_in(graph: &Graph, row: &[Value], expr: &Expr) -> crate::Result<Value> {
    with_context(graph, |ctx| {
        let batch = one_row(row);
        let single = Evaluator::prepare(&[expr], &batch, ctx).and_then(|prepared| prepared.eval(0, 0));
        let double = batch.gather(&[0, 0]);
        let column = Evaluator::prepare(&[expr], &double, ctx).and_then(|prepared| prepared.eval_column(0));
        assert_eq!(
            outcome(column.map(|column| column.get(1))),
            outcome(match &single {
                Ok(value) => Ok(value.clone()),
                Err(error) => Err(crate::Error::Plan(error.to_string())),
            })
            .map_err(|text| text.trim_start_matches("the plan cannot be run: ").to_owned()),
            "row by row and as a column: {expr:?}"
        );
        assert_eq!(ctx.memory.used(), 0, "memory is given back: {expr:?}");
        single
    })
}

fn eval(expr: &Expr) -> crate::Result<Value> {
    eval_in(&Graph::default(), &[], expr)
}

/// Checks a table. Values must have the same type and width; errors must have the same text.
fn check(table: Vec<(Expr, Result<Value, &str>)>) {
    check_in(&Graph::default(), &[], table);
}

fn check_in(graph: &Graph, row: &[Value], table: Vec<(Expr, Result<Value, &str>)>) {
    for (at, (expr, expected)) in table.into_iter().enumerate() {
        let expected = expected.map(|value| format!("{value:?}")).map_err(str::to_owned);
        assert_eq!(outcome(eval_in(graph, row, &expr)), expected, "case {at}: {expr:?}");
    }
}

// ---- constructors

fn e(value: impl Into<Value>) -> Expr {
    Expr::Literal(value.into())
}

fn l(value: i64) -> Expr {
    e(value)
}

fn s(text: &str) -> Expr {
    e(text)
}

fn null() -> Expr {
    e(Value::Null)
}

fn unbound() -> Expr {
    e(Value::Unbound)
}

fn slot(number: u32) -> Expr {
    Expr::Slot(Slot(number))
}

fn call<const N: usize>(function: Function, args: [Expr; N]) -> Expr {
    Expr::Call(function, args.into())
}

fn math(operator: Arithmetic, a: impl Into<Value>, b: impl Into<Value>) -> Expr {
    Expr::Arithmetic(operator, Box::new(e(a)), Box::new(e(b)))
}

fn cmp(comparison: Comparison, a: Expr, b: Expr) -> Expr {
    Expr::compare(comparison, a, b)
}

fn property(base: Expr, key: &str) -> Expr {
    Expr::Property(Box::new(base), key.into())
}

fn values<const N: usize>(values: [Value; N]) -> Value {
    Value::list(values.into())
}

fn longs<const N: usize>(numbers: [i64; N]) -> Value {
    Value::list(numbers.into_iter().map(Value::Long).collect())
}

fn texts<const N: usize>(texts: [&str; N]) -> Value {
    Value::list(texts.into_iter().map(Value::from).collect())
}

fn set<const N: usize>(values: [Value; N]) -> Value {
    Value::Set(Arc::new(values.into()))
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::map(entries.into_iter().map(|(key, value)| (key.into(), value)).collect::<Map>())
}

fn entry(key: impl Into<Value>, value: impl Into<Value>) -> Value {
    Value::Entry(Arc::new((key.into(), value.into())))
}

fn path<const N: usize>(objects: [Value; N], labels: &[&[&str]]) -> Value {
    let labels = labels.iter().map(|of| of.iter().map(|label| Str::from(*label)).collect()).collect();
    Value::Path(Arc::new(Path { objects: objects.into(), labels }))
}
