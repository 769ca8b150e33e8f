# Writing: CREATE, MERGE, SET, REMOVE, DELETE, FOREACH.
Feature: Write

  Scenario: [1] CREATE
    Given an empty graph
    When executing query:
      """
      CREATE (a:A {x: 1})-[r:T {y: 'z'}]->(b:B:C) RETURN a, r, b
      """
    Then the result should be, in any order:
      | a           | r             | b      |
      | (:A {x: 1}) | [:T {y: 'z'}] | (:B:C) |
    And the side effects should be:
      | +nodes         | 2 |
      | +relationships | 1 |
      | +labels        | 3 |
      | +properties    | 2 |

  Scenario: [2] CREATE for each row, null properties are not written
    Given an empty graph
    When executing query:
      """
      UNWIND [1, null, 3] AS x CREATE (:N {x: x})
      """
    Then the result should be empty
    And the side effects should be:
      | +nodes      | 3 |
      | +labels     | 1 |
      | +properties | 2 |

  Scenario: [3] What was created is seen by what follows, and not by what went before
    Given an empty graph
    And having executed:
      """
      CREATE (:N), (:N)
      """
    When executing query:
      """
      MATCH (n:N) CREATE (:N) WITH count(*) AS before MATCH (m:N) RETURN before, count(m) AS after
      """
    Then the result should be, in any order:
      | before | after |
      | 2      | 4     |
    And the side effects should be:
      | +nodes | 2 |

  Scenario: [4] MERGE makes what is not there, once
    Given an empty graph
    When executing query:
      """
      UNWIND ['a', 'b', 'a', 'a'] AS name
      MERGE (n:N {name: name}) ON CREATE SET n.seen = 1 ON MATCH SET n.seen = n.seen + 1
      RETURN count(*) AS rows
      """
    Then the result should be, in any order:
      | rows |
      | 4    |
    And the side effects should be:
      | +nodes      | 2 |
      | +labels     | 1 |
      | +properties | 4 |
    When executing control query:
      """
      MATCH (n) RETURN n
      """
    Then the result should be, in any order:
      | n                         |
      | (:N {name: 'a', seen: 3}) |
      | (:N {name: 'b', seen: 1}) |

  Scenario: [5] MERGE of an edge between two that are known
    Given an empty graph
    And having executed:
      """
      CREATE (a:A), (b:B), (a)-[:T {x: 1}]->(b)
      """
    When executing query:
      """
      MATCH (a:A), (b:B) MERGE (a)-[r:T {x: 2}]->(b) MERGE (a)-[s:T {x: 1}]->(b) RETURN r, s
      """
    Then the result should be, in any order:
      | r           | s           |
      | [:T {x: 2}] | [:T {x: 1}] |
    And the side effects should be:
      | +relationships | 1 |
      | +properties    | 1 |

  Scenario: [6] SET of properties, maps and labels
    Given an empty graph
    And having executed:
      """
      CREATE (:A {keep: 1, change: 1, drop: 1}), (:B {gone: 1})
      """
    When executing query:
      """
      MATCH (a:A), (b:B)
      SET a.change = 2, a.drop = null, a += {more: 'm'}, a:Extra, b = {only: true}
      RETURN a, b
      """
    Then the result should be, in any order:
      | a                                         | b                 |
      | (:A:Extra {keep: 1, change: 2, more: 'm'}) | (:B {only: true}) |
    And the side effects should be:
      | +labels     | 1 |
      | +properties | 3 |
      | -properties | 3 |

  Scenario: [7] SET reads what was there before its row
    Given an empty graph
    And having executed:
      """
      CREATE (:N {x: 1, y: 2})
      """
    When executing query:
      """
      MATCH (n:N) WITH n, n.x AS x, n.y AS y SET n.x = y, n.y = x RETURN n.x AS x, n.y AS y
      """
    Then the result should be, in any order:
      | x | y |
      | 2 | 1 |
    And the side effects should be:
      | +properties | 2 |
      | -properties | 2 |

  Scenario: [8] REMOVE of a property and of a label
    Given an empty graph
    And having executed:
      """
      CREATE (:A:B {x: 1, y: 2})
      """
    When executing query:
      """
      MATCH (n:A) REMOVE n.x, n:B, n.nothing RETURN n
      """
    Then the result should be, in any order:
      | n           |
      | (:A {y: 2}) |
    And the side effects should be:
      | -labels     | 1 |
      | -properties | 1 |

  Scenario: [9] DELETE of edges, then of vertices
    Given an empty graph
    And having executed:
      """
      CREATE (:A)-[:T {x: 1}]->(:B)
      """
    When executing query:
      """
      MATCH (a:A)-[r]->(b) DELETE r, a, b
      """
    Then the result should be empty
    And the side effects should be:
      | -nodes         | 2 |
      | -relationships | 1 |
      | -labels        | 2 |
      | -properties    | 1 |

  Scenario: [10] DELETE of a vertex that has edges is refused as a whole
    Given an empty graph
    And having executed:
      """
      CREATE (:A)-[:T]->(:B), (:C)
      """
    When executing query:
      """
      MATCH (n) WHERE n:A OR n:C DELETE n
      """
    Then a ConstraintVerificationFailed should be raised at runtime: DeleteConnectedNode
    And no side effects

  Scenario: [11] DETACH DELETE
    Given an empty graph
    And having executed:
      """
      CREATE (a:A)-[:T]->(b:B)-[:T]->(a), (b)-[:T]->(b)
      """
    When executing query:
      """
      MATCH (a:A) DETACH DELETE a
      """
    Then the result should be empty
    And the side effects should be:
      | -nodes         | 1 |
      | -relationships | 2 |
      | -labels        | 1 |

  Scenario: [12] FOREACH writes and yields nothing
    Given an empty graph
    When executing query:
      """
      CREATE (a:A) FOREACH (x IN [1, 2] | CREATE (a)-[:T]->(:B {x: x}))
      """
    Then the result should be empty
    And the side effects should be:
      | +nodes         | 3 |
      | +relationships | 2 |
      | +labels        | 2 |
      | +properties    | 2 |

  Scenario: [13] A request that fails at its end writes nothing
    Given an empty graph
    When executing query:
      """
      UNWIND [2, 1, 0] AS x CREATE (:N {x: 1 / x})
      """
    Then a ArithmeticError should be raised at runtime: DivisionByZero
    And no side effects

  Scenario: [14] A null in the pattern of MERGE
    Given an empty graph
    When executing query:
      """
      UNWIND [null] AS x MERGE (:N {x: x})
      """
    Then a SemanticError should be raised at runtime: MergeReadOwnWrites
    And no side effects

  Scenario: [15] An edge needs a type and a direction to be made
    Given any graph
    When executing query:
      """
      CREATE (:A)-[:T]-(:B)
      """
    Then a SyntaxError should be raised at compile time: RequiresDirectedRelationship

  Scenario: [16] A property of a deleted node cannot be read, not even in a condition
    Given an empty graph
    And having executed:
      """
      CREATE (:N {x: 1})-[:T {y: 2}]->(:N {x: 3})
      """
    When executing query:
      """
      MATCH (n:N {x: 1}) DETACH DELETE n WITH n WHERE n.x = 1 RETURN 1 AS one
      """
    Then a EntityNotFound should be raised at runtime: DeletedEntityAccess

  Scenario: [17] A property of a relationship that went with its node cannot be read
    Given an empty graph
    And having executed:
      """
      CREATE (:N {x: 1})-[:T {y: 2}]->(:N {x: 3})
      """
    When executing query:
      """
      MATCH (n:N {x: 1})-[r]->() DETACH DELETE n RETURN r['y']
      """
    Then a EntityNotFound should be raised at runtime: DeletedEntityAccess

  Scenario: [18] Keys and label tests of a deleted node cannot be read
    Given an empty graph
    And having executed:
      """
      CREATE (:N {x: 1})-[:T {y: 2}]->(:N {x: 3})
      """
    When executing query:
      """
      MATCH (n:N {x: 1}) DETACH DELETE n RETURN n:N
      """
    Then a EntityNotFound should be raised at runtime: DeletedEntityAccess

  Scenario: [19] What is not deleted can be read, and the type of what is
    Given an empty graph
    And having executed:
      """
      CREATE (:N {x: 1})-[:T {y: 2}]->(:N {x: 3})
      """
    When executing query:
      """
      MATCH (n {x: 1})-[r]->(m) DELETE r RETURN n.x AS x, m.x AS y, type(r) AS t
      """
    Then the result should be, in any order:
      | x | y | t   |
      | 1 | 3 | 'T' |
