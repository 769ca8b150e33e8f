# One small graph with a loop, parallel edges and a triangle: many questions to it, each with one value for an answer.
Feature: Ask

  Background:
    Given an empty graph
    And having executed:
      """
      CREATE (a:A {n: 1}), (b:B {n: 2}), (c:C {n: 3}), (d:D {n: 4})
      CREATE (a)-[:T {w: 1}]->(b), (a)-[:T {w: 2}]->(b), (b)-[:S {w: 3}]->(c), (c)-[:T {w: 4}]->(a), (d)-[:L {w: 5}]->(d)
      """

  Scenario Outline: [1] A question and its answer
    When executing query:
      """
      <question>
      """
    Then the result should be (ignoring element order for lists):
      | v   |
      | <v> |

    Examples:
      | question                                                                                                | v                                                        |
      | MATCH (x)-->(y) RETURN count(*) AS v                                                                    | 5                                                        |
      | MATCH (x)--(y) RETURN count(*) AS v                                                                     | 9                                                        |
      | MATCH (x)-->(y)-->(z) RETURN count(*) AS v                                                              | 5                                                        |
      | MATCH (x)--(y)--(z) RETURN count(*) AS v                                                                | 14                                                       |
      | MATCH (x)--(x) RETURN count(*) AS v                                                                     | 1                                                        |
      | MATCH (x)-->(x) RETURN count(*) AS v                                                                    | 1                                                        |
      | MATCH (x)-[r]->(y), (x)-[s]->(y) RETURN count(*) AS v                                                   | 2                                                        |
      | MATCH (x)-[r]->(y) MATCH (x)-[s]->(y) RETURN count(*) AS v                                              | 7                                                        |
      | MATCH (x)-[r]->(y) MATCH (x)-[r]->(y) RETURN count(*) AS v                                              | 5                                                        |
      | MATCH (x)-[r]->(y) MATCH (y)-[r]->(x) RETURN count(*) AS v                                              | 1                                                        |
      | MATCH (x)-[r]-(y) MATCH (x)-[r]-(z) RETURN count(*) AS v                                                | 9                                                        |
      | MATCH (x)-[*]->(y) RETURN count(*) AS v                                                                 | 18                                                       |
      | MATCH (x)-[*0..0]->(y) RETURN count(*) AS v                                                             | 4                                                        |
      | MATCH (x)-[*0..1]-(y) RETURN count(*) AS v                                                              | 13                                                       |
      | MATCH (x)-[*2]-(y) RETURN count(*) AS v                                                                 | 14                                                       |
      | MATCH (x:A)-[:T*]->(y) RETURN collect(y.n) AS v                                                         | [2, 2]                                                   |
      | MATCH (x:A)-[r*2]->(y) RETURN collect(size(r)) AS v                                                     | [2, 2]                                                   |
      | MATCH (x:A)-[r:T\|S*2 {w: 3}]->(y) RETURN count(*) AS v                                                 | 0                                                        |
      | MATCH (x:A)-[:T*1..2 {w: 2}]->(y) RETURN count(*) AS v                                                  | 1                                                        |
      | MATCH (x) WHERE x:A OR x:B RETURN collect(x.n) AS v                                                     | [1, 2]                                                   |
      | MATCH (x) WHERE NOT x:A AND x.n < 4 RETURN collect(x.n) AS v                                            | [2, 3]                                                   |
      | MATCH (x) WHERE x.n > 1 AND x.n <= 3 RETURN collect(x.n) AS v                                           | [2, 3]                                                   |
      | MATCH (x) WHERE 1 < x.n <= 3 RETURN collect(x.n) AS v                                                   | [2, 3]                                                   |
      | MATCH (x) WHERE x.n IN [1, 9, null] RETURN collect(x.n) AS v                                            | [1]                                                      |
      | MATCH (x) WHERE NOT x.n IN [1, 9, null] RETURN count(*) AS v                                            | 0                                                        |
      | MATCH (x) WHERE NOT x.n IN [1, 9] RETURN count(*) AS v                                                  | 3                                                        |
      | MATCH (x {n: null}) RETURN count(*) AS v                                                                | 0                                                        |
      | MATCH (x) WHERE x.n = '1' RETURN count(*) AS v                                                          | 0                                                        |
      | MATCH (x) WHERE x.n = 1.0 RETURN count(*) AS v                                                          | 1                                                        |
      | MATCH (x) WHERE x.zz IS NULL RETURN count(*) AS v                                                       | 4                                                        |
      | MATCH (x) WHERE x.zz <> 1 RETURN count(*) AS v                                                          | 0                                                        |
      | MATCH (x), (y) WHERE x.n < y.n RETURN count(*) AS v                                                     | 6                                                        |
      | MATCH (x), (y) WHERE x <> y RETURN count(*) AS v                                                        | 12                                                       |
      | MATCH (x), (x) RETURN count(*) AS v                                                                     | 4                                                        |
      | MATCH (x:A) OPTIONAL MATCH (x)-[:NOPE]->(y) RETURN count(y) AS v                                        | 0                                                        |
      | MATCH (x) OPTIONAL MATCH (x)-[:T]->(y) RETURN count(*) AS v                                             | 5                                                        |
      | MATCH (x) OPTIONAL MATCH (x)-[:T]->(y)-[:S]->(z) RETURN count(z) AS v                                   | 2                                                        |
      | OPTIONAL MATCH (x:Nope) OPTIONAL MATCH (x)-->(y) RETURN count(*) AS v                                   | 1                                                        |
      | OPTIONAL MATCH (x:Nope) WITH x MATCH (x)-->(y) RETURN count(*) AS v                                     | 0                                                        |
      | OPTIONAL MATCH (x:Nope) RETURN [x, x.n, labels(x), x:A] AS v                                            | [null, null, null, null]                                 |
      | MATCH (x:A) RETURN size([(x)-[:T]->(y) \| y.n]) AS v                                                    | 2                                                        |
      | MATCH (x:A) RETURN [(x)-[r]->(y) WHERE r.w > 1 \| r.w + y.n] AS v                                       | [4]                                                      |
      | MATCH (x:D) RETURN [(x)--(y) \| y.n] AS v                                                               | [4]                                                      |
      | MATCH (x) WHERE (x)-[:T]->() RETURN collect(x.n) AS v                                                   | [1, 3]                                                   |
      | MATCH (x) WHERE NOT (x)-[:T]-() RETURN collect(x.n) AS v                                                | [4]                                                      |
      | MATCH (x) WHERE (x)-[:T]->() OR x.n = 4 RETURN collect(x.n) AS v                                        | [1, 3, 4]                                                |
      | MATCH (x) WHERE exists((x)-[:S]->(:C)) RETURN collect(x.n) AS v                                         | [2]                                                      |
      | MATCH (x), (y) WHERE (x)-[:T]->(y) RETURN count(*) AS v                                                 | 2                                                        |
      | MATCH (x) WHERE COUNT { (x)-->() } = 2 RETURN collect(x.n) AS v                                         | [1]                                                      |
      | MATCH (x) WHERE COUNT { MATCH (x)-->(y) WHERE y.n > x.n } > 0 RETURN collect(x.n) AS v                  | [1, 2]                                                   |
      | MATCH (x) WHERE EXISTS { (x)-[:T]->(y) WHERE y.n = 1 } RETURN collect(x.n) AS v                         | [3]                                                      |
      | MATCH p = (x:A)-[*]->(x) RETURN collect(length(p)) AS v                                                 | [3, 3]                                                   |
      | MATCH p = (x:A)-[*]->(:C) RETURN collect([n IN nodes(p) \| n.n]) AS v                                   | [[1, 2, 3], [1, 2, 3]]                                   |
      | MATCH p = (x:A)-[:T]->()-[:S]->() RETURN collect([r IN relationships(p) \| r.w]) AS v                   | [[1, 3], [2, 3]]                                         |
      | MATCH p = (:D)--() RETURN collect(length(p)) AS v                                                       | [1]                                                      |
      | MATCH p = (x:A) RETURN collect(length(p)) AS v                                                          | [0]                                                      |
      | MATCH p = shortestPath((a:A)-[*]->(c:C)) RETURN length(p) AS v                                          | 2                                                        |
      | MATCH p = allShortestPaths((a:A)-[*]->(c:C)) RETURN count(p) AS v                                       | 2                                                        |
      | MATCH p = shortestPath((a:A)-[*]-(c:C)) RETURN length(p) AS v                                           | 1                                                        |
      | MATCH (a:A), (d:D) OPTIONAL MATCH p = shortestPath((a)-[*]-(d)) RETURN p AS v                           | null                                                     |
      | MATCH p = shortestPath((a:A)-[:T*]->(c:C)) RETURN count(p) AS v                                         | 0                                                        |
      | MATCH (x)-[r:T]->(y) RETURN sum(r.w) AS v                                                               | 7                                                        |
      | MATCH ()-[r]-() RETURN count(DISTINCT r) AS v                                                           | 5                                                        |
      | MATCH (x)-[r]->() WITH x, max(r.w) AS m WHERE m > 2 RETURN collect(m) AS v                              | [3, 4, 5]                                                |
      | MATCH (x)-[r]->() RETURN collect(DISTINCT type(r)) AS v                                                 | ['T', 'S', 'L']                                          |
      | MATCH (x) WITH x ORDER BY x.n DESC LIMIT 2 RETURN collect(x.n) AS v                                     | [4, 3]                                                   |
      | MATCH (x) WITH collect(x) AS xs UNWIND xs AS y MATCH (y)-[:T]->(z) RETURN count(*) AS v                 | 3                                                        |
      | MATCH (x) WITH collect(x) AS xs RETURN size([y IN xs WHERE y.n > 2]) AS v                               | 2                                                        |
      | MATCH (x:A)-[r]->() WITH collect(r) AS rs RETURN [r IN rs \| startNode(r).n] AS v                       | [1, 1]                                                   |
      | MATCH (x:A)-[r {w: 1}]->(), (y:C) WITH [x, y, r] AS l RETURN [e IN l \| e['n']] AS v                    | [1, 3, null]                                             |
      | UNWIND [1, 2, 9] AS i OPTIONAL MATCH (x {n: i}) RETURN collect(x.n) AS v                                | [1, 2]                                                   |
      | UNWIND [1, 2] AS i MATCH (x {n: i}) WITH i, x UNWIND [i, x.n * 10] AS z RETURN collect(z) AS v          | [1, 10, 2, 20]                                           |
      | MATCH (x:A) MATCH (y:B) WHERE y.n > x.n RETURN y.n AS v                                                 | 2                                                        |
      | MATCH (x) RETURN avg(x.n) AS v                                                                          | 2.5                                                      |
      | MATCH (x) RETURN min(x.n) + max(x.n) AS v                                                               | 5                                                        |
      | MATCH (x) RETURN count(DISTINCT x.n % 2) AS v                                                           | 2                                                        |
      | MATCH (x) RETURN collect(x.zz) AS v                                                                     | []                                                       |
      | MATCH (x) WITH x.n % 2 AS k, count(*) AS c ORDER BY k RETURN collect([k, c]) AS v                       | [[0, 2], [1, 2]]                                         |
      | MATCH (x)-[r]->(y) WHERE id(x) = id(y) RETURN count(*) AS v                                             | 1                                                        |
      | MATCH (x) WHERE id(x) = 'nope' RETURN count(*) AS v                                                     | 0                                                        |
      | MATCH (x:A) WITH id(x) AS i MATCH (y) WHERE id(y) = i RETURN y.n AS v                                   | 1                                                        |
      | MATCH (x:A) WITH id(x) AS i MATCH (y) WHERE id(y) IN [i, 'zz'] RETURN y.n AS v                          | 1                                                        |
      | MATCH (x:A)-[r]->() WITH collect(id(r)) AS ids MATCH ()-[s]->() WHERE id(s) IN ids RETURN count(s) AS v | 2                                                        |
      | MATCH (x:A)-[r]->() WITH collect(id(r)) AS ids MATCH ()-[s]-() WHERE id(s) IN ids RETURN count(s) AS v  | 4                                                        |
      | MATCH (x) RETURN count(*) AS v UNION MATCH (x) RETURN count(x) AS v                                     | 4                                                        |
      | MATCH (a:A)-->(b:B) WITH DISTINCT a, b MATCH (b)-->(c) RETURN c.n AS v                                  | 3                                                        |
      | MATCH (a:A), (b:B) WHERE a.n = 1 OR b.n = 7 RETURN count(*) AS v                                        | 1                                                        |
      | MATCH (a:A)-[r1]->(b)-[r2]->(c)-[r3]->(a) RETURN count(*) AS v                                          | 2                                                        |
      | MATCH (a)-[r1]-(b)-[r2]-(c)-[r3]-(a) RETURN count(*) AS v                                               | 12                                                       |
      | MATCH (a:A)-[:T]->(b:B)<-[:T]-(a2) RETURN count(*) AS v                                                 | 2                                                        |
      | MATCH (a:A)-[:T]->(b:B), (b)<-[:T]-(a2) RETURN count(*) AS v                                            | 2                                                        |
      | MATCH (x)-[r:T\|L]->() RETURN count(*) AS v                                                             | 4                                                        |
      | MATCH (x)<-[r]-(y)-[s]->(z) WHERE r.w < s.w RETURN count(*) AS v                                        | 1                                                        |
      | WITH 3 AS n MATCH (x {n: n}) RETURN labels(x) AS v                                                      | ['C']                                                    |
      | WITH [1,2] AS l MATCH (x) WHERE x.n IN l RETURN count(*) AS v                                           | 2                                                        |
      | MATCH (x:A) WITH {k: x} AS m RETURN m.k.n AS v                                                          | 1                                                        |
      | MATCH (x:A) SET x.n = 10 WITH x MATCH (y {n: 10}) RETURN count(y) AS v                                  | 1                                                        |
      | MATCH (x) SET x.n = x.n + 1 WITH count(*) AS c MATCH (y) RETURN sum(y.n) AS v                           | 14                                                       |
      | MATCH (x:A)-[r]->() DELETE r WITH count(*) AS c MATCH (:A)-[s]->() RETURN count(s) AS v                 | 0                                                        |
      | MATCH (x:A) DETACH DELETE x WITH count(*) AS c MATCH (y) RETURN count(y) AS v                           | 3                                                        |
      | MATCH (x:A) REMOVE x:A SET x:Z WITH x MATCH (y:Z) RETURN labels(y) AS v                                 | ['Z']                                                    |
      | CREATE (x:New)-[:N]->(y:New) WITH x MATCH (x)-[:N]->(z) RETURN count(z) AS v                            | 1                                                        |
      | UNWIND [1, 1, 2] AS i MERGE (m:M {k: i}) WITH count(*) AS c MATCH (m:M) RETURN count(m) AS v            | 2                                                        |
      | MATCH (x:A) MERGE (x)-[r:T]->(y:B) RETURN count(*) AS v                                                 | 2                                                        |
      | MATCH (x:A), (y:B) MERGE (x)-[r:NEW]-(y) RETURN count(r) AS v                                           | 1                                                        |
      | MATCH (x:A), (y:B) MERGE (y)-[r:T]-(x) RETURN count(r) AS v                                             | 2                                                        |
      | MERGE (x:A {n: 1}) ON MATCH SET x.m = 5 ON CREATE SET x.c = 1 RETURN [x.m, x.c] AS v                    | [5, null]                                                |
      | MATCH (x) WITH x SKIP 1 LIMIT 2 RETURN count(x) AS v                                                    | 2                                                        |
      | MATCH (x) RETURN count(x) AS v LIMIT 0 + 1                                                              | 4                                                        |
      | MATCH (x) WITH DISTINCT x.n % 2 AS k RETURN count(k) AS v                                               | 2                                                        |
      | MATCH (x) WITH x.n AS n WHERE n > 2 WITH collect(n) AS l RETURN reduce(s = 0, i IN l \| s + i) AS v     | 7                                                        |
      | MATCH (x:A) FOREACH (i IN [1, 2] \| CREATE (:F {i: i})) WITH x MATCH (f:F) RETURN sum(f.i) AS v         | 3                                                        |
      | MATCH (x:A) CREATE (x)-[:Q]->(:W {w: x.n}) WITH x MATCH (x)-[:Q]->(w) RETURN w.w AS v                   | 1                                                        |
      | MATCH (n) WITH n, [(n)-[r]->(m) \| m] AS ms UNWIND ms AS m RETURN count(m) AS v                         | 5                                                        |
      | MATCH (n) RETURN collect({n: n.n, d: size([(n)--() \| 1])}) AS v                                        | [{n: 1, d: 3}, {n: 2, d: 3}, {n: 3, d: 2}, {n: 4, d: 1}] |
