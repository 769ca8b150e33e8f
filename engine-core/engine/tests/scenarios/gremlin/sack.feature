Feature: sacks and operators

  Scenario: a sack adds up weights on the way
    Given the modern graph
    And the traversal of
      """
      g.withSack(0.0).V("1").repeat(outE().sack(sum).by("weight").inV()).times(2).sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2.0].d |
      | d[1.4].d |

  Scenario: a sack keeps rows apart that are counted
    Given the modern graph
    And the traversal of
      """
      g.withSack(1).V("1").out().sack(assign).by("name").in().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].l |

  Scenario: groups by the sack
    Given the modern graph
    And the traversal of
      """
      g.withSack(1).V().out().sack(mult).by(constant(2)).groupCount().by(sack())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"d[2].i":"d[6].l"}] |

  Scenario: a sack without a start is null until it is assigned
    Given the modern graph
    And the traversal of
      """
      g.V("1").sack(assign).by("age").sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |

  Scenario: a traverser without a value for its sack is dropped
    Given the modern graph
    And the traversal of
      """
      g.withSack(0).V().sack(sum).by("age").sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |
      | d[32].i |
      | d[35].i |

  Scenario: a sack flows through union and local
    Given the modern graph
    And the traversal of
      """
      g.withSack(1).V("1").union(sack(sum).by(constant(1)), local(out("created").sack(mult).by(constant(5)))).sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].i |
      | d[5].i |

  Scenario: the sum of words is refused
    Given the modern graph
    And the traversal of
      """
      g.withSack(1).V().sack(sum).by("name")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: a fold with an operator
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").values("age").fold(10, sum)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[133].i |

  Scenario: a fold of nothing is its seed
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("none").values("age").fold(7, max)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[7].i |

  Scenario: what is aggregated goes into a side effect by its operator
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("x", 100, sum).V().hasLabel("person").values("age").aggregate("x").cap("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[223].i |

  Scenario: a side effect with a list gets all
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("x", ["a"]).V("1").out("knows").values("name").aggregate("x").cap("x")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[a,vadas,josh] |

  Scenario: the operator and takes booleans only
    Given the modern graph
    And the traversal of
      """
      g.withSideEffect("x", true, and).V().values("age").aggregate("x").cap("x")
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: sacks of equal traversers merge at a barrier
    Given the modern graph
    And the traversal of
      """
      g.withSack(1, sum).V().out().barrier().sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].i |
      | d[3].i |
      | d[3].i |
      | d[1].i |
      | d[1].i |
      | d[1].i |

  Scenario: a barrier keeps sacks apart without an operator
    Given the modern graph
    And the traversal of
      """
      g.withSack(1).V().out().barrier().sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |
      | d[1].i |
      | d[1].i |
      | d[1].i |
      | d[1].i |
      | d[1].i |

  Scenario: what tells traversers apart keeps their sacks apart
    Given the modern graph
    And the traversal of
      """
      g.withSack(1, sum).V("1", "4").as("a").out("created").barrier().project("a", "sack").by(select("a").values("name")).by(sack())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a": "marko", "sack": "d[1].i"}] |
      | m[{"a": "josh", "sack": "d[1].i"}] |
      | m[{"a": "josh", "sack": "d[1].i"}] |

  Scenario: merged traversers that do not count
    Given the modern graph
    And the traversal of
      """
      g.withBulk(false).withSack(1, sum).V().out().barrier().sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[3].i |
      | d[1].i |
      | d[1].i |
      | d[1].i |

  Scenario: without bulk, a barrier leaves one of each
    Given the modern graph
    And the traversal of
      """
      g.withBulk(false).V().out().barrier().values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |
      | josh |
      | vadas |

  Scenario: without bulk, the rounds of a repeat have barriers of their own
    Given the modern graph
    And the traversal of
      """
      g.withBulk(false).V("1").repeat(both().barrier()).times(2).count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[5].l |

  Scenario: with bulk, a barrier keeps all
    Given the modern graph
    And the traversal of
      """
      g.withBulk(true).V().out().barrier().count()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[6].l |

  Scenario: sacks are normalised among the traversers of one
    Given the modern graph
    And the traversal of
      """
      g.withSack(1.0, sum).V("1").local(out("knows").barrier(normSack)).in("knows").barrier().sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1.0].d |
      | d[1.0].d |

  Scenario: sacks are divided by their sum
    Given the modern graph
    And the traversal of
      """
      g.withSack(0).V().hasLabel("software").in("created").sack(assign).by("age").barrier(normSack).sack().sum()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1.0].d |

  Scenario: a null cannot be normalised
    Given the modern graph
    And the traversal of
      """
      g.withSack("a").V().barrier(normSack).sack()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: an edge is the same from both ends
    Given the modern graph
    And the traversal of
      """
      g.withSack(1, sum).V("1", "2").bothE("knows").hasId("7").barrier().sack()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[2].i |
      | d[2].i |

  Scenario: the other end of an edge needs the path
    Given the modern graph
    And the traversal of
      """
      g.withSack(1, sum).V("1", "2").bothE("knows").hasId("7").barrier().otherV().project("v", "s").by("name").by(sack())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"v": "marko", "s": "d[1].i"}] |
      | m[{"v": "vadas", "s": "d[1].i"}] |
