# Dates, times, durations, points, and lists as properties, beyond what the TCK has.
Feature: Temporal

  Scenario Outline: [1] Expressions and their values
    Given any graph
    When executing query:
      """
      RETURN toString(<expression>) AS value
      """
    Then the result should be, in any order:
      | value   |
      | <value> |
    And no side effects

    Examples:
      | expression                                                                         | value                                      |
      | date('2024-02-29') + duration('P1Y')                                               | '2025-02-28'                               |
      | date('2024-01-31') + duration('P1M')                                               | '2024-02-29'                               |
      | date('2024-03-31') - duration('P1M1D')                                             | '2024-02-28'                               |
      | date('2024-01-01') + duration('PT47H')                                             | '2024-01-02'                               |
      | localtime('23:30') + duration('PT1H')                                              | '00:30'                                    |
      | datetime('2024-03-31T00:30[Europe/Berlin]') + duration('P1D')                      | '2024-04-01T00:30+02:00[Europe/Berlin]'    |
      | datetime('2024-03-31T00:30[Europe/Berlin]') + duration('PT24H')                    | '2024-04-01T01:30+02:00[Europe/Berlin]'    |
      | datetime('2024-03-31T02:30[Europe/Berlin]')                                        | '2024-03-31T03:30+02:00[Europe/Berlin]'    |
      | duration('P1M') * 2.5                                                              | 'P2M15DT5H14M33S'                          |
      | duration('PT49S') / 49                                                             | 'PT1S'                                     |
      | duration('P49M') / 49                                                              | 'P1M'                                      |
      | duration({days: 1}) - duration({hours: 1})                                         | 'P1DT-1H'                                  |
      | duration.between(date('2024-01-31'), date('2024-02-29'))                           | 'P29D'                                     |
      | duration.between(date('2024-02-29'), date('2024-01-31'))                           | 'P-29D'                                    |
      | duration.inDays(date('2024-03-01'), date('2024-02-28'))                            | 'P-2D'                                     |
      | date.truncate('quarter', date('2024-08-14'))                                       | '2024-07-01'                               |
      | datetime.truncate('day', datetime('2024-03-31T12:00[Europe/Berlin]'))              | '2024-03-31T00:00+01:00[Europe/Berlin]'    |
      | date({year: 2024, quarter: 2, dayOfQuarter: 91})                                   | '2024-06-30'                               |
      | datetime({epochSeconds: 0, timezone: 'Asia/Tokyo'})                                | '1970-01-01T09:00+09:00[Asia/Tokyo]'       |
      | datetime(1000)                                                                     | '1970-01-01T00:00:01Z'                     |
      | time({hour: 12, timezone: '-00:30'})                                               | '12:00-00:30'                              |
      | point({x: 1, y: 2})                                                                | 'point({x: 1.0, y: 2.0, crs: \'cartesian\'})' |
      | round(point.distance(point({longitude: 12.5, latitude: 55.7}), point({longitude: 13.4, latitude: 52.5})) / 1000) | '361.0' |
      | point.distance(point({x: 0, y: 0, z: 0}), point({x: 2, y: 3, z: 6}))               | '7.0'                                      |
      | point.distance(point({x: 0, y: 0}), point({longitude: 0, latitude: 0}))            | null                                       |
      | point.withinBBox(point({x: 1, y: 1}), point({x: 0, y: 0}), point({x: 2, y: 1}))    | 'true'                                     |
      | point({x: 1, y: 2, srid: 7203}).srid                                               | '7203'                                     |
      | duration('P1D') < duration('PT25H')                                                | null                                       |
      | duration('P1D') = duration('PT24H')                                                | 'false'                                    |
      | date('2024-01-01') < datetime('2025-01-01')                                        | null                                       |
      | date('2024-01-01') = datetime('2024-01-01')                                        | 'false'                                    |
      | datetime('2024-01-01T12:00+01:00') = datetime('2024-01-01T11:00Z')                 | 'false'                                    |
      | datetime('2024-01-01T12:00+01:00') > datetime('2024-01-01T11:00Z')                 | 'true'                                     |
      | datetime('2024-01-01T12:00+01:00') < datetime('2024-01-01T11:00:00.001Z')          | 'true'                                     |
      | date({year: null})                                                                 | null                                       |
      | date('2024-01-01').weekYear                                                        | '2024'                                     |
      | duration('P1Y2M').monthsOfYear                                                     | '2'                                        |

  Scenario Outline: [2] Wrong values are refused with a reason
    Given any graph
    When executing query:
      """
      RETURN <expression> AS value
      """
    Then a ArgumentError should be raised at runtime: *

    Examples:
      | expression                                           |
      | date('2024-02-30')                                   |
      | date('2023-02-29')                                   |
      | date({year: 2024, month: 13})                        |
      | date({year: 12024})                                  |
      | date({month: 1})                                     |
      | date({year: 2024, hour: 1})                          |
      | date({year: 2024, day: 1})                           |
      | date({year: 2024, week: 1, month: 1})                |
      | time('25:00')                                        |
      | localtime({minute: 1})                               |
      | datetime('2024-01-01T00:00[Europe/Atlantis]')        |
      | datetime({year: 2024, timezone: '+25:00'})           |
      | duration('P1X')                                      |
      | duration({years: 9223372036854775807})               |
      | duration('P1D') * 9223372036854775807 * 2            |
      | date('9999-12-31') + duration('P1D')                 |
      | datetime.truncate('fortnight', datetime())           |
      | date.truncate('hour', datetime())                    |
      | point({x: 1})                                        |
      | point({longitude: 1, latitude: 91})                  |
      | point({x: 1, y: 2, crs: 'flat'})                     |
      | date('2024-01-01').hour                              |

  Scenario: [3] Values are stored, found by an index, ordered and grouped
    Given an empty graph
    And having executed:
      """
      CREATE INDEX born FOR (p:Person) ON (p.born)
      """
    And having executed:
      """
      UNWIND ['2001-05-17', '1999-12-31', '2001-05-17'] AS day
      CREATE (:Person {born: date(day), seen: [date(day), date('2020-01-01')]})
      """
    When executing query:
      """
      MATCH (p:Person) WHERE p.born >= date('2000-01-01')
      RETURN p.born AS born, p.seen[1].year AS year, count(*) AS count ORDER BY born
      """
    Then the result should be, in order:
      | born         | year | count |
      | '2001-05-17' | 2020 | 2     |
    And no side effects

  Scenario: [4] The total order of types
    Given any graph
    When executing query:
      """
      UNWIND [1, 'text', true, duration('P1D'), localtime('12:00'), time('12:00Z'), date('2024-01-01'),
              localdatetime('2024-01-01'), datetime('2024-01-01'), null] AS value
      WITH value ORDER BY value RETURN collect(toString(value)) AS values
      """
    Then the result should be, in any order:
      | values                                                                                                                    |
      | ['2024-01-01T00:00Z', '2024-01-01T00:00', '2024-01-01', '12:00Z', '12:00', 'P1D', 'text', 'true', '1'] |
    And no side effects

  Scenario: [5] Sums and averages of durations
    Given any graph
    When executing query:
      """
      UNWIND [duration('P1M'), duration('P3M'), null] AS length
      RETURN toString(sum(length)) AS sum, toString(avg(length)) AS avg, toString(max(length)) AS max
      """
    Then the result should be, in any order:
      | sum   | avg   | max   |
      | 'P4M' | 'P2M' | 'P3M' |
    And no side effects

  Scenario Outline: [6] Lists of one type are property values, others are refused
    Given an empty graph
    When executing query:
      """
      CREATE (n {list: <list>}) RETURN n.list = <list> AS same
      """
    Then the result should be, in any order:
      | same |
      | true |
    And the side effects should be:
      | +nodes      | 1 |
      | +properties | 1 |

    Examples:
      | list                                           |
      | []                                             |
      | ['a', 'b', 'a']                                |
      | [1, 2.5]                                       |
      | [duration('P1D'), duration('PT24H')]           |
      | [point({x: 1, y: 2})]                          |
      | [true, false]                                  |

  Scenario Outline: [7] Lists that no property holds
    Given any graph
    When executing query:
      """
      CREATE (n {list: <list>})
      """
    Then a TypeError should be raised at runtime: InvalidPropertyType

    Examples:
      | list                  |
      | [1, 'a']              |
      | [[1]]                 |
      | [{a: 1}]              |
      | [1, null]             |

  Scenario: [8] A list is one value, unlike the values of a Gremlin property
    Given an empty graph
    And having executed:
      """
      CREATE (:A {tags: ['x', 'y']}), (:A {tags: 'x'})
      """
    When executing query:
      """
      MATCH (n:A) WHERE n.tags = ['x', 'y'] RETURN size(n.tags) AS size
      """
    Then the result should be, in any order:
      | size |
      | 2    |
    And no side effects

  Scenario: [9] A unique value of each type
    Given an empty graph
    And having executed:
      """
      CREATE CONSTRAINT one FOR (n:A) REQUIRE n.key IS UNIQUE
      """
    And having executed:
      """
      CREATE (:A {key: duration('P1D')}), (:A {key: duration('PT24H')}), (:A {key: [1, 2]}), (:A {key: [1]}),
             (:A {key: date('2024-01-01')}), (:A {key: datetime('2024-01-01')}), (:A {key: point({x: 1, y: 2})})
      """
    When executing query:
      """
      MATCH (n:A) WHERE n.key = date('2024-01-01') RETURN count(*) AS count
      """
    Then the result should be, in any order:
      | count |
      | 1     |
    And no side effects

  Scenario: [10] Lists of no value, one and several are read by a scan as they were written
    Given an empty graph
    And having executed:
      """
      UNWIND [[], ['a'], ['a', 'b'], ['a']] AS list CREATE (:A {list: list, other: 1})
      """
    And having executed:
      """
      CREATE (:A {list: 'a', other: 1}), (:A {other: 1})
      """
    When executing query:
      """
      MATCH (n:A) RETURN n.list AS list, sum(n.other) AS count
      """
    Then the result should be, in any order:
      | list       | count |
      | []         | 1     |
      | ['a']      | 2     |
      | ['a', 'b'] | 1     |
      | 'a'        | 1     |
      | null       | 1     |
    And no side effects
