# CALL, EXISTS, COUNT and COLLECT with queries in braces.
Feature: Subqueries

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
      | question                                                                                                                                                   | v                      |
      | CALL { RETURN 1 AS x } RETURN x AS v                                                                                                                       | 1                      |
      | UNWIND [1, 2, 3] AS i CALL { WITH i RETURN i * 10 AS x } RETURN collect(x) AS v                                                                            | [10, 20, 30]           |
      | UNWIND [1, 2, 3] AS i CALL (i) { RETURN i * 10 AS x } RETURN collect(x) AS v                                                                               | [10, 20, 30]           |
      | UNWIND [1, 2] AS i CALL (*) { RETURN i + 1 AS x } RETURN collect(x) AS v                                                                                   | [2, 3]                 |
      | UNWIND [1, 2] AS i CALL () { RETURN 7 AS x } RETURN collect(i + x) AS v                                                                                    | [8, 9]                 |
      | UNWIND [1, 2] AS i CALL { RETURN 7 AS x UNION RETURN 8 AS x } RETURN collect(i + x) AS v                                                                   | [8, 9, 9, 10]          |
      | UNWIND [1, 2] AS i CALL { WITH i RETURN i AS x UNION ALL WITH i RETURN i AS x } RETURN collect(x) AS v                                                     | [1, 1, 2, 2]           |
      | UNWIND [1, 2] AS i CALL { WITH i RETURN i AS x UNION WITH i RETURN i AS x } RETURN collect(x) AS v                                                         | [1, 2]                 |
      | UNWIND [1, 2] AS i CALL (i) { UNWIND range(1, i) AS j RETURN count(j) AS x } RETURN collect(x) AS v                                                        | [1, 2]                 |
      | UNWIND [1, 2] AS i CALL (i) { UNWIND range(1, i) AS j RETURN sum(j) AS x, max(j) AS y } RETURN collect([i, x, y]) AS v                                     | [[1, 1, 1], [2, 3, 2]] |
      | UNWIND [3, 1] AS i CALL (i) { UNWIND [2, 1, 3] AS j WITH j WHERE j <= i RETURN j ORDER BY j DESC LIMIT 2 } RETURN collect(j) AS v                          | [3, 2, 1]              |
      | UNWIND [1, 2] AS i CALL (i) { MATCH (x) WHERE x.n = i RETURN x } RETURN collect(x.n) AS v                                                                  | [1, 2]                 |
      | MATCH (x) CALL (x) { MATCH (x)-->(y) RETURN count(DISTINCT y) AS c } RETURN sum(c) AS v                                                                    | 4                      |
      | MATCH (x:A) CALL { WITH x MATCH (x)-->(y) WITH y AS z RETURN z.n AS c } RETURN collect(c) AS v                                                             | [2, 2]                 |
      | MATCH (x:A) CALL (x) { CALL (x) { MATCH (x)-->(y) RETURN y } RETURN y.n AS c } RETURN collect(c) AS v                                                      | [2, 2]                 |
      | MATCH (x:A) CALL { MATCH (x:B) RETURN x.n AS c } RETURN x.n + c AS v                                                                                       | 3                      |
      | MATCH (x) OPTIONAL CALL (x) { MATCH (x)-[:S]->(y) RETURN y.n AS c } RETURN collect(coalesce(c, 0)) AS v                                                    | [0, 3, 0, 0]           |
      | UNWIND [1, 2] AS i CALL (i) { CREATE (:New {n: i}) } MATCH (x:New) RETURN count(DISTINCT x) AS v                                                           | 2                      |
      | UNWIND [1, 1, 2] AS i CALL (i) { MERGE (c:New {n: i}) ON CREATE SET c.times = 1 ON MATCH SET c.times = c.times + 1 RETURN c } RETURN collect(c.times) AS v | [2, 2, 1]              |
      | UNWIND [1, 2, 3] AS i CALL (i) { MATCH (x:New) WITH count(x) AS before CREATE (:New) RETURN before } RETURN collect(before) AS v                           | [0, 1, 2]              |
      | CALL { CREATE (x:New {n: 9}) RETURN x.n AS c UNION CREATE (x:New {n: 8}) RETURN x.n AS c } RETURN collect(c) AS v                                          | [9, 8]                 |
      | CALL { CREATE (:New) UNION CREATE (:New) } WITH 1 AS one MATCH (x:New) RETURN count(x) AS v                                                                | 2                      |
      | MATCH (x) CALL (x) { RETURN x.n AS m } RETURN sum(m) AS v                                                                                                  | 10                     |
      | MATCH (x) CALL (x) { WITH x.n AS m RETURN * } RETURN sum(m) AS v                                                                                           | 10                     |
      | MATCH (x:A) CALL (x) { FINISH } RETURN x.n AS v                                                                                                            | 1                      |
      | MATCH (x) WHERE EXISTS { MATCH (x)-[:S]->() RETURN 1 AS o UNION MATCH (x)-[:L]->() RETURN 1 AS o } RETURN collect(x.n) AS v                                | [2, 4]                 |
      | MATCH (x) WHERE NOT EXISTS { MATCH (x)-[r]->() WITH r WHERE r.w > 2 RETURN r } RETURN collect(x.n) AS v                                                    | [1]                    |
      | MATCH (x) WHERE EXISTS { WITH x MATCH (x)-->(y) WITH count(y) AS c WHERE c > 1 RETURN c } RETURN collect(x.n) AS v                                         | [1]                    |
      | MATCH (x:A) RETURN COUNT { MATCH (x)-->(y) RETURN DISTINCT y } AS v                                                                                        | 1                      |
      | MATCH (x:A) RETURN COUNT { MATCH (x)-->(y) RETURN y UNION ALL MATCH (x)<--(y) RETURN y } AS v                                                              | 3                      |
      | MATCH (x) RETURN sum(COUNT { (x)-[:T]->() }) AS v                                                                                                          | 3                      |
      | MATCH (x:A) RETURN COLLECT { MATCH (x)-[r]->() RETURN r.w ORDER BY r.w DESC } AS v                                                                         | [2, 1]                 |
      | MATCH (x:A) RETURN COLLECT { MATCH (x)-[r]->() RETURN r.w ORDER BY r.w LIMIT 1 } AS v                                                                      | [1]                    |
      | RETURN COLLECT { UNWIND [1, 2] AS i RETURN i UNION ALL UNWIND [3] AS i RETURN i } AS v                                                                     | [1, 2, 3]              |
      | MATCH (x) WHERE size(COLLECT { MATCH (x)-->(y) RETURN y }) = 2 RETURN x.n AS v                                                                             | 1                      |
      | MATCH (x:A) RETURN EXISTS { CALL (x) { MATCH (x)-->(y) RETURN y } RETURN y } AS v                                                                          | true                   |
      | MATCH (x) WITH collect(x) AS all RETURN [x IN all WHERE EXISTS { (x)-[:S]->() } \| x.n] AS v                                                               | [2]                    |
      | MATCH (x) WITH collect(x) AS all RETURN [x IN all WHERE (x)-[:T]->() \| x.n] AS v                                                                          | [1, 3]                 |
      | MATCH (x) WITH collect(x) AS all RETURN [x IN all \| COUNT { (x)-->() }] AS v                                                                              | [2, 1, 1, 1]           |
      | MATCH (x) WITH collect(x) AS all RETURN all(x IN all WHERE (x)-->()) AS v                                                                                  | true                   |
      | MATCH (x) WITH collect(x) AS all RETURN single(x IN all WHERE EXISTS { (x)-[:L]->() }) AS v                                                                | true                   |
      | WITH [1, null] AS l RETURN [x IN l[1] WHERE EXISTS { (x)-->() }] AS v                                                                                              | null                   |
      | MATCH p = (:B)-->(:C) RETURN [x IN nodes(p) \| [(x)-->(y) \| y.n]] AS v                                                                                    | [[3], [1]]             |
      | MATCH (x:A) RETURN [(x)-[r]->(y) WHERE EXISTS { (y)-[:S]->() } \| r.w] AS v                                                                                | [1, 2]                 |
      | MATCH (a:A), (c:C), p = shortestPath((a)-[*]->(c)) WHERE all(r IN relationships(p) WHERE r.w <> 1) RETURN [r IN relationships(p) \| r.w] AS v              | [2, 3]                 |
      | MATCH (a:A), (c:C), p = shortestPath((a)-[r*]->(c)) WHERE none(x IN r WHERE x.w = 2) RETURN [x IN r \| x.w] AS v                                           | [1, 3]                 |
      | MATCH (a:A), (b:B), p = shortestPath((a)-[*]->(b)) WHERE length(p) > 1 RETURN length(p) AS v                                                               | 4                      |
      | MATCH (a:A), (b:B), p = allShortestPaths((a)-[*]->(b)) WHERE length(p) > 1 RETURN count(p) AS v                                                            | 2                      |
      | MATCH (a:A), (c:C), p = allShortestPaths((a)-[*]->(c)) WHERE any(r IN relationships(p) WHERE r.w = 2) RETURN count(p) AS v                                 | 1                      |
      | MATCH (a:A), (c:C), p = shortestPath((a)-[*..1]->(c)) WHERE length(p) > 0 RETURN count(p) AS v                                                             | 0                      |
      | MATCH (a:A), (c:C), p = shortestPath((a)-[*]->(c)) WHERE EXISTS { MATCH (z:B) WHERE z IN nodes(p) } RETURN length(p) AS v                                  | 2                      |
      | MATCH (a:A), (c:C), p = shortestPath((a)-[:!L*]->(c)) RETURN length(p) AS v                                                                                | 2                      |
      | MATCH (a:A) FOREACH (i IN [1, 2] \| FOREACH (j IN [1, 2] \| CREATE (:New {n: i * j}))) WITH a MATCH (x:New) RETURN sum(x.n) AS v                           | 9                      |
      | MATCH (a:A) FOREACH (i IN [5, 5] \| MERGE (x:New {n: i}) SET x.k = i REMOVE x.k) WITH a MATCH (x:New) RETURN count(x) AS v                                 | 1                      |
      | UNWIND [1, 2, 3] AS i MERGE (x:New {n: COUNT { (:New) }}) RETURN collect(x.n) AS v                                                                         | [0, 1, 2]              |
      | UNWIND [1, 2] AS i MERGE (x:New {all: size([(y:New)-[:Z]->() \| 1]) + i}) CREATE (x)-[:Z]->(x) RETURN count(*) AS v                                        | 2                      |
      | RETURN 1 AS v UNION DISTINCT RETURN 1 AS v                                                                                                                 | 1                      |
      | MATCH (:A)-[:T]->+(x) RETURN count(*) AS v | 2 |
      | MATCH (:A)-->{2}(x) RETURN collect(x.n) AS v | [3, 3] |
      | MATCH (:A)-[r]->{1,2}(x) RETURN collect(size(r)) AS v | [1, 1, 2, 2] |
      | MATCH (:A)-[r WHERE r.w <> 1]->{,2}(x) RETURN collect(size(r)) AS v | [0, 1, 2] |
      | MATCH (:A)-[r:T\|S WHERE r.w > 1]->+(x:C) RETURN [e IN r \| e.w] AS v | [2, 3] |
      | MATCH (a:A) WHERE (a)-[:T]->+(:B) RETURN count(*) AS v | 1 |
      | MATCH p = ANY SHORTEST (:A)-->+(:C) RETURN length(p) AS v | 2 |
      | MATCH p = ALL SHORTEST (:A)-->+(:C) RETURN count(p) AS v | 2 |
      | MATCH p = SHORTEST 1 (:A)-[:!L]->+(:C) RETURN length(p) AS v | 2 |
      | WITH 1 AS any, 2 AS shortest RETURN any + shortest AS v | 3 |

  Scenario Outline: [2] A query that is refused
    When executing query:
      """
      <query>
      """
    Then a <kind> should be raised at <phase>: Any

    Examples:
      | query                                                            | kind        | phase        |
      | CALL { MATCH (n) } RETURN 1                                      | SyntaxError | compile time |
      | MATCH (n) CALL { RETURN n.n AS x } RETURN x                      | SyntaxError | compile time |
      | MATCH (n) CALL (n) { RETURN n } RETURN n                         | SyntaxError | compile time |
      | MATCH (n) CALL (m) { RETURN 1 AS x } RETURN x                    | SyntaxError | compile time |
      | MATCH (n) CALL { WITH n WHERE n.n = 1 RETURN n.n AS x } RETURN x | SyntaxError | compile time |
      | MATCH (n) CALL { RETURN 1 AS n } RETURN n                        | SyntaxError | compile time |
      | MATCH (n) CALL (n) { WITH 1 AS n RETURN n AS m } RETURN m        | SyntaxError | compile time |
      | CALL { RETURN 1 AS x UNION RETURN 2 AS y } RETURN x              | SyntaxError | compile time |
      | CALL { RETURN 1 AS x UNION CREATE (:New) } RETURN 1 AS v         | SyntaxError | compile time |
      | CALL { RETURN 1 AS x }                                           | SyntaxError | compile time |
      | OPTIONAL CALL { CREATE (:New) } RETURN 1 AS v                    | SyntaxError | compile time |
      | RETURN EXISTS { CREATE (n) } AS v                                | SyntaxError | compile time |
      | RETURN EXISTS { CALL { CREATE (n) } RETURN 1 AS x } AS v         | SyntaxError | compile time |
      | RETURN COLLECT { MATCH (n) } AS v                                | SyntaxError | compile time |
      | RETURN COLLECT { MATCH (n) RETURN n, 1 AS x } AS v               | SyntaxError | compile time |
      | MATCH (n) FOREACH (x IN [1] \| CALL { CREATE (:New) })           | SyntaxError | compile time |
      | FINISH RETURN 1 AS v                                             | SyntaxError | compile time |
      | MATCH (a)-[:T*1..2]->{1,2}(b) RETURN a | SyntaxError | compile time |
      | MATCH (a)-->{3,1}(b) RETURN a | SyntaxError | compile time |
      | MATCH (a)-->{}(b) RETURN a | SyntaxError | compile time |
      | MATCH SHORTEST 0 (a)-->+(b) RETURN a | SyntaxError | compile time |
