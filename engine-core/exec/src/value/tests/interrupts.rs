//! Work on long values that a deadline ends in the middle.

use super::*;
use crate::context::{Interrupt, Stop};
use crate::value::sorted_rows;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegraph_plan::Function as F;
use tidegraph_types::order;

/// Counts the checks, and stops the request after a number of them.
struct Counted {
    checks: AtomicU64,
    most: u64,
}

impl Counted {
    fn up_to(most: u64) -> Self {
        Self { checks: AtomicU64::new(0), most }
    }

    fn checks(&self) -> u64 {
        self.checks.load(Ordering::Relaxed)
    }
}

impl Interrupt for Counted {
    fn check(&self) -> Result<(), Stop> {
        if self.checks.fetch_add(1, Ordering::Relaxed) < self.most { Ok(()) } else { Err(Stop::Cancelled) }
    }

    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

fn interrupted_by<R>(interrupt: &Counted, test: impl FnOnce(&Context<'_>) -> R) -> R {
    let (graph, parameters) = (Graph::default(), Parameters::new());
    let view = View::new(&*graph, &*graph, At::default(), false);
    let now = Timestamp::from_second(NOW_SECOND).expect("in range");
    let limits = Limits { memory_bytes: 1 << 30, ..Limits::default() };
    test(&Context::new(view, &parameters, limits, interrupt, &Fixed, now))
}

fn eval_with(interrupt: &Counted, expr: &Expr) -> crate::Result<Value> {
    interrupted_by(interrupt, |ctx| {
        let batch = Batch::unbound(1, 0);
        Evaluator::prepare(&[expr], &batch, ctx).and_then(|prepared| prepared.eval(0, 0))
    })
}

/// As many different windows of text as bytes: the automaton makes a state for each byte.
fn many_states() -> (String, String) {
    let mut bits = 0x9E37_79B9_u32;
    let text = (0..20_000).map(|_| {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        if bits & 1 == 0 { 'a' } else { 'b' }
    });
    (text.collect(), "a[ab]{500}c".to_owned())
}

#[test]
fn an_expensive_pattern_on_a_long_text_is_ended() {
    let (text, pattern) = many_states();
    let expr = call(F::Regex, [s(&text), s(&pattern)]);
    let never = Counted::up_to(u64::MAX);
    assert_eq!(outcome(eval_with(&never, &expr)), Ok(format!("{:?}", Value::Bool(false))));
    // A check for each 64 bytes.
    assert!(never.checks() > 300, "{} checks", never.checks());
    let soon = Counted::up_to(10);
    let stopped = eval_with(&soon, &expr);
    assert!(matches!(stopped, Err(crate::Error::Stopped(Stop::Cancelled))), "{stopped:?}");
    assert_eq!(soon.checks(), 11);
}

#[test]
fn long_texts_match_as_short_ones_do() {
    let filling = "lorem ipsum, ".repeat(1_000);
    let patterns = [
        "marko",
        "^marko",
        "marko$",
        "^lorem",
        r"\Alorem",
        r"o\z",
        "(?i)MARKO",
        "m.rk[a-p]",
        r"\bmarko\b",
        r"\d{3}",
        "x*",
        "",
        "(?:ä|ö)",
        r"\p{Greek}",
        "(?m)^zeile$",
        r"[^\x00-\x7F]",
        "(a|b)*c",
    ];
    let ends = ["marko", " marko", "123", "zoë", "\nzeile\n", "ω", "ä", "abbac", ""];
    for end in ends {
        let text = format!("{filling}{end}");
        for pattern in patterns {
            for whole in [false, true] {
                let function = if whole { F::MatchesWhole } else { F::Regex };
                let source = if whole { format!(r"\A(?:{pattern})\z") } else { pattern.to_owned() };
                let expected = regex::Regex::new(&source).expect("a pattern").is_match(&text);
                let found = eval_with(&Counted::up_to(u64::MAX), &call(function, [s(&text), s(pattern)]));
                let expected = Ok(format!("{:?}", Value::Bool(expected)));
                assert_eq!(outcome(found), expected, "{pattern:?} on a text that ends with {end:?}");
            }
        }
    }
}

#[test]
fn a_word_boundary_on_a_long_text_has_a_limit() {
    let text = "é ".repeat(2 << 20);
    let expr = call(F::Regex, [s(&text), s(r"\b\w{20}\b")]);
    let refused = outcome(eval_with(&Counted::up_to(u64::MAX), &expr)).unwrap_err();
    assert!(refused.contains("takes no word boundary in a text of this length"), "{refused}");
}

#[test]
fn sorting_is_stable_and_ended() {
    let rows = 100_000;
    // Few different keys, so that many rows are equal.
    let key = |row: u32| row.wrapping_mul(2_654_435_761) >> 25;
    for value_bytes in [0, 100, 40_000, 64 << 20] {
        let never = Counted::up_to(u64::MAX);
        let sorted =
            interrupted_by(&never, |ctx| sorted_rows(ctx, rows, value_bytes, |a, b| key(a).cmp(&key(b))));
        let mut expected: Vec<u32> = (0..rows as u32).collect();
        expected.sort_by_key(|row| key(*row));
        assert!(sorted.expect("not stopped") == expected, "values of {value_bytes} bytes");
        let soon = Counted::up_to(never.checks() / 2);
        let stopped =
            interrupted_by(&soon, |ctx| sorted_rows(ctx, rows, value_bytes, |a, b| key(a).cmp(&key(b))));
        assert!(matches!(stopped, Err(crate::Error::Stopped(Stop::Cancelled))));
    }
}

#[test]
fn long_values_are_compared_one_pair_between_checks() {
    let list = |last: i64| Value::list((0..300_000).chain([last]).map(Value::Long).collect());
    let values: Vec<Value> = (0..16).map(|at| list(16 - at)).collect();
    let expr = call(F::OrderLocal, [e(Value::list(values)), e(false)]);
    let never = Counted::up_to(u64::MAX);
    let Ok(Value::List(sorted)) = eval_with(&never, &expr) else { panic!("a list is expected") };
    assert!(sorted.windows(2).all(|pair| order::gremlin_order(&pair[0], &pair[1]).is_lt()));
    let compared = never.checks();
    assert!(compared >= 32, "{compared} checks");
    let soon = Counted::up_to(compared - 20);
    assert!(matches!(eval_with(&soon, &expr), Err(crate::Error::Stopped(Stop::Cancelled))));
}
