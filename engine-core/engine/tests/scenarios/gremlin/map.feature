Feature: steps that map and reduce

  @gremlin-3.7
  Scenario: sum is a 64-bit integer
    Given the modern graph
    And the traversal of
      """
      g.V().values("age").sum()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[123].l |

  Scenario: sum of nothing
    Given the modern graph
    And the traversal of
      """
      g.V().values("nothing").sum()
      """
    When iterated to list
    Then the result should be empty

  Scenario: mean, min and max
    Given the modern graph
    And the traversal of
      """
      g.V().values("age").fold().project("mean","min","max").by(mean(local)).by(min(local)).by(max(local))
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"mean":"d[30.75].d","min":"d[27].i","max":"d[35].i"}] |

  Scenario: max of integers and doubles is a double
    Given the modern graph
    And the traversal of
      """
      g.inject([1, 0.5D]).max(local)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[1.0].d |

  Scenario: valueMap and elementMap
    Given the modern graph
    And the traversal of
      """
      g.V("1").elementMap("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"t[id]":"v[marko].id","t[label]":"person","name":"marko"}] |

  Scenario: properties
    Given the modern graph
    And the traversal of
      """
      g.V("1").properties("age")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | vp[marko-age->d[29].i] |

  Scenario: project leaves out what has no value
    Given the modern graph
    And the traversal of
      """
      g.V("3").project("name","age").by("name").by("age")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"name":"lop"}] |

  Scenario: select of a map with a null
    Given the modern graph
    And using the parameter x defined as "m[{\"name\":\"marko\",\"age\":null}]"
    And the traversal of
      """
      g.inject(x).select("name","age")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"name":"marko","age":null}] |

  Scenario: map to null
    Given the modern graph
    And the traversal of
      """
      g.V("1","2").map(constant(null))
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | null |
      | null |

  Scenario: order of several types
    Given the modern graph
    And the traversal of
      """
      g.inject("b", 2, true, null, "a", 1.5D).order()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | null |
      | true |
      | d[1.5].d |
      | d[2].i |
      | a |
      | b |

  Scenario: order of several keys
    Given the modern graph
    And the traversal of
      """
      g.V().order().by(label).by("name", desc).values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | vadas |
      | peter |
      | marko |
      | josh |
      | ripple |
      | lop |

  Scenario: tokens among the keys of a map
    Given the modern graph
    And the traversal of
      """
      g.V("1").elementMap().order(local).by(keys).unfold().select(keys)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | age |
      | t[id] |
      | t[label] |
      | name |

  @gremlin-3.7
  Scenario: group with a reduction
    Given the modern graph
    And the traversal of
      """
      g.V().group().by(label).by(values("age").sum())
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"person":"d[123].l"}] |

  Scenario: group in group, by labels
    Given the modern graph
    And the traversal of
      """
      g.V().hasLabel("person").as("p").out("created").group().by("name").by(group().by(select("p").by("name")).by(count()))
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"lop":{"marko":"d[1].l","josh":"d[1].l","peter":"d[1].l"},"ripple":{"josh":"d[1].l"}}] |

  Scenario: groupCount
    Given the modern graph
    And the traversal of
      """
      g.V().out("created").groupCount().by("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | m[{"lop":"d[3].l","ripple":"d[1].l"}] |

  Scenario: fold and unfold
    Given the modern graph
    And the traversal of
      """
      g.V().values("lang").fold()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | l[java,java] |

  Scenario: count(local) of a path
    Given the modern graph
    And the traversal of
      """
      g.V().has("name","vadas").in().out("created").path().count(local)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | d[3].l |

  Scenario: a wrong type
    Given the modern graph
    And the traversal of
      """
      g.V().values("name").sum()
      """
    When iterated to list
    Then the traversal will raise an error

  Scenario: fold keeps nulls
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, null).fold()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | l[null,d[1].i,null] |

  Scenario: groups keep nulls
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, null).group().by(constant("k")).by(identity().fold())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"k":[null,"d[1].i",null]}] |

  Scenario: groups without a second by keep nulls
    Given the modern graph
    And the traversal of
      """
      g.inject(null, 1, null).group().by(constant("k"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"k":[null,"d[1].i",null]}] |

  @gremlin-3.7
  Scenario: several by() transform the values of a map in turn
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", "marko").valueMap("name", "age").by(unfold()).by(count(local))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"name":"marko","age":"d[1].l"}] |

  @gremlin-3.7
  Scenario: a by() without a result leaves its entries out
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", "marko").valueMap("name", "age").by(unfold()).by(unfold().is("x"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"name":"marko"}] |

  Scenario: valueMap with one token
    Given the modern graph
    And the traversal of
      """
      g.V().has("name", "lop").union(valueMap("lang").with(WithOptions.tokens, WithOptions.ids), valueMap("lang").with(WithOptions.tokens, WithOptions.labels))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"t[id]":"3","lang":["java"]}] |
      | m[{"t[label]":"software","lang":["java"]}] |

  Scenario: a traversal tests the label
    Given the modern graph
    And the traversal of
      """
      g.V().has(T.label, __.is(startingWith("soft"))).values("name")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | lop |
      | ripple |
