# Shaping rows: WITH, RETURN, DISTINCT, aggregation, ORDER BY, SKIP, LIMIT, UNWIND, UNION.
Feature: Project

  Scenario: [1] Groups, and what nothing aggregates to
    Given any graph
    When executing query:
      """
      UNWIND [{k: 'a', v: 1}, {k: 'b', v: 5}, {k: 'a', v: 3}, {k: 'b', v: null}] AS row
      RETURN row.k AS k, count(*) AS rows, count(row.v) AS values, sum(row.v) AS sum, avg(row.v) AS avg,
             min(row.v) AS min, max(row.v) AS max, collect(row.v) AS list
      """
    Then the result should be, in any order:
      | k   | rows | values | sum | avg | min | max | list   |
      | 'a' | 2    | 2      | 4   | 2.0 | 1   | 3   | [1, 3] |
      | 'b' | 2    | 1      | 5   | 5.0 | 5   | 5   | [5]    |
    And no side effects

  Scenario: [2] Without rows there is one group only when there are no keys
    Given any graph
    When executing query:
      """
      UNWIND [] AS x RETURN count(x) AS count, sum(x) AS sum, collect(x) AS list, max(x) AS max
      """
    Then the result should be, in any order:
      | count | sum | list | max  |
      | 0     | 0   | []   | null |
    When executing control query:
      """
      UNWIND [] AS x RETURN x, count(*) AS count
      """
    Then the result should be empty

  Scenario: [3] DISTINCT takes null and NaN for themselves, and 1 for 1.0
    Given any graph
    When executing query:
      """
      UNWIND [null, null, 1, 1.0, 0.0 / 0.0, 0.0 / 0.0, 'a'] AS x RETURN count(DISTINCT x) AS counted
      """
    Then the result should be, in any order:
      | counted |
      | 3       |
    And no side effects

  Scenario: [4] The order of types
    Given any graph
    When executing query:
      """
      UNWIND [1.5, 'text', null, true, [1], {a: 1}, -1] AS x RETURN x ORDER BY x
      """
    Then the result should be, in order:
      | x      |
      | {a: 1} |
      | [1]    |
      | 'text' |
      | true   |
      | -1     |
      | 1.5    |
      | null   |
    And no side effects

  Scenario: [5] Several keys, both ways, with SKIP and LIMIT
    Given any graph
    And parameters are:
      | many | 3 |
    When executing query:
      """
      UNWIND range(0, 9) AS x RETURN x % 3 AS third, x ORDER BY third DESC, x SKIP 1 LIMIT $many
      """
    Then the result should be, in order:
      | third | x |
      | 2     | 5 |
      | 2     | 8 |
      | 1     | 1 |
    And no side effects

  Scenario: [6] ORDER BY sees what came before the projection
    Given any graph
    When executing query:
      """
      UNWIND [{a: 1, b: 3}, {a: 2, b: 2}, {a: 3, b: 1}] AS row RETURN row.a AS a ORDER BY row.b
      """
    Then the result should be, in order:
      | a |
      | 3 |
      | 2 |
      | 1 |
    And no side effects

  Scenario: [7] WHERE after WITH filters groups
    Given any graph
    When executing query:
      """
      UNWIND ['x', 'y', 'x'] AS k WITH k, count(*) AS n WHERE n > 1 RETURN k, n
      """
    Then the result should be, in any order:
      | k   | n |
      | 'x' | 2 |
    And no side effects

  Scenario: [8] WITH hides what it does not name
    Given any graph
    When executing query:
      """
      WITH 1 AS a, 2 AS b WITH a RETURN b
      """
    Then a SyntaxError should be raised at compile time: UndefinedVariable

  Scenario: [9] UNWIND of nested lists, of an empty list and of null
    Given any graph
    When executing query:
      """
      UNWIND [[1, 2], [], null, [3]] AS list UNWIND list AS x RETURN x
      """
    Then the result should be, in order:
      | x |
      | 1 |
      | 2 |
      | 3 |
    And no side effects

  Scenario: [10] UNION drops duplicates, UNION ALL does not
    Given any graph
    When executing query:
      """
      UNWIND [1, 1, 2] AS x RETURN x UNION UNWIND [2, 3] AS x RETURN x
      """
    Then the result should be, in any order:
      | x |
      | 1 |
      | 2 |
      | 3 |
    When executing control query:
      """
      UNWIND [1, 1] AS x RETURN x UNION ALL RETURN 1 AS x
      """
    Then the result should be, in any order:
      | x |
      | 1 |
      | 1 |
      | 1 |

  Scenario: [11] An expression around an aggregate
    Given any graph
    When executing query:
      """
      UNWIND [1, 2, 3, 4] AS x RETURN x % 2 = 0 AS even, 100 * sum(x) + count(*) AS mixed
      """
    Then the result should be, in any order:
      | even  | mixed |
      | true  | 602   |
      | false | 402   |
    And no side effects

  Scenario: [12] A column is named as it is written
    Given any graph
    When executing query:
      """
      RETURN 1 +  1, toUpper('a')
      """
    Then the result should be, in any order:
      | 1 +  1 | toUpper('a') |
      | 2      | 'A'          |
    And no side effects

  Scenario: [13] A negative LIMIT
    Given any graph
    When executing query:
      """
      UNWIND [1] AS x RETURN x LIMIT -1
      """
    Then a SyntaxError should be raised at compile time: NegativeIntegerArgument
