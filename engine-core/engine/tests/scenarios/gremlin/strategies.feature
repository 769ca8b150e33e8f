Feature: strategies that change ids and answers

  Scenario: a property stands for the id
    Given the empty graph
    And the graph initializer of
      """
      g.withStrategies(ElementIdStrategy).addV("x").property(T.id, "a").property("k", 1).as("v").addV("y").property("k", 2).addE("e").from("v").property(T.id, "b")
      """
    And the traversal of
      """
      g.withStrategies(ElementIdStrategy).V("a", "none").has(T.id, "a").hasId(within("a", "b")).union(id(), outE("e").hasId("b").id(), values("k"))
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |
      | b |
      | d[1].i |
    And the graph should return 1 for count of "g.V().has(\"__id\", \"a\")"
    And the graph should return 0 for count of "g.V(\"a\")"
    And the graph should return 2 for count of "g.V().has(\"__id\", typeOf(\"String\"))"

  Scenario: a property with another key stands for the id
    Given the empty graph
    And the traversal of
      """
      g.withStrategies(new ElementIdStrategy(idPropertyKey: "mine")).addV("x").property("mine", "a").map(__.optional(__.V("a")).id())
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | a |

  Scenario: without the strategy ids are ids
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(ElementIdStrategy).withoutStrategies(ElementIdStrategy).V("1").id()
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | 1 |

  Scenario: references are the same elements
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(ReferenceElementStrategy).V("1").outE("created").as("e").inV().as("v").select("e", "v")
      """
    When iterated to list
    Then the result should be unordered
      | result |
      | m[{"e": "e[marko-created->lop]", "v": "v[lop]"}] |

  Scenario: an end of a new edge is named by its vertex and by its id
    Given the empty graph
    And the graph initializer of
      """
      g.addV("p").property(id, "1").addV("p").property(id, "2")
      """
    And the traversal of
      """
      g.withSideEffect("c", [(Direction.OUT): Vertex("1", "p"), (Direction.IN): "2", "k": 1]).
        mergeE([(T.label): "e", (Direction.OUT): "1", (Direction.IN): Vertex("2", "p")]).option(Merge.onCreate, __.select("c"))
      """
    When iterated to list
    Then the result should have a count of 1
    And the graph should return 1 for count of "g.V(\"1\").outE(\"e\").has(\"k\", 1).inV().hasId(\"2\")"

  Scenario: another vertex at an end of a new edge is a contradiction
    Given the empty graph
    And the graph initializer of
      """
      g.addV("p").property(id, "1").addV("p").property(id, "2")
      """
    And the traversal of
      """
      g.withSideEffect("c", [(Direction.OUT): Vertex("2", "p")]).
        mergeE([(T.label): "e", (Direction.OUT): "1", (Direction.IN): "2"]).option(Merge.onCreate, __.select("c"))
      """
    When iterated to list
    Then the traversal will raise an error

  # The next results are those of TinkerPop's engine.

  Scenario: coins with a seed fall as in Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().order().by("name").coin(0.5).values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | marko |
      | peter |

  Scenario: a shuffle with a seed is that of Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().values("name").order().order().by(Order.shuffle)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | lop |
      | josh |
      | ripple |
      | vadas |
      | peter |
      | marko |

  Scenario: a shuffle of a list with a seed is that of Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().values("name").order().fold().order(Scope.local).by(Order.shuffle)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | l[lop,josh,ripple,vadas,peter,marko] |

  Scenario: a sample with a seed is that of Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().order().by("name").sample(3).values("name")
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | peter |
      | ripple |
      | marko |

  Scenario: a weighted sample with a seed is that of Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).E().order().by(__.id().asNumber()).sample(3).by("weight").id()
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | 10 |
      | 7 |
      | 9 |

  Scenario: a sample of a list with a seed is that of Java
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().values("name").order().fold().sample(Scope.local, 3)
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | l[marko,ripple,peter] |

  Scenario: the samples of several traversers draw from one generator
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().order().by("name").local(__.both().order().by("name").sample(1).values("name"))
      """
    When iterated to list
    Then the result should be ordered
      | result |
      | ripple |
      | josh |
      | vadas |
      | lop |
      | josh |
      | marko |

  Scenario: a sample without weights with a seed ends
    Given the modern graph
    And the traversal of
      """
      g.withStrategies(new SeedStrategy(seed: 42)).V().sample(2).by(__.constant(0))
      """
    When iterated to list
    Then the result should have a count of 2
