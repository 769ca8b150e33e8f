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
      | toString(datetime('2024-07-01T12:00[Europe/Berlin]'))         | '2024-07-01T12:00+02:00[Europe/Berlin]' |
      | 5 % 0.0                                                       | NaN                    |
      | 1 / 0.0                                                       | Inf                    |
      | -1 / 0.0                                                      | -Inf                   |
      | -5 / 2                                                        | -2                     |
      | 5 % -3                                                        | 2                      |
      | 2 ^ -1                                                        | 0.5                    |
      | -2 ^ 2                                                        | 4.0                    |
      | 2 ^ 3 ^ 2                                                     | 64.0                   |
      | 0.1 + 0.2 = 0.3                                               | false                  |
      | 9007199254740993 = 9007199254740992.0                         | false                  |
      | 9223372036854775807 = 9223372036854775807.0                   | false                  |
      | 9223372036854775807 < 9223372036854775808.0                   | true                   |
      | 'a' < 1                                                       | null                   |
      | 'a' = 1                                                       | false                  |
      | [1] < [1, 2]                                                  | true                   |
      | [1, null] < [2]                                               | true                   |
      | [1, null] < [1, 2]                                            | null                   |
      | null < null                                                   | null                   |
      | {a: 1} = {a: 1, b: null}                                      | false                  |
      | {a: null} = {a: null}                                         | null                   |
      | {a: 1} = {a: 1.0}                                             | true                   |
      | [null] = [null]                                               | null                   |
      | [1] = [null, 1]                                               | false                  |
      | [] = []                                                       | true                   |
      | 1 IN []                                                       | false                  |
      | null IN []                                                    | false                  |
      | [1, null] IN [[1, null]]                                      | null                   |
      | [1, 2] IN [[1, null]]                                         | null                   |
      | [1, 2] IN [1, [1, 2]]                                         | true                   |
      | true > false                                                  | true                   |
      | 0.0/0.0 = 0.0/0.0                                             | false                  |
      | 0.0/0.0 <> 0.0/0.0                                            | true                   |
      | 0.0/0.0 > 1                                                   | false                  |
      | 0.0/0.0 IN [0.0/0.0]                                          | false                  |
      | 1 <> null                                                     | null                   |
      | NOT null                                                      | null                   |
      | null OR true                                                  | true                   |
      | null AND false                                                | false                  |
      | null XOR true                                                 | null                   |
      | true AND NOT false OR false                                   | true                   |
      | NOT true = false                                              | true                   |
      | [1,2,3][0..]                                                  | [1, 2, 3]              |
      | [1,2,3][..-1]                                                 | [1, 2]                 |
      | [1,2,3][-2..]                                                 | [2, 3]                 |
      | [1,2,3][5..]                                                  | []                     |
      | [1,2,3][2..1]                                                 | []                     |
      | [1,2,3][null..2]                                              | null                   |
      | [1,2,3][null]                                                 | null                   |
      | {a: 1}[null]                                                  | null                   |
      | null[0]                                                       | null                   |
      | null.a                                                        | null                   |
      | [1,2] + 3                                                     | [1, 2, 3]              |
      | 3 + [1,2]                                                     | [3, 1, 2]              |
      | [1] + [2, [3]]                                                | [1, 2, [3]]            |
      | [1] + null                                                    | null                   |
      | 'a' + null                                                    | null                   |
      | 'a' + 1.0                                                     | 'a1.0'                 |
      | 1.0 + 'a'                                                     | '1.0a'                 |
      | substring('abc', 1)                                           | 'bc'                   |
      | substring('abc', 5)                                           | ''                     |
      | substring('abc', 1, 100)                                      | 'bc'                   |
      | left('abc', 10)                                               | 'abc'                  |
      | right('abc', 2)                                               | 'bc'                   |
      | left(null, 1)                                                 | null                   |
      | replace('aaa', 'a', 'b')                                      | 'bbb'                  |
      | split('abc', '')                                              | ['a', 'b', 'c']        |
      | split('', ',')                                                | ['']                   |
      | split(null, ',')                                              | null                   |
      | trim('  a ')                                                  | 'a'                    |
      | reverse('añb')                                                | 'bña'                  |
      | toUpper('straße')                                             | 'STRASSE'              |
      | size('')                                                      | 0                      |
      | size(null)                                                    | null                   |
      | head([])                                                      | null                   |
      | last([])                                                      | null                   |
      | tail([])                                                      | []                     |
      | tail([1])                                                     | []                     |
      | range(5, 1)                                                   | []                     |
      | range(5, 1, -2)                                               | [5, 3, 1]              |
      | range(1, 1)                                                   | [1]                    |
      | range(0, -3)                                                  | []                     |
      | toInteger('1.9')                                              | 1                      |
      | toInteger('-1.9')                                             | -1                     |
      | toInteger(' 7 ')                                              | 7                      |
      | toInteger(true)                                               | 1                      |
      | toInteger(null)                                               | null                   |
      | toFloat('abc')                                                | null                   |
      | toFloat(1)                                                    | 1.0                    |
      | toBoolean('TRUE')                                             | true                   |
      | toBoolean('x')                                                | null                   |
      | toBoolean(0)                                                  | false                  |
      | toString(1.5e10)                                              | '15000000000.0'        |
      | toString(-0.0)                                                | '-0.0'                 |
      | toString(true)                                                | 'true'                 |
      | abs(-3)                                                       | 3                      |
      | abs(-3.5)                                                     | 3.5                    |
      | ceil(-1.5)                                                    | -1.0                   |
      | floor(-1.5)                                                   | -2.0                   |
      | round(-1.5)                                                   | -1.0                   |
      | round(-0.5)                                                   | 0.0                    |
      | round(0.49999999999999994)                                    | 0.0                    |
      | round(1.5)                                                    | 2.0                    |
      | sign(-2.5)                                                    | -1                     |
      | sign(0)                                                       | 0                      |
      | sqrt(-1)                                                      | NaN                    |
      | log(0)                                                        | -Inf                   |
      | coalesce(null, null)                                          | null                   |
      | CASE null WHEN null THEN 1 ELSE 2 END                         | 2                      |
      | CASE WHEN false THEN 1 END                                    | null                   |
      | CASE 1 WHEN 1.0 THEN 'y' ELSE 'n' END                         | 'y'                    |
      | all(x IN [] WHERE false)                                      | true                   |
      | any(x IN [] WHERE true)                                       | false                  |
      | none(x IN [] WHERE true)                                      | true                   |
      | single(x IN [1, null] WHERE x = 1)                            | null                   |
      | all(x IN [1, null] WHERE x = 1)                               | null                   |
      | all(x IN [2, null] WHERE x = 1)                               | false                  |
      | none(x IN [1, null] WHERE x = 1)                              | false                  |
      | none(x IN [2, null] WHERE x = 1)                              | null                   |
      | single(x IN [1, 1, null] WHERE x = 1)                         | false                  |
      | [x IN [1, 2, null] WHERE x > 1]                               | [2]                    |
      | [x IN null \| x]                                              | null                   |
      | [x IN [1,2] \| [y IN [x, 10] \| x * y]]                       | [[1, 10], [4, 20]]     |
      | reduce(a = 1, x IN [] \| a * x)                               | 1                      |
      | reduce(a = 0, x IN [1, null] \| a + x)                        | null                   |
      | 'abc' STARTS WITH null                                        | null                   |
      | 'abc' STARTS WITH 1                                           | null                   |
      | 1 STARTS WITH 'a'                                             | null                   |
      | 'abc' =~ 'ab'                                                 | false                  |
      | 'ABC' =~ '(?i)abc'                                            | true                   |
      | 'a\nb' =~ 'a.b'                                               | false                  |
      | '\u0041'                                                      | 'A'                    |
      | "it's"                                                        | 'it\'s'                |
      | 0x1F                                                          | 31                     |
      | 0o17                                                          | 15                     |
      | .5                                                            | 0.5                    |
      | 1e3                                                           | 1000.0                 |
      | -9223372036854775808                                          | -9223372036854775808   |
      | {a: 1, a: 2}                                                  | {a: 2}                 |
      | {`b c`: 1}.`b c`                                              | 1                      |
      | keys({})                                                      | []                     |
      | [1, 'a', null, [true]]                                        | [1, 'a', null, [true]] |
      | 1 = 1 = true                                                  | false                  |
      | 1 < 3 > 2                                                     | true                   |
      | 1 < 2 = true                                                  | false                  |
      | (1 < 2) = true                                                | true                   |
      | 1 + 2 + 'a' + 1 + 2                                           | '3a12'                 |
      | 10 - 2 - 3                                                    | 5                      |
      | 2 * 3 % 4                                                     | 2                      |
      | 7 / 2 * 2                                                     | 6                      |
      | - 3                                                           | -3                     |
      | +3                                                            | 3                      |
      | null IS NULL AND 1 IS NOT NULL                                | true                   |
      | 1 IS NULL = false                                             | true                   |
      | size([1, null])                                               | 2                      |
      | exists({a: 1}.a)                                              | true                   |
      | [1,2,3] CONTAINS 2                                            | null                   |
      | toString(null)                                                | null                   |
      | degrees(pi())                                                 | 180.0                  |
      | e() > 2.7                                                     | true                   |
      | properties({a: 1})                                            | {a: 1}                 |
      | labels(null)                                                  | null                   |
      | id(null)                                                      | null                   |
      | 3 IN null                                                     | null                   |
      | [[1]] = [[1.0]]                                               | true                   |
      | 1 IN [[1]]                                                    | false                  |
      | '' = null                                                     | null                   |
      | atan2(0, 1)                                                   | 0.0                    |
      | haversin(0)                                                   | 0.0                    |
      | toLower('ÀB')                                                 | 'àb'                   |

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
