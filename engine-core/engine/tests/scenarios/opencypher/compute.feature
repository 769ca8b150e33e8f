# Expressions.
Feature: Compute

  Scenario Outline: [1] Expressions and their values
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
      | expression                                                    | value                  |
      | 7 / 2                                                         | 3                      |
      | -7 % 3                                                        | -1                     |
      | 2 ^ 10                                                        | 1024.0                 |
      | 1 + 2.5 * 2                                                   | 6.0                    |
      | 'a' + 1 + [2][0]                                              | 'a12'                  |
      | null = null                                                   | null                   |
      | null IN [1, 2]                                                | null                   |
      | 3 IN [1, null, 3]                                             | true                   |
      | 2 IN [1, null, 3]                                             | null                   |
      | [1, null] = [1, 2]                                            | null                   |
      | [1, 2] = [1, 2.0]                                             | true                   |
      | 1 < 2 < 3                                                     | true                   |
      | true XOR null                                                 | null                   |
      | false AND null                                                | false                  |
      | NOT (true OR null)                                            | false                  |
      | CASE 2 WHEN 1 THEN 'one' WHEN 2 THEN 'two' END                | 'two'                  |
      | CASE WHEN null THEN 1 ELSE 2 END                              | 2                      |
      | [x IN range(1, 5) WHERE x % 2 = 1 \| x * x]                   | [1, 9, 25]             |
      | reduce(sum = 0, x IN [1, 2, 3] \| sum + x)                    | 6                      |
      | all(x IN [1, 2] WHERE x > 0)                                  | true                   |
      | any(x IN [null, 1] WHERE x = 2)                               | null                   |
      | [1, 2, 3, 4][1..-1]                                           | [2, 3]                 |
      | [1, 2, 3][-1]                                                 | 3                      |
      | [1][5]                                                        | null                   |
      | {a: {b: [10, 20]}}.a.b[1]                                     | 20                     |
      | {a: 1}['b']                                                   | null                   |
      | 'tidegraph' STARTS WITH 'tide' AND 'tidegraph' ENDS WITH 'ph' | true                   |
      | 'abc' CONTAINS 'd'                                            | false                  |
      | 'abc' =~ 'a.*'                                                | true                   |
      | split('a,b,,c', ',')                                          | ['a', 'b', '', 'c']    |
      | substring('hello', 1, 3)                                      | 'ell'                  |
      | toInteger('42') + toInteger(2.9)                              | 44                     |
      | toFloat('1e3')                                                | 1000.0                 |
      | toInteger('x')                                                | null                   |
      | coalesce(null, 2, 3)                                          | 2                      |
      | size('naïve')                                                 | 5                      |
      | reverse([1, 2, 3])                                            | [3, 2, 1]              |
      | keys({a: 1, b: null})                                         | ['a', 'b']             |
      | 0.0 / 0.0                                                     | NaN                    |
      | round(2.5)                                                    | 3.0                    |
      | toString(1.0)                                                 | '1.0'                  |
      | 'it\'s'                                                       | 'it\'s'                |
      | toString(datetime('2024-07-01T12:00[Europe/Berlin]'))         | '2024-07-01T10:00:00Z' |

  Scenario: [2] Division by zero
    Given any graph
    When executing query:
      """
      WITH 0 AS zero RETURN 1 / zero
      """
    Then a ArithmeticError should be raised at runtime: DivisionByZero

  Scenario: [3] A number too large
    Given any graph
    When executing query:
      """
      WITH 9223372036854775807 AS most RETURN most + 1
      """
    Then a ArithmeticError should be raised at runtime: IntegerOverflow

  Scenario: [4] A function that there is not
    Given any graph
    When executing query:
      """
      RETURN nonsense(1)
      """
    Then a SyntaxError should be raised at compile time: UnknownFunction

  Scenario: [5] A parameter that was not given
    Given any graph
    When executing query:
      """
      RETURN $nothing
      """
    Then a ParameterMissing should be raised at compile time: MissingParameter
