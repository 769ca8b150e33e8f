# Label tests, conditions inside patterns, names and numbers.
Feature: Labels and patterns

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
      | question                                                                                           | v                          |
      | MATCH (x:A\|B) RETURN collect(x.n) AS v                                                            | [1, 2]                     |
      | MATCH (x:A\|:B\|C) RETURN count(*) AS v                                                            | 3                          |
      | MATCH (x:!A) RETURN collect(x.n) AS v                                                              | [2, 3, 4]                  |
      | MATCH (x:!(A\|B)) RETURN collect(x.n) AS v                                                         | [3, 4]                     |
      | MATCH (x:A&!B) RETURN collect(x.n) AS v                                                            | [1]                        |
      | MATCH (x:(A\|B)&%) RETURN collect(x.n) AS v                                                        | [1, 2]                     |
      | MATCH (x:%) RETURN count(*) AS v                                                                   | 4                          |
      | MATCH (x:!%) RETURN count(*) AS v                                                                  | 0                          |
      | MATCH (x IS A\|D) RETURN collect(x.n) AS v                                                         | [1, 4]                     |
      | MATCH (x) WHERE x:A\|D RETURN collect(x.n) AS v                                                    | [1, 4]                     |
      | MATCH (x) WHERE x IS A RETURN collect(x.n) AS v                                                    | [1]                        |
      | MATCH (x) WHERE NOT x:A\|D RETURN collect(x.n) AS v                                                | [2, 3]                     |
      | MATCH (x) RETURN collect(x:A\|B) AS v                                                              | [true, true, false, false] |
      | MATCH ()-[r:T\|S]->() RETURN collect(r.w) AS v                                                     | [1, 2, 3, 4]               |
      | MATCH ()-[r:!T]->() RETURN collect(r.w) AS v                                                       | [3, 5]                     |
      | MATCH ()-[r:T&!S]->() RETURN collect(r.w) AS v                                                     | [1, 2, 4]                  |
      | MATCH ()-[r:%]->() RETURN count(r) AS v                                                            | 5                          |
      | MATCH ()-[r]->() WHERE r:T\|L RETURN collect(r.w) AS v                                             | [1, 2, 4, 5]               |
      | MATCH ()-[r IS S]->() RETURN collect(r.w) AS v                                                     | [3]                        |
      | MATCH (:A)-[r:!L*]->(x) RETURN count(*) AS v                                                       | 8                          |
      | MATCH (:A)-[r:!S*]->(x) RETURN count(*) AS v                                                       | 2                          |
      | RETURN [x IN [1] WHERE x IS NOT NULL \| x] AS v                                                    | [1]                        |
      | MATCH (a:A) RETURN [x IN [a] WHERE x:A \| x.n] AS v                                                | [1]                        |
      | MATCH (a:A) RETURN [x IN [a] WHERE (x:A\|B) \| x.n] AS v                                           | [1]                        |
      | MATCH (x WHERE x.n > 2) RETURN collect(x.n) AS v                                                   | [3, 4]                     |
      | MATCH (x:A\|B WHERE x.n > 1) RETURN collect(x.n) AS v                                              | [2]                        |
      | MATCH (x)-[r WHERE r.w > 3]->(y) RETURN collect(r.w) AS v                                          | [4, 5]                     |
      | MATCH (x)-[r:T WHERE r.w > x.n]->(y WHERE y.n < 5) RETURN collect(r.w) AS v                        | [2, 4]                     |
      | MATCH (x WHERE EXISTS { (x)-[:L]->() }) RETURN collect(x.n) AS v                                   | [4]                        |
      | MATCH (x {n: COUNT { (:A)-->() }}) RETURN collect(x.n) AS v                                        | [2]                        |
      | MATCH (a:A) RETURN [(a)-[r WHERE r.w > 1]->(b WHERE b.n = 2) \| r.w] AS v                          | [2]                        |
      | MATCH (a:A) WHERE (a)-->(:B\|C) RETURN count(*) AS v                                               | 1                          |
      | MATCH (a:A) WHERE (a)-[:S\|L]->() RETURN count(*) AS v                                             | 0                          |
      | MATCH (x) WHERE (x)-[WHERE true]->(x) RETURN count(*) AS v                                         | 1                          |
      | MATCH (x:$('A')) RETURN collect(x.n) AS v                                                          | [1]                        |
      | MATCH (x:$(['A'])) RETURN collect(x.n) AS v                                                        | [1]                        |
      | MATCH (x:$any(['A', 'B'])) RETURN collect(x.n) AS v                                                | [1, 2]                     |
      | MATCH (x:$all(['A', 'B'])) RETURN collect(x.n) AS v                                                | []                         |
      | MATCH ()-[r:$('S')]->() RETURN collect(r.w) AS v                                                   | [3]                        |
      | CREATE (x:$('E'):$(['F', 'G'])) RETURN labels(x) AS v                                              | ['E', 'F', 'G']            |
      | MATCH (a:A) CREATE (a)-[r:$('N' + 'EW')]->(a) RETURN type(r) AS v                                  | 'NEW'                      |
      | MATCH (x:A) SET x:$('E') RETURN labels(x) AS v                                                     | ['A', 'E']                 |
      | MATCH (x:A) SET x:$(['E', 'F']):G RETURN labels(x) AS v                                            | ['A', 'E', 'F', 'G']       |
      | MATCH (x:A) REMOVE x:$(labels(x)[0]) RETURN labels(x) AS v                                         | []                         |
      | MATCH (x:A) SET x['k' + 1] = 7 RETURN x.k1 AS v                                                    | 7                          |
      | MATCH (x:A) SET x['k'] = 7, x['k'] = x['k'] + 1 RETURN x.k AS v                                    | 8                          |
      | MATCH (x:A) REMOVE x['n'] RETURN x.n AS v                                                          | null                       |
      | MATCH (x:A) USING SCAN x:A WHERE x.n = 1 RETURN x.n AS v                                           | 1                          |
      | MATCH (x:A) USING INDEX x:A(n) WHERE x.n = 1 RETURN x.n AS v                                       | 1                          |
      | MATCH (x:A)-->(y:B) USING INDEX SEEK x:A(n) USING JOIN ON y WHERE x.n = 1 RETURN DISTINCT y.n AS v | 2                          |
      | MATCH (all)-[exists:S]->(limit) RETURN all.n + limit.n AS v                                        | 5                          |
      | WITH 1 AS count, 2 AS order, 3 AS contains RETURN count + order + contains AS v                    | 6                          |
      | MATCH (x:A) WITH x AS skip ORDER BY skip.n SKIP 0 LIMIT 1 RETURN skip.n AS v                       | 1                          |
      | RETURN 1_000 + 0xF_F + 0o1_7 AS v                                                                  | 1270                       |
      | RETURN 1_0.2_5 AS v                                                                                | 10.25                      |
      | RETURN INF > 1e300 AS v                                                                            | true                       |
      | RETURN isNaN(NaN) AS v                                                                             | true                       |
      | WITH 5 AS inf RETURN inf AS v                                                                      | 5                          |
      | WITH 1 AS `a b` RETURN `a b` AS v                                                                  | 1                          |
      | WITH 1 AS größe RETURN größe AS v                                                                  | 1                          |
      | RETURN '\\u00e9' = 'é' AS v                                                                        | true                       |
      | RETURN CASE 5 WHEN > 3 THEN 'big' ELSE 'small' END AS v                                            | 'big'                      |
      | RETURN CASE 5 WHEN 1, 5 THEN 'a' ELSE 'b' END AS v                                                 | 'a'                        |
      | RETURN CASE null WHEN IS NULL THEN 'null' END AS v                                                 | 'null'                     |
      | RETURN CASE 'abc' WHEN STARTS WITH 'b' THEN 1 WHEN CONTAINS 'c', 'x' THEN 2 END AS v               | 2                          |
      | RETURN CASE 2 WHEN IN [1, 2] THEN true ELSE false END AS v                                         | true                       |
      | UNWIND [1, 2, 3] AS x RETURN collect(CASE x WHEN < 2 THEN 'a' WHEN 3 THEN 'c' END) AS v            | ['a', 'c']                 |
      | RETURN 1 IS :: INTEGER AS v                                                                        | true                       |
      | RETURN 1 :: STRING AS v                                                                            | false                      |
      | RETURN 1 IS NOT :: STRING AS v                                                                     | true                       |
      | RETURN 1 IS TYPED INTEGER \| STRING AS v                                                           | true                       |
      | RETURN null IS :: INTEGER AS v                                                                     | true                       |
      | RETURN null IS :: INTEGER NOT NULL AS v                                                            | false                      |
      | RETURN [1, 'a'] IS :: LIST<INTEGER> AS v                                                           | false                      |
      | RETURN [1, 'a'] IS :: LIST<INTEGER \| STRING NOT NULL> NOT NULL AS v                               | true                       |
      | RETURN [1] IS :: ARRAY<ANY> AS v                                                                   | true                       |
      | RETURN [1] IS :: INTEGER LIST AS v                                                                 | true                       |
      | MATCH (x:A) RETURN x IS :: NODE AS v                                                               | true                       |
      | MATCH (x:A) RETURN x IS :: ANY RELATIONSHIP AS v                                                   | false                      |
      | RETURN {a: 1} IS :: MAP AS v                                                                       | true                       |
      | RETURN 1.5 IS :: PROPERTY VALUE AS v                                                               | true                       |
      | RETURN 'é' IS NORMALIZED AS v                                                                      | true                       |
      | RETURN 'e\\u0301' IS NOT NFC NORMALIZED AS v                                                       | true                       |
      | RETURN 1 IS NORMALIZED AS v                                                                        | null                       |
      | MATCH (x)-[r:T*1..2]->(y) WITH r LIMIT 1 MATCH (p)-[r*]->(q) RETURN count(*) AS v                  | 1                          |

  Scenario Outline: [2] A query that is refused
    When executing query:
      """
      <query>
      """
    Then a <kind> should be raised at <phase>: Any

    Examples:
      | query                                    | kind        | phase        |
      | MATCH (n:A\|) RETURN n                   | SyntaxError | compile time |
      | CREATE (n:A\|B)                          | SyntaxError | compile time |
      | CREATE (n:!A)                            | SyntaxError | compile time |
      | CREATE (a)-[:A\|B]->(b)                  | SyntaxError | compile time |
      | MERGE (n WHERE n.x = 1)                  | SyntaxError | compile time |
      | MATCH (n) SET n:A\|B                     | SyntaxError | compile time |
      | MATCH ()-[r* WHERE r.w = 1]->() RETURN r | SyntaxError | compile time |
      | MATCH (n:A) SET n:$(1)                   | TypeError   | runtime      |
      | MATCH (n:A) SET n[1] = 2                 | SyntaxError | compile time |
      | MATCH (n:A) WITH n, 1 AS k SET n[k] = 2  | TypeError   | runtime      |
      | RETURN 1 IS :: WHATEVER AS v             | SyntaxError | compile time |
      | RETURN 1 IS :: LIST<INTEGER AS v         | SyntaxError | compile time |
      | RETURN 1__0 AS v                         | SyntaxError | compile time |
      | MATCH (n:$x) RETURN n                    | SyntaxError | compile time |
      | MATCH (n) USING NOTHING n:A RETURN n     | SyntaxError | compile time |
