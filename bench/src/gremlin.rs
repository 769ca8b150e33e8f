//! Traversals whose cost a model of traversers decides: repeats beside the same steps written out, the path recipe, searches, and
//! the time from a text to a plan.
//!
//! The repeats and the recipe run on the air routes, whose CSV files (dialect Gremlin) `TIDEGRAPH_AIR_ROUTES` names;
//! `npm run bench -- gremlin` installs them. The searches run on the social graph of the workload `pokec`.

use super::Flags;
use super::driver::median;
use super::load::load_embedded;
use super::report::{Figure, Report};
use anyhow::Context;
use rand::Rng;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tidegraph_engine::{Database, Language, Options, Parameters, Query};
use tidegraph_types::Value;

const REPEATED: &str = "g.V().repeat(out()).times(5).count()";
const WRITTEN_OUT: &str = "g.V().out().out().out().out().out().count()";
const RECIPE: &str =
    "g.V().has('code','AUS').repeat(out().simplePath()).until(has('code','AGR')).limit(1).path()";
const WALKED: &str = "g.V(id0).repeat(both()).times(3).dedup().count()";
/// Walks of openCypher repeat no edge, and those of the traversal have three steps: so the vertices of three steps and fewer are
/// at least as many.
const SEARCHED: &str = "MATCH (a)-[*1..3]-(b) WHERE id(a) = $id0 RETURN count(DISTINCT b)";

/// Runs the workload.
pub fn run(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let routes = std::env::var_os("TIDEGRAPH_AIR_ROUTES").map(PathBuf::from);
    let routes =
        routes.context("TIDEGRAPH_AIR_ROUTES names no folder: start this with npm run bench -- gremlin")?;
    let database = Database::open(Options::default())?;
    load_embedded(&database, &routes)?;
    report.parameter("air routes, vertices", database.status().vertices);
    report.parameter("air routes, edges", database.status().edges);
    repeats(flags, report, &database)?;
    plans(flags, report, &database)?;
    searches(flags, report)
}

/// Returns the median time of a query in milliseconds, and its last rows.
fn time(database: &Database, flags: &Flags, query: &Query<'_>) -> anyhow::Result<(f64, Vec<Vec<Value>>)> {
    let (mut times, mut rows) = (vec![], vec![]);
    for _ in 0..2 * flags.rounds() + 1 {
        let started = Instant::now();
        rows = database.query(query)?.rows;
        times.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok((median(times).unwrap_or(f64::NAN), rows))
}

fn gremlin<'a>(text: &'a str, parameters: &'a Parameters) -> Query<'a> {
    Query::new(Language::Gremlin, text, parameters)
}

fn repeats(flags: &Flags, report: &mut Report, database: &Database) -> anyhow::Result<()> {
    let none = Parameters::default();
    let (repeated, count) = time(database, flags, &gremlin(REPEATED, &none))?;
    let (written_out, same) = time(database, flags, &gremlin(WRITTEN_OUT, &none))?;
    anyhow::ensure!(count == same, "{REPEATED} counts {count:?}, {WRITTEN_OUT} {same:?}");
    report.add(Figure::cost("repeat(out()).times(5).count()", "ms", repeated));
    report.add(Figure::cost("the same, written out", "ms", written_out));
    report.add(Figure::cost("repeated / written out", "times", repeated / written_out).target(2.0));
    let (recipe, paths) = time(database, flags, &gremlin(RECIPE, &none))?;
    anyhow::ensure!(paths.len() == 1, "{RECIPE} has {} paths", paths.len());
    report.add(Figure::cost("path from AUS to AGR", "ms", recipe).target(100.0));
    Ok(())
}

/// Measures short traversals that find no vertex, so that little but the plan is left: with texts that are new, and with one that
/// is known.
fn plans(flags: &Flags, report: &mut Report, database: &Database) -> anyhow::Result<()> {
    let none = Parameters::default();
    let times = if flags.quick { 200 } else { 5_000 };
    let ask = |text: &str| -> anyhow::Result<f64> {
        let started = Instant::now();
        database.query(&gremlin(text, &none))?;
        Ok(started.elapsed().as_secs_f64() * 1e6)
    };
    let text =
        |n: usize| format!("g.V('nobody{n}').out('route').has('country', 'SE').values('code').limit(3)");
    let known = text(0);
    let (mut fresh, mut cached) = (vec![], vec![]);
    for n in 1..=times {
        fresh.push(ask(&text(n))?);
        cached.push(ask(&known)?);
    }
    let of = |times: Vec<f64>| median(times).unwrap_or(f64::NAN);
    report.add(Figure::cost("a traversal with a new text", "us", of(fresh)).target(50.0));
    report.add(Figure::cost("a traversal with a known text", "us", of(cached)).target(10.0));
    Ok(())
}

fn searches(flags: &Flags, report: &mut Report) -> anyhow::Result<()> {
    let scale = flags.scale(18, 12);
    report.parameter("social graph, scale", scale);
    let files = tempfile::tempdir()?;
    crate::generated::social(scale, flags.seed, files.path())?;
    let database: Arc<Database> = Database::open(Options::default())?;
    load_embedded(&database, files.path())?;
    let none = Parameters::default();
    let rows = database.query(&gremlin("g.V().id().order()", &none))?.rows;
    let ids: Vec<Value> = rows.into_iter().flatten().collect();
    let mut random = super::driver::random(flags.seed);
    let (mut walked, mut searched) = (vec![], vec![]);
    for _ in 0..if flags.quick { 5 } else { 50 } {
        let start = ids[random.random_range(0..ids.len())].clone();
        let parameters: Parameters = [("id0".into(), start)].into_iter().collect();
        walked.push(time(&database, flags, &gremlin(WALKED, &parameters))?.0);
        let query = Query::new(Language::OpenCypher, SEARCHED, &parameters);
        searched.push(time(&database, flags, &query)?.0);
    }
    let of = |times: Vec<f64>| median(times).unwrap_or(f64::NAN);
    let (walked, searched) = (of(walked), of(searched));
    report.add(Figure::cost("repeat(both()).times(3).dedup().count()", "ms", walked));
    report.add(Figure::cost("the engine's search of three steps", "ms", searched));
    report.add(Figure::cost("repeated / searched", "times", walked / searched).target(2.0));
    Ok(())
}
