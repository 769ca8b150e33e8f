//! The optimiser on real queries: each query, its plan after each pass that changed it, and its rows on TinkerPop's
//! "modern" graph. Run with `INSTA_UPDATE=always` to rewrite the golden files (`snapshots/`).

mod support;

use std::fmt::Write;
use support::{modern, run};
use tidegraph_engine::{Database, Language};

fn explained(database: &Database, text: &str) -> String {
    let language = if text.starts_with("g.") { Language::Gremlin } else { Language::OpenCypher };
    let plan = database.explain(language, text).expect("a plan");
    let mut rows = run(database, text);
    // Rows have no order unless the query sorts them.
    if !text.contains("ORDER BY") && !text.contains("order()") {
        rows.sort();
    }
    let mut golden = format!("> {text}\n{plan}rows:\n");
    for row in rows {
        let _ = writeln!(golden, "  {row}");
    }
    golden
}

/// Runs each query on a new graph.
fn on_fresh_graphs(queries: &[&str]) -> String {
    queries.iter().map(|text| explained(&modern(), text)).collect::<Vec<_>>().join("\n")
}

macro_rules! golden {
    ($name:ident, [$($query:literal),* $(,)?]) => {
        #[test]
        fn $name() {
            insta::with_settings!({omit_expression => true, prepend_module_to_snapshot => true}, {
                insta::assert_snapshot!(stringify!($name), on_fresh_graphs(&[$($query),*]));
            });
        }
    };
}

golden!(
    filters_go_into_scans,
    [
        "MATCH (p:person) WHERE p.age > 28 AND p.age < 33 RETURN p.name",
        "MATCH (p:person {name: 'josh'}) RETURN p.age",
        "MATCH (p) WHERE p.name = 'lop' OR p.name IN ['josh', 'vadas'] RETURN p.name",
        "MATCH (p:person) WHERE p.name STARTS WITH 'j' AND p.age % 2 = 0 RETURN p.name",
        "MATCH (p:person) WHERE p.age <> 29 AND p.age IS NOT NULL RETURN p.name",
        "MATCH (a:person)-[k:knows]->(b) WHERE b.age > 30 AND k.weight >= 1.0 RETURN a.name, b.name",
        "MATCH (a:person) OPTIONAL MATCH (a)-[:created]->(s) WHERE s.lang = 'java' AND a.age > 30 RETURN a.name, s.name",
        "g.V().hasLabel('person').has('age', gt(28)).values('name')",
        "g.V().not(has('age')).values('name')",
    ]
);

golden!(
    projections_read_columns,
    [
        "MATCH (p:person) RETURN p.name, p.age",
        "MATCH (p:person) WITH p ORDER BY p.age RETURN p.name",
        "MATCH (p:person) WITH p.name AS name WHERE name > 'k' RETURN name",
        "MATCH (p:person)-[:created]->(s) RETURN p.name, s.name",
        "g.V().hasLabel('person').project('n', 'a').by('name').by('age')",
        "g.V().hasLabel('software').valueMap('name')",
    ]
);

golden!(
    lookups_replace_scans,
    [
        "MATCH (p) WHERE id(p) = '4' RETURN p.name",
        "MATCH (p:software) WHERE id(p) IN ['1', '3', '3', '9'] RETURN p.name",
        "MATCH (a)-[:created]->(b) WHERE id(b) = '3' RETURN a.name",
        "MATCH (a)-[r]-(b) WHERE id(a) = '1' AND id(b) = '4' RETURN type(r)",
        "UNWIND ['1', '2'] AS id MATCH (p) WHERE id(p) = id RETURN p.name",
        "g.V('1', '6').values('name')",
        "g.V().hasId('1').out('knows').values('name')",
        "g.E().hasLabel('knows').count()",
    ]
);

golden!(
    joins_start_where_few_rows_are,
    [
        "MATCH (a:person)-[:created]->(s:software {name: 'ripple'}) RETURN a.name",
        "MATCH (a:person)-[:knows]->(b:person)-[:created]->(s:software) RETURN a.name, b.name, s.name",
        "MATCH (a:person)-[:created]->(s)<-[:created]-(b:person) WHERE a.name < b.name RETURN a.name, b.name",
        "MATCH (a:person), (s:software) WHERE a.age > 33 RETURN a.name, s.name",
        "MATCH (a)-[:knows]->(b), (b)-[:created]->(s), (a)-[:created]->(s) RETURN a.name, b.name, s.name",
        "MATCH (a {name: 'marko'})-[*1..2]->(b) RETURN b.name",
        "MATCH p = shortestPath((a {name: 'vadas'})-[*..4]-(b {name: 'ripple'})) RETURN length(p)",
    ]
);

golden!(
    limits_and_top_rows,
    [
        "MATCH (p:person) RETURN p.name ORDER BY p.age DESC LIMIT 2",
        "MATCH (p:person) RETURN p.name ORDER BY p.name SKIP 1 LIMIT 2",
        "MATCH (a)-[r:created]->(b) WHERE id(a) = '4' RETURN b.name ORDER BY r.weight DESC LIMIT 1",
        "MATCH (p:person) WITH p ORDER BY p.age LIMIT 1 MATCH (p)<-[:knows]-(q) RETURN p.name, q.name",
        "g.V().hasLabel('person').order().by('age').limit(2).values('name')",
        "g.V().hasLabel('person').order().by('age', desc).tail(1).values('name')",
        "g.V().hasLabel('software').sample(2).count()",
    ]
);

golden!(
    aggregates,
    [
        "MATCH (p:person) RETURN count(*)",
        "MATCH (a:person)-[k:knows]->(b) RETURN count(k)",
        "MATCH (p:person) RETURN min(p.age), max(p.age), avg(p.age), count(DISTINCT p.age)",
        "MATCH (p:person)-[:created]->(s) RETURN s.name, count(DISTINCT p) AS makers ORDER BY makers DESC, s.name",
        "MATCH (p:person) WITH count(p) AS people MATCH (s:software) RETURN people, count(s)",
        "g.V().hasLabel('person').values('age').mean()",
        "g.V().groupCount().by(label)",
        "g.V().hasLabel('software').group().by('name').by(__.in('created').values('name').order().fold())",
    ]
);

golden!(
    walks_of_gremlin,
    [
        "g.V('1').out('knows').out('created').values('name')",
        "g.V('1').outE('knows').has('weight', gt(0.7)).inV().values('name')",
        "g.V('1').as('a').out('created').in('created').where(neq('a')).values('name')",
        "g.V('1').repeat(out()).times(2).values('name')",
        "g.V('1').repeat(out()).until(hasLabel('software')).path().by('name')",
        "g.V().where(out('created').count().is(gt(1))).values('name')",
        "g.V('4').union(out('created'), __.in('knows')).values('name')",
        "g.V().choose(hasLabel('person'), out('created'), identity()).dedup().values('name')",
        "g.V('1').as('a').out('knows').as('b').select('a', 'b').by('name')",
    ]
);

golden!(
    writes_wait_for_reads,
    [
        "CREATE (n:person {`~id`: '7', name: 'anna'}) RETURN n.name",
        "MATCH (p:person) SET p.age = p.age + 1 RETURN p.age ORDER BY p.age",
        "MATCH (a:person) CREATE (b:copy {name: a.name}) WITH b MATCH (c:copy) RETURN count(*)",
        "MATCH (p:person {name: 'peter'}) DETACH DELETE p",
        "MERGE (n:person {name: 'marko'}) ON MATCH SET n.seen = true RETURN n.seen",
        "g.V().hasLabel('person').property(single, 'age', 1).count()",
        "g.V('1').addE('likes').to(__.V('6')).inV().values('name')",
        "g.V('3').drop()",
    ]
);
