Feature: side effects

  Scenario: what was aggregated can be left out
    Given the modern graph
    And the traversal of
      """
      g.V("1").out().aggregate("x").out().where(without("x")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | ripple |

  Scenario: a recommendation
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("me").out("created").aggregate("c").in("created").where(neq("me")).dedup().out("created").where(without("c")).groupCount().by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"ripple":"d[1].l"}] |

  Scenario: cap gives all, also when no traverser is left
    Given the modern graph
    And the traversal of
      """
      g.V().aggregate("x").by("age").has("age", gt(100)).cap("x").sum(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[123].i |

  Scenario: cap of nothing
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("none").aggregate("x").cap("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[] |

  Scenario: several keys
    Given the modern graph
    And the traversal of
      """
      g.V("1").aggregate("a").by("name").out().hasLabel("none").aggregate("b").cap("a", "b")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":["marko"],"b":[]}] |

  Scenario: aggregated twice into one key
    Given the modern graph
    And the traversal of
      """
      g.V("4").values("name").aggregate("a").fold().aggregate("a").cap("a").unfold().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].l |

  Scenario: a reducing step keeps what was aggregated before it
    Given the modern graph
    And the traversal of
      """
      g.V().aggregate("x").group().by(label).by(count()).select("x").unfold().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: branches see what was aggregated before them
    Given the modern graph
    And the traversal of
      """
      g.V().aggregate("x").union(out().count(), select("x").unfold().count())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |
      | d[36].l |

  Scenario: loops see what was aggregated before them
    Given the modern graph
    And the traversal of
      """
      g.V("1").aggregate("x").repeat(out().where(without("x"))).times(2).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | ripple |
      | lop |

  Scenario: paths and labels go on after aggregate
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").out("created").aggregate("x").as("b").select("a", "b").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","b":"lop"}] |

  Scenario: store is capped
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("created").store("x").by("name").cap("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[lop] |

  Scenario: groups with a key
    Given the modern graph
    And the traversal of
      """
      g.V().out().groupCount("m").by("name").out().groupCount("n").by("name").cap("m", "n").select("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"ripple":"d[1].l","lop":"d[1].l"}] |

  Scenario: withSideEffect gives a value to select
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("x", 5).V().count().select("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].i |

  Scenario: withSideEffect gives a list to compare with
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("x", ["marko", "josh"]).V().values("name").where(within("x"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | josh |

  Scenario: what stands between aggregate and cap is written
    Given the empty graph
    And the traversal of
      """
      g.addV("a").aggregate("x").property("k", 1).cap("x").unfold().values("k")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |

  Scenario: fail ends the request
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").coalesce(out("created"), fail("nothing created"))
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "nothing created"

  Scenario: fail without a traverser does nothing
    Given the modern graph
    And the traversal of
      """
      g.V("77").fail()
      """
    When iterated to list
    Then the result should be empty

  Scenario: each round sees what the rounds before it collected
    Given the modern graph
    And the traversal of
      """
      g.V("1").repeat(out().where(without("x")).aggregate("x")).times(2).cap("x").unfold().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | vadas |
      | josh |
      | ripple |

  Scenario: a traverser sees what the traversers before it stored
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").out("created").where(without("x")).store("x").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |

  Scenario: a child collects for each traverser
    Given the modern graph
    And the traversal of
      """
      g.V("1", "4").local(out("created").aggregate("x").cap("x").unfold().count())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1].l |
      | d[3].l |

  Scenario: a limit ends what is stored
    Given the modern graph
    And the traversal of
      """
      g.V().store("x").limit(1).cap("x").unfold().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: a condition collects as far as it looks
    Given the modern graph
    And the traversal of
      """
      g.V("1").where(out().store("x")).cap("x").unfold().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].l |

  Scenario: branches collect into one key
    Given the modern graph
    And the traversal of
      """
      g.V("1").union(out("knows").groupCount("m").by("name"), out("created").groupCount("m").by("name").out()).cap("m")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"vadas":"d[1].l","josh":"d[1].l","lop":"d[1].l"}] |

  Scenario: a side effect of a child
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").sideEffect(out("created").store("x").by("name")).cap("x").unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | lop |
      | lop |
      | ripple |

  Scenario: a counted side effect begins with the given map
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("m", ["person": 10]).V().groupCount("m").by(label).cap("m")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"person":"d[14].l","software":"d[2].l"}] |

  Scenario: grouped twice into one key
    Given the modern graph
    And the traversal of
      """
      g.V("1").group("g").by(label).by("name").out("created").group("g").by(label).by("name").cap("g").select(values).unfold().unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | lop |

  Scenario: a grouped side effect with a reducing value inside a loop
    Given the modern graph
    And the traversal of
      """
      g.V("1").repeat(out().group("g").by(label).by(count())).times(2).cap("g")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"person":"d[2].l","software":"d[3].l"}] |

  Scenario: a side effect is read by several steps
    Given the modern graph
    And the traversal of
      """
      g.V("1").out("created").aggregate("x").by("name").select("x").unfold().as("a").where("a", within("x")).concat("!")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop! |

  Scenario: cap in the middle of a traversal
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("software").aggregate("x").by("name").cap("x").unfold().as("n").V().has("name", eq("lop")).in("created").select("n")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | lop |
      | lop |
      | ripple |
      | ripple |
      | ripple |

  Scenario: cap of a key that nothing collects
    Given the modern graph
    And the traversal of
      """
      g.V().cap("x")
      """
    When iterated to list
    Then the traversal will raise an error with message containing text of "no step collects the side effect 'x'"

  Scenario: cap behind a limit of nothing is empty
    Given the modern graph
    And the traversal of
      """
      g.V().limit(0).aggregate("s").cap("s").count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].l |

  Scenario: a limit of nothing asks for one traverser
    Given the modern graph
    And the traversal of
      """
      g.V().aggregate("s").limit(0).cap("s").count(local)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: two groups of one key with a traversal
    Given the modern graph
    And the traversal of
      """
      g.V("1").group("g").by(label).by(values("name").fold()).out("knows").group("g").by(label).by(values("name").fold()).cap("g").select("person").unfold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | vadas |
      | josh |
