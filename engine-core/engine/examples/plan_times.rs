//! Prints how long each part of planning takes, in milliseconds, for texts that are long in one way each.
//!
//! Run it with `cargo run --release -p tidegraph-engine --example plan_times`.

use std::error::Error;
use std::ops::Range;
use std::time::Duration;
use tidegraph_apl::{Catalog, Statistics};
use tidegraph_plan::passes::{Knowledge, optimize};
use tidegraph_plan::{FrontEndError, Limits, Plan};
use tidegraph_platform::{Clock, RealClock};
use tidegraph_types::{Str, Token};

/// The dictionary of an empty graph.
struct NoNames;

impl Catalog for NoNames {
    fn token(&self, _: &str) -> Option<Token> {
        None
    }

    fn name(&self, _: Token) -> Str {
        Str::default()
    }

    fn intern(&self, _: &[Str]) -> Result<Vec<Token>, tidegraph_apl::Error> {
        Ok(vec![])
    }

    fn allocate_sids(&self, _: u64) -> Result<Range<u64>, tidegraph_apl::Error> {
        Ok(0..0)
    }
}

type Compile = fn(&str) -> Result<Plan, FrontEndError>;

fn texts() -> Vec<(&'static str, Compile, String)> {
    let items = |count: usize, item: &dyn Fn(usize) -> String, between: &str| {
        (0..count).map(item).collect::<Vec<_>>().join(between)
    };
    let columns = items(20_000, &|n| format!("{n} AS c{n}"), ", ");
    let nodes = items(1_000, &|n| format!("(n{n})"), ", ");
    let tests = items(1_000, &|n| format!("n{n}.x = {n}"), " AND ");
    let cypher: Compile = tidegraph_opencypher::compile;
    vec![
        ("100 hops", cypher, format!("MATCH (a){} RETURN a", "-->()".repeat(100))),
        ("1,000 hops", cypher, format!("MATCH (a){} RETURN a", "-->()".repeat(1_000))),
        (
            "a star of 1,000",
            cypher,
            format!("MATCH (a) MATCH {} RETURN a", vec!["(a)-->()"; 1_000].join(", ")),
        ),
        ("1,000 tested vertices", cypher, format!("MATCH {nodes} WHERE {tests} RETURN 1")),
        ("2,000 WITH", cypher, format!("{}RETURN x", "WITH 1 + 1 AS x ".repeat(2_000))),
        ("20,000 columns", cypher, format!("RETURN {columns}")),
        ("2,000 steps", tidegraph_gremlin::compile, format!("g.V(){}", ".out()".repeat(1_990))),
    ]
}

fn main() -> Result<(), Box<dyn Error>> {
    // As much as the database has for a query: passes walk plans by recursion.
    stacker::grow(64 << 20, print_times)
}

fn print_times() -> Result<(), Box<dyn Error>> {
    let clock = RealClock::new();
    let ms = |from: Duration| (clock.now() - from).as_secs_f64() * 1e3;
    let (statistics, limits) = (Statistics::default(), Limits::none());
    let knowledge = Knowledge {
        statistics: &statistics,
        catalog: &NoNames,
        instances: None,
        lessons: None,
        limits: &limits,
        is_far: false,
    };
    for (name, compile, text) in texts() {
        let begun = clock.now();
        let lowered = compile(&text)?;
        let mut line = format!("{name}: front end {:.1}", ms(begun));
        let mut before = clock.now();
        optimize(lowered, &knowledge, |pass, _| {
            line += &format!(", {pass} {:.1}", ms(before));
            before = clock.now();
        })?;
        println!("{line}");
    }
    Ok(())
}
