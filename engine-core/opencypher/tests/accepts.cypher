// One query a line.
match (n) return n
Match (N:`A b`) Return N.`c d`
MATCH (n) RETURN n;
MATCH () RETURN count(*)
MATCH (:A) RETURN 1
MATCH (n:A:B:C) RETURN n
MATCH (n {}) RETURN n
MATCH (n {a: 1, b: 'x', c: [1, 2], d: $p}) RETURN n
MATCH (n:A {a: 1}), (m:B) RETURN n, m
MATCH (a)-->(b) RETURN a, b
MATCH (a)<--(b) RETURN a, b
MATCH (a)--(b) RETURN a, b
MATCH (a)<-->(b) RETURN a, b
MATCH (a)-[]->(b) RETURN a, b
MATCH (a)-[r]-(b) RETURN r
MATCH (a)<-[r]->(b) RETURN r
MATCH (a)-[r:R]->(b) RETURN r
MATCH (a)-[:R|S|T]->(b) RETURN b
MATCH (a)-[:R|:S]->(b) RETURN b
MATCH (a)-[r:R {x: 1}]->(b) RETURN r
MATCH (a)-[*]->(b) RETURN b
MATCH (a)-[*3]->(b) RETURN b
MATCH (a)-[*0..]->(b) RETURN b
MATCH (a)-[*..3]->(b) RETURN b
MATCH (a)-[*1..3]->(b) RETURN b
MATCH (a)-[r:R*1..3 {x: $x}]-(b) RETURN r, b
MATCH (a)-->()-->(b)<--(c)--(a) RETURN *
MATCH p = (a) RETURN p
MATCH p = (a)-[*]->(b), q = (b)-->(c) RETURN nodes(p), relationships(q), length(p)
MATCH ((a)-->(b)) RETURN a
MATCH p = shortestPath((a)-[:R*..10]->(b)) RETURN p
MATCH p = allShortestPaths((a)-[*]-(b)) WHERE a.x = 1 AND id(b) = 'b' RETURN p
MATCH (start)-[*]->(end) RETURN end
MATCH (count) RETURN count
MATCH (n) WHERE n.x = 1 RETURN n
MATCH (n) WHERE n.x <> 1 AND n.y >= 2 OR NOT n.z < 3 XOR n:A RETURN n
MATCH (n) WHERE n:A:B RETURN n
MATCH (n) WHERE n.x IS NULL OR n.y IS NOT NULL RETURN n
MATCH (n) WHERE n.x IN [1, 2, 3] RETURN n
MATCH (n) WHERE n.x IN $list AND NOT n.y IN [n.z] RETURN n
MATCH (n) WHERE n.name STARTS WITH 'a' AND n.name ENDS WITH 'b' AND n.name CONTAINS 'c' AND n.name =~ '.*' RETURN n
MATCH (n) WHERE 1 < n.x <= 5 RETURN n
MATCH (n) WHERE id(n) = 'v1' RETURN n
MATCH (n) WHERE id(n) IN $ids RETURN n
MATCH (n {`~id`: $id})-[:R]->(m) RETURN m.`~id`
MATCH (n) WHERE (n)-->() RETURN n
MATCH (n) WHERE NOT (n)-[:R]->(:B {x: 1}) RETURN n
MATCH (n) WHERE not((n)-[:R*1..2]-()) RETURN n
MATCH (n), (m) WHERE (n)--(m) OR (m)-->(n) RETURN n
MATCH (n) WHERE exists(n.x) RETURN n
MATCH (n) WHERE exists((n)-->()) RETURN n
MATCH (n) WHERE EXISTS { (n)-->(m) WHERE m.x = 1 } RETURN n
MATCH (n) WHERE EXISTS { MATCH (n)-->(m) WHERE m.x > n.x RETURN m } RETURN n
MATCH (n) WHERE EXISTS { MATCH (n)-->(m) WITH m WHERE EXISTS { (m)-->() } RETURN 1 } RETURN n
MATCH (n) WHERE COUNT { (n)-->() } > 2 RETURN n
MATCH (n) WHERE any(x IN n.list WHERE x > 1) AND all(x IN n.list WHERE x < 9) RETURN n
MATCH (n) WHERE none(x IN labels(n) WHERE x = 'A') OR single(x IN keys(n) WHERE x = 'k') RETURN n
MATCH (n) WHERE n['x'] = 1 AND n[$key] = 2 RETURN n
OPTIONAL MATCH (n) RETURN n
MATCH (a) OPTIONAL MATCH (a)-->(b) RETURN a, b
MATCH (a) OPTIONAL MATCH (a)-[r]->(b) WHERE b.x = a.x RETURN a, r, b
MATCH (a) OPTIONAL MATCH (a)-->(b) OPTIONAL MATCH (b)-->(c) RETURN *
MATCH (a) OPTIONAL MATCH p = (a)-[*1..2]->() RETURN p
MATCH (n) WITH n RETURN n
MATCH (n) WITH n AS m RETURN m
MATCH (n) WITH * RETURN *
MATCH (n) WITH *, n.x AS x RETURN x
MATCH (n) WITH DISTINCT n.x AS x RETURN x
MATCH (n) WITH n ORDER BY n.x DESC SKIP 1 LIMIT 2 RETURN n
MATCH (n) WITH n.x AS x WHERE x > 1 RETURN x
MATCH (n) WITH n.x AS x, count(*) AS c WHERE c > 1 RETURN x, c
MATCH (n) WITH n LIMIT 1 MATCH (n)-->(m) RETURN m
MATCH (n) WITH collect(n) AS ns UNWIND ns AS n MATCH (n)-->(m) RETURN m
MATCH (n) WITH count(n) AS c RETURN c
WITH 1 AS a, 2 AS b RETURN a + b AS c
UNWIND [1, 2, 3] AS x RETURN x
UNWIND $list AS x RETURN x.a, x['b']
UNWIND range(1, 10) AS x UNWIND [x, x * 2] AS y RETURN x, y
UNWIND null AS x RETURN x
UNWIND [] AS x RETURN x
RETURN 1
RETURN 1 AS one, 'two' AS two, 3.0, true, null, [], {}
RETURN DISTINCT 1 AS x
RETURN $p, $1, $`a b`
MATCH (n) RETURN n.x, n.y AS y ORDER BY y, n.x DESC, n.z ASCENDING SKIP $s LIMIT $l
MATCH (n) RETURN n ORDER BY n.x + n.y DESCENDING LIMIT 1 + 2
MATCH (n) RETURN DISTINCT n.x ORDER BY n.x
MATCH (n) RETURN n.x AS x, count(*) AS c ORDER BY c DESC, x
MATCH (n) RETURN n.x, count(*) ORDER BY n.x, count(*)
MATCH (n) RETURN count(n), count(DISTINCT n.x), sum(n.x), avg(n.x), min(n.x), max(n.x), collect(n), stDev(n.x), stDevP(n.x)
MATCH (n) RETURN n.x, count(*) + 1, collect(n.y)[0..3], {a: count(*), b: n.x}
MATCH (n) RETURN n, count(*) > 1 AND n.x = 2
MATCH (n) RETURN sum(n.x) / count(n.x) * 1.0 AS mean
MATCH (n) RETURN size(collect(DISTINCT n.x)) AS s
MATCH (n) RETURN labels(n), count(*)
MATCH (n) RETURN CASE WHEN n.x > 1 THEN 'a' ELSE 'b' END AS k, count(*)
MATCH (n) RETURN reduce(s = 0, x IN collect(n.x) | s + x) AS total
RETURN 1 + 2 - 3 * 4 / 5 % 6 ^ 7
RETURN -1, +1, - 1, -(1), 1--1, 0x1F, 0o17, -0x10, 1e3, 1.5e-3, .5
RETURN 'it\'s', "say \"hi\"", '\\ \n \t \u0041', 'é€😀'
RETURN [1, 2, 3][0], [1, 2, 3][-1], [1, 2, 3][0..2], [1, 2, 3][1..], [1, 2, 3][..1]
RETURN {a: 1}.a, {a: {b: 2}}.a.b, {a: 1}['a'], {`a b`: 1}.`a b`
RETURN [x IN range(1, 5)], [x IN range(1, 5) WHERE x % 2 = 0], [x IN range(1, 5) | x * x]
RETURN [x IN [1, 2] | [y IN [3, 4] WHERE y > x | {x: x, y: y}]]
RETURN CASE 1 WHEN 1 THEN 'a' WHEN 2 THEN 'b' ELSE 'c' END
RETURN CASE WHEN true THEN 1 END
RETURN reduce(a = 0, x IN [1, 2, 3] | a + x)
RETURN true AND false OR NOT true XOR null
RETURN 1 = 1.0, 1 <> 2, 1 < 2 < 3, 'a' < 'b', [1] = [1], null = null
RETURN 1 IN [1, 2], null IN [1], [1] IN [[1]]
RETURN null IS NULL, 1 IS NOT NULL
RETURN abs(-1), ceil(1.5), floor(1.5), round(1.5), sign(-2), sqrt(4), exp(1), log(1), log10(10), e(), pi(), rand()
RETURN sin(1), cos(1), tan(1), cot(1), asin(1), acos(1), atan(1), atan2(1, 2), degrees(1), radians(1), haversin(1)
RETURN toInteger('1'), toFloat('1.5'), toString(1), toBoolean('true')
RETURN substring('abc', 1), substring('abc', 1, 1), left('abc', 1), right('abc', 1), trim(' a '), lTrim(' a'), rTrim('a ')
RETURN toLower('A'), toUpper('a'), replace('abc', 'b', 'x'), split('a,b', ','), reverse('abc'), size('abc')
RETURN size([1]), head([1]), last([1]), tail([1, 2]), reverse([1, 2]), range(0, 10, 2), coalesce(null, 1)
RETURN timestamp(), datetime(), datetime('2020-01-01T00:00:00Z')
MATCH (n)-[r]->(m) RETURN id(n), elementId(n), labels(n), keys(n), properties(n), type(r), startNode(r), endNode(r)
MATCH (n) RETURN [(n)-->(m) | m.name] AS names
MATCH (n) RETURN [(n)-[r:R]->(m:B) WHERE m.x > n.x | {r: type(r), m: m}] AS l
MATCH (n) RETURN [p = (n)-[*1..2]->() | length(p)] AS l
MATCH (n) RETURN size([(n)-->(m) | m]) AS degree ORDER BY degree DESC
MATCH (a), (b) RETURN shortestPath((a)-[*]-(b)) AS p
MATCH (a), (b) WITH a, b, length(shortestPath((a)-[:R*..5]->(b))) AS l WHERE l > 1 RETURN l
MATCH p = (a)-[*]->(b) RETURN [n IN nodes(p) | n.name], all(r IN relationships(p) WHERE r.x > 1)
CREATE (n)
CREATE (n:A:B {x: 1, y: 'z', l: [1, 2]})
CREATE (:A), (:B)
CREATE (a)-[:R]->(b)
CREATE (a)<-[r:R {x: 1}]-(b:B) RETURN r
CREATE p = (a)-[:R]->(b)-[:S]->(c) RETURN p
CREATE (a $props)-[:R $props]->(b)
CREATE (n {`~id`: 'x', name: 'y'}) RETURN id(n)
MATCH (a), (b) CREATE (a)-[r:R {`~id`: 'e1'}]->(b) RETURN r
MATCH (a) CREATE (a)-[:R]->(:B {x: a.x})
UNWIND $rows AS row CREATE (n:A {x: row.x}) SET n += row.props
CREATE (a) CREATE (b) CREATE (a)-[:R]->(b) WITH a MATCH (a)-->(c) RETURN c
MERGE (n)
MERGE (n:A {x: 1}) RETURN n
MERGE (n:A {x: $x}) ON CREATE SET n.created = timestamp() ON MATCH SET n.seen = n.seen + 1
MATCH (a), (b) MERGE (a)-[r:R]->(b) ON CREATE SET r.x = 1, r.y = 2 RETURN r
MATCH (a) MERGE (a)-[:R]-(b:B {x: 1})
MERGE p = (a:A)-[:R]->(b:B) RETURN p
MERGE (a:A {x: 1}) MERGE (b:B {y: 2}) MERGE (a)-[:R {z: 3}]->(b)
MATCH (n) SET n.x = 1
MATCH (n) SET n.x = n.y + 1, n.y = null, n:A:B
MATCH (n)-[r]->(m) SET n = {a: 1}, m += $map, r.x = 1, n = properties(m)
MATCH (n) SET (n).x = 1
MATCH (n) REMOVE n.x, n:A:B
MATCH (n) DELETE n
MATCH (n)-[r]->() DELETE r, n
MATCH (n) DETACH DELETE n
MATCH p = (a)-[*]->(b) DELETE p
MATCH (n) WITH collect(n) AS ns DELETE ns[0]
MATCH (n) DELETE n RETURN count(*) AS c
MATCH (n) FOREACH (x IN [1, 2] | SET n.x = x)
MATCH p = (a)-->(b) FOREACH (n IN nodes(p) | SET n.seen = true REMOVE n:Old)
FOREACH (i IN range(1, 3) | CREATE (a:A {i: i}) FOREACH (j IN range(1, 2) | CREATE (a)-[:R]->(:B {j: j})))
RETURN 1 AS x UNION RETURN 2 AS x
RETURN 1 AS x UNION ALL RETURN 2 AS x UNION ALL RETURN 1 AS x
MATCH (n:A) RETURN n.x AS x ORDER BY x LIMIT 1 UNION MATCH (m:B) RETURN m.x AS x
CREATE (a:A) RETURN a.x AS x UNION MATCH (b) SET b.x = 1 RETURN b.x AS x
MATCH (n) /* a comment */ RETURN n // and another
