/**
 * What hostile queries try with the parts of both languages that make rows beyond memory, use several threads, run other
 * queries, read files or keep values beside the rows.
 */
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LIMITED, times } from "./clients.mjs";

/** @typedef {import("./service.mjs").Service} Service */
/** @typedef {import("./service.mjs").Answer} Answer */
/** @typedef {import("./abuses.mjs").Abuse} Abuse */

/** Rows of about 100 bytes: three million do not fit into the memory of a query. */
const ROWS = "UNWIND range(1, 3000000) AS i WITH i, toString(i % 1500000) + '-a text for each of them' AS t";
/** Rows of 400 million pairs of vertices. */
const PAIRS = "MATCH (a), (b)";

/** @param {Service} service @param {readonly string[]} queries @returns {Promise<Answer[]>} answers, four at a time */
async function fourAtATime(service, queries) {
  const answers = [];
  for (let from = 0; from < queries.length; from += 4)
    answers.push(...(await Promise.all(queries.slice(from, from + 4).map((query) => service.cypher(query)))));
  return answers;
}

/** @param {Service} service @param {readonly string[]} traversals @returns {Promise<Answer[]>} */
async function traversals(service, traversals) {
  const answers = [];
  for (const traversal of traversals) answers.push(await service.gremlin(traversal));
  return answers;
}

/** A subquery in a subquery in a subquery. @param {number} depth @param {string} begin @param {string} inner @param {string} end */
const nested = (depth, begin, inner, end) => `${begin.repeat(depth)}${inner}${end.repeat(depth)}`;

/** @type {readonly Abuse[]} */
export const LANGUAGES = [
  {
    name: "spilling",
    what: "sorts, groups, distinct rows and joins beyond the memory of a query, 12 at once, then four that are left",
    expect: [0, ...LIMITED],
    run: async (service) => {
      const queries = [
        `${ROWS} RETURN i, t ORDER BY t, i DESC SKIP 2999990`,
        `${ROWS} RETURN count(*), t ORDER BY t LIMIT 10`,
        `${ROWS} WITH DISTINCT t, i % 7 AS k RETURN count(*)`,
        `${ROWS} RETURN count(DISTINCT t)`,
        `${ROWS} WITH collect(t) AS l RETURN size(l)`,
        `${ROWS} WITH t, collect(i) AS l RETURN sum(size(l))`,
      ];
      const answers = await times(12, (index) => service.cypher(queries[index % queries.length] ?? ""));
      const left = await times(4, (index) =>
        service.cypher(queries[index] ?? "", {}, AbortSignal.timeout(700 + 100 * index)),
      );
      return [...answers, ...left];
    },
  },
  {
    name: "helper-threads",
    what: "16 aggregations at once that share their work between threads, half of them left",
    expect: [0, ...LIMITED],
    run: (service) =>
      times(16, (index) => {
        const leave = index % 2 === 0 ? AbortSignal.timeout(300 + 50 * index) : undefined;
        const query = `${PAIRS} RETURN a.k % 100 AS g, sum(a.k * b.k), count(DISTINCT b.k % 1000), max(toString(b.k)) ORDER BY g`;
        return service.cypher(query, {}, leave);
      }),
  },
  {
    name: "subqueries",
    what: "subqueries 300 and 20,000 deep, batches without an end, retries for years, procedures that there are not",
    expect: LIMITED,
    run: (service) =>
      fourAtATime(service, [
        `MATCH (a) WHERE ${nested(300, "EXISTS { MATCH (b) WHERE ", "true", " }")} RETURN count(*)`,
        `MATCH (a) WHERE ${nested(20_000, "EXISTS { MATCH (b) WHERE ", "true", " }")} RETURN count(*)`,
        `${nested(20_000, "CALL { ", "RETURN 1 AS x", " RETURN 1 AS x }")} RETURN x`,
        `RETURN ${nested(20_000, "COLLECT { RETURN ", "1", " }")}`,
        "UNWIND range(1, 100000000) AS i CALL { WITH i UNWIND range(1, 100000000) AS j RETURN max(j) AS m } RETURN sum(m)",
        "UNWIND range(1, 100000000) AS i CALL { WITH i CREATE (:Batch {i: i}) } IN TRANSACTIONS OF 1 ROW",
        "UNWIND [1, 2, 0] AS i CALL { WITH i CREATE (:Batch {i: 1 / i}) } IN 1000000 CONCURRENT TRANSACTIONS OF 1 ROW ON ERROR RETRY FOR 1000000000 SECONDS THEN CONTINUE",
        `CALL ${"a.".repeat(50_000)}b()`,
        "CALL db.labels() YIELD label CALL db.labels() YIELD label AS l2 CALL db.propertyKeys() YIELD propertyKey UNWIND range(1, 100000000) AS i RETURN count(*)",
      ]),
  },
  {
    name: "walks",
    what: "quantified patterns, shortest paths of all kinds and comprehensions over everything",
    expect: LIMITED,
    run: (service) =>
      fourAtATime(service, [
        "MATCH p = ((a)-[r]-(b)){1,1000000} RETURN count(p)",
        "MATCH REPEATABLE ELEMENTS p = ((a)-[r]-(b)){1,100000} RETURN count(p)",
        "MATCH (a), (b) MATCH p = SHORTEST 1000000 GROUPS (a)-[*]-(b) RETURN count(p)",
        "MATCH (a), (b) MATCH p = allShortestPaths((a)-[*..1000000]-(b)) RETURN sum(length(p))",
        "MATCH (a)-[*0..2000000000]-(b) RETURN count(*)",
        "MATCH (a) RETURN [(a)-[*]-(b) | [(b)-[*]-(c) | c]]",
        `MATCH p = ${"(()-[]-())+".repeat(2_000)} RETURN count(p)`,
        `MATCH ${"(".repeat(10_000)}a${")".repeat(10_000)} RETURN a`,
      ]),
  },
  {
    name: "values",
    what: "dates, durations, points, percentiles and conversions out of range, formats without an end",
    expect: [200, 400],
    run: (service) =>
      fourAtATime(service, [
        "RETURN date({year: 999999999999})",
        "RETURN date('+999999999-12-31') + duration({days: 9223372036854775807})",
        "RETURN duration({months: 9223372036854775807}) * 9223372036854775807",
        "RETURN duration('P1e400Y')",
        `RETURN datetime('${"2".repeat(1_000_000)}')`,
        `RETURN datetime('2024-01-01T00:00[${"A/".repeat(100_000)}]')`,
        "RETURN point({x: 1e400, y: 0 / 0.0, srid: -1})",
        "UNWIND range(1, 1000000) AS i RETURN percentileCont(i, 1e400)",
        "RETURN range(-9223372036854775807, 9223372036854775807, 9223372036854775807)",
        "RETURN range(1, 9223372036854775807)",
        "RETURN reverse(range(1, 100000000))",
        `RETURN toInteger('${"9".repeat(1_000_000)}')`,
        `RETURN round(1.5, 2147483647, 'HALF_UP'), substring('a', 9223372036854775807), left('a', -1)`,
        "RETURN reduce(m = {}, i IN range(1, 10000000) | m {.*, a: m, b: m})",
        "RETURN 'a' =~ '(((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000})'",
        "RETURN replace(reduce(s = 'a', i IN range(1, 20) | s + s), 'a', reduce(s = 'b', i IN range(1, 20) | s + s))",
      ]),
  },
  {
    name: "traversers",
    what: "sacks, side effects, strings and lists that grow in repeats, and steps without an end",
    expect: LIMITED,
    run: (service) =>
      traversals(service, [
        "g.withSack('a').V().limit(1).repeat(sack(sum).by(sack()).identity()).times(60).sack()",
        "g.withSack(1).V().repeat(both().sack(mult).by(constant(1000000000))).times(100).sack().sum()",
        "g.inject('ab').repeat(concat(identity())).times(60).length()",
        "g.inject([1]).repeat(combine(identity())).times(60).count(local)",
        "g.V().repeat(both().aggregate('x')).times(30).cap('x').count(local)",
        "g.V().as('a').repeat(both().as('a')).times(1000000).select(all, 'a').count()",
        "g.V().repeat(both()).until(constant(false)).count()",
        "g.V().group().by(both().both().both().both().fold()).by(both().both().fold())",
        "g.V().order().by(repeat(both()).times(40).count())",
        `g.inject(1)${".math('_ * _ + _')".repeat(5_000)}`,
        `g.inject(1).math('${"(".repeat(100_000)}_${")".repeat(100_000)}')`,
        `g.V().${"union(__.".repeat(400)}out()${")".repeat(400)}`,
        `g.V()${".coalesce(out(), both())".repeat(2_000)}.count()`,
        "g.withStrategies(SubgraphStrategy(vertices: repeat(both()).times(1000).count().is(0))).V().count()",
      ]),
  },
  {
    name: "csv-of-others",
    what: "LOAD CSV of files of the machine, of links, of addresses inside the network, and of a file that never ends",
    expect: [400, 403, 404],
    run: async (service) => {
      const folder = join(service.allowed, "csv");
      mkdirSync(folder, { recursive: true });
      symlinkSync("/etc/passwd", join(folder, "link.csv"));
      writeFileSync(join(folder, "quote.csv"), `a,"${"x\n".repeat(4_000_000)}`);
      const places = [
        "file:///etc/passwd",
        "file:///proc/self/environ",
        "file:///dev/zero",
        `file://${folder}/link.csv`,
        `file://${folder}/../../data/MANIFEST`,
        `file://${folder}/quote.csv`,
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1:1/",
        "gopher://localhost/",
      ];
      return await fourAtATime(
        service,
        places.map((place) => `LOAD CSV FROM '${place}' AS line RETURN line`),
      );
    },
  },
  {
    name: "plans",
    what: "EXPLAIN and PROFILE of what is refused, long IN lists, 400 parts of a UNION, hints for all of it",
    expect: LIMITED,
    run: (service) =>
      fourAtATime(service, [
        `EXPLAIN MATCH (a)${"-->()".repeat(4_500)} RETURN count(*)`,
        `PROFILE ${PAIRS}, (c) WHERE a.k + b.k = c.k * 2 RETURN count(*)`,
        `EXPLAIN ${Array.from({ length: 60 }, (_, i) => `MATCH (a${i})-->(a${(i * 7) % 60})`).join(" ")} RETURN count(*)`,
        `MATCH (a) WHERE a.k IN [${Array.from({ length: 500_000 }, (_, i) => i).join(",")}] RETURN count(*)`,
        `${"MATCH (a:Probe) RETURN a UNION ".repeat(4_000)}MATCH (a:Next) RETURN a`,
        `MATCH (a:${"A|".repeat(50_000)}B) RETURN count(*)`,
        `MATCH (a:${"!".repeat(50_000)}B) RETURN count(*)`,
        `MATCH (a) WHERE ${"a.k = 1 OR ".repeat(50_000)}false RETURN count(*)`,
        `MATCH (a) RETURN CASE ${"WHEN a.k = 1 THEN 2 ".repeat(50_000)}END`,
        `CREATE ${Array.from({ length: 100_000 }, (_, i) => `(:X {k: ${i}})`).join(",")} RETURN 1`,
      ]),
  },
];
