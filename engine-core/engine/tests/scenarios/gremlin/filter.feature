Feature: steps that filter

  Scenario: hasId of a variable that holds a list
    Given the modern graph
    And using the parameter ids defined as "l[v[vadas].id,v[lop].id]"
    And the traversal of
      """
      g.V().has("name","marko").out().hasId(ids)
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | v[vadas] |
      | v[lop] |

  Scenario: hasId of a predicate
    Given the modern graph
    And the traversal of
      """
      g.V().hasId(P.neq("1")).count()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[5].l |

  Scenario: has with a text predicate
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", TextP.endingWith("r")).values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | peter |

  Scenario: has of label, key and predicate
    Given the modern graph
    And the traversal of
      """
      g.V().has("person","age",P.between(27,32)).values("age")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[29].i |
      | d[27].i |

  Scenario: where with labels
    Given the modern graph
    And the traversal of
      """
      g.V().as("a").out("created").in("created").as("b").where("a",P.neq("b")).by("age").select("a","b").by("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"a":"marko","b":"josh"}] |
      | m[{"a":"marko","b":"peter"}] |
      | m[{"a":"josh","b":"marko"}] |
      | m[{"a":"josh","b":"peter"}] |
      | m[{"a":"peter","b":"marko"}] |
      | m[{"a":"peter","b":"josh"}] |

  Scenario: where with a traversal that ends in a label
    Given the modern graph
    And the traversal of
      """
      g.V().as("a").out("knows").as("b").where(__.in("knows").as("a")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |
      | josh |

  Scenario: not, and, or
    Given the modern graph
    And the traversal of
      """
      g.V().and(hasLabel("person"), not(out("created"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |

  Scenario: infix or
    Given the modern graph
    And the traversal of
      """
      g.V().where(__.out("knows").or().has("name","peter")).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | marko |
      | peter |

  Scenario: nulls are equal to nulls
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1).is(P.lte(null))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |

  Scenario: properties of edges are distinct by key and value
    Given the modern graph
    And the traversal of
      """
      g.E().properties("weight").dedup().value()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0.5].d |
      | d[1.0].d |
      | d[0.4].d |
      | d[0.2].d |

  Scenario: a range that cannot be
    Given the modern graph
    And the traversal of
      """
      g.V().range(3, 1)
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: what cannot be ordered is neither above nor below, also under not
    Given the modern graph
    And the traversal of
      """
      g.inject(1, "a", null).not(is(gt(0)))
      """
    When iterated to list
    Then the result should be empty

  Scenario: a comparison with NaN has no answer under not
    Given the modern graph
    And the traversal of
      """
      g.inject(1, 2).not(is(gt(1).and(lt(NaN))))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[1].i |

  Scenario: a negated predicate on another type drops the traverser
    Given the modern graph
    And the traversal of
      """
      g.inject("a", 0).is(not(gt(1)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | d[0].i |

  Scenario: what has no such property passes not, what has one of another type does not
    Given the modern graph
    And the traversal of
      """
      g.V().not(has("age", gt("x"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |

  Scenario: an edge with a property of another type does not pass not
    Given the modern graph
    And the traversal of
      """
      g.E().not(has("weight", gt("x")))
      """
    When iterated to list
    Then the result should be empty

  Scenario: not of a walk whose last test has no answer
    Given the modern graph
    And the traversal of
      """
      g.V().not(out().values("age").is(gt("x"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | vadas |
      | lop |
      | josh |
      | ripple |
      | peter |

  Scenario: a null is not equal to a value
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, 2).is(neq(1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |
      | d[2].i |

  Scenario: a null is not within values
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, 2).is(without(1))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |
      | d[2].i |

  Scenario: not equal holds for what does not compare
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1).not(is(eq(1)))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | null |
