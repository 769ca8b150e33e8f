# Reading: MATCH, OPTIONAL MATCH, WHERE, variable length, shortest paths.
Feature: Read

  Background:
    Given an empty graph
    And having executed:
      """
      CREATE (ann:Person {name: 'Ann', age: 41}), (bob:Person:Admin {name: 'Bob', age: 29}),
             (cid:Person {name: 'Cid'}), (oslo:City {name: 'Oslo'}),
             (ann)-[:KNOWS {since: 2001}]->(bob), (bob)-[:KNOWS {since: 2012}]->(cid),
             (cid)-[:KNOWS {since: 2020}]->(ann), (ann)-[:LIVES_IN]->(oslo), (bob)-[:LIVES_IN]->(oslo),
             (cid)-[:LIKES]->(cid)
      """

  Scenario: [1] Vertices come back with labels and properties
    When executing query:
      """
      MATCH (n:Admin) RETURN n
      """
    Then the result should be, in any order:
      | n                                     |
      | (:Person:Admin {name: 'Bob', age: 29}) |
    And no side effects

  Scenario: [2] A pattern of two edges through one vertex
    When executing query:
      """
      MATCH (a:Person)-[:LIVES_IN]->(c:City)<-[:LIVES_IN]-(b:Person)
      RETURN a.name AS a, c.name AS c, b.name AS b
      """
    Then the result should be, in any order:
      | a     | c      | b     |
      | 'Ann' | 'Oslo' | 'Bob' |
      | 'Bob' | 'Oslo' | 'Ann' |
    And no side effects

  Scenario: [3] An edge is used once in a pattern, a loop is seen once without direction
    When executing query:
      """
      MATCH (c {name: 'Cid'})-[r:LIKES]-(d) RETURN r, d.name AS name
      """
    Then the result should be, in any order:
      | r        | name  |
      | [:LIKES] | 'Cid' |
    And no side effects

  Scenario: [4] Two patterns in one MATCH share no edge, two MATCHes may
    When executing query:
      """
      MATCH (:Person {name: 'Ann'})-[r:KNOWS]->(), ()-[s:KNOWS]->(:Person {name: 'Bob'})
      RETURN count(*) AS one
      """
    Then the result should be, in any order:
      | one |
      | 0   |
    When executing control query:
      """
      MATCH (:Person {name: 'Ann'})-[r:KNOWS]->()
      MATCH ()-[s:KNOWS]->(:Person {name: 'Bob'})
      RETURN count(*) AS two
      """
    Then the result should be, in any order:
      | two |
      | 1   |

  Scenario Outline: [5] Variable length
    When executing query:
      """
      MATCH (:Person {name: 'Ann'})-[:KNOWS<length>]->(b) RETURN b.name AS name
      """
    Then the result should be, in any order:
      | name     |
      | <first>  |
      | <second> |
    And no side effects

    Examples:
      | length | first | second |
      | *1..2  | 'Bob' | 'Cid'  |
      | *0..1  | 'Ann' | 'Bob'  |
      | *2..   | 'Cid' | 'Ann'  |
      | *2..3  | 'Cid' | 'Ann'  |

  Scenario: [6] A path with its directions
    When executing query:
      """
      MATCH p = (:City)<-[:LIVES_IN]-(:Admin)-[:KNOWS]->() RETURN p
      """
    Then the result should be, in any order:
      | p                                                                                                                  |
      | <(:City {name: 'Oslo'})<-[:LIVES_IN]-(:Person:Admin {name: 'Bob', age: 29})-[:KNOWS {since: 2012}]->(:Person {name: 'Cid'})> |
    And no side effects

  Scenario: [7] OPTIONAL MATCH keeps the row and its WHERE belongs to it
    When executing query:
      """
      MATCH (p:Person)
      OPTIONAL MATCH (p)-[r:KNOWS]->(q) WHERE r.since > 2010
      RETURN p.name AS p, q.name AS q
      """
    Then the result should be, in any order:
      | p     | q     |
      | 'Ann' | null  |
      | 'Bob' | 'Cid' |
      | 'Cid' | 'Ann' |
    And no side effects

  Scenario: [8] A comparison with a property that is not there is neither true nor false
    When executing query:
      """
      MATCH (p:Person) WHERE p.age > 30 OR NOT p.age > 30 RETURN p.name AS name
      """
    Then the result should be, in any order:
      | name  |
      | 'Ann' |
      | 'Bob' |
    And no side effects

  Scenario: [9] A pattern as a predicate
    When executing query:
      """
      MATCH (p:Person) WHERE (p)-[:LIVES_IN]->(:City) AND NOT (p)-[:LIKES]->() RETURN p.name AS name
      """
    Then the result should be, in any order:
      | name  |
      | 'Ann' |
      | 'Bob' |
    And no side effects

  Scenario: [10] The shortest path
    When executing query:
      """
      MATCH (a {name: 'Ann'}), (c {name: 'Cid'}), p = shortestPath((a)-[:KNOWS*]->(c)) RETURN length(p) AS length
      """
    Then the result should be, in any order:
      | length |
      | 2      |
    And no side effects

  Scenario: [11] A pattern comprehension collects, row by row
    When executing query:
      """
      MATCH (p:Person) RETURN p.name AS name, [(p)-[:KNOWS|LIKES]->(q) WHERE q <> p | q.name] AS known
      """
    Then the result should be (ignoring element order for lists):
      | name  | known   |
      | 'Ann' | ['Bob'] |
      | 'Bob' | ['Cid'] |
      | 'Cid' | ['Ann'] |
    And no side effects

  Scenario: [12] EXISTS and COUNT with a subquery
    When executing query:
      """
      MATCH (p:Person) WHERE EXISTS { MATCH (p)-[r:KNOWS]->() WHERE r.since < 2015 }
      RETURN p.name AS name
      """
    Then the result should be, in any order:
      | name  |
      | 'Ann' |
      | 'Bob' |
    And no side effects

  Scenario: [13] Parameters
    And parameters are:
      | names | ['Ann', 'Nobody'] |
      | least | 40                |
    When executing query:
      """
      MATCH (p:Person) WHERE p.name IN $names AND p.age >= $least RETURN p.age AS age
      """
    Then the result should be, in any order:
      | age |
      | 41  |
    And no side effects

  Scenario: [14] No row, no error, for what is not there
    When executing query:
      """
      MATCH (n:Nothing {nowhere: 1})-[:NEVER]->(m) RETURN n, m
      """
    Then the result should be, in any order:
      | n | m |
    And no side effects
