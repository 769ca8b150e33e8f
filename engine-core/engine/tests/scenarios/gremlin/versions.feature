Feature: what differs between Gremlin 3.7 and 3.8

  @gremlin-3.7
  Scenario: 3.7 - a part of one item is the item
    Given the empty graph
    And the traversal of
      """
      g.inject([1, 2, 3]).union(limit(local, 1), range(local, 1, 2), tail(local))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | d[2].i |
      | d[3].i |

  Scenario: 3.8 - a part of one item is a list
    Given the empty graph
    And using the parameter n defined as "d[1].l"
    And the traversal of
      """
      g.inject([1, 2, 3]).union(limit(local, n), range(local, 1, 2), tail(local), limit(local, 0))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[d[1].i] |
      | l[d[2].i] |
      | l[d[3].i] |
      | l[] |

  @gremlin-3.7
  Scenario: 3.7 - all options that match run, and none drops the traverser
    Given the modern graph
    And the traversal of
      """
      g.V().choose(values("age")).
        option(between(26, 30), constant("young")).
        option(between(20, 30), values("name"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | young |
      | young |
      | marko |
      | vadas |

  @gremlin-3.7
  Scenario: 3.7 - all options that match run, over all traversers
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").choose(values("age")).
        option(between(26, 30), count()).
        option(lt(33), values("name").fold().count(local)).
        option(none, constant("old"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |
      | d[3].l |
      | old |

  Scenario: 3.8 - the first option that matches runs, and the others pass
    Given the modern graph
    And the traversal of
      """
      g.V().choose(values("age")).
        option(between(26, 30), constant("young")).
        option(between(20, 30), constant("never")).
        option(unproductive, constant("no age"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | young |
      | young |
      | v[josh] |
      | v[peter] |
      | no age |
      | no age |

  @gremlin-3.7
  Scenario: 3.7 - differences of dates are seconds
    Given the empty graph
    And the traversal of
      """
      g.inject(datetime("2023-08-02T00:00:00Z")).dateDiff(datetime("2023-08-03T00:00:01.5Z"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[-86401].l |

  Scenario: 3.8 - differences of dates are milliseconds
    Given the empty graph
    And the traversal of
      """
      g.inject(datetime("2023-08-02T00:00:00Z")).dateDiff(datetime("2023-08-03T00:00:01.5Z"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[-86401500].l |

  @gremlin-3.7
  Scenario: 3.7 - a string split by nothing is whole
    Given the empty graph
    And using the parameter x defined as "str[]"
    And the traversal of
      """
      g.inject("Hello").union(split(""), split(x), split("l"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[Hello] |
      | l[Hello] |
      | l[He,o] |

  Scenario: 3.8 - a string split by nothing becomes its characters
    Given the empty graph
    And the traversal of
      """
      g.inject("Hello").split("")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[H,e,l,l,o] |

  @gremlin-3.7
  Scenario: 3.7 - a null has a null as its text
    Given the empty graph
    And the traversal of
      """
      g.inject(null).asString()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |

  Scenario: 3.8 - a null has no text
    Given the empty graph
    And the traversal of
      """
      g.inject(null).asString()
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "null"

  Scenario: 3.8 - a comparison without a result is false
    Given the empty graph
    And the traversal of
      """
      g.inject(1, "a", NaN).not(is(gt(0)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | d[NaN] |

  @gremlin-3.7
  Scenario: 3.7 - has takes a traversal
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", is(gt(30))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |
      | peter |

  Scenario: 3.8 - has takes no traversal
    Given the modern graph
    And the traversal of
      """
      g.V().has("age", is(gt(30)))
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "where()"

  @gremlin-3.7
  Scenario: 3.7 - a key of a map may be a token without parentheses
    Given the empty graph
    And the traversal of
      """
      g.inject([label: "a", T.id: 1]).select(keys).unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | t[label] |
      | t[id] |

  Scenario: 3.8 - a key of a map without parentheses is a string
    Given the empty graph
    And the traversal of
      """
      g.inject([label: "a", T.id: 1, (T.key): 2]).select(keys).unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | label |
      | t[id] |
      | t[key] |

  @gremlin-3.7
  Scenario: 3.7 - the last of several by() counts
    Given the modern graph
    And the traversal of
      """
      g.V().groupCount().by("name").by(label)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"person":"d[4].l","software":"d[2].l"}] |

  Scenario: 3.8 - several by() are an error
    Given the modern graph
    And the traversal of
      """
      g.V().groupCount().by("name").by(label)
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "one by()"

  @gremlin-3.7
  Scenario: 3.7 - a sum of integers is a long
    Given the modern graph
    And the traversal of
      """
      g.V().values("age").sum()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[123].l |

  Scenario: 3.8 - a sum keeps the type that holds it
    Given the modern graph
    And the traversal of
      """
      g.union(V().values("age").sum(), inject(100b, 100b).sum(), inject(2147483647, 1).sum(), V().repeat(both()).times(3).values("age").sum())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[123].i |
      | d[200].s |
      | d[2147483648].l |
      | d[1471].i |

  @gremlin-3.7
  Scenario: 3.7 - a group whose barrier has no objects is dropped
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", within("vadas", "peter")).group().by("name").by(out().order().count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"peter":"d[1].l"}] |

  Scenario: 3.8 - a group whose barrier has no objects is counted
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", within("vadas", "peter")).group().by("name").by(out().order().count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"peter":"d[1].l","vadas":"d[0].l"}] |

  Scenario: 3.8 - nothing is injected into a loop
    Given the modern graph
    And the traversal of
      """
      g.V().repeat(inject("x")).times(2)
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "repeat()"

  @gremlin-3.7
  Scenario: 3.7 - a traversal of onMatch starts from the traverser
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name", "marko")
      """
    And the traversal of
      """
      g.inject([key: [name: "marko"], more: [age: 29]]).mergeV(select("key")).option(onMatch, select("more")).values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |

  Scenario: 3.8 - a traversal of onMatch starts from the element
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property("name", "marko")
      """
    And the traversal of
      """
      g.inject([name: "marko"]).as("m").mergeV().
        option(onMatch, project("old", "key").by("name").by(select("m").select("name"))).
        valueMap("old", "key")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"old":"l[marko]","key":"l[marko]"}] |

  Scenario: a branch that reduces answers only for the traversers that chose it
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").local(choose(has("age", gt(30)), values("name").fold(), out("knows").count()))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[josh] |
      | l[peter] |
      | d[2].l |
      | d[0].l |

  Scenario: 3.8 - the end of an edge may be an id
    Given the empty graph
    And the graph initializer of
      """
      g.addV("person").property(T.id, "a").addV("person").property(T.id, "b")
      """
    And the traversal of
      """
      g.V("a").addE("knows").to(constant("b")).union(outV().id(), inV().id())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | b |

  @gremlin-3.7
  Scenario: 3.7 - steps with a key add traverser by traverser
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 2, 3).groupCount("c").select("c").count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |
      | d[2].l |
      | d[3].l |

  Scenario: 3.8 - steps with a key add all values first
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 2, 3).groupCount("c").select("c").count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].l |
      | d[3].l |
      | d[3].l |

  Scenario: 3.8 - local() adds traverser by traverser
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 2, 3).local(groupCount("c").select("c").count(local))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |
      | d[2].l |
      | d[3].l |

  Scenario: 3.8 - groups with a reducing value are read by the step behind them
    Given the modern graph
    And the traversal of
      """
      g.V().group("g").by(T.label).by(count()).select("g").dedup().select("person")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].l |

  Scenario: 3.8 - values by key wait for all traversers
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("software").group("a").by(label).by("name").select("a").select("software").order(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[lop,ripple] |
      | l[lop,ripple] |

  Scenario: 3.8 - local() passes aggregated values on one by one
    Given the empty graph
    And the traversal of
      """
      g.inject(1, 2, 3).local(aggregate("x").select("x").count(local))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |
      | d[2].l |
      | d[3].l |
