# Functions of Cypher 5.
Feature: Functions

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
      | question                                                                                                                                         | v                                                                                     |
      | UNWIND [1, 2, 3, 4] AS x RETURN percentileCont(x, 0.5) AS v                                                                                      | 2.5                                                                                   |
      | UNWIND [10, 20, 30] AS x RETURN percentileDisc(x, 0.5) AS v                                                                                      | 20                                                                                    |
      | UNWIND [10, 20, 30] AS x RETURN percentileDisc(x, 0.0) AS v                                                                                      | 10                                                                                    |
      | UNWIND [10, 20, 30] AS x RETURN percentileCont(x, 1) AS v                                                                                        | 30.0                                                                                  |
      | UNWIND [3, null, 1] AS x RETURN percentileDisc(x, 1.0) AS v                                                                                      | 3                                                                                     |
      | UNWIND [] AS x RETURN percentileCont(x, 0.5) AS v                                                                                                | null                                                                                  |
      | UNWIND [1, 1, 4] AS x RETURN percentileCont(DISTINCT x, 0.5) AS v                                                                                | 2.5                                                                                   |
      | UNWIND [1, 2, 3, 4] AS x RETURN round(stDev(x), 4) AS v                                                                                          | 1.291                                                                                 |
      | UNWIND [1, 2, 3, 4] AS x RETURN round(stDevP(x), 4) AS v                                                                                         | 1.118                                                                                 |
      | RETURN isEmpty('') AND isEmpty([]) AND isEmpty({}) AND NOT isEmpty('a') AS v                                                                     | true                                                                                  |
      | RETURN isEmpty(null) AS v                                                                                                                        | null                                                                                  |
      | RETURN [toIntegerOrNull('7'), toIntegerOrNull('x'), toIntegerOrNull([1]), toIntegerOrNull(true)] AS v                                            | [7, null, null, 1]                                                                    |
      | RETURN [toFloatOrNull('1.5'), toFloatOrNull(true), toFloatOrNull(2)] AS v                                                                        | [1.5, null, 2.0]                                                                      |
      | RETURN [toBooleanOrNull('true'), toBooleanOrNull(1.5), toBooleanOrNull(0)] AS v                                                                  | [true, null, false]                                                                   |
      | RETURN [toStringOrNull(1), toStringOrNull([1]), toStringOrNull('a')] AS v                                                                        | ['1', null, 'a']                                                                      |
      | RETURN toIntegerList(['1', 2.5, 'x', null, [1]]) AS v                                                                                            | [1, 2, null, null, null]                                                              |
      | RETURN toFloatList(['1', 2, true]) AS v                                                                                                          | [1.0, 2.0, null]                                                                      |
      | RETURN toStringList([1, true, null, [1]]) AS v                                                                                                   | ['1', 'true', null, null]                                                             |
      | RETURN toBooleanList(['true', 0, 'x']) AS v                                                                                                      | [true, false, null]                                                                   |
      | RETURN toIntegerList(null) AS v                                                                                                                  | null                                                                                  |
      | RETURN [round(3.141592, 3), round(2.5), round(-2.5), round(-2.5, 0)] AS v                                                                        | [3.142, 3.0, -2.0, -3.0]                                                              |
      | RETURN [round(1.249, 1, 'UP'), round(1.25, 1, 'DOWN'), round(1.21, 1, 'CEILING'), round(1.29, 1, 'FLOOR')] AS v                                  | [1.3, 1.2, 1.3, 1.2]                                                                  |
      | RETURN [round(1.25, 1, 'HALF_UP'), round(1.25, 1, 'HALF_DOWN'), round(1.25, 1, 'HALF_EVEN'), round(1.35, 1, 'half_even')] AS v                   | [1.3, 1.2, 1.2, 1.4]                                                                  |
      | RETURN size(randomUUID()) AS v                                                                                                                   | 36                                                                                    |
      | RETURN split('abc', '') AS v                                                                                                                     | ['a', 'b', 'c']                                                                       |
      | RETURN split('', ',') AS v                                                                                                                       | ['']                                                                                  |
      | RETURN split('', '')  AS v                                                                                                                       | ['', '']                                                                              |
      | RETURN split('', ['']) AS v                                                                                                                      | ['', '']                                                                              |
      | RETURN split('a', 'a') AS v                                                                                                                      | ['', '']                                                                              |
      | RETURN split('a,b;c', [',', ';']) AS v                                                                                                           | ['a', 'b', 'c']                                                                       |
      | RETURN split('aXYb', ['X', 'XY']) AS v                                                                                                           | ['a', 'Yb']                                                                           |
      | RETURN [nullIf(1, 1), nullIf(1, 2), nullIf(null, 1), nullIf(1, null)] AS v                                                                       | [null, 1, null, 1]                                                                    |
      | RETURN [valueType(1), valueType('a'), valueType(null), valueType(1.5), valueType(true)] AS v                                                     | ['INTEGER NOT NULL', 'STRING NOT NULL', 'NULL', 'FLOAT NOT NULL', 'BOOLEAN NOT NULL'] |
      | RETURN valueType([1, 2]) AS v                                                                                                                    | 'LIST<INTEGER NOT NULL> NOT NULL'                                                     |
      | RETURN valueType([]) AS v                                                                                                                        | 'LIST<NOTHING> NOT NULL'                                                              |
      | RETURN valueType({a: 1}) AS v                                                                                                                    | 'MAP NOT NULL'                                                                        |
      | MATCH (x:A) RETURN valueType(x) AS v                                                                                                             | 'NODE NOT NULL'                                                                       |
      | MATCH (x:A) RETURN elementId(x) = id(x) AS v                                                                                                     | true                                                                                  |
      | RETURN char_length('añb') + character_length('ab') AS v                                                                                          | 5                                                                                     |
      | RETURN size(normalize('e\\u0301')) AS v                                                                                                          | 1                                                                                     |
      | RETURN size(normalize('é', NFD)) AS v                                                                                                            | 2                                                                                     |
      | RETURN [btrim(' a '), btrim('xxaxx', 'x'), ltrim('xxa', 'x'), rtrim('axy', 'yx')] AS v                                                           | ['a', 'a', 'a', 'a']                                                                  |
      | RETURN [trim(BOTH 'x' FROM 'xax'), trim(LEADING 'x' FROM 'xax'), trim(TRAILING 'x' FROM 'xax'), trim(BOTH FROM ' a '), trim('x' FROM 'xa')] AS v | ['a', 'ax', 'xa', 'a', 'a']                                                           |
      | RETURN lower('A') + upper('b') AS v                                                                                                              | 'aB'                                                                                  |
      | RETURN [sinh(0), cosh(0), tanh(0), round(coth(1), 3), cot(1) > 0.64, haversin(0)] AS v                                                           | [0.0, 1.0, 0.0, 1.313, true, 0.0]                                                     |
      | RETURN [isNaN(0.0 / 0.0), isNaN(1), isNaN(null)] AS v                                                                                            | [true, false, null]                                                                   |
      | RETURN [range(0, 4, 2), range(3, 1, -1), range(3, 1)] AS v                                                                                       | [[0, 2, 4], [3, 2, 1], []]                                                            |
      | RETURN reduce(s = 0, x IN null \| s + x) AS v                                                                                                    | null                                                                                  |
      | RETURN single(x IN null WHERE x = 1) AS v                                                                                                        | null                                                                                  |
      | RETURN single(x IN [1, null] WHERE x = 1) AS v                                                                                                   | null                                                                                  |
      | RETURN none(x IN [] WHERE x = 1) AS v                                                                                                            | true                                                                                  |

  Scenario Outline: [2] A query that is refused
    When executing query:
      """
      <query>
      """
    Then a <kind> should be raised at <phase>: Any

    Examples:
      | query                                                | kind        | phase        |
      | UNWIND [1] AS x RETURN percentileCont(x, 1.5) AS v   | ArgumentError | runtime      |
      | UNWIND ['a'] AS x RETURN percentileDisc(x, 0.5) AS v | TypeError   | runtime      |
      | UNWIND [1] AS x RETURN percentileDisc(x) AS v        | SyntaxError | compile time |
      | RETURN isEmpty(1) AS v                               | SyntaxError | compile time |
      | WITH [1] AS x RETURN isNaN(x[0] + 'a') AS v          | TypeError   | runtime      |
      | RETURN round(1.5, 1, 'SIDEWAYS') AS v                | ArgumentError | runtime      |
      | RETURN normalize('a', 'NFX') AS v                    | ArgumentError | runtime      |
      | RETURN nullIf(1) AS v                                | SyntaxError | compile time |
      | RETURN split('a', [1]) AS v                          | TypeError   | runtime      |
