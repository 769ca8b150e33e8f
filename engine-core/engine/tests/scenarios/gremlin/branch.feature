Feature: steps that branch

  Scenario: union sums over all traversers
    Given the modern graph
    And the traversal of
      """
      g.V("1","4").union(outE().count(), inE().count())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[5].l |
      | d[1].l |

  Scenario: choose with options
    Given the modern graph
    And the traversal of
      """
      g.V().choose(label).option("person", values("age")).option("software", values("lang")).dedup()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |
      | d[32].i |
      | d[35].i |
      | java |

  Scenario: choose with a stateful branch
    Given the modern graph
    And the traversal of
      """
      g.V().choose(hasLabel("person"), values("age").max(), values("lang").dedup())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[35].i |
      | java |

  Scenario: coalesce takes the first that yields
    Given the modern graph
    And the traversal of
      """
      g.V("1","2").coalesce(out("created"), constant("none"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[lop] |
      | none |

  Scenario: optional
    Given the modern graph
    And the traversal of
      """
      g.V("2").optional(out())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | v[vadas] |

  Scenario: local limits each
    Given the modern graph
    And the traversal of
      """
      g.V().local(outE("created").limit(1)).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[3].l |

  Scenario: labels of a coalesce are forgotten after it
    Given the modern graph
    And the traversal of
      """
      g.V().coalesce(out().as("b"), constant(1)).select("b")
      """
    When iterated to list
    Then the result should be empty

  Scenario: a label given again inside a coalesce names what it named before
    Given the modern graph
    And the traversal of
      """
      g.V("4").as("a").coalesce(out().as("a"), constant(1)).select("a").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |
      | josh |

  Scenario: a label given again inside a flatMap names what it named before
    Given the modern graph
    And the traversal of
      """
      g.V("4").as("a").flatMap(out().as("a")).select("a").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | josh |
      | josh |

  Scenario: a label of a repeat given again inside a flatMap
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").repeat(flatMap(out().as("a"))).times(2).select("a").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | marko |

  Scenario: labels of a local are kept
    Given the modern graph
    And the traversal of
      """
      g.V("4").local(out().as("b").order().by("name").limit(1)).select("b").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |

  Scenario: a coalesce that counts keeps the labels before it
    Given the modern graph
    And the traversal of
      """
      g.V("1","2").as("a").coalesce(out().count(), constant(1)).select("a").values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | vadas |

  Scenario: a coalesce that folds and unfolds keeps the labels before it
    Given the modern graph
    And the traversal of
      """
      g.V("4").as("a").coalesce(out().fold().unfold(), constant(1)).as("b").select("a", "b").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"josh","b":"ripple"}] |
      | m[{"a":"josh","b":"lop"}] |

  Scenario: a local that counts forgets the labels before it
    Given the modern graph
    And the traversal of
      """
      g.V("1").as("a").local(out().count()).select("a")
      """
    When iterated to list
    Then the result should be empty

  Scenario: a flatMap that counts adds its result to the path
    Given the modern graph
    And the traversal of
      """
      g.V("1").flatMap(out().count()).path()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | p[v[marko],d[3].l] |

  Scenario: each option that fits is taken
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").branch(values("age")).option(lt(30), constant("young")).option(gt(28), constant("over 28")).option(any, values("name"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | young |
      | over 28 |
      | marko |
      | young |
      | vadas |
      | over 28 |
      | josh |
      | over 28 |
      | peter |

  Scenario: an option for what fits no other
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").branch(values("age")).option(27, constant("vadas")).option(none, values("name"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | vadas |
      | josh |
      | peter |

  Scenario: options by traversals
    Given the modern graph
    And the traversal of
      """
      g.V().branch(identity()).option(hasLabel("software"), values("lang")).option(has("name", "vadas"), values("age"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | java |
      | java |
      | d[27].i |

  Scenario: branches count over all traversers
    Given the modern graph
    And the traversal of
      """
      g.V().branch(label()).option("person", count()).option("software", values("name"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[4].l |
      | lop |
      | ripple |

  Scenario: a choice with an option for all
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").choose(values("age")).option(27, constant("a")).option(any, constant("b"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | b |
      | b |
      | b |
      | b |

  Scenario: a choice without a value
    Given the modern graph
    And the traversal of
      """
      g.V().choose(values("age")).option(29, constant("a")).option(unproductive, constant("b")).option(none, constant("c"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | b |
      | b |
      | c |
      | c |
      | c |

  Scenario: a branch that nobody chose does not run, not even to count nobody
    Given the modern graph
    And the traversal of
      """
      g.V().union(
        choose(hasLabel("none"), count(), constant("a").dedup()),
        hasLabel("person").choose(label()).option("person", count()).option("software", fold()),
        V("1").branch(label()).option("person", out().count()).option("software", __.in().fold()))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | d[4].l |
      | d[18].l |
