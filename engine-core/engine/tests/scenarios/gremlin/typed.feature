Feature: numbers, types and dates

  Scenario: math follows the rules of precedence
    Given the empty graph
    And the traversal of
      """
      g.inject(2).math("-_^2 + 2 ^ -_ ^ 2 * 8 % 3")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[-3.5].d |

  Scenario: a function without parentheses takes the rest of its group
    Given the empty graph
    And the traversal of
      """
      g.inject(3).math("(abs 1 - _) * 2")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4.0].d |

  Scenario: math knows functions and constants
    Given the empty graph
    And the traversal of
      """
      g.inject(8).math("log2(_) + pow(_, cbrt(_)) + signum(-_) + floor(sqrt [_]) + cos(pi)")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[67.0].d |

  Scenario: a label named like a constant is a variable
    Given the empty graph
    And the traversal of
      """
      g.inject(5).as("e").constant(1).math("e + 1")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6.0].d |

  Scenario: a division by zero is an error
    Given the empty graph
    And the traversal of
      """
      g.inject(0).math("1 / _")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: math takes numbers only
    Given the empty graph
    And the traversal of
      """
      g.inject("1").math("_ + 1")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: math drops traversers without a value
    Given the modern graph
    And the traversal of
      """
      g.V().math("_ * 2").by("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[58.0].d |
      | d[54.0].d |
      | d[64.0].d |
      | d[70.0].d |

  Scenario: each variable of math has its by()
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").as("a").out("knows").math("(a - _) / a").by("age").by("age").order()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[-0.10344827586206896].d |
      | d[0.06896551724137931].d |

  Scenario: asNumber reads strings
    Given the empty graph
    And the traversal of
      """
      g.inject("5", " -7 ", "3000000000", "0x1F", "1.5", "1e3").asNumber()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].i |
      | d[-7].i |
      | d[3000000000].l |
      | d[31].i |
      | d[1.5].d |
      | d[1000.0].d |

  Scenario: asNumber leaves numbers and nulls alone
    Given the empty graph
    And the traversal of
      """
      g.inject(5b, 5.5f, null).asNumber()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].b |
      | d[5.5].f |
      | null |

  Scenario: asNumber converts to a type
    Given the empty graph
    And the traversal of
      """
      g.inject("5.75", 300).union(asNumber(GType.INT), asNumber(GType.DOUBLE), asNumber(GType.LONG), asNumber(N.short))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].i |
      | d[300].i |
      | d[5.75].d |
      | d[300.0].d |
      | d[5].l |
      | d[300].l |
      | d[5].s |
      | d[300].s |

  Scenario: a number has to fit its type
    Given the empty graph
    And the traversal of
      """
      g.inject(300).asNumber(GType.BYTE)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a number beyond 64 bits does not fit
    Given the empty graph
    And the traversal of
      """
      g.inject(1e19).asNumber(GType.LONG)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asNumber refuses '1,000'
    Given the empty graph
    And the traversal of
      """
      g.inject("1,000").asNumber()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asNumber refuses 'abc'
    Given the empty graph
    And the traversal of
      """
      g.inject("abc").asNumber()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asNumber refuses ''
    Given the empty graph
    And the traversal of
      """
      g.inject("").asNumber()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asNumber refuses 'inf'
    Given the empty graph
    And the traversal of
      """
      g.inject("inf").asNumber()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asNumber refuses [1]
    Given the empty graph
    And the traversal of
      """
      g.inject([1]).asNumber()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asBool reads numbers and strings
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 0, -0.5, "TRUE", "false", true).asBool()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | true |
      | false |
      | true |
      | true |
      | false |
      | true |

  Scenario: asBool refuses null
    Given the empty graph
    And the traversal of
      """
      g.inject(null).asBool()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asBool refuses 'yes'
    Given the empty graph
    And the traversal of
      """
      g.inject("yes").asBool()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asBool refuses [true]
    Given the empty graph
    And the traversal of
      """
      g.inject([true]).asBool()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: typeOf tells numbers apart
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 1L, 1.0, "1", [1], {1}, null).union(is(typeOf(GType.INT)), is(typeOf(GType.NUMBER)), is(P.typeOf(GType.NULL)), is(typeOf("List")))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | d[1].i |
      | d[1].l |
      | d[1.0].d |
      | null |
      | l[d[1].i] |

  Scenario: typeOf of a property
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", typeOf(GType.INT)).has("name", P.typeOf("String")).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].l |

  Scenario: not typeOf passes values of other types
    Given the modern graph
    And the traversal of
      """
      g.V().values("age", "lang").is(not(typeOf(GType.INT)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | java |
      | java |

  Scenario: a missing property has no type
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("software").outE().has("since", typeOf(GType.NULL)).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].l |

  Scenario: typeOf tells elements apart
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","lop").union(identity(), inE(), properties("name")).union(is(typeOf(GType.VERTEX)), is(typeOf(GType.EDGE)), is(typeOf(GType.VPROPERTY))).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].l |

  @gremlin-3.7
  Scenario: dates are parsed, moved and compared
    Given the empty graph
    And the traversal of
      """
      g.inject("2024-02-28").asDate().dateAdd(DT.day, 1).dateAdd(hour, -1).dateDiff(datetime("2024-02-28"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[82800].l |

  Scenario: a date with an offset is a point in time
    Given the empty graph
    And the traversal of
      """
      g.inject("2024-02-28T02:00:00+02:00").asDate()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | dt[2024-02-28T00:00:00Z] |

  @gremlin-3.7
  Scenario: dateDiff of a null is from 1970 on
    Given the empty graph
    And the traversal of
      """
      g.inject(datetime("1970-01-02")).dateDiff(null)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[86400].l |

  Scenario: a date stays in the range of dates
    Given the empty graph
    And the traversal of
      """
      g.inject(datetime("2024-01-01")).dateAdd(day, 9223372036854775807)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: dateAdd takes a date
    Given the empty graph
    And the traversal of
      """
      g.inject("2024-01-01").dateAdd(day, 1)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: asDate takes no fractions
    Given the empty graph
    And the traversal of
      """
      g.inject(1.5).asDate()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a UUID is a value of its own type
    Given the empty graph
    And the traversal of
      """
      g.addV("a").property("u", UUID("F47AF10B-58cc-4372-a567-0f02b2f3d479")).property("t", "f47af10b-58cc-4372-a567-0f02b2f3d479").union(has("u", UUID("f47af10b-58cc-4372-a567-0f02b2f3d479")), has("u", typeOf(GType.UUID)), has("t", typeOf(GType.UUID)), has("t", UUID("f47af10b-58cc-4372-a567-0f02b2f3d479"))).values("u").asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | f47af10b-58cc-4372-a567-0f02b2f3d479 |
      | f47af10b-58cc-4372-a567-0f02b2f3d479 |

  Scenario: a UUID as an id is its text
    Given the empty graph
    And the graph initializer of
      """
      g.addV("a").property(id, UUID("f47af10b-58cc-4372-a567-0f02b2f3d479"))
      """
    And the traversal of
      """
      g.V(UUID("f47af10b-58cc-4372-a567-0f02b2f3d479")).hasId(UUID("f47af10b-58cc-4372-a567-0f02b2f3d479")).id()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | f47af10b-58cc-4372-a567-0f02b2f3d479 |

  Scenario: UUIDs are ordered behind strings
    Given the empty graph
    And the traversal of
      """
      g.inject(UUID("5100808b-62f9-42b7-957e-ed66c30f40d1"), "z", UUID("4100808b-62f9-42b7-957e-ed66c30f40d1"), ["a"]).order().limit(3)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | z |
      | uuid[4100808b-62f9-42b7-957e-ed66c30f40d1] |
      | uuid[5100808b-62f9-42b7-957e-ed66c30f40d1] |

  Scenario: integers of any size are exact, and literals beyond 64 bits are some
    Given the empty graph
    And the traversal of
      """
      g.inject(123456789012345678901234567890, 2n, 9223372036854775807L).sum()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[123456789021569050938089343699].n |

  Scenario: decimals are exact, and keep their places
    Given the empty graph
    And the traversal of
      """
      g.inject(0.10m, 0.2m).sum().asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | 0.30 |

  Scenario: a decimal equals the double with its text, and an integer of any size those of 64 bits
    Given the empty graph
    And the traversal of
      """
      g.inject(0.1, 0.1m, 0.10m, 1, 1n, 1.0m, 1.0).dedup().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: numbers of all types are in one order
    Given the empty graph
    And the traversal of
      """
      g.inject(9223372036854775808n, 9223372036854775807L, 0.5m, 0.25, -1n, NaN, 1e30).order().by(desc).limit(3).skip(1)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1000000000000000000000000000000.0].d |
      | d[9223372036854775808].n |

  Scenario: sacks divide decimals and integers
    Given the empty graph
    And the traversal of
      """
      g.withSack(-2m).inject(3m).sack(div).sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[-0.6666666667].m |

  Scenario: sacks divide integers of any size as integers
    Given the empty graph
    And the traversal of
      """
      g.withSack(7n).inject(2).sack(div).sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].n |

  Scenario: a sack of any size does not grow without end
    Given the empty graph
    And the traversal of
      """
      g.withSack(10n).inject(10n).repeat(sack(mult)).times(2000).sack()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: numbers of any size become others that hold them
    Given the empty graph
    And the traversal of
      """
      g.inject("123456789012345678901234567890", "-7").asNumber().asNumber(GType.BIGDECIMAL).asNumber(GType.BIGINT).fold().project("all", "types").by().by(unfold().is(typeOf(GType.BIGINT)).count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"all":"l[d[123456789012345678901234567890].n,d[-7].n]","types":"d[2].l"}] |

  Scenario: a number that a type does not hold is an error
    Given the empty graph
    And the traversal of
      """
      g.inject(9223372036854775808n).asNumber(GType.LONG)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: an index and a scan find what an integer of any size equals
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", 29n).union(values("name"), __.in("knows").has("age", gt(1.5m)).count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | d[0].l |

  Scenario: an integer of any size is stored with 64 bits, if it has no more
    Given the empty graph
    And the traversal of
      """
      g.addV("a").property("n", 5n).values("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].l |

  Scenario: a decimal is no value of a property
    Given the empty graph
    And the traversal of
      """
      g.addV("a").property("n", 5.0m)
      """
    When iterated to list
    Then the traversal will raise an error
