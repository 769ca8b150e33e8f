# Quantified path patterns: `((a)-[r]->(b) WHERE …){1,3}`.
Feature: Paths

  Background:
    Given an empty graph
    And having executed:
      """
      CREATE (a:A {n: 1}), (b:B {n: 2}), (c:C {n: 3}), (d:D {n: 4})
      CREATE (a)-[:T {w: 1}]->(b), (b)-[:T {w: 2}]->(c), (c)-[:T {w: 3}]->(d)
      CREATE (d)-[:S {w: 4}]->(a), (b)-[:S {w: 5}]->(d), (d)-[:L {w: 6}]->(d)
      """

  Scenario Outline: [1] A question and its answer
    When executing query:
      """
      <question>
      """
    Then the result should be, in order:
      | v   |
      | <v> |

    Examples:
      | question | v |
      | MATCH (:A) ((x)-[:T]->(y)){2} (z) RETURN [[n IN x \| n.n], [n IN y \| n.n], z.n] AS v | [[1, 2], [2, 3], 3] |
      | MATCH (:A) ((x)-[r:T]->(y))+ (z:D) RETURN [[e IN r \| e.w], size(x)] AS v | [[1, 2, 3], 3] |
      | MATCH (z:D) ((x)<-[r:T]-(y))+ (:A) RETURN [[n IN x \| n.n], [e IN r \| e.w]] AS v | [[4, 3, 2], [3, 2, 1]] |
      | MATCH (:A) ((x)-[:T]->(y)){0,1} (z) WITH z, size(x) AS s ORDER BY s RETURN collect([z.n, s]) AS v | [[1, 0], [2, 1]] |
      | MATCH (:A) ((x)-[:T]->(y)){,2} (z) RETURN count(*) AS v | 3 |
      | MATCH (:A) ((x)-[:T]->(y))* (z) RETURN count(*) AS v | 4 |
      | MATCH (:A) ((x)-[:T]->(y)){2,} (z) RETURN count(*) AS v | 2 |
      | MATCH ((x)-[:T]->(y WHERE y.n < 4)){2} RETURN [n IN y \| n.n] AS v | [2, 3] |
      | MATCH ((x)-[:T]->(y) WHERE x.n + y.n > 4){1,2} (m)-[:S]->(w) RETURN count(*) AS v | 2 |
      | MATCH (:A) ((x)-[:T]->(y)-[s]->(z)){1,2} (e) RETURN count(*) AS v | 4 |
      | MATCH (:A) ((x)-[t:T]->(y)-[s:T]->(z)){1} (e) RETURN [t[0].w, s[0].w, y[0].n] AS v | [1, 2, 2] |
      | MATCH p = (:A) ((x)-[:T]->(y)){2} (:C) RETURN [length(p), [n IN nodes(p) \| n.n], [r IN relationships(p) \| r.w]] AS v | [2, [1, 2, 3], [1, 2]] |
      | MATCH p = ((x)-[:T]->(y)-[:T]->(z)){1} (:D)-[:S]->(e) RETURN [r IN relationships(p) \| r.w] AS v | [2, 3, 4] |
      | MATCH (:A) ((x)-[r]->(y)){4} (z) RETURN count(*) AS v | 3 |
      | MATCH (a:A)-[q:T]->(b) ((x)-[r]->(y))+ (a) RETURN count(*) AS v | 4 |
      | MATCH (:A) ((x)-[:T]->(y)){1,2} ((u)-[:S]->(w)){1,2} (e) RETURN count(*) AS v | 2 |
      | MATCH ((x)-[:T]->(y))+ ((u)-[:T]->(w))+ RETURN count(*) AS v | 4 |
      | MATCH (:A) ((x)--(y)){2} (z:C) RETURN count(*) AS v | 2 |
      | MATCH (c:C) OPTIONAL MATCH (c) ((x)-[:S]->(y))+ (z) RETURN [x, z] AS v | [null, null] |
      | MATCH (a:A) MATCH (a) ((x)-[r]->(y) WHERE y.n > a.n){2} (z) WITH z ORDER BY z.n RETURN collect(z.n) AS v | [3, 4] |
      | MATCH (:A) ((x)-[:T]->(y) WHERE EXISTS { (y)-[:S]->() })+ (z) RETURN collect(z.n) AS v | [2] |
      | MATCH (:A) ((x)-[:T]->(y) WHERE COUNT { (y)-->() } > 1)+ (z) RETURN collect(z.n) AS v | [2] |
      | MATCH (x:C) RETURN EXISTS { (x) ((u)-[:T]->(w))+ (:D) } AS v | true |
      | MATCH (x:C) RETURN EXISTS { (x) ((u)-[:T]->(w))+ (:A) } AS v | false |
      | RETURN COUNT { (:A) ((x)-->(y)){1,2} (z) } AS v | 3 |
      | MATCH (:A) ((x)-[r]->(y)){2} (z) WHERE all(e IN r WHERE e.w < 3) RETURN z.n AS v | 3 |
      | MATCH ((x {n: 1})-[:T]->(y)){1} RETURN y[0].n AS v | 2 |
      | MATCH ((x)-[:L]->(x))+ RETURN [n IN x \| n.n] AS v | [4] |
      | MATCH p = ((x:A)-[r]->(y) WHERE y.n = 2) RETURN length(p) AS v | 1 |
      | MATCH (:A)((:A)-->(:B))+(:B) RETURN count(*) AS v | 1 |
      | MATCH (s) ((x)-[r:T]->(y))+ (z {n: 4}) WITH r ORDER BY size(r) RETURN collect([e IN r \| e.w]) AS v | [[3], [2, 3], [1, 2, 3]] |
      | MATCH (a:A), (a) ((x)-->(y)){0,1} (a) RETURN count(*) AS v | 1 |
      | MATCH (a:A), (d:D), (a) ((x)-[r]->(y)){2,3} (d) WITH r ORDER BY size(r) RETURN collect([e IN r \| e.w]) AS v | [[1, 5], [1, 2, 3], [1, 5, 6]] |
      | MATCH (:A) ((x)-[r]->(y)){1,2} (:D) RETURN [e IN r \| e.w] AS v | [1, 5] |
      | MATCH (:A) ((x)-[:NONE]->(y))* (z) RETURN z.n AS v | 1 |
      | MATCH (:A) ((x)-[r]->(y))+ (z) RETURN max(size(r)) AS v | 5 |
      | MATCH (:A) ((x)-[r:T]->(y))+ (z) UNWIND y AS one RETURN count(DISTINCT one) AS v | 3 |
      | UNWIND [1, 2] AS i MATCH (:A) ((x)-[r:T]->(y)){1,3} (z) WHERE size(r) = i WITH z ORDER BY z.n RETURN collect(z.n) AS v | [2, 3] |
      | MATCH p = ANY SHORTEST (:A)-[r WHERE r.w <> 5]->+(:D) RETURN length(p) AS v | 3 |
      | MATCH p = ANY SHORTEST (:A)-->+(:D) WHERE length(p) > 2 RETURN count(p) AS v | 0 |
      | MATCH p = ANY SHORTEST ((:A)-[r]->+(:D) WHERE size(r) > 2) RETURN [e IN r \| e.w] AS v | [1, 2, 3] |
      | MATCH p = ALL SHORTEST (a)-->+(b) WHERE a.n = 1 AND b.n = 4 AND length(p) = 2 RETURN count(p) AS v | 1 |
      | MATCH p = SHORTEST 2 (:A)-->+(:D) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [2, 3] |
      | MATCH p = SHORTEST 3 (:A)-->+(:D) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [2, 3, 3] |
      | MATCH p = SHORTEST 9 (:A)-->+(:D) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [2, 3, 3, 4] |
      | MATCH p = SHORTEST 2 GROUPS (:A)-->+(:D) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [2, 3, 3] |
      | MATCH p = ANY 2 (:A)-->+(:D) WITH length(p) AS l RETURN count(*) AS v | 2 |
      | MATCH p = ANY (:A)-->+(:D) RETURN count(*) AS v | 1 |
      | MATCH SHORTEST 2 PATHS (:A)-[r]->+(:D) WITH r ORDER BY size(r), r[2].w RETURN size(collect(r)) AS v | 2 |
      | MATCH p = ANY SHORTEST (:A) ((x)-[r]->(y) WHERE r.w <> 5)+ (:D) RETURN [n IN y \| n.n] AS v | [2, 3, 4] |
      | MATCH p = ALL SHORTEST (a:A) ((x)-[r]->(y))+ (b) WITH b, length(p) AS l ORDER BY b.n RETURN collect([b.n, l]) AS v | [[1, 3], [2, 1], [3, 2], [4, 2]] |
      | MATCH p = ANY SHORTEST (a) ((x)-[r]-(y))+ (a) WITH a, length(p) AS l ORDER BY a.n RETURN collect([a.n, l]) AS v | [[1, 3], [2, 3], [3, 3], [4, 1]] |
      | MATCH p = ANY SHORTEST ((:A) ((x)-[r]->(y))+ (:D) WHERE size(r) > 2) RETURN length(p) AS v | 3 |
      | MATCH p = SHORTEST 1 GROUPS ((:A) ((x)-[r]->(y))+ (:D) WHERE size(x) > 2) RETURN count(*) AS v | 2 |
      | MATCH p = SHORTEST 1 (:A) ((x)-[r]->(y))+ (:D) WHERE length(p) > 2 RETURN count(*) AS v | 0 |
      | MATCH p = SHORTEST 2 (a:A) ((x)-->(y)-->(z))+ (b) WITH b, length(p) AS l ORDER BY b.n, l RETURN collect([b.n, l]) AS v | [[1, 4], [1, 4], [3, 2], [4, 2], [4, 4]] |
      | MATCH (a:A), (d:D) MATCH p = SHORTEST 2 (a) ((x)-->(y))+ (d) RETURN sum(length(p)) AS v | 5 |
      | MATCH p = SHORTEST 2 (:A)-->*(b:A) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [0, 3] |
      | MATCH DIFFERENT RELATIONSHIPS (:A)-->+(:D) RETURN count(*) AS v | 4 |
      | MATCH p = TRAIL (:A)-->+(:D) RETURN count(*) AS v | 4 |
      | MATCH WALK PATHS (:A)-->+(:D) RETURN count(*) AS v | 4 |
      | MATCH p = ACYCLIC (:A)-->+(:D) RETURN count(*) AS v | 2 |
      | MATCH p = ACYCLIC PATH (:A) ((x)-[r]->(y))+ (z) WITH z, size(r) AS s ORDER BY z.n, s RETURN collect([z.n, s]) AS v | [[2, 1], [3, 2], [4, 2], [4, 3]] |
      | MATCH ACYCLIC (:A)-->*(z) RETURN count(*) AS v | 5 |
      | MATCH ACYCLIC (x)-[:L]->(y) RETURN count(*) AS v | 0 |
      | MATCH ACYCLIC (x)-[:T]->(y), (y)-[:T]->(z) RETURN count(*) AS v | 2 |
      | MATCH p = ANY SHORTEST TRAIL (:A)-->+(:D) RETURN length(p) AS v | 2 |
      | MATCH (x:A) RETURN COUNT { MATCH ACYCLIC (x)-->+(:D) } AS v | 2 |
      | MATCH (x:A)-->+(y) WHERE y.n = 4 RETURN count(*) AS v | 4 |
      | MATCH REPEATABLE ELEMENTS (:A)-->{1,4}(:D) RETURN count(*) AS v | 5 |
      | MATCH REPEATABLE ELEMENTS (:A)-[*1..4]->(:D) RETURN count(*) AS v | 5 |
      | MATCH (:A)-->{1,4}(:D) RETURN count(*) AS v | 4 |
      | MATCH REPEATABLE ELEMENTS p = (:A)-[:T]->(b)<-[:T]-(c) RETURN [n IN nodes(p) \| n.n] AS v | [1, 2, 1] |
      | MATCH (:A)-[:T]->(b)<-[:T]-(c) RETURN count(*) AS v | 0 |
      | MATCH REPEATABLE ELEMENTS TRAIL (:A)-[:T]->(b)<-[:T]-(c) RETURN count(*) AS v | 0 |
      | MATCH REPEATABLE ELEMENTS (:A)-[r]->(b), (c)-[s]->(b) RETURN r = s AS v | true |
      | MATCH REPEATABLE ELEMENTS TRAIL (:A)-[r]->(b), (c)-[s]->(b) RETURN count(*) AS v | 1 |
      | MATCH REPEATABLE ELEMENTS (x)-[:T]->(y), (z)-[:T]->(u) RETURN count(*) AS v | 9 |
      | MATCH REPEATABLE ELEMENTS (:A) ((x)-[r]-(y)-[s]-(z)){1} (e) RETURN count(*) AS v | 7 |
      | MATCH (:A) ((x)-[r]-(y)-[s]-(z)){1} (e) RETURN count(*) AS v | 5 |
      | MATCH REPEATABLE ELEMENTS (:A)-[r*2..2]-(b) RETURN count(*) AS v | 7 |
      | MATCH REPEATABLE ELEMENTS TRAIL (:A)-[r]-{2}(b) RETURN count(*) AS v | 5 |
      | MATCH REPEATABLE ELEMENT BINDINGS WALK (:A)-->{4}(:D) RETURN count(*) AS v | 2 |
      | MATCH REPEATABLE ELEMENTS ACYCLIC (:A)-->+(:D) RETURN count(*) AS v | 2 |
      | MATCH REPEATABLE ELEMENTS (:A)-[r WHERE r.w > 5 OR r.w < 2 OR r.w = 5]->{4}(:D) RETURN [e IN r \| e.w] AS v | [1, 5, 6, 6] |
      | MATCH REPEATABLE ELEMENTS p = ANY SHORTEST (a:A)-->+(d:D), q = SHORTEST 2 (d)-->{1,4}(:C) WITH length(p) AS l, length(q) AS m ORDER BY m RETURN collect([l, m]) AS v | [[2, 3], [2, 4]] |
      | MATCH REPEATABLE ELEMENTS p = ALL SHORTEST (a:A)--+(a) RETURN collect(length(p)) AS v | [2, 2] |
      | MATCH REPEATABLE ELEMENTS p = ANY SHORTEST (a:A)-->+(d:D), (d)-[:S]->(b) WHERE length(p) = 2 AND b = a RETURN count(*) AS v | 1 |
      | MATCH p = SIMPLE (:A)-->+(b) RETURN count(*) AS v | 6 |
      | MATCH SIMPLE (x)-[:L]->(y) RETURN count(*) AS v | 1 |
      | MATCH REPEATABLE ELEMENTS SIMPLE PATHS (:A)-->+(:D) RETURN count(*) AS v | 2 |
      | MATCH p = SHORTEST 3 ACYCLIC (:A)-->+(:D) WITH length(p) AS l ORDER BY l RETURN collect(l) AS v | [2, 3] |
      | MATCH ALL SHORTEST ACYCLIC (:A)-->+(:D) RETURN count(*) AS v | 1 |
      | MATCH p = ANY SHORTEST SIMPLE (a:A)-->+(a) RETURN length(p) AS v | 3 |
      | MATCH p = ANY SHORTEST ACYCLIC PATHS (a:A)-->+(a) RETURN count(*) AS v | 0 |
      | MATCH SHORTEST 2 (p = (:A)-->+(:D) WHERE length(p) > 2) RETURN collect(length(p)) AS v | [3, 3] |
      | MATCH ANY SHORTEST (p = (:A)-->+(:D) WHERE length(p) > 3) RETURN length(p) AS v | 4 |
      | MATCH ANY (p = (:A)-->{3,4}(:D)) RETURN length(p) AS v | 3 |
      | MATCH (p = (:A)-->+(:D) WHERE length(p) > 2) RETURN count(p) AS v | 3 |
      | MATCH (:A) (p = (x)-[:T]->(y)){2} (z) RETURN [q IN p \| [n IN nodes(q) \| n.n]] AS v | [[1, 2], [2, 3]] |
      | MATCH (:A) (p = (x)-[r]->(y) WHERE all(e IN relationships(p) WHERE e.w < 3)){1,3} (z) RETURN max(size(p)) AS v | 2 |

  Scenario Outline: [2] A query that is refused
    When executing query:
      """
      <query>
      """
    Then a SyntaxError should be raised at compile time: Any

    Examples:
      | query |
      | MATCH (((a)-->(b))+ (c)-->(d))+ RETURN 1 |
      | MATCH ((a)-[*1..2]->(b))+ RETURN 1 |
      | MATCH ((a)-->+(b)){2} RETURN 1 |
      | MATCH (a) ((a)-->(b))+ RETURN 1 |
      | MATCH (a) MATCH ((a)-->(b))+ RETURN 1 |
      | MATCH ((a)-->(b))+ ((b)-->(c))+ RETURN 1 |
      | MATCH ((a)-->(b))+ (b) RETURN 1 |
      | MATCH ((a)-[r]->(b))+ (c)-[r]->(d) RETURN 1 |
      | MATCH ((a)-->(b)){3,1} RETURN 1 |
      | MATCH ((a)-->(b)){0} RETURN 1 |
      | MATCH ((a)-->(b)){} RETURN 1 |
      | MATCH ((a))+ RETURN 1 |
      | MATCH ((a)-->(b) WHERE a.n < z.n)+ (z) RETURN 1 |
      | MATCH (z) ((a)-->(b) WHERE a.n < z.n)+ RETURN 1 |
      | MATCH ((a)-->(b))+ RETURN a.n |
      | MATCH ((a)-->(b) WHERE count(a) > 1)+ RETURN 1 |
      | MATCH p = ((a)-->(b))+, p = (c) RETURN 1 |
      | MATCH ((a)-->(b))+-->(c) RETURN 1 |
      | MATCH ((a)-->(b) RETURN 1 |
      | MATCH p = shortestPath(((a)-->(b))+) RETURN 1 |
      | MATCH REPEATABLE ELEMENTS (a)-->+(b) RETURN 1 |
      | MATCH REPEATABLE ELEMENTS (a)-[*]->(b) RETURN 1 |
      | MATCH REPEATABLE ELEMENTS SHORTEST 2 (a)-->+(b) RETURN 1 |
      | MATCH REPEATABLE ELEMENTS ANY SHORTEST ((a)-[r]->+(b) WHERE size(r) > 2) RETURN 1 |
      | MATCH REPEATABLE ELEMENTS p = shortestPath((a)-[*]->(b)) RETURN 1 |
      | MATCH REPEATABLE NODES (a)-->(b) RETURN 1 |
      | MATCH SHORTEST 2 (a)-->+(b), (c)-->(d) RETURN 1 |
      | MATCH p = (q = (a)-->(b)) RETURN 1 |
      | MATCH (p) (p = (a)-->(b)){2} RETURN 1 |
      | MATCH (p = (a)-->(p)){2} RETURN 1 |
      | MATCH q = SHORTEST 2 ((a)-->+(b) WHERE length(q) > 1) RETURN 1 |
      | CREATE (p = (a)-[:T]->(b)) |
      | CREATE ((a)-[:T]->(b)){2} |
      | MERGE ((a)-[:T]->(b)){2} |
      | CREATE ((a)-[:T]->(b) WHERE true) |
