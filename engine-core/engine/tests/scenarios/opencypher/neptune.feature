# Neptune's functions and procedures, and map projections, which its clients send.
Feature: Neptune

  Scenario Outline: [1] Functions of Neptune and their values
    Given any graph
    When executing query:
      """
      RETURN <expression> AS value
      """
    Then the result should be, in any order:
      | value   |
      | <value> |
    And no side effects

    Examples:
      | expression                                                                            | value                            |
      | join(['abc', 'def', 'ghi'], ', ')                                                     | 'abc, def, ghi'                  |
      | join([], ', ')                                                                        | ''                               |
      | join(null, ', ')                                                                      | null                             |
      | removeKeyFromMap({a: 1, b: 2}, 'a')                                                   | {b: 2}                           |
      | removeKeyFromMap({a: 1}, '')                                                          | {a: 1}                           |
      | removeKeyFromMap({a: {b: 2}, c: 1}, 'c').a                                            | {b: 2}                           |
      | removeKeyFromMap(null, 'a')                                                           | null                             |
      | textIndexOf('Amazon Neptune', 'e')                                                    | 8                                |
      | textIndexOf('Amazon Neptune', 'e', 9)                                                 | 13                               |
      | textIndexOf('Amazon Neptune', 'e', 9, 12)                                             | -1                               |
      | textIndexOf('Amazon Neptune', 'e', 9, -1)                                             | 13                               |
      | textIndexOf('grün', 'n')                                                              | 3                                |
      | textIndexOf('abc', '', 3)                                                             | 3                                |
      | textIndexOf('abc', '', 4)                                                             | -1                               |
      | textIndexOf('abc', 'x')                                                               | -1                               |
      | textIndexOf(null, 'x')                                                                | null                             |
      | collToSet([1, 6, 5, 1, 1, 5])                                                         | [1, 6, 5]                        |
      | collToSet([null, 1, null, 1.0, 'a'])                                                  | [null, 1, 'a']                   |
      | collSubtract([2, 5, 1, 0, 2], [1, 5])                                                 | [2, 0]                           |
      | collSubtract([2], null)                                                               | null                             |
      | collIntersection([2, 5, 1, 0], [1, 5])                                                | [5, 1]                           |
      | collSort([5, 3, 1])                                                                   | [1, 3, 5]                        |
      | collSort([5, null, 7], {order: 'desc'})                                               | [null, 7, 5]                     |
      | collSort([5, 3], null)                                                                | [3, 5]                           |
      | collSort(null)                                                                        | null                             |
      | collSortMaps([{a: 1, b: 2}, {a: 3}, {a: 2}], {key: 'a', order: 'DESC'})               | [{a: 3}, {a: 2}, {a: 1, b: 2}]   |
      | collSortMulti([{a: 1, b: 1}, {a: 2, b: 0}, {a: 1, b: 0}], [{key: 'a'}, {key: 'b'}])   | [{a: 1, b: 0}, {a: 1, b: 1}, {a: 2, b: 0}] |
      | collSortMulti([{a: 1}, {a: 2}, {a: 3}], [{key: 'a', order: 'desc'}], 1, 1)            | [{a: 2}]                         |
      | collSortMulti([{a: 3}, {a: 2}])                                                       | [{a: 3}, {a: 2}]                 |
      | year(datetime('2021-01-01T00:00:00+08:00'))                                           | 2020                             |
      | month(datetime('2021-06-01T00:00:00+08:00'))                                          | 5                                |
      | day(datetime('2021-06-03T00:00:00+08:00'))                                            | 2                                |
      | epochmillis(datetime('1970-01-01T00:00:01.5Z'))                                       | 1500                             |
      | size(randomUUID())                                                                    | 36                               |
      | randomUUID() = randomUUID()                                                           | false                            |
      | char_length('grün')                                                                   | 4                                |

  Scenario Outline: [2] Values that a function of Neptune does not take
    Given any graph
    When executing query:
      """
      WITH <value> AS value RETURN <expression>
      """
    Then a TypeError should be raised at runtime: InvalidArgumentValue

    Examples:
      | value            | expression                       |
      | [1]              | join(value, ',')                 |
      | 1                | removeKeyFromMap({}, value)      |
      | -2               | textIndexOf('a', 'a', value)     |
      | {order: 'up'}    | collSort([1], value)             |
      | 'no list'        | collToSet(value)                 |
      | 'no time'        | year(value)                      |

  Scenario: [3] Nodes are sorted by a property
    Given an empty graph
    And having executed:
      """
      CREATE (:Person {name: 'Alice', age: 23}), (:Person {name: 'Eve', age: 21}), (:Person {name: 'Bob', age: 25})
      """
    When executing query:
      """
      MATCH (n:Person) WITH collect(n) AS people
      RETURN [n IN collSortNodes(people, {key: 'age', order: 'desc'}) | n.name] AS names
      """
    Then the result should be, in any order:
      | names                   |
      | ['Bob', 'Alice', 'Eve'] |
    And no side effects

  Scenario: [4] Properties from a map without a key
    Given an empty graph
    When executing query:
      """
      UNWIND [{`~id`: 'id1', name: 'john'}, {`~id`: 'id2', name: 'jim'}] AS val
      CREATE (n {`~id`: val.`~id`})
      SET n += removeKeyFromMap(val, '~id')
      RETURN id(n) AS id, n{.*} AS properties
      """
    Then the result should be, in any order:
      | id    | properties     |
      | 'id1' | {name: 'john'} |
      | 'id2' | {name: 'jim'}  |
    And the side effects should be:
      | +nodes      | 2 |
      | +properties | 2 |

  Scenario Outline: [5] Map projections
    Given an empty graph
    And having executed:
      """
      CREATE (:Person {name: 'Ada', age: 36})-[:KNOWS {since: 1840}]->(:Person {name: 'Grace'})
      """
    When executing query:
      """
      MATCH (n {name: 'Ada'})-[r]->(m) OPTIONAL MATCH (m)-->(none) WITH *, 7 AS seven, {a: 1, b: 2} AS map
      RETURN <projection> AS value
      """
    Then the result should be, in any order:
      | value   |
      | <value> |
    And no side effects

    Examples:
      | projection                               | value                                      |
      | n{.*}                                    | {name: 'Ada', age: 36}                     |
      | n {.name}                                | {name: 'Ada'}                              |
      | n{.name, .nothing}                       | {name: 'Ada', nothing: null}               |
      | n{.*, age: null}                         | {name: 'Ada', age: null}                   |
      | n{.* , embedding: Null, id: Null}        | {name: 'Ada', age: 36, embedding: null, id: null} |
      | n{age: 'old', .*}                        | {name: 'Ada', age: 36}                     |
      | n{.name, seven, twice: n.age * 2}        | {name: 'Ada', seven: 7, twice: 72}         |
      | n{}                                      | {}                                         |
      | r{.*}                                    | {since: 1840}                              |
      | r{.since, friend: m{.name}}              | {since: 1840, friend: {name: 'Grace'}}     |
      | map{.*, c: 3}                            | {a: 1, b: 2, c: 3}                         |
      | map{.b}                                  | {b: 2}                                     |
      | none{.*}                                 | null                                       |
      | none{.name, seven}                       | null                                       |
      | [x IN [n, m] \| x{.name}]                | [{name: 'Ada'}, {name: 'Grace'}]           |

  Scenario: [6] A map projection beside an aggregate, as a key and around one
    Given an empty graph
    And having executed:
      """
      CREATE (a:Person {name: 'Ada'}), (a)-[:KNOWS]->(:Person {name: 'Grace'}), (a)-[:KNOWS]->(:Person {name: 'Joan'})
      """
    When executing query:
      """
      MATCH (n:Person)-[:KNOWS]->(m) WITH n, collect(m{.name}) AS friends
      RETURN n{.*, count: size(friends)} AS person, count(*) AS rows
      """
    Then the result should be, in any order:
      | person                   | rows |
      | {name: 'Ada', count: 2}  | 1    |
    And no side effects

  Scenario: [7] The schema of a graph
    Given an empty graph
    And having executed:
      """
      CREATE (a:Person {name: 'Ada', born: 1815}), (b:Person:Author {name: 'Grace'}), (c:City {big: true}),
             (a)-[:KNOWS {since: 1840}]->(b), (a)-[:KNOWS {since: 'long'}]->(b), (a)-[:IN]->(c)
      """
    When executing query:
      """
      CALL neptune.graph.pg_schema()
      YIELD schema
      RETURN schema
      """
    Then the result should be, in any order:
      | schema |
      | {nodeLabels: ['Author', 'City', 'Person'], edgeLabels: ['IN', 'KNOWS'], nodeLabelDetails: {Author: {properties: {name: {datatypes: ['String']}}}, City: {properties: {big: {datatypes: ['Boolean']}}}, Person: {properties: {born: {datatypes: ['Long']}, name: {datatypes: ['String']}}}}, edgeLabelDetails: {IN: {properties: {}}, KNOWS: {properties: {since: {datatypes: ['Long', 'String']}}}}, labelTriples: [{`~type`: 'IN', `~from`: 'Person', `~to`: 'City'}, {`~type`: 'KNOWS', `~from`: 'Person', `~to`: 'Author'}, {`~type`: 'KNOWS', `~from`: 'Person', `~to`: 'Person'}]} |
    And no side effects

  Scenario Outline: [8] Calls of a procedure
    Given an empty graph
    And having executed:
      """
      CREATE (:A), (:A), (:B)
      """
    When executing query:
      """
      <query>
      """
    Then the result should be, in any order:
      | <column> |
      | <value>  |
    And no side effects

    Examples:
      | query                                                                                  | column | value |
      | CALL neptune.graph.pg_schema() YIELD schema AS s RETURN size(s.nodeLabels) AS n        | n      | 2     |
      | CALL Neptune.Graph.pg_schema YIELD schema WITH schema RETURN size(schema.edgeLabels) AS n | n   | 0     |
      | MATCH (a:A) CALL neptune.graph.pg_schema() YIELD schema RETURN count(schema) AS n      | n      | 2     |
      | MATCH (a) CALL neptune.graph.pg_schema() RETURN count(*) AS n                          | n      | 3     |
      | CALL neptune.graph.pg_schema() YIELD schema WHERE size(schema.nodeLabels) > 2 RETURN count(*) AS n | n | 0 |

  Scenario Outline: [9] Calls that are refused
    Given any graph
    When executing query:
      """
      <query>
      """
    Then a SyntaxError should be raised at compile time: ProcedureNotFound

    Examples:
      | query                                                         |
      | CALL nonsense() YIELD x RETURN x                              |
      | CALL neptune.graph.pg_schema(1) YIELD schema RETURN schema    |
      | CALL neptune.graph.pg_schema() YIELD other RETURN other       |
      | MATCH (n) CALL neptune.graph.pg_schema() YIELD * RETURN n     |
      | MATCH (n) CALL neptune.graph.pg_schema() YIELD schema         |
      | WITH 1 AS schema CALL neptune.graph.pg_schema() YIELD schema RETURN schema |

  Scenario: [10] A call on its own answers what the procedure yields
    Given an empty graph
    And having executed:
      """
      CREATE (:A)
      """
    When executing query:
      """
      CALL neptune.graph.pg_schema()
      """
    Then the result should be, in any order:
      | schema |
      | {nodeLabels: ['A'], edgeLabels: [], nodeLabelDetails: {A: {properties: {}}}, edgeLabelDetails: {}, labelTriples: []} |
    And no side effects

  Scenario Outline: [11] Procedures that clients of Neo4j call
    Given an empty graph
    And having executed:
      """
      CREATE (:B {x: 1})-[:T {y: 2}]->(:A {x: 2})
      """
    When executing query:
      """
      <query>
      """
    Then the result should be, in order:
      | <column> |
      | <first>  |
      | <second> |
    And no side effects

    Examples:
      | query                                                        | column           | first | second |
      | CALL db.labels()                                             | label            | 'A'   | 'B'    |
      | CALL db.relationshipTypes() YIELD relationshipType AS t UNWIND [t, 'U'] AS u RETURN u | u | 'T' | 'U' |
      | CALL db.propertyKeys() YIELD propertyKey                     | propertyKey      | 'x'   | 'y'    |
      | CALL db.ping() YIELD success UNWIND [success, 1] AS x RETURN x | x              | true  | 1      |
      | CALL dbms.components() YIELD name, edition UNWIND [name, edition] AS x RETURN x | x | 'Tidegraph' | 'community' |
