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

// Subqueries, label tests, conditions in patterns, types, quantified relationships.
MATCH (x:A|B) RETURN collect(x.n) AS v
MATCH (x:!A) RETURN collect(x.n) AS v
MATCH (x:A&!B) RETURN collect(x.n) AS v
MATCH (x:%) RETURN count(*) AS v
MATCH (x IS A|D) RETURN collect(x.n) AS v
MATCH (x) WHERE x IS A RETURN collect(x.n) AS v
MATCH (x) RETURN collect(x:A|B) AS v
MATCH ()-[r:!T]->() RETURN collect(r.w) AS v
MATCH ()-[r:%]->() RETURN count(r) AS v
MATCH ()-[r IS S]->() RETURN collect(r.w) AS v
MATCH (:A)-[r:!S*]->(x) RETURN count(*) AS v
MATCH (a:A) RETURN [x IN [a] WHERE x:A | x.n] AS v
MATCH (x WHERE x.n > 2) RETURN collect(x.n) AS v
MATCH (x)-[r WHERE r.w > 3]->(y) RETURN collect(r.w) AS v
MATCH (x WHERE EXISTS { (x)-[:L]->() }) RETURN collect(x.n) AS v
MATCH (a:A) RETURN [(a)-[r WHERE r.w > 1]->(b WHERE b.n = 2) | r.w] AS v
MATCH (a:A) WHERE (a)-[:S|L]->() RETURN count(*) AS v
MATCH (x:$('A')) RETURN collect(x.n) AS v
MATCH (x:$any(['A', 'B'])) RETURN collect(x.n) AS v
MATCH ()-[r:$('S')]->() RETURN collect(r.w) AS v
MATCH (a:A) CREATE (a)-[r:$('N' + 'EW')]->(a) RETURN type(r) AS v
MATCH (x:A) SET x:$(['E', 'F']):G RETURN labels(x) AS v
MATCH (x:A) SET x['k' + 1] = 7 RETURN x.k1 AS v
MATCH (x:A) REMOVE x['n'] RETURN x.n AS v
MATCH (x:A) USING INDEX x:A(n) WHERE x.n = 1 RETURN x.n AS v
MATCH (all)-[exists:S]->(limit) RETURN all.n + limit.n AS v
MATCH (x:A) WITH x AS skip ORDER BY skip.n SKIP 0 LIMIT 1 RETURN skip.n AS v
RETURN 1_0.2_5 AS v
RETURN isNaN(NaN) AS v
WITH 1 AS `a b` RETURN `a b` AS v
RETURN '\u00e9' = 'é' AS v
RETURN CASE 5 WHEN 1, 5 THEN 'a' ELSE 'b' END AS v
RETURN CASE 'abc' WHEN STARTS WITH 'b' THEN 1 WHEN CONTAINS 'c', 'x' THEN 2 END AS v
UNWIND [1, 2, 3] AS x RETURN collect(CASE x WHEN < 2 THEN 'a' WHEN 3 THEN 'c' END) AS v
RETURN 1 :: STRING AS v
RETURN 1 IS TYPED INTEGER | STRING AS v
RETURN null IS :: INTEGER NOT NULL AS v
RETURN [1, 'a'] IS :: LIST<INTEGER | STRING NOT NULL> NOT NULL AS v
RETURN [1] IS :: INTEGER LIST AS v
MATCH (x:A) RETURN x IS :: ANY RELATIONSHIP AS v
RETURN 1.5 IS :: PROPERTY VALUE AS v
RETURN 'e\u0301' IS NOT NFC NORMALIZED AS v
MATCH (x)-[r:T*1..2]->(y) WITH r LIMIT 1 MATCH (p)-[r*]->(q) RETURN count(*) AS v
UNWIND [1, 2, 3] AS i CALL { WITH i RETURN i * 10 AS x } RETURN collect(x) AS v
UNWIND [1, 2] AS i CALL (*) { RETURN i + 1 AS x } RETURN collect(x) AS v
UNWIND [1, 2] AS i CALL { RETURN 7 AS x UNION RETURN 8 AS x } RETURN collect(i + x) AS v
UNWIND [1, 2] AS i CALL { WITH i RETURN i AS x UNION WITH i RETURN i AS x } RETURN collect(x) AS v
UNWIND [1, 2] AS i CALL (i) { UNWIND range(1, i) AS j RETURN sum(j) AS x, max(j) AS y } RETURN collect([i, x, y]) AS v
UNWIND [1, 2] AS i CALL (i) { MATCH (x) WHERE x.n = i RETURN x } RETURN collect(x.n) AS v
MATCH (x:A) CALL { WITH x MATCH (x)-->(y) WITH y AS z RETURN z.n AS c } RETURN collect(c) AS v
MATCH (x:A) CALL { MATCH (x:B) RETURN x.n AS c } RETURN x.n + c AS v
UNWIND [1, 2] AS i CALL (i) { CREATE (:New {n: i}) } MATCH (x:New) RETURN count(DISTINCT x) AS v
UNWIND [1, 2, 3] AS i CALL (i) { MATCH (x:New) WITH count(x) AS before CREATE (:New) RETURN before } RETURN collect(before) AS v
CALL { CREATE (:New) UNION CREATE (:New) } WITH 1 AS one MATCH (x:New) RETURN count(x) AS v
MATCH (x) CALL (x) { WITH x.n AS m RETURN * } RETURN sum(m) AS v
MATCH (x) WHERE EXISTS { MATCH (x)-[:S]->() RETURN 1 AS o UNION MATCH (x)-[:L]->() RETURN 1 AS o } RETURN collect(x.n) AS v
MATCH (x) WHERE EXISTS { WITH x MATCH (x)-->(y) WITH count(y) AS c WHERE c > 1 RETURN c } RETURN collect(x.n) AS v
MATCH (x:A) RETURN COUNT { MATCH (x)-->(y) RETURN y UNION ALL MATCH (x)<--(y) RETURN y } AS v
MATCH (x:A) RETURN COLLECT { MATCH (x)-[r]->() RETURN r.w ORDER BY r.w DESC } AS v
RETURN COLLECT { UNWIND [1, 2] AS i RETURN i UNION ALL UNWIND [3] AS i RETURN i } AS v
MATCH (x:A) RETURN EXISTS { CALL (x) { MATCH (x)-->(y) RETURN y } RETURN y } AS v
MATCH (x) WITH collect(x) AS all RETURN [x IN all WHERE (x)-[:T]->() | x.n] AS v
MATCH (x) WITH collect(x) AS all RETURN all(x IN all WHERE (x)-->()) AS v
WITH [1, null] AS l RETURN [x IN l[1] WHERE EXISTS { (x)-->() }] AS v
MATCH (x:A) RETURN [(x)-[r]->(y) WHERE EXISTS { (y)-[:S]->() } | r.w] AS v
MATCH (a:A), (c:C), p = shortestPath((a)-[r*]->(c)) WHERE none(x IN r WHERE x.w = 2) RETURN [x IN r | x.w] AS v
MATCH (a:A), (b:B), p = allShortestPaths((a)-[*]->(b)) WHERE length(p) > 1 RETURN count(p) AS v
MATCH (a:A), (c:C), p = shortestPath((a)-[*..1]->(c)) WHERE length(p) > 0 RETURN count(p) AS v
MATCH (a:A), (c:C), p = shortestPath((a)-[:!L*]->(c)) RETURN length(p) AS v
MATCH (a:A) FOREACH (i IN [5, 5] | MERGE (x:New {n: i}) SET x.k = i REMOVE x.k) WITH a MATCH (x:New) RETURN count(x) AS v
UNWIND [1, 2] AS i MERGE (x:New {all: size([(y:New)-[:Z]->() | 1]) + i}) CREATE (x)-[:Z]->(x) RETURN count(*) AS v
MATCH (:A)-[:T]->+(x) RETURN count(*) AS v
MATCH (:A)-[r]->{1,2}(x) RETURN collect(size(r)) AS v
MATCH (:A)-[r:T|S WHERE r.w > 1]->+(x:C) RETURN [e IN r | e.w] AS v
MATCH p = ANY SHORTEST (:A)-->+(:C) RETURN length(p) AS v
MATCH p = SHORTEST 1 (:A)-[:!L]->+(:C) RETURN length(p) AS v
UNWIND [1, 2, 3, 4] AS x RETURN percentileCont(x, 0.5) AS v
UNWIND [10, 20, 30] AS x RETURN percentileDisc(x, 0.0) AS v
UNWIND [3, null, 1] AS x RETURN percentileDisc(x, 1.0) AS v
UNWIND [1, 1, 4] AS x RETURN percentileCont(DISTINCT x, 0.5) AS v
UNWIND [1, 2, 3, 4] AS x RETURN round(stDevP(x), 4) AS v
RETURN isEmpty(null) AS v
RETURN [toFloatOrNull('1.5'), toFloatOrNull(true), toFloatOrNull(2)] AS v
RETURN [toStringOrNull(1), toStringOrNull([1]), toStringOrNull('a')] AS v
RETURN toFloatList(['1', 2, true]) AS v
RETURN toBooleanList(['true', 0, 'x']) AS v
RETURN [round(3.141592, 3), round(2.5), round(-2.5), round(-2.5, 0)] AS v
RETURN [round(1.25, 1, 'HALF_UP'), round(1.25, 1, 'HALF_DOWN'), round(1.25, 1, 'HALF_EVEN'), round(1.35, 1, 'half_even')] AS v
RETURN split('abc', '') AS v
RETURN split('a,b;c', [',', ';']) AS v
RETURN [nullIf(1, 1), nullIf(1, 2), nullIf(null, 1), nullIf(1, null)] AS v
RETURN valueType([1, 2]) AS v
RETURN valueType({a: 1}) AS v
MATCH (x:A) RETURN elementId(x) = id(x) AS v
RETURN size(normalize('e\u0301')) AS v
RETURN [btrim(' a '), btrim('xxaxx', 'x'), ltrim('xxa', 'x'), rtrim('axy', 'yx')] AS v
RETURN lower('A') + upper('b') AS v
RETURN [isNaN(0.0 / 0.0), isNaN(1), isNaN(null)] AS v
RETURN reduce(s = 0, x IN null | s + x) AS v
RETURN single(x IN [1, null] WHERE x = 1) AS v
LOAD CSV FROM 'file:///x.csv' AS row RETURN row
load csv with headers from $url as row fieldterminator ';' return row.a
LOAD CSV FROM 'file:///' + $name AS row CREATE (:A {a: row[0]})
MATCH (a) LOAD CSV WITH HEADERS FROM a.url AS row MERGE (b {x: row.x}) RETURN linenumber(), file()
LOAD CSV WITH HEADERS FROM $url AS row CALL (row) { CREATE (:A {a: row.a, n: linenumber()}) } RETURN count(*)
WITH 1 AS load, 2 AS csv, 3 AS headers, 4 AS file, 5 AS linenumber RETURN load + csv + headers + file + linenumber
